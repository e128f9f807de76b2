"""What a study leaves beside its runs: findings.md, findings.json, plots/ and report.html, one page with all of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neural.core.files import write_atomically
from neural.digest import best
from neural.samples import REAL, TEXTS
from neural.sweep import Sweep
from neural.tracking.run import Run
from neural.tracking.trouble import in_words
from neural.views.finding import Finding
from neural.views.findings import claims, findings_markdown
from neural.views.page import Html, block, page, paragraph, part, pictures, table, verdict, with_small
from neural.views.plots import plots
from neural.views.reading import data_of, experiments, seed_of
from neural.views.seeds import Estimate, number, over_seeds

PLOTS = "plots"


@dataclass(frozen=True)
class Group:
    """Runs that differ by their seed alone, and what they say together."""

    title: str
    runs: list[Run]
    findings: list[Finding]
    loss: Estimate
    """Best validation loss, nats."""
    sentence: str
    """How they were trained, and how well."""

    @property
    def data(self) -> str:
        """As the names of its plots end."""
        return data_of(self.runs[0])


@dataclass(frozen=True)
class Report:
    """What was written, and what could not be."""

    folder: Path
    groups: list[Group]
    left_out: list[str]
    """Plots, and why."""

    @property
    def page(self) -> Path:
        """The one to open."""
        return self.folder / "report.html"


def report(sweep: Sweep) -> Report | None:
    """All files anew, from the runs that are finished; None where none is."""
    runs = [Run.open(sweep.path / row.run) for row in sweep.rows if row.done and row.run]
    try:
        groups = [_group(data, label, some) for data, labels in experiments(runs).items()
                  for label, some in labels.items()]  # fmt: skip
        if not groups:
            return None
        with in_words(f"the report cannot be written in {sweep.path}"):
            drawn, left_out = plots(runs, sweep.path / PLOTS)
            made = Report(sweep.path, groups, left_out)
            said = json.dumps(as_json(sweep, made), indent=1, ensure_ascii=False)
            write_atomically(sweep.path / "findings.md", _markdown(sweep, made))
            write_atomically(sweep.path / "findings.json", said + "\n")
            write_atomically(made.page, _page(sweep, made, drawn))
        return made
    finally:
        for run in runs:
            run.close()


def as_json(sweep: Sweep, made: Report | None) -> dict[str, Any]:
    """For machines: every finding of every group with its number and interval."""
    return {
        "study": sweep.about.get("study", sweep.name), "folder": str(sweep.path),
        "report": str(made.page) if made else None, "command": sweep.about.get("command"), **sweep.counts(),
        "not_finished": dict(_failed(sweep)), "left_out": made.left_out if made else [],
        "groups": [
            {"data": one.data, "title": one.title, "runs": [run.name for run in one.runs],
             "seeds": [seed_of(run) for run in one.runs], "best_validation_loss": one.loss.as_json(),
             "findings": [found.as_json() for found in one.findings]}
            for one in (made.groups if made else [])
        ],
    }  # fmt: skip


def _group(data: str, label: str, runs: list[Run]) -> Group:
    title = data if label == data else f"{data}: {label}"
    losses = [found.score for run in runs if (found := best(run)) is not None]
    loss = over_seeds(losses)
    return Group(title, runs, claims(runs), loss, _sentence(runs, loss))


def _markdown(sweep: Sweep, made: Report) -> str:
    lines = [f"# {sweep.about.get('study', sweep.name)}: what the runs say", "", f"`{sweep.about.get('command')}`", ""]
    lines += [f"Trial {name} failed and is not among them: {why}\n" for name, why in _failed(sweep)]
    for one in made.groups:
        lines += [f"## {one.title}", "", one.sentence, "", findings_markdown(one.findings)]
    return "\n".join(lines)


def _page(sweep: Sweep, made: Report, drawn: list[Path]) -> str:
    parts = []
    for one in made.groups:
        own = [file for file in drawn if file.suffix == ".svg" and file.stem.endswith(f"_{one.data}")]
        rows = [
            (found.code, with_small(found.claim, found.evidence), verdict(found.supported), found.figure)
            for found in one.findings
        ]  # fmt: skip
        parts.append(part(
            one.title, paragraph(one.sentence), table(("", "claim", "supported", "number, 95 % over seeds"), rows),
            pictures(own), *_written(one),
        ))  # fmt: skip
    trials = [(row.trial.name, row.state, f"{row.step:,}", "–" if row.score is None else f"{row.score:.4f}", row.reason)
              for row in sweep.rows]  # fmt: skip
    parts.append(part("Trials", table(("trial", "state", "steps", "best validation loss", ""), trials)))
    if made.left_out:
        parts.append(part("Not drawn", *map(paragraph, made.left_out)))
    parts.append(part("How it was made", block(str(sweep.about.get("command", ""))), paragraph(_machine(made))))
    parts += [part(name, block(text), level=3) for name, text in sweep.about.get("texts", {}).items()]
    counts = Counter(found.supported for one in made.groups for found in one.findings)
    lead = f"{counts['yes']} claims supported, {counts['no']} not supported, {counts['undecided']} undecided, by " \
           f"{sum(len(one.runs) for one in made.groups)} trainings."  # fmt: skip
    return page(f"{sweep.about.get('study', sweep.name)}: how attention evolves", lead, parts)


def _sentence(runs: list[Run], loss: Estimate) -> str:
    run, seeds = runs[0], ", ".join(str(seed_of(run)) for run in runs)
    size, steps = run.described("parameters", 0), run.described("steps", 0)
    every = run.settings.get("tracking", {}).get("track_every")
    return (
        f"{len(runs)} run{'s' * (len(runs) != 1)} (seed{'s' * (len(runs) != 1)} {seeds}) of {size:,} parameters and "
        f"{steps:,} steps, looked at every {every}; best validation loss {loss} nats, "
        f"{number(loss.value / math.log(2))} bits per character. Intervals are 95 %, over seeds."
    )


def _written(one: Group) -> list[Html]:
    """What was written: in numbers at the first and the last validation, and in words."""
    names = [name for name in one.runs[0].names() if name.startswith("generation/")]
    if not names:
        return []
    real = one.runs[0].described(REAL, {})
    rows = []
    for name in names:
        curves = [run.scalars(name)[1] for run in one.runs if name in run.names()]
        first, last = (over_seeds(curve[at] for curve in curves) for at in (0, -1))
        if last.seeds:   # texts may be too short for a measure
            rows.append((name.removeprefix("generation/"), str(first), str(last), number(real.get(name, math.nan))))
    texts: dict[str, str] = one.runs[0].described(TEXTS, {})
    steps = sorted(map(int, texts))
    shown = sorted({steps[0], steps[len(steps) // 2], steps[-1]}) if steps else []
    return [
        part("What it writes", table(("", "first validation", "last validation", "real text"), rows), level=3),
        *(part(f"after step {step:,}", block(texts[str(step)]), level=3) for step in shown),
    ]


def _failed(sweep: Sweep) -> list[tuple[str, str]]:
    return [(row.trial.name, row.reason or row.state) for row in sweep.rows if not row.done]


def _machine(made: Report) -> str:
    about = made.groups[0].runs[0].environment
    packages = ", ".join(f"{name} {version}" for name, version in about.get("packages", {}).items())
    return f"Python {about.get('python')}, {packages}; {about.get('platform')}, {about.get('cpus')} cores."

