"""Comparison of runs: settings that differ, scores by seeds and by windows, attention.

A run is the folder of one training. A window is a chunk of held-out text that a language model is
scored on; its length is the context length. A snapshot is the attention captured at one step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

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
from neural.stats.comparisons import compare_pairs, decide_verdict
from neural.tasks.language_model.task import WINDOW_LOSSES

SEED_KEYS = ("name", "training.seed", "split_seed")
"""Settings that may differ between the runs of a group; `split_seed` seeds the data split."""
WINDOW_KEYS = ("fingerprint", "context", "validation_split", "validation_windows", "vocabulary")
"""Settings that decide which windows a language model is scored on; `fingerprint` is the text's."""


def compare_runs(runs: Sequence[Run]) -> dict[str, Any]:
    """All comparisons as JSON-compatible data.

    Lists have one item per run, except `groups`: one item per group of runs.
    """
    programs = [run.program for run in runs]
    curve_names = [
        name
        for name in ("train/loss", "valid/loss")
        if all(name in run.scalar_names() for run in runs)
    ]
    return {
        "runs": [summarize_run(run) for run in runs],
        "settings": find_differing_settings(runs),
        "groups": compare_by_seed(runs),
        "windows": compare_by_window(runs),
        "programs": programs if len(set(programs)) > 1 else None,
        "curves": {
            name: [
                dict(zip(("steps", "values"), downsample_curve(*run.scalars(name)), strict=True))
                for run in runs
            ]
            for name in curve_names
        },
        "attention": compare_attention(runs),
    }


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
