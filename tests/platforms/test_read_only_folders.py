"""Commands where the home folder, its cache or the working directory cannot be written.

The folders are made read-only by an audit hook, which also holds for root.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys

import pytest

from neural.core import platform_support
from neural.core.errors import TaskError
from neural.core.files import expand_home
from neural.data.downloads import cache_folder, fetch
from tests.sweeps import write_sweep

SCRIPT = """
import errno, json, os, sys
read_only = tuple(json.loads(sys.argv[1]))
def refuse_writes(event, arguments):
    if event == "open":
        path, _, flags = arguments
        writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    elif event in ("os.mkdir", "os.rename", "os.remove"):
        path, writes = arguments[0], arguments[-1] == -1  # else relative to an open folder
    else:
        return
    if writes and isinstance(path, str) and os.path.abspath(path).startswith(read_only):
        raise OSError(errno.EROFS, "Read-only file system", path)
sys.addaudithook(refuse_writes)
from neural.cli.main import main
for words in json.loads(sys.argv[2]):
    try:
        main(words, prog_name="neural")
    except SystemExit as error:
        print("exit", error.code or 0, flush=True)
"""


def run_commands(folder, read_only, *commands, **variables):
    """Exit codes and errors of the commands, which cannot write to some folders."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, "-c", SCRIPT, json.dumps([str(path) for path in read_only])]
    process = subprocess.run(
        [*command, json.dumps(commands)],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in process.stderr, process.stderr
    lines = process.stdout.splitlines()
    codes = [int(line.removeprefix("exit ")) for line in lines if line.startswith("exit ")]
    assert len(codes) == len(commands), process.stderr
    return codes, process.stderr


def test_a_read_only_home_and_working_directory_are_enough_for_training_and_reports(tmp_path):
    home, work, output = tmp_path / "home", tmp_path / "work", tmp_path / "output"
    for folder in (home, work, output):
        folder.mkdir()
    write_sweep(work, "experiment: tiny.neural\nseeds: [0]\n")
    runs = str(output / "runs")
    codes, errors = run_commands(
        work,
        [home, work],
        ["check", "tiny.neural"],
        ["train", "tiny.neural", "--runs", runs, "--quiet"],
        ["show", "--runs", runs],
        ["report", "--runs", runs, "--out", str(output / "report.html")],
        ["train", "tiny.neural"],
        ["fmt", "tiny.neural"],
        HOME=str(home),
    )
    assert codes == [0, 0, 0, 0, 2, 2]
    assert "tiny.neural cannot be written: read-only file system" in errors
    assert f"no run can be created in {work / 'runs'}: no permission to write there" in errors
    assert (output / "report.html").exists()
    assert list(home.iterdir()) == []


@pytest.mark.parametrize("kind", ["read_only", "missing", "file"])
def test_a_home_that_cannot_hold_downloads_is_a_message_that_names_neural_cache(
    kind, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    if kind == "read_only":
        home.mkdir()
    elif kind == "file":
        home.touch()

    def refuse(path, *args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    for name in ("NEURAL_DATA", "NEURAL_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(os, "mkdir", refuse)
    message = r"text8 cannot be saved in .*home.*; set NEURAL_CACHE to another folder"
    with pytest.raises(TaskError, match=message):
        fetch("text8")


def test_an_unknown_home_is_a_message(monkeypatch):
    def raise_unknown():
        raise RuntimeError("Could not determine home directory.")

    for name in ("NEURAL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(platform_support.Path, "home", raise_unknown)
    with pytest.raises(TaskError, match=r"there is no home folder.*set NEURAL_CACHE to a folder"):
        cache_folder()


def test_the_home_of_an_unknown_user_is_no_error():
    assert expand_home("~nobody-has-this-name/data").parts[0] == "~nobody-has-this-name"
