"""Which slice came next, by neural models of text.

``smollm2``
    A causal language model reads w once and gives the probabilities of all pieces of words that may
    come next. The score is the lift of the first piece of v, ln P(v₁ | w) - ln P(v₁). One pass for
    each slice, whatever the number of pairs.
``smollm2, short list``
    The pointwise mutual information of w and the whole of v, ln P(v | w) - ln P(v), which costs a
    pass for each pair. It is asked only about the 20 candidates that the trigram's lift puts first;
    all others follow behind them in the trigram's order.
``minilm``
    The cosine of sentence vectors: slices about the same thing. It knows no order, and tells little
    where many slices come from one book.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from voxrisk.attack.successors import Indices, Scorer, Scores, asked
from voxrisk.attack.trigram_scorer import normalised
from voxrisk.language.llama import BEGIN, Llama, Pieces, load_smollm, padded
from voxrisk.language.sentences import sentence_vectors
from voxrisk.progress import Progress

if TYPE_CHECKING:
    from voxrisk.language.llama import Past

BATCH = 32
SHORTLIST = 20
LONGEST = 12  # pieces of v that are asked about: what is far from the cut says little
Texts = Sequence[Sequence[str]]


class NextPiece:
    """The lift of the first piece of each candidate after each slice, by one pass for each slice.

    Args:
        texts: The words of each slice.
        model: The language model.
        pieces: How it spells.
    """

    def __init__(self, texts: Texts, model: Llama, pieces: Pieces) -> None:
        spelt = [pieces(normalised(words)) for words in texts]
        self.worded = np.array([bool(row) for row in spelt])
        first = np.array([row[0] for row in spelt if row], np.int64)
        self.first, self.column = np.unique(first, return_inverse=True)
        alone = _after(model, [[]], self.first)[0]
        self.lift = _after(model, spelt, self.first, label="reading slices") - alone
        self.lift[~self.worded] = 0.0

    def __call__(self, block: Indices) -> Scores:
        """Lifts ``(b, n)``; the mean of the row for candidates without words."""
        found = np.zeros((block.size, self.worded.size), np.float32)
        known = self.lift[block][:, self.column]
        found[:, self.worded] = known
        found[:, ~self.worded] = known.mean(axis=1, keepdims=True) if known.size else 0.0
        found[np.arange(block.size), block] = -np.inf
        return found


def _after(
    model: Llama, spelt: Sequence[Sequence[int]], wanted: Indices, *, label: str = ""
) -> NDArray[np.float32]:
    """Logarithms ``(n, wanted)`` of the probabilities of pieces after each text."""
    import torch

    found = np.zeros((len(spelt), wanted.size), np.float32)
    order = np.argsort([len(row) for row in spelt], kind="stable")
    with torch.inference_mode(), Progress(label, len(spelt)) as progress:
        for start in range(0, len(spelt), BATCH):
            chosen = order[start : start + BATCH]
            rows = [[BEGIN, *spelt[i]] for i in chosen]
            hidden, _ = model(torch.from_numpy(padded(rows)))
            last = hidden[torch.arange(len(rows)), torch.tensor([len(row) - 1 for row in rows])]
            found[chosen] = model.log_probs(last)[:, torch.from_numpy(wanted)].numpy()
            progress.at(start + chosen.size)
    return found


class ShortListed:
    """A dear attacker on the few candidates that a cheap one puts first; the rest stay behind.

    Args:
        base: The cheap attacker.
        judge: ``(slice, candidates (k,)) -> (k,)`` the dear one.
        n: How many slices there are.
        keep: How many candidates it is asked about.
    """

    def __init__(
        self,
        base: Scorer,
        judge: Callable[[int, Indices], NDArray[np.float64]],
        n: int,
        *,
        keep: int = SHORTLIST,
    ) -> None:
        self.base, self.judge, self.n, self.keep = base, judge, n, min(keep, n - 1)
        self._judged: dict[int, tuple[Indices, NDArray[np.float64]]] = {}

    def __call__(self, block: Indices) -> Scores:
        """The judge's scores for those on the list; less than the least of them for all others."""
        scores = asked(self.base, block, self.n).astype(np.float64)
        scores[np.arange(block.size), block] = -np.inf
        for row, slice_ in zip(scores, block.tolist(), strict=True):
            if slice_ not in self._judged:
                best = np.argsort(-row, kind="stable")[: self.keep]
                self._judged[slice_] = best, self.judge(slice_, best)
            best, value = self._judged[slice_]
            rest = row[np.isfinite(row)]
            spread = max(float(np.ptp(rest)), 1e-9) if rest.size else 1.0
            row -= row[np.isfinite(row)].max() if rest.size else 0.0
            row /= spread
            row += value.min() - 1.0
            row[best] = value
        found = scores.astype(np.float32)
        found[np.arange(block.size), block] = -np.inf
        return found


