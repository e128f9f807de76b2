"""Result of `neural sweep`: trials, grid points, folds and the confirmation, as tables and data.

A grid point is one combination of the grid's values, trained with several seeds. A confirmation
trains the best point and the runner-up again, with seeds that were not used to select them.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from neural.core.escape import shorten
from neural.core.page_section import PageSection
from neural.core.platform_support import path_argument, quote_argument, relative_path
from neural.core.result import Result
from neural.core.table import Table, format_number
from neural.stats.comparisons import format_comparison
from neural.workflows.sweep import GridPoint, Sweep
from neural.workflows.sweep_trials import FOLD_KEY, format_override

MAX_NAME_WIDTH, MAX_VALUE_WIDTH = 46, 24
"""Characters of a trial's name and of a grid value."""


@dataclass(frozen=True, repr=False)
class SweepResult(Result):
    """Trials, grid points and the next commands."""

    sweep: Sweep

    @property
    def tables(self) -> dict[str, Table]:
        """`trials`, best first; `points`: mean of every grid point over its seeds."""
        trials = Table.from_records([asdict(row) for row in self.sweep.rank_rows()])
        records = [
            {
                **point.values,
                "mean": point.mean,
                "standard_error": point.standard_error,
                "last_mean": point.last_mean,
                "seeds": len(point.scores),
                "failed_seeds": len(point.failed_seeds),
            }
            for point in self.sweep.rank_points()
        ]
        return {"trials": trials, "points": Table.from_records(records)}

    def build_dict(self) -> dict[str, Any]:
        """Counts, trials, points with comparisons, selection bias, confirmation."""
        sweep = self.sweep
        metric, larger_is_better = sweep.selection_metric()
        points = sweep.rank_points()
        comparisons = [None, *map(_describe_comparison, sweep.compare_with_best(points))]
        return {
            "sweep": str(sweep.path),
            **sweep.count_states(),
            "score": metric,
            "larger_is_better": larger_is_better,
            "ranked": [asdict(row) for row in sweep.rank_rows()],
            "points": [
                {
                    "values": point.values,
                    "mean": point.mean,
                    "standard_error": point.standard_error,
                    "last_mean": point.last_mean,
                    "seeds": len(point.scores),
                    "failed_seeds": len(point.failed_seeds),
                    "against_best": comparison,
                    "over_folds": {
                        name: estimate.to_dict("seeds")
                        for name, estimate in sweep.summarize_folds(point).items()
                    },
                }
                for point, comparison in zip(points, comparisons, strict=True)
            ],
            "folds": sweep.fold_count,
            "selection": self._describe_selection(points),
            "confirmation": self._describe_confirmation(),
        }

    def _describe_selection(self, points: Sequence[GridPoint]) -> dict[str, Any] | None:
        selection = self.sweep.estimate_selection_bias(points)
        if selection is None:
            return None
        return {
            "selected_among": selection.setting_count,
            "seeds": selection.seed_count,
            "noise": selection.noise_std,
            "optimism_if_equal": selection.optimism,
        }

    def _describe_confirmation(self) -> dict[str, Any] | None:
        confirmation = self.sweep.summarize_confirmation()
        if confirmation is None:
            return None
        return {
            "score": "last validation",
            "seeds": confirmation.seeds,
            "points": [
                {
                    "values": point.values,
                    **estimate.to_dict("seeds"),
                    "failed_seeds": len(point.failed_seeds),
                }
                for point, estimate in zip(confirmation.points, confirmation.estimates, strict=True)
            ],
            "runner_up_against_selected": _describe_comparison(confirmation.comparison),
        }

    def to_sections(self, width: int) -> list[PageSection]:
        """Trials, points with their comparison, confirmation, folds, and what to do next."""
        sections = [
            build_trials_section(self.sweep),
            *self._build_points(width),
            *self._build_confirmation(),
            *self._build_folds(width),
        ]
        lines = self._suggest_next()
        return [*sections, PageSection(title="", text="\n".join(lines))] if lines else sections

    def _build_points(self, width: int) -> list[PageSection]:
        """A line per combination of grid values: its mean over seeds, compared with the best."""
        sweep = self.sweep
        points, (metric, larger_is_better) = sweep.rank_points(), sweep.selection_metric()
        if not points or not points[0].values:
            return []
        verdicts = [
            f"selected among {len(points)}" if len(points) > 1 else "best",
            *(
                format_comparison(comparison.difference, comparison.verdict)
                for comparison in sweep.compare_with_best(points)
            ),
        ]
        if points[0].failed_seeds:
            verdicts[0] += f", {_describe_failures(points[0])}"
        rows = []
        for point, verdict in zip(points, verdicts, strict=True):
            if point.failed_seeds and point is not points[0]:
                verdict = _describe_failures(point)
            has_error = not math.isnan(point.standard_error)
            rows.append(
                (
                    *_format_values(point),
                    format_number(point.mean),
                    f"± {format_number(point.standard_error)}" if has_error else "",
                    format_number(point.last_mean),
                    _count_seeds(point),
                    verdict if point.trial_count else "",
                )
            )
        repetitions = "seeds" if sweep.fold_count is None else "trials"
        head = (*_name_values(points[0]), metric, "", "last", repetitions, "against the best")
        sections = [PageSection(title="", table_head=head, table_rows=rows)]
        text = self._describe_optimism(points, larger_is_better)
        if text:
            wrapped = "\n".join(textwrap.wrap(text, width - 2))
            sections.append(PageSection(title="", text=wrapped))
        return sections

    def _describe_optimism(self, points: Sequence[GridPoint], larger_is_better: bool) -> str:
        """How much better than its true score the selected point looks: it was selected."""
        selection = self.sweep.estimate_selection_bias(points)
        if selection is None:
            return ""
        side = "above" if larger_is_better else "below"
        noun = "seed" if self.sweep.fold_count is None else "trial"
        text = (
            f"The first was selected among {selection.setting_count} by its mean over "
            f"{selection.seed_count} {noun}{'s' * (selection.seed_count != 1)}, each at its best "
            "validation: optimistic twice. "
        )
        if not math.isnan(selection.noise_std):
            text += (
                f"If all {selection.setting_count} were equal, the selected mean would be about "
                f"{format_number(selection.optimism)} {side} the true one "
                f"({selection.optimism_in_std:.2g} SD of a {noun}). "
            )
        pair_count = selection.setting_count * (selection.setting_count - 1) // 2
        return text + (
            '"last" is the last validation, which was not used for selection. '
            f"Verdicts are corrected for {pair_count:,} pair{'s' * (pair_count != 1)}, "
            "intervals are not."
        )

    def _build_confirmation(self) -> list[PageSection]:
        """Selected point and runner-up, with fresh seeds."""
        confirmation = self.sweep.summarize_confirmation()
        if confirmation is None:
            return []
        comparison = confirmation.comparison
        verdicts = "selected", format_comparison(comparison.difference, comparison.verdict)
        rows = []
        for point, estimate, verdict in zip(
            confirmation.points, confirmation.estimates, verdicts, strict=True
        ):
            if point.failed_seeds:
                verdict = f"{verdict}, {_describe_failures(point)}"
            rows.append((*_format_values(point), str(estimate), _count_seeds(point), verdict))
        metric, _ = self.sweep.selection_metric()
        names = _name_values(confirmation.points[0])
        count = len(confirmation.seeds)
        title = (
            f"confirmed with {count} seed{'s' * (count != 1)} that were not used for selection, "
            "at the last validation"
        )
        head = (*names, f"{metric} (95 %)", "seeds", "against the selected")
        return [PageSection(title=title, table_head=head, table_rows=rows)]

    def _build_folds(self, width: int) -> list[PageSection]:
        """A line per metric, or per grid point: means over folds with their intervals."""
        sweep = self.sweep
        points = [point for point in sweep.rank_points() if point.scores]
        if sweep.fold_count is None or not points:
            return []
        metric, _ = sweep.selection_metric()
        names = _name_values(points[0])
        metrics = [name for name in sweep.summarize_folds(points[0]) if name != "last"]
        head: Sequence[str] = [*names, *metrics, f"{metric}, last"]
        rows: list[tuple[str, ...]] = [
            (
                *_format_values(point),
                *(str(estimates[name]) if name in estimates else "" for name in (*metrics, "last")),
            )
            for point in points
            for estimates in [sweep.summarize_folds(point)]
        ]
        if not names:  # one point: a line per metric reads better
            rows = [(name, cell) for name, cell in zip(head, rows[0], strict=True)]
            head = ["", "mean (95 %)"]
        finished = {str(row.trial.point.get(FOLD_KEY)) for row in sweep.rows if row.is_finished}
        text = (
            f"Means over {len(finished)} of {sweep.fold_count} folds, each at its best validation, "
            'with 95 % intervals; "last" is the last validation. Folds share training examples, so '
            "they are not independent; the intervals are corrected for that (Nadeau and Bengio, "
            "2003)."
        )
        return [
            PageSection(title="", table_head=head, table_rows=rows),
            PageSection(title="", text="\n".join(textwrap.wrap(text, width - 2))),
        ]

    def _suggest_next(self) -> list[str]:
        """Commands to run next."""
        sweep, path = self.sweep, path_argument(self.sweep.path)
        if sweep.count_states()["state"] == "running":
            return []
        if sweep.unfinished:
            command = sweep.metadata.get("command", f"neural sweep --resume {path}")
            return [f"run the unfinished trials: {command}"]
        best_run = sweep.path / (sweep.rank_rows()[0].run or "")
        lines = [f"show one: neural show {path_argument(best_run)}"]
        points = sweep.rank_points()
        can_confirm = sweep.estimate_selection_bias(points) is not None
        if can_confirm and "grid" in sweep.settings:  # a study has no grid
            lines.append(f"train the selected setting: {_format_train_command(sweep, points[0])}")
        if can_confirm and not any(row.is_confirmation for row in sweep.rows):
            lines.append(
                "train the best and the runner-up with fresh seeds: "
                f"neural sweep --resume {path} --confirm 5"
            )
        return lines


