"""What the edges of a slice and its level give away is taken off before it is given away.

Nothing here knows words or files; samples come in and go out. What remains is measured by
``experiments/slice_edges.py`` and told in ``docs/slicing.md``.
"""

import numpy as np
from numpy.typing import NDArray

FADE = 0.01  # seconds, at either edge
LEVEL = 0.05  # root mean square of every slice, full scale being 1
PEAK = 0.99
MOST_GAIN = 30.0  # a slice of silence stays quiet

# What the command tells whoever shuffles, by the cut; the figures are those of docs/slicing.md.
REMAINS = {
    True: "what remains: the voice and the words. On LibriSpeech a speaker encoder finds the next "
    "slice of 51 of 214, the spectrum beside the cut of 15, prediction across it of 5, chance of "
    "0.8 (docs/slicing.md); anonymize before you slice",
    False: "these slices can be put in order again: on LibriSpeech equal samples find the next "
    "slice of 66 of 214, prediction across the cut of 53 (docs/slicing.md); leave out --cut pause",
}


def level_and_fade(samples: NDArray[np.float32], *, rate: int) -> NDArray[np.float32]:
    """Samples ``(n,)`` at a common level, rising from nothing and falling to nothing.

    The fade is half a cosine of 10 ms; of a slice shorter than two fades, each half is one. The
    level is the root mean square, unless the peak would pass full scale or the gain would be more
    than 30. Silence stays silence.

    >>> out = level_and_fade(np.full(1600, 0.3, np.float32), rate=16_000)
    >>> float(out[0]), round(float(np.sqrt(np.mean(out**2))), 3)
    (0.0, 0.05)
    """
    shaped = samples.astype(np.float64)
    edge = min(round(FADE * rate), len(shaped) // 2)
    rise = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / max(edge, 1))
    shaped[:edge] *= rise
    shaped[len(shaped) - edge :] *= rise[::-1]
    level = np.sqrt(np.mean(shaped**2)) if shaped.size else 0.0
    peak = np.abs(shaped).max(initial=0.0)
    if level > 0:
        shaped *= min(LEVEL / level, PEAK / peak, MOST_GAIN)
    return shaped.astype(np.float32)
