"""`neural calibrate`, as a user types it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neural.calibrating import best_threshold
from neural.cli.main import main
from neural.tasks.cutting.decode import decode
from neural.tasks.cutting.metrics.boundary_f1 import BoundaryF1
from tests.segmentation_runs import write_run, write_songs


def typed(*words):
    return CliRunner().invoke(main, list(map(str, words)))


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory):
    root = tmp_path_factory.mktemp("calibrate") / "runs"
    path = write_run(root, labels=True, validation_split=0.3, sureness=9.0)
    before = typed("predict", path, root.parent / "songs.jsonl", "--json")
    return path, before, typed("calibrate", path)


def test_every_method_is_compared_for_boundaries_and_for_labels(calibrated):
    path, _, shown = calibrated
    assert shown.exit_code == 0, shown.output
    assert "on 6 documents of the validation part of songs.jsonl" in shown.stdout
    assert shown.stdout.count("\n  temperature ") == 2
    assert shown.stdout.count("\n  vector ") == 1, "of classes only"
    assert "P(a part begins)" in shown.stdout
    assert "confidence in the label" in shown.stdout
    assert "threshold" in shown.stdout
    kinds = ("boundary.png", "boundary.svg", "label.png", "label.svg")
    assert sorted(one.name for one in path.glob("reliability_*")) == [f"reliability_{one}" for one in kinds]


def test_what_is_saved_is_what_the_other_commands_use(calibrated):
    path, before, _ = calibrated
    kept = json.loads((path / "calibration.json").read_text())
    assert kept["weights"] == "step 3"
    assert kept["boundary"]["documents"] == 6
    said = json.loads(typed("evaluate", path, "--json").stdout)
    assert said["threshold"] == kept["threshold"]
    assert said["calibration"] == kept["boundary"]["calibration"]["method"]
    after = typed("predict", path, path.parent.parent / "songs.jsonl", "--json").stdout.splitlines()
    first, earlier = json.loads(after[0]), json.loads(before.stdout.splitlines()[0])
    for question, key in (("boundary", "probability"), ("label", "label_probabilities")):
        assert kept[question]["calibration"]["method"] != "none", "what is so sure at random is not calibrated"
        assert first[key] != earlier[key]


def test_a_broken_calibration_is_replaced(calibrated):
    path, *_ = calibrated
    whole = (path / "calibration.json").read_text()
    (path / "calibration.json").write_text("[")
    assert typed("evaluate", path).exit_code == 2
    said = typed("calibrate", path, "--json")
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout) == json.loads(whole), "the same documents, the same choice"


def test_one_document_leaves_nothing_to_hold_out(tmp_path):
    path = write_run(tmp_path / "runs")
    write_songs(tmp_path / "new.jsonl", count=1, seed=3)
    shown = typed("calibrate", path, "--data", tmp_path / "new.jsonl")
    assert shown.exit_code == 0, shown.output
    assert "on 1 document of new.jsonl" in shown.stdout
    assert json.loads((path / "calibration.json").read_text())["boundary"]["calibration"]["method"] == "none"


def test_documents_that_were_learned_from_are_refused(tmp_path):
    path = write_run(tmp_path / "runs")
    copy = write_songs(tmp_path / "copy.jsonl", labels=False)
    shown = typed("calibrate", path, "--data", copy)
    assert shown.exit_code == 2
    assert "16 of 20 documents were learned from by" in shown.stderr
    assert not (path / "calibration.json").exists()
    shown = typed("calibrate", path, "--data", copy, "--allow-duplicates")
    assert shown.exit_code == 0, shown.output
    assert "note: 16 of 20 documents were learned from" in shown.stdout
    assert "95 % intervals over 20 documents, each left out in turn" in shown.stdout


def test_without_documents_that_it_did_not_learn_from_there_is_nothing_to_do(tmp_path):
    path = write_run(tmp_path / "runs", validation_split=0.0)
    shown = typed("calibrate", path)
    assert shown.exit_code == 2
    assert "name some with --data" in shown.stderr
    assert not (path / "calibration.json").exists()
    (tmp_path / "one.jsonl").write_text('{"lines": ["alone"], "boundaries": []}')
    shown = typed("calibrate", path, "--data", tmp_path / "one.jsonl")
    assert shown.exit_code == 2
    assert "one element only" in shown.stderr


@pytest.mark.parametrize("seed", range(5))
def test_no_other_threshold_finds_more(seed):
    random = np.random.default_rng(seed)
    p = [random.integers(0, 9, size).round() / 10 for size in (7, 1, 12)]   # with many ties
    truths = [random.random(len(one)) < 0.4 for one in p]
    threshold, f1 = best_threshold(p, truths)

    def score(at):
        counts = BoundaryF1().counts(truths, [decode(one, threshold=at) for one in p]).sum(axis=0)
        return float(BoundaryF1().scores(counts)["boundary_f1"])

    assert score(threshold) == pytest.approx(f1)
    assert f1 >= max(score(at) for at in np.linspace(0.005, 0.995, 100)) - 1e-12


def test_where_nothing_begins_the_threshold_is_one_half():
    assert best_threshold([np.array([0.0, 0.2])], [np.array([False, False])]) == (0.5, 1.0)
