"""Running a sweep with progress on the terminal, and its results as tables or JSON.

A sweep (neural.workflows.sweep) trains one run per trial and has a row (TrialRecord) for each. A
grid point is one combination of the grid's values, trained with several seeds. A confirmation
trains the best point and the runner-up again, with seeds that were not used to select them.
"""

from __future__ import annotations

import json
import math
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click

from neural.cli import _formatting
from neural.core.escape import escape_controls, shorten
from neural.core.platform_support import STOP_SIGNALS, quote_argument
from neural.training.runner import Runner
from neural.workflows.sweep import GridPoint, Sweep, TrialRecord, run_sweep
from neural.workflows.sweep_trials import FOLD_KEY, format_override

MAX_NAME_WIDTH = 46
MAX_VALUE_WIDTH = 24
MAX_REASON_WIDTH = 90
"""Characters of a trial's name, a grid value and the reason of a failure."""


@contextmanager
def sigterm_as_interrupt() -> Iterator[None]:
    """Treat every stop signal like Ctrl-C, so that all trials are stopped in order."""

    def raise_interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    previous_handlers = {
        number: signal.signal(number, raise_interrupt)
        for number in STOP_SIGNALS
        if number != signal.SIGINT
    }
    try:
        yield
    finally:
        for number, handler in previous_handlers.items():
            signal.signal(number, handler)


def run_with_progress(sweep: Sweep, runner: Runner, *, quiet: bool = False) -> int:
    """Run every unfinished trial; `quiet` prints no progress. Returns the exit code.

    0 all trained, 1 some failed, 130 stopped.
    """
    try:
        if quiet:
            run_sweep(sweep, runner)
        else:
            with _print_progress(sweep) as on_change:
                run_sweep(sweep, runner, on_change)
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        return 130
    return 1 if sweep.unfinished else 0


@contextmanager
def _print_progress(sweep: Sweep) -> Iterator[Callable[[TrialRecord], None]]:
    """Print a line per state change; on a terminal also a status line that is overwritten."""
    is_terminal = sys.stderr.isatty()
    clear_line = "\r\033[K" if is_terminal else ""
    printed_states: dict[str, tuple[str, int]] = {}  # trial name → (state, attempts)

    def on_change(row: TrialRecord) -> None:
        state = row.state, row.attempts
        if printed_states.get(row.trial.name) != state and row.state != "waiting":
            printed_states[row.trial.name] = state
            click.echo(clear_line + format_change(row), err=True)
        if is_terminal:
            click.echo(clear_line + format_progress(sweep), err=True, nl=False)

    try:
        yield on_change
    finally:
        if is_terminal:
            click.echo(clear_line, err=True, nl=False)


def format_sweep(sweep: Sweep, *, as_json: bool = False) -> str:
    """Trials, grid points and the next commands as text; or everything as JSON."""
    if as_json:
        return json.dumps(_sweep_to_dict(sweep), indent=2)
    lines = [*format_trials(sweep), *format_points(sweep), *format_folds(sweep)]
    return "\n".join([*lines, *_suggest_next(sweep)])


def format_trials(sweep: Sweep) -> list[str]:
    """A line per trial, best first; then the reason of every failure."""
    metric, _ = sweep.selection_metric()
    rows = [("trial", "state", "step", metric)]
    for row in sweep.rank_rows():
        steps = f"{row.step:,}" + (f"/{row.steps:,}" if row.steps else "")
        rows.append(
            (
                shorten(row.trial.name, MAX_NAME_WIDTH),
                _formatting.style_state(row.state),
                steps,
                _formatting.format_number(row.score),
            )
        )
    header, *body = _formatting.format_table(rows, right_aligned=(2, 3), indent="")
    failures = [
        f"{_formatting.style_state('failed')}: "
        + escape_controls(f"{row.trial.name}: {row.reason}")
        for row in sweep.rows
        if row.state == "failed"
    ]
    return [_formatting.style_heading(header), *body, *failures]


