"""Supervised task: programs on data, padding, metrics, label smoothing."""

import numpy as np
import pytest
import torch

from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.optim.catalogue import CATALOGUE
from neural.tasks.supervised.task import Supervised, SupervisedSettings
from tests.tasks.networks import program

ENCODER, HEAD = (
    "TransformerEncoder(num_heads=1, d_model=3, dff=5)",
    'Output(2, activation="softmax")',
)
POOLED = f"{ENCODER} | GlobalAveragePooling1D() | {HEAD}"
EACH = f"{ENCODER} | {HEAD}"
SPARSE, ONE_HOT = 'loss: "sparse_categorical_crossentropy"', 'loss: "categorical_crossentropy"'
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(23, 5, 3)).astype(np.float32)


def create_task(text, data, folder=None, **extra):
    return Supervised(SupervisedSettings(network=text, **extra), folder, CATALOGUE, data=data)


def evaluate_new_model(task):
    """A new model, and its validation scores."""
    torch.manual_seed(0)
    model = task.build().eval()
    with torch.no_grad():
        return model, task.evaluate(model)


@pytest.fixture
def folder(tmp_path):
    np.savez(tmp_path / "d.npz", x=X, y=np.arange(23) % 2)
    (tmp_path / "net.neural").write_text(program("(5, 3)", POOLED))
    return tmp_path


def test_the_program_fills_in_unset_training_settings(folder):
    extra = (
        "optimizer: Adam(learning_rate=CosineDecay(3e-4, 50))\n"
        "  train { batch_size: 6 epochs: 3 seed: 5 "
        'early_stopping_patience: 2 validation_split: 0.25 data: "d.npz" clip_norm: 0.5 }'
    )
    text = program("(5, 3)", POOLED, SPARSE, extra)
    resolved = create_task(text, None, folder).experiment
    optimizer = "Adam(learning_rate=CosineDecay(0.0003, 50))"
    assert resolved.training == TrainingSettings(
        epochs=3, batch_size=6, seed=5, patience=2, clip_norm=0.5, optimizer=optimizer
    )
    assert (resolved.name, resolved.validation_split, resolved.data) == (
        "Small",
        0.25,
        str(folder / "d.npz"),
    )
    training = TrainingSettings(steps=9, batch_size=2)
    overridden = create_task(
        text, None, folder, training=training, name="mine", validation_split=0.0
    ).experiment
    assert (
        overridden.training.steps,
        overridden.training.epochs,
        overridden.training.batch_size,
        overridden.training.seed,
    ) == (9, None, 2, 5)
    assert (overridden.name, overridden.validation_split) == ("mine", 0.0)


def test_the_resolved_experiment_means_the_same_from_any_folder(folder, tmp_path_factory):
    task = Supervised(SupervisedSettings(network="net.neural", data="d.npz"), folder, CATALOGUE)
    (folder / "net.neural").unlink()  # what was trained is in the experiment
    saved = SupervisedSettings.model_validate_json(task.experiment.model_dump_json())
    restored = Supervised(saved, tmp_path_factory.mktemp("elsewhere"), CATALOGUE)
    assert restored.experiment == task.experiment
    assert restored.program == task.program
    assert torch.equal(restored.batch(3)["x"], task.batch(3)["x"])


def test_one_network_of_several_is_chosen_by_name(folder):
    text = program("(5, 3)", POOLED) + program("(9, 9)", "Dense(2)").replace("Small", "Other")
    assert (
        create_task(text, (X, np.arange(23) % 2), folder, network_name="Small").network.name
        == "Small"
    )
    with pytest.raises(TaskError, match="which of these networks"):
        create_task(text, (X, X), folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "gone.neural"}, "the network `gone.neural` cannot be read: No such file"),
        ({"network": "network N {"}, "the program:1:"),
        ({"network": "net.neural"}, 'Small has no data: write `data: "digits"`'),
        ({"network": "net.neural", "data": "gone.npz"}, "there is no data `gone.npz`"),
        (
            {"network": "net.neural", "data": "digits"},
            r"digits: an example has 64 numbers, but Small takes \(5, 3\)",
        ),
    ],
)
def test_missing_networks_and_data_are_reported_before_training(settings, message, folder):
    with pytest.raises(TaskError, match=message):
        Supervised(SupervisedSettings(**settings), folder, CATALOGUE)


