"""Contract of the positional encodings."""

import pytest
import torch

from neural.language.shapes import feature_width
from neural.nn.attention.self import Self
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.nn.position import AttentionPositions
from neural.nn.positions import registry as positions

B, T, H, D = 2, 7, 3, 10  # D is even: some encodings rotate pairs of features
X = (T, H * D)
POSITIONS = positions.names()
every_position = pytest.mark.parametrize("name", POSITIONS)
every_score_position = pytest.mark.parametrize(
    "name",
    [position_name for position_name in POSITIONS if not positions.get(position_name).is_additive],
)


def build_positions(name: str, *, causal: bool = False):
    """The module in double precision, with parameters large enough to matter."""
    torch.manual_seed(0)
    module = positions.get(name).example().build(X, H, causal).double()
    with torch.no_grad():
        for param in module.parameters():
            param.normal_()
    return module


def build_attention(name: str):
    """Self-attention with this positional encoding."""
    position = build_positions(name)
    adds = positions.get(name).is_additive
    heads = MultiHeadAttentionModule(
        feature_width(X), H, D, Self(), position=None if adds else position
    ).double()
    return lambda x: heads(position(x) if adds else x)


@every_position
def test_it_is_added_or_used_inside_attention(name):
    position = positions.get(name).example()
    position.validate(X, H, D)
    module = build_positions(name)
    x = torch.randn(B, *X, dtype=torch.float64)
    assert isinstance(module, torch.nn.Module)
    assert isinstance(module, AttentionPositions) != position.is_additive
    if position.is_additive:
        assert module(x).shape == x.shape
        # Added, independent of x.
        torch.testing.assert_close(module(x) - x, module(2 * x) - 2 * x)


@every_position
def test_the_predicted_parameters_are_the_real_ones(name):
    assert positions.get(name).example().count_parameters(X, H) == sum(
        param.numel() for param in build_positions(name).parameters()
    )


@every_position
def test_every_parameter_gets_a_gradient(name):
    position, adds = build_positions(name), positions.get(name).is_additive
    heads = MultiHeadAttentionModule(
        feature_width(X), H, D, Self(), position=None if adds else position
    ).double()
    x = torch.randn(B, *X, dtype=torch.float64)
    heads(position(x) if adds else x).square().sum().backward()
    assert all(param.grad.count_nonzero() for param in position.parameters())


@every_position
@pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])
def test_positions_work_in_mixed_precision(name, causal):
    adds, position = positions.get(name).is_additive, build_positions(name, causal=causal).float()
    heads = MultiHeadAttentionModule(
        feature_width(X), H, D, Self(), causal=causal, position=None if adds else position
    )
    x = torch.randn(B, *X)
    mask = torch.arange(T) < torch.tensor([[4], [T]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = heads(position(x) if adds else x, mask)
    torch.testing.assert_close(
        y.float(), heads(position(x) if adds else x, mask), rtol=0.1, atol=0.1
    )


@every_position
def test_positions_break_permutation_equivariance_and_none_keeps_it(name):
    f = build_attention(name)
    x = torch.randn(B, *X, dtype=torch.float64)
    order = torch.tensor([2, 0, 6, 4, 1, 5, 3])
    same = torch.allclose(f(x[:, order]), f(x)[:, order])
    assert same == (name == "none")


@every_score_position
@pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])
def test_scores_depend_only_on_the_distance(name, causal):
    position = build_positions(name, causal=causal)
    q, k = (torch.randn(B, H, 1, D, dtype=torch.float64).repeat(1, 1, T, 1) for _ in range(2))
    scores = position.rotate(q, 0) @ position.rotate(k, 0).transpose(-1, -2)
    bias, key_bias = position.bias(q, T), position.key_bias(q, T)
    scores = scores if bias is None else scores + bias
    scores = scores if key_bias is None else scores + key_bias.unsqueeze(-2)
    # A constant per row cancels in the softmax.
    scores = scores - scores.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)
    torch.testing.assert_close(scores[..., 1:, 1:], scores[..., :-1, :-1], rtol=1e-4, atol=1e-5)
    assert (name == "none") == torch.allclose(scores[..., :1], scores[..., -1:], atol=1e-6)


@every_score_position
def test_the_last_query_is_aligned_with_the_last_key(name):
    position = build_positions(name)
    q = torch.randn(B, H, T, D, dtype=torch.float64)
    torch.testing.assert_close(
        position.rotate(q[:, :, -2:], T - 2), position.rotate(q, 0)[:, :, -2:]
    )
    bias = position.bias(q, T)
    if bias is not None:
        torch.testing.assert_close(position.bias(q[:, :, -2:], T), bias[..., -2:, :])
        assert bias.shape == (H, T, T)
