"""The decoding kernel gives the logits of torch at every instruction set."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.native.library import available_levels, force_level, no_kernels
from neural.nn.build import build
from neural.nn.compiled_decoder import MAX_PROMPT_ROWS, CompiledDecoder
from neural.nn.generation import create_decoder
from neural.nn.kernels.decode_step import GROUP, allocate_zeros, pack_groups
from neural.nn.quantization import quantize_model
from neural.nn.sampling import CachedDecoder, DecodingError
from tests.programs import load_network

every_level = pytest.mark.parametrize("level", available_levels())
every_precision = pytest.mark.parametrize("precision", ["float32", "int8"])
ACTIVATIONS = ["relu", "gelu", "squared_relu", "silu"]


def build_model(
    vocab=19, context=40, width=12, heads=2, dff=17, layers=2, block="", head="", seed=0
):
    """A small language model with random weights, of which none has a special value."""
    text = f"""network Small {{
      input: ({context},)
      layers:
        Embedding(input_dim={vocab}, output_dim={width})
        TransformerDecoder(num_heads={heads}, d_model={width}, dff={dff}{block}) * {layers}
        Output({vocab}, activation="softmax"{head})
      loss: "sparse_categorical_crossentropy"
    }}"""
    torch.manual_seed(seed)
    model = build(load_network(text)).eval()
    with torch.no_grad():
        for param in model.parameters():
            param.add_(0.2 * torch.randn_like(param))
    return model


def random_ids(vocab, samples, count, seed=1):
    return torch.randint(vocab, (samples, count), generator=torch.Generator().manual_seed(seed))


def assert_logits_equal_torch(model, precision, ids, prompt_length, threads=1):
    """Compare the logits after the prompt and after each further token with one torch pass."""
    vocab, context = model.embedding_weight().shape[0], ids.shape[1]
    reference = quantize_model(model) if precision == "int8" else model
    with torch.no_grad(), no_kernels():
        expected = reference.double().logits(ids)[:, prompt_length - 1 :]
    reference.float()
    previous_threads = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        decoder = CompiledDecoder(model, context, precision)
        logits = [decoder.start(ids[:, :prompt_length])]
        logits += [decoder.step(ids[:, place]) for place in range(prompt_length, context)]
    finally:
        torch.set_num_threads(previous_threads)
    assert logits[0].shape == (len(ids), vocab)
    torch.testing.assert_close(torch.stack(logits, 1).double(), expected, rtol=2e-5, atol=2e-5)


@every_level
@every_precision
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_equals_torch(level, precision, activation):
    model = build_model(block=f', activation="{activation}"')
    with force_level(level):
        assert_logits_equal_torch(model, precision, random_ids(19, 3, 11), 5)


@every_level
@every_precision
@pytest.mark.parametrize(
    "block",
    [
        ', positional="learned", bias=false, final_norm=true',
        ', positional="rotary", qk_norm=true, normalization="rms", num_kv_heads=2',
        ', positional="none", num_kv_heads=1',
    ],
)
@pytest.mark.parametrize("samples", [1, 2, 13])
def test_every_kind_of_block_equals_torch(level, precision, block, samples):
    model = build_model(vocab=37, width=56, heads=4, dff=67, block=block)
    with force_level(level):
        assert_logits_equal_torch(model, precision, random_ids(37, samples, 37), 34)


@every_level
@every_precision
def test_a_head_wider_than_a_group_equals_torch(level, precision):
    model = build_model(width=2 * (GROUP + 5), heads=2, dff=131)
    with force_level(level):
        assert_logits_equal_torch(model, precision, random_ids(19, 1, 35), 3)


@every_level
@every_precision
def test_threads_do_not_change_the_logits(level, precision, monkeypatch):
    monkeypatch.setattr("neural.nn.kernels.decode_step.MIN_PARALLEL_WEIGHTS", 0)
    model = build_model(vocab=67, width=48, heads=3, dff=101)
    with force_level(level):
        for samples in (1, 5):
            for threads in (2, 3):
                assert_logits_equal_torch(
                    model, precision, random_ids(67, samples, 17), 9, threads=threads
                )


@every_level
@every_precision
def test_a_long_prompt_is_read_in_chunks(level, precision):
    length = MAX_PROMPT_ROWS + 31
    model = build_model(context=length, block=', positional="rotary"')
    with force_level(level):
        assert_logits_equal_torch(model, precision, random_ids(19, 2, length), length - 2)


@settings(max_examples=25, deadline=None)
@given(
    heads=st.integers(1, 5),
    head_width=st.integers(1, 19),
    dff=st.integers(1, 70),
    vocab=st.integers(2, 70),
    samples=st.integers(1, 10),
    context=st.integers(2, 45),
    level=st.sampled_from(available_levels() or ("none",)),
    precision=st.sampled_from(["float32", "int8"]),
)
def test_random_sizes_equal_torch(
    heads, head_width, dff, vocab, samples, context, level, precision
):
    if level == "none":
        pytest.skip("native kernels were not built")
    model = build_model(vocab, context, heads * head_width, heads, dff, layers=1)
    ids = random_ids(vocab, samples, context)
    with force_level(level):
        assert_logits_equal_torch(model, precision, ids, max(1, context - 2))


@every_level
@every_precision
def test_nan_weights_give_nan_logits(level, precision):
    model = build_model()
    with torch.no_grad():
        model.embedding_weight()[3, 5] = float("nan")
    with force_level(level):
        decoder = CompiledDecoder(model, 8, precision)
        assert decoder.start(torch.tensor([[1, 2]])).isfinite().all()
        assert decoder.step(torch.tensor([3])).isnan().all()


@every_level
def test_ids_outside_the_vocabulary_are_refused(level):
    with force_level(level):
        decoder = CompiledDecoder(build_model(), 8)
        with pytest.raises(IndexError, match="token ids must be from 0 to 18"):
            decoder.start(torch.tensor([[19]]))
        decoder.start(torch.tensor([[0]]))
        with pytest.raises(IndexError, match="token ids must be from 0 to 18"):
            decoder.step(torch.tensor([-1]))


def test_more_tokens_than_the_context_are_refused():
    decoder = create_decoder(build_model(context=2))
    if not isinstance(decoder, CompiledDecoder):
        pytest.skip("native kernels were not built")
    decoder.start(torch.tensor([[0, 1]]))
    with pytest.raises(ValueError, match="the cache holds 2 positions, got 3"):
        decoder.step(torch.tensor([0]))


def test_the_number_of_samples_may_not_change_within_a_text():
    decoder = create_decoder(build_model())
    if not isinstance(decoder, CompiledDecoder):
        pytest.skip("native kernels were not built")
    decoder.start(torch.tensor([[0, 1]]))
    with pytest.raises(ValueError, match="expected ids of 1 samples, got 2"):
        decoder.step(torch.tensor([0, 1]))


def test_torch_decodes_without_kernels():
    model = build_model()
    with no_kernels():
        assert type(create_decoder(model)) is CachedDecoder
        with pytest.raises(DecodingError, match="native kernels were not built"):
            create_decoder(model, decoder="compiled")


def test_weights_are_packed_in_groups_and_padded_with_zeros():
    matrix = torch.arange(1.0, 35 * 6 + 1).view(35, 6)
    packed = torch.full((2, 2, GROUP, 4), -1.0)
    pack_groups(matrix, packed)
    assert packed[1, 0, 2, 3] == matrix[GROUP + 2, 3]
    assert packed[0, 1, 7, 1] == matrix[7, 5]
    assert packed.sum() == matrix.sum()


def test_large_memory_is_aligned_to_huge_pages_and_zero():
    tensor = allocate_zeros((5, 1 << 20), torch.float32)
    assert tensor.shape == (5, 1 << 20)
    assert not tensor.any()
    tensor += 1
    assert tensor.sum() == tensor.numel()
