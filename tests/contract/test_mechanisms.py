"""What every attention mechanism promises: `weights` defines it, `mix` runs it, and nobody sees what is masked."""

from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from neural.modules.attention import registry as attention
from neural.modules.compiled import plain_torch
from neural.modules.mask import Mask
from tests.contract.subjects import plain_kernels

B, H, Q, K, D, V = 2, 3, 5, 7, 11, 13   # all different, all prime: a swapped axis cannot pass by luck
LONG = 367   # more than any mechanism takes in one piece
every_mechanism = pytest.mark.parametrize("name", attention.names())
every_length = pytest.mark.parametrize(("queries", "keys"), [(Q, K), (K, K), (K, Q), (1, K)])
every_mask = pytest.mark.parametrize(
    "kind",
    [
        "none", "causal", "keys", "floats", "causal keys", "window", "segments", "causal segments", "pairs", "bias",
        "key_bias", "causal key_bias", "bias causal keys", "key_bias bias keys window segments", "empty",
    ],
)  # fmt: skip


def numbers(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def three(queries: int, keys: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return numbers(B, H, queries, D), numbers(B, H, keys, D), numbers(B, H, keys, V)


def mask_of(kind: str, queries: int, keys: int) -> Mask:
    torch.manual_seed(1)
    words = kind.split()
    real = None
    if "keys" in words or "floats" in words:
        real = torch.ones(B, keys, dtype=torch.bool)
        real[0, -2:], real[1, 0], real[1, 3] = False, False, False
        real = real.float() if "floats" in words else real
    if kind == "empty":
        real = torch.tensor([False, True]).unsqueeze(-1).repeat(1, keys)
    segments = (torch.arange(keys) // 3).repeat(B, 1) if "segments" in words and queries <= keys else None
    return Mask(
        causal="causal" in words, keys=real, reach=2 if "window" in words else None, segments=segments,
        pairs=torch.rand(B, 1, queries, keys) > 0.4 if "pairs" in words else None,
        bias=numbers(H, queries, keys) if "bias" in words else None,
        key_bias=numbers(B, H, keys) if "key_bias" in words else None,
    )  # fmt: skip


def extra_of(mechanism, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor | None:
    """What the mechanism's learned part might give."""
    torch.manual_seed(3)
    return mechanism.extra(q, k)


def gradients(result: torch.Tensor, leaves: list, towards: torch.Tensor) -> list[torch.Tensor]:
    """Zeros where a mechanism does not use something."""
    found = torch.autograd.grad(result, leaves, towards, allow_unused=True)
    return [torch.zeros_like(leaf) if one is None else one for one, leaf in zip(found, leaves, strict=True)]


def visible(mask: Mask, queries: int, keys: int) -> torch.Tensor:
    """Who may be seen, pair by pair: the last query stands at the last key."""
    seen = torch.ones(B, 1, queries, keys, dtype=torch.bool)
    for query in range(queries):
        for key in range(keys):
            at = query + keys - queries
            if mask.causal and key > at:
                seen[:, :, query, key] = False
            if mask.reach is not None and abs(key - at) > mask.reach:
                seen[:, :, query, key] = False
            if mask.keys is not None:
                seen[:, 0, query, key] &= mask.keys[:, key] != 0
            if mask.segments is not None:
                seen[:, 0, query, key] &= mask.segments[:, key] == mask.segments[:, at]
            if mask.pairs is not None:
                seen[:, 0, query, key] &= mask.pairs[:, 0, query, key]
    return seen


@every_mechanism
@every_length
@every_mask
def test_the_fast_way_equals_the_definition_in_values_and_gradients(name, queries, keys, kind):
    mechanism, qkv, mask = attention.get(name).tiny(), three(queries, keys), mask_of(kind, queries, keys)
    extra = extra_of(mechanism, *qkv[:2])
    leaves = [*qkv, *(one for one in (mask.bias, mask.key_bias, extra) if one is not None)]
    fast = mechanism.mix(*qkv, mask, extra=extra)
    plain = mechanism.weights(*qkv[:2], mask, extra) @ qkv[2]
    torch.testing.assert_close(fast, plain)
    towards = torch.randn_like(fast)
    for one, other in zip(gradients(fast, leaves, towards), gradients(plain, leaves, towards), strict=True):
        assert one.isfinite().all()
        torch.testing.assert_close(one, other)


@every_mechanism
@every_length
@every_mask
def test_rows_sum_to_one_and_masked_keys_get_nothing(name, queries, keys, kind):
    mechanism, (q, k, _), mask = attention.get(name).tiny(), three(queries, keys), mask_of(kind, queries, keys)
    w = mechanism.weights(q, k, mask, extra_of(mechanism, q, k))
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
    extra = extra_of(mechanism, *qkv[:2])
    mixed = mechanism.mix(*qkv, mask, extra=extra)
    assert (mixed[0] == 0).all()
    assert (mechanism.weights(*qkv[:2], mask, extra)[0] == 0).all()
    for one in gradients(mixed, qkv, torch.ones_like(mixed)):
        assert (one[0] == 0).all()
        assert one.isfinite().all()


@every_mechanism
@every_mask
def test_nothing_that_is_masked_reaches_the_result(name, kind):
    mechanism, (q, k, v), mask = attention.get(name).tiny(), three(K, K), mask_of(kind, K, K)
    seen = visible(mask, K, K)
    for query in range(K):
        mixed = mechanism.mix(q, k, v, mask, extra=extra_of(mechanism, q, k))[:, :, query]
        for gradient in gradients(mixed, [k, v], torch.randn_like(mixed)):
            reached = gradient.abs().amax(dim=(1, 3)) > 0
            assert not (reached & ~seen[:, 0, query]).any()


@every_mechanism
def test_large_scores_stay_finite(name):
    mechanism, (q, k, v), mask = attention.get(name).tiny(), three(K, K), mask_of("causal keys", K, K)
    q, k = q.float() * 1e4, k.float() * 1e4
    extra = extra_of(mechanism, q, k)
    assert mechanism.mix(q, k, v.float(), mask, extra=extra).isfinite().all()
    assert mechanism.weights(q, k, mask, extra).isfinite().all()


@every_mechanism
def test_the_queries_at_the_end_can_be_asked_alone(name):
    mechanism, (q, k, v), mask = attention.get(name).tiny(), three(K, K), Mask(causal=True)
    extra = extra_of(mechanism, q, k)
    whole = mechanism.mix(q, k, v, mask, extra=extra)
    for queries in range(1, K + 1):
        some = mechanism.mix(q[:, :, -queries:], k, v, mask, extra=extra)
        torch.testing.assert_close(some, whole[:, :, -queries:])


@every_mechanism
def test_dropout_drops_weights_and_keeps_their_mean(name):
    mechanism, (q, k, v) = attention.get(name).tiny(), three(K, K)
    torch.manual_seed(2)
    with torch.no_grad():
        extra = extra_of(mechanism, q, k)
        plain = mechanism.mix(q, k, v, Mask(), extra=extra)
        many = torch.stack([mechanism.mix(q, k, v, Mask(), dropout=0.3, extra=extra) for _ in range(600)])
    assert not torch.equal(many[0], plain)
    assert (many.mean(dim=0) - plain).abs().mean() < 0.1 * plain.abs().mean()


@every_mechanism
def test_the_predicted_multiply_adds_are_the_counted_ones(name):
    mechanism, qkv = attention.get(name).tiny(), three(Q, K)
    v = qkv[2][..., :D]
    extra = extra_of(mechanism, *qkv[:2])
    with plain_kernels(), plain_torch(), FlopCounterMode(display=False) as counter:
        mechanism.mix(*qkv[:2], v, Mask(), extra=extra)
    predicted, counted = 2 * B * mechanism.cost(H, Q, K, D).multiply_adds, counter.get_total_flops()
    # a compiled kernel may visit only the pairs it needs, and torch cannot count it: not more than plain torch, then
    assert predicted <= counted if hasattr(type(mechanism).mix, "__wrapped__") else predicted == counted


@every_mechanism
@pytest.mark.parametrize("kind", ["none", "causal keys", "key_bias bias keys window segments"])
def test_gradients_are_those_of_finite_differences(name, kind):
    mechanism, (q, k, v), mask = attention.get(name).tiny(), three(Q, K), mask_of(kind, Q, K)
    extra = extra_of(mechanism, q, k)
    if mechanism.straight_through:   # in what the weights are made of, it is another gradient on purpose
        q, k = q.detach(), k.detach()
        mask = replace(mask, **{one: getattr(mask, one).detach() for one in kind.split() if "bias" in one})
    leaves = [one for one in (q, k, v, mask.bias, mask.key_bias, extra) if one is not None and one.requires_grad]
    assert torch.autograd.gradcheck(lambda *_: mechanism.mix(q, k, v, mask, extra=extra), leaves, fast_mode=True)


@every_mechanism
@pytest.mark.parametrize(("dtype", "share"), [(torch.float32, 1e-5), (torch.bfloat16, 3e-2)], ids=["32", "16"])
@pytest.mark.parametrize("kind", ["none", "causal keys"])
def test_fewer_digits_change_little(name, dtype, share, kind):
    mechanism, mask = attention.get(name).tiny(), mask_of(kind, K, K)
    low = [one.detach().to(dtype).requires_grad_() for one in three(K, K)]
    exact = [one.detach().double().requires_grad_() for one in low]
    extra = extra_of(mechanism, *exact[:2])
    less = None if extra is None else extra.detach().to(dtype)
    found, wanted = mechanism.mix(*low, mask, extra=less), mechanism.mix(*exact, mask, extra=extra)
    assert found.dtype == mechanism.weights(*low[:2], mask, less).dtype == dtype
    assert (found - wanted).abs().mean() < share * wanted.abs().mean()
    for one in gradients(found, low, torch.ones_like(found)):
        assert one.isfinite().all()


@every_mechanism
def test_an_example_knows_nothing_of_its_neighbours_in_the_batch(name):
    mechanism, qkv, mask = attention.get(name).tiny(), three(K, K), mask_of("keys", K, K)
    others = [torch.cat((one[:1], torch.randn_like(one[1:]))) for one in qkv]
    extra = extra_of(mechanism, *qkv[:2])
    alone, again = (mechanism.mix(*three, mask, extra=extra)[0] for three in (qkv, others))
    torch.testing.assert_close(alone, again, rtol=0, atol=0)


@every_mechanism
@pytest.mark.parametrize("kind", ["none", "causal keys"])
def test_compiled_by_torch_it_is_the_same(name, kind):
    torch.compiler.reset()
    mechanism, qkv, mask = attention.get(name).tiny(), three(K, K), mask_of(kind, K, K)
    extra = extra_of(mechanism, *qkv[:2])

    def plain(q, k, v, keys):
        return mechanism.mix(q, k, v, replace(mask, keys=keys), extra=extra)

    mix = torch.compile(plain, backend="eager", fullgraph=True)
    found, wanted = mix(*qkv, mask.keys), mechanism.mix(*qkv, mask, extra=extra)
    torch.testing.assert_close(found, wanted)
    towards = torch.randn_like(found)
    for one, other in zip(gradients(found, qkv, towards), gradients(wanted, qkv, towards), strict=True):
        torch.testing.assert_close(one, other)


class Exported(torch.nn.Module):
    """A mechanism as the exporter meets it: inside a module, with a padding mask among the inputs."""

    def __init__(self, mechanism, mask, extra):
        super().__init__()
        self.mechanism, self.mask, self.extra = mechanism, mask, extra

    def forward(self, q, k, v, keys):
        return self.mechanism.mix(q, k, v, replace(self.mask, keys=keys), extra=self.extra)


@every_mechanism
@pytest.mark.parametrize("kind", ["none", "causal keys"])
@pytest.mark.parametrize("kernels", ["compiled", "plain"])
def test_exported_by_torch_it_is_the_same(name, kind, kernels):
    mechanism, qkv, mask = attention.get(name).tiny(), three(K, K), mask_of(kind, K, K)
    qkv, extra = [one.detach() for one in qkv], extra_of(mechanism, *qkv[:2])
    extra = extra.detach() if extra is not None else None
    given = (*qkv, mask.keys)
    with plain_torch() if kernels == "plain" else nullcontext():
        program = torch.export.export(Exported(mechanism, mask, extra), given, strict=True)
        torch.testing.assert_close(program.module()(*given), mechanism.mix(*qkv, mask, extra=extra))


@every_mechanism
@pytest.mark.parametrize("kind", ["none", "causal keys", "window segments"])
def test_long_sequences_too(name, kind):
    mechanism, qkv, mask = attention.get(name).tiny(), three(LONG, LONG), mask_of(kind, LONG, LONG)
    extra = extra_of(mechanism, *qkv[:2])
    leaves = [*qkv, *(one for one in (mask.key_bias, extra) if one is not None)]
    fast, plain = mechanism.mix(*qkv, mask, extra=extra), mechanism.weights(*qkv[:2], mask, extra) @ qkv[2]
    torch.testing.assert_close(fast, plain)
    towards = torch.randn_like(fast)
    for one, other in zip(gradients(fast, leaves, towards), gradients(plain, leaves, towards), strict=True):
        torch.testing.assert_close(one, other)
