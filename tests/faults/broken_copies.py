"""Break copies and conversions of a run at every file operation; used by test_broken_copies.py.

    LD_PRELOAD=break_files.so python broken_copies.py [FOLDER MODE [STRIDE]]

Without arguments it reads lines `["FOLDER", "MODE"]` from standard input.

The run is copied to a folder that is empty, and to one that has an older copy. A child copies; one
of its operations breaks; the parent checks the target: the old copy, the new one, or none. Then it
copies again. A run of version 2 is upgraded in the same way. Prints one line of JSON: the operations,
the ends of the children, and every failure.
"""

import json
import os
import shutil
import tarfile
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from neural.runs.copy import compare_runs, copy_run
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.runs.upgrade import upgrade_run
from tests.faults.breaker import Breaker, run_script

OPERATION_KINDS = {"half": "w", "full": "wc"}
"""Operations that a mode applies to; all if missing."""
STRIDES = {"half": 2, "full": 4}
"""Every how many of these operations are broken, to save time; all if missing."""
ARCHIVE = Path(__file__).parents[1] / "runs" / "version_2.tar.xz"
SAFE_EXTRACTION = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""The archive is ours; Python 3.11.2 has no filters, and 3.12 warns without one."""
"""A run of version 2."""
REPORTED = 7
"""Exit code of a child that got a RunError."""
EVALUATION = "evaluation.json"
"""A file that only the older copy has; it must survive."""
breaker = Breaker()


def write_source(root: Path) -> tuple[Path, Path]:
    """Write a run with checkpoints and a run inside it; returns it and an older copy of it."""
    run = Run.create(root, "small", settings={"steps": 7}, program="network A {}", environment={})
    run.log(1, {"loss": 0.5})
    run.log_maps(1, {"a": bytes(3000)})
    run.save(1, {"weight": torch.arange(5000.0)}, {"seed": 1}, best=True)
    (run.path / "members").mkdir()
    member = Run.create(run.path / "members", "seed", settings={}, program=None, environment={})
    member.log(1, {"loss": 0.25})
    member.save(1, {"weight": torch.arange(70.0)}, {})
    member.finish("finished")
    (run.path / "calibration.json").write_text("{}")
    older = root / "older" / run.path.name
    copy_run(run.path, older)
    run.log(2, {"loss": 0.25})
    run.save(2, {"weight": -torch.arange(5000.0)}, {"seed": 2}, best=True, keep=1)
    run.finish("finished")
    return run.path, older


def read_content(path: Path) -> tuple[object, ...]:
    """What identifies the state of a copy; RunError or OSError if it is damaged."""
    with Run.open(path) as run:
        checkpoint = run.load_checkpoint()
        assert checkpoint is not None
        assert not checkpoint.skipped
        (member,) = (path / "members").iterdir()
        with Run.open(member) as member_run:
            member_checkpoint = member_run.load_checkpoint()
            assert member_checkpoint is not None
            member_rows = member_run.scalar_rows()
        return (
            run.scalar_rows(),
            run.maps(1),
            checkpoint.metadata,
            checkpoint.tensors["weight"].tolist(),
            member_rows,
            member_checkpoint.tensors["weight"].tolist(),
            (path / "calibration.json").read_text(),
        )


def run_child(
    action: Callable[[], object], folder: Path, operation: int, mode: str
) -> tuple[int, str]:
    """Run `action` in a forked child, in which an operation below `folder` breaks.

    Returns its exit code, or minus the signal, and its message, or the kinds of its operations.
    """
    read_end, pipe = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            breaker.break_at(folder, operation, mode)
            action()
            os.write(pipe, breaker.operation_kinds().encode())
            code = 0
        except RunError as error:
            os.write(pipe, str(error).encode())
            code = REPORTED
        except BaseException:
            os.write(pipe, traceback.format_exc().encode())
        finally:
            os._exit(code)
    os.close(pipe)
    with os.fdopen(read_end, encoding="utf-8") as stream:
        text = stream.read()
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text


class Copy:
    """A run is copied to a new path, or to that of an older copy."""

    def __init__(self, source: Path, older: Path | None) -> None:
        self.source, self.older = source, older
        self.content = read_content(source)
        self.allowed_contents = [self.content] + ([read_content(older)] if older else [])

    def prepare(self, root: Path) -> Path:
        """Write what is there before; returns the path of the copy."""
        root.mkdir()
        target = root / self.source.name
        if self.older is not None:
            copy_run(self.older, target)
            (target / EVALUATION).write_text("{}")
        return target

    def run(self, target: Path) -> None:
        copy_run(self.source, target)

    def check(self, target: Path) -> list[str]:
        """Check what the broken copy left, and copy again; returns the failures."""
        failures = []
        if target.exists() and read_content(target) not in self.allowed_contents:
            failures.append("the target is neither the old copy nor the new one")
        copy_run(self.source, target)
        if read_content(target) != self.content or compare_runs(self.source, target) != "same":
            failures.append("copied again, it is not the source")
        if self.older is not None and not (target / EVALUATION).exists():
            failures.append(f"{EVALUATION} of the old copy is lost")
        return failures + list_leftovers(target.parent, {target.name})


class Upgrade:
    """A run of version 2 is converted."""

    def __init__(self, folder: Path) -> None:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder, **SAFE_EXTRACTION)
        (self.source,) = folder.iterdir()
        self.content = self.read(upgrade_run(self.source))

    def prepare(self, root: Path) -> Path:
        shutil.copytree(self.source, root / "run")
        return root / "run-upgraded"

    def run(self, target: Path) -> None:
        upgrade_run(target.with_name("run"))

    def read(self, path: Path) -> tuple[object, ...]:
        with Run.open(path) as run:
            checkpoint = run.load_checkpoint()
            assert checkpoint is not None
            tensors = {name: tensor.tolist() for name, tensor in checkpoint.tensors.items()}
            return repr(run.scalar_rows()), run.maps(checkpoint.step), tensors

    def check(self, target: Path) -> list[str]:
        """Check the new folder, or convert again where there is none; returns the failures."""
        if not target.exists():
            self.run(target)
        failures = ["the new folder is incomplete"] * (self.read(target) != self.content)
        return failures + list_leftovers(target.parent, {"run", target.name})


def list_leftovers(folder: Path, names: set[str]) -> list[str]:
    """A failure if there are other files than `names`."""
    leftovers = [path.name for path in folder.iterdir() if path.name not in names]
    return [f"left behind: {leftovers}"] if leftovers else []


def main(folder: Path, mode: str, stride: int) -> None:
    """Break one operation of each case after another."""
    torch.set_num_threads(1)
    breaker.break_at(folder, 0, mode)  # makes fsync a no-op in the checks too
    source, older_copy = write_source(folder)
    cases = {
        "new": Copy(source, None),
        "replaced": Copy(source, older_copy),
        "upgraded": Upgrade(folder / "version_2"),
    }
    operations, tried, ends, messages, failures = 0, 0, Counter[str](), set(), list[str]()
    for name, case in cases.items():
        target = case.prepare(folder / name)
        code, kinds = run_child(partial(case.run, target), target.parent, 0, mode)
        failures += [f"{name}, unbroken: {kinds}"] * (code != 0)
        operations += len(kinds)
        applicable = OPERATION_KINDS.get(mode, "wco")
        chosen = [index for index, kind in enumerate(kinds, 1) if kind in applicable]
        for operation in chosen[::stride]:
            tried += 1
            target = case.prepare(folder / f"{name}-{operation}")
            code, message = run_child(partial(case.run, target), target.parent, operation, mode)
            ends[{0: "finished", REPORTED: "reported", -9: "killed"}.get(code, "other")] += 1
            if code == REPORTED:
                messages.add(message.rpartition(": ")[2])
            elif code not in (0, -9):
                failures.append(f"{name}, operation {operation}: {message}")
            try:
                problems = case.check(target)
            except Exception:
                problems = [traceback.format_exc()]
            failures += [f"{name}, operation {operation}: {text}" for text in problems]
            shutil.rmtree(target.parent)
    count = {"operations": operations, "tried": tried, "ends": ends}
    print(json.dumps({**count, "messages": sorted(messages), "failures": failures}))


if __name__ == "__main__":
    run_script(main, STRIDES)
