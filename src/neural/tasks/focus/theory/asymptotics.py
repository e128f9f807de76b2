"""Asymptotics of the focus α: the gap 1 − α for large times t.

Symbols (C, m, r, μ, the order τ, G) are those of setting.py and laws.py.

The Rényi family (with hard and LVML) has 1 − α ~ κ/t, κ = C τ/(r (1 − C^−τ)): C/log C for hard,
C²/(C − 1) for LVML. Soft attention has 2C/((C − 1) r log² t), a slower class: its G(μ) grows with
the square of the margin instead of exponentially, and the margin is the logarithm of the time.
"""

from __future__ import annotations

import math

import numpy as np

from neural.tasks.focus.theory.laws import Law, RenyiLaw, SoftLaw
from neural.tasks.focus.theory.setting import LinearSetting, Numbers
from neural.tasks.focus.theory.trajectory import ClosedFormFlow


def compute_constant(setting: LinearSetting, law: Law) -> float:
    """κ: the factor of 1/t for the Rényi family, of 1/log² t for soft."""
    c = setting.classes
    if isinstance(law, SoftLaw):
        return 2 * c / (law.other_classes * setting.rate)
    assert isinstance(law, RenyiLaw)
    factor = math.log(c) if law.order == 0 else -math.expm1(-law.order * math.log(c)) / law.order
    return c / (factor * setting.rate)


def format_formula(law: Law) -> str:
    """The formula of 1 − α for r = 1, as text."""
    if isinstance(law, SoftLaw):
        return "2C/((C−1) log² t)"
    return {"hard": "C/(log C · t)", "lvml": "C²/((C−1) t)"}.get(law.name, "Cτ/((1−C^−τ) t)")


def compute_slope(law: Law, time: float) -> float:
    """d log(1 − α)/d log t to first order: −1; for soft −2/log t, which tends to 0."""
    return -2 / math.log(time) if isinstance(law, SoftLaw) else -1.0


def first_order_gap(setting: LinearSetting, law: Law, time: Numbers) -> np.ndarray:
    """1 − α to first order."""
    time = np.asarray(time, float)
    return compute_constant(setting, law) / (
        np.square(np.log(time)) if isinstance(law, SoftLaw) else time
    )


def second_order_gap(setting: LinearSetting, law: Law, time: Numbers) -> np.ndarray:
    """1 − α to second order.

    Soft needs it: its first order is still 10 % off at t = 3·10⁶. The odds E = α/(1 − α)
    and the margin μ solve

        E + log E + log(m − 1) = r G(μ)        first order: E = r G(μ)
        log t = αμ = μ − κ/μ                   first order: log t = μ

    For the Rényi family, time is counted from the moment at which the segment is found, α = 1/2.
    """
    if not isinstance(law, SoftLaw):
        return first_order_gap(
            setting, law, np.asarray(time, float) - ClosedFormFlow(setting, law).time_to(0.5)
        )
    log_time = np.log(np.asarray(time, float))
    margin = log_time + compute_constant(setting, law) / log_time
    score_integral = setting.rate * np.asarray(law.margin_integral(margin))
    return 1 - np.asarray(setting.focus_from_score(setting.invert_score_integral(score_integral)))
