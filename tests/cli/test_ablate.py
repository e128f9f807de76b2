"""`neural ablate`: tables, files, messages."""

import csv
import json
import re

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.runs.importance_file import load_importance
from tests.hugging_face_folders import build_gpt2, save_folder, train_tokenizer
from tests.task_runs import write_task_run


def run_command(*arguments):
    return CliRunner().invoke(main, ["ablate", *map(str, arguments)])


@pytest.fixture(scope="module")
def run_path(tmp_path_factory):
    return write_task_run(tmp_path_factory.mktemp("runs"), "language_model", steps=(10, 20))


def test_a_table_of_heads_and_pairs_is_printed_and_the_result_is_saved(run_path):
    result = run_command(run_path, "--examples", 4)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert any("change" in line and "± se" in line and "role" in line for line in lines)
    assert {line.split()[1] for line in lines if line.startswith("  L0 ")} >= {"h0", "h1"}
    assert "pairs" in result.stdout and "L0 h0, L0 h1" in result.stdout
    assert "at step 20" in result.stdout and "chance" in result.stdout
    assert "saved in" in result.stderr and load_importance(run_path).steps.tolist() == [20]


def test_the_newest_run_and_all_checkpoints(run_path):
    result = run_command("--runs", run_path.parent, "--over-training", "--examples", 4, "--json")
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert [step["step"] for step in data["steps"]] == [10, 20]
    assert len(data["steps"][0]["change"][0]) == 2 and data["method"] == "mean"


def test_files(run_path, tmp_path):
    table, data = tmp_path / "heads.csv", tmp_path / "heads.json"
    for path in (table, data):
        options = ("--examples", 4, "--no-pairs", "--method", "pattern", "-o", path)
        assert run_command(run_path, *options).exit_code == 0
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["layer"], row["head"]) for row in rows] == [("0", "0"), ("0", "1")]
    saved = json.loads(data.read_text(encoding="utf-8"))
    assert saved["method"] == "pattern uniform"
    assert float(rows[1]["change"]) == pytest.approx(saved["steps"][0]["change"][0][1], rel=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--head", "L3h0"), "there is no head L3 h0"),
        (("--head", "third"), "is not a head: write `L1 h3`"),
        (("--step", "11"), "it has kept 10, 20"),
        (("-o", "heads.txt"), "name a .csv, .json or .html file"),
        (("-o", "no/such/heads.csv"), "there is no folder"),
        (("--data", "no.txt"), "there is no file no.txt"),
        (("--examples", "1"), "x>=2"),
        (("--method", "pattern", "--pattern", "up"), "'up' is not one of"),
    ],
)
def test_what_cannot_be_done_is_a_message(run_path, options, message):
    result = run_command(run_path, *options)
    assert result.exit_code == 2 and message in result.stderr
    assert "Traceback" not in result.output


def test_a_line_per_checkpoint_and_notes_about_the_text_are_printed(tmp_path):
    tokenizer = train_tokenizer()
    folders = [
        save_folder(tmp_path / f"checkpoint-{step}", build_gpt2(tokenizer), tokenizer)
        for step in (1, 2)
    ]
    (tmp_path / "notes.txt").write_text("the zebra sat on the mat and the cat sat on it " * 6)
    data = ("--data", tmp_path / "notes.txt", "--length", 8, "--examples", 4, "--no-pairs")
    result = run_command(*folders, *data)
    assert result.exit_code == 0, result.output
    assert result.stderr == "checkpoint-1 (1 of 2) …\ncheckpoint-2 (2 of 2) …\n"
    assert "tokens are not in the vocabulary and became [UNK]" in result.stdout
    assert "note: the loss is above chance, " in result.stdout  # the weights are random


def test_the_bar_of_a_terminal_counts_passes(run_path, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes it for a terminal
    monkeypatch.setenv("TERM", "xterm")  # a dumb one has no bar
    result = run_command(run_path, "--examples", 4, "--no-pairs", "--again")
    assert result.exit_code == 0, result.output
    counts = re.findall(r" \S*?(\d+/[\d?]+)\b", result.stderr.partition("saved in")[0])
    # one unchanged pass, and one without each of the two heads
    assert counts[-1] == "3/3" and "0/1" not in counts, result.stderr


def test_a_model_needs_a_text():
    result = run_command("some/model.pt2")
    assert result.exit_code == 2 and "--data FILE" in result.stderr


def test_a_misspelt_run_is_not_taken_for_a_model(run_path):
    result = run_command("tinny", "--runs", run_path.parent)
    assert result.exit_code == 2 and "there is no run `tinny`" in result.stderr
