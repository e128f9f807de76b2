"""`neural check`: does this program make sense?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from neural.cli._arguments import PROGRAM

TRIALS = 12
"""Of a sweep, that are named."""


def _sizes(_ctx: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    found = {}
    for one in given:
        name, _, number = one.partition("=")
        if not (name.isidentifier() and number.isdigit() and int(number) > 0):
            raise click.BadParameter(f"expected NAME=NUMBER such as T=256, got {one}")
        found[name] = int(number)
    return found


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=PROGRAM)
@click.option("--network", metavar="NAME", help="Which network, where a file has several.")
@click.option("--fragment", is_flag=True, help="Check pieces of a program: bare layers, sections, `train {}`.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--json", "form", flag_value="json", help="Short for --format json.")
@click.option("--strict", is_flag=True, help="Exit with 1 where there are warnings.")
@click.option("--size", "sizes", multiple=True, metavar="T=N", callback=_sizes, help="An open size, for the costs.")
def command(
    files: tuple[str, ...], network: str | None, fragment: bool, form: str, strict: bool, sizes: dict[str, int]
) -> None:
    """Check programs and experiments: every shape and cost, or every mistake.

    \b
    $ neural check examples/tiny.neural
    $ neural check net.neural --json | jq .networks[0].parameters
    $ neural check examples/segmentation/articles.yaml
    $ echo 'Dense(10)' | neural check --fragment -

    Exit codes: 0 good, 1 warnings with --strict, 2 mistakes.
    """
    from neural.cli._files import say, source_of
    from neural.cli._kinds import expect
    from neural.language.check import check
    from neural.standard import CATALOGUE

    worst = 0
    reports = []
    for path in files:
        if path.lower().endswith((".yaml", ".yml")):
            worst = max(worst, _settings(path, form, reports))
            continue
        if path != "-" and not fragment:
            expect(path, "program")
        source = source_of(path)
        checked = check(source.text, CATALOGUE, network=network, fragment=fragment, sizes=sizes)
        if form == "json":
            from neural.language.report import as_data

            reports.append(as_data(checked, source))
        else:
            from neural.language.summary import text_table

            for one in () if checked.mistakes else checked.networks:
                click.echo(text_table(one) + "\n")
            say(checked.diagnostics, source)
            if fragment and not checked.diagnostics:
                click.echo(f"{source.name}: good")
        warned = any(one.severity == "warning" for one in checked.diagnostics)
        worst = max(worst, 2 if checked.mistakes else 1 if strict and warned else 0)
    if form == "json":
        data: Any = reports[0] if len(reports) == 1 else reports
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    sys.exit(worst)


def _settings(path: str, form: str, reports: list[Any]) -> int:
    """Show what would be trained, its settings checked against data and network; the exit code."""
    from neural.cli._kinds import expect, kind_of
    from neural.cli._mistakes import Refused, told

    kind = kind_of(Path(path)) or "experiment"
    try:
        expect(path, kind)
        with told():
            report, text = _experiment(path) if kind == "experiment" else _trials(path, kind)
    except Refused as wrong:   # the other files are looked at all the same
        if form == "text":
            wrong.show()
        reports.append({"file": path, "good": False, "message": wrong.message})
        return wrong.exit_code
    reports.append({"file": path, "good": True, **report})
    if form == "text":
        click.echo(text + "\n")
    return 0


def _experiment(path: str) -> tuple[dict[str, Any], str]:
    from neural.core.settings import resolved
    from neural.experiments import task_of

    task = task_of(path)
    text = "\n".join([task.layout(), *(f"note: {one}" for one in task.remarks)])
    return {"settings": resolved(task.experiment), "remarks": list(task.remarks)}, text


def _trials(path: str, kind: str) -> tuple[dict[str, Any], str]:
    from neural.study import read_study
    from neural.trials import read_sweep

    if kind == "study":
        study = read_study(Path(path))
        experiment, trials = study.experiment, study.trials
    else:
        _, experiment, trials = read_sweep(Path(path))
    names = [one.name for one in trials]
    lines = [f"{kind} of {experiment.name}, {len(names)} trials", *(f"  {one}" for one in names[:TRIALS])]
    lines += [f"  … and {len(names) - TRIALS} more"] if len(names) > TRIALS else []
    return {"trials": names}, "\n".join(lines)
