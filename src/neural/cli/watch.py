"""`neural watch`: the attention of a model that somebody else built, measured and explained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._options import (
    build_option,
    ids_option,
    implementation_option,
    json_option,
    out_option,
    runs_option,
)
from neural.core.escape import escape_controls, escape_controls_keep_colours

if TYPE_CHECKING:
    from neural.workflows.watch_models import HeadSummary, ModelCapture

SHOWN_MEASURES = {
    "entropy": "entropy",
    "effective_keys": "keys",
    "span": "span",
    "first_key_mass": "first",
    "previous_token_mass": "previous",
    "induction_mass": "induction",
}
"""Measures in the table of heads, and the headers of their columns."""
MAX_LISTED_HEADS = 24
"""Heads with a role that are listed without --layer."""


@click.command()
@click.argument("targets", metavar="TARGET…", nargs=-1, required=True)
@click.option(
    "--input",
    "-i",
    "inputs",
    multiple=True,
    metavar="TEXT|FILE",
    help="A text or a text file; several become one batch.",
)
@click.option("--lines", "by_line", is_flag=True, help="Every line of --input is a text.")
@click.option(
    "--pair", "pairs", multiple=True, nargs=2, metavar="TEXT TEXT", help="Two sentences together."
)
@click.option(
    "--decoder",
    "decoder_inputs",
    multiple=True,
    metavar="TEXT|FILE",
    help="What the decoder of an encoder–decoder model reads; the input by default.",
)
@ids_option()
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="An image, for vision transformers; several become one batch.",
)
@click.option("--layer", type=click.IntRange(0), help="Only this layer, all of its heads.")
@click.option("--head", type=click.IntRange(0), help="Only this head.")
@build_option()
@implementation_option()
@click.option("--max-tokens", type=click.IntRange(1), help="Cut longer inputs.")
@out_option("Write a page that works offline.", metavar="FILE.html")
@click.option(
    "--example",
    type=click.IntRange(0),
    default=0,
    help="Text or image whose maps the page and --overlay show, from 0.",
)
@click.option(
    "--overlay",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Draw the weights of --layer and --head over the image: .png, .svg or .pdf.",
)
@click.option(
    "--patch",
    nargs=2,
    type=click.IntRange(0),
    metavar="ROW COLUMN",
    help="Patch that attends in --overlay, from 0; CLS by default.",
)
@click.option("--save", is_flag=True, help="Keep it as a run, for report, board and compare.")
@click.option("--name", metavar="NAME", help="Name of the run; the model's by default.")
@runs_option()
@json_option()
def command(targets: tuple[str, ...], root: Path, as_json: bool, **options: Any) -> None:
    """Show what the heads of any model attend to: roles, measures, findings, a page.

    \b
    $ neural watch ./gpt2 --input "The cat sat on the mat" -o heads.html
    $ neural watch my_package.models:build --input notes.txt --layer 2
    $ neural watch ./bert --input sentences.txt --lines -o heads.html --example 2
    $ neural watch ./bert --pair "It rains." "I take an umbrella." --json
    $ neural watch ./vit --image cat.png --overlay attention.png --layer 5 --head 2
    $ neural watch checkpoints/checkpoint-* --input probe.txt --save

    TARGET is a folder of Hugging Face (config, weights, tokenizer) or its name on the hub,
    module:function that returns a model or (model, tokenizer), a .pt2 or .gguf file, a state dict with
    --build, or a run. Several targets are checkpoints of one model: they become one run, with a
    slider over their steps.
    """
    _watch(targets, root, as_json=as_json, **options)


def _watch(
    targets: tuple[str, ...],
    root: Path,
    *,
    inputs: tuple[str, ...],
    by_line: bool,
    pairs: tuple[tuple[str, str], ...],
    decoder_inputs: tuple[str, ...],
    ids: tuple[str, ...],
    images: tuple[Path, ...],
    layer: int | None,
    head: int | None,
    build: str | None,
    implementation: str | None,
    max_tokens: int | None,
    out: Path | None,
    example: int,
    overlay: Path | None,
    patch: tuple[int, int] | None,
    save: bool,
    name: str | None,
    as_json: bool,
) -> None:
    from neural.findings.findings import add_figures
    from neural.interpret.inputs import read_inputs
    from neural.workflows.watch_models import (
        find_findings,
        format_json,
        record_captures,
        save_record,
        to_json,
        watch_models,
    )

    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"{out}: the page is HTML; name it {out.with_suffix('.html')}")
    if images and (inputs or pairs or decoder_inputs or ids):
        raise click.UsageError("--image and texts cannot be watched together: give one of them")
    if (overlay or patch) and not (overlay and images):
        raise click.UsageError("--overlay FILE needs --image FILE, and --patch needs both")
    is_series = len(targets) > 1
    if is_series and example:
        raise click.UsageError("the page of several checkpoints shows the first example only")
    texts = read_inputs(inputs, by_line=by_line)
    captures = list(
        watch_models(
            targets,
            texts=texts,
            pairs=pairs,
            decoder_texts=read_inputs(decoder_inputs),
            ids=ids,
            images=images,
            build=build,
            implementation=implementation,
            max_length=max_tokens,
            runs=root,
            on_progress=lambda target: (
                click.echo(escape_controls(f"{target} …"), err=True) if is_series else None
            ),
        )
    )
    last = captures[-1]
    _check_selection(last, layer, head, example)
    several_lines = sum(len(text.splitlines()) > 1 for text in texts)
    if several_lines:
        last.notes.append(
            f"{several_lines} of {len(texts)} texts {'has' if several_lines == 1 else 'have'} "
            "several lines; with --lines, every line is a text of its own"
        )
    record = record_captures(captures, name)
    saved = save_record(record, root) if save else None
    findings = find_findings(record)
    if as_json:
        click.echo(format_json(to_json(last, findings)), nl=False)
    else:
        lines = [*_format_heads(last, layer, head), *_format_findings(findings)]
        # names and texts of a foreign model
        click.echo(escape_controls_keep_colours("\n".join(lines)))
    if out is not None:
        from neural.report.capture_page import write_capture_page, write_record_page

        title = name or last.result.model_name
        if is_series:
            write_record_page(record, out, title=title)
        else:
            write_capture_page(
                last.result,
                out,
                name=title,
                example=example,
                findings=add_figures(findings, [record], [title]),
            )
        click.echo(f"{out}; open it in a browser", err=as_json)
    if overlay is not None:
        from neural.workflows.figure import figure

        drawn = figure(last.result, "image", layer=layer, head=head, patch=patch, example=example)
        click.echo(escape_controls(f"{drawn.save(overlay)}: {drawn.description}"), err=as_json)
    if saved is not None:
        click.echo(f"run {saved}", err=as_json)


def _check_selection(
    capture: ModelCapture, layer: int | None, head: int | None, example: int
) -> None:
    batch = max(call.attention.batch for call in capture.result if call.attention is not None)
    if example >= batch:
        raise click.UsageError(f"example {example} does not exist: there are {batch}, from 0")
    layers = len(capture.result)
    if layer is not None and layer >= layers:
        raise click.UsageError(f"layer {layer} does not exist: there are {layers}, from 0")
    heads = capture.result[layer or 0].heads
    if head is not None and head >= heads:
        raise click.UsageError(f"head {head} does not exist: there are {heads}, from 0")


def _format_heads(capture: ModelCapture, layer: int | None, head: int | None) -> list[str]:
    """Header, then a table: heads with a role, or all heads of the chosen layer."""
    from neural.findings.head_roles import MIN_ROLE_POSITIONS, ROLES_OF_NO_PATTERN, TOO_SHORT
    from neural.workflows.watch_models import summarize_heads

    heads = summarize_heads(capture)
    total = len(heads)
    selected = [
        summary
        for summary in heads
        if (layer is None or summary.layer == layer) and (head is None or summary.head == head)
    ]
    with_role = [summary for summary in selected if summary.role not in ROLES_OF_NO_PATTERN]
    is_selection = layer is not None or head is not None
    shown = selected if is_selection else with_role[:MAX_LISTED_HEADS]
    parameters = sum(param.numel() for param in capture.subject.model.parameters())
    layer_count = len(capture.result)
    lines = [
        _formatting.style_heading(capture.subject.name)
        + f", {type(capture.subject.model).__name__}, {parameters:,} parameters",
        f"  input: {capture.input.description}",
        *(f"  note: {note}" for note in capture.notes),
        "",
        f"{layer_count} layer{'s' * (layer_count != 1)}, {total} heads: "
        + _count_roles([summary.role for summary in heads]),
    ]
    if not shown and any(summary.role == TOO_SHORT for summary in heads):
        return [
            *lines,
            f"roles need {MIN_ROLE_POSITIONS} tokens: in shorter inputs a head has a role by chance; "
            "--layer N shows the heads of a layer",
        ]
    if not shown:
        is_any_uniform = any(summary.role == "uniform" for summary in heads)
        role = "another role" if is_any_uniform else "a role"
        return [*lines, f"no head has {role}; --layer N shows the heads of a layer"]
    names = [name for name in SHOWN_MEASURES if any(name in summary.measures for summary in shown)]
    rows = [("", "role", *(SHOWN_MEASURES[name] for name in names))]
    rows += [_format_row(summary, names) for summary in shown]
    lines += _formatting.format_table(rows, right_aligned=range(2, len(names) + 2))
    if not is_selection and len(with_role) > len(shown):
        lines.append(f"  and {len(with_role) - len(shown)} more; --layer N shows those of a layer")
    return lines


def _format_row(summary: HeadSummary, names: list[str]) -> tuple[str, ...]:
    values = [
        _formatting.format_measure(summary.measures[name]) if name in summary.measures else ""
        for name in names
    ]
    return (f"L{summary.layer} h{summary.head}", summary.role, *values)


def _count_roles(roles: list[str]) -> str:
    """`3 previous token, 2 induction, 7 without a role`."""
    from neural.findings.head_roles import ROLES_OF_NO_PATTERN, TOO_SHORT

    counts = {role: roles.count(role) for role in dict.fromkeys(roles)}
    named = sorted(
        ((count, role) for role, count in counts.items() if role not in ROLES_OF_NO_PATTERN),
        reverse=True,
    )
    parts = [f"{count} {role}" for count, role in named]
    parts += [f"{counts[role]} {role}" for role in ("uniform", TOO_SHORT) if counts.get(role)]
    without = counts.get("mixed", 0) + counts.get("", 0)
    parts += [f"{without} without a role"] if without else []
    return ", ".join(parts)


def _format_findings(findings: Any) -> list[str]:
    from neural.findings.findings import format_findings

    lines = list(format_findings(findings))
    return ["", _formatting.style_heading("findings"), *(lines or ["  nothing notable"])]
