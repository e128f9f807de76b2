"""Any program on any data that fits it."""

import numpy as np
import pytest
import torch

from neural.standard import CATALOGUE
from neural.tasks.experiment import Training
from neural.tasks.supervised import Supervised, SupervisedSettings
from neural.tasks.task import TaskError
from tests.tasks.networks import program

ENCODER, HEAD = "TransformerEncoder(num_heads=1, d_model=3, dff=5)", 'Output(2, activation="softmax")'
POOLED = f"{ENCODER} | GlobalAveragePooling1D() | {HEAD}"
EACH = f"{ENCODER} | {HEAD}"
SPARSE, ONE_HOT = 'loss: "sparse_categorical_crossentropy"', 'loss: "categorical_crossentropy"'
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(23, 5, 3)).astype(np.float32)


def supervised(text, data, folder=None, **more):
    return Supervised(SupervisedSettings(network=text, **more), folder, CATALOGUE, data=data)


def scored(task):
    """The model, and its scores on what is held out."""
    torch.manual_seed(0)
    model = task.build().eval()
    with torch.no_grad():
        return model, task.evaluate(model)


@pytest.fixture
def folder(tmp_path):
    np.savez(tmp_path / "d.npz", x=X, y=np.arange(23) % 2)
    (tmp_path / "net.neural").write_text(program("(5, 3)", POOLED))
    return tmp_path


def test_the_program_says_how_to_train_where_the_experiment_does_not(folder):
    more = (
        "optimizer: Adam(learning_rate=CosineDecay(3e-4, 50))\n  train { batch_size: 6 epochs: 3 seed: 5 "
        'early_stopping_patience: 2 validation_split: 0.25 data: "d.npz" clip_norm: 0.5 }'
    )
    text = program("(5, 3)", POOLED, SPARSE, more)
    told = supervised(text, None, folder).experiment
    optimizer = "Adam(learning_rate=CosineDecay(0.0003, 50))"
    assert told.training == Training(
        epochs=3, batch_size=6, seed=5, patience=2, clip_norm=0.5, optimizer=optimizer
    )
    assert (told.name, told.validation_split, told.data) == ("Small", 0.25, str(folder / "d.npz"))
    training = Training(steps=9, batch_size=2)
    said = supervised(text, None, folder, training=training, name="mine", validation_split=0.0).experiment
    assert (said.training.steps, said.training.epochs, said.training.batch_size, said.training.seed) == (9, None, 2, 5)
    assert (said.name, said.validation_split) == ("mine", 0.0)


def test_the_resolved_experiment_means_the_same_from_any_folder(folder, tmp_path_factory):
    task = Supervised(SupervisedSettings(network="net.neural", data="d.npz"), folder, CATALOGUE)
    (folder / "net.neural").unlink()   # what was trained is in the experiment
    written = SupervisedSettings.model_validate_json(task.experiment.model_dump_json())
    again = Supervised(written, tmp_path_factory.mktemp("elsewhere"), CATALOGUE)
    assert again.experiment == task.experiment
    assert again.program == task.program
    assert torch.equal(again.batch(3)["x"], task.batch(3)["x"])


def test_one_network_of_several_is_chosen_by_name(folder):
    text = program("(5, 3)", POOLED) + program("(9, 9)", "Dense(2)").replace("Small", "Other")
    assert supervised(text, (X, np.arange(23) % 2), folder, network_name="Small").network.name == "Small"
    with pytest.raises(TaskError, match="which of these networks"):
        supervised(text, (X, X), folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "gone.neural"}, "the network `gone.neural` cannot be read: No such file"),
        ({"network": "network N {"}, "the program:1:"),
        ({"network": "net.neural"}, 'Small has no data: write `data: "digits"`'),
        ({"network": "net.neural", "data": "gone.npz"}, "there is no data `gone.npz`"),
        ({"network": "net.neural", "data": "digits"}, r"digits: an example has 64 numbers, but Small takes \(5, 3\)"),
    ],
)
def test_what_cannot_be_trained_is_said_first(settings, message, folder):
    with pytest.raises(TaskError, match=message):
        Supervised(SupervisedSettings(**settings), folder, CATALOGUE)


