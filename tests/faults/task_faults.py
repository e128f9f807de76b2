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
        "intervals forget that documents share sources", "tasks/cutting/jackknife.py",
        "added = by_sources * self.source_share", "added = 0.0",
        (CUTTING + "test_jackknife.py::test_sources_that_differ_widen_the_interval_and_equal_ones_do_not",),
    ),
    Fault(
        "the best baseline is taken for the best in truth", "tasks/cutting/scores.py",
        "drawn[:, 1:].max(axis=1)", "drawn[:, 1 + values[1:].argmax()]",
        (CUTTING + "test_scores.py::test_the_choice_among_equal_baselines_is_made_again",),
    ),
    Fault(
        "a perfect model's elements are drawn one by one", "tasks/cutting/expected_error.py",
        "if hits is None or documents is None or documents.max() == 0:", "if True:",
        (CUTTING + "test_expected_error.py::test_a_perfect_model_whose_documents_go_together_shows_more",),
    ),
    Fault(
        "copies of a document go to different parts", "tasks/cutting/collection.py",
        "    texts = group_equal(found)\n", "    texts = [[at] for at in range(len(found))]\n",
        (CUTTING + "test_collection.py::test_equal_documents_are_in_one_part",),
    ),
    Fault(
        "a run may be judged by what it learned from", "held_out.py",
        "        if not allow:\n", "        if False:\n",
        ("tests/cli/test_evaluate.py::test_a_run_knows_what_it_learned_from_when_that_is_gone",),
    ),
    Fault(
        "a repeated text is not noticed", "tasks/_text_overlap.py",
        "result = tail if result is None else _join(result, tail, length)", "result = tail",
        ("tests/tasks/test_text_overlap.py::test_it_is_the_share_of_ngrams_written_out",),
    ),
    Fault(
        "copies of training examples are not counted", "tasks/data/duplicate_rows.py",
        "equal += of_inputs in inputs", "equal += of_both in pairs",
        ("tests/tasks/data/test_duplicate_rows.py::test_copies_are_counted_and_other_targets_among_them",),
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
