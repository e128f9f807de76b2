"""When a hybrid goes from its first paradigm to its second: by incentive, by step or by accuracy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.modules.late import torch
from neural.tasks.focusing.networks import AGREED, DONE, STAGE, SWITCHED, FocusModel
from neural.tasks.focusing.paradigms.hybrid import Hybrid

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tasks.focusing.paradigm import Paradigm
    from neural.tasks.focusing.segments import Segments

ACCURATE = 0.9
"""The accuracy to switch at, where none was given."""


def incentive(model: FocusModel, loss: Tensor) -> float:
    """The norm of the gradient that a loss gives to the focus: how fast it would learn."""
    given = torch.autograd.grad(loss.mean(), list(model.focus.parameters()), retain_graph=True, allow_unused=True)
    return float(sum(one.square().sum() for one in given if one is not None)) ** 0.5


def checked(hybrid: Hybrid, given: Segments, steps: int, per_step: int = 1) -> str | None:
    """Look whether it is time, and switch; says why where it did.

    The marks are kept in the model's `history`. `steps` is the whole length; a step has `per_step`
    batches in each process. The first batch of a step decides, and the switch takes effect with the
    next step: so it does not matter whether the others are accumulated here or learned elsewhere.
    Incentives are compared exactly, whatever the estimator: the noise of a few draws would pass for
    a pull.
    """
    model = given.model
    done, stage = int(model.history[DONE]), int(model.history[STAGE])
    step, later = divmod(done - 1, per_step)
    step += 1   # that this batch belongs to, counted from 1
    if stage or later:
        return None
    if hybrid.switch == "step":
        ready = step >= (hybrid.value or steps / 2)
        return _switched(model, hybrid, step, "as set") if ready else None
    if step % hybrid.check_every:
        return None
    if hybrid.switch == "accuracy":
        with torch.no_grad():
            right = float((hybrid.first.predict(given).argmax(dim=-1) == given.y).float().mean())
        agrees, why = right >= (hybrid.value or ACCURATE), f"accuracy {right:.2f} on the batch"
    else:
        exact = given.exactly()
        now, other = (incentive(model, stage.loss(exact)) for stage in (hybrid.first, hybrid.then))
        agrees = other > now
        names = _name(hybrid.first), _name(hybrid.then)
        why = f"gradient of the focus {other:.3g} by {names[1]} against {now:.3g} by {names[0]}"
    model.history[AGREED] = model.history[AGREED] + 1 if agrees else 0
    if model.history[AGREED] < hybrid.checks:
        return None
    times = f", {hybrid.checks} checks in a row" if hybrid.checks > 1 else ""
    return _switched(model, hybrid, step, why + times)


def _switched(model: FocusModel, hybrid: Hybrid, step: int, why: str) -> str:
    model.history[STAGE], model.history[SWITCHED] = 1, model.history[DONE]
    return f"{_name(hybrid.first)} → {_name(hybrid.then)} after step {step}: {why}"


def _name(paradigm: Paradigm) -> str:
    return repr(paradigm).removesuffix("()")
