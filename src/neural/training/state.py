"""The state of a training, as a checkpoint holds it; best scores, early stopping, plateaus.

Scores are validation metrics by name. Early stopping ends training after `patience` validations
without improvement. With the scheduler `plateau`, `plateau_factor` scales the learning rate: it is
halved after `plateau_patience` validations without improvement.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.optim.optimizer import Optimizer
from neural.optim.optimizer_factory import PLATEAU, ScheduledOptimizers
from neural.runs.checkpoint import EMA_PREFIX, MODEL_PREFIX, Checkpoint, select_weights
from neural.runs.errors import RunError
from neural.training.ema import ExponentialMovingAverage

if TYPE_CHECKING:
    from torch import Tensor, nn


@dataclass
class TrainingState:
    """Everything that changes from step to step."""

    model: nn.Module
    optimizers: ScheduledOptimizers
    ema: ExponentialMovingAverage | None
    """Moving average of the weights; None if `training.ema` is off."""
    step: int = 0
    """Optimizer steps done."""
    best: dict[str, float] = field(default_factory=dict)
    """All scores of the validation that was best by the monitored metric."""
    validations_since_best: int = 0
    """Validations since the last improvement, for early stopping."""
    validations_since_change: int = 0
    """Validations since the last improvement or the last halving of the learning rate."""

    @classmethod
    def create(
        cls, model: nn.Module, optimizer: Optimizer, settings: TrainingSettings, steps: int
    ) -> TrainingState:
        """The state before the first of `steps` steps. TaskError if the model has no parameters."""
        if not any(True for _ in model.parameters()):
            raise TaskError("there is nothing to train: no layer of the network has weights")
        optimizers = ScheduledOptimizers(
            optimizer,
            settings,
            steps,
            list(model.named_parameters()),
            # some models set factors on the learning rate, by prefix of parameter names
            getattr(model, "rate_factors", None),
        )
        ema = ExponentialMovingAverage(model, settings.ema) if settings.ema else None
        return cls(model, optimizers, ema)

    def use_ema_weights(self) -> AbstractContextManager[None]:
        """Give the model its averaged weights inside the `with` block, if there is an average."""
        return self.ema.swap_in() if self.ema is not None else nullcontext()

    def update_best(
        self,
        scores: dict[str, float],
        metric: str,
        *,
        larger_is_better: bool,
        settings: TrainingSettings,
    ) -> None:
        """Record a validation: keep its scores if they are the best by `metric`, else count it.

        Also halves the learning rate on a plateau (see above). Without `metric` in the scores, such
        as without validation data, nothing changes.
        """
        if metric not in scores:
            return
        score, best = scores[metric], self.best.get(metric)
        is_better = math.isfinite(score) and (
            best is None
            or not math.isfinite(best)
            or (score > best if larger_is_better else score < best)
        )
        if is_better:
            self.best = dict(scores)
            self.validations_since_best = self.validations_since_change = 0
            return
        self.validations_since_best += 1
        self.validations_since_change += 1
        if (
            settings.scheduler == PLATEAU
            and self.validations_since_change >= settings.plateau_patience
        ):
            # the learning rate never falls below `min_learning_rate`
            min_factor = min(1.0, settings.min_learning_rate / self.optimizers.peak_learning_rate)
            self.optimizers.plateau_factor = max(min_factor, self.optimizers.plateau_factor / 2)
            self.validations_since_change = 0

    def is_out_of_patience(self, patience: int | None) -> bool:
        """Whether to stop early: `patience` validations in a row without improvement."""
        return patience is not None and self.validations_since_best >= patience

    def state_dict(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors by name, and everything else as plain data (the checkpoint's metadata).

        Under FSDP all processes must call this: shards are gathered into full tensors.
        """
        tensors = {
            f"{MODEL_PREFIX}{name}": tensor for name, tensor in self.model.state_dict().items()
        }
        optimizer_tensors, optimizers = self.optimizers.state_dict()
        tensors |= optimizer_tensors
        if self.ema is not None:
            tensors |= self.ema.state_dict()
        full_tensors = {
            name: tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
            for name, tensor in tensors.items()
        }
        metadata = {
            "step": self.step,
            "best": self.best,
            "validations_since_best": self.validations_since_best,
            "validations_since_change": self.validations_since_change,
            "plateau_factor": self.optimizers.plateau_factor,
            "optimizers": optimizers,
        }
        return full_tensors, metadata

    def load_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Restore everything but the model's weights.

        The caller has loaded those before: they must be in place when FSDP shards the model.
        """
        tensors, metadata = checkpoint.tensors, checkpoint.metadata
        self._check_optimizer_kinds(metadata["optimizers"])
        self.optimizers.load_state_dict(tensors, metadata["optimizers"])
        self.optimizers.plateau_factor = metadata["plateau_factor"]
        if self.ema is not None:
            if not select_weights(checkpoint, EMA_PREFIX):
                raise RunError(
                    "the run has no average of its weights, so `ema` cannot be turned on when it "
                    "resumes; start a new run"
                )
            self.ema.load_state_dict(tensors)
        self.step, self.best = metadata["step"], metadata["best"]
        self.validations_since_best = metadata["validations_since_best"]
        self.validations_since_change = metadata["validations_since_change"]

    def _check_optimizer_kinds(self, saved_optimizers: list[dict[str, Any]]) -> None:
        """Raise RunError if the checkpoint is of other optimizers, say Adam instead of Muon."""
        saved_kinds = [str(saved["kind"]) for saved in saved_optimizers]
        if saved_kinds != self.optimizers.kinds:
            saved, current = (" and ".join(kinds) for kinds in (saved_kinds, self.optimizers.kinds))
            raise RunError(
                f"the run was trained with {saved} and cannot resume with {current}; "
                "start a new run"
            )
