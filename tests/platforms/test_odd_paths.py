"""Every kind of path that a user may have, for the program, its data, the runs and the output."""

from __future__ import annotations

import os
import re
import unicodedata
import urllib.request
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.data import downloads
from neural.data.downloads import fetch
from neural.runs.errors import RunError
from neural.runs.folder import publish_folder
from neural.runs.run import Run
from neural.workflows.sweep_trials import Trial, ensure_unique_names
from tests.board.boards import AUTHORIZATION, serve_board, write_finished_run
from tests.platforms.every_command import PROGRAM

NAMES = {
    "spaces": "my  runs",
    "composed": unicodedata.normalize("NFC", "naïve café Größe"),
    "decomposed": unicodedata.normalize("NFD", "naïve café Größe"),
    "uri": "100% #1 %20 & c=d;e",
    "not_on_windows": 'it\'s "quoted" a?b <c>: *|',
    "patterns": "[a]{b}!c $HOME ~",
    "line_break": "a\nb",
    "long": "l" * 200,
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_commands_work_in_a_folder_of_any_name(name, tmp_path):
    folder = tmp_path / name
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this system has no such names")
    _write_example(folder)
    program, runs = folder / "small.neural", folder / "my runs"

    invoke("check", program)
    invoke("fmt", program)
    invoke("compile", program, "--out", folder / "net 1.py")
    invoke("train", program, "--runs", runs, "--quiet")
    (run_path,) = runs.iterdir()
    invoke("train", "--resume", run_path, "--set", "training.steps=4", "--quiet")
    with Run.open(run_path) as run:
        assert run.status.state == "finished"
        assert run.scalars("train/loss")[0].tolist() == [1, 2, 3, 4]
    invoke("show", run_path)
    assert run_path.name in invoke("runs", "--runs", runs)
    invoke("report", run_path, "--out", folder / "the report.html")
    invoke("predict", run_path, folder / "data.npz", "--out", folder / "predicted #1.csv")
    invoke("segment", folder / "text.txt", "--out", folder / "parts #1.json")
    for file in ("net 1.py", "the report.html", "predicted #1.csv", "parts #1.json"):
        assert (folder / file).stat().st_size, file


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_the_board_exports_and_the_cache_work_in_a_folder_of_any_name(name, tmp_path, monkeypatch):
    folder = tmp_path / name
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this system has no such names")
    run_path = folder / name[:60].replace("\n", " ")  # addresses have no line breaks
    write_finished_run(folder, steps=(0,)).path.rename(run_path)
    with serve_board(folder) as address:
        url = f"{address}/api/runs/{quote(run_path.name)}"
        for path in (f"{address}/api/runs", url, f"{url}/maps/0"):
            request = urllib.request.Request(path, headers=AUTHORIZATION)
            with urllib.request.urlopen(request) as response:
                assert response.status == 200, path
    invoke("export", run_path, "--to", "huggingface", "--out", folder / "exported net")
    assert (folder / "exported net" / "model.safetensors").stat().st_size

    monkeypatch.setenv("NEURAL_CACHE", str(folder / "my cache"))
    monkeypatch.delenv("NEURAL_DATA", raising=False)
    monkeypatch.setattr(downloads, "_download_file", lambda _, part, __: part.write_text("text"))
    assert fetch("shakespeare_char").read_text() == "text"


def test_names_of_data_are_found_composed_and_decomposed_as_they_are_written(tmp_path):
    for form in ("NFC", "NFD"):
        folder = tmp_path / form
        folder.mkdir()
        _write_example(folder)
        name = unicodedata.normalize(form, "daten für später.npz")
        (folder / "data.npz").rename(folder / name)
        program = folder / "small.neural"
        program.write_text(PROGRAM.replace("data.npz", name), encoding="utf-8")
        invoke("train", program, "--runs", folder / "runs", "--quiet")


def test_a_path_that_sqlite_cannot_open_is_refused_before_training(tmp_path):
    _write_example(tmp_path)
    runs = tmp_path / Path(*["d" * 100] * 5)
    result = CliRunner().invoke(
        main, ["train", str(tmp_path / "small.neural"), "--runs", str(runs)]
    )
    assert result.exit_code == 2
    assert re.search(
        r"would have \d+ bytes, SQLite allows 500; choose another --runs", result.output
    )
    assert not runs.exists()


@pytest.mark.skipif(os.name == "nt", reason="paths of Windows are Unicode")
def test_a_path_that_is_not_utf_8_is_refused_before_training(tmp_path):
    runs = tmp_path / os.fsdecode(b"caf\xe9")
    with pytest.raises(RunError, match="is not UTF-8, which safetensors and JSON need; rename it"):
        Run.create(runs, "run", settings={}, program=None)
    with pytest.raises(RunError, match="the folder or of the data is not UTF-8"):
        Run.create(tmp_path, "run", settings={"data": str(runs)}, program=None)
    assert list(tmp_path.iterdir()) == []


def test_run_folders_that_would_differ_only_in_case_get_a_number(tmp_path):
    paths = []
    for name in ("Digits", "digits", "DIGITS"):
        staging = tmp_path / f".new-{name}"
        staging.mkdir()
        paths.append(publish_folder(staging, tmp_path, name, 0.0))
    assert len({path.name.casefold() for path in paths}) == 3
    assert [path.name.partition("_")[2][9:] for path in paths] == ["Digits", "digits-2", "DIGITS-3"]


def test_the_name_of_a_run_folder_is_allowed_on_windows(tmp_path):
    for index, name in enumerate(["con", "a:b?", "end.", " x ", "." * 5, "l" * 300 + "."]):
        staging = tmp_path / f".new-{index}"
        staging.mkdir()
        published = publish_folder(staging, tmp_path, name, float(index)).name
        assert not re.search(r'[<>:"/\\|?*\x00-\x1f]|[. ]$', published)
        assert re.match(r"\d{4}-", published), "so that no name is reserved, as `con` is"


def test_trials_that_differ_only_in_case_are_named_by_number():
    trials = [Trial("optimizer-Adam", 0, {}, ()), Trial("optimizer-adam", 0, {}, ())]
    assert len({trial.name.casefold() for trial in ensure_unique_names(trials)}) == 2


def invoke(*words: object) -> str:
    """Run a command in this process; returns its output."""
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, f"{words[0]}: {result.output}\n{result.exception!r}"
    return result.output


def _write_example(folder: Path) -> None:
    random = np.random.default_rng(0)
    np.savez(
        folder / "data.npz",
        x=random.normal(size=(40, 5, 6)).astype(np.float32),
        y=random.integers(0, 3, 40),
    )
    (folder / "small.neural").write_text(PROGRAM, encoding="utf-8")
    text = "The sea is cold. The sea is deep. Bread is baked.\n" * 9
    (folder / "text.txt").write_text(text, encoding="utf-8")
