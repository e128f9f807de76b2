"""`neural import`: a network that was trained elsewhere, as a run folder."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--as", "kind", metavar="KIND", required=True, help="nn.TransformerEncoder or nanogpt.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="What the weights do not tell.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="PATH",
              help="The run folder; a new one in --runs if not said.")  # fmt: skip
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True, help="Where runs go.")
def command(file: Path, kind: str, changes: tuple[str, ...], out: Path | None, runs: Path) -> None:
    """Take in a network that was trained elsewhere: a .safetensors or .pt file becomes a run folder.

    \b
    $ neural import encoder.pt --as nn.TransformerEncoder --set num_heads=8
    $ neural import out/ckpt.pt --as nanogpt --set text=input.txt

    Nothing in the file is executed. A state dict of nn.TransformerEncoder does not tell num_heads, norm_first (false)
    and activation (relu); a checkpoint of nanoGPT does not tell its characters, which `text` gives.
    """
    from neural.cli._mistakes import told

    with told():
        from neural.importing import import_file
        from neural.imports import registry

        found = registry.get(kind.replace(".", "_"), loosely=True)
        done = import_file(file, found, changes, runs=runs, output=out)
    from neural.cli._text import near

    equal = "" if done.difference is None else f"; equal to torch's own to {done.difference:.1g}"
    click.echo(f"{near(done.path)}: {done.parameters:,} parameters{equal}")
