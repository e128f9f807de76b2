"""Focus task: learning, hybrid switches, resumed schedules, refused settings."""

import json
import math

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.optim.catalogue import CATALOGUE
from neural.runs.run import Run
from neural.tasks.captions.task import Captions
from neural.tasks.focus.model import BATCHES_DONE, STAGE
from neural.tasks.focus.task import Focus, FocusSettings
from neural.training.engine import count_steps, fit


def write_segments(folder, count=200, m=4, classes=3, seed=0):
    """Save segments, one of which per example is long and points to its class."""
    random = np.random.default_rng(seed)
    labels, position = np.arange(count) % classes, random.integers(m, size=count)
    segments = 0.1 * random.normal(size=(count, m, classes + 1))
    segments[np.arange(count), position, labels] += 1.0
    np.savez(folder / "plain.npz", segments=segments, labels=labels, foreground=position)


def create_task(folder, steps=120, rate=0.02, seed=0, **settings):
    if not (folder / "plain.npz").exists():
        write_segments(folder)
    training = TrainingSettings(
        steps=steps,
        batch_size=32,
        optimizer=f"AdamW(learning_rate={rate})",
        seed=seed,
        validate_every=20,
    )
    return Focus(FocusSettings(data="plain.npz", training=training, **settings), folder, CATALOGUE)


def train_run(task, root, name="run"):
    run = Run.create(root, name, settings=task.experiment.model_dump(mode="json"), program=None)
    outcome = fit(task, run)
    return Run.open(run.path), outcome


@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml", "hybrid", "annealed", "auto"])
def test_the_foreground_segment_is_found_from_labels_alone(paradigm, tmp_path):
    run, outcome = train_run(create_task(tmp_path, paradigm=paradigm), tmp_path / "runs")
    assert outcome.scores["valid/accuracy"] > 0.95
    assert outcome.scores["valid/focus_accuracy"] > 0.95
    assert run.metadata("focus/classes") == ["0", "1", "2"]


def test_a_switch_is_logged_as_an_event_and_saved_in_checkpoints(tmp_path):
    task = create_task(tmp_path, steps=60, paradigm='hybrid(switch="step", value=30)')
    run, _ = train_run(task, tmp_path / "runs")
    switches = [
        (step, text) for step, task_class, text, _ in run.events() if task_class == "switch"
    ]
    assert switches == [(30, "soft → hard after step 30: as configured")]
    saved = run.load_checkpoint()
    assert int(saved.tensors["model.schedule_state"][BATCHES_DONE]) == 60
    assert int(saved.tensors["model.schedule_state"][STAGE]) == 1
    calls = run.scalars("train/classifier_calls")[1]
    assert (calls[:30] == 1).all() and (calls[30:] == 4).all(), (
        "from one call to one for every segment"
    )


def test_a_hybrid_switches_when_the_second_incentive_is_larger(tmp_path):
    run, _ = train_run(create_task(tmp_path, paradigm="hybrid"), tmp_path / "runs")
    ((step, text),) = [
        (step, text) for step, task_class, text, _ in run.events() if task_class == "switch"
    ]
    assert step % 10 == 0
    assert "3 checks in a row" in text


def test_a_hybrid_switches_at_an_accuracy(tmp_path):
    run, _ = train_run(
        create_task(tmp_path, paradigm='hybrid(switch="accuracy", value=0.9, checks=1)'),
        tmp_path / "runs",
    )
    (text,) = [text for _, task_class, text, _ in run.events() if task_class == "switch"]
    assert "accuracy" in text


def test_a_resumed_run_switches_at_the_same_step(tmp_path):
    """Train half of the batches, load the state into a second model, train the other half."""
    settings = {"steps": 40, "paradigm": 'hybrid(switch="step", value=30)'}
    first, second = create_task(tmp_path, **settings), create_task(tmp_path, **settings)
    model = first.build()
    for index in range(20):
        first.loss(model, first.batch(index))
    restored_model = second.build()
    restored_model.load_state_dict(model.state_dict())
    events = []
    for index in range(20, 40):
        second.loss(restored_model, second.batch(index))
        events += [(index + 1, task_class) for task_class, _ in second.pop_events()]
    assert events == [(30, "switch")]
    assert first.pop_events() == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"estimator": "topk", "samples": 9}, "`samples` is 9, but must be at most 4"),
        ({"estimator": "topk"}, "needs `samples`"),
        ({"samples": 2}, "set one"),
        ({"estimator": "exact", "samples": 2}, "leave `samples` out"),
        (
            {"paradigm": "soft", "estimator": "topk", "samples": 2},
            "for hard and marginal paradigms",
        ),
        ({"paradigm": "sofd"}, "did you mean `soft`"),
        ({"estimator": "topkk", "samples": 2}, "did you mean `topk`"),
        ({"paradigm": "renyi(tau=-1)"}, "tau"),
        ({"paradigm": "soft", "background": 0.1}, "classify single segments"),
        ({"segments": 7}, "its examples have 4"),
        ({"data": "nowhere.npz"}, "no such file"),
    ],
)
def test_invalid_settings_are_refused_before_training(settings, message, tmp_path):
    write_segments(tmp_path)
    with pytest.raises((TaskError, ValueError), match=message):
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
    ("key", "head", "loss", "message"),
    [
        ("focus", "Output(2)", "", "must output one score"),
        (
            "classifier",
            'Output(5, activation="softmax")',
            'loss: "sparse_categorical_crossentropy"',
            "3 class logits",
        ),
        ("classifier", 'Output(3, activation="softmax")', "", "add the line"),
        ("focus", 'Output(1, activation="sigmoid")', "", r"write `Output\(1\)`"),
    ],
)
def test_networks_that_do_not_fit_are_refused(key, head, loss, message, tmp_path):
    write_segments(tmp_path)
    with pytest.raises(TaskError, match=message):
        create_task(tmp_path, **{key: NETWORK.format(head=head, loss=loss)})


