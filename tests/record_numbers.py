"""Numbers that a refactoring must not change: weights, metrics and JSON answers with fixed seeds.

    python tests/record_numbers.py before.json                      trains and asks; about a minute
    python tests/record_numbers.py after.json
    python tests/record_numbers.py --compare before.json after.json [--renamed names.json]

Reads run folders by their file formats (SQLite, safetensors), not through the package, so that it still
works after names in the package have changed. `names.json` maps old keys to new ones.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TRAININGS = {
    "language_model": ("language_model/tiny.yaml", ["training.steps=120"]),
    "segmentation": ("demo/segmenter.yaml", []),
    "supervised": ("digits.yaml", ["training.steps=120"]),
}
COMPARISON = "demo/focus.yaml"
ANSWERS = {
    "language_model": [["analyze"]],
    "segmentation": [["analyze"], ["evaluate"]],
    "supervised": [["analyze"]],
}
THEORY = ["dynamics", "--theory", "C=3", "m=10", "--json"]
PATHS = re.compile(r"(/[\w.+-]+)+|\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d")
"""Folders and start times, which differ from one recording to the next."""
TIMES = re.compile(r"second|time|ms|took|began|begun|heartbeat|speed|per_s", re.IGNORECASE)


def neural(*words: str, folder: Path) -> str:
    """What the command prints; one thread, so that sums are added in one order."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "neural", *words]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return done.stdout


def digest(data: bytes) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:16]


def read_run(path: Path) -> dict[str, Any]:
    """Hashes of a run's last weights and of all rows that were measured, except times."""
    checkpoint = max((path / "checkpoints").glob("*.safetensors"))
    rows = sqlite3.connect(f"file:{path / 'rows.sqlite'}?mode=ro", uri=True)
    query = "SELECT names.name, step, {} FROM {} JOIN names ON names.id = {}.name ORDER BY 1, 2"
    scalars: dict[str, list] = {}
    arrays: dict[str, list] = {}
    for name, step, value in rows.execute(query.format("value", "scalars", "scalars")):
        scalars.setdefault(name, []).append((step, value))
    for name, step, data in rows.execute(query.format("data", "arrays", "arrays")):
        arrays.setdefault(name, []).append((step, digest(data)))
    rows.close()
    return {
        # names of parameters may change, so the tensors are compared as a set
        "weights": sorted(digest(tensor.tobytes()) for tensor in load_file(checkpoint).values()),
        "scalars": {name: values for name, values in scalars.items() if not TIMES.search(name)},
        "arrays": arrays,
    }


def without_times(answer: Any) -> Any:
    """A JSON answer without paths and durations."""
    if isinstance(answer, dict):
        return {key: without_times(value) for key, value in answer.items() if not TIMES.search(key)}
    if isinstance(answer, list):
        return [without_times(value) for value in answer]
    return PATHS.sub("…", answer) if isinstance(answer, str) else answer


def record() -> dict[str, Any]:
    """All numbers."""
    numbers: dict[str, Any] = {"runs": {}, "answers": {}, "networks": {}}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, (file, changes) in TRAININGS.items():
            print(name, file=sys.stderr)
            words = [word for change in changes for word in ("--set", change)]
            neural("train", str(EXAMPLES / file), "--name", name, *words, folder=folder)
            (path,) = folder.glob(f"runs/*_{name}")
            numbers["runs"][name] = read_run(path)
            for verb in ANSWERS[name]:
                answer = json.loads(neural(*verb, str(path), "--json", folder=folder))
                numbers["answers"][f"{' '.join(verb)} {name}"] = without_times(answer)
        print("focus", file=sys.stderr)
        neural("dynamics", str(EXAMPLES / COMPARISON), folder=folder)
        for path in sorted(folder.glob("runs/*_focus/*seed-*")):
            if path.is_dir():
                trial = PATHS.sub("", path.name).strip("_")
                numbers["runs"][f"focus {trial}"] = read_run(path)
        numbers["answers"]["theory"] = without_times(json.loads(neural(*THEORY, folder=folder)))
        for program in sorted(EXAMPLES.rglob("*.neural")):
            answer = json.loads(neural("check", str(program), "--json", folder=folder))
            numbers["networks"][str(program.relative_to(EXAMPLES))] = without_times(answer)
    return numbers


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested data with their paths."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{path} › {key}" if path else str(key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, inner in enumerate(value):
            yield from flatten(inner, f"{path} › {index}")
    else:
        yield path, value


def rename(value: Any, names: dict[str, str]) -> Any:
    """The same data with renamed keys."""
    if isinstance(value, dict):
        return {names.get(key, key): rename(inner, names) for key, inner in value.items()}
    return [rename(inner, names) for inner in value] if isinstance(value, list) else value


def compare(before: dict, after: dict) -> int:
    """Print every difference; the number of them."""
    old, new = dict(flatten(before)), dict(flatten(after))
    differences = [
        path for path in sorted(old.keys() | new.keys()) if old.get(path) != new.get(path)
    ]
    for path in differences[:50]:
        print(f"{path}\n  before {str(old.get(path))[:100]}\n  after  {str(new.get(path))[:100]}")
    print(f"{len(differences)} of {len(old)} values differ")
    return len(differences)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", type=Path, help="where the numbers go")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--renamed", type=Path, help="JSON: old keys and their new names")
    arguments = parser.parse_args()
    if arguments.compare:
        before, after = (json.loads(path.read_text(encoding="utf-8")) for path in arguments.compare)
        names = (
            json.loads(arguments.renamed.read_text(encoding="utf-8")) if arguments.renamed else {}
        )
        return int(compare(rename(before, names), after) > 0)
    if arguments.out is None:
        parser.error("where to? name a file, or --compare two")
    arguments.out.write_text(json.dumps(record(), indent=1, ensure_ascii=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
