"""A small run, broken at every file operation in turn; run by test_broken_runs.py under break_files.c.

    LD_PRELOAD=break_files.so python broken_runs.py FOLDER HOW

Every operation is killed, every write is also cut in half. A full disk is tried at every third operation that needs
space, a disk that fails, for good or once, at every sixth of all.

One process imports everything and forks a child for each operation. The child writes a run and says through a pipe how
far it is; the operation breaks; the parent looks at what is left. Prints one line of JSON: the operations, what became
of the children, and every promise that was not kept.
"""

import json
import math
import os
import shutil
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from neural.tracking.run import Run
from neural.tracking.trouble import RunError
from tests.faults.breaker import Breaker

KINDS = {"half": "w", "full": "wc"}
EVERY = {"full": 3, "fail": 6, "once": 6}
REFUSED = 7
"""Exit code of a child that was told by a RunError."""
breaker = Breaker()


def tensors(seed: int) -> dict[str, torch.Tensor]:
    weight = torch.randn(71, 73, generator=torch.Generator().manual_seed(seed))
    return {"weight": weight, "tied": weight, "half": weight[:3].bfloat16(), "seed": torch.tensor(seed)}


def numbers(step: int, turn: int = 0) -> dict[str, float]:
    return {"bad": math.nan, "loss": 1 / (step + turn)}


class Part(NamedTuple):
    """One thing done to a run, and what must be there after it: rows, steps with arrays, the newest checkpoint."""

    does: tuple[Callable[[Run], object], ...]
    rows: dict[int, int]
    """Which turn wrote each step: the first time, or again after going back."""
    arrays: list[int]
    newest: int | None
    """The seed of its tensors."""


def log(*steps: int, turn: int = 0) -> Callable[[Run], None]:
    def does(run: Run) -> None:
        for step in steps:
            run.log(step, numbers(step, turn))
            if step % 2 == 0:
                run.log_arrays(step, {"entropy": np.full((2, 3), step + turn)})
                run.log_maps(step, {"a": bytes([step]) * 3000})

    return does


def told(run: Run) -> None:
    run.event(1, "switch", "to the second half")
    run.describe("layers", ["a", "b"])


def save(step: int, seed: int, *, best: bool = False) -> Callable[[Run], None]:
    return lambda run: run.save(step, tensors(seed), {"seed": seed}, best=best, keep=1)


ONE, TWO = 0, 10
PARTS = [
    Part((log(1, 2, 3), told, Run.commit), dict.fromkeys((1, 2, 3), ONE), [2], None),
    Part((save(3, 30, best=True),), dict.fromkeys((1, 2, 3), ONE), [2], 30),
    Part((log(4, 5), save(5, 50)), dict.fromkeys(range(1, 6), ONE), [2, 4], 50),
    Part((log(6), save(6, 60)), dict.fromkeys(range(1, 7), ONE), [2, 4, 6], 60),
    Part((save(6, 61),), dict.fromkeys(range(1, 7), ONE), [2, 4, 6], 61),
    Part((log(7), Run.commit), dict.fromkeys(range(1, 8), ONE), [2, 4, 6], 61),
    Part((lambda run: run.beat(7, best=0.5),), dict.fromkeys(range(1, 8), ONE), [2, 4, 6], 61),
    Part((lambda run: run.forget_after(3),), dict.fromkeys((1, 2, 3), ONE), [2], 30),
    Part((log(4, turn=TWO), save(4, 40)), {1: ONE, 2: ONE, 3: ONE, 4: TWO}, [2, 4], 40),
    Part((log(5, turn=TWO), lambda run: run.finish("finished")), {1: 0, 2: 0, 3: 0, 4: TWO, 5: TWO}, [2, 4], 40),
]
NOTHING = Part((), {}, [], None)


def child(root: Path, n: int, how: str, pipe: int) -> int:
    """Write the run, with the n-th operation broken; the exit code."""
    breaker.at(root, n, how)
    once = how == "once"

    def again(does: Callable[[], object]) -> object:
        try:
            return does()
        except RunError as error:
            os.write(pipe, f"told {error}\n".encode())
            if once and number < len(PARTS):   # what failed once must work when tried again, but for the end
                return does()
            raise

    run, number = None, 0
    try:
        made = again(lambda: Run.create(root, "small", settings={"steps": 7}, program="network A {}", environment={}))
        assert isinstance(made, Run)
        run = made
        os.write(pipe, f"path {run.path}\n".encode())
        for number, part in enumerate(PARTS, 1):
            for does in part.does:
                again(lambda does=does: does(run))
            os.write(pipe, f"done {number}\n".encode())
    except RunError as error:
        os.write(pipe, f"told {error}\n".encode())
        if run is not None and number < len(PARTS):
            run.finish("failed", str(error))   # as the engine does; must not raise on a full disk either
        return REFUSED
    finally:
        os.write(pipe, f"kinds {breaker.kinds()}\n".encode())
    return 0


def broken(root: Path, n: int, how: str) -> tuple[int, dict[str, str]]:
    """Fork a child; its exit code, or minus the signal, and the last of each kind of thing that it said."""
    ends, pipe = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = child(root, n, how, pipe)
        except BaseException:
            os.write(pipe, f"raised {json.dumps(traceback.format_exc())}\n".encode())
        finally:
            os._exit(code)
    os.close(pipe)
    with os.fdopen(ends, encoding="utf-8") as stream:
        said = dict(line.rstrip("\n").split(" ", 1) for line in stream)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said


