"""A sample of the tables in docs/interventions.md, and models in training, compiled, generating."""

import pytest
import torch
import transformers

from neural.capture import intervene as intervene_module
from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import (
    HeadIntervention,
    InterventionError,
    replace_pattern,
    scale,
    zero,
)
from neural.capture.watch import watch
from tests.capture.hf_models import LENGTH, MODELS, VOCABULARY
from tests.capture.intervention_table import (
    Mismatch,
    format_block_table,
    format_table,
    list_intervention_cases,
    run_blocks,
    run_case,
)
from tests.capture.opaque_attention import OPAQUE, register_opaque_functions
from tests.capture.watch_table import Case

SAMPLE = [
    ("gpt2", "eager", "left", "dynamic"),
    ("llama", "sdpa", "right", "dynamic"),  # grouped heads
    ("llama", OPAQUE, "left", "static"),
    ("qwen2", "flex_attention", "no", "dynamic"),
    ("gpt_oss", "eager", "no", "static"),  # learned sinks
    ("deepseek_v3", "sdpa", "no", "dynamic"),  # values narrower than keys
    ("mistral", "eager", "packed", None),
    ("t5", "sdpa", "left", "dynamic"),  # cross-attention
    ("bart", OPAQUE, "no", "dynamic"),
    ("bert", "eager", "right", None),
    ("swin", "eager", "no", None),  # windows
    ("squeezebert", "eager", "no", None),  # channels before time
]
BETWEEN = [
    ("diffllama", "sdpa", "no", "dynamic"),  # the difference of two heads, and a norm
    ("qwen3_next", "sdpa", "no", "dynamic"),  # a gate
]
IDS = torch.randint(3, VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("name", "implementation", "padding", "cache"), SAMPLE)
def test_a_zeroed_head_is_one_that_the_projection_does_not_read(
    name, implementation, padding, cache
):
    outcome = run_case(Case(MODELS[name], implementation, padding, cache))
    assert outcome.layers >= 2
    assert outcome.zero_error <= 1e-6
    assert outcome.pattern_error <= 1e-5
    assert not outcome.inside
    assert not outcome.refusals


@pytest.mark.parametrize(("name", "implementation", "padding", "cache"), BETWEEN)
def test_a_head_is_changed_before_what_lies_between_it_and_the_projection(
    name, implementation, padding, cache
):
    outcome = run_case(Case(MODELS[name], implementation, padding, cache))
    assert outcome.inside
    assert outcome.zero_error <= 1e-6
    assert outcome.pattern_error <= 1e-5


def test_attention_that_is_not_recognised_is_refused_with_the_reason():
    outcome = run_case(Case(MODELS["longformer"], "eager", "no", None))
    assert outcome.layers == 0
    assert "no product of its softmax" in outcome.refusals["all"]
    model = MODELS["longformer"].build("eager")
    with (
        pytest.raises(InterventionError, match="no product of its softmax"),
        intervene(model, zero("L0 h0")),
    ):
        model(IDS)


def test_a_module_that_is_refused_after_its_first_call_has_no_layer():
    model = MODELS["pegasus_x"].build("eager")
    inputs = {"input_ids": IDS, "decoder_input_ids": IDS[:, :5]}
    with torch.no_grad(), watch(model, on_warning=lambda _: None) as capture:
        plain = model(**inputs).logits
    outputs = record_head_outputs(model, inputs)
    assert [layer.path for layer in outputs.layers] == [call.path for call in capture]
    # the encoder's first call had this number until it was refused
    message = r"`model\.encoder\.layers\.0\.self_attn` cannot be changed.*\(path, head\)"
    with pytest.raises(InterventionError, match=message), intervene(model, zero("L0 h1")):
        model(**inputs)
    with torch.no_grad(), intervene(model, zero((outputs[0].path, 1))):
        zeroed = model(**inputs).logits
    assert outputs[0].path == "model.decoder.layers.0.self_attn"
    with torch.no_grad():
        assert torch.equal(model(**inputs).logits, plain)
        model.model.decoder.layers[0].self_attn.out_proj.weight[:, 8:16] = 0
        assert torch.equal(model(**inputs).logits, zeroed)


