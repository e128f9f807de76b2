"""Statistics of rows and heads: known pitfalls, accepted arguments, and memory."""

import math
import os
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.capture.attention_call import AttentionCall
from neural.capture.measure import HeadMeasure, LayerMeasure, PairMeasure
from neural.capture.measures import registry
from neural.capture.measures.entropy import Entropy, entropy_nats
from neural.capture.statistics import (
    aggregate_rows,
    compare_layers,
    head_statistics,
    measure_pairs,
    measure_rows,
    row_statistics,
)
from neural.native.library import available_levels, force_level
from neural.nn.attention.boundary_aware import BoundaryAware
from neural.nn.attention.localized import Localized
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.mask import Mask
from tests.capture.attention_calls import (
    KINDS,
    TOKENS,
    B,
    D,
    H,
    K,
    Q,
    make_call,
    make_call_pair,
    make_mask,
    random_tensor,
)

with_and_without_kernels = pytest.mark.parametrize(
    "kernels", [True, False], ids=["compiled", "plain torch"]
)
every_level = pytest.mark.parametrize("level", available_levels())
q, k = random_tensor(B, H, K, D, seed=1) * 2, random_tensor(B, H, K, D, seed=2) * 2


@pytest.fixture
def backend(kernels):
    """The native kernels, or the definitions on blocks of rows."""
    if kernels:
        yield
    else:
        with no_kernels():
            yield


def assert_same(first: dict, second: dict, **tolerance) -> None:
    assert first.keys() == second.keys()
    for name in first:
        message = f"{name}: {{}}".format
        torch.testing.assert_close(
            first[name], second[name], equal_nan=True, msg=message, **tolerance
        )


# known pitfalls


@with_and_without_kernels
def test_a_uniform_causal_head_has_a_relative_entropy_of_one(backend):
    statistics = head_statistics(
        torch.zeros_like(q), k, Mask(causal=True), measures=["relative_entropy"]
    )
    torch.testing.assert_close(statistics["relative_entropy"], torch.ones(H))


@with_and_without_kernels
def test_padded_queries_are_not_rows(backend):
    real = torch.arange(K) < torch.tensor([[31], [K]])
    padded = head_statistics(q, k, Mask(keys=real))
    rows = row_statistics(q, k, Mask(keys=real))
    assert rows["entropy"][0, :, 31:].isnan().all()
    cut = row_statistics(q[:1, :, :31], k[:1, :, :31])
    torch.testing.assert_close(rows["entropy"][:1, :, :31], cut["entropy"])
    total = cut["entropy"].sum(dim=(0, 2)) + rows["entropy"][1].sum(dim=-1)
    torch.testing.assert_close(padded["entropy"], total / (31 + K))


def test_padding_of_queries_of_another_sequence_is_passed_as_real():
    real = torch.arange(K) < 31
    rows = row_statistics(
        q, k, Mask(keys=real.expand(B, K)), real=torch.ones(B, K), measures=["entropy"]
    )["entropy"]
    assert not rows.isnan().any()
    is_even = torch.arange(K).expand(B, K) % 2 == 0
    rows = row_statistics(q, k, Mask(), real=is_even, measures=["entropy"])["entropy"]
    assert (rows.isnan() == ~is_even.unsqueeze(1)).all()


@with_and_without_kernels
def test_fully_masked_rows_are_dropped_not_counted_as_zero(backend):
    pairs = torch.ones(K, K, dtype=torch.bool)
    pairs[::2] = False
    statistics = head_statistics(q, k, Mask(pairs=pairs))
    rows = row_statistics(q, k)
    torch.testing.assert_close(statistics["entropy"], rows["entropy"][:, :, 1::2].mean(dim=(0, 2)))
    none = head_statistics(q, k, Mask(pairs=torch.zeros(K, K)))
    assert all(value.isnan().all() for value in none.values())


@with_and_without_kernels
def test_float_and_bool_masks_are_equivalent(backend):
    assert_same(
        head_statistics(q, k, make_mask("keys", K)), head_statistics(q, k, make_mask("floats", K))
    )
    hidden = random_tensor(K, K, seed=3) > 0
    added = torch.zeros(K, K).masked_fill(hidden, -torch.inf)
    assert_same(row_statistics(q, k, Mask(pairs=~hidden)), row_statistics(q, k, Mask(bias=added)))
    smallest = torch.zeros(K, K).masked_fill(hidden, torch.finfo(torch.bfloat16).min)
    assert_same(
        row_statistics(q, k, Mask(pairs=~hidden)), row_statistics(q, k, Mask(bias=smallest))
    )


