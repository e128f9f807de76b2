"""What an experiment chooses, by name: a paradigm, an estimator, and how many segments it may read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from neural.core.registry import Registry
from neural.language.expression import NotACall, read_call
from neural.tasks.focusing.estimator import Estimator
from neural.tasks.focusing.estimators import registry as estimators
from neural.tasks.focusing.estimators.exact import Exact
from neural.tasks.focusing.growth import Growth
from neural.tasks.focusing.paradigm import Paradigm
from neural.tasks.focusing.paradigms import registry as paradigms
from neural.tasks.focusing.paradigms.auto import Auto
from neural.tasks.task import TaskError

MOST, HELD = 32, 0.99
"""Segments that `auto` reads of an example, at most, and the share of the focus that they are to hold."""


@dataclass(frozen=True)
class Choice:
    """How a focus model is trained."""

    paradigm: Paradigm
    estimator: Estimator
    samples: int
    """Segments that the estimator reads of each example; m where it reads all."""
    background: float = 0.0
    growth: Growth | None = None
    """How many segments there are when; None: all from the start."""
    reason: str = ""
    """Why, where nobody chose it by hand."""


def chosen(
    paradigm: str, estimator: str | None, samples: int | None, background: float, *, classes: int, segments: int,
    steps: int, growth: Growth | None = None,
) -> Choice:  # fmt: skip
    """The choice that the texts spell; TaskError where it cannot be. `growth` is what was asked for by hand."""
    made = paradigm_of(paradigm)
    if isinstance(made, Auto):
        return _advised(made, estimator, samples, background, classes, segments, steps, growth)
    if estimator is None and samples is not None:
        raise TaskError("`samples` says how many segments an estimator reads: name one, such as `estimator: topk`")
    by = Exact() if estimator is None else _read(estimator, estimators, "estimator")
    exact = isinstance(by, Exact)
    if estimator is not None and not exact and not made.estimated:
        raise TaskError(f"`estimator` is for hard and marginal paradigms, not for `{paradigm}`; leave it out")
    if background and not made.estimated:
        raise TaskError(f"`background` is for paradigms that read segments one by one, not for `{paradigm}`")
    if exact and samples is not None:
        raise TaskError("`exact` reads all segments: leave `samples` out, or choose another `estimator`")
    if not exact and samples is None:
        raise TaskError(f"`{estimator}` needs `samples`: how many of the {segments} segments to read")
    if samples is not None and samples > segments:
        raise TaskError(f"`samples` is {samples}, but an example has {segments} segments; {segments} at most")
    return Choice(made, by, samples or segments, background, growth)


def _advised(
    auto: Auto, estimator: str | None, samples: int | None, background: float, classes: int, segments: int, steps: int,
    growth: Growth | None,
) -> Choice:  # fmt: skip
    """By the theory; where nobody says otherwise, only the segments that hold most of the focus are read."""
    made, reason = auto.advised(classes, growth.first if growth else segments, steps)
    if growth:
        reason += (f"; it begins with mosaics of {growth.first} segments and doubles them up to {growth.last}: finding "
                   f"one of {growth.last} at once takes {growth.last / growth.first:.0f} times as long")  # fmt: skip
    if estimator is None and samples is None and made.estimated:
        estimator, samples = f"nucleus(mass={HELD})", min(MOST, segments)
        reason += "; of the segments, those that hold most of the focus are read, and one drawn from the rest"
    found = chosen(
        repr(made), estimator, samples, background, classes=classes, segments=segments, steps=steps, growth=growth
    )
    return replace(found, reason=reason)


def paradigm_of(text: str) -> Paradigm:
    """The paradigm that a text spells; TaskError where there is none."""
    return _read(text, paradigms, "paradigm")


def _read(text: str, registry: Registry[Any], key: str) -> Any:
    try:
        return read_call(text, registry)
    except NotACall as wrong:
        raise TaskError(f"{key}: {wrong}") from None
