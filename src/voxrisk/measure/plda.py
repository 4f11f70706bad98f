"""Two-covariance PLDA: a similarity that knows how voices vary, from speech with known speakers.

A voice is y ~ N(μ, B) and an utterance of it x ~ N(y, W). The score of two vectors is the
log-likelihood ratio between "one voice" and "two voices". Training is EM on the vectors of many
speakers (any number of utterances each); vectors are scaled to length one first, as conversations
are. A conversation is scored as if it were one utterance.

Reference: Brümmer & de Villiers, "The speaker partitioning problem", Odyssey 2010.
"""

from dataclasses import dataclass

import numpy as np

from voxrisk.measure.conversations import Floats
from voxrisk.measure.vectors import unit_length
from voxrisk.types import Embeddings, InputError


@dataclass(frozen=True, slots=True, eq=False)
class Plda:
    """A trained model; give it as ``scorer``.

    Attributes:
        mean: ``(d,)`` μ.
        project: ``(d, d)`` map into coordinates where W is the identity and B is diagonal.
        between: ``(d,)`` diagonal of B there.
    """

    mean: Floats
    project: Floats
    between: Floats

    def maps(self, enroll: Floats, trial: Floats) -> tuple[Floats, Floats]:
        """Map both sides so that the inner product is the log-likelihood ratio."""
        psi = self.between
        total, both = 1.0 + psi, 1.0 + 2.0 * psi
        u, v = (enroll - self.mean) @ self.project, (trial - self.mean) @ self.project
        own = -0.5 * psi**2 / (total * both)
        constant = float((np.log(total) - 0.5 * np.log(both)).sum())
        ones = np.ones(1)
        left = np.column_stack([u * (psi / both), u**2 @ own + constant, np.tile(ones, len(u))])
        right = np.column_stack([v, np.tile(ones, len(v)), v**2 @ own])
        return left, right


def train_plda(embeddings: Embeddings, *, iterations: int = 20) -> Plda:
    """Estimate the model by EM.

    Args:
        embeddings: At least two speakers, some with two utterances or more.
        iterations: Rounds of EM.

    Raises:
        InputError: If within- or between-speaker variance cannot be estimated.
    """
    from scipy.linalg import eigh

    vectors = unit_length(embeddings.vectors)
    mean = vectors.mean(axis=0)
    vectors -= mean
    speaker, of, count = np.unique(embeddings.speaker, return_inverse=True, return_counts=True)
    n, d = vectors.shape
    if speaker.size < 2 or n <= speaker.size:
        raise InputError(
            f"{embeddings.source}: PLDA learns from several speakers with several utterances each; "
            f"there are {speaker.size} speakers and {n} utterances"
        )
    centre = np.zeros((speaker.size, d))
    np.add.at(centre, of, vectors)
    centre /= count[:, None]
    scatter = (vectors - centre[of]).T @ (vectors - centre[of])
    # With fewer utterances than dimensions the plain estimate is singular: a small ridge makes it
    # usable and changes nothing where there are enough.
    ridge = 1e-6 * np.trace(scatter + centre.T @ centre) / (n * d) * np.eye(d)
    within = scatter / (n - speaker.size) + ridge
    between = centre.T @ centre / speaker.size + ridge
    for _ in range(iterations):
        psi, project = eigh(between, within)
        psi = np.maximum(psi, 0.0)
        back = np.linalg.inv(project)
        u = centre @ project
        # Posterior of each voice: in these coordinates every dimension is on its own.
        variance = psi / (1.0 + count[:, None] * psi)
        voice = count[:, None] * variance * u
        b = voice.T @ voice + np.diag(variance.sum(axis=0))
        rest = u - voice
        w = (rest * count[:, None]).T @ rest + np.diag((count[:, None] * variance).sum(axis=0))
        between = back.T @ (b / speaker.size) @ back + ridge
        within = (scatter + back.T @ w @ back) / n + ridge
    psi, project = eigh(between, within)
    return Plda(mean, project, np.maximum(psi, 0.0))
