"""What ``--engine`` asks for: which cluster, and what one worker takes of it."""

import dataclasses

from voxrisk.types import InputError


@dataclasses.dataclass(frozen=True, slots=True)
class Cluster:
    """Where the cluster is, and what one worker takes of it.

    Attributes:
        address: ``ray://host:port``; None takes the cluster that this machine belongs to
            (``RAY_ADDRESS`` or ``ray start``) or, where there is none, this machine alone.
        cpu: Cores of each worker.
        gpu: GPUs of each worker; a fraction lets several share one.
        memory: Gigabytes that Ray sets aside for each worker; None sets nothing aside.
    """

    address: str | None = None
    cpu: float = 1.0
    gpu: float = 0.0
    memory: float | None = None


def read_engine(text: str) -> Cluster | None:
    """What ``--engine`` says; None is this machine, without Ray.

    >>> read_engine("local")
    >>> read_engine("ray://head:10001,gpu=0.25")
    Cluster(address='ray://head:10001', cpu=1.0, gpu=0.25, memory=None)
    """
    name, *settings = text.strip().split(",")
    if name == "local" and not settings:
        return None
    if name != "ray" and not (name.startswith("ray://") and name != "ray://"):
        raise InputError(
            f"engine {text!r}: choose local, ray or ray://host:port; a worker takes one core "
            "unless the engine says more, as in ray,cpu=2,gpu=0.5,memory=4"
        )
    chosen: dict[str, float] = {}
    for setting in settings:
        key, _, value = setting.partition("=")
        try:
            chosen[key] = float(value)
        except ValueError:
            chosen[key] = -1.0
        if key not in ("cpu", "gpu", "memory") or not 0 <= chosen[key] < 1e6:
            raise InputError(
                f"engine {text!r}: {setting!r} is none of cpu=NUMBER, gpu=NUMBER, memory=GIGABYTES"
            )
    return Cluster(address=None if name == "ray" else name, **chosen)
