"""Does a training survive what can happen to it? Faults are made for real, and what is left is looked at.

    python tests/faults/survive.py                          every fault, a few rounds
    python tests/faults/survive.py --rounds 100 --seed 1    as docs/reliability.md tells it
    python tests/faults/survive.py --only killed,full_disk --json

The training is examples/language_model/tiny.yaml, made smaller. Prints one table; exit code 1 where a promise of
docs/reliability.md was not kept. Needs a C compiler; disks are made full and read-only by mounting small ones where
that is permitted, else by failing the calls. Each fault is a file of survival/.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import shutil
import sys
import tempfile
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.faults import survival  # noqa: E402 (the path above makes them importable)
from tests.faults.breaker import built, loading  # noqa: E402

FAULTS = sorted(one.name for one in pkgutil.iter_modules(survival.__path__) if not one.name.startswith("_"))


def arguments(words: list[str]) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3, help="How often each fault happens, where chance decides.")
    parser.add_argument("--seed", type=int, default=0, help="Of the chance.")
    parser.add_argument("--only", default=",".join(FAULTS), help=f"Some of {', '.join(FAULTS)}.")
    parser.add_argument("--json", action="store_true", help="For machines.")
    asked = parser.parse_args(words)
    unknown = [one for one in asked.only.split(",") if one not in FAULTS]
    if unknown or asked.rounds < 1:
        parser.error(f"no such fault: {', '.join(unknown)}" if unknown else "--rounds must be 1 or more")
    return asked


def tried(name: str, folder: Path, rounds: int, seed: int) -> dict[str, Any]:
    """A fault's line of the table."""
    from tests.faults.survival._bench import Bench, Survived

    bench, begun = Bench(folder, rounds=rounds, seed=seed), time.monotonic()
    try:
        seen = importlib.import_module(f"tests.faults.survival.{name}").survive(bench)
    except Exception:   # the others are tried all the same
        bench.broken.append(traceback.format_exc())
        seen = Survived(rounds=0, checked="broken off", lost="?", said="?")
    return {"fault": name.replace("_", " "), **asdict(seen), "seconds": round(time.monotonic() - begun, 1),
            "broken": bench.broken}  # fmt: skip


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, as it stands in the documentation."""
    lines = ["| fault | rounds | what was checked | lost at most | what was said |", "|---|--:|---|---|---|"]
    for row in rows:
        checked = row["checked"] + (f" ({row['how']})" if row["how"] else "")
        lines.append(f"| {row['fault']} | {row['rounds']:,} | {checked} | {row['lost']} | {row['said']} |")
    broken = [f"BROKEN {row['fault']}: {text}" for row in rows for text in row["broken"]]
    return "\n".join(lines + broken)


def main() -> int:
    """Load the library that breaks things, then break them."""
    asked, loaded = arguments(sys.argv[1:]), os.environ.get("LD_PRELOAD", "")
    if "break_files" not in loaded:
        library = built(Path(tempfile.mkdtemp(prefix="survive-")).resolve())
        library.parent.chmod(0o755)   # a fault may be tried as another user
        os.execve(sys.executable, [sys.executable, __file__, *sys.argv[1:]], loading(library))
    folder, rows = Path(loaded).parent, []
    try:
        for fault in asked.only.split(","):
            print(f"{fault} …", end=" ", file=sys.stderr, flush=True)
            rows.append(tried(fault, folder, asked.rounds, asked.seed))
            print(f"{rows[-1]['seconds']} s", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(rows) if asked.json else table(rows))
    return int(any(row["broken"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
