"""The equations of motion, integrated step by step: for orders that change with time, and to check the closed forms."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

from neural.tasks.focusing.theory.integral import root
from neural.tasks.focusing.theory.law import Law
from neural.tasks.focusing.theory.setting import Setting, is_focus

Pull = Callable[[float, float, float], tuple[float, float]]
"""time, focus, margin → μ' and the incentive."""


class Flow:
    """Margin and score from a start up to a time, or to the moment at which the focus is `enough`."""

    def __init__(
        self, setting: Setting, pull: Pull, until: float, *, enough: float | None = None, exactly: float = 1e-11
    ) -> None:
        self.setting = setting

        def moves(time: float, state: np.ndarray) -> list[float]:
            focus = float(setting.focus(state[1]))
            pace, incentive = pull(time, focus, float(state[0]))
            return [pace, setting.rate * focus * (1 - focus) * incentive / setting.classes]

        ended = []
        if enough is not None:
            wanted = float(setting.score(is_focus(enough)))

            def reached(_: float, state: np.ndarray) -> float:
                return float(state[1]) - wanted

            reached.terminal = True   # type: ignore[attr-defined]
            ended = [reached]
        found = solve_ivp(
            moves, (0.0, until), [0.0, 0.0], method="DOP853", rtol=exactly, atol=exactly / 100, dense_output=True,
            events=ended or None,
        )  # fmt: skip
        self.end = float(found.t[-1])
        self._at = found.sol

    def state(self, time: float | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Margin and score at these times."""
        margin, score = self._at(np.asarray(time, float))
        return margin, score

    def time_to(self, focus: float) -> float:
        """When the focus is so large; infinite if that is after the end."""
        wanted = float(self.setting.score(is_focus(focus)))

        def short(time: float) -> float:
            return float(self.state(time)[1]) - wanted

        if short(0.0) >= 0:
            return 0.0
        return math.inf if short(self.end) < 0 else root(short, 0.0, self.end)


def by(law: Law) -> Pull:
    """The pull of a law that does not change."""

    def pull(_: float, focus: float, margin: float) -> tuple[float, float]:
        return float(law.pace(focus, margin)), float(law.incentive(focus, margin))

    return pull
