"""What is claimed about paradigms of attention, and whether these runs support it, with the number behind that.

A claim is a difference between two paradigms on the same data and the same budget, seed by seed. It
is supported or refuted where a test over seeds says so after Holm's correction for all tests of the
report, and undecided otherwise. Three kinds of numbers are told apart:

    measured    SAIF, weights, calls that follow the focus: Student's t and Hall's transformation
    times       steps to 90 % accuracy. Where a seed never reached it, ranks: never is the latest
    exact       calls that the settings alone decide: the same in every seed, nothing to test

Error rates and power are simulated in tests/validity/test_focus_reports.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from neural.views.focus_results import Groups, Result, TimeTo, pairs, sizes, time_to
from neural.views.seeds import FEWEST, Estimate, number, over_seeds
from neural.views.significance import (
    LEVEL,
    UNTESTED,
    Tails,
    fewest_pairs,
    holm,
    mean_test,
    rank_test,
)

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
    """The difference; of several comparisons, that with the weakest support."""
    what: str
    """What the number is."""
    evidence: str
    """Every comparison in words, with what it rests on."""
    p: float
    """Two-sided, after Holm's correction for all tests of the report; NaN where nothing was tested."""
    is_exact: bool = False
    """Set by the settings alone: the same in every seed, so there is no interval and no test."""


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
NAMES = {
    "saif": "SAIF",
    "steps_to": "steps",
    "focus_confidence": "largest weight",
    "calls": "calls",
    "calls_half": "calls − half of LVML's",
}
CALLS = ("calls", "calls_half")


def judged(groups: Groups, claims: Sequence[Claim] = CLAIMS) -> list[Verdict]:
    """Every claim at every m that has the runs for it, corrected for the number of tests."""
    tested = [_test_claim(groups, claim, m) for claim in claims for m in sizes(groups)]
    tested += [question for name in COMMITTED for question in _many_segments(groups, name)]
    return _decide([question for question in tested if question is not None])


def count_tests(verdicts: Sequence[Verdict]) -> int:
    """Those that Holm's correction is for."""
    return sum(not math.isnan(verdict.p) for verdict in verdicts)


@dataclass(frozen=True)
class _Comparison:
    """One difference over seeds, and how sure its side is."""

    number: Estimate
    tails: Tails
    """`above`: in the direction of the claim."""
    text: str
    is_exact: bool = False
    is_ranked: bool = False


@dataclass(frozen=True)
class _Question:
    """A claim at one m with its comparisons, before the correction."""

    claim: str
    segments: int
    what: str
    comparisons: list[_Comparison] = field(default_factory=list)

    @property
    def tails(self) -> Tails:
        """A claim about several holds where all comparisons do, and fails where one of them does."""
        known = [comparison.tails for comparison in self.comparisons]
        if all(math.isnan(tails.above) for tails in known):
            return UNTESTED
        above = max(_known(tails.above) for tails in known)
        below = min(_known(tails.below) for tails in known)
        return Tails(above, min(1.0, len(known) * below))

    @property
    def is_exact(self) -> bool:
        """Whether there is nothing to test."""
        return all(comparison.is_exact for comparison in self.comparisons)

    @property
    def weakest(self) -> _Comparison:
        """The comparison that supports the claim least."""
        return max(self.comparisons, key=lambda comparison: _known(comparison.tails.above))


def _known(p: float) -> float:
    """1 where there was no test."""
    return 1.0 if math.isnan(p) else p


def _decide(questions: Sequence[_Question]) -> list[Verdict]:
    adjusted = holm([math.nan if one.is_exact else one.tails.two_sided for one in questions])
    tests = sum(not math.isnan(p) for p in adjusted)
    verdicts = []
    for question, p in zip(questions, adjusted, strict=True):
        tails = question.tails
        supported = "undecided"
        if question.is_exact or p <= LEVEL:
            supported = "yes" if tails.above < tails.below else "no"
        weakest = question.weakest
        text = "; ".join(comparison.text for comparison in question.comparisons)
        seeds = weakest.number.seeds
        if seeds < FEWEST and not question.is_exact:
            text += f"; at least {FEWEST} seeds are needed"
        elif weakest.is_ranked and supported == "undecided" and seeds < fewest_pairs(tests):
            text += f"; ranks of {seeds} seeds cannot decide: {fewest_pairs(tests)} could"
        verdicts.append(
            Verdict(
                claim=question.claim,
                segments=question.segments,
                supported=supported,
                number=weakest.number,
                what=question.what,
                evidence=text,
                p=p,
                is_exact=question.is_exact,
            )
        )
    return verdicts


def _test_claim(groups: Groups, claim: Claim, m: int) -> _Question | None:
    matched = {other: pairs(groups, claim.one, other, m) for other in claim.others}
    if not all(matched.values()):
        return None
    what = NAMES[claim.score]
    if claim.score != "calls_half":
        what += f", {claim.one} − {' or '.join(claim.others)}"
    comparisons = []
    for other, both in matched.items():
        comparison = _compare(claim, both)
        if len(claim.others) > 1:
            comparison = replace(comparison, text=f"− {other}: {comparison.text}")
        comparisons.append(comparison)
    return _Question(claim.says, m, what, comparisons)