def format_points(sweep: Sweep) -> list[str]:
    """A line per combination of grid values: its mean over seeds, compared with the best one."""
    points, (metric, larger_is_better) = sweep.rank_points(), sweep.selection_metric()
    if not points or not points[0].values:
        return []
    names = [key.rpartition(".")[2] for key in points[0].values]
    repetitions = "seeds" if sweep.fold_count is None else "trials"
    rows = [(*names, metric, "", "last", repetitions, "against the best")]
    verdicts = [
        f"selected among {len(points)}" if len(points) > 1 else "best",
        *(
            _formatting.format_comparison(comparison.difference, comparison.verdict)
            for comparison in sweep.compare_with_best(points)
        ),
    ]
    if points[0].failed_seeds:
        verdicts[0] += f", {_describe_failures(points[0])}"
    for point, verdict in zip(points, verdicts, strict=True):
        if point.failed_seeds and point is not points[0]:
            verdict = _describe_failures(point)
        has_error = not math.isnan(point.standard_error)
        rows.append(
            (
                *_format_values(point),
                _formatting.format_number(point.mean),
                f"± {_formatting.format_number(point.standard_error)}" if has_error else "",
                _formatting.format_number(point.last_mean),
                _count_seeds(point),
                verdict if point.trial_count else "",
            )
        )
    score_column = len(names)
    header, *body = _formatting.format_table(
        rows, right_aligned=(score_column, score_column + 2, score_column + 3), indent=""
    )
    return [
        "",
        _formatting.style_heading(header),
        *body,
        *_format_optimism(sweep, points, larger_is_better),
        *_format_confirmation(sweep, names, metric),
    ]


def format_folds(sweep: Sweep) -> list[str]:
    """A line per metric, or per grid point: means over folds with their intervals."""
    if sweep.fold_count is None:
        return []
    points = [point for point in sweep.rank_points() if point.scores]
    if not points:
        return []
    metric, _ = sweep.selection_metric()
    names = [key.rpartition(".")[2] for key in points[0].values]
    metrics = [name for name in sweep.summarize_folds(points[0]) if name != "last"]
    head = [*names, *metrics, f"{metric}, last"]
    rows = [
        (
            *_format_values(point),
            *(str(estimates[name]) if name in estimates else "" for name in (*metrics, "last")),
        )
        for point in points
        for estimates in [sweep.summarize_folds(point)]
    ]
    if not names:  # one point: a line per metric reads better
        rows, head = list(zip(head, rows[0], strict=True)), ["", "mean (95 %)"]
    header, *body = _formatting.format_table([tuple(head), *rows], indent="")
    finished = len({str(row.trial.point.get(FOLD_KEY)) for row in sweep.rows if row.is_finished})
    text = (
        f"Means over {finished} of {sweep.fold_count} folds, each at its best validation, with 95 % "
        'intervals; "last" is the last validation. Folds share training examples, so they are not '
        "independent; the intervals are corrected for that (Nadeau and Bengio, 2003)."
    )
    return [
        "",
        _formatting.style_heading(header),
        *body,
        "",
        *textwrap.wrap(text, _formatting.terminal_width()),
    ]


def _format_optimism(
    sweep: Sweep, points: Sequence[GridPoint], larger_is_better: bool
) -> list[str]:
    """How much better than its true score the selected point looks, because it was selected."""
    selection = sweep.estimate_selection_bias(points)
    if selection is None:
        return []
    side = "above" if larger_is_better else "below"
    noun = "seed" if sweep.fold_count is None else "trial"
    text = (
        f"The first was selected among {selection.setting_count} by its mean over "
        f"{_formatting.format_count(selection.seed_count, noun)}, each at its best validation: "
        "optimistic twice. "
    )
    if not math.isnan(selection.noise_std):
        text += (
            f"If all {selection.setting_count} were equal, the selected mean would be about "
            f"{_formatting.format_number(selection.optimism)} {side} the true one "
            f"({selection.optimism_in_std:.2g} SD of a {noun}). "
        )
    pair_count = selection.setting_count * (selection.setting_count - 1) // 2
    text += (
        '"last" is the last validation, which was not used for selection. '
        f"Verdicts are corrected for {pair_count:,} pair{'s' * (pair_count != 1)}, "
        "intervals are not."
    )
    return ["", *textwrap.wrap(text, _formatting.terminal_width())]


def _format_confirmation(sweep: Sweep, names: Sequence[str], metric: str) -> list[str]:
    """The confirmation: selected point and runner-up. `names` are the headers of the grid keys."""
    confirmation = sweep.summarize_confirmation()
    if confirmation is None:
        return []
    rows = [(*names, f"{metric} (95 %)", "seeds", "against the selected")]
    comparison = confirmation.comparison
    verdicts = (
        "selected",
        _formatting.format_comparison(comparison.difference, comparison.verdict),
    )
    for point, estimate, verdict in zip(
        confirmation.points, confirmation.estimates, verdicts, strict=True
    ):
        if point.failed_seeds:
            verdict = f"{verdict}, {_describe_failures(point)}"
        rows.append((*_format_values(point), str(estimate), _count_seeds(point), verdict))
    table = _formatting.format_table(rows, right_aligned=(len(names) + 1,), indent="")
    title = (
        f"confirmed with {_formatting.format_count(confirmation.seeds, 'seed')} that were not "
        "used for selection, at the last validation"
    )
    return ["", _formatting.style_heading(title), *table]


