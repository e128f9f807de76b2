"""What every way of telling positions promises."""

import pytest
import torch

from neural.language.shapes import width
from neural.modules.attention.self import Self
from neural.modules.heads import Heads
from neural.modules.position import InsideAttention
from neural.modules.positions import registry as positions

B, T, H, D = 2, 7, 3, 10   # an even width for heads: some positions turn pairs of features
X = (T, H * D)
POSITIONS = positions.names()
every_position = pytest.mark.parametrize("name", POSITIONS)
every_inside_position = pytest.mark.parametrize("name", [one for one in POSITIONS if not positions.get(one).adds])


def made(name: str, *, causal: bool = False):
    """The module in double precision, its parameters large enough to matter."""
    torch.manual_seed(0)
    module = positions.get(name).tiny().build(X, H, causal).double()
    with torch.no_grad():
        for one in module.parameters():
            one.normal_()
    return module


def attend(name: str):
    """Attention that is told positions in this way."""
    position = made(name)
    adds = positions.get(name).adds
    heads = Heads(width(X), H, D, Self(), position=None if adds else position).double()
    return lambda x: heads(position(x) if adds else x)


@every_position
def test_it_fits_and_adds_or_works_inside(name):
    position = positions.get(name).tiny()
    position.fits(X, H, D)
    module = made(name)
    x = torch.randn(B, *X, dtype=torch.float64)
    assert isinstance(module, torch.nn.Module)
    assert isinstance(module, InsideAttention) != position.adds
    if position.adds:
        assert module(x).shape == x.shape
        torch.testing.assert_close(module(x) - x, module(2 * x) - 2 * x)   # added, whatever stands there


@every_position
def test_the_predicted_parameters_are_the_real_ones(name):
    assert positions.get(name).tiny().parameters(X, H) == sum(one.numel() for one in made(name).parameters())


@every_position
def test_every_parameter_gets_a_gradient(name):
    position, adds = made(name), positions.get(name).adds
    heads = Heads(width(X), H, D, Self(), position=None if adds else position).double()
    x = torch.randn(B, *X, dtype=torch.float64)
    heads(position(x) if adds else x).square().sum().backward()
    assert all(one.grad.count_nonzero() for one in position.parameters())


@every_position
@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_positions_work_in_mixed_precision(name, causal):
    adds, position = positions.get(name).adds, made(name, causal=causal).float()
    heads = Heads(width(X), H, D, Self(), causal=causal, position=None if adds else position)
    x = torch.randn(B, *X)
    mask = torch.arange(T) < torch.tensor([[4], [T]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = heads(position(x) if adds else x, mask)
    torch.testing.assert_close(y.float(), heads(position(x) if adds else x, mask), rtol=0.1, atol=0.1)


@every_position
def test_positions_break_permutation_equivariance_and_none_keeps_it(name):
    f = attend(name)
    x = torch.randn(B, *X, dtype=torch.float64)
    order = torch.tensor([2, 0, 6, 4, 1, 5, 3])
    same = torch.allclose(f(x[:, order]), f(x)[:, order])
    assert same == (name == "none")


@every_inside_position
@pytest.mark.parametrize("causal", [False, True], ids=["both ways", "causal"])
def test_scores_depend_on_the_distance_alone(name, causal):
    position = made(name, causal=causal)
    q, k = (torch.randn(B, H, 1, D, dtype=torch.float64).repeat(1, 1, T, 1) for _ in range(2))
    scores = position.rotate(q, 0) @ position.rotate(k, 0).transpose(-1, -2)
    bias, by_key = position.bias(q, T), position.key_bias(q, T)
    scores = scores if bias is None else scores + bias
    scores = scores if by_key is None else scores + by_key.unsqueeze(-2)
    scores = scores - scores.diagonal(dim1=-2, dim2=-1).unsqueeze(-1)   # what a row shares cancels in the softmax
    torch.testing.assert_close(scores[..., 1:, 1:], scores[..., :-1, :-1], rtol=1e-4, atol=1e-5)
    assert (name == "none") == torch.allclose(scores[..., :1], scores[..., -1:], atol=1e-6)


@every_inside_position
def test_the_last_query_stands_at_the_last_key(name):
    position = made(name)
    q = torch.randn(B, H, T, D, dtype=torch.float64)
    torch.testing.assert_close(position.rotate(q[:, :, -2:], T - 2), position.rotate(q, 0)[:, :, -2:])
    bias = position.bias(q, T)
    if bias is not None:
        torch.testing.assert_close(position.bias(q[:, :, -2:], T), bias[..., -2:, :])
        assert bias.shape == (H, T, T)
