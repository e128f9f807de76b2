"""examples/slurm: the scripts are valid, train, copy back, and resume after a requeue.

SLURM's commands are stand-ins (slurm_commands.py); the trainings and signals are real.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from neural.core.settings import dump_settings
from neural.runs.run import Run
from tests.examples import slurm_commands
from tests.training.programs import create_small_experiment, read_run_contents

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "slurm").glob("*.sbatch"))
SBATCH_OPTIONS = """
account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment
constraint container contiguous core-spec cores-per-socket cpu-freq cpus-per-gpu
cpus-per-task deadline delay-boot dependency distribution error exclude exclusive export
export-file extra-node-info get-user-env gid gpu-bind gpu-freq gpus gpus-per-node
gpus-per-socket gpus-per-task gres gres-flags hint hold ignore-pbs input job-name
kill-on-invalid-dep licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu
mem-per-gpu mincpus network nice no-kill no-requeue nodefile nodelist nodes ntasks
ntasks-per-core ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output overcommit
oversubscribe parsable partition power prefer priority profile propagate qos quiet reboot
requeue reservation signal sockets-per-node spread-job switches test-only thread-spec
threads-per-core time time-min tmp uid use-min-nodes verbose wait wait-all-nodes wckey wrap
"""
"""Long options of sbatch 22.05, from its manual page."""
FLAGS = {"requeue"}
"""Options of the scripts that take no value."""
VALUE_FORMS = {
    "array": r"[\d,-]+(%\d+)?",
    "cpus-per-task": r"\d+",
    "job-name": r"[\w-]+",
    "mem": r"\d+[KMGT]?",
    "nodes": r"\d+",
    "ntasks": r"\d+",
    "ntasks-per-node": r"\d+",
    "open-mode": r"append|truncate",
    "output": r"[\w%.-]+",
    "signal": r"(B:)?[A-Z0-9]+@\d+",
    "time": r"\d\d:\d\d:\d\d",
}
TIMEOUT_SECONDS = 240


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_option_is_one_of_sbatch_and_bash_reads_the_script(script):
    text = script.read_text()
    options = slurm_commands.read_options(text)
    assert (
        {"job-name", "time", "output", "cpus-per-task"}
        <= set(options)
        <= set(SBATCH_OPTIONS.split())
    )
    for name, value in options.items():
        assert bool(value) == (name not in FLAGS)
        assert not value or re.fullmatch(VALUE_FORMS[name], value), f"--{name}={value}"
    # sbatch stops reading options at the first command
    first_command = re.search(r"^[^#\n]", text, flags=re.MULTILINE)
    assert first_command is not None
    assert "#SBATCH" not in text[first_command.start() :]
    assert text.startswith("#!/bin/bash\n")
    subprocess.run(["bash", "-n", script], check=True)


def test_the_stand_ins_read_node_lists_and_arrays_as_slurm_does():
    assert slurm_commands.expand_hosts("node[07-09,12],login") == [
        "node07",
        "node08",
        "node09",
        "node12",
        "login",
    ]
    assert slurm_commands.expand_array("0-2,7%3") == [0, 1, 2, 7]


class Cluster:
    """A folder with an experiment, and SLURM's commands on the path."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.commands = folder, folder / "bin"
        self.commands.mkdir()
        for name in ("sbatch", "srun", "scontrol"):
            self.add_command(name, f"'{slurm_commands.__file__}' {name}")
        self.add_command("neural", "-m neural")
        self.add_command("torchrun", "-m torch.distributed.run")

    def add_command(self, name: str, arguments: str) -> None:
        path = self.commands / name
        path.write_text(f"#!/bin/sh\nexec '{sys.executable}' {arguments} \"$@\"\n")
        path.chmod(0o755)

    def write_experiment(self, **training: object) -> None:
        settings = dump_settings(create_small_experiment(self.folder, **training))
        (self.folder / "small.yaml").write_text(json.dumps(settings))

    def submit(self, script: str, *words: str, **variables: str) -> subprocess.Popen[str]:
        """Start `sbatch`; the node's own disk is the folder `disk`."""
        (self.folder / "disk").mkdir(exist_ok=True)
        environment = {
            **os.environ,
            "PATH": f"{self.commands}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "SLURM_STAND_IN": str(self.folder),
            "TMPDIR": str(self.folder / "disk"),
            **variables,
        }
        environment.pop("SLURM_TMPDIR", None)
        options = [word for word in words if word.startswith("--")]
        arguments = [word for word in words if word not in options]
        path = ROOT / "examples" / "slurm" / f"{script}.sbatch"
        return subprocess.Popen(
            # one CPU: this machine may have no more
            ["sbatch", "--cpus-per-task=1", *options, path, *arguments],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, script: str, *words: str, **variables: str) -> str:
        """Submit, wait and return the output."""
        job = self.submit(script, *words, **variables)
        output, _ = job.communicate(timeout=TIMEOUT_SECONDS)
        assert job.returncode == 0, output
        return output

    def find_run(self, folder: str = "runs") -> Path:
        """The only run in the shared folder."""
        (path,) = (self.folder / folder).glob("[!.]*")
        return path


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


