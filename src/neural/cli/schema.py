"""`neural schema`: keys of an experiment file, as JSON schema or tables.

An experiment is a YAML file of settings; its key `task`, such as `supervised`, decides which other
keys it may have.
"""

from __future__ import annotations

import json

import click


@click.command()
@click.argument("task", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["json", "markdown"]),
    default="json",
    show_default=True,
    help="json: a JSON schema; markdown: tables.",
)
def command(task: str | None, form: str) -> None:
    """Print the keys of an experiment file: as a JSON schema for editors, or as tables.

    \b
    $ neural schema > experiment.schema.json
    $ neural schema segmentation --format markdown

    An editor with YAML support then completes and checks a file that starts with
    `# yaml-language-server: $schema=experiment.schema.json`.
    """
    from neural.core.experiment import Experiment
    from neural.core.schema import build_json_schema, format_tables
    from neural.tasks import registry

    # `lm` is language_model
    names = [registry.name_of(registry.get(task))] if task else registry.names()
    settings_types = {name: registry.get(name).Settings for name in names}
    if form == "json":
        schema = build_json_schema(Experiment, "task", settings_types)
        click.echo(json.dumps(schema, indent=2, ensure_ascii=False))
    else:
        click.echo("\n".join(format_tables(settings_types[names[0]] if task else Experiment)))
