"""Blocks, MLPs and the residual stream: changes equal those of the weights or of the input."""

import copy

import pytest
import torch
from torch import nn

import neural
from neural.capture.blocks import (
    find_blocks,
    patch_mlp,
    patch_residual,
    record_mlp_outputs,
    record_residual,
    replace_mlp_by_mean,
    skip_layer,
    zero_mlp,
)
from neural.capture.intervene import intervene
from neural.capture.interventions import InterventionError, zero
from neural.nn.attention.self import Self
from neural.tasks.segmentation.model import AttentionBlock, Segmenter
from tests.capture.hf_models import MODELS, VOCABULARY
from tests.capture.intervention_table import run_blocks

B, T, LAYERS = 3, 7, 3
DECODER = """network D {{
  input: (None,)
  layers:
    Embedding(input_dim={size}, output_dim=24)
    TransformerDecoder(num_heads=3, dff=32{options}) * {layers}
    Output({size})
}}"""
TRANSLATOR = """network T {
  input: (None,)
  layers:
    Embedding(input_dim=37, output_dim=24)
    TransformerEncoder(num_heads=3, dff=32) * 2
    TransformerDecoder(num_heads=3, dff=32)
    Output(37)
}"""


def build_decoder(options="", layers=LAYERS):
    torch.manual_seed(0)
    text = DECODER.format(size=VOCABULARY, options=options, layers=layers)
    return neural.parse(text).build().eval()


def random_ids(seed=1, batch=B, length=T):
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, VOCABULARY, (batch, length), generator=generator)


def run(model, ids, *interventions):
    with torch.no_grad(), intervene(model, *interventions):
        return model.logits(ids)


@pytest.mark.parametrize(
    "name", ["gpt2", "llama", "qwen2", "mistral", "gemma2", "gpt_neox", "opt", "bert", "t5"]
)
def test_blocks_of_transformers_models_are_those_of_the_reference(name):
    outcome = run_blocks(MODELS[name])
    assert outcome.stream_layers == outcome.blocks >= 2
    assert outcome.skip_error == outcome.mlp_error == 0


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        ("gpt2", ("attn", "attn.c_proj", "mlp")),
        ("llama", ("self_attn", "self_attn.o_proj", "mlp")),
        ("bert", ("attention.self", "attention.output.dense", "output.dense")),
        ("opt", ("self_attn", "self_attn.out_proj", "fc2")),
    ],
)
def test_the_parts_of_a_block(name, paths):
    model = MODELS[name].build("eager")
    blocks = find_blocks(model)
    assert len(blocks) == 2
    for block in blocks:
        assert model.get_submodule(block.path) is block.module
        parts = [block.module.get_submodule(path) for path in paths]
        assert [block.attention, block.output_projection, block.mlp] == [[parts[0]], *parts[1:]]


def test_the_parts_of_own_blocks():
    model = neural.parse(TRANSLATOR).build()
    blocks = find_blocks(model)
    assert [block.path for block in blocks] == [
        "transformer_encoder.0",
        "transformer_encoder.1",
        "transformer_decoder",
    ]
    decoder = blocks[2].module
    assert blocks[2].attention == [decoder.attention.sublayer, decoder.cross.sublayer]
    assert blocks[2].output_projections == [
        decoder.attention.sublayer.output,
        decoder.cross.sublayer.output,
    ]
    assert blocks[2].mlp is decoder.feed_forward.sublayer


