"""Adam (Kingma and Ba, ICLR 2015) as PyTorch does it, without what PyTorch loads for it.

``torch.optim`` brings the whole compiler along, two seconds in each process that trains a map for
one. The steps are the same, bit for bit (``tests/attack/test_attack_adam.py``).
"""

from collections.abc import Iterable

import torch
from torch import Tensor

MEANS, TINY = (0.9, 0.999), 1e-8


class Adam:
    """Moves parameters against their gradients; the constants are PyTorch's."""

    def __init__(self, parameters: Iterable[Tensor], *, rate: float) -> None:
        self.rate, self.steps = rate, 0
        self._each = [(p, torch.zeros_like(p), torch.zeros_like(p)) for p in parameters]

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter, _, _ in self._each:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step; what has no gradient stays where it is."""
        self.steps += 1
        first, second = MEANS
        size = self.rate / (1 - first**self.steps)
        spread = (1 - second**self.steps) ** 0.5
        for parameter, mean, square in self._each:
            if parameter.grad is None:
                continue
            mean.lerp_(parameter.grad, 1 - first)
            square.mul_(second).addcmul_(parameter.grad, parameter.grad, value=1 - second)
            parameter.addcdiv_(mean, (square.sqrt() / spread).add_(TINY), value=-size)
