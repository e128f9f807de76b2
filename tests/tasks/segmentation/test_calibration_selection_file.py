"""The calibration file of a run folder."""

import json

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.tasks.segmentation.calibration_selection import (
    CALIBRATION_FILE,
    RunCalibration,
    choose_calibration,
)


@pytest.fixture(scope="module")
def calibration():
    rng = np.random.default_rng(0)
    margins, documents = rng.normal(size=90), np.repeat(np.arange(6), 15)
    truth = rng.random(90) < 1 / (1 + np.exp(-2 * margins))
    logits = rng.normal(size=(90, 3))
    return RunCalibration(
        weights="step 7",
        data="six documents",
        boundary=choose_calibration(margins, truth, documents),
        label=choose_calibration(logits, logits.argmax(axis=1), documents),
        threshold=0.3,
        f1=0.7,
    )


def test_a_calibration_round_trips_through_its_file(calibration, tmp_path):
    assert calibration.save(tmp_path) == tmp_path / "calibration.json"
    loaded = RunCalibration.load(tmp_path)
    assert loaded == calibration
    margins = np.linspace(-9, 9, 101)
    assert (loaded.boundary.calibrator(margins) == calibration.boundary.calibrator(margins)).all()


def test_a_run_that_was_never_calibrated_has_none(tmp_path):
    assert RunCalibration.load(tmp_path) is None


@pytest.mark.parametrize(
    "text", ["", "[]", '{"version": 1}', '{"version": 2}', '{"version": 9}', "{"]
)
def test_a_broken_file_is_named(tmp_path, text):
    (tmp_path / CALIBRATION_FILE).write_text(text)
    message = r"calibration\.json is not a valid calibration: .* calibrate again"
    with pytest.raises(TaskError, match=message):
        RunCalibration.load(tmp_path)


def test_an_unknown_method_is_named(calibration, tmp_path):
    calibration.save(tmp_path)
    saved = json.loads((tmp_path / CALIBRATION_FILE).read_text())
    saved["boundary"]["calibration"]["method"] = "plat"
    (tmp_path / CALIBRATION_FILE).write_text(json.dumps(saved))
    with pytest.raises(TaskError, match="did you mean `platt`"):
        RunCalibration.load(tmp_path)