def test_networks_inside_other_models():
    class Wrapper(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = build_decoder(layers=2), build_decoder(layers=1)

    paths = [block.path for block in find_blocks(Wrapper())]
    assert paths == [
        "first.transformer_decoder.0",
        "first.transformer_decoder.1",
        "second.transformer_decoder",
    ]


def test_a_single_block_that_is_in_no_list():
    attention = AttentionBlock(10, 10, 2, Self())
    model = Segmenter(4, 2, hidden_dim=5, num_layers=1, attention=attention).eval()
    (block,) = find_blocks(model)
    assert (block.path, block.attention, block.mlp) == ("attention", [attention.heads], None)
    x = torch.randn(B, T, 4)
    with torch.no_grad(), intervene(model, skip_layer(0)):
        skipped = model.logits(x)
    model.attention = None
    with torch.no_grad():
        assert torch.equal(model.logits(x), skipped)


def test_encoder_layers_of_torch():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(24, 4, 32, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    x, padding = torch.randn(B, T, 24), torch.arange(T) > torch.tensor([6, 3, 4])[:, None]
    with torch.no_grad(), intervene(model, zero("L0 h1"), zero_mlp(1)):
        changed = model(x, src_key_padding_mask=padding)
    with torch.no_grad():
        model.layers[0].self_attn.out_proj.weight[:, 6:12] = 0
        for param in model.layers[1].linear2.parameters():
            param.zero_()
        expected = model(x, src_key_padding_mask=padding)
    torch.testing.assert_close(changed[~padding], expected[~padding])


@pytest.mark.parametrize("options", ["", ', norm="post"'])
def test_a_zeroed_mlp_is_one_whose_last_map_is_zero(options):
    model, ids = build_decoder(options), random_ids()
    plain = run(model, ids)
    zeroed = run(model, ids, zero_mlp(1))
    assert torch.equal(run(model, ids), plain)
    with torch.no_grad():
        for param in model.transformer_decoder[1].feed_forward.sublayer.down.parameters():
            param.zero_()
    assert torch.equal(run(model, ids), zeroed)
    assert not torch.allclose(plain, zeroed)


def test_a_skipped_layer_is_one_that_the_model_does_not_have():
    model, ids = build_decoder(), random_ids()
    skipped = run(model, ids, skip_layer("L1"))
    assert torch.equal(run(model, ids, skip_layer("transformer_decoder.1")), skipped)
    shorter = build_decoder(layers=2)
    for number, layer in enumerate((0, 2)):
        shorter.transformer_decoder[number] = model.transformer_decoder[layer]
    shorter.embedding, shorter.output = model.embedding, model.output
    assert torch.equal(run(shorter, ids), skipped)


@pytest.mark.parametrize("layer", range(LAYERS + 1))
def test_the_whole_stream_of_another_run_gives_the_output_of_that_run(layer):
    model, ids, other = build_decoder(), random_ids(1), random_ids(2)
    streams = record_residual(model, other)
    assert len(streams) == LAYERS + 1
    assert torch.equal(run(model, ids, patch_residual(layer, streams)), run(model, other))
    assert torch.equal(run(model, ids, patch_residual(layer, streams[layer])), run(model, other))


@pytest.mark.parametrize(
    "change", [skip_layer, zero_mlp, lambda layer: patch_mlp(layer, torch.zeros(1))]
)
def test_a_block_that_runs_several_times_is_refused(change):
    """The index of a block does not say which of its runs is meant."""
    model, ids = build_decoder(layers=2), random_ids()
    model.transformer_decoder[1] = model.transformer_decoder[0]
    for record in (record_residual, record_mlp_outputs):
        with pytest.raises(InterventionError, match="runs several times in one forward pass"):
            record(model, ids)
    with (
        pytest.raises(InterventionError, match=r"`transformer_decoder\.0` runs several times"),
        intervene(model, change(0)),
    ):
        model(ids)


def test_a_patch_at_one_position_of_one_example_changes_only_what_can_see_it():
    model, ids = build_decoder(), random_ids()
    streams = record_residual(model, random_ids(2))
    plain = run(model, ids)
    patched = run(model, ids, patch_residual(1, streams, examples=[1], positions=[4]))
    is_changed = (patched != plain).any(dim=-1)
    expected = torch.zeros(B, T, dtype=torch.bool)
    expected[1, 4:] = True
    assert torch.equal(is_changed, expected)
    mask = torch.arange(B) == 1
    again = run(model, ids, patch_residual(1, streams, examples=mask, positions=slice(4, 5)))
    assert torch.equal(patched, again)
    moved = run(model, ids, patch_residual(1, streams, rows=[0, 2, 0], examples=[1], positions=[4]))
    assert not torch.equal(moved, patched)


def test_means_of_mlp_outputs_agree_with_those_by_hand():
    model, ids, reference = build_decoder(), random_ids(), random_ids(2, batch=5)
    outputs = record_mlp_outputs(model, reference)
    assert len(outputs) == LAYERS
    mlp, values = model.transformer_decoder[1].feed_forward.sublayer, []
    handle = mlp.register_forward_hook(lambda _, __, output: values.append(output))
    with torch.no_grad():
        model.logits(reference)
    handle.remove()
    assert torch.equal(outputs[1], values[0])
    for per_position, mean in ((False, values[0].mean(dim=(0, 1))), (True, values[0].mean(dim=0))):
        handle = mlp.register_forward_hook(
            lambda _, __, output, mean=mean: mean.expand(output.shape)
        )
        with torch.no_grad():
            expected = model.logits(ids)
        handle.remove()
        change = replace_mlp_by_mean(1, outputs, per_position=per_position)
        torch.testing.assert_close(run(model, ids, change), expected)


def test_padding_does_not_count_for_means():
    model, ids, reference = build_decoder(), random_ids(), random_ids(2)
    real = torch.ones(B, T, dtype=torch.bool)
    real[1, 4:] = False
    outputs = record_mlp_outputs(model, reference, real=real)
    by_hand = outputs[0][real].mean(dim=0)
    expected = run(model, ids, patch_mlp(0, by_hand))
    torch.testing.assert_close(run(model, ids, replace_mlp_by_mean(0, outputs)), expected)
    everywhere = run(model, ids, replace_mlp_by_mean(0, record_mlp_outputs(model, reference)))
    assert not torch.allclose(everywhere, expected)


def test_mlp_outputs_of_other_examples():
    model, ids = build_decoder(), random_ids()
    outputs = record_mlp_outputs(model, ids)
    assert torch.equal(run(model, ids, patch_mlp(2, outputs)), run(model, ids))
    resampled = run(model, ids, patch_mlp(2, outputs, rows=[1, 2, 0]))
    by_hand = run(model, ids, patch_mlp(2, outputs[2].roll(-1, dims=0)))
    assert torch.equal(resampled, by_hand)
    assert not torch.equal(resampled, run(model, ids))


def test_changes_of_heads_and_blocks_compose():
    model, ids = build_decoder(), random_ids()
    both = run(model, ids, zero("L0 h1"), zero_mlp(0), skip_layer(2))
    with torch.no_grad(), intervene(model, zero_mlp(0)), intervene(model, skip_layer(2)):
        nested = run(model, ids, zero("L0 h1"))
    assert torch.equal(both, nested)
    changed = copy.deepcopy(model)
    block = changed.transformer_decoder[0]
    with torch.no_grad():
        block.attention.sublayer.output.weight[:, 8:16] = 0
        for param in block.feed_forward.sublayer.down.parameters():
            param.zero_()
        changed.transformer_decoder[2].forward = lambda x, *_: x
    assert torch.equal(run(changed, ids), both)
    # what is recorded is what the changed model computes
    streams = record_residual(model, ids, zero("L0 h1"), zero_mlp(0), skip_layer(2))
    for stream, expected in zip(streams[:3], record_residual(changed, ids)[:3], strict=True):
        assert torch.equal(stream, expected)
    assert torch.equal(streams[3], streams[2])


def test_gradients_reach_a_patched_stream():
    model, ids = build_decoder(), random_ids()
    values = record_residual(model, ids)[2].requires_grad_()
    with intervene(model, patch_residual(2, values, positions=[3])):
        model.logits(ids)[:, -1].sum().backward()
    is_used = values.grad.abs().sum(dim=(0, 2)) > 0
    assert is_used.tolist() == [position == 3 for position in range(T)]


def test_a_step_of_generation_with_a_cache_equals_the_full_pass():
    model = MODELS["llama"].build("sdpa")
    ids = random_ids()
    with torch.no_grad(), intervene(model, skip_layer(0), zero_mlp(1)):
        full = model(input_ids=ids, use_cache=False).logits
        first = model(input_ids=ids[:, :-1], use_cache=True)
        step = model(input_ids=ids[:, -1:], past_key_values=first.past_key_values).logits
    torch.testing.assert_close(step, full[:, -1:])


def test_compiled_models_and_blocks():
    model, ids = build_decoder(), random_ids()
    expected = run(model, ids, zero_mlp(0), skip_layer(1))
    model.transformer_decoder[0] = torch.compile(model.transformer_decoder[0], backend="eager")
    with torch.no_grad():
        compiled = model.logits(ids)
        assert torch.equal(run(model, ids, zero_mlp(0), skip_layer(1)), expected)
        assert torch.equal(model.logits(ids), compiled)
    assert find_blocks(model)[0].path == "transformer_decoder.0"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (zero_mlp(3), r"no block 3: the model has 3, L0 to L2"),
        (skip_layer("h.1"), r"no block h\.1: .*`transformer_decoder\.0`"),
        (patch_residual(4, torch.zeros(24)), "no block 4"),
        (patch_residual(1, torch.zeros(B, T + 1, 24)), "the same number of tokens"),
        (zero_mlp(0, positions=[T]), f"`positions` has index {T}, but"),
        (zero_mlp(0, examples=torch.ones(2, dtype=torch.bool)), "`examples` has a mask"),
        (patch_mlp(0, torch.zeros(B, T, 24), rows=[5, 0, 0]), "`rows` names example 5"),
        (patch_mlp(0, [1.0]), "give a tensor"),
    ],
)
def test_a_change_that_does_not_fit_is_an_error_with_a_message(change, message):
    model = build_decoder()
    hooks = [len(module._forward_hooks) for module in model.modules()]
    with pytest.raises(InterventionError, match=message):
        run(model, random_ids(), change)
    assert [len(module._forward_hooks) for module in model.modules()] == hooks
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_models_without_blocks_or_mlps_are_refused_with_what_is_supported():
    with pytest.raises(InterventionError, match=r"no transformer blocks .*GPT-2, Llama"):
        record_residual(nn.Linear(2, 2), torch.zeros(1, 2))
    model = MODELS["xlnet"].build("eager")
    message = r"the MLP of `transformer\.layer\.0` \(XLNetLayer"
    with pytest.raises(InterventionError, match=message), intervene(model, zero_mlp(0)):
        model(random_ids())


