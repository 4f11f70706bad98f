"""How an attacker is trained, as data: paper 3 (SpAnE), VoicePrivacy 2024, and one for CPUs.

Sources: paper 3 (Franzreb et al., adversarial target classifier) and its framework SpAnE; the
VoicePrivacy 2024 evaluation plan.
"""

from dataclasses import dataclass, replace

from voxrisk.attack.sizes import SIZES, EcapaSize
from voxrisk.types import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Everything about a training but its data and its seed.

    Attributes:
        size: Of the recogniser.
        epochs: Passes through the training crops.
        batch: Crops in one step.
        max_rate: Highest learning rate of the cycle.
        base_rate: Lowest, with which it begins.
        step_size: Steps from the lowest to the highest rate; None: half of the training.
        weight_decay: Of Adam.
        margin: Additive angular margin, in radians.
        scale: Of the cosines, before the softmax.
        crops: ``"consecutive"`` (each piece of an utterance, in every epoch) or ``"random"`` (one
            piece of each utterance, another in every epoch).
        crop_seconds: Length of a piece.
        tail_seconds: Shortest rest of an utterance that is kept as a piece of its own.
        validation: Share of the utterances held out.
        validation_of: ``"speaker"``: that share of each speaker; ``"all"``: of the whole.
        speeds: Speeds at which each utterance is also read, each as a speaker of its own.
        zero_epochs: Epochs E before the target head's gradient reaches the recogniser; used by the
            adversarial attacker only.
        keep_statistics: Leave the statistics of batch normalisation as the recogniser came with
            them. For fine-tuning: a few steps hardly move the weights, but replace the statistics
            of thousands of speakers by those of the training crops.
        centre: Keep the mean vector of the training utterances with the recogniser, which then
            subtracts it from every vector: the scoring of paper 3.
    """

    size: EcapaSize
    epochs: int
    batch: int
    max_rate: float
    base_rate: float
    step_size: int | None
    weight_decay: float = 2e-6
    margin: float = 0.2
    scale: float = 30.0
    crops: str = "consecutive"
    crop_seconds: float = 3.0
    tail_seconds: float = 1.0
    validation: float = 0.1
    validation_of: str = "speaker"
    speeds: tuple[float, ...] = (1.0,)
    zero_epochs: int = 6
    keep_statistics: bool = False
    centre: bool = False

    def __post_init__(self) -> None:
        if self.crops not in ("consecutive", "random"):
            raise InputError(f"crops is {self.crops!r}; it must be consecutive or random")
        if self.validation_of not in ("speaker", "all"):
            raise InputError(f"validation_of is {self.validation_of!r}; it must be speaker or all")
        if self.epochs < 1 or self.batch < 2:
            raise InputError(f"{self.epochs} epochs of batches of {self.batch} cannot train")
        if not 0 <= self.zero_epochs <= self.epochs:
            raise InputError(f"zero_epochs is {self.zero_epochs}, not within 0 … {self.epochs}")


SPANE = Recipe(
    size=SIZES["spane"],
    epochs=10,
    batch=256,
    max_rate=1e-3,
    base_rate=1e-6,
    step_size=65_000,
    centre=True,
)
# Paper 3's recipe where there is less speech than its 360 hours: the rate reaches its top in the
# middle of the training and comes down again. With 65,000 steps to the top, 4 hours of speech (200
# steps) would end at 4e-6, and the recogniser would be the one it began with.
PAPER = replace(SPANE, step_size=None)
VPC24 = Recipe(
    size=SIZES["vpc24"],
    epochs=10,
    batch=256,
    max_rate=1e-2,
    base_rate=1e-8,
    step_size=65_000,
    crops="random",
    validation_of="all",
)
# Ours, for a look on a CPU: one cycle of the rate, short crops, and three speeds for more speakers.
SMALL = Recipe(
    size=SIZES["small"],
    epochs=8,
    batch=64,
    max_rate=2e-3,
    base_rate=1e-5,
    step_size=None,
    crops="random",
    crop_seconds=2.0,
    speeds=(0.9, 1.0, 1.1),
    zero_epochs=4,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterRecipe:
    """How the linear map behind a ready encoder is trained (:mod:`voxrisk.attack.adapter`).

    Chosen on held-out speakers of anonymized training speech, not on any evaluation set.

    Attributes:
        epochs: Passes through the training vectors.
        batch: Vectors in one step.
        rate: Learning rate of Adam.
        noise: Length of the random vector added to each vector of length one, against overfitting.
        margin: Additive angular margin, in radians.
        scale: Of the cosines, before the softmax.
        validation: Share of each speaker's utterances held out.
        reverse_epochs: Passes where the map moves against a target head.
        zero_epochs: The first of these, E, in which it does not yet.
        against: What the map receives from that head: ``"uniform"``, the gradient towards all
            targets being equally likely, or ``"reversed"``, the reversed gradient of its loss.
        strength: Times w_T, the weight of that gradient.
        head_rate: Learning rate of that head; higher, so that it keeps up with the map.
    """

    epochs: int = 30
    batch: int = 128
    rate: float = 1e-3
    noise: float = 0.7
    margin: float = 0.2
    scale: float = 30.0
    validation: float = 0.1
    reverse_epochs: int = 80
    zero_epochs: int = 20
    against: str = "uniform"
    strength: float = 10.0
    head_rate: float = 5e-3

    def __post_init__(self) -> None:
        if min(self.epochs, self.reverse_epochs) < 1 or self.batch < 2:
            few = min(self.epochs, self.reverse_epochs)
            raise InputError(f"{few} epochs of batches of {self.batch} cannot train")
        if not 0 <= self.zero_epochs <= self.reverse_epochs:
            raise InputError(
                f"zero_epochs is {self.zero_epochs}, not within 0 … {self.reverse_epochs}"
            )
        if self.against not in ("uniform", "reversed"):
            raise InputError(f"against is {self.against!r}; it must be uniform or reversed")


ADAPTED = AdapterRecipe()
# The last layer of a ready encoder, from where its publisher left it: slower, since it knows much.
LAST_LAYER = AdapterRecipe(epochs=15, rate=2e-4, noise=0.5)
RECIPES = {"paper": PAPER, "spane": SPANE, "vpc24": VPC24, "small": SMALL}


def target_weight(epoch: int, *, epochs: int, zero_epochs: int) -> float:
    """Weight w_T of the reversed gradient in ``epoch`` (from 1): 0 for E epochs, then linear to 1.

    Paper 3, Section 4.3. E = ``epochs`` is the baseline: the head learns, the recogniser does not.

    >>> [target_weight(e, epochs=10, zero_epochs=6) for e in range(1, 11)]
    [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25, 0.5, 0.75, 1.0]
    """
    if epoch <= zero_epochs:
        return 0.0
    return (epoch - zero_epochs) / (epochs - zero_epochs)


def cyclic_rate(step: int, *, recipe: Recipe, steps: int) -> float:
    """Learning rate at ``step`` (from 0) of ``steps``: a triangle between base and maximum.

    With 65,000 steps to the top and a few thousand in a training, as in both published recipes,
    only the first part of the rise is ever used.

    >>> [round(cyclic_rate(s, recipe=SMALL, steps=4), 6) for s in range(4)]
    [1e-05, 0.001005, 0.002, 0.001005]
    """
    half = recipe.step_size or max(steps / 2, 1)
    place = step / half % 2.0
    return recipe.base_rate + (recipe.max_rate - recipe.base_rate) * (1.0 - abs(place - 1.0))
