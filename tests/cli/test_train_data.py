"""`neural train novel.txt`, `data.csv`, `folder/`: the task is guessed, shown and trained."""

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.runs.run import Run


def train(*words):
    return CliRunner().invoke(main, ["train", *map(str, words)])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "novel.txt").write_text("one two three four five six seven eight nine\n" * 40)
    rng = np.random.default_rng(0)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > b else 'no'}" for a, b in rng.normal(size=(60, 2))]
    (tmp_path / "data.csv").write_text("\n".join(["a,b,kind", *rows]))
    (tmp_path / "folder").mkdir()
    for number in range(12):
        (tmp_path / "folder" / f"{number}.txt").write_text(
            f"road {number}\nriver home\n\ncarry home {number}\nsing again\n\nroad\nnight\n"
        )
    return tmp_path


@pytest.mark.parametrize(
    ("name", "task", "reason"),
    [
        ("novel.txt", "language_model", "novel.txt: a text of 1.8 kB: a language model of its"),
        ("data.csv", "supervised", "data.csv: a table of 60 rows: predicts `kind`, 2 classes"),
        ("folder/", "segmentation", "folder/: 12 documents with 3.0 segments on average"),
    ],
)
def test_data_is_guessed_shown_and_trained(name, task, reason, folder):
    result = train(name, "--set", "training.steps=2", "--set", "training.epochs=null")
    assert result.exit_code == 0, result.output
    assert reason in result.stderr
    assert f"(--save-experiment FILE.yaml writes it):\n  task: {task}\n  name: " in result.stderr
    assert "the same as this experiment" not in result.stdout
    (path,) = (folder / "runs").iterdir()
    with Run.open(path) as run:
        assert run.settings["task"] == task
        assert run.settings["name"] == name.partition(".")[0].rstrip("/")


def test_a_dry_run_shows_the_experiment_and_does_not_start(folder):
    result = train("data.csv", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "  task: supervised\n" in result.stderr
    assert "time         about" in result.stdout
    assert "attention" not in result.stdout, "the network has none"
    assert "data         1 batch of 32 per epoch" in result.stdout
    assert "kFLOP (forward and backward, 32 examples)" in result.stdout
    assert "memory       less than 1 MB" in result.stdout
    assert not (folder / "runs").exists()


def test_the_saved_experiment_trains_the_same(folder):
    (folder / "saved").mkdir()
    words = ("--set", "training.steps=2", "--set", "training.epochs=null", "--quiet")
    assert train("data.csv", "--save-experiment", "saved/e.yaml", *words).exit_code == 0
    assert "data: ../data.csv\n" in (folder / "saved/e.yaml").read_text()
    assert train("saved/e.yaml", *words).exit_code == 0
    first, second = sorted((folder / "runs").iterdir())
    losses = [Run.open(path).scalars("train/loss")[1].tolist() for path in (first, second)]
    assert losses[0] == losses[1]


def test_only_a_guessed_experiment_is_saved_and_no_file_is_replaced(folder):
    (folder / "old.yaml").write_text("task: lm\n")
    result = train("old.yaml", "--save-experiment", "new.yaml")
    assert result.exit_code == 2
    assert "--save-experiment writes the experiment guessed for data" in result.stderr
    result = train("data.csv", "--save-experiment", "old.yaml")
    assert result.exit_code == 2
    assert "old.yaml exists; name another file" in result.stderr


def test_unknown_data_is_a_message(folder):
    (folder / "data.bin").write_bytes(b"\0")
    result = train("data.bin")
    assert result.exit_code == 2
    assert result.stderr.startswith("error: data.bin: no task can be guessed from this data")


def test_a_broken_table_is_a_message(folder):
    (folder / "bad.csv").write_text("x,y\n1,2\n1\n")
    result = train("bad.csv")
    assert result.exit_code == 2
    assert result.stderr == "error: bad.csv: line 3 has 1 cells, the first line has 2\n"


def test_a_target_after_set_is_guessed_shown_and_saved(folder):
    words = (
        "--set",
        "table.target=b",
        "--set",
        "training.steps=2",
        "--set",
        "training.epochs=null",
    )
    result = train("data.csv", *words, "--save-experiment", "saved.yaml")
    assert result.exit_code == 0, result.output
    assert "predicts `b`, a number from" in result.stderr
    assert "target: b," in (folder / "saved.yaml").read_text()
    (path,) = (folder / "runs").iterdir()
    with Run.open(path) as run:
        assert run.settings["table"]["target"] == "b"
