"""The exported file needs torch alone and has the same weights and outputs."""

import importlib.util
import itertools
import sys

import pytest
import torch

import neural
from neural.nn.attention import registry as attention
from neural.nn.layers import registry as layers
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR

file_numbers = itertools.count()


def import_exported(blueprint, folder):
    """The exported file as a module; it must not import `neural`."""
    name = f"exported_{next(file_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(blueprint.to_pytorch())
    assert "neural." not in path.read_text().replace("`neural compile`", "")
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example(network, seed=0):
    torch.manual_seed(seed)
    sizes = [9 if isinstance(dim, str) else dim for dim in network.input]
    if network.takes_token_ids:
        return torch.randint(0, network.layers[0].layer.input_dim, (3, *sizes))
    return torch.randn(3, *sizes)


def assert_exported_equal(text, folder, *masks):
    """The exported network has the same state dict and outputs, also with masks."""
    blueprint = neural.parse(text)
    ours = blueprint.build().eval()
    exported = getattr(import_exported(blueprint, folder), blueprint.name)().eval()
    exported.load_state_dict(ours.state_dict())
    x = example(blueprint.network)
    inputs = (x, example(blueprint.network, 1)) if blueprint.network.is_encoder_decoder else (x,)
    for mask in (None, *masks):
        with torch.no_grad():
            torch.testing.assert_close(
                exported(*inputs, mask), ours(*inputs, mask), rtol=0, atol=1e-6
            )
            torch.testing.assert_close(
                exported.logits(*inputs, mask), ours.logits(*inputs, mask), rtol=0, atol=1e-6
            )
    return ours, exported, inputs


@pytest.mark.parametrize(
    "text", [CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR], ids=["classifier", "decoder", "both"]
)
def test_an_exported_network_gives_the_same_outputs(text, tmp_path):
    length = 13 if text is CLASSIFIER else 11
    mask = torch.arange(length) < torch.tensor([[length], [5], [1]])
    ours, exported, inputs = assert_exported_equal(text, tmp_path, mask, mask.float())
    scores = ours.logits(*inputs)
    target = torch.randint(0, scores.shape[-1], scores.shape[:-1])
    assert exported.loss(scores, target).item() == ours.loss(scores, target).item()


@pytest.mark.parametrize("name", layers.names())
def test_every_layer_can_be_exported(name, tmp_path):
    layer, shape = layers.get(name).example()
    sizes = f"({', '.join(map(str, shape))},)"
    if layer.role == "decoder":  # also with an encoder before it
        both = f"TransformerEncoder(num_heads=2)\n    {layer!r}"
        assert_exported_equal(
            f"network A {{\n  input: {sizes}\n  layers:\n    {both}\n}}", tmp_path
        )
    assert_exported_equal(f"network A {{\n  input: {sizes}\n  layers:\n    {layer!r}\n}}", tmp_path)


@pytest.mark.parametrize("name", attention.names())
def test_every_mechanism_can_be_exported(name, tmp_path):
    block = (
        f"TransformerDecoder(num_heads=2, d_model=8, attention={attention.get(name).example()!r})"
    )
    mask = torch.arange(9) < torch.tensor([[9], [5], [1]])
    assert_exported_equal(
        f"network A {{\n  input: (None, 8)\n  layers:\n    {block} * 2\n}}", tmp_path, mask
    )


@pytest.mark.parametrize(
    "extra",
    [
        'attention="localized", window=3',
        'positional="rotary"',
        'positional="alibi"',
        'positional="relative", buckets=8',
        'positional="learned", max_len=20',
        'positional="none"',
        'norm="post"',
        "final_norm=true",
        'activation="squared_relu"',
        "bias=false",
        'normalization="rms"',
        "qk_norm=true",
        'init="zero"',
        'init="gpt2"',
        'normalization="rms", final_norm=true',
        "bias=false, final_norm=true",
        'dropout_rate=0.1, dropout_at="residual"',
    ],
)
def test_every_option_of_a_block_can_be_exported(extra, tmp_path):
    assert_exported_equal(
        "network A {\n  input: (None, 8)\n  layers:\n"
        f"    TransformerDecoder(num_heads=2, d_model=8, {extra}) * 2\n}}",
        tmp_path,
    )


def test_copies_whose_shapes_differ_are_exported_one_by_one(tmp_path):
    text = "network A {\n  input: (19, 4)\n  layers:\n    Conv1D(6, kernel_size=3) * 3\n}"
    ours, exported, _ = assert_exported_equal(text, tmp_path)
    assert [tuple(param.shape) for param in exported.parameters()] == [
        tuple(param.shape) for param in ours.parameters()
    ]


@pytest.mark.parametrize("name", ["DenseModule", "Mask", "torch", "class", "Tensor"])
def test_a_network_may_have_the_name_of_something_in_the_file(name, tmp_path):
    layers = "TransformerEncoder(num_heads=2)\n    Dense(3)"
    blueprint = neural.parse(f"network {name} {{\n  input: (5, 8)\n  layers:\n    {layers}\n}}")
    network = getattr(import_exported(blueprint, tmp_path), f"{name}Network")()
    assert network(torch.randn(2, 5, 8)).shape == (2, 5, 3)
