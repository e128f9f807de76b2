"""neural.intervene: heads are changed exactly where asked, and the model is as before after it."""

import pytest
import torch
from torch import nn

import neural
from neural.capture.interventions import InterventionError, parse_head
from neural.nn.kv_cache import CachedModel
from tests.hugging_face_folders import build_gpt2, build_t5, train_tokenizer

zero, scale, patch = (
    neural.interventions.zero,
    neural.interventions.scale,
    neural.interventions.patch,
)
replace_by_mean = neural.interventions.replace_by_mean
replace_pattern = neural.interventions.replace_pattern

PROGRAM = """
network Tiny {
    input: (11,)
    layers:
        Embedding(input_dim=23, output_dim=24)
        TransformerDecoder(num_heads=3, d_model=24, dff=29, attention="%s") * 2
        Output(23, activation="softmax")
    loss: "sparse_categorical_crossentropy"
}
"""


def build_own(attention="self"):
    torch.manual_seed(0)
    return neural.parse(PROGRAM % attention).build().eval()


@pytest.fixture(scope="module")
def own():
    return build_own(), torch.randint(23, (5, 11), generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def gpt2():
    tokenizer = train_tokenizer()
    return build_gpt2(tokenizer), torch.randint(len(tokenizer), (3, 11))


def run(model, *args, **kwargs):
    with torch.no_grad():
        output = model(*args, **kwargs)
    return getattr(output, "logits", output)


def zero_columns(model, path, head, width, inputs, axis):
    """The output with the columns of one head of an output projection set to zero."""
    weight = model.get_submodule(path).weight
    saved = weight.detach().clone()
    with torch.no_grad():
        weight.narrow(axis, head * width, width).zero_()
    try:
        return run(model, inputs)
    finally:
        with torch.no_grad():
            weight.copy_(saved)


@pytest.mark.parametrize(
    "attention", ["self", "localized", "boundary_aware", "additive", "topk", "linear"]
)
def test_zeroing_a_head_equals_zeroing_its_columns_of_the_output_projection(attention):
    model, x = build_own(attention), torch.randint(23, (5, 11))
    path = "transformer_decoder.1.attention.sublayer.output"
    expected = zero_columns(model, path, 2, 8, x, axis=1)
    before = run(model, x)
    with neural.intervene(model, zero("L1 h2")):
        changed = run(model, x)
    assert (changed - expected).abs().max() < 1e-6
    assert (changed - before).abs().max() > 1e-4
    assert torch.equal(run(model, x), before)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_the_same_holds_for_models_of_hugging_face(gpt2, implementation):
    model, ids = gpt2
    model.set_attn_implementation(implementation)
    expected = zero_columns(model, "transformer.h.1.attn.c_proj", 1, 32, ids, axis=0)
    before = run(model, ids)
    with neural.intervene(model, zero("L1 h1")):
        changed = run(model, ids)
    assert (changed - expected).abs().max() < 1e-6
    assert (changed - before).abs().max() > 1e-3
    assert torch.equal(run(model, ids), before)


@pytest.mark.parametrize("need_weights", [True, False])
def test_the_same_holds_for_torch_multihead_attention(need_weights):
    torch.manual_seed(0)
    attention, x = nn.MultiheadAttention(12, 3, batch_first=True).eval(), torch.randn(2, 5, 12)

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = attention

        def forward(self, x):
            return self.attention(x, x, x, need_weights=need_weights)[0]

    model = Model()
    before = run(model, x)
    expected = zero_columns(model, "attention.out_proj", 1, 4, x, axis=1)
    with neural.intervene(model, zero("L0 h1")):
        assert (run(model, x) - expected).abs().max() < 1e-6
    assert torch.equal(run(model, x), before)


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_patching_a_pass_into_itself_changes_no_bit(gpt2, own, implementation):
    model, ids = gpt2
    model.set_attn_implementation(implementation)
    for net, x in ((model, ids), own):
        before, outputs = run(net, x), neural.record_head_outputs(net, x)
        with neural.intervene(net, patch("all", outputs)):
            assert torch.equal(run(net, x), before)


def test_a_patch_brings_in_the_output_of_the_other_input(own):
    model, x = own
    source = neural.record_head_outputs(model, x.flip(0))
    with neural.intervene(model, patch("L0 h1", source)):
        mixed = neural.record_head_outputs(model, x)
    assert torch.equal(mixed[0].output[:, 1], source[0].output[:, 1])
    assert torch.equal(mixed[0].output[:, 0], neural.record_head_outputs(model, x)[0].output[:, 0])


def test_a_permutation_of_rows_resamples_heads_from_other_examples(own):
    model, x = own
    clean, rows = neural.record_head_outputs(model, x), [1, 2, 3, 4, 0]
    with neural.intervene(model, patch("L1 h0", clean, rows=rows)):
        changed = neural.record_head_outputs(model, x)
    assert torch.equal(changed[1].output[:, 0], clean[1].output[rows, 0])


def test_the_mean_is_over_examples_and_positions(own):
    model, x = own
    reference = neural.record_head_outputs(model, x)
    outputs = neural.record_head_outputs(model, x[:2], replace_by_mean("L0 h2", reference))
    by_hand = sum(reference[0].output[b, 2, q] for b in range(5) for q in range(11)) / 55
    assert (outputs[0].output[:, 2] - by_hand).abs().max() < 1e-6
    per_position = replace_by_mean("L0 h2", reference, per_position=True)
    outputs = neural.record_head_outputs(model, x[:2], per_position)
    by_hand = sum(reference[0].output[b, 2, 7] for b in range(5)) / 5
    assert (outputs[0].output[:, 2, 7] - by_hand).abs().max() < 1e-6


def test_padding_does_not_count_in_the_mean():
    tokenizer = train_tokenizer()
    model = build_gpt2(tokenizer)
    ids, real = torch.randint(len(tokenizer), (2, 7)), torch.ones(2, 7, dtype=torch.long)
    real[1, 4:] = 0
    probe = {"input_ids": ids, "attention_mask": real}
    reference = neural.record_head_outputs(model, probe, keep_weights=True)
    outputs = neural.record_head_outputs(model, probe, replace_by_mean("L0 h0", reference))
    rows = [reference[0].output[0, 0], reference[0].output[1, 0, :4]]
    assert (outputs[0].output[0, 0, 0] - torch.cat(rows).mean(dim=0)).abs().max() < 1e-6


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_padding_of_the_decoder_does_not_count_in_means_of_cross_attention(implementation):
    tokenizer = train_tokenizer()
    model = build_t5(tokenizer)
    model.set_attn_implementation(implementation)
    lengths, decoder_lengths = torch.tensor([6, 3, 5]), torch.tensor([4, 6, 2])
    real = torch.arange(6) < decoder_lengths[:, None]
    inputs = {
        "input_ids": torch.randint(len(tokenizer), (3, 6)),
        "attention_mask": (torch.arange(6) < lengths[:, None]).long(),
        "decoder_input_ids": torch.randint(len(tokenizer), (3, 6)),
        "decoder_attention_mask": real.long(),
    }
    clean = neural.record_head_outputs(model, inputs)
    for index, layer in enumerate(clean.layers):
        expected = real if "decoder" in layer.path else inputs["attention_mask"].bool()
        assert torch.equal(layer.real, expected), layer.path
        changed = neural.record_head_outputs(model, inputs, replace_by_mean((index, 1), clean))
        mean = layer.output[:, 1][expected].mean(dim=0)
        assert (changed[index].output[:, 1] - mean).abs().max() < 1e-6


def test_patterns_are_replaced_and_values_stay(own):
    model, x = own
    clean = neural.record_head_outputs(model, x, keep_weights=True)
    values = clean[0].values[:, 1]
    by_hand = {
        "uniform": torch.stack([values[:, : q + 1].mean(dim=1) for q in range(11)], dim=1),
        "diagonal": values,
        "previous": torch.cat((values[:, :1], values[:, :-1]), dim=1),
    }
    for pattern, expected in by_hand.items():
        outputs = neural.record_head_outputs(model, x, replace_pattern("L0 h1", pattern))
        assert (outputs[0].output[:, 1] - expected).abs().max() < 1e-6, pattern
    own_weights = neural.record_head_outputs(
        model, x, replace_pattern("L0 h1", clean[0].weights[:, 1:2])
    )
    assert (own_weights[0].output - clean[0].output).abs().max() < 1e-6
    average = neural.record_head_outputs(model, x, replace_pattern("L0 h1", clean))
    expected = clean[0].weights[:, 1].mean(dim=0) @ values
    assert (average[0].output[:, 1] - expected).abs().max() < 1e-6


def test_only_the_named_examples_and_positions_change(own):
    model, x = own
    clean = neural.record_head_outputs(model, x)
    outputs = neural.record_head_outputs(model, x, zero("L0 h0", examples=[3], positions=[2, 5]))
    is_changed = (outputs[0].output != clean[0].output).any(dim=-1)
    assert {tuple(index) for index in is_changed.nonzero().tolist()} == {(3, 0, 2), (3, 0, 5)}


def test_many_heads_of_one_batch_equal_one_head_at_a_time(own):
    model, x = own
    copies = x.repeat(3, 1)
    changes = [zero((0, h), examples=range(5 * h, 5 * h + 5)) for h in range(3)]
    with neural.intervene(model, *changes):
        together = run(model, copies).unflatten(0, (3, 5))
    for head in range(3):
        with neural.intervene(model, zero((0, head))):
            assert (run(model, x) - together[head]).abs().max() < 1e-6


def test_interventions_compose_in_one_block_and_in_nested_blocks(own):
    model, x = own
    with neural.intervene(model, zero("L0 h0"), scale("L1 h1", 0.5)):
        together = run(model, x)
    with neural.intervene(model, zero("L0 h0")), neural.intervene(model, scale("L1 h1", 0.5)):
        assert torch.equal(run(model, x), together)
    twice = neural.record_head_outputs(model, x, scale("L1 h1", 0.5), scale("L1 h1", 0.5))
    clean = neural.record_head_outputs(model, x)
    assert torch.equal(twice[1].output[:, 1], clean[1].output[:, 1] * 0.25)


def test_gradients_of_a_factor_agree_with_numerical_differences(own):
    _, x = own
    gate = torch.ones(5, 1, 1, 1, dtype=torch.float64, requires_grad=True)
    double = build_own().double()

    def loss(factor):
        with neural.intervene(double, scale("L0 h1", factor)):
            return double(x)[:, -1, 3].log()

    (gradient,) = torch.autograd.grad(loss(gate).sum(), gate)
    with torch.no_grad():
        numerical = (loss(gate + 1e-5) - loss(gate - 1e-5)) / 2e-5
    assert torch.allclose(gradient.flatten(), numerical, rtol=1e-5, atol=1e-9)


def test_a_cache_gives_what_the_full_pass_gives(gpt2, own):
    model, ids = gpt2
    for implementation in ("sdpa", "eager"):
        model.set_attn_implementation(implementation)
        with neural.intervene(model, zero("L0 h1"), replace_pattern("L1 h0", "uniform")):
            full = run(model, ids)
            with torch.no_grad():
                first = model(ids[:, :8], use_cache=True)
                second = model(ids[:, 8:9], past_key_values=first.past_key_values)
        assert (second.logits[:, 0] - full[:, 8]).abs().max() < 1e-5
    model, x = own
    cached = CachedModel(build_own(), 11)
    with neural.intervene(model, zero("L0 h1"), replace_pattern("L1 h0", "previous")):
        full = model.logits(x)
    with (
        torch.no_grad(),
        neural.intervene(cached.model, zero("L0 h1"), replace_pattern("L1 h0", "previous")),
    ):
        steps = [cached.forward(x[:, :8])[:, -1], cached.forward(x[:, 8:9])[:, -1]]
    assert (torch.stack(steps, dim=1) - full[:, 7:9]).abs().max() < 1e-5


def test_cross_attention_can_be_changed():
    tokenizer = train_tokenizer()
    model = build_t5(tokenizer)
    ids = torch.randint(len(tokenizer), (2, 9))
    inputs = {"input_ids": ids, "decoder_input_ids": ids[:, :4]}
    clean = neural.record_head_outputs(model, inputs)
    paths = [layer.path for layer in clean.layers]
    index = next(i for i, path in enumerate(paths) if "EncDecAttention" in path)
    path = f"{paths[index]}.o"
    weight = model.get_submodule(path).weight
    width = clean[index].output.shape[-1]
    with neural.intervene(model, zero((index, 1))):
        changed = run(model, **inputs)
    with torch.no_grad():
        weight[:, width : 2 * width] = 0
    assert (run(model, **inputs) - changed).abs().max() < 1e-6
    with (
        pytest.raises(InterventionError, match="of two"),
        neural.intervene(model, replace_pattern((index, 1), "previous")),
    ):
        run(model, **inputs)


def test_a_compiled_model_is_changed_like_the_plain_one(own):
    model, x = own
    with neural.intervene(model, zero("L1 h0")):
        expected = run(model, x)
    compiled = torch.compile(model, backend="eager")
    with neural.intervene(compiled, zero("L1 h0")):
        assert torch.equal(run(compiled, x), expected)


def test_checkpointed_layers_have_the_same_gradients(gpt2):
    model, ids = gpt2
    model.set_attn_implementation("sdpa")
    gradients = []
    for is_checkpointed in (False, True):
        model.train(is_checkpointed)
        for dropout in (module for module in model.modules() if isinstance(module, nn.Dropout)):
            dropout.p = 0.0
        for block in model.transformer.h:
            block.attn.attn_dropout.p = 0.0
        if is_checkpointed:
            model.gradient_checkpointing_enable()
        with neural.intervene(model, zero("L0 h1")):
            loss = model(ids, labels=ids, use_cache=False).loss
            gradients.append(torch.autograd.grad(loss, model.transformer.h[0].attn.c_proj.weight))
    model.gradient_checkpointing_disable()
    model.eval()
    assert torch.allclose(gradients[0][0], gradients[1][0], atol=1e-7)
    assert gradients[0][0][32:].abs().max() == 0  # the input of these weights is zero


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda o: zero("L7 h0"), "no head L7 h0: the model made 2 attention calls, L0 to L1"),
        (lambda o: zero("L0 h3"), r"no head L0 h3: L0 .* has 3 heads, h0 to h2"),
        (lambda o: zero(("no.such.module", 0)), "no head `no.such.module` h0"),
        (lambda o: zero("head three"), "`head three` is not a head: write `L1 h3`"),
        (lambda o: zero("L12"), "`L12` is not a head: write `L1 h3`"),
        (lambda o: zero("L01"), "`L01` is not a head: write `L1 h3`"),
        (lambda o: zero((0, -1)), "is not a head"),
        (lambda o: replace_pattern("L0 h0", "next"), "no pattern `next`: use uniform, diagonal"),
        (lambda o: replace_pattern("L0 h0", o), "keep_weights=True"),
        (lambda o: replace_pattern("L0 h0", torch.eye(4)), "4 × 4 queries × keys, but L0 has 11"),
        (lambda o: zero("L0 h0", examples=[9]), "`examples` has index 9, but the call has 5"),
        (lambda o: zero("L0 h0", examples=[0.7]), "`examples` has index 0.7, but the call has 5"),
        (lambda o: zero("L0 h0", examples=[0, -6]), "`examples` has index -6, but the call has 5"),
        (lambda o: patch("L0 h0", torch.zeros(5, 3, 11, 8)), "a Tensor has no outputs of heads"),
        (lambda o: patch("L0 h0", o, rows=[9] * 5), "names example 9, but the source has 5"),
        (lambda o: patch("L0 h0", o, rows=[-6] * 5), "names example -6, but the source has 5"),
        (
            lambda o: scale(["L0 h1", "L1 h2"], torch.ones(1, 2, 1, 1)),
            r"`factor` is a tensor \(1, 2, 1, 1\), but L0 has .* \(5, 1, 11, 8\)",
        ),
        (lambda o: "zero", "is not an intervention"),
    ],
)
def test_bad_interventions_are_explained(own, change, message):
    model, x = own
    outputs, before = neural.record_head_outputs(model, x), run(model, x)
    with pytest.raises(InterventionError, match=message), neural.intervene(model, change(outputs)):
        run(model, x)
    assert torch.equal(run(model, x), before)


