"""Programs of the attention guide: checked, built, parameters counted by formula, trained."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from neural.language.network import Network
from neural.nn.build import build
from tests.programs import check_text, load_network


def count_norm(width: int) -> int:
    return 2 * width


def count_dense(inputs: int, units: int) -> int:
    return inputs * units + units


def count_attention(width: int, inner: int) -> int:
    """Three input projections and an output projection."""
    return 3 * count_dense(width, inner) + count_dense(inner, width)


def count_encoder(width: int, inner: int) -> int:
    """Attention, two linear layers, two norms."""
    return (
        count_attention(width, width)
        + count_dense(width, inner)
        + count_dense(inner, width)
        + 2 * count_norm(width)
    )


def count_decoder_with_memory(width: int, inner: int) -> int:
    """An encoder with one more attention and norm."""
    return count_encoder(width, inner) + count_attention(width, width) + count_norm(width)


MULTI_HEAD = """
network Spotlight {
  input: (23, 20)
  layers:
    # five heads of four side by side
    MultiHeadAttention(num_heads=5, key_dim=4)
    LayerNormalization()
    Dense(20, activation="relu")

  loss: "categorical_crossentropy"
  optimizer: Adam(learning_rate=0.002)
}
"""
SELF_ATTENTION = """
network Reviews {
  input: (17, 24)
  layers:
    Embedding(input_dim=301, output_dim=24)

    # every word sees every other word
    TransformerEncoder(num_heads=3, d_model=24, dff=50)

    GlobalAveragePooling1D()
    Output(7, activation="softmax")

  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.0003)
}
"""
CROSS_ATTENTION = """
network Interpreter {
  input: (19, 16)
  layers:
    Embedding(input_dim=113, output_dim=16)

    # reads
    TransformerEncoder(num_heads=4, d_model=16, dff=36) * 3

    # writes, and looks at what was read
    TransformerDecoder(num_heads=4, d_model=16, dff=36) * 3

    Dense(113, activation="softmax")

  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.0003)
}
"""
BIDIRECTIONAL = """
network Opinion {
  input: (29, 18)
  layers:
    # both ways
    TransformerEncoder(num_heads=6, d_model=18, dff=40) * 5
    GlobalAveragePooling1D()
    Output(2, activation="softmax")

  loss: "categorical_crossentropy"
  optimizer: Adam(learning_rate=3e-5)
}
"""
CAUSAL = """
network Storyteller {
  input: (31, 18)
  layers:
    # only what came before
    TransformerDecoder(num_heads=6, d_model=18, dff=40) * 5
    Dense(211, activation="softmax")

  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.0003)
}
"""
VISIBLE = """
network Glass {
  input: (13, 32)
  layers:
    TransformerEncoder(num_heads=4, d_model=32, dff=48)
    GlobalAveragePooling1D()
    Output(9, activation="softmax")

  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.0003)
}
"""
POSITIONS = """
network Order {
  input: (37, 30)
  layers:
    # positions are added by themselves
    TransformerEncoder(num_heads=5, d_model=30, dff=44)
    GlobalAveragePooling1D()
    Output(11, activation="softmax")

  loss: "categorical_crossentropy"
  optimizer: Adam(learning_rate=0.0003)
}
"""
LANGUAGE = """
network Mail {
  input: (41, 12)
  layers:
    Embedding(input_dim=503, output_dim=12)
    TransformerEncoder(num_heads=2, d_model=12, dff=26) * 7
    GlobalAveragePooling1D()
    Output(3, activation="softmax")

  loss: "categorical_crossentropy"
  optimizer: Adam(learning_rate=3e-5)
}
"""
VISION = """
network Stamps {
  input: (30, 24, 3)
  layers:
    # an image becomes a sequence of patches
    Conv2D(14, kernel_size=(6, 6), strides=6)
    Reshape(target_shape=(20, 14))

    # every patch sees every other
    TransformerEncoder(num_heads=7, d_model=14, dff=22) * 3

    GlobalAveragePooling1D()
    Dense(15, activation="softmax")

  loss: "categorical_crossentropy"
  optimizer: Adam(learning_rate=0.0003)
}
"""
SERIES = """
network Tides {
  input: (43, 10)  # 43 hours, 10 gauges
  layers:
    TransformerEncoder(num_heads=5, d_model=10, dff=34)
    GlobalAveragePooling1D()
    Dense(1)  # a height

  loss: "mse"
  optimizer: Adam(learning_rate=0.002)
}
"""

NETWORKS = {
    "multi-head": (
        MULTI_HEAD,
        count_attention(20, 5 * 4) + count_norm(20) + count_dense(20, 20),
        (23, 20),
    ),
    "self-attention": (SELF_ATTENTION, 301 * 24 + count_encoder(24, 50) + count_dense(24, 7), (7,)),
    "cross-attention": (
        CROSS_ATTENTION,
        113 * 16
        + 3 * count_encoder(16, 36)
        + 3 * count_decoder_with_memory(16, 36)
        + count_dense(16, 113),
        ("T", 113),
    ),
    "bidirectional": (BIDIRECTIONAL, 5 * count_encoder(18, 40) + count_dense(18, 2), (2,)),
    "causal": (CAUSAL, 5 * count_encoder(18, 40) + count_dense(18, 211), (31, 211)),
    "visible": (VISIBLE, count_encoder(32, 48) + count_dense(32, 9), (9,)),
    "positions": (POSITIONS, count_encoder(30, 44) + count_dense(30, 11), (11,)),
    "language": (LANGUAGE, 503 * 12 + 7 * count_encoder(12, 26) + count_dense(12, 3), (3,)),
    "vision": (
        VISION,
        6 * 6 * 3 * 14 + 14 + 3 * count_encoder(14, 22) + count_dense(14, 15),
        (15,),
    ),
    "series": (SERIES, count_encoder(10, 34) + count_dense(10, 1), (1,)),
}
every_network = pytest.mark.parametrize(
    ("text", "parameters", "output"), NETWORKS.values(), ids=NETWORKS.keys()
)

B, TARGET = 2, 5


def make_inputs(network: Network) -> tuple[Tensor, ...]:
    """Inputs for two examples; of two sequences, the second one is shorter."""
    if not network.takes_token_ids:
        return (torch.randn(B, *network.input),)
    vocabulary = network.layers[0].layer.input_dim
    source = torch.randint(0, vocabulary, (B, *network.input))
    return (
        (source, torch.randint(0, vocabulary, (B, TARGET)))
        if network.is_encoder_decoder
        else (source,)
    )


@every_network
def test_a_network_of_the_guide_has_the_expected_parameters_and_shape(text, parameters, output):
    model = load_network(text)
    assert model.output == output
    assert model.cost.parameters == parameters
    module = build(model, device="meta")
    assert sum(parameter.numel() for parameter in module.parameters()) == parameters


@every_network
def test_a_network_of_the_guide_runs_and_learns(text, parameters, output):
    torch.manual_seed(0)
    model = load_network(text)
    module = build(model)
    inputs = make_inputs(model)
    y = module(*inputs)
    assert y.shape == (B, *(TARGET if size == "T" else size for size in output))
    if model.output_activation == "softmax":
        torch.testing.assert_close(y.sum(dim=-1), torch.ones(y.shape[:-1]))
    scores = module.logits(*inputs)
    sparse = type(model.loss).__name__.startswith("Sparse")
    target = (
        torch.randint(0, y.shape[-1], y.shape[:-1])
        if sparse
        else torch.rand(y.shape).softmax(dim=-1)
    )
    module.loss(scores, target).backward()
    assert all(
        parameter.grad is not None and parameter.grad.isfinite().all()
        for parameter in module.parameters()
    )
    (optimizer,) = model.optimizer.build(module.named_parameters())
    optimizer.step()


def test_a_width_after_the_length_of_token_ids_is_a_note_and_no_error():
    result = check_text(SELF_ATTENTION)
    assert [diagnostic.code for diagnostic in result.diagnostics if diagnostic.code == "N0702"] == [
        "N0702"
    ]
    assert result.networks[0].input == (17,)


def test_the_decoder_generates_a_sequence_of_any_length():
    model = load_network(CROSS_ATTENTION)
    module = build(model)
    source, _ = make_inputs(model)
    for length in (1, 3, 19, 40):
        assert module(source, torch.zeros(B, length, dtype=torch.long)).shape == (B, length, 113)


FRAGMENTS = {
    "heads": """
