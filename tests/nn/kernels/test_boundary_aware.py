"""The kernel of softmax attention with a bias per key equals the definition at every level."""

import pytest
import torch

from neural.native.library import available_levels, force_level
from neural.nn.attention.boundary_aware import BoundaryAware
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
    return [*leaves, torch.rand(sizes[0], sizes[3]).requires_grad_()]


@every_level
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [(2, 3, 37, 41, 7, 5), (1, 2, 101, 193, 16, 17), (1, 2, 97, 61, 64, 1), (2, 1, 1, 1, 1, 3)],
)
def test_every_level_equals_the_definition(level, causal, sizes):
    """Blocks have 96 queries and 64 keys: sizes just above, below and far from them."""
    leaves = create_inputs(*sizes)
    mask = Mask(causal=causal, keys=torch.rand(sizes[0], sizes[3]) > 0.3)
    assert_level_matches_definition(BoundaryAware(), leaves, mask, level)


@every_level
def test_a_bias_of_the_mask_is_added(level):
    leaves = create_inputs(1, 2, 11, 13, 8, 8)
    mask = Mask(key_bias=torch.randn(1, 2, 13))
    assert_level_matches_definition(BoundaryAware(), leaves, mask, level)


@every_level
def test_large_scores_do_not_overflow(level):
    leaves = create_inputs(1, 1, 70, 130, 16, 8, scale=12)
    assert_level_matches_definition(BoundaryAware(), leaves, Mask(), level, tolerance=1e-4)


@every_level
def test_parts_of_a_head_are_summed(level):
    with torch_threads(5):
        assert_level_matches_definition(
            BoundaryAware(), create_inputs(1, 1, 499, 67, 8, 8), Mask(causal=True), level
        )


@every_level
def test_a_query_without_visible_keys_gives_zeros_and_nan_gives_nan(level):
    q, k, v, score = create_inputs(2, 2, 9, 7, 5, 3)
    mask = Mask(keys=torch.tensor([[True] * 7, [False] * 7]))
    with force_level(level):
        out = BoundaryAware().attend(q, k, v, mask, extra=score)
        gradients = torch.autograd.grad(out.sum(), [q, k, v, score])
        with torch.no_grad():
            q[0, 0, 3, 2] = torch.nan
        diverged = BoundaryAware().attend(q, k, v, mask, extra=score)
    assert not out[1].any() and out[0].all()
    assert not any(gradient[1].any() for gradient in gradients)
    assert diverged[0, 0, 3].isnan().all()
    assert not diverged[0, 0, :3].isnan().any()


def test_the_operator_follows_the_rules_of_torch():
    from neural.nn.kernels.boundary_aware import flash_bias

    q, k, v, _ = create_inputs(2, 2, 5, 7, 4, 3)
    bias = torch.randn(2, 2, 7, requires_grad=True)
    torch.library.opcheck(flash_bias, (q, k, v, bias, True))
