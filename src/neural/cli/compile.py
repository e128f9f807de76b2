"""`neural compile`: a program, a `.neural` file, as a standalone PyTorch file."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from neural.cli._arguments import PROGRAM_OR_STDIN
from neural.cli._options import STANDARD_STREAM, out_option


@click.command()
@click.argument("file", metavar="FILE", type=PROGRAM_OR_STDIN)
@click.option(
    "--to",
    "form",
    type=click.Choice(["pytorch", "json"]),
    default="pytorch",
    show_default=True,
    help="pytorch: a Python file; json: the syntax tree of the program.",
)
@click.option("--network", metavar="NAME", help="The network to compile, if the file has several.")
@out_option("File to write; standard output by default.", allow_stdout=True)
def command(file: str, form: str, network: str | None, out: Path | None) -> None:
    """Write a network as a Python file that needs only torch.

    \b
    $ neural compile net.neural -o net.py
    $ python net.py

    The file loads the state dict of the module that `neural.load("net.neural").build()` returns.
    It is imported, run and compared with the network before it is put in place.
    """
    import json

    from neural.cli._file_kind import require_kind
    from neural.cli._program_source import print_diagnostics, read_source
    from neural.core.errors import NeuralError, describe_os_error
    from neural.core.files import write_atomically
    from neural.language.check import check
    from neural.language.program_json import program_to_json
    from neural.optim.catalogue import CATALOGUE

    if file != "-":
        require_kind(file, "program")
    source = read_source(file)
    # CATALOGUE: the layers, losses and optimizers that programs can name
    checked = check(source.text, CATALOGUE, network=network)
    if checked.errors:
        print_diagnostics(checked.errors, source)
        sys.exit(2)
    comparison_text = ""
    if form == "json":
        text = json.dumps(program_to_json(checked.program), indent=2, ensure_ascii=False) + "\n"
    else:
        from neural.nn.source_export.symbols import SourceExportError
        from neural.workflows.compile import compile_network  # imports torch

        try:
            compiled = compile_network(checked.networks[0])
        except (SourceExportError, MemoryError) as error:
            raise NeuralError(f"{error}; nothing was written") from None
        text = compiled.text
        shapes = ", ".join(str(shape) for shape in compiled.shapes)
        if compiled.max_difference is None:
            comparison_text = f"same shapes as the network at {shapes}; too large to compare values"
        else:
            comparison_text = (
                f"equal to the network at {shapes}: "
                f"the largest difference is {compiled.max_difference:.1g}"
            )
    if out is None or out == STANDARD_STREAM:
        click.echo(text, nl=False)
        return
    try:
        write_atomically(out, text)
    except OSError as error:
        raise NeuralError(f"{out}: {describe_os_error(error)}") from None
    written_network = checked.networks[0]
    click.echo(
        f"{out}: {written_network.name}, {written_network.cost.parameters:,} parameters", err=True
    )
    if comparison_text:
        click.echo(comparison_text, err=True)
