"""What the speech is still good for: understood, melodious, pleasant, as long as before."""

from voxrisk.utility.measuring import Utility, figures_of_speech, measure_utility
from voxrisk.utility.naturalness import distillmos, rate_naturalness
from voxrisk.utility.pitch import pitch_correlation, pitch_correlations, track_pitch
from voxrisk.utility.quality import Quality, dnsmos, rate_quality
from voxrisk.utility.text import normalise
from voxrisk.utility.transcripts import transcribe
from voxrisk.utility.wer import (
    WordErrors,
    character_errors,
    error_rate,
    word_error_rate,
    word_errors,
)

__all__ = [
    "Quality",
    "Utility",
    "WordErrors",
    "character_errors",
    "distillmos",
    "dnsmos",
    "error_rate",
    "figures_of_speech",
    "measure_utility",
    "normalise",
    "pitch_correlation",
    "pitch_correlations",
    "rate_naturalness",
    "rate_quality",
    "track_pitch",
    "transcribe",
    "word_error_rate",
    "word_errors",
]
