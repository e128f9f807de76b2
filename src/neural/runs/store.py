"""The rows of a run: rows.sqlite, in WAL mode, written in transactions, readable at any time.

A run is one training and its folder (run.py). Its rows are `scalars` (points of curves), `arrays`
(measures: statistics of attention weights), `maps` (attention weights) and `events`, all with a
step; and `metadata`, which describes the run, such as the names of its layers. The table `meta` is
the header of the file: its version, the step of the last checkpoint, checksums of other files.

If the process is killed during a transaction, SQLite rolls it back. Commits go to the operating
system at once and so survive a kill of the process. Only the commit before a checkpoint waits for
the disk, so that no checkpoint outlives its rows in a power failure.

A run folder may come from anybody, so reading trusts nothing: see `harden_connection`.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, TypeVar

import numpy as np

from neural.core.distribution import DISTRIBUTION_NAME
from neural.core.files import get_file_size
from neural.core.json_values import parse_json
from neural.core.metadata_fields import MetadataField
from neural.core.platform_support import quote_argument
from neural.runs.errors import RunError, translate_errors
from neural.runs.metadata_schema import parse_rows

RowsType = TypeVar("RowsType", bound=Sized)
STORE_VERSION = 3
"""Version of the run folder; docs/run-folder.md lists what changed."""
UPGRADED_VERSION, UPGRADED_SUFFIX = 2, "-upgraded"
"""Version that `upgrade_run` (upgrade.py) converts, and the end of the new folder's name."""
CREATE_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE scalars (name INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
                      PRIMARY KEY (name, step)) WITHOUT ROWID;
CREATE TABLE arrays (name INTEGER NOT NULL, step INTEGER NOT NULL, shape TEXT NOT NULL,
                     data BLOB NOT NULL, PRIMARY KEY (name, step)) WITHOUT ROWID;
CREATE TABLE maps (step INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,
                   PRIMARY KEY (step, name));
CREATE TABLE events (id INTEGER PRIMARY KEY, step INTEGER NOT NULL, kind TEXT NOT NULL,
                     text TEXT NOT NULL, time REAL NOT NULL);
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('version', '{STORE_VERSION}');
"""
STEP_TABLES = ("scalars", "arrays", "maps", "events")
"""Tables with a column `step`."""
NAME_ID_QUERY = "(SELECT id FROM names WHERE name = ?)"
"""Names of scalars and arrays are stored once, in the table `names`; rows hold their ids."""
INSERT_STATEMENTS = {
    "scalars": f"INSERT OR REPLACE INTO scalars VALUES ({NAME_ID_QUERY}, ?, ?)",
    "arrays": f"INSERT OR REPLACE INTO arrays VALUES ({NAME_ID_QUERY}, ?, ?, ?)",
    "maps": "INSERT OR REPLACE INTO maps VALUES (?, ?, ?)",
    "events": "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?)",
    "metadata": "INSERT OR REPLACE INTO metadata VALUES (?, ?)",
}
COMMIT_INTERVAL_SECONDS = 1.0
"""Seconds between two transactions, unless one is requested."""
PAGE_CACHE_KIB = 256
"""Memory for pages of the file, per open run; the operating system caches files anyway."""
MIN_VALUE_LIMIT_BYTES = 1 << 20
"""Larger values are not read if they are also larger than the file: their length is forged."""
MAX_VALUE_BYTES = 2**31 - 1
"""Limit for values that this process writes; SQLite lowers it to its own, 10⁹ by default."""
MIN_AXIS_LIMIT = 1 << 16
"""Larger axes are refused if they are also larger than the array's bytes: their size is forged."""


