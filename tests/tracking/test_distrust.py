"""Rows and words of a run that somebody else has made."""

import json
import sqlite3

import numpy as np
import pytest

from neural.tracking.distrust import array_of, no_more
from neural.tracking.metadata_schema import ENTRIES, read_metadata
from neural.tracking.run import Run
from neural.tracking.status import read_status
from neural.tracking.trouble import RunError, RunWarning


@pytest.fixture
def changed(tmp_path):
    """A run with a few rows, one statement of SQL later."""

    def change(sql, *values):
        run = Run.create(tmp_path, "small", settings={}, program=None, environment={})
        run.log(1, {"loss": 0.5})
        run.log_arrays(1, {"entropy": np.ones((1, 2))})
        run.log_maps(1, {"a": b"map"})
        run.event(1, "switch", "now")
        run.describe("attention/layers", ["a"])
        run.finish("finished")
        with sqlite3.connect(run.path / "rows.sqlite") as db:
            db.execute(sql, values)
        db.close()
        return Run.open(run.path)

    return change


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("UPDATE events SET step = 'three'", Run.events),
        ("UPDATE events SET time = 'soon'", Run.events),
        ("UPDATE maps SET data = 'text'", lambda run: run.maps(1)),
        ("UPDATE maps SET step = 'x'", Run.map_steps),
        ("UPDATE scalars SET value = 'much'", Run.rows),
        ("UPDATE scalars SET value = 'much'", lambda run: run.scalars("loss")),
        ("UPDATE arrays SET shape = '[' ", lambda run: run.measure("entropy")),
        ("UPDATE arrays SET shape = '[2, -1]'", lambda run: run.measure("entropy")),
        ("UPDATE arrays SET shape = '[1000000000000, 0]', data = x''", lambda run: run.measure("entropy")),
        ("UPDATE meta SET value = '²' WHERE key = 'version'", Run.names),
    ],
)
def test_rows_of_other_kinds_are_refused_in_words(sql, read, changed):
    with pytest.raises(RunError, match=r"rows\.sqlite is damaged"):
        read(changed(sql))


def test_a_name_that_is_no_text_is_shown_as_such(changed):
    assert changed("UPDATE names SET name = CAST(x'6c6fff' AS TEXT) WHERE name = 'loss'").names() == ["lo�"]


def test_no_file_has_more_rows_than_bytes():
    with pytest.raises(ValueError, match="more rows than it has bytes"):
        no_more([()] * 7, 7)


def test_arrays_are_of_whole_sizes():
    assert array_of("[2, 1]", bytes(8)).shape == (2, 1)
    with pytest.raises(ValueError, match="an array of shape"):
        array_of("[true, 2]", bytes(8))


@pytest.mark.parametrize("value", ["{", '{"a": 1}', "[1]", "nothing"])
def test_one_bad_entry_is_named_and_the_others_are_read(value, changed):
    run = changed(f"INSERT OR REPLACE INTO described VALUES ('probe/labels', '{value}')")
    with pytest.warns(RunWarning, match=r"rows\.sqlite: `probe/labels` .*; it is left out"):
        assert run.described("probe/labels", "default") == "default"
    assert run.described("attention/layers") == ["a"]


BAD_VALUES = [
    ("steps", "many"), ("steps", -1), ("steps", 1e5), ("attention/heads", [None, True]), ("epoch", "x"),
    ("attention/measures", {"entropy": "nats"}), ("generation/texts", {"x": "text"}), ("vocabulary", [1]),
    ("probe/labels", {"a": "b"}), ("probe/labels", ["a"]),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value"), BAD_VALUES)
def test_what_no_reader_can_read_is_refused_when_it_is_written_and_left_out_when_it_is_read(tmp_path, key, value):
    run = Run.create(tmp_path, "small", settings={}, program=None, environment={})
    with pytest.raises(ValueError, match=f"^`{key}` must be .*, got "):
        run.describe(key, value)
    run.finish("finished")
    assert run_is_empty(run.path)
    assert read_metadata([(key, json.dumps(value))]) == ({}, {key: f"`{key}` must be {ENTRIES[key].expected}"})


def run_is_empty(path):
    with sqlite3.connect(path / "rows.sqlite") as db:
        count = db.execute("SELECT count(*) FROM described").fetchone()[0]
    db.close()
    return count == 0


def test_what_json_cannot_hold_is_refused_when_it_is_written(tmp_path):
    run = Run.create(tmp_path, "small", settings={}, program=None, environment={})
    with pytest.raises(ValueError, match=r"of/somebody. must be plain data that JSON can hold"):
        run.describe("of/somebody", {1, 2})
    run.describe("probe/labels", (("a", "b"), ("c",)))
    run.finish("finished")
    assert Run.open(run.path).described("probe/labels") == [["a", "b"], ["c"]]


def test_a_key_that_is_not_in_the_schema_may_hold_any_json():
    rows = [("of/somebody", "[1, {}]"), ("steps", "null"), ("vocabulary", '"bytes"')]
    assert read_metadata(rows) == ({"of/somebody": [1, {}], "steps": None, "vocabulary": "bytes"}, {})


@pytest.mark.parametrize(
    "text",
    ["[]", "7", "[" * 100_000, '{"state": 3}', '{"state": "running", "pid": "../x"}', '{"state": "a", "time": 1e999}',
     '{"state": "a", "step": 1.5}', '{"state": "a", "facts": []}', '{"state": "a", "started": 1' + "0" * 400 + "}"],
)  # fmt: skip
def test_a_status_of_other_kinds_says_nothing(text):
    assert read_status(text).state == "lost"
