"""`neural bench`: this machine's figures against the peers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click

from neural.cli._arguments import BENCHMARK


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("name", required=False, type=BENCHMARK)
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def command(name: str | None, options: tuple[str, ...]) -> None:
    """Run a benchmark, or list them; they lie in the project's `benchmarks/` folder.

    \b
    $ neural bench
    $ neural bench attention --quick
    """
    from neural.cli._mistakes import Refused
    from neural.core.names import did_you_mean

    folder = Path(__file__).parents[3] / "benchmarks"
    files = {path.stem: path for path in sorted(folder.glob("*.py"))}
    if not files:
        raise Refused("there is no benchmarks folder here: benchmarks come with the source, not with the package")
    if name is None:
        wide = max(map(len, files))
        for stem, path in files.items():
            click.echo(f"{stem:{wide}}  {path.read_text(encoding='utf-8').strip().splitlines()[0].strip(chr(34))}")
        return
    if name not in files:
        raise Refused(f"no benchmark is called `{name}`; {did_you_mean(name, files) or ', '.join(files)}")
    sys.exit(subprocess.run([sys.executable, str(files[name]), *options], check=False).returncode)
