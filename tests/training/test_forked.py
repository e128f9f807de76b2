"""The runner that forks, started in a fresh process as `neural dynamics` is."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from pathlib import Path
from neural.training.runner import TrialJob
from neural.training.runners.forked import Forked
from neural.workflows import train_worker

folder, results = Path(sys.argv[1]), {}
steps = {"finished": 3, "refused": 0, "killed": 100000}
with Forked(3) as runner:
    for name, count in steps.items():
        overrides = ["data=digits", f"training.steps={count}", f"name={name}"]
        request = json.dumps({"file": str(folder / "net.neural"), "overrides": overrides})
        runner.start(TrialJob(name, folder, request, train_worker.__name__))
    while len(results) < 2:
        results |= {job.name: list(result) for job, result in runner.poll_finished()}
    (slow,) = runner._running.values()
    slow.kill()
    while len(results) < 3:
        results |= {job.name: list(result) for job, result in runner.poll_finished()}
print(json.dumps(results))
"""
NETWORK = """network Tiny {
  input: (64,)
  layers:
    Output(10, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""


def test_a_forked_trial_finishes_is_refused_or_is_killed(tmp_path):
    (tmp_path / "net.neural").write_text(NETWORK, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["finished"] == ["finished", ""]
    assert results["refused"][0] == "refused" and "steps" in results["refused"][1]
    assert results["killed"] == ["failed", "killed by SIGKILL"]
    assert len(list(tmp_path.glob("*_finished"))) == 1
    assert "Traceback" not in (tmp_path / "refused.log").read_text(encoding="utf-8")
