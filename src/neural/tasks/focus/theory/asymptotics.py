"""Asymptotics of the focus α: the gap 1 − α for large training times t.

α is the attention weight of the segment that decides the class, in the linear model of setting.py:
C classes, m segments, r the learning rate of the focus relative to the classifier's, μ the margin
of the classifier. A law (laws.py) is the equations of one loss; G is its `margin_integral`.

Rényi losses of order τ (0 is hard attention, 1 is LVML, the latent variable marginal likelihood)
have 1 − α ~ κ/t with κ = C τ/(r (1 − C^−τ)), for r = 1: C/log C for hard, C²/(C − 1) for LVML. Soft
attention has 1 − α ~ κ/log² t with κ = 2C/((C − 1) r), which is slower: its G(μ) grows with the
square of the margin instead of exponentially, and the margin is the logarithm of the time.
"""

from __future__ import annotations

import math

import numpy as np

from neural.tasks.focus.theory.laws import Law, RenyiLaw, SoftLaw
from neural.tasks.focus.theory.setting import LinearSetting, Numbers
from neural.tasks.focus.theory.trajectory import ClosedFormFlow


def compute_constant(setting: LinearSetting, law: Law) -> float:
    """κ: the factor of 1/t for Rényi losses, of 1/log² t for soft attention."""
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
    """d log(1 − α)/d log t to first order: −1 for Rényi losses, −2/log t for soft attention."""
    return -2 / math.log(time) if isinstance(law, SoftLaw) else -1.0


def first_order_gap(setting: LinearSetting, law: Law, time: Numbers) -> np.ndarray:
    """1 − α to first order."""
    time = np.asarray(time, float)
    return compute_constant(setting, law) / (
        np.square(np.log(time)) if isinstance(law, SoftLaw) else time
    )


def second_order_gap(setting: LinearSetting, law: Law, time: Numbers) -> np.ndarray:
    """1 − α to second order.

    For soft attention, the first order is still wrong by 10 % at t = 3·10⁶. The second order solves
    for the odds E = α/(1 − α) and the margin μ:

        E + log E + log(m − 1) = r G(μ)        first order: E = r G(μ)
        log t = αμ = μ − κ/μ                   first order: log t = μ

    For Rényi losses, the first-order formula is used with the time since α = 1/2 instead of t.
    """
    if not isinstance(law, SoftLaw):
        return first_order_gap(
            setting, law, np.asarray(time, float) - ClosedFormFlow(setting, law).time_to(0.5)
        )
    log_time = np.log(np.asarray(time, float))
    margin = log_time + compute_constant(setting, law) / log_time
    score_integral = setting.rate * np.asarray(law.margin_integral(margin))
    return 1 - np.asarray(setting.focus_from_score(setting.invert_score_integral(score_integral)))