class RunStore:
    """Reads rows.sqlite; every call returns the present state."""

    def __init__(self, path: Path, *, writable: bool = False, version: int = STORE_VERSION) -> None:
        """RunError if the file is damaged or not of this `version` of the run folder."""
        self.path, self._version = path, version
        self.name = str(path.parent)
        """The run folder, for messages."""
        with translate_errors(self.name):
            _refuse_special_files(path)
            self._db = sqlite3.connect(
                _sqlite_uri(path, writable),
                uri=True,
                isolation_level=None,  # no implicit transactions: see `_transaction`
                timeout=20,  # seconds to wait for a lock of another process
                check_same_thread=False,
            )
            weakref.finalize(self, self._db.close)  # for stores that nobody closes
        with self._report_damage(), translate_errors(self.name):
            harden_connection(self._db, self._file_bytes())
            self._db.execute(f"PRAGMA cache_size = -{PAGE_CACHE_KIB}")
        self._check_version()

    def _file_bytes(self) -> int:
        """Size of the database and its write-ahead log."""
        wal_path = self.path.with_name(self.path.name + "-wal")
        return self.path.stat().st_size + (get_file_size(wal_path) or 0)

    def _limit_values(self) -> int:
        """Refuse values larger than the file, which may have grown; returns its size."""
        size = self._file_bytes()
        limit_values(self._db, size)
        return size

    def _check_version(self) -> None:
        version = self.header_value("version")
        if version is None or not version.isdecimal() or len(version) > 9:
            raise RunError(f"{self.name}: rows.sqlite is damaged: it has no version")
        if int(version) != self._version:
            upgraded_name = f"{self.name}{UPGRADED_SUFFIX}"
            if int(version) > STORE_VERSION:
                advice = f"install a newer neural: `pip install --upgrade {DISTRIBUTION_NAME}`"
            elif int(version) == UPGRADED_VERSION and Path(upgraded_name).exists():
                advice = f"use {upgraded_name}, which it was converted to"
            elif int(version) == UPGRADED_VERSION:
                advice = f"convert it with `neural runs upgrade {quote_argument(self.name)}`"
            else:
                advice = "train again, or use an older neural"
            raise RunError(
                f"{self.name}: written in version {version} of the run format; "
                f"this neural reads version {STORE_VERSION}: {advice}"
            )

    def close(self) -> None:
        """Close the file."""
        with translate_errors(self.name):
            self._db.close()

    def header_value(self, key: str) -> str | None:
        """A value of the table `meta` (version, checkpoint_step, checksums); None if not set."""
        rows = self._fetch_all("SELECT value FROM meta WHERE key = ?", key)
        return str(rows[0][0]) if rows else None

    def change_counter(self) -> int:
        """Change counter: differs after every commit of another connection. Cheap to read."""
        return int(self._fetch_all("PRAGMA data_version")[0][0])

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see the state of the first one, whatever is written meanwhile."""
        with translate_errors(self.name):
            self._db.execute("BEGIN")
        try:
            yield
        finally:
            with translate_errors(self.name):
                self._db.execute("COMMIT")

    def scalar_names(self) -> list[str]:
        """Names of the scalars, sorted."""
        return self._names_in("scalars")

    def array_names(self) -> list[str]:
        """Names of the arrays, sorted."""
        return self._names_in("arrays")

    def scalars(self, name: str, after: int) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of one curve, of steps greater than `after`."""
        sql = (
            f"SELECT step, value FROM scalars WHERE name = {NAME_ID_QUERY} AND step > ? "
            "ORDER BY step"
        )
        with self._report_damage(), translate_errors(self.name):
            size = self._limit_values()
            # row by row: a list of a long curve's rows takes ten times the memory of its arrays
            rows = islice(self._db.execute(sql, (name, after)), size)
            curve = np.fromiter(
                ((step, math.nan if value is None else value) for step, value in rows),
                dtype=[("step", np.int64), ("value", np.float64)],
            )
            check_row_count(curve, size)
            return curve["step"].copy(), curve["value"].copy()

    def scalar_rows(self) -> list[tuple[int, str, float]]:
        """All scalars as (step, name, value), by step and name."""
        rows = self._fetch_all(
            "SELECT step, names.name, value FROM scalars "
            "JOIN names ON names.id = scalars.name ORDER BY 1, 2"
        )
        with self._report_damage():
            # math.nan, not float("nan"): lists that contain the same NaN object compare equal
            return [
                (int(step), str(name), math.nan if value is None else float(value))
                for step, name, value in rows
            ]

    def arrays(self, name: str, after: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Steps and arrays of one measure, of steps greater than `after`."""
        rows = self._fetch_all(
            f"SELECT step, shape, data FROM arrays WHERE name = {NAME_ID_QUERY} AND step > ? "
            "ORDER BY step",
            name,
            after,
        )
        with self._report_damage():
            steps = np.array([step for step, _, _ in rows], dtype=np.int64)
            return steps, [decode_array(shape, data) for _, shape, data in rows]

    def map_steps(self) -> list[int]:
        """Steps that have attention maps."""
        rows = self._fetch_all("SELECT DISTINCT step FROM maps ORDER BY step")
        with self._report_damage():
            return [int(step) for (step,) in rows]

    def maps(self, step: int) -> dict[str, bytes]:
        """Attention maps of a step by layer name, encoded by capture/map_encoding.py."""
        rows = self._fetch_all("SELECT name, data FROM maps WHERE step = ? ORDER BY name", step)
        with self._report_damage():
            return {str(name): bytes(memoryview(data)) for name, data in rows}

    def events(self) -> list[tuple[int, str, str, float]]:
        """Step, kind, text and Unix time of each event, in the order in which they happened."""
        rows = self._fetch_all("SELECT step, kind, text, time FROM events ORDER BY id")
        with self._report_damage():
            return [
                (int(step), str(kind), str(text), float(seconds))
                for step, kind, text, seconds in rows
            ]

    def read_metadata(
        self, fields: Mapping[str, MetadataField]
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """All metadata by key, and an error message for every entry that `fields` rejects."""
        return parse_rows(self._fetch_all("SELECT key, value FROM metadata ORDER BY key"), fields)

    def copy_to(self, path: Path) -> None:
        """Write the present rows to a new file `path`, also while another process adds rows.

        The copy has no write-ahead log, so it can be read on every kind of disk: a log needs shared
        memory, which network file systems do not have. `RunWriter` turns the log on again.
        """
        path.unlink(missing_ok=True)
        with translate_errors(str(path.parent)):
            # `nolock`: no other process knows the file yet, and network disks may lack locks
            uri = f"{database_uri(path.absolute())}?nolock=1"
            copy = sqlite3.connect(uri, uri=True, isolation_level=None)
            try:
                self._db.backup(copy)
            finally:
                copy.close()
            # Bytes 18 and 19 of an SQLite file say whether it has a write-ahead log (2) or not (1).
            # `PRAGMA journal_mode` could change them only with locks.
            with path.open("rb+") as file:
                file.seek(18)
                file.write(b"\x01\x01")

    def check_structure(self) -> None:
        """RunError if SQLite finds damage in the file; reads all of it."""
        (message,) = self._fetch_all("PRAGMA quick_check(1)")[0]
        if message != "ok":
            raise RunError(f"{self.name}: rows.sqlite is damaged: {message}")

    def last_step(self) -> int:
        """The largest step that has a scalar; 0 without scalars."""
        return int(self._fetch_all("SELECT coalesce(max(step), 0) FROM scalars")[0][0])

    def _names_in(self, table: str) -> list[str]:
        """Names that have rows in `table`, which is "scalars" or "arrays"."""
        rows = self._fetch_all(
            "SELECT name FROM names "
            f"WHERE EXISTS (SELECT 1 FROM {table} WHERE {table}.name = names.id) ORDER BY name"
        )
        return [str(name) for (name,) in rows]

    def _fetch_all(self, sql: str, *values: Any) -> list[Any]:
        with self._report_damage(), translate_errors(self.name):
            # a file has more bytes than rows: `size` stops endless results of a damaged file
            size = self._limit_values()
            return check_row_count(self._db.execute(sql, values).fetchmany(size), size)

    @contextmanager
    def _report_damage(self) -> Iterator[None]:
        """Raise RunError for values that no intact file holds."""
        try:
            yield
        except (ValueError, TypeError, OverflowError) as error:
            raise RunError(f"{self.name}: rows.sqlite is damaged: {error}") from error


class RunWriter(RunStore):
    """Writes rows.sqlite: rows wait in memory for a second, then go into one transaction."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, writable=True)
        self._pending: dict[str, list[tuple[Any, ...]]] = {table: [] for table in INSERT_STATEMENTS}
        self._last_write = time.monotonic()
        with translate_errors(self.name):
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
        self._event_count = self._fetch_all("SELECT coalesce(max(id), 0) FROM events")[0][0]

    @staticmethod
    def create(path: Path, header: Mapping[str, str] | None = None) -> None:
        """Create a file without rows; `header`: entries of the table `meta` beside the version."""
        db = sqlite3.connect(path, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(f"BEGIN; {CREATE_TABLES}")
            db.executemany("INSERT INTO meta VALUES (?, ?)", (header or {}).items())
            db.execute("COMMIT")
        finally:
            db.close()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Add scalars of a step."""
        self._pending["scalars"] += [(name, step, float(value)) for name, value in values.items()]
        self.commit_if_due()

    def log_arrays(self, step: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Add arrays of a step, stored as 32-bit floats."""
        for name, array in arrays.items():
            data = np.asarray(array, dtype="<f4")
            self._pending["arrays"].append((name, step, json.dumps(data.shape), data.tobytes()))
        self.commit_if_due()

    def log_maps(self, step: int, maps: Mapping[str, Any]) -> None:
        """Add encoded attention maps of a step."""
        self._pending["maps"] += [(step, name, bytes(data)) for name, data in maps.items()]
        self.commit_if_due()

    def log_event(self, step: int, kind: str, text: str) -> None:
        """Add an event. Its id is set here, so that repeating a failed commit adds it once."""
        self._event_count += 1
        self._pending["events"].append((self._event_count, step, kind, text, time.time()))
        self.commit_if_due()

    def set_metadata(self, key: str, text: str) -> None:
        """Set a metadata entry; `text` is its value as JSON. Replaces the previous one."""
        self._pending["metadata"].append((key, text))

    def commit_if_due(self) -> None:
        """Commit if the last transaction is more than COMMIT_INTERVAL_SECONDS ago."""
        if time.monotonic() - self._last_write >= COMMIT_INTERVAL_SECONDS:
            self.commit()

    def commit(self, *, checkpoint_step: int | None = None) -> None:
        """Write all pending rows in one transaction.

        With a `checkpoint_step`, record it and wait until everything is on the disk.
        """
        self._last_write = time.monotonic()
        if checkpoint_step is None and not any(self._pending.values()):
            return
        with translate_errors(self.name):
            if checkpoint_step is not None:
                self._db.execute("PRAGMA synchronous = FULL")
            try:
                # these values are ours; the next reading sets the limit again
                self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
                with self._transaction():
                    self._insert_pending()
                    # even if nothing was pending, this is a write to wait for
                    if checkpoint_step is not None:
                        self._set_header_value("checkpoint_step", checkpoint_step)
            finally:
                if checkpoint_step is not None:
                    self._db.execute("PRAGMA synchronous = NORMAL")
        for rows in self._pending.values():
            rows.clear()

    def discard_snapshot(self) -> None:
        """Forget arrays, maps and metadata that are not written yet; curves and events stay."""
        for table in ("arrays", "maps", "metadata"):
            self._pending[table].clear()

    def set_header_values(self, values: Mapping[str, str]) -> None:
        """Set values of the table `meta`. They are on the disk when this returns."""
        with translate_errors(self.name):
            self._db.execute("PRAGMA synchronous = FULL")
            try:
                with self._transaction():
                    for key, value in values.items():
                        self._set_header_value(key, value)
            finally:
                self._db.execute("PRAGMA synchronous = NORMAL")

    def delete_after(self, step: int) -> None:
        """Delete the rows of later steps."""
        self.commit()
        with translate_errors(self.name), self._transaction():
            for table in STEP_TABLES:
                self._db.execute(f"DELETE FROM {table} WHERE step > ?", (step,))

    def _insert_pending(self) -> None:
        names = {row[0] for table in ("scalars", "arrays") for row in self._pending[table]}
        self._insert_rows(
            "INSERT OR IGNORE INTO names (name) VALUES (?)", ((name,) for name in sorted(names))
        )
        for table, rows in self._pending.items():
            # Insert name by name, in the order of the primary key: consecutive rows then go to the
            # same database page.
            self._insert_rows(
                INSERT_STATEMENTS[table],
                sorted(rows, key=itemgetter(0)) if table in ("scalars", "arrays") else rows,
            )

    def _insert_rows(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._db.executemany(sql, rows)

    def _set_header_value(self, key: str, value: object) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, str(value)))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # after some failures SQLite has rolled back by itself
                self._db.execute("ROLLBACK")
            raise


def harden_connection(db: sqlite3.Connection, file_bytes: int) -> None:
    """Make a connection safe for files of unknown origin.

    Raises ValueError if the file has more than plain tables and indexes:
    views, triggers and virtual tables could run SQL of the file's author; a value larger than the
    file can only be a forged length.
    """
    db.text_factory = _decode_text
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    limit_values(db, file_bytes)
    for kind, sql in db.execute("SELECT type, sql FROM sqlite_master"):
        if kind not in ("table", "index"):
            raise ValueError(f"it holds a {kind}, which no run writes")
        if "VIRTUAL" in (sql or "").upper():
            raise ValueError("it holds a virtual table, which no run writes")


def limit_values(db: sqlite3.Connection, file_bytes: int) -> None:
    """Refuse values that are larger than the file."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, max(MIN_VALUE_LIMIT_BYTES, file_bytes))


def check_row_count(rows: RowsType, file_bytes: int) -> RowsType:
    """Return the rows; ValueError if there are as many rows as bytes.

    Only a damaged file has so many: its pages form a loop.
    """
    if len(rows) >= file_bytes:
        raise ValueError("it claims more rows than it has bytes")
    return rows


def decode_array(shape: str, data: bytes) -> np.ndarray:
    """Decode an array of 32-bit floats; `shape` is a JSON list."""
    sizes = parse_json(shape)
    limit = max(MIN_AXIS_LIMIT, len(data))
    if any(type(size) is not int or not 0 <= size <= limit for size in sizes):
        raise ValueError(f"an array of shape {shape[:40]}")
    return np.frombuffer(data, "<f4").reshape(sizes)


def _decode_text(data: bytes) -> str:
    """Decode a TEXT value; bytes that are not UTF-8 become U+FFFD."""
    return data.decode("utf-8", errors="replace")


def database_uri(path: PurePath) -> str:
    """URI of an absolute path, as SQLite takes it.

    `as_uri` makes `file://server/share` of a network drive of Windows; SQLite accepts no server.
    """
    return re.sub("^file://(?=[^/])", "file:////", path.as_uri())


def _refuse_special_files(path: Path) -> None:
    """RunError if SQLite would open a pipe or device; of a pipe in place of a journal it waits."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        file = path.with_name(path.name + suffix)
        if file.exists() and not file.is_file():
            raise RunError(f"{file} cannot be read: it is no ordinary file")


def _sqlite_uri(path: Path, writable: bool) -> str:
    mode = "rw" if writable else "ro"
    wal_path = path.with_name(path.name + "-wal")
    has_wal = wal_path.exists() and wal_path.stat().st_size > 0
    if not writable and not has_wal and not os.access(path.parent, os.W_OK):
        # nobody can be writing; without `immutable` SQLite would create files beside the database
        mode = "ro&immutable=1"
    return f"{database_uri(path.absolute())}?mode={mode}"
