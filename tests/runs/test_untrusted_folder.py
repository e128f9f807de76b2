"""Rows, metadata and status of a run folder from somebody else."""

import json
import sqlite3

import numpy as np
import pytest

from neural.runs.errors import RunError, RunWarning
from neural.runs.metadata_schema import collect_fields, parse_rows
from neural.runs.run import Run
from neural.runs.status import parse_status
from neural.runs.store import check_row_count, decode_array


@pytest.fixture
def altered_run(tmp_path):
    """A run with a few rows, changed by one SQL statement."""

    def alter(sql, *values):
        run = Run.create(tmp_path, "small", settings={}, program=None, environment={})
        run.log(1, {"loss": 0.5})
        run.log_arrays(1, {"entropy": np.ones((1, 2))})
        run.log_maps(1, {"a": b"map"})
        run.log_event(1, "switch", "now")
        run.set_metadata("attention/layers", ["a"])
        run.finish("finished")
        with sqlite3.connect(run.path / "rows.sqlite") as db:
            db.execute(sql, values)
        db.close()
        return Run.open(run.path)

    return alter


@pytest.mark.parametrize(
    ("sql", "read"),
    [
        ("UPDATE events SET step = 'three'", Run.events),
        ("UPDATE events SET time = 'soon'", Run.events),
        ("UPDATE maps SET data = 'text'", lambda run: run.maps(1)),
        ("UPDATE maps SET step = 'x'", Run.map_steps),
        ("UPDATE scalars SET value = 'much'", Run.scalar_rows),
        ("UPDATE scalars SET value = 'much'", lambda run: run.scalars("loss")),
        ("UPDATE arrays SET shape = '[' ", lambda run: run.measure("entropy")),
        ("UPDATE arrays SET shape = '[2, -1]'", lambda run: run.measure("entropy")),
        (
            "UPDATE arrays SET shape = '[1000000000000, 0]', data = x''",
            lambda run: run.measure("entropy"),
        ),
        ("UPDATE meta SET value = '²' WHERE key = 'version'", Run.scalar_names),
    ],
)
def test_rows_of_wrong_types_are_refused(sql, read, altered_run):
    with pytest.raises(RunError, match=r"rows\.sqlite is damaged"):
        read(altered_run(sql))


def test_a_name_that_is_not_utf8_gets_replacement_characters(altered_run):
    sql = "UPDATE names SET name = CAST(x'6c6fff' AS TEXT) WHERE name = 'loss'"
    assert altered_run(sql).scalar_names() == ["lo�"]


def test_more_rows_than_bytes_are_refused():
    with pytest.raises(ValueError, match="more rows than it has bytes"):
        check_row_count([()] * 7, 7)


def test_array_sizes_are_integers():
    assert decode_array("[2, 1]", bytes(8)).shape == (2, 1)
    with pytest.raises(ValueError, match="an array of shape"):
        decode_array("[true, 2]", bytes(8))


@pytest.mark.parametrize("value", ["{", '{"a": 1}', "[1]", "nothing"])
def test_one_bad_metadata_entry_is_named_and_the_others_are_read(value, altered_run):
    run = altered_run(f"INSERT OR REPLACE INTO metadata VALUES ('probe/labels', '{value}')")
    with pytest.warns(RunWarning, match=r"rows\.sqlite: `probe/labels` .*; it is left out"):
        assert run.metadata("probe/labels", "default") == "default"
    assert run.metadata("attention/layers") == ["a"]


BAD_VALUES = [
    ("supervised", "steps", "many"),
    ("supervised", "steps", -1),
    ("supervised", "steps", 1e5),
    ("supervised", "attention/heads", [None, True]),
    ("supervised", "batches_per_epoch", "x"),
    ("supervised", "attention/measures", {"entropy": "nats"}),
    ("supervised", "probe/labels", {"a": "b"}),
    ("supervised", "probe/labels", ["a"]),
    ("supervised", "data/classes", "cat"),
    ("supervised", "generation/samples", {"x": "text"}),
    ("supervised", "generation/real_text", {"bits": "many"}),
    ("language_model", "vocabulary", [1]),
    ("segmentation", "data/document_hashes", {"train": [1]}),
    ("focus", "focus/classes", [1]),
    ("captions", "focus/classes", [1]),
    ("captions", "captions/word_regions", [-1]),
]


@pytest.mark.parametrize(("task", "key", "value"), BAD_VALUES)
def test_metadata_of_a_wrong_type_is_refused_when_written_and_left_out_when_read(
    tmp_path, task, key, value
):
    run = Run.create(tmp_path, "small", settings={"task": task}, program=None, environment={})
    with pytest.raises(ValueError, match=f"^`{key}` must be .*, got "):
        run.set_metadata(key, value)
    run.finish("finished")
    assert has_no_metadata(run.path)
    fields = collect_fields(task)
    assert parse_rows([(key, json.dumps(value))], fields) == (
        {},
        {key: f"`{key}` must be {fields[key].expected}"},
    )


def has_no_metadata(path):
    with sqlite3.connect(path / "rows.sqlite") as db:
        count = db.execute("SELECT count(*) FROM metadata").fetchone()[0]
    db.close()
    return count == 0


@pytest.mark.parametrize("task", ["no_such_task", None, 7, ["supervised"]])
def test_a_run_of_an_unknown_task_has_the_general_metadata(tmp_path, task):
    run = Run.create(tmp_path, "small", settings={"task": task}, program=None, environment={})
    run.set_metadata("vocabulary", [1])
    with pytest.raises(ValueError, match="`steps` must be"):
        run.set_metadata("steps", "many")
    run.finish("finished")
    assert Run.open(run.path).metadata("vocabulary") == [1]


def test_metadata_is_read_beside_damaged_settings(altered_run):
    run = altered_run("UPDATE metadata SET value = '[\"b\"]'")
    (run.path / "settings.json").write_text("{")
    assert Run.open(run.path).metadata("attention/layers") == ["b"]


def test_metadata_that_json_cannot_hold_is_refused(tmp_path):
    run = Run.create(tmp_path, "small", settings={}, program=None, environment={})
    with pytest.raises(ValueError, match=r"of/others. must be plain data that JSON can hold"):
        run.set_metadata("of/others", {1, 2})
    run.set_metadata("probe/labels", (("a", "b"), ("c",)))
    run.finish("finished")
    assert Run.open(run.path).metadata("probe/labels") == [["a", "b"], ["c"]]


def test_an_undeclared_key_may_hold_any_json():
    rows = [("of/others", "[1, {}]"), ("steps", "null"), ("vocabulary", '"bytes"')]
    assert parse_rows(rows, collect_fields("language_model")) == (
        {"of/others": [1, {}], "steps": None, "vocabulary": "bytes"},
        {},
    )


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "7",
        "[" * 100_000,
        '{"state": 3}',
        '{"state": "running", "pid": "../x"}',
        '{"state": "a", "time": 1e999}',
        '{"state": "a", "step": 1.5}',
        '{"state": "a", "facts": []}',
        '{"state": "a", "started": 1' + "0" * 400 + "}",
    ],
)
def test_a_status_of_wrong_types_is_lost(text):
    assert parse_status(text).state == "lost"
