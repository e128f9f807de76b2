"""`neural import`: a network trained by other software (PyTorch, nanoGPT) as a run folder."""

from __future__ import annotations

import json
from pathlib import Path

import click

from neural.cli._options import json_option, out_option, runs_option


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
@out_option(
    "Run folder to create; a new one in --runs by default.", metavar="FOLDER", is_folder=True
)
@runs_option()
@json_option("Print the folder, the number of parameters and the difference as JSON.")
def command(
    file: Path,
    kind: str,
    overrides: tuple[str, ...],
    out: Path | None,
    root: Path,
    as_json: bool,
) -> None:
    """Import a trained network: a .safetensors or .pt file becomes a run folder.

    \b
    $ neural import encoder.pt --as nn.TransformerEncoder --set num_heads=8
    $ neural import out/ckpt.pt --as nanogpt --set text=input.txt

    Nothing in the file is executed. A state dict of nn.TransformerEncoder does not contain
    num_heads, norm_first (default false) and activation (default relu); a nanoGPT checkpoint does
    not contain its characters, which are read from `text`.
    """
    from neural.imports import registry
    from neural.workflows.import_model import import_file

    importer = registry.get(kind.replace(".", "_"), ignore_case=True)
    imported = import_file(file, importer, overrides, runs=root, output=out)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "run": str(imported.path),
                    "parameters": imported.num_parameters,
                    "difference": imported.max_difference,
                }
            )
        )
        return
    from neural.cli._formatting import relative_path

    difference_text = (
        ""
        if imported.max_difference is None
        else f"; largest difference to torch's module {imported.max_difference:.1g}"
    )
    click.echo(
        f"{relative_path(imported.path)}: {imported.num_parameters:,} parameters{difference_text}"
    )
