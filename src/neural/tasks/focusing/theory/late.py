"""How fast the focus finishes: 1 − α for large times.

The Rényi family (hard and LVML among them) ends with 1 − α ~ κ/t, κ = C τ/(r (1 − C^−τ)): C/log C for hard, C²/(C − 1)
for LVML. Soft attention ends with 2C/((C − 1) r log² t), another class of rates: its push grows with the square of
the margin where the others' grows with the exponential, and the margin is only the logarithm of the time.
"""

from __future__ import annotations

import math

import numpy as np

from neural.tasks.focusing.theory.law import Law
from neural.tasks.focusing.theory.motion import Motion
from neural.tasks.focusing.theory.renyi import Renyi
from neural.tasks.focusing.theory.setting import Numbers, Setting
from neural.tasks.focusing.theory.soft import Soft


def constant(setting: Setting, law: Law) -> float:
    """κ: of 1/t for the Rényi family, of 1/log² t for soft."""
    c = setting.classes
    if isinstance(law, Soft):
        return 2 * c / (law.others * setting.rate)
    assert isinstance(law, Renyi)
    share = math.log(c) if law.order == 0 else -math.expm1(-law.order * math.log(c)) / law.order
    return c / (share * setting.rate)


def formula(law: Law) -> str:
    """How it reads, for r = 1."""
    if isinstance(law, Soft):
        return "2C/((C−1) log² t)"
    return {"hard": "C/(log C · t)", "lvml": "C²/((C−1) t)"}.get(law.name, "Cτ/((1−C^−τ) t)")


def slope(law: Law, time: float) -> float:
    """d log(1 − α)/d log t to first order: −1, but −2/log t for soft, which flattens for ever."""
    return -2 / math.log(time) if isinstance(law, Soft) else -1.0


def leading(setting: Setting, law: Law, time: Numbers) -> np.ndarray:
    """1 − α to first order."""
    time = np.asarray(time, float)
    return constant(setting, law) / (np.square(np.log(time)) if isinstance(law, Soft) else time)


def refined(setting: Setting, law: Law, time: Numbers) -> np.ndarray:
    """1 − α to the next order.

    Soft needs it: its first order is still a tenth off at t = 3·10⁶. The odds E = α/(1 − α) solve
    E + log E + log(m − 1) = r G(μ), of which the first order keeps E alone; and log t = αμ = μ − κ/μ, of which it
    keeps μ alone. For the Rényi family the clock starts when the segment is found, at α = 1/2.
    """
    if not isinstance(law, Soft):
        return leading(setting, law, np.asarray(time, float) - Motion(setting, law).time_to(0.5))
    log = np.log(np.asarray(time, float))
    margin = log + constant(setting, law) / log
    climb = setting.rate * np.asarray(law.push(margin))
    return 1 - np.asarray(setting.focus(setting.score_after(climb)))
