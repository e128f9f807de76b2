"""`neural train`: printed text, written run folders, errors."""

import json
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.runs.run import Run

PROGRAM = """network Small {
  input: (5, 6)
  layers:
    Dense(8)
    TransformerEncoder(num_heads=2, d_model=8, dff=11)
    GlobalAveragePooling1D()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.01)
  train { steps: 6 batch_size: 4 data: "data.npz" }
}
"""
EXPERIMENT = """task: supervised
network: small.neural
data: data.npz
name: small
training:
  steps: 6
  batch_size: 4
tracking:
  track_every: 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a program, an experiment and data; the tests work in it."""
    random = np.random.default_rng(0)
    np.savez(
        tmp_path / "data.npz",
        x=random.normal(size=(40, 5, 6)).astype(np.float32),
        y=random.integers(0, 3, 40),
    )
    (tmp_path / "small.neural").write_text(PROGRAM)
    (tmp_path / "small.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def train(*arguments: str):
    return CliRunner().invoke(main, ["train", *arguments])


def list_runs(folder):
    return sorted((folder / "runs").glob("*")) if (folder / "runs").exists() else []


@pytest.mark.parametrize("file", ["small.neural", "small.yaml"])
def test_a_file_becomes_a_run(folder, file):
    result = train(file)
    assert result.exit_code == 0, result.output
    (path,) = list_runs(folder)
    run = Run.open(path)
    assert run.status.state == "finished"
    assert run.program == PROGRAM
    assert run.settings["training"]["steps"] == 6
    assert "finished after step 6; best: valid/loss" in result.output
    assert f"neural show runs/{path.name}" in result.output


def test_a_key_is_set_and_saved_with_the_run(folder):
    assert (
        train(
            "small.yaml", "--set", "training.learning_rate=3e-4", "--seed", "7", "--name", "mine"
        ).exit_code
        == 0
    )
    (path,) = list_runs(folder)
    settings = Run.open(path).settings
    assert path.name.endswith("_mine")
    assert (settings["training"]["learning_rate"], settings["training"]["seed"]) == (3e-4, 7)


def test_json_is_a_line_each(folder):
    result = train("small.neural", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines[-1]["state"] == "finished"
    assert lines[-2]["step"] == 6
    assert lines[-2]["scores"]["valid/loss"] == pytest.approx(lines[-1]["best"]["valid/loss"])
    assert lines[-2]["attention"]


def test_quiet_prints_only_the_folder(folder):
    result = train("small.neural", "--quiet")
    assert result.stdout.strip() == str(list_runs(folder)[0])


def test_a_dry_run_prints_the_plan_and_writes_nothing(folder):
    result = train("small.yaml", "--dry-run")
    assert result.exit_code == 0
    assert "parameters" in result.output
    assert "6, " in result.output
    assert "  attention    captured every 3 steps" in result.output
    assert re.search(r"  time         about .*; a step takes \d+ ms on this machine", result.output)
    assert not list_runs(folder)


def test_a_typed_path_is_relative_to_the_working_directory(folder, monkeypatch):
    (folder / "elsewhere").mkdir()
    (folder / "data.npz").rename(folder / "elsewhere" / "invoke.npz")
    monkeypatch.chdir(folder / "elsewhere")
    result = train("../small.yaml", "--set", "data=invoke.npz", "--dry-run")
    assert result.exit_code == 0, result.output


def test_a_dry_run_of_several_processes_is_printed_once_and_counts_them(folder, monkeypatch):
    words = ("small.neural", "--dry-run", "--json", "--set", "training.epochs=4")
    single = json.loads(train(*words).stdout)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    both = json.loads(train(*words).stdout)
    assert 2 * both["steps"] == single["steps"]
    assert both["examples"] == 2 * single["examples"]
    assert both["epochs"] == single["epochs"]
    monkeypatch.setenv("RANK", "1")
    assert train(*words).stdout == ""


def test_a_dry_run_can_be_json(folder):
    plan = json.loads(train("small.neural", "--dry-run", "--json").stdout)
    assert (plan["task"], plan["steps"], plan["batch_size"]) == ("supervised", 6, 4)
    assert plan["parameters"] > 0
    assert plan["total_seconds"] > plan["steps"] * plan["step_seconds"] > 0


def test_a_resumed_run_trains_more_steps(folder):
    train("small.yaml")
    result = train("--resume", "--set", "training.steps=9")
    assert result.exit_code == 0, result.output
    (path,) = list_runs(folder)
    assert Run.open(path).load_checkpoint().step == 9


@pytest.mark.parametrize(
    ("file", "text", "messages"),
    [
        (
            "small.yaml",
            EXPERIMENT.replace("steps: 6", "stps: 6"),
            ["E0801", "small.yaml:6:3", "did you mean `steps`?"],
        ),
        ("small.yaml", EXPERIMENT.replace("steps: 6", "steps: many"), ["small.yaml:6:10", "many"]),
        (
            "small.yaml",
            EXPERIMENT.replace("steps: 6", "steps: 0").replace("batch_size: 4", "batch_size: x"),
            ["small.yaml:6:", "small.yaml:7:"],
        ),
        ("small.yaml", EXPERIMENT.replace("training:", "training: ["), ["small.yaml:"]),
        (
            "small.yaml",
            EXPERIMENT.replace("supervised", "supervized"),
            ["did you mean `supervised`?"],
        ),
        ("small.yaml", EXPERIMENT.replace("data.npz", "date.npz"), ["date.npz"]),
        ("small.yaml", EXPERIMENT.replace("small.neural", "smal.neural"), ["smal.neural"]),
        ("small.neural", PROGRAM.replace("num_heads=2", "num_heads=3"), ["E0203"]),
        ("small.neural", PROGRAM.replace("AdamW", "AdamV"), ["E0405", "did you mean"]),
        ("small.neural", PROGRAM.replace('data: "data.npz"', ""), ["has no data"]),
        (
            "small.neural",
            PROGRAM.replace('  loss: "sparse_categorical_crossentropy"\n', ""),
            ["no loss"],
        ),
    ],
    ids=[
        "unknown key",
        "wrong type",
        "two at once",
        "no YAML",
        "no task",
        "no data",
        "no program",
        "wrong program",
        "no optimizer",
        "nothing to learn",
        "no loss",
    ],
)
def test_an_error_in_a_file_is_shown_with_its_position(folder, file, text, messages):
    (folder / file).write_text(text)
    result = train(file)
    assert result.exit_code == 2, result.output
    for message in messages:
        assert message in result.output
    assert "Traceback" not in result.output
    assert not list_runs(folder)


@pytest.mark.parametrize(
    ("arrays", "messages"),
    [
        (
            {"x": np.zeros((40, 5, 7), np.float32), "y": np.zeros(40, int)},
            ["data.npz", "(B, 5, 6)", "(40, 5, 7)"],
        ),
        ({"x": np.zeros((40, 5, 6), np.float32), "y": np.full(40, 3)}, ["data.npz", "3"]),
        ({"x": np.zeros((40, 5, 6), np.float32), "y": np.full(40, -1)}, ["data.npz", "-1"]),
        ({"x": np.zeros((40, 5, 6), np.float32), "y": np.zeros(39, int)}, ["40", "39"]),
        ({"x": np.zeros((0, 5, 6), np.float32), "y": np.zeros(0, int)}, ["data.npz"]),
        ({"x": np.full((40, 5, 6), np.nan, np.float32), "y": np.zeros(40, int)}, ["data.npz"]),
        ({"y": np.zeros(40, int)}, ["data.npz", "x"]),
    ],
    ids=["shape", "label too large", "label too small", "lengths", "empty", "NaN", "no x"],
)
def test_data_that_does_not_fit_is_refused_before_anything_starts(folder, arrays, messages):
    np.savez(folder / "data.npz", **arrays)
    result = train("small.neural")
    assert result.exit_code == 2, result.output
    for message in messages:
        assert message in result.output
    assert "Traceback" not in result.output
    assert not list_runs(folder)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("tracking.sinks=[tensorbord]", "did you mean `tensorboard`"),
        ("tracking.measures=[entropi]", "`entropy`"),
        ("training.stps=3", "did you mean"),
        ("training.steps=none", "steps"),
        ("steps", "="),
        ("training=3", "training"),
    ],
)
def test_an_override_is_checked_like_the_file(folder, override, message):
    result = train("small.yaml", "--set", override)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert not list_runs(folder)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a program"),
        (("nothing.neural",), "no such file"),
        (("--resume",), "no run"),
        (("--resume", "elsewhere"), "no run"),
        (("small.yaml", "--resume", "x"), "leave the file out"),
    ],
)
def test_a_request_that_cannot_be_trained_is_an_error(folder, arguments, message):
    result = train(*arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.fixture
def finished_run(folder):
    """A finished run."""
    assert train("small.yaml", "--quiet").exit_code == 0
    return list_runs(folder)[0]


def read_files(path):
    """Contents of all files, without those that SQLite creates for readers too."""
    files = [
        file
        for file in path.rglob("*")
        if file.is_file() and not file.name.endswith(("-shm", "-wal"))
    ]
    return {file.relative_to(path): file.read_bytes() for file in files}


def test_a_run_of_a_newer_version_is_refused_and_not_changed(folder, finished_run):
    with sqlite3.connect(finished_run / "rows.sqlite") as rows:
        (table,) = rows.execute("SELECT name FROM sqlite_master WHERE name = 'meta'").fetchone()
        rows.execute(f"UPDATE {table} SET value = '99' WHERE key = 'version'")
    rows.close()
    before = read_files(finished_run)
    result = train("--resume")
    assert result.exit_code == 2, result.output
    assert "version" in result.output
    assert read_files(finished_run) == before


def test_damaged_checkpoints_are_named_and_nothing_is_overwritten(folder, finished_run):
    for checkpoint in Run.open(finished_run).checkpoints():
        content = bytearray(checkpoint.path.read_bytes())
        content[-7] ^= 8
        checkpoint.path.write_bytes(content)
    before = read_files(finished_run)
    result = train("--resume", "--quiet")
    assert result.exit_code == 2, result.output
    assert "step-00000006.safetensors is damaged" in result.output
    after = read_files(finished_run)
    assert {name for name in before if after.get(name) != before[name]} <= {
        Path("status.json"),
        Path("rows.sqlite"),
    }


def test_a_path_where_no_folder_can_be_created_is_named(folder):
    (folder / "file").write_text("")
    result = train("small.yaml", "--runs", "file/runs")
    assert result.exit_code == 2, result.output
    assert "file/runs" in result.output
