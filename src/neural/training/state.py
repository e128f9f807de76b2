"""All that a run has learned so far: weights, optimizer, average, and how it has gone. Saved whole, loaded whole."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.tasks.experiment import Training
from neural.tasks.task import TaskError
from neural.tracking.trouble import RunError
from neural.training.average import Average
from neural.training.rates import Steps

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.tracking.checkpoint import Checkpoint


@dataclass
class State:
    """What changes from step to step."""

    model: nn.Module
    optimizing: Steps
    average: Average | None
    step: int = 0
    """Optimizer steps made."""
    best: dict[str, float] = field(default_factory=dict)
    """The scores of the best validation."""
    waited: int = 0
    """Validations since then."""
    flat: int = 0
    """Validations since the rate was lowered or the scores improved."""

    @classmethod
    def first(cls, model: nn.Module, settings: Training, steps: int) -> State:
        """Before the first step; TaskError where no step would change anything."""
        if not any(True for _ in model.parameters()):
            raise TaskError("there is nothing to learn: no layer of the network has weights")
        optimizing = Steps(settings, steps, list(model.named_parameters()), getattr(model, "faster", None))
        return cls(model, optimizing, Average(model, settings.ema) if settings.ema else None)

    def averaged(self) -> AbstractContextManager[None]:
        """The model with its averaged weights, where there are any."""
        return self.average.in_place() if self.average is not None else nullcontext()

    def judge(self, scores: dict[str, float], watched: str, *, larger: bool, settings: Training) -> None:
        """Remember the best; count the others; lower the rate on a plateau."""
        if watched not in scores:
            return
        new, old = scores[watched], self.best.get(watched)
        # any number is better than none: a first score may be NaN
        better = old is None or math.isnan(old) > math.isnan(new) or (new > old if larger else new < old)
        if better:
            self.best, self.waited, self.flat = dict(scores), 0, 0
            return
        self.waited += 1
        self.flat += 1
        if settings.scheduler == "plateau" and self.flat >= settings.plateau_patience:
            least = min(1.0, settings.min_learning_rate / self.optimizing.full)
            self.optimizing.lowered = max(least, self.optimizing.lowered / 2)
            self.flat = 0

    def patience_is_out(self, patience: int | None) -> bool:
        """Whether to stop early."""
        return patience is not None and self.waited >= patience

    def saved(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything, as tensors and plain data."""
        tensors = {f"model.{name}": one for name, one in self.model.state_dict().items()}
        moved, optimizers = self.optimizing.state()
        tensors |= moved
        if self.average is not None:
            tensors |= self.average.state()
        whole = {name: one.full_tensor() if hasattr(one, "full_tensor") else one for name, one in tensors.items()}
        facts = {
            "step": self.step, "best": self.best, "waited": self.waited, "flat": self.flat,
            "lowered": self.optimizing.lowered, "optimizers": optimizers,
        }  # fmt: skip
        return whole, facts

    def load(self, checkpoint: Checkpoint) -> None:
        """Go on from there; the model has its weights already."""
        tensors, facts = checkpoint.tensors, checkpoint.facts
        self.optimizing.load(tensors, facts["optimizers"])
        self.optimizing.lowered = facts["lowered"]
        if self.average is not None:
            if not weights_in(checkpoint, "average."):
                raise RunError("the run keeps no average of its weights, so `ema` cannot begin now; begin a new one")
            self.average.load(tensors)
        self.step, self.best, self.waited, self.flat = (facts[name] for name in ("step", "best", "waited", "flat"))


@contextmanager
def of_this_network(checkpoint: Checkpoint, where: Path | str) -> Iterator[None]:
    """What is taken from a checkpoint inside the block must be there; RunError tells whose checkpoint it is not."""
    try:
        yield
    except (RuntimeError, LookupError, TypeError, ValueError, AttributeError) as problem:
        why = (str(problem).strip() or type(problem).__name__).splitlines()[-1].strip()
        raise RunError(f"{where}: the checkpoint of step {checkpoint.step} is of another network: {why}") from problem


def weights_in(checkpoint: Checkpoint, start: str = "model.") -> dict[str, Tensor]:
    """The model's part of a checkpoint; "average." is that of its averaged weights, empty where none are kept."""
    return {name.removeprefix(start): one for name, one in checkpoint.tensors.items() if name.startswith(start)}
