"""`evaluate` of supervised runs: every kind of target, of data, and every way to go wrong."""

import json

import numpy as np
import pytest
import sklearn.metrics as reference
import torch

import neural
from neural.core.errors import TaskError
from neural.runs.run import Run
from neural.training.load_model import load_best_model
from neural.workflows.evaluate import evaluate

CLASSIFIER = """network Pets {
  input: (3,)
  layers: Dense(4, activation="relu") Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.03)
  train { steps: 40 batch_size: 32 }
}"""
NAMES = ("cat", "dog", "owl")


def draw_table(count, seed):
    """Features and class numbers that depend on them linearly, with noise."""
    random = np.random.default_rng(seed)
    x = random.normal(size=(count, 3)).round(4)
    z = x[:, 0] + 0.5 * x[:, 1] + 0.3 * random.normal(size=count)
    return x, np.digitize(z, [-0.5, 0.8])


def write_table(path, x, y, order=(0, 1, 2)):
    """A CSV file with named classes; `order` is that of the columns."""
    header = [*(("a", "b", "c")[column] for column in order), "pet"]
    lines = [
        ",".join([*(str(row[column]) for column in order), NAMES[label]])
        for row, label in zip(x, y, strict=True)
    ]
    path.write_text("\n".join([",".join(header), *lines]) + "\n")
    return path


def train(folder, program, data, **settings):
    """A finished run."""
    settings = {"tracking": {"track_every": 0}, **settings}
    return neural.fit(program, data, settings=settings, runs=folder / "runs", quiet=True).run.path


@pytest.fixture(scope="module")
def table_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    data = write_table(folder / "train.csv", *draw_table(300, seed=0))
    return train(folder, CLASSIFIER, data, table={"target": "pet"})


def predict(run_path, x):
    """Outputs of the run's model, computed here."""
    with torch.no_grad():
        return load_best_model(run_path)(torch.tensor(x, dtype=torch.float32)).numpy()


def test_a_file_gives_all_scores_beside_both_baselines(table_run, tmp_path):
    x, y = draw_table(80, seed=1)
    evaluation = evaluate(table_run, write_table(tmp_path / "test.csv", x, y)).to_dict()
    assert evaluation["data"] == "80 examples of test.csv"
    assert list(evaluation["rows"]) == ["this run", "linear", "majority"]
    assert list(evaluation["lifts"]) == ["linear", "majority"]
    p = predict(table_run, x)
    scores = evaluation["rows"]["this run"]
    assert scores["accuracy"]["value"] == pytest.approx((p.argmax(axis=1) == y).mean())
    assert scores["log_loss"]["value"] == pytest.approx(reference.log_loss(y, p), rel=1e-4)
    assert scores["accuracy"]["low"] < scores["accuracy"]["value"] < scores["accuracy"]["high"]
    linear, majority = evaluation["rows"]["linear"], evaluation["rows"]["majority"]
    assert linear["accuracy"]["value"] > 0.8 > majority["accuracy"]["value"]
    assert majority["roc_auc"]["value"] == 0.5
    assert evaluation["lifts"]["linear"]["log_loss"]["value"] == pytest.approx(
        linear["log_loss"]["value"] - scores["log_loss"]["value"]
    ), "above 0 is better, also for scores where less is better"
    assert evaluation["classes"] == list(NAMES)
    np.testing.assert_array_equal(
        evaluation["confusion"], reference.confusion_matrix(y, p.argmax(axis=1))
    )
    calibration = evaluation["calibration"]
    assert sum(calibration["reliability"]["counts"]) == 80
    assert 0 <= calibration["ece"]["debiased"]["value"] <= 1
    json.dumps(evaluation, allow_nan=False)


