"""Compiled decoding gives the same scores as torch."""

import pytest
import torch

from neural.native.library import native_available
from neural.nn.compiled_decoder import CompiledDecoder, find_compile_obstacle
from neural.nn.generation import create_decoder
from neural.nn.quantization import quantize_model
from neural.nn.sampling import CachedDecoder, DecodingError
from tests.nn.test_decoding import E, T, V, build_model, collect_scores, generate, ids

pytestmark = pytest.mark.skipif(not native_available(), reason="native kernels are off")

TIED = f'Output({V}, activation="softmax", tied=true, bias=false)'
CLASSIC = 'positional="learned", activation="gelu", bias=false, final_norm=true'
MODERN = (
    'positional="rotary", qk_norm=true, normalization="rms", activation="squared_relu", bias=false'
)
SUPPORTED = [
    (CLASSIC, TIED),
    (f"{MODERN}, final_norm=true", None),
    (MODERN, TIED),
    ("", None),
    ('positional="none", activation="silu", num_kv_heads=1', None),
    ('attention="causal", dropout_rate=0.3', None),
]


def build_supported(block, head):
    return build_model(block, **({"head": head} if head else {}))


@pytest.mark.parametrize(("block", "head"), SUPPORTED)
@pytest.mark.parametrize("batch", [1, 3])
def test_the_compiled_step_equals_torch(block, head, batch):
    model = build_supported(block, head)
    text = ids(batch=batch)
    compiled, cached = (
        collect_scores(decoder, text)
        for decoder in (CompiledDecoder(model, T), CachedDecoder(model, T))
    )
    torch.testing.assert_close(compiled, cached, rtol=1e-4, atol=1e-4)


def test_the_compiled_decoder_is_used_if_it_supports_the_network():
    assert type(create_decoder(build_supported(CLASSIC, TIED))) is CompiledDecoder
    assert (
        type(create_decoder(build_supported(CLASSIC, TIED), capture_weights=True)) is CachedDecoder
    )
    assert type(create_decoder(build_model('attention="localized"'))) is CachedDecoder


def test_all_decoders_generate_the_same_text_beyond_the_window():
    model = build_supported(CLASSIC, TIED)
    sampling = {"temperature": 0.9, "seed": 4}
    texts = [
        generate(create_decoder(model, decoder=name), ids(3), 30, **sampling)
        for name in ("compiled", "cached", "recomputed")
    ]
    assert texts[0] == texts[1] == texts[2]


def test_the_batch_size_may_change_between_texts():
    model = build_supported(MODERN, TIED)
    compiled, cached = CompiledDecoder(model, T), CachedDecoder(model, T)
    for batch in (2, 1, 3):
        text = ids(batch=batch)
        torch.testing.assert_close(
            collect_scores(compiled, text), collect_scores(cached, text), rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize(("block", "head"), SUPPORTED[:2])
def test_int8_scores_are_close_to_float32_scores(block, head):
    model = build_supported(block, head)
    exact = collect_scores(CompiledDecoder(model, T), ids())
    quantized = collect_scores(CompiledDecoder(model, T, "int8"), ids())
    assert 0 < (quantized - exact).abs().max() < 0.05 * exact.std()


def test_a_row_of_zeros_can_be_quantized():
    model = build_supported(CLASSIC, TIED)
    with torch.no_grad():
        for block in model.blocks():
            block.feed_forward.sublayer.down.weight.zero_()
    assert collect_scores(CompiledDecoder(model, T, "int8"), ids()).isfinite().all()


@pytest.mark.parametrize(
    ("block", "layers", "reason"),
    [
        ('attention="localized"', None, "not plain self-attention"),
        ('positional="alibi"', None, "neither additive nor rotary"),
        ('norm="post"', None, "pre-norm"),
        ('activation="tanh"', None, "activation"),
        (
            "",
            f"Dense({E})\nTransformerDecoder(num_heads=2, d_model={E})",
            "an embedding, positions",
        ),
        (
            "",
            f"TransformerDecoder(num_heads=2, d_model={E})\nDense({E})",
            "is not a norm",
        ),
        (
            "",
            f"TransformerDecoder(num_heads=2, d_model={E})\n"
            f"TransformerDecoder(num_heads=3, d_model={E})",
            "its blocks differ",
        ),
    ],
)
def test_unsupported_networks_are_decoded_by_torch_with_a_reason(block, layers, reason):
    model = build_model(block, layers=layers)
    assert reason in find_compile_obstacle(model)
    assert type(create_decoder(model)) is CachedDecoder
    with pytest.raises(DecodingError, match="cannot be decoded by the compiled step"):
        create_decoder(model, decoder="compiled")


def test_other_precisions_than_32_bits_are_decoded_by_torch():
    assert type(create_decoder(build_supported(CLASSIC, TIED).double())) is CachedDecoder


def test_int8_is_refused_for_unsupported_networks():
    model = build_model('attention="localized"')
    with pytest.raises(
        DecodingError, match="cannot have int8 weights: its attention is not plain self-attention"
    ):
        create_decoder(model, precision="int8")
    assert type(create_decoder(model, precision="auto")) is CachedDecoder


@pytest.mark.parametrize(("block", "head"), SUPPORTED[:2])
def test_all_decoders_generate_the_same_text_with_int8(block, head):
    model = build_supported(block, head)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    options = [
        *({"decoder": name} for name in ("auto", "compiled", "cached", "recomputed")),
        {"capture_weights": True},
    ]
    texts = [
        generate(create_decoder(model, precision="auto", **option), ids(3), 30)
        for option in options
    ]
    assert all(text == texts[0] for text in texts[1:])
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), "the network itself is not quantized"


@pytest.mark.parametrize(("block", "head"), SUPPORTED[:2])
def test_quantization_is_idempotent(block, head):
    once = quantize_model(build_supported(block, head))
    twice = quantize_model(once)
    for first, second in zip(once.parameters(), twice.parameters(), strict=True):
        torch.testing.assert_close(first, second, rtol=1e-6, atol=0)
