"""What every attention mechanism promises: `weights` defines it, `mix` runs it, and nobody sees what is masked."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from neural.modules.attention import registry as attention
from neural.modules.mask import Mask
from tests.contract.subjects import plain_kernels

B, H, Q, K, D, V = 2, 3, 5, 7, 11, 13   # all different, all prime: a swapped axis cannot pass by luck
every_mechanism = pytest.mark.parametrize("name", attention.names())
every_length = pytest.mark.parametrize(("queries", "keys"), [(Q, K), (K, K), (K, Q), (1, K)])
every_mask = pytest.mark.parametrize(
    "kind", ["none", "causal", "keys", "causal keys", "bias", "bias causal keys", "empty"]
)


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def three(queries: int, keys: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return numbers(B, H, queries, D), numbers(B, H, keys, D), numbers(B, H, keys, V)


def mask_of(kind: str, queries: int, keys: int) -> Mask:
    torch.manual_seed(1)
    real = None
    if "keys" in kind:
        real = torch.ones(B, keys, dtype=torch.bool)
        real[0, -2:], real[1, 0], real[1, 3] = False, False, False
    if kind == "empty":
        real = torch.tensor([False, True]).unsqueeze(-1).repeat(1, keys)
    bias = numbers(H, queries, keys) if "bias" in kind else None
    return Mask(causal="causal" in kind, keys=real, bias=bias)


def visible(mask: Mask, queries: int, keys: int) -> torch.Tensor:
    """Who may be seen, pair by pair: the last query stands at the last key."""
    seen = torch.ones(B, 1, queries, keys, dtype=torch.bool)
    for query in range(queries):
        for key in range(keys):
            if mask.causal and key > query + keys - queries:
                seen[:, :, query, key] = False
            if mask.keys is not None:
                seen[:, 0, query, key] &= mask.keys[:, key]
    return seen


@every_mechanism
@every_length
@every_mask
def test_the_fast_way_equals_the_definition_in_values_and_gradients(name, queries, keys, kind):
    mechanism, qkv, mask = attention.get(name).tiny(), three(queries, keys), mask_of(kind, queries, keys)
    leaves = [*qkv, *([mask.bias] if mask.bias is not None else [])]
    fast = mechanism.mix(*qkv, mask)
    plain = mechanism.weights(*qkv[:2], mask) @ qkv[2]
    torch.testing.assert_close(fast, plain)
    towards = torch.randn_like(fast)
    for one, other in zip(
        torch.autograd.grad(fast, leaves, towards), torch.autograd.grad(plain, leaves, towards), strict=True
    ):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other)


@every_mechanism
@every_length
@every_mask
def test_rows_sum_to_one_and_masked_keys_get_nothing(name, queries, keys, kind):
    mechanism, (q, k, _), mask = attention.get(name).tiny(), three(queries, keys), mask_of(kind, queries, keys)
    w = mechanism.weights(q, k, mask)
    seen = visible(mask, queries, keys).expand_as(w)
    assert w.shape == (B, H, queries, keys)
    assert (w >= 0).all()
    assert (w[~seen] == 0).all()
    total = w.sum(dim=-1)
    empty = (w == 0).all(dim=-1)
    torch.testing.assert_close(total[~empty], torch.ones_like(total[~empty]))
    if kind in ("none", "bias", "causal") and queries <= keys:
        assert not empty.any()


@every_mechanism
@every_length
def test_a_fully_masked_row_is_zero_not_nan(name, queries, keys):
    mechanism, qkv, mask = attention.get(name).tiny(), three(queries, keys), mask_of("empty", queries, keys)
    mixed = mechanism.mix(*qkv, mask)
    assert (mixed[0] == 0).all()
    assert (mechanism.weights(*qkv[:2], mask)[0] == 0).all()
    for one in torch.autograd.grad(mixed, qkv, torch.ones_like(mixed)):
        assert (one[0] == 0).all()
        assert one.isfinite().all()


@every_mechanism
@every_mask
def test_nothing_that_is_masked_reaches_the_result(name, kind):
    mechanism, (q, k, v), mask = attention.get(name).tiny(), three(K, K), mask_of(kind, K, K)
    seen = visible(mask, K, K)
    for query in range(K):
        mixed = mechanism.mix(q, k, v, mask)[:, :, query]
        for gradient in torch.autograd.grad(mixed, (k, v), torch.randn_like(mixed)):
            reached = gradient.abs().amax(dim=(1, 3)) > 0
            assert not (reached & ~seen[:, 0, query]).any()


@every_mechanism
def test_large_scores_stay_finite(name):
    mechanism, (q, k, v), mask = attention.get(name).tiny(), three(K, K), mask_of("causal keys", K, K)
    mixed = mechanism.mix(q.float() * 1e4, k.float() * 1e4, v.float(), mask)
    assert mixed.isfinite().all()
    assert mechanism.weights(q.float() * 1e4, k.float() * 1e4, mask).isfinite().all()


@every_mechanism
def test_the_queries_at_the_end_can_be_asked_alone(name):
    mechanism, (q, k, v), mask = attention.get(name).tiny(), three(K, K), Mask(causal=True)
    whole = mechanism.mix(q, k, v, mask)
    for queries in range(1, K + 1):
        torch.testing.assert_close(mechanism.mix(q[:, :, -queries:], k, v, mask), whole[:, :, -queries:])


@every_mechanism
def test_dropout_drops_weights_and_keeps_their_mean(name):
    mechanism, (q, k, v) = attention.get(name).tiny(), three(K, K)
    torch.manual_seed(2)
    with torch.no_grad():
        plain = mechanism.mix(q, k, v, Mask())
        many = torch.stack([mechanism.mix(q, k, v, Mask(), dropout=0.3) for _ in range(600)])
    assert not torch.equal(many[0], plain)
    assert (many.mean(dim=0) - plain).abs().mean() < 0.1 * plain.abs().mean()


@every_mechanism
def test_the_predicted_multiply_adds_are_the_counted_ones(name):
    mechanism, qkv = attention.get(name).tiny(), three(Q, K)
    v = qkv[2][..., :D]
    with plain_kernels(), FlopCounterMode(display=False) as counter:
        mechanism.mix(*qkv[:2], v, Mask())
    assert 2 * B * mechanism.cost(H, Q, K, D).multiply_adds == counter.get_total_flops()
