"""The rows of a run: one SQLite file in WAL mode, written in whole transactions, readable at any time.

A transaction that a kill cuts short has never been: the file says so by itself. Transactions are given to the system
at once, which survives a kill of the process; only the one before a checkpoint waits for the disk, so that no
checkpoint outlives its rows in a power cut. tracking/schema.py has the tables.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from neural.tracking.distrust import array_of, distrust, no_more
from neural.tracking.metadata_schema import read_metadata, to_json
from neural.tracking.schema import ID, INSERTS, OLDER, SCHEMA, UPGRADES, VERSION, WITH_STEPS
from neural.tracking.trouble import RunError, in_words

PAUSE = 1.0
"""Seconds between two transactions, unless one is asked for."""


class Store:
    """The rows, for reading; every answer is of this moment."""

    def __init__(self, path: Path, *, writing: bool = False) -> None:
        self.path, self.name = path, str(path.parent)
        with in_words(self.name):
            self._db = sqlite3.connect(_address(path, writing), uri=True, isolation_level=None, timeout=20,
                                       check_same_thread=False)  # fmt: skip
            weakref.finalize(self, self._db.close)
        with self._sound(), in_words(self.name):
            distrust(self._db, self._bytes())
        self.version = self._version()
        if self.version in OLDER and not writing:
            self._db.execute(OLDER[self.version])

    def _bytes(self) -> int:
        """Of the file and its log."""
        log = self.path.with_name(self.path.name + "-wal")
        return self.path.stat().st_size + (log.stat().st_size if log.exists() else 0)

    def _version(self) -> int:
        found = self.meta("version")
        if found is None or not found.isdecimal() or len(found) > 9:
            raise RunError(f"{self.name}: rows.sqlite is damaged: it has no version")
        if int(found) > VERSION:
            raise RunError(
                f"{self.name}: written in version {found} of the run format; this neural reads up to {VERSION}. "
                "Install a newer neural"
            )
        return int(found)

    def close(self) -> None:
        """Let go of the file."""
        with in_words(self.name):
            self._db.close()

    def meta(self, key: str) -> str | None:
        """What the file says of itself."""
        found = self._all("SELECT value FROM meta WHERE key = ?", key)
        return str(found[0][0]) if found else None

    def changes(self) -> int:
        """Another number whenever somebody else has written; asking costs no reading."""
        return int(self._all("PRAGMA data_version")[0][0])

    def names(self) -> list[str]:
        """Of the scalars."""
        return self._named("scalars")

    def measures(self) -> list[str]:
        """Names of the arrays."""
        return self._named("arrays")

    def scalars(self, name: str, after: int) -> tuple[np.ndarray, np.ndarray]:
        """Steps and values of one curve."""
        found = self._all(f"SELECT step, value FROM scalars WHERE name = {ID} AND step > ? ORDER BY step", name, after)
        with self._sound():
            steps = np.array([step for step, _ in found], dtype=np.int64)
            return steps, np.array([math.nan if value is None else value for _, value in found], dtype=np.float64)

    def rows(self) -> list[tuple[int, str, float]]:
        """All scalars, by step and name."""
        joined = "SELECT step, names.name, value FROM scalars JOIN names ON names.id = scalars.name ORDER BY 1, 2"
        # one NaN for all: two lists of rows are equal if they say the same
        found = self._all(joined)
        with self._sound():
            return [(int(step), str(name), math.nan if value is None else float(value)) for step, name, value in found]

    def arrays(self, name: str, after: int) -> tuple[np.ndarray, list[np.ndarray]]:
        """Steps and arrays of one measure."""
        wanted = f"SELECT step, shape, data FROM arrays WHERE name = {ID} AND step > ? ORDER BY step"
        found = self._all(wanted, name, after)
        with self._sound():
            steps = np.array([step for step, _, _ in found], dtype=np.int64)
            return steps, [array_of(shape, data) for _, shape, data in found]

    def map_steps(self) -> list[int]:
        """Steps with maps."""
        with self._sound():
            return [int(step) for (step,) in self._all("SELECT DISTINCT step FROM maps ORDER BY step")]

    def maps(self, step: int) -> dict[str, bytes]:
        """The maps of a step by name."""
        found = self._all("SELECT name, data FROM maps WHERE step = ? ORDER BY name", step)
        with self._sound():
            return {str(name): bytes(memoryview(data)) for name, data in found}

    def events(self) -> list[tuple[int, str, str, float]]:
        """Step, kind, text and time of each, in the order in which they happened."""
        found = self._all("SELECT step, kind, text, time FROM events ORDER BY id")
        with self._sound():
            return [(int(step), str(kind), str(text), float(when)) for step, kind, text, when in found]

    def described(self) -> tuple[dict[str, Any], dict[str, str]]:
        """All that was described, by key; and for every entry that cannot be used the reason."""
        return read_metadata(self._all("SELECT key, value FROM described ORDER BY key"))

    def _named(self, table: str) -> list[str]:
        there = f"EXISTS (SELECT 1 FROM {table} WHERE {table}.name = names.id)"
        return [str(name) for (name,) in self._all(f"SELECT name FROM names WHERE {there} ORDER BY name")]

    def _all(self, sql: str, *values: Any) -> list[Any]:
        with self._sound(), in_words(self.name):
            size = self._bytes()
            return no_more(self._db.execute(sql, values).fetchmany(size), size)

    @contextmanager
    def _sound(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, TypeError, OverflowError) as error:
            raise RunError(f"{self.name}: rows.sqlite is damaged: {error}") from error


class Writer(Store):
    """The rows, for writing: kept in memory for a second, then written in one transaction."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, writing=True)
        self._pending: dict[str, list[tuple[Any, ...]]] = {table: [] for table in INSERTS}
        self._written = time.monotonic()
        with in_words(self.name):
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            while self.version in UPGRADES:
                with self._transaction():
                    for change in UPGRADES[self.version]:
                        self._db.execute(change)
                    self._remember("version", self.version + 1)
                self.version += 1
        self._events = self._all("SELECT coalesce(max(id), 0) FROM events")[0][0]

    @staticmethod
    def create(path: Path, about: Mapping[str, str] | None = None) -> None:
        """A new file without rows; what it says of itself, beside its version, is as given."""
        db = sqlite3.connect(path, isolation_level=None)
        try:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(f"BEGIN; {SCHEMA}")
            db.executemany("INSERT INTO meta VALUES (?, ?)", (about or {}).items())
            db.execute("COMMIT")
        finally:
            db.close()

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Scalars."""
        self._pending["scalars"] += [(name, step, float(value)) for name, value in values.items()]
        self.write_if_due()

    def log_arrays(self, step: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Arrays, as 32-bit floats."""
        for name, array in arrays.items():
            data = np.asarray(array, dtype="<f4")
            self._pending["arrays"].append((name, step, json.dumps(data.shape), data.tobytes()))
        self.write_if_due()

    def log_maps(self, step: int, maps: Mapping[str, Any]) -> None:
        """Maps, already packed."""
        self._pending["maps"] += [(step, name, bytes(data)) for name, data in maps.items()]
        self.write_if_due()

    def event(self, step: int, kind: str, text: str) -> None:
        """Something happened. It is numbered here, so that writing it twice writes it once."""
        self._events += 1
        self._pending["events"].append((self._events, step, kind, text, time.time()))
        self.write_if_due()

    def describe(self, key: str, value: Any) -> None:
        """A fact about the run, in place of what was said before; ValueError where no reader could read it."""
        self._pending["described"].append((key, to_json(key, value)))

    def write_if_due(self) -> None:
        """Write if the last transaction was a while ago."""
        if time.monotonic() - self._written >= PAUSE:
            self.write()

    def write(self, *, saved: int | None = None) -> None:
        """Everything logged so far, in one transaction; with a step to be `saved`, wait until it is on the disk."""
        self._written = time.monotonic()
        if saved is None and not any(self._pending.values()):
            return
        with in_words(self.name):
            if saved is not None:
                self._db.execute("PRAGMA synchronous = FULL")
            try:
                with self._transaction():
                    self._insert()
                    if saved is not None:   # also makes a transaction where nothing was pending: the wait needs one
                        self._remember("saved", saved)
            finally:
                if saved is not None:
                    self._db.execute("PRAGMA synchronous = NORMAL")
        for rows in self._pending.values():
            rows.clear()

    def remember(self, values: Mapping[str, str]) -> None:
        """Replace what the file says of itself. On disk when this returns."""
        with in_words(self.name):
            self._db.execute("PRAGMA synchronous = FULL")
            try:
                with self._transaction():
                    for key, value in values.items():
                        self._remember(key, value)
            finally:
                self._db.execute("PRAGMA synchronous = NORMAL")

    def forget_after(self, step: int) -> None:
        """Delete the rows of all later steps."""
        self.write()
        with in_words(self.name), self._transaction():
            for table in WITH_STEPS:
                self._db.execute(f"DELETE FROM {table} WHERE step > ?", (step,))

    def _insert(self) -> None:
        names = {row[0] for table in ("scalars", "arrays") for row in self._pending[table]}
        self._many("INSERT OR IGNORE INTO names (name) VALUES (?)", ((name,) for name in sorted(names)))
        for table, rows in self._pending.items():
            # curve by curve, as the tables lie on disk: else each row is on another page than the one before
            self._many(INSERTS[table], sorted(rows, key=itemgetter(0)) if table in ("scalars", "arrays") else rows)

    def _many(self, sql: str, rows: Iterable[tuple[Any, ...]]) -> None:
        self._db.executemany(sql, rows)

    def _remember(self, key: str, value: object) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, str(value)))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:   # SQLite has ended it by itself after some failures
                self._db.execute("ROLLBACK")
            raise


def _address(path: Path, writing: bool) -> str:
    """The file as SQLite is told to open it."""
    how = "rw" if writing else "ro"
    log = path.with_name(path.name + "-wal")
    alone = not (log.exists() and log.stat().st_size)
    if not writing and alone and not os.access(path.parent, os.W_OK):
        how = "ro&immutable=1"   # nobody can be writing; without this SQLite wants to create files beside it
    return f"{path.absolute().as_uri()}?mode={how}"
