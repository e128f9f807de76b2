"""`evaluate` of language models, on held-out and on other text."""

import json
import math

import numpy as np
import pytest

import neural
from neural.core.errors import TaskError
from neural.runs.run import Run
from neural.workflows.evaluate import evaluate

WORDS = ("one", "two", "three", "four", "five", "six", "seven")


def write_text(path, seed, words=900):
    """A text of random words: different seeds share no long passages."""
    chosen = np.random.default_rng(seed).choice(WORDS, words)
    path.write_text(" ".join(chosen), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    data = write_text(folder / "train.txt", seed=0)
    settings = {
        "task": "language_model",
        "data": str(data),
        "context": 16,
        "validation_split": 0.2,
        "training": {"steps": 30},
        "tracking": {"track_every": 0},
    }
    (folder / "text.yaml").write_text(json.dumps(settings))
    return neural.fit(folder / "text.yaml", runs=folder / "runs", quiet=True).run.path


def test_the_held_out_text_is_scored_beside_unigrams_and_bigrams(run):
    evaluation = evaluate(run).to_dict()
    assert evaluation["data"].endswith("characters of the validation text of train.txt")
    losses = evaluation["losses"]
    assert list(losses) == ["this run", "unigram", "bigram"]
    assert losses["bigram"]["value"] < losses["unigram"]["value"] < math.log(16)
    with Run.open(run) as opened:
        assert losses["this run"]["value"] == pytest.approx(min(opened.scalars("valid/loss")[1]))
    scores = evaluation["scores"]
    assert scores["bits"] == pytest.approx(scores["loss"] / math.log(2))
    assert scores["perplexity"] == pytest.approx(math.exp(scores["loss"]))
    lift = evaluation["lifts"]["unigram"]
    assert lift["value"] == pytest.approx(losses["unigram"]["value"] - losses["this run"]["value"])
    assert lift["low"] < lift["value"] < lift["high"]


def test_other_text_is_scored_in_full(run, tmp_path):
    other = write_text(tmp_path / "other.txt", seed=1)
    count = (len(other.read_text()) - 1) // 16 * 16
    evaluation = evaluate(run, str(other))
    assert evaluation.description == f"{count:,} characters of other.txt"
    assert evaluation.losses["this run"].value < math.log(16)
    assert "bits per character" in str(evaluation)


def test_too_few_windows_for_an_interval_have_a_dash_in_every_row(run, tmp_path):
    other = write_text(tmp_path / "tiny.txt", seed=1, words=10)
    (section, *_) = evaluate(run, str(other)).to_sections(100)
    assert [(row[0], row[2]) for row in section.table_rows] == [
        ("loss (nats)", "–"),
        ("bits per character", "–"),
        ("perplexity", "–"),
    ]


def test_the_training_text_gives_only_its_held_out_part(run):
    data = run.parents[1] / "train.txt"
    assert evaluate(run, str(data)).to_dict()["data"] == evaluate(run).to_dict()["data"]


def test_a_copy_of_the_training_text_is_refused(run, tmp_path):
    copy = tmp_path / "copy.txt"
    copy.write_text((run.parents[1] / "train.txt").read_text()[:2000])
    with pytest.raises(TaskError, match=r"100% of it also occurs in the training text"):
        evaluate(run, str(copy))
    with pytest.raises(TaskError, match=r"--allow-duplicates \(`allow_duplicates=True` in Python"):
        evaluate(run, str(copy))
    notes = evaluate(run, str(copy), allow_duplicates=True).notes
    assert any("100% of the text also occurs in the training text" in note for note in notes)


def test_a_few_unknown_characters_are_left_out_and_many_are_refused(run, tmp_path):
    text = write_text(tmp_path / "clean.txt", seed=1).read_text()
    (tmp_path / "few.txt").write_text(text[:500] + "ÄÖ" + text[500:])
    few = evaluate(run, str(tmp_path / "few.txt"))
    assert any("2 of" in note and "they are left out" in note for note in few.notes)
    clean = evaluate(run, str(tmp_path / "clean.txt"))
    assert few.losses == clean.losses
    (tmp_path / "many.txt").write_text("ÄÖÜ" * 100 + text[:500])
    with pytest.raises(TaskError, match=r"300 of 800 characters are not in the training text"):
        evaluate(run, str(tmp_path / "many.txt"))


def test_without_the_training_text_there_are_no_baselines(run, tmp_path):
    training_text = run.parents[1] / "train.txt"
    hidden = training_text.rename(tmp_path / "hidden.txt")
    try:
        evaluation = evaluate(run, str(write_text(tmp_path / "other.txt", seed=1)))
        with pytest.raises(TaskError, match="the text of the run is missing"):
            evaluate(run)
    finally:
        hidden.rename(training_text)
    assert list(evaluation.losses) == ["this run"]
    assert "the training text is missing: there are no baselines" in evaluation.notes


def test_the_chance_loss_is_that_of_the_best_constant_prediction(run):
    text = (run.parents[1] / "train.txt").read_text()
    held_out = text[int(len(text) * 0.8) :]
    shares = np.array([held_out.count(character) for character in set(held_out)]) / len(held_out)
    with Run.open(run) as opened:
        assert opened.metadata("data/chance_loss") == pytest.approx(
            -(shares * np.log(shares)).sum()
        )
