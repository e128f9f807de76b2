"""`neural debug`: look into a network: what its heads attend to, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN

if TYPE_CHECKING:
    from neural.debugging import Subject
    from neural.tracking.seen import Seen

COLUMNS = {"entropy": "entropy", "relative_entropy": "relative", "effective_keys": "keys", "span": "span",
           "first_key_mass": "first", "previous_token_mass": "previous", "induction_mass": "induct.",
           "largest_weight": "largest", "largest_logit": "logit"}  # fmt: skip
"""Measures in the table, and how they are called there."""
MOST = 16
"""Heads whose maps are drawn unless a layer is asked for."""


@click.command()
@click.argument("program", required=False, type=click.Path(path_type=Path))
@click.option("--attention-weights", is_flag=True, help="What each head attends to; this if nothing else is asked.")
@click.option("--gradients", is_flag=True, help="How large gradients are, layer by layer.")
@click.option("--dead-heads", is_flag=True, help="What the output loses without each head.")
@click.option("--anomalies", is_flag=True, help="Numbers that are not finite, saturation, collapse.")
@click.option("--input", "inputs", multiple=True, metavar="TEXT|FILE",
              help="A text, a text file, or a .npy file; twice for a network with two sequences.")  # fmt: skip
@click.option("--layer", type=click.IntRange(0), help="Only this one, as it is numbered in the table.")
@click.option("--head", type=click.IntRange(0), help="Only this one; with --layer, its map in full.")
@click.option("--run", metavar="RUN", type=RUN,
              help="Take the weights of a run, and its own data where there is no --input.")  # fmt: skip
@click.option("--step", type=click.IntRange(0), help="Of the run's checkpoints; the best if not said.")
@click.option("--network", metavar="NAME", help="Which network, where a file has several.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of random weights and inputs.")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.html",
              help="The maps as one page that opens offline.")  # fmt: skip
@click.option("--npz", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE.npz",
              help="All weights as arrays.")  # fmt: skip
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
def command(program: Path | None, run: str | None, root: Path, **asked: Any) -> None:
    """Run a network once and show what happens inside it.

    \b
    $ neural debug net.neural --attention-weights
    $ neural debug --run RUN --input "the cat sat on the mat" --layer 1 --head 0
    $ neural debug --run RUN --dead-heads --gradients --anomalies
    $ neural debug --run RUN -o heads.html --npz heads.npz

    Everything that is shown was measured in this pass. Without --run the weights are random, and it says so.
    """
    from neural.cli._mistakes import told

    with told():
        _debug(program, run, root, **asked)


def _debug(
    program: Path | None, run: str | None, root: Path, attention_weights: bool, gradients: bool, dead_heads: bool,
    anomalies: bool, inputs: tuple[str, ...], layer: int | None, head: int | None, step: int | None,
    network: str | None, seed: int, out: Path | None, npz: Path | None,
) -> None:  # fmt: skip
    from neural.cli import _inspected, _text
    from neural.cli._kinds import expect
    from neural.debugging import subject_of
    from neural.experiments import find_run

    if program is not None:
        expect(str(program), "program")
    for path, suffix in ((out, ".html"), (npz, ".npz")):
        _check(path, suffix)
    where = None if run is None else find_run(run, root)
    subject = subject_of(program, run=where, step=step, inputs=inputs, network=network, seed=seed)
    seen = subject.watched()
    click.echo("\n".join([_text.heading(subject.name), *_text.table([
        ("weights", subject.weights if subject.trained else click.style(subject.weights, fg="yellow")),
        ("input", subject.shown),
    ])]))  # fmt: skip
    if not seen and not (gradients or anomalies):
        click.echo("\nthis network has no attention to look at; --gradients and --anomalies work without")
        return
    _known(seen, layer, head)
    others = gradients or dead_heads or anomalies
    if seen and (attention_weights or out or npz or not others):
        click.echo("\n".join(_attention(subject, seen, layer, head)))
    if dead_heads:
        click.echo("\n".join(_inspected.dead_heads(subject, seen)))
    if gradients:
        click.echo("\n".join(_inspected.gradients(subject)))
    if anomalies:
        click.echo("\n".join(_inspected.anomalies(subject, seen)))
    _write(subject, seen, out, npz)


def _attention(subject: Subject, seen: Seen, layer: int | None, head: int | None) -> list[str]:
    from neural.cli import _maps, _text
    from neural.inspection import largest_difference

    chosen = [(at, h) for at, call in enumerate(seen) for h in range(call.heads)
              if layer in (None, at) and head in (None, h)]  # fmt: skip
    names = [(f"L{at}", name) for at, name in enumerate(seen.layers())]
    lines = ["", _text.heading("layers"), *_text.table(names)]
    lines += ["", _text.heading("heads") + ", mean over the queries", *_measures(seen, chosen)]
    broken = [f"L{at}" for at, call in enumerate(seen) if call.look is None]
    if broken:
        lines += [f"  no weights to show: queries or keys of {', '.join(broken)} are not finite; see --anomalies"]
    drawn = [place for place in chosen if seen[place[0]].look is not None]
    maps = {at: seen[at].maps(1)[0] for at in sorted({at for at, _ in drawn})}
    if layer is not None and head is not None and drawn:
        labels = subject.labels(seen[layer])
        title = f"L{layer} h{head}, queries downwards, keys to the right"
        lines += ["", _text.heading(title), *_maps.in_full(maps[layer][head], *labels)]
    elif drawn:
        few = drawn if layer is not None or len(drawn) <= MOST else drawn[:MOST]
        scale = ", queries downwards, keys to the right; from 0 to 1 on a square-root scale"
        lines += ["", _text.heading("maps") + scale]
        lines += _maps.tiles([maps[at][h] for at, h in few], [f"L{at} h{h}" for at, h in few])
        lines += [f"  {len(drawn) - len(few)} more: --layer N"] if len(few) < len(drawn) else []
    each = 8 if len(drawn) == 1 else 2
    pairs = [(f"L{at} h{h}", text) for at, h in drawn[: 2 * MOST]
             for text in _maps.strongest(maps[at][h], *subject.labels(seen[at]), each)]  # fmt: skip
    if pairs:
        lines += ["", _text.heading("strongest pairs"), *_text.table(pairs)]
    apart = largest_difference(subject)
    return [*lines, "", f"fused attention and weights written out give the same output: largest difference {apart:.1e}"]


def _measures(seen: Seen, chosen: list[tuple[int, int]]) -> list[str]:
    from neural.cli import _text

    arrays = seen.arrays()
    there = {name: title for name, title in COLUMNS.items() if name in arrays}
    rows = [("", *there.values())]
    rows += [(f"L{at} h{h}", *(_text.share(float(arrays[name][at, h])) for name in there)) for at, h in chosen]
    return _text.table(rows, right=range(1, len(there) + 1))


def _known(seen: Seen, layer: int | None, head: int | None) -> None:
    from neural.cli._mistakes import Refused

    if layer is not None and layer >= len(seen):
        raise Refused(f"there is no layer {layer}: {len(seen)} have attention, numbered from 0")
    most = seen[layer].heads if layer is not None else max((call.heads for call in seen), default=0)
    if head is not None and head >= most:
        owner = "the network" if layer is None else f"layer {layer}"
        raise Refused(f"there is no head {head}: {owner} has {most}")


def _check(path: Path | None, suffix: str) -> None:
    """Say what is wrong before the work, not after it."""
    from neural.cli._mistakes import Refused

    if path is None:
        return
    if path.suffix != suffix:
        raise Refused(f"{path} should end in {suffix}")
    if not path.absolute().parent.is_dir():
        raise Refused(f"there is no folder {path.parent} for {path.name}")


def _write(subject: Subject, seen: Seen, out: Path | None, npz: Path | None) -> None:
    from neural.cli._mistakes import Failed
    from neural.debug_files import write_arrays, write_page

    for path, write in ((npz, write_arrays), (out, write_page)):
        if path is not None:
            try:
                write(subject, seen, path)
            except OSError as error:
                raise Failed(f"{path}: {(error.strerror or str(error)).lower()}") from None
            click.echo(f"written: {path}")
