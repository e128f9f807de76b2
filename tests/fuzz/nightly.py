"""The long fuzzing: every kind of file that may come from anybody, broken in hundreds of thousands of ways.

    python tests/fuzz/nightly.py                                             every target, 50,000 files each
    python tests/fuzz/nightly.py --target parser --executions 1000000        one of them for longer
    python tests/fuzz/nightly.py --minutes 5 --seed 7                        at most so long each, other files

With atheris (`pip install atheris`), which sees what each file makes run and goes on from those that reach new code;
without it, or with --plain, by changes to good files, going on from those that are refused in a new way. A process may
use one gigabyte more than it begins with, and a file two seconds. Exits with 1 where anything was found.
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
ROOM = 1 << 30
"""Bytes beyond those of the process before it reads the first file."""
SLOW = 2.0
"""Seconds of the processor for one file."""
WORDS = re.compile(r"""\d+|[^ -~]|`[^`]*`|'[^']*'|"[^"]*\"|\\x..""")
"""What differs between two refusals of the same kind."""
LONGEST = 1 << 14
"""Bytes of a file that atheris makes."""


class Watch:
    """Runs a target and remembers what went wrong, each thing once."""

    def __init__(self, target: Any, name: str, executions: int, minutes: float) -> None:
        self.target, self.name, self.executions = target, name, executions
        self.start, self.end = time.monotonic(), time.monotonic() + 60 * minutes
        self.count, self.read, self.slowest = 0, 0, 0.0
        self.ways: Counter[str] = Counter()
        self.faults: dict[str, bytes] = {}

    def one(self, data: bytes) -> bool:
        """One file; whether it was refused, or read, in a way not seen before."""
        before, self.count = time.process_time(), self.count + 1
        way = ""
        try:
            way = self.target.outcome(data)
            self.read += not way
        except Exception as error:
            frames = [one for one in traceback.extract_tb(error.__traceback__) if "/neural/" in one.filename]
            place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
            kind = f"{type(error).__name__} at {place}"
            self.fault(f"{kind}: {str(error)[:200]}", kind, data)
        took = time.process_time() - before
        self.slowest = max(self.slowest, took)
        if took > SLOW:
            self.fault(f"{took:.1f} s for {len(data):,} bytes", "slow", data)
        shape = WORDS.sub("#", way)[:60]
        self.ways[shape] += 1
        return self.ways[shape] == 1

    def fault(self, words: str, kind: str, data: bytes) -> None:
        """Said and kept the first time."""
        if kind in self.faults:
            return
        self.faults[kind] = data
        kept = Path(tempfile.gettempdir()) / f"fuzz-{self.name}-{len(self.faults)}"
        kept.write_bytes(data)
        print(f"{self.name}: {words}\n  {data[:300]!r}\n  kept in {kept}", flush=True)

    @property
    def over(self) -> bool:
        """Whether it is enough."""
        return self.count >= self.executions or time.monotonic() > self.end

    def said(self, how: str) -> str:
        """What came of it."""
        seconds = time.monotonic() - self.start
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        return (f"{self.name}: {self.count:,} files in {seconds:.0f} s ({how}), {self.read:,} read, refused in "
                f"{len(self.ways) - ('' in self.ways)} ways, slowest {1000 * self.slowest:.0f} ms, "
                f"memory {most:.0f} MB, {len(self.faults)} faults; {time.process_time():.0f} s of a core")  # fmt: skip


def limited() -> None:
    """No more memory than is there now and a bit: what is made too large fails at once."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM,) * 2)


def guided(name: str, executions: int, minutes: float, seed: int) -> None:
    """By atheris, which ends the process itself."""
    import atheris

    with atheris.instrument_imports(include=["neural"]):
        from tests.fuzz.target import tidy
        from tests.fuzz.targets import TARGETS

        target = TARGETS[name]
        first = target.seeds()
        for data in first:   # what is imported late is seen too
            target.outcome(data)
    limited()
    watch = Watch(target, name, executions, minutes)
    corpus = Path(tempfile.mkdtemp(prefix="corpus-"))
    for number, data in enumerate(first):
        (corpus / f"seed-{number}").write_bytes(data)
    words = corpus.with_suffix(".dict")
    escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in (*target.words, b"\0"))   # it must not be empty
    words.write_text("".join(f'"{word}"\n' for word in escaped), encoding="ascii")

    def called(data: bytes) -> None:
        watch.one(data)
        if watch.over:
            print(watch.said("atheris"), flush=True)
            tidy()
            shutil.rmtree(corpus, ignore_errors=True)
            words.unlink(missing_ok=True)
            os._exit(bool(watch.faults))

    options = [f"-max_len={LONGEST}", "-timeout=60", "-rss_limit_mb=0", f"-seed={seed + 1}", "-verbosity=0"]
    atheris.Setup([sys.argv[0], str(corpus), f"-dict={words}", *options], called)
    atheris.Fuzz()


def plain(name: str, executions: int, minutes: float, seed: int) -> int:
    """By changes to good files, and to those that were refused in a new way."""
    from tests.fuzz.mutations import Mutator
    from tests.fuzz.targets import TARGETS

    target = TARGETS[name]
    mutator = Mutator(target.seeds(), target.words, seed)
    for data in mutator.seeds:
        target.outcome(data)
    limited()
    watch = Watch(target, name, executions, minutes)
    while not watch.over:
        data = mutator.next()
        if watch.one(data):
            mutator.seeds.append(data)
    print(watch.said("changes"), flush=True)
    return bool(watch.faults)


def main() -> int:
    """Each target in a process of its own."""
    sys.path.insert(0, str(ROOT))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", action="append", help="one kind of file; several times for several")
    parser.add_argument("--executions", type=int, default=50_000, help="files of each kind")
    parser.add_argument("--minutes", type=float, default=60, help="for each kind, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="without atheris, also where it is installed")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    said = parser.parse_args()
    asked = (said.executions, said.minutes, said.seed)
    if said.here:
        warnings.simplefilter("ignore")
        logging.disable()
        if said.plain or importlib.util.find_spec("atheris") is None:
            return plain(said.target[0], *asked)
        guided(said.target[0], *asked)
    from tests.fuzz.targets import TARGETS  # not before: atheris must see it being imported

    unknown = [name for name in said.target or () if name not in TARGETS]
    if unknown:
        parser.error(f"no target is called {unknown[0]}; there are {', '.join(TARGETS)}")
    codes = []
    for name in said.target or TARGETS:
        again = [sys.executable, __file__, "--here", "--target", name, "--executions", str(said.executions)]
        again += ["--minutes", str(said.minutes), "--seed", str(said.seed), *(["--plain"] if said.plain else [])]
        codes.append(subprocess.run(again, check=False).returncode)
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main())
