"""What every measure promises: `plain` defines it, the pass over the rows finds the same, within stated bounds."""

import sys
from contextlib import nullcontext
from dataclasses import replace

import pytest
import torch

from neural.core.names import key
from neural.modules.compiled import plain_torch
from neural.modules.mask import Mask
from neural.tracking.measure import LayerMeasure, Measure, StackMeasure
from neural.tracking.measures import registry
from neural.tracking.statistics import applies, averaged, measured
from tests.tracking.looks import EXTRA, KINDS, H, K, counted, look_of, two_looks, written_out

every_measure = pytest.mark.parametrize("name", registry.names())
of_rows = pytest.mark.parametrize(
    "name", [name for name in registry.names() if not issubclass(registry.get(name), StackMeasure)]
)
of_stacks = pytest.mark.parametrize(
    "name", [name for name in registry.names() if issubclass(registry.get(name), StackMeasure)]
)
every_mask = pytest.mark.parametrize("kind", KINDS)


def looks_of(measure: Measure, kind: str):
    return (look_of(kind),) if measure.layers == 1 else two_looks(kind)


def expected(measure: Measure, looks) -> torch.Tensor:
    """The definition, on weights that are written out in double precision; NaN where a row does not count."""
    maps = [written_out(look) for look in looks]
    rows = torch.stack([counted(look, one) for look, one in zip(looks, maps, strict=True)]).all(dim=0)
    rows = rows.all(dim=1) if isinstance(measure, LayerMeasure) else rows
    return measure.plain(*maps).masked_fill(~rows, float("nan"))


@of_rows
@every_mask
def test_the_pass_over_the_rows_finds_what_the_definition_says(name, kind):
    measure = registry.get(name)()
    looks = looks_of(measure, kind)
    wanted = expected(measure, looks).float()
    assert not wanted.isnan().all(), "a test of nothing"
    torch.testing.assert_close(measured([name], *looks)[name], wanted, rtol=2e-4, atol=2e-5, equal_nan=True)
    with plain_torch():
        torch.testing.assert_close(measured([name], *looks)[name], wanted, rtol=2e-4, atol=2e-5, equal_nan=True)


@of_rows
@every_mask
def test_values_lie_on_the_scale(name, kind):
    measure = registry.get(name)()
    values = measured([name], *looks_of(measure, kind))
    low, high = measure.bounds(H, K)
    for found in (values[name], averaged(values)[name]):
        found = found[~found.isnan()]
        assert (found >= low - 1e-6).all()
        assert (found <= high + 1e-5).all()


@of_rows
def test_a_measure_is_the_same_alone_and_among_others(name):
    measure = registry.get(name)()
    looks = looks_of(measure, "causal keys")
    others = [one for one in registry.names() if registry.get(one).layers == measure.layers]
    together = measured(others, *looks)
    torch.testing.assert_close(measured([name], *looks)[name], together[name], rtol=0, atol=0, equal_nan=True)


@of_rows
def test_examples_do_not_know_of_each_other(name):
    measure = registry.get(name)()
    looks = looks_of(measure, "causal keys")
    whole = measured([name], *looks)[name]
    mask = type(looks[0].mask)(causal=True, keys=looks[0].mask.keys[1:])
    alone = [type(one)(one.q[1:], one.k[1:], mask, tokens=one.tokens[1:]) for one in looks]
    torch.testing.assert_close(measured([name], *alone)[name], whole[1:], rtol=0, atol=0, equal_nan=True)


@of_rows
@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain torch"])
def test_the_order_of_keys_without_a_position_changes_nothing(name, kernels):
    measure = registry.get(name)()
    looks = looks_of(measure, "extra pairs")
    order = torch.arange(K)
    order[-EXTRA:] = order[-EXTRA:].flip(0)
    pairs = looks[0].mask.pairs[..., order]
    swapped = [replace(look, k=look.k[:, :, order], mask=Mask(pairs=pairs)) for look in looks]
    swapped = [replace(look, mask=swapped[0].mask) for look in swapped]
    with nullcontext() if kernels else plain_torch():
        wanted = measured([name], *looks)[name]
        torch.testing.assert_close(measured([name], *swapped)[name], wanted, rtol=1e-4, atol=1e-5, equal_nan=True)


@of_rows
@pytest.mark.parametrize("kernels", [True, False], ids=["compiled", "plain torch"])
@pytest.mark.parametrize("axis", ["keys", "unknown"])
def test_a_measure_asks_for_the_positions_that_it_uses(name, axis, kernels):
    """Without them a measure that needs a shared axis has no value, and any other is the same."""
    measure = registry.get(name)()
    looks = looks_of(measure, "extra pairs")
    placed = measured([name], *looks)[name]
    with nullcontext() if kernels else plain_torch():
        values = measured([name], *(replace(look, axis=axis) for look in looks))[name]
    if measure.axis == "shared":
        assert not placed.isnan().all() and values.isnan().all()
    else:
        torch.testing.assert_close(values, placed, rtol=1e-4, atol=1e-5, equal_nan=True)
    assert applies(type(measure), replace(looks[0], axis=axis)) == (measure.axis in ("unknown", axis))


@of_stacks
@pytest.mark.parametrize(
    "kind", ["none", "causal", "keys", "causal window", "segments", "bias", "empty example", "extra pairs"]
)
def test_the_fast_way_through_a_stack_is_the_definition(name, kind):
    measure = registry.get(name)()
    looks = [look_of(kind, queries=K, seed=seed) for seed in range(measure.layers)]
    wanted = measure.plain(*(written_out(look) for look in looks)).float()
    torch.testing.assert_close(measure.fast(looks), wanted, rtol=1e-4, atol=1e-6)
    some = torch.tensor([K - 1, 3])
    torch.testing.assert_close(measure.fast(looks, some), wanted[:, some], rtol=1e-4, atol=1e-6)
    low, high = measure.bounds(H, K)
    assert low <= wanted.min() and wanted.max() <= high + 1e-6


@every_measure
def test_a_measure_is_a_file_of_its_own_name(name):
    entry = registry.get(name)
    folder, _, stem = entry.__module__.rpartition(".")
    assert stem == name
    assert key(stem) == key(entry.__name__)
    assert folder == registry.package or not folder.startswith("neural.")


@every_measure
def test_a_measure_says_its_unit_and_the_two_ends_of_its_scale(name):
    entry = registry.get(name)
    said = vars(entry).get("__doc__") or ""
    assert entry.unit in said.lower(), f"the unit, {entry.unit}"
    assert entry.summary()[-1] in ".:"
    _, found, ends = said.partition(":")
    assert found and ("0" in ends or "1" in ends), "0 …, 1 …"
    assert sys.modules[entry.__module__].__doc__
    low, high = entry().bounds(H, K)
    assert low < high
