"""Run folders as page data."""

import base64
import json
import struct

import numpy as np
import pytest

from neural.capture.map_encoding import decode_map
from neural.core.page_section import PageSection
from neural.report.page_data import (
    NO_VECTORS,
    collect_recorded_data,
    encode_measure,
    get_measure_axes,
    load_sections,
    load_step_maps,
    load_vectors,
    pack_step_maps,
)
from neural.report.run_report import build_page_data, build_run_data
from neural.runs.evaluation_file import save_evaluation
from neural.runs.run import Run
from neural.tasks.language_model.task import LanguageModel
from tests.report_runs import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run.open(
        write_run(tmp_path_factory.mktemp("runs"), layers=2, heads=3, positions=5, calibrated=True)
    )


def decode_values(measure):
    return np.frombuffer(base64.b64decode(measure["data"]), "<f4").reshape(measure["shape"])


def test_a_measure_comes_back_bit_for_bit(run):
    steps, truth = run.measure("entropy")
    measure = collect_recorded_data(run)["measures"]["entropy"]
    assert measure["steps"] == list(steps)
    assert (measure["axes"], measure["unit"]) == ("head", "nats")
    np.testing.assert_array_equal(decode_values(measure), truth)


def test_nan_survives_the_encoding():
    measure = encode_measure([3], np.array([[[np.nan, 1.5]]]))
    assert json.loads(json.dumps(measure, allow_nan=False)) == measure
    np.testing.assert_array_equal(decode_values(measure), [[[np.nan, 1.5]]])


def test_measures_have_axes(run):
    axes = {
        name: measure["axes"] for name, measure in collect_recorded_data(run)["measures"].items()
    }
    assert axes == {
        "entropy": "head",
        "span": "head",
        "head_diversity": "layer",
        "cosine_between": "pair",
    }
    assert (
        get_measure_axes("my_own_between", 3) == "pair" and get_measure_axes("my_own", 3) == "head"
    )


def test_scores_of_samples_have_descriptions(run, tmp_path):
    assert "noise" in collect_recorded_data(run)["scores"]["bits"]
    with Run.create(
        tmp_path, "no samples", settings={}, program=None, environment={}
    ) as without_samples:
        assert collect_recorded_data(without_samples)["scores"] == {}


def test_after_a_step_only_later_rows_are_collected(run):
    data = collect_recorded_data(run, after=10)
    assert data["measures"]["span"]["steps"] == [20, 30] == data["map_steps"]
    assert data["events"] == []
    assert collect_recorded_data(run)["map_steps"] == [0, 10, 20, 30]


def test_the_maps_of_a_step_are_one_block_in_the_order_of_the_layers(run):
    packed = load_step_maps(run, 20)
    magic, version, layers = struct.unpack_from("<4sBI", packed)
    assert (magic, version, layers) == (b"NSTP", 1, 2)
    offset, names = 9, []
    for _ in range(layers):
        (length,) = struct.unpack_from("<H", packed, offset)
        names.append(packed[offset + 2 : offset + 2 + length].decode())
        (size,) = struct.unpack_from("<I", packed, offset + 2 + length)
        start = offset + 6 + length
        encoded = packed[start : start + size]
        np.testing.assert_array_equal(decode_map(encoded), decode_map(run.maps(20)[names[-1]]))
        offset = start + size
    assert offset == len(packed) and names == run.metadata("attention/layers")


def test_no_maps_are_an_empty_block():
    assert pack_step_maps({}) == b"NSTP\x01\x00\x00\x00\x00"


def test_samples_are_in_the_order_of_their_steps(run):
    assert [sample["step"] for sample in collect_recorded_data(run)["samples"]] == [0, 10, 20, 30]


def test_a_calibration_is_collected_with_its_diagrams(run):
    calibration = collect_recorded_data(run)["calibration"]
    question = calibration["questions"]["boundary"]
    assert (
        "none" in question["diagrams"]
        and set(question["methods"]) == {"none", "platt"}
        and question["why"]
    )
    assert sum(question["diagrams"]["none"]["counts"]) == 240 and calibration["threshold"] == 0.25
    json.dumps(calibration, allow_nan=False)


