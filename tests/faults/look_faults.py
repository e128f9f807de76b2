"""Faults of what looks into networks and runs, and the tests that must notice them."""

from tests.faults.fault import Fault

DIAGNOSES = "tests/views/test_diagnoses.py::"
INSPECTION = "tests/test_inspection.py::"
FOREIGN = "tests/tracking/test_foreign_models.py::"
WATCH_TABLE = "tests/tracking/test_watch_table.py::"
MEASURES = "tests/contract/test_measures.py::"

LOOK_FAULTS = (
    Fault(
        "a uniform head counts as local", "views/heads.py",
        "np.clip((mass - expected) / (1 - expected), 0, 1)", "np.clip(mass, 0, 1)",
        (DIAGNOSES + "test_roles_that_maps_tell",),
    ),
    Fault(
        "rows without a choice make heads alike", "views/analysis/duplicate_heads.py",
        "np.where(choice, each, np.nan)", "each",
        (DIAGNOSES + "test_divergence_by_hand",),
    ),
    Fault(
        "a loss is read as if it should grow", "views/analysis/patience.py",
        "score.curve.values if score.larger else -score.curve.values", "score.curve.values",
        (DIAGNOSES + "test_the_best_after_a_plateau_asks_for_patience",),
    ),
    Fault(
        "the written-out pass is the fused one", "tracking/stand_in.py",
        "return self.mechanism.weights(q, k, mask, extra) @ v", "return self.mechanism.mix(q, k, v, mask, 0.0, extra)",
        (INSPECTION + "test_a_wrong_fast_way_would_be_seen",),
    ),
    Fault(
        "another head is left out", "tracking/stand_in.py",
        "found[:, self.head] = 0", "found[:, self.head - 1] = 0",
        (INSPECTION + "test_a_head_that_writes_nothing_is_worth_nothing",),
    ),
    Fault(
        "attention by hand goes unnoticed", "tracking/foreign.py",
        "recorder.suspected.append(recorder.path)", "pass",
        (FOREIGN + "test_attention_by_hand_without_the_name_is_noticed_and_seen_on_request",),
    ),
    Fault(
        "empty slots of a static cache are keys", "tracking/placement.py",
        'Placement("shared", filled, first=filled - queries)', 'Placement("shared", keys)',
        (WATCH_TABLE + "test_empty_slots_of_a_static_cache_are_no_keys",),
    ),
    Fault(
        "a learned sink is a position", "tracking/softmax_calls.py",
        "extra = self.scores.shape[-1] - (columns.stop - columns.start)", "extra = 0",
        (WATCH_TABLE + "test_a_learned_sink_is_no_position",),
    ),
    Fault(
        "a sink has a distance", "tracking/kernels.py",
        "size = max(0, min(s.size - first, places - low))", "size = s.size - first",
        (MEASURES + "test_the_pass_over_the_rows_finds_what_the_definition_says[extra-span]",),
    ),
    Fault(
        "partial attention counts as attention", "tracking/recorder.py",
        "if reason is None and forward.softmax_calls:", "if False:",
        (WATCH_TABLE + "test_a_model_of_which_nothing_is_measured_is_an_error_with_the_reason",),
    ),
)
