"""A training that is killed and resumed equals an undisturbed one, bit for bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.training.engine import fit
from neural.training.load_task import restore_task
from tests.training.programs import create_small_run, create_small_task, read_run_contents

ROOT = Path(__file__).parents[2]


CASES = [
    (1, 10, {"gradient_accumulation_steps": 2, "ema": 0.9, "scheduler": "cosine"}),
    (2, 3, {"optimizer": "Muon()", "scheduler": "plateau", "plateau_patience": 1, "patience": 500}),
]
"""Random seed, number of kills, training settings."""


def test_two_hundred_steps_killed_many_times_equal_undisturbed_ones(tmp_path):
    """One process for all cases: imports take as long as training."""
    common = {"steps": 200, "checkpoint_every": 7, "validate_every": 25}
    arguments = [
        str(argument)
        for seed, kills, settings in CASES
        for argument in (seed, kills, json.dumps({**common, **settings}))
    ]
    command = [sys.executable, "-m", "tests.training.killed", str(tmp_path), *arguments]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert [int(line) for line in done.stdout.split()] == [kills for _, kills, _ in CASES]
    for number, (_, _, settings) in enumerate(CASES):
        (undisturbed,) = (tmp_path / str(number) / "undisturbed").glob("[!.]*")
        (resumed,) = (tmp_path / str(number) / "runs").glob("[!.]*")
        expected = read_run_contents(undisturbed)
        assert expected["step"] == 200
        assert read_run_contents(resumed) == expected, settings
        assert Run.open(resumed).status.state == "finished"


def test_a_stopped_run_resumes_bit_for_bit(tmp_path):
    settings = {"steps": 20, "checkpoint_every": 3}
    task = create_small_task(tmp_path, **settings)
    undisturbed = create_small_run(task, tmp_path)
    fit(task, undisturbed)
    interrupted = create_small_task(tmp_path, **settings)
    run = create_small_run(interrupted, tmp_path)

    def on_step(progress):
        if progress.step == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(interrupted, run, on_step=on_step)
    assert Run.open(run.path).status.state == "stopped"
    fit(create_small_task(tmp_path, **settings), Run.reopen(run.path))
    assert read_run_contents(run.path) == read_run_contents(undisturbed.path)


def test_a_finished_run_that_is_resumed_does_nothing_more(tmp_path):
    task = create_small_task(tmp_path)
    run = create_small_run(task, tmp_path)
    fit(task, run)
    before = read_run_contents(run.path)
    result = fit(create_small_task(tmp_path), Run.reopen(run.path))
    assert result.state == "finished"
    assert read_run_contents(run.path) == before


def test_a_damaged_checkpoint_is_skipped_for_the_one_before(tmp_path):
    task = create_small_task(tmp_path, steps=12, checkpoint_every=3, keep_checkpoints=5)
    run = create_small_run(task, tmp_path)
    fit(task, run)
    expected = read_run_contents(run.path)
    newest = Run.open(run.path).checkpoints()[-1]
    damaged = bytearray(newest.path.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    newest.path.write_bytes(damaged)
    last_rows, warnings = [], []

    def on_step(progress):
        last_rows.append((progress.step, Run.open(run.path).scalars("train/loss")[0][-1]))

    resumed_task = create_small_task(tmp_path, steps=12, checkpoint_every=3, keep_checkpoints=5)
    fit(resumed_task, Run.reopen(run.path), on_step=on_step, on_warning=warnings.append)
    assert warnings == [
        f"{newest.path} is damaged: its checksum is wrong; resumes from the checkpoint of step 10"
    ]
    assert all(row <= step for step, row in last_rows), "rows of steps after the checkpoint"
    assert read_run_contents(run.path) == expected
    assert any(
        "step-00000012" in text
        for _, kind, text, _ in Run.open(run.path).events()
        if kind == "warning"
    )


def test_a_folder_with_the_name_of_a_checkpoint_is_skipped_and_deleted(tmp_path):
    settings = {"steps": 12, "checkpoint_every": 3, "keep_checkpoints": 5}
    run = create_small_run(create_small_task(tmp_path, **settings), tmp_path)
    fit(create_small_task(tmp_path, **settings), run)
    expected = read_run_contents(run.path)
    newest = Run.open(run.path).checkpoints()[-1].path
    newest.unlink()
    newest.mkdir()
    (newest / "file").write_text("not ours")
    fit(create_small_task(tmp_path, **settings), Run.reopen(run.path))
    assert read_run_contents(run.path) == expected


def test_a_finished_run_that_cannot_be_resumed_stays_finished(tmp_path):
    run = create_small_run(create_small_task(tmp_path), tmp_path)
    fit(create_small_task(tmp_path), run)
    before, settings = read_run_contents(run.path), Run.open(run.path).settings
    with pytest.raises(RunError, match="cannot resume with SGD"):
        fit(create_small_task(tmp_path, optimizer="SGD()", steps=20), Run.reopen(run.path))
    after = Run.open(run.path)
    assert after.status.state == "finished"
    assert "cannot be resumed with these settings: RunError" in after.status.message
    assert (after.status.step, after.status.best) == (12, after.load_checkpoint().metadata["best"])
    assert (read_run_contents(run.path), after.settings) == (before, settings)
    assert fit(create_small_task(tmp_path), Run.reopen(run.path)).state == "finished"


def test_a_resumed_run_saves_its_new_settings(tmp_path):
    run = create_small_run(create_small_task(tmp_path), tmp_path)
    fit(create_small_task(tmp_path), run)
    fit(create_small_task(tmp_path, steps=15, weight_decay=0.5), Run.reopen(run.path))
    after = Run.open(run.path)
    assert (after.load_checkpoint().step, after.metadata("steps")) == (15, 15)
    training = after.settings["training"]
    assert (training["steps"], training["weight_decay"]) == (15, 0.5)
    (text,) = [text for _, kind, text, _ in after.events() if kind == "restart"]
    assert "training.steps 12 → 15, training.weight_decay null → 0.5" in text
    again = restore_task(after)
    assert again.experiment.training.steps == 15
    assert fit(again, Run.reopen(run.path)).state == "finished"


def test_settings_of_a_finished_run_are_not_replaced(tmp_path):
    run = create_small_run(create_small_task(tmp_path), tmp_path)
    fit(create_small_task(tmp_path), run)
    fit(create_small_task(tmp_path, weight_decay=0.5), Run.reopen(run.path))
    assert Run.open(run.path).settings["training"]["weight_decay"] is None
