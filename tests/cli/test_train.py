"""`neural train` as a user meets it: what it prints, what it leaves, what it refuses."""

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.tracking.run import Run

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
    np.savez(tmp_path / "data.npz", x=random.normal(size=(40, 5, 6)).astype(np.float32), y=random.integers(0, 3, 40))
    (tmp_path / "small.neural").write_text(PROGRAM)
    (tmp_path / "small.yaml").write_text(EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def neural(*arguments: str):
    return CliRunner().invoke(main, ["train", *arguments])


def runs(folder):
    return sorted((folder / "runs").glob("*")) if (folder / "runs").exists() else []


@pytest.mark.parametrize("file", ["small.neural", "small.yaml"])
def test_a_file_becomes_a_run(folder, file):
    done = neural(file)
    assert done.exit_code == 0, done.output
    (path,) = runs(folder)
    run = Run.open(path)
    assert run.status.state == "finished"
    assert run.program == PROGRAM
    assert run.settings["training"]["steps"] == 6
    assert "finished after step 6; best: valid/loss" in done.output
    assert f"neural show runs/{path.name}" in done.output


def test_a_key_is_set_and_saved_with_the_run(folder):
    assert neural("small.yaml", "--set", "training.learning_rate=3e-4", "--seed", "7", "--name", "mine").exit_code == 0
    (path,) = runs(folder)
    settings = Run.open(path).settings
    assert path.name.endswith("_mine")
    assert (settings["training"]["learning_rate"], settings["training"]["seed"]) == (3e-4, 7)


def test_json_is_a_line_each(folder):
    done = neural("small.neural", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["state"] == "finished"
    assert lines[-2]["step"] == 6
    assert lines[-2]["scores"]["valid/loss"] == pytest.approx(lines[-1]["best"]["valid/loss"])
    assert lines[-2]["attention"]


def test_quiet_says_the_folder_alone(folder):
    done = neural("small.neural", "--quiet")
    assert done.stdout.strip() == str(runs(folder)[0])


def test_a_dry_run_says_what_would_happen_and_writes_nothing(folder):
    done = neural("small.yaml", "--dry-run")
    assert done.exit_code == 0
    assert "parameters" in done.output
    assert "6, " in done.output
    assert not runs(folder)


def test_a_path_that_is_typed_is_seen_from_where_it_is_typed(folder, monkeypatch):
    (folder / "here").mkdir()
    (folder / "data.npz").rename(folder / "here" / "typed.npz")
    monkeypatch.chdir(folder / "here")
    done = neural("../small.yaml", "--set", "data=typed.npz", "--dry-run")
    assert done.exit_code == 0, done.output


def test_a_dry_run_of_several_processes_is_told_once_and_counts_them(folder, monkeypatch):
    words = ("small.neural", "--dry-run", "--json", "--set", "training.epochs=4")
    alone = json.loads(neural(*words).stdout)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "0")
    together = json.loads(neural(*words).stdout)
    assert 2 * together["steps"] == alone["steps"]
    assert together["examples"] == 2 * alone["examples"]
    assert together["passes"] == alone["passes"]
    monkeypatch.setenv("RANK", "1")
    assert neural(*words).stdout == ""


def test_a_dry_run_can_be_read_by_machines(folder):
    said = json.loads(neural("small.neural", "--dry-run", "--json").stdout)
    assert (said["task"], said["steps"], said["batch_size"]) == ("supervised", 6, 4)
    assert said["parameters"] > 0


def test_a_resumed_run_goes_on_to_more_steps(folder):
    neural("small.yaml")
    done = neural("--resume", "--set", "training.steps=9")
    assert done.exit_code == 0, done.output
    (path,) = runs(folder)
    assert Run.open(path).restore().step == 9


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("small.yaml", EXPERIMENT.replace("steps: 6", "stps: 6"), ["E0801", "small.yaml:6:3", "did you mean `steps`?"]),
        ("small.yaml", EXPERIMENT.replace("steps: 6", "steps: many"), ["small.yaml:6:10", "many"]),
        ("small.yaml", EXPERIMENT.replace("steps: 6", "steps: 0").replace("batch_size: 4", "batch_size: x"),
         ["small.yaml:6:", "small.yaml:7:"]),
        ("small.yaml", EXPERIMENT.replace("training:", "training: ["), ["small.yaml:"]),
        ("small.yaml", EXPERIMENT.replace("supervised", "supervized"), ["did you mean `supervised`?"]),
        ("small.yaml", EXPERIMENT.replace("data.npz", "date.npz"), ["date.npz"]),
        ("small.yaml", EXPERIMENT.replace("small.neural", "smal.neural"), ["smal.neural"]),
        ("small.neural", PROGRAM.replace("num_heads=2", "num_heads=3"), ["E0203"]),
        ("small.neural", PROGRAM.replace("AdamW", "AdamV"), ["E0405", "did you mean"]),
        ("small.neural", PROGRAM.replace('data: "data.npz"', ""), ["has no data"]),
        ("small.neural", PROGRAM.replace('  loss: "sparse_categorical_crossentropy"\n', ""), ["no loss"]),
    ],
    ids=["unknown key", "wrong type", "two at once", "no YAML", "no task", "no data", "no program", "wrong program",
         "no optimizer", "nothing to learn", "no loss"],
)  # fmt: skip
def test_a_mistake_in_a_file_is_shown_with_its_place(folder, file, text, says):
    (folder / file).write_text(text)
    done = neural(file)
    assert done.exit_code == 2, done.output
    for one in says:
        assert one in done.output
    assert "Traceback" not in done.output
    assert not runs(folder)


