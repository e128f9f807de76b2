"""The kernel of additive attention equals the definition at every instruction set."""

import pytest
import torch

from neural.native.library import available_levels, force_level
from neural.nn.attention.additive import Additive
from neural.nn.mask import Mask
from tests.nn.kernels.attention_checks import (
    assert_level_matches_definition,
    create_leaves,
    torch_threads,
)

pytestmark = pytest.mark.skipif(not available_levels(), reason="no native library")
every_level = pytest.mark.parametrize("level", available_levels())


def create_inputs(*sizes: int, scale: float = 1) -> list[torch.Tensor]:
    leaves = create_leaves(*sizes, scale=scale)
    return [*leaves, torch.randn(sizes[1], sizes[4]).requires_grad_()]


@every_level
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [(2, 3, 37, 41, 7, 5), (1, 2, 19, 67, 16, 17), (1, 2, 23, 11, 64, 1), (2, 1, 1, 1, 1, 3)],
)
def test_every_level_equals_the_definition(level, causal, sizes):
    leaves = create_inputs(*sizes)
    mask = Mask(causal=causal, keys=torch.rand(sizes[0], sizes[3]) > 0.3)
    assert_level_matches_definition(Additive(), leaves, mask, level)


@every_level
@pytest.mark.parametrize("scale", [1e-4, 8.0, 30.0, 1e4])
def test_small_and_large_inputs_are_exact(level, scale):
    """Beyond 21 the product of exponentials could overflow: another form is used."""
    assert_level_matches_definition(
        Additive(), create_inputs(1, 2, 13, 17, 11, 5, scale=scale), Mask(), level
    )


@every_level
def test_opposite_large_inputs_cancel(level):
    """tanh(50 − 50) is 0, although exp(100) overflows."""
    q, k = torch.full((1, 1, 1, 1), 50.0), torch.tensor([-50.0, 50.0]).view(1, 1, 2, 1)
    v, u = torch.eye(2).view(1, 1, 2, 2), torch.tensor([[3.0]]).log()
    with force_level(level):
        weights = Additive().attend(q, k, v, Mask(), extra=u)
    torch.testing.assert_close(weights.flatten(), torch.tensor([0.25, 0.75]))  # scores 0 and log 3


@every_level
def test_tanh_is_exact_from_minus_one_to_one(level):
    """The weight of one key against a key with score 0 gives tanh back."""
    x = torch.linspace(-12, 12, 1001, dtype=torch.float64).float()
    q = x.view(1, 1, -1, 1)
    k = torch.tensor([0.0, -1e3]).view(1, 1, 2, 1)  # tanh is −1 for the second key
    v, u = torch.eye(2).view(1, 1, 2, 2), torch.ones(1, 1)
    with force_level(level):
        weights = Additive().attend(q, k, v, Mask(), extra=u)[0, 0].double()
    tanh = (weights[:, 0] / weights[:, 1]).log() - 1
    torch.testing.assert_close(tanh, x.double().tanh(), rtol=0, atol=2e-6)


@every_level
def test_parts_of_a_head_are_summed(level):
    with torch_threads(5):
        assert_level_matches_definition(
            Additive(), create_inputs(1, 1, 131, 37, 8, 8), Mask(causal=True), level
        )


@every_level
def test_a_query_without_visible_keys_gives_zeros_and_nan_gives_nan(level):
    q, k, v, u = create_inputs(2, 2, 9, 7, 5, 3)
    mask = Mask(keys=torch.tensor([[True] * 7, [False] * 7]))
    with force_level(level):
        out = Additive().attend(q, k, v, mask, extra=u)
        gradients = torch.autograd.grad(out.sum(), [q, k, v, u])
        with torch.no_grad():
            q[0, 0, 3, 2] = torch.nan
        diverged = Additive().attend(q, k, v, mask, extra=u)
    assert not out[1].any() and out[0].all()
    assert not any(gradient[1].any() for gradient in gradients[:3])
    assert diverged[0, 0, 3].isnan().all()
    assert not diverged[0, 0, :3].isnan().any()


def test_the_operator_follows_the_rules_of_torch():
    from neural.nn.kernels.additive import additive

    leaves = create_inputs(2, 2, 5, 7, 4, 3)
    for key_mask in (None, torch.rand(2, 7) > 0.3):
        torch.library.opcheck(additive, (*leaves, key_mask, True))


def test_memory_is_linear_in_the_length():
    """Nothing of Q×K is saved for the backward pass."""
    sizes = []
    leaves = create_inputs(1, 1, 300, 301, 4, 4)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: sizes.append(tensor.numel()) or tensor, lambda tensor: tensor
    ):
        Additive().attend(*leaves[:3], Mask(), extra=leaves[3])
    assert 0 < max(sizes) <= 4 * 304