@with_and_without_kernels
@pytest.mark.parametrize("names", [["entropy", "span"], ["head_diversity", "head_variance"]])
def test_grouped_heads_equal_repeated_heads(backend, names):
    many, few = random_tensor(B, 6, K, D, seed=4), random_tensor(B, 2, K, D, seed=5)
    grouped = row_statistics(many, few, Mask(causal=True), measures=names)
    assert_same(
        grouped,
        row_statistics(many, few.repeat_interleave(3, dim=1), Mask(causal=True), measures=names),
    )
    comparison = compare_layers(many, few, many, few)
    assert comparison["js_between"].max() < 1e-6


@with_and_without_kernels
@pytest.mark.parametrize(("queries", "keys"), [(Q, K), (K, Q), (K, K)])
def test_the_causal_flag_of_torch_starts_at_the_first_key(backend, queries, keys):
    given_q, given_k = q[:, :, :queries], k[:, :, :keys]
    eye = torch.eye(keys).expand(B, H, keys, keys)
    weights = torch.nn.functional.scaled_dot_product_attention(
        given_q, given_k, eye, is_causal=True
    )
    statistics = row_statistics(
        given_q,
        given_k,
        Mask(causal=True),
        query_offset=0,
        measures=["entropy", "span", "diagonal_mass"],
    )
    torch.testing.assert_close(statistics["entropy"], entropy_nats(weights), rtol=1e-4, atol=1e-5)
    distance = (torch.arange(queries)[:, None] - torch.arange(keys)).abs()
    torch.testing.assert_close(
        statistics["span"], (weights * distance).sum(dim=-1), rtol=1e-4, atol=1e-5
    )
    torch.testing.assert_close(statistics["diagonal_mass"][0, 0, 3], weights[0, 0, 3, 3])


@with_and_without_kernels
def test_the_average_is_taken_after_the_entropy(backend):
    # two rows that attend to one key each, but not the same: sharp, although their mean is not
    sharp = 100 * torch.eye(2)[None, None]
    statistics = head_statistics(sharp, torch.eye(2)[None, None], measures=["entropy"], scale=1.0)
    assert statistics["entropy"].item() < 1e-6


@with_and_without_kernels
def test_statistics_are_32_bit_inside_autocast_and_for_every_dtype(backend):
    plain = row_statistics(q, k, Mask(causal=True))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(row_statistics(q, k, Mask(causal=True)), plain)
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        less = row_statistics(q.to(dtype), k.to(dtype), Mask(causal=True))
        assert all(value.dtype == torch.float32 for value in less.values())
        assert_same(
            less, row_statistics(q.to(dtype).float(), k.to(dtype).float(), Mask(causal=True))
        )


@with_and_without_kernels
@pytest.mark.parametrize("kind", ["causal", "left padding", "causal segments", "pairs"])
def test_statistics_without_the_sink_are_those_of_the_other_keys(backend, kind):
    call = make_call(kind, queries=K)
    others = torch.arange(K) != call.first_keys.unsqueeze(-1)
    without = replace(
        call,
        mask=Mask(pairs=call.compute_maps().visible_mask & others.unsqueeze(1)),
        real=call.valid_queries(),
    )
    names = ["entropy", "span", "head_diversity", "head_variance"]
    assert_same(
        measure_rows(names, replace(call, include_sink=False)), measure_rows(names, without)
    )
    first, second = make_call_pair("causal")
    names = ["js_between", "cosine_between", "centred_cosine_between"]
    mask = Mask(pairs=first.compute_maps().visible_mask & (torch.arange(K) != 0))
    expected = measure_rows(names, replace(first, mask=mask), replace(second, mask=mask))
    assert_same(
        measure_rows(
            names, replace(first, include_sink=False), replace(second, include_sink=False)
        ),
        expected,
    )


# the kernels and the definitions


