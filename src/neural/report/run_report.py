"""Runs as one HTML file that works offline: settings, curves, attention, findings, samples.

A run is the folder of one training; its rows are logged scalars and measures by step. A finding is
a statement of the analyses in findings/ with its evidence. Maps are attention weights, measures are
statistics of them by layer and head. Samples are generated texts.

    write_run_page([Path("runs/…")], Path("report.html"))
"""

from __future__ import annotations

import base64
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

import numpy as np

from neural.capture.vector_encoding import MAX_VECTOR_BYTES, count_vector_bytes
from neural.core.files import write_atomically
from neural.core.registry import UnknownNameError
from neural.core.settings import flatten_settings
from neural.findings.findings import RUN_KINDS, FindingList, add_figures, analyze_runs
from neural.findings.record import Record
from neural.findings.run_loading import get_seed, group_experiments
from neural.findings.run_summary import (
    describe_network,
    downsample_curve,
    get_changed_settings,
    list_checkpoints,
    summarize_run,
)
from neural.report.group_scores import build_cross_validation, get_fold
from neural.report.head_role_data import NO_ROLE_DATA, collect_role_data
from neural.report.headline import ExperimentGroup, HeadlineWriter
from neural.report.headlines import registry as headlines
from neural.report.html_page import render_page
from neural.report.importance_data import load_importance_data
from neural.report.page_data import (
    MAX_MAP_BYTES,
    NO_VECTORS,
    collect_recorded_data,
    compress_maps,
    load_vectors,
    share_map_bytes,
)
from neural.report.segmentation_data import share_documents
from neural.runs.errors import RunError, translate_errors
from neural.runs.find import SWEEP_MARKER
from neural.runs.run import Run

PAGE_VERSION = 3
"""Version of the format of a page's data (docs/report.md)."""
MAX_NAMED_EXPERIMENTS = 3
"""Experiments named in the title of a page; further ones are only counted."""
MIN_PACKED_POINTS = 8
"""Curves with more points are packed (`pack_curve`)."""
ENVIRONMENT_KEYS = ("python", "platform", "cpus", "threads", "packages", "command", "commit")
"""Facts about the machine that the page shows; others are left out as private.

Absolute paths in them become names of files (`remove_folders`).
"""
NO_FOLDER_DATA: dict[str, Any] = {
    "fold": None,
    "program": None,
    "environment": {},
    "checkpoints": [],
}
"""Page data of captures in memory, which have no folder."""
ABSOLUTE_FOLDER = re.compile(r"""(?<![\w.:/~\\-])(?:~?/|[A-Za-z]:[\\/]+)(?:[^\s"'\\/]+[\\/]+)+""")
"""Folders at the beginning of a path such as `/home/me/`, `~/texts/` or `C:\\Users\\me\\`; no addresses."""


def write_run_page(paths: Sequence[Path], out: Path, *, title: str | None = None) -> Path:
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
    runs: Sequence[Record], *, title: str | None = None, max_map_bytes: int = MAX_MAP_BYTES
) -> dict[str, Any]:
    """All JSON data of a report; the maps of all runs together have about `max_map_bytes`."""
    run_ids = _unique_names(runs)
    run_entries, maps = build_run_entries(runs, run_ids, max_map_bytes)
    # headlines may read a run's folder; that of captures in memory does not
    groups = build_groups(cast("Sequence[Run]", runs), run_ids)
    experiments = build_experiments(groups)
    return {
        "version": PAGE_VERSION,
        "title": title or join_titles([experiment["title"] for experiment in experiments]),
        "kind": "report",
        "runs": run_entries,
        "groups": [group_to_dict(data, group) for data, group in groups],
        "experiments": experiments,
        "maps": maps,
    }


