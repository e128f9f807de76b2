"""Runs as one HTML file that works offline: settings, curves, attention, findings, samples.

A run is the folder of one training; a finding is a statement of the analyses in analysis/ with its
evidence. Maps are attention weights, measures are statistics of them by layer and head.

write_report([Path("runs/…")], Path("report.html"))
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from neural.analysis.check import Finding
from neural.analysis.findings import analyze_runs
from neural.analysis.run_loading import get_seed, group_experiments
from neural.analysis.run_summary import (
    describe_network,
    downsample_curve,
    get_changed_settings,
    list_checkpoints,
    summarize_run,
)
from neural.capture.map_encoding import encode_map
from neural.core.files import write_atomically
from neural.core.settings import flatten_settings
from neural.report.html_page import render_page
from neural.report.page_data import (
    MAX_MAP_BYTES,
    MeasureAxes,
    collect_recorded_data,
    compress_maps,
    encode_measure,
    pack_step_maps,
    read_head_count,
)
from neural.runs.errors import RunError, translate_errors
from neural.runs.run import Run

PAGE_VERSION = 2
"""Version of the format of a page's data (docs/report.md)."""
ENVIRONMENT_KEYS = ("python", "platform", "cpus", "threads", "packages", "command", "commit")
"""Shown on the page. Of these, only the command line may name folders of the user."""


def write_report(paths: Sequence[Path], out: Path, *, title: str | None = None) -> Path:
    """Write the page of some runs atomically; RunError where a run cannot be read."""
    html = render_report(paths, title=title)
    with translate_errors(f"{out} cannot be written"):
        write_atomically(out, html, durable=False)
    return out


def render_report(paths: Sequence[Path], *, title: str | None = None) -> str:
    """The page of some runs as HTML. The maps of all runs share one size limit."""
    if not paths:
        raise RunError("a report needs a run")
    with ExitStack() as stack:
        runs = [stack.enter_context(Run.open(path)) for path in paths]
        data = build_page_data(runs, title=title)
    return render_page(data, data["title"])