def test_a_model_that_changes_its_tensors_in_place_does_not_change_what_was_recorded():
    model, ids = MODELS["falcon"].build("eager"), random_ids()  # it adds to the output of its MLP
    outputs = record_mlp_outputs(model, ids)
    copies = [tensor.clone() for tensor in outputs]
    with torch.no_grad():
        plain = model(ids).logits
        for _ in range(2):
            with intervene(model, patch_mlp(0, outputs), patch_mlp(1, outputs)):
                assert torch.equal(model(ids).logits, plain)
    assert all(torch.equal(*pair) for pair in zip(outputs, copies, strict=True))


def test_streams_with_other_axes_have_neither_examples_nor_positions():
    model, ids = MODELS["xlnet"].build("eager"), random_ids()
    streams = record_residual(model, ids)
    with torch.no_grad():
        plain = model(ids).logits
        with intervene(model, patch_residual(1, streams)):
            assert torch.equal(model(ids).logits, plain)
        message = r"is not \(examples, positions, width\)"
        change = patch_residual(1, streams, positions=[2])
        with pytest.raises(InterventionError, match=message), intervene(model, change):
            model(ids)
    reversible = MODELS["reformer"].build("eager")
    message = "returns several tensors"
    with pytest.raises(InterventionError, match=message), intervene(reversible, skip_layer(0)):
        reversible(random_ids(length=MODELS["reformer"].length))


def test_a_block_that_did_not_run_is_an_error():
    model = MODELS["bart"].build("sdpa")
    encoder, message = model.get_encoder(), "block 3 of the model did not run"
    with pytest.raises(InterventionError, match=message), intervene(model, skip_layer(3)):
        encoder(random_ids())