def test_arrays_and_frames_in_memory_give_the_scores_of_the_file(table_run, tmp_path):
    x, y = draw_table(80, seed=1)
    from_file = evaluate(table_run, write_table(tmp_path / "test.csv", x, y)).to_dict()
    for data in ((x, np.array(NAMES)[y]), {"x": x, "y": np.array(NAMES)[y]}):
        assert evaluate(table_run, data).to_dict()["rows"] == from_file["rows"]
    frame = pytest.importorskip("pandas").DataFrame(x[:, [2, 0, 1]], columns=["c", "a", "b"])
    labelled = frame.assign(pet=np.array(NAMES)[y])
    for data in ((frame, labelled["pet"]), (labelled, "pet"), labelled):
        assert evaluate(table_run, data).to_dict()["rows"] == from_file["rows"]


def test_columns_are_matched_by_name(table_run, tmp_path):
    x, y = draw_table(80, seed=1)
    first = evaluate(table_run, write_table(tmp_path / "test.csv", x, y))
    second = evaluate(table_run, write_table(tmp_path / "other.csv", x, y, order=(2, 0, 1)))
    assert first.to_dict()["rows"] == second.to_dict()["rows"]


def test_without_data_the_validation_examples_are_scored_with_a_note(table_run):
    evaluation = evaluate(table_run)
    assert evaluation.description == "30 validation examples of train.csv"
    assert any("these selected the checkpoint" in note for note in evaluation.notes)
    with Run.open(table_run) as run:
        best = min(run.scalars("valid/loss")[1])
    assert evaluation.scores["this run"]["log_loss"].value == pytest.approx(best, rel=1e-5)


def test_the_training_file_gives_only_its_held_out_examples(table_run):
    evaluation = evaluate(table_run, table_run.parents[1] / "train.csv")
    assert evaluation.description == "30 validation examples of train.csv"


def test_test_examples_are_used_if_there_are_some(tmp_path):
    data = write_table(tmp_path / "train.csv", *draw_table(100, seed=0))
    run = train(tmp_path, CLASSIFIER, data, table={"target": "pet"}, test=0.25)
    evaluation = evaluate(run)
    assert evaluation.description == "25 test examples of train.csv"
    assert not any("selected the checkpoint" in note for note in evaluation.notes)

    x, y = draw_table(100, seed=0)
    test = write_table(tmp_path / "test.csv", x[:20], y[:20])  # training examples, all of them
    run = train(tmp_path, CLASSIFIER, data, table={"target": "pet"}, test=str(test))
    evaluation = evaluate(run)
    assert evaluation.description == "20 test examples of test.csv"
    assert any("have the inputs of a training example" in note for note in evaluation.notes)


def test_training_examples_are_refused_or_noted(table_run, tmp_path):
    x, y = draw_table(300, seed=0)
    copy = write_table(tmp_path / "copy.csv", x[:50], y[:50])
    with pytest.raises(TaskError, match=r"of 50 examples have the inputs of a training example"):
        evaluate(table_run, copy)
    evaluation = evaluate(table_run, copy, allow_duplicates=True)
    assert any("the scores may be too good" in note for note in evaluation.notes)


def test_without_the_training_data_there_are_no_baselines(tmp_path):
    data = write_table(tmp_path / "train.csv", *draw_table(100, seed=0))
    run = train(tmp_path, CLASSIFIER, data, table={"target": "pet"})
    data.unlink()
    evaluation = evaluate(run, write_table(tmp_path / "test.csv", *draw_table(40, seed=1)))
    assert list(evaluation.scores) == ["this run"]
    assert evaluation.classes == NAMES
    assert any("the training data is missing" in note for note in evaluation.notes)
    with pytest.raises(TaskError, match=r"train\.csv"):
        evaluate(run)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,c\n1,2,3\n", "no column `pet`"),
        ("a,b,c,pet\n1,2,3,emu\n", "`emu` is not a class of the training data"),
        ("a,b,pet\n1,2,cat\n", "there is no column `c`"),
    ],
)
def test_files_that_do_not_fit_are_refused(table_run, tmp_path, content, message):
    (tmp_path / "test.csv").write_text(content)
    with pytest.raises(TaskError, match=message):
        evaluate(table_run, tmp_path / "test.csv")


