"""`neural.fit` with arrays, frames and torch data; what its result can do."""

import numpy as np
import pandas
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import neural
from neural.core.errors import TaskError
from neural.core.settings import SettingsError

CLASSIFIER = """network Flowers {
  input: (4,)
  layers:
    Dense(8, activation="relu")
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.03)
  train { steps: 40 }
}
"""
BINARY = CLASSIFIER.replace('Output(3, activation="softmax")', 'Output(1, activation="sigmoid")')
BINARY = BINARY.replace("sparse_categorical_crossentropy", "binary_crossentropy")
REGRESSION = CLASSIFIER.replace('Output(3, activation="softmax")', "Output(1)")
REGRESSION = REGRESSION.replace("sparse_categorical_crossentropy", "mse")
NAMES = np.array(["iris", "rose", "tulip"])
COLUMNS = ["length", "width", "height", "weight"]
SHORT = {"steps": 2, "quiet": True}


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(90, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def numbers(X):
    return X[:, :3].argmax(axis=1)


@pytest.fixture(scope="module")
def fitted(X, numbers, tmp_path_factory):
    runs = tmp_path_factory.mktemp("runs")
    return neural.fit(CLASSIFIER, X, NAMES[numbers], runs=runs, quiet=True)


def test_inputs_and_labels_are_two_arguments_or_a_pair(X, numbers, tmp_path):
    separate = neural.fit(CLASSIFIER, X, numbers, runs=tmp_path, **SHORT)
    pair = neural.fit(CLASSIFIER, (X, numbers), runs=tmp_path, **SHORT)
    np.testing.assert_array_equal(separate.predict_proba(X), pair.predict_proba(X))
    assert separate.predict(X).dtype == np.int64


def test_settings_are_keywords_or_a_mapping(X, numbers, tmp_path):
    keywords = neural.fit(
        CLASSIFIER, X, numbers, name="small", validation_split=0.2, runs=tmp_path, **SHORT
    )
    settings = {"name": "small", "validation_split": 0.2, "training": {"steps": 2}}
    mapping = neural.fit(CLASSIFIER, (X, numbers), settings, quiet=True, runs=tmp_path)
    assert keywords.run.settings == mapping.run.settings
    assert keywords.run.settings["training"]["steps"] == 2
    with pytest.raises(SettingsError, match="did you mean `epochs`"):
        neural.fit(CLASSIFIER, X, numbers, epoch=3, runs=tmp_path)


def test_text_labels_are_classes_by_name(fitted, X, numbers):
    predicted = fitted.predict(X)
    assert set(predicted) <= set(NAMES)
    assert (predicted == NAMES[numbers]).mean() > 0.8
    probabilities = fitted.predict_proba(X)
    assert probabilities.shape == (90, 3)
    np.testing.assert_array_equal(NAMES[probabilities.argmax(axis=1)], predicted)
    assert fitted.run.metadata("data/classes") == NAMES.tolist()


def test_a_run_opened_by_name_predicts_the_same(fitted, X):
    records = neural.predict("flowers", X, runs=fitted.run.path.parent).to_records()
    assert [record["predicted"] for record in records] == fitted.predict(X).tolist()


def test_a_result_evaluates_arrays_beside_baselines(fitted, X, numbers):
    scores = fitted.evaluate(X, NAMES[numbers], allow_duplicates=True).to_dict()
    accuracy = (fitted.predict(X) == NAMES[numbers]).mean()
    assert scores["rows"]["this run"]["accuracy"]["value"] == pytest.approx(accuracy)
    assert "majority" in scores["rows"]
    assert fitted.evaluate().to_dict()["data"].startswith("9 validation examples")


def test_refused_training_examples_name_the_keyword_of_python(fitted, X, numbers):
    with pytest.raises(TaskError, match=r"remove them, or use allow_duplicates=True"):
        fitted.evaluate(X, NAMES[numbers])


def test_a_frame_with_gaps_or_words_names_the_columns_and_the_keyword(X, numbers, tmp_path):
    gaps = pandas.DataFrame(X, columns=COLUMNS)
    gaps.loc[3, "width"] = np.nan
    with pytest.raises(TaskError) as refused:
        neural.fit(CLASSIFIER, gaps, numbers, runs=tmp_path, **SHORT)
    assert str(refused.value) == (
        "the data: `x`: `width` must not have missing values: "
        '`table={"impute": "median"}` in `neural.fit` fills them'
    )
    words = gaps.assign(height=["low", "high"] * 45)
    with pytest.raises(TaskError) as refused:
        neural.fit(CLASSIFIER, words, numbers, runs=tmp_path, **SHORT)
    assert str(refused.value).startswith(
        'the data: `x`: `height` must hold numbers, not text: `table={"categorical": ["height"]}`'
    )
    assert "`width` must not have missing values" in str(refused.value)
    filled = {"impute": "median", "categorical": ["height"]}
    program = CLASSIFIER.replace("(4,)", "(5,)")
    neural.fit(program, words, numbers, table=filled, runs=tmp_path, **SHORT)


def test_history_is_a_frame_with_a_row_per_step(fitted):
    assert list(fitted.history["step"]) == list(range(1, 41))
    _, losses = fitted.run.scalars("train/loss")
    np.testing.assert_array_equal(fitted.history["train/loss"].to_numpy(), losses)
    assert np.isfinite(fitted.history["valid/loss"].iloc[-1])


def test_a_frame_is_matched_by_column_names(X, numbers, tmp_path):
    frame = pandas.DataFrame(X, columns=COLUMNS)
    labels = pandas.Series(NAMES[numbers], name="species")
    fitted = neural.fit(CLASSIFIER, frame, labels, runs=tmp_path, **SHORT)
    assert fitted.run.metadata("data/columns") == COLUMNS
    expected = fitted.predict_proba(frame)
    np.testing.assert_array_equal(fitted.predict_proba(frame[COLUMNS[::-1]]), expected)
    np.testing.assert_allclose(fitted.predict_proba(X), expected, rtol=1e-5)
    with pytest.raises(TaskError, match="`width`"):
        fitted.predict(frame.drop(columns="width"))


def test_labels_may_be_a_column_of_the_frame(X, numbers, tmp_path):
    frame = pandas.DataFrame(X, columns=COLUMNS)
    separate = neural.fit(CLASSIFIER, frame, NAMES[numbers], runs=tmp_path, **SHORT)
    joined = neural.fit(
        CLASSIFIER, frame.assign(species=NAMES[numbers]), "species", runs=tmp_path, **SHORT
    )
    np.testing.assert_array_equal(separate.predict_proba(X), joined.predict_proba(X))
    with pytest.raises(TaskError, match="did you mean `species`"):
        neural.fit(CLASSIFIER, frame.assign(species=numbers), "specie", runs=tmp_path)


class PolarsLikeFrame:
    """The part of a polars DataFrame that is used: columns, selection and conversion."""

    def __init__(self, values):
        self.values, self.columns = values, list(values)

    def __getitem__(self, names):
        if isinstance(names, str):
            return self.values[names]
        return PolarsLikeFrame({name: self.values[name] for name in names})

    def __len__(self):
        return len(next(iter(self.values.values())))

    def to_numpy(self):
        return np.stack(list(self.values.values()), axis=1)


def test_a_frame_of_another_package_is_read_too(X, numbers, tmp_path):
    frame = PolarsLikeFrame(dict(zip(COLUMNS, X.T, strict=True)))
    fitted = neural.fit(CLASSIFIER, frame, numbers, runs=tmp_path, **SHORT)
    np.testing.assert_allclose(fitted.predict_proba(frame), fitted.predict_proba(X), rtol=1e-5)


class MapStyle(Dataset):
    """Examples by index, which never raises IndexError."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index % len(self.x)], self.y[index % len(self.x)]


class Stream(IterableDataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __iter__(self):
        return zip(self.x, self.y, strict=True)


@pytest.mark.parametrize("kind", ["tensors", "map", "stream", "loader"])
def test_torch_data_is_read_into_memory(kind, X, numbers, tmp_path):
    tensors = TensorDataset(torch.from_numpy(X), torch.from_numpy(numbers))
    data = {
        "tensors": tensors,
        "map": MapStyle(X, numbers),
        "stream": Stream(X, numbers),
        "loader": DataLoader(tensors, batch_size=7),
    }[kind]
    fitted = neural.fit(CLASSIFIER, data, runs=tmp_path, **SHORT)
    expected = neural.fit(CLASSIFIER, X, numbers, runs=tmp_path, **SHORT)
    np.testing.assert_array_equal(fitted.predict_proba(X), expected.predict_proba(X))


def test_one_sigmoid_unit_predicts_two_named_classes(X, tmp_path):
    labels = np.where(X[:, 0] > 0, "yes", "no")
    fitted = neural.fit(BINARY, X, labels, runs=tmp_path, quiet=True)
    assert fitted.predict_proba(X).shape == (90, 2)
    assert (fitted.predict(X) == labels).mean() > 0.8


def test_a_regression_predicts_values(X, tmp_path):
    fitted = neural.fit(REGRESSION, X, X[:, 0], runs=tmp_path, quiet=True)
    assert fitted.predict(X).shape == (90,)
    with pytest.raises(TaskError, match="values, not probabilities"):
        fitted.predict_proba(X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, y: (X[:-1], y), r"differ in length: \(89, 4\) and \(90,\)"),
        (lambda X, y: (np.where(X > 2, np.nan, X), y), r"`x` has nan at \[\d+, \d+\]"),
        (lambda X, y: (X[:, :3], y), r"takes \(B, 4\); write `input: \(3,\)`"),
        (lambda X, y: (X,), r"pass the labels too, `neural.fit\(network, X, y\)`"),
        (lambda X, y: (None, y), "`y` is given without `X`"),
        (lambda X, y: ("digits", y), "leave `y` out"),
        (lambda X, y: (X, np.array(list("abcd"))[np.arange(90) % 4]), "4 different labels"),
        (lambda X, y: (X, np.array(["a", None] * 45)), r"`y` has None at \[1\] among text"),
        (lambda X, y: (X, y + 1), "must hold integers from 0 to 2"),
        (lambda X, y: (X, "species"), "pass labels, or a DataFrame"),
        (lambda X, y: (pandas.DataFrame({"city": ["Rome"] * 90}), y), "`?city`?"),
        (lambda X, y: (X[:60], NAMES[y[:60]], X[60:], np.array(["oak"] * 30)), "oak"),
        (lambda X, y: (TensorDataset(torch.from_numpy(X)),), r"pairs \(x, y\), got 1 values"),
    ],
)
def test_data_that_does_not_fit_is_refused_before_training(change, message, X, numbers, tmp_path):
    arguments = change(X, numbers)
    arguments = (arguments,) if len(arguments) == 4 else arguments
    with pytest.raises(TaskError, match=message):
        neural.fit(CLASSIFIER, *arguments, runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_predictions_name_the_expected_shape(fitted, X):
    with pytest.raises(TaskError, match=r"is \(90, 2\), but Flowers takes \(B, 4\)"):
        fitted.predict(X[:, :2])


def test_progress_is_one_line_in_a_script_and_nothing_with_quiet(X, numbers, tmp_path, capsys):
    neural.fit(CLASSIFIER, X, numbers, steps=3, runs=tmp_path)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert captured.err.startswith("step 3/3  loss ")
    steps = []
    neural.fit(CLASSIFIER, X, numbers, steps=3, runs=tmp_path, quiet=True, on_step=steps.append)
    assert capsys.readouterr() == ("", "")
    assert [progress.step for progress in steps] == [1, 2, 3]


def test_progress_in_a_notebook_is_redrawn_in_its_line(X, numbers, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("neural.workflows.training_progress.is_notebook", lambda: True)
    neural.fit(CLASSIFIER, X, numbers, steps=40, runs=tmp_path)
    captured = capsys.readouterr().err
    assert captured.count("\n") == 1
    assert captured.startswith("\rstep ")
    assert "step 40/40" in captured


def test_a_relative_data_path_starts_in_the_current_folder(X, numbers, tmp_path, monkeypatch):
    (tmp_path / "networks").mkdir()
    (tmp_path / "networks" / "flowers.neural").write_text(CLASSIFIER)
    np.savez(tmp_path / "data.npz", x=X, y=numbers)
    monkeypatch.chdir(tmp_path)
    fitted = neural.fit("networks/flowers.neural", "data.npz", **SHORT)
    assert fitted.run.settings["data"] == str(tmp_path / "data.npz")


def test_a_blueprint_of_a_program_with_two_networks_is_trained(X, numbers, tmp_path):
    text = CLASSIFIER + CLASSIFIER.replace("Flowers", "Others").replace("Dense(8", "Dense(9")
    network = neural.parse(text, network="Others")
    fitted = neural.fit(network, X, numbers, runs=tmp_path, **SHORT)
    assert fitted.model.network.name == "Others"


def test_a_result_prints_its_scores_and_is_a_path(fitted):
    text = repr(fitted)
    assert text.startswith(f"{fitted.run.name}  finished after step 40")
    assert "valid/accuracy" in text
    assert "valid/accuracy" in fitted._repr_html_()
    assert neural.open_run(fitted).path == fitted.run.path


def test_a_text_alone_is_trained_as_neural_train_does(tmp_path, capsys):
    text = tmp_path / "novel.txt"
    text.write_text("the cat sat on the mat. " * 60)
    result = neural.fit(text, context=16, steps=1, runs=tmp_path / "runs")
    assert result.run.settings["task"] == "language_model"
    assert result.run.settings["context"] == 16
    assert result.run.settings["training"]["steps"] == 1
    notes = capsys.readouterr().err
    assert "novel.txt: a text of 1.4 kB: a language model of its characters" in notes
    assert "the same as this experiment:\n  task: language_model\n" in notes


def test_a_table_alone_is_trained_with_a_guessed_network(tmp_path, capsys):
    rows = "".join(f"{i},{i % 7},{'yes' if i % 2 else 'no'}\n" for i in range(60))
    table = tmp_path / "clients.csv"
    table.write_text("age,visits,stays\n" + rows)
    result = neural.fit(str(table), runs=tmp_path / "runs", **SHORT)
    assert result.run.settings["table"]["target"] == "stays"
    assert capsys.readouterr().err == ""  # quiet
    with pytest.raises(TaskError, match=r"clients.csv is data, not a network: .* network first"):
        neural.fit(table, "stays", runs=tmp_path / "runs")


@pytest.mark.parametrize("text", ["", "Dense(8) " * 1000])
def test_a_text_that_is_no_program_and_no_path_is_refused(text, tmp_path):
    with pytest.raises((TaskError, SettingsError)):
        neural.fit(text, np.zeros((4, 4)), np.zeros(4), runs=tmp_path, quiet=True)
