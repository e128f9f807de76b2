"""Columns → numbers: fitted on training rows only, equal to scikit-learn, saved and restored."""

import json

import numpy as np
import pandas
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from neural.core.errors import TaskError
from neural.data.table_cells import create_table, parse_table_text
from neural.data.table_columns import TableSettings
from neural.data.table_preprocessing import PREPROCESSOR, TablePreprocessor, fit_preprocessor

TEXT = """age,city,income
30,Rome,1.5
n/a,Oslo,2.5
50,Rome,
70,Paris,9.5
20,Oslo,9.5
1000,Berlin,-7
"""
TABLE = parse_table_text(TEXT, "t.csv")
TRAIN = np.arange(5)  # the last row is held out
EVERYTHING = TableSettings(categorical=("city",), impute="median", standardize=True)


def fit(settings, table=TABLE, rows=TRAIN):
    return fit_preprocessor(table, range(len(table.names)), settings, rows)


@pytest.mark.parametrize("method", ["mean", "median", "most_frequent"])
def test_numbers_are_those_of_scikit_learn(method):
    settings = TableSettings(categorical=("city",), impute=method, standardize=True)
    preprocessor, _ = fit(settings)
    transformed, _ = preprocessor.transform(TABLE, [0, 1, 2])
    numbers = make_pipeline(SimpleImputer(strategy=method), StandardScaler())
    words = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    expected = ColumnTransformer([("a", numbers, [0]), ("b", words, [1]), ("c", numbers, [2])])
    cells = np.empty((6, 3), dtype=object)
    cells[:, 0] = [30, np.nan, 50, 70, 20, 1000]
    cells[:, 1] = ["Rome", "Oslo", "Rome", "Paris", "Oslo", "Berlin"]
    cells[:, 2] = [1.5, 2.5, np.nan, 9.5, 9.5, -7]
    expected.fit(cells[:5])
    assert transformed == pytest.approx(np.asarray(expected.transform(cells), dtype=float))


def test_only_training_rows_are_fitted():
    preprocessor, _ = fit(EVERYTHING)
    changed = parse_table_text(TEXT.replace("1000,Berlin,-7", "-5,Rome,88"), "t.csv")
    assert fit(EVERYTHING, changed)[0] == preprocessor
    assert preprocessor.columns[1].categories == ("Oslo", "Paris", "Rome")


def test_an_unknown_category_becomes_zeros_with_a_note():
    preprocessor, notes = fit(EVERYTHING)
    transformed, unknown_notes = preprocessor.transform(TABLE, [0, 1, 2])
    assert preprocessor.output_names == ["age", "city=Oslo", "city=Paris", "city=Rome", "income"]
    assert transformed[-1, 1:4].tolist() == [0, 0, 0]
    assert notes == []
    assert unknown_notes == [
        "t.csv, column `city`: `Berlin` in 1 row was not in the training rows; it becomes all zeros"
    ]


def test_a_category_is_found_by_its_value_unless_two_are_equal():
    table = parse_table_text("a,b\n1.0,01\nx,1\ntrue,2\n", "t.csv")
    settings = TableSettings(categorical=("a", "b"))
    preprocessor, _ = fit(settings, table, np.arange(3))
    assert preprocessor.columns[0].categories == ("1.0", "true", "x")
    new = parse_table_text("a,b\n1.00,1\nx,1.0\nTRUE,2.0\n", "t.csv")
    transformed, notes = preprocessor.transform(new, [0, 1])
    assert transformed[1].tolist() == [0, 0, 1, 0, 0, 0]  # 1.0 may be `01` or `1`
    assert transformed[2, 3:].tolist() == [0, 0, 1]
    assert transformed[0, 3:].tolist() == [0, 1, 0]
    assert len(notes) == 2  # 1.00 and TRUE may be `1.0` or `true`


