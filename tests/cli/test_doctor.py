"""`neural doctor`, as a user types it."""

import json

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.workflows import doctor


@pytest.fixture(scope="module")
def checks(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("doctor"))
        result = CliRunner().invoke(main, ["doctor", "--json"])
    return {check["name"]: check for check in json.loads(result.output)}


def test_packages_threads_disk_and_data_are_checked(checks):
    for name in (
        "python",
        "neural-lab",
        "torch",
        "threads",
        "devices",
        "memory",
        "disk",
        "run folders",
        "data",
    ):
        assert checks[name]["state"] == "good", checks[name]


def test_a_missing_package_comes_with_its_install_command(monkeypatch):
    installed_version = doctor._installed_version
    monkeypatch.setattr(
        doctor,
        "_installed_version",
        lambda name: None if name == "ray" else installed_version(name),
    )
    (sweep,) = [check for check in doctor._check_extras() if check.name == "[sweep]"]
    assert sweep.state == "missing" and sweep.fix == 'pip install "neural-lab[sweep]"'


def test_a_read_only_folder_is_reported(monkeypatch):
    def refuse(*_, **__):
        raise OSError("read-only file system")

    monkeypatch.setattr(doctor.tempfile, "TemporaryDirectory", refuse)
    _, folders = doctor._check_disk()
    assert folders.state == "wrong" and "read-only" in folders.detail


def test_a_check_that_raises_is_reported_with_exit_code_one(monkeypatch):
    def broken():
        raise RuntimeError("no such thing")

    monkeypatch.setattr(doctor, "CHECKS", (doctor._check_python, broken))
    result = CliRunner().invoke(main, ["doctor"])
    assert result.exit_code == 1
    assert (
        "RuntimeError: no such thing" in result.output and "to fix first: broken" in result.output
    )
