"""Claims about focus paradigms, tested over seeds.

A focus model (tasks/focus) gives each of the m segments of an example a weight (together: the
focus) and classifies the example by the weighted segments. One segment, the foreground, shows the
class. A paradigm is the loss that trains focus and classifier: soft (classifies the weighted mean
of the segments), hard (a sampled segment), lvml (latent-variable marginal likelihood, over all
segments), hybrid (one paradigm, then a switch to another), auto (a schedule that theory
recommends). SAIF is the share of examples in which the weight of the foreground and the probability
of the true class both exceed a threshold. Calls are classifier calls per example and training step.

A claim states the sign of the difference between two paradigms in one score, on the same data with
the same training budget. Runs are paired by seed. A test over seeds, with Holm's correction for all
tests of the report, supports or refutes the claim; otherwise it is undecided. The test depends on
the kind of the score:

    measured    SAIF, weights, calls that depend on the focus: Student's t test with Hall's
                correction for skewness
    times       steps to 90 % accuracy: the same, or a rank test if a seed never reached it, in
                which "never" ranks as the latest
    exact       calls that the settings alone determine: the same in every seed, so no test

Error rates and power are simulated in tests/validity/test_focus_reports.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from neural.findings.focus_results import (
    FocusGroups,
    FocusResult,
    TimeToReach,
    estimate_time_to_reach,
    list_segment_counts,
    pair_by_seed,
)
from neural.stats.comparisons import (
    NO_TEST,
    SIGNIFICANCE_LEVEL,
    OneSidedPValues,
    adjust_p_values,
    mean_test,
    min_deciding_pairs,
    rank_test,
)
from neural.stats.estimate import Estimate, format_number
from neural.stats.means import MIN_SEEDS, estimate_mean

SAIF_TOLERANCE = 0.02
"""A paradigm counts as equally good if its SAIF is smaller by at most this much."""
MANY_SEGMENT_PARADIGMS = ("hybrid", "auto")
"""Paradigms recommended for many segments; `_compare_many_segments` tests them."""
LVML_HARD_HYBRID = 'hybrid(first="lvml")'
"""The hybrid that switches from lvml to hard; plain `hybrid` switches from soft to hard."""


@dataclass(frozen=True)
class ClaimVerdict:
    """Verdict on a claim, from examples with m segments."""

    claim: str
    segments: int
    """Number of segments m of an example."""
    supported: str
    """yes, no, or undecided."""
    number: Estimate
    """The difference; of several comparisons, the one with the weakest support."""
    quantity: str
    """What the number is: "SAIF, hard − soft"."""
    evidence: str
    """A sentence per comparison."""
    p: float
    """Two-sided, after Holm's correction for all tests of the report; NaN without a test."""
    is_exact: bool = False
    """Whether the settings determine the number, so that there is no interval and no test."""


@dataclass(frozen=True)
class FocusClaim:
    """The claim that `paradigm` has a larger or smaller score than each of the others."""

    statement: str
    paradigm: str
    others: tuple[str, ...]
    score: str
    """Key of SCORE_NAMES."""
    sign: int = 1
    """1 if the score is claimed to be larger, −1 if smaller."""
    margin: float = 0.0
    """The claim still holds if the score is worse by this much."""
    strict: bool = False
    """Whether equal exact scores refute the claim."""


