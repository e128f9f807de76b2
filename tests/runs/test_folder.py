"""Checksums of the configuration files: no run resumes from settings that a bad disk changed."""

import sqlite3

import pytest

from neural.core.files import write_atomically
from neural.runs.errors import RunError
from neural.runs.run import Run


@pytest.fixture
def path(tmp_path):
    run = Run.create(
        tmp_path,
        "small",
        settings={"steps": 7},
        program="network A {}",
        environment={"folder": "."},
    )
    run.log(1, {"loss": 0.5})
    run.finish("stopped")
    return run.path


@pytest.mark.parametrize("file", ["settings.json", "program.neural", "environment.json"])
def test_a_changed_bit_is_noticed_before_a_run_resumes(path, file):
    data = bytearray((path / file).read_bytes())
    data[-4] ^= 1
    (path / file).write_bytes(data)
    status = (path / "status.json").read_bytes()
    with pytest.raises(RunError) as raised:
        Run.reopen(path)
    assert str(path / file) in str(raised.value) and "its checksum is wrong" in str(raised.value)
    assert (path / "status.json").read_bytes() == status, "the status was changed"
    assert Run.open(path).scalars("loss")[1].tolist() == [0.5], "reading still works"


def test_a_missing_file_is_noticed_too(path):
    (path / "program.neural").unlink()
    with pytest.raises(RunError, match=r"program\.neural is damaged"):
        Run.reopen(path)


def test_a_run_without_a_program_resumes(tmp_path):
    Run.create(tmp_path, "small", settings={}, program=None, environment={}).finish("stopped")
    (path,) = tmp_path.iterdir()
    Run.reopen(path).finish("finished")


def test_a_folder_without_checksums_resumes(path):
    with sqlite3.connect(path / "rows.sqlite") as rows:
        rows.execute("DELETE FROM meta WHERE key LIKE 'sha256 %'")
    rows.close()
    (path / "settings.json").write_text('{"steps": 8}')
    Run.reopen(path).finish("finished")


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_settings_that_a_killed_process_was_replacing_can_be_reopened(path, monkeypatch, calls):
    """Killed before each of its four writes: rows, two files, rows."""
    run = Run.reopen(path)
    writes = []

    def interrupt(write):
        def wrapper(*args):
            writes.append(write)
            if len(writes) == calls:
                raise KeyboardInterrupt
            return write(*args)

        return wrapper

    monkeypatch.setattr(run._store, "set_header_values", interrupt(run._store.set_header_values))
    monkeypatch.setattr("neural.runs.run.write_atomically", interrupt(write_atomically))
    before = (run.settings, run.program)
    with pytest.raises(KeyboardInterrupt):
        run.replace_settings({"training": {"steps": 8}}, "network B {}\n")
    monkeypatch.undo()
    run.finish("stopped")
    reopened = Run.reopen(path)
    assert reopened.settings in (before[0], {"training": {"steps": 8}})
    reopened.replace_settings({"training": {"steps": 9}}, "network C {}\n")
    assert (reopened.settings, reopened.program) == ({"training": {"steps": 9}}, "network C {}\n")
    reopened.finish("finished")
    Run.reopen(path).close()
