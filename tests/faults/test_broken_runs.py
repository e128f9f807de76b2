"""Break the writing of a run folder at every file operation in turn, with broken_runs.py."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.breaker import RunBroken, start_script


@pytest.fixture(scope="module")
def run_broken(breaker: Path) -> Iterator[RunBroken]:
    """A function that runs broken_runs.py in a mode, in one process for all modes."""
    with start_script("broken_runs.py", breaker) as run:
        yield run


def test_a_kill_before_any_operation_leaves_a_sound_run(run_broken, tmp_path):
    report = run_broken(tmp_path, "kill")
    assert report["ends"] == {"killed": report["operations"]}
    assert report["operations"] > 200


def test_a_kill_inside_any_write_leaves_a_sound_run(run_broken, tmp_path):
    report = run_broken(tmp_path, "half")
    assert report["ends"] == {"killed": report["tried"]}
    assert report["tried"] > 100


def test_a_full_disk_is_reported_and_the_last_checkpoint_stays(run_broken, tmp_path):
    report = run_broken(tmp_path, "full")
    assert report["ends"]["reported"] > 0.8 * report["tried"]
    assert all("full" in text or "no space left" in text for text in report["messages"]), report[
        "messages"
    ]


def test_a_failing_disk_is_reported_and_the_last_checkpoint_stays(run_broken, tmp_path):
    report = run_broken(tmp_path, "fail")
    assert report["ends"]["reported"] > 0.8 * report["tried"]
    assert any("the disk reports an error" in text for text in report["messages"])


def test_an_action_that_failed_once_succeeds_when_repeated(run_broken, tmp_path):
    report = run_broken(tmp_path, "once")
    assert report["ends"]["finished"] > 0.9 * report["tried"]
    assert report["messages"]
