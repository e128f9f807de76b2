"""`neural import`: a network trained by another program as a run folder."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--as",
    "kind",
    metavar="KIND",
    required=True,
    help="Kind of the network: nn.TransformerEncoder or nanogpt.",
)
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A setting that cannot be read from the weights, such as num_heads=8.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Run folder to create; a new one in --runs by default.",
)
@click.option(
    "--runs",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder for the runs.",
)
def command(
    file: Path, kind: str, overrides: tuple[str, ...], out: Path | None, runs: Path
) -> None:
    """Import a trained network: a .safetensors or .pt file becomes a run folder.

    \b
    $ neural import encoder.pt --as nn.TransformerEncoder --set num_heads=8
    $ neural import out/ckpt.pt --as nanogpt --set text=input.txt

    Nothing in the file is executed. A state dict of nn.TransformerEncoder does not contain
    num_heads, norm_first (default false) and activation (default relu); a nanoGPT checkpoint does
    not contain its characters, which are read from `text`.
    """
    from neural.cli._errors import report_errors

    with report_errors():
        from neural.imports import registry
        from neural.workflows.import_model import import_file

        importer = registry.get(kind.replace(".", "_"), ignore_case=True)
        imported = import_file(file, importer, overrides, runs=runs, output=out)
    from neural.cli._formatting import relative_path

    difference_text = (
        ""
        if imported.max_difference is None
        else f"; largest difference to torch's module {imported.max_difference:.1g}"
    )
    click.echo(
        f"{relative_path(imported.path)}: {imported.num_parameters:,} parameters{difference_text}"
    )
