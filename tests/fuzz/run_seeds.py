"""Small valid run folders and sweeps, from which fuzzing starts; and databases from JSON rows."""

from __future__ import annotations

import json
import re
import sqlite3
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.seeds import maps

BOARD_TOKEN = "a-token-of-the-fuzz-board"
HTTP_WORDS = (
    b"GET ",
    b"POST ",
    b"/api/runs/",
    b"/maps/",
    b"?after=",
    b"?run=",
    b"..%2f",
    b"%00",
    b"%ff",
    b"host: ",
    b"origin: null",
    b"cookie: a=b;",
    b"content-length: ",
    b"\r\n",
    b'"run":',
    b"null",
    b"1e999",
)


@cache
def create_fuzz_board() -> Any:
    """A board with one run; its limits of requests never end, as every reading of its clock adds 10 s."""
    from itertools import count

    from neural.board.app import create_app
    from neural.board.security import ServerConfig
    from tests.fuzz.target import work_folder

    root = work_folder() / "board"
    (root / "small").mkdir(parents=True, exist_ok=True)
    for name, content in run_files().items():
        (root / "small" / name).write_bytes(content)
    seconds = count(0, 10)
    config = ServerConfig("127.0.0.1", 8765, BOARD_TOKEN)
    return create_app(root, config, clock=lambda: float(next(seconds)))


@cache
def board_requests() -> list[bytes]:
    """Requests to every route, as they are sent."""
    head = f"host: 127.0.0.1:8765\r\nauthorization: Bearer {BOARD_TOKEN}"
    segment = '{"text": " ", "min_elements": 2, "threshold": 0.5}'
    generate = '{"run": "none", "prompt": "a", "tokens": 3, "seed": 1}'
    posts = [
        f"POST /api/{name}\r\n{head}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n{body}"
        for name, body in (("segment", segment), ("generate", generate))
    ]
    paths = ["/", "/bundle/neural.css", "/api/runs", "/api/runs/small?after=1", "/nothing"]
    paths += ["/api/runs/small/maps/3", "/api/runs/small/findings", "/api/events?run=small&after=2"]
    cookie = f"GET /\r\nhost: localhost:8765\r\ncookie: neural-board-8765={BOARD_TOKEN}\r\n\r\n"
    token = f"GET /?token={BOARD_TOKEN}\r\nhost: localhost:8765\r\n\r\n"
    gets = [f"GET {path}\r\n{head}\r\n\r\n" for path in paths]
    return [request.encode() for request in (*gets, *posts, cookie, token)]


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


OLD_RUN = Path(__file__).parents[1] / "runs" / "version_2.tar.xz"
"""A run folder of version 2."""


@cache
def old_run_files() -> dict[str, bytes]:
    """The files of a small run of version 2, by their paths."""
    with tarfile.open(OLD_RUN) as archive:
        return {
            member.name.partition("/")[2]: archive.extractfile(member).read()
            for member in archive
            if member.isfile()
        }


@cache
def old_runs() -> list[bytes]:
    """A file's path and content; `described` is metadata of rows.sqlite, as JSON."""
    metadata = {
        "attention/layers": '["encoder.attention.part"]',
        "attention/measures": '{"entropy": {"unit": "nats", "says": "how wide"}}',
    }
    files = {**old_run_files(), "described": json.dumps(metadata).encode()}
    return [name.encode() + b"\n" + content for name, content in files.items() if content]


def replace_descriptions(path: Path, content: bytes) -> None:
    """Replace metadata in a rows.sqlite of version 2."""
    db = sqlite3.connect(path)
    try:
        for key, text in json.loads(content).items():
            db.execute("INSERT OR REPLACE INTO described VALUES (?, ?)", (key, text))
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError, sqlite3.Error):
        pass
    finally:
        db.commit()
        db.close()


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
