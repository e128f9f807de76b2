"""Maps that are made to fit into a page."""

import numpy as np
import pytest

from neural.tracking.quantised import pack, unpack
from neural.tracking.run import Run
from neural.views.report_data import step_maps
from neural.views.report_maps import STOPS, fitted, smaller_map
from tests.report_runs import causal, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run.open(write_run(tmp_path_factory.mktemp("runs"), layers=2, heads=2, positions=31, looks=5))


def test_maps_that_fit_are_as_they_were_written(run):
    found = fitted(run)
    assert found.steps == {step: step_maps(run, step) for step in run.map_steps()}
    assert not found.pooled and not found.remarks


def test_maps_that_almost_fit_are_rounded_but_for_the_last_and_say_so(run):
    whole = sum(len(step_maps(run, step)) for step in run.map_steps())
    found = fitted(run, whole * 95 // 100)
    assert sum(map(len, found.steps.values())) <= whole * 95 // 100
    assert found.steps[40] == step_maps(run, 40) and found.steps[30] != step_maps(run, 30)
    assert not found.pooled and "weights are off by up to 0.0" in found.remarks[0]


def test_too_large_maps_become_coarser_but_for_the_last_and_say_so(run):
    whole = sum(len(step_maps(run, step)) for step in run.map_steps())
    found = fitted(run, whole * 13 // 20)
    assert sum(map(len, found.steps.values())) <= whole * 13 // 20
    assert found.steps[40] == step_maps(run, 40)
    assert sorted(found.steps) == run.map_steps() and sorted(found.pooled) == [0, 10, 20, 30]
    (factor,) = set(found.pooled.values())
    assert f"{factor} × {factor} positions, but for the last step (40)" in found.remarks[0]


def test_a_cell_is_the_mean_of_its_queries_over_the_sum_of_its_keys():
    weights = causal(np.random.default_rng(1), 3, 11)
    small = unpack(smaller_map(pack(weights, causal=True), 4, 63))
    assert small.shape == (3, 3, 3)
    np.testing.assert_allclose(small[:, 1, 0], weights[:, 4:8, 0:4].sum(axis=2).mean(axis=1), atol=0.016)
    np.testing.assert_allclose(small.sum(axis=-1), 1, atol=0.04)   # the last block has three queries and three keys


@pytest.mark.parametrize(("levels", "error"), [(127, 0.008), (63, 0.016)])
def test_a_rounder_map_is_off_by_no_more_than_its_remark_says(levels, error):
    weights = np.linspace(0, 1, 901).reshape(1, 1, 901) ** 2
    found = unpack(smaller_map(pack(weights), 1, levels))
    assert np.abs(found - weights).max() <= error + 0.004   # what was kept in the first place is off by 0.004
    assert len(np.unique(found)) == levels + 1


def test_coarser_maps_of_a_later_window_see_up_to_their_own_block():
    weights = np.zeros((1, 3, 7))
    weights[0, np.arange(3), np.arange(4, 7)] = 1   # each query looks at itself, the first at the fifth key
    small = unpack(smaller_map(pack(weights, causal=True), 2, 63))
    np.testing.assert_allclose(small[0], [[0, 0, 1, 0], [0, 0, 0, 1]], atol=0.01)


def test_of_very_many_steps_some_are_kept_with_the_first_and_the_last(tmp_path):
    run = Run.open(write_run(tmp_path, layers=1, heads=1, positions=3, looks=STOPS + 7))
    found = fitted(run)
    assert len(found.steps) == STOPS and min(found.steps) == 0 and max(found.steps) == 10 * (STOPS + 6)
    assert f"maps of {STOPS} of {STOPS + 7} steps" in found.remarks[0]
