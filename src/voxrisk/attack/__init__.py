"""Attackers: speaker encoders, their training, and the scores they give.

>>> from voxrisk.attack import load_encoder  # doctest: +SKIP
>>> load_encoder("ecapa-voxceleb").embed([waveform])  # doctest: +SKIP
"""

from voxrisk.attack.encoder import Encoder
from voxrisk.attack.encoders import ENCODERS, load_encoder

__all__ = ["ENCODERS", "Encoder", "load_encoder"]
