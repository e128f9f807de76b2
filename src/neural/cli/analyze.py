"""`neural analyze`: what runs say, with the number behind it and what to do."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN
from neural.core.visible import visible, visible_colours

if TYPE_CHECKING:
    from neural.tracking.run import Run
    from neural.views.finding import Finding

TITLES = {"warning": "warnings", "note": "what happened", "claim": "claims, over seeds"}


@click.command()
@click.argument("runs", nargs=-1, metavar="[RUN]…", type=RUN)
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(runs: tuple[str, ...], root: Path, as_json: bool) -> None:
    """Analyze runs: findings with their evidence, and what to do about them; the newest if none is named.

    \b
    $ neural analyze
    $ neural analyze runs/2026-11-16_01-50-12_seeds        all trials of a sweep
    $ neural analyze RUN --json | jq '.[].findings[] | select(.kind == "warning")'

    Warnings and notes are about these very runs. Claims are about all trainings of this kind: five seeds or more
    decide. Runs that differ by their seed alone are taken together.
    """
    from contextlib import ExitStack

    from neural.cli._mistakes import told

    with told(), ExitStack() as stack:
        from neural.tracking.run import Run
        from neural.views.findings import findings
        from neural.views.reading import experiments

        opened = [stack.enter_context(Run.open(path)) for path in _paths(runs, root)]
        groups = [
            (data if label == data else f"{data}: {label}", some, findings(some))
            for data, labels in experiments(opened).items() for label, some in labels.items()
        ]  # fmt: skip
        if as_json:
            click.echo(visible(json.dumps([_data(*group) for group in groups], indent=2, ensure_ascii=False)))
        else:
            click.echo(visible_colours("\n\n".join("\n".join(_page(*group)) for group in groups)))


def _paths(names: Sequence[str], root: Path) -> list[Path]:
    """Of the runs; a sweep's folder stands for its finished trials."""
    from neural.sweep import TRIALS, find_either, opened
    from neural.tracking.trouble import RunError

    found: list[Path] = []
    for name in names or (None,):
        path = find_either(name, root)
        if not (path / TRIALS).exists():
            found.append(path)
            continue
        done = [path / row.run for row in opened(path).rows if row.done and row.run]
        if not done:
            raise RunError(f"{path} has no finished trial to analyze yet")
        found += done
    return found


def _data(title: str, runs: Sequence[Run], found: Sequence[Finding]) -> dict[str, Any]:
    from neural.views.findings import silent

    return {"title": title, "runs": [str(run.path) for run in runs], "findings": [one.as_json() for one in found],
            "not_found": silent(found)}  # fmt: skip


def _page(title: str, runs: Sequence[Run], found: Sequence[Finding]) -> list[str]:
    from neural.cli import _text
    from neural.views.findings import silent
    from neural.views.reading import seed_of
    from neural.views.seeds import FEWEST

    seeds = ", ".join(str(seed) for seed in (seed_of(run) for run in runs) if seed is not None)
    lines = [_text.heading(title) + (f", seed{'s' * (len(runs) > 1)} {seeds}" if seeds else "")]
    lines += [f"  {run.name}  {_text.state(run.status.state)}, step {run.status.step:,}" for run in runs]
    told = [one for one in found if one.kind == "claim" or one.supported == "yes"]
    for kind, heading in TITLES.items():
        some = [one for one in told if one.kind == kind]
        if some:
            lines += ["", _text.heading(heading)]
        if kind == "claim" and len(runs) < FEWEST and some:
            lines += [f"  {len(runs)} of the {FEWEST} seeds that it takes to decide; so far", *_in_short(some)]
        else:
            lines += [line for one in some for line in _finding(one)]
    unseen = [one for one in found if one not in told]
    reasons = dict.fromkeys(one.evidence for one in unseen)
    blank = [", ".join(one.code for one in unseen if one.evidence == why) + f" {why}" for why in reasons]
    rest = {"looked for, not found": silent(found), "not examined": blank}
    for heading, said in rest.items():
        if said:
            lines += ["", _text.heading(heading), *_wrapped("; ".join(said), "  ")]
    return lines


def _finding(one: Finding) -> list[str]:
    said = one.claim
    if one.kind == "claim":   # of the others the evidence has the numbers, head by head
        said = f"{one.supported}: {one.claim}" + (f", {one.figure}" if math.isfinite(one.number.value) else "")
    lines = [*_wrapped(f"{one.code}  {said}", "  ", "          "), *_wrapped(one.evidence, "          ")]
    advised = one.advice and one.supported == ("undecided" if one.kind == "claim" else "yes")
    return lines + (_wrapped(f"→ {one.advice}", "          ", "            ") if advised else [])


def _in_short(findings: Sequence[Finding]) -> list[str]:
    """A line each: the number as it stands, and nothing concluded from it."""
    known = [finding for finding in findings if math.isfinite(finding.number.value)]
    width = max((len(finding.amount) for finding in known), default=0)
    lines = []
    for finding in known:
        head = f"  {finding.code}  {finding.amount:>{width}}  "
        lines += _wrapped(finding.claim, head, " " * len(head))
    others = [finding.code for finding in findings if finding not in known]
    return lines + (_wrapped(f"no number yet (--json says why): {', '.join(others)}", "  ") if others else [])


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    from neural.cli import _text

    return textwrap.wrap(text, _text.width(), initial_indent=first, subsequent_indent=first if rest is None else rest)
