"""The laws by name: soft, hard, lvml, and renyi:τ for any order τ."""

from __future__ import annotations

from neural.core.names import did_you_mean
from neural.tasks.focusing.theory.law import Law
from neural.tasks.focusing.theory.renyi import Hard, Marginal, Renyi
from neural.tasks.focusing.theory.soft import Soft
from neural.tasks.task import TaskError

NAMED: dict[str, type[Soft] | type[Hard] | type[Marginal]] = {"soft": Soft, "hard": Hard, "lvml": Marginal}


def law(name: str, classes: int) -> Law:
    """The law that is called so."""
    if name in NAMED:
        return NAMED[name](classes)
    kind, _, order = name.partition(":")
    if kind != "renyi":
        guess = did_you_mean(name, NAMED)
        known = f"the theory knows soft, hard, lvml and renyi:τ, not `{name}`"
        raise TaskError(known + (f"; {guess}" if guess else ""))
    try:
        return Renyi(classes, float(order))
    except ValueError as wrong:
        if isinstance(wrong, TaskError):
            raise
        raise TaskError(f"`{name}`: write the Rényi order as a number, as in renyi:2") from None
