"""Runs one program and sees to it that nothing of it stays: started by ``command``, never imported.

``python guard.py FOLDER PROGRAM ARGUMENT…`` runs the program in a process group of its own and says
on standard output how it ended. Standard input is a line to voxrisk: when it closes, because the
time is up or because voxrisk was killed, the whole group is killed and FOLDER is removed. What the
program started and left behind is killed as well when it ends by itself.
"""

import contextlib
import os
import shutil
import signal
import sys
import threading
import time

_reaping = threading.Lock()


def main(folder: str, words: list[str]) -> None:
    """Run the program to its end."""
    nothing = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
    ]
    try:
        # Python ignores SIGPIPE; a program expects it.
        child = os.posix_spawnp(
            words[0], words, os.environ, file_actions=nothing, setpgroup=0,
            setsigdef=[signal.SIGPIPE],
        )  # fmt: skip
    except OSError as error:
        print("start", error.strerror or error)
        return
    threading.Thread(target=_watch, args=(child, folder), daemon=True).start()
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    with _reaping:  # until it is reaped, its number cannot be that of another group
        _kill(child)
        status = os.waitpid(child, 0)[1]
    print("end", os.waitstatus_to_exitcode(status))


def _watch(child: int, folder: str) -> None:
    while os.read(0, 1):
        pass
    _reaping.acquire()  # and never again: this process ends here
    _kill(child)
    for _ in range(100):  # what is dying may still write
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.exists(folder):  # noqa: PTH110  pathlib takes longer to load than all this
            break
        time.sleep(0.02)
    os._exit(1)


def _kill(group: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
