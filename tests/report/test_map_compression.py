"""Maps are reduced to fit into a page."""

import struct

import numpy as np
import pytest

from neural.capture.map_encoding import decode_map, encode_map
from neural.report.page_data import (
    MAX_MAP_STEPS,
    compress_maps,
    downsample_map,
    load_step_maps,
    share_map_bytes,
)
from neural.runs.run import Run
from tests.report_runs import random_causal_maps, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run.open(
        write_run(tmp_path_factory.mktemp("runs"), layers=2, heads=2, positions=31, snapshots=5)
    )


def test_maps_that_fit_are_unchanged(run):
    compressed = compress_maps(run)
    assert compressed.steps == {step: load_step_maps(run, step) for step in run.map_steps()}
    assert not compressed.downsampling and not compressed.notes


def read_shapes(packed):
    """Queries and keys of every map of a step."""
    layers = struct.unpack_from("<4sBI", packed)[2]
    offset, shapes = 9, []
    for _ in range(layers):
        (name_length,) = struct.unpack_from("<H", packed, offset)
        offset += 2 + name_length
        (length,) = struct.unpack_from("<I", packed, offset)
        shapes.append(decode_map(packed[offset + 4 : offset + 4 + length]).shape[1:])
        offset += 4 + length
    return shapes


def test_slightly_too_large_maps_are_rounded_with_a_note(run):
    total_bytes = sum(len(load_step_maps(run, step)) for step in run.map_steps())
    compressed = compress_maps(run, total_bytes * 95 // 100)
    assert sum(map(len, compressed.steps.values())) <= total_bytes * 95 // 100
    assert not compressed.downsampling and "weights are off by up to 0.0" in compressed.notes[0]
    assert all(read_shapes(packed) == [(31, 31)] * 2 for packed in compressed.steps.values())


def test_too_large_maps_are_downsampled_alike_at_all_steps_with_a_note(run):
    total_bytes = sum(len(load_step_maps(run, step)) for step in run.map_steps())
    compressed = compress_maps(run, total_bytes // 2)
    assert sum(map(len, compressed.steps.values())) <= total_bytes // 2
    assert sorted(compressed.steps) == sorted(compressed.downsampling) == run.map_steps()
    (factor,) = set(compressed.downsampling.values())
    size = -(-31 // factor)
    # one resolution over the whole slider: a finer last step would look like sharper attention
    assert all(read_shapes(packed) == [(size, size)] * 2 for packed in compressed.steps.values())
    assert f"{factor} × {factor} positions; the run folder" in compressed.notes[0]


def test_runs_share_the_bytes_by_need(run, tmp_path):
    small = Run.open(write_run(tmp_path, "small", layers=1, heads=1, positions=5, snapshots=2))
    without_maps = Run.create(tmp_path, "none", settings={"task": "supervised"}, program=None)
    needs = [
        sum(len(load_step_maps(each, step)) for step in each.map_steps())
        for each in (run, small, without_maps)
    ]
    assert needs[2] == 0
    enough = sum(needs)
    assert share_map_bytes([run, small, without_maps], enough) == needs
    # too little: the small run still gets all it needs, the large one the rest
    short = enough - 1000
    assert share_map_bytes([run, small, without_maps], short) == [short - needs[1], needs[1], 0]
    # two large runs share equally what the small one leaves
    first, third, second = share_map_bytes([run, small, run], needs[1] + needs[0])
    assert third == needs[1] and abs(first - second) <= 1 and first + second <= needs[0]


def test_a_cell_is_the_mean_of_its_queries_over_the_sum_of_its_keys():
    weights = random_causal_maps(np.random.default_rng(1), 3, 11)
    small = decode_map(downsample_map(encode_map(weights, causal=True), 4, 63))
    assert small.shape == (3, 3, 3)
    np.testing.assert_allclose(
        small[:, 1, 0], weights[:, 4:8, 0:4].sum(axis=2).mean(axis=1), atol=0.016
    )
    # also in the last block, which has three queries and three keys
    np.testing.assert_allclose(small.sum(axis=-1), 1, atol=0.04)


@pytest.mark.parametrize(("levels", "error"), [(127, 0.008), (63, 0.016)])
def test_the_rounding_error_is_no_larger_than_the_note_says(levels, error):
    weights = np.linspace(0, 1, 901).reshape(1, 1, 901) ** 2
    rounded = decode_map(downsample_map(encode_map(weights), 1, levels))
    # 0.004 is the error of the stored map
    assert np.abs(rounded - weights).max() <= error + 0.004
    assert len(np.unique(rounded)) == levels + 1


def test_downsampled_maps_of_a_later_window_are_causal_by_blocks():
    weights = np.zeros((1, 3, 7))
    # each query attends to itself, the first one to the fifth key
    weights[0, np.arange(3), np.arange(4, 7)] = 1
    small = decode_map(downsample_map(encode_map(weights, causal=True), 2, 63))
    np.testing.assert_allclose(small[0], [[0, 0, 1, 0], [0, 0, 0, 1]], atol=0.01)


def test_many_steps_are_thinned_out_with_the_first_and_the_last_kept(tmp_path):
    run = Run.open(write_run(tmp_path, layers=1, heads=1, positions=3, snapshots=MAX_MAP_STEPS + 7))
    compressed = compress_maps(run)
    assert (
        len(compressed.steps) == MAX_MAP_STEPS
        and min(compressed.steps) == 0
        and max(compressed.steps) == 10 * (MAX_MAP_STEPS + 6)
    )
    assert f"maps of {MAX_MAP_STEPS} of {MAX_MAP_STEPS + 7} steps" in compressed.notes[0]


def test_a_smaller_signed_map_keeps_signs_and_row_sums():
    weights = np.random.default_rng(0).normal(0, 0.3, (2, 8, 8))
    small = decode_map(downsample_map(encode_map(weights), 2, 63))
    pairs = weights.reshape(2, 4, 2, 4, 2).sum(axis=4).mean(axis=2)
    assert small.min() < 0
    np.testing.assert_allclose(small, pairs, atol=0.06)
    np.testing.assert_allclose(small.sum(axis=-1), pairs.sum(axis=-1), atol=0.15)