def test_the_tables_count_what_they_show():
    assert len({case.implementation for case in list_intervention_cases(["llama"])}) == 4
    rows = format_table(["big_bird"]).splitlines()
    assert rows[0].startswith("3 cases: 0 passed, 0 of them with modules that are refused, and 3")
    assert rows[4].count("refused") >= 3
    rows = format_block_table(["gpt2", "mamba"]).splitlines()
    assert rows[0].startswith("2 models: 1 with blocks that can be skipped, 1 with a known MLP")
    assert rows[-1].startswith("| `mamba` | 0 | 0 | refused | refused | no transformer blocks")


def test_a_change_of_the_wrong_head_would_be_noticed(monkeypatch):
    original = HeadIntervention._select_heads

    def select_next_heads(self, call):
        heads = original(self, call)
        return heads if len(heads) > 1 else [(head + 1) % call.heads for head in heads]

    monkeypatch.setattr(HeadIntervention, "_select_heads", select_next_heads)
    with pytest.raises(Mismatch, match="zeroed heads differ from zeroed columns"):
        run_case(Case(MODELS["gpt2"], "sdpa", "no", "dynamic"))


def test_an_output_that_is_not_the_heads_own_would_be_noticed(monkeypatch):
    original = intervene_module.InterventionRecorder.edit_output

    def edit(self, output, *args):
        return original(self, output.flip(1), *args)

    monkeypatch.setattr(intervene_module.InterventionRecorder, "edit_output", edit)
    with pytest.raises(Mismatch, match="recording head outputs changed an output"):
        run_case(Case(MODELS["llama"], "sdpa", "no", "dynamic"))


