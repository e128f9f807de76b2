"""Run all analysis checks, and format their findings as text, Markdown, HTML or JSON.

A check (findings/check.py) tests one claim on runs (folders of trainings) that differ only by their
seed. Its finding has the kind "claim" (generalises over seeds), "warning" or "note" (about these
runs only).

    print(format_runs_report([Run.open(path) for path in paths]))
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from neural.core.html_document import render_table, render_verdict, render_with_detail
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.table import Table
from neural.findings.advice import AdviceList, advise
from neural.findings.check import AnalysisCheck, Finding, FindingKind, ViewLink
from neural.findings.checks import registry
from neural.findings.record import Record
from neural.findings.run_loading import get_seed, is_capture

LINE_WIDTH = 110
"""Characters per line of the text report."""


FINDING_KINDS: tuple[FindingKind, ...] = ("claim", "warning", "note")
RUN_KINDS: tuple[FindingKind, ...] = ("warning", "note")
"""Kinds of findings that are about these runs, not about all trainings of their kind."""


class FindingList(Result, list[Finding]):
    """Findings; they print as text, and as a table in notebooks."""

    def build_dict(self) -> dict[str, Any]:
        """All findings."""
        return {"findings": [finding.to_dict() for finding in self]}

    @property
    def tables(self) -> dict[str, Table]:
        """`findings`: claim, verdict, number with interval, evidence and advice."""
        names = ("code", "claim", "kind", "supported", "unit", "evidence", "advice")
        records = [
            {
                **{name: getattr(finding, name) for name in names},
                **{end: getattr(finding.number, end) for end in ("value", "low", "high")},
            }
            for finding in self
        ]
        return {"findings": Table.from_records(records)}

    def to_sections(self, width: int) -> list[PageSection]:
        """The text of all findings."""
        return [PageSection(title="findings", text=f"\n{self!r}")]

    @property
    def advice(self) -> AdviceList:
        """What to do about the runs, most important first."""
        return advise(self)

    def __repr__(self) -> str:
        return "\n".join(format_findings(self)) or "no findings"

    def _repr_html_(self) -> str:
        rows = [
            (
                finding.code,
                render_with_detail(
                    finding.claim,
                    finding.evidence + (f" → {finding.advice}" if finding.advice else ""),
                ),
                finding.kind,
                render_verdict(finding.supported),
                finding.formatted_estimate,
            )
            for finding in self
        ]
        table = render_table(("", "finding", "kind", "", "number"), rows)
        return (self.advice._repr_html_() if self.advice else "") + table


def analyze_runs(
    runs: Sequence[Record], kinds: Collection[FindingKind] = FINDING_KINDS
) -> FindingList:
    """Findings of all checks about runs that differ only by their seed, sorted by code.

    Checks of other kinds of runs are left out, such as those of attention for a network without it.
    """
    findings = [check().analyze(runs) for check in select_checks(runs, kinds)]
    return FindingList(
        sorted(
            (finding for finding in findings if finding is not None),
            key=lambda finding: finding.code,
        )
    )


def add_figures(
    findings: FindingList, runs: Sequence[Record], run_ids: Sequence[str] | None = None
) -> FindingList:
    """The findings with the pictures and links of their checks, for pages.

    `run_ids` are the ids of the runs on the page; by default their names.
    """
    checks = {check.code: check() for check in select_checks(runs)}
    # by identity, because two runs may have the same name
    ids = {
        id(run): run_id
        for run, run_id in zip(runs, run_ids or [run.name for run in runs], strict=True)
    }
    with_figures = []
    for finding in findings:
        check = checks[finding.code]
        figure = check.build_figure(finding, runs)
        links = [
            ViewLink(text, _replace_runs(route, ids))
            for text, route in check.list_links(finding, runs)
        ]
        with_figures.append(replace(finding, figure=_replace_runs(figure, ids), links=tuple(links)))
    return FindingList(with_figures)


def _replace_runs(data: Any, ids: Mapping[int, str]) -> Any:
    """Figure data with the page's id instead of each run; `ids` are by `id` of the run."""
    if id(data) in ids:
        return ids[id(data)]
    if isinstance(data, dict):
        return {key: _replace_runs(value, ids) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_replace_runs(value, ids) for value in data]
    return data


def analyze_claims(runs: Sequence[Record]) -> FindingList:
    """Findings of kind "claim" only: those that generalise over seeds."""
    return analyze_runs(runs, ("claim",))


def select_checks(
    runs: Sequence[Record], kinds: Collection[FindingKind] = FINDING_KINDS
) -> list[type[AnalysisCheck]]:
    """The checks that apply to at least one of the runs, sorted by code."""
    checks = [
        check
        for check in map(registry.get, registry.names())
        if check.kind in kinds
        and any(
            not (check.needs_training and is_capture(run)) and check.applies_to(run) for run in runs
        )
    ]
    return sorted(checks, key=lambda check: check.code)


def list_missing_claims(
    findings: Sequence[Finding],
    runs: Sequence[Record],
    kinds: Collection[FindingKind] = FINDING_KINDS,
) -> list[str]:
    """Code and claim of every check of the runs that none of these findings is from."""
    codes = {finding.code for finding in findings}
    checks = select_checks(runs, kinds)
    return [f"{check.code} {check.claim}" for check in checks if check.code not in codes]


def format_runs_report(runs: Sequence[Record]) -> str:
    """Report as text: advice, then all findings: claim, verdict, number with interval, evidence."""
    seeds = [get_seed(run) for run in runs]
    seed_list = f", seeds {', '.join(map(str, seeds))}" if None not in seeds else ""
    states = [(run.name, run.status.state) for run in runs]
    intervals = "; intervals are 95 %, over seeds" if len(runs) > 1 else ""
    lines = [f"{len(runs)} run{'s' * (len(runs) != 1)}{seed_list}{intervals}"]
    lines += [
        f"not finished: {name} ({state})" for name, state in states if state != "finished"
    ] + [""]
    findings = analyze_runs(runs)
    if findings.advice:
        lines += ["what to do", str(findings.advice), ""]
    return "\n".join([*lines, *format_findings(findings)]) + "\n"


def format_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """Lines of text: code, verdict and claim, then number, evidence and advice, indented."""
    for finding in findings:
        yield f"{finding.code}  {finding.supported:<9}  {finding.claim}"
        has_number = math.isfinite(finding.number.value)
        details = f"{finding.formatted_estimate}; " if has_number else ""
        details += finding.evidence
        # for a claim, advice says how to decide it; for a warning or note, what to do about it
        needs_advice = finding.supported == ("undecided" if finding.kind == "claim" else "yes")
        if finding.advice and needs_advice:
            details += f" → {finding.advice}"
        yield from textwrap.wrap(
            details, LINE_WIDTH, initial_indent=" " * 8, subsequent_indent=" " * 8
        )


def format_findings_markdown(findings: Sequence[Finding]) -> str:
    """Findings as a Markdown table."""
    lines = ["| code | claim | supported | number | evidence |", "|---|---|---|---|---|"]
    for finding in findings:
        cells = (
            finding.code,
            finding.claim,
            finding.supported,
            finding.formatted_estimate,
            finding.evidence,
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def format_findings_json(runs: Sequence[Record]) -> str:
    """Findings as JSON."""
    findings = [finding.to_dict() for finding in analyze_runs(runs)]
    return json.dumps(findings, indent=1, ensure_ascii=False) + "\n"
