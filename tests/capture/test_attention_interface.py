"""Attention functions registered with transformers, also opaque ones, are recorded exactly."""

import numpy as np
import pytest
import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask, flash_attention_mask

import neural
from neural.capture import attention_interface
from neural.capture.watch import NoAttentionError
from tests.capture.opaque_attention import (
    OPAQUE,
    OPAQUE_DENSE,
    attend_like_flash,
    collect_opaque_weights,
    register_opaque_functions,
)

BATCH, LENGTH, VOCABULARY = 2, 13, 29


def look_ahead(*args, **kwargs):
    """Attention that sees one later key: no mask that transformers passes says so."""
    return attend_like_flash(*args, **kwargs, shift=1)


def not_a_softmax(module, query, key, value, attention_mask, **kwargs):
    """Linear attention."""
    keys = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    values = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
    return (query @ (keys.mT @ values)).transpose(1, 2), None


@pytest.fixture(autouse=True)
def registered():
    register_opaque_functions()
    for name, function, mask in (
        ("look_ahead", look_ahead, flash_attention_mask),
        ("not_a_softmax", not_a_softmax, eager_mask),
    ):
        AttentionInterface.register(name, function)
        AttentionMaskInterface.register(name, mask)


def build(name, implementation, **options):
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(
        name,
        vocab_size=VOCABULARY,
        hidden_size=24,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        max_position_embeddings=options.pop("max_position_embeddings", 64),
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        **options,
    )
    model = transformers.AutoModel.from_config(config, attn_implementation=implementation)
    with torch.no_grad():
        for param in model.parameters():  # wide weights: attention far from uniform
            param.copy_(torch.randn_like(param) * 0.5)
    return model.eval()


def random_ids(batch=BATCH):
    return torch.randint(3, VOCABULARY, (batch, LENGTH), generator=torch.Generator().manual_seed(1))


MODELS = {
    "llama": {"num_key_value_heads": 2},
    "mistral": {"num_key_value_heads": 2, "sliding_window": 5},
    "bert": {},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 8},
}


@pytest.mark.parametrize("padding", ["none", "left", "right"])
@pytest.mark.parametrize("implementation", [OPAQUE, OPAQUE_DENSE])
@pytest.mark.parametrize("name", MODELS)
def test_opaque_functions_give_the_weights_of_eager(name, implementation, padding):
    ids, real = random_ids(), torch.ones(BATCH, LENGTH, dtype=torch.long)
    if padding != "none":
        real[0, slice(0, 4) if padding == "left" else slice(-4, None)] = 0
    inputs = {"input_ids": ids, "attention_mask": real}
    model = build(name, implementation, **MODELS[name])
    capture = neural.watch(model, inputs, on_warning=pytest.fail)
    expected = build(name, "eager", **MODELS[name])(**inputs, output_attentions=True).attentions
    assert len(capture) == 2
    is_real = real.bool().numpy()
    for call, weights in zip(capture, expected, strict=True):
        error = np.abs(call.maps() - weights.detach().numpy())
        # rows of padding have no defined weights
        assert error.transpose(0, 2, 1, 3)[is_real].max() < 1e-5


def test_soft_caps_are_recorded():
    options = {"num_key_value_heads": 2, "head_dim": 8, "attn_logit_softcapping": 3.0}
    options |= {"sliding_window": 5, "query_pre_attn_scalar": 8}
    ids = random_ids()
    capture = neural.watch(build("gemma2", OPAQUE, **options), ids, on_warning=pytest.fail)
    weights = build("gemma2", "eager", **options)(ids, output_attentions=True).attentions
    for call, expected in zip(capture, weights, strict=True):
        assert np.abs(call.maps() - expected.detach().numpy()).max() < 1e-5


def test_learned_sinks_are_recorded():
    options = {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 5, "num_local_experts": 2}
    options |= {"num_experts_per_tok": 1}
    ids = random_ids()
    capture = neural.watch(build("gpt_oss", OPAQUE, **options), ids, on_warning=pytest.fail)
    weights = build("gpt_oss", "eager", **options)(ids, output_attentions=True).attentions
    for call, expected in zip(capture, weights, strict=True):
        maps = call.maps()
        assert np.abs(maps - expected.detach().numpy()[..., :LENGTH]).max() < 1e-5
        assert maps.sum(-1).max() < 1  # the rest is the mass of the sink
        assert call.measures["extra_key_mass"].max() > 0.01


