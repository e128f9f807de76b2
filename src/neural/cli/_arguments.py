"""Types of command-line arguments, with shell completion.

A candidate is a word that completion offers. A registry is a folder with one file per entry, such
as a layer. Candidates are found by listing folders, because importing all entries would make
completion slow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from neural.core.names import normalize_name

PACKAGE = Path(__file__).parents[1]
"""The folder `neural`."""
PROGRAM_SUFFIXES = (".neural", ".yaml", ".yml")
"""Suffixes of programs, and of experiments, sweeps and studies in YAML."""
CLASS_NAMED_REGISTRIES = ("nn/layers", "optim/optimizers", "optim/schedules")
"""Registries whose entries are named after their class."""
FILE_NAMED_REGISTRIES = ("nn/attention", "nn/positions", "nn/losses")
"""Registries whose entries are named after their file."""

Candidates = Callable[[click.Context, str], Iterator[str]]
"""Function of the context and the incomplete word."""


class CompletedString(StringParamType):
    """A string argument with completion candidates.

    `fallback` is the click completion type used where no candidate matches: "plain" (none), "file"
    or "dir". `-` is never the name of a file: it is standard input, or refused where a command does
    not read it.
    """

    def __init__(
        self, candidates: Candidates, fallback: str = "plain", *, reads_stdin: bool = False
    ) -> None:
        self.candidates, self.fallback, self.reads_stdin = candidates, fallback, reads_stdin

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse `-` if the command does not read standard input."""
        if value == "-" and self.fallback == "file" and not self.reads_stdin:
            self.fail("this command does not read standard input (`-`); name a file", param, ctx)
        return super().convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Candidates that start with the word; else the only one that contains it."""
        candidates = list(self.candidates(ctx, incomplete))
        matches = [candidate for candidate in candidates if candidate.startswith(incomplete)]
        if not matches:
            containing = [candidate for candidate in candidates if incomplete in candidate]
            matches = containing if len(containing) == 1 else []
        if not matches and self.fallback != "plain":
            return [CompletionItem(incomplete, type=self.fallback)]
        return [CompletionItem(match) for match in matches]


SEED = click.IntRange(0, (1 << 63) - 1)
"""Type of an option for a random seed: what numpy and torch both accept."""


class FiniteFloatRange(click.FloatRange):
    """A float within bounds that is neither NaN nor infinite."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Refuse NaN too, which passes the range check: every comparison with NaN is false."""
        number: float = super().convert(value, param, ctx)
        return (
            number
            if math.isfinite(number)
            else self.fail(f"{value} is not a finite number.", param, ctx)
        )


def _complete_runs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Names of the run folders, newest first; with their folder if the word starts with it."""
    yield from _complete_folders(ctx, incomplete, "status.json")


def _complete_sweeps(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Names of the sweep folders, as those of runs."""
    yield from _complete_folders(ctx, incomplete, "trials.json")


def _complete_folders(ctx: click.Context, incomplete: str, marker: str) -> Iterator[str]:
    """Names of the folders in `--runs` that have the file `marker`."""
    folders = [ctx.params.get(name) for name in ("root", "runs")]
    root = next((folder for folder in folders if isinstance(folder, Path)), Path("runs"))
    prefix = f"{root}/" if incomplete.startswith(f"{root}/") else ""
    names = [path.parent.name for path in root.glob(f"*/{marker}")]
    yield from (f"{prefix}{name}" for name in sorted(names, reverse=True))


def _complete_programs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Programs, experiments and folders; if a folder is the only match, its content."""
    folder, _, name_start = incomplete.rpartition("/")
    prefix = incomplete[: len(incomplete) - len(name_start)]
    try:
        paths = sorted(Path(folder or prefix or ".").iterdir())
    except OSError:
        return
    matches = [
        path
        for path in paths
        if path.name.startswith(name_start)
        and (name_start or not path.name.startswith("."))
        and (path.is_dir() or path.suffix.lower() in PROGRAM_SUFFIXES)
    ]
    if len(matches) == 1 and matches[0].is_dir():
        yield from _complete_programs(ctx, f"{prefix}{matches[0].name}/")
        return
    for path in matches:
        yield f"{prefix}{path.name}{'/' if path.is_dir() else ''}"


def _complete_entries(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Names of layers, mechanisms, losses …, read from the source text of the registry folders."""
    for folder in (*CLASS_NAMED_REGISTRIES, *FILE_NAMED_REGISTRIES):
        for file in sorted((PACKAGE / folder).glob("[!_]*.py")):
            classes = re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.M)
            entries = [
                name for name in classes if normalize_name(name) == normalize_name(file.stem)
            ]
            yield from (
                entries if folder in CLASS_NAMED_REGISTRIES else [file.stem] if entries else []
            )


def _complete_codes(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Diagnostic codes, such as E0203, then codes of findings, such as TRN007, then measures."""
    yield from sorted(file.stem for file in (PACKAGE / "language" / "explanations").glob("*.md"))
    checks = (PACKAGE / "findings" / "checks").glob("[!_]*.py")
    sources = (file.read_text(encoding="utf-8") for file in checks)
    yield from sorted(
        code
        for text in sources
        for code in re.findall(r'^ +code: ClassVar.* = "(\w+)"', text, re.M)
    )
    yield from sorted(file.stem for file in (PACKAGE / "capture/measures").glob("[!_]*.py"))


def _complete_benchmarks(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Names of the files in `benchmarks/` of the source tree."""
    yield from sorted(file.stem for file in (PACKAGE.parents[1] / "benchmarks").glob("*.py"))


def _complete_programs_and_runs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Programs and folders, then runs."""
    yield from _complete_programs(ctx, incomplete)
    yield from _complete_runs(ctx, incomplete)


RUN = CompletedString(_complete_runs, fallback="dir")
"""A run, by its folder or a part of its name."""
SWEEP = CompletedString(_complete_sweeps, fallback="dir")
"""A sweep, a folder of runs; named like a run."""
PROGRAM = CompletedString(_complete_programs, fallback="file")
"""A file with a suffix of PROGRAM_SUFFIXES."""
PROGRAM_OR_STDIN = CompletedString(_complete_programs, fallback="file", reads_stdin=True)
"""The same, or `-` for standard input."""
PROGRAM_OR_RUN = CompletedString(_complete_programs_and_runs, fallback="file")
"""A program, or a run by its folder or a part of its name."""
INPUT_FILE = CompletedString(lambda ctx, incomplete: iter(()), fallback="file", reads_stdin=True)
"""Any file, or `-` for standard input."""
ENTRY = CompletedString(_complete_entries)
"""A registry entry: a layer, an attention mechanism, a loss …"""
CODE = CompletedString(_complete_codes)
BENCHMARK = CompletedString(_complete_benchmarks)
