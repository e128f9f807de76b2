"""The tables of a run's rows, and how older files become files of today.

    meta       key, value                  the format's `version`; `saved`: the step of the last checkpoint
    names      id, name                    of scalars and arrays
    scalars    name, step, value           no value is NaN
    arrays     name, step, shape, data     32-bit floats, little end first; the shape as JSON
    maps       step, name, data            as tracking/quantised.py packs them
    events     id, step, kind, text, time
    described  key, value                  JSON
"""

from __future__ import annotations

VERSION = 2
MAPS = "CREATE TABLE maps (step INTEGER NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (step, name))"
SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE scalars (name INTEGER NOT NULL, step INTEGER NOT NULL, value REAL, PRIMARY KEY (name, step)) WITHOUT ROWID;
CREATE TABLE arrays (name INTEGER NOT NULL, step INTEGER NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL,
                     PRIMARY KEY (name, step)) WITHOUT ROWID;
CREATE TABLE events (id INTEGER PRIMARY KEY, step INTEGER NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
                     time REAL NOT NULL);
CREATE TABLE described (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
{MAPS};
INSERT INTO meta VALUES ('version', '{VERSION}');
"""
OLDER = {1: "CREATE TEMP VIEW maps AS SELECT 0 AS step, '' AS name, x'' AS data WHERE 0"}
"""What makes an older file look like one of today to a reader; version 1 had no maps."""
UPGRADES = {1: (MAPS, "DELETE FROM meta WHERE key = 'status'")}
"""What makes it one of the next version, before it is written again; version 1 kept the status among its rows."""
WITH_STEPS = ("scalars", "arrays", "maps", "events")
ID = "(SELECT id FROM names WHERE name = ?)"
INSERTS = {
    "scalars": f"INSERT OR REPLACE INTO scalars VALUES ({ID}, ?, ?)",
    "arrays": f"INSERT OR REPLACE INTO arrays VALUES ({ID}, ?, ?, ?)",
    "maps": "INSERT OR REPLACE INTO maps VALUES (?, ?, ?)",
    "events": "INSERT OR REPLACE INTO events VALUES (?, ?, ?, ?, ?)",
    "described": "INSERT OR REPLACE INTO described VALUES (?, ?)",
}
