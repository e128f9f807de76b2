"""Cells of tables: headers, delimiters, missing cells, numbers and words."""

import numpy as np
import pandas
import pytest

from neural.core.errors import TaskError
from neural.data.table_cells import create_table, is_date, parse_table_text, read_table_file


def read_numbers(table, column, **options):
    return table.read_numbers(column, lambda name, cell: "", **options)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a,b\n1,2", ("a", "b")),
        ("a\tb,c\td\n1\t2\t3", ("a", "b,c", "d")),
        ("a;b\n1;2,5", ("a", "b")),
        ('{"a": 1}\n{"b": 2}', ("a", "b")),
        ("1,2\n3,4", ("1", "2")),
        ("1,,2\n3,4,5", ("1", "2", "3")),
    ],
    ids=["csv", "tsv", "semicolons", "json lines", "numbers", "a missing cell in the first row"],
)
def test_the_first_line_shows_the_format_and_the_header(text, names):
    table = parse_table_text(text, "standard input")
    assert table.names == names
    assert table.has_header == (not names[0].isdecimal())


def test_known_names_are_a_header_even_if_they_are_numbers():
    text = "2020,2021\n1,2\n"
    assert not parse_table_text(text, "t").has_header
    assert parse_table_text(text, "t", ("2021", "2020")).has_header


@pytest.mark.parametrize("word", ["", " ", "NA", "n/a", "NaN", "null", "None", "?", "<NA>", "#N/A"])
def test_the_usual_words_for_a_missing_cell(word):
    table = parse_table_text(f"a,b\n1,x\n{word},y\n", "t")
    assert np.isnan(read_numbers(table, 0, allow_missing=True)).tolist() == [False, True]
    assert table.read_words(0) == ["1", ""]
    with pytest.raises(TaskError, match="line 3, column `a`"):
        read_numbers(table, 0)


@pytest.mark.parametrize("word", ["inf", "-inf", "1e999", "1,5e3", "x"])
def test_other_words_are_not_missing(word):
    table = parse_table_text(f"a;b\n1;x\n{word};y\n", "t", suffix=".csv")
    with pytest.raises(TaskError, match="line 3, column `a`"):
        read_numbers(table, 0, allow_missing=True)


def test_a_number_without_end_in_json_is_refused():
    table = parse_table_text('{"a": 1}\n{"a": ' + "9" * 400 + "}", "t")
    with pytest.raises(TaskError, match="line 2, column `a`: `inf` is not a number"):
        read_numbers(table, 0)


def test_a_frame_keeps_its_types():
    frame = pandas.DataFrame(
        {
            "whole": pandas.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "word": pandas.Categorical(["x", None, "y"]),
            "mixed": ["x", 2.0, True],
        }
    )
    table = create_table(frame)
    assert read_numbers(table, 0, allow_missing=True)[[0, 2]].tolist() == [1, 3]
    assert read_numbers(table, 1).tolist() == [1, 0, 1]
    assert table.read_words(2) == ["x", "", "y"]
    assert table.read_words(3) == ["x", "2", "1"]
    assert table.read_words(0) == ["1", "", "3"]
    with pytest.raises(TaskError, match="the data: row 1, column `whole`: `nan` is not a number"):
        read_numbers(table, 0)
    with pytest.raises(TaskError, match="two columns have the same name"):
        create_table(pandas.DataFrame(np.ones((2, 2)), columns=["a", "a"]))


def test_decimal_commas_are_read_if_semicolons_separate_the_cells():
    table = parse_table_text("a;b;c\n1,5;7;x\n-2;8;y\n;9;z\n", "t.csv", suffix=".csv")
    assert read_numbers(table, 0, allow_missing=True)[:2].tolist() == [1.5, -2]
    assert table.notes == ("t.csv: numbers with a decimal comma are read in `a`",)


def test_decimal_commas_are_no_header_and_no_separators():
    table = parse_table_text("1,5;2,5;x\n3,5;4;y\n", "t.csv", suffix=".csv")
    assert not table.has_header
    assert read_numbers(table, 1).tolist() == [2.5, 4]


@pytest.mark.parametrize("text", ["a;b\n1,5;x\n2.5;y\n", 'a,b\n"1,5",x\n2,y\n'])
def test_other_decimal_commas_are_named_in_the_error(text):
    table = parse_table_text(text, "t.csv", suffix=".csv")
    assert not table.notes
    with pytest.raises(TaskError, match=r"line 2.*`1,5` is not a number, it has a decimal comma"):
        read_numbers(table, 0)


@pytest.mark.parametrize(
    ("data", "line", "encoding"),
    [
        ("city\nRome\nMálaga\n".encode("latin1"), 3, "latin1"),
        ("city\nMálaga\n".encode("utf-16"), 1, "utf-16"),
    ],
    ids=["latin1", "utf-16"],
)
def test_a_file_that_is_not_utf_8_is_refused_with_the_line_and_a_remedy(
    data, line, encoding, tmp_path
):
    (tmp_path / "t.csv").write_bytes(data)
    remedy = f"iconv -f {encoding} -t utf-8 t.csv > t-utf8.csv"
    with pytest.raises(TaskError, match=rf"t.csv: line {line} is not UTF-8; .*`{remedy}`"):
        read_table_file(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31", True),
        ("2024-01-31T08:30:00Z", True),
        ("31.1.24", True),
        ("1/31/2024 8:30", True),
        ("20240131", False),
        ("1-2/2024", False),
        ("31.1", False),
        ("tomorrow", False),
    ],
)
def test_dates_are_recognised_by_their_digits(text, expected):
    assert is_date(text) is expected


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("1_000", "it has an underscore"),
        ('"1,234"', "it has a decimal comma or a comma between thousands"),
        ('"1,234,567"', "it has a decimal comma or a comma between thousands"),
        ('"1,5"', "it has a decimal comma"),
    ],
)
def test_numbers_written_in_other_ways_are_refused_with_the_reason(cell, reason):
    table = parse_table_text(f"a,b\n{cell},x\n2,y\n", "t.csv", suffix=".csv")
    with pytest.raises(TaskError, match=f"`{cell.strip(chr(34))}` is not a number, {reason}$"):
        read_numbers(table, 0)
