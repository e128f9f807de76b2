"""What is claimed about paradigms of attention, and whether these runs support it, with the number behind that.

A claim is a difference between two paradigms on the same data and the same budget, seed by seed. It holds where the
whole interval lies on its side, fails where the whole interval lies on the other, and is undecided otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from neural.views.focus_results import Groups, paired, sizes
from neural.views.seeds import FEWEST, Estimate, over_seeds

NEAR = 0.02
"""SAIF that two paradigms may differ by and still be near each other."""
COMMITTED = ("hybrid", "auto")
"""What is to be used where there are many segments."""
LVML_HARD = 'hybrid(first="lvml")'


@dataclass(frozen=True)
class Verdict:
    """One claim at one m."""

    claim: str
    segments: int
    supported: str
    """yes, no, or undecided."""
    number: Estimate
    what: str
    """What the number is."""


@dataclass(frozen=True)
class Claim:
    """`one` has more (`sign` 1) or less (−1) of a score than each of the others, or as much unless that is `strict`.

    By `margin` it may miss that.
    """

    says: str
    one: str
    others: tuple[str, ...]
    score: str
    sign: int = 1
    margin: float = 0.0
    strict: bool = False


CLAIMS = (
    Claim("soft is quick to begin: it reaches 90 % accuracy before hard", "soft", ("hard",), "steps_to", -1,
          strict=True),
    Claim("soft then stalls: it ends with less SAIF than LVML", "soft", ("lvml",), "saif", -1, strict=True),
    Claim("soft's focus stays vague: less sure than hard's", "soft", ("hard",), "focus_confidence", -1, strict=True),
    Claim("hard is slow to begin: it reaches 90 % accuracy after LVML", "hard", ("lvml",), "steps_to", 1, strict=True),
    Claim("hard ends above soft: more SAIF", "hard", ("soft",), "saif", 1, strict=True),
    Claim("LVML has the best of both: at least the SAIF of soft and of hard", "lvml", ("soft", "hard"), "saif", 1),
    Claim(f"the hybrid is near LVML: SAIF less by {NEAR:g} at most", "hybrid", ("lvml",), "saif", 1, NEAR),
    Claim("the hybrid is cheaper than LVML: fewer calls of the classifier", "hybrid", ("lvml",), "calls", -1,
          strict=True),
    Claim(f"LVML → hard is as good as each: SAIF less by {NEAR:g} at most", LVML_HARD,
          ("soft", "hard", "lvml", "hybrid"), "saif", 1, NEAR),
    Claim("auto has at least the SAIF of LVML", "auto", ("lvml",), "saif", 1),
    Claim("auto needs at most half of LVML's calls", "auto", ("lvml",), "calls_half", -1),
)  # fmt: skip
MANY, LOST, DEARER = 10, 0.05, 3.0
"""Times as many segments; what they may cost in SAIF; and what a step may cost, soft's being 1."""


def judged(groups: Groups, claims: Sequence[Claim] = CLAIMS) -> list[Verdict]:
    """Every claim at every m that has the runs for it."""
    found = [_verdict(groups, claim, m) for claim in claims for m in sizes(groups)]
    return [one for one in found if one is not None] + [one for name in COMMITTED for one in _many(groups, name)]


def _verdict(groups: Groups, claim: Claim, m: int) -> Verdict | None:
    differences = [_differences(groups, claim.one, other, claim.score, m) for other in claim.others]
    differences = [one for one in differences if one]
    if len(differences) < len(claim.others):
        return None
    # against each of several, the one that it does worst against counts
    worst = min((over_seeds(one) for one in differences), key=lambda one: _rank(claim.sign * one.value))
    supported = "undecided"
    if worst.seeds >= FEWEST:
        low, high = sorted((claim.sign * worst.low, claim.sign * worst.high))
        enough = low > -claim.margin or (low == -claim.margin and not claim.strict)
        supported = "yes" if enough else "no" if high < -claim.margin else "undecided"
    return Verdict(claim.says, m, supported, worst, _what(claim))


def _many(groups: Groups, name: str) -> list[Verdict]:
    """What far more segments cost, in SAIF and in time; nothing where no runs have far more."""
    few, many = min(sizes(groups)), max(sizes(groups))
    if many < MANY * few or not {(name, few), (name, many), ("soft", many)} <= set(groups):
        return []
    before = {one.seed: one.scores.get("saif", math.nan) for one in groups[name, few]}
    soft = {one.seed: one.scores["step_ms"] for one in groups["soft", many]}
    lost = over_seeds(one.scores.get("saif", math.nan) - before[one.seed] for one in groups[name, many]
                      if one.seed in before)  # fmt: skip
    cost = over_seeds(one.scores["step_ms"] / soft[one.seed] for one in groups[name, many] if one.seed in soft)
    kept = f"{name} keeps its SAIF among {many:,} segments: less by {LOST:g} at most"
    cheap = f"a step of {name} among {many:,} segments costs {DEARER:g} times soft's at most"
    return [
        Verdict(kept, many, _decided(lost, lost.low >= -LOST, lost.high < -LOST), lost, f"SAIF, m = {many} − {few}"),
        Verdict(cheap, many, _decided(cost, cost.high <= DEARER, cost.low > DEARER), cost, "time of a step, soft's 1"),
    ]


def _decided(number: Estimate, yes: bool, no: bool) -> str:
    return "undecided" if number.seeds < FEWEST else "yes" if yes else "no" if no else "undecided"


def _rank(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _differences(groups: Groups, one: str, other: str, score: str, m: int) -> list[float]:
    if score != "calls_half":
        return paired(groups, one, other, score, m)
    mine = paired(groups, one, other, "calls", m)   # mine − theirs; at most half is mine − theirs / 2 ≤ 0
    theirs = [result.scores["calls"] for result in groups.get((other, m), [])]
    return [float(difference + np.mean(theirs) / 2) for difference in mine]


def _what(claim: Claim) -> str:
    words: dict[str, str] = {"saif": "SAIF", "steps_to": "steps", "focus_confidence": "largest weight",
                             "calls": "calls", "calls_half": "calls − half of LVML's"}  # fmt: skip
    if claim.score == "calls_half":
        return words[claim.score]
    return f"{words[claim.score]}, {claim.one} − {' or '.join(claim.others)}"