@given(
    queries=st.integers(1, 40),
    keys=st.integers(1, 90),
    width=st.integers(1, 9),
    causal=st.booleans(),
    reach=st.none() | st.integers(0, 30),
    query_offset=st.none() | st.integers(-3, 60),
    include_sink=st.booleans(),
    scale=st.floats(0.01, 30),
    seed=st.integers(0, 99),
)
@settings(max_examples=60, deadline=None)
def test_the_kernels_and_the_definitions_agree_for_all_sizes(
    queries, keys, width, causal, reach, query_offset, include_sink, scale, seed
):
    given_q, given_k = (
        random_tensor(1, 2, queries, width, seed=seed),
        random_tensor(1, 2, keys, width, seed=seed + 100),
    )
    tokens = torch.randint(0, 5, (1, keys), generator=torch.Generator().manual_seed(seed))
    mask = Mask(causal=causal, reach=reach, keys=random_tensor(1, keys, seed=seed) > -1)
    call = AttentionCall(
        given_q,
        given_k,
        mask,
        scale=scale,
        tokens=tokens,
        query_offset=query_offset,
        include_sink=include_sink,
    )
    other = replace(call, q=call.q.flip(-1))
    names = [
        name for name in registry.names() if registry.get(name).num_layers == 1 and name != "span90"
    ]
    pairs = ["js_between", "cosine_between"]
    compiled = measure_rows(names, call) | measure_rows(pairs, call, other)
    with no_kernels():
        assert_same(
            compiled,
            measure_rows(names, call) | measure_rows(pairs, call, other),
            rtol=1e-3,
            atol=2e-4,
        )


def names_of(*kinds):
    """Names of the measures that are subclasses of these classes and have kernels."""
    measures = {name: registry.get(name) for name in registry.names()}
    return [
        name
        for name, measure in measures.items()
        if issubclass(measure, kinds) and measure.required_statistics
    ]


@every_level
@pytest.mark.parametrize("kind", KINDS)
def test_every_level_agrees_with_the_definitions(level, kind):
    call, pair = make_call(kind, queries=K), make_call_pair(kind)
    names, pair_names = names_of(HeadMeasure, LayerMeasure), names_of(PairMeasure)
    with no_kernels():
        expected = measure_rows(names, call) | measure_rows(pair_names, *pair)
    with force_level(level):
        compiled = measure_rows(names, call) | measure_rows(pair_names, *pair)
    assert_same(compiled, expected, rtol=2e-4, atol=2e-5)


@every_level
@pytest.mark.parametrize(("keys", "width"), [(1, 1), (17, 3), (127, 31), (251, 67)])
def test_every_level_measures_prime_sizes(level, keys, width):
    given_q, given_k = (random_tensor(1, 2, keys, width, seed=seed) * 2 for seed in (8, 9))
    tokens = torch.arange(keys).unsqueeze(0) % 5
    call = AttentionCall(given_q, given_k, Mask(causal=True), tokens=tokens)
    names = names_of(HeadMeasure, LayerMeasure)
    with no_kernels():
        expected = measure_rows(names, call)
    with force_level(level):
        assert_same(measure_rows(names, call), expected, rtol=5e-4, atol=5e-5)


@every_level
def test_strided_and_broadcast_tensors_are_measured_without_copies(level):
    """Views of (B, T, H, D), and masks whose examples, heads or rows have stride 0."""
    view_q, view_k = (tensor.transpose(1, 2).contiguous().transpose(1, 2) for tensor in (q, k))
    wide_q = random_tensor(B, H, K, 3 * D, seed=3)[..., ::3].copy_(q)
    pairs = (random_tensor(1, 1, 1, K, seed=4) > -1).expand(B, H, K, K)
    bias = random_tensor(K, 2 * K, seed=5)[:, ::2].expand(B, H, K, K)
    with force_level(level):
        for mask in (Mask(causal=True), Mask(pairs=pairs, bias=bias)):
            dense = Mask(
                causal=mask.causal,
                pairs=None if mask.pairs is None else mask.pairs.contiguous(),
                bias=None if mask.bias is None else mask.bias.contiguous(),
            )
            expected = row_statistics(q, k, dense)
            assert_same(row_statistics(view_q, view_k, mask), expected, rtol=0, atol=0)
            assert_same(row_statistics(wide_q, view_k, mask), expected, rtol=0, atol=0)


