"""Small valid run folders and sweeps, from which fuzzing starts; and databases from JSON rows."""

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
    from neural.runs.run import Run

    text = 'network A { input: (7, 4) layers: TransformerEncoder(num_heads=2) Output(2, activation="softmax") }'
    settings = {
        "task": "supervised",
        "network": text,
        "data": "digits",
        "network_name": "A",
        "training": {"steps": 5, "seed": 1},
    }
    with tempfile.TemporaryDirectory() as folder:
        run = Run.create(
            Path(folder), "small", settings=settings, program=text, environment={"python": "3.11"}
        )
        for step in (1, 2, 3):
            run.log(
                step, {"train/loss": 1 / step, "valid/loss": 1.5 / step, "valid/accuracy": step / 4}
            )
            run.log_arrays(step, {"entropy": np.full((1, 2), step)})
        run.log_maps(3, {"transformer_encoder": maps()[0]})
        for key, value in metadata().items():
            run.set_metadata(key, value)
        run.log_event(1, "switch", "to the second half")
        run.finish("finished", "all is well")
        return {
            path.name: path.read_bytes()
            for path in run.path.iterdir()
            if path.is_file() and path.name != "lock"
        }


def metadata() -> dict[str, Any]:
    """Metadata of a run."""
    return {
        "steps": 5,
        "batches_per_epoch": 2.5,
        "parameters": 123,
        "attention/layers": ["transformer_encoder"],
        "attention/heads": [2],
        "attention/measures": {"entropy": {"unit": "nats", "description": "how wide"}},
        "probe/labels": [list("abcdefg")],
        "generation/samples": {"3": "once"},
        "generation/real_text": {"nll": 1.5},
        "vocabulary": ["a", "b"],
    }


@cache
def runs() -> list[bytes]:
    """A file's name and content; `rows` are rows for a new rows.sqlite, as JSON."""
    files = dict(run_files())
    rows = [["metadata", key, json.dumps(value)] for key, value in metadata().items()]
    rows += [
        ["names", 1, "valid/loss"],
        ["scalars", 1, 3, 0.5],
        ["names", 2, "entropy"],
        ["events", 1, 2, "k", "t", 9.5],
        ["arrays", 2, 3, "[1, 2]", "0000803f0000803f"],
        ["maps", 3, "transformer_encoder", maps()[0].hex()],
    ]
    files["rows"] = json.dumps(rows).encode()
    return [name.encode() + b"\n" + content for name, content in files.items()]


@cache
def _empty_database() -> bytes:
    from neural.runs.store import RunWriter

    with tempfile.TemporaryDirectory() as folder:
        RunWriter.create(Path(folder) / "rows.sqlite")
        return (Path(folder) / "rows.sqlite").read_bytes()


def create_database(content: bytes) -> bytes:
    """A rows.sqlite with the valid rows of a JSON text; hex strings are bytes."""
    db = sqlite3.connect(":memory:")
    # Bytes 18 and 19: rollback journal instead of WAL, which does not exist in memory.
    db.deserialize(_empty_database()[:18] + b"\x01\x01" + _empty_database()[20:])
    try:
        for table, *row in json.loads(content):
            values = [
                bytes.fromhex(value)
                if table in ("arrays", "maps") and index == len(row) - 1
                else value
                for index, value in enumerate(row)
            ]
            placeholders = ", ".join("?" * len(row))
            db.execute(
                f"INSERT OR REPLACE INTO {re.sub('[^a-z]', '', table)} VALUES ({placeholders})",
                values,
            )
    except (ValueError, TypeError, RecursionError, OverflowError, sqlite3.Error):
        pass
    finally:
        db.commit()
        data = db.serialize()
        db.close()
    return data


@cache
def sweeps() -> list[bytes]:
    """A sweep of two trials."""
    trials = [
        {
            "trial": {
                "name": f"t{number}",
                "seed": number,
                "point": {"training.steps": 3},
                "overrides": ["training.seed=1"],
            },
            "state": "finished",
            "reason": "",
            "attempts": 1,
            "run": None,
            "step": 3,
            "steps": 3,
            "score": 0.5,
            "scores": {"valid/loss": 0.5},
        }
        for number in range(2)
    ]
    status = {"state": "running", "step": 1, "pid": 1, "host": "elsewhere", "time": 1.0}
    table = {
        "version": 1,
        "experiment": "e.yaml",
        "settings": {"retries": 1},
        "time": 1.0,
        "options": [],
        "about": {},
        "writer": status,
        "trials": trials,
    }
    return [json.dumps(table).encode()]
