"""`neural bench`: run the benchmarks of the source tree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from neural.cli._arguments import BENCHMARK
from neural.cli._formatting import format_table


# all words after the name are the benchmark's, also `--help`
@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("name", required=False, type=BENCHMARK)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(name: str | None, options: tuple[str, ...]) -> None:
    """Run a benchmark, or list them; from the project's `benchmarks/` folder.

    \b
    $ neural bench
    $ neural bench attention --help        its options
    $ neural bench attention --quick --mechanism localized
    """
    from neural.core.errors import NeuralError
    from neural.core.names import suggest_name

    source_root = Path(__file__).parents[3]
    folder = source_root / "benchmarks"
    files = {path.stem: path for path in sorted(folder.glob("*.py"))}
    if not files:
        raise NeuralError(
            f"there is no folder {folder}: benchmarks come with the source, not with the package"
        )
    if name is None:
        rows = [(stem, _first_docstring_line(path)) for stem, path in files.items()]
        click.echo("\n".join(format_table(rows, indent="")))
        return
    if name not in files:
        raise NeuralError(
            f"there is no benchmark `{name}`; {suggest_name(name, files) or ', '.join(files)}"
        )
    sys.exit(subprocess.run([sys.executable, str(files[name]), *options], check=False).returncode)


def _first_docstring_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").strip().splitlines()[0].strip('"')
