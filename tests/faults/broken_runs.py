"""Break a small run at every file operation in turn; used by test_broken_runs.py.

    LD_PRELOAD=break_files.so python broken_runs.py [FOLDER MODE [STRIDE]]

Without arguments it reads lines `["FOLDER", "MODE"]` from standard input.

The process is killed before every operation, and inside every write. A full disk is tried at every
third operation that needs space, a disk that fails, permanently or once, at every sixth of all,
unless STRIDE is another number.

One process imports everything and forks a child for each operation. The child writes a run and
reports its progress through a pipe; the operation breaks; the parent checks the run folder. Prints
one line of JSON: the operations, the ends of the children, and every failed check.
"""

import json
import math
import os
import shutil
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from neural.runs.errors import RunError
from neural.runs.run import Run
from tests.faults.breaker import Breaker, run_script

OPERATION_KINDS = {"half": "w", "full": "wc"}
"""Operations that a mode applies to; all if missing."""
STRIDES = {"full": 3, "fail": 6, "once": 6}
"""Every how many of these operations are broken, to save time; all if missing."""
REPORTED = 7
"""Exit code of a child that got a RunError."""
breaker = Breaker()


def make_tensors(seed: int) -> dict[str, torch.Tensor]:
    weight = torch.randn(71, 73, generator=torch.Generator().manual_seed(seed))
    return {
        "weight": weight,
        "tied": weight,
        "half": weight[:3].bfloat16(),
        "seed": torch.tensor(seed),
    }


def make_scalars(step: int, attempt: int = 0) -> dict[str, float]:
    return {"bad": math.nan, "loss": 1 / (step + attempt)}


class Stage(NamedTuple):
    """Actions on a run, and the expected content after them."""

    actions: tuple[Callable[[Run], object], ...]
    rows: dict[int, int]
    """Step → attempt that wrote it: FIRST, or SECOND after `delete_after`."""
    arrays: list[int]
    """Steps with arrays and maps."""
    newest: int | None
    """Seed of the newest checkpoint's tensors."""


def log(*steps: int, attempt: int = 0) -> Callable[[Run], None]:
    def write_rows(run: Run) -> None:
        for step in steps:
            run.log(step, make_scalars(step, attempt))
            if step % 2 == 0:
                run.log_arrays(step, {"entropy": np.full((2, 3), step + attempt)})
                run.log_maps(step, {"a": bytes([step]) * 3000})

    return write_rows


def write_event(run: Run) -> None:
    run.log_event(1, "switch", "to the second half")
    run.set_metadata("layers", ["a", "b"])


def save(step: int, seed: int, *, best: bool = False) -> Callable[[Run], None]:
    return lambda run: run.save(step, make_tensors(seed), {"seed": seed}, best=best, keep=1)


FIRST, SECOND = 0, 10
STAGES = [
    Stage((log(1, 2, 3), write_event, Run.commit), dict.fromkeys((1, 2, 3), FIRST), [2], None),
    Stage((save(3, 30, best=True),), dict.fromkeys((1, 2, 3), FIRST), [2], 30),
    Stage((log(4, 5), save(5, 50)), dict.fromkeys(range(1, 6), FIRST), [2, 4], 50),
    Stage((log(6), save(6, 60)), dict.fromkeys(range(1, 7), FIRST), [2, 4, 6], 60),
    Stage((save(6, 61),), dict.fromkeys(range(1, 7), FIRST), [2, 4, 6], 61),
    Stage((log(7), Run.commit), dict.fromkeys(range(1, 8), FIRST), [2, 4, 6], 61),
    Stage(
        (lambda run: run.heartbeat(7, best=0.5),), dict.fromkeys(range(1, 8), FIRST), [2, 4, 6], 61
    ),
    Stage((lambda run: run.delete_after(3),), dict.fromkeys((1, 2, 3), FIRST), [2], 30),
    Stage(
        (log(4, attempt=SECOND), save(4, 40)), {1: FIRST, 2: FIRST, 3: FIRST, 4: SECOND}, [2, 4], 40
    ),
    Stage(
        (log(5, attempt=SECOND), lambda run: run.finish("finished")),
        {1: FIRST, 2: FIRST, 3: FIRST, 4: SECOND, 5: SECOND},
        [2, 4],
        40,
    ),
]
EMPTY = Stage((), {}, [], None)