def same(run: Run, part: Part) -> bool:
    """Whether all rows are those after this part, each of them whole."""
    rows = [(step, name, value) for step, turn in part.rows.items() for name, value in numbers(step, turn).items()]
    turns = {step: np.full((2, 3), step + part.rows[step]) for step in part.arrays}
    steps, arrays = run.measure("entropy") if "entropy" in run.measures() else (np.empty(0), np.empty(0))
    # a NaN of ours and theirs are two: compare as text
    return (
        repr(run.rows()) == repr(sorted(rows, key=lambda row: row[:2]))
        and steps.tolist() == part.arrays
        and all((one == turns[step]).all() for step, one in zip(part.arrays, arrays, strict=True))
        and run.map_steps() == part.arrays
        and all(run.maps(step) == {"a": bytes([step]) * 3000} for step in part.arrays)
    )


def problems(root: Path, code: int, said: dict[str, str]) -> list[str]:
    """The promises that were not kept."""
    runs = sorted(root.glob("[!.]*")) if root.exists() else []
    if not runs:
        if "path" in said:
            return ["the run has vanished"]
        try:
            Run.open(root).close()
        except RunError:
            return []
        return ["no run, but it opens"]
    if "path" in said and Path(said["path"]) not in runs:
        return ["the run is not where it was created"]
    reached = int(said.get("done", 0))
    before, after = ([NOTHING, *PARTS, PARTS[-1]])[reached : reached + 2]
    found = []
    with Run.open(runs[-1]) as run:
        then = [part for part in (before, after) if same(run, part)]
        if not then:
            return [f"after part {reached}: rows are of no whole transaction: {run.rows()}"]
        checkpoint = run.restore()
        newest = checkpoint.facts["seed"] if checkpoint else None
        if newest not in (before.newest, after.newest):
            found.append(f"after part {reached}: the newest checkpoint is {newest}")
        if checkpoint:
            if checkpoint.step > run.rows()[-1][0]:
                found.append(f"after part {reached}: checkpoint {newest} is there without its rows")
            right = tensors(checkpoint.facts["seed"])
            if set(right) != set(checkpoint.tensors) or checkpoint.skipped:
                found.append(f"the checkpoint {newest} is not what was saved: {checkpoint.skipped}")
            found += [
                f"{name} of {newest} is not what was saved" for name, tensor in checkpoint.tensors.items()
                if tensor.dtype != right[name].dtype or not torch.equal(tensor, right[name])
            ]  # fmt: skip
        happened = [event[:3] for event in run.events()]
        expected = [(1, "switch", "to the second half")] if NOTHING not in then else []
        if happened != expected or run.described("layers") != (["a", "b"] if expected else None):
            found.append(f"events or descriptions are not those of the rows: {happened}")
        if run.settings != {"steps": 7} or run.program != "network A {}":
            found.append("settings or program are not what was written")
        state = run.status.state
        # killed after its last status but before its exit, it is finished all the same
        if code < 0 and state not in (("lost", "finished") if reached >= len(PARTS) - 1 else ("lost",)):
            found.append(f"killed after part {reached}, and the status is {state}")
    return found + _goes_on(runs[-1])


def _goes_on(path: Path) -> list[str]:
    """The run can be taken up again, and leaves nothing behind."""
    run = Run.reopen(path)
    checkpoint = run.restore()
    last = checkpoint.step if checkpoint else 0
    run.forget_after(last)
    before = [row for row in run.rows() if row[0] > last]
    run.log(last + 1, {"loss": 0.25})
    run.save(last + 1, tensors(last + 1), {}, keep=1)
    run.finish("finished")
    with Run.open(path) as again:
        restored, wrong = again.restore(), []
        if before or restored is None or restored.step != last + 1 or again.status.state != "finished":
            wrong.append("it cannot be taken up again")
    kept = {one.path.stem.partition(".")[0] for one in Run.open(path).checkpoints()}
    strange = [file.name for file in (path / "checkpoints").iterdir() if file.name.partition(".")[0] not in kept]
    if strange or list(path.glob(".*")):
        wrong.append(f"left behind: {strange or list(path.glob('.*'))}")
    return wrong


def main(folder: Path, how: str) -> None:
    """Break every operation, one after another."""
    torch.set_num_threads(1)
    breaker.at(folder, 0, how)   # only so that the looking, too, does not wait for the disk
    code, said = broken(folder / "whole", 0, how)
    wrong = [f"unbroken: {text}" for text in problems(folder / "whole", code, said)]
    kinds, ends, words = said["kinds"], Counter[str](), set()
    chosen = [n for n, kind in enumerate(kinds, 1) if kind in KINDS.get(how, "wco")]
    chosen = chosen[:: EVERY.get(how, 1)]
    wrong += [f"unbroken: exit code {code}: {said.get('raised')}"] * (code != 0)
    for n in chosen:
        root = folder / f"{n}"
        code, said = broken(root, n, how)
        ends[{0: "finished", REFUSED: "told", -9: "killed"}.get(code, "other")] += 1
        words |= {said["told"].replace(str(root), "…").rpartition(": ")[2]} if "told" in said else set()
        if "raised" in said:
            wrong.append(f"{n}: raised {said['raised']}")
        try:
            wrong += [f"{n}: {text}" for text in problems(root, code, said)]
        except Exception:
            wrong.append(f"{n}: {traceback.format_exc()}")
        shutil.rmtree(root, ignore_errors=True)
    count = {"operations": len(kinds), "tried": len(chosen), "ends": ends}
    print(json.dumps({**count, "told": sorted(words), "wrong": wrong}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