def test_all_errors_of_a_program_are_shown(folder):
    layers = POOLED.replace("num_heads=1", "num_heads=2").replace("Output", "Outptu")
    (folder / "net.neural").write_text(program("(5, 3)", layers))
    with pytest.raises(TaskError) as caught:
        Supervised(SupervisedSettings(network="net.neural", data="d.npz"), folder, CATALOGUE)
    assert "E0203" in str(caught.value)
    assert "did you mean `Output`?" in str(caught.value)
    assert "net.neural:4:" in str(caught.value)


@pytest.mark.parametrize("size", [1, 4, 5, 100])
def test_validation_is_the_exact_mean_for_any_batch_size(size):
    y = np.arange(23) % 2
    model, metrics = evaluate_new_model(
        create_task(
            program("(5, 3)", POOLED), (X, y, X, y), training=TrainingSettings(batch_size=size)
        )
    )
    with torch.no_grad():
        scores = model.logits(torch.tensor(X))
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(y))
    assert metrics["valid/loss"] == pytest.approx(float(loss), rel=1e-6)
    assert metrics["valid/accuracy"] == pytest.approx(
        float((scores.argmax(-1) == torch.tensor(y)).float().mean())
    )


@pytest.mark.parametrize("loss", [SPARSE, ONE_HOT, 'loss: "mse"'])
def test_padding_does_not_change_loss_gradients_and_metrics(loss):
    """Padding with random values does not change loss, gradients and metrics."""
    layers = EACH if loss != 'loss: "mse"' else EACH.replace(', activation="softmax"', "")
    text = program("(None, 3)", layers, loss)
    y = RANDOM.integers(0, 2, size=(6, 5))
    y = y if loss != 'loss: "mse"' else RANDOM.normal(size=(6, 5, 2))
    x, mask = X[:6], np.arange(5) < np.array([[2], [5], [3], [1], [4], [5]])
    padded_x = np.concatenate([x, RANDOM.normal(size=(6, 2, 3))], axis=1).astype(np.float32)
    padded = {
        "x": padded_x,
        "y": np.concatenate([y, y[:, :2]], axis=1),
        "mask": np.pad(mask, ((0, 0), (0, 2))),
    }
    results = []
    for data in ({"x": x, "y": y, "mask": mask}, padded):
        data |= {f"{name}_valid": array for name, array in data.items()}
        task = create_task(text, data, training=TrainingSettings(batch_size=4))
        model, scores = evaluate_new_model(task)
        loss, _ = task.loss(model, task.batch(0))
        loss.backward()
        gradient = torch.cat([param.grad.flatten() for param in model.parameters()])
        results.append((loss.detach(), gradient, torch.tensor(list(scores.values()))))
    for plain_result, padded_result in zip(*results, strict=True):
        torch.testing.assert_close(plain_result, padded_result)


def test_unpadded_positions_have_equal_weight_in_validation():
    y, mask = (
        RANDOM.integers(0, 2, size=(23, 5)),
        np.arange(5) < RANDOM.integers(1, 6, size=(23, 1)),
    )
    data = {"x": X, "y": y, "mask": mask}
    data |= {f"{name}_valid": array for name, array in data.items()}
    model, metrics = evaluate_new_model(
        create_task(program("(5, 3)", EACH), data, training=TrainingSettings(batch_size=4))
    )
    with torch.no_grad():
        scores = model.logits(torch.tensor(X), torch.tensor(mask))[torch.tensor(mask)]
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(y[mask]))
    assert metrics["valid/loss"] == pytest.approx(float(loss), rel=1e-6)
    assert metrics["valid/accuracy"] == pytest.approx((scores.argmax(-1).numpy() == y[mask]).mean())


def test_padding_ids_do_not_count_in_the_loss():
    layers = 'Embedding(input_dim=9, output_dim=4, pad_id=0) | Output(9, activation="softmax")'
    x = np.array([[3, 4, 0, 0], [5, 6, 7, 0]])
    task = create_task(program("(4,)", layers), (x, x), validation_split=0.0)
    model, empty_scores = evaluate_new_model(task)
    assert empty_scores == {}
    batch = task.batch(0)
    scores = model.logits(batch["x"])[batch["x"] != 0]
    expected = torch.nn.functional.cross_entropy(scores, batch["y"][batch["x"] != 0])
    torch.testing.assert_close(task.loss(model, batch)[0], expected)


