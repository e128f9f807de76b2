"""Long fuzzing of every untrusted kind of file.

    python tests/fuzz/nightly.py                                          every target, 50,000 files
    python tests/fuzz/nightly.py --target parser --executions 1000000     one target for longer
    python tests/fuzz/nightly.py --minutes 5 --seed 7                     at most 5 minutes each

With atheris (`pip install atheris`), which mutates files that reach new code; without it, or with
--plain, by mutations of valid files and of those that were refused in a new way. A process may use
one gigabyte more than at its start, and a file two seconds. Exit code 1 where a fault was found.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EXTRA_MEMORY_BYTES = 1 << 30
"""Memory limit above the usage before the first file."""
MAX_SECONDS = 2.0
"""CPU time per file."""
VARIABLE_PARTS = re.compile(r"""\d+|[^ -~]|`[^`]*`|'[^']*'|"[^"]*\"|\\x..""")
"""What differs between two refusals of the same kind."""
MAX_FILE_BYTES = 1 << 14
"""Size of files that atheris creates."""


class FuzzSession:
    """Runs a target and records each fault once."""

    def __init__(self, target: Any, name: str, executions: int, minutes: float) -> None:
        self.target, self.name, self.executions = target, name, executions
        self.start, self.end = time.monotonic(), time.monotonic() + 60 * minutes
        self.count, self.read, self.slowest = 0, 0, 0.0
        self.refusal_counts: Counter[str] = Counter()
        self.faults: dict[str, bytes] = {}

    def run(self, data: bytes) -> bool:
        """Run one file; return whether its result is of a new kind."""
        start, self.count = time.process_time(), self.count + 1
        refusal = ""
        try:
            refusal = self.target.run(data)
            self.read += not refusal
        except Exception as error:
            frames = [
                frame
                for frame in traceback.extract_tb(error.__traceback__)
                if "/neural/" in frame.filename
            ]
            location = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
            kind = f"{type(error).__name__} at {location}"
            self.record_fault(f"{kind}: {str(error)[:200]}", kind, data)
        seconds = time.process_time() - start
        self.slowest = max(self.slowest, seconds)
        if seconds > MAX_SECONDS:
            self.record_fault(f"{seconds:.1f} s for {len(data):,} bytes", "slow", data)
        refusal_kind = VARIABLE_PARTS.sub("#", refusal)[:60]
        self.refusal_counts[refusal_kind] += 1
        return self.refusal_counts[refusal_kind] == 1

    def record_fault(self, message: str, kind: str, data: bytes) -> None:
        """Print and save a fault the first time it occurs."""
        if kind in self.faults:
            return
        self.faults[kind] = data
        path = Path(tempfile.gettempdir()) / f"fuzz-{self.name}-{len(self.faults)}"
        path.write_bytes(data)
        print(f"{self.name}: {message}\n  {data[:300]!r}\n  saved in {path}", flush=True)

    @property
    def is_finished(self) -> bool:
        """Whether the number of files or the time limit is reached."""
        return self.count >= self.executions or time.monotonic() > self.end

    def format_summary(self, engine: str) -> str:
        """One line with all counts."""
        seconds = time.monotonic() - self.start
        peak_memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return (
            f"{self.name}: {self.count:,} files in {seconds:.0f} s ({engine}), {self.read:,} read, refused in "
            f"{len(self.refusal_counts) - ('' in self.refusal_counts)} ways, slowest {1000 * self.slowest:.0f} ms, "
            f"memory {peak_memory:.0f} MB, {len(self.faults)} faults; {time.process_time():.0f} s of a core"
        )


def limit_memory() -> None:
    """Limit the address space: what is too large fails at once."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(
        resource.RLIMIT_AS, (pages * resource.getpagesize() + EXTRA_MEMORY_BYTES,) * 2
    )


def run_atheris(name: str, executions: int, minutes: float, seed: int) -> None:
    """Fuzz with atheris, which ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["neural"]):
        from tests.fuzz.target import remove_folders
        from tests.fuzz.targets import TARGETS

        target = TARGETS[name]
        seeds = target.seeds()
        for data in seeds:  # so that late imports are instrumented too
            target.run(data)
    limit_memory()
    session = FuzzSession(target, name, executions, minutes)
    corpus = Path(tempfile.mkdtemp(prefix="corpus-"))
    for index, data in enumerate(seeds):
        (corpus / f"seed-{index}").write_bytes(data)
    dictionary = corpus.with_suffix(".dict")
    # The dictionary must not be empty.
    escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in (*target.words, b"\0"))
    dictionary.write_text("".join(f'"{word}"\n' for word in escaped), encoding="ascii")

    def run_one(data: bytes) -> None:
        session.run(data)
        if session.is_finished:
            print(session.format_summary("atheris"), flush=True)
            remove_folders()
            shutil.rmtree(corpus, ignore_errors=True)
            dictionary.unlink(missing_ok=True)
            os._exit(bool(session.faults))

    options = [
        f"-max_len={MAX_FILE_BYTES}",
        "-timeout=60",
        "-rss_limit_mb=0",
        f"-seed={seed + 1}",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], str(corpus), f"-dict={dictionary}", *options], run_one)
    atheris.Fuzz()


def run_mutations(name: str, executions: int, minutes: float, seed: int) -> int:
    """Fuzz by mutations of valid files, and of those that were refused in a new way."""
    from tests.fuzz.mutations import Mutator
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    mutator = Mutator(target.seeds(), target.words, seed)
    for data in mutator.seeds:
        target.run(data)
    limit_memory()
    session = FuzzSession(target, name, executions, minutes)
    while not session.is_finished:
        data = mutator.next()
        if session.run(data):
            mutator.seeds.append(data)
    print(session.format_summary("mutations"), flush=True)
    return bool(session.faults)


def main() -> int:
    """Run each target in its own process."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", action="append", help="one kind of file; may be repeated")
    parser.add_argument("--executions", type=int, default=50_000, help="files per kind")
    parser.add_argument("--minutes", type=float, default=60, help="time limit per kind")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--plain", action="store_true", help="without atheris even if it is installed"
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    limits = (options.executions, options.minutes, options.seed)
    if options.here:
        warnings.simplefilter("ignore")
        logging.disable()
        if options.plain or importlib.util.find_spec("atheris") is None:
            return run_mutations(options.target[0], *limits)
        run_atheris(options.target[0], *limits)
    from tests.fuzz.targets import TARGETS  # late: atheris must instrument the import

    unknown = [name for name in options.target or () if name not in TARGETS]
    if unknown:
        parser.error(f"no target is called {unknown[0]}; there are {', '.join(TARGETS)}")
    codes = []
    for name in options.target or TARGETS:
        command = [
            sys.executable,
            __file__,
            "--here",
            "--target",
            name,
            "--executions",
            str(options.executions),
        ]
        command += [
            "--minutes",
            str(options.minutes),
            "--seed",
            str(options.seed),
            *(["--plain"] if options.plain else []),
        ]
        codes.append(subprocess.run(command, check=False).returncode)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
