"""Create torch optimizers and their learning-rate schedule from the training settings.

`Optimizer` and `Schedule` are declarations: they hold the arguments of a call that a `.neural`
program or an experiment file writes, such as `AdamW(learning_rate=3e-4)`. `training.x` is the
field `x` of the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.core.names import find_closest
from neural.core.registry import UnknownNameError
from neural.language.expression import InvalidCallError, parse_call
from neural.optim.optimizer import Optimizer
from neural.optim.optimizers import registry as optimizers
from neural.optim.schedule import Schedule
from neural.optim.schedules import registry as schedules
from neural.optim.schedules.warmup import Warmup

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Parameter
    from torch.optim import Optimizer as TorchOptimizer

CONSTANT = "constant"
"""Value of `training.scheduler`: no schedule, even if the optimizer declares one."""
PLATEAU = "plateau"
"""Value of `training.scheduler`: the rate is halved when validation scores stop improving."""


def create_optimizer(settings: TrainingSettings, declared: Optimizer | None = None) -> Optimizer:
    """The optimizer that the settings name; `training.weight_decay`, if set, replaces its own.

    `declared` is the checked optimizer of a program. It is returned unchanged if
    `settings.optimizer` is its text; any other text, such as that of an experiment file, is parsed.
    """
    if declared is not None and settings.optimizer == repr(declared):
        optimizer = declared
    else:
        try:
            optimizer = parse_call(settings.optimizer, optimizers)
        except InvalidCallError as error:
            raise TaskError(f"training.optimizer: {error}") from None
    if settings.weight_decay is not None:
        if "weight_decay" not in optimizer.argument_specs():
            raise TaskError(f"training.weight_decay: {type(optimizer).__name__} has none")
        optimizer = replace(optimizer, weight_decay=settings.weight_decay)  # type: ignore[call-arg]
    return optimizer


def resolve_optimizer_values(settings: TrainingSettings) -> dict[str, float | None]:
    """Peak learning rates, weight decay and clipping norm, from the settings or the optimizer."""
    optimizer = create_optimizer(settings)
    peak_learning_rate, _ = resolve_schedule(settings, optimizer, settings.steps or 1)
    return {
        **optimizer.with_learning_rate(peak_learning_rate).peak_learning_rates(),
        "weight_decay": getattr(optimizer, "weight_decay", None),
        "clip_norm": settings.clip_norm or optimizer.clipnorm,
    }


def resolve_schedule(
    settings: TrainingSettings, optimizer: Optimizer, steps: int
) -> tuple[float, Callable[[int], float]]:
    """The peak learning rate, and a function from the step, counted from 0, to the factor on it."""
    schedule = create_schedule(settings, optimizer, steps)
    if schedule is None:
        return settings.learning_rate or optimizer.peak_learning_rate, lambda step: 1.0
    peak_learning_rate = settings.learning_rate or schedule.peak_learning_rate
    return (
        peak_learning_rate,
        lambda step: schedule.learning_rate_at(step) / schedule.peak_learning_rate,
    )


def create_schedule(
    settings: TrainingSettings, optimizer: Optimizer, steps: int
) -> Schedule | None:
    """The schedule of a training of `steps` steps; None for a constant rate.

    `training.scheduler` names an entry of `neural.optim.schedules`: `CosineDecay`, `cosine_decay`
    or, without "decay", `cosine`, with or without arguments. Arguments that the text leaves out
    come from the other training settings. If it is None, the optimizer's own schedule applies.
    `training.warmup_steps` replaces the warm-up of either schedule.
    """
    peak_learning_rate = settings.learning_rate or optimizer.peak_learning_rate
    if settings.scheduler is None:
        schedule = (
            optimizer.learning_rate if isinstance(optimizer.learning_rate, Schedule) else None
        )
    elif settings.scheduler in (CONSTANT, PLATEAU):
        schedule = None
    else:
        schedule = _parse_schedule(
            settings.scheduler,
            {
                "initial_learning_rate": peak_learning_rate,
                "decay_steps": max(1, steps - settings.warmup_steps),
                "warmup_steps": settings.warmup_steps,
                "alpha": min(1.0, settings.min_learning_rate / peak_learning_rate),
                "then": peak_learning_rate,
            },
        )
    if not settings.warmup_steps:
        return schedule
    if schedule is None:
        return Warmup(settings.warmup_steps, peak_learning_rate)
    return add_warmup(schedule, settings.warmup_steps)


def _parse_schedule(text: str, defaults: Mapping[str, Any]) -> Schedule:
    """Parse a schedule such as `cosine(alpha=0.1)`; `defaults` fills in missing arguments."""
    name = text.partition("(")[0].strip()
    if not _is_schedule(name):
        if _is_schedule(f"{name}_decay"):
            text = text.replace(name, f"{name}_decay", 1)
        elif guess := find_closest(name, (CONSTANT, PLATEAU)):
            raise TaskError(
                f"training.scheduler: no schedule is called `{name[:40]}`; did you mean `{guess}`?"
            )
    try:
        return parse_call(text, schedules, defaults=defaults)
    except InvalidCallError as error:
        raise TaskError(f"training.scheduler: {error}") from None


def _is_schedule(name: str) -> bool:
    """Whether a schedule is registered under a name, ignoring case."""
    try:
        schedules.get(name, ignore_case=True)
    except UnknownNameError:
        return False
    return True


def add_warmup(schedule: Schedule, steps: int) -> Schedule:
    """Add a linear warm-up of `steps` steps; replaces the warm-up a schedule already has."""
    if "warmup_steps" in schedule.argument_specs():
        return replace(schedule, warmup_steps=steps)  # type: ignore[call-arg]
    return Warmup(steps, schedule)


class ScheduledOptimizers:
    """The torch optimizers of a training run.

    At each step, all their learning rates are the peak rates times the same factor, which the
    schedule gives.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        settings: TrainingSettings,
        steps: int,
        parameters: Iterable[tuple[str, Parameter]],
        rate_factors: Mapping[str, float] | None = None,
    ) -> None:
        """`steps` is the length of the training; `parameters` are named parameters.

        `rate_factors` maps prefixes of parameter names to factors on their learning rates.
        """
        self.peak_learning_rate, self.schedule_factor = resolve_schedule(settings, optimizer, steps)
        self.clip_norm = settings.clip_norm or optimizer.clipnorm
        self.plateau_factor = 1.0
        """Factor on all rates. The training engine halves it when validation stops improving."""
        self.optimizers: list[TorchOptimizer] = [
            torch_optimizer
            for factor, group in group_by_rate_factor(parameters, rate_factors or {}).items()
            for torch_optimizer in optimizer.with_learning_rate(
                factor * self.peak_learning_rate
            ).build(group)
        ]
        self._peak_rates = [
            [group["lr"] for group in torch_optimizer.param_groups]
            for torch_optimizer in self.optimizers
        ]

    @property
    def kinds(self) -> list[str]:
        """Class names of the torch optimizers."""
        return [type(torch_optimizer).__name__ for torch_optimizer in self.optimizers]

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of the first optimizer at a step, counted from 0."""
        return self.peak_learning_rate * self.schedule_factor(step) * self.plateau_factor

    def step(self, step: int) -> None:
        """Update the parameters at the rates of this step, and clear the gradients."""
        factor = self.schedule_factor(step) * self.plateau_factor
        for torch_optimizer, peak_rates in zip(self.optimizers, self._peak_rates, strict=True):
            for group, peak_rate in zip(torch_optimizer.param_groups, peak_rates, strict=True):
                group["lr"] = peak_rate * factor
            torch_optimizer.step()
            torch_optimizer.zero_grad(set_to_none=True)

    def state_dict(self) -> tuple[dict[str, Any], list[Any]]:
        """(tensors, metadata) of all optimizers, to save in a checkpoint.

        Keys of the tensors are `optimizer.<number>.<parameter index>.<name>`. The metadata has one
        JSON object per optimizer: class name, state that is no tensor, and parameter groups.
        """
        tensors, metadata = {}, []
        for number, torch_optimizer in enumerate(self.optimizers):
            saved = torch_optimizer.state_dict()
            plain_state: dict[str, dict[str, Any]] = {}
            for key, entry in saved["state"].items():
                for name, value in entry.items():
                    if hasattr(value, "detach"):
                        tensors[f"optimizer.{number}.{key}.{name}"] = value
                    else:
                        plain_state.setdefault(str(key), {})[name] = value
            metadata.append(
                {
                    "kind": type(torch_optimizer).__name__,
                    "state": plain_state,
                    "groups": saved["param_groups"],
                }
            )
        return tensors, metadata

    def load_state_dict(self, tensors: dict[str, Any], metadata: list[Any]) -> None:
        """Restore what `state_dict` returned. The optimizers must be of the same kinds."""
        for number, (torch_optimizer, saved) in enumerate(
            zip(self.optimizers, metadata, strict=True)
        ):
            state: dict[Any, dict[str, Any]] = {
                int(key): dict(entry) for key, entry in saved["state"].items()
            }
            params = [param for group in torch_optimizer.param_groups for param in group["params"]]
            prefix = f"optimizer.{number}."
            for path, value in tensors.items():
                if path.startswith(prefix):
                    key, name = path.removeprefix(prefix).split(".", 1)
                    state.setdefault(int(key), {})[name] = shard_like(params[int(key)], value)
            # Hyperparameters are not restored: a run may resume with another weight decay.
            groups = [
                {**current, "params": group["params"]}
                for current, group in zip(
                    torch_optimizer.state_dict()["param_groups"], saved["groups"], strict=True
                )
            ]
            torch_optimizer.load_state_dict({"state": state, "param_groups": groups})


def group_by_rate_factor(
    parameters: Iterable[tuple[str, Parameter]], rate_factors: Mapping[str, float]
) -> dict[float, list[tuple[str, Parameter]]]:
    """Named parameters by the factor on their learning rate; the group of factor 1 comes first."""
    groups: dict[float, list[tuple[str, Parameter]]] = {1.0: []}
    for name, param in parameters:
        factor = next(
            (factor for prefix, factor in rate_factors.items() if name.startswith(prefix)), 1.0
        )
        groups.setdefault(factor, []).append((name, param))
    return {factor: group for factor, group in groups.items() if group}


def shard_like(parameter: Tensor, value: Tensor) -> Tensor:
    """Distribute a full tensor over processes like `parameter`; unchanged if that is no DTensor."""
    if not hasattr(parameter, "placements") or value.shape != parameter.shape:
        return value
    from torch.distributed.tensor import distribute_tensor

    sharded: Any = parameter  # a DTensor, whose layout torch's stubs do not declare
    return distribute_tensor(value.to(sharded.device), sharded.device_mesh, sharded.placements)
