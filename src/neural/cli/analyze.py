"""`neural analyze`: what to do about runs, and the findings behind it.

A finding (neural.findings.check) is a warning or note about these runs, or a claim about all
trainings of this kind, tested over seeds. Its `supported` is yes, no or undecided; its `number` is
an estimate with a confidence interval; its code is that of the check, such as EVO001. Advice
(neural.findings.advice) is what to do about the runs: it comes first.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import RUN
from neural.cli._options import json_option, runs_option
from neural.core.escape import escape_controls_keep_colours, escape_json

if TYPE_CHECKING:
    from neural.findings.check import Finding, FindingKind
    from neural.findings.findings import FindingList
    from neural.runs.run import Run
    from neural.workflows.analyze import FindingGroup

ADVICE_TITLE = "what to do"
TITLES: dict[FindingKind, str] = {
    "warning": "warnings",
    "note": "what happened",
    "claim": "claims, over seeds",
}
"""Headings by `Finding.kind`."""
FINDING_INDENT = " " * 10
"""Indent of the lines below a finding, which starts with its code."""


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]…", type=RUN)
@runs_option()
@json_option()
@click.option("--claims", is_flag=True, help="Also test published claims about attention (EVO…).")
def command(runs: tuple[str, ...], root: Path, as_json: bool, claims: bool) -> None:
    """Analyze runs: what to do about them, with evidence; the newest run by default.

    \b
    $ neural analyze
    $ neural analyze runs/2026-11-16_01-50-12_seeds        all trials of a sweep
    $ neural analyze runs/2026-11-16_01-50-12_seeds --claims
    $ neural analyze RUN --json | jq '.[].advice[].action'

    Advice, warnings and notes are about these runs only. Claims are about all trainings of this
    kind: they need five seeds or more. Runs that differ in their seed alone are analyzed together.
    """
    from contextlib import ExitStack

    with ExitStack() as stack:
        from neural.cli._run_selection import select_runs
        from neural.runs.run import Run
        from neural.workflows.analyze import group_findings

        opened_runs = [
            stack.enter_context(Run.open(path))
            for path in select_runs(runs, root, only_finished=True)
        ]
        groups = group_findings(opened_runs, claims=claims)
        if as_json:
            dicts = [_group_to_dict(group) for group in groups]
            click.echo(escape_json(json.dumps(dicts, indent=2, ensure_ascii=False)))
        else:
            text = "\n\n".join("\n".join(_format_group(group)) for group in groups)
            click.echo(escape_controls_keep_colours(text))


def _group_to_dict(group: FindingGroup) -> dict[str, Any]:
    return {
        "title": group.title,
        "runs": [str(run.path) for run in group.runs],
        "advice": [advice.to_dict() for advice in group.findings.advice],
        "findings": [finding.to_dict() for finding in group.findings],
        "not_found": group.not_found,
    }


def _format_group(group: FindingGroup) -> list[str]:
    from neural.findings.run_loading import get_seed
    from neural.stats.means import MIN_SEEDS

    runs, findings = group.runs, group.findings
    seeds = ", ".join(str(seed) for seed in (get_seed(run) for run in runs) if seed is not None)
    lines = [
        _formatting.style_heading(group.title)
        + (f", seed{'s' * (len(runs) > 1)} {seeds}" if seeds else "")
    ]
    lines += [_format_run(run) for run in runs]
    lines += _format_advice(findings)
    advised_codes = {advice.code for advice in findings.advice}
    shown_findings = [
        finding for finding in findings if finding.kind == "claim" or finding.supported == "yes"
    ]
    for kind, heading in TITLES.items():
        kind_findings = [
            finding
            for finding in shown_findings
            if finding.kind == kind and finding.code not in advised_codes
        ]
        if kind_findings:
            lines += ["", _formatting.style_heading(heading)]
        if kind == "claim" and len(runs) < MIN_SEEDS and kind_findings:
            lines += [
                f"  needs {MIN_SEEDS} seeds, has {len(runs)}; so far",
                *_format_undecided(kind_findings),
            ]
        else:
            lines += [line for finding in kind_findings for line in _format_finding(finding)]
    # warnings and notes that could not be checked; their evidence says which data is missing
    hidden_findings = [finding for finding in findings if finding not in shown_findings]
    reasons = dict.fromkeys(finding.evidence for finding in hidden_findings)
    not_examined = [
        ", ".join(finding.code for finding in hidden_findings if finding.evidence == reason)
        + f" {reason}"
        for reason in reasons
    ]
    sections = {
        "looked for, nothing notable": group.not_found,
        "not examined": not_examined,
    }
    for heading, texts in sections.items():
        if texts:
            lines += ["", _formatting.style_heading(heading), *_wrap("; ".join(texts), "  ")]
    return lines


def _format_run(run: Run) -> str:
    """Name, state and steps of a run, and its best validation."""
    from neural.findings.run_summary import find_best_validation
    from neural.stats.estimate import format_number

    best = find_best_validation(run)
    best_text = (
        f"; best {best.name} {format_number(best.score)} at step {best.step:,}" if best else ""
    )
    state = _formatting.style_state(run.status.state)
    return f"  {run.name}  {state}, step {run.status.step:,}{best_text}"


def _format_advice(findings: FindingList) -> list[str]:
    """Numbered advice with its evidence; nothing without any."""
    if not findings.advice:
        return []
    lines = ["", _formatting.style_heading(ADVICE_TITLE)]
    for number, advice in enumerate(findings.advice, 1):
        indent = " " * 5
        lines += [
            *_wrap(f"{advice.problem} ({advice.code})", f"  {number}. ", indent),
            *_wrap(advice.evidence, indent),
            *_wrap(f"→ {advice.action}", indent, indent + "  "),
        ]
    return lines


def _format_finding(finding: Finding) -> list[str]:
    text = finding.claim
    if finding.kind == "claim":  # warnings and notes have their numbers in the evidence
        text = f"{finding.supported}: {finding.claim}" + (
            f", {finding.formatted_estimate}" if math.isfinite(finding.number.value) else ""
        )
    lines = [
        *_wrap(f"{finding.code}  {text}", "  ", FINDING_INDENT),
        *_wrap(finding.evidence, FINDING_INDENT),
    ]
    needs_advice = finding.supported == ("undecided" if finding.kind == "claim" else "yes")
    if finding.advice and needs_advice:
        lines += _wrap(f"→ {finding.advice}", FINDING_INDENT, FINDING_INDENT + "  ")
    return lines


def _format_undecided(findings: Sequence[Finding]) -> list[str]:
    """Claims with too few seeds: a line each with the value so far, without a verdict."""
    measured = [finding for finding in findings if math.isfinite(finding.number.value)]
    width = max((len(finding.formatted_value) for finding in measured), default=0)
    lines = []
    for finding in measured:
        start = f"  {finding.code}  {finding.formatted_value:>{width}}  "
        lines += _wrap(finding.claim, start, " " * len(start))
    others = [finding.code for finding in findings if finding not in measured]
    if others:
        lines += _wrap(f"no value yet (--json gives the reason): {', '.join(others)}", "  ")
    return lines


def _wrap(text: str, first_indent: str, next_indent: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        _formatting.terminal_width(),
        initial_indent=first_indent,
        subsequent_indent=first_indent if next_indent is None else next_indent,
    )