def test_a_program_with_mistakes_shows_all_of_them(folder):
    layers = POOLED.replace("num_heads=1", "num_heads=2").replace("Output", "Outptu")
    (folder / "net.neural").write_text(program("(5, 3)", layers))
    with pytest.raises(TaskError) as caught:
        Supervised(SupervisedSettings(network="net.neural", data="d.npz"), folder, CATALOGUE)
    assert "E0203" in str(caught.value)
    assert "did you mean `Output`?" in str(caught.value)
    assert "net.neural:4:" in str(caught.value)


@pytest.mark.parametrize("size", [1, 4, 5, 100])
def test_validation_is_the_exact_mean_whatever_the_batches(size):
    y = np.arange(23) % 2
    model, found = scored(supervised(program("(5, 3)", POOLED), (X, y, X, y), training=Training(batch_size=size)))
    with torch.no_grad():
        scores = model.scores(torch.tensor(X))
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(y))
    assert found["valid/loss"] == pytest.approx(float(loss), rel=1e-6)
    assert found["valid/accuracy"] == pytest.approx(float((scores.argmax(-1) == torch.tensor(y)).float().mean()))


@pytest.mark.parametrize("loss", [SPARSE, ONE_HOT, 'loss: "mse"'])
def test_padding_counts_for_nothing(loss):
    """The same sequences, with and without rubbish behind them, give the same loss, gradient and scores."""
    layers = EACH if loss != 'loss: "mse"' else EACH.replace(', activation="softmax"', "")
    text = program("(None, 3)", layers, loss)
    y = RANDOM.integers(0, 2, size=(6, 5))
    y = y if loss != 'loss: "mse"' else RANDOM.normal(size=(6, 5, 2))
    x, mask = X[:6], np.arange(5) < np.array([[2], [5], [3], [1], [4], [5]])
    longer = np.concatenate([x, RANDOM.normal(size=(6, 2, 3))], axis=1).astype(np.float32)
    padded = {"x": longer, "y": np.concatenate([y, y[:, :2]], axis=1), "mask": np.pad(mask, ((0, 0), (0, 2)))}
    results = []
    for data in ({"x": x, "y": y, "mask": mask}, padded):
        data |= {f"{name}_valid": array for name, array in data.items()}
        task = supervised(text, data, training=Training(batch_size=4))
        model, found = scored(task)
        measured, _ = task.loss(model, task.batch(0))
        measured.backward()
        gradient = torch.cat([one.grad.flatten() for one in model.parameters()])
        results.append((measured.detach(), gradient, torch.tensor(list(found.values()))))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_every_real_position_weighs_the_same_in_validation():
    y, mask = RANDOM.integers(0, 2, size=(23, 5)), np.arange(5) < RANDOM.integers(1, 6, size=(23, 1))
    data = {"x": X, "y": y, "mask": mask}
    data |= {f"{name}_valid": array for name, array in data.items()}
    model, found = scored(supervised(program("(5, 3)", EACH), data, training=Training(batch_size=4)))
    with torch.no_grad():
        scores = model.scores(torch.tensor(X), torch.tensor(mask))[torch.tensor(mask)]
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(y[mask]))
    assert found["valid/loss"] == pytest.approx(float(loss), rel=1e-6)
    assert found["valid/accuracy"] == pytest.approx((scores.argmax(-1).numpy() == y[mask]).mean())


def test_a_padding_id_is_not_learned():
    layers = 'Embedding(input_dim=9, output_dim=4, pad_id=0) | Output(9, activation="softmax")'
    x = np.array([[3, 4, 0, 0], [5, 6, 7, 0]])
    task = supervised(program("(4,)", layers), (x, x), validation_split=0.0)
    model, nothing = scored(task)
    assert nothing == {}
    batch = task.batch(0)
    scores = model.scores(batch["x"])[batch["x"] != 0]
    wanted = torch.nn.functional.cross_entropy(scores, batch["y"][batch["x"] != 0])
    torch.testing.assert_close(task.loss(model, batch)[0], wanted)


