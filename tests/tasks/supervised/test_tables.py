"""Tables from the settings of their columns to predictions: the run remembers what it fitted."""

import json

import numpy as np
import pandas
import pytest

import neural
from neural.core.errors import TaskError
from neural.core.settings import SettingsError, load_settings
from neural.optim.catalogue import CATALOGUE
from neural.tasks.supervised.inputs import load_inputs, load_labelled_examples
from neural.tasks.supervised.task import Supervised, SupervisedSettings
from neural.training.trained_run import TrainedRunFolder
from neural.workflows.predict import predict
from tests.tasks.networks import program

LAYERS = 'Dense(4, activation="tanh") | Output(2, activation="softmax")'
TABLE = {
    "target": "bought",
    "id": "customer",
    "group": "shop",
    "categorical": ["city"],
    "impute": "median",
    "standardize": True,
}


def write_shop(path, count=60, seed=0, **replacements):
    """A table of customers; `replacements` maps a column to other values."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 80, count).astype(str)
    age[::13] = "n/a"
    columns = {
        "customer": [f"c{row}" for row in range(count)],
        "shop": [f"s{row % 12}" for row in range(count)],
        "age": age,
        "city": random.choice(["Rome", "Oslo", "Paris"], count),
        "income": random.normal(40, 9, count).round(3),
        "bought": np.where(random.random(count) < 0.3, "yes", "no"),
    } | replacements
    pandas.DataFrame(columns).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """(result of the training, folder with its table)."""
    folder = tmp_path_factory.mktemp("shop")
    settings = {"table": TABLE, "stratify": True, "test": 0.2, "training": {"steps": 3}}
    path = write_shop(folder / "shop.csv")
    return neural.fit(
        program("(5,)", LAYERS), path, settings=settings, runs=folder / "runs", quiet=True
    ), folder


def create_task(folder, data="shop.csv", width=5, layers=LAYERS, **settings):
    settings = {"network": program(f"({width},)", layers), "data": data, **settings}
    return Supervised(load_settings(SupervisedSettings, settings), folder, CATALOGUE)


def test_what_was_fitted_is_saved_with_the_run(shop):
    result, _ = shop
    data, run = result.task.data, result.run
    assert run.metadata("data/columns") == ["age", "city", "income"]
    assert run.metadata("data/classes") == ["no", "yes"]
    assert run.metadata("data/target") == "bought"
    assert run.metadata("data/preprocessing") == json.loads(json.dumps(data.preprocessor.to_dict()))
    train_x = data.train.columns["x"].array[data.sampler.examples]
    assert train_x[:, [0, 4]].mean(axis=0) == pytest.approx([0, 0], abs=1e-9)
    assert train_x[:, [0, 4]].std(axis=0) == pytest.approx([1, 1])


def test_groups_stay_together_in_training_validation_and_test(shop):
    data = shop[0].task.data
    groups = data.examples.groups
    parts = [data.sampler.examples, data.held_out_indices, data.test_indices]
    names = [set(groups[part]) for part in parts]
    assert all(names)
    assert not names[0] & names[1] | names[0] & names[2] | names[1] & names[2]
    assert len(data.test_batch(0, 1000)["y"]) == len(data.test_indices)


def test_predictions_need_neither_the_training_data_nor_its_unused_columns(shop):
    result, folder = shop
    expected = predict(result.run, folder / "shop.csv").items[0]
    assert expected.id_column == ("customer", [f"c{row}" for row in range(60)])
    frame = pandas.read_csv(folder / "shop.csv")
    (folder / "shop.csv").rename(folder / "shop.bak")
    try:
        text = frame[["income", "city", "age"]].to_csv(index=False)
        for source in (
            text.encode(),
            text.replace(",", "\t").encode(),
            frame[["city", "income", "age"]].to_json(orient="records", lines=True).encode(),
            frame.drop(columns=["bought", "customer"]),
        ):
            rows = predict(result.run, source).items[0]
            np.testing.assert_allclose(rows.outputs, expected.outputs, atol=1e-6)
            assert rows.id_column is None
    finally:
        (folder / "shop.bak").rename(folder / "shop.csv")


def test_values_that_were_not_in_the_training_rows(shop):
    result, _ = shop
    rows = predict(result.run, b"age,city,income\n,Berlin,3\n50,,2\n").items[0]
    assert len(rows.outputs) == 2  # missing cells are filled
    missing, unknown = rows.notes
    assert missing.startswith("standard input, column `city`: missing in 1 row; it becomes `")
    assert unknown == (
        "standard input, column `city`: `Berlin` in 1 row was not in the training rows; "
        "it becomes all zeros"
    )
    with pytest.raises(TaskError, match="line 2, column `income`: `much` is not a number; replace"):
        predict(result.run, b"age,city,income\n30,Rome,much\n")


def test_labelled_examples_are_converted_as_in_training(shop):
    result, folder = shop
    run, data = TrainedRunFolder(result.run), result.task.data
    frame = pandas.read_csv(folder / "shop.csv")
    shuffled = frame[["bought", "income", "city", "shop", "age"]]
    shuffled.to_csv(folder / "other.csv", index=False)
    for source in (folder / "other.csv", (shuffled.drop(columns="bought"), shuffled["bought"])):
        examples = load_labelled_examples(run, source)
        np.testing.assert_allclose(examples.train["x"], data.train.columns["x"].array)
        assert examples.train["y"].tolist() == data.train.columns["y"].array.tolist()
        assert examples.groups.tolist() == frame["shop"].tolist()
    with pytest.raises(TaskError, match=r"other.csv has no column `bought`, the target of the tr"):
        shuffled.drop(columns="bought").to_csv(folder / "other.csv", index=False)
        load_labelled_examples(run, folder / "other.csv")


def test_arrays_are_converted_by_column_number(tmp_path):
    x = np.random.default_rng(0).normal(5, 3, size=(30, 3))
    x[4, 1] = np.nan
    np.savez(tmp_path / "d.npz", x=x, y=np.array(["a", "b"])[(x[:, 0] > 5).astype(int)])
    settings = {"table": {"standardize": True, "impute": "mean", "drop": [3]}}
    result = neural.fit(
        program("(2,)", LAYERS),
        tmp_path / "d.npz",
        settings=settings,
        steps=2,
        runs=tmp_path,
        quiet=True,
    )
    prepared = result.task.data.train.columns["x"].array
    for source in (x, x[:, :2], tmp_path / "d.npz"):
        inputs = load_inputs(TrainedRunFolder(result.run), source)
        np.testing.assert_allclose(inputs.arrays["x"], prepared)
    assert set(result.predict(x)) <= {"a", "b"}
    with pytest.raises(TaskError, match="has 1 columns; the run was trained on 2: 1, 2"):
        result.predict(x[:, :1])


def test_a_separate_test_file_has_the_classes_and_columns_of_the_training_data(tmp_path):
    write_shop(tmp_path / "shop.csv")
    write_shop(tmp_path / "test.csv", count=20, seed=1, bought=["yes"] * 20)
    task = create_task(tmp_path, table=TABLE, test="test.csv")
    assert task.data.test_batch(0, 50)["y"].tolist() == [1] * 20
    assert len(task.data.sampler.examples) + len(task.data.held_out_indices) == 60
    assert task.experiment.test == str(tmp_path / "test.csv")
    write_shop(tmp_path / "test.csv", count=20, bought=["maybe"] * 20)
    with pytest.raises(TaskError, match="column `bought`: `maybe` is not a class of the training"):
        create_task(tmp_path, table=TABLE, test="test.csv")


def test_folds_hold_out_every_row_once(tmp_path):
    write_shop(tmp_path / "shop.csv")
    held_out = []
    for fold in ("1/3", "2/3", "3/3"):
        task = create_task(tmp_path, table=TABLE, fold=fold)
        held_out += task.data.held_out_indices.tolist()
    assert sorted(held_out) == list(range(60))


def test_the_number_of_features_must_fit_the_network(tmp_path):
    write_shop(tmp_path / "shop.csv")
    with pytest.raises(
        TaskError, match=r"has 5 features \(age, city=Oslo, city=Paris, city=Rome, "
    ):
        create_task(tmp_path, width=7, table=TABLE)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"table": {**TABLE, "categorical": []}}, r"`table.categorical: \[city\]` makes"),
        ({"table": {**TABLE, "group": "same"}}, "all rows have the same value in the column of"),
        ({"table": {**TABLE, "group": "empty"}}, "line 2, column `empty`: the group is empty"),
        ({"data": "digits", "table": {"standardize": True}}, "are for tables and two-dimensional"),
        (
            {
                "network": program("(1,)", "Output(1)", 'loss: "mse"'),
                "table": {"features": ["income"], "target": "income"},
            },
            "`income` is in `features` and is the `target`",
        ),
        (
            {
                "network": program("(1,)", "Output(1)", 'loss: "mse"'),
                "table": {"features": ["number"], "target": "income"},
                "stratify": True,
            },
            "`stratify` needs one class per example",
        ),
    ],
    ids=["words", "one group", "no group", "no table", "two roles", "numbers"],
)
def test_settings_that_do_not_fit_the_data_are_refused(settings, message, tmp_path):
    write_shop(tmp_path / "shop.csv", same=["a"] * 60, empty=[""] * 60, number=range(60))
    with pytest.raises((TaskError, SettingsError), match=message):
        create_task(tmp_path, **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"fold": "6/5"},
        {"fold": "1/5", "validation_split": 0.2},
        {"test": 1.5},
        {"class_weights": "equal"},
        {"class_weights": {"a": -1.0}},
        {"table": {"columns": ["a"]}},
    ],
)
def test_wrong_settings_are_refused(settings):
    with pytest.raises(SettingsError):
        load_settings(SupervisedSettings, {"network": "n.neural", **settings})


def test_arrays_with_a_validation_split_of_their_own_have_no_folds(tmp_path):
    x = np.ones((6, 2))
    np.savez(tmp_path / "d.npz", x=x, y=[0, 1] * 3, x_valid=x, y_valid=[0, 1] * 3)
    with pytest.raises(TaskError, match="has a validation split of its own, but `fold` would"):
        create_task(tmp_path, "d.npz", 2, fold="1/2")
    task = create_task(tmp_path, "d.npz", 2, table={"standardize": True})
    assert task.data.valid.columns["x"].array.tolist() == np.zeros((6, 2)).tolist()


def test_a_class_that_is_only_held_out_is_noted_with_the_key_that_helps(tmp_path):
    write_shop(tmp_path / "shop.csv", bought=["no"] * 59 + ["yes"])
    table = TABLE | {"group": None, "drop": ["shop"]}
    notes = [create_task(tmp_path, table=table, split_seed=seed).notes for seed in range(12)]
    hint = "shop.csv: no training example of class yes; `stratify: true` keeps some of every class"
    assert any(hint in note for note in notes)


CODES = {
    "whole": np.arange(60) % 3 + 1,
    "float": np.arange(60) % 3 + 1.0,
    "single": ((np.arange(60) % 3 + 1) / 10).astype(np.float32),
    "boolean": np.arange(60) % 2 == 0,
    "missing": pandas.array([None, 1, 2] * 20, dtype="Int64"),
    "large": np.arange(60) % 3 + 12345678901234560,
}


@pytest.mark.parametrize("kind", CODES)
def test_a_category_is_the_same_in_a_file_and_in_a_frame(kind, tmp_path):
    random = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {"code": CODES[kind], "x": random.normal(size=60), "label": ["a", "b"] * 30}
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    frame.to_parquet(tmp_path / "t.parquet")
    network = program(f"({frame['code'].nunique() + 1},)", LAYERS)
    settings = {
        "table": {"categorical": ["code"], "impute": "median"},
        "training": {"steps": 1},
    }
    sources = [frame[["code", "x"]], *(tmp_path / f"t.{suffix}" for suffix in ("csv", "parquet"))]
    for data in [(frame, "label"), *((source,) for source in sources[1:])]:
        result = neural.fit(network, *data, settings=settings, runs=tmp_path / "runs", quiet=True)
        run = TrainedRunFolder(result.run)
        inputs = [load_inputs(run, source) for source in [*sources, tmp_path / "t.jsonl"]]
        for other in inputs:
            assert np.array_equal(other.arrays["x"][:, :-1], inputs[0].arrays["x"][:, :-1])
            assert not any("was not in the training rows" in note for note in other.notes)


def test_python_warns_of_a_category_that_was_not_in_the_training_rows(tmp_path):
    result = neural.fit(
        program("(3,)", LAYERS),
        pandas.DataFrame({"code": ["u", "v"] * 20, "x": np.arange(40.0)}),
        ["a", "b"] * 20,
        settings={"table": {"categorical": ["code"]}, "training": {"steps": 1}},
        runs=tmp_path,
        quiet=True,
    )
    with pytest.warns(UserWarning, match="`w` in 1 row was not in the training rows"):
        result.predict(pandas.DataFrame({"code": ["w"], "x": [1.0]}))


def test_labels_that_are_numbers_are_the_classes_of_a_file_by_name(tmp_path):
    frame = pandas.DataFrame({"x": np.arange(40.0), "label": np.arange(40) % 2 + 1.0})
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = neural.fit(
        program("(1,)", LAYERS),
        tmp_path / "t.csv",
        settings={"table": {"categorical": ["label"]}, "training": {"steps": 1}},
        runs=tmp_path / "runs",
        quiet=True,
    )
    run = TrainedRunFolder(result.run)
    for labels in (frame["label"].to_numpy(), frame["label"].astype(int).to_numpy()):
        examples = load_labelled_examples(run, (frame[["x"]], labels))
        assert examples.train["y"].tolist() == [0, 1] * 20


@pytest.mark.parametrize("word", ["none", "NA", "null", "?"])
def test_a_class_may_have_the_name_of_a_missing_cell_if_the_user_says_so(word, tmp_path):
    rows = "".join(f"{row},{(word, 'mild')[row % 2]}\n" for row in range(40))
    (tmp_path / "t.csv").write_text("x,label\n" + rows)
    with pytest.raises(
        TaskError,
        match=r"line 2, column `label`: the target is `.{1,4}`, which means a missing value; "
        r".*`table.categorical: \[label\]`",
    ):
        create_task(tmp_path, "t.csv", width=1)
    task = create_task(tmp_path, "t.csv", width=1, table={"categorical": ["label"]})
    assert set(task.data.examples.classes) == {word, "mild"}
    (tmp_path / "t.csv").write_text("x,label\n1,\n" + rows)
    with pytest.raises(TaskError, match="line 2, column `label`: the target is empty"):
        create_task(tmp_path, "t.csv", width=1, table={"categorical": ["label"]})
