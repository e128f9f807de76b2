"""A run folder whose writing breaks, at every file operation in turn: broken_runs.py is what runs, and looks."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.breaker import HERE, built, loading


@pytest.fixture(scope="session")
def breaker(tmp_path_factory) -> Path:
    """The library that breaks file operations."""
    return built(tmp_path_factory.mktemp("breaker"))


def broken(breaker: Path, folder: Path, how: str) -> dict:
    """What became of the runs that were broken like this."""
    call = [sys.executable, str(HERE / "broken_runs.py"), str(folder), how]
    done = subprocess.run(call, env=loading(breaker), capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["wrong"] == []
    assert sum(told["ends"].values()) == told["tried"]
    return told


def test_a_kill_before_any_operation_leaves_a_sound_run(breaker, tmp_path):
    told = broken(breaker, tmp_path, "kill")
    assert told["ends"] == {"killed": told["operations"]}
    assert told["operations"] > 200


def test_a_kill_inside_any_write_leaves_a_sound_run(breaker, tmp_path):
    told = broken(breaker, tmp_path, "half")
    assert told["ends"] == {"killed": told["tried"]}
    assert told["tried"] > 100


def test_a_full_disk_is_said_and_the_last_checkpoint_stays(breaker, tmp_path):
    told = broken(breaker, tmp_path, "full")
    assert told["ends"]["told"] > 0.8 * told["tried"]
    assert all("full" in text or "no space left" in text for text in told["told"]), told["told"]


def test_a_failing_disk_is_said_and_the_last_checkpoint_stays(breaker, tmp_path):
    told = broken(breaker, tmp_path, "fail")
    assert told["ends"]["told"] > 0.8 * told["tried"]
    assert any("the disk reports an error" in text for text in told["told"])


def test_what_failed_once_works_when_it_is_tried_again(breaker, tmp_path):
    told = broken(breaker, tmp_path, "once")
    assert told["ends"]["finished"] > 0.9 * told["tried"]
    assert told["told"]
