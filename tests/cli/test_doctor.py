"""`neural doctor`, as a user types it."""

import json

import pytest
from click.testing import CliRunner

from neural import doctor
from neural.cli.main import main


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("here"))
        shown = CliRunner().invoke(main, ["doctor", "--json"])
    return {one["name"]: one for one in json.loads(shown.output)}


def test_packages_threads_disk_and_data_are_looked_at(checks):
    for name in ("python", "neural", "torch", "threads", "devices", "memory", "disk", "run folders", "data"):
        assert checks[name]["state"] == "good", checks[name]


def test_what_is_missing_comes_with_the_command_that_brings_it(monkeypatch):
    real = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "ray" else real(name))
    (sweep,) = [one for one in doctor._extras() if one.name == "[sweep]"]
    assert sweep.state == "missing" and sweep.way == "pip install 'neural[sweep]'"


def test_a_folder_that_cannot_be_written_is_said(monkeypatch):
    def refuse(*_, **__):
        raise OSError("read-only file system")

    monkeypatch.setattr(doctor.tempfile, "TemporaryDirectory", refuse)
    _, folders = doctor._disk()
    assert folders.state == "wrong" and "read-only" in folders.found


def test_a_check_that_breaks_is_a_finding_and_the_exit_code_is_one(monkeypatch):
    def broken():
        raise RuntimeError("no such thing")

    monkeypatch.setattr(doctor, "CHECKS", (doctor._python, broken))
    shown = CliRunner().invoke(main, ["doctor"])
    assert shown.exit_code == 1
    assert "RuntimeError: no such thing" in shown.output and "to mend first: broken" in shown.output
