"""rows.sqlite: complete transactions, at most a second late, and damage is reported."""

import sqlite3
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from neural.runs import store
from neural.runs.errors import RunError
from neural.runs.store import RunStore, RunWriter


def write_store(path: Path, steps: int = 300) -> Path:
    RunWriter.create(path)
    writer = RunWriter(path)
    for step in range(steps):
        writer.log(step, {"loss": 1 / (step + 1), "rate": step})
        writer.log_arrays(step, {"entropy": np.full((2, 3), step)})
    writer.log_maps(1, {"map": b"x" * 9000})
    writer.log_event(1, "switch", "text")
    writer.set_metadata("layers", '["a"]')
    writer.commit()
    writer.close()
    return path


def read_all(path: Path) -> list[object]:
    reader = RunStore(path)
    try:
        tables: list[object] = [
            reader.scalar_rows(),
            reader.events(),
            reader.read_metadata({}),
            reader.array_names(),
            reader.scalar_names(),
        ]
        tables += [reader.scalars(name, -1) for name in reader.scalar_names()]
        tables += [reader.arrays(name, -1) for name in reader.array_names()]
        return tables + [reader.maps(step) for step in reader.map_steps()]
    finally:
        reader.close()


def test_rows_are_written_after_a_second_or_by_commit(tmp_path, monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(store.time, "monotonic", lambda: clock[0])
    RunWriter.create(tmp_path / "rows.sqlite")
    writer, reader = RunWriter(tmp_path / "rows.sqlite"), RunStore(tmp_path / "rows.sqlite")
    writer.log(1, {"loss": 1})
    assert reader.scalar_rows() == []
    clock[0] += store.COMMIT_INTERVAL_SECONDS
    writer.log(2, {"loss": 1})
    assert [row[0] for row in reader.scalar_rows()] == [1, 2]
    writer.log(3, {"loss": 1})
    assert len(reader.scalar_rows()) == 2
    writer.commit()
    assert len(reader.scalar_rows()) == 3
    writer.close()
    reader.close()


def test_a_transaction_that_fails_writes_nothing_and_can_be_tried_again(tmp_path):
    RunWriter.create(tmp_path / "rows.sqlite")
    writer = RunWriter(tmp_path / "rows.sqlite")
    blocker = sqlite3.connect(tmp_path / "rows.sqlite", isolation_level=None)
    blocker.execute(
        "CREATE TRIGGER no BEFORE INSERT ON events BEGIN SELECT raise(ABORT, 'not now'); END"
    )
    writer.log(1, {"loss": 1})
    writer.log_event(1, "switch", "")
    with pytest.raises(RunError, match="not now"):
        writer.commit()
    assert (writer.scalar_rows(), writer.scalar_names()) == ([], [])
    blocker.execute("DROP TRIGGER no")
    writer.commit()
    assert (len(writer.scalar_rows()), len(writer.events())) == (1, 1)
    blocker.close()
    writer.close()


def test_only_the_commit_before_a_checkpoint_waits_for_the_disk(tmp_path):
    RunWriter.create(tmp_path / "rows.sqlite")
    writer = RunWriter(tmp_path / "rows.sqlite")
    statements: list[str] = []
    writer._db.set_trace_callback(statements.append)
    writer.log(1, {"loss": 1})
    writer.commit()
    assert not any("synchronous" in text for text in statements)
    writer.commit(checkpoint_step=1)
    traced = [text for text in statements if text.startswith(("PRAGMA", "COMMIT"))]
    assert traced == [
        "COMMIT",
        "PRAGMA synchronous = FULL",
        "COMMIT",
        "PRAGMA synchronous = NORMAL",
    ]
    assert writer.header_value("checkpoint_step") == "1"
    writer.close()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_a_damaged_store_is_read_or_refused_with_a_run_error(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("damaged") / "rows.sqlite"
    content = bytearray(TEMPLATE.read(tmp_path_factory))
    size = len(content)
    for _ in range(data.draw(st.integers(1, 20))):
        content[data.draw(st.integers(0, size - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.sampled_from([size, size // 2, 100, 0]))])
    with suppress(RunError):
        read_all(path)


class _Template:
    """The bytes of a file with rows, written once."""

    data: bytes | None = None

    def read(self, factory: pytest.TempPathFactory) -> bytes:
        if self.data is None:
            self.data = write_store(factory.mktemp("template") / "rows.sqlite").read_bytes()
        return self.data


TEMPLATE = _Template()


@pytest.mark.parametrize(
    "junk", [b"", b"text, not a database", b"SQLite format 3\0" + b"\xff" * 4080]
)
def test_a_file_that_is_not_a_database_is_refused(tmp_path, junk):
    path = tmp_path / "rows.sqlite"
    path.write_bytes(junk)
    with pytest.raises(RunError, match="damaged"):
        RunStore(path)


def test_a_damaged_page_is_reported(tmp_path):
    path = write_store(tmp_path / "rows.sqlite")
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    path.write_bytes(data)
    with pytest.raises(RunError, match=r"rows\.sqlite is damaged"):
        read_all(path)