# The number of heads divides the width
TransformerEncoder(num_heads=6, d_model=90, dff=120)
# Every head: 90 / 6 = 15 (a comment with = and /)

# More heads for more
TransformerEncoder(num_heads=10, d_model=210, dff=320)
# Every head: 210 / 10 = 21
""",
    "variants": """
# Everybody sees everybody
TransformerEncoder(num_heads=6, d_model=90, dff=120)

# For sequences > 700, think again
# (depends on what you have)
""",
    "sizes": """
# Small: 2-4 heads
TransformerEncoder(num_heads=2, d_model=60, dff=100)

# Larger
TransformerEncoder(num_heads=9, d_model=180, dff=300)
""",
    "dropout": """
TransformerEncoder(
  num_heads=6,
  d_model=90,
  dff=120,
  dropout_rate=0.2  # of the weights and inside the feed-forward part
)
""",
    "key width": """
# key_dim = width / heads
MultiHeadAttention(num_heads=6, key_dim=15)  # for a width of 90

# or any other
MultiHeadAttention(num_heads=6, key_dim=22)  # unusual but fine
""",
    "schedule": """
optimizer: Adam(
  learning_rate=ExponentialDecay(0.0003, 7000, 0.9)
)
""",
    "train": """
train {
  batch_size: 12  # less for longer sequences
  gradient_accumulation_steps: 3  # as if 36
}
""",
}


@pytest.mark.parametrize("text", FRAGMENTS.values(), ids=FRAGMENTS.keys())
def test_a_fragment_of_the_guide_passes_with_fragment(text):
    assert not check_text(text, fragment=True).errors


@pytest.mark.parametrize("text", FRAGMENTS.values(), ids=FRAGMENTS.keys())
def test_a_fragment_is_not_a_program(text):
    assert {error.code for error in check_text(text).errors} <= {"E0112", "E0113"} and check_text(
        text
    ).errors
