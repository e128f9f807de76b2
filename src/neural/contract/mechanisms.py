"""What every attention mechanism promises: `weights` defines it, `mix` runs it, and nobody sees what is masked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.contract.attention_inputs import (
    LENGTHS,
    LONG,
    MASKS,
    B,
    D,
    H,
    K,
    Lengths,
    Q,
    extra_of,
    gradients,
    leaves_of,
    mask_of,
    three,
    visible,
    why_hidden,
)
from neural.contract.measured import plain_kernels
from neural.contract.promise import first_place, hold, promise, same, shape_of
from neural.modules.attention.self import Self
from neural.modules.compiled import plain_torch
from neural.modules.late import late, torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

flop_counter = late("torch.utils.flop_counter")

HELP = "`mask.kept(queries, keys, device)` says who may be seen; the last query stands at the last key"


def agree(mechanism: Mechanism, qkv: Sequence[Tensor], mask: Mask) -> None:
    """`mix` against `weights @ v`, and the gradients of both."""
    q, k, v = qkv
    extra = extra_of(mechanism, q, k)
    leaves = leaves_of(qkv, mask, extra)
    fast, plain = mechanism.mix(q, k, v, mask, extra=extra), mechanism.weights(q, k, mask, extra) @ v
    same(fast, plain, "`mix(q, k, v, mask)` is not `weights(q, k, mask) @ v`")
    towards = torch.randn_like(fast)
    for one, other in zip(gradients(fast, leaves, towards), gradients(plain, leaves, towards), strict=True):
        hold(one.isfinite().all(), f"a gradient of `mix`, of shape {shape_of(one)}, is not finite")
        same(one, other, f"the gradients of `mix` and of `weights @ v` differ in an input of shape {shape_of(one)}")


@promise(lengths=LENGTHS, kind=MASKS)
def the_fast_way_equals_the_definition_in_values_and_gradients(
    entry: type[Mechanism], lengths: Lengths, kind: str
) -> None:
    """With more queries than keys, fewer, and one; under every mask."""
    agree(entry.tiny(), three(*lengths), mask_of(kind, *lengths))


@promise(kind=("none", "causal keys", "window segments"))
def long_sequences_too(entry: type[Mechanism], kind: str) -> None:
    """A sequence may be cut into pieces, and pieces have edges."""
    agree(entry.tiny(), three(LONG, LONG), mask_of(kind, LONG, LONG))


@promise(kind=("none", "causal keys"), digits=("float32", "float64"))
def a_nan_in_a_query_is_not_hidden(entry: type[Mechanism], kind: str, digits: str) -> None:
    """The same outputs are NaN as in the definition: a diverged training must not look sound."""
    mechanism, mask = entry.tiny(), mask_of(kind, LONG, LONG)
    q, k, v = (tensor.detach().to(getattr(torch, digits)) for tensor in three(LONG, LONG))
    extra = extra_of(mechanism, q, k)
    q[0, 1, LONG // 2, 0] = torch.nan
    fast, plain = mechanism.mix(q, k, v, mask, extra=extra), mechanism.weights(q, k, mask, extra) @ v
    hidden = plain.isnan() & ~fast.isnan()
    if hidden.any():
        raise AssertionError(f"`mix` is finite at {first_place(hidden)}, where `weights @ v` is NaN")


@promise(lengths=LENGTHS, kind=MASKS)
def rows_sum_to_one_and_masked_keys_get_nothing(entry: type[Mechanism], lengths: Lengths, kind: str) -> None:
    """Or are all zero, where there is nothing to look at."""
    (queries, keys), mechanism, mask = lengths, entry.tiny(), mask_of(kind, *lengths)
    q, k, _ = three(queries, keys)
    w = mechanism.weights(q, k, mask, extra_of(mechanism, q, k))
    wanted = (B, H, queries, keys)
    hold(w.shape == wanted, f"`weights` has the shape {shape_of(w)}, must be (batch, heads, queries, keys): {wanted}")
    hold((w >= 0).all(), f"a weight is negative or no number: {w.min():g}")
    looked = (w != 0) & ~visible(mask, queries, keys).expand_as(w)
    if looked.any():
        example, head, query, key = first_place(looked)
        why, weight = why_hidden(mask, example, query, key, keys - queries), w[example, head, query, key]
        raise AssertionError(f"query {query} gives key {key} a weight of {weight:.3g}, and must not: {why}.\n{HELP}")
    total = w.sum(dim=-1)
    empty = (w == 0).all(dim=-1)
    off = ((total - 1).abs() > 1e-7) & ~empty
    if off.any():
        example, head, query = first_place(off)
        raise AssertionError(
            f"the weights of query {query} sum to {total[example, head, query]:.4g}, must sum to 1 "
            f"(example {example}, head {head})"
        )
    if kind in ("none", "bias", "causal") and queries <= keys:
        hold(not empty.any(), "a query looks at nothing, though there is something to look at")


@promise(lengths=LENGTHS)
def a_fully_masked_row_is_zero_not_nan(entry: type[Mechanism], lengths: Lengths) -> None:
    """Padding alone happens: a batch is as long as its longest text."""
    mechanism, qkv, mask = entry.tiny(), three(*lengths), mask_of("empty", *lengths)
    q, k, v = qkv
    extra = extra_of(mechanism, q, k)
    mixed = mechanism.mix(q, k, v, mask, extra=extra)
    hold((mixed[0] == 0).all(), "`mix` is not zero where everything is masked")
    hold((mechanism.weights(q, k, mask, extra)[0] == 0).all(), "`weights` are not zero where everything is masked")
    for one in gradients(mixed, qkv, torch.ones_like(mixed)):
        hold((one[0] == 0).all(), "a gradient is not zero where everything is masked")
        hold(one.isfinite().all(), "a gradient is not finite beside an example in which everything is masked")


@promise(kind=MASKS)
def nothing_that_is_masked_reaches_the_result(entry: type[Mechanism], kind: str) -> None:
    """Not by the weights, and by no other way: the gradient tells."""
    mechanism, (q, k, v), mask = entry.tiny(), three(K, K), mask_of(kind, K, K)
    seen = visible(mask, K, K)
    for query in range(K):
        mixed = mechanism.mix(q, k, v, mask, extra=extra_of(mechanism, q, k))[:, :, query]
        for name, gradient in zip(("key", "value"), gradients(mixed, [k, v], torch.randn_like(mixed)), strict=True):
            leak = (gradient.abs().amax(dim=(1, 3)) > 0) & ~seen[:, 0, query]
            if leak.any():
                example, key = first_place(leak)
                why = why_hidden(mask, example, query, key, 0)
                raise AssertionError(
                    f"{name} {key} changes what `mix` gives query {query}, and must not: {why}.\n{HELP}"
                )


@promise()
def large_scores_stay_finite(entry: type[Mechanism]) -> None:
    """A softmax takes its largest score off first."""
    mechanism, (q, k, v), mask = entry.tiny(), three(K, K), mask_of("causal keys", K, K)
    q, k = q.float() * 1e4, k.float() * 1e4
    extra = extra_of(mechanism, q, k)
    hold(mechanism.mix(q, k, v.float(), mask, extra=extra).isfinite().all(), "`mix` is not finite with large scores")
    hold(mechanism.weights(q, k, mask, extra).isfinite().all(), "`weights` are not finite with large scores")


@promise()
def the_queries_at_the_end_can_be_asked_alone(entry: type[Mechanism]) -> None:
    """So that text is written with a cache: the newest query, all keys."""
    mechanism, (q, k, v), mask = entry.tiny(), three(K, K), Mask(causal=True)
    extra = extra_of(mechanism, q, k)
    whole = mechanism.mix(q, k, v, mask, extra=extra)
    for queries in range(1, K + 1):
        some = mechanism.mix(q[:, :, -queries:], k, v, mask, extra=extra)
        same(some, whole[:, :, -queries:], f"the last {queries} of {K} queries, asked alone, find something else")


@promise()
def dropout_drops_weights_and_keeps_their_mean(entry: type[Mechanism]) -> None:
    """What is left is made larger, so that nothing is to be done when nothing is dropped."""
    mechanism, (q, k, v) = entry.tiny(), three(K, K)
    torch.manual_seed(2)
    with torch.no_grad():
        extra = extra_of(mechanism, q, k)
        plain = mechanism.mix(q, k, v, Mask(), extra=extra)
        many = torch.stack([mechanism.mix(q, k, v, Mask(), dropout=0.3, extra=extra) for _ in range(600)])
    hold(not torch.equal(many[0], plain), "`dropout` changes nothing")
    away = (many.mean(dim=0) - plain).abs().mean() / plain.abs().mean()
    hold(away < 0.1, f"with dropout the result is another one in the mean, by {away:.0%}")


@promise()
def the_predicted_multiply_adds_are_the_counted_ones(entry: type[Mechanism]) -> None:
    """Those of `mix`, for one example: `neural check` shows them."""
    mechanism, (q, k, v) = entry.tiny(), three(Q, K)
    extra = extra_of(mechanism, q, k)
    with plain_kernels(), plain_torch(), flop_counter.FlopCounterMode(display=False) as counter:
        mechanism.mix(q, k, v[..., :D], Mask(), extra=extra)
    predicted, counted = mechanism.cost(H, Q, K, D).multiply_adds, counter.get_total_flops() / (2 * B)
    said = f"`cost` predicts {predicted:,} multiply-adds for {H} heads, {Q} queries, {K} keys of width {D}"
    # a compiled kernel may visit only the pairs it needs, and torch cannot count it: not more than plain torch, then
    right = predicted <= counted if hasattr(type(mechanism).mix, "__wrapped__") else predicted == counted
    hold(right, f"{said}; torch counts {counted:,g}")


@promise(kind=("causal", "causal keys bias", "key_bias", "keys"))
def what_says_it_is_a_softmax_is_one(entry: type[Mechanism], kind: str) -> None:
    """By `as_softmax` the weights are measured without being written out: it tells the truth, and is not silent."""
    mechanism, (q, k, _), mask = entry.tiny(), three(K, K), mask_of(kind, K, K)
    extra = extra_of(mechanism, q, k)
    w, softer = mechanism.weights(q, k, mask, extra), mechanism.as_softmax(q, k, mask, extra)
    if softer is not None:
        same(Self().weights(q, k, softer), w, "`as_softmax` gives a mask under which the softmax is not `weights`")
    else:
        is_softmax = torch.allclose(Self().weights(q, k, mask), w, atol=1e-3)
        hold(not is_softmax, "the weights are the plain softmax: let `as_softmax` return the mask")


@promise()
def an_example_knows_nothing_of_its_neighbours_in_the_batch(entry: type[Mechanism]) -> None:
    """To the last bit."""
    mechanism, qkv, mask = entry.tiny(), three(K, K), mask_of("keys", K, K)
    others = [torch.cat((one[:1], torch.randn_like(one[1:]))) for one in qkv]
    extra = extra_of(mechanism, *qkv[:2])
    alone, again = (mechanism.mix(q, k, v, mask, extra=extra)[0] for q, k, v in (qkv, others))
    same(alone, again, "an example changes with the others of its batch", rtol=0, atol=0)


def _relates_two_sequences(entry: type[Mechanism]) -> bool:
    return not entry.self_attention_only


@promise(lengths=(Lengths(Q, K), Lengths(K, Q)), applies=_relates_two_sequences)
def the_order_of_queries_and_keys_does_not_matter(entry: type[Mechanism], lengths: Lengths) -> None:
    """So that it can be the cross-attention of a decoder; others declare `self_attention_only`."""
    mechanism, (q, k, _) = entry.tiny(), three(*lengths)
    learned, source = mechanism.learned(D, H, D), torch.randn(B, lengths.keys, D, dtype=torch.float64)
    rows, columns = torch.randperm(lengths.queries), torch.randperm(lengths.keys)

    def weights_of(q: Tensor, k: Tensor, source: Tensor) -> Tensor:
        extra = None if learned is None else learned.double()(source)
        return mechanism.weights(q, k, Mask(), extra)

    expected = weights_of(q, k, source)[:, :, rows][..., columns]
    shuffled = weights_of(q[:, :, rows], k[:, :, columns], source[:, columns])
    same(
        shuffled,
        expected,
        "the weights depend on the order of queries or keys, so the mechanism cannot relate two "
        "sequences: declare `self_attention_only: ClassVar[bool] = True`",
    )