def test_two_nodes_learn_what_one_node_with_two_processes_learns(cluster, tmp_path):
    cluster.write_experiment(steps=6)
    cluster.run("one_node", "small.yaml", "--cpus-per-task=2", PROCESSES="2")
    first = read_run_contents(cluster.find_run())
    cluster.find_run().rename(tmp_path / "first")
    cluster.run("several_nodes", "small.yaml", PROCESSES="1")
    second = read_run_contents(cluster.find_run())
    assert second == first
    assert {name for _, name, _ in first["rows"]} >= {"train/loss", "valid/loss"}


def test_a_job_that_is_stopped_and_requeued_ends_like_an_undisturbed_one(cluster, tmp_path):
    steps = 150
    quick = {"tracking": {"track_every": 0}, "checkpoint_every": 10, "validate_every": 100}
    cluster.write_experiment(steps=steps, **quick)
    cluster.run("one_process", "small.yaml")
    undisturbed = read_run_contents(cluster.find_run())
    cluster.find_run().rename(tmp_path / "undisturbed")

    job = cluster.submit("requeue", "small.yaml")
    wait_for_checkpoint(tmp_path / "disk", job)
    os.kill(int((tmp_path / "batch.pid").read_text()), signal.SIGUSR1)
    output, _ = job.communicate(timeout=TIMEOUT_SECONDS)
    assert job.returncode == 0, output
    stopped_step = re.search(r"stopped after step (\d+)", output)
    assert stopped_step is not None, output
    assert int(stopped_step[1]) < steps
    assert "resumes" in output
    path = cluster.find_run(next((tmp_path / "runs").iterdir()).relative_to(tmp_path))
    contents = read_run_contents(path)
    assert [event[1] for event in Run.open(path).events()] == ["restart"]
    # there is one more checkpoint, at the step of the stop
    assert {**contents, "checkpoints": None} == {**undisturbed, "checkpoints": None}


def test_a_job_whose_training_dies_of_the_signal_is_requeued_too(cluster, tmp_path):
    """While it imports torch, a training cannot save. `neural` is a stand-in here."""
    script = """#!/bin/sh
if [ "$1" = train ]; then touch started; fi
if [ "$1 $SLURM_RESTART_COUNT" = "train 0" ] || [ "$5" = --every ]; then exec sleep 100; fi
echo "$SLURM_RESTART_COUNT: $*" >> record.txt
"""
    (cluster.commands / "neural").write_text(script)
    job = cluster.submit("requeue", "small.yaml")
    while not (tmp_path / "started").exists():
        assert job.poll() is None, job.communicate()[0]
        time.sleep(0.02)
    time.sleep(0.2)  # until the script has set its trap
    os.kill(int((tmp_path / "batch.pid").read_text()), signal.SIGUSR1)
    output, _ = job.communicate(timeout=TIMEOUT_SECONDS)
    assert job.returncode == 0, output
    lines = (tmp_path / "record.txt").read_text().splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["0:", "runs"],
        ["0:", "runs"],
        ["1:", "runs"],
        ["1:", "train"],
        ["1:", "runs"],
    ]


def wait_for_checkpoint(folder: Path, job: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not list(folder.glob("*/runs/[!.]*/checkpoints/*.json")):
        assert job.poll() is None, job.communicate()[0]
        assert time.monotonic() < deadline, "no checkpoint came"
        time.sleep(0.02)


def test_the_tasks_of_an_array_train_different_settings(cluster, tmp_path):
    """`neural` only records its arguments here."""
    (tmp_path / "record.py").write_text(
        "import os, sys\nopen(os.environ['RECORD'], 'a').write(' '.join(sys.argv[1:]) + '\\n')\n"
    )
    cluster.add_command("neural", f"'{tmp_path / 'record.py'}'")
    cluster.run("job_array", "small.yaml", "--array=0-5%3", RECORD=str(tmp_path / "record.txt"))
    lines = (tmp_path / "record.txt").read_text().splitlines()
    names = [re.findall(r"--name (\S+)", line)[0] for line in lines if line.startswith("train")]
    assert names == [
        "lr-0.001_seed-0",
        "lr-0.003_seed-0",
        "lr-0.01_seed-0",
        "lr-0.001_seed-1",
        "lr-0.003_seed-1",
        "lr-0.01_seed-1",
    ]
    merges = [line for line in lines if line.startswith("runs merge")]
    assert len(merges) == 6
    assert all(line.split()[3] == str(tmp_path / "runs") for line in merges)
