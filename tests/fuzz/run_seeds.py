"""Good run folders and sweeps, small, as fuzzing begins with; and rows that JSON spells."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.seeds import maps


@cache
def run_files() -> dict[str, bytes]:
    """The files of a small run."""
    from neural.tracking.run import Run

    text = 'network A { input: (7, 4) layers: TransformerEncoder(num_heads=2) Output(2, activation="softmax") }'
    settings = {"task": "supervised", "network": text, "data": "digits", "network_name": "A",
                "training": {"steps": 5, "seed": 1}}  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        made = Run.create(Path(folder), "small", settings=settings, program=text, environment={"python": "3.11"})
        for step in (1, 2, 3):
            made.log(step, {"train/loss": 1 / step, "valid/loss": 1.5 / step, "valid/accuracy": step / 4})
            made.log_arrays(step, {"entropy": np.full((1, 2), step)})
        made.log_maps(3, {"transformer_encoder": maps()[0]})
        for key, value in described().items():
            made.describe(key, value)
        made.event(1, "switch", "to the second half")
        made.finish("finished", "all is well")
        return {one.name: one.read_bytes() for one in made.path.iterdir() if one.is_file() and one.name != "lock"}


def described() -> dict[str, Any]:
    """What a run says about its numbers."""
    return {
        "steps": 5, "epoch": 2.5, "parameters": 123, "attention/layers": ["transformer_encoder"],
        "attention/heads": [2], "attention/measures": {"entropy": {"unit": "nats", "says": "how wide"}},
        "probe/labels": [list("abcdefg")],
        "generation/texts": {"3": "once"}, "generation/real": {"nll": 1.5}, "vocabulary": ["a", "b"],
    }  # fmt: skip


@cache
def runs() -> list[bytes]:
    """A file's name and its content; `rows` are rows to put into a new rows.sqlite, as JSON."""
    files = dict(run_files())
    rows = [["described", key, json.dumps(value)] for key, value in described().items()]
    rows += [["names", 1, "valid/loss"], ["scalars", 1, 3, 0.5], ["names", 2, "entropy"],
             ["events", 1, 2, "k", "t", 9.5], ["arrays", 2, 3, "[1, 2]", "0000803f0000803f"],
             ["maps", 3, "transformer_encoder", maps()[0].hex()]]  # fmt: skip
    files["rows"] = json.dumps(rows).encode()
    return [name.encode() + b"\n" + one for name, one in files.items()]


@cache
def _no_rows() -> bytes:
    from neural.tracking.store import Writer

    with tempfile.TemporaryDirectory() as folder:
        Writer.create(Path(folder) / "rows.sqlite")
        return (Path(folder) / "rows.sqlite").read_bytes()


def with_rows(content: bytes) -> bytes:
    """A rows.sqlite with rows that JSON spells, as far as it does; texts of hex digits are bytes."""
    db = sqlite3.connect(":memory:")
    db.deserialize(_no_rows()[:18] + b"\x01\x01" + _no_rows()[20:])   # in memory there is no log beside it
    try:
        for table, *row in json.loads(content):
            values = [bytes.fromhex(one) if table in ("arrays", "maps") and at == len(row) - 1 else one
                      for at, one in enumerate(row)]  # fmt: skip
            marks = ", ".join("?" * len(row))
            db.execute(f"INSERT OR REPLACE INTO {re.sub('[^a-z]', '', table)} VALUES ({marks})", values)
    except (ValueError, TypeError, RecursionError, OverflowError, sqlite3.Error):
        pass
    finally:
        db.commit()
        made = db.serialize()
        db.close()
    return made


@cache
def sweeps() -> list[bytes]:
    """A table of two trials."""
    trials = [{"trial": {"name": f"t{at}", "seed": at, "point": {"training.steps": 3}, "changes": ["training.seed=1"]},
               "state": "finished", "reason": "", "attempts": 1, "run": None, "step": 3, "steps": 3, "score": 0.5,
               "scores": {"valid/loss": 0.5}} for at in range(2)]  # fmt: skip
    status = {"state": "running", "step": 1, "pid": 1, "host": "elsewhere", "time": 1.0}
    table = {"version": 1, "experiment": "e.yaml", "settings": {"retries": 1}, "time": 1.0, "options": [], "about": {},
             "writer": status, "trials": trials}  # fmt: skip
    return [json.dumps(table).encode()]
