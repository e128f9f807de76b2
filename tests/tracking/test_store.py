"""The rows: whole transactions, at most a second late, and damage that is said."""

import sqlite3
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neural.tracking import store
from neural.tracking.store import Store, Writer
from neural.tracking.trouble import RunError


def written(path: Path, steps: int = 300) -> Path:
    Writer.create(path)
    writer = Writer(path)
    for step in range(steps):
        writer.log(step, {"loss": 1 / (step + 1), "rate": step})
        writer.log_arrays(step, {"entropy": np.full((2, 3), step)})
    writer.log_maps(1, {"map": b"x" * 9000})
    writer.event(1, "switch", "text")
    writer.describe("layers", ["a"])
    writer.write()
    writer.close()
    return path


def read_all(path: Path) -> list[object]:
    rows = Store(path)
    try:
        found: list[object] = [rows.rows(), rows.events(), rows.described(), rows.measures(), rows.names()]
        found += [rows.scalars(name, -1) for name in rows.names()] + [rows.arrays(name, -1) for name in rows.measures()]
        return found + [rows.maps(step) for step in rows.map_steps()]
    finally:
        rows.close()


def test_rows_wait_for_a_second_or_for_the_word(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(store.time, "monotonic", lambda: clock[0])
    Writer.create(tmp_path / "rows.sqlite")
    writer, reader = Writer(tmp_path / "rows.sqlite"), Store(tmp_path / "rows.sqlite")
    writer.log(1, {"loss": 1})
    assert reader.rows() == []
    clock[0] += store.PAUSE
    writer.log(2, {"loss": 1})
    assert [row[0] for row in reader.rows()] == [1, 2]
    writer.log(3, {"loss": 1})
    assert len(reader.rows()) == 2
    writer.write()
    assert len(reader.rows()) == 3
    writer.close()
    reader.close()


def test_a_transaction_that_fails_writes_nothing_and_can_be_tried_again(tmp_path):
    Writer.create(tmp_path / "rows.sqlite")
    writer = Writer(tmp_path / "rows.sqlite")
    blocker = sqlite3.connect(tmp_path / "rows.sqlite", isolation_level=None)
    blocker.execute("CREATE TRIGGER no BEFORE INSERT ON events BEGIN SELECT raise(ABORT, 'not now'); END")
    writer.log(1, {"loss": 1})
    writer.event(1, "switch", "")
    with pytest.raises(RunError, match="not now"):
        writer.write()
    assert (writer.rows(), writer.names()) == ([], [])
    blocker.execute("DROP TRIGGER no")
    writer.write()
    assert (len(writer.rows()), len(writer.events())) == (1, 1)
    blocker.close()
    writer.close()


def test_what_is_saved_waits_for_the_disk_and_nothing_else_does(tmp_path):
    Writer.create(tmp_path / "rows.sqlite")
    writer = Writer(tmp_path / "rows.sqlite")
    said: list[str] = []
    writer._db.set_trace_callback(said.append)
    writer.log(1, {"loss": 1})
    writer.write()
    assert not any("synchronous" in text for text in said)
    writer.write(saved=1)
    orders = [text for text in said if text.startswith(("PRAGMA", "COMMIT"))]
    assert orders == ["COMMIT", "PRAGMA synchronous = FULL", "COMMIT", "PRAGMA synchronous = NORMAL"]
    assert writer.meta("saved") == "1"
    writer.close()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_rows_are_read_or_refused_but_never_a_traceback(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "rows.sqlite"
    whole = bytearray(TEMPLATE.read(tmp_path_factory))
    for _ in range(data.draw(st.integers(1, 20))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.sampled_from([len(whole), len(whole) // 2, 100, 0]))])
    with suppress(RunError):
        read_all(path)


class _Template:
    """The bytes of a file with rows, made once."""

    data: bytes | None = None

    def read(self, factory: pytest.TempPathFactory) -> bytes:
        if self.data is None:
            self.data = written(factory.mktemp("template") / "rows.sqlite").read_bytes()
        return self.data


TEMPLATE = _Template()


@pytest.mark.parametrize("junk", [b"", b"no rows at all, but text", b"SQLite format 3\0" + b"\xff" * 4080])
def test_a_file_that_is_no_store_is_said(tmp_path, junk):
    path = tmp_path / "rows.sqlite"
    path.write_bytes(junk)
    with pytest.raises(RunError, match="damaged"):
        Store(path)


def test_a_damaged_page_is_said(tmp_path):
    path = written(tmp_path / "rows.sqlite")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(RunError, match=r"rows\.sqlite is damaged"):
        read_all(path)
