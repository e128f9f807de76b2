"""The kernel of linear attention equals the quadratic definition at every instruction set."""

import pytest
import torch

from neural.native.library import available_levels, force_level
from neural.nn.attention.linear import Linear
from neural.nn.mask import Mask
from tests.nn.kernels.attention_checks import (
    assert_level_matches_definition,
    create_leaves,
    torch_threads,
)

pytestmark = pytest.mark.skipif(not available_levels(), reason="no native library")
every_level = pytest.mark.parametrize("level", available_levels())


@every_level
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [
        (2, 3, 67, 67, 7, 5),
        (1, 2, 41, 131, 16, 17),
        (1, 2, 101, 61, 64, 1),
        (1, 1, 1, 97, 8, 8),
        (2, 1, 1, 1, 1, 3),
    ],
)
def test_every_level_equals_the_definition(level, causal, sizes):
    """More queries than keys, fewer, and one query, as in generation."""
    leaves = create_leaves(*sizes)
    mask = Mask(causal=causal, keys=torch.rand(sizes[0], sizes[3]) > 0.3)
    assert_level_matches_definition(Linear(), leaves, mask, level)


@every_level
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("queries", "keys"), [(701, 701), (400, 701), (701, 400)])
def test_parts_of_a_head_start_from_the_sums_of_the_others(level, causal, queries, keys):
    with torch_threads(5):
        leaves = create_leaves(1, 1, queries, keys, 5, 3)
        assert_level_matches_definition(Linear(), leaves, Mask(causal=causal), level)


@every_level
@pytest.mark.parametrize("causal", [False, True])
def test_features_that_vanish_give_zeros_and_finite_gradients(level, causal):
    q, k, v = create_leaves(2, 2, 35, 35, 7, 5)
    low = (q - 200).detach().requires_grad_()  # φ underflows to 0
    with force_level(level):
        output = Linear().attend(low, k, v, Mask(causal=causal))
        gradients = torch.autograd.grad(output.sum(), [low, k, v])
    assert not output.any()
    assert not any(gradient.any() for gradient in gradients)


@every_level
def test_a_query_without_visible_keys_gives_zeros_and_nan_gives_nan(level):
    q, k, v = create_leaves(2, 2, 9, 7, 5, 3)
    mask = Mask(causal=True, keys=torch.tensor([[True] * 7, [False] * 7]))
    with force_level(level):
        out = Linear().attend(q, k, v, mask)
        gradients = torch.autograd.grad(out.sum(), [q, k, v])
        with torch.no_grad():
            q[0, 0, 4, 2] = torch.nan
        diverged = Linear().attend(q, k, v, mask)
    assert not out[1].any() and not out[0, :, :2].any() and out[0, :, 2:].all()
    assert not any(gradient[1].any() for gradient in gradients)
    assert diverged[0, 0, 4].isnan().all()
    assert not diverged[0, 0, :4].isnan().any()


def test_the_operator_follows_the_rules_of_torch():
    from neural.nn.kernels.linear import linear_attention

    leaves = create_leaves(2, 2, 5, 7, 4, 3)
    for key_mask, causal in ((None, True), (torch.rand(2, 7) > 0.3, False)):
        torch.library.opcheck(linear_attention, (*leaves, key_mask, causal))
