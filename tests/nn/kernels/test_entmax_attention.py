"""The kernel of sparsemax and 1.5-entmax attention equals the definition at every level."""

import pytest
import torch

from neural.native.library import available_levels, force_level
from neural.nn.attention.entmax15 import Entmax15
from neural.nn.attention.sparsemax import Sparsemax
from neural.nn.mask import Mask
from tests.nn.kernels.attention_checks import (
    assert_level_matches_definition,
    create_leaves,
    torch_threads,
)

pytestmark = pytest.mark.skipif(not available_levels(), reason="no native library")
every_level = pytest.mark.parametrize("level", available_levels())
both = pytest.mark.parametrize("mechanism", [Sparsemax(), Entmax15()], ids=str)


@every_level
@both
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [(2, 3, 37, 41, 7, 5), (1, 2, 31, 131, 16, 17), (1, 2, 29, 11, 64, 1), (2, 1, 1, 1, 1, 3)],
)
def test_every_level_equals_the_definition(level, mechanism, causal, sizes):
    leaves = create_leaves(*sizes)
    mask = Mask(causal=causal, keys=torch.rand(sizes[0], sizes[3]) > 0.3)
    assert_level_matches_definition(mechanism, leaves, mask, level, tolerance=2e-5)


@every_level
@both
@pytest.mark.parametrize("scale", [1e-3, 0.1, 5.0])
def test_from_all_keys_to_one_key_with_weight(level, mechanism, scale):
    with torch_threads(3):
        leaves = create_leaves(1, 1, 67, 129, 8, 8, scale=scale)
        assert_level_matches_definition(mechanism, leaves, Mask(), level, tolerance=5e-5)


@every_level
@both
def test_a_query_without_visible_keys_gives_zeros_and_nan_gives_nan(level, mechanism):
    q, k, v = create_leaves(2, 2, 9, 7, 5, 3)
    mask = Mask(keys=torch.tensor([[True] * 7, [False] * 7]))
    with force_level(level):
        out = mechanism.attend(q, k, v, mask)
        gradients = torch.autograd.grad(out.sum(), [q, k, v])
        with torch.no_grad():
            q[0, 0, 3, 2] = torch.nan
        diverged = mechanism.attend(q, k, v, mask)
    assert not out[1].any() and out[0].all()
    assert not any(gradient[1].any() for gradient in gradients)
    assert diverged[0, 0, 3].isnan().all()
    assert not diverged[0, 0, :3].isnan().any()


@pytest.mark.parametrize("squared", [False, True])
def test_the_operator_follows_the_rules_of_torch(squared):
    from neural.nn.kernels.entmax_attention import entmax_attention

    leaves = create_leaves(2, 2, 5, 7, 4, 3)
    for key_mask in (None, torch.rand(2, 7) > 0.3):
        torch.library.opcheck(entmax_attention, (*leaves, key_mask, True, squared))