def build_trials_section(sweep: Sweep) -> PageSection:
    """A line per trial, best first, and the reason of every failure."""
    metric, _ = sweep.selection_metric()
    rows = []
    for row in sweep.rank_rows():
        steps = f"{row.step:,}" + (f"/{row.steps:,}" if row.steps else "")
        name = shorten(row.trial.name, MAX_NAME_WIDTH)
        rows.append((name, row.state, steps, format_number(row.score)))
    failures = [
        f"failed: {row.trial.name}: {row.reason}" for row in sweep.rows if row.state == "failed"
    ]
    head = ("trial", "state", "step", metric)
    return PageSection(title="", text="\n".join(failures), table_head=head, table_rows=rows)


def _describe_comparison(comparison: Any) -> dict[str, Any]:
    difference, p, verdict = comparison
    return {**difference.to_dict("seeds"), "p": p, "verdict": verdict}


def _name_values(point: GridPoint) -> list[str]:
    return [key.rpartition(".")[2] for key in point.values]


def _format_values(point: GridPoint) -> list[str]:
    return [
        shorten(value if isinstance(value, str) else json.dumps(value), MAX_VALUE_WIDTH)
        for value in point.values.values()
    ]


def _count_seeds(point: GridPoint) -> str:
    """Seeds with a score, `5`, or `3 of 5` if the others failed."""
    total = f" of {point.trial_count}" if point.failed_seeds else ""
    return f"{len(point.scores)}{total}"


def _describe_failures(point: GridPoint) -> str:
    """Why a point with failed seeds is not selected."""
    noun = "seeds" if point.fold_count is None else "trials"
    return f"unstable: {len(point.failed_seeds)} of {point.trial_count} {noun} failed"


def _format_train_command(sweep: Sweep, point: GridPoint) -> str:
    """The command that trains the sweep's experiment with the values of a grid point."""
    values = [format_override(key, value) for key, value in point.values.items()]
    overrides = [*sweep.settings.get("set", ()), *values]
    options = " ".join(f"--set {quote_argument(override)}" for override in overrides)
    return f"neural train {relative_path(sweep.experiment)} {options}"