def test_packed_documents_are_recorded():
    ids = random_ids(batch=1)
    positions = torch.cat((torch.arange(5), torch.arange(LENGTH - 5)))[None]
    model = build("llama", OPAQUE, num_key_value_heads=2)
    capture = neural.watch(
        model, {"input_ids": ids, "position_ids": positions}, on_warning=pytest.fail
    )
    for call in capture:
        maps = call.maps()
        assert np.all(maps[:, :, 5:, :5] == 0) and maps[:, :, 5:, 5:].max() > 0
    alone = neural.watch(build("llama", "eager", num_key_value_heads=2), ids[:, 5:])
    np.testing.assert_allclose(capture[0].maps()[..., 5:, 5:], alone[0].maps(), atol=1e-5)


def test_cached_generation_is_recorded():
    ids = random_ids()
    model = build("llama", OPAQUE, num_key_value_heads=2)
    cache = model(ids[:, :-1], use_cache=True).past_key_values
    capture = neural.watch(model, {"input_ids": ids[:, -1:], "past_key_values": cache})
    whole = neural.watch(model, ids)
    for step, full in zip(capture, whole, strict=True):
        np.testing.assert_allclose(step.maps()[:, :, 0], full.maps()[:, :, -1], atol=1e-5)


def test_what_the_arguments_do_not_explain_is_refused():
    for name in ("look_ahead", "not_a_softmax"):
        model = build("llama", name, num_key_value_heads=2)
        with pytest.raises(
            NoAttentionError, match=r"layers\.0\.self_attn.*is not that of a softmax"
        ):
            neural.watch(model, random_ids())


def test_small_values_do_not_hide_a_wrong_mask():
    """The tolerance is relative: with values of 1e-5, every output is close to every other."""
    for name, is_known in (("look_ahead", False), (OPAQUE, True)):
        model = build("llama", name, num_key_value_heads=2)
        with torch.no_grad():
            for layer in model.layers:
                layer.self_attn.v_proj.weight.mul_(1e-5)
        if is_known:
            assert len(neural.watch(model, random_ids(), on_warning=pytest.fail)) == 2
        else:
            with pytest.raises(NoAttentionError, match="is not that of a softmax"):
                neural.watch(model, random_ids())


def test_dropout_is_refused_with_advice():
    model = build("llama", OPAQUE, num_key_value_heads=2, attention_dropout=0.5).train()
    with pytest.raises(NoAttentionError, match=r"applies dropout: call model\.eval\(\) first"):
        neural.watch(model, random_ids())


def test_outputs_are_bit_identical_and_the_registry_is_restored():
    model, ids = build("mistral", OPAQUE, **MODELS["mistral"]), random_ids()
    before = model(ids).last_hidden_state
    lookup = AttentionInterface.get_interface
    with neural.watch(model):
        watched = model(ids).last_hidden_state
    assert torch.equal(before, watched)
    assert AttentionInterface.get_interface is lookup
    assert "__getitem__" not in vars(AttentionInterface)


def test_half_precision_is_recorded():
    model = build("llama", OPAQUE, num_key_value_heads=2).to(torch.bfloat16)
    capture = neural.watch(model, random_ids(), on_warning=pytest.fail)
    assert len(capture) == 2 and np.allclose(capture[0].maps().sum(-1), 1, atol=1e-4)


def compare_with_eager(name, implementation, inputs, make_cache, *, options, real=None):
    """Compare maps and measures of one pass with those of eager attention, with equal caches."""
    captures = [
        neural.watch(
            build(name, kind, **options),
            {**inputs, "past_key_values": make_cache()},
            on_warning=pytest.fail,
        )
        for kind in (implementation, "eager")
    ]
    for call, expected in zip(*captures, strict=True):
        kept = np.ones(call.maps().shape[:3:2], bool) if real is None else real.bool().numpy()
        error = np.abs(call.maps() - expected.maps()).transpose(0, 2, 1, 3)[kept]
        assert error.max() < 1e-5
        shared = set(call.measures) & set(expected.measures)
        assert shared >= {"entropy", "span", "previous_token_mass", "first_key_mass"}
        for measure in shared:
            np.testing.assert_allclose(
                call.measures[measure], expected.measures[measure], atol=1e-4, err_msg=measure
            )


