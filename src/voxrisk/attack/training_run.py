"""The state of one training between its epochs: what an epoch does, and what a checkpoint keeps."""

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from voxrisk.attack.crops import (
    Crops,
    DecodedSpeech,
    batches,
    count_batches,
    cut_batch,
    cut_crops,
    split_validation,
)
from voxrisk.attack.ecapa_encoder import (
    BATCH_SECONDS,
    length_batches,
    load_ecapa,
    pad,
    read_checkpoint,
)
from voxrisk.attack.epochs import Epoch
from voxrisk.attack.features import filter_banks, frame_count
from voxrisk.attack.heads import CosineHead, TwoHeads
from voxrisk.attack.parallel import World
from voxrisk.attack.recipes import Recipe, cyclic_rate, target_weight
from voxrisk.corpus.audio import RATE
from voxrisk.files.atomic import atomic
from voxrisk.progress import Progress, log
from voxrisk.types import InputError

FACTS = "attacker.json"  # written last


class TrainingRun:
    """The state of one training between its epochs."""

    def __init__(
        self,
        speech: DecodedSpeech,
        recipe: Recipe,
        seed: int,
        zero_epochs: int,
        start: Path | None,
        world: World,
    ) -> None:
        self.speech, self.recipe, self.seed, self.zero = speech, recipe, seed, zero_epochs
        self.world, self.device = world, world.device
        torch.manual_seed(seed)
        ready = load_ecapa(start) if start else None
        self.model = TwoHeads(
            ready.size if ready else recipe.size,
            sources=len(speech.sources),
            targets=len(speech.targets) if speech.targets else None,
            margin=recipe.margin,
            scale=recipe.scale,
        ).to(self.device)
        self.training, held = split_validation(speech, recipe, seed)
        self.held = cut_crops(speech, held, recipe, None)
        if ready:
            self.model.encoder.load_state_dict(ready.state_dict())
            self._begin_heads_with_means()
        self.shared: nn.Module = world.share(self.model)
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=recipe.base_rate,
            weight_decay=recipe.weight_decay,
            fused=True,
        )
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=self.device.type == "cuda")
        crops = len(cut_crops(speech, self.training, recipe, np.random.default_rng([seed, 1])))
        self.per_epoch = count_batches(crops, recipe.batch, world=world.size)
        if not self.per_epoch:
            raise InputError(f"the training set gives only {crops} crops: too few for one batch")
        self.steps = self.per_epoch * recipe.epochs
        self.progress = Progress("train", self.steps, show=world.first)

    def epoch(self, epoch: int) -> Epoch:
        """Train one epoch and measure both heads on the held-out crops."""
        began = time.monotonic()
        random = np.random.default_rng([self.seed, epoch])
        crops = cut_crops(self.speech, self.training, self.recipe, random)
        weight = target_weight(epoch, epochs=self.recipe.epochs, zero_epochs=self.zero)
        sums = torch.zeros(3, device=self.device)
        self.shared.train()
        if self.recipe.keep_statistics:
            for part in self.model.encoder.modules():
                if isinstance(part, nn.BatchNorm1d):
                    part.eval()
        rate = self.recipe.base_rate
        rank, size = self.world.rank, self.world.size
        for number, chosen in enumerate(
            batches(len(crops), self.recipe.batch, random=random, rank=rank, world=size)
        ):
            step = (epoch - 1) * self.per_epoch + number
            rate = cyclic_rate(step, recipe=self.recipe, steps=self.steps)
            losses = self._step(crops, chosen, weight, rate)
            sums += torch.stack([*losses, torch.ones_like(losses[0])])
            self.progress.at(step + 1, f"epoch {epoch}/{self.recipe.epochs}")
        source, target, count = (float(x) for x in self.world.sum(sums))
        if not np.isfinite(source + target):
            raise InputError(
                f"epoch {epoch}: the loss is not finite; train again with a lower max_rate "
                f"than {self.recipe.max_rate:g}"
            )
        ver_source, ver_target = self._validate()
        known = self.model.target is not None
        return Epoch(
            epoch=epoch,
            rate=rate,
            w_target=weight,
            loss_source=source / count,
            loss_target=target / count if known else None,
            ver_source=ver_source,
            ver_target=ver_target if known else None,
            seconds=time.monotonic() - began,
        )

    def _step(
        self, crops: Crops, chosen: np.ndarray[Any, np.dtype[np.int64]], weight: float, rate: float
    ) -> tuple[Tensor, Tensor]:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        half = self.device.type == "cuda"
        features, frames, source, target = self._batch(crops, chosen)
        with torch.autocast(self.device.type, dtype=torch.float16, enabled=half):
            outcome = self.shared(features, frames, source, target, weight)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(outcome.loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        loss = outcome.loss_source.detach()
        other = outcome.loss_target
        return loss, torch.zeros_like(loss) if other is None else other.detach()

    def _batch(
        self, crops: Crops, chosen: np.ndarray[Any, np.dtype[np.int64]]
    ) -> tuple[Tensor, Tensor | None, Tensor, Tensor | None]:
        waves, lengths = pad(cut_batch(self.speech, crops, chosen), self.device)
        rows = crops.row[chosen]
        source = torch.from_numpy(self.speech.source[rows]).to(self.device)
        target = None
        if self.speech.target is not None:
            target = torch.from_numpy(self.speech.target[rows]).to(self.device)
        frames = None if lengths is None else frame_count(lengths)
        return filter_banks(waves, lengths), frames, source, target

    @torch.no_grad()
    def _validate(self) -> tuple[float, float]:
        """Share of held-out crops that each head gets wrong (VER_S, VER_T)."""
        self.model.eval()
        sums = torch.zeros(3, device=self.device)
        rank, size = self.world.rank, self.world.size
        shares = batches(len(self.held), self.recipe.batch, random=None, rank=rank, world=size)
        for chosen in shares:
            outcome = self.model(*self._batch(self.held, chosen), 0.0)
            sums[0] += outcome.wrong_source
            sums[1] += 0 if outcome.wrong_target is None else outcome.wrong_target
            sums[2] += len(chosen)
        source, target, count = (float(x) for x in self.world.sum(sums))
        return source / count, target / count

    @torch.no_grad()
    def _begin_heads_with_means(self) -> None:
        """Begin each class of a head with the mean vector of its crops.

        A ready recogniser is good already; heads that begin at random would first spoil it.
        """
        self.model.eval()
        random = np.random.default_rng([self.seed, 1])
        crops = cut_crops(self.speech, self.training, self.recipe, random)
        heads = [(self.model.source, 2), (self.model.target, 3)]
        sums = [(h, i, torch.zeros_like(h.weight)) for h, i in heads if isinstance(h, CosineHead)]
        for chosen in batches(len(crops), self.recipe.batch, random=None):
            batch = self._batch(crops, chosen)
            vectors = nn.functional.normalize(self.model.encoder(batch[0], batch[1]))
            for _, place, total in sums:
                label = batch[place]
                if label is not None:
                    total.index_add_(0, label, vectors)
        for head, _, total in sums:
            seen = total.norm(dim=1) > 0
            # Of length one: a longer vector would turn more slowly for the same gradient.
            head.weight[seen] = nn.functional.normalize(total[seen])

    @torch.no_grad()
    def mean_vector(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Mean vector of the training utterances, whole and at their own speed."""
        self.model.eval()
        speeds = np.array(self.recipe.speeds)[self.training % len(self.recipe.speeds)]
        rows = self.training[speeds == 1.0] if (speeds == 1.0).any() else self.training
        rows = rows[self.world.rank :: self.world.size]
        whole = Crops(rows, self.speech.start[rows], self.speech.length[rows])
        sums = torch.zeros(self.model.encoder.size.embedding + 1, dtype=torch.float64)
        budget = int(BATCH_SECONDS.get(self.device.type, 60.0) * RATE)
        for chosen in length_batches(whole.length, budget):
            features, frames, _, _ = self._batch(whole, chosen)
            vectors = self.model.encoder(features, frames).double().cpu()
            sums[:-1] += vectors.sum(dim=0)
            sums[-1] += len(vectors)
        total = self.world.sum(sums.to(self.device)).cpu()
        mean = (total[:-1] / total[-1]).numpy()
        if not np.isfinite(mean).all():
            raise InputError("the trained recogniser gives vectors that are not finite")
        return np.asarray(mean, np.float64)

    def save(self, path: Path, facts: dict[str, Any], done: Sequence[Epoch]) -> None:
        """Write a checkpoint of plain tensors and numbers, whole or not at all."""
        state = {
            "facts": json.dumps(facts),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "curves": [asdict(epoch) for epoch in done],
        }
        with atomic(path) as part:
            torch.save(state, part)

    def resume(self, path: Path, facts: dict[str, Any]) -> list[Epoch]:
        """Take up a checkpoint of the same training, if there is one."""
        if not path.exists():
            return []
        try:
            state: Any = read_checkpoint(path)
        except InputError as error:
            if (path.parent / FACTS).exists():
                raise  # a finished training, which is not written over
            log.warning("%s; the training begins again", error)
            return []
        try:
            before = json.loads(state["facts"])
            now = json.loads(json.dumps(facts))
            differ = [key for key in now if before.get(key) != now[key]]
            if differ:
                raise InputError(
                    f"{path.parent} holds another training ({', '.join(differ)} differ); choose "
                    "another folder or add --force"
                )
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            self.scaler.load_state_dict(state["scaler"])
            names = {field.name for field in fields(Epoch)}
            return [Epoch(**{k: v for k, v in e.items() if k in names}) for e in state["curves"]]
        except (KeyError, TypeError, RuntimeError, json.JSONDecodeError) as error:
            raise InputError(
                f"{path}: not a checkpoint of this training ({error}); add --force to begin anew"
            ) from error