def test_a_damaged_calibration_is_a_note_and_no_error(tmp_path):
    path = write_run(tmp_path, layers=1, heads=1, positions=3, snapshots=1)
    (path / "calibration.json").write_text("{}")
    data = collect_recorded_data(Run.open(path))
    assert data["calibration"] is None
    assert "calibration.json" in data["notes"][0]


def test_a_task_adds_sections_to_the_page_of_its_runs(tmp_path, monkeypatch):
    def page_sections(run):
        count = int(run.metadata("parameters"))
        row = ("parameters", count)
        return [PageSection(title="Model", text="<b>", table_head=("name",), table_rows=[row])]

    monkeypatch.setattr(LanguageModel, "page_sections", page_sections)
    path = write_run(tmp_path, layers=1, heads=1, positions=3, snapshots=1, task="language_model")
    section = {
        "title": "Model",
        "text": "<b>",
        "table_head": ["name"],
        "table_rows": [["parameters", 1234]],
    }
    assert collect_recorded_data(Run.open(path))["sections"] == [section]


def test_without_sections_of_its_task_a_run_has_none(tmp_path):
    for task in ("language_model", "a task of another version"):
        path = write_run(tmp_path, layers=1, heads=1, positions=3, snapshots=1, task=task)
        assert collect_recorded_data(Run.open(path))["sections"] == []


def test_a_segmenter_shows_its_documents_and_features(tmp_path):
    run = Run.create(
        tmp_path, "cut", settings={"task": "segmentation"}, program=None, environment={}
    )
    assert load_sections(run) == []
    run.set_metadata("segmentation", {"documents": [7, 2], "labels": [], "features": ["length"]})
    run.commit()
    (section,) = load_sections(run)
    assert ["features", "length"] in section["table_rows"]
    assert len(section["table_rows"]) == 2
    run.finish("finished")


def test_the_page_shows_the_newest_evaluation(tmp_path):
    path = write_run(tmp_path, layers=1, heads=2, positions=3)
    sections = [
        PageSection(title="my-run", text="on 9 examples", table_rows=[("accuracy", "0.9")]),
        PageSection(title="lift", text="over baselines"),
        PageSection(title="", text="a footnote"),
    ]
    save_evaluation(path, {"accuracy": 0.9}, sections)
    with Run.open(path) as run:
        data = collect_recorded_data(run)
    titles = [section["title"] for section in data["sections"]]
    assert titles[:3] == ["Evaluation", "Evaluation: lift", "Evaluation (3)"]
    assert data["sections"][0]["table_rows"] == [["accuracy", "0.9"]]

    (path / "evaluation.json").write_text("[]")
    with Run.open(path) as run:
        assert any("evaluate the run again" in note for note in collect_recorded_data(run)["notes"])


def write_vectors(path, step=30, width=2):
    """Store queries and keys of the layer of a run: one head, 3 positions."""
    numbers = base64.b64encode(np.arange(3 * width, dtype="<i2").tobytes()).decode()
    scales = dict.fromkeys(("query_scale", "key_scale", "score_scale"), 0.5)
    layer = {"shape": [1, 1, 3, 3, width], "queries": numbers, "keys": numbers, **scales}
    with Run.reopen(path) as run:
        (name,) = run.metadata("attention/layers")
        run.set_metadata("attention/vectors", {"step": step, "layers": {name: layer, "x": 1}})
        run.finish("finished")
    return {name: layer}


def test_queries_and_keys_are_sent_once_and_damaged_ones_never(tmp_path):
    path = write_run(tmp_path, layers=1, heads=1, positions=3)
    with Run.open(path) as run:
        assert load_vectors(run) == NO_VECTORS
    layers = write_vectors(path)
    with Run.open(path) as run:
        data = build_run_data(run)
        assert data["vectors"] == layers and data["vector_step"] == 30
        assert build_run_data(run, after_step=0)["vectors"] is None


def test_queries_and_keys_of_all_runs_together_are_limited(tmp_path, monkeypatch):
    paths = [write_run(tmp_path, name, layers=1, heads=1, positions=3) for name in "ab"]
    for path in paths:
        write_vectors(path)  # 2 × 16 characters of base64
    for limit, expected in ((63, [True, False]), (64, [True, True])):
        monkeypatch.setattr("neural.report.run_report.MAX_VECTOR_BYTES", limit)
        runs = build_page_data([Run.open(path) for path in paths])["runs"]
        assert [run["vectors"] is not None for run in runs] == expected
