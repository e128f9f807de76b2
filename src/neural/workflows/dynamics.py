"""Compare focus paradigms on the same data and budget: a sweep, then a table, plots and verdicts.

In the task `focus` an example is m segments; one of them, the foreground, decides its label. A
model learns focus weights, a distribution over the segments, and a classifier; a paradigm (soft,
hard, lvml, …) is a way to combine both into a loss. SAIF is the share of test examples whose focus
weight on the foreground and probability of the true class are both above a threshold. Claims
(findings/focus_claims.py) are statements about paradigms that the results support or refute.

runs/2026-11-16_05-00-00_compare/        a sweep like any other (sweep.py)
  dynamics/<run>.npz                     results of each model on the test examples
  dynamics/report.md, table.json, *.png  the report of `neural dynamics`
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from neural.core.errors import TaskError
from neural.core.files import write_atomically
from neural.core.page_section import PageSection
from neural.core.platform_support import path_argument, relative_path
from neural.core.result import Result, to_json_data
from neural.core.table import Table
from neural.findings.focus_checks import find_focus_warnings
from neural.findings.focus_claims import ClaimVerdict, count_tests, evaluate_claims
from neural.findings.focus_results import (
    RESULTS_FOLDER,
    TIME_SCORES,
    FocusGroups,
    FocusResult,
    count_failed_seeds,
    estimate_score,
    estimate_time_to_reach,
    group_results,
    label_paradigm,
    measure_speed,
    read_result,
)
from neural.nn.lazy_torch import torch
from neural.runs.checkpoint import EMA_PREFIX, select_weights
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.stats.comparisons import format_p_value
from neural.tasks.focus import metrics
from neural.tasks.focus.task import Focus
from neural.training.load_task import load_task, restore_task
from neural.workflows.sweep import Sweep

NUM_DRAWN_EXAMPLES = 3
"""Number of test examples that are saved for plots."""
COLUMNS = (
    "accuracy",
    "accuracy_argmax",
    "focus_accuracy",
    "saif",
    "focus_confidence",
    "confidence",
    "steps_to_target",
    "seconds_to_target",
    "classifier_calls",
    "step_ms",
)
"""Scores in the table, in the order of its columns (`build_table` has their headings)."""


def check_comparison(experiment: Path, grid: Mapping[str, Any]) -> None:
    """Raise TaskError if a sweep of the experiment over `grid` compares no focus paradigms."""
    if "paradigm" not in grid:
        raise TaskError(
            "the grid of a comparison needs paradigms: `grid: {paradigm: [soft, hard, lvml]}`"
        )
    task = load_task(experiment)
    if not isinstance(task, Focus):
        raise TaskError(
            f"{experiment.name} is a `{task.experiment.task}` experiment; paradigms need task `focus`"
        )


def collect_results(
    sweep: Sweep, on_progress: Callable[[str], None] = lambda text: None
) -> list[FocusResult]:
    """Evaluate every finished run on its test examples; results that were saved are only read.

    `on_progress` gets the name of each run that is evaluated.
    """
    folder = sweep.path / RESULTS_FOLDER
    folder.mkdir(exist_ok=True)
    results = []
    for row in sweep.rows:
        if row.run is None or not row.is_finished:
            continue
        path = folder / f"{row.run}.npz"
        if not path.exists():
            on_progress(row.run)
            evaluate_run(sweep.path / row.run).write(path)
        results.append(read_result(path))
    if not results:
        raise RunError(f"{sweep.path}: no trial has finished")
    failed = [row.run for row in sweep.rows if row.run is not None and row.state == "failed"]
    with ExitStack() as stack:
        runs = [stack.enter_context(Run.open(sweep.path / name)) for name in failed]
        return count_failed_seeds(results, runs)


def evaluate_run(path: Path) -> FocusResult:
    """Evaluate the newest checkpoint of a run on the test examples."""
    with Run.open(path) as run:
        task, checkpoint = restore_task(run), run.load_checkpoint()
        if not isinstance(task, Focus):
            raise TaskError(
                f"{run.name} is not a focus model: its task is `{task.experiment.task}`"
            )
        if checkpoint is None:
            raise RunError(f"{run.path} has no checkpoint")
        model: Any = task.build()
        # validations used the averaged (EMA) weights, if there are any
        model.load_state_dict(select_weights(checkpoint) | select_weights(checkpoint, EMA_PREFIX))
        model.eval()
        with torch.no_grad():
            predictions = task.predict_split(model, "test")
            examples = _collect_examples(task, model)
        return FocusResult(
            run=run.name,
            paradigm=label_paradigm(run.settings),
            segments=task.data.segments,
            seed=task.experiment.training.seed,
            classes=task.data.classes,
            scores={**metrics.compute_scores(predictions, task.threshold), **measure_speed(run)},
            heat_map=metrics.compute_heatmap(predictions),
            examples=examples,
        )


@dataclass(frozen=True, repr=False)
class ParadigmComparison(Result):
    """Result of `neural dynamics`: scores of the paradigms, and verdicts on claims about them."""

    sweep: Sweep
    groups: FocusGroups
    """Results of all seeds by (paradigm, number of segments)."""
    verdicts: list[ClaimVerdict]
    files: list[Path]
    """The report, its table as JSON, and plots."""

    @property
    def tables(self) -> dict[str, Table]:
        """`scores`: a row per paradigm and number of segments. `claims`: a row per verdict."""
        data = build_data(self.groups, self.verdicts)
        scores = [
            {
                "paradigm": row["paradigm"],
                "segments": row["segments"],
                **{name: score["value"] for name, score in row["scores"].items()},
            }
            for row in data["table"]
        ]
        claims = [
            {
                "claim": verdict.claim,
                "segments": verdict.segments,
                "supported": verdict.supported,
                "quantity": verdict.quantity,
                "value": verdict.number.value,
                "low": verdict.number.low,
                "high": verdict.number.high,
                "p": verdict.p,
                "evidence": verdict.evidence,
            }
            for verdict in self.verdicts
        ]
        return {"scores": Table.from_records(scores), "claims": Table.from_records(claims)}

    def build_dict(self) -> dict[str, Any]:
        """Scores, verdicts, warnings and files."""
        files = [str(file) for file in self.files]
        data = build_data(self.groups, self.verdicts)
        return {"folder": str(self.sweep.path), **data, "files": files}

    def to_sections(self, width: int) -> list[PageSection]:
        """The table, verdict by verdict, warnings, and where the report is."""
        head, *rows = build_table(self.groups)
        warnings = [str(warning) for warning in find_focus_warnings(self.groups)]
        failures = [f"failed: {row.trial.name}: {row.reason}" for row in self.sweep.unfinished]
        paragraphs = [describe_correction(self.verdicts), *warnings, *failures]
        texts = ["\n".join(textwrap.wrap(paragraph, width - 2)) for paragraph in paragraphs]
        texts.append(
            f"report: {relative_path(self.files[0])}\n"
            f"as a page, with mosaics over time: neural report {path_argument(self.sweep.path)}"
        )
        return [
            PageSection(title="", table_head=head, table_rows=rows),
            *self._build_verdicts(width),
            *(PageSection(title="", text=text) for text in texts),
        ]

    def _build_verdicts(self, width: int) -> list[PageSection]:
        """Claim by claim, a verdict for each number of segments m with its evidence."""
        sections = []
        for claim in dict.fromkeys(verdict.claim for verdict in self.verdicts):
            lines = []
            for verdict in self.verdicts:
                if verdict.claim == claim:
                    p = "" if math.isnan(verdict.p) else f"; p {format_p_value(verdict.p)}"
                    lead = f"m = {verdict.segments:<4} {verdict.supported:<9}  "
                    text = f"{verdict.evidence}{p}  ({verdict.quantity})"
                    wrapped = textwrap.wrap(text, max(20, width - 2 - len(lead)))
                    lines.append(lead + ("\n" + " " * len(lead)).join(wrapped))
            sections.append(PageSection(title=claim, text="\n".join(["", *lines])))
        return sections


def compare_paradigms(
    sweep: Sweep,
    on_progress: Callable[[str], None] = lambda text: None,
) -> ParadigmComparison:
    """Evaluate all runs and write the report."""
    groups = group_results(collect_results(sweep, on_progress))
    verdicts, folder = evaluate_claims(groups), sweep.path / RESULTS_FOLDER
    from neural.report.focus_plots import draw_focus_plots  # imports matplotlib

    files = draw_focus_plots(groups, sweep.path, folder)
    write_atomically(
        folder / "table.json",
        json.dumps(to_json_data(build_data(groups, verdicts)), indent=1) + "\n",
        durable=False,
    )
    write_atomically(
        folder / "report.md",
        "\n".join(format_report(groups, verdicts, files)) + "\n",
        durable=False,
    )
    files = [folder / "report.md", folder / "table.json", *files]
    return ParadigmComparison(sweep, groups, verdicts, files)


def build_table(groups: FocusGroups) -> list[tuple[str, ...]]:
    """A header row, then one row per paradigm and number of segments m."""
    header = (
        "paradigm",
        "m",
        "accuracy",
        "argmax",
        "focus",
        "SAIF",
        "95 % interval",
        "sure focus",
        "sure class",
        "steps to 90 %",
        "s to 90 %",
        "calls",
        "ms/step",
    )
    rows: list[tuple[str, ...]] = [header]
    for (name, m), group in sorted(
        groups.items(),
        key=lambda item: (
            item[0][1],
            item[1][0].failed_seeds > 0,
            -estimate_score(item[1], "saif").value,
        ),
    ):
        values = {key: estimate_score(group, key) for key in COLUMNS}
        cells = [f"{values[key].value:.3f}" for key in COLUMNS[:3]]  # accuracy … focus
        cells += [
            values["saif"].format_value(),
            values["saif"].format_interval(),
            *(f"{values[key].value:.2f}" for key in COLUMNS[4:6]),  # both confidences
        ]
        cells += [
            str(estimate_time_to_reach(group, key))
            for key in ("steps_to_target", "seconds_to_target")
        ]
        cells += [f"{values[key].value:.1f}" for key in COLUMNS[8:]]  # calls, milliseconds
        failed = group[0].failed_seeds
        label = f"{name} ({failed} of {len(group) + failed} failed)" if failed else name
        rows.append((label, str(m), *cells))
    return rows


def format_report(
    groups: FocusGroups, verdicts: Sequence[ClaimVerdict], files: Sequence[Path]
) -> list[str]:
    """The report in Markdown, as lines. `files` are the plots to show."""
    header, *rows = build_table(groups)
    seeds = sorted({result.seed for group in groups.values() for result in group})
    lines = [
        "# Paradigms of attention compared",
        "",
        f"Seeds {', '.join(map(str, seeds))}; test examples come from images outside the training "
        "set; intervals are 95 % over seeds. SAIF: share of examples with focus on the "
        "foreground and probability of the class both above the threshold. Calls: classifier calls "
        "per example and step, including those that decided when a paradigm that changes its loss "
        "during training does so. Times to 90 % are "
        "medians over seeds; (3 of 5): 3 of 5 seeds reached it, the others count as the latest.",
        "",
        f"| {' | '.join(header)} |",
        f"|{'---|' * len(header)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "## Claims",
        "",
        describe_correction(verdicts),
        "",
        "| claim | m | supported | p | number and what it rests on |",
        "|---|---|---|---|---|",
        *(
            f"| {verdict.claim} | {verdict.segments} | {verdict.supported} | {_format_p(verdict)} | "
            f"{verdict.quantity}: {verdict.evidence} |"
            for verdict in verdicts
        ),
        "",
    ]
    warnings = find_focus_warnings(groups)
    if warnings:
        lines += ["## Warnings", "", *(f"- {warning}" for warning in warnings), ""]
    lines += [line for file in files for line in (f"![{file.stem}]({file.name})", "")]
    return lines


def describe_correction(verdicts: Sequence[ClaimVerdict]) -> str:
    """A paragraph for the report: how verdicts are decided, and the correction for many tests."""
    return (
        f"A claim is supported or refuted where p is at most 0.05 after Holm's correction for the "
        f"{count_tests(verdicts)} tests of this report: where nothing is true, at most 5 % of such "
        "reports have a false verdict. Intervals are 95 % each (Student's t over seeds, corrected for "
        "skewness by Hall's transformation), without the correction for many tests, so an "
        "interval may lie on one side of a claim that is undecided."
    )


def _format_p(verdict: ClaimVerdict) -> str:
    """The p-value; "exact" if the settings alone determine the result, so that it needs no test."""
    return (
        "exact" if verdict.is_exact else "–" if math.isnan(verdict.p) else format_p_value(verdict.p)
    )


def build_data(groups: FocusGroups, verdicts: Sequence[ClaimVerdict]) -> dict[str, Any]:
    """The report as data: a row per paradigm, claims and warnings."""
    rows = []
    for (name, m), group in groups.items():
        scores = {
            key: estimate_score(group, key).to_dict("seeds")
            for key in group[0].scores
            if key not in TIME_SCORES
        }
        times = {key: estimate_time_to_reach(group, key) for key in TIME_SCORES}
        rows.append(
            {
                "paradigm": name,
                "segments": m,
                "seeds": [result.seed for result in group],
                "failed_seeds": group[0].failed_seeds,
                "scores": scores,
                "times": times,
            }
        )
    return {
        "table": rows,
        "claims": [
            {**asdict(verdict), "number": verdict.number.to_dict("seeds")} for verdict in verdicts
        ],
        "tests": count_tests(verdicts),
        "warnings": [asdict(warning) for warning in find_focus_warnings(groups)],
    }


def _collect_examples(task: Focus, model: Any) -> dict[str, Any]:
    """Inputs, focus weights, labels and predictions of the first test examples, for plots."""
    examples = task.data.splits["test"]
    batch = examples.take(slice(0, NUM_DRAWN_EXAMPLES))
    # a paradigm may be replaced by another one during training: this is the one at the end
    scored, paradigm = task.score_batch(model, batch), task.current_paradigm(model)
    arrays = {
        # `members` are the indices of each example's segments in the array of all segments
        "x": examples.load_units(batch["members"]),
        "focus": paradigm.focus_weights(scored.scores),
        "label": batch["y"],
        "predicted": paradigm.predict(scored).argmax(dim=-1),
    }
    if "foreground" in batch:
        arrays["foreground"] = batch["foreground"]
    return {name: tensor.numpy() for name, tensor in arrays.items()}
