"""The options of a transformer block: their modules, values and costs."""

import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from neural.nn.build import build
from neural.nn.layers.transformer_decoder import TransformerDecoder
from neural.nn.layers.transformer_encoder import TransformerEncoder
from neural.testing.fixtures import count_saved_activations, use_math_kernels
from tests.programs import load_network

B, T, E = 2, 7, 12
OPTIONS = [
    {},
    {"bias": False},
    {"normalization": "rms"},
    {"normalization": "rms", "bias": False},
    {"qk_norm": True},
    {"qk_norm": True, "num_kv_heads": 1},
    {"activation": "gelu"},
    {"activation": "squared_relu"},
    {"dropout_rate": 0.25, "dropout_at": "residual"},
    {"dropout_rate": 0.25},
    {"init": "gpt2"},
    {"init": "zero"},
    {
        "bias": False,
        "normalization": "rms",
        "qk_norm": True,
        "activation": "squared_relu",
        "positional": "rotary",
    },
]
every_option = pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: ", ".join(options) or "plain"
)
every_block = pytest.mark.parametrize(
    "kind", [TransformerEncoder, TransformerDecoder], ids=["encoder", "decoder"]
)


def build_block(kind, **options):
    torch.manual_seed(0)
    layer = kind(num_heads=2, d_model=E, dff=17, **options)
    return layer, layer.build((T, E))


def random_tensor(*shape: int) -> torch.Tensor:
    torch.manual_seed(1)
    return torch.randn(*shape)


@every_block
@every_option
def test_predicted_costs_are_correct_for_every_option(kind, options):
    layer, module = build_block(kind, **options)
    cost = layer.cost((T, E))
    assert cost.parameters == sum(param.numel() for param in module.parameters())
    with use_math_kernels(), FlopCounterMode(display=False) as counter:
        module(random_tensor(B, T, E))
    assert counter.get_total_flops() == 2 * B * cost.multiply_adds
    # The memory of attention dropout depends on the kernel of torch.
    module.attention.sublayer.dropout = 0.0
    saved = count_saved_activations(module.train(), random_tensor(B, T, E).requires_grad_())
    assert 0.8 * saved <= cost.activations <= 1.25 * saved, (
        f"predicted {cost.activations}, saved {saved:g}"
    )


@every_option
def test_predicted_costs_are_correct_with_cross_attention(options):
    torch.manual_seed(0)
    layer = TransformerDecoder(num_heads=2, d_model=E, dff=17, **options).with_memory((5, 6))
    module = layer.build((T, E))
    cost = layer.cost((T, E))
    assert cost.parameters == sum(param.numel() for param in module.parameters())
    memory = random_tensor(B, 5, 6)
    with use_math_kernels(), FlopCounterMode(display=False) as counter:
        module(random_tensor(B, T, E), None, memory)
    assert counter.get_total_flops() == 2 * B * cost.multiply_adds


@every_block
def test_bias_false_removes_all_biases(kind):
    _, module = build_block(kind, bias=False)
    assert not [name for name, _ in module.named_parameters() if name.endswith("bias")]
    assert [name for name, _ in build_block(kind)[1].named_parameters() if name.endswith("bias")]


def test_rms_norms_divide_by_the_root_mean_square():
    _, module = build_block(TransformerEncoder, normalization="rms")
    norm, x = module.attention.norm, random_tensor(B, T, E) + 3
    with torch.no_grad():
        norm.weight.copy_(torch.arange(E))
    expected = x / (x.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt() * torch.arange(E)
    torch.testing.assert_close(norm(x), expected)


def test_normalized_queries_and_keys_have_the_length_of_the_root_of_their_width():
    _, module = build_block(TransformerEncoder, qk_norm=True)
    attention, inputs = module.attention.sublayer, {}

    class RecordingMechanism(type(attention.mechanism)):
        def attend(self, q, k, v, *args):
            inputs.update(q=q, k=k, v=v)
            return super().attend(q, k, v, *args)

    attention.mechanism = RecordingMechanism()
    x = 100 * random_tensor(B, T, E)
    attention(x)
    for name in ("q", "k"):
        torch.testing.assert_close(inputs[name].norm(dim=-1), torch.full((B, 2, T), 6**0.5))
    torch.testing.assert_close(inputs["v"], attention.split_heads(attention.value(x)))


def test_queries_and_keys_are_normalized_before_the_positions():
    _, module = build_block(TransformerDecoder, qk_norm=True, positional="rotary")
    attention, x = module.attention.sublayer, random_tensor(B, T, E)
    projections = (attention.query, attention.key, attention.value)
    q, k, v = (attention.split_heads(projection(x)) for projection in projections)
    q, k = (
        tensor / (tensor.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt() for tensor in (q, k)
    )
    q, k = (attention.position.rotate(tensor, 0) for tensor in (q, k))
    attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(attention(x), attention.output(attended.transpose(1, 2).flatten(2)))


def test_attention_with_qk_norm_scales_with_its_input():
    _, module = build_block(TransformerEncoder, qk_norm=True, bias=False)
    attention, x = module.attention.sublayer, random_tensor(B, T, E)
    torch.testing.assert_close(attention(100 * x), 100 * attention(x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("where", ["inside", "residual"])
def test_dropout_is_where_the_program_says(where):
    _, module = build_block(TransformerEncoder, dropout_rate=0.9, dropout_at=where)
    feed_forward, x = module.feed_forward, random_tensor(B, T, E)
    module.train()
    torch.manual_seed(2)
    residual = feed_forward(x) - x
    dropped = (residual.abs() < 1e-7).float().mean().item()
    assert dropped == (pytest.approx(0.9, abs=0.1) if where == "residual" else 0)
    assert (feed_forward.sublayer.dropout.p, feed_forward.dropout.p) == (
        (0.9, 0.0) if where == "inside" else (0.0, 0.9)
    )
    assert module.attention.sublayer.dropout == 0.9
    module.eval()
    assert torch.equal(feed_forward(x), feed_forward(x))


def test_the_gelu_is_exact():
    _, module = build_block(TransformerEncoder, activation="gelu")
    x = random_tensor(B, T, E)
    torch.testing.assert_close(
        module.feed_forward.sublayer.activation(x), 0.5 * x * (1 + torch.erf(x / 2**0.5))
    )


def test_the_final_norm_is_of_the_kind_of_the_blocks_norms():
    def describe_final_norm(options):
        layers = f"TransformerEncoder(num_heads=2, final_norm=true{options})"
        return repr(
            load_network(f"network A {{\n input: (7, 12)\n layers:\n {layers}\n}}").layers[-1].layer
        )

    assert describe_final_norm("") == "LayerNormalization()"
    assert describe_final_norm(", bias=false") == "LayerNormalization(bias=false)"
    assert describe_final_norm(', normalization="rms", bias=false') == "RMSNormalization()"


def test_the_default_block_has_the_plain_number_of_parameters():
    block = "TransformerEncoder(num_heads=2, d_model=12, dff=17) * 2"
    program = load_network(f"network A {{\n input: (7, 12)\n layers:\n {block}\n}}")
    per_block = 4 * (E * E + E) + 2 * E * 17 + 17 + E + 4 * E
    assert (
        program.cost.parameters
        == 2 * per_block
        == sum(param.numel() for param in build(program).parameters())
    )
