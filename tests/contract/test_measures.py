"""Contract of the measures: `reference` defines a measure, the pass over rows gives the same."""

import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from neural.capture.measure import LayerMeasure, Measure, StackMeasure
from neural.capture.measures import registry
from neural.capture.statistics import aggregate_rows, is_applicable, measure_rows
from neural.core.names import normalize_name
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.mask import Mask
from tests.capture.attention_calls import (
    EXTRA,
    KINDS,
    H,
    K,
    compute_dense_maps,
    find_counted_rows,
    make_call,
    make_call_pair,
)

every_measure = pytest.mark.parametrize("name", registry.names())
of_rows = pytest.mark.parametrize(
    "name", [name for name in registry.names() if not issubclass(registry.get(name), StackMeasure)]
)
of_stacks = pytest.mark.parametrize(
    "name", [name for name in registry.names() if issubclass(registry.get(name), StackMeasure)]
)
every_mask = pytest.mark.parametrize("kind", KINDS)


def looks_of(measure: Measure, kind: str):
    return (make_call(kind),) if measure.num_layers == 1 else make_call_pair(kind)


def expected(measure: Measure, looks) -> torch.Tensor:
    """The reference on dense weights in double precision; NaN where a row does not count."""
    maps = [compute_dense_maps(look) for look in looks]
    rows = torch.stack(
        [find_counted_rows(look, item) for look, item in zip(looks, maps, strict=True)]
    ).all(dim=0)
    rows = rows.all(dim=1) if isinstance(measure, LayerMeasure) else rows
    return measure.reference(*maps).masked_fill(~rows, float("nan"))


@of_rows
@every_mask
def test_the_pass_over_rows_equals_the_reference(name, kind):
    measure = registry.get(name)()
    looks = looks_of(measure, kind)
    expected_rows = expected(measure, looks).float()
    assert not expected_rows.isnan().all(), "a test of nothing"
    torch.testing.assert_close(
        measure_rows([name], *looks)[name], expected_rows, rtol=2e-4, atol=2e-5, equal_nan=True
    )
    with no_kernels():
        torch.testing.assert_close(
            measure_rows([name], *looks)[name], expected_rows, rtol=2e-4, atol=2e-5, equal_nan=True
        )


@of_rows
@every_mask
def test_values_are_in_the_declared_range(name, kind):
    measure = registry.get(name)()
    values = measure_rows([name], *looks_of(measure, kind))
    low, high = measure.value_range(H, K)
    for found in (values[name], aggregate_rows(values)[name]):
        found = found[~found.isnan()]
        assert (found >= low - 1e-6).all()
        assert (found <= high + 1e-5).all()


@of_rows
def test_a_measure_is_the_same_alone_and_among_others(name):
    measure = registry.get(name)()
    looks = looks_of(measure, "causal keys")
    others = [
        item for item in registry.names() if registry.get(item).num_layers == measure.num_layers
    ]
    together = measure_rows(others, *looks)
    torch.testing.assert_close(
        measure_rows([name], *looks)[name], together[name], rtol=0, atol=0, equal_nan=True
    )


@of_rows
def test_examples_are_independent(name):
    measure = registry.get(name)()
    looks = looks_of(measure, "causal keys")
    whole = measure_rows([name], *looks)[name]
    mask = type(looks[0].mask)(causal=True, keys=looks[0].mask.keys[1:])
    alone = [type(item)(item.q[1:], item.k[1:], mask, tokens=item.tokens[1:]) for item in looks]
    torch.testing.assert_close(
        measure_rows([name], *alone)[name], whole[1:], rtol=0, atol=0, equal_nan=True
    )


@of_rows
@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain torch"])
def test_the_order_of_keys_without_a_position_does_not_matter(name, kernels):
    measure = registry.get(name)()
    looks = looks_of(measure, "extra pairs")
    order = torch.arange(K)
    order[-EXTRA:] = order[-EXTRA:].flip(0)
    pairs = looks[0].mask.pairs[..., order]
    swapped = [replace(look, k=look.k[:, :, order], mask=Mask(pairs=pairs)) for look in looks]
    swapped = [replace(look, mask=swapped[0].mask) for look in swapped]
    with nullcontext() if kernels else no_kernels():
        expected_rows = measure_rows([name], *looks)[name]
        torch.testing.assert_close(
            measure_rows([name], *swapped)[name],
            expected_rows,
            rtol=1e-4,
            atol=1e-5,
            equal_nan=True,
        )


@of_rows
@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain torch"])
@pytest.mark.parametrize("known_positions", ["keys", "none"])
def test_a_measure_declares_the_positions_that_it_uses(name, known_positions, kernels):
    """Without them a measure that compares positions has no value; any other is the same."""
    measure = registry.get(name)()
    looks = looks_of(measure, "extra pairs")
    placed = measure_rows([name], *looks)[name]
    with nullcontext() if kernels else no_kernels():
        values = measure_rows(
            [name], *(replace(look, known_positions=known_positions) for look in looks)
        )[name]
    if measure.needs_positions == "queries_and_keys":
        assert not placed.isnan().all() and values.isnan().all()
    else:
        torch.testing.assert_close(values, placed, rtol=1e-4, atol=1e-5, equal_nan=True)
    # these calls are softmax attention, whose weights have no sign
    assert is_applicable(type(measure), replace(looks[0], known_positions=known_positions)) == (
        measure.needs_positions in ("none", known_positions) and not measure.signed_only
    )


@of_stacks
@pytest.mark.parametrize(
    "kind",
    ["none", "causal", "keys", "causal window", "segments", "bias", "empty example", "extra pairs"],
)
def test_the_fast_pass_over_a_stack_equals_the_reference(name, kind):
    measure = registry.get(name)()
    looks = [make_call(kind, queries=K, seed=seed) for seed in range(measure.num_layers)]
    expected_rows = measure.reference(*(compute_dense_maps(look) for look in looks)).float()
    torch.testing.assert_close(measure.compute_rows(looks), expected_rows, rtol=1e-4, atol=1e-6)
    queries = torch.tensor([K - 1, 3])
    torch.testing.assert_close(
        measure.compute_rows(looks, queries), expected_rows[:, queries], rtol=1e-4, atol=1e-6
    )
    low, high = measure.value_range(H, K)
    assert low <= expected_rows.min() and expected_rows.max() <= high + 1e-6


@every_measure
def test_a_measure_is_a_file_of_its_own_name(name):
    entry = registry.get(name)
    folder, _, stem = entry.__module__.rpartition(".")
    assert stem == name
    assert normalize_name(stem) == normalize_name(entry.__name__)
    assert folder == registry.package or not folder.startswith("neural.")


@every_measure
def test_a_measure_documents_its_unit_and_scale(name):
    entry = registry.get(name)
    docstring = vars(entry).get("__doc__") or ""
    assert entry.unit in docstring.lower(), f"the unit, {entry.unit}"
    assert entry.summary()[-1] in ".:"
    _, colon, ends = docstring.partition(":")
    assert colon and ("0" in ends or "1" in ends), "0 …, 1 …"
    assert sys.modules[entry.__module__].__doc__
    low, high = entry().value_range(H, K)
    assert low < high
