"""Faults of conclusions (verdicts, corrections, scores of text), and the tests that must notice them."""

from tests.faults.fault import Fault

CLAIMS = "tests/views/test_focus_claims.py::"
PAIRED = "tests/views/test_paired.py::"
SWEEP = "tests/test_sweep.py::"
JUDGE = "tests/views/test_judge.py::"

VERDICT_FAULTS = (
    Fault(
        "one comparison speaks for all",
        "views/focus_claims.py",
        "above = max(_known(tails.above)",
        "above = min(_known(tails.above)",
        (CLAIMS + "test_against_several_every_interval_must_pass",),
    ),
    Fault(
        "never is the earliest",
        "views/focus_claims.py",
        "return math.inf if math.isnan(time) else time",
        "return 0.0 if math.isnan(time) else time",
        (CLAIMS + "test_never_is_later_than_any_step",),
    ),
    Fault(
        "many tests are taken for one",
        "views/significance.py",
        "p_values[index] * (len(order) - position)",
        "p_values[index]",
        (CLAIMS + "test_many_claims_are_held_to_one_error_rate",),
    ),
    Fault(
        "a selected setting was not selected",
        "views/paired.py",
        "min(1.0, number_of_pairs * p)",
        "p",
        (PAIRED + "test_a_selected_baseline_counts_every_pair",),
    ),
    Fault(
        "a confirmation reports the best validation",
        "sweep.py",
        "row.last if last else row.score",
        "row.score",
        (SWEEP + "test_what_confirms_a_setting_does_not_select_it",),
    ),
    Fault(
        "loops are as good as real text",
        "views/quality/distance_from_real.py",
        "bits + average(real.bits) * repeated",
        "bits",
        (JUDGE + "test_text_that_repeats_itself_is_farther_by_the_bits_of_real_text",),
    ),
)