def test_missing_categories_are_counted_in_a_note():
    table = parse_table_text("a,b\nu,1\n?,2\nu,3\n,4\nv,5\n", "t.csv")
    settings = TableSettings(categorical=("a",), impute="median")
    preprocessor, _ = fit(settings, table, np.arange(5))
    assert preprocessor.transform(table, [0, 1])[1] == [
        "t.csv, column `a`: missing in 2 rows; it becomes `u`, the most frequent category of the "
        "training rows"
    ]


def test_a_saved_preprocessor_gives_the_same_numbers():
    preprocessor, _ = fit(EVERYTHING)
    saved = json.loads(json.dumps(preprocessor.to_dict()))
    assert PREPROCESSOR.accepts(saved)
    restored = TablePreprocessor.from_dict(saved)
    assert np.array_equal(
        restored.transform(TABLE, [0, 1, 2])[0], preprocessor.transform(TABLE, [0, 1, 2])[0]
    )


@pytest.mark.parametrize(
    "change",
    [
        {"std": 0},
        {"std": "1"},
        {"fill": []},
        {"fill": "word"},
        {"categories": [1]},
        {"categories": ["a"], "fill": 3},
        {"name": None},
    ],
)
def test_a_damaged_preprocessor_is_not_accepted(change):
    column = {"name": "a", "fill": None, "mean": 0.0, "std": 1.0, "categories": None}
    assert PREPROCESSOR.accepts({"columns": [column]})
    assert not PREPROCESSOR.accepts({"columns": [column | change]})
    assert not PREPROCESSOR.accepts({"columns": [{"name": "a"}]})
    assert not PREPROCESSOR.accepts([column])


def test_a_constant_column_is_not_divided_by_zero_and_is_noted():
    table = parse_table_text("a,b\n3,1\n3,2\n3,4\n", "t.csv")
    preprocessor, notes = fit(TableSettings(standardize=True), table, np.arange(3))
    assert preprocessor.transform(table, [0, 1])[0][:, 0].tolist() == [0, 0, 0]
    assert notes == [
        "t.csv: the column `a` has one value in all training rows; `table.drop: [a]` leaves it out"
    ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"impute": "mean"}, "line 2, column `city`: `Rome` is not a number; `table.categorical"),
        ({"categorical": ("city",)}, "line 3, column `age`: `n/a` is not a number; `table.impute"),
        ({"categorical": ("age", "city", "income")}, "line 3, column `age`: the cell is empty; "),
    ],
)
def test_a_wrong_cell_is_named_with_the_key_that_fixes_it(settings, message):
    with pytest.raises(TaskError, match=message):
        fit(TableSettings(**settings))[0].transform(TABLE, [0, 1, 2])


@pytest.mark.parametrize("settings", [{"impute": "mean"}, {"categorical": ("a",)}])
def test_a_column_without_any_value_is_refused(settings):
    table = parse_table_text("a,b\n,1\n,2\n5,4\n", "t.csv")
    with pytest.raises(TaskError, match=r"`a` has no value in any training row; `table.drop: \[a"):
        fit(TableSettings(**settings), table, np.arange(2))


def test_arrays_and_frames_are_tables_too():
    numbers = create_table(np.array([[1.0, np.nan], [3.0, 4.0]]))
    assert numbers.names == ("1", "2")
    fitted, _ = fit(TableSettings(impute="mean"), numbers, np.arange(2))
    assert fitted.transform(numbers, [0, 1])[0].tolist() == [[1, 4], [3, 4]]
    frame = pandas.DataFrame({"a": [1, None], "b": ["x", None], "c": [True, False]})
    table = create_table(frame)
    settings = TableSettings(impute="most_frequent", categorical=("b",))
    fitted, _ = fit(settings, table, np.arange(2))
    assert fitted.output_names == ["a", "b=x", "c"]
    assert fitted.transform(table, [0, 1, 2])[0].tolist() == [[1, 1, 1], [1, 1, 0]]
