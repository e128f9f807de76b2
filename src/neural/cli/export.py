"""`neural export`: the trained network of a run, for other programs."""

from __future__ import annotations

import json
from pathlib import Path

import click

from neural.cli._arguments import RUN


@click.command()
@click.argument("run", required=False, type=RUN)
@click.option("--to", "form", metavar="FORM", required=True, help="onnx, torch, keras or huggingface.")
@click.option("-o", "--out", type=click.Path(path_type=Path), metavar="PATH",
              help="Where to; the run's name here if not said.")  # fmt: skip
@click.option("--mask", "masked", is_flag=True, help="A second input that tells what is real from padding.")
@click.option("--scores", is_flag=True, help="Give what the loss takes, before the last activation.")
@click.option("--length", type=click.IntRange(1), help="For sequences of this length alone; any if not said.")
@click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def command(
    run: str | None, form: str, out: Path | None, masked: bool, scores: bool, length: int | None, runs: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Write a run's network with its best weights for other programs; the newest run if none is named.

    \b
    $ neural export RUN --to onnx -o net.onnx
    $ neural export RUN --to keras
    $ neural export RUN --to huggingface -o folder

    What was written is read back and compared with the network at several shapes before it is put in place.
    """
    from neural.cli._mistakes import told

    with told():
        from neural.experiments import find_run
        from neural.export import export, leaving_from
        from neural.exports import registry

        kind = registry.get(form)
        leaving = leaving_from(find_run(run, runs), scores=scores, masked=masked, length=length)
        path = out or Path(f"{leaving.name}{kind.suffix}" if kind.suffix else f"{leaving.name}_{form}")
        done = export(leaving, kind, path)
    form_of = kind()
    leaving = form_of.adapt(leaving)
    use, names, gives = form_of.use(leaving, path), form_of.input_names(leaving), form_of.output_name(leaving)
    if as_json:
        click.echo(json.dumps({
            "path": str(done.path), "form": form, "bytes": done.size, "shapes": done.shapes,
            "difference": done.difference, "allowed": kind.tolerance, "inputs": names,
            "output": gives, "use": use,
        }))  # fmt: skip
        return
    given = ", ".join(
        f"{name} {_sizes(one.sizes)}" for name, one in zip(names, leaving.inputs, strict=True)
    )
    click.echo(f"{path}: {done.size:,} bytes; {given} → {gives}")
    at = ", ".join(str(shape) for shape in done.shapes)
    click.echo(f"equal to the network at {at}: the largest difference is {done.difference:.1g}, "
               f"{kind.tolerance:.0e} is allowed")  # fmt: skip
    click.echo(use)


def _sizes(sizes: tuple[int | None, ...]) -> str:
    return f"({', '.join(['batch', *('time' if size is None else str(size) for size in sizes)])})"
