"""The demo of `make demo`: what it says at its end, and when it is stopped."""

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import neural

DEMO = Path(__file__).parents[2] / "examples" / "demo" / "demo.py"


@pytest.fixture
def demo():
    """The names that the script defines."""
    return runpy.run_path(str(DEMO))


def test_the_command_is_named_by_its_path_where_it_is_not_on_path(demo, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    scripts = tmp_path / ".venv" / "bin"
    monkeypatch.setattr(sys, "executable", str(scripts / "python"))
    assert demo["command_name"]() == os.path.join(".venv", "bin", "neural")  # noqa: PTH118 - a text with the separator of the system


def test_the_command_is_named_by_its_name_where_it_is_on_path(demo, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: f"/somewhere/{name}")
    assert demo["command_name"]() == "neural"


@pytest.mark.skipif(os.name == "nt", reason="sends Ctrl-C to a group of processes")
def test_ctrl_c_ends_the_demo_with_one_sentence(tmp_path):
    command = [sys.executable, str(DEMO), "--into", str(tmp_path / "output")]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    )
    try:
        # the first training has begun
        assert any(line.startswith("step ") for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    (runs,) = (tmp_path / "output").iterdir()
    assert process.returncode == 130
    assert errors.rstrip().endswith(f"The demo was stopped; the runs so far are in {runs}.")
    assert "Traceback" not in errors
    # the training was not killed: it has saved a checkpoint
    (run,) = runs.iterdir()
    assert neural.open_run(run).status.state == "stopped"
    assert list((run / "checkpoints").glob("*.safetensors"))