def test_given_networks_are_used_and_saved_in_the_settings(tmp_path):
    loss = 'loss: "sparse_categorical_crossentropy"'
    (tmp_path / "reader.neural").write_text(
        NETWORK.format(head='Output(3, activation="softmax")', loss=loss)
    )
    task = create_task(
        tmp_path, classifier="reader.neural", focus=NETWORK.format(head="Output(1)", loss="")
    )
    assert "network Mine" in task.experiment.classifier
    assert (
        sum(param.numel() for param in task.build().classifier.parameters())
        == 4 * 8 + 8 + 8 * 3 + 3
    )
    loss, _ = task.loss(task.build(), task.batch(0))
    assert bool(torch.isfinite(loss))


def test_tokens_are_embedded_before_they_are_averaged(tmp_path):
    lines = [
        {
            "tokens": ["the", "old", "red" if index % 2 else "blue", "sea"],
            "label": str(index % 2),
            "rationale": [0, 0, 1, 0],
        }
        for index in range(60)
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    training = TrainingSettings(
        steps=60, batch_size=16, optimizer="AdamW(learning_rate=0.03)", validate_every=60
    )
    for paradigm in ("soft", "lvml", "feature_average"):
        task = Focus(
            FocusSettings(data="texts.jsonl", paradigm=paradigm, training=training),
            tmp_path,
            CATALOGUE,
        )
        _, outcome = train_run(task, tmp_path / "runs", paradigm.replace("_", "-"))
        assert outcome.scores["valid/accuracy"] == 1.0


def test_mosaics_have_the_input_shape_of_the_network(tmp_path):
    program = """network Reader {
      input: (8, 8, 1)
      layers:
        Conv2D(4, 3)
        Flatten()
        Output(2, activation="softmax")
      loss: "sparse_categorical_crossentropy"
    }"""
    sizes = {"examples": 40, "valid_examples": 12, "test_examples": 12}
    settings = FocusSettings(classifier=program, foreground=(7, 8), segments=3, **sizes)
    task = Focus(settings, tmp_path, CATALOGUE)
    assert tuple(task.data.splits["train"].load_units(task.batch(0)["members"]).shape[1:]) == (
        3,
        8,
        8,
        1,
    )
    assert task.data.classes == ("7", "8")


def test_a_schedule_lasts_as_long_as_the_training_however_many_batches_a_step_has(tmp_path):
    write_segments(tmp_path)
    training = TrainingSettings(epochs=2.0, batch_size=8, gradient_accumulation_steps=5)
    task = Focus(FocusSettings(data="plain.npz", training=training), tmp_path, CATALOGUE)
    assert task.steps == count_steps(task)


@pytest.mark.parametrize(("accumulation", "processes"), [(4, 1), (2, 2), (1, 4)])
def test_schedules_count_the_batches_of_all_processes(
    tmp_path, monkeypatch, accumulation, processes
):
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    training = TrainingSettings(epochs=4.0, batch_size=5, gradient_accumulation_steps=accumulation)
    digits = {"segments": 8, "grow": 2, "examples": 200, "valid_examples": 12, "test_examples": 12}
    focus = Focus(FocusSettings(training=training, **digits), tmp_path, CATALOGUE)
    assert focus.steps == count_steps(focus, processes) == 40
    sizes = [focus.batch(index)["members"].shape[1] for index in range(0, 160, 4)]
    assert sizes == [2] * 10 + [4] * 10 + [8] * 20


@pytest.mark.parametrize(
    "paradigm", ["hybrid(switch='step')", "hybrid(check_every=3, checks=1)", "annealed"]
)
def test_all_batches_of_a_step_use_one_paradigm(tmp_path, paradigm):
    write_segments(tmp_path)
    training = TrainingSettings(steps=6, batch_size=8, gradient_accumulation_steps=4)
    settings = FocusSettings(data="plain.npz", paradigm=paradigm, training=training)
    focus = Focus(settings, tmp_path, CATALOGUE)
    model = focus.build()
    used = []
    for index in range(24):
        used.append(repr(focus.current_paradigm(model)))
        focus.loss(model, focus.batch(index))
    steps = [used[start : start + 4] for start in range(0, 24, 4)]
    assert all(len(set(step)) == 1 for step in steps)
    assert len(set(used)) > 1


def test_label_smoothing_is_refused(tmp_path):
    write_segments(tmp_path)
    with pytest.raises(TaskError, match="but paradigms do not support it; leave it out"):
        Focus(
            FocusSettings(data="plain.npz", training=TrainingSettings(label_smoothing=0.1)),
            tmp_path,
            CATALOGUE,
        )


@pytest.mark.parametrize("task_class", [Focus, Captions])
def test_mixed_precision_trains(task_class, tmp_path):
    example = task_class.example(tmp_path, CATALOGUE).experiment
    training = example.training.model_copy(update={"steps": 2, "mixed_precision": True})
    task = task_class(example.model_copy(update={"training": training}), tmp_path, CATALOGUE)
    _, outcome = train_run(task, tmp_path / "runs")
    assert math.isfinite(outcome.scores["valid/loss"])