def build_page_data(
    runs: Sequence[Run], *, title: str | None = None, max_map_bytes: int = MAX_MAP_BYTES
) -> dict[str, Any]:
    """All data of a page; `max_map_bytes` is for the maps of all runs together."""
    run_ids = _unique_names(runs)
    run_entries, maps = [], {}
    for run, run_id in zip(runs, run_ids, strict=True):
        compressed = compress_maps(run, max_map_bytes // len(runs))
        run_data = build_run_data(run)
        run_entries.append(
            {
                **run_data,
                "id": run_id,
                "map_steps": sorted(compressed.steps),
                "notes": [*run_data["notes"], *compressed.notes],
                "downsampling": {
                    str(step): factor for step, factor in compressed.downsampling.items()
                },
            }
        )
        maps[run_id] = {
            str(step): base64.b64encode(packed).decode()
            for step, packed in compressed.steps.items()
        }
    title = title or (runs[0].name if len(runs) == 1 else f"{len(runs)} runs")
    return {
        "version": PAGE_VERSION,
        "title": title,
        "kind": "report",
        "runs": run_entries,
        "groups": build_group_data(runs, run_ids),
        "maps": maps,
    }


def build_run_data(run: Run, *, after_step: int = -1) -> dict[str, Any]:
    """A run as pages show it, without its maps; only rows of steps greater than `after_step`."""
    environment = run.environment
    return {
        **_summarize_run(run),
        **collect_recorded_data(run, after=after_step),
        "id": run.name,
        "seed": get_seed(run),
        "settings": flatten_settings(run.settings),
        "changed_settings": list(get_changed_settings(run)),
        "network": describe_network(run),
        "program": run.program,
        "environment": {
            key: environment[key] for key in ENVIRONMENT_KEYS if environment.get(key) is not None
        },
        "scalars": {
            name: curve
            for name in run.scalar_names()
            if (curve := _load_curve(run, name, after_step))["steps"]
        },
        "checkpoints": [
            {key: checkpoint[key] for key in ("step", "best", "bytes")}
            for checkpoint in list_checkpoints(run)
        ],
    }


def build_group_data(runs: Sequence[Run], run_ids: Sequence[str]) -> list[dict[str, Any]]:
    """Groups of runs that differ only by their seed, with the findings about each group.

    `run_ids` are the ids of the runs in the page.
    """
    page_ids = {id(run): run_id for run, run_id in zip(runs, run_ids, strict=True)}
    groups, experiments = [], group_experiments(runs)
    for data, runs_by_label in experiments.items():
        for label, group in runs_by_label.items():
            is_unique = len(experiments) == 1 or label == data
            groups.append(
                {
                    "label": label if is_unique else f"{data}: {label}",
                    "data": data,
                    "runs": [page_ids[id(run)] for run in group],
                    "findings": [finding_to_dict(finding) for finding in analyze_runs(group)],
                }
            )
    return groups


def finding_to_dict(finding: Finding) -> dict[str, Any]:
    """A finding as JSON data, with its estimate also as text."""
    return {**finding.to_dict(), "formatted": finding.formatted_estimate}


def build_snapshot_data(
    name: str,
    maps: Mapping[str, np.ndarray | bytes],
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    measures: Mapping[str, np.ndarray] | None = None,
    between: Mapping[str, np.ndarray] | None = None,
    causal: bool = False,
    units: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    facts: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Page data of one attention snapshot: a page of one run with a single step, 0.

    `maps` are [head, query, key] by layer, or encoded already. `measures` are [layer, head] or
    [layer], those `between` layers [layer, layer]. `facts` are shown as settings.
    """
    encoded_maps = {
        layer: weights if isinstance(weights, bytes) else encode_map(weights, causal=causal)
        for layer, weights in maps.items()
    }
    units, packed_step = units or {}, pack_step_maps(encoded_maps)
    measure_axes: list[tuple[str, np.ndarray, MeasureAxes]] = [
        *(
            (key, values, "layer" if values.ndim == 1 else "head")
            for key, values in (measures or {}).items()
        ),
        *((key, values, "pair") for key, values in (between or {}).items()),
    ]
    run = {
        "id": name,
        "name": name,
        "state": "snapshot",
        "step": 0,
        "steps": None,
        "started": None,
        "time": None,
        "message": "",
        "best": None,
        "seed": None,
        "settings": dict(facts or {}),
        "changed_settings": list(facts or {}),
        "network": {},
        "program": None,
        "environment": {},
        "notes": list(notes),
        "scalars": {},
        "measures": {
            key: encode_measure([0], values[None], unit=units.get(key, ""), axes=axes)
            for key, values, axes in measure_axes
        },
        "layers": list(encoded_maps),
        "heads": [read_head_count(encoded_map) for encoded_map in encoded_maps.values()],
        "map_steps": [0],
        "downsampling": {},
        "labels": {"queries": list(queries or keys or []), "keys": list(keys or queries or [])}
        if queries or keys
        else None,
        "events": [],
        "checkpoints": [],
        "samples": [],
        "real_text": {},
        "calibration": None,
        "sections": [],
    }
    return {
        "version": PAGE_VERSION,
        "title": name,
        "kind": "snapshot",
        "runs": [run],
        "groups": [{"label": name, "data": "", "runs": [name], "findings": []}],
        "maps": {name: {"0": base64.b64encode(packed_step).decode()}},
    }


def _summarize_run(run: Run) -> dict[str, Any]:
    """Summary without the path, which is private: pages are given to others."""
    return {key: value for key, value in summarize_run(run).items() if key != "path"}


def _load_curve(run: Run, name: str, after_step: int) -> dict[str, Any]:
    steps, values = run.scalars(name, after=after_step)
    return dict(zip(("steps", "values"), downsample_curve(steps, values), strict=True))


def _unique_names(runs: Sequence[Run]) -> list[str]:
    """Run names, with a number where two folders have the same name."""
    names: list[str] = []
    for run in runs:
        duplicates = sum(name == run.name or name.startswith(f"{run.name} (") for name in names)
        names.append(run.name if not duplicates else f"{run.name} ({duplicates + 1})")
    return names