@every_level
def test_scores_that_grow_along_the_row_do_not_overflow(level):
    """The weights of a row are relative to one of its first scores unless the largest is far above."""
    keys = 400
    given_k = torch.linspace(0, 1, keys).reshape(1, 1, keys, 1)
    for scale in (1.0, 55.0, 80.0, 1e4):
        given_q = torch.full((1, 1, 3, 1), scale)
        names = ["entropy", "largest_weight", "largest_logit", "expected_position", "span90"]
        with no_kernels():
            expected = row_statistics(given_q, given_k, scale=1.0, measures=names[:-1])
        with force_level(level):
            alone = row_statistics(given_q, given_k, scale=1.0, measures=names[:-1])
            together = row_statistics(given_q, given_k, scale=1.0, measures=names)
        assert_same(alone, expected, rtol=1e-3, atol=1e-4)
        del together["span90"]
        assert_same(together, alone, rtol=0, atol=0)


def test_overflowing_scores_give_nan_and_empty_inputs_an_empty_result():
    rows = row_statistics(q * 1e30, k * 1e30, measures=["entropy"])["entropy"]
    assert rows.isnan().any()
    for queries, keys in ((0, 5), (5, 0)):
        rows = row_statistics(q[:, :, :queries], k[:, :, :keys], measures=["entropy"])
        assert rows["entropy"].shape == (B, H, queries) and rows["entropy"].isnan().all()


@with_and_without_kernels
def test_all_pairs_of_layers_at_once_equal_one_pair_at_a_time(backend):
    mask = make_mask("causal keys", K)
    calls = [
        AttentionCall(random_tensor(B, H, K, D, seed=seed), k, mask, scale=0.3 + seed)
        for seed in range(4)
    ]
    names = names_of(PairMeasure)
    together = measure_pairs(names, calls)
    assert list(together) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    for (i, j), rows in together.items():
        assert_same(rows, measure_rows(names, calls[i], calls[j]), rtol=1e-6, atol=1e-7)


@with_and_without_kernels
def test_layers_under_different_masks_are_compared_too(backend):
    first, second = make_call("none"), make_call("window", seed=1)
    statistics = measure_rows(["js_between", "cosine_between", "kl_between"], first, second)
    p, r = first.compute_maps().weights, second.compute_maps().weights
    mean = (p + r) / 2
    expected = (entropy_nats(mean) - (entropy_nats(p) + entropy_nats(r)) / 2) / math.log(2)
    torch.testing.assert_close(statistics["js_between"], expected, rtol=1e-4, atol=1e-5)
    assert statistics["kl_between"].isposinf().all()  # the first attends where the second cannot


@with_and_without_kernels
def test_large_scores_stay_finite(backend):
    statistics = row_statistics(q * 1e3, k * 1e3, Mask(causal=True))
    for values in statistics.values():
        assert not values[:, ..., 1:].isinf().any()
    assert statistics["entropy"].max() < 1.5
    between = compare_layers(q * 1e3, k * 1e3, q.flip(-1) * 1e3, k * 1e3, Mask(causal=True))
    assert all(value.isfinite().all() for value in between.values())


def test_other_mechanisms_equal_masks_and_biases():
    near = row_statistics(q, k, Mask().limit_reach(3), measures=["entropy"])["entropy"]
    torch.testing.assert_close(
        near, entropy_nats(Localized(window=7).weights(q, k, Mask())), rtol=1e-4, atol=1e-5
    )
    extra = random_tensor(B, K, seed=6).sigmoid()
    biased = row_statistics(q, k, Mask(key_bias=extra[:, None] / 2), measures=["entropy"])[
        "entropy"
    ]
    torch.testing.assert_close(
        biased, entropy_nats(BoundaryAware().weights(q, k, Mask(), extra)), rtol=1e-4, atol=1e-5
    )


@with_and_without_kernels
def test_measuring_changes_nothing(backend):
    before = torch.get_num_threads()
    leaf, bias = q.clone().requires_grad_(), random_tensor(B, H, K).requires_grad_()
    statistics = row_statistics(
        leaf, k, Mask(key_bias=bias), measures=["entropy", "head_diversity"]
    )
    assert not any(value.requires_grad for value in statistics.values())
    torch.testing.assert_close(leaf.detach(), q, rtol=0, atol=0)
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_no_bit(threads):
    before = torch.get_num_threads()
    expected = row_statistics(q, k, Mask(causal=True))
    try:
        torch.set_num_threads(threads)
        assert_same(row_statistics(q, k, Mask(causal=True)), expected, rtol=0, atol=0)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)


