"""Runs as one HTML file that works offline: settings, curves, attention, findings, samples.

A run is the folder of one training; its rows are logged scalars and measures by step. A finding is
a statement of the analyses in analysis/ with its evidence. Maps are attention weights, measures are
statistics of them by layer and head. Samples are generated texts.

    write_report([Path("runs/…")], Path("report.html"))
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from neural.analysis.findings import FindingList, add_figures, analyze_runs
from neural.analysis.run_loading import get_seed, group_experiments
from neural.analysis.run_summary import (
    describe_network,
    downsample_curve,
    get_changed_settings,
    list_checkpoints,
    summarize_run,
)
from neural.capture.labels import AxisLabels
from neural.capture.map_encoding import encode_map
from neural.core.files import write_atomically
from neural.core.registry import UnknownNameError
from neural.core.settings import flatten_settings
from neural.report.headline import ExperimentGroup, HeadlineWriter
from neural.report.headlines import registry as headlines
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

PAGE_VERSION = 3
"""Version of the format of a page's data (docs/report.md)."""
ENVIRONMENT_KEYS = ("python", "platform", "cpus", "threads", "packages", "command", "commit")
"""Facts about the machine that the page shows; others are left out as private.

The command line may still contain names of the user's folders.
"""


def write_report(paths: Sequence[Path], out: Path, *, title: str | None = None) -> Path:
    """Write the report of some runs atomically; RunError if a run cannot be read."""
    html = render_report(paths, title=title)
    with translate_errors(f"{out} cannot be written"):
        write_atomically(out, html, durable=False)
    return out


def render_report(paths: Sequence[Path], *, title: str | None = None) -> str:
    """The report of some runs as HTML."""
    if not paths:
        raise RunError("a report needs a run")
    with ExitStack() as stack:
        runs = [stack.enter_context(Run.open(path)) for path in paths]
        data = build_page_data(runs, title=title)
    return render_page(data, data["title"])


def build_page_data(
    runs: Sequence[Run], *, title: str | None = None, max_map_bytes: int = MAX_MAP_BYTES
) -> dict[str, Any]:
    """All JSON data of a report; the maps of all runs together have about `max_map_bytes`."""
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
    groups = build_groups(runs, run_ids)
    title = title or (runs[0].name if len(runs) == 1 else f"{len(runs)} runs")
    return {
        "version": PAGE_VERSION,
        "title": title,
        "kind": "report",
        "runs": run_entries,
        "groups": [group_to_dict(data, group) for data, group in groups],
        "experiments": build_experiments(groups),
        "maps": maps,
    }


def build_run_data(run: Run, *, after_step: int = -1) -> dict[str, Any]:
    """JSON data of one run without its maps; only rows of steps greater than `after_step`."""
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


def build_groups(runs: Sequence[Run], run_ids: Sequence[str]) -> list[tuple[str, ExperimentGroup]]:
    """(data set, group) for each group of runs that differ only by their seed, with its findings.

    `run_ids` has the id of each run in the page.
    """
    # by identity, because two runs may have the same name
    page_ids = {id(run): run_id for run, run_id in zip(runs, run_ids, strict=True)}
    groups, experiments = [], group_experiments(runs)
    for data, runs_by_label in experiments.items():
        for label, group in runs_by_label.items():
            # with several data sets, labels may repeat, so the data set is part of them
            is_unique = len(experiments) == 1 or label == data
            groups.append(
                (
                    data,
                    ExperimentGroup(
                        label=label if is_unique else f"{data}: {label}",
                        runs=group,
                        run_ids=[page_ids[id(run)] for run in group],
                        findings=add_figures(analyze_runs(group), group),
                    ),
                )
            )
    return groups


def group_to_dict(data: str, group: ExperimentGroup) -> dict[str, Any]:
    """JSON data of a group of runs."""
    return {
        "label": group.label,
        "data": data,
        "runs": list(group.run_ids),
        "findings": findings_to_dicts(group.findings),
    }


def build_experiments(groups: Sequence[tuple[str, ExperimentGroup]]) -> list[dict[str, Any]]:
    """Experiments with their headlines: all groups of one task on one data set."""
    experiments: dict[tuple[str, str], list[ExperimentGroup]] = {}
    for data, group in groups:
        task = str(group.runs[0].settings.get("task", ""))
        experiments.setdefault((task, data), []).append(group)
    return [_build_experiment(task, data, members) for (task, data), members in experiments.items()]