FOCUS_CLAIMS = (
    FocusClaim(
        "soft starts fast: it reaches 90 % accuracy before hard",
        "soft",
        ("hard",),
        score="steps_to_target",
        sign=-1,
        strict=True,
    ),
    FocusClaim(
        "soft then stalls: it ends with less SAIF than LVML",
        "soft",
        ("lvml",),
        score="saif",
        sign=-1,
        strict=True,
    ),
    FocusClaim(
        "soft's focus stays vague: its largest weight is below hard's",
        "soft",
        ("hard",),
        score="focus_confidence",
        sign=-1,
        strict=True,
    ),
    FocusClaim(
        "hard starts slowly: it reaches 90 % accuracy after LVML",
        "hard",
        ("lvml",),
        score="steps_to_target",
        sign=1,
        strict=True,
    ),
    FocusClaim(
        "hard ends above soft: more SAIF", "hard", ("soft",), score="saif", sign=1, strict=True
    ),
    FocusClaim(
        "LVML has the best of both: at least the SAIF of soft and of hard",
        "lvml",
        ("soft", "hard"),
        score="saif",
        sign=1,
    ),
    FocusClaim(
        f"the hybrid is near LVML: SAIF less by {SAIF_TOLERANCE:g} at most",
        "hybrid",
        ("lvml",),
        score="saif",
        sign=1,
        margin=SAIF_TOLERANCE,
    ),
    FocusClaim(
        "the hybrid is cheaper than LVML: fewer classifier calls",
        "hybrid",
        ("lvml",),
        score="classifier_calls",
        sign=-1,
        strict=True,
    ),
    FocusClaim(
        f"LVML → hard is as good as each: SAIF less by {SAIF_TOLERANCE:g} at most",
        LVML_HARD_HYBRID,
        ("soft", "hard", "lvml", "hybrid"),
        score="saif",
        sign=1,
        margin=SAIF_TOLERANCE,
    ),
    FocusClaim("auto has at least the SAIF of LVML", "auto", ("lvml",), score="saif", sign=1),
    FocusClaim(
        "auto needs at most half of LVML's calls",
        "auto",
        ("lvml",),
        score="classifier_calls_half",
        sign=-1,
    ),
)
MIN_SEGMENT_RATIO = 10
"""The largest m is compared with the smallest one if it is at least this many times as large."""
MAX_SAIF_LOSS = 0.05
"""Loss of SAIF, from the smallest to the largest m, at which SAIF still counts as kept."""
MAX_STEP_COST_RATIO = 3.0
"""Time of a step relative to that of soft at which a paradigm still counts as cheap."""
SCORE_NAMES = {
    "saif": "SAIF",
    "accuracy": "accuracy",
    "steps_to_target": "steps",
    "focus_confidence": "largest weight",
    "classifier_calls": "calls",
    "classifier_calls_half": "calls − half of LVML's",
}
"""Names in reports of the scores in `FocusResult.scores`.

`classifier_calls_half` is derived: a paradigm's own calls minus half of the other's.
"""
CALL_SCORES = ("classifier_calls", "classifier_calls_half")


def evaluate_claims(
    groups: FocusGroups, claims: Sequence[FocusClaim] = FOCUS_CLAIMS
) -> list[ClaimVerdict]:
    """Verdicts on all claims for every m, corrected for the number of tests.

    Claims about paradigms that have no runs with this m are left out.
    """
    tests = [_test_claim(groups, claim, m) for claim in claims for m in list_segment_counts(groups)]
    tests += [
        test for name in MANY_SEGMENT_PARADIGMS for test in _compare_many_segments(groups, name)
    ]
    return _decide_claims([test for test in tests if test is not None])


def evaluate_superiority(
    groups: FocusGroups, leaders: Sequence[str], others: Sequence[str], *, score: str, segments: int
) -> tuple[bool, float]:
    """Whether each of `leaders` has a larger score than each of `others`, and the corrected p.

    It is decided as the claims are. If this is one of FOCUS_CLAIMS, its verdict is the answer;
    otherwise it is one more claim about each leader in the same correction. So the answer is never
    yes where a claim about two of these paradigms is undecided. p is the largest of the leaders.
    """
    claims = list(FOCUS_CLAIMS)
    statements = []
    for leader in leaders:
        claim = _find_superiority_claim(leader, others, score)
        if claim is None:
            statement = f"{leader} has more {SCORE_NAMES[score]} than {', '.join(others)}"
            claim = FocusClaim(statement, leader, tuple(others), score=score, strict=True)
            claims.append(claim)
        statements.append(claim.statement)
    verdicts = {
        verdict.claim: verdict
        for verdict in evaluate_claims(groups, claims)
        if verdict.segments == segments
    }
    if not all(statement in verdicts for statement in statements):  # no shared seeds
        return False, math.nan
    decided = [verdicts[statement] for statement in statements]
    p_values = [verdict.p for verdict in decided]
    p = math.nan if any(map(math.isnan, p_values)) else max(p_values)
    return all(verdict.supported == "yes" for verdict in decided), p