@pytest.mark.parametrize(
    ("arrays", "says"),
    [
        ({"x": np.zeros((40, 5, 7), np.float32), "y": np.zeros(40, int)}, ["data.npz", "(B, 5, 6)", "(40, 5, 7)"]),
        ({"x": np.zeros((40, 5, 6), np.float32), "y": np.full(40, 3)}, ["data.npz", "3"]),
        ({"x": np.zeros((40, 5, 6), np.float32), "y": np.full(40, -1)}, ["data.npz", "-1"]),
        ({"x": np.zeros((40, 5, 6), np.float32), "y": np.zeros(39, int)}, ["40", "39"]),
        ({"x": np.zeros((0, 5, 6), np.float32), "y": np.zeros(0, int)}, ["data.npz"]),
        ({"x": np.full((40, 5, 6), np.nan, np.float32), "y": np.zeros(40, int)}, ["data.npz"]),
        ({"y": np.zeros(40, int)}, ["data.npz", "x"]),
    ],
    ids=["shape", "label too large", "label too small", "lengths", "empty", "NaN", "no x"],
)  # fmt: skip
def test_data_that_does_not_fit_is_refused_before_anything_starts(folder, arrays, says):
    np.savez(folder / "data.npz", **arrays)
    done = neural("small.neural")
    assert done.exit_code == 2, done.output
    for one in says:
        assert one in done.output
    assert "Traceback" not in done.output
    assert not runs(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [("tracking.sinks=[tensorbord]", "did you mean `tensorboard`"), ("tracking.measures=[entropi]", "`entropy`"),
     ("training.stps=3", "did you mean"), ("training.steps=none", "steps"), ("steps", "="), ("training=3", "training")],
)  # fmt: skip
def test_a_change_is_checked_like_the_file(folder, change, says):
    done = neural("small.yaml", "--set", change)
    assert done.exit_code == 2, done.output
    assert says in done.output
    assert not runs(folder)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [((), "name a program"), (("nothing.neural",), "no such file"), (("--resume",), "no run"),
     (("--resume", "elsewhere"), "no run"), (("small.yaml", "--resume", "x"), "leave the file out")],
)  # fmt: skip
def test_what_cannot_be_trained_is_said(folder, arguments, says):
    done = neural(*arguments)
    assert done.exit_code == 2
    assert says in done.output


@pytest.fixture
def done_run(folder):
    """A finished run."""
    assert neural("small.yaml", "--quiet").exit_code == 0
    return runs(folder)[0]


def contents(path):
    """All files but those beside the rows that SQLite makes for readers too."""
    files = [one for one in path.rglob("*") if one.is_file() and not one.name.endswith(("-shm", "-wal"))]
    return {one.relative_to(path): one.read_bytes() for one in files}


def test_a_run_of_a_newer_version_is_refused_and_left_alone(folder, done_run):
    with sqlite3.connect(done_run / "rows.sqlite") as rows:
        (table,) = rows.execute("SELECT name FROM sqlite_master WHERE name = 'meta'").fetchone()
        rows.execute(f"UPDATE {table} SET value = '99' WHERE key = 'version'")
    rows.close()
    before = contents(done_run)
    done = neural("--resume")
    assert done.exit_code == 2, done.output
    assert "version" in done.output
    assert contents(done_run) == before


def test_damaged_checkpoints_are_named_and_nothing_is_overwritten(folder, done_run):
    for one in Run.open(done_run).checkpoints():
        content = bytearray(one.path.read_bytes())
        content[-7] ^= 8
        one.path.write_bytes(content)
    before = contents(done_run)
    done = neural("--resume", "--quiet")
    assert done.exit_code == 2, done.output
    assert "step-00000006.safetensors is damaged" in done.output
    after = contents(done_run)
    assert {name for name in before if after.get(name) != before[name]} <= {Path("status.json"), Path("rows.sqlite")}


def test_a_place_where_no_folder_can_be_is_named(folder):
    (folder / "file").write_text("")
    done = neural("small.yaml", "--runs", "file/runs")
    assert done.exit_code == 2, done.output
    assert "file/runs" in done.output