def test_two_sequences_learn_the_next_token_of_the_target():
    layers = (
        "Embedding(input_dim=9, output_dim=4, pad_id=0) | TransformerEncoder(num_heads=2, d_model=4, dff=5) | "
        'TransformerDecoder(num_heads=2, d_model=4, dff=5) | Dense(9, activation="softmax")'
    )
    source = RANDOM.integers(1, 9, size=(12, 6))
    target = np.concatenate([source[:, ::-1], np.zeros((12, 2), dtype=int)], axis=1)
    task = supervised(program("(None,)", layers), {"source": source, "target": target}, training=Training(batch_size=4))
    model, found = scored(task)
    assert set(found) == {"valid/loss", "valid/accuracy"}
    batch = task.batch(0)
    scores = model.scores(batch["source"], batch["target"])
    kept = batch["y"] != 0
    wanted = torch.nn.functional.cross_entropy(scores[kept], batch["y"][kept])
    torch.testing.assert_close(task.loss(model, batch)[0], wanted)
    assert task.look(model, task.probe()).shape[1:] == (7, 9)
    assert task.tokens(batch) is batch["source"]


def test_padding_is_that_of_the_target_where_the_answers_are_not_its_tokens():
    layers = (
        "Embedding(input_dim=9, output_dim=4, pad_id=0) | TransformerEncoder(num_heads=2, d_model=4, dff=5) | "
        "TransformerDecoder(num_heads=2, d_model=4, dff=5) | Dense(1)"
    )
    ids, y = np.array([[3, 4, 0], [5, 6, 7]]), np.array([[0.0, 1.0, 99.0], [0.0, 0.0, 2.0]])
    data = {"source": ids, "target": ids, "y": y}
    task = supervised(program("(None,)", layers, 'loss: "mse"'), data, validation_split=0.0)
    model, _ = scored(task)
    batch = task.batch(0)
    kept = batch["target"] != 0
    scores = model.scores(batch["source"], batch["target"])[kept]
    torch.testing.assert_close(task.loss(model, batch)[0], torch.nn.functional.mse_loss(scores, batch["y"][kept]))


def test_numbers_are_scored_by_their_mean_distance():
    text = program("(5, 3)", "GlobalAveragePooling1D() | Dense(1)", 'loss: "mse"')
    y = RANDOM.normal(size=23)
    model, found = scored(supervised(text, (X, y, X, y)))
    with torch.no_grad():
        off = model(torch.tensor(X))[:, 0].numpy() - y
    assert found == pytest.approx({"valid/loss": (off**2).mean(), "valid/mae": abs(off).mean()}, rel=1e-5)


def test_yes_and_no_are_scored_unit_by_unit():
    text = program("(5, 3)", 'GlobalAveragePooling1D() | Dense(4, activation="sigmoid")', 'loss: "binary_crossentropy"')
    y = RANDOM.integers(0, 2, size=(23, 4))
    model, found = scored(supervised(text, (X, y, X, y)))
    with torch.no_grad():
        right = (model(torch.tensor(X)).numpy() > 0.5) == y
    assert found["valid/accuracy"] == pytest.approx(right.mean())


def test_labels_are_smoothed_in_training_and_not_in_validation():
    y = np.arange(23) % 2
    plain = supervised(program("(5, 3)", POOLED), (X, y, X, y))
    smooth = supervised(program("(5, 3)", POOLED), (X, y, X, y), training=Training(label_smoothing=0.2))
    model, found = scored(plain)
    batch = plain.batch(0)
    assert smooth.evaluate(model.eval()) == pytest.approx(found)
    wanted = torch.nn.functional.cross_entropy(model.scores(batch["x"]), batch["y"], label_smoothing=0.2)
    torch.testing.assert_close(smooth.loss(model, batch)[0], wanted)
    assert smooth.loss(model, batch)[0] != plain.loss(model, batch)[0]


def test_validation_is_not_smoothed_wherever_smoothing_was_written():
    y = np.arange(23) % 2
    loss = "loss: sparse_categorical_crossentropy(label_smoothing=0.2)"
    by_program = supervised(program("(5, 3)", POOLED, loss), (X, y, X, y))
    smoothed = Training(label_smoothing=0.2)
    by_experiment = supervised(program("(5, 3)", POOLED), (X, y, X, y), training=smoothed)
    plain = supervised(program("(5, 3)", POOLED), (X, y, X, y))
    losses, scores = [], []
    for task in (by_program, by_experiment, plain):
        model, validation = scored(task)
        losses.append(task.loss(model, task.batch(0))[0].item())
        scores.append(validation)
    assert losses[0] == losses[1] != losses[2]
    assert scores[0] == scores[1] == scores[2]


