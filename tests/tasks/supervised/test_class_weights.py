"""Class weights: the loss of torch, equal however a step is divided, recorded in the run."""

import numpy as np
import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.optim.catalogue import CATALOGUE
from neural.runs.run import Run
from neural.tasks.supervised.task import Supervised, SupervisedSettings
from neural.training.engine import fit
from neural.workflows.train import create_run
from tests.tasks.networks import program

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(48, 4)).astype(np.float32)
Y = np.repeat([0, 1, 2], [30, 12, 6])
SOFTMAX = 'Dense(5, activation="tanh") | Output(3, activation="softmax")'
ONE_HOT = 'loss: "categorical_crossentropy"'
SIGMOID, BINARY = 'Output(1, activation="sigmoid")', 'loss: "binary_crossentropy"'
MAPPING = {"0": 1.0, "1": 2.5, "2": 4.0}


def create_task(y=Y, layers=SOFTMAX, loss=None, x=X, weights="balanced", **training):
    text = program(f"({', '.join(map(str, x.shape[1:]))},)", layers, *([loss] if loss else []))
    settings = SupervisedSettings(
        network=text,
        class_weights=weights,
        validation_split=1 / 3,
        training=TrainingSettings(**training),
    )
    return Supervised(settings, None, CATALOGUE, data=(x, y))


def compute_loss(task, model, batch):
    with torch.no_grad():
        return float(task.loss(model, batch)[0])


def build_model(task):
    torch.manual_seed(0)
    return task.build().eval().requires_grad_(False)


@pytest.mark.parametrize("loss", [None, ONE_HOT])
def test_the_loss_is_the_weighted_mean_of_torch(loss):
    task = create_task(loss=loss, weights=MAPPING)
    batch, model = task.batch(0), build_model(task)
    weights = torch.tensor([1.0, 2.5, 4.0])
    expected = torch.nn.CrossEntropyLoss(weight=weights)(model.logits(batch["x"]), batch["y"])
    assert compute_loss(task, model, batch) == pytest.approx(float(expected), rel=1e-6)
    assert task.loss_weights(batch)["loss"] == pytest.approx(float(weights[batch["y"]].sum()))


def test_a_sigmoid_unit_has_two_classes():
    y = (Y > 0).astype(int)
    task = create_task(y, SIGMOID, BINARY, weights={"0": 1.0, "1": 3.0})
    batch, model = task.batch(0), build_model(task)
    target = batch["y"]
    element_weights = torch.where(target > 0, 3.0, 1.0)
    losses = torch.nn.functional.binary_cross_entropy_with_logits(
        model.logits(batch["x"]), target, reduction="none"
    )
    expected = (losses * element_weights).sum() / element_weights.sum()
    assert compute_loss(task, model, batch) == pytest.approx(float(expected), rel=1e-6)


def test_positions_that_are_ignored_have_no_weight():
    x, y = X.reshape(12, 4, 4), RANDOM.integers(0, 3, size=(12, 4))
    y[:, 3] = -100
    task = create_task(y, 'Output(3, activation="softmax")', x=x, weights=MAPPING, batch_size=5)
    batch, model = task.batch(0), build_model(task)
    weights = torch.tensor([1.0, 2.5, 4.0])
    expected = torch.nn.CrossEntropyLoss(weight=weights)(
        model.logits(batch["x"]).reshape(-1, 3), batch["y"].reshape(-1)
    )
    assert compute_loss(task, model, batch) == pytest.approx(float(expected), rel=1e-6)
    counted = batch["y"][batch["y"] >= 0]
    assert task.loss_weights(batch)["loss"] == pytest.approx(float(weights[counted].sum()))


def test_balanced_weights_are_those_of_scikit_learn_over_the_training_rows():
    task = create_task()
    train_labels = Y[task.data.sampler.examples]
    expected = compute_class_weight("balanced", classes=np.arange(3), y=train_labels)
    assert list(task.class_weights.by_name.values()) == pytest.approx(expected)
    assert task.metadata()["data/class_weights"] == task.class_weights.by_name
    assert "data/class_weights" not in create_task(weights="none").metadata()


def test_classes_are_weighted_by_name():
    words = np.array(["cat", "dog", "owl"])[Y]
    task = create_task(words, weights={"owl": 4.0, "cat": 1.0, "dog": 2.5})
    assert task.class_weights.by_name == {"cat": 1.0, "dog": 2.5, "owl": 4.0}


def test_an_accumulated_step_equals_the_full_batch(tmp_path):
    """Batches differ in their sums of weights, so a plain mean over batches would be another loss."""
    optimizer = {"optimizer": "SGD(learning_rate=0.5)", "steps": 6, "device": "cpu"}
    runs = []
    for size, count in ((16, 1), (4, 4)):
        task = create_task(batch_size=size, gradient_accumulation_steps=count, **optimizer)
        runs.append(create_run(task, tmp_path / str(size)))
        fit(task, runs[-1])
    full, accumulated = (
        {
            name: value
            for name, value in Run.open(run.path).load_checkpoint().tensors.items()
            if name.startswith("model.")
        }
        for run in runs
    )
    assert full
    for name, value in full.items():
        torch.testing.assert_close(value, accumulated[name], rtol=0, atol=1e-6)
    for name in ("train/loss", "train/accuracy"):
        (_, values), (_, others) = (Run.open(run.path).scalars(name) for run in runs)
        assert values == pytest.approx(others, abs=1e-6)


def test_validation_is_not_weighted():
    weighted, plain = create_task(weights=MAPPING), create_task(weights="none")
    with torch.no_grad():
        assert weighted.evaluate(build_model(weighted)) == plain.evaluate(build_model(plain))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": {"0": 1.0, "1": 1.0}}, "`class_weights` has no weight for `2`"),
        (
            {"weights": {**MAPPING, "3": 1.0}},
            "`class_weights` has `3`, which is not a class; the c",
        ),
        (
            {"y": X[:, 0], "layers": "Output(1)", "loss": 'loss: "mse"'},
            "`class_weights` needs one class per prediction",
        ),
        (
            {"y": np.full((48, 3), 1 / 3), "loss": ONE_HOT},
            "`class_weights` needs classes, but `y` holds probabilities",
        ),
    ],
)
def test_weights_that_do_not_fit_the_classes_are_refused(options, message):
    with pytest.raises(TaskError, match=message):
        create_task(**options)
