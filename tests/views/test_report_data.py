"""Run folders as data for the browser."""

import base64
import json
import struct

import numpy as np
import pytest

from neural.tracking.quantised import unpack
from neural.tracking.run import Run
from neural.views.report_data import axes, measure_data, packed_step, recorded, step_maps
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run.open(write_run(tmp_path_factory.mktemp("runs"), layers=2, heads=3, positions=5, calibrated=True))


def values(measure):
    return np.frombuffer(base64.b64decode(measure["data"]), "<f4").reshape(measure["shape"])


def test_a_measure_comes_back_bit_for_bit(run):
    steps, truth = run.measure("entropy")
    found = recorded(run)["measures"]["entropy"]
    assert found["steps"] == list(steps) and found["axes"] == "head" and found["unit"] == "nats"
    np.testing.assert_array_equal(values(found), truth)


def test_what_is_not_a_number_stays_so():
    found = measure_data([3], np.array([[[np.nan, 1.5]]]))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    np.testing.assert_array_equal(values(found), [[[np.nan, 1.5]]])


def test_measures_say_what_they_are_of(run):
    found = {name: one["axes"] for name, one in recorded(run)["measures"].items()}
    assert found == {"entropy": "head", "span": "head", "head_diversity": "layer", "cosine_between": "pair"}
    assert axes("my_own_between", 3) == "pair" and axes("my_own", 3) == "head"


def test_scores_of_texts_say_what_they_mean(run, tmp_path):
    assert "noise" in recorded(run)["scores"]["bits"]
    with Run.create(tmp_path, "no texts", settings={}, program=None, environment={}) as silent:
        assert recorded(silent)["scores"] == {}


def test_only_what_came_later_is_told(run):
    found = recorded(run, after=10)
    assert found["measures"]["span"]["steps"] == [20, 30] == found["map_steps"]
    assert found["events"] == []
    assert recorded(run)["map_steps"] == [0, 10, 20, 30]


def test_the_maps_of_a_step_are_one_piece_in_the_order_of_the_layers(run):
    packed = step_maps(run, 20)
    magic, version, layers = struct.unpack_from("<4sBI", packed)
    assert (magic, version, layers) == (b"NSTP", 1, 2)
    at, names = 9, []
    for _ in range(layers):
        (length,) = struct.unpack_from("<H", packed, at)
        names.append(packed[at + 2 : at + 2 + length].decode())
        (size,) = struct.unpack_from("<I", packed, at + 2 + length)
        body = packed[at + 6 + length : at + 6 + length + size]
        np.testing.assert_array_equal(unpack(body), unpack(run.maps(20)[names[-1]]))
        at += 6 + length + size
    assert at == len(packed) and names == run.described("attention/layers")


def test_no_maps_are_an_empty_piece():
    assert packed_step({}) == b"NSTP\x01\x00\x00\x00\x00"


def test_texts_are_in_the_order_of_their_steps(run):
    assert [one["step"] for one in recorded(run)["samples"]] == [0, 10, 20, 30]


def test_a_calibration_is_told_with_its_diagrams(run):
    found = recorded(run)["calibration"]
    asked = found["questions"]["boundary"]
    assert "none" in asked["diagrams"] and set(asked["methods"]) == {"none", "platt"} and asked["why"]
    assert sum(asked["diagrams"]["none"]["counts"]) == 240 and found["threshold"] == 0.25
    json.dumps(found, allow_nan=False)


def test_a_broken_calibration_is_a_remark_not_a_failure(tmp_path):
    path = write_run(tmp_path, layers=1, heads=1, positions=3, looks=1)
    (path / "calibration.json").write_text("{}")
    found = recorded(Run.open(path))
    assert found["calibration"] is None and "calibration.json" in found["remarks"][0]
