"""`neural predict`, as a user types it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import neural
from neural.cli.main import main
from neural.data.table_cells import read_table_file
from tests.cli.finished_runs import PROGRAM
from tests.segmentation_runs import MODEL, write_run
from tests.written_runs import CHARACTERS
from tests.written_runs import write_run as write_language_model

SONG = "river road night\nnight window road\n\ncarry home\nsing again\n"


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("predict") / "runs", labels=True)


@pytest.fixture(scope="module")
def trees(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(0)
    x = random.normal(size=(30, 5, 6)).astype(np.float32)
    words = np.array(["ash", "birch", "cedar"])[random.integers(0, 3, 30)]
    rows = [
        ",".join([*(f"{value:.6f}" for value in row.ravel()), word])
        for row, word in zip(x, words, strict=True)
    ]
    (folder / "trees.csv").write_text("\n".join(rows))
    return (
        neural.fit(PROGRAM, folder / "trees.csv", {"training": {"steps": 2}}, runs=folder / "runs"),
        x,
        folder,
    )


def invoke(*words, text=None):
    return CliRunner().invoke(main, ["predict", *map(str, words)], input=text)


def test_every_element_has_its_label_and_its_probability(labelled, tmp_path):
    (tmp_path / "song.txt").write_text(SONG)
    prediction = json.loads(invoke(labelled, tmp_path / "song.txt", "--json").stdout)
    assert prediction["elements"] == [
        "river road night",
        "night window road",
        "carry home",
        "sing again",
    ]
    assert prediction["probability"][0] == 0
    probabilities = np.array(list(prediction["label_probabilities"].values()))
    assert probabilities.sum(axis=0) == pytest.approx(1, abs=1e-5)
    names = list(prediction["label_probabilities"])
    assert set(names) == {"verse", "chorus"}
    assert prediction["labels"] == [names[label] for label in probabilities.argmax(axis=0)]
    assert prediction["boundaries"] == [
        index for index, p in enumerate(prediction["probability"]) if p > prediction["threshold"]
    ]
    result = invoke(labelled, "-", text=SONG)
    assert result.stdout.startswith("standard input  4 elements, ")
    assert f"{prediction['labels'][0]}" in result.stdout.splitlines()[1]


def test_documents_need_no_labels(labelled, tmp_path):
    rows = [
        {"title": "one", "lines": ["river road", "sing"]},
        {"lines": ["home"], "labels": ["nonsense"]},
    ]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = invoke(labelled, tmp_path / "new.jsonl", "--json")
    assert result.exit_code == 0, result.output
    assert [len(json.loads(line)["elements"]) for line in result.stdout.splitlines()] == [2, 1]
    (tmp_path / "new.jsonl").write_text('{"lines": ["a"]}\n{"line": ["a"]}')
    result = invoke(labelled, tmp_path / "new.jsonl")
    assert result.exit_code == 2
    assert "new.jsonl, line 2: `lines` must be a list of texts; did you mean" in result.stderr


def test_an_old_run_without_attention_and_with_fewer_settings_still_predicts(tmp_path):
    path = write_run(tmp_path / "runs", labels=True, model=MODEL | {"attention_enabled": False})
    settings = json.loads((path / "settings.json").read_text())
    for key in ("boundary_marker", "compose", "max_elements", "threshold", "split_seed", "preset"):
        del settings[key]
    for key in ("head_diversity_lambda", "boundary_lambda", "class_weights"):
        del settings["training"][key]
    (path / "settings.json").write_text(json.dumps(settings))
    (tmp_path / "songs.jsonl").unlink()
    result = invoke(path, "-", "--json", text=SONG)
    assert result.exit_code == 0, result.output
    assert len(json.loads(result.stdout)["labels"]) == 4


def test_rows_get_classes_by_name_with_probabilities(trees):
    fitted, x, folder = trees
    with neural.nn.lazy_torch.torch.no_grad():
        expected = fitted.model(neural.nn.lazy_torch.torch.from_numpy(x)).numpy()
    np.savez(folder / "rows.npz", x=x)
    np.save(folder / "rows.npy", x)
    (folder / "rows.csv").write_text(
        "\n".join(",".join(f"{value:.6f}" for value in row.ravel()) for row in x)
    )
    for file in ("rows.npz", "rows.npy", "rows.csv", "trees.csv"):
        result = invoke(fitted.run.path, folder / file, "--json")
        assert result.exit_code == 0, result.output
        rows = [json.loads(line) for line in result.stdout.splitlines()]
        assert list(rows[0]) == [
            "predicted",
            "probability_ash",
            "probability_birch",
            "probability_cedar",
        ]
        assert np.array([list(row.values())[1:] for row in rows]) == pytest.approx(
            expected, abs=1e-4
        ), file
        assert [row["predicted"] for row in rows] == [
            ("ash", "birch", "cedar")[row.argmax()] for row in expected
        ]
    lines = invoke(fitted.run.path, folder / "rows.npz").stdout.splitlines()
    assert len(lines) == 31
    assert lines[1].split()[1] in ("ash", "birch", "cedar")


def test_rows_that_do_not_fit_are_refused(trees, tmp_path):
    fitted, x, _ = trees
    np.savez(tmp_path / "small.npz", x=x[:, :, :4])
    np.savez(tmp_path / "named.npz", a=x, b=x)
    (tmp_path / "bad.csv").write_text("1,2,3\n1,x,3\n")
    for file, message in (
        ("small.npz", "takes"),
        ("named.npz", "there is no array `x`"),
        ("bad.csv", "is not a number"),
        ("gone.csv", "there is no data"),
    ):
        result = invoke(fitted.run.path, tmp_path / file)
        assert result.exit_code == 2, file
        assert message in result.stderr, result.stderr


def test_a_language_model_is_referred_to_generate(tmp_path):
    path = write_language_model(tmp_path, vocabulary=list(CHARACTERS))
    result = invoke(path, "-")
    assert result.exit_code == 2
    assert "neural generate" in result.stderr
    assert invoke(path).stderr == result.stderr


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
    return neural.fit(
        TABLE.format(width=3), folder / "clients.csv", training, runs=folder / "runs"
    ), folder


def test_a_run_without_an_input_says_what_it_needs(clients, labelled):
    _, folder = clients
    result = invoke("ROWS", "--runs", folder / "runs")
    assert result.exit_code == 2
    assert result.stderr == (
        "error: ROWS needs an input: a table (.csv or .tsv) with the columns amount, age, visits\n"
        "  neural predict ROWS FILE\n"
    )
    result = invoke("songs", "--runs", labelled.parent)
    assert "songs needs an input: a text file, or documents in .jsonl" in result.stderr


def test_a_file_alone_is_predicted_by_the_newest_run(clients):
    fitted, folder = clients
    alone = invoke(folder / "clients.csv", "--runs", folder / "runs", "--json")
    assert alone.exit_code == 0, alone.output
    assert alone.stdout == invoke(fitted.run.path, folder / "clients.csv", "--json").stdout


def write_rearranged(folder, name, order, header=True, rename=None):
    """The training table with its columns in another order."""
    rows = [line.split(",") for line in (folder / "clients.csv").read_text().splitlines()]
    rows = [[row[rows[0].index(column)] for column in order] for row in rows]
    rows[0] = [(rename or {}).get(cell, cell) for cell in rows[0]]
    (folder / name).write_text("\n".join(",".join(row) for row in rows[0 if header else 1 :]))
    return folder / name


def predict(fitted, file):
    result = invoke(fitted.run.path, file, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.stdout.splitlines()], result.stderr


@pytest.mark.parametrize(
    "order",
    [
        ["kind", "visits", "age", "amount"],
        ["visits", "age", "amount"],
        ["age", "kind", "amount", "visits"],
    ],
    ids=["reversed", "without targets", "mixed"],
)
def test_columns_are_found_by_their_names_in_any_order(clients, order):
    fitted, folder = clients
    expected, _ = predict(fitted, folder / "clients.csv")
    rows, note = predict(fitted, write_rearranged(folder, "other.csv", order))
    assert rows == expected
    assert note == ""
    assert {row["predicted"] for row in expected} == {"fraud", "review"}


def test_a_table_without_names_is_taken_in_the_order_of_training_with_a_note(clients):
    fitted, folder = clients
    expected, _ = predict(fitted, folder / "clients.csv")
    rows, note = predict(
        fitted, write_rearranged(folder, "plain.csv", ["amount", "age", "visits"], header=False)
    )
    assert rows == expected
    assert (
        "plain.csv has no column names; its columns are used as amount, age, visits, in this order"
        in note
    )


@pytest.mark.parametrize(
    ("order", "rename", "message"),
    [
        (
            ["amount", "age"],
            {},
            "there is no column `visits`. The run was trained on: amount, age, visits",
        ),
        (
            ["amount", "age", "visits"],
            {"age": "Age"},
            "there is no column `age` (did you mean `Age`?). The run was trained on",
        ),
        (["amount", "age", "visits", "age"], {}, "the column `age` appears twice"),
    ],
    ids=["missing", "renamed", "twice"],
)
def test_columns_that_do_not_agree_are_refused_by_name(clients, order, rename, message):
    fitted, folder = clients
    result = invoke(fitted.run.path, write_rearranged(folder, "wrong.csv", order, rename=rename))
    assert result.exit_code == 2
    assert message in result.stderr


def test_further_columns_are_ignored_with_a_note(clients):
    fitted, folder = clients
    expected, _ = predict(fitted, folder / "clients.csv")
    order, rename = ["amount", "kind", "age", "visits"], {"kind": "city"}
    file = write_rearranged(folder, "more.csv", order, rename=rename)
    rows, note = predict(fitted, file)
    assert rows == expected
    assert note == ("note: more.csv: the column city was not in the training data and is ignored\n")


def test_names_of_columns_and_classes_are_known_after_the_data_are_gone(clients, tmp_path):
    fitted, folder = clients
    expected, _ = predict(fitted, folder / "clients.csv")
    moved = write_rearranged(folder, "elsewhere.csv", ["visits", "amount", "age"])
    (folder / "clients.csv").rename(folder / "clients.bak")
    try:
        assert predict(fitted, moved)[0] == expected
    finally:
        (folder / "clients.bak").rename(folder / "clients.csv")


def test_names_that_are_numbers_are_a_header_where_training_had_them(tmp_path):
    rows = ["2020,2021,y", *(f"{row / 10},{1 - row / 10},{row % 2}" for row in range(10))]
    (tmp_path / "years.csv").write_text("\n".join(rows))
    fitted = neural.fit(
        TABLE.format(width=2),
        tmp_path / "years.csv",
        {"training": {"steps": 2}},
        runs=tmp_path / "runs",
    )
    (tmp_path / "new.csv").write_text("2021,2020\n1.0,0.0\n")
    expected, _ = predict(fitted, tmp_path / "years.csv")
    assert predict(fitted, tmp_path / "new.csv")[0] == expected[:1]


def test_all_rows_are_written_to_a_file(clients, tmp_path):
    fitted, folder = clients
    expected, _ = predict(fitted, folder / "clients.csv")
    for name in ("out.csv", "out.tsv", "out.jsonl", "out.parquet"):
        result = invoke(fitted.run.path, folder / "clients.csv", "-o", tmp_path / name)
        assert result.exit_code == 0, result.output
        assert result.stdout == ""
        assert f"{name}, 60 rows" in result.stderr
        table = read_table_file(tmp_path / name)
        assert table.names == ("predicted", "probability_fraud", "probability_review")
        assert table.read_words(0) == [row["predicted"] for row in expected]
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    assert list(map(json.loads, lines)) == expected


def test_a_table_may_come_from_standard_input_and_go_to_standard_output(clients):
    fitted, folder = clients
    expected, _ = predict(fitted, folder / "clients.csv")
    text = (folder / "clients.csv").read_text()
    names, *rows = (line.split(",") for line in text.splitlines())
    records = "\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows)
    for source in (text, text.replace(",", "\t"), records):
        result = invoke(fitted.run.path, "-", "-o", "-", text=source)
        assert result.exit_code == 0, result.output
        header, *lines = result.stdout.splitlines()
        assert header == "predicted,probability_fraud,probability_review"
        assert [line.split(",")[0] for line in lines] == [row["predicted"] for row in expected]


@pytest.mark.parametrize("name", ["out.xlsx", "gone/out.csv"])
def test_a_file_that_cannot_be_written_is_an_error(clients, name, tmp_path):
    fitted, folder = clients
    result = invoke(fitted.run.path, folder / "clients.csv", "-o", tmp_path / name)
    assert result.exit_code == 2
    assert "error: " in result.stderr


def test_predictions_for_documents_are_written_as_json_lines(labelled, tmp_path):
    result = invoke(labelled, "-", "-o", tmp_path / "out.jsonl", text=SONG)
    assert result.exit_code == 0, result.output
    assert len(json.loads((tmp_path / "out.jsonl").read_text())["labels"]) == 4
    result = invoke(labelled, "-", "-o", tmp_path / "out.csv", text=SONG)
    assert result.exit_code == 2
    assert "write them as .jsonl" in result.stderr