class Information:
    """Pointwise mutual information of a slice and those that may follow it, by a language model."""

    def __init__(self, texts: Texts, model: Llama, pieces: Pieces) -> None:
        self.model = model
        self.spelt = [pieces(normalised(words)) for words in texts]
        self._alone: dict[int, float] = {}

    def __call__(self, slice_: int, candidates: Indices) -> NDArray[np.float64]:
        """Values ``(k,)``, 0 for a candidate without words."""
        fresh = [int(c) for c in candidates if int(c) not in self._alone]
        if fresh:
            self._alone |= dict(zip(fresh, self._log_probs([], fresh), strict=True))
        after = self._log_probs(self.spelt[slice_], candidates.tolist())
        return np.asarray(after - np.array([self._alone[int(c)] for c in candidates]))

    def _log_probs(self, before: Sequence[int], candidates: Sequence[int]) -> NDArray[np.float64]:
        """Logarithms ``(k,)`` of the probabilities of candidates; the text before is read once."""
        import torch

        rows = [self.spelt[c][:LONGEST] for c in candidates]
        with torch.inference_mode():
            hidden, past = self.model(torch.tensor([[BEGIN, *before]]))
            first = self.model.log_probs(hidden[0, -1]).numpy()
            found = np.array([first[row[0]] if row else 0.0 for row in rows], np.float64)
            for k, value in self._rest(rows, past):
                found[k] += value
        return found

    def _rest(self, rows: Sequence[Sequence[int]], past: "Past") -> list[tuple[int, float]]:
        """What the pieces after the first add, for rows that have any."""
        import torch

        long = [k for k, row in enumerate(rows) if len(row) > 1]
        if not long:
            return []
        given = padded([rows[k][:-1] for k in long])
        hidden, _ = self.model(torch.from_numpy(given), past)
        values = []
        for line, k in zip(hidden, long, strict=True):
            following = torch.tensor(rows[k][1:])
            odds = self.model.log_probs(line[: following.numel()])
            values.append((k, float(odds.gather(1, following[:, None]).sum())))
        return values


def _next_piece(texts: Texts, base: Scorer) -> Scorer:
    return NextPiece(texts, *load_smollm())


def _short_list(texts: Texts, base: Scorer) -> Scorer:
    return ShortListed(base, Information(texts, *load_smollm()), len(texts))


def _likeness(texts: Texts, base: Scorer) -> Scorer:
    vectors = sentence_vectors([" ".join(normalised(words)) for words in texts])
    return by_likeness(vectors)


def by_likeness(vectors: NDArray[np.float32]) -> Scorer:
    """The cosine of vectors ``(n, d)`` of length one."""

    def scores(block: Indices) -> Scores:
        found = np.asarray(vectors[block] @ vectors.T, np.float32)
        found[np.arange(block.size), block] = -np.inf
        return found

    return scores


# Name → a scorer of texts; the second argument is the cheap attacker that makes a short list.
NEURAL: dict[str, Callable[[Texts, Scorer], Scorer]] = {
    "smollm2": _next_piece,
    "smollm2, short list": _short_list,
    "minilm": _likeness,
}
