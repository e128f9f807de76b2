"""Runs as one page that opens anywhere, offline: settings, curves, attention over time, findings, texts.

    write_report([Path("runs/…")], Path("report.html"))
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.files import write_atomically
from neural.digest import brief, changed, checkpoints, network, thinned
from neural.tracking.quantised import pack
from neural.tracking.run import Run
from neural.tracking.sink import flat
from neural.tracking.trouble import RunError, in_words
from neural.views.finding import Finding
from neural.views.findings import findings
from neural.views.reading import experiments, seed_of
from neural.views.report_data import Axes, heads_in, measure_data, packed_step, recorded
from neural.views.report_maps import ROOM, fitted
from neural.views.report_page import page

VERSION = 1
"""Of the data in a page."""
TOLD = ("python", "platform", "cpus", "threads", "packages", "command", "commit")
"""Of the environment; nothing that names a person's folders but the command line itself."""


def write_report(paths: Sequence[Path], out: Path, *, title: str | None = None) -> Path:
    """Write the page of some runs, whole or not at all; RunError where a run cannot be read."""
    text = report(paths, title=title)
    with in_words(f"{out} cannot be written"):
        write_atomically(out, text, durable=False)
    return out


def report(paths: Sequence[Path], *, title: str | None = None) -> str:
    """The page of some runs; of several, maps share the room that one would have."""
    if not paths:
        raise RunError("a report needs a run")
    with ExitStack() as opened:
        runs = [opened.enter_context(Run.open(path)) for path in paths]
        data = page_data(runs, title=title)
    return page(data, data["title"])


def page_data(runs: Sequence[Run], *, title: str | None = None, room: int = ROOM) -> dict[str, Any]:
    """All that a page draws; `room` is for all maps together, in bytes."""
    ids = _ids(runs)
    told, maps = [], {}
    for run, own in zip(runs, ids, strict=True):
        small = fitted(run, room // len(runs))
        one = run_data(run)
        told.append({
            **one, "id": own, "map_steps": sorted(small.steps), "remarks": [*one["remarks"], *small.remarks],
            "pooled": {str(step): factor for step, factor in small.pooled.items()},
        })  # fmt: skip
        maps[own] = {str(step): base64.b64encode(blob).decode() for step, blob in small.steps.items()}
    title = title or (runs[0].name if len(runs) == 1 else f"{len(runs)} runs")
    return {"version": VERSION, "title": title, "kind": "report", "runs": told, "groups": groups(runs, ids),
            "maps": maps}  # fmt: skip


def run_data(run: Run, *, after: int = -1) -> dict[str, Any]:
    """A run as the pages draw it, without its maps; rows only of steps past `after`."""
    about = run.environment
    return {
        **_told(run), **recorded(run, after=after), "id": run.name, "seed": seed_of(run),
        "settings": flat(run.settings), "changed": list(changed(run)), "network": network(run), "program": run.program,
        "environment": {key: about[key] for key in TOLD if about.get(key) is not None},
        "scalars": {name: curve for name in run.names() if (curve := _curve(run, name, after))["steps"]},
        "checkpoints": [{key: one[key] for key in ("step", "best", "bytes")} for one in checkpoints(run)],
    }  # fmt: skip


def groups(runs: Sequence[Run], ids: Sequence[str]) -> list[dict[str, Any]]:
    """Runs that differ by their seed alone, and what the analyses say about them together."""
    names = {id(run): own for run, own in zip(runs, ids, strict=True)}
    found, several = [], experiments(runs)
    for data, labels in several.items():
        for label, some in labels.items():
            title = label if len(several) == 1 or label == data else f"{data}: {label}"
            found.append({"label": title, "data": data, "runs": [names[id(run)] for run in some],
                          "findings": [finding_data(one) for one in findings(some)]})  # fmt: skip
    return found


def finding_data(one: Finding) -> dict[str, Any]:
    """A finding with its number as it is written."""
    return {**one.as_json(), "figure": one.figure}


def looked(
    name: str, maps: Mapping[str, np.ndarray | bytes], *, queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None, measures: Mapping[str, np.ndarray] | None = None,
    between: Mapping[str, np.ndarray] | None = None, causal: bool = False, units: Mapping[str, str] | None = None,
    remarks: Sequence[str] = (), facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """One look at a network as data of a page.

    Maps are [head, query, key] by layer, or packed already; measures [layer, head] or [layer], those `between` layers
    [layer, layer].
    """
    kept = {layer: one if isinstance(one, bytes) else pack(one, causal=causal) for layer, one in maps.items()}
    units, packed = units or {}, packed_step(kept)
    told: list[tuple[str, np.ndarray, Axes]] = [
        *((key, one, "layer" if one.ndim == 1 else "head") for key, one in (measures or {}).items()),
        *((key, one, "pair") for key, one in (between or {}).items()),
    ]
    run = {
        "id": name, "name": name, "state": "look", "step": 0, "steps": None, "started": None, "time": None,
        "message": "", "best": None, "seed": None, "settings": dict(facts or {}), "changed": list(facts or {}),
        "network": {}, "program": None, "environment": {}, "remarks": list(remarks), "scalars": {},
        "measures": {key: measure_data([0], values[None], unit=units.get(key, ""), axes=axes)
                     for key, values, axes in told},
        "layers": list(kept), "heads": [heads_in(one) for one in kept.values()], "map_steps": [0], "pooled": {},
        "labels": {"queries": list(queries or keys or []), "keys": list(keys or queries or [])}
                  if queries or keys else None,
        "events": [], "checkpoints": [], "samples": [], "real": {}, "calibration": None,
    }  # fmt: skip
    return {"version": VERSION, "title": name, "kind": "look", "runs": [run],
            "groups": [{"label": name, "data": "", "runs": [name], "findings": []}],
            "maps": {name: {"0": base64.b64encode(packed).decode()}}}  # fmt: skip


def _told(run: Run) -> dict[str, Any]:
    """A run in one line, without the folder it lies in: pages are given to others."""
    return {key: value for key, value in brief(run).items() if key != "path"}


def _curve(run: Run, name: str, after: int) -> dict[str, Any]:
    steps, values = run.scalars(name, after=after)
    return dict(zip(("steps", "values"), thinned(steps, values), strict=True))


def _ids(runs: Sequence[Run]) -> list[str]:
    """Names that tell the runs apart: two folders may have the same one."""
    found: list[str] = []
    for run in runs:
        same = sum(one == run.name or one.startswith(f"{run.name} (") for one in found)
        found.append(run.name if not same else f"{run.name} ({same + 1})")
    return found
