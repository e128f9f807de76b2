"""Neural on simulated macOS (macos_startup/sitecustomize.py)."""

from __future__ import annotations

import json
import sys

import pytest

from neural.native import library
from tests.platforms.simulation import run_python
from tests.sweeps import write_sweep

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the simulation needs Linux")
SERVICES = """
import os, sys
from pathlib import Path
from neural.core import platform_support
from neural.core.files import write_atomically
from neural.runs.status import current_status
macos = sys.modules["sitecustomize"]
assert platform_support.IS_MACOS and not platform_support.IS_WINDOWS
assert not platform_support.CAN_FORK
assert platform_support.count_cores() == os.cpu_count()
assert platform_support.cache_folder() == Path.home() / "Library" / "Caches"
write_atomically(Path("file"), "text")
assert len(macos.FULL_SYNCS) == 1, macos.FULL_SYNCS
write_atomically(Path("file"), "text", durable=False)
assert len(macos.FULL_SYNCS) == 1
# without /proc a process is recognised by its id and its heartbeat
assert platform_support.process_identity(os.getpid()) is None
assert current_status("running").check_alive().state == "running"
assert current_status("running", step=1).process is None
"""


def test_files_are_flushed_through_the_cache_of_the_disk_and_processes_need_no_proc(tmp_path):
    run_python("macos", "-c", SERVICES, folder=tmp_path)


def test_a_sweep_is_trained(tmp_path):
    write_sweep(tmp_path, "experiment: tiny.neural\nseeds: [0]\n")
    run_python("macos", "-m", "neural", "sweep", "rates.yaml", folder=tmp_path)
    (table,) = tmp_path.glob("runs/*_rates/trials.json")
    assert [row["state"] for row in json.loads(table.read_text())["trials"]] == ["finished"]


@pytest.mark.parametrize("name", library.LIBRARY_NAMES)
def test_the_native_library_is_found_under_the_name_of_each_system(name, tmp_path, monkeypatch):
    (tmp_path / name).touch()
    monkeypatch.delenv("NEURAL_NATIVE_LIBRARY", raising=False)
    monkeypatch.setattr(library, "__file__", str(tmp_path / "library.py"))
    assert library.find_library() == tmp_path / name
