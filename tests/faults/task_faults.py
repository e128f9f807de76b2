"""Faults of segmentation and of focus models, and the tests that must notice them."""

from tests.faults.fault import Fault

CUTTING = "tests/tasks/cutting/"
FOCUSING = "tests/tasks/focusing/"

TASK_FAULTS = (
    Fault(
        "Pk probes one element too far", "tasks/cutting/metrics/_probes.py",
        "round(len(truth) / (2 * parts))", "round(len(truth) / (2 * parts)) + 1",
        (CUTTING + "metrics/test_pk.py::test_the_known_values",),
    ),
    Fault(
        "WindowDiff asks whether, not how many", "tasks/cutting/metrics/window_diff.py",
        "boundaries_between(truth, distance) != boundaries_between(prediction, distance)",
        "(boundaries_between(truth, distance) > 0) != (boundaries_between(prediction, distance) > 0)",
        (CUTTING + "metrics/test_window_diff.py::test_two_boundaries_are_not_one",),
    ),
    Fault(
        "a part may be one too long", "tasks/cutting/decode.py",
        "waiting[0] < end - most", "waiting[0] < end - most - 1",
        (CUTTING + "test_decode.py::test_a_long_document_keeps_both_limits",),
    ),
    Fault(
        "the first element may begin a part", "tasks/cutting/decode.py",
        "        made[0] = False\n", "",
        (CUTTING + "test_decode.py::test_without_limits_a_part_begins_above_the_threshold",),
    ),
    Fault(
        "a calibration is measured on what it was fitted to", "tasks/cutting/calibration_choice.py",
        "method.fit(scores[~out], truth[~out])", "method.fit(scores, truth)",
        (CUTTING + "test_calibration_choice.py::test_what_is_measured_was_not_fitted_to",),
    ),
    Fault(
        "a worse calibration than none is kept", "tasks/cutting/calibrated.py",
        "return found if better else nothing", "return found",
        (CUTTING + "calibration/test_histogram.py::test_where_bins_would_be_worse_nothing_is_changed",),
    ),
    Fault(
        "averaged weights forget how inputs are scaled", "experiments.py",
        "    model.load_state_dict(weights_in(checkpoint))\n", "",
        ("tests/tasks/test_segmentation.py::test_averaged_weights_are_used_with_the_inputs_standardized",),
    ),
    Fault(
        "REINFORCE adds its baseline", "tasks/focusing/paradigms/reinforce.py",
        "(reward - usual)", "(reward + usual)",
        (FOCUSING + "test_paradigms.py::test_the_baseline_of_reinforce_makes_its_gradient_calmer",),
    ),
    Fault(
        "the tail of the top k counts as if it were drawn once", "tasks/focusing/estimators/topk.py",
        " + math.log(drawn)", "",
        (FOCUSING + "test_estimators.py::test_sums_over_the_focus_and_their_gradients_have_no_bias",),
    ),
    Fault(
        "SAIF looks at the answer alone", "tasks/focusing/measures.py",
        "(one.mass > threshold) & (one.likelihood > threshold)", "one.likelihood > threshold",
        (FOCUSING + "test_measures.py::test_the_scores_are_what_a_hand_counts",),
    ),
    Fault(
        "padding can be in focus", "tasks/focusing/segments.py",
        "scores.masked_fill(~mask, NOWHERE)", "scores",
        (FOCUSING + "test_paradigms.py::test_segments_that_are_padding_change_nothing",),
    ),
)  # fmt: skip
