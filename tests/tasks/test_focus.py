"""The focus task: what it learns, when it switches, what it remembers, what it refuses."""

import json
import math

import numpy as np
import pytest
import torch

from neural.standard import CATALOGUE
from neural.tasks.captions import Captions
from neural.tasks.experiment import Training
from neural.tasks.focus import Focus, FocusSettings
from neural.tasks.focusing.networks import DONE, STAGE
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.training.engine import fit, steps_of


def plain(folder, count=200, m=4, classes=3, seed=0):
    """Segments of which the one that matters is long and points to its class."""
    random = np.random.default_rng(seed)
    labels, place = np.arange(count) % classes, random.integers(m, size=count)
    segments = 0.1 * random.normal(size=(count, m, classes + 1))
    segments[np.arange(count), place, labels] += 1.0
    np.savez(folder / "plain.npz", segments=segments, labels=labels, foreground=place)


def task(folder, steps=120, rate=0.02, seed=0, **settings):
    if not (folder / "plain.npz").exists():
        plain(folder)
    training = Training(steps=steps, batch_size=32, optimizer=f"AdamW(learning_rate={rate})", seed=seed,
                        validate_every=20)  # fmt: skip
    return Focus(FocusSettings(data="plain.npz", training=training, **settings), folder, CATALOGUE)


def trained(made, root, name="run"):
    run = Run.create(root, name, settings=made.experiment.model_dump(mode="json"), program=None)
    outcome = fit(made, run)
    return Run.open(run.path), outcome


@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml", "hybrid", "annealed", "auto"])
def test_the_segment_that_matters_is_found_from_labels_alone(paradigm, tmp_path):
    run, outcome = trained(task(tmp_path, paradigm=paradigm), tmp_path / "runs")
    assert outcome.scores["valid/accuracy"] > 0.95
    assert outcome.scores["valid/focus_accuracy"] > 0.95
    assert run.described("focus/classes") == ["0", "1", "2"]


def test_a_switch_is_an_event_at_its_step_and_is_not_forgotten(tmp_path):
    made = task(tmp_path, steps=60, paradigm='hybrid(switch="step", value=30)')
    run, _ = trained(made, tmp_path / "runs")
    switches = [(step, text) for step, kind, text, _ in run.events() if kind == "switch"]
    assert switches == [(30, "soft → hard after step 30: as set")]
    saved = run.restore()
    assert int(saved.tensors["model.history"][DONE]) == 60
    assert int(saved.tensors["model.history"][STAGE]) == 1
    calls = run.scalars("train/classifier_calls")[1]
    assert (calls[:30] == 1).all() and (calls[30:] == 4).all(), "from one call to one for every segment"


def test_the_incentive_switches_once_the_second_loss_pulls_harder(tmp_path):
    run, _ = trained(task(tmp_path, paradigm="hybrid"), tmp_path / "runs")
    ((step, text),) = [(step, text) for step, kind, text, _ in run.events() if kind == "switch"]
    assert step % 10 == 0
    assert "3 checks in a row" in text


def test_an_accuracy_switches_when_it_is_reached(tmp_path):
    run, _ = trained(task(tmp_path, paradigm='hybrid(switch="accuracy", value=0.9, checks=1)'), tmp_path / "runs")
    (text,) = [text for _, kind, text, _ in run.events() if kind == "switch"]
    assert "accuracy" in text


def test_a_run_that_goes_on_switches_where_it_would_have(tmp_path):
    """By hand: half of the batches, the weights handed over, the other half."""
    asked = {"steps": 40, "paradigm": 'hybrid(switch="step", value=30)'}
    first, second = task(tmp_path, **asked), task(tmp_path, **asked)
    model = first.build()
    for number in range(20):
        first.loss(model, first.batch(number))
    other = second.build()
    other.load_state_dict(model.state_dict())
    told = []
    for number in range(20, 40):
        second.loss(other, second.batch(number))
        told += [(number + 1, kind) for kind, _ in second.news()]
    assert told == [(30, "switch")]
    assert first.news() == []


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"estimator": "topk", "samples": 9}, "`samples` is 9, but an example has 4 segments"),
     ({"estimator": "topk"}, "needs `samples`"), ({"samples": 2}, "name one"),
     ({"estimator": "exact", "samples": 2}, "leave `samples` out"),
     ({"paradigm": "soft", "estimator": "topk", "samples": 2}, "for hard and marginal paradigms"),
     ({"paradigm": "sofd"}, "did you mean `soft`"), ({"estimator": "topkk", "samples": 2}, "did you mean `topk`"),
     ({"paradigm": "renyi(tau=-1)"}, "tau"), ({"paradigm": "soft", "background": 0.1}, "one by one"),
     ({"segments": 7}, "its examples have 4"), ({"data": "nowhere.npz"}, "no such file")],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_trained(settings, says, tmp_path):
    plain(tmp_path)
    with pytest.raises((TaskError, ValueError), match=says):
        Focus(FocusSettings(**{"data": "plain.npz", **settings}), tmp_path, CATALOGUE)


NETWORK = """network Mine {{
  input: (4,)
  layers:
    Dense(8, activation="tanh")
    {head}
  {loss}
}}
"""