def _find_superiority_claim(leader: str, others: Sequence[str], score: str) -> FocusClaim | None:
    """The claim of FOCUS_CLAIMS that `leader` has a larger score than each of `others`."""
    for claim in FOCUS_CLAIMS:
        if claim.score != score or claim.margin:
            continue
        if claim.sign > 0 and (claim.paradigm, set(claim.others)) == (leader, set(others)):
            return claim
        # "soft has less than lvml" says that lvml has more than soft
        if claim.sign < 0 and (claim.others, [claim.paradigm]) == ((leader,), list(others)):
            return claim
    return None


def count_tests(verdicts: Sequence[ClaimVerdict]) -> int:
    """The number of tests that Holm's correction counts."""
    return sum(not math.isnan(verdict.p) for verdict in verdicts)


@dataclass(frozen=True)
class _Comparison:
    """Difference of two paradigms in one score over seeds, with its p-values."""

    number: Estimate
    """Mean difference over seeds."""
    tails: OneSidedPValues
    """`above` is small if the claim holds, `below` is small if it fails."""
    text: str
    """Evidence, for `ClaimVerdict.evidence`."""
    is_exact: bool = False
    is_ranked: bool = False
    """Whether it was decided by a rank test."""


@dataclass(frozen=True)
class _ClaimTest:
    """A claim at one number of segments with its comparisons, before Holm's correction."""

    claim: str
    segments: int
    quantity: str
    comparisons: list[_Comparison] = field(default_factory=list)

    @property
    def tails(self) -> OneSidedPValues:
        """p-values of the claim. It holds if all comparisons hold, and fails if one fails.

        So `above` is the largest of theirs, and `below` the smallest with Bonferroni's correction.
        """
        all_tails = [comparison.tails for comparison in self.comparisons]
        if all(math.isnan(tails.above) for tails in all_tails):
            return NO_TEST
        above = max(_p_or_one(tails.above) for tails in all_tails)
        below = min(_p_or_one(tails.below) for tails in all_tails)
        return OneSidedPValues(above, min(1.0, len(all_tails) * below))

    @property
    def is_exact(self) -> bool:
        """Whether all comparisons are exact, so that there is nothing to test."""
        return all(comparison.is_exact for comparison in self.comparisons)

    @property
    def weakest_comparison(self) -> _Comparison:
        """The comparison with the weakest support of the claim."""
        return max(self.comparisons, key=lambda comparison: _p_or_one(comparison.tails.above))


def _p_or_one(p: float) -> float:
    """The p-value; 1 if there was no test (NaN)."""
    return 1.0 if math.isnan(p) else p


def _decide_claims(claim_tests: Sequence[_ClaimTest]) -> list[ClaimVerdict]:
    """Verdicts after Holm's correction for the number of tests; exact claims are not counted."""
    adjusted = adjust_p_values(
        [math.nan if test.is_exact else test.tails.two_sided for test in claim_tests]
    )
    test_count = sum(not math.isnan(p) for p in adjusted)
    verdicts = []
    for test, p in zip(claim_tests, adjusted, strict=True):
        tails = test.tails
        supported = "undecided"
        if test.is_exact or p <= SIGNIFICANCE_LEVEL:
            supported = "yes" if tails.above < tails.below else "no"  # exact ones have p 0 and 1
        weakest = test.weakest_comparison
        text = "; ".join(comparison.text for comparison in test.comparisons)
        seeds = weakest.number.n
        if 0 < seeds < MIN_SEEDS and not test.is_exact:
            text += f"; needs {MIN_SEEDS} seeds, has {seeds}"
        elif (
            weakest.is_ranked
            and supported == "undecided"
            and seeds < min_deciding_pairs(test_count)
        ):
            text += (
                f"; ranks of {seeds} seeds cannot decide: {min_deciding_pairs(test_count)} could"
            )
        verdicts.append(
            ClaimVerdict(
                claim=test.claim,
                segments=test.segments,
                supported=supported,
                number=weakest.number,
                quantity=test.quantity,
                evidence=text,
                p=p,
                is_exact=test.is_exact,
            )
        )
    return verdicts


