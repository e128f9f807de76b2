"""Attention functions registered with transformers, also opaque ones, are recorded exactly."""

import numpy as np
import pytest
import torch
import transformers
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask, flash_attention_mask

import neural
from neural.capture.watch import NoAttentionError
from tests.capture.opaque_attention import (
    OPAQUE,
    OPAQUE_DENSE,
    attend_like_flash,
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
        max_position_embeddings=64,
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
