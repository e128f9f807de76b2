"""What verbs take, known to shells: words that can be completed. Nothing is imported for it: folders are listed."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem
from click.types import StringParamType

from neural.core.names import key

PACKAGE = Path(__file__).parents[1]
PROGRAMS = (".neural", ".yaml", ".yml")
CALLED = ("modules/layers", "training/optimizers", "training/schedules")
"""Registries whose entries are called like their class."""
QUOTED = ("modules/attention", "modules/positions", "modules/losses")
"""Registries whose entries are called like their file."""

Candidates = Callable[[click.Context, str], Iterator[str]]


class Completed(StringParamType):
    """A word, with the words that it could become; `otherwise` is what the shell completes where there are none."""

    def __init__(self, candidates: Candidates, otherwise: str = "plain") -> None:
        self.candidates, self.otherwise = candidates, otherwise

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Those that begin like it; a single one that only holds it."""
        known = list(self.candidates(ctx, incomplete))
        fitting = [one for one in known if one.startswith(incomplete)]
        holding = [one for one in known if incomplete in one] if not fitting else []
        fitting += holding if len(holding) == 1 else []
        if not fitting and self.otherwise != "plain":
            return [CompletionItem(incomplete, type=self.otherwise)]
        return [CompletionItem(one) for one in fitting]


class Number(click.FloatRange):
    """A number within bounds; `nan` and `inf`, which Python takes for numbers, are none."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """As a FloatRange, which no comparison with `nan` ever refuses."""
        number: float = super().convert(value, param, ctx)
        return number if math.isfinite(number) else self.fail(f"{value} is not a finite number.", param, ctx)


def _runs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """The runs that are there, the newest first; behind `runs/` with their folder."""
    given = [ctx.params.get(name) for name in ("root", "runs")]
    root = next((one for one in given if isinstance(one, Path)), Path("runs"))
    front = f"{root}/" if incomplete.startswith(f"{root}/") else ""
    found = [one.parent.name for one in root.glob("*/status.json")]
    yield from (f"{front}{name}" for name in sorted(found, reverse=True))


def _programs(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Programs, experiments, and folders that may hold some; of a single folder what is in it."""
    folder, _, start = incomplete.rpartition("/")
    front = incomplete[: len(incomplete) - len(start)]
    try:
        listed = sorted(Path(folder or front or ".").iterdir())
    except OSError:
        return
    shown = [one for one in listed if one.name.startswith(start) and (start or not one.name.startswith("."))]
    fitting = [one for one in shown if one.is_dir() or one.suffix.lower() in PROGRAMS]
    if len(fitting) == 1 and fitting[0].is_dir():
        yield from _programs(ctx, f"{front}{fitting[0].name}/")
        return
    for one in fitting:
        yield f"{front}{one.name}{'/' if one.is_dir() else ''}"


def _entries(ctx: click.Context, incomplete: str) -> Iterator[str]:
    """Everything that a program can call, by the names in the files: importing them all would be felt."""
    for folder in (*CALLED, *QUOTED):
        for file in sorted((PACKAGE / folder).glob("[!_]*.py")):
            classes = re.findall(r"^class (\w+)", file.read_text(encoding="utf-8"), re.M)
            named = [one for one in classes if key(one) == key(file.stem)]
            yield from named if folder in CALLED else [file.stem] if named else []


def _codes(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from sorted(file.stem for file in (PACKAGE / "language" / "explanations").glob("*.md"))


def _benchmarks(ctx: click.Context, incomplete: str) -> Iterator[str]:
    yield from sorted(file.stem for file in (PACKAGE.parents[1] / "benchmarks").glob("*.py"))


RUN = Completed(_runs, otherwise="dir")
PROGRAM = Completed(_programs, otherwise="file")
TEXT = Completed(lambda ctx, incomplete: iter(()), otherwise="file")
ENTRY = Completed(_entries)
CODE = Completed(_codes)
BENCHMARK = Completed(_benchmarks)
