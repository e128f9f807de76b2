"""Comparison of runs: settings that differ, scores by seeds and by windows, attention.

A run is the folder of one training. A window is a chunk of held-out text that a language model is
scored on; its length is the context length. A snapshot is the attention captured at one step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from string import ascii_uppercase
from typing import Any

import numpy as np

from neural.core.escape import shorten
from neural.core.page_section import PageSection
from neural.core.result import Result
from neural.core.sparkline import draw_sparkline
from neural.core.table import Table, format_measure, format_number
from neural.findings.run_loading import get_monitored_metric
from neural.findings.run_summary import (
    downsample_curve,
    find_best_validation,
    get_effective_settings,
    summarize_attention,
    summarize_run,
)
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.stats.blocks import estimate_mean_by_blocks
from neural.stats.comparisons import compare_pairs, decide_verdict, format_comparison
from neural.stats.estimate import Estimate
from neural.tasks.language_model.task import WINDOW_LOSSES

MAX_CELL_WIDTH = 14
"""Characters of a setting in the table."""
MAX_SPARKLINE_WIDTH = 60
SEED_KEYS = ("name", "training.seed", "split_seed")
"""Settings that may differ between the runs of a group; `split_seed` seeds the data split."""
WINDOW_KEYS = ("fingerprint", "context", "validation_split", "validation_windows", "vocabulary")
"""Settings that decide which windows a language model is scored on; `fingerprint` is the text's."""


