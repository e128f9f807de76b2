"""Faults of segmentation and of focus models, and the tests that must notice them."""

from tests.faults.fault import Fault

CUTTING = "tests/tasks/segmentation/"
FOCUSING = "tests/tasks/focus/"

TASK_FAULTS = (
    Fault(
        "Pk probes one element too far",
        "tasks/segmentation/metrics/_probes.py:compute_probe_distance",
        "round(len(truth) / (2 * parts))",
        "round(len(truth) / (2 * parts)) + 1",
        (CUTTING + "metrics/test_pk.py::test_published_values",),
    ),
    Fault(
        "WindowDiff asks whether, not how many",
        "tasks/segmentation/metrics/window_diff.py:WindowDiff.find_wrong_probes",
        "boundaries_between(truth, distance) != boundaries_between(prediction, distance)",
        "(boundaries_between(truth, distance) > 0) != (boundaries_between(prediction, distance) > 0)",
        (CUTTING + "metrics/test_window_diff.py::test_two_boundaries_are_not_one",),
    ),
    Fault(
        "a part may be one too long",
        "tasks/segmentation/decoding.py:_find_best_starts",
        "waiting[0] < end - most",
        "waiting[0] < end - most - 1",
        (CUTTING + "test_decoding.py::test_a_long_document_satisfies_both_bounds",),
    ),
    Fault(
        "the first element may begin a part",
        "tasks/segmentation/decoding.py:decode_boundaries",
        "made[0] = False",
        "pass",
        (CUTTING + "test_decoding.py::test_without_bounds_a_segment_begins_above_the_threshold",),
    ),
    Fault(
        "a calibration is measured on what it was fitted to",
        "tasks/segmentation/calibration_selection.py:_cross_fit",
        "method.fit(scores[~out], truth[~out])",
        "method.fit(scores, truth)",
        (
            CUTTING
            + "test_calibration_selection.py::test_scores_are_of_documents_that_were_not_fitted_to",
        ),
    ),
    Fault(
        "a worse calibration than none is kept",
        "tasks/segmentation/calibrator.py:Calibrator.fit",
        "found if better else nothing",
        "found",
        (CUTTING + "calibration/test_histogram.py::test_the_identity_is_chosen_if_bins_are_worse",),
    ),
    Fault(
        "intervals forget that documents share sources",
        "stats/jackknife.py:JackknifeScore.standard_error",
        "by_sources * self.source_share",
        "0.0",
        (
            "tests/stats/test_jackknife.py::test_sources_that_differ_widen_the_interval_and_equal_ones_do_not",
        ),
    ),
    Fault(
        "the best baseline is taken for the best in truth",
        "tasks/segmentation/score_table.py:_resample_best_lift",
        "drawn[:, 1:].max(axis=1)",
        "drawn[:, 1 + values[1:].argmax()]",
        (
            CUTTING
            + "test_score_table.py::test_the_selection_of_the_best_baseline_widens_the_interval",
        ),
    ),
    Fault(
        "a perfect model's elements are drawn one by one",
        "tasks/segmentation/calibration_error.py:simulate_perfect_model",
        "hits is None or documents is None or documents.max() == 0",
        "True",
        (
            CUTTING
            + "test_calibration_error.py::test_a_perfect_model_with_correlated_documents_has_a_larger_error",
        ),
    ),
    Fault(
        "copies of a document go to different parts",
        "tasks/segmentation/collection.py:_split_documents",
        "texts = group_equal(found)",
        "texts = [[at] for at in range(len(found))]",
        (CUTTING + "test_collection.py::test_equal_documents_are_in_one_split",),
    ),
    Fault(
        "a run may be judged by what it learned from",
        "tasks/segmentation/evaluation_data.py:_check_training_overlap",
        "not allow",
        "False",
        (
            "tests/cli/test_evaluate.py::test_a_run_recognizes_training_documents_after_their_file_is_gone",
        ),
    ),
    Fault(
        "a repeated text is not noticed",
        "tasks/language_model/ngram_overlap.py:_hash_ngrams",
        "tail if result is None else _join(result, tail, length)",
        "tail",
        (
            "tests/tasks/language_model/test_ngram_overlap.py::test_the_overlap_equals_the_share_of_ngrams_by_sets",
        ),
    ),
    Fault(
        "copies of training examples are not counted",
        "data/duplicates.py:find_duplicates",
        "equal += of_inputs in inputs",
        "equal += of_both in pairs",
        (
            "tests/data/test_duplicates.py::test_duplicates_and_those_with_another_target_are_counted",
        ),
    ),
    Fault(
        "averaged weights forget how inputs are scaled",
        "training/load_model.py:load_weights",
        "model.load_state_dict(weights_in(checkpoint))",
        "pass",
        (
            "tests/tasks/segmentation/test_task.py::test_averaged_weights_are_used_with_the_inputs_standardized",
        ),
    ),
    Fault(
        "REINFORCE adds its baseline",
        "tasks/focus/paradigms/reinforce.py:Reinforce.loss",
        "reward - usual",
        "reward + usual",
        (FOCUSING + "test_paradigms.py::test_the_baseline_of_reinforce_reduces_the_variance",),
    ),
    Fault(
        "the tail of the top k counts as if it were drawn once",
        "tasks/focus/estimators/topk.py:Topk.choose",
        "log_q.gather(-1, index[:, samples - drawn:]) + math.log(drawn)",
        "log_q.gather(-1, index[:, samples - drawn:])",
        (FOCUSING + "test_estimators.py::test_estimated_sums_and_gradients_are_unbiased",),
    ),
    Fault(
        "SAIF looks at the answer alone",
        "tasks/focus/metrics.py:compute_saif",
        "(one.mass > threshold) & (one.likelihood > threshold)",
        "one.likelihood > threshold",
        (FOCUSING + "test_metrics.py::test_the_scores_equal_values_counted_by_hand",),
    ),
    Fault(
        "padding can be in focus",
        "tasks/focus/segment_batch.py:SegmentBatch.__init__",
        "scores.masked_fill(~mask, NOWHERE)",
        "scores",
        (FOCUSING + "test_paradigms.py::test_padded_segments_do_not_change_the_loss",),
    ),
)
