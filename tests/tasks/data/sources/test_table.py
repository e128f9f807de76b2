"""Tables: CSV and TSV."""

import pytest

from neural.tasks.data.sources.table import Table
from neural.tasks.task import TaskError
from tests.tasks.networks import made

TWO = made("(2,)", 'Output(3, activation="softmax")')


def table(folder, text, name="t.csv"):
    (folder / name).write_bytes(text.encode())
    return Table.read(folder / name, TWO)


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
def test_the_last_column_is_the_answer(text, tmp_path):
    found = table(tmp_path, text)
    assert found.train["x"].tolist() == [[1, 2], [3, 4]]
    assert found.train["y"].tolist() == [0, 1]
    assert found.classes == ()


@pytest.mark.parametrize("name", ["label", "Target", " y "])
def test_a_column_that_is_named_so_is_the_answer(name, tmp_path):
    found = table(tmp_path, f"{name},a,b\n1,2,3\n")
    assert found.train["x"].tolist() == [[2, 3]]
    assert found.train["y"].tolist() == [1]


def test_words_become_classes(tmp_path):
    found = table(tmp_path, "a\tb\tkind\n1\t2\tdog\n3\t4\tcat\n5\t6\tdog\n", "t.tsv")
    assert found.classes == ("cat", "dog")
    assert found.train["y"].tolist() == [1, 0, 1]


def test_a_row_takes_the_shape_of_the_input(tmp_path):
    (tmp_path / "t.csv").write_text("1,2,3,4,5,6,0\n")
    network = made("(None, 2)", 'GlobalAveragePooling1D() | Output(3, activation="softmax")')
    assert Table.read(tmp_path / "t.csv", network).train["x"].tolist() == [[[1, 2], [3, 4], [5, 6]]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,y\n1,2,0\n3,n/a,1\n", "t.csv: line 3, column `b`: `n/a` is not a number"),
        ("1,2,0\n3,,1\n", "t.csv: line 2, column `2`: an empty cell is not a number"),
        ("1,2,0\n3,nan,1\n", "t.csv: line 2, column `2`: `nan` is not a number"),
        ("a,b,y\n1,2,0\n3,4,cat\n", "t.csv: line 3, column `y`: `cat` is not a number"),
        ("a,b,y\n1,2,cat\n3,4,\n", "t.csv: line 3, column `y`: there is no answer"),
        ("1,2,0\n3,4\n", "t.csv: line 2 has 2 cells, the first line has 3"),
        ("a,b,y\n", "t.csv: there are no examples below the names of the columns"),
        ("", "t.csv: there are no examples; the file is empty"),
        ("1\n2\n", "t.csv has one column; it needs at least one number and the answer"),
        ("1,2,3,0\n", "t.csv: an example has 3 numbers, but Small takes (2,): 2"),
    ],
)
def test_a_bad_cell_is_named_by_line_and_column(text, message, tmp_path):
    with pytest.raises(TaskError) as caught:
        table(tmp_path, text)
    assert str(caught.value) == message


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"1,2,\xff\n")
    with pytest.raises(TaskError, match=r"t.csv cannot be read"):
        Table.read(tmp_path / "t.csv", TWO)
