"""The runner that forks, on simulated systems where processes cannot be forked."""

from __future__ import annotations

import sys

import pytest

from tests.platforms.simulation import run_python

WORKER = "import sys\nprint('trained', sys.argv[2])\n"
RUN_JOB = """
from pathlib import Path
from neural.training.runner import TrialJob, TrialProcess
from neural.training.runners.forked import Forked
job = TrialJob("trial", Path("."), "{}", "worker")
with Forked(1) as runner:
    runner.start(job)
    assert type(runner._running[job]) is TrialProcess
    while not (ended := runner.poll_finished()):
        pass
    runner.start(job)
    runner.stop()
((_, result),) = ended
print(result.state)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the simulations need Linux")
@pytest.mark.parametrize("system", ["windows", "macos"])
def test_without_fork_every_trial_is_a_new_process(system, tmp_path):
    (tmp_path / "worker.py").write_text(WORKER)
    assert run_python(system, "-c", RUN_JOB, folder=tmp_path) == "finished\n"
    assert 'trained {"runs": "."}' in (tmp_path / "trial.log").read_text()