def test_a_run_without_held_out_examples_asks_for_data(tmp_path):
    x, y = draw_table(40, seed=0)
    np.savez(tmp_path / "all.npz", x=x, y=y)
    run = train(tmp_path, CLASSIFIER, tmp_path / "all.npz", validation_split=0)
    with pytest.raises(TaskError, match="has no held-out examples; name some with --data"):
        evaluate(run)


def test_values_are_scored_beside_the_mean_and_a_linear_model(tmp_path):
    program = """network Value {
      input: (3,)
      layers: Dense(4, activation="relu") Output(1)
      loss: "mse"
      train { steps: 20 batch_size: 32 }
    }"""
    x, _ = draw_table(200, seed=0)
    y = 2 * x[:, 0] - x[:, 2]
    np.savez(tmp_path / "values.npz", x=x, y=y)
    run = train(tmp_path, program, tmp_path / "values.npz")
    x, _ = draw_table(60, seed=1)
    y = 2 * x[:, 0] - x[:, 2]
    evaluation = evaluate(run, (x, y)).to_dict()
    scores = evaluation["rows"]["this run"]
    assert list(evaluation["rows"]) == ["this run", "linear", "mean"]
    assert list(scores) == ["mae", "rmse", "r2"]
    predicted = predict(run, x)[:, 0]
    assert scores["r2"]["value"] == pytest.approx(reference.r2_score(y, predicted), rel=1e-4)
    assert evaluation["rows"]["linear"]["r2"]["value"] > 0.98
    assert evaluation["confusion"] is None


def test_yes_or_no_labels_are_scored_as_two_classes(tmp_path):
    program = """network Tags {
      input: (3,)
      layers: Output(2, activation="sigmoid")
      loss: "binary_crossentropy"
      train { steps: 20 batch_size: 32 }
    }"""
    x, _ = draw_table(200, seed=0)
    y = np.stack([x[:, 0] > 0, x[:, 1] > 1], axis=1).astype(int)
    np.savez(tmp_path / "tags.npz", x=x, y=y)
    run = train(tmp_path, program, tmp_path / "tags.npz")
    x, _ = draw_table(50, seed=1)
    y = np.stack([x[:, 0] > 0, x[:, 1] > 1], axis=1).astype(int)
    evaluation = evaluate(run, (x, y)).to_dict()
    p = predict(run, x)
    scores = evaluation["rows"]["this run"]
    assert scores["accuracy"]["value"] == pytest.approx(((p > 0.5) == y).mean())
    assert scores["roc_auc"]["value"] == pytest.approx(
        reference.roc_auc_score(y.ravel(), p.ravel())
    )
    assert evaluation["interval_basis"] == "50 examples", "the two labels are not independent"
    assert "the 2 yes-or-no labels of a prediction are scored together" in evaluation["notes"]
    assert np.sum(evaluation["confusion"]) == 100


def test_positions_are_scored_without_padding_and_intervals_are_by_example(tmp_path):
    program = """network Tagger {
      input: (6,)
      layers:
        Embedding(input_dim=7, output_dim=4, pad_id=0)
        Output(3, activation="softmax")
      loss: "sparse_categorical_crossentropy"
      train { steps: 20 batch_size: 16 }
    }"""
    random = np.random.default_rng(0)
    x = random.integers(1, 7, (120, 6))
    y = x % 3
    lengths = random.integers(2, 7, 120)
    x[np.arange(6) >= lengths[:, None]] = 0
    np.savez(tmp_path / "tags.npz", x=x[:100], y=y[:100])
    run = train(tmp_path, program, tmp_path / "tags.npz")
    evaluation = evaluate(run, (x[100:], y[100:]), allow_duplicates=True).to_dict()
    assert np.sum(evaluation["confusion"]) == lengths[100:].sum()
    assert evaluation["interval_basis"] == "20 examples"
    p = predict_tokens(run, x[100:])
    is_real = x[100:] != 0
    assert evaluation["rows"]["this run"]["accuracy"]["value"] == pytest.approx(
        (p.argmax(axis=-1) == y[100:])[is_real].mean()
    )
    assert evaluation["rows"]["linear"]["accuracy"]["value"] == 1, "the token decides"


