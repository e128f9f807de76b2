"""Choosing a calibration: on held-out documents, the simpler of equals, and the same after a file."""

import json

import numpy as np
import pytest

from neural.tasks.cutting.calibration.isotonic import Isotonic
from neural.tasks.cutting.calibration.none import None_
from neural.tasks.cutting.calibration.platt import Platt
from neural.tasks.cutting.calibration.temperature import Temperature
from neural.tasks.cutting.calibration_choice import Choice, choose, questions
from neural.tasks.cutting.calibration_scores import calibration_scores
from neural.tasks.cutting.probability import margins, plain_probabilities


def planted(*, scale=1.0, shift=0.0, documents=30, lines=80, seed=0):
    """Margins whose right probabilities are those of `scale` · margin + `shift`."""
    random = np.random.default_rng(seed)
    scores = random.normal(-1, 2, documents * lines)
    truth = random.random(len(scores)) < plain_probabilities(scale * scores + shift)
    return scores, truth, np.repeat(np.arange(documents), lines)


@pytest.fixture(scope="module")
def too_sure():
    return choose(*planted(scale=0.5))


def test_a_model_that_is_too_sure_gets_a_temperature(too_sure):
    assert isinstance(too_sure.calibration, Temperature)
    assert too_sure.calibration.temperature == pytest.approx(2, rel=0.15)
    assert too_sure.why.startswith("temperature: on held-out documents its log loss is lower than that of none by 0.")
    assert too_sure.methods["temperature"].ece_debiased.value < too_sure.methods["none"].ece_debiased.value
    assert list(too_sure.diagrams) == ["none", "temperature"]


def test_a_model_that_says_yes_too_often_gets_a_shift():
    found = choose(*planted(shift=-1.5), methods=["temperature", "platt"]).calibration
    assert isinstance(found, Platt)
    assert found.shift == pytest.approx(-1.5, abs=0.2)


def test_a_calibrated_model_is_left_alone():
    choice = choose(*planted())
    assert choice.calibration == None_()
    assert choice.why.startswith("none: no method has a lower log loss on held-out documents")
    assert choice.perfect.low <= choice.methods["none"].ece.value <= choice.perfect.high


def test_every_method_is_in_the_table_from_the_simplest_on(too_sure):
    lines = too_sure.table().splitlines()
    assert [line.split()[0] for line in lines[1:-3]] == list(too_sure.methods)
    assert list(too_sure.methods)[:2] == ["none", "temperature"]
    assert lines[2].startswith("temperature ←")
    assert lines[-1] == too_sure.why
    assert lines[-3] == "95 % intervals over 30 documents, each left out in turn"


def test_what_is_measured_was_not_fitted_to():
    scores, truth, documents = planted(documents=4, lines=5)
    found = choose(scores, truth, documents, methods=["isotonic"]).methods
    fitted_to = calibration_scores({"same": Isotonic.fit(scores, truth)(scores)}, truth.astype(int), documents)["same"]
    assert found["isotonic"].log_loss.value > fitted_to.log_loss.value + 0.05


def test_a_document_is_never_on_both_sides():
    """One fold's truths are turned around: its own held-out probabilities must not know of it."""
    scores, truth, documents = planted(documents=5, lines=40)
    turned = np.where(documents == 2, ~truth, truth)
    before, after = (choose(scores, one, documents, methods=["platt"], folds=5) for one in (truth, turned))
    # with a document to a fold, document 2 is judged by a fit to the other four, which are the same in both
    kept = scores[documents == 2], truth[documents == 2].astype(int)
    fitted = Platt.fit(scores[documents != 2], truth[documents != 2])
    p = fitted(kept[0])
    swing = (np.log(p) - np.log1p(-p))[kept[1] == 1].sum() - (np.log(p) - np.log1p(-p))[kept[1] == 0].sum()
    other_folds = sum(
        _fold_loss(scores, turned, documents, at) - _fold_loss(scores, truth, documents, at) for at in (0, 1, 3, 4)
    )
    change = (after.methods["platt"].log_loss.value - before.methods["platt"].log_loss.value) * len(scores)
    assert change == pytest.approx(swing + other_folds, rel=1e-6)


def _fold_loss(scores, truth, documents, at):
    p = Platt.fit(scores[documents != at], truth[documents != at])(scores[documents == at])
    return -np.log(np.where(truth[documents == at], p, 1 - p)).sum()


