"""Cause real faults during a training, and check that it survives them.

    python tests/faults/survive.py                          every fault, a few rounds
    python tests/faults/survive.py --rounds 100 --seed 1    the numbers of docs/reliability.md
    python tests/faults/survive.py --only killed,full_disk --json

The training is a smaller examples/language_model/tiny.yaml. Prints one table; exit code 1 if a check
failed. Needs a C compiler. Disks are made full or read-only by mounting small ones if that is
permitted, otherwise by failing the calls. Each fault is a file of survival/.
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
from tests.faults.breaker import build_library, make_preload_environment  # noqa: E402

FAULTS = sorted(
    module.name
    for module in pkgutil.iter_modules(survival.__path__)
    if not module.name.startswith("_")
)


def parse_arguments(words: list[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--rounds", type=int, default=3, help="Rounds of each fault that is random."
    )
    parser.add_argument("--seed", type=int, default=0, help="Random seed.")
    parser.add_argument(
        "--only", default=",".join(FAULTS), help=f"Comma-separated: {', '.join(FAULTS)}."
    )
    parser.add_argument("--json", action="store_true", help="Print JSON.")
    options = parser.parse_args(words)
    unknown = [name for name in options.only.split(",") if name not in FAULTS]
    if unknown or options.rounds < 1:
        parser.error(
            f"no such fault: {', '.join(unknown)}" if unknown else "--rounds must be 1 or more"
        )
    return options


def try_fault(name: str, folder: Path, rounds: int, seed: int) -> dict[str, Any]:
    """Run one fault; returns its row of the table."""
    from tests.faults.survival._bench import Bench, SurvivalResult

    bench, start_time = Bench(folder, rounds=rounds, seed=seed), time.monotonic()
    try:
        result = importlib.import_module(f"tests.faults.survival.{name}").survive(bench)
    except Exception:  # the other faults still run
        bench.failures.append(traceback.format_exc())
        result = SurvivalResult(rounds=0, checked="aborted", lost="?", message="?")
    return {
        "fault": name.replace("_", " "),
        **asdict(result),
        "seconds": round(time.monotonic() - start_time, 1),
        "failures": bench.failures,
    }


def format_table(rows: list[dict[str, Any]]) -> str:
    """The table of docs/reliability.md, in Markdown."""
    lines = [
        "| fault | rounds | checks | lost at most | message |",
        "|---|--:|---|---|---|",
    ]
    for row in rows:
        checked = row["checked"] + (f" ({row['method']})" if row["method"] else "")
        lines.append(
            f"| {row['fault']} | {row['rounds']:,} | {checked} | {row['lost']} | {row['message']} |"
        )
    failures = [f"FAILED {row['fault']}: {text}" for row in rows for text in row["failures"]]
    return "\n".join(lines + failures)


def main() -> int:
    """Restart with the library preloaded, then run the faults."""
    options, preloaded = parse_arguments(sys.argv[1:]), os.environ.get("LD_PRELOAD", "")
    if "break_files" not in preloaded:
        library = build_library(Path(tempfile.mkdtemp(prefix="survive-")).resolve())
        library.parent.chmod(0o755)  # some faults run as another user
        os.execve(
            sys.executable,
            [sys.executable, __file__, *sys.argv[1:]],
            make_preload_environment(library),
        )
    folder, rows = Path(preloaded).parent, []
    try:
        for fault in options.only.split(","):
            print(f"{fault} …", end=" ", file=sys.stderr, flush=True)
            rows.append(try_fault(fault, folder, options.rounds, options.seed))
            print(f"{rows[-1]['seconds']} s", file=sys.stderr, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(rows) if options.json else format_table(rows))
    return int(any(row["failures"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
