"""Draw a figure for a paper from runs or from a capture of `neural.watch`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from neural.capture.capture_result import Capture
from neural.report.attention_snapshot import (
    FigureError,
    load_capture_snapshot,
    load_run_snapshot,
)
from neural.runs.find import DEFAULT_RUNS_DIR, RunName, to_run_names
from neural.runs.run import Run
from neural.workflows.sweep import resolve_run_paths

if TYPE_CHECKING:
    from neural.report.paper_figure import FigureKind, FigureRequest, PaperFigure

DEFAULT_WIDTH = "3.25in"
"""One column of the usual two-column formats."""


def figure(
    run: RunName | Sequence[RunName] | Capture | None = None,
    kind: str = "heads",
    *,
    step: int | None = None,
    layer: int | None = None,
    head: int | None = None,
    metrics: Sequence[str] = (),
    patch: tuple[int, int] | None = None,
    example: int = 0,
    width: str | float = DEFAULT_WIDTH,
    height: str | float | None = None,
    runs: str | Path = DEFAULT_RUNS_DIR,
) -> PaperFigure:
    """Draw a figure for a paper; `.save("fig.svg")` writes it as SVG, PDF or PNG.

        neural.figure("characters", "heads", step=360).save("heads.pdf")
        neural.figure("characters", "head", layer=2, head=1, width="8cm").save("head.svg")
        neural.figure(["seed-0", "seed-1"], "curves", metrics=["valid/loss"]).save()
        neural.figure(neural.watch(model, batch), "lines").save("lines.svg")

    `run` is a run, its name or path, the newest run by default, or a capture of `neural.watch`;
    for curves also a sweep or a list of runs. The kinds are heads, head, lines, roles, image,
    importance (after `neural ablate`) and curves.
    `step` is the last one with maps by default. `layer` and `head`, counted from 0, are those of
    head, lines and image; by default the head with a role whose weights are the most concentrated.
    `patch`, row and column, is the query of image; CLS by default.
    `example` is that of a capture. `width` and `height` are lengths such as "3.25in", "82mm" or a
    number of inches. Text stays text in SVG and PDF, and the same data give the same bytes.
    RunError if a run, step, layer, head, metric or kind does not exist, MissingPackageError
    without the extra `figures`.
    """
    from neural.report.paper_figure import FigureRequest, parse_length  # imports matplotlib
    from neural.report.paper_figures import registry

    kind_class = registry.get(kind)
    _check_arguments(kind_class, kind, step=step, head=head, layer=layer, metrics=metrics)
    if patch is not None and not kind_class.takes_patch:
        raise FigureError(f"`{kind}` has no patch: leave it out")
    if height is not None and not kind_class.takes_height:
        raise FigureError(f"the height of `{kind}` follows from its width: leave `height` out")
    request = FigureRequest(
        layer=layer,
        head=head,
        metrics=tuple(metrics),
        patch=patch,
        width=parse_length(width),
        height=None if height is None else parse_length(height),
    )
    if isinstance(run, Capture):
        if not kind_class.needs_attention:
            raise FigureError(f"a capture has no curves: `{kind}` needs a run")
        snapshot = load_capture_snapshot(run, example=example)
        return _draw(kind_class, kind, replace(request, snapshot=snapshot))
    with ExitStack() as stack:
        paths = resolve_run_paths(to_run_names(run), Path(runs))
        opened = [stack.enter_context(Run.open(path)) for path in paths]
        if not kind_class.needs_attention:
            return _draw(kind_class, kind, replace(request, runs=opened))
        if len(opened) > 1:
            raise FigureError(
                f"`{kind}` shows one run, not {len(opened)}; only `curves` shows several"
            )
        snapshot = load_run_snapshot(opened[0], step)
        return _draw(kind_class, kind, replace(request, snapshot=snapshot, runs=opened))


def _check_arguments(
    kind_class: type[FigureKind],
    kind: str,
    *,
    step: int | None,
    layer: int | None,
    head: int | None,
    metrics: Sequence[str],
) -> None:
    """FigureError for an argument that this kind of figure would ignore."""
    ignored = [
        name
        for name, is_given, is_used in (
            ("step", step is not None, kind_class.needs_attention),
            ("layer", layer is not None, kind_class.selects_head),
            ("head", head is not None, kind_class.selects_head),
            ("metric", bool(metrics), not kind_class.needs_attention),
        )
        if is_given and not is_used
    ]
    if ignored:
        raise FigureError(f"`{kind}` has no {' and no '.join(ignored)}: leave it out")


def _draw(kind_class: type[FigureKind], kind: str, request: FigureRequest) -> PaperFigure:
    """Draw and describe the figure."""
    import matplotlib

    from neural.report.paper_figure import STYLE, PaperFigure, freeze_layout

    snapshot = request.snapshot
    name = snapshot.name if snapshot else str(request.runs[0].settings.get("name") or kind)
    parts, details = [name, kind], ""
    if snapshot is not None and kind_class.selects_head:
        layer, head = snapshot.select_head(request.layer, request.head)
        request = replace(request, layer=layer, head=head)
        parts.append(f"L{layer}-h{head}")
        details = f" ({snapshot.describe_head(layer, head)})"
    if snapshot is not None and snapshot.step is not None:
        parts.append(str(snapshot.step))
        details += f" at step {snapshot.step}"
    if len(request.runs) > 1:
        details = f" and {len(request.runs) - 1} more"
    with matplotlib.rc_context(STYLE):
        drawn = kind_class().draw(request)
        freeze_layout(drawn)
    stem = "-".join(re.sub(r"[^\w.-]+", "-", part).strip("-.") for part in parts)
    return PaperFigure(drawn, kind=kind, stem=stem, description=f"{kind} of {name}{details}")
