"""Divergence of layers over the snapshots of a run."""

import numpy as np
import pytest

from neural.findings import layer_divergence
from neural.findings.layer_divergence import compute_layer_excess, load_excess_curves
from tests.findings.synthetic_runs import write_synthetic_run


@pytest.fixture(autouse=True)
def empty_cache(monkeypatch):
    monkeypatch.setattr(layer_divergence, "_excess_by_hash", {})


@pytest.fixture
def computed(monkeypatch):
    """Snapshots for which the excess was computed."""
    matrices = []

    def compute(divergence, heads):
        matrices.append(divergence)
        return compute_layer_excess(divergence, heads)

    monkeypatch.setattr(layer_divergence, "compute_layer_excess", compute)
    return matrices


def random_divergences(count, heads, seed=0):
    values = np.random.default_rng(seed).random((count, heads, heads), np.float32)
    return values + values.swapaxes(1, 2)


def test_only_new_snapshots_are_computed(tmp_path, computed):
    matrices = random_divergences(5, 4)
    first = write_synthetic_run(
        tmp_path, 0, arrays={"heads/divergence": matrices[:3]}, heads=[2, 2]
    )
    load_excess_curves(first)
    load_excess_curves(first)
    assert len(computed) == 3
    longer = write_synthetic_run(tmp_path, 1, arrays={"heads/divergence": matrices}, heads=[2, 2])
    _, curves = load_excess_curves(longer)
    assert len(computed) == 5
    expected = [compute_layer_excess(matrix.astype(float), [2, 2]) for matrix in matrices]
    np.testing.assert_array_equal(curves, np.stack(expected))


def test_the_same_matrix_of_other_layers_is_computed_again(tmp_path, computed):
    matrices = random_divergences(1, 6)
    for seed, heads in enumerate([[2, 4], [4, 2], [2, 2, 2]]):
        run = write_synthetic_run(
            tmp_path, seed, arrays={"heads/divergence": matrices}, heads=heads
        )
        _, curves = load_excess_curves(run)
        expected = compute_layer_excess(matrices[0].astype(float), heads)
        np.testing.assert_array_equal(curves[0], expected)
    assert len(computed) == 3


def test_the_number_of_remembered_snapshots_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(layer_divergence, "MAX_CACHED_SNAPSHOTS", 4)
    run = write_synthetic_run(
        tmp_path, 0, arrays={"heads/divergence": random_divergences(11, 4)}, heads=[2, 2]
    )
    load_excess_curves(run)
    assert len(layer_divergence._excess_by_hash) <= 4
