"""Statistics of rows and heads: the traps that others fell into, what may be given, and what it costs."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.modules.attention.boundary_aware import BoundaryAware
from neural.modules.attention.localized import Localized
from neural.modules.compiled import plain_torch
from neural.modules.mask import Mask
from neural.tracking.look import Look
from neural.tracking.measure import HeadMeasure
from neural.tracking.measures import registry
from neural.tracking.measures.entropy import Entropy, nats
from neural.tracking.statistics import averaged, compare, head_statistics, measured, row_statistics
from tests.tracking.looks import TOKENS, B, D, H, K, Q, look_of, mask_of, numbers, two_looks

with_and_without_kernels = pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain torch"])
q, k = numbers(B, H, K, D, seed=1) * 2, numbers(B, H, K, D, seed=2) * 2


@pytest.fixture
def way(kernels):
    """The compiled loops, or the definitions on chunks of rows."""
    if kernels:
        yield
    else:
        with plain_torch():
            yield


def same(one: dict, other: dict, **tolerance) -> None:
    assert one.keys() == other.keys()
    for name in one:
        said = f"{name}: {{}}".format
        torch.testing.assert_close(one[name], other[name], equal_nan=True, msg=said, **tolerance)


# the traps of facts/tracking.md


@with_and_without_kernels
def test_a_uniform_causal_head_has_a_relative_entropy_of_one(way):
    found = head_statistics(torch.zeros_like(q), k, Mask(causal=True), wanted=["relative_entropy"])
    torch.testing.assert_close(found["relative_entropy"], torch.ones(H))


@with_and_without_kernels
def test_padded_queries_are_not_rows(way):
    real = torch.arange(K) < torch.tensor([[31], [K]])
    padded = head_statistics(q, k, Mask(keys=real))
    rows = row_statistics(q, k, Mask(keys=real))
    assert rows["entropy"][0, :, 31:].isnan().all()
    cut = row_statistics(q[:1, :, :31], k[:1, :, :31])
    torch.testing.assert_close(rows["entropy"][:1, :, :31], cut["entropy"])
    total = cut["entropy"].sum(dim=(0, 2)) + rows["entropy"][1].sum(dim=-1)
    torch.testing.assert_close(padded["entropy"], total / (31 + K))


def test_queries_of_another_sequence_say_themselves_which_are_real():
    real = torch.arange(K) < 31
    rows = row_statistics(q, k, Mask(keys=real.expand(B, K)), real=torch.ones(B, K), wanted=["entropy"])["entropy"]
    assert not rows.isnan().any()
    some = torch.arange(K).expand(B, K) % 2 == 0
    rows = row_statistics(q, k, Mask(), real=some, wanted=["entropy"])["entropy"]
    assert (rows.isnan() == ~some.unsqueeze(1)).all()


@with_and_without_kernels
def test_fully_masked_rows_are_dropped_not_counted_as_zero(way):
    pairs = torch.ones(K, K, dtype=torch.bool)
    pairs[::2] = False
    found = head_statistics(q, k, Mask(pairs=pairs))
    rows = row_statistics(q, k)
    torch.testing.assert_close(found["entropy"], rows["entropy"][:, :, 1::2].mean(dim=(0, 2)))
    none = head_statistics(q, k, Mask(pairs=torch.zeros(K, K)))
    assert all(value.isnan().all() for value in none.values())


@with_and_without_kernels
def test_float_and_bool_masks_are_one(way):
    same(head_statistics(q, k, mask_of("keys", K)), head_statistics(q, k, mask_of("floats", K)))
    hidden = numbers(K, K, seed=3) > 0
    added = torch.zeros(K, K).masked_fill(hidden, -torch.inf)
    same(row_statistics(q, k, Mask(pairs=~hidden)), row_statistics(q, k, Mask(bias=added)))
    least = torch.zeros(K, K).masked_fill(hidden, torch.finfo(torch.bfloat16).min)
    same(row_statistics(q, k, Mask(pairs=~hidden)), row_statistics(q, k, Mask(bias=least)))


@with_and_without_kernels
@pytest.mark.parametrize("wanted", [["entropy", "span"], ["head_diversity", "head_variance"]])
def test_grouped_heads_are_repeated_heads(way, wanted):
    many, few = numbers(B, 6, K, D, seed=4), numbers(B, 2, K, D, seed=5)
    grouped = row_statistics(many, few, Mask(causal=True), wanted=wanted)
    same(grouped, row_statistics(many, few.repeat_interleave(3, dim=1), Mask(causal=True), wanted=wanted))
    one = compare(many, few, many, few)
    assert one["js_between"].max() < 1e-6


@with_and_without_kernels
@pytest.mark.parametrize(("queries", "keys"), [(Q, K), (K, Q), (K, K)])
def test_the_causal_flag_of_torch_starts_at_the_first_key(way, queries, keys):
    given_q, given_k = q[:, :, :queries], k[:, :, :keys]
    eye = torch.eye(keys).expand(B, H, keys, keys)
    weights = torch.nn.functional.scaled_dot_product_attention(given_q, given_k, eye, is_causal=True)
    found = row_statistics(given_q, given_k, Mask(causal=True), first=0, wanted=["entropy", "span", "diagonal_mass"])
    torch.testing.assert_close(found["entropy"], nats(weights), rtol=1e-4, atol=1e-5)
    away = (torch.arange(queries)[:, None] - torch.arange(keys)).abs()
    torch.testing.assert_close(found["span"], (weights * away).sum(dim=-1), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found["diagonal_mass"][0, 0, 3], weights[0, 0, 3, 3])


@with_and_without_kernels
def test_the_average_is_taken_after_the_entropy(way):
    # two rows that each look at one key, but not at the same: sharp, though their mean is not
    sharp = 100 * torch.eye(2)[None, None]
    found = head_statistics(sharp, torch.eye(2)[None, None], wanted=["entropy"], scale=1.0)
    assert found["entropy"].item() < 1e-6


@with_and_without_kernels
def test_statistics_are_32_bit_whatever_surrounds_them(way):
    plain = row_statistics(q, k, Mask(causal=True))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        same(row_statistics(q, k, Mask(causal=True)), plain)
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        less = row_statistics(q.to(dtype), k.to(dtype), Mask(causal=True))
        assert all(value.dtype == torch.float32 for value in less.values())
        same(less, row_statistics(q.to(dtype).float(), k.to(dtype).float(), Mask(causal=True)))


@with_and_without_kernels
@pytest.mark.parametrize("kind", ["causal", "left padding", "causal segments", "pairs"])
def test_statistics_without_the_sink_are_those_of_the_other_keys(way, kind):
    look = look_of(kind, queries=K)
    others = torch.arange(K) != look.origins.unsqueeze(-1)
    without = replace(look, mask=Mask(pairs=look.maps().kept & others.unsqueeze(1)), real=look.counted())
    names = ["entropy", "span", "head_diversity", "head_variance"]
    same(measured(names, replace(look, sink=False)), measured(names, without))
    one, other = two_looks("causal")
    names = ["js_between", "cosine_between", "centred_cosine_between"]
    mask = Mask(pairs=one.maps().kept & (torch.arange(K) != 0))
    wanted = measured(names, replace(one, mask=mask), replace(other, mask=mask))
    same(measured(names, replace(one, sink=False), replace(other, sink=False)), wanted)


# both ways of finding them


@given(
    queries=st.integers(1, 40), keys=st.integers(1, 90), width=st.integers(1, 9), causal=st.booleans(),
    reach=st.none() | st.integers(0, 30), first=st.none() | st.integers(-3, 60), sink=st.booleans(),
    scale=st.floats(0.01, 30), seed=st.integers(0, 99),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_the_loops_and_the_definitions_agree_whatever_the_sizes(
    queries, keys, width, causal, reach, first, sink, scale, seed
):
    given_q, given_k = numbers(1, 2, queries, width, seed=seed), numbers(1, 2, keys, width, seed=seed + 100)
    tokens = torch.randint(0, 5, (1, keys), generator=torch.Generator().manual_seed(seed))
    mask = Mask(causal=causal, reach=reach, keys=numbers(1, keys, seed=seed) > -1)
    look = Look(given_q, given_k, mask, scale=scale, tokens=tokens, first=first, sink=sink)
    other = replace(look, q=look.q.flip(-1))
    names = [name for name in registry.names() if registry.get(name).layers == 1 and name != "span90"]
    pairs = ["js_between", "cosine_between"]
    compiled = measured(names, look) | measured(pairs, look, other)
    with plain_torch():
        same(compiled, measured(names, look) | measured(pairs, look, other), rtol=1e-3, atol=2e-4)


@with_and_without_kernels
def test_layers_under_different_masks_are_compared_too(way):
    one, other = look_of("none"), look_of("window", seed=1)
    found = measured(["js_between", "cosine_between", "kl_between"], one, other)
    p, r = one.maps().weights, other.maps().weights
    mean = (p + r) / 2
    wanted = (nats(mean) - (nats(p) + nats(r)) / 2) / math.log(2)
    torch.testing.assert_close(found["js_between"], wanted, rtol=1e-4, atol=1e-5)
    assert found["kl_between"].isposinf().all()   # the first looks where the second cannot


@with_and_without_kernels
def test_large_scores_stay_finite(way):
    found = row_statistics(q * 1e3, k * 1e3, Mask(causal=True))
    for values in found.values():
        assert not values[:, ..., 1:].isinf().any()
    assert found["entropy"].max() < 1.5
    between = compare(q * 1e3, k * 1e3, q.flip(-1) * 1e3, k * 1e3, Mask(causal=True))
    assert all(value.isfinite().all() for value in between.values())


def test_other_mechanisms_are_masks_and_biases():
    near = row_statistics(q, k, Mask().near(3), wanted=["entropy"])["entropy"]
    torch.testing.assert_close(near, nats(Localized(window=7).weights(q, k, Mask())), rtol=1e-4, atol=1e-5)
    extra = numbers(B, K, seed=6).sigmoid()
    biased = row_statistics(q, k, Mask(key_bias=extra[:, None] / 2), wanted=["entropy"])["entropy"]
    torch.testing.assert_close(biased, nats(BoundaryAware().weights(q, k, Mask(), extra)), rtol=1e-4, atol=1e-5)


@with_and_without_kernels
def test_looking_leaves_no_trace(way):
    before = torch.get_num_threads()
    leaf, bias = q.clone().requires_grad_(), numbers(B, H, K).requires_grad_()
    found = row_statistics(leaf, k, Mask(key_bias=bias), wanted=["entropy", "head_diversity"])
    assert not any(value.requires_grad for value in found.values())
    torch.testing.assert_close(leaf.detach(), q, rtol=0, atol=0)
    assert torch.get_num_threads() == before


def test_the_first_compiled_loop_leaves_torch_its_threads():
    script = (
        "import torch; from neural.tracking.statistics import row_statistics; torch.set_num_threads(1)\n"
        "row_statistics(torch.ones(1, 1, 4, 4), torch.ones(1, 1, 4, 4)); assert torch.get_num_threads() == 1"
    )
    more = {"NUMBA_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=os.environ | more)
    assert done.returncode == 0, done.stderr


def test_two_heads_are_compared_as_layers_of_one_head():
    found = compare(q[:, :1], k[:, :1], q[:, 1:2], k[:, 1:2], Mask(causal=True))
    assert found["js_between"].shape == (1,)
    assert 0 < found["js_between"].item() < 1


def test_a_measure_from_outside_needs_its_definition_alone():
    class LastKey(HeadMeasure):
        """Share of the mass on the last key: 0 ignores it, 1 looks at nothing else."""

        def plain(self, *maps):
            return maps[0].weights[..., -1]

    registry.add(LastKey)
    try:
        found = row_statistics(q, k, wanted=["last_key", "entropy"])
        torch.testing.assert_close(found["last_key"], Look(q, k).maps().weights[..., -1])
        torch.testing.assert_close(averaged(found)["entropy"], Entropy().average(found["entropy"]))
    finally:
        del registry._added["lastkey"]


# mistakes


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: row_statistics(q, k[:, :2]), "heads of k must divide those of q, got 2 and 3"),
        (lambda: row_statistics(q[0], k), r"q and k must be \(B, H, time, D\).*\(3, 53, 7\)"),
        (lambda: row_statistics(q / 0, k), "`q` has values that are not finite"),
        (lambda: row_statistics(q, k, wanted=["entropi"]), "did you mean `entropy`"),
        (lambda: row_statistics(q, k, wanted=["js_between"]), "not a measure of the rows of 1 layer"),
        (lambda: row_statistics(q, k, wanted=["rollout"]), "not a measure of the rows of 1 layer"),
        (lambda: row_statistics(q, k, wanted=["induction_mass"]), "needs to know the tokens"),
        (lambda: row_statistics(q, k, tokens=TOKENS[:, 1:]), r"`tokens` must have the shape \(2, 53\), got \(2, 52\)"),
        (lambda: row_statistics(q, k, Mask(keys=torch.ones(B, 3))), r"`keys` must have the shape \(2, 53\)"),
        (lambda: compare(q, k, q[:, :, 1:], k), "same shapes"),
        (lambda: registry.get("rollout")().fast([Look(q[:, :, 1:], k)]), "rollout needs self-attention"),
    ],
)
def test_a_mistake_is_named(call, said):
    with pytest.raises((ValueError, LookupError), match=said):
        call()


# memory

PEAK = """
import pathlib, torch
from neural.modules.compiled import plain_torch
from neural.modules.mask import Mask
from neural.tracking.look import Look
from neural.tracking.statistics import compare, row_statistics
torch.set_num_threads(2)
def peak():
    # not by getrusage, where a process starts with the peak of the one that started it
    (line,) = (line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    return int(line.split()[1]) / 1024
def look(queries, keys):
    q, k = torch.randn(1, 8, queries, 64), torch.randn(1, 8, keys, 64)
    pathlib.Path("/proc/self/clear_refs").write_text("5")   # forget the peak until here
    before = peak()
    {call}
    return peak() - before
look(64, 64)   # compiles
print(look({queries}, 8192))
"""


def megabytes(call: str, queries: int) -> float:
    script = PEAK.format(call=call, queries=queries)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@on_linux
@pytest.mark.parametrize(
    ("call", "queries"),
    [
        ("row_statistics(q, k)", 8192),
        ("compare(q, k, q, k)", 1024),
        ("with plain_torch(): row_statistics(q, k)", 512),   # what it holds does not depend on the number of rows
        ("row_statistics(q, k, Mask(causal=True, segments=torch.zeros(1, k.shape[2])))", 512),
    ],
)
def test_eight_heads_of_8192_keys_are_measured_in_less_than_100_megabytes(call, queries):
    assert megabytes(call, queries) < 100


@on_linux
def test_the_peak_of_weights_that_are_written_out_would_be_noticed():
    assert megabytes("Look(q, k).maps()", 512) > 3 * 8 * 512 * 8192 * 4 / 2**20 * 0.9   # scores, weights and a copy