def _test_claim(groups: FocusGroups, claim: FocusClaim, m: int) -> _ClaimTest | None:
    """Test a claim with m segments; None if a paradigm has no runs with the same seeds."""
    pairs_by_paradigm = {
        other: pair_by_seed(groups, claim.paradigm, other, m) for other in claim.others
    }
    if not all(pairs_by_paradigm.values()):
        return None
    quantity = SCORE_NAMES[claim.score]
    if claim.score != "classifier_calls_half":
        quantity += f", {claim.paradigm} − {' or '.join(claim.others)}"
    comparisons = []
    for other, pairs in pairs_by_paradigm.items():
        comparison = _compare(claim, pairs)
        if len(claim.others) > 1:
            comparison = replace(comparison, text=f"− {other}: {comparison.text}")
        comparisons.append(comparison)
    return _ClaimTest(claim.statement, m, quantity, comparisons)


def _compare(claim: FocusClaim, pairs: Sequence[tuple[FocusResult, FocusResult]]) -> _Comparison:
    """Compare two paradigms over their shared seeds; a pair has the results of one seed."""
    compared = [result for pair in pairs for result in pair]
    if claim.score == "steps_to_target" and not any(result.failed_seeds for result in compared):
        return _compare_times(claim, pairs)
    differences = [_score_difference(claim.score, *pair) for pair in pairs]
    if claim.score in CALL_SCORES and all(
        _has_fixed_calls(result) for pair in pairs for result in pair
    ):
        # all differences are equal; positive where the claim holds
        directed_value = claim.sign * differences[0] + claim.margin
        holds = directed_value > 0 or (directed_value == 0 and not claim.strict)
        tails = OneSidedPValues(0.0, 1.0) if holds else OneSidedPValues(1.0, 0.0)
        exact_estimate = Estimate(differences[0], n=len(differences))
        text = (
            f"{format_number(differences[0])}, "
            "exact: determined by the settings, equal in every seed"
        )
        return _Comparison(exact_estimate, tails, text, is_exact=True)
    return _compare_values(differences, lambda value: claim.sign * value + claim.margin, compared)


def _compare_values(
    differences: Sequence[float],
    directed: Callable[[float], float],
    compared: Sequence[FocusResult],
) -> _Comparison:
    """Test measured differences, one per seed.

    `directed` maps a difference to a number that is positive where the claim holds. Equal
    differences do not show their variance, so a rank test replaces the t test for them. There is
    no test if a seed of a compared paradigm failed: the others are left because they did not.
    """
    failures = {result.paradigm: result.failed_seeds for result in compared if result.failed_seeds}
    if failures:
        texts = [
            f"{name} failed with {count} seed{'s' * (count != 1)}"
            for name, count in failures.items()
        ]
        return _Comparison(estimate_mean([]), NO_TEST, ", ".join(texts))
    estimate = estimate_mean(differences)
    finite = [difference for difference in differences if math.isfinite(difference)]
    text = f"{estimate}, {len(finite)} seed{'s' * (len(finite) != 1)}"
    if len(finite) < MIN_SEEDS:
        return _Comparison(estimate, NO_TEST, text)
    tails = mean_test(map(directed, finite))
    if not math.isnan(tails.above):
        return _Comparison(estimate, tails, text)
    text = f"{format_number(estimate.value)} in each of {len(finite)} seeds, by ranks"
    return _Comparison(estimate, rank_test(map(directed, finite)), text, is_ranked=True)


