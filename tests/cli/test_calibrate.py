"""`neural calibrate`, as a user types it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.tasks.segmentation.decoding import decode_boundaries
from neural.tasks.segmentation.metrics.boundary_f1 import BoundaryF1
from neural.workflows.calibrate import find_best_threshold
from tests.segmentation_runs import write_run, write_songs


def invoke(*words):
    return CliRunner().invoke(main, list(map(str, words)))


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    root = tmp_path_factory.mktemp("calibrate") / "runs"
    path = write_run(root, labels=True, validation_split=0.3, confidence=9.0)
    before = invoke("predict", path, root.parent / "songs.jsonl", "--json")
    return path, before, invoke("calibrate", path)


def test_every_method_is_compared_for_boundaries_and_for_labels(calibrated):
    path, _, result = calibrated
    assert result.exit_code == 0, result.output
    assert "on 6 documents of the validation split of songs.jsonl" in result.stdout
    assert result.stdout.count("\n  temperature ") == 2
    assert result.stdout.count("\n  vector ") == 1, "of classes only"
    assert "P(a segment begins)" in result.stdout
    assert "confidence in the label" in result.stdout
    assert "threshold" in result.stdout
    kinds = ("boundary.png", "boundary.svg", "label.png", "label.svg")
    assert sorted(file.name for file in path.glob("reliability_*")) == [
        f"reliability_{kind}" for kind in kinds
    ]


def test_the_other_commands_use_the_saved_calibration(calibrated):
    path, before, _ = calibrated
    saved = json.loads((path / "calibration.json").read_text())
    assert saved["weights"] == "step 3"
    assert saved["boundary"]["documents"] == 6
    evaluation = json.loads(invoke("evaluate", path, "--json").stdout)
    assert evaluation["threshold"] == saved["threshold"]
    assert evaluation["calibration"] == saved["boundary"]["calibration"]["method"]
    after = invoke(
        "predict", path, path.parent.parent / "songs.jsonl", "--json"
    ).stdout.splitlines()
    first, earlier = json.loads(after[0]), json.loads(before.stdout.splitlines()[0])
    for question, key in (("boundary", "probability"), ("label", "label_probabilities")):
        assert saved[question]["calibration"]["method"] != "none", (
            "random predictions with large logits need calibration"
        )
        assert first[key] != earlier[key]


def test_a_broken_calibration_is_replaced(calibrated):
    path, *_ = calibrated
    original = (path / "calibration.json").read_text()
    (path / "calibration.json").write_text("[")
    assert invoke("evaluate", path).exit_code == 2
    result = invoke("calibrate", path, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout) == json.loads(original), "the same documents, the same choice"


def test_one_document_leaves_nothing_to_hold_out(tmp_path):
    path = write_run(tmp_path / "runs")
    write_songs(tmp_path / "new.jsonl", count=1, seed=3)
    result = invoke("calibrate", path, "--data", tmp_path / "new.jsonl")
    assert result.exit_code == 0, result.output
    assert "on 1 document of new.jsonl" in result.stdout
    assert (
        json.loads((path / "calibration.json").read_text())["boundary"]["calibration"]["method"]
        == "none"
    )


def test_training_documents_are_refused(tmp_path):
    path = write_run(tmp_path / "runs")
    copy = write_songs(tmp_path / "copy.jsonl", labels=False)
    result = invoke("calibrate", path, "--data", copy)
    assert result.exit_code == 2
    assert "16 of 20 documents are training documents of" in result.stderr
    assert not (path / "calibration.json").exists()
    result = invoke("calibrate", path, "--data", copy, "--allow-duplicates")
    assert result.exit_code == 0, result.output
    assert "note: 16 of 20 documents are training documents" in result.stdout
    assert "95 % intervals by jackknife over 20 documents" in result.stdout


def test_without_held_out_documents_calibration_is_refused(tmp_path):
    path = write_run(tmp_path / "runs", validation_split=0.0)
    result = invoke("calibrate", path)
    assert result.exit_code == 2
    assert "name some with --data" in result.stderr
    assert not (path / "calibration.json").exists()
    (tmp_path / "one.jsonl").write_text('{"lines": ["alone"], "boundaries": []}')
    result = invoke("calibrate", path, "--data", tmp_path / "one.jsonl")
    assert result.exit_code == 2
    assert "every document has a single element" in result.stderr


@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_has_a_higher_f1(seed):
    random = np.random.default_rng(seed)
    p = [random.integers(0, 9, size).round() / 10 for size in (7, 1, 12)]  # with many ties
    truths = [random.random(len(probabilities)) < 0.4 for probabilities in p]
    threshold, f1 = find_best_threshold(p, truths)

    def score(at):
        counts = (
            BoundaryF1()
            .count_documents(
                truths, [decode_boundaries(probabilities, threshold=at) for probabilities in p]
            )
            .sum(axis=0)
        )
        return float(BoundaryF1().scores(counts)["boundary_f1"])

    assert score(threshold) == pytest.approx(f1)
    assert f1 >= max(score(at) for at in np.linspace(0.005, 0.995, 100)) - 1e-12


def test_without_boundaries_the_threshold_is_one_half():
    assert find_best_threshold([np.array([0.0, 0.2])], [np.array([False, False])]) == (0.5, 1.0)
