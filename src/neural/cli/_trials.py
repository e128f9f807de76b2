"""A sweep as text: how the trials went, the best one first, and what the grid's values did."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from neural.cli import _text
from neural.core.visible import visible
from neural.sweep import Point, Row, Sweep


def said(sweep: Sweep, *, as_json: bool = False) -> str:
    """The whole of it, or as JSON."""
    if as_json:
        return json.dumps(_data(sweep), indent=2)
    return "\n".join([*trials(sweep), *points(sweep), *_next(sweep)])


def trials(sweep: Sweep) -> list[str]:
    """A line per trial; why, where one failed."""
    score, _ = sweep.judged_by()
    rows = [("trial", "state", "step", score)]
    for row in sweep.ranked():
        steps = f"{row.step:,}" + (f"/{row.steps:,}" if row.steps else "")
        rows.append((_text.cut(row.trial.name, 46), _text.state(row.state), steps, _text.number(row.score)))
    head, *body = _text.table(rows, right=(2, 3), indent="")
    said = (visible(f"{row.trial.name}: {row.reason}") for row in sweep.rows if row.state == "failed")
    return [_text.heading(head), *body, *(f"{_text.state('failed')}: {one}" for one in said)]


def points(sweep: Sweep) -> list[str]:
    """The mean over seeds of every combination, where there are several; each against the best."""
    ordered, (score, larger) = sweep.points(), sweep.judged_by()
    if not ordered or not ordered[0].values:
        return []
    names = [key.rpartition(".")[2] for key in ordered[0].values]
    rows = [(*names, score, "", "last", "seeds", "against the best")]
    selected = f"selected among {len(ordered)}" if len(ordered) > 1 else "best"
    compared = sweep.against_best(ordered)
    verdicts = [selected, *(_text.difference(each.difference, each.verdict) for each in compared)]
    for point, verdict in zip(ordered, verdicts, strict=True):
        error = "" if point.error != point.error else f"± {_text.number(point.error)}"
        mean, count = _text.number(point.mean), str(len(point.scores))
        last = _text.number(point.last_mean)
        rows.append((*_cells(point), mean, error, last, count, verdict if point.scores else ""))
    keys = len(names)
    head, *body = _text.table(rows, right=(keys, keys + 2, keys + 3), indent="")
    return ["", _text.heading(head), *body, *_optimism(sweep, ordered, larger), *_confirmed(sweep, names, score)]


def _optimism(sweep: Sweep, ordered: Sequence[Point], larger: bool) -> list[str]:
    """What the score of the selected point is worth."""
    selection = sweep.selection(ordered)
    if selection is None:
        return []
    side = "above" if larger else "below"
    text = (
        f"The first was selected among {selection.settings} by its mean over {many_seeds(selection.seeds)}, "
        "each at its best validation: optimistic twice. "
    )
    if selection.noise == selection.noise:
        text += (
            f"Were all {selection.settings} equal, the selected mean would lie about "
            f"{_text.number(selection.optimism)} {side} the truth ({selection.optimism_in_sd:.2g} SD of a seed). "
        )
    pairs = selection.settings * (selection.settings - 1) // 2
    text += (
        '"last" is the last validation, which nothing was selected by. '
        f"Verdicts are corrected for {pairs:,} pair{'s' * (pairs != 1)}, intervals are not."
    )
    return ["", *textwrap.wrap(text, _text.width())]


def _confirmed(sweep: Sweep, names: Sequence[str], score: str) -> list[str]:
    """The selected point and the runner-up with fresh seeds."""
    confirmation = sweep.confirmation()
    if confirmation is None:
        return []
    rows = [(*names, f"{score} (95 %)", "seeds", "against the selected")]
    against = confirmation.comparison
    verdicts = ("selected", _text.difference(against.difference, against.verdict))
    for point, estimate, verdict in zip(confirmation.points, confirmation.estimates, verdicts, strict=True):
        rows.append((*_cells(point), str(estimate), str(estimate.seeds), verdict))
    head, *body = _text.table(rows, right=(len(names) + 1,), indent="")
    about = f"confirmed with {many_seeds(len(confirmation.seeds))} that selected nothing, at the last validation"
    return ["", _text.heading(about), head, *body]


def many_seeds(count: int) -> str:
    """`1 seed`, `2 seeds`."""
    return f"{count} seed" + ("" if count == 1 else "s")


def _cells(point: Point) -> list[str]:
    return [_text.cut(_value(value), 24) for value in point.values.values()]


def ended(row: Row) -> str:
    """A line about a trial that has just changed its state."""
    if row.state == "finished":
        return f"{_text.state('finished')}  {row.trial.name}  {_text.number(row.score)}"
    if row.state == "failed":
        return f"{_text.state('failed')}    {row.trial.name}  attempt {row.attempts}: {_text.cut(row.reason, 90)}"
    more = f"  attempt {row.attempts}" if row.attempts > 1 else ""
    return f"{_text.state(row.state)}   {row.trial.name}{more}"


def progress(sweep: Sweep) -> str:
    """All of it in one line."""
    count = sweep.counts()
    parts = [f"{count['finished']}/{count['trials']} finished"]
    parts += [f"{count[name]} {name}" for name in ("failed", "waiting") if count[name]]
    running = [row for row in sweep.rows if row.state == "running"]
    steps = ", ".join(f"{row.step:,}" + (f"/{row.steps:,}" if row.steps else "") for row in running)
    parts += [f"{len(running)} running at step {steps}"] if running else []
    return _text.cut(", ".join(parts), _text.width() - 1)


def _next(sweep: Sweep) -> list[str]:
    near = _text.near(sweep.path)
    if sweep.counts()["state"] == "running":
        return []
    if sweep.unfinished:
        return ["", f"run what is not finished: {sweep.about.get('command', f'neural sweep --resume {near}')}"]
    lines = ["", f"look at one: neural show {near / (sweep.ranked()[0].run or '')}"]
    if sweep.selection(sweep.points()) is not None and not any(row.confirms for row in sweep.rows):
        lines.append(f"the best and the runner-up with fresh seeds: neural sweep --resume {near} --confirm 5")
    return lines


def _data(sweep: Sweep) -> dict[str, Any]:
    score, larger = sweep.judged_by()
    points = sweep.points()
    others = [
        {**difference.as_json(), "p": _number(p), "verdict": verdict}
        for difference, p, verdict in sweep.against_best(points)
    ]
    compared = [None, *others]
    return {
        "sweep": str(sweep.path), **sweep.counts(), "score": score, "larger_is_better": larger,
        "ranked": [asdict(row) for row in sweep.ranked()],
        "points": [
            {
                "values": point.values,
                "mean": _number(point.mean),
                "standard_error": _number(point.error),
                "last_mean": _number(point.last_mean),
                "seeds": len(point.scores),
                "against_best": difference,
            }
            for point, difference in zip(points, compared, strict=True)
        ],
        "selection": _selection(sweep, points), "confirmation": _confirmation(sweep),
    }  # fmt: skip


def _selection(sweep: Sweep, points: Sequence[Point]) -> dict[str, Any] | None:
    selection = sweep.selection(points)
    if selection is None:
        return None
    return {
        "selected_among": selection.settings,
        "seeds": selection.seeds,
        "noise": _number(selection.noise),
        "optimism_if_equal": _number(selection.optimism),
    }


def _confirmation(sweep: Sweep) -> dict[str, Any] | None:
    confirmation = sweep.confirmation()
    if confirmation is None:
        return None
    difference, p, verdict = confirmation.comparison
    return {
        "score": "last validation",
        "seeds": confirmation.seeds,
        "points": [
            {"values": point.values, **estimate.as_json()}
            for point, estimate in zip(confirmation.points, confirmation.estimates, strict=True)
        ],
        "runner_up_against_selected": {**difference.as_json(), "p": _number(p), "verdict": verdict},
    }


def _number(value: float) -> float | None:
    return None if value != value else value


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