def test_a_skipped_block_that_still_adds_something_would_be_noticed(monkeypatch):
    from neural.capture import blocks

    monkeypatch.setattr(blocks, "_get_stream", lambda args, kwargs: (0, 1.001 * args[0]))
    with pytest.raises(Mismatch):
        run_blocks(MODELS["llama"])


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_a_uniform_pattern_by_hand(implementation):
    """Llama's queries are zero: its attention is uniform without any intervention."""
    model = MODELS["llama"].build(implementation)
    with intervene(model, replace_pattern("all", "uniform")), torch.no_grad():
        uniform = model(IDS).logits
    with torch.no_grad():
        plain = model(IDS).logits
        for layer in model.model.layers:
            layer.self_attn.q_proj.weight.zero_()
        torch.testing.assert_close(uniform, model(IDS).logits, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(plain, uniform, atol=1e-3)


def zero_head_columns(model, layer, head, width=8):
    """Zero the rows of GPT-2's projection (features in, features out) that read a head."""
    with torch.no_grad():
        model.transformer.h[layer].attn.c_proj.weight[head * width : (head + 1) * width] = 0


def run_in_training(model, *interventions, seed=3):
    """Logits with dropout, by the same random numbers every time."""
    torch.manual_seed(seed)
    with torch.no_grad(), intervene(model, *interventions):
        return model(IDS).logits


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_dropout_draws_the_same_numbers(implementation):
    model = MODELS["gpt2"].build(implementation).train()
    torch.manual_seed(3)
    with torch.no_grad():
        plain = model(IDS).logits
    assert torch.equal(run_in_training(model, scale("all", 1.0)), plain)
    assert not torch.equal(run_in_training(model, scale("all", 1.0), seed=4), plain)
    zeroed = run_in_training(model, zero("L1 h2"))
    zero_head_columns(model, 1, 2)
    torch.testing.assert_close(run_in_training(model), zeroed, rtol=0, atol=1e-6)


def test_gradients_under_activation_checkpointing_are_those_without():
    gradients = []
    for checkpointing in (False, True):
        model = MODELS["llama"].build("sdpa").train()
        if checkpointing:
            model.gradient_checkpointing_enable()
        with intervene(model, zero("L0 h1"), scale("L1 h3", 0.5)):
            model(input_ids=IDS, labels=IDS, use_cache=False).loss.backward()
        gradients.append([param.grad for param in model.parameters()])
        # what reads a zeroed head gets no gradient
        projection = model.model.layers[0].self_attn.o_proj.weight.grad
        assert not projection[:, 8:16].any()
        assert projection[:, :8].any()
    assert all(torch.equal(*pair) for pair in zip(*gradients, strict=True))


def test_a_compiled_attention_module():
    """Modules that are compiled in place run in eager mode inside the block."""
    model = MODELS["gpt2"].build("sdpa")
    with torch.no_grad():
        with intervene(model, zero("L1 h2")):
            zeroed = model(IDS).logits
        model.transformer.h[1].attn.compile(backend="eager")
        plain = model(IDS).logits
        with intervene(model, zero("L1 h2")):
            assert torch.equal(model(IDS).logits, zeroed)
        assert torch.equal(model(IDS).logits, plain)


def attend_by_hand(module, query, key, value, mask, scaling=None, **_):
    """Causal attention of a user, without any function that is intercepted."""
    groups = query.shape[1] // key.shape[1]
    key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    scores = torch.einsum("bhqd,bhkd->bhqk", query, key) * scaling
    exponentials = scores.exp() * torch.ones(scores.shape[-2:]).tril()
    weights = exponentials / exponentials.sum(-1, keepdim=True)
    return torch.einsum("bhqk,bhkd->bqhd", weights, value), None


def test_gradients_flow_through_changes_of_an_opaque_function():
    transformers.AttentionInterface.register("by_hand", attend_by_hand)
    transformers.AttentionMaskInterface.register(
        "by_hand", transformers.masking_utils.flash_attention_mask
    )
    gradients = []
    for implementation in ("by_hand", "sdpa"):
        model = MODELS["llama"].build(implementation)
        factor = torch.ones(1, 4, 1, 1, requires_grad=True)
        with intervene(model, scale([(0, head) for head in range(4)], 0.5 * factor)):
            model(input_ids=IDS, labels=IDS, use_cache=False).loss.backward()
        values = model.model.layers[0].self_attn.v_proj.weight.grad
        gradients.append((factor.grad, values))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-5)
    assert all(gradient.any() for gradient in gradients[0])


def test_as_many_queries_as_heads_of_an_opaque_function():
    """(B, Q, H, D) and (B, H, Q, D) have the same shape then."""
    register_opaque_functions()
    model, ids = MODELS["llama"].build(OPAQUE), IDS[:, :4]
    outputs = record_head_outputs(model, ids)
    assert outputs[0].output.shape[1] == outputs[0].output.shape[2]
    with torch.no_grad():
        with intervene(model, zero([(0, 1), (1, 2)])):
            zeroed = model(ids).logits
        for layer, head in enumerate((1, 2)):
            projection = model.model.layers[layer].self_attn.o_proj
            projection.weight[:, 8 * head : 8 * (head + 1)] = 0
        torch.testing.assert_close(model(ids).logits, zeroed, rtol=0, atol=1e-6)


def test_generation_with_a_changed_head():
    """The tokens are those of a model whose projection does not read the head."""
    model = MODELS["gpt2"].build("sdpa")
    options = {"max_new_tokens": 8, "do_sample": False, "pad_token_id": 0}
    plain = model.generate(IDS, **options)
    with intervene(model, zero([(0, 0), (0, 1), (1, 2)])):
        generated = model.generate(IDS, **options)
    assert torch.equal(model.generate(IDS, **options), plain)
    for layer, head in ((0, 0), (0, 1), (1, 2)):
        zero_head_columns(model, layer, head)
    assert torch.equal(model.generate(IDS, **options), generated)
    assert not torch.equal(plain, generated)
