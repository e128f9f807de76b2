"""Stand-ins for SLURM's `sbatch`, `srun` and `scontrol` on one machine, for the scripts in examples/slurm.

    python slurm_commands.py sbatch [OPTIONS] SCRIPT [ARGUMENTS]

They set the environment that SLURM sets, and behave as SLURM does where the scripts depend on it:
`srun` kills its tasks when it is terminated, a job that is requeued runs again with the same id, and
node lists are in brackets. `sbatch` waits for the job. State is in the folder $SLURM_STAND_IN.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

STATE = Path(os.environ.get("SLURM_STAND_IN", "."))
HOST_PREFIX = "127.0.0."
"""All of these addresses are this machine: nodes have numbers from 1."""


def read_options(text: str) -> dict[str, str]:
    """Options of the `#SBATCH` lines of a script: long name without dashes → value."""
    words = re.findall(r"^#SBATCH +--(\S+)", text, flags=re.MULTILINE)
    return {word.partition("=")[0]: word.partition("=")[2] for word in words}


def expand_hosts(text: str) -> list[str]:
    """`node[07-09,12],login` → node07, node08, node09, node12, login."""
    hosts = []
    for part in re.findall(r"[^,\[]+(?:\[[^\]]*\])?", text):
        prefix, _, ranges = part.partition("[")
        for number_range in ranges.rstrip("]").split(",") if ranges else [""]:
            first, _, last = number_range.partition("-")
            numbers = range(int(first), int(last or first) + 1) if first else [None]
            hosts += [
                prefix if number is None else f"{prefix}{number:0{len(first)}d}"
                for number in numbers
            ]
    return hosts


def expand_array(text: str) -> list[int]:
    """`0-2,7%3` → 0, 1, 2, 7."""
    numbers = []
    for part in text.partition("%")[0].split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def sbatch(words: list[str]) -> int:
    """Run a script as a job, or as one job for each task of an array; requeue it on request."""
    count = next(index for index, word in enumerate(words) if not word.startswith("--"))
    typed = {word[2:].partition("=")[0]: word.partition("=")[2] for word in words[:count]}
    script = words[count]
    options = {**read_options(Path(script).read_text()), **typed}
    job_id, code = 100, 0
    array = expand_array(options["array"]) if "array" in options else [None]
    for task_id in array:
        job_id += 1
        environment = make_job_environment(options, job_id)
        if task_id is not None:
            environment |= {"SLURM_ARRAY_TASK_ID": str(task_id), "SLURM_ARRAY_JOB_ID": "100"}
        restarts = 0
        while True:
            environment["SLURM_RESTART_COUNT"] = str(restarts)
            job = subprocess.Popen(["bash", *words[count:]], env=environment)
            (STATE / "batch.pid").write_text(str(job.pid))
            code = max(code, job.wait())
            if not (STATE / "requeue").exists():
                break
            (STATE / "requeue").unlink()
            restarts, code = restarts + 1, 0
    return code


def make_job_environment(options: dict[str, str], job_id: int) -> dict[str, str]:
    """The variables that SLURM sets in a batch script, by its options."""
    nodes = options.get("nodes", "1")
    hosts = f"{HOST_PREFIX}1" if nodes == "1" else f"{HOST_PREFIX}[1-{nodes}]"
    tasks = options.get("ntasks-per-node", options.get("ntasks", "1"))
    return {
        **os.environ,
        "SLURM_JOB_ID": str(job_id),
        "SLURM_JOB_NAME": options.get("job-name", "job"),
        "SLURM_SUBMIT_DIR": str(Path.cwd()),
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_NNODES": nodes,
        "SLURM_JOB_NODELIST": hosts,
        "SLURM_NODELIST": hosts,
        "SLURM_NTASKS": str(int(nodes) * int(tasks)),
        "SLURM_CPUS_PER_TASK": options.get("cpus-per-task", "1"),
        "SLURM_PROCID": "0",
    }


def srun(words: list[str]) -> int:
    """Start the same command for every task, with its ranks; returns the highest exit code."""
    node_count, task_count = (int(os.environ[f"SLURM_{name}"]) for name in ("NNODES", "NTASKS"))
    tasks_per_node = task_count // node_count
    hosts = expand_hosts(os.environ["SLURM_JOB_NODELIST"])
    tasks = []
    for rank in range(task_count):
        node = rank // tasks_per_node
        environment = {
            **os.environ,
            "SLURM_PROCID": str(rank),
            "SLURM_LOCALID": str(rank % tasks_per_node),
            "SLURM_NODEID": str(node),
            "SLURMD_NODENAME": hosts[node],
            "SLURM_STEP_ID": "0",
            "SLURM_STEP_NUM_TASKS": str(task_count),
        }
        tasks.append(subprocess.Popen(words, env=environment))

    def kill_tasks(*_: object) -> None:
        for task in tasks:
            task.kill()

    signal.signal(signal.SIGTERM, kill_tasks)
    return max(abs(task.wait()) for task in tasks)


def scontrol(words: list[str]) -> int:
    """`show hostnames LIST` and `requeue JOB`."""
    if words[:2] == ["show", "hostnames"]:
        print("\n".join(expand_hosts(words[2])))
    elif words[0] == "requeue" and words[1] == os.environ["SLURM_JOB_ID"]:
        (STATE / "requeue").touch()
    else:
        return 1
    return 0


if __name__ == "__main__":
    sys.exit({"sbatch": sbatch, "srun": srun, "scontrol": scontrol}[sys.argv[1]](sys.argv[2:]))