@pytest.mark.parametrize(
    ("key", "head", "loss", "says"),
    [("focus", "Output(2)", "", "must give one score"),
     ("classifier", 'Output(5, activation="softmax")', 'loss: "sparse_categorical_crossentropy"', "3 class scores"),
     ("classifier", 'Output(3, activation="softmax")', "", "add the line"),
     ("focus", 'Output(1, activation="sigmoid")', "", r"write `Output\(1\)`")],
)  # fmt: skip
def test_networks_that_do_not_fit_are_refused(key, head, loss, says, tmp_path):
    plain(tmp_path)
    with pytest.raises(TaskError, match=says):
        task(tmp_path, **{key: NETWORK.format(head=head, loss=loss)})


def test_networks_of_ones_own_are_used_and_kept_in_the_settings(tmp_path):
    loss = 'loss: "sparse_categorical_crossentropy"'
    (tmp_path / "reader.neural").write_text(NETWORK.format(head='Output(3, activation="softmax")', loss=loss))
    made = task(tmp_path, classifier="reader.neural", focus=NETWORK.format(head="Output(1)", loss=""))
    assert "network Mine" in made.experiment.classifier
    assert sum(one.numel() for one in made.build().classifier.parameters()) == 4 * 8 + 8 + 8 * 3 + 3
    loss, _ = made.loss(made.build(), made.batch(0))
    assert bool(torch.isfinite(loss))


def test_tokens_are_embedded_before_they_are_averaged(tmp_path):
    lines = [
        {"tokens": ["the", "old", "red" if at % 2 else "blue", "sea"], "label": str(at % 2), "rationale": [0, 0, 1, 0]}
        for at in range(60)
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    training = Training(steps=60, batch_size=16, optimizer="AdamW(learning_rate=0.03)", validate_every=60)
    for paradigm in ("soft", "lvml", "feature_average"):
        made = Focus(FocusSettings(data="texts.jsonl", paradigm=paradigm, training=training), tmp_path, CATALOGUE)
        _, outcome = trained(made, tmp_path / "runs", paradigm.replace("_", "-"))
        assert outcome.scores["valid/accuracy"] == 1.0


def test_mosaics_of_digits_are_made_for_the_shape_that_a_network_declares(tmp_path):
    program = """network Reader {
      input: (8, 8, 1)
      layers:
        Conv2D(4, 3)
        Flatten()
        Output(2, activation="softmax")
      loss: "sparse_categorical_crossentropy"
    }"""
    few = {"examples": 40, "valid_examples": 12, "test_examples": 12}
    settings = FocusSettings(classifier=program, foreground=(7, 8), segments=3, **few)
    made = Focus(settings, tmp_path, CATALOGUE)
    assert tuple(made.data.splits["train"].units(made.batch(0)["members"]).shape[1:]) == (3, 8, 8, 1)
    assert made.data.classes == ("7", "8")


def test_a_schedule_lasts_as_long_as_the_training_however_many_batches_a_step_has(tmp_path):
    plain(tmp_path)
    training = Training(epochs=2.0, batch_size=8, gradient_accumulation_steps=5)
    made = Focus(FocusSettings(data="plain.npz", training=training), tmp_path, CATALOGUE)
    assert made.steps == steps_of(made)


@pytest.mark.parametrize(("accumulation", "processes"), [(4, 1), (2, 2), (1, 4)])
def test_schedules_count_the_batches_of_all_processes(
    tmp_path, monkeypatch, accumulation, processes
):
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    training = Training(epochs=4.0, batch_size=5, gradient_accumulation_steps=accumulation)
    digits = {"segments": 8, "grow": 2, "examples": 200, "valid_examples": 12, "test_examples": 12}
    focus = Focus(FocusSettings(training=training, **digits), tmp_path, CATALOGUE)
    assert focus.steps == steps_of(focus, processes) == 40
    sizes = [focus.batch(index)["members"].shape[1] for index in range(0, 160, 4)]
    assert sizes == [2] * 10 + [4] * 10 + [8] * 20


@pytest.mark.parametrize(
    "paradigm", ["hybrid(switch='step')", "hybrid(check_every=3, checks=1)", "annealed"]
)
def test_all_batches_of_a_step_are_learned_by_one_paradigm(tmp_path, paradigm):
    plain(tmp_path)
    training = Training(steps=6, batch_size=8, gradient_accumulation_steps=4)
    settings = FocusSettings(data="plain.npz", paradigm=paradigm, training=training)
    focus = Focus(settings, tmp_path, CATALOGUE)
    model = focus.build()
    used = []
    for index in range(24):
        used.append(repr(focus.now(model)))
        focus.loss(model, focus.batch(index))
    steps = [used[start : start + 4] for start in range(0, 24, 4)]
    assert all(len(set(step)) == 1 for step in steps)
    assert len(set(used)) > 1


def test_smoothing_that_no_paradigm_does_is_refused(tmp_path):
    plain(tmp_path)
    with pytest.raises(TaskError, match="but no paradigm smooths; leave it out"):
        Focus(FocusSettings(data="plain.npz", training=Training(label_smoothing=0.1)), tmp_path, CATALOGUE)


@pytest.mark.parametrize("kind", [Focus, Captions])
def test_sixteen_bits_train_too(kind, tmp_path):
    tiny = kind.tiny(tmp_path, CATALOGUE).experiment
    training = tiny.training.model_copy(update={"steps": 2, "mixed_precision": True})
    made = kind(tiny.model_copy(update={"training": training}), tmp_path, CATALOGUE)
    _, outcome = trained(made, tmp_path / "runs")
    assert math.isfinite(outcome.scores["valid/loss"])
