"""What this machine has for the laboratory, and how to get what is missing."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Literal

from neural.modules.late import torch

State = Literal["good", "missing", "wrong"]
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
LITTLE = 1 << 30
"""Bytes of free disk below which a training may end early."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    way: str = ""
    """What to do about it, where something is to be done."""


def examined() -> Iterator[Check]:
    """Everything, one after the other; a check that breaks is itself a finding."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as problem:   # a doctor that dies of the illness helps nobody
            yield Check(check.__name__.strip("_"), "wrong", f"{type(problem).__name__}: {problem}")


def _python() -> Iterator[Check]:
    yield Check("python", "good", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _packages() -> Iterator[Check]:
    """What a plain installation has."""
    for name in ("neural", *dict.fromkeys(_named(line) for line in _required() if "extra ==" not in line)):
        found = _version(name)
        way = "" if found else f"pip install '{name}'"
        yield Check(name, "good" if found else "wrong", found or "not installed", way)


def _extras() -> Iterator[Check]:
    """What can be added; those for developers are left out."""
    lines = [(match[1], _named(line)) for line in _required() if (match := re.search(r"extra == ['\"](\w+)", line))]
    for extra in dict.fromkeys(extra for extra, _ in lines if extra != "dev"):
        names = [name for one, name in lines if one == extra]
        gone = [name for name in names if _version(name) is None]
        found = ", ".join(f"{name} {_version(name) or '–'}" for name in names)
        way = f"pip install 'neural[{extra}]'" if gone else ""
        yield Check(f"[{extra}]", "missing" if gone else "good", found, way)


def _processors() -> Iterator[Check]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = torch.get_num_threads()
    found = f"{cores} core{'s' * (cores != 1)}, torch uses {threads} thread{'s' * (threads != 1)}"
    if threads > cores:
        yield Check("threads", "wrong", found, f"more threads than cores wait for each other: OMP_NUM_THREADS={cores}")
    else:
        yield Check("threads", "good", found)


def _devices() -> Iterator[Check]:
    names = [torch.cuda.get_device_name(one) for one in range(torch.cuda.device_count())]
    names += ["Apple GPU"] if torch.backends.mps.is_available() else []
    yield Check("devices", "good", ", ".join(names) or "no GPU; everything runs on the CPU")


def _memory() -> Iterator[Check]:
    whole = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    yield Check("memory", "good", f"{whole / 2**30:.1f} GiB")


def _disk() -> Iterator[Check]:
    """Room, and whether run folders can be written where the user stands."""
    free = shutil.disk_usage(Path.cwd()).free
    short = free < LITTLE
    yield Check("disk", "wrong" if short else "good", f"{free / 2**30:.1f} GiB free here",
                "make room before a training" if short else "")  # fmt: skip
    try:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".neural-doctor-") as folder:
            store = sqlite3.connect(Path(folder) / "rows.sqlite")
            (mode,) = store.execute("PRAGMA journal_mode=WAL").fetchone()
            store.close()
    except (OSError, sqlite3.Error) as problem:
        yield Check("run folders", "wrong", f"cannot be written here: {problem}", "go to another folder, or `--runs`")
        return
    shared = "this disk does not lock files as sqlite needs it (a network disk?); write runs to a local one"
    kept = f"sqlite {sqlite3.sqlite_version}, write-ahead log" if mode == "wal" else f"sqlite in mode {mode}"
    yield Check("run folders", "good" if mode == "wal" else "wrong", kept, "" if mode == "wal" else shared)


def _embedded() -> Iterator[Check]:
    """Data that needs no download."""
    from neural.tasks.cutting.collection import handbook
    from neural.tasks.data.find import known

    documents = handbook("sentences")
    sets = ", ".join(known())
    yield Check("data", "good", f"{len(documents)} topics of Python's handbook; by name: {sets}")


def _segmenter() -> Iterator[Check]:
    from neural.segmenting import SHIPPED, shipped

    shipped()
    size = sum(one.stat().st_size for one in SHIPPED.parent.glob(f"{SHIPPED.stem}.*"))
    yield Check("segmenter", "good", f"ships with the package, {size / 1e6:.1f} MB")


def _browser() -> Iterator[Check]:
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    yield Check("browser", "good" if found else "missing", Path(found).name if found else "none found",
                "" if found else "install chromium for `neural report --pdf`")  # fmt: skip


CHECKS: tuple[Callable[[], Iterator[Check]], ...] = (
    _python, _packages, _extras, _processors, _devices, _memory, _disk, _embedded, _segmenter, _browser,
)  # fmt: skip


def _required() -> list[str]:
    return requires("neural") or []


def _named(line: str) -> str:
    return re.split(r"[^\w.-]", line, maxsplit=1)[0]


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def advice(checks: list[Check]) -> str:
    """The last line: whether one can begin."""
    wrong = [one.name for one in checks if one.state == "wrong"]
    if wrong:
        return f"to mend first: {', '.join(wrong)}"
    return f"all that is needed is here; python is {sys.executable}"
