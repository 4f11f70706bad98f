"""What a language model is to the rest of voxrisk: the probability of a word after others."""

from collections.abc import Mapping, Sequence
from typing import Protocol

START = "<s>"  # in the place of a word: here a sentence begins


class LanguageModel(Protocol):
    """How likely a word is after the words before it.

    Attributes:
        identity: Hash of the model: the same identity gives the same probabilities.
    """

    identity: str

    def unigrams(self) -> Mapping[str, float]:
        """Every word it knows and ln P(word), where nothing is known of the words before."""
        ...

    def log_prob(self, word: str, context: Sequence[str]) -> float:
        """Natural logarithm of P(word | context); always finite.

        Args:
            word: In lower case. A word that the model does not know has a small probability, by the
                model's own rule.
            context: The words before it, the nearest last; the model uses as many as it can.
                ``<s>`` stands for the beginning of a sentence, nothing for an unknown place.
        """
        ...
