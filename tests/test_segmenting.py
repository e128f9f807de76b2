"""Segmenters that are ready to use: from files, from runs."""

import json

import numpy as np
import pytest

from neural.calibrating import calibrate
from neural.core.settings import restored
from neural.experiments import best_model, experiment_of
from neural.segmented import segmented
from neural.segmenting import cutter_of_run, load_cutter, save_cutter, weights_of
from neural.tasks.cutting.calibration.none import None_
from neural.tasks.cutting.calibration.platt import Platt
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.masses import masses
from neural.tasks.cutting.reading import decode
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from tests.segmentation_runs import write_run
from tests.written_runs import CHARACTERS
from tests.written_runs import write_run as write_language_model

TEXT = "\n".join(f"{'river road night' if line % 7 < 4 else 'carry me home'} {line}" for line in range(40))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run.open(write_run(tmp_path_factory.mktemp("boundaries") / "runs"))


@pytest.fixture
def document():
    return Document.of(TEXT, unit="lines")


def saved(run, folder, **more):
    return save_cutter(folder, experiment_of(run), best_model(run.path), Platt(scale=1.5, shift=-0.5), 0.3, **more)


def test_what_is_saved_answers_as_before(run, document, tmp_path):
    path = saved(run, tmp_path / "new", name="songs", least=2, about={"made": "for a test"})
    assert sorted(one.name for one in path.parent.iterdir()) == ["songs.json", "songs.safetensors"]
    cutter, plain = load_cutter(path), cutter_of_run(run)
    assert (cutter.unit, cutter.learned, cutter.threshold, cutter.least) == ("lines", "boundaries", 0.3, 2)
    expected = Platt(scale=1.5, shift=-0.5)(plain.margins(plain.scores(document)))
    found = cutter.probabilities(document)
    assert found[0] == 0
    assert found[1:] == pytest.approx(expected[1:], abs=1e-9)
    assert found[1:].std() > 0.01, "the answers differ"


def test_the_shortest_part_is_the_segmenters_own_unless_somebody_says_otherwise(run, document, tmp_path):
    cutter = load_cutter(saved(run, tmp_path, least=3))
    assert min(masses(cutter.cut(document, threshold=0.01))) == 3
    assert min(masses(cutter.cut(document, least=1, threshold=0.01))) == 1
    assert max(masses(cutter.cut(document, most=2, threshold=0.99))) == 2


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "its version is 2"),
        ({"calibration": {"method": "platt", "scale": "x", "shift": 0}}, "must be numbers"),
        ({"tensors": {"file": "gone.safetensors", "sha256": ""}}, "gone.safetensors: no such file"),
        ({"tensors": {"file": "segmenter.json", "sha256": ""}}, "not the file that was saved with it"),
        ({"settings": None}, "E0809"),
    ],
)
def test_files_that_cannot_be_used_are_named(run, tmp_path, change, says):
    path = saved(run, tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=says):
        load_cutter(path)


def test_a_run_that_was_not_calibrated_cuts_where_its_best_validation_did(run):
    cutter = cutter_of_run(run)
    assert cutter.threshold == pytest.approx(0.41)
    assert cutter.calibration == None_()
    assert cutter.remarks == ()


def test_a_threshold_that_was_said_counts(tmp_path):
    assert cutter_of_run(Run.open(write_run(tmp_path / "runs", threshold=0.2))).threshold == 0.2


def test_a_calibration_is_used_until_the_run_has_learned_more(document, tmp_path):
    path = write_run(tmp_path / "runs")
    before = cutter_of_run(Run.open(path))
    kept = calibrate(Run.open(path)).calibrated
    after = cutter_of_run(Run.open(path))
    assert after.threshold == kept.threshold
    margins = before.margins(before.scores(document))
    assert after.probabilities(document)[1:] == pytest.approx(kept.boundary.calibration(margins)[1:], abs=1e-7)

    run = Run.reopen(path)
    run.save(9, run.restore().tensors, {}, best=True)
    run.finish("finished")
    stale = cutter_of_run(Run.open(path))
    assert weights_of(Run.open(path)) == "step 9" != kept.weights
    assert stale.calibration == None_()
    assert "learned since it was calibrated" in stale.remarks[0]


def test_a_feature_made_with_another_dictionary_is_said(tmp_path):
    path = write_run(tmp_path / "runs", features=("rhyme",))
    run = Run.reopen(path)
    run.describe("segmentation", {"features_made_with": {"rhyme": "a dictionary of 1883"}})
    run.finish("finished")
    assert "a dictionary of 1883 in training" in cutter_of_run(Run.open(path)).remarks[0]


def test_a_run_of_another_task_does_not_cut(tmp_path):
    run = Run.open(write_language_model(tmp_path, vocabulary=list(CHARACTERS)))
    with pytest.raises(RunError, match="name a run of `segmentation`"):
        cutter_of_run(run)


def test_a_missing_segmenter_is_a_message(tmp_path):
    with pytest.raises(TaskError, match=r"nothing\.json: no such file"):
        load_cutter(tmp_path / "nothing.json")


@pytest.mark.parametrize("text", [TEXT, "one line", "\ufeff  a\r\n\r\n\tb c\r\n", "x\n" * 4200, "é\u2028ü\n\n\n"])
def test_the_parts_joined_are_the_text(run, text):
    found = segmented(decode(text.encode(), "text"), cutter_of_run(run), threshold=0.4, unit="lines")
    assert "".join(text[one.start : one.end] for one in found.parts) == text
    data = found.to_dict()
    assert "".join(one["text"] for one in data["parts"]) == text
    assert data["bytes"] == len(text.encode()) == data["parts"][-1]["bytes"][1]
    assert len(data["elements"]["probability"]) == len(found.document)
    assert [one["elements"][0] for one in data["parts"]] == [0, *np.flatnonzero(found.boundaries)]


def test_settings_of_a_saved_segmenter_are_enough_to_train_it_again(run, tmp_path):
    said = json.loads(saved(run, tmp_path).read_text())["settings"]
    assert restored(type(experiment_of(run)), said).model == experiment_of(run).model