@dataclass(frozen=True, repr=False)
class RunComparison(Result):
    """Runs side by side, only where they differ; letters name the runs, A is the first."""

    data: dict[str, Any]
    """Lists have one item per run, except `groups`: one item per group of runs."""
    curves: dict[str, list[tuple[np.ndarray, np.ndarray]]]
    """Steps and values of the losses of every run."""

    @property
    def letters(self) -> list[str]:
        """Name of each run: A … Z, then A1 … Z1, A2 …"""
        letters = []
        for index in range(len(self.data["runs"])):
            cycle, position = divmod(index, len(ascii_uppercase))
            letters.append(ascii_uppercase[position] + (str(cycle) if cycle else ""))
        return letters

    def build_dict(self) -> dict[str, Any]:
        """Runs, settings that differ, groups, windows, programs, curves, attention."""
        return self.data

    @property
    def tables(self) -> dict[str, Table]:
        """`runs`: state and best scores. `settings` that differ and mean `attention`, a row each."""
        runs = []
        for letter, summary in zip(self.letters, self.data["runs"], strict=True):
            best = summary["best"] or {"scores": {}, "step": None}
            place = {"name": summary["name"], "state": summary["state"], "best_step": best["step"]}
            runs.append({"run": letter, **place, **best["scores"]})
        tables = {"runs": Table.from_records(runs)}
        for name in ("settings", "attention"):
            records = [
                {"name": key, **dict(zip(self.letters, values, strict=True))}
                for key, values in self.data[name].items()
            ]
            tables[name] = Table.from_records(records)
        return tables

    def to_sections(self, width: int) -> list[PageSection]:
        """Settings, programs, best scores, seeds, windows, curves and attention."""
        rows = [
            (letter, summary["name"], summary["state"])
            for letter, summary in zip(self.letters, self.data["runs"], strict=True)
        ]
        settings = {
            key: [shorten(_format_value(value), MAX_CELL_WIDTH) for value in values]
            for key, values in self.data["settings"].items()
        }
        none = PageSection(title="settings that differ", text="\nnone")
        return [
            PageSection(title="", table_head=("", "run", "state"), table_rows=rows),
            *(self._build_columns("settings that differ", settings, width) or [none]),
            *self._build_program_diffs(),
            *self._build_columns("best scores", self._format_scores(), width),
            *self._build_groups(),
            *self._build_windows(),
            *self._build_curves(width),
            *self._build_attention(width),
        ]

    def _build_columns(
        self, title: str, rows: dict[str, list[str]], width: int, columns: Sequence[str] = ()
    ) -> list[PageSection]:
        """A row per name, a column per run; several tables if they do not fit side by side."""
        letters = columns or self.letters
        margin = max(map(len, rows), default=0) + 4
        cell_width = max((len(cell) for cells in rows.values() for cell in cells), default=0)
        count = max(1, (width - margin) // (max(cell_width, 3) + 2))
        return [
            PageSection(
                title="" if start else title,
                table_head=("", *letters[start : start + count]),
                table_rows=[(name, *cells[start : start + count]) for name, cells in rows.items()],
            )
            for start in range(0, len(letters) if rows else 0, count)
        ]

    def _build_program_diffs(self) -> list[PageSection]:
        """The lines in which each program differs from the first one."""
        programs = self.data["programs"]
        if not programs:
            return []
        sections, first_lines = [], (programs[0] or "").splitlines()
        for letter, program in zip(self.letters[1:], programs[1:], strict=True):
            diff = unified_diff(first_lines, (program or "").splitlines(), n=0, lineterm="")
            lines = [line for line in diff if not line.startswith("@@")]
            if lines:
                title = f"the program of {letter} compared with that of {self.letters[0]}"
                # the first two are the names of the files, `---` and `+++`
                sections.append(PageSection(title=title, text="\n".join(["", *lines[2:]])))
        return sections

    def _format_scores(self) -> dict[str, list[str]]:
        summaries = self.data["runs"]
        bests = [summary["best"] for summary in summaries]
        names = dict.fromkeys(name for best in bests if best for name in best["scores"])
        return {
            **{
                name: [format_number(best["scores"].get(name)) if best else "–" for best in bests]
                for name in names
            },
            "at step": [f"{best['step']:,}" if best else "–" for best in bests],
            "steps trained": [f"{summary['step']:,}" for summary in summaries],
        }

    def _build_groups(self) -> list[PageSection]:
        """A line per group of runs that differ in their seeds alone."""
        groups = self.data["groups"]
        if not groups:
            return []
        rows = []
        for group in groups:
            members = " ".join(self.letters[index] for index in group["runs"])
            verdict = _format_verdict(group["against_first"]) if group["against_first"] else ""
            if group["failed"]:
                failures = f"{group['failed']} of {len(group['runs'])} failed"
                verdict = f"{verdict}, {failures}" if verdict else failures
            rows.append((members, format_number(group["mean"]), verdict))
        text = f"{groups[0]['score']}, against {rows[0][0]} by pairs of seeds"
        return [PageSection(title="over seeds", text=text, table_rows=rows)]

    def _build_windows(self) -> list[PageSection]:
        """A line per language model that was scored on the same windows of text as the first."""
        rows, compared = [], []
        for letter, comparison in zip(self.letters, self.data["windows"], strict=True):
            if comparison is None:
                continue
            compared.append(comparison)
            estimate = Estimate.from_dict(comparison, n=comparison["blocks"])
            # equal losses, or too few blocks of windows, have none
            interval = estimate.format_interval() if estimate.has_interval else "no interval"
            number = f"{estimate.format_value()} ({interval}) nats"
            rows.append((f"{letter} − {self.letters[0]}", number, comparison["verdict"]))
        if not rows:
            return []
        text = (
            f"loss on the same {compared[0]['windows']:,} windows of held-out text, in "
            f"{compared[0]['blocks']} blocks; this seed only"
        )
        return [PageSection(title="window by window", text=text, table_rows=rows)]

    def _build_curves(self, width: int) -> list[PageSection]:
        """Sparklines of the losses: a line per run, all on one scale."""
        sections = []
        for name, curves in self.curves.items():
            finite = np.concatenate([values[np.isfinite(values)] for _, values in curves])
            if not len(finite):
                continue
            last = int(max(steps.max(initial=0) for steps, _ in curves))
            # a quantile, because the loss of the first steps would flatten the rest of the curve
            low, high = float(finite.min()), float(np.quantile(finite, 0.99))
            columns = min(width - 26, MAX_SPARKLINE_WIDTH)
            rows = [
                (
                    letter,
                    draw_sparkline(steps, values, last=last, low=low, high=high, columns=columns),
                    f"ends at {format_number(float(values[-1]))}",
                )
                for letter, (steps, values) in zip(self.letters, curves, strict=True)
            ]
            text = f"{format_number(low)} to {format_number(high)}, steps 0 to {last:,}"
            sections.append(PageSection(title=name, text=text, table_rows=rows))
        return sections

    def _build_attention(self, width: int) -> list[PageSection]:
        """A row per measure; for two runs also their difference."""
        letters, measures = self.letters, self.data["attention"]
        is_pair = len(letters) == 2
        cells = {
            name.replace("_", " "): [
                *map(format_measure, means),
                *([_format_change(*means)] if is_pair else []),
            ]
            for name, means in measures.items()
        }
        columns = [*letters, *([f"{letters[1]} − {letters[0]}"] if is_pair else [])]
        title = "attention at the last snapshot, mean over heads"
        return self._build_columns(title, cells, width, columns)


def _format_verdict(comparison: dict[str, Any]) -> str:
    estimate = Estimate.from_dict(comparison, n=comparison["seeds"])
    return format_comparison(estimate, comparison["verdict"])


def _format_change(first: float | None, second: float | None) -> str:
    if first is None or second is None:
        return "–"
    return f"{'+' if second >= first else '−'}{format_measure(abs(second - first))}"


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else "–" if value is None else json.dumps(value)


def compare_runs(runs: Sequence[Run]) -> RunComparison:
    """Compare runs by settings, scores, curves and attention."""
    programs = [run.program for run in runs]
    names = ("train/loss", "valid/loss")
    curve_names = [name for name in names if all(name in run.scalar_names() for run in runs)]
    curves = {name: [run.scalars(name) for run in runs] for name in curve_names}
    data = {
        "runs": [summarize_run(run) for run in runs],
        "settings": find_differing_settings(runs),
        "groups": compare_by_seed(runs),
        "windows": compare_by_window(runs),
        "programs": programs if len(set(programs)) > 1 else None,
        "curves": {
            name: [
                dict(zip(("steps", "values"), downsample_curve(*curve), strict=True))
                for curve in members
            ]
            for name, members in curves.items()
        },
        "attention": compare_attention(runs),
    }
    return RunComparison(data, curves)


def find_differing_settings(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """Settings, including defaults, that differ between runs; without program and name."""
    settings = [get_effective_settings(run) for run in runs]
    keys = dict.fromkeys(
        key for run_settings in settings for key in run_settings if key not in ("name", "network")
    )
    values_by_key = {key: [run_settings.get(key) for run_settings in settings] for key in keys}
    return {
        key: values
        for key, values in values_by_key.items()
        if any(value != values[0] for value in values)
    }


def compare_by_seed(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Groups of runs that differ in their seeds alone, each against the first by pairs of seeds.

    A pair shares the seed of the training and that of the split, so both are scored on the same
    data. A run that failed is worse than any other; it is not part of the mean, but `failed` counts
    it. Empty if there is one group only, or if other runs have no score or different metrics.
    """
    is_failed = [run.status.state == "failed" for run in runs]
    bests = [
        None if failed else find_best_validation(run)
        for run, failed in zip(runs, is_failed, strict=True)
    ]
    names = {best.name for best in bests if best is not None}
    if len(names) != 1 or bests.count(None) > sum(is_failed):
        return []
    members: dict[str, list[int]] = {}
    scores: dict[str, dict[Hashable, float]] = {}
    for index, (run, best) in enumerate(zip(runs, bests, strict=True)):
        settings = get_effective_settings(run)
        seed = settings.get("training.seed")
        # Data of runs without a `split_seed` were split by the seed of the training.
        seeds = seed, settings.get("split_seed", seed)
        other_settings = {key: value for key, value in settings.items() if key not in SEED_KEYS}
        group = json.dumps(other_settings, sort_keys=True)
        members.setdefault(group, []).append(index)
        scores.setdefault(group, {})[seeds] = math.nan if best is None else best.score
    if len(members) < 2:
        return []
    _, larger_is_better = get_monitored_metric(str(runs[0].settings.get("task", "")))
    first, *others = members
    groups: list[dict[str, Any]] = [
        {
            "runs": members[group],
            "score": next(iter(names)),
            "mean": sum(finite) / len(finite) if finite else None,
            "failed": len(group_scores) - len(finite),
            "against_first": None,
        }
        for group, group_scores in scores.items()
        for finite in [[score for score in group_scores.values() if math.isfinite(score)]]
    ]
    comparisons = compare_pairs(
        [scores[group] for group in others], scores[first], larger_is_better=larger_is_better
    )
    for entry, (difference, p, verdict) in zip(groups[1:], comparisons, strict=True):
        entry["against_first"] = {
            **difference.to_dict("seeds"),
            "p": None if math.isnan(p) else p,
            "verdict": verdict,
        }
    return groups


def compare_by_window(runs: Sequence[Run]) -> list[dict[str, Any] | None]:
    """Language models against the first run on the same windows of held-out text.

    The value is the mean of a run's loss minus that of the first run, in nats, both at their best
    validation. The 95 % interval is over long blocks of windows, because the losses of
    neighbouring windows are correlated. None for the first run, and for runs that were scored on
    other windows.
    """
    losses = [_load_window_losses(run) for run in runs]
    comparisons: list[dict[str, Any] | None] = [None]
    for run_losses in losses[1:]:
        if run_losses is None or losses[0] is None or run_losses[0] != losses[0][0]:
            comparisons.append(None)
            continue
        mean = estimate_mean_by_blocks(run_losses[1] - losses[0][1])
        estimate = mean.estimate()
        comparisons.append(
            {
                **estimate.to_dict(),
                "seeds": 1,  # of each run: the interval is over blocks of text
                "blocks": mean.blocks,
                "windows": len(run_losses[1]),
                "verdict": decide_verdict(estimate, larger_is_better=False),
            }
        )
    return comparisons


def compare_attention(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """Mean over heads of every attention measure (entropy, …), at the last snapshot of each run.

    None for a run without the measure.
    """
    measures = [(summarize_attention(run) or {"measures": {}})["measures"] for run in runs]
    means: dict[str, list[float | None]] = {}
    for name in dict.fromkeys(name for run_measures in measures for name in run_measures):
        arrays = [
            np.array(run_measures[name]["last"], dtype=float)
            if name in run_measures
            else np.full(1, np.nan)
            for run_measures in measures
        ]
        means[name] = [
            None if np.isnan(values).all() else float(np.nanmean(values)) for values in arrays
        ]
    return means


def _load_window_losses(run: Run) -> tuple[tuple[Any, ...], np.ndarray] | None:
    """Identity of a language model's windows, and its loss in each, at the best validation.

    Runs with equal identities were scored on the same windows. None without such losses.
    """
    best = find_best_validation(run)
    try:
        steps, losses = run.measure(WINDOW_LOSSES)
    except RunError:
        return None
    if best is None or best.step not in steps:
        return None
    windows = (*(run.settings.get(key) for key in WINDOW_KEYS), losses.shape[1])
    return windows, losses[list(steps).index(best.step)].astype(float)
