"""Our Adam takes PyTorch's steps, and loads nothing for them."""

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from voxrisk.attack.adam import Adam  # noqa: E402


def test_the_steps_are_pytorch_s_bit_for_bit() -> None:
    """Fifty steps down a crooked valley, two parameters, one without a gradient for a while."""
    start = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(0))
    ours, theirs = ([torch.nn.Parameter(part.clone()) for part in start] for _ in range(2))
    steppers = Adam(ours, rate=0.03), torch.optim.Adam(theirs, lr=0.03)
    for step in range(50):
        for parameters, stepper in zip((ours, theirs), steppers, strict=True):
            stepper.zero_grad()
            first, second = parameters
            (first.square().sum() * 3 + (first * second.exp()).sum().sin()).backward()
            stepper.step()
        assert torch.equal(ours[0], theirs[0]), step
        assert torch.equal(ours[1], theirs[1]), step
    assert not torch.equal(ours[0], start[0])


def test_training_a_map_does_not_load_the_compiler() -> None:
    program = (
        "import sys, numpy as np\n"
        "from voxrisk.attack.descend import descend\n"
        "from voxrisk.attack.recipes import ADAPTED\n"
        "x = np.random.default_rng(0).normal(size=(40, 6))\n"
        "x /= np.linalg.norm(x, axis=1)[:, None]\n"
        "rows = np.arange(40)\n"
        "descend(x, [rows % 4], rows[:30], rows[30:], ADAPTED)\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
