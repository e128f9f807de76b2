"""Killed at random instants and resumed, a training is what it would have been: to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neural.experiments import task_of_run
from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from neural.training.engine import fit
from tests.training.programs import begun, small, trace

ROOT = Path(__file__).parents[2]


KILLED = [
    (1, 10, {"gradient_accumulation_steps": 2, "ema": 0.9, "scheduler": "cosine"}),
    (2, 3, {"optimizer": "Muon()", "scheduler": "plateau", "plateau_patience": 1, "patience": 500}),
]
"""A seed, how often, and what is trained."""


def test_two_hundred_steps_killed_many_times_are_the_same_as_straight_ones(tmp_path):
    """One process for all cases: importing what trains takes as long as training."""
    common = {"steps": 200, "checkpoint_every": 7, "validate_every": 25}
    words = [str(word) for seed, kills, own in KILLED for word in (seed, kills, json.dumps({**common, **own}))]
    command = [sys.executable, "-m", "tests.training.killed", str(tmp_path), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=500, check=False,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [int(line) for line in done.stdout.split()] == [kills for _, kills, _ in KILLED]
    for number, (_, _, settings) in enumerate(KILLED):
        (straight,) = (tmp_path / str(number) / "straight").glob("[!.]*")
        (resumed,) = (tmp_path / str(number) / "runs").glob("[!.]*")
        one, other = trace(straight), trace(resumed)
        assert one["step"] == 200
        assert one == other, settings
        assert Run.open(resumed).status.state == "finished"


def test_a_run_that_was_stopped_goes_on(tmp_path):
    whole, part = small(tmp_path, steps=20, checkpoint_every=3), small(tmp_path, steps=20, checkpoint_every=3)
    straight = begun(whole, tmp_path)
    fit(whole, straight)
    run = begun(part, tmp_path)

    def tell(progress):
        if progress.step == 11:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(part, run, tell=tell)
    assert Run.open(run.path).status.state == "stopped"
    fit(small(tmp_path, steps=20, checkpoint_every=3), Run.reopen(run.path))
    assert trace(run.path) == trace(straight.path)


def test_a_finished_run_that_is_resumed_does_nothing_more(tmp_path):
    task = small(tmp_path)
    run = begun(task, tmp_path)
    fit(task, run)
    before = trace(run.path)
    outcome = fit(small(tmp_path), Run.reopen(run.path))
    assert outcome.state == "finished"
    assert trace(run.path) == before


def test_the_newest_checkpoint_broken_the_one_before_is_taken(tmp_path):
    task = small(tmp_path, steps=12, checkpoint_every=3, keep_checkpoints=5)
    run = begun(task, tmp_path)
    fit(task, run)
    wanted = trace(run.path)
    newest = Run.open(run.path).checkpoints()[-1]
    broken = bytearray(newest.path.read_bytes())
    broken[len(broken) // 2] ^= 1
    newest.path.write_bytes(broken)
    last, said = [], []

    def tell(progress):
        last.append((progress.step, Run.open(run.path).scalars("train/loss")[0][-1]))

    again = small(tmp_path, steps=12, checkpoint_every=3, keep_checkpoints=5)
    fit(again, Run.reopen(run.path), tell=tell, remark=said.append)
    assert said == [f"{newest.path} is damaged: its sum is wrong; goes on from the checkpoint of step 10"]
    assert all(seen <= step for step, seen in last), "rows of steps that were not made again yet"
    assert trace(run.path) == wanted
    assert any("step-00000012" in text for _, kind, text, _ in Run.open(run.path).events() if kind == "warning")


def test_a_folder_in_the_place_of_a_checkpoint_is_passed_over_and_goes(tmp_path):
    settings = {"steps": 12, "checkpoint_every": 3, "keep_checkpoints": 5}
    run = begun(small(tmp_path, **settings), tmp_path)
    fit(small(tmp_path, **settings), run)
    wanted = trace(run.path)
    newest = Run.open(run.path).checkpoints()[-1].path
    newest.unlink()
    newest.mkdir()
    (newest / "file").write_text("not ours")
    fit(small(tmp_path, **settings), Run.reopen(run.path))
    assert trace(run.path) == wanted


def test_a_finished_run_that_cannot_be_resumed_as_asked_stays_finished(tmp_path):
    run = begun(small(tmp_path), tmp_path)
    fit(small(tmp_path), run)
    before, settings = trace(run.path), Run.open(run.path).settings
    with pytest.raises(RunError, match="cannot go on by SGD"):
        fit(small(tmp_path, optimizer="SGD()", steps=20), Run.reopen(run.path))
    after = Run.open(run.path)
    assert after.status.state == "finished"
    assert "cannot be resumed like this: RunError" in after.status.message
    assert (after.status.step, after.status.best) == (12, after.restore().facts["best"])
    assert (trace(run.path), after.settings) == (before, settings)
    assert fit(small(tmp_path), Run.reopen(run.path)).state == "finished"


def test_a_resumed_run_has_the_settings_that_it_is_trained_with(tmp_path):
    run = begun(small(tmp_path), tmp_path)
    fit(small(tmp_path), run)
    fit(small(tmp_path, steps=15, weight_decay=0.5), Run.reopen(run.path))
    after = Run.open(run.path)
    assert (after.restore().step, after.described("steps")) == (15, 15)
    training = after.settings["training"]
    assert (training["steps"], training["weight_decay"]) == (15, 0.5)
    (text,) = [text for _, kind, text, _ in after.events() if kind == "restart"]
    assert "training.steps 12 → 15, training.weight_decay null → 0.5" in text
    again = task_of_run(after)
    assert again.experiment.training.steps == 15
    assert fit(again, Run.reopen(run.path)).state == "finished"


def test_settings_stay_where_nothing_is_left_to_train_with_others(tmp_path):
    run = begun(small(tmp_path), tmp_path)
    fit(small(tmp_path), run)
    fit(small(tmp_path, weight_decay=0.5), Run.reopen(run.path))
    assert Run.open(run.path).settings["training"]["weight_decay"] is None
