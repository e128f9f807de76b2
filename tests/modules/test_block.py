"""The options of a transformer block: what they leave out, what they put in its place, what they cost."""

import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from neural.contract.measured import kept_numbers, plain_kernels
from neural.modules.build import build
from neural.modules.layers.transformer_decoder import TransformerDecoder
from neural.modules.layers.transformer_encoder import TransformerEncoder
from tests.programs import network

B, T, E = 2, 7, 12
OPTIONS = [
    {}, {"bias": False}, {"normalization": "rms"}, {"normalization": "rms", "bias": False}, {"qk_norm": True},
    {"qk_norm": True, "num_kv_heads": 1}, {"activation": "gelu"}, {"activation": "squared_relu"},
    {"dropout_rate": 0.25, "dropout_at": "residual"}, {"dropout_rate": 0.25}, {"init": "gpt2"}, {"init": "zero"},
    {"bias": False, "normalization": "rms", "qk_norm": True, "activation": "squared_relu", "positional": "rotary"},
]  # fmt: skip
every_option = pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ", ".join(options) or "plain")
every_block = pytest.mark.parametrize("kind", [TransformerEncoder, TransformerDecoder], ids=["encoder", "decoder"])


def block(kind, **options):
    torch.manual_seed(0)
    layer = kind(num_heads=2, d_model=E, dff=17, **options)
    return layer, layer.build((T, E))


def numbers(*shape: int) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(*shape)


@every_block
@every_option
def test_the_formulas_hold_for_every_option(kind, options):
    layer, module = block(kind, **options)
    cost = layer.cost((T, E))
    assert cost.parameters == sum(one.numel() for one in module.parameters())
    with plain_kernels(), FlopCounterMode(display=False) as counter:
        module(numbers(B, T, E))
    assert counter.get_total_flops() == 2 * B * cost.multiply_adds
    module.attention.part.dropout = 0.0   # what dropped attention weights keep depends on the kernel
    kept = kept_numbers(module.train(), numbers(B, T, E).requires_grad_())
    assert 0.8 * kept <= cost.activations <= 1.25 * kept, f"predicted {cost.activations}, kept {kept:g}"


@every_option
def test_the_formulas_hold_with_attention_to_a_memory(options):
    torch.manual_seed(0)
    layer = TransformerDecoder(num_heads=2, d_model=E, dff=17, **options).after_encoder((5, 6))
    module = layer.build((T, E))
    cost = layer.cost((T, E))
    assert cost.parameters == sum(one.numel() for one in module.parameters())
    memory = numbers(B, 5, 6)
    with plain_kernels(), FlopCounterMode(display=False) as counter:
        module(numbers(B, T, E), None, memory)
    assert counter.get_total_flops() == 2 * B * cost.multiply_adds


@every_block
def test_without_biases_there_is_none_anywhere(kind):
    _, module = block(kind, bias=False)
    assert not [name for name, _ in module.named_parameters() if name.endswith("bias")]
    assert [name for name, _ in block(kind)[1].named_parameters() if name.endswith("bias")]


def test_rms_norms_divide_by_the_root_of_the_mean_square_and_keep_the_mean():
    _, module = block(TransformerEncoder, normalization="rms")
    norm, x = module.attention.norm, numbers(B, T, E) + 3
    with torch.no_grad():
        norm.weight.copy_(torch.arange(E))
    expected = x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt() * torch.arange(E)
    torch.testing.assert_close(norm(x), expected)


def test_normed_queries_and_keys_are_as_long_as_the_root_of_their_width():
    _, module = block(TransformerEncoder, qk_norm=True)
    heads, seen = module.attention.part, {}

    class Spy(type(heads.mechanism)):
        def mix(self, q, k, v, *rest):
            seen.update(q=q, k=k, v=v)
            return super().mix(q, k, v, *rest)

    heads.mechanism = Spy()
    x = 100 * numbers(B, T, E)
    heads(x)
    for name in ("q", "k"):
        torch.testing.assert_close(seen[name].norm(dim=-1), torch.full((B, 2, T), 6**0.5))
    torch.testing.assert_close(seen["v"], heads.split(heads.value(x)))


def test_normed_queries_and_keys_come_before_the_positions():
    _, module = block(TransformerDecoder, qk_norm=True, positional="rotary")
    heads, x = module.attention.part, numbers(B, T, E)
    q, k, v = (heads.split(one(x)) for one in (heads.query, heads.key, heads.value))
    q, k = (one / (one.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt() for one in (q, k))
    q, k = (heads.position.rotate(one, 0) for one in (q, k))
    mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(heads(x), heads.output(mixed.transpose(1, 2).flatten(2)))


def test_the_size_of_the_input_does_not_matter_to_normed_attention():
    _, module = block(TransformerEncoder, qk_norm=True, bias=False)
    heads, x = module.attention.part, numbers(B, T, E)
    torch.testing.assert_close(heads(100 * x), 100 * heads(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("where", ["inside", "residual"])
def test_dropout_stands_where_the_program_says(where):
    _, module = block(TransformerEncoder, dropout_rate=0.9, dropout_at=where)
    forward, x = module.feed_forward, numbers(B, T, E)
    module.train()
    torch.manual_seed(2)
    added = forward(x) - x
    dropped = (added.abs() < 1e-7).float().mean().item()
    assert dropped == (pytest.approx(0.9, abs=0.1) if where == "residual" else 0)
    assert (forward.part.dropout.p, forward.dropout.p) == ((0.9, 0.0) if where == "inside" else (0.0, 0.9))
    assert module.attention.part.dropout == 0.9
    module.eval()
    assert torch.equal(forward(x), forward(x))


def test_the_gelu_is_torchs_exact_one():
    _, module = block(TransformerEncoder, activation="gelu")
    x = numbers(B, T, E)
    torch.testing.assert_close(module.feed_forward.part.activation(x), 0.5 * x * (1 + torch.erf(x / 2**0.5)))


def test_the_final_norm_is_of_the_kind_of_the_block():
    def last(options):
        layers = f"TransformerEncoder(num_heads=2, final_norm=true{options})"
        return repr(network(f"network A {{\n input: (7, 12)\n layers:\n {layers}\n}}").layers[-1].layer)

    assert last("") == "LayerNormalization()"
    assert last(", bias=false") == "LayerNormalization(bias=false)"
    assert last(', normalization="rms", bias=false') == "RMSNormalization()"


def test_defaults_are_what_they_were():
    text = "network A {\n input: (7, 12)\n layers:\n TransformerEncoder(num_heads=2, d_model=12, dff=17) * 2\n}"
    made = network(text)
    per_block = 4 * (E * E + E) + 2 * E * 17 + 17 + E + 4 * E
    assert made.cost.parameters == 2 * per_block == sum(one.numel() for one in build(made).parameters())