def write_run(root: Path, operation: int, mode: str, pipe: int) -> int:
    """In the child: write the run with one broken operation; returns the exit code."""
    breaker.break_at(root, operation, mode)

    def retry(action: Callable[[], object]) -> object:
        try:
            return action()
        except RunError as error:
            os.write(pipe, f"error {error}\n".encode())
            # an action that failed once must succeed when repeated, except the last
            if mode == "once" and number < len(STAGES):
                return action()
            raise

    run, number = None, 0
    try:
        created = retry(
            lambda: Run.create(
                root, "small", settings={"steps": 7}, program="network A {}", environment={}
            )
        )
        assert isinstance(created, Run)
        run = created
        os.write(pipe, f"path {run.path}\n".encode())
        for number, stage in enumerate(STAGES, 1):
            for action in stage.actions:
                retry(lambda action=action: action(run))
            os.write(pipe, f"done {number}\n".encode())
    except RunError as error:
        os.write(pipe, f"error {error}\n".encode())
        if run is not None and number < len(STAGES):
            # as the engine does; must not raise on a full disk either
            run.finish("failed", str(error))
        return REPORTED
    finally:
        os.write(pipe, f"kinds {breaker.operation_kinds()}\n".encode())
    return 0


def run_child(root: Path, operation: int, mode: str) -> tuple[int, dict[str, str]]:
    """Fork a child; returns its exit code (or minus the signal) and its last reports by kind."""
    read_end, pipe = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = write_run(root, operation, mode, pipe)
        except BaseException:
            os.write(pipe, f"raised {json.dumps(traceback.format_exc())}\n".encode())
        finally:
            os._exit(code)
    os.close(pipe)
    with os.fdopen(read_end, encoding="utf-8") as stream:
        reports = dict(line.rstrip("\n").split(" ", 1) for line in stream)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), reports


def has_content(run: Run, stage: Stage) -> bool:
    """Whether the rows, arrays and maps are exactly those after this stage."""
    rows = [
        (step, name, value)
        for step, attempt in stage.rows.items()
        for name, value in make_scalars(step, attempt).items()
    ]
    expected = {step: np.full((2, 3), step + stage.rows[step]) for step in stage.arrays}
    steps, arrays = (
        run.measure("entropy") if "entropy" in run.measure_names() else (np.empty(0), np.empty(0))
    )
    # NaN differs from NaN: compare as text
    return (
        repr(run.scalar_rows()) == repr(sorted(rows, key=lambda row: row[:2]))
        and steps.tolist() == stage.arrays
        and all(
            (array == expected[step]).all()
            for step, array in zip(stage.arrays, arrays, strict=True)
        )
        and run.map_steps() == stage.arrays
        and all(run.maps(step) == {"a": bytes([step]) * 3000} for step in stage.arrays)
    )


