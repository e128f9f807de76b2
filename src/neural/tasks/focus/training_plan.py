"""Training plan of a focus model: paradigm, estimator, samples, growth, and hybrid switches.

A focus model weights the m segments of an example by its focus and classifies segments. A paradigm
(paradigm.py) combines both into one loss. An estimator (estimator.py) selects the segments that are
classified in training. A hybrid is a paradigm that switches once from a first paradigm to a second,
which `then` denotes. With growth, training starts with mosaics (generated examples, mosaics.py) of
few segments, and their number doubles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, log2
from typing import TYPE_CHECKING, Any

from neural.core.errors import TaskError
from neural.core.registry import Registry
from neural.language.expression import InvalidCallError, parse_call
from neural.nn.lazy_torch import torch
from neural.tasks.focus.estimator import Estimator
from neural.tasks.focus.estimators import registry as estimators
from neural.tasks.focus.estimators.exact import Exact
from neural.tasks.focus.model import (
    BATCHES_DONE,
    CHECKS_AGREED,
    STAGE,
    SWITCH_BATCH,
    FocusModel,
)
from neural.tasks.focus.paradigm import Paradigm
from neural.tasks.focus.paradigms import registry as paradigms
from neural.tasks.focus.paradigms.auto import Auto
from neural.tasks.focus.paradigms.hybrid import Hybrid

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tasks.focus.paradigm import Paradigm
    from neural.tasks.focus.segment_batch import SegmentBatch

MAX_AUTO_SAMPLES, AUTO_NUCLEUS_MASS = 32, 0.99
"""The paradigm `auto` classifies the segments that hold AUTO_NUCLEUS_MASS of the focus, and at most
MAX_AUTO_SAMPLES per example."""


@dataclass(frozen=True)
class FocusTrainingPlan:
    """Resolved choice of paradigm and estimator."""

    paradigm: Paradigm
    estimator: Estimator
    samples: int
    """Number of segments classified per example; m if all."""
    background_weight: float = 0.0
    """Weight of the loss that makes predictions on unfocused segments uniform."""
    growth: SegmentGrowth | None = None
    """Growth of the number of segments during training; None: all from the start."""
    reason: str = ""
    """Reason for the choice of `paradigm: auto`; empty if the user chose the paradigm."""


def create_plan(
    paradigm: str,
    estimator: str | None,
    samples: int | None,
    background_weight: float,
    *,
    classes: int,
    segments: int,
    steps: int,
    growth: SegmentGrowth | None = None,
) -> FocusTrainingPlan:
    """Parse and check the settings of an experiment. Raises TaskError for conflicts.

    `steps` is the length of the training; only the paradigm `auto` needs it.
    """
    parsed_paradigm = parse_paradigm(paradigm)
    if isinstance(parsed_paradigm, Auto):
        return _create_auto_plan(
            parsed_paradigm, estimator, samples, background_weight, classes, segments, steps, growth
        )
    if estimator is None and samples is not None:
        raise TaskError(
            "`samples` is the number of segments an estimator selects: set one, such as "
            "`estimator: topk`"
        )
    parsed_estimator = (
        Exact() if estimator is None else _parse_entry(estimator, estimators, "estimator")
    )
    is_exact = isinstance(parsed_estimator, Exact)
    if estimator is not None and not is_exact and not parsed_paradigm.uses_estimator:
        raise TaskError(
            f"`estimator` is for hard and marginal paradigms, not for `{paradigm}`; leave it out"
        )
    if background_weight and not parsed_paradigm.uses_estimator:
        raise TaskError(
            f"`background` is for paradigms that classify single segments, not for `{paradigm}`"
        )
    if is_exact and samples is not None:
        raise TaskError(
            "`exact` classifies all segments: leave `samples` out, or choose another `estimator`"
        )
    if not is_exact and samples is None:
        raise TaskError(
            f"`{estimator}` needs `samples`: how many of the {segments} segments to classify"
        )
    if samples is not None and samples > segments:
        raise TaskError(
            f"`samples` is {samples}, but must be at most {segments}, the segments of an example"
        )
    return FocusTrainingPlan(
        parsed_paradigm, parsed_estimator, samples or segments, background_weight, growth
    )


def _create_auto_plan(
    auto: Auto,
    estimator: str | None,
    samples: int | None,
    background_weight: float,
    classes: int,
    segments: int,
    steps: int,
    growth: SegmentGrowth | None,
) -> FocusTrainingPlan:
    """Plan by the theory of focus models (tasks/focus/theory).

    By default the estimator `nucleus` selects the segments: those that hold most of the focus.
    """
    schedule, reason = auto.choose_schedule(classes, growth.first if growth else segments, steps)
    if growth:
        reason += (
            f"; it starts with mosaics of {growth.first} segments and doubles them up to "
            f"{growth.last}: finding one of {growth.last} directly takes "
            f"{growth.last / growth.first:.0f} times as long"
        )
    if estimator is None and samples is None and schedule.uses_estimator:
        estimator, samples = f"nucleus(mass={AUTO_NUCLEUS_MASS})", min(MAX_AUTO_SAMPLES, segments)
        reason += (
            "; the classifier reads the segments that hold most of the focus, and one sampled "
            "from the rest"
        )
    plan = create_plan(
        repr(schedule),
        estimator,
        samples,
        background_weight,
        classes=classes,
        segments=segments,
        steps=steps,
        growth=growth,
    )
    return replace(plan, reason=reason)


def parse_paradigm(text: str) -> Paradigm:
    """Parse a paradigm such as `renyi(tau=0.5)`. Raises TaskError if the name is unknown."""
    return _parse_entry(text, paradigms, "paradigm")


def _parse_entry(text: str, registry: Registry[Any], key: str) -> Any:
    """Parse a call of a registered name, such as `topk(tail=0.5)`; `key` is for error messages."""
    try:
        return parse_call(text, registry)
    except InvalidCallError as error:
        raise TaskError(f"{key}: {error}") from None


GROWTH_END = 0.5
"""Share of the training after which mosaics have all segments."""


@dataclass(frozen=True)
class SegmentGrowth:
    """Number of segments that doubles from `first` to `last` during training."""

    first: int
    last: int

    def segments_at(self, progress: float) -> int:
        """Number of segments at `progress`, the share of steps done; doubles at equal intervals."""
        doublings = max(1, ceil(log2(self.last / self.first)))
        return min(self.last, self.first * 2 ** int(min(progress / GROWTH_END, 1.0) * doublings))


DEFAULT_SWITCH_ACCURACY = 0.9
"""Accuracy at which `switch="accuracy"` switches by default."""


def focus_gradient_norm(model: FocusModel, loss: Tensor) -> float:
    """Norm of the gradient of a loss with respect to the focus network."""
    gradients = torch.autograd.grad(
        loss.mean(), list(model.focus.parameters()), retain_graph=True, allow_unused=True
    )
    return (
        float(sum(gradient.square().sum() for gradient in gradients if gradient is not None)) ** 0.5
    )


def check_switch(
    hybrid: Hybrid, segments: SegmentBatch, steps: int, batches_per_step: int = 1
) -> str | None:
    """Switch the hybrid to its second paradigm if it is time. Returns the reason, else None.

    `segments` is the batch just trained on. `steps` is the length of the training; a step trains
    `batches_per_step` batches in each process (gradient accumulation).

    Only the first batch of a step can decide the switch. The model's `schedule_state` records it,
    with the number of batches trained so far (SWITCH_BATCH). The switch takes effect with the next
    step (`current_paradigm` in base_task.py), so all batches of a step have the same loss. With
    several processes, rank 0 decides: its `schedule_state` is copied to the others after each step
    (training/buffer_sync.py).

    `hybrid.switch` is "step", "accuracy" or "incentive". The incentive of a paradigm is the norm of
    the gradient of its loss with respect to the focus network. It is computed from all segments,
    because the noise of an estimator would enlarge the norm.
    """
    model = segments.model
    batches_done, stage = int(model.schedule_state[BATCHES_DONE]), int(model.schedule_state[STAGE])
    step, batch_in_step = divmod(batches_done - 1, batches_per_step)
    step += 1  # steps are counted from 1
    if stage or batch_in_step:
        return None
    if hybrid.switch == "step":
        is_due = step >= (hybrid.value or steps / 2)
        return _apply_switch(model, hybrid, step, "as configured") if is_due else None
    if step % hybrid.check_every:
        return None
    if hybrid.switch == "accuracy":
        with torch.no_grad():
            accuracy = float(
                (hybrid.first.predict(segments).argmax(dim=-1) == segments.y).float().mean()
            )
        is_in_favour, reason = (
            accuracy >= (hybrid.value or DEFAULT_SWITCH_ACCURACY),
            f"accuracy {accuracy:.2f} on the batch",
        )
    else:  # "incentive"
        exact_batch = segments.with_exact_estimator()
        first_norm, then_norm = (
            focus_gradient_norm(model, paradigm.loss(exact_batch))
            for paradigm in (hybrid.first, hybrid.then)
        )
        is_in_favour = then_norm > first_norm
        names = _paradigm_name(hybrid.first), _paradigm_name(hybrid.then)
        reason = f"focus gradient {then_norm:.3g} with {names[1]}, {first_norm:.3g} with {names[0]}"
    model.schedule_state[CHECKS_AGREED] = (
        model.schedule_state[CHECKS_AGREED] + 1 if is_in_favour else 0
    )
    if model.schedule_state[CHECKS_AGREED] < hybrid.checks:
        return None
    checks_note = f", {hybrid.checks} checks in a row" if hybrid.checks > 1 else ""
    return _apply_switch(model, hybrid, step, reason + checks_note)


def _apply_switch(model: FocusModel, hybrid: Hybrid, step: int, reason: str) -> str:
    """Record the switch in the model; returns the message for the user."""
    model.schedule_state[STAGE], model.schedule_state[SWITCH_BATCH] = (
        1,
        model.schedule_state[BATCHES_DONE],
    )
    first, then = _paradigm_name(hybrid.first), _paradigm_name(hybrid.then)
    return f"{first} → {then} after step {step}: {reason}"


def _paradigm_name(paradigm: Paradigm) -> str:
    return repr(paradigm).removesuffix("()")