GROUPED = {"num_key_value_heads": 2}
WINDOW = {"num_key_value_heads": 2, "sliding_window": 5}


def make_prefix(heads=2, width=6, length=3):
    """A cache with keys and values that no token has, as prefix tuning puts there."""
    generator = torch.Generator().manual_seed(3)
    cache = transformers.DynamicCache()
    for layer in range(2):
        keys, values = (
            torch.randn(BATCH, heads, length, width, generator=generator) for _ in range(2)
        )
        cache.update(keys, values, layer)
    return cache


@pytest.mark.parametrize("padding", ["none", "left", "right"])
@pytest.mark.parametrize("implementation", [OPAQUE, OPAQUE_DENSE])
def test_prefix_tokens_are_keys(implementation, padding):
    ids, real = random_ids(), torch.ones(BATCH, LENGTH, dtype=torch.long)
    if padding != "none":
        real[0, slice(0, 4) if padding == "left" else slice(-4, None)] = 0
    whole = torch.cat((torch.ones(BATCH, 3, dtype=torch.long), real), 1)
    inputs = {"input_ids": ids, "attention_mask": whole}
    compare_with_eager("llama", implementation, inputs, make_prefix, options=GROUPED, real=real)
    capture = neural.watch(
        build("llama", implementation, **GROUPED), {**inputs, "past_key_values": make_prefix()}
    )
    assert capture[0].maps().shape == (BATCH, 4, LENGTH, LENGTH + 3)
    assert capture[0].attention.first_query_position == 3
    assert capture[0].maps()[..., :3].max() > 0.01


@pytest.mark.parametrize("kind", ["dynamic", "static"])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("implementation", [OPAQUE, OPAQUE_DENSE])
def test_steps_with_static_and_sliding_caches_have_the_rows_of_one_pass(implementation, step, kind):
    ids = random_ids()
    model = build("mistral", implementation, **WINDOW)
    cache = (
        transformers.DynamicCache(config=model.config)  # keeps the window only
        if kind == "dynamic"
        else transformers.StaticCache(config=model.config, max_cache_len=32)
    )
    mask = torch.ones(BATCH, LENGTH, dtype=torch.long)
    start = LENGTH - step
    with torch.no_grad():
        model(ids[:, :start], attention_mask=mask[:, :start], past_key_values=cache)
    inputs = {"input_ids": ids[:, start:], "attention_mask": mask, "past_key_values": cache}
    capture = neural.watch(model, inputs, on_warning=pytest.fail)
    one_pass = build("mistral", "eager", **WINDOW)(ids, output_attentions=True).attentions
    for call, weights in zip(capture, one_pass, strict=True):
        maps, rows = call.maps(), weights.detach().numpy()[:, :, start:]
        dropped = LENGTH - maps.shape[3]  # keys that have left the window
        assert dropped >= 0 and not rows[..., :dropped].any()
        assert np.abs(maps - rows[..., dropped:]).max() < 1e-5
        assert call.attention.first_query_position == start - dropped


@pytest.mark.parametrize("rows", [1, 2])
def test_packed_batches_by_their_ends_are_recorded(rows):
    """`cu_seq_lens` counts the tokens of all rows; no document may cross a row."""
    ids = random_ids(batch=rows)
    ends = torch.tensor([0, 4, LENGTH, LENGTH + 7, 2 * LENGTH][: 1 + 2 * rows], dtype=torch.int32)
    kwargs = {"cu_seq_lens_q": ends, "cu_seq_lens_k": ends, "max_length_q": 9, "max_length_k": 9}
    positions = torch.arange(LENGTH).repeat(rows, 1)
    inputs = {"input_ids": ids, "position_ids": positions, "use_cache": False, **kwargs}
    model = build("llama", OPAQUE, **GROUPED)
    with collect_opaque_weights() as weights:
        capture = neural.watch(model, inputs, on_warning=pytest.fail)
    for call, (_, expected) in zip(capture, weights, strict=True):
        assert np.abs(call.maps() - expected).max() < 1e-5
        assert not call.maps()[0, :, 4:, :4].any()
    assert rows == 1 or not capture[0].maps()[1, :, 7:, :7].any()


