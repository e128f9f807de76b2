"""Predictions as CSV, TSV, JSON lines and Parquet."""

import csv
import json

import numpy as np
import pyarrow.parquet
import pytest

from neural.core import optional_packages
from neural.core.errors import TaskError
from neural.core.page_section import PageSection
from neural.tasks.supervised.predict import PredictedRows
from neural.tasks.task import Predictions
from neural.workflows.prediction_files import save_predictions

OUTPUTS = np.array([[0.75, 0.25], [0.125, 0.875]], dtype=np.float32)


def create_rows(outputs=OUTPUTS, activation="softmax", classes=("no", "yes"), ids=("7", "8")):
    id_column = ("customer", list(ids)) if ids else None
    return PredictedRows(
        output_activation=activation, outputs=outputs, classes=classes, id_column=id_column
    )


def save(path, *items):
    return save_predictions(Predictions(items), path)


@pytest.mark.parametrize(("name", "delimiter"), [("p.csv", ","), ("p.tsv", "\t")])
def test_a_table_has_identifier_class_and_probabilities(name, delimiter, tmp_path):
    assert save(tmp_path / name, create_rows()) == 2
    with (tmp_path / name).open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter=delimiter))
    assert rows == [
        {"customer": "7", "predicted": "no", "probability_no": "0.75", "probability_yes": "0.25"},
        {
            "customer": "8",
            "predicted": "yes",
            "probability_no": "0.125",
            "probability_yes": "0.875",
        },
    ]


def test_the_printed_table_starts_with_the_identifier_or_the_number_of_the_row():
    section = create_rows().to_section(80)
    assert section.table_head == ("customer", "most likely", "")
    assert [row[0] for row in section.table_rows] == ["7", "8"]
    section = create_rows(ids=None).to_section(80)
    assert section.table_head[0] == ""
    assert [row[0] for row in section.table_rows] == ["0", "1"]


def test_records_of_values_have_the_key_predicted():
    rows = create_rows(np.array([[1.5], [2.0]]), "linear", (), None)
    assert list(rows.to_records()) == [{"predicted": 1.5}, {"predicted": 2.0}]


def test_records_of_positions_have_lists():
    rows = create_rows(OUTPUTS[None], ids=("7",))
    assert list(rows.to_records()) == [
        {
            "customer": "7",
            "predicted": ["no", "yes"],
            "probabilities": [[0.75, 0.25], [0.125, 0.875]],
        }
    ]


def test_json_lines_and_parquet_have_the_same_columns(tmp_path):
    for name in ("p.jsonl", "p.parquet"):
        assert save(tmp_path / name, create_rows()) == 2
    records = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert records == pyarrow.parquet.read_table(tmp_path / "p.parquet").to_pylist()
    assert records[1] == {
        "customer": "8",
        "predicted": "yes",
        "probability_no": 0.125,
        "probability_yes": 0.875,
    }


@pytest.mark.parametrize(
    ("rows", "columns"),
    [
        (
            create_rows(OUTPUTS[:, :1], "sigmoid"),
            {"predicted": ["yes", "no"], "probability_no": [0.25, 0.875]},
        ),
        (
            create_rows(OUTPUTS[:, :1], "sigmoid", ()),
            {"predicted": [1, 0], "probability_1": [0.75, 0.125]},
        ),
        (
            create_rows(OUTPUTS, "sigmoid", ()),
            {"predicted_1": [1, 0], "predicted_2": [0, 1], "probability_2": [0.25, 0.875]},
        ),
        (create_rows(OUTPUTS[:, :1], "linear", ()), {"predicted": [0.75, 0.125]}),
        (create_rows(OUTPUTS, "linear", ()), {"predicted_2": [0.25, 0.875]}),
        (create_rows(np.stack([OUTPUTS, OUTPUTS])), {"predicted": ["no yes", "no yes"]}),
    ],
    ids=["named sigmoid", "sigmoid", "several sigmoids", "value", "values", "positions"],
)
def test_every_kind_of_output_is_a_table(rows, columns):
    table = rows.to_columns()
    assert {name: table[name] for name in columns} == columns
    assert len({len(values) for values in table.values()}) == 1


class DocumentPrediction:
    """A prediction that is not a table."""

    def to_records(self):
        yield {"labels": ["a", "b"]}

    def to_section(self, width):
        return PageSection(title="")


def test_documents_are_written_as_json_lines_only(tmp_path):
    assert save(tmp_path / "p.jsonl", DocumentPrediction(), DocumentPrediction()) == 2
    assert json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0]) == {"labels": ["a", "b"]}
    with pytest.raises(TaskError, match=r"not a table: write them as \.jsonl"):
        save(tmp_path / "p.csv", DocumentPrediction())
    assert not (tmp_path / "p.csv").exists()


def test_other_suffixes_and_folders_that_do_not_exist_are_refused(tmp_path):
    with pytest.raises(TaskError, match=r"p.xlsx: predictions are written as .csv, .tsv, .jsonl"):
        save(tmp_path / "p.xlsx", create_rows())
    with pytest.raises(TaskError, match=r"p.csv cannot be written: "):
        save(tmp_path / "gone" / "p.csv", create_rows())


def test_parquet_without_its_package_says_what_to_install(tmp_path, monkeypatch):
    def import_module(name):
        raise ModuleNotFoundError(name=name.partition(".")[0])

    monkeypatch.setattr(optional_packages, "import_module", import_module)
    with pytest.raises(TaskError, match="run `pip install pyarrow`"):
        save(tmp_path / "p.parquet", create_rows())
