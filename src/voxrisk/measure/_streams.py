"""Random numbers for compiled loops: streams that are numbered, so that any thread can do any part.

What a row or a predicate draws hangs on its own stream and on nothing else.
"""

import numpy as np
from numpy.typing import NDArray

from voxrisk.measure._compiled import compiled

Streams = NDArray[np.uint64]


def numbered_streams(seed: int, purpose: int, count: int) -> Streams:
    """``(count,)`` streams of a seed, for one purpose."""
    words = np.random.SeedSequence([seed, purpose]).generate_state(count, np.uint64)
    return words.astype(np.uint64)


@compiled
def next_bits(state: np.uint64) -> tuple[np.uint64, np.uint64]:
    """SplitMix64: a small generator whose streams can be numbered."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, z ^ (z >> np.uint64(31))


@compiled
def draw_again(streams: Streams, some: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    """In each row of ``out (r, n)``: how often each of ``some`` is drawn, in as many draws."""
    count = np.uint64(some.size)
    for r in range(streams.size):
        state = streams[r]
        for i in some:
            out[r, i] = 0
        for _ in range(some.size):
            state, bits = next_bits(state)
            # 32 random bits times the number of choices, divided by 2^32.
            out[r, some[((bits >> np.uint64(32)) * count) >> np.uint64(32)]] += 1
