"""What was written once is under a sum: no training goes on from settings that a bad disk has changed."""

import sqlite3

import pytest

from neural.core.files import write_atomically
from neural.tracking.run import Run
from neural.tracking.trouble import RunError


@pytest.fixture
def path(tmp_path):
    run = Run.create(tmp_path, "small", settings={"steps": 7}, program="network A {}", environment={"folder": "."})
    run.log(1, {"loss": 0.5})
    run.finish("stopped")
    return run.path


@pytest.mark.parametrize("file", ["settings.json", "program.neural", "environment.json"])
def test_a_changed_bit_of_what_was_written_once_is_noticed_before_a_run_goes_on(path, file):
    data = bytearray((path / file).read_bytes())
    data[-4] ^= 1
    (path / file).write_bytes(data)
    status = (path / "status.json").read_bytes()
    with pytest.raises(RunError) as told:
        Run.reopen(path)
    assert str(path / file) in str(told.value) and "its sum is wrong" in str(told.value)
    assert (path / "status.json").read_bytes() == status, "it was touched"
    assert Run.open(path).scalars("loss")[1].tolist() == [0.5], "reading goes on"


def test_a_file_that_is_gone_is_noticed_too(path):
    (path / "program.neural").unlink()
    with pytest.raises(RunError, match=r"program\.neural is damaged"):
        Run.reopen(path)


def test_a_run_without_a_program_goes_on_without_one(tmp_path):
    Run.create(tmp_path, "small", settings={}, program=None, environment={}).finish("stopped")
    (path,) = tmp_path.iterdir()
    Run.reopen(path).finish("finished")


def test_a_folder_of_before_has_no_sums_and_goes_on(path):
    with sqlite3.connect(path / "rows.sqlite") as rows:
        rows.execute("DELETE FROM meta WHERE key LIKE 'sha256 %'")
    rows.close()
    (path / "settings.json").write_text('{"steps": 8}')
    Run.reopen(path).finish("finished")


@pytest.mark.parametrize("calls", [1, 2, 3, 4])
def test_settings_replaced_by_a_killed_process_are_whole(path, monkeypatch, calls):
    """Killed before its first, second … write: to the rows, to the two files, to the rows."""
    run = Run.reopen(path)
    done = []

    def stops(call):
        def wrapped(*given):
            done.append(call)
            if len(done) == calls:
                raise KeyboardInterrupt
            return call(*given)

        return wrapped

    monkeypatch.setattr(run._store, "remember", stops(run._store.remember))
    monkeypatch.setattr("neural.tracking.run.write_atomically", stops(write_atomically))
    before = (run.settings, run.program)
    with pytest.raises(KeyboardInterrupt):
        run.replace_settings({"training": {"steps": 8}}, "network B {}\n")
    monkeypatch.undo()
    run.finish("stopped")
    again = Run.reopen(path)
    assert again.settings in (before[0], {"training": {"steps": 8}})
    again.replace_settings({"training": {"steps": 9}}, "network C {}\n")
    assert (again.settings, again.program) == ({"training": {"steps": 9}}, "network C {}\n")
    again.finish("finished")
    Run.reopen(path).close()
