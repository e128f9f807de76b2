"""Choice of a calibration: on held-out documents, the simpler of equals, saved to a file."""

import json

import numpy as np
import pytest

from neural.tasks.segmentation.calibration.isotonic import Isotonic
from neural.tasks.segmentation.calibration.none import None_
from neural.tasks.segmentation.calibration.platt import Platt
from neural.tasks.segmentation.calibration.temperature import Temperature
from neural.tasks.segmentation.calibration_error import score_calibrations
from neural.tasks.segmentation.calibration_selection import (
    CalibrationChoice,
    choose_calibration,
    flatten_documents,
)
from neural.tasks.segmentation.probability import probabilities_to_margins, scores_to_probabilities


def draw_scores(*, scale=1.0, shift=0.0, documents=30, lines=80, seed=0):
    """Margins whose true log-odds are `scale` · margin + `shift`; targets and document ids."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(-1, 2, documents * lines)
    truth = rng.random(len(scores)) < scores_to_probabilities(scale * scores + shift)
    return scores, truth, np.repeat(np.arange(documents), lines)


@pytest.fixture(scope="module")
def overconfident():
    return choose_calibration(*draw_scores(scale=0.5))


def test_an_overconfident_model_gets_a_temperature(overconfident):
    assert isinstance(overconfident.calibrator, Temperature)
    assert overconfident.calibrator.temperature == pytest.approx(2, rel=0.15)
    assert overconfident.reason.startswith(
        "temperature: on held-out documents its log loss is lower than uncalibrated by 0."
    )
    assert (
        overconfident.methods["temperature"].ece_debiased.value
        < overconfident.methods["none"].ece_debiased.value
    )
    assert list(overconfident.diagrams) == ["none", "temperature"]


def test_a_model_that_predicts_yes_too_often_gets_a_shift():
    choice = choose_calibration(*draw_scores(shift=-1.5), methods=["temperature", "platt"])
    assert isinstance(choice.calibrator, Platt)
    assert choice.calibrator.shift == pytest.approx(-1.5, abs=0.2)


def test_a_calibrated_model_gets_no_calibration():
    choice = choose_calibration(*draw_scores())
    assert choice.calibrator == None_()
    assert choice.reason.startswith(
        "uncalibrated: no method has a lower log loss on held-out documents"
    )
    assert (
        choice.perfect_model_error.low
        <= choice.methods["none"].ece.value
        <= choice.perfect_model_error.high
    )


def test_every_method_is_in_the_table_from_the_simplest_on(overconfident):
    lines = overconfident.format_table().splitlines()
    names = ["uncalibrated", *list(overconfident.methods)[1:]]
    assert [line.split()[0] for line in lines[1:-3]] == names
    assert list(overconfident.methods)[:2] == ["none", "temperature"]
    assert lines[2].startswith("temperature ←")
    assert lines[-1] == overconfident.reason
    assert lines[-3] == "95 % intervals by jackknife over 30 documents"


def test_scores_are_of_documents_that_were_not_fitted_to():
    scores, truth, documents = draw_scores(documents=4, lines=5)
    held_out = choose_calibration(scores, truth, documents, methods=["isotonic"]).methods
    fitted = score_calibrations(
        {"same": Isotonic.fit(scores, truth)(scores)}, truth.astype(int), documents
    )["same"]
    assert held_out["isotonic"].log_loss.value > fitted.log_loss.value + 0.05


def test_a_document_is_never_on_both_sides():
    """Inverting the targets of one fold must not change its own held-out probabilities."""
    scores, truth, documents = draw_scores(documents=5, lines=40)
    inverted = np.where(documents == 2, ~truth, truth)
    before, after = (
        choose_calibration(scores, targets, documents, methods=["platt"], folds=5)
        for targets in (truth, inverted)
    )
    # Each document is a fold: document 2 is predicted by a fit to the other four, which are equal.
    is_positive = truth[documents == 2].astype(int) == 1
    p = Platt.fit(scores[documents != 2], truth[documents != 2])(scores[documents == 2])
    margins = np.log(p) - np.log1p(-p)
    own_change = margins[is_positive].sum() - margins[~is_positive].sum()
    other_change = sum(
        _fold_loss(scores, inverted, documents, fold) - _fold_loss(scores, truth, documents, fold)
        for fold in (0, 1, 3, 4)
    )
    change = after.methods["platt"].log_loss.value - before.methods["platt"].log_loss.value
    assert change * len(scores) == pytest.approx(own_change + other_change, rel=1e-6)


def _fold_loss(scores, truth, documents, fold):
    p = Platt.fit(scores[documents != fold], truth[documents != fold])(scores[documents == fold])
    return -np.log(np.where(truth[documents == fold], p, 1 - p)).sum()


def test_the_same_seed_gives_the_same_choice(overconfident):
    assert choose_calibration(*draw_scores(scale=0.5)) == overconfident


def test_a_choice_round_trips_through_a_file(overconfident, tmp_path):
    file = tmp_path / "calibration.json"
    overconfident.save(file)
    loaded = CalibrationChoice.load(file)
    assert loaded == overconfident
    scores = np.linspace(-30, 30, 101)
    np.testing.assert_allclose(
        loaded.calibrator(scores), overconfident.calibrator(scores), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda saved: saved.update(version=9), "its version is 9"),
        (
            lambda saved: saved["calibration"].update(method="temprature"),
            "did you mean `temperature`",
        ),
        (lambda saved: saved["calibration"].update(temperature=-1), "must be above 0"),
        (lambda saved: saved.pop("methods"), "methods"),
        (lambda saved: saved.update(methods=3), "not a valid calibration"),
    ],
)
def test_a_broken_file_is_named(overconfident, tmp_path, change, message):
    file = tmp_path / "calibration.json"
    overconfident.save(file)
    saved = json.loads(file.read_text(encoding="utf-8"))
    change(saved)
    file.write_text(json.dumps(saved), encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        CalibrationChoice.load(file)
    assert str(file) in str(caught.value)


def test_one_document_cannot_be_cross_validated(tmp_path):
    choice = choose_calibration(*draw_scores(documents=1, scale=0.2))
    assert choice.calibrator == None_()
    assert "one document" in choice.reason
    choice.save(tmp_path / "calibration.json")  # unknown intervals are saved, too
    assert CalibrationChoice.load(tmp_path / "calibration.json").reason == choice.reason


@pytest.mark.parametrize("lines", [1, 2])
def test_two_documents_of_one_or_two_lines_are_enough(lines):
    choice = choose_calibration(*draw_scores(documents=2, lines=lines))
    assert choice.folds == 2


def test_certain_scores_that_are_sometimes_wrong_are_corrected():
    rng = np.random.default_rng(0)
    truth = rng.random(2000) < 0.3
    # probabilities of 0 or 1, one in ten wrong
    p = np.where(rng.random(2000) < 0.1, ~truth, truth).astype(float)
    choice = choose_calibration(probabilities_to_margins(p), truth, np.arange(2000) % 40)
    assert choice.methods["none"].log_loss.value > 3
    assert choice.methods[choice.calibrator.name()].log_loss.value < 0.35


def test_labels_of_classes_are_calibrated_too():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 4, (3000, 3))
    p = scores_to_probabilities(logits / 3)
    truth = (rng.random((3000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    choice = choose_calibration(logits, truth, np.arange(3000) % 50)
    assert choice.calibrator.name() == "temperature"
    assert list(choice.methods) == ["none", "temperature", "vector"]


def test_first_elements_are_dropped_for_boundaries_only():
    scores, truth, document_ids = flatten_documents(
        [[0, 1, 2], [0], [0, 5]], [[False, True, False], [False], [False, True]]
    )
    assert scores.tolist() == [1, 2, 5]
    assert truth.tolist() == [True, False, True]
    assert document_ids.tolist() == [0, 0, 2]
    logits, _, document_ids = flatten_documents([np.zeros((2, 3))], [[0, 1]], skip_first=False)
    assert logits.shape == (2, 3)
    assert document_ids.tolist() == [0, 0]


def test_inconsistent_arguments_are_refused():
    scores, truth, documents = draw_scores(documents=3, lines=4)
    with pytest.raises(ValueError, match="12 elements, but the documents of 11"):
        choose_calibration(scores, truth, documents[1:])
    with pytest.raises(ValueError, match="no elements"):
        choose_calibration([], [], [])
    with pytest.raises(ValueError, match="2 folds or more"):
        choose_calibration(scores, truth, documents, folds=1)
    with pytest.raises(ValueError, match=r"not for scores of the shape .*: vector"):
        choose_calibration(scores, truth, documents, methods=["vector"])
    with pytest.raises(LookupError, match="did you mean `isotonic`"):
        choose_calibration(scores, truth, documents, methods=["isotonc"])
    with pytest.raises(ValueError, match="document 2: 3 scores, but the truth of 2"):
        flatten_documents([[0, 1], [0, 1, 2]], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="no documents"):
        flatten_documents([], [])