def _compare_times(
    claim: FocusClaim, pairs: Sequence[tuple[FocusResult, FocusResult]]
) -> _Comparison:
    """Compare the steps to 90 % accuracy.

    If a seed never reached it, a rank test is used, in which "never" ranks as the latest.
    """
    times = [tuple(_time_or_inf(result, claim.score) for result in pair) for pair in pairs]
    first_time, second_time = (
        estimate_time_to_reach([pair[side] for pair in pairs], claim.score) for side in (0, 1)
    )
    medians = f"median {_format_time(first_time)} against {_format_time(second_time)}"
    if first_time.median == second_time.median < math.inf:
        medians += ", known to one validation: validate more often (`training.validate_every`)"
    # equal times are a tie, also if both are infinite (never): inf − inf would be NaN
    differences = [0.0 if first == second else first - second for first, second in times]
    if all(map(math.isfinite, differences)) and all(math.isfinite(first) for first, _ in times):
        comparison = _compare_values(
            differences, lambda value: claim.sign * value + claim.margin, ()
        )
        return replace(comparison, text=f"{medians}; difference {comparison.text}")
    no_estimate = Estimate(math.nan, n=len(differences))
    if len(differences) < MIN_SEEDS:
        return _Comparison(no_estimate, NO_TEST, medians)
    tails = rank_test(claim.sign * value + claim.margin for value in differences)
    return _Comparison(no_estimate, tails, f"{medians}; by ranks, never is last", is_ranked=True)


def _format_time(time: TimeToReach) -> str:
    median = "never" if math.isinf(time.median) else f"{format_number(time.median)} steps"
    return f"{median} (reached in {time.reached_seeds} of {time.seeds} seeds)"


def _time_or_inf(result: FocusResult, score: str) -> float:
    """Steps until the target; infinite if it was never reached (NaN or missing)."""
    time = result.scores.get(score, math.nan)
    return math.inf if math.isnan(time) else time


def _score_difference(score: str, result: FocusResult, other: FocusResult) -> float:
    """Difference of the two results of one seed in a score."""
    if score == "classifier_calls_half":
        # the claim "at most half" is: own calls − other calls / 2 ≤ 0
        return _get_score(result, "classifier_calls") - _get_score(other, "classifier_calls") / 2
    return _get_score(result, score) - _get_score(other, score)


def _get_score(result: FocusResult, name: str) -> float:
    return result.scores.get(name, math.nan)


def _has_fixed_calls(result: FocusResult) -> bool:
    """Whether every training step made the same number of calls."""
    return result.scores.get("classifier_calls_range") == 0


def _compare_many_segments(groups: FocusGroups, paradigm: str) -> list[_ClaimTest]:
    """Two tests about the largest m: SAIF is kept from the smallest m, and a step is cheap.

    Empty if the largest m is less than MIN_SEGMENT_RATIO times the smallest, or runs are missing.
    """
    few, many = min(list_segment_counts(groups)), max(list_segment_counts(groups))
    if many < MIN_SEGMENT_RATIO * few or not {
        (paradigm, few),
        (paradigm, many),
        ("soft", many),
    } <= set(groups):
        return []
    saif_few = {result.seed: _get_score(result, "saif") for result in groups[paradigm, few]}
    shared = [result for result in groups[paradigm, many] if result.seed in saif_few]
    saif_changes = [_get_score(result, "saif") - saif_few[result.seed] for result in shared]
    cost_ratios = [
        _get_score(result, "step_ms") / _get_score(soft, "step_ms")
        for result, soft in pair_by_seed(groups, paradigm, "soft", many)
    ]
    saif_claim = (
        f"{paradigm} keeps its SAIF among {many:,} segments: less by {MAX_SAIF_LOSS:g} at most"
    )
    cost_claim = (
        f"a step of {paradigm} among {many:,} segments "
        f"costs {MAX_STEP_COST_RATIO:g} times soft's at most"
    )
    return [
        _ClaimTest(
            saif_claim,
            many,
            f"SAIF, m = {many} − {few}",
            [
                _compare_values(
                    saif_changes,
                    lambda value: value + MAX_SAIF_LOSS,
                    (*groups[paradigm, few], *groups[paradigm, many]),
                )
            ],
        ),
        _ClaimTest(
            cost_claim,
            many,
            "step time relative to soft",
            [
                _compare_values(
                    cost_ratios,
                    lambda value: MAX_STEP_COST_RATIO - value,
                    (*groups[paradigm, many], *groups["soft", many]),
                )
            ],
        ),
    ]
