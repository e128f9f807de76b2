"""`neural new`: a new project with its own attention mechanism."""

from __future__ import annotations

from pathlib import Path

import click

from neural.core.platform_support import quote_argument


@click.command()
@click.argument("name")
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Parent folder of the project; the working directory by default.",
)
@click.option(
    "--attention",
    default="fading",
    show_default=True,
    metavar="NAME",
    help="Name of the mechanism in programs.",
)
def command(name: str, into: Path, attention: str) -> None:
    """Create a project: an attention mechanism, a .neural program that uses it, an experiment.

    \b
    $ neural new kindling
    $ neural new kindling --into ~/projects --attention warmth

    Existing files are never overwritten. Nothing is installed: the commands for that are printed.
    """
    from neural.cli._formatting import format_table, relative_path, style_heading
    from neural.workflows.new import create_project

    project = create_project(name, into, attention)
    path = relative_path(project.path.resolve())
    click.echo(style_heading(str(path)))
    file_rows = [
        (str(file), description) for file, description in project.files.items() if description
    ]
    click.echo("\n".join(format_table(file_rows)))
    click.echo("\n" + style_heading("next"))
    next_commands = [
        (f"cd {quote_argument(str(path))}", ""),
        ('pip install -e ".[dev]"', f'registers attention="{attention}"'),
        (f"neural check {name}.neural", "shapes, parameters and costs"),
        ("pytest", "checks that every attention mechanism must pass"),
        ("neural train experiment.yaml", "about 15 seconds"),
    ]
    click.echo("\n".join(format_table(next_commands)))
