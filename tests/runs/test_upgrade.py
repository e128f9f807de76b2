"""Runs of version 2 are converted. version_2.tar.xz has one, written by the last program that did.

It was trained with the program and the data of `write_data`: 8 steps, a checkpoint of step 8.
"""

import errno
import hashlib
import json
import shlex
import shutil
import sqlite3
import tarfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.runs.upgrade import upgrade_run

READING_COMMANDS = (
    ["ablate"],
    ["analyze"],
    ["calibrate"],
    ["debug"],
    ["evaluate"],
    ["export", "--to", "onnx"],
    ["figure"],
    ["generate"],
    ["predict"],
    ["report"],
    ["show"],
    ["top"],
    ["train", "--resume"],
    ["watch"],
)
"""Commands whose last argument may be a run."""
ARCHIVE = Path(__file__).with_name("version_2.tar.xz")
SAFE_EXTRACTION = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""The archive is ours; Python 3.11.2 has no filters, and 3.12 warns without one."""


def write_data(folder: Path) -> Path:
    random = np.random.default_rng(0)
    x = random.normal(size=(61, 5, 6)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, y=x[:, :, :3].mean(axis=1).argmax(axis=1))
    return folder / "data.npz"


@pytest.fixture
def old_run(tmp_path):
    """The run of version 2; its settings name data in this folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "my runs", **SAFE_EXTRACTION)
    (path,) = (tmp_path / "my runs").iterdir()
    settings = json.loads((path / "settings.json").read_text())
    text = json.dumps({**settings, "data": str(write_data(tmp_path))}, indent=1) + "\n"
    (path / "settings.json").write_text(text)
    with sqlite3.connect(path / "rows.sqlite") as db:
        digest = hashlib.sha256(text.encode()).hexdigest()
        db.execute("UPDATE meta SET value = ? WHERE key = 'sha256 settings.json'", (digest,))
    db.close()
    return path


def test_the_message_names_the_command_and_the_command_works(old_run):
    with pytest.raises(RunError, match="written in version 2") as refused:
        Run.open(old_run)
    command = str(refused.value).rpartition("`neural ")[2].rstrip("`")
    result = CliRunner().invoke(main, shlex.split(command))
    assert result.exit_code == 0, result.output
    assert "small-upgraded" in result.output


@pytest.mark.parametrize("words", READING_COMMANDS, ids=lambda words: words[0])
def test_every_command_that_reads_a_run_says_how_to_convert_it(old_run, words):
    result = CliRunner().invoke(main, [*words, str(old_run)])
    assert result.exit_code == 2
    assert "convert it with `neural runs upgrade" in result.output


def test_the_list_of_runs_says_how_to_convert_it(old_run):
    result = CliRunner().invoke(main, ["runs", "--runs", str(old_run.parent)])
    assert result.exit_code == 0
    assert "convert it with `neural runs upgrade" in result.output


def test_the_old_folder_is_kept_and_names_the_new_one(old_run):
    upgraded = upgrade_run(old_run)
    with pytest.raises(RunError, match="version 2") as refused:
        Run.open(old_run)
    assert f"use {upgraded}, which it was converted to" in str(refused.value)


def test_a_read_only_folder_is_converted(old_run):
    old_run.chmod(0o555)
    upgraded = upgrade_run(old_run)
    assert upgraded.stat().st_mode & 0o777 == 0o755


def test_curves_measures_maps_and_metadata_are_converted(old_run):
    with Run.open(upgrade_run(old_run)) as run:
        assert "train/learning_rate" in run.scalar_names()
        assert run.scalars("train/loss")[0].tolist() == list(range(1, 9))
        assert run.metadata("batches_per_epoch") > 1
        (layer,) = run.metadata("attention/layers")
        assert layer == "transformer_encoder.attention.sublayer"
        assert list(run.maps(8)) == [layer]
        assert run.measure("entropy")[1].shape == (3, 1, 3)
        assert "description" in run.metadata("attention/measures")["entropy"]
        assert run.status.state == "finished"


def test_an_upgraded_run_resumes_as_if_it_had_been_trained_by_this_version(old_run, tmp_path):
    upgraded = upgrade_run(old_run)
    words = ["train", "--quiet", "--set", "training.steps=12"]
    result = CliRunner().invoke(main, [*words, "--resume", str(upgraded)])
    assert result.exit_code == 0, result.output
    settings = tmp_path / "fresh.yaml"
    settings.write_text(json.dumps({**Run.open(upgraded).settings, "name": "fresh"}))
    result = CliRunner().invoke(main, [*words, str(settings), "--runs", str(tmp_path / "fresh")])
    assert result.exit_code == 0, result.output
    fresh = Run.open(Path(result.output.strip()))
    for name in ("train/loss", "valid/loss"):
        steps, losses = Run.open(upgraded).scalars(name)
        assert steps.tolist() == fresh.scalars(name)[0].tolist()
        assert losses.tolist() == pytest.approx(fresh.scalars(name)[1].tolist(), abs=1e-4)


def test_a_run_is_converted_once(old_run):
    upgraded = upgrade_run(old_run)
    with pytest.raises(RunError, match="exists already"):
        upgrade_run(old_run)
    with pytest.raises(RunError, match="is of version 3 already"):
        upgrade_run(upgraded)


def test_a_damaged_checkpoint_is_named_and_nothing_is_left_behind(old_run):
    path = old_run / "checkpoints" / "step-00000008.json"
    path.write_bytes(path.read_bytes().replace(b'"best": false', b'"best": true '))
    with pytest.raises(RunError, match=r"step-00000008\.json is damaged"):
        upgrade_run(old_run)
    assert list(old_run.parent.iterdir()) == [old_run]


def test_a_full_disk_is_reported_and_nothing_is_left_behind(old_run, monkeypatch):
    def fill_disk(source, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copy2", fill_disk)
    with pytest.raises(RunError, match=r"the disk is full; free some space and convert again$"):
        upgrade_run(old_run)
    assert list(old_run.parent.iterdir()) == [old_run]


@pytest.mark.parametrize(("version", "advice"), [("1", "train again"), ("9", "newer neural")])
def test_other_versions_cannot_be_converted(old_run, version, advice):
    with sqlite3.connect(old_run / "rows.sqlite") as db:
        db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (version,))
    db.close()
    with pytest.raises(RunError, match=f"version {version} .*{advice}"):
        upgrade_run(old_run)
