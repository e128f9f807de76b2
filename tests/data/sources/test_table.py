"""CSV and TSV tables."""

import json

import pyarrow
import pyarrow.parquet
import pytest

from neural.core.errors import TaskError
from neural.data.sources.table import Table
from tests.tasks.networks import build_network

TWO_FEATURES = build_network("(2,)", 'Output(3, activation="softmax")')


def read_table(folder, text, name="t.csv"):
    (folder / name).write_bytes(text.encode())
    return Table.read(folder / name, TWO_FEATURES)


@pytest.mark.parametrize(
    "text",
    [
        "1,2,0\n3,4,1\n",
        "a,b,c\n1,2,0\n3,4,1\n",
        "1;2;0\r\n3;4;1\r\n",
        "\ufeffa,b,c\n1,2,0\n\n3,4,1",
        '"1",2,0\n3,"4",1\n',
    ],
    ids=["plain", "names", "semicolons", "mark and blank line", "quotes"],
)
def test_the_last_column_is_the_target(text, tmp_path):
    examples = read_table(tmp_path, text)
    assert examples.train["x"].tolist() == [[1, 2], [3, 4]]
    assert examples.train["y"].tolist() == [0, 1]
    assert examples.classes == ()


@pytest.mark.parametrize("name", ["label", "Target", " y "])
def test_a_column_with_a_target_name_is_the_target(name, tmp_path):
    examples = read_table(tmp_path, f"{name},a,b\n1,2,3\n")
    assert examples.train["x"].tolist() == [[2, 3]]
    assert examples.train["y"].tolist() == [1]


def test_words_become_classes(tmp_path):
    examples = read_table(tmp_path, "a\tb\tkind\n1\t2\tdog\n3\t4\tcat\n5\t6\tdog\n", "t.tsv")
    assert examples.classes == ("cat", "dog")
    assert examples.train["y"].tolist() == [1, 0, 1]


def test_a_row_takes_the_shape_of_the_input(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,3,4,5,6,0\n")
    network = build_network(
        "(None, 2)", 'GlobalAveragePooling1D() | Output(3, activation="softmax")'
    )
    assert Table.read(tmp_path / "t.csv", network).train["x"].tolist() == [[[1, 2], [3, 4], [5, 6]]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b,y\n1,2,0\n3,n/a,1\n",
            "t.csv: line 3, column `b`: `n/a` is not a number; `table.impute: median` fills it, "
            "`table.drop: [b]` leaves it out",
        ),
        (
            "1,2,0\n3,,1\n",
            "t.csv: line 2, column `2`: an empty cell is not a number; `table.impute: median` "
            "fills it, `table.drop: [2]` leaves it out",
        ),
        (
            "1,2,0\n3,nan,1\n",
            "t.csv: line 2, column `2`: `nan` is not a number; `table.impute: median` fills it, "
            "`table.drop: [2]` leaves it out",
        ),
        (
            "a,b,y\n1,2,0\n3,red,1\n",
            "t.csv: line 3, column `b`: `red` is not a number; `table.categorical: [b]` makes "
            "categories of the words, `table.drop: [b]` leaves it out",
        ),
        (
            "a,b,y\n1,2,0\n3,2024-01-31,1\n",
            "t.csv: line 3, column `b`: `2024-01-31` is not a number; it is a date: "
            "`table.drop: [b]` leaves the column out",
        ),
        (
            "a,b,y\n1,2,0\n3,4,cat\n",
            "t.csv: line 3, column `y`: `cat` is not a number; `table.categorical: [y]` makes "
            "classes of all its values",
        ),
        (
            "a,b,y\n1,2,cat\n3,4,\n",
            "t.csv: line 3, column `y`: the target is empty; remove the row, or name another "
            "column with `table.target`",
        ),
        (
            "a,b,y\n1,2,cat\n3,4,cat\n",
            "t.csv: the target `y` is `cat` in every row; a classifier needs two classes or more",
        ),
        (
            "a,b,y\n1,2,p\n1,2,q\n1,2,r\n3,4,s\n",
            "t.csv: the target `y` has 4 different labels (`p`, `q`, `r`, `s`), but Small predicts "
            "3 classes; write `Output(4, …)`",
        ),
        (
            "label,b,y\n1,2,0\n",
            "t.csv: the columns `label` and `y` could be the target; choose with "
            "`table.target: label`",
        ),
        (
            "a,b,a,y\n1,2,3,0\n",
            "t.csv: the name `a` stands above columns 1 and 3; rename one of them",
        ),
        ("1,2,0\n3,4\n", "t.csv: line 2 has 2 cells, the first line has 3"),
        ("a,b,y\n", "t.csv: there are no examples below the header"),
        ("", "t.csv: there are no examples; the file is empty"),
        ("1\n2\n", "t.csv has one column; it needs at least one number and the target"),
        (
            "a,b,c,y\n1,2,3,0\n",
            "t.csv has 3 features (a, b, c), but Small takes (2,); write `input: (3,)`, or choose "
            "columns with `table.features` and `table.drop`",
        ),
    ],
)
def test_a_bad_cell_is_named_by_line_and_column(text, message, tmp_path):
    with pytest.raises(TaskError) as caught:
        read_table(tmp_path, text)
    assert str(caught.value) == message


def test_words_are_no_targets_of_a_network_that_predicts_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,price\n1,2,low\n3,4,high\n")
    network = build_network("(2,)", "Output(1)", 'loss: "mse"')
    with pytest.raises(
        TaskError, match=r"`price` has words .* choose another column with `table.t"
    ):
        Table.read(tmp_path / "t.csv", network)


def test_json_lines_and_parquet_are_tables(tmp_path):
    rows = [{"a": 1, "b": 2.5, "y": "cat"}, {"b": True, "y": "dog", "a": 3}]
    (tmp_path / "t.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pyarrow.parquet.write_table(
        pyarrow.table({"a": [1, 3], "b": [2.5, 1.0], "y": ["cat", "dog"]}), tmp_path / "t.parquet"
    )
    for name in ("t.jsonl", "t.parquet"):
        examples = Table.read(tmp_path / name, TWO_FEATURES)
        assert examples.train["x"].tolist() == [[1, 2.5], [3, 1]]
        assert (examples.classes, examples.columns) == (("cat", "dog"), ("a", "b"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}\n{"a": 1', "t.jsonl: line 2 is not JSON"),
        ("[1]", r"t.jsonl: line 1 must be an object"),
        ('{"a": [1]}', "t.jsonl: line 1, column `a`: a cell must be a number, a text"),
        ("\n", "t.jsonl: there are no examples"),
    ],
)
def test_json_lines_that_are_no_table_are_refused(text, message, tmp_path):
    (tmp_path / "t.jsonl").write_text(text)
    with pytest.raises(TaskError, match=message):
        Table.read(tmp_path / "t.jsonl", TWO_FEATURES)


def test_a_broken_parquet_file_is_refused(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TaskError, match=r"t.parquet cannot be read"):
        Table.read(tmp_path / "t.parquet", TWO_FEATURES)


def test_bytes_that_are_not_text_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"1,2,\xff\n")
    with pytest.raises(TaskError, match=r"t.csv: line 1 is not UTF-8; .*`iconv -f latin1 -t utf-8"):
        Table.read(tmp_path / "t.csv", TWO_FEATURES)