def test_the_same_seed_gives_the_same_choice(too_sure):
    assert choose(*planted(scale=0.5)) == too_sure


def test_a_choice_is_the_same_after_a_file(too_sure, tmp_path):
    file = tmp_path / "calibration.json"
    too_sure.save(file)
    again = Choice.load(file)
    assert again == too_sure
    scores = np.linspace(-30, 30, 101)
    np.testing.assert_allclose(again.calibration(scores), too_sure.calibration(scores), rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda saved: saved.update(version=9), "its version is 9"),
        (lambda saved: saved["calibration"].update(method="temprature"), "did you mean `temperature`"),
        (lambda saved: saved["calibration"].update(temperature=-1), "must be above 0"),
        (lambda saved: saved.pop("methods"), "methods"),
        (lambda saved: saved.update(methods=3), "no calibration that can be used"),
    ],
)
def test_a_file_that_is_something_else_is_named(too_sure, tmp_path, change, words):
    file = tmp_path / "calibration.json"
    too_sure.save(file)
    saved = json.loads(file.read_text(encoding="utf-8"))
    change(saved)
    file.write_text(json.dumps(saved), encoding="utf-8")
    with pytest.raises(ValueError, match=words) as refused:
        Choice.load(file)
    assert str(file) in str(refused.value)


def test_one_document_leaves_nothing_to_hold_out(tmp_path):
    choice = choose(*planted(documents=1, scale=0.2))
    assert choice.calibration == None_()
    assert "one document" in choice.why
    choice.save(tmp_path / "calibration.json")   # intervals that are not known are saved, too
    assert Choice.load(tmp_path / "calibration.json").why == choice.why


@pytest.mark.parametrize("lines", [1, 2])
def test_two_documents_of_a_line_or_two_are_enough_to_answer(lines):
    choice = choose(*planted(documents=2, lines=lines))
    assert choice.folds == 2


def test_certain_scores_that_are_sometimes_wrong_are_rescued():
    random = np.random.default_rng(0)
    yes = random.random(2000) < 0.3
    said = margins(np.where(random.random(2000) < 0.1, ~yes, yes).astype(float))   # 0 or 1, wrong one time in ten
    choice = choose(said, yes, np.arange(2000) % 40)
    assert choice.methods["none"].log_loss.value > 3
    assert choice.methods[choice.calibration.name()].log_loss.value < 0.35


def test_labels_of_classes_are_calibrated_too():
    random = np.random.default_rng(0)
    logits = random.normal(0, 4, (3000, 3))
    p = plain_probabilities(logits / 3)
    truth = (random.random((3000, 1)) > p.cumsum(axis=1)).sum(axis=1)
    choice = choose(logits, truth, np.arange(3000) % 50)
    assert choice.calibration.name() == "temperature"
    assert list(choice.methods) == ["none", "temperature", "vector"]


def test_questions_leave_out_where_no_part_can_begin():
    scores, truth, which = questions([[0, 1, 2], [0], [0, 5]], [[False, True, False], [False], [False, True]])
    assert scores.tolist() == [1, 2, 5]
    assert truth.tolist() == [True, False, True]
    assert which.tolist() == [0, 0, 2]
    logits, _, which = questions([np.zeros((2, 3))], [[0, 1]], boundaries=False)
    assert logits.shape == (2, 3)
    assert which.tolist() == [0, 0]


def test_what_does_not_fit_together_is_refused():
    scores, truth, documents = planted(documents=3, lines=4)
    with pytest.raises(ValueError, match="12 elements, but the documents of 11"):
        choose(scores, truth, documents[1:])
    with pytest.raises(ValueError, match="no elements"):
        choose([], [], [])
    with pytest.raises(ValueError, match="2 folds or more"):
        choose(scores, truth, documents, folds=1)
    with pytest.raises(ValueError, match=r"not for scores of the shape .*: vector"):
        choose(scores, truth, documents, methods=["vector"])
    with pytest.raises(LookupError, match="did you mean `isotonic`"):
        choose(scores, truth, documents, methods=["isotonc"])
    with pytest.raises(ValueError, match="document 2: 3 scores, but the truth of 2"):
        questions([[0, 1], [0, 1, 2]], [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="no documents"):
        questions([], [])