def test_negative_rows_count_from_the_end(own):
    model, x = own
    source = neural.record_head_outputs(model, x)
    with neural.intervene(model, patch("L0 h0", source, rows=[-1, 0, 1, 2, 3])):
        from_the_end = run(model, x)
    with neural.intervene(model, patch("L0 h0", source, rows=[4, 0, 1, 2, 3])):
        assert torch.equal(run(model, x), from_the_end)


@pytest.mark.parametrize("name", ["L1 h3", "L1h3", "l1.3", "L1 3", "L1:h3", " L1 / 3 "])
def test_a_head_is_written_with_something_between_its_numbers(name):
    assert str(parse_head(name)) == "L1 h3"


def test_means_and_patterns_of_64_bits_are_computed_with_64_bits(own):
    model, x = build_own().double(), own[1]
    clean = neural.record_head_outputs(model, x)
    mean = neural.record_head_outputs(model, x, replace_by_mean("L1 h1", clean))[1].output[:, 1]
    expected = clean[1].output[:, 1].mean(dim=(0, 1)).expand_as(mean)
    assert (mean - expected).abs().max() < 1e-15
    uniform = neural.record_head_outputs(model, x, replace_pattern("L0 h1", "uniform"))
    values = clean[0].values[:, 1]
    counts = torch.arange(1, 12, dtype=torch.float64)[:, None]
    assert (uniform[0].output[:, 1] - values.cumsum(dim=1) / counts).abs().max() < 1e-14


def test_inputs_of_different_lengths_cannot_be_patched(own):
    model, x = own
    source = neural.record_head_outputs(model, x[:, :7])
    with (
        pytest.raises(InterventionError, match="same number of tokens"),
        neural.intervene(model, patch("L0 h0", source)),
    ):
        run(model, x)


def test_a_model_without_attention_is_refused():
    model = nn.Linear(3, 3)
    with pytest.raises(LookupError, match="no attention call"):
        neural.record_head_outputs(model, torch.randn(2, 3))


def test_a_softmax_that_looks_like_attention_is_named_with_what_to_do():
    class Attention(nn.Module):
        def forward(self, x):
            return torch.softmax(x @ x.mT, dim=-1) @ x

    model, x = nn.Sequential(nn.Linear(4, 4), Attention()), torch.randn(2, 3, 5, 4)
    with pytest.raises(LookupError, match=r"a softmax in `1` looks like attention: softmax=True"):
        neural.record_head_outputs(model, x)
    assert len(neural.record_head_outputs(model, x, softmax=True)) == 1