@pytest.mark.parametrize("loss", ["sparse_categorical_crossentropy", "mse"])
def test_padding_does_not_weigh_in_a_step(loss):
    """A batch counts by the positions that are real, of which the loss is the mean."""
    head = 'Dense(2, activation="softmax")' if loss != "mse" else "Dense(2)"
    mask = np.arange(5) < (1 + np.arange(23) % 5)[:, None]
    y = RANDOM.integers(0, 2, size=(23, 5)) if loss != "mse" else RANDOM.normal(size=(23, 5, 2))
    data = {"x": X, "y": y, "mask": mask}
    text = program("(5, 3)", head, f'loss: "{loss}"')
    task = supervised(text, data, training=Training(batch_size=4))
    batch = task.batch(0)
    assert task.loss_weights(batch) == {"loss": float(batch["mask"].sum())}
    assert float(batch["mask"].sum()) < batch["mask"].numel()


def test_the_seed_of_the_split_decides_what_is_held_out_and_that_of_the_training_does_not():
    y = np.arange(23) % 2
    text = program("(5, 3)", POOLED)

    def held(split_seed, seed):
        task = supervised(text, (X, y), split_seed=split_seed, training=Training(seed=seed))
        return task.data.held.tolist()

    assert held(0, 0) == held(0, 1) == held(0, 2)
    assert held(1, 0) != held(0, 0)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ('loss: "mse"', r"`label_smoothing` is 0.2, but mse\(\) has no labels to smooth; leave it out"),
        ("loss: sparse_categorical_crossentropy(label_smoothing=0.1)", "0.2 in the experiment and 0.1 in the program"),
    ],
)
def test_smoothing_that_cannot_be_meant_is_refused(loss, message):
    layers = POOLED if "mse" not in loss else "GlobalAveragePooling1D() | Dense(1)"
    with pytest.raises(TaskError, match=message):
        supervised(program("(5, 3)", layers, loss), (X, np.arange(23) % 2), training=Training(label_smoothing=0.2))


def test_the_accuracy_of_a_batch_is_worth_a_curve():
    task = supervised(program("(5, 3)", POOLED), (X, np.arange(23) % 2))
    model, _ = scored(task)
    batch = task.batch(0)
    _, more = task.loss(model, batch)
    (accuracy,) = more.values()
    assert list(more) == ["train/accuracy"]
    assert not accuracy.requires_grad
    assert accuracy == (model.scores(batch["x"]).argmax(-1) == batch["y"]).float().mean()


def test_the_probe_is_not_trained_on_and_its_characters_are_shown(tmp_path):
    (tmp_path / "book.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 9)
    layers = 'Embedding(input_dim=96, output_dim=4) | Output(96, activation="softmax")'
    task = Supervised(SupervisedSettings(network=program("(8,)", layers), data="book.txt"), tmp_path, CATALOGUE)
    probe = task.probe()
    assert len(probe["x"]) == task.experiment.tracking.probe_size
    assert set("".join(task.labels(probe)[0])) <= set("the␣quick␣brown␣fox␣jumps␣over␣the␣lazy␣dog⏎")
    assert task.tokens(probe) is probe["x"]
    trained = supervised(program("(5, 3)", POOLED), (X, np.arange(23) % 2))
    rows = {tuple(row.flatten().tolist()) for index in range(trained.epoch) for row in trained.batch(index)["x"]}
    assert not rows & {tuple(row.flatten().tolist()) for row in trained.probe()["x"]}
    assert trained.tokens(trained.probe()) is None
    assert trained.labels(trained.probe()) is None


def test_a_network_learns_the_digits():
    """A hundred steps of a small transformer: far from chance on what was held out."""
    layers = 'TransformerEncoder(num_heads=2, d_model=8, dff=32) | Flatten() | Output(10, activation="softmax")'
    task = supervised(program("(8, 8)", layers), "digits", training=Training(batch_size=64))
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
