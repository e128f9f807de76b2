"""What a run folder keeps of a calibration."""

import json

import numpy as np
import pytest

from neural.tasks.cutting.calibration_choice import choose
from neural.tasks.cutting.calibration_file import FILE, Calibrated
from neural.tasks.task import TaskError


@pytest.fixture(scope="module")
def calibrated():
    random = np.random.default_rng(0)
    margins, documents = random.normal(size=90), np.repeat(np.arange(6), 15)
    truth = random.random(90) < 1 / (1 + np.exp(-2 * margins))
    logits = random.normal(size=(90, 3))
    return Calibrated(
        weights="step 7", data="six documents", boundary=choose(margins, truth, documents),
        label=choose(logits, logits.argmax(axis=1), documents), threshold=0.3, f1=0.7,
    )  # fmt: skip


def test_what_is_saved_is_what_is_loaded(calibrated, tmp_path):
    assert calibrated.save(tmp_path) == tmp_path / "calibration.json"
    found = Calibrated.load(tmp_path)
    assert found == calibrated
    margins = np.linspace(-9, 9, 101)
    assert (found.boundary.calibration(margins) == calibrated.boundary.calibration(margins)).all()


def test_a_run_that_was_never_calibrated_has_none(tmp_path):
    assert Calibrated.load(tmp_path) is None


@pytest.mark.parametrize("wrong", ["", "[]", '{"version": 1}', '{"version": 9}', "{"])
def test_a_broken_file_is_named(tmp_path, wrong):
    (tmp_path / FILE).write_text(wrong)
    with pytest.raises(TaskError, match=r"calibration\.json is no calibration .* calibrate again"):
        Calibrated.load(tmp_path)


def test_a_method_nobody_knows_is_named(calibrated, tmp_path):
    calibrated.save(tmp_path)
    saved = json.loads((tmp_path / FILE).read_text())
    saved["boundary"]["calibration"]["method"] = "plat"
    (tmp_path / FILE).write_text(json.dumps(saved))
    with pytest.raises(TaskError, match="did you mean `platt`"):
        Calibrated.load(tmp_path)