def test_two_sequences_are_trained_on_the_next_target_token():
    layers = (
        "Embedding(input_dim=9, output_dim=4, pad_id=0) | "
        "TransformerEncoder(num_heads=2, d_model=4, dff=5) | "
        'TransformerDecoder(num_heads=2, d_model=4, dff=5) | Dense(9, activation="softmax")'
    )
    source = RANDOM.integers(1, 9, size=(12, 6))
    target = np.concatenate([source[:, ::-1], np.zeros((12, 2), dtype=int)], axis=1)
    task = create_task(
        program("(None,)", layers),
        {"source": source, "target": target},
        training=TrainingSettings(batch_size=4),
    )
    model, scores = evaluate_new_model(task)
    assert set(scores) == {"valid/loss", "valid/accuracy"}
    batch = task.batch(0)
    scores = model.logits(batch["source"], batch["target"])
    is_real = batch["y"] != 0
    expected = torch.nn.functional.cross_entropy(scores[is_real], batch["y"][is_real])
    torch.testing.assert_close(task.loss(model, batch)[0], expected)
    assert task.forward(model, task.probe_batch()).shape[1:] == (7, 9)
    assert task.token_ids(batch) is batch["source"]


def test_with_explicit_labels_padding_is_that_of_the_target():
    layers = (
        "Embedding(input_dim=9, output_dim=4, pad_id=0) | "
        "TransformerEncoder(num_heads=2, d_model=4, dff=5) | "
        "TransformerDecoder(num_heads=2, d_model=4, dff=5) | Dense(1)"
    )
    ids, y = np.array([[3, 4, 0], [5, 6, 7]]), np.array([[0.0, 1.0, 99.0], [0.0, 0.0, 2.0]])
    data = {"source": ids, "target": ids, "y": y}
    task = create_task(program("(None,)", layers, 'loss: "mse"'), data, validation_split=0.0)
    model, _ = evaluate_new_model(task)
    batch = task.batch(0)
    is_real = batch["target"] != 0
    scores = model.logits(batch["source"], batch["target"])[is_real]
    torch.testing.assert_close(
        task.loss(model, batch)[0], torch.nn.functional.mse_loss(scores, batch["y"][is_real])
    )


def test_regression_is_scored_by_the_mean_absolute_error():
    text = program("(5, 3)", "GlobalAveragePooling1D() | Dense(1)", 'loss: "mse"')
    y = RANDOM.normal(size=23)
    model, scores = evaluate_new_model(create_task(text, (X, y, X, y)))
    with torch.no_grad():
        error = model(torch.tensor(X))[:, 0].numpy() - y
    assert scores == pytest.approx(
        {"valid/loss": (error**2).mean(), "valid/mae": abs(error).mean()}, rel=1e-5
    )


def test_binary_labels_are_scored_per_unit():
    text = program(
        "(5, 3)",
        'GlobalAveragePooling1D() | Dense(4, activation="sigmoid")',
        'loss: "binary_crossentropy"',
    )
    y = RANDOM.integers(0, 2, size=(23, 4))
    model, scores = evaluate_new_model(create_task(text, (X, y, X, y)))
    with torch.no_grad():
        is_correct = (model(torch.tensor(X)).numpy() > 0.5) == y
    assert scores["valid/accuracy"] == pytest.approx(is_correct.mean())


def test_labels_are_smoothed_in_training_and_not_in_validation():
    y = np.arange(23) % 2
    plain = create_task(program("(5, 3)", POOLED), (X, y, X, y))
    smoothed = create_task(
        program("(5, 3)", POOLED), (X, y, X, y), training=TrainingSettings(label_smoothing=0.2)
    )
    model, scores = evaluate_new_model(plain)
    batch = plain.batch(0)
    assert smoothed.evaluate(model.eval()) == pytest.approx(scores)
    expected = torch.nn.functional.cross_entropy(
        model.logits(batch["x"]), batch["y"], label_smoothing=0.2
    )
    torch.testing.assert_close(smoothed.loss(model, batch)[0], expected)
    assert smoothed.loss(model, batch)[0] != plain.loss(model, batch)[0]


def test_validation_never_smooths_labels():
    y = np.arange(23) % 2
    loss = "loss: sparse_categorical_crossentropy(label_smoothing=0.2)"
    by_program = create_task(program("(5, 3)", POOLED, loss), (X, y, X, y))
    smoothed = TrainingSettings(label_smoothing=0.2)
    by_experiment = create_task(program("(5, 3)", POOLED), (X, y, X, y), training=smoothed)
    plain = create_task(program("(5, 3)", POOLED), (X, y, X, y))
    losses, scores = [], []
    for task in (by_program, by_experiment, plain):
        model, validation = evaluate_new_model(task)
        losses.append(task.loss(model, task.batch(0))[0].item())
        scores.append(validation)
    assert losses[0] == losses[1] != losses[2]
    assert scores[0] == scores[1] == scores[2]