def check_run(root: Path, code: int, reports: dict[str, str]) -> list[str]:
    """Check what is left; returns the failures."""
    runs = sorted(root.glob("[!.]*")) if root.exists() else []
    if not runs:
        if "path" in reports:
            return ["the run has vanished"]
        try:
            Run.open(root).close()
        except RunError:
            return []
        return ["no run, but it opens"]
    if "path" in reports and Path(reports["path"]) not in runs:
        return ["the run is not where it was created"]
    reached = int(reports.get("done", 0))
    before, after = ([EMPTY, *STAGES, STAGES[-1]])[reached : reached + 2]
    failures = []
    with Run.open(runs[-1]) as run:
        stages = [stage for stage in (before, after) if has_content(run, stage)]
        if not stages:
            return [f"after stage {reached}: rows of a partial transaction: {run.scalar_rows()}"]
        checkpoint = run.load_checkpoint()
        newest = checkpoint.metadata["seed"] if checkpoint else None
        if newest not in (before.newest, after.newest):
            failures.append(f"after stage {reached}: the newest checkpoint is {newest}")
        if checkpoint:
            if checkpoint.step > run.scalar_rows()[-1][0]:
                failures.append(
                    f"after stage {reached}: checkpoint {newest} is there without its rows"
                )
            expected_tensors = make_tensors(checkpoint.metadata["seed"])
            if set(expected_tensors) != set(checkpoint.tensors) or checkpoint.skipped:
                failures.append(
                    f"the checkpoint {newest} is not what was saved: {checkpoint.skipped}"
                )
            failures += [
                f"{name} of {newest} is not what was saved"
                for name, tensor in checkpoint.tensors.items()
                if tensor.dtype != expected_tensors[name].dtype
                or not torch.equal(tensor, expected_tensors[name])
            ]
        events = [event[:3] for event in run.events()]
        expected = [(1, "switch", "to the second half")] if EMPTY not in stages else []
        if events != expected or run.metadata("layers") != (["a", "b"] if expected else None):
            failures.append(f"events or metadata do not belong to the rows: {events}")
        if run.settings != {"steps": 7} or run.program != "network A {}":
            failures.append("settings or program are not what was written")
        state = run.status.state
        # killed between its last status and its exit, it is finished
        if code < 0 and state not in (
            ("lost", "finished") if reached >= len(STAGES) - 1 else ("lost",)
        ):
            failures.append(f"killed after stage {reached}, and the status is {state}")
    return failures + check_resume(runs[-1])


def check_resume(path: Path) -> list[str]:
    """Resume the run, and check that no file is left behind; returns the failures."""
    run = Run.reopen(path)
    checkpoint = run.load_checkpoint()
    last = checkpoint.step if checkpoint else 0
    run.delete_after(last)
    before = [row for row in run.scalar_rows() if row[0] > last]
    run.log(last + 1, {"loss": 0.25})
    run.save(last + 1, make_tensors(last + 1), {}, keep=1)
    run.finish("finished")
    with Run.open(path) as reader:
        restored, failures = reader.load_checkpoint(), []
        if (
            before
            or restored is None
            or restored.step != last + 1
            or reader.status.state != "finished"
        ):
            failures.append("it cannot resume")
    kept = {info.path.stem.partition(".")[0] for info in Run.open(path).checkpoints()}
    leftovers = [
        file.name
        for file in (path / "checkpoints").iterdir()
        if file.name.partition(".")[0] not in kept
    ]
    if leftovers or list(path.glob(".*")):
        failures.append(f"left behind: {leftovers or list(path.glob('.*'))}")
    return failures


def main(folder: Path, mode: str, stride: int) -> None:
    """Break one operation after another."""
    torch.set_num_threads(1)
    breaker.break_at(folder, 0, mode)  # makes fsync a no-op in the checks too
    code, reports = run_child(folder / "unbroken", 0, mode)
    failures = [f"unbroken: {text}" for text in check_run(folder / "unbroken", code, reports)]
    kinds, ends, messages = reports["kinds"], Counter[str](), set()
    applicable = OPERATION_KINDS.get(mode, "wco")
    chosen = [operation for operation, kind in enumerate(kinds, 1) if kind in applicable]
    chosen = chosen[::stride]
    failures += [f"unbroken: exit code {code}: {reports.get('raised')}"] * (code != 0)
    for operation in chosen:
        root = folder / f"{operation}"
        code, reports = run_child(root, operation, mode)
        ends[{0: "finished", REPORTED: "reported", -9: "killed"}.get(code, "other")] += 1
        messages |= (
            {reports["error"].replace(str(root), "…").rpartition(": ")[2]}
            if "error" in reports
            else set()
        )
        if "raised" in reports:
            failures.append(f"{operation}: raised {reports['raised']}")
        try:
            failures += [f"{operation}: {text}" for text in check_run(root, code, reports)]
        except Exception:
            failures.append(f"{operation}: {traceback.format_exc()}")
        shutil.rmtree(root, ignore_errors=True)
    count = {"operations": len(kinds), "tried": len(chosen), "ends": ends}
    print(json.dumps({**count, "messages": sorted(messages), "failures": failures}))


if __name__ == "__main__":
    run_script(main, STRIDES)