@pytest.mark.parametrize("implementation", [OPAQUE, OPAQUE_DENSE])
@pytest.mark.parametrize("name", ["llama", "bert"])
def test_queries_that_are_padding_are_not_measured(name, implementation):
    """An opaque function may return anything for them; here zeros."""
    ids, real = random_ids(), torch.ones(BATCH, LENGTH, dtype=torch.long)
    real[0, -4:] = 0
    inputs = {"input_ids": ids, "attention_mask": real}
    captures = [
        neural.watch(build(name, kind, **MODELS[name]), inputs)
        for kind in (implementation, "eager")
    ]
    for call, expected in zip(*captures, strict=True):
        for measure in ("entropy", "span", "diagonal_mass"):
            np.testing.assert_allclose(
                call.measures[measure], expected.measures[measure], atol=1e-5, err_msg=measure
            )


def test_rows_to_compare_include_the_first_and_the_last():
    for queries in (1, 7, 8, 63, 64, 65, 1000):
        blocks = attention_interface._select_rows(queries)
        rows = [row for block in blocks for row in range(block.start, block.stop)]
        assert rows[0] == 0 and rows[-1] == queries - 1
        assert len(rows) == min(queries, attention_interface.MAX_CHECKED_ROWS)
        assert queries > 64 or rows == list(range(queries))


def test_long_inputs_are_checked_by_a_part_of_their_rows():
    ids = random_ids().repeat(1, 20)[:1]
    options = {**WINDOW, "max_position_embeddings": 512, "sliding_window": 37}
    with collect_opaque_weights() as weights:
        capture = neural.watch(build("mistral", OPAQUE, **options), ids, on_warning=pytest.fail)
    for call, (_, expected) in zip(capture, weights, strict=True):
        assert np.abs(call.maps() - expected).max() < 1e-5


def test_equal_values_cannot_be_checked_and_are_refused():
    ids = torch.full((1, LENGTH), 7)  # one token: every mask gives the same output
    with pytest.raises(NoAttentionError, match=r"values of all its keys are equal"):
        neural.watch(build("llama", "look_ahead", **GROUPED), ids)


def test_a_function_registered_under_a_known_name_is_opaque():
    original = AttentionInterface._global_mapping["sdpa"]
    AttentionInterface.register("sdpa", attend_like_flash)
    try:
        ids = random_ids()
        capture = neural.watch(build("llama", "sdpa", **GROUPED), ids, on_warning=pytest.fail)
    finally:
        AttentionInterface.register("sdpa", original)
    weights = build("llama", "eager", **GROUPED)(ids, output_attentions=True).attentions
    assert len(capture) == 2
    assert np.abs(capture[1].maps() - weights[1].detach().numpy()).max() < 1e-5


def test_a_function_that_ignores_an_argument_is_read_as_it_computes():
    def without_cap(*args, softcap=None, sliding_window=None, **kwargs):
        return attend_like_flash(*args, **kwargs)

    AttentionInterface.register("without_cap", without_cap)
    AttentionMaskInterface.register("without_cap", flash_attention_mask)
    options = {"num_key_value_heads": 2, "head_dim": 8, "attn_logit_softcapping": 3.0}
    options |= {"sliding_window": 5, "query_pre_attn_scalar": 8}
    model = build("gemma2", "without_cap", **options)
    with collect_opaque_weights() as weights:
        capture = neural.watch(model, random_ids(), on_warning=pytest.fail)
    for call, (_, expected) in zip(capture, weights, strict=True):
        assert np.abs(call.maps() - expected).max() < 1e-5


def test_the_best_reading_is_chosen_in_half_precision():
    """In 16 bits a window that is one too wide is within the tolerance; the right one is closer."""
    model = build("mistral", OPAQUE, **WINDOW).to(torch.bfloat16)
    capture = neural.watch(model, random_ids(), on_warning=pytest.fail)
    for call in capture:
        maps = call.maps()
        rows = np.arange(LENGTH)
        distance = rows[:, None] - rows
        assert not maps[..., distance > 4].any() and (maps[..., distance == 4] > 0).any()


def test_shapes_that_are_not_attention_are_refused():
    def folded(module, query, key, value, attention_mask, **kwargs):
        output, _ = attend_like_flash(module, query, key, value, attention_mask, **kwargs)
        return output.flatten(0, 1), None

    AttentionInterface.register("folded", folded)
    AttentionMaskInterface.register("folded", flash_attention_mask)
    with pytest.raises(NoAttentionError, match="returns shapes that are not known"):
        neural.watch(build("llama", "folded", **GROUPED), random_ids())