def predict_tokens(run_path, ids):
    with torch.no_grad():
        return load_best_model(run_path)(torch.tensor(ids)).numpy()


def test_examples_of_one_group_are_left_out_together(tmp_path):
    x, y = draw_table(120, seed=0)
    lines = [
        f"{a},{b},{c},p{row // 4},{NAMES[label]}"
        for row, ((a, b, c), label) in enumerate(zip(x, y, strict=True))
    ]
    (tmp_path / "visits.csv").write_text("a,b,c,patient,pet\n" + "\n".join(lines) + "\n")
    table = {"target": "pet", "group": "patient"}
    run = train(tmp_path, CLASSIFIER, tmp_path / "visits.csv", table=table, validation_split=0.3)
    evaluation = evaluate(run)
    assert evaluation.interval_basis == "9 groups"
    assert evaluation.description == "36 validation examples of visits.csv"


def test_an_encoder_decoder_has_a_majority_baseline_only(tmp_path):
    program = """network Copy {
      input: (5,)
      layers:
        Embedding(input_dim=8, output_dim=4)
        TransformerEncoder(num_heads=2, d_model=4, dff=8)
        TransformerDecoder(num_heads=2, d_model=4, dff=8)
        Output(8, activation="softmax")
      loss: "sparse_categorical_crossentropy"
      train { steps: 2 batch_size: 8 }
    }"""
    source = np.random.default_rng(0).integers(0, 8, (60, 5))
    np.savez(tmp_path / "copy.npz", source=source[:40], target=source[:40])
    run = train(tmp_path, program, tmp_path / "copy.npz")
    data = {"source": source[40:], "target": source[40:]}
    evaluation = evaluate(run, data, allow_duplicates=True)
    assert list(evaluation.scores) == ["this run", "majority"]
    assert evaluation.confusion.sum() == 20 * 4, "the first token is not predicted"
    assert "there is no linear baseline for these inputs" in evaluation.notes


def test_the_text_is_short_and_has_the_lifts(table_run, tmp_path):
    x, y = draw_table(80, seed=1)
    text = str(evaluate(table_run, write_table(tmp_path / "test.csv", x, y)))
    for words in ("balanced accuracy", "over linear", "95 % interval", "debiased ECE", "owl"):
        assert words in text
    assert max(map(len, text.splitlines())) <= 80
    # A root mean square is at least the mean: it may be larger than the ECE above.
    assert "debiased ECE: root mean square, without the part" in text


def test_the_evaluation_is_saved_with_the_run(table_run, tmp_path):
    x, y = draw_table(80, seed=1)
    evaluation = evaluate(table_run, write_table(tmp_path / "test.csv", x, y))
    saved = json.loads((table_run / "evaluation.json").read_text())
    assert saved["evaluation"] == json.loads(json.dumps(evaluation.to_dict()))
    assert saved["sections"][0]["text"].startswith("on 80 examples of test.csv")


def test_arrays_in_memory_are_prepared_as_the_training_table_was(tmp_path):
    x, y = draw_table(120, seed=0)
    data = write_table(tmp_path / "train.csv", x * [1, 1000, 1], y)
    settings = {"target": "pet", "standardize": True}
    run = train(tmp_path, CLASSIFIER, data, table=settings)
    x, y = draw_table(40, seed=1)
    x = x * [1, 1000, 1]
    from_file = evaluate(run, write_table(tmp_path / "test.csv", x, y)).to_dict()
    assert evaluate(run, (x, np.array(NAMES)[y])).to_dict()["rows"] == from_file["rows"]
    assert from_file["rows"]["this run"]["log_loss"]["value"] < 2, "the columns are standardised"