def _build_experiment(task: str, data: str, groups: Sequence[ExperimentGroup]) -> dict[str, Any]:
    try:
        writer = headlines.get(task)()
    except UnknownNameError:  # a task without a writer of its own
        writer = HeadlineWriter()
    headline = writer.write(groups)
    return {
        "title": groups[0].label if len(groups) == 1 else data,
        "task": task,
        "data": data,
        "headline": headline.text,
        "details": headline.details,
        "figures": headline.figures,
        "link": headline.link._asdict() if headline.link else None,
        "groups": [group.label for group in groups],
        "runs": [run_id for group in groups for run_id in group.run_ids],
    }


def findings_to_dicts(findings: FindingList) -> list[dict[str, Any]]:
    """Findings as JSON data; their numbers also as text with interval and unit.

    `advice_rank` is the place among the advice (analysis/advice.py), from 1; None elsewhere.
    """
    ranks = {advice.code: rank for rank, advice in enumerate(findings.advice, 1)}
    return [
        {
            **finding.to_dict(),
            "formatted": finding.formatted_estimate,
            "advice_rank": ranks.get(finding.code),
        }
        for finding in findings
    ]


def build_attention_page_data(
    name: str,
    maps: Mapping[str, np.ndarray | bytes],
    *,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    measures: Mapping[str, np.ndarray] | None = None,
    between: Mapping[str, np.ndarray] | None = None,
    causal: bool = False,
    units: Mapping[str, str] | None = None,
    descriptions: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    settings: Mapping[str, Any] | None = None,
    layer_labels: Mapping[str, AxisLabels] | None = None,
    roles: Sequence[Sequence[str]] | None = None,
    downsampling: int = 1,
) -> dict[str, Any]:
    """Page data of a single capture of attention, without a run: as one run with one step, 0.

    `maps` are [head, query, key] by layer, or already encoded as bytes. `queries` and `keys` are
    the texts of the tokens; `layer_labels` replaces them by texts for each layer. `measures` are
    [layer, head] or [layer]; measures `between` layers are [layer, layer]. `units` and
    `descriptions` are those of the measures. `roles` are the names of the heads' roles by layer
    and head. `downsampling`: how many positions were merged into a cell of the maps. The page shows
    `settings` as those of a run.
    """
    encoded_maps = {
        layer: weights if isinstance(weights, bytes) else encode_map(weights, causal=causal)
        for layer, weights in maps.items()
    }
    units, descriptions = units or {}, descriptions or {}
    packed_step = pack_step_maps(encoded_maps)
    if layer_labels and not (queries or keys):
        # the page needs labels of the whole snapshot, too: those of the first layer that has any
        queries, keys = next(filter(any, layer_labels.values()), (None, None))
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
        "settings": dict(settings or {}),
        "changed_settings": list(settings or {}),
        "network": {},
        "program": None,
        "environment": {},
        "notes": list(notes),
        "scalars": {},
        "measures": {
            key: encode_measure(
                [0],
                values[None],
                unit=units.get(key, ""),
                description=descriptions.get(key, ""),
                axes=axes,
            )
            for key, values, axes in measure_axes
        },
        "layers": list(encoded_maps),
        "heads": [read_head_count(encoded_map) for encoded_map in encoded_maps.values()],
        "map_steps": [0],
        "downsampling": {"0": downsampling} if downsampling > 1 else {},
        "layer_labels": {
            layer: {"queries": labels.queries or [], "keys": labels.keys or []}
            for layer, labels in layer_labels.items()
        }
        if layer_labels
        else None,
        "roles": [list(names) for names in roles] if roles is not None else None,
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
        "experiments": [],
        "maps": {name: {"0": base64.b64encode(packed_step).decode()}},
    }


def _summarize_run(run: Run) -> dict[str, Any]:
    """Summary of a run without its path, which is private: reports are given to others."""
    return {key: value for key, value in summarize_run(run).items() if key != "path"}


def _load_curve(run: Run, name: str, after_step: int) -> dict[str, Any]:
    steps, values = run.scalars(name, after=after_step)
    return dict(zip(("steps", "values"), downsample_curve(steps, values), strict=True))


def _unique_names(runs: Sequence[Run]) -> list[str]:
    """Names of the runs; a second folder with the same name is "name (2)"."""
    names: list[str] = []
    for run in runs:
        duplicates = sum(name == run.name or name.startswith(f"{run.name} (") for name in names)
        names.append(run.name if not duplicates else f"{run.name} ({duplicates + 1})")
    return names
