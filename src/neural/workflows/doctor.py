"""Checks of the installation and the machine, with a fix for what is missing: `neural doctor`."""

from __future__ import annotations

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

from neural.core.distribution import DISTRIBUTION_NAME, format_install_command
from neural.core.platform_support import count_cores, physical_memory_bytes
from neural.native.library import (
    available_levels,
    connect_torch_threads,
    current_level,
    load_library,
    native_available,
)
from neural.nn.lazy_torch import torch
from neural.runs.file_system import find_network_file_system

CheckState = Literal["good", "missing", "wrong"]
"""A thing is "missing" if it is optional, "wrong" if it must be fixed."""
COLLECTIONS = ("all", "dev")
"""Extras that repeat the packages of others."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
MIN_FREE_DISK_BYTES = 1 << 30
"""With less free disk space the check is "wrong": a training may fill the disk."""


@dataclass(frozen=True)
class SystemCheck:
    """Result of one check."""

    name: str
    state: CheckState
    detail: str
    fix: str = ""
    """A command or an instruction; empty if nothing is to be done."""


def run_checks() -> Iterator[SystemCheck]:
    """Run all checks, one after the other. A check that raises has the state "wrong"."""
    for check in CHECKS:
        try:
            yield from check()
        except Exception as error:  # a damaged installation can fail anywhere; report the rest
            name = check.__name__.removeprefix("_check_")
            yield SystemCheck(name, "wrong", f"{type(error).__name__}: {error}")


def _check_python() -> Iterator[SystemCheck]:
    yield SystemCheck(
        "python", "good", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    )


def _check_packages() -> Iterator[SystemCheck]:
    """Required packages."""
    for name in (
        DISTRIBUTION_NAME,
        *dict.fromkeys(
            _parse_package_name(line) for line in _read_requirements() if "extra ==" not in line
        ),
    ):
        installed = _installed_version(name)
        yield SystemCheck(
            name,
            "good" if installed else "wrong",
            installed or "not installed",
            "" if installed else f'pip install "{name}"',
        )


def _check_extras() -> Iterator[SystemCheck]:
    """Optional packages, by extra; without those for developers, and without `all` of them."""
    lines = [  # (extra, package)
        (match[1], _parse_package_name(line))
        for line in _read_requirements()
        if (match := re.search(r"extra == ['\"]([\w-]+)", line))
    ]
    for extra in dict.fromkeys(extra for extra, _ in lines if extra not in COLLECTIONS):
        versions = {
            name: _installed_version(name) for line_extra, name in lines if line_extra == extra
        }
        detail = ", ".join(f"{name} {installed or '–'}" for name, installed in versions.items())
        if all(versions.values()):
            yield SystemCheck(f"[{extra}]", "good", detail)
        else:
            yield SystemCheck(f"[{extra}]", "missing", detail, format_install_command(extra))


def _check_threads() -> Iterator[SystemCheck]:
    cores = count_cores()
    threads = torch.get_num_threads()
    detail = f"{cores} core{'s' * (cores != 1)}, torch uses {threads} thread{'s' * (threads != 1)}"
    if threads > cores:
        fix = f"more threads than cores are slow: set OMP_NUM_THREADS={cores}"
        yield SystemCheck("threads", "wrong", detail, fix)
    else:
        yield SystemCheck("threads", "good", detail)


def _check_kernels() -> Iterator[SystemCheck]:
    """The native library: present, and at which instruction set."""
    if load_library() is None:
        fix = "install a wheel, or a C++ compiler and then the package again (docs/kernels.md)"
        yield SystemCheck(
            "kernels", "missing", "not built; plain torch is used, which is slower", fix
        )
    elif not native_available():
        yield SystemCheck("kernels", "good", "switched off by NEURAL_KERNELS=off")
    else:
        threads = "torch's threads" if connect_torch_threads() else "one thread"
        levels = ", ".join(available_levels())
        yield SystemCheck("kernels", "good", f"{current_level()} (of {levels}) on {threads}")


def _check_devices() -> Iterator[SystemCheck]:
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    names += ["Apple GPU"] if torch.backends.mps.is_available() else []
    yield SystemCheck("devices", "good", ", ".join(names) or "no GPU; everything runs on the CPU")


def _check_memory() -> Iterator[SystemCheck]:
    total_bytes = physical_memory_bytes()
    detail = "unknown size" if total_bytes is None else f"{total_bytes / 2**30:.1f} GiB"
    yield SystemCheck("memory", "good", detail)


def _check_disk() -> Iterator[SystemCheck]:
    """Free space, and whether run folders can be written in the working directory."""
    free = shutil.disk_usage(Path.cwd()).free
    is_short = free < MIN_FREE_DISK_BYTES
    yield SystemCheck(
        "disk",
        "wrong" if is_short else "good",
        f"{free / 2**30:.1f} GiB free in this folder",
        "free some disk space before a training" if is_short else "",
    )
    try:
        with tempfile.TemporaryDirectory(dir=Path.cwd(), prefix=".neural-doctor-") as folder:
            # a run saves its metrics in a database with a write-ahead log
            database = sqlite3.connect(Path(folder) / "rows.sqlite")
            (mode,) = database.execute("PRAGMA journal_mode=WAL").fetchone()
            database.close()
    except (OSError, sqlite3.Error) as error:
        yield SystemCheck(
            "run folders",
            "wrong",
            f"cannot be written in this folder: {error}",
            "change to another folder, or use `--runs`",
        )
        return
    if mode == "wal" and (file_system := find_network_file_system(Path.cwd())):
        fix = "train with `--runs` on a local disk, and copy with `neural runs merge`"
        detail = f"on {file_system}: programs on other machines may read wrong rows"
        yield SystemCheck("run folders", "missing", detail, fix)
    elif mode == "wal":
        detail = f"sqlite {sqlite3.sqlite_version}, write-ahead log"
        yield SystemCheck("run folders", "good", detail)
    else:
        fix = "this disk lacks the file locks sqlite needs (a network disk?); use a local disk"
        yield SystemCheck("run folders", "wrong", f"sqlite in mode {mode}", fix)


def _check_embedded_data() -> Iterator[SystemCheck]:
    """Datasets that need no download."""
    from neural.data.loading import list_datasets
    from neural.tasks.segmentation.collection import load_handbook

    documents = load_handbook("sentences")
    names = ", ".join(list_datasets())
    yield SystemCheck(
        "data", "good", f"{len(documents)} topics of Python's handbook; by name: {names}"
    )


def _check_segmenter() -> Iterator[SystemCheck]:
    """The trained text segmentation model that ships with the package, for `neural segment`."""
    from neural.tasks.segmentation.pipeline import SHIPPED_SEGMENTER, load_shipped_pipeline

    load_shipped_pipeline()
    size = sum(
        file.stat().st_size for file in SHIPPED_SEGMENTER.parent.glob(f"{SHIPPED_SEGMENTER.stem}.*")
    )
    yield SystemCheck("segmenter", "good", f"ships with the package, {size / 1e6:.1f} MB")


def _check_browser() -> Iterator[SystemCheck]:
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser:
        yield SystemCheck("browser", "good", Path(browser).name)
    else:
        fix = "install chromium for `neural report --pdf`"
        yield SystemCheck("browser", "missing", "none found", fix)


CHECKS: tuple[Callable[[], Iterator[SystemCheck]], ...] = (
    _check_python,
    _check_packages,
    _check_extras,
    _check_threads,
    _check_kernels,
    _check_devices,
    _check_memory,
    _check_disk,
    _check_embedded_data,
    _check_segmenter,
    _check_browser,
)


def _read_requirements() -> list[str]:
    return requires(DISTRIBUTION_NAME) or []


def _parse_package_name(line: str) -> str:
    """`onnx` of the requirement `onnx>=1.16; extra == "export"`."""
    return re.split(r"[^\w.-]", line, maxsplit=1)[0]


def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def summarize_checks(checks: list[SystemCheck]) -> str:
    """The last line: whether everything required is there."""
    wrong = [check.name for check in checks if check.state == "wrong"]
    if wrong:
        return f"to fix first: {', '.join(wrong)}"
    return f"everything required is installed; python is {sys.executable}"