def test_two_heads_are_compared_as_layers_of_one_head():
    statistics = compare_layers(q[:, :1], k[:, :1], q[:, 1:2], k[:, 1:2], Mask(causal=True))
    assert statistics["js_between"].shape == (1,)
    assert 0 < statistics["js_between"].item() < 1


def test_a_measure_of_a_user_needs_only_its_definition():
    class LastKey(HeadMeasure):
        """Share of the mass on the last key: 0 is none of it, 1 all of it."""

        def reference(self, *layers):
            (layer,) = layers
            return layer.weights[..., -1]

    registry.add(LastKey)
    try:
        statistics = row_statistics(q, k, measures=["last_key", "entropy"])
        torch.testing.assert_close(
            statistics["last_key"], AttentionCall(q, k).compute_maps().weights[..., -1]
        )
        torch.testing.assert_close(
            aggregate_rows(statistics)["entropy"], Entropy().aggregate_rows(statistics["entropy"])
        )
    finally:
        del registry._added["lastkey"]


# errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: row_statistics(q, k[:, :2]), "heads of k must divide those of q, got 2 and 3"),
        (lambda: row_statistics(q[0], k), r"q and k must be \(B, H, time, D\).*\(3, 53, 7\)"),
        (lambda: row_statistics(q / 0, k), "`q` has values that are not finite"),
        (lambda: row_statistics(q, k, measures=["entropi"]), "did you mean `entropy`"),
        (
            lambda: row_statistics(q, k, measures=["js_between"]),
            "not a measure of the rows of 1 layer",
        ),
        (
            lambda: row_statistics(q, k, measures=["rollout"]),
            "not a measure of the rows of 1 layer",
        ),
        (lambda: row_statistics(q, k, measures=["induction_mass"]), "needs the token ids"),
        (
            lambda: row_statistics(q, k, tokens=TOKENS[:, 1:]),
            r"`tokens` must have the shape \(2, 53\), got \(2, 52\)",
        ),
        (
            lambda: row_statistics(q, k, Mask(keys=torch.ones(B, 3))),
            r"`keys` must have the shape \(2, 53\)",
        ),
        (lambda: compare_layers(q, k, q[:, :, 1:], k), "same shapes"),
        (
            lambda: registry.get("rollout")().compute_rows([AttentionCall(q[:, :, 1:], k)]),
            "rollout needs self-attention",
        ),
    ],
)
def test_wrong_arguments_are_explained(call, message):
    with pytest.raises((ValueError, LookupError), match=message):
        call()


# memory

PEAK_SCRIPT = """
import pathlib, torch
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.mask import Mask
from neural.capture.attention_call import AttentionCall
from neural.capture.statistics import compare_layers, row_statistics
torch.set_num_threads(2)
def peak():
    # not getrusage: a process inherits the peak of its parent there
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if "VmHWM" in line)
    return int(line.split()[1]) / 1024
def measure_peak(queries, keys):
    q, k = torch.randn(1, 8, queries, 64), torch.randn(1, 8, keys, 64)
    pathlib.Path("/proc/self/clear_refs").write_text("5")   # reset the peak
    before = peak()
    {call}
    return peak() - before
measure_peak(64, 64)   # loads the library
print(measure_peak({queries}, 8192))
"""


def measure_megabytes(call: str, queries: int) -> float:
    script = PEAK_SCRIPT.format(call=call, queries=queries)
    completed = subprocess.run(
        [sys.executable, "-c", script],
        # threads that wait sleep: if they spin, another test process makes this five times slower
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    return float(completed.stdout)


on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


@on_linux
@pytest.mark.parametrize(
    ("call", "queries"),
    [
        ("row_statistics(q, k)", 8192),
        ("compare_layers(q, k, q, k)", 1024),
        (
            "with no_kernels(): row_statistics(q, k)",
            512,
        ),  # memory does not depend on the number of rows
        ("row_statistics(q, k, Mask(causal=True, segments=torch.zeros(1, k.shape[2])))", 512),
    ],
)
def test_eight_heads_of_8192_keys_are_measured_in_less_than_100_megabytes(call, queries):
    assert measure_megabytes(call, queries) < 100


@on_linux
def test_the_memory_of_dense_weights_would_be_noticed():
    assert (
        measure_megabytes("AttentionCall(q, k).compute_maps()", 512)
        > 3 * 8 * 512 * 8192 * 4 / 2**20 * 0.9
    )  # scores, weights and a copy
