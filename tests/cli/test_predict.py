"""`neural predict`, as a user types it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import neural
from neural.cli.main import main
from tests.cli.finished_runs import PROGRAM
from tests.segmentation_runs import MODEL, write_run
from tests.written_runs import CHARACTERS
from tests.written_runs import write_run as write_language_model

SONG = "river road night\nnight window road\n\ncarry home\nsing again\n"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("predict") / "runs", labels=True)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(0)
    x = random.normal(size=(30, 5, 6)).astype(np.float32)
    words = np.array(["ash", "birch", "cedar"])[random.integers(0, 3, 30)]
    rows = [",".join([*(f"{one:.6f}" for one in row.ravel()), word]) for row, word in zip(x, words, strict=True)]
    (folder / "trees.csv").write_text("\n".join(rows))
    return neural.fit(PROGRAM, folder / "trees.csv", {"training": {"steps": 2}}, runs=folder / "runs"), x, folder


def typed(*words, text=None):
    return CliRunner().invoke(main, ["predict", *map(str, words)], input=text)


def test_every_element_has_its_label_and_its_probability(labelled, tmp_path):
    (tmp_path / "song.txt").write_text(SONG)
    said = json.loads(typed(labelled, tmp_path / "song.txt", "--json").stdout)
    assert said["elements"] == ["river road night", "night window road", "carry home", "sing again"]
    assert said["probability"][0] == 0
    likely = np.array(list(said["label_probabilities"].values()))
    assert likely.sum(axis=0) == pytest.approx(1, abs=1e-5)
    names = list(said["label_probabilities"])
    assert set(names) == {"verse", "chorus"}
    assert said["labels"] == [names[one] for one in likely.argmax(axis=0)]
    assert said["boundaries"] == [at for at, p in enumerate(said["probability"]) if p > said["threshold"]]
    shown = typed(labelled, "-", text=SONG)
    assert shown.stdout.startswith("standard input  4 elements, ")
    assert f"{said['labels'][0]}" in shown.stdout.splitlines()[1]


def test_documents_need_no_truth(labelled, tmp_path):
    rows = [{"title": "one", "lines": ["river road", "sing"]}, {"lines": ["home"], "labels": ["nonsense"]}]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    shown = typed(labelled, tmp_path / "new.jsonl", "--json")
    assert shown.exit_code == 0, shown.output
    assert [len(json.loads(one)["elements"]) for one in shown.stdout.splitlines()] == [2, 1]
    (tmp_path / "new.jsonl").write_text('{"lines": ["a"]}\n{"line": ["a"]}')
    shown = typed(labelled, tmp_path / "new.jsonl")
    assert shown.exit_code == 2
    assert "new.jsonl, line 2: `lines` must be a list of texts; did you mean" in shown.stderr


def test_an_old_run_without_attention_and_with_fewer_settings_still_predicts(tmp_path):
    path = write_run(tmp_path / "runs", labels=True, model=MODEL | {"attention_enabled": False})
    settings = json.loads((path / "settings.json").read_text())
    for later in ("told_by", "compose", "longest", "threshold", "split_seed", "preset"):
        del settings[later]
    for later in ("head_diversity_lambda", "boundary_lambda", "class_weights"):
        del settings["training"][later]
    (path / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "songs.jsonl").unlink()
    shown = typed(path, "-", "--json", text=SONG)
    assert shown.exit_code == 0, shown.output
    assert len(json.loads(shown.stdout)["labels"]) == 4


def test_rows_get_classes_by_name_with_probabilities(fitted):
    done, x, folder = fitted
    with neural.modules.late.torch.no_grad():
        expected = done.model(neural.modules.late.torch.from_numpy(x)).numpy()
    np.savez(folder / "rows.npz", x=x)
    np.save(folder / "rows.npy", x)
    (folder / "rows.csv").write_text("\n".join(",".join(f"{one:.6f}" for one in row.ravel()) for row in x))
    for file in ("rows.npz", "rows.npy", "rows.csv", "trees.csv"):
        shown = typed(done.run.path, folder / file, "--json")
        assert shown.exit_code == 0, shown.output
        said = [json.loads(one) for one in shown.stdout.splitlines()]
        assert np.array([one["probabilities"] for one in said]) == pytest.approx(expected, abs=1e-4), file
        assert [one["name"] for one in said] == [("ash", "birch", "cedar")[row.argmax()] for row in expected]
    lines = typed(done.run.path, folder / "rows.npz").stdout.splitlines()
    assert len(lines) == 31
    assert lines[1].split()[1] in ("ash", "birch", "cedar")


def test_rows_that_do_not_fit_are_refused(fitted, tmp_path):
    done, x, _ = fitted
    np.savez(tmp_path / "small.npz", x=x[:, :, :4])
    np.savez(tmp_path / "named.npz", a=x, b=x)
    (tmp_path / "bad.csv").write_text("1,2,3\n1,x,3\n")
    for file, says in (("small.npz", "takes"), ("named.npz", "there is no array `x`"), ("bad.csv", "is not a number"),
                       ("gone.csv", "there is no data")):  # fmt: skip
        shown = typed(done.run.path, tmp_path / file)
        assert shown.exit_code == 2, file
        assert says in shown.stderr, shown.stderr


def test_a_language_model_writes_instead(tmp_path):
    path = write_language_model(tmp_path, vocabulary=list(CHARACTERS))
    shown = typed(path, "-")
    assert shown.exit_code == 2
    assert "neural generate" in shown.stderr


TABLE = """network Rows {{
  input: ({width},)
  layers:
    Dense(6, activation="relu")
    Output(2, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}
"""


@pytest.fixture(scope="module")
def clients(tmp_path_factory):
    """A run trained on a table with a header, and that table."""
    folder = tmp_path_factory.mktemp("clients")
    random = np.random.default_rng(0)
    x = random.normal(size=(60, 3))
    kinds = np.where(x[:, 0] > 0, "fraud", "review")
    rows = [f"{a:.6f},{b:.6f},{c:.6f},{kind}" for (a, b, c), kind in zip(x, kinds, strict=True)]
    (folder / "clients.csv").write_text("\n".join(["amount,age,visits,kind", *rows]))
    training = {"training": {"steps": 40}}
    return neural.fit(TABLE.format(width=3), folder / "clients.csv", training, runs=folder / "runs"), folder


def rearranged(folder, name, order, header=True, rename=None):
    """The training table with its columns in another order."""
    rows = [line.split(",") for line in (folder / "clients.csv").read_text().splitlines()]
    rows = [[row[rows[0].index(column)] for column in order] for row in rows]
    rows[0] = [(rename or {}).get(cell, cell) for cell in rows[0]]
    (folder / name).write_text("\n".join(",".join(row) for row in rows[0 if header else 1 :]))
    return folder / name


def answers(done, file):
    shown = typed(done.run.path, file, "--json")
    assert shown.exit_code == 0, shown.output
    return [json.loads(line) for line in shown.stdout.splitlines()], shown.stderr


@pytest.mark.parametrize(
    "order",
    [["kind", "visits", "age", "amount"], ["visits", "age", "amount"], ["age", "kind", "amount", "visits"]],
    ids=["reversed", "without answers", "mixed"],
)
def test_columns_are_found_by_their_names_in_any_order(clients, order):
    done, folder = clients
    expected, _ = answers(done, folder / "clients.csv")
    found, noted = answers(done, rearranged(folder, "other.csv", order))
    assert found == expected
    assert noted == ""
    assert {row["name"] for row in expected} == {"fraud", "review"}


def test_a_table_without_names_is_taken_in_the_order_of_training_with_a_note(clients):
    done, folder = clients
    expected, _ = answers(done, folder / "clients.csv")
    found, noted = answers(done, rearranged(folder, "plain.csv", ["amount", "age", "visits"], header=False))
    assert found == expected
    assert "plain.csv has no column names; its columns are taken for amount, age, visits, in this order" in noted


@pytest.mark.parametrize(
    ("order", "rename", "words"),
    [
        (["amount", "age"], {}, "there is no column `visits`. The run was trained on: amount, age, visits"),
        (["amount", "age", "visits"], {"age": "Age"}, "there is no column `age` (did you mean `Age`?); the column"),
        (["amount", "age", "visits", "kind"], {"kind": "city"}, "the column `city` was not in the training data"),
        (["amount", "age", "visits", "age"], {}, "the column `age` is there twice"),
    ],
    ids=["missing", "renamed", "unknown", "twice"],
)
def test_columns_that_do_not_agree_are_refused_by_name(clients, order, rename, words):
    done, folder = clients
    shown = typed(done.run.path, rearranged(folder, "wrong.csv", order, rename=rename))
    assert shown.exit_code == 2
    assert words in shown.stderr


def test_names_of_columns_and_classes_outlive_the_data(clients, tmp_path):
    done, folder = clients
    expected, _ = answers(done, folder / "clients.csv")
    moved = rearranged(folder, "elsewhere.csv", ["visits", "amount", "age"])
    (folder / "clients.csv").rename(folder / "clients.bak")
    try:
        assert answers(done, moved)[0] == expected
    finally:
        (folder / "clients.bak").rename(folder / "clients.csv")


def test_names_that_are_numbers_are_a_header_where_training_had_them(tmp_path):
    rows = ["2020,2021,y", *(f"{at / 10},{1 - at / 10},{at % 2}" for at in range(10))]
    (tmp_path / "years.csv").write_text("\n".join(rows))
    done = neural.fit(TABLE.format(width=2), tmp_path / "years.csv", {"training": {"steps": 2}}, runs=tmp_path / "runs")
    (tmp_path / "new.csv").write_text("2021,2020\n1.0,0.0\n")
    expected, _ = answers(done, tmp_path / "years.csv")
    assert answers(done, tmp_path / "new.csv")[0] == expected[:1]
