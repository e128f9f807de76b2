"""Killed at random instants and resumed, a training is what it would have been: to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from neural.tracking.run import Run
from neural.training.engine import fit
from tests.training.programs import begun, small, trace

ROOT = Path(__file__).parents[2]


def killed(folder: Path, seed: int, kills: int, **settings) -> tuple[Path, Path, int]:
    """The run that was left alone, the one that was killed, and how often it was."""
    command = [sys.executable, "-m", "tests.training.killed", folder, str(seed), str(kills), json.dumps(settings)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})  # fmt: skip
    assert done.returncode == 0, done.stderr
    (straight,) = (folder / "straight").glob("[!.]*")
    (resumed,) = (folder / "runs").glob("[!.]*")
    return straight, resumed, int(done.stdout.split()[-1])


@pytest.mark.parametrize(
    ("seed", "kills", "settings"),
    [
        (1, 10, {"gradient_accumulation_steps": 2, "ema": 0.9, "scheduler": "cosine"}),
        (2, 3, {"optimizer": "Muon()", "scheduler": "plateau", "plateau_patience": 1, "patience": 500}),
    ],
    ids=["accumulated, averaged, cosine", "Muon, plateau, patience"],
)
def test_two_hundred_steps_killed_many_times_are_the_same_as_straight_ones(tmp_path, seed, kills, settings):
    settings |= {"steps": 200, "checkpoint_every": 7, "validate_every": 25}
    straight, resumed, times = killed(tmp_path, seed, kills, **settings)
    assert times == kills
    one, other = trace(straight), trace(resumed)
    assert one["step"] == 200
    assert one == other
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
    last = []

    def tell(progress):
        last.append((progress.step, Run.open(run.path).scalars("train/loss")[0][-1]))

    fit(small(tmp_path, steps=12, checkpoint_every=3, keep_checkpoints=5), Run.reopen(run.path), tell=tell)
    assert all(seen <= step for step, seen in last), "rows of steps that were not made again yet"
    assert trace(run.path) == wanted
    assert any("step-00000012" in text for _, kind, text, _ in Run.open(run.path).events() if kind == "warning")
