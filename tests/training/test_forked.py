"""Trials that are copies of the process that starts them, seen from a fresh process, as `neural dynamics` is one."""

import json
import subprocess
import sys

SCRIPT = """
import json, sys
from pathlib import Path
from neural.training.runner import Job
from neural.training.runners.forked import Forked

folder, found = Path(sys.argv[1]), {}
text = {"fine": "steps=3", "refused": "steps=0", "killed": "steps=100000"}
with Forked(3) as runner:
    for name, change in text.items():
        runner.start(Job(name, folder, (str(folder / "net.neural"), "--set", "data=digits", "--set",
                                        f"training.{change}", "--name", name)))
    while len(found) < 2:
        found |= {job.name: list(ended) for job, ended in runner.ended()}
    (slow,) = runner._running.values()
    slow.kill()
    while len(found) < 3:
        found |= {job.name: list(ended) for job, ended in runner.ended()}
print(json.dumps(found))
"""
NETWORK = """network Tiny {
  input: (64,)
  layers:
    Output(10, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""


def test_a_copy_trains_is_refused_or_dies_and_the_runner_knows(tmp_path):
    (tmp_path / "net.neural").write_text(NETWORK, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, timeout=500, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["fine"] == ["finished", ""]
    assert found["refused"][0] == "refused" and "steps" in found["refused"][1]
    assert found["killed"] == ["failed", "killed by SIGKILL"]
    assert len(list(tmp_path.glob("*_fine"))) == 1
    assert "Traceback" not in (tmp_path / "refused.log").read_text(encoding="utf-8")
