"""Faults of what looks into networks and runs, and the tests that must notice them."""

from tests.faults.fault import Fault

DIAGNOSES = "tests/findings/test_diagnostic_checks.py::"
INSPECTION = "tests/workflows/test_model_inspection.py::"
INTERVENE = "tests/capture/test_intervene.py::"
FOREIGN = "tests/capture/test_foreign_models.py::"
WATCH_TABLE = "tests/capture/test_watch_table.py::"
MEASURES = "tests/contract/test_measures.py::"

LOOK_FAULTS = (
    Fault(
        "a uniform head counts as local",
        "findings/head_roles.py:MassSums.score_excess",
        "(self.mass / self.rows - expected) / (1 - expected)",
        "self.mass / self.rows",
        (DIAGNOSES + "test_roles_from_maps",),
    ),
    Fault(
        "rows without a choice make heads alike",
        "findings/checks/duplicate_heads.py:mean_js_divergence",
        "np.where(choice, each, np.nan)",
        "each",
        (DIAGNOSES + "test_divergence_by_hand",),
    ),
    Fault(
        "a loss is read as if it should grow",
        "findings/checks/patience.py:Patience.find_symptom",
        "score.curve.values if score.larger else -score.curve.values",
        "score.curve.values",
        (DIAGNOSES + "test_a_best_score_after_a_plateau_needs_patience",),
    ),
    Fault(
        "dense weights are computed by the fast path",
        "capture/patching.py:DenseWeightsPatch.attend",
        "self.mechanism.weights(q, k, mask, extra) @ v",
        "self.mechanism.attend(q, k, v, mask, 0.0, extra)",
        (INSPECTION + "test_a_wrong_fast_path_is_noticed",),
    ),
    Fault(
        "another head is changed",
        "capture/interventions.py:HeadIntervention.apply",
        "call.output.index_copy(1, index, new_output)",
        "call.output.index_copy(1, (index + 1) % call.heads, new_output)",
        (
            INSPECTION + "test_a_head_without_output_weights_has_no_importance",
            INTERVENE + "test_the_same_holds_for_models_of_hugging_face",
        ),
    ),
    Fault(
        "the mean counts padding",
        "capture/interventions.py:_ReplaceByMean._average",
        "layer.real is None",
        "True",
        (INTERVENE + "test_padding_does_not_count_in_the_mean",),
    ),
    Fault(
        "all examples change",
        "capture/interventions.py:HeadIntervention.apply",
        "is_changed is not None",
        "False",
        (INTERVENE + "test_only_the_named_examples_and_positions_change",),
    ),
    Fault(
        "values before the cache are lost",
        "capture/watch.py:_record_mechanism",
        "recorder.has_edits and is_cached",
        "False",
        (INTERVENE + "test_a_cache_gives_what_the_full_pass_gives",),
    ),
    Fault(
        "a pass repeated by backward is not changed",
        "capture/hooks.py:_is_repeated_by_backward",
        "is_backward and torch._C._len_torch_function_stack() == 0",
        "False",
        (INTERVENE + "test_checkpointed_layers_have_the_same_gradients",),
    ),
    Fault(
        "folded heads are unfolded in the wrong order",
        "capture/output_editing.py:_find_output_axes",
        "[*axes[:-2], axes[-1], axes[-2]] if product.is_transposed else axes",
        "axes",
        (
            "tests/capture/test_output_editing.py::test_the_product_with_values_is_edited_in_its_own_layout",
        ),
    ),
    Fault(
        "attention by a softmax goes unnoticed",
        "capture/hooks.py:intercept_attention.intercept",
        "recorder.suspected_paths.append(recorder.path)",
        "pass",
        (
            FOREIGN
            + "test_attention_by_a_softmax_in_another_module_is_noticed_and_captured_on_request",
        ),
    ),
    Fault(
        "empty slots of a static cache are keys",
        "capture/placement.py:place_queries",
        "Placement('queries_and_keys', filled, query_offset=filled - queries)",
        "Placement('queries_and_keys', keys)",
        (WATCH_TABLE + "test_empty_slots_of_a_static_cache_are_not_keys",),
    ),
    Fault(
        "a learned sink is a position",
        "capture/softmax_calls.py:SoftmaxCall.reordered_scores",
        "self.scores.shape[-1] - (columns.stop - columns.start)",
        "0",
        (WATCH_TABLE + "test_a_learned_sink_is_not_a_position",),
    ),
    Fault(
        "partial attention counts as attention",
        "capture/recorder.py:Recorder._check_calls",
        "reason is None and forward.softmax_calls",
        "False",
        (WATCH_TABLE + "test_a_model_without_any_measured_call_is_an_error_with_the_reason",),
    ),
)
