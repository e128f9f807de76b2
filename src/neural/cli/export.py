"""`neural export`: the trained network of a run in the format of other software (ONNX, Keras, …).

A bundle (neural.workflows.export) is the network with its weights and a description of its inputs.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from neural.cli._arguments import RUN
from neural.cli._options import json_option, out_option, runs_option


class _ExportCommand(click.Command):
    """Lists the formats of the registry in its help."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section with the name and summary of every format."""
        from neural.exports import registry

        with formatter.section("Formats"):
            formatter.write_dl([(name, registry.get(name).summary()) for name in registry.names()])


@click.command(cls=_ExportCommand)
@click.argument("run", required=False, type=RUN)
@click.option(
    "--to",
    "--format",
    "form",
    metavar="FORM",
    help="Format of the file; see below. By default that of the suffix of -o.",
)
@out_option("File or folder to write; named after the run by default.", metavar="PATH")
@click.option("--mask", "masked", is_flag=True, help="Add a padding mask as a second input.")
@click.option("--scores", is_flag=True, help="Return the logits, without the last activation.")
@click.option(
    "--length",
    type=click.IntRange(1, 1_000_000),
    help="Fix the length of sequences; any length by default.",
)
@runs_option()
@json_option("Print one JSON object.")
def command(
    run: str | None,
    form: str | None,
    out: Path | None,
    masked: bool,
    scores: bool,
    length: int | None,
    root: Path,
    as_json: bool,
) -> None:
    """Export a run's network with its best weights; the newest run by default.

    \b
    $ neural export RUN -o net.onnx
    $ neural export RUN --to keras
    $ neural export RUN --to huggingface -o folder

    The written file is read back and compared with the network at several shapes before it is put
    in place.
    """
    from neural.cli._run_selection import select_run
    from neural.core.errors import NeuralError
    from neural.exports import registry
    from neural.workflows.export import export, load_bundle

    if form is None:
        types = [registry.get(name) for name in registry.names()]
        form = next(
            (registry.name_of(kind) for kind in types if out and out.suffix == kind.suffix != ""),
            None,
        )
    if form is None:
        names = " | ".join(registry.names())
        raise NeuralError(f"choose a format: --to {names}, or a file such as -o net.onnx")
    exporter_type = registry.get(form)
    form = registry.name_of(exporter_type)  # `hf` is huggingface
    bundle = load_bundle(
        select_run(run, root), return_logits=scores, with_mask=masked, length=length
    )
    suffix = exporter_type.suffix
    path = out or Path(f"{bundle.name}{suffix}" if suffix else f"{bundle.name}_{form}")
    result = export(bundle, exporter_type, path)
    if "preprocessing" in bundle.metadata:
        click.echo(
            "note: the network takes prepared columns (filled, standardised, one-hot), not raw rows; "
            "the metadata `preprocessing` and `classes` of the file have means, categories and class "
            "names, and docs/export.md has a script that goes from rows to class names"
            if form != "keras"
            else "note: the network takes prepared columns (filled, standardised, one-hot), not raw "
            "rows; `data/preprocessing` of the run has their means and categories",
            err=True,
        )
    if "target_scaler" in bundle.metadata:
        click.echo(
            "note: the outputs are standardised; multiply them by `std` and add `mean` of "
            "`data/target_scaler` of the run for the units of the target",
            err=True,
        )
    exporter = exporter_type()
    bundle = exporter.adapt(bundle)  # as `export` did: some formats always have masks
    usage = exporter.describe_usage(bundle, path)
    input_names, output_name = exporter.input_names(bundle), exporter.output_name(bundle)
    if as_json:
        click.echo(
            json.dumps(
                {
                    "path": str(result.path),
                    "form": form,
                    "bytes": result.num_bytes,
                    "shapes": result.shapes,
                    "difference": result.max_difference,
                    "allowed": exporter_type.max_output_difference,
                    "inputs": input_names,
                    "output": output_name,
                    "use": usage,
                }
            )
        )
        return
    inputs = ", ".join(
        f"{name} {_format_shape(spec.shape)}"
        for name, spec in zip(input_names, bundle.inputs, strict=True)
    )
    click.echo(f"{path}: {result.num_bytes:,} bytes; {inputs} → {output_name}")
    shapes = ", ".join(str(shape) for shape in result.shapes)
    click.echo(
        f"equal to the network at {shapes}: the largest difference is "
        f"{result.max_difference:.1g}, {exporter_type.max_output_difference:.0e} is allowed"
    )
    click.echo(usage)


def _format_shape(shape: tuple[int | None, ...]) -> str:
    """A shape without its batch axis as `(batch, time, 8)`; None is a free length."""
    return f"({', '.join(['batch', *('time' if size is None else str(size) for size in shape)])})"
