"""Passwords and access keys are not stored in run folders; folders that had some are private."""

import json
import os
import sys

import pytest

from neural.runs import copy
from neural.runs.run import Run
from neural.workflows.copy_runs import copy_runs
from neural.workflows.sweep import create_sweep
from neural.workflows.sweep_trials import SweepSettings, expand_grid

SECRET = "hunter2hunter2"


def read_all(run):
    """Every byte of a run folder."""
    return b"".join(path.read_bytes() for path in run.path.rglob("*") if path.is_file())


def write_run(root, settings, **options):
    return Run.create(root, "x", settings=settings, program=None, **options)


def test_secrets_in_settings_events_and_messages_are_not_stored(tmp_path):
    url = f"https://me:{SECRET}@tracker.example"
    run = write_run(
        tmp_path, {"name": "x", "api_key": SECRET, "tracker": {"url": url}}, environment={}
    )
    run.log_event(0, "warning", f"Mlflow failed: {url} does not answer")
    run.replace_settings({"name": "y", "password": SECRET}, None)
    run.finish("failed", f"cannot reach {url}")
    assert SECRET.encode() not in read_all(run)
    assert json.loads((run.path / "settings.json").read_text()) == {"name": "y", "password": "***"}
    assert Run.open(run.path).status.message == "cannot reach https://***@tracker.example"


def test_secrets_on_the_command_line_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py", "--password", SECRET, "--steps", "7"])
    run = write_run(tmp_path, {})
    assert run.environment["command"] == ["train.py", "--password", "***", "--steps", "7"]
    run.finish("finished")
    assert SECRET.encode() not in read_all(run)


def test_environment_variables_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_API_KEY", SECRET)
    monkeypatch.setenv("NEURAL_BOARD_TOKEN", SECRET)
    run = write_run(tmp_path, {})
    run.finish("finished")
    assert SECRET.encode() not in read_all(run)


HAS_MODES = pytest.mark.skipif(os.name != "posix", reason="modes of folders are those of POSIX")


@HAS_MODES
@pytest.mark.parametrize(
    ("settings", "command", "mode"),
    [
        ({"name": "x", "sizes": (1, 2)}, ["train.py"], 0o750),
        ({"api_key": SECRET}, ["train.py"], 0o700),
        ({}, ["train.py", "--set", "password=***"], 0o700),
    ],
    ids=["none", "settings", "command"],
)
def test_a_folder_that_had_secrets_is_private(tmp_path, settings, command, mode):
    """Other folders have the mode of the umask, so that a group can read runs."""
    previous = os.umask(0o027)
    try:
        run = write_run(tmp_path, settings, environment={"command": command})
        run.finish("finished")
    finally:
        os.umask(previous)
    assert run.path.stat().st_mode & 0o777 == mode


def read_mode(path):
    return path.stat().st_mode & 0o777


@HAS_MODES
def test_a_run_that_is_resumed_with_a_secret_becomes_private(tmp_path):
    run = write_run(tmp_path, {"name": "x"}, environment={})
    run.path.chmod(0o755)
    run.replace_settings({"name": "y"}, None)
    assert read_mode(run.path) == 0o755
    run.replace_settings({"name": "y", "password": SECRET}, None)
    assert read_mode(run.path) == 0o700
    run.close()


@HAS_MODES
def test_a_copy_of_a_private_run_is_private_from_its_first_file_on(tmp_path, monkeypatch):
    run = write_run(tmp_path / "runs", {"password": SECRET}, environment={})
    run.finish("finished")
    modes = []
    copy_checkpoints = copy._copy_checkpoints

    def record_mode(source, staging, previous):
        modes.append(read_mode(staging.parent))
        return copy_checkpoints(source, staging, previous)

    monkeypatch.setattr(copy, "_copy_checkpoints", record_mode)
    copy.copy_run(run.path, tmp_path / "copy")
    assert [*modes, read_mode(tmp_path / "copy")] == [0o700, 0o700]


@HAS_MODES
@pytest.mark.parametrize(
    ("override", "mode"),
    [("training.steps=5", 0o755), (f"tracker.password={SECRET}", 0o700)],
    ids=["none", "secret"],
)
def test_a_sweep_with_secrets_and_its_copies_are_private(tmp_path, override, mode):
    """Its table keeps them: a sweep that is resumed needs them."""
    settings = SweepSettings(experiment="x.yaml", set=(override,))
    previous = os.umask(0o022)
    try:
        root = tmp_path / "runs"
        sweep = create_sweep(root, "rates", settings, tmp_path / "x.yaml", expand_grid(settings))
        assert read_mode(sweep.path) == mode
        assert list(copy_runs([sweep.path], tmp_path / "copies")) == []
        assert read_mode(tmp_path / "copies" / sweep.path.name) == mode
    finally:
        os.umask(previous)
