"""From settings to steps: which optimizer, at which share of its rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.language.expression import NotACall, read_call
from neural.tasks.experiment import Training
from neural.tasks.task import TaskError
from neural.tracking.trouble import RunError
from neural.training.optimizer import Optimizer
from neural.training.optimizers import registry as optimizers
from neural.training.schedule import Schedule
from neural.training.schedules.cosine_decay import CosineDecay
from neural.training.schedules.linear_decay import LinearDecay
from neural.training.schedules.warmup import Warmup

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer


def optimizer_of(settings: Training) -> Optimizer:
    """The optimizer that the settings name, with the numbers that they give in place of its own."""
    try:
        optimizer = read_call(settings.optimizer, optimizers)
    except NotACall as wrong:
        raise TaskError(f"training.optimizer: {wrong}") from None
    if settings.weight_decay is not None:
        if "weight_decay" not in optimizer.settings():
            raise TaskError(f"training.weight_decay: {type(optimizer).__name__} has none")
        optimizer = replace(optimizer, weight_decay=settings.weight_decay)   # type: ignore[call-arg]
    return optimizer


def values_used(settings: Training) -> dict[str, float | None]:
    """The numbers that the optimizer uses, given or its own: peak rates, decay, clipping."""
    optimizer = optimizer_of(settings)
    return {
        **optimizer.at_rate(settings.learning_rate or optimizer.peak).rates(),
        "weight_decay": getattr(optimizer, "weight_decay", None),
        "clip_norm": settings.clip_norm or optimizer.clipnorm,
    }


def share_of(settings: Training, optimizer: Optimizer, steps: int) -> tuple[float, Callable[[int], float]]:
    """The full rate, and the share of it to take at a step, counted from 0."""
    own = optimizer.learning_rate
    full = settings.learning_rate or optimizer.peak
    falling = {"decay_steps": max(1, steps - settings.warmup_steps), "warmup_steps": settings.warmup_steps}
    least = min(1.0, settings.min_learning_rate / full)
    if settings.scheduler is None and isinstance(own, Schedule):
        schedule = warmed(own, settings.warmup_steps) if settings.warmup_steps else own
    elif settings.scheduler == "cosine":
        schedule = CosineDecay(full, alpha=least, **falling)
    elif settings.scheduler == "linear":
        schedule = LinearDecay(full, alpha=least, **falling)
    else:
        schedule = Warmup(settings.warmup_steps, full) if settings.warmup_steps else None
    if schedule is None:
        return full, lambda step: 1.0
    return full, lambda step: schedule.at(step) / schedule.peak


def warmed(own: Schedule, steps: int) -> Schedule:
    """A schedule that rises so many steps first, in place of its own rise where it has one: from 0 it would stay at 0.
    """
    if "warmup_steps" in own.settings():
        return replace(own, warmup_steps=steps)   # type: ignore[call-arg]  # it has the setting
    return Warmup(steps, own)


class Steps:
    """The torch optimizers of a run. Each keeps its own rates; all take the same share of them at a step."""

    def __init__(
        self, settings: Training, steps: int, parameters: Iterable[tuple[str, Parameter]],
        faster: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        """`faster` says by how much the rates of parts of the model differ, by the beginnings of their names."""
        optimizer = optimizer_of(settings)
        self.full, self.share = share_of(settings, optimizer, steps)
        self.clip = settings.clip_norm or optimizer.clipnorm
        self.lowered = 1.0
        """What is left of the rate after plateaus."""
        self.optimizers: list[TorchOptimizer] = [
            one for factor, own in by_rate(parameters, faster or {}).items()
            for one in optimizer.at_rate(factor * self.full).build(own)
        ]
        self._full = [[group["lr"] for group in one.param_groups] for one in self.optimizers]

    def rate(self, step: int) -> float:
        """The first optimizer's rate at a step."""
        return self.full * self.share(step) * self.lowered

    def take(self, step: int) -> None:
        """One step of each optimizer; the gradients are gone afterwards."""
        share = self.share(step) * self.lowered
        for one, full in zip(self.optimizers, self._full, strict=True):
            for group, rate in zip(one.param_groups, full, strict=True):
                group["lr"] = rate * share
            one.step()
            one.zero_grad(set_to_none=True)

    def state(self) -> tuple[dict[str, Any], list[Any]]:
        """Tensors by name, and the rest as plain data."""
        tensors, facts = {}, []
        for number, one in enumerate(self.optimizers):
            saved = one.state_dict()
            rest: dict[str, dict[str, Any]] = {}
            for key, entry in saved["state"].items():
                for name, value in entry.items():
                    if hasattr(value, "detach"):
                        tensors[f"optimizer.{number}.{key}.{name}"] = value
                    else:
                        rest.setdefault(str(key), {})[name] = value
            facts.append({"kind": type(one).__name__, "state": rest, "groups": saved["param_groups"]})
        return tensors, facts

    def load(self, tensors: dict[str, Any], facts: list[Any]) -> None:
        """What `state` gave, put back; RunError where other optimizers gave it."""
        kinds, before = [type(one).__name__ for one in self.optimizers], [saved.get("kind") for saved in facts]
        if None not in before and before != kinds:   # older checkpoints do not tell
            was, now = (" and ".join(one) for one in (before, kinds))
            raise RunError(f"the run has made its steps by {was} and cannot go on by {now}; begin a new one")
        for number, (one, saved) in enumerate(zip(self.optimizers, facts, strict=True)):
            state: dict[Any, dict[str, Any]] = {int(key): dict(entry) for key, entry in saved["state"].items()}
            held = [parameter for group in one.param_groups for parameter in group["params"]]
            start = f"optimizer.{number}."
            for path, value in tensors.items():
                if path.startswith(start):
                    key, name = path.removeprefix(start).split(".", 1)
                    state.setdefault(int(key), {})[name] = laid_out_like(held[int(key)], value)
            # the settings are those of now: a run may go on with another weight decay
            groups = [
                {**own, "params": old["params"]}
                for own, old in zip(one.state_dict()["param_groups"], saved["groups"], strict=True)
            ]
            one.load_state_dict({"state": state, "param_groups": groups})


def by_rate(
    parameters: Iterable[tuple[str, Parameter]], faster: Mapping[str, float]
) -> dict[float, list[tuple[str, Parameter]]]:
    """The parameters sorted by what their rates are to be multiplied with; 1 comes first."""
    found: dict[float, list[tuple[str, Parameter]]] = {1.0: []}
    for name, one in parameters:
        factor = next((factor for start, factor in faster.items() if name.startswith(start)), 1.0)
        found.setdefault(factor, []).append((name, one))
    return {factor: own for factor, own in found.items() if own}


def laid_out_like(parameter: Tensor, value: Tensor) -> Tensor:
    """A whole tensor, split among the processes as the parameter is, where it is."""
    if not hasattr(parameter, "placements") or value.shape != parameter.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(parameter.device), parameter.device_mesh, parameter.placements)   # type: ignore