def _count_seeds(point: GridPoint) -> str:
    """Seeds with a score, `5`, or `3 of 5` if the others failed."""
    total = f" of {point.trial_count}" if point.failed_seeds else ""
    return f"{len(point.scores)}{total}"


def _describe_failures(point: GridPoint) -> str:
    """Why a point with failed seeds is not selected."""
    noun = "seeds" if point.fold_count is None else "trials"
    return f"unstable: {len(point.failed_seeds)} of {point.trial_count} {noun} failed"


def _format_values(point: GridPoint) -> list[str]:
    return [shorten(_format_value(value), MAX_VALUE_WIDTH) for value in point.values.values()]


def format_change(row: TrialRecord) -> str:
    """A line about a trial whose state has changed."""
    state = _formatting.style_state(row.state)
    if row.state == "finished":
        return f"{state}  {row.trial.name}  {_formatting.format_number(row.score)}"
    if row.state == "failed":
        reason = shorten(row.reason, MAX_REASON_WIDTH)
        return f"{state}    {row.trial.name}  attempt {row.attempts}: {reason}"
    attempt = f"  attempt {row.attempts}" if row.attempts > 1 else ""
    return f"{state}   {row.trial.name}{attempt}"


def format_progress(sweep: Sweep) -> str:
    """The state of all trials on one line."""
    counts = sweep.count_states()
    texts = [f"{counts['finished']}/{counts['trials']} finished"]
    texts += [f"{counts[state]} {state}" for state in ("failed", "waiting") if counts[state]]
    running = [row for row in sweep.rows if row.state == "running"]
    steps = ", ".join(f"{row.step:,}" + (f"/{row.steps:,}" if row.steps else "") for row in running)
    texts += [f"{len(running)} running at step {steps}"] if running else []
    return shorten(", ".join(texts), _formatting.terminal_width() - 1)


def _suggest_next(sweep: Sweep) -> list[str]:
    """Commands to run next."""
    path = _formatting.path_argument(sweep.path)
    if sweep.count_states()["state"] == "running":
        return []
    if sweep.unfinished:
        command = sweep.metadata.get("command", f"neural sweep --resume {path}")
        return ["", f"run the unfinished trials: {command}"]
    best_run = sweep.path / (sweep.rank_rows()[0].run or "")
    lines = ["", f"show one: neural show {_formatting.path_argument(best_run)}"]
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


def _format_train_command(sweep: Sweep, point: GridPoint) -> str:
    """The command that trains the sweep's experiment with the values of a grid point."""
    values = [format_override(key, value) for key, value in point.values.items()]
    overrides = [*sweep.settings.get("set", ()), *values]
    options = " ".join(f"--set {quote_argument(override)}" for override in overrides)
    return f"neural train {_formatting.relative_path(sweep.experiment)} {options}"


def _sweep_to_dict(sweep: Sweep) -> dict[str, Any]:
    metric, larger_is_better = sweep.selection_metric()
    points = sweep.rank_points()
    comparisons = [
        None,
        *(
            {**difference.to_dict("seeds"), "p": _nan_to_none(p), "verdict": verdict}
            for difference, p, verdict in sweep.compare_with_best(points)
        ),
    ]
    return {
        "sweep": str(sweep.path),
        **sweep.count_states(),
        "score": metric,
        "larger_is_better": larger_is_better,
        "ranked": [asdict(row) for row in sweep.rank_rows()],
        "points": [
            {
                "values": point.values,
                "mean": _nan_to_none(point.mean),
                "standard_error": _nan_to_none(point.standard_error),
                "last_mean": _nan_to_none(point.last_mean),
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
        "selection": _selection_to_dict(sweep, points),
        "confirmation": _confirmation_to_dict(sweep),
    }


def _selection_to_dict(sweep: Sweep, points: Sequence[GridPoint]) -> dict[str, Any] | None:
    selection = sweep.estimate_selection_bias(points)
    if selection is None:
        return None
    return {
        "selected_among": selection.setting_count,
        "seeds": selection.seed_count,
        "noise": _nan_to_none(selection.noise_std),
        "optimism_if_equal": _nan_to_none(selection.optimism),
    }


def _confirmation_to_dict(sweep: Sweep) -> dict[str, Any] | None:
    confirmation = sweep.summarize_confirmation()
    if confirmation is None:
        return None
    difference, p, verdict = confirmation.comparison
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
        "runner_up_against_selected": {
            **difference.to_dict("seeds"),
            "p": _nan_to_none(p),
            "verdict": verdict,
        },
    }


def _nan_to_none(value: float) -> float | None:
    return None if math.isnan(value) else value


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
