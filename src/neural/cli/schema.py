"""`neural schema`: what an experiment file may say."""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("task", required=False)
@click.option("--format", "form", type=click.Choice(["json", "markdown"]), default="json", show_default=True)
def command(task: str | None, form: str) -> None:
    """Print what an experiment file may say: as a JSON schema for editors, or as tables.

    \b
    $ neural schema > experiment.schema.json
    $ neural schema segmentation --format markdown

    An editor that knows YAML then completes and checks a file that begins with
    `# yaml-language-server: $schema=experiment.schema.json`.
    """
    from neural.cli._mistakes import Refused
    from neural.core.registry import UnknownName
    from neural.core.schema import json_schema, tables
    from neural.tasks import registry
    from neural.tasks.experiment import Experiment

    try:
        names = [task] if task else registry.names()
        kinds = {name: registry.get(name).Settings for name in names}
    except UnknownName as unknown:
        known = "" if unknown.guess else f"; there are {', '.join(registry.names())}"
        raise Refused(f"{unknown}{known}") from None
    if form == "json":
        click.echo(json.dumps(json_schema(Experiment, "task", kinds), indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(tables(kinds[task] if task else Experiment)))
