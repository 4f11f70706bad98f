"""Speech made harder to recognise: anonymizers, target selection, alignment and slicing.

>>> from voxrisk.protect import anonymize  # doctest: +SKIP
>>> anonymize(read_corpus("corpus"), "protected", "world", select="same-gender")  # doctest: +SKIP
"""

from voxrisk.protect.anonymizers import ANONYMIZERS, Anonymizer, anonymizer
from voxrisk.protect.run import anonymize
from voxrisk.protect.targets import select_targets

__all__ = ["ANONYMIZERS", "Anonymizer", "anonymize", "anonymizer", "select_targets"]