def build_run_entries(
    runs: Sequence[Record], run_ids: Sequence[str], max_map_bytes: int
) -> tuple[list[dict[str, Any]], dict[str, dict[str, str]]]:
    """The page's `runs`, and its `maps`: run → step → base64."""
    run_entries, maps, vector_bytes = [], dict[str, dict[str, str]](), 0
    shares = share_map_bytes(runs, max_map_bytes)
    for run, run_id, map_bytes in zip(runs, run_ids, shares, strict=True):
        compressed = compress_maps(run, map_bytes)
        run_data = build_run_data(run)
        vector_bytes += count_vector_bytes(run_data["vectors"] or {})
        if vector_bytes > MAX_VECTOR_BYTES or compressed.downsampling:
            run_data |= NO_VECTORS  # merged cells have no vector of their own
        run_entries.append(
            {
                **run_data,
                "id": run_id,
                "scalars": {name: pack_curve(curve) for name, curve in run_data["scalars"].items()},
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
    share_documents(run_entries)
    return run_entries, maps


def build_run_data(run: Record, *, after_step: int = -1) -> dict[str, Any]:
    """JSON data of one run without its maps; only rows of steps greater than `after_step`."""
    # updates of a page that is open leave out what takes long; the page keeps what it has
    has_ended = run.status.state != "running"
    recorded = collect_recorded_data(run, after=after_step)
    importance, errors = (
        load_importance_data(run) if after_step < 0 or has_ended else (None, list[str]())
    )
    return {
        **_summarize_run(run),
        **recorded,
        "importance": importance,
        "notes": [*recorded["notes"], *errors],
        **(collect_role_data(run) if after_step < 0 and has_ended else NO_ROLE_DATA),
        **(load_vectors(run) if after_step < 0 else NO_VECTORS),
        "id": run.name,
        "seed": get_seed(run),
        "settings": remove_folders(flatten_settings(run.settings)),
        "changed_settings": list(get_changed_settings(run)),
        "network": describe_network(run),
        "scalars": {
            name: curve
            for name in run.scalar_names()
            if (curve := _load_curve(run, name, after_step))["steps"]
        },
        **(_collect_folder_data(run) if isinstance(run, Run) else NO_FOLDER_DATA),
    }


def _collect_folder_data(run: Run) -> dict[str, Any]:
    """What a run folder has besides rows: program, machine, checkpoints."""
    environment = run.environment
    return {
        "fold": run.settings.get("fold") if get_fold(run) else None,
        "program": remove_folders(run.program),
        "environment": remove_folders(
            {key: environment[key] for key in ENVIRONMENT_KEYS if environment.get(key) is not None}
        ),
        "checkpoints": [
            {key: checkpoint[key] for key in ("step", "best", "bytes")}
            for checkpoint in list_checkpoints(run)
        ],
    }


def remove_folders(value: Any) -> Any:
    """JSON data with the names of files for their absolute paths: pages are made for sharing.

    Also for paths inside a longer text, such as the command of a sweep's trial or a program.
    """
    if isinstance(value, dict):
        return {key: remove_folders(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [remove_folders(item) for item in value]
    if not isinstance(value, str):
        return value
    is_path = "\n" not in value and (Path(value).is_absolute() or value.startswith("~"))
    return Path(value).name if is_path else ABSOLUTE_FOLDER.sub("", value)


def build_groups(runs: Sequence[Run], run_ids: Sequence[str]) -> list[tuple[str, ExperimentGroup]]:
    """(data set, group) for each group of runs that differ only by seed or fold, with findings.

    `run_ids` has the id of each run in the page.
    """
    # by identity, because two runs may have the same name
    page_ids = {id(run): run_id for run, run_id in zip(runs, run_ids, strict=True)}
    members = [
        (data, name_group(label, group), group)
        for data, runs_by_label in group_experiments(runs, join_folds=True).items()
        for label, group in runs_by_label.items()
    ]
    counts = Counter(label for _, label, _ in members)
    groups = []
    for data, label, group in members:
        group_ids = [page_ids[id(run)] for run in group]
        groups.append(
            (
                data,
                ExperimentGroup(
                    # groups of two data sets may have the same label
                    label=label if counts[label] == 1 else f"{data}: {label}",
                    runs=group,
                    run_ids=group_ids,
                    findings=analyze_group(group, group_ids),
                ),
            )
        )
    return groups


def analyze_group(runs: Sequence[Run], run_ids: Sequence[str]) -> FindingList:
    """Findings of a group with their figures; `run_ids` are the ids of the runs on the page.

    Claims generalise over seeds. Folds are no seeds, so claims are about the runs of one fold;
    warnings and notes are about all runs.
    """
    fold = get_fold(runs[0])
    same_fold = [index for index, run in enumerate(runs) if get_fold(run) == fold]
    if len(same_fold) == len(runs):
        return add_figures(analyze_runs(runs), runs, run_ids)
    fold_runs, fold_ids = zip(*((runs[index], run_ids[index]) for index in same_fold), strict=True)
    findings = [
        *add_figures(analyze_runs(fold_runs, ("claim",)), fold_runs, fold_ids),
        *add_figures(analyze_runs(runs, RUN_KINDS), runs, run_ids),
    ]
    return FindingList(sorted(findings, key=lambda finding: finding.code))


def name_group(label: str, runs: Sequence[Run]) -> str:
    """The label of a group, or the name of its sweep if nothing else distinguishes its runs."""
    return (label == "runs" and find_sweep_name(runs)) or label


def find_sweep_name(runs: Sequence[Run]) -> str | None:
    """Name, without its date, of the sweep that all of these runs are trials of."""
    folders = {run.path.resolve().parent for run in runs}
    if len(folders) > 1:
        return None
    (folder,) = folders
    return remove_date(folder.name) if (folder / SWEEP_MARKER).is_file() else None


def remove_date(name: str) -> str:
    """The name of a folder without the date and time that it begins with."""
    return re.sub(r"^\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_(?=.)", "", name)


def join_titles(titles: Sequence[str]) -> str:
    """Title of a page from those of its experiments: "a, b and c"; at most three are named."""
    unique = list(dict.fromkeys(titles))
    named, rest = unique[:MAX_NAMED_EXPERIMENTS], len(unique) - MAX_NAMED_EXPERIMENTS
    last = f"{rest} more" if rest > 0 else (named.pop() if len(named) > 1 else "")
    return ", ".join(named) + (f" and {last}" if last else "")


def group_to_dict(data: str, group: ExperimentGroup) -> dict[str, Any]:
    """JSON data of a group of runs."""
    return {
        "label": group.label,
        "data": data,
        "runs": list(group.run_ids),
        "score": group.score and group.score.to_dict(),
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
    scores = {group.label: group.score for group in groups if group.score is not None}
    runs = [run for group in groups for run in group.runs]
    return {
        "title": groups[0].label if len(groups) == 1 else find_sweep_name(runs) or data,
        "task": task,
        "data": data if any(run.settings.get("data") for run in runs) else "",
        "headline": headline.text,
        "details": headline.details,
        "figures": headline.figures,
        "link": headline.link._asdict() if headline.link else None,
        "cross_validation": build_cross_validation(scores),
        "groups": [group.label for group in groups],
        "runs": [run_id for group in groups for run_id in group.run_ids],
        **writer.build_data(groups),
    }


def findings_to_dicts(findings: FindingList) -> list[dict[str, Any]]:
    """Findings as JSON data; their numbers also as text with interval and unit.

    `advice_rank` is the place among the advice (findings/advice.py), from 1; None elsewhere.
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


def _summarize_run(run: Record) -> dict[str, Any]:
    """Summary of a run without its path, which is private: reports are given to others."""
    return {key: value for key, value in summarize_run(run).items() if key != "path"}


def _load_curve(run: Record, name: str, after_step: int) -> dict[str, Any]:
    steps, values = run.scalars(name, after=after_step)
    return dict(zip(("steps", "values"), downsample_curve(steps, values), strict=True))


def pack_curve(curve: Mapping[str, Any]) -> dict[str, Any]:
    """A curve in less JSON, without loss: evenly spaced steps as start, distance and count.

    Values that are 32-bit floats, as those of most models are, become base64 of such floats.
    """
    steps, values = curve["steps"], curve["values"]
    distances = set(np.diff(steps).tolist())
    packed: dict[str, Any] = {"steps": steps, "values": values}
    if len(steps) > MIN_PACKED_POINTS and len(distances) == 1:
        packed["steps"] = {"start": steps[0], "every": distances.pop(), "count": len(steps)}
    exact = np.array(values, dtype=np.float64)  # None becomes NaN
    with np.errstate(over="ignore"):
        rounded = exact.astype("<f4")
    if len(steps) > MIN_PACKED_POINTS and np.array_equal(rounded, exact, equal_nan=True):
        packed["values"] = base64.b64encode(rounded.tobytes()).decode()
    return packed


def _unique_names(runs: Sequence[Record]) -> list[str]:
    """Names of the runs; a second folder with the same name is "name (2)"."""
    names: list[str] = []
    for run in runs:
        duplicates = sum(name == run.name or name.startswith(f"{run.name} (") for name in names)
        names.append(run.name if not duplicates else f"{run.name} ({duplicates + 1})")
    return names
