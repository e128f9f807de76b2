"""`neural new`: a project with an attention mechanism of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path

import click


@click.command()
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path, file_okay=False), default=Path(),
              help="The folder that the project's own goes into; here if not said.")  # fmt: skip
@click.option("--attention", default="fading", show_default=True, metavar="NAME", help="What programs call it.")
def command(name: str, into: Path, attention: str) -> None:
    """Begin a project: an attention mechanism in one file, a program that uses it, an experiment that trains it.

    \b
    $ neural new kindling
    $ neural new kindling --into ~/projects --attention warmth

    What is there already is never overwritten, and nothing is installed: the commands for that are printed.
    """
    from neural.cli._mistakes import Refused
    from neural.cli._text import heading, near, table
    from neural.projects import ProjectError, new_project

    try:
        made = new_project(name, into, attention)
    except ProjectError as wrong:
        raise Refused(str(wrong)) from None
    place = near(made.path.resolve())
    click.echo(heading(str(place)))
    click.echo("\n".join(table([(str(file), about) for file, about in made.files.items() if about])))
    click.echo("\n" + heading("next"))
    steps = [
        (f"cd {shlex.quote(str(place))}", ""),
        ('pip install -e ".[dev]"', f'makes attention="{attention}" known to neural'),
        (f"neural check {name}.neural", "shapes, parameters and costs"),
        ("pytest", "does it keep what every attention promises?"),
        ("neural train experiment.yaml", "a quarter of a minute"),
    ]
    click.echo("\n".join(table(steps)))