@pytest.mark.parametrize("loss", ["sparse_categorical_crossentropy", "mse"])
def test_loss_weights_do_not_count_padding(loss):
    """The weight of a batch is its number of unpadded positions."""
    head = 'Dense(2, activation="softmax")' if loss != "mse" else "Dense(2)"
    mask = np.arange(5) < (1 + np.arange(23) % 5)[:, None]
    y = RANDOM.integers(0, 2, size=(23, 5)) if loss != "mse" else RANDOM.normal(size=(23, 5, 2))
    data = {"x": X, "y": y, "mask": mask}
    text = program("(5, 3)", head, f'loss: "{loss}"')
    task = create_task(text, data, training=TrainingSettings(batch_size=4))
    batch = task.batch(0)
    assert task.loss_weights(batch) == {"loss": float(batch["mask"].sum())}
    assert float(batch["mask"].sum()) < batch["mask"].numel()


def test_the_validation_split_depends_on_split_seed_alone():
    y = np.arange(23) % 2
    text = program("(5, 3)", POOLED)

    def held_out_indices(split_seed, seed):
        task = create_task(
            text, (X, y), split_seed=split_seed, training=TrainingSettings(seed=seed)
        )
        return task.data.held_out_indices.tolist()

    assert held_out_indices(0, 0) == held_out_indices(0, 1) == held_out_indices(0, 2)
    assert held_out_indices(1, 0) != held_out_indices(0, 0)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (
            'loss: "mse"',
            r"`label_smoothing` is 0.2, but mse\(\) has no label smoothing; leave it out",
        ),
        (
            "loss: sparse_categorical_crossentropy(label_smoothing=0.1)",
            "0.2 in the experiment and 0.1 in the program",
        ),
    ],
)
def test_conflicting_label_smoothing_is_refused(loss, message):
    layers = POOLED if "mse" not in loss else "GlobalAveragePooling1D() | Dense(1)"
    with pytest.raises(TaskError, match=message):
        create_task(
            program("(5, 3)", layers, loss),
            (X, np.arange(23) % 2),
            training=TrainingSettings(label_smoothing=0.2),
        )


def test_the_accuracy_of_a_batch_is_logged():
    task = create_task(program("(5, 3)", POOLED), (X, np.arange(23) % 2))
    model, _ = evaluate_new_model(task)
    batch = task.batch(0)
    _, extra = task.loss(model, batch)
    (accuracy,) = extra.values()
    assert list(extra) == ["train/accuracy"]
    assert not accuracy.requires_grad
    assert accuracy == (model.logits(batch["x"]).argmax(-1) == batch["y"]).float().mean()


def test_the_probe_is_not_trained_on_and_its_characters_are_shown(tmp_path):
    (tmp_path / "book.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 9)
    layers = 'Embedding(input_dim=96, output_dim=4) | Output(96, activation="softmax")'
    task = Supervised(
        SupervisedSettings(network=program("(8,)", layers), data="book.txt"), tmp_path, CATALOGUE
    )
    probe = task.probe_batch()
    assert len(probe["x"]) == task.experiment.tracking.probe_size
    assert set("".join(task.position_labels(probe)[0])) <= set(
        "the␣quick␣brown␣fox␣jumps␣over␣the␣lazy␣dog⏎"
    )
    assert task.token_ids(probe) is probe["x"]
    task_on_arrays = create_task(program("(5, 3)", POOLED), (X, np.arange(23) % 2))
    rows = {
        tuple(row.flatten().tolist())
        for index in range(task_on_arrays.batches_per_epoch)
        for row in task_on_arrays.batch(index)["x"]
    }
    assert not rows & {tuple(row.flatten().tolist()) for row in task_on_arrays.probe_batch()["x"]}
    assert task_on_arrays.token_ids(task_on_arrays.probe_batch()) is None
    assert task_on_arrays.position_labels(task_on_arrays.probe_batch()) is None


def test_a_network_learns_the_digits():
    """After 100 steps a small transformer is far above chance on the validation data."""
    layers = (
        "TransformerEncoder(num_heads=2, d_model=8, dff=32) | Flatten() | "
        'Output(10, activation="softmax")'
    )
    task = create_task(
        program("(8, 8)", layers), "digits", training=TrainingSettings(batch_size=64)
    )
    torch.manual_seed(0)
    model = task.build()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for step in range(100):
        loss, _ = task.loss(model, task.batch(step))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        assert task.evaluate(model.eval())["valid/accuracy"] > 0.85
