"""Several processes on one training, when ``torchrun`` started them; otherwise a world of one."""

import os
import sys
from dataclasses import dataclass

import torch
from torch import Tensor, distributed, nn


@dataclass(frozen=True, slots=True)
class World:
    """The processes of a training: this one's ``rank``, their number, and this one's device."""

    rank: int
    size: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Whether this process writes the files."""
        return self.rank == 0

    def share(self, model: nn.Module) -> nn.Module:
        """Let the gradients of ``model`` be averaged over all processes."""
        if self.size == 1:
            return model
        devices = [self.device] if self.device.type == "cuda" else None
        # The statistics of batch normalisation stay those of each process, as is usual.
        return nn.parallel.DistributedDataParallel(model, device_ids=devices)

    def sum(self, values: Tensor) -> Tensor:
        """Sum over all processes."""
        if self.size > 1:
            distributed.all_reduce(values)
        return values

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            distributed.barrier()


def leave_world() -> None:
    """End the work of several processes together: one that leaves early can bring others down.

    Does not return where ``torchrun`` started several processes; it is their last call. Gloo's
    threads may still hold tensors when Python takes itself down, which then, rarely, aborts a
    process that has done all its work (https://github.com/pytorch/pytorch/pull/179291).
    """
    if distributed.is_available() and distributed.is_initialized():
        distributed.barrier()
        distributed.destroy_process_group()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def join_world(device: torch.device) -> World:
    """Join the processes that ``torchrun`` started (it sets WORLD_SIZE, RANK and LOCAL_RANK)."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return World(0, 1, device)
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    if not distributed.is_initialized():
        distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    return World(distributed.get_rank(), size, device)
