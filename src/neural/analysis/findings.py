"""Run all analysis checks, and format their findings as text, Markdown, HTML or JSON.

A check (analysis/check.py) tests one claim on runs that differ only by their seed.

print(format_runs_report([Run.open(path) for path in paths]))
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Collection, Iterator, Sequence

from neural.analysis.check import Finding, FindingKind
from neural.analysis.checks import registry
from neural.analysis.run_loading import get_seed
from neural.core.html_document import render_table, render_verdict, render_with_detail
from neural.runs.run import Run

LINE_WIDTH = 110
"""Characters per line of the text report."""


class FindingList(list[Finding]):
    """Findings; notebooks show them as a table."""

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
        return render_table(("", "finding", "kind", "", "number"), rows)


def analyze_runs(
    runs: Sequence[Run], kinds: Collection[FindingKind] = ("claim", "warning", "note")
) -> FindingList:
    """Findings of all checks about runs that differ only by their seed, sorted by code."""
    checks = [check for check in map(registry.get, registry.names()) if check.kind in kinds]
    findings = [check().analyze(runs) for check in checks]
    return FindingList(
        sorted(
            (finding for finding in findings if finding is not None),
            key=lambda finding: finding.code,
        )
    )


def analyze_claims(runs: Sequence[Run]) -> FindingList:
    """Findings of kind "claim" only: those that generalise over seeds."""
    return analyze_runs(runs, ("claim",))


def list_missing_claims(findings: Sequence[Finding]) -> list[str]:
    """Checks that have none of these findings, as code and claim, sorted by code."""
    codes = {finding.code for finding in findings}
    checks = sorted(map(registry.get, registry.names()), key=lambda check: check.code)
    return [f"{check.code} {check.claim}" for check in checks if check.code not in codes]


def format_runs_report(runs: Sequence[Run]) -> str:
    """Report of all findings as text: claim, verdict, number with interval, evidence."""
    seeds = [get_seed(run) for run in runs]
    seed_list = f", seeds {', '.join(map(str, seeds))}" if None not in seeds else ""
    states = [(run.name, run.status.state) for run in runs]
    lines = [f"{len(runs)} run{'s' * (len(runs) != 1)}{seed_list}; intervals are 95 %, over seeds"]
    lines += [
        f"not finished: {name} ({state})" for name, state in states if state != "finished"
    ] + [""]
    return "\n".join([*lines, *format_findings(analyze_runs(runs))]) + "\n"


def format_findings(findings: Sequence[Finding]) -> Iterator[str]:
    """Lines of text: code, verdict and claim, then number, evidence and advice, indented."""
    for finding in findings:
        yield f"{finding.code}  {finding.supported:<9}  {finding.claim}"
        has_number = math.isfinite(finding.number.value)
        details = f"{finding.formatted_estimate}; " if has_number else ""
        details += finding.evidence
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


def format_findings_json(runs: Sequence[Run]) -> str:
    """Findings as JSON."""
    findings = [finding.to_dict() for finding in analyze_runs(runs)]
    return json.dumps(findings, indent=1, ensure_ascii=False) + "\n"
