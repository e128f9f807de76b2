"""Report of a study: findings.md, findings.json, plots/, and report.html with all of them.

A study (study.py) is a sweep of language models over training texts and seeds: one training, a
trial, for each pair. A finding is a claim about attention, its verdict and the measured number
(findings/findings.py). Samples are texts that the models generated at every validation.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neural.core.files import write_atomically
from neural.core.html_document import (
    Html,
    render_document,
    render_images,
    render_paragraph,
    render_preformatted,
    render_section,
    render_table,
    render_verdict,
    render_with_detail,
)
from neural.findings.check import Finding
from neural.findings.findings import analyze_claims, format_findings_markdown
from neural.findings.run_loading import get_dataset_name, get_seed, group_experiments
from neural.findings.run_summary import find_best_validation
from neural.findings.sample_quality import REAL_TEXT_KEY, SAMPLES_KEY
from neural.runs.errors import translate_errors
from neural.runs.run import Run
from neural.stats.estimate import Estimate, format_number
from neural.stats.means import estimate_mean
from neural.workflows.sweep import Sweep

PLOTS_FOLDER = "plots"


@dataclass(frozen=True)
class StudyGroup:
    """Runs that differ by their seed only, with their findings."""

    title: str
    runs: list[Run]
    findings: list[Finding]
    best_loss: Estimate
    """Best validation loss in nats: mean over the runs, with its confidence interval."""
    summary: str
    """Sizes, steps and best loss, as text."""

    @property
    def data(self) -> str:
        """Name of the training text; file names of its plots end with it."""
        return get_dataset_name(self.runs[0])


@dataclass(frozen=True)
class StudyReport:
    """The written report."""

    folder: Path
    groups: list[StudyGroup]
    skipped_plots: list[str]
    """Plots that could not be drawn, with the reason."""

    @property
    def html_path(self) -> Path:
        """Path of the HTML page."""
        return self.folder / "report.html"


def write_study_report(sweep: Sweep) -> StudyReport | None:
    """Write all files from the finished runs; None if no run has finished."""
    runs = [Run.open(sweep.path / row.run) for row in sweep.rows if row.is_finished and row.run]
    try:
        groups = [
            _create_group(data, label, group_runs)
            for data, labels in group_experiments(runs).items()
            for label, group_runs in labels.items()
        ]
        if not groups:
            return None
        with translate_errors(f"the report cannot be written in {sweep.path}"):
            plot_files, skipped = _draw_plots(runs, sweep.path / PLOTS_FOLDER)
            report = StudyReport(sweep.path, groups, skipped)
            text = json.dumps(study_as_dict(sweep, report), indent=1, ensure_ascii=False)
            write_atomically(sweep.path / "findings.md", _render_markdown(sweep, report))
            write_atomically(sweep.path / "findings.json", text + "\n")
            write_atomically(report.html_path, _render_page(sweep, report, plot_files))
        return report
    finally:
        for run in runs:
            run.close()


def _draw_plots(runs: list[Run], folder: Path) -> tuple[list[Path], list[str]]:
    """Files, and why plots were skipped."""
    from neural.report.plots import draw_plots

    return draw_plots(runs, folder)


def study_as_dict(sweep: Sweep, report: StudyReport | None) -> dict[str, Any]:
    """The report as JSON: every finding of every group with its number and interval."""
    return {
        "study": sweep.metadata.get("study", sweep.name),
        "folder": str(sweep.path),
        "report": str(report.html_path) if report else None,
        "command": sweep.metadata.get("command"),
        **sweep.count_states(),
        "unfinished": dict(_list_failures(sweep)),
        "skipped_plots": report.skipped_plots if report else [],
        "groups": [
            {
                "data": group.data,
                "title": group.title,
                "runs": [run.name for run in group.runs],
                "seeds": [get_seed(run) for run in group.runs],
                "best_validation_loss": group.best_loss.to_dict("seeds"),
                "findings": [finding.to_dict() for finding in group.findings],
            }
            for group in (report.groups if report else [])
        ],
    }


def _create_group(data: str, label: str, runs: list[Run]) -> StudyGroup:
    """Analyze runs of one training text, `data`; `label` is the name of their experiment."""
    title = data if label == data else f"{data}: {label}"
    bests = [find_best_validation(run) for run in runs]
    # a training whose loss was never finite is not left out of the mean
    losses = [math.inf if best is None else best.score for best in bests]
    loss = estimate_mean(losses).to_score("valid/loss")
    return StudyGroup(title, runs, analyze_claims(runs), loss, _describe_group(runs, loss))


def _render_markdown(sweep: Sweep, report: StudyReport) -> str:
    lines = [
        f"# {sweep.metadata.get('study', sweep.name)}: findings",
        "",
        f"`{sweep.metadata.get('command')}`",
        "",
    ]
    lines += [
        f"Trial {name} failed and is not included: {reason}\n"
        for name, reason in _list_failures(sweep)
    ]
    for group in report.groups:
        findings = format_findings_markdown(group.findings)
        lines += [f"## {group.title}", "", group.summary, "", findings]
    return "\n".join(lines)


def _render_page(sweep: Sweep, report: StudyReport, plot_files: list[Path]) -> str:
    sections = []
    for group in report.groups:
        group_plots = [
            file
            for file in plot_files
            if file.suffix == ".svg" and file.stem.endswith(f"_{group.data}")
        ]
        rows = [
            (
                finding.code,
                render_with_detail(finding.claim, finding.evidence),
                render_verdict(finding.supported),
                finding.formatted_estimate,
            )
            for finding in group.findings
        ]
        sections.append(
            render_section(
                group.title,
                render_paragraph(group.summary),
                render_table(("", "claim", "supported", "number, 95 % over seeds"), rows),
                render_images(group_plots),
                *_render_samples(group),
            )
        )
    trials = [
        (
            row.trial.name,
            row.state,
            f"{row.step:,}",
            "–" if row.score is None else f"{row.score:.4f}",
            row.reason,
        )
        for row in sweep.rows
    ]
    sections.append(
        render_section(
            "Trials", render_table(("trial", "state", "steps", "best validation loss", ""), trials)
        )
    )
    if report.skipped_plots:
        sections.append(render_section("Not drawn", *map(render_paragraph, report.skipped_plots)))
    sections.append(
        render_section(
            "Command and environment",
            render_preformatted(str(sweep.metadata.get("command", ""))),
            render_paragraph(_describe_environment(report)),
        )
    )
    sections += [
        render_section(name, render_preformatted(text), level=3)
        for name, text in sweep.metadata.get("texts", {}).items()
    ]
    counts = Counter(finding.supported for group in report.groups for finding in group.findings)
    lead = (
        f"{counts['yes']} claims supported, {counts['no']} not supported, "
        f"{counts['undecided']} undecided, from {sum(len(group.runs) for group in report.groups)} runs."
    )
    return render_document(
        f"{sweep.metadata.get('study', sweep.name)}: how attention evolves", lead, sections
    )


def _describe_group(runs: list[Run], loss: Estimate) -> str:
    run, seeds = runs[0], ", ".join(str(get_seed(run)) for run in runs)
    size, steps = run.metadata("parameters", 0), run.metadata("steps", 0)
    every = run.settings.get("tracking", {}).get("track_every")
    return (
        f"{len(runs)} run{'s' * (len(runs) != 1)} (seed{'s' * (len(runs) != 1)} {seeds}) of "
        f"{size:,} parameters and {steps:,} steps, a snapshot every {every}; best validation loss {loss} nats, "
        f"{format_number(loss.value / math.log(2))} bits per character. Intervals are 95 %, over seeds."
    )


def _render_samples(group: StudyGroup) -> list[Html]:
    """Quality of generated texts at the first and the last validation, and some of the texts."""
    names = [name for name in group.runs[0].scalar_names() if name.startswith("generation/")]
    if not names:
        return []
    real_text_scores = group.runs[0].metadata(REAL_TEXT_KEY, {})
    rows = []
    for name in names:
        curves = [run.scalars(name)[1] for run in group.runs if name in run.scalar_names()]
        first, last = (estimate_mean(curve[index] for curve in curves) for index in (0, -1))
        if last.n:  # samples may be too short for a measure
            rows.append(
                (
                    name.removeprefix("generation/"),
                    str(first),
                    str(last),
                    format_number(real_text_scores.get(name, math.nan)),
                )
            )
    texts: dict[str, str] = group.runs[0].metadata(SAMPLES_KEY, {})
    steps = sorted(map(int, texts))
    shown_steps = sorted({steps[0], steps[len(steps) // 2], steps[-1]}) if steps else []
    return [
        render_section(
            "Samples",
            render_table(("", "first validation", "last validation", "real text"), rows),
            level=3,
        ),
        *(
            render_section(f"after step {step:,}", render_preformatted(texts[str(step)]), level=3)
            for step in shown_steps
        ),
    ]


def _list_failures(sweep: Sweep) -> list[tuple[str, str]]:
    """(name, reason or state) of each trial that is not finished."""
    return [(row.trial.name, row.reason or row.state) for row in sweep.rows if not row.is_finished]


def _describe_environment(report: StudyReport) -> str:
    environment = report.groups[0].runs[0].environment
    packages = ", ".join(
        f"{name} {version}" for name, version in environment.get("packages", {}).items()
    )
    machine = f"{environment.get('platform')}, {environment.get('cpus')} cores"
    return f"Python {environment.get('python')}, {packages}; {machine}."
