"""Faults of conclusions (verdicts, corrections, scores of text), and the tests that must notice them."""

from tests.faults.fault import Fault

CLAIMS = "tests/findings/test_focus_claims.py::"
PAIRED = "tests/stats/test_comparisons.py::"
SWEEP = "tests/workflows/test_sweep.py::"
JUDGE = "tests/findings/test_sample_quality.py::"

VERDICT_FAULTS = (
    Fault(
        "one comparison speaks for all",
        "findings/focus_claims.py:_ClaimTest.tails",
        "max((_known(tails.above) for tails in known))",
        "min((_known(tails.above) for tails in known))",
        (CLAIMS + "test_against_several_paradigms_every_interval_must_pass",),
    ),
    Fault(
        "never is the earliest",
        "findings/focus_claims.py:_time_or_inf",
        "math.inf if math.isnan(time) else time",
        "0.0 if math.isnan(time) else time",
        (CLAIMS + "test_never_is_later_than_any_step",),
    ),
    Fault(
        "many tests are taken for one",
        "stats/comparisons.py:adjust_p_values",
        "p_values[index] * (len(order) - position)",
        "p_values[index]",
        (CLAIMS + "test_many_claims_share_one_error_rate",),
    ),
    Fault(
        "a selected setting was not selected",
        "stats/comparisons.py:compare_pairs",
        "min(1.0, number_of_pairs * p)",
        "p",
        (PAIRED + "test_a_selected_baseline_counts_every_pair",),
    ),
    Fault(
        "two seeds have an interval",
        "stats/estimate.py:Estimate.__post_init__",
        "self.n < MIN_INTERVAL_VALUES",
        "self.n < 2",
        ("tests/stats/test_estimate.py::test_fewer_than_three_values_have_no_interval",),
    ),
    Fault(
        "an accuracy may be above 1",
        "stats/estimate.py:Estimate.to_score",
        "self.clip(least, most)",
        "self",
        ("tests/stats/test_estimate.py::test_a_score_has_its_interval_inside_its_bounds",),
    ),
    Fault(
        "a confirmation reports the best validation",
        "workflows/sweep.py:_group_points",
        "row.last if last else row.score",
        "row.score",
        (SWEEP + "test_confirmation_trials_do_not_change_the_selection",),
    ),
    Fault(
        "loops are as good as real text",
        "findings/quality/distance_from_real.py:DistanceFromReal.compute_scores",
        "bits + average(real.bits) * repeated",
        "bits",
        (JUDGE + "test_repetition_adds_the_bits_of_real_text_to_the_distance",),
    ),
)
