"""The README as a new user takes it: the ten lines of Python are run as they stand."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"(?ms)^```(?P<kind>\w+)\n(?P<code>.*?)^```")


def blocks(kind: str) -> list[str]:
    return [b["code"] for b in FENCE.finditer(README) if b["kind"] == kind]


def test_make_has_what_the_readme_asks_for() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    asked = re.findall(r"(?m)^\$ make (\w+)", "\n".join(blocks("console")))
    assert asked == ["demo", "test"]
    for target in asked:
        assert re.search(rf"(?m)^{target}:", makefile)


def test_ten_lines_of_python_give_the_figures_they_say() -> None:
    code = blocks("python")[0]
    seen: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), seen)
    checked = 0
    for line in code.splitlines():
        call, _, said = line.partition("  # ")
        if re.match(r"^[\d.]+$|^'", said):
            found = eval(call, seen)
            assert (round(found, 3) if isinstance(found, float) else found) == eval(said), line
            checked += 1
    assert checked == 2
