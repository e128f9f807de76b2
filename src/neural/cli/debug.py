"""`neural debug`: run a network once and show attention, gradients, head importance, anomalies.

The subject (neural.interpret.subject) is the network; its inputs are one batch. A `Capture`
(neural.capture.capture_result) is a sequence of attention calls, one per layer. `L1 h0` is head 0
of the second layer: both numbers start from 0.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli import _formatting
from neural.cli._arguments import PROGRAM_OR_RUN, PROGRAM_SUFFIXES, RUN, SEED
from neural.cli._options import out_option, runs_option

if TYPE_CHECKING:
    from neural.capture.capture_result import Capture
    from neural.interpret.inputs import Inputs
    from neural.interpret.subject import Subject

FAINT_GRADIENT_RATIO = 1e-3
"""Share of the median gradient/weight ratio; a layer with less is marked: it hardly learns."""
MEASURE_COLUMNS = {
    "entropy": "entropy",
    "relative_entropy": "relative",
    "effective_keys": "keys",
    "span": "span",
    "first_key_mass": "first",
    "previous_token_mass": "previous",
    "induction_mass": "induct.",
    "largest_weight": "largest",
    "largest_logit": "logit",
}
"""Measures (neural.capture.measures) in the table of heads, and the headers of their columns."""
GRADIENT_BAR_WIDTH = 20
"""Characters of the bar of the layer with the largest gradient/weight ratio."""
MAX_DRAWN_HEADS = 16
"""Heads whose maps are drawn if no layer is selected."""


@click.command()
@click.argument("subject", metavar="[PROGRAM|RUN]", required=False, type=PROGRAM_OR_RUN)
@click.option(
    "--attention-weights",
    is_flag=True,
    help="Attention of each head; the default.",
)
@click.option("--gradients", is_flag=True, help="Norms of weights and gradients, layer by layer.")
@click.option("--dead-heads", is_flag=True, help="How much the output changes without each head.")
@click.option(
    "--anomalies", is_flag=True, help="Search for NaN, infinities, saturation and collapse."
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="TEXT|FILE",
    help="A text, a text file, or an .npy file; twice for a network with two inputs.",
)
@click.option(
    "--layer", type=click.IntRange(0), help="Only this layer, by its number in the table."
)
@click.option(
    "--head", type=click.IntRange(0), help="Only this head; with --layer, its map in full."
)
@click.option(
    "--run",
    metavar="RUN",
    type=RUN,
    help="Use the weights of a run, and its data if there is no --input.",
)
@click.option(
    "--step",
    type=click.IntRange(0),
    help="Step of the checkpoint to load; the best one by default.",
)
@click.option("--network", metavar="NAME", help="The network to run, if a file has several.")
@click.option(
    "--seed",
    type=SEED,
    default=0,
    show_default=True,
    help="Seed of random weights and inputs.",
)
@out_option("Write the maps as one HTML file that works offline.", metavar="FILE.html")
@click.option(
    "--npz",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.npz",
    help="Write all attention weights as arrays.",
)
@runs_option()
def command(subject: str | None, run: str | None, root: Path, **options: Any) -> None:
    """Run a network once: show attention, gradients and anomalies; the newest run by default.

    \b
    $ neural debug net.neural --attention-weights
    $ neural debug novel --input "the cat sat on the mat" --layer 1 --head 0
    $ neural debug novel --dead-heads --gradients --anomalies
    $ neural debug net.neural --run RUN -o heads.html --npz heads.npz

    All values are measured in this pass. The weights of a program without --run are random; the
    output says so.
    """
    _debug(subject, run, root, **options)


def _debug(
    subject_name: str | None,
    run: str | None,
    root: Path,
    attention_weights: bool,
    gradients: bool,
    dead_heads: bool,
    anomalies: bool,
    inputs: tuple[str, ...],
    layer: int | None,
    head: int | None,
    step: int | None,
    network: str | None,
    seed: int,
    out: Path | None,
    npz: Path | None,
) -> None:
    from neural.capture.capture_result import Capture
    from neural.cli._file_kind import require_kind
    from neural.cli._run_selection import select_run
    from neural.workflows.debug import prepare

    program, run_name = _split_subject(subject_name, run)
    if program is not None:
        require_kind(str(program), "program")
    for path, suffix in ((out, ".html"), (npz, ".npz")):
        _check_output_path(path, suffix)
    run_path = select_run(run_name, root) if run is not None or program is None else None
    subject, prepared = prepare(
        program, run=run_path, step=step, inputs=inputs, network=network, seed=seed
    )
    capture = subject.capture_attention(prepared, Capture())
    is_trained, weights = subject.trained_run is not None, subject.weights
    header = [
        ("weights", weights if is_trained else click.style(weights, fg="yellow")),
        ("input", prepared.description),
    ]
    click.echo(_formatting.style_heading(subject.name))
    click.echo("\n".join(_formatting.format_table(header)))
    if not capture and not (gradients or anomalies):
        click.echo("\nthis network has no attention; --gradients and --anomalies work without it")
        return
    _check_layer_and_head(capture, layer, head)
    has_other_output = gradients or dead_heads or anomalies
    if capture and (attention_weights or out or npz or not has_other_output):
        click.echo("\n".join(_format_attention(subject, prepared, capture, layer, head)))
    if dead_heads:
        click.echo("\n".join(format_head_importance(subject, prepared, capture)))
    if gradients:
        click.echo("\n".join(format_gradients(subject, prepared)))
    if anomalies:
        click.echo("\n".join(format_anomalies(subject, prepared, capture)))
    _write_files(subject, prepared, capture, out, npz)


def _split_subject(subject_name: str | None, run: str | None) -> tuple[Path | None, str | None]:
    """(program, name of the run): what is no file and does not look like one names a run."""
    if subject_name is None:
        return None, run
    path = Path(subject_name)
    is_program = path.is_file() or path.suffix.lower() in PROGRAM_SUFFIXES
    if is_program or run is not None:
        return path, run
    return None, subject_name


def format_gradients(subject: Subject, inputs: Inputs) -> list[str]:
    """A row per layer: norms of weights and gradient, and their ratio."""
    import numpy as np

    from neural.workflows.model_inspection import describe_objective, measure_gradients

    all_stats = measure_gradients(subject, inputs)
    ratios = [
        layer_stats.ratio
        for layer_stats in all_stats
        if math.isfinite(layer_stats.ratio) and layer_stats.ratio > 0
    ]
    median = float(np.median(ratios)) if ratios else math.nan
    largest = max(ratios, default=1.0)
    rows = [("", "parameters", "weights", "gradient", "ratio", "")]
    for layer_stats in all_stats:
        if not math.isfinite(layer_stats.gradient_norm):
            note = "not finite"
        elif layer_stats.gradient_norm == 0:
            note = "none"
        elif 0 < layer_stats.ratio < FAINT_GRADIENT_RATIO * median:
            note = "faint: it hardly learns"
        else:
            bar_length = (
                round(GRADIENT_BAR_WIDTH * layer_stats.ratio / largest)
                if math.isfinite(layer_stats.ratio)
                else 0
            )
            note = "█" * bar_length or "▏"
        rows.append(
            (
                layer_stats.layer,
                f"{layer_stats.parameters:,}",
                _formatting.format_number(layer_stats.weight_norm),
                _formatting.format_number(layer_stats.gradient_norm),
                _formatting.format_number(layer_stats.ratio),
                note,
            )
        )
    return [
        "",
        _formatting.style_heading("gradients") + f" of {describe_objective(inputs)}",
        *_formatting.format_table(rows, right_aligned=(1, 2, 3, 4)),
    ]


def format_head_importance(subject: Subject, inputs: Inputs, capture: Capture) -> list[str]:
    """Relative change of the output when each head is removed."""
    import numpy as np

    from neural.workflows.model_inspection import DEAD_HEAD_THRESHOLD, head_importance

    importance = head_importance(subject, inputs, capture)
    rows = [("", *(f"h{head}" for head in range(importance.shape[1])))]
    for layer, values in enumerate(importance):
        cells = ["" if math.isnan(value) else _format_importance(value) for value in values]
        rows.append((f"L{layer}", *cells))
    dead = [f"L{layer} h{head}" for layer, head in np.argwhere(importance < DEAD_HEAD_THRESHOLD)]
    threshold = f"less than {DEAD_HEAD_THRESHOLD:.1%}"
    summary = f"dead ({threshold}): {', '.join(dead)}" if dead else f"no head is dead ({threshold})"
    return [
        "",
        _formatting.style_heading("heads") + ", how much the output changes without each",
        *_formatting.format_table(rows, right_aligned=range(1, len(rows[0]))),
        f"  {summary}",
    ]


def _format_importance(value: float) -> str:
    from neural.workflows.model_inspection import DEAD_HEAD_THRESHOLD

    if value >= DEAD_HEAD_THRESHOLD:
        return f"{value:.1%}"
    return click.style(f"{value:.0e}", fg="red")


def format_anomalies(subject: Subject, inputs: Inputs, capture: Capture) -> list[str]:
    """All anomalies with their evidence; if there are none, what was examined."""
    from neural.workflows.model_inspection import find_anomalies

    anomalies = find_anomalies(subject, inputs, capture)
    lines = ["", _formatting.style_heading("anomalies")]
    if anomalies:
        lines += _formatting.format_table(
            [
                (click.style(anomaly.kind, fg="red"), anomaly.location, anomaly.evidence)
                for anomaly in anomalies
            ]
        )
        has_uniform_head = any("uniform" in anomaly.evidence for anomaly in anomalies)
        if has_uniform_head and subject.trained_run is None:
            lines.append("  the weights are random: heads close to uniform are usual then")
        return lines
    module_count = sum(1 for _ in subject.model.modules())
    parameter_count = sum(1 for _ in subject.model.parameters())
    head_count = sum(call.heads for call in capture)
    return [
        *lines,
        f"  none in {parameter_count:,} parameter tensors, the outputs of {module_count:,} "
        f"modules, {head_count:,} heads and all gradients",
    ]


def _format_attention(
    subject: Subject, inputs: Inputs, capture: Capture, layer: int | None, head: int | None
) -> list[str]:
    """Layers, measures of the heads, maps, and the check against fused attention.

    `layer` and `head` select what is shown, from 0; None selects all.
    """
    from neural.workflows.model_inspection import compare_fused_attention

    selected = [
        (layer_index, head_index)
        for layer_index, call in enumerate(capture)
        for head_index in range(call.heads)
        if layer in (None, layer_index) and head in (None, head_index)
    ]
    names = [(f"L{index}", name) for index, name in enumerate(capture.layer_names())]
    lines = ["", _formatting.style_heading("layers"), *_formatting.format_table(names)]
    lines += [
        "",
        _formatting.style_heading("heads") + ", mean over the queries",
        *_format_measures(capture, selected),
    ]
    layers_without_weights = [
        f"L{index}" for index, call in enumerate(capture) if call.attention is None
    ]
    if layers_without_weights:
        lines.append(
            f"  no weights to show: queries or keys of {', '.join(layers_without_weights)} "
            "are not finite; see --anomalies"
        )
    lines += _format_maps(capture, selected, layer, head)
    difference = compare_fused_attention(subject, inputs)
    return [
        *lines,
        "",
        "fused attention and explicit weights give the same output: "
        f"largest difference {difference:.1e}",
    ]


def _format_maps(
    capture: Capture,
    selected: list[tuple[int, int]],
    layer: int | None,
    head: int | None,
) -> list[str]:
    """One map in full if layer and head are given, else small ones; then the strongest pairs.

    `selected` holds pairs (layer, head); a pair in the output is a query and the key it attends to.
    """
    from neural.cli import _attention_maps

    drawable = [
        (layer_index, head_index)
        for layer_index, head_index in selected
        if capture[layer_index].attention is not None
    ]
    if not drawable:
        return []
    maps = {
        index: capture[index].maps(examples=1)[0]
        for index in sorted({index for index, _ in drawable})
    }
    axes = "queries downwards, keys to the right"
    if layer is not None and head is not None:
        labels = capture.axis_labels(layer)
        lines = [
            "",
            _formatting.style_heading(f"L{layer} h{head}, {axes}"),
            *_attention_maps.render_map(maps[layer][head], *labels),
        ]
    else:
        drawn = drawable if layer is not None else drawable[:MAX_DRAWN_HEADS]
        lines = [
            "",
            _formatting.style_heading("maps") + f", {axes}; square-root scale to the row's largest",
            *_attention_maps.render_tiles(
                [maps[layer_index][head_index] for layer_index, head_index in drawn],
                [f"L{layer_index} h{head_index}" for layer_index, head_index in drawn],
            ),
        ]
        if len(drawn) < len(drawable):
            lines.append(f"  {len(drawable) - len(drawn)} more: --layer N")
    pairs_per_head = 8 if len(drawable) == 1 else 2
    pairs = [
        (f"L{layer_index} h{head_index}", text)
        for layer_index, head_index in drawable[: 2 * MAX_DRAWN_HEADS]
        for text in _attention_maps.format_strongest_pairs(
            maps[layer_index][head_index],
            *capture.axis_labels(layer_index),
            pairs_per_head,
        )
    ]
    if pairs:
        lines += [
            "",
            _formatting.style_heading("strongest pairs"),
            *_formatting.format_table(pairs),
        ]
    return lines


def _format_measures(capture: Capture, heads: list[tuple[int, int]]) -> list[str]:
    """A row per head, given as (layer, head), and a column per measure."""
    arrays = capture.measure_arrays()
    columns = {name: title for name, title in MEASURE_COLUMNS.items() if name in arrays}
    rows = [("", *columns.values())]
    for layer, head in heads:
        values = (float(arrays[name][layer, head]) for name in columns)
        rows.append((f"L{layer} h{head}", *map(_formatting.format_measure, values)))
    return _formatting.format_table(rows, right_aligned=range(1, len(columns) + 1))


def _check_layer_and_head(capture: Capture, layer: int | None, head: int | None) -> None:
    from neural.core.errors import NeuralError

    if layer is not None and layer >= len(capture):
        raise NeuralError(
            f"there is no layer {layer}: {len(capture)} have attention, numbered from 0"
        )
    head_count = (
        capture[layer].heads
        if layer is not None
        else max((call.heads for call in capture), default=0)
    )
    if head is not None and head >= head_count:
        owner = "the network" if layer is None else f"layer {layer}"
        raise NeuralError(f"there is no head {head}: {owner} has {head_count}")


def _check_output_path(path: Path | None, suffix: str) -> None:
    """Raise NeuralError for a wrong suffix or a missing folder, before the network runs."""
    from neural.core.errors import NeuralError

    if path is None:
        return
    if path.suffix != suffix:
        raise NeuralError(f"{path} should end in {suffix}")
    if not path.absolute().parent.is_dir():
        raise NeuralError(f"there is no folder {path.parent} for {path.name}")


def _write_files(
    subject: Subject, inputs: Inputs, capture: Capture, out: Path | None, npz: Path | None
) -> None:
    from neural.core.errors import CommandFailedError, describe_os_error
    from neural.workflows.debug import write_arrays, write_page

    for path, write in ((npz, write_arrays), (out, write_page)):
        if path is not None:
            try:
                write(subject, inputs, capture, path)
            except OSError as error:
                raise CommandFailedError(f"{path}: {describe_os_error(error)}") from None
            click.echo(f"written: {path}")