def _compare(claim: Claim, both: Sequence[tuple[Result, Result]]) -> _Comparison:
    """One paradigm against another, over the seeds that both have."""
    if claim.score == "steps_to":
        return _compare_times(claim, both)
    values = [_difference(claim.score, *pair) for pair in both]
    if claim.score in CALLS and all(_calls_are_set(result) for pair in both for result in pair):
        directed = claim.sign * values[0] + claim.margin
        holds = directed > 0 or (directed == 0 and not claim.strict)
        tails = Tails(0.0, 1.0) if holds else Tails(1.0, 0.0)
        exact = Estimate(value=values[0], low=math.nan, high=math.nan, seeds=len(values))
        text = f"{number(values[0])}, exact: set by the settings, the same in every seed"
        return _Comparison(exact, tails, text, is_exact=True)
    return _compare_values(values, lambda value: claim.sign * value + claim.margin)


def _compare_values(values: Sequence[float], directed: Callable[[float], float]) -> _Comparison:
    """A measured difference; `directed` is above 0 where the claim holds.

    Ranks where all differences are equal: nothing tells how much they vary.
    """
    estimate = over_seeds(values)
    finite = [value for value in values if math.isfinite(value)]
    text = f"{estimate}, {len(finite)} seeds"
    if len(finite) < FEWEST:
        return _Comparison(estimate, UNTESTED, text)
    tails = mean_test(map(directed, finite))
    if not math.isnan(tails.above):
        return _Comparison(estimate, tails, text)
    text = f"{number(estimate.value)} in each of {len(finite)} seeds, by ranks"
    return _Comparison(estimate, rank_test(map(directed, finite)), text, is_ranked=True)


def _compare_times(claim: Claim, both: Sequence[tuple[Result, Result]]) -> _Comparison:
    """Steps to 90 %. Ranks where a seed never got there: it counts as later than all others."""
    times = [tuple(_time(result, claim.score) for result in pair) for pair in both]
    ours, theirs = (time_to([pair[side] for pair in both], claim.score) for side in (0, 1))
    medians = f"median {_reached(ours)} against {_reached(theirs)}"
    # two seeds that both never got there are a tie, not a difference of inf − inf
    values = [0.0 if mine == other else mine - other for mine, other in times]
    if all(map(math.isfinite, values)) and all(math.isfinite(mine) for mine, _ in times):
        comparison = _compare_values(values, lambda value: claim.sign * value + claim.margin)
        return replace(comparison, text=f"{medians}; difference {comparison.text}")
    nothing = Estimate(value=math.nan, low=math.nan, high=math.nan, seeds=len(values))
    if len(values) < FEWEST:
        return _Comparison(nothing, UNTESTED, medians)
    tails = rank_test(claim.sign * value + claim.margin for value in values)
    return _Comparison(nothing, tails, f"{medians}; by ranks, never being last", is_ranked=True)


def _reached(time: TimeTo) -> str:
    middle = "never" if math.isinf(time.median) else f"{number(time.median)} steps"
    return f"{middle} (reached in {time.reached} of {time.seeds} seeds)"


def _time(result: Result, score: str) -> float:
    time = result.scores.get(score, math.nan)
    return math.inf if math.isnan(time) else time


def _difference(score: str, mine: Result, theirs: Result) -> float:
    """Of one seed."""
    if score == "calls_half":   # at most half: mine − theirs / 2 ≤ 0, each seed by its own calls
        return _score(mine, "calls") - _score(theirs, "calls") / 2
    return _score(mine, score) - _score(theirs, score)


def _score(result: Result, name: str) -> float:
    return result.scores.get(name, math.nan)


def _calls_are_set(result: Result) -> bool:
    """Whether every step of the training made as many calls."""
    return result.scores.get("calls_range") == 0


def _many_segments(groups: Groups, name: str) -> list[_Question]:
    """What far more segments cost, in SAIF and in time; nothing where no runs have far more."""
    few, many = min(sizes(groups)), max(sizes(groups))
    if many < MANY * few or not {(name, few), (name, many), ("soft", many)} <= set(groups):
        return []
    before = {result.seed: _score(result, "saif") for result in groups[name, few]}
    shared = [result for result in groups[name, many] if result.seed in before]
    lost = [_score(result, "saif") - before[result.seed] for result in shared]
    cost = [
        _score(mine, "step_ms") / _score(soft, "step_ms")
        for mine, soft in pairs(groups, name, "soft", many)
    ]
    keeps = f"{name} keeps its SAIF among {many:,} segments: less by {LOST:g} at most"
    cheap = f"a step of {name} among {many:,} segments costs {DEARER:g} times soft's at most"
    return [
        _Question(
            keeps,
            many,
            f"SAIF, m = {many} − {few}",
            [_compare_values(lost, lambda value: value + LOST)],
        ),
        _Question(
            cheap,
            many,
            "time of a step, soft's 1",
            [_compare_values(cost, lambda value: DEARER - value)],
        ),
    ]
