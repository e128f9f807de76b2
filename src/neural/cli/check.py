"""`neural check`: does this program make sense?"""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from neural.cli._arguments import PROGRAM


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
@click.option("--strict", is_flag=True, help="Exit with 1 where there are warnings.")
@click.option("--size", "sizes", multiple=True, metavar="T=N", callback=_sizes, help="An open size, for the costs.")
def command(
    files: tuple[str, ...], network: str | None, fragment: bool, form: str, strict: bool, sizes: dict[str, int]
) -> None:
    """Check programs and experiments: every shape and cost, or every mistake.

    \b
    $ neural check examples/tiny.neural
    $ neural check net.neural --format json | jq .networks[0].parameters
    $ neural check examples/segmentation/articles.yaml
    $ echo 'Dense(10)' | neural check --fragment -

    Exit codes: 0 good, 1 warnings with --strict, 2 mistakes.
    """
    from neural.cli._files import say, source_of
    from neural.language.check import check
    from neural.standard import CATALOGUE

    worst = 0
    reports = []
    for path in files:
        if path.lower().endswith((".yaml", ".yml")):
            _experiment(path, form, reports)
            continue
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


def _experiment(path: str, form: str, reports: list[Any]) -> None:
    """Its settings are checked against its data and its network; what would be trained is shown."""
    from neural.cli._mistakes import told

    with told():
        from neural.core.settings import resolved
        from neural.experiments import task_of

        task = task_of(path)
        if form == "json":
            reports.append({"file": path, "settings": resolved(task.experiment), "remarks": list(task.remarks)})
        else:
            click.echo("\n".join([task.layout(), *(f"note: {one}" for one in task.remarks)]) + "\n")
