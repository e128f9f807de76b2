"""A sweep as text: how the trials went, the best one first, and what the grid's values did."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from neural.cli import _text
from neural.core.visible import visible
from neural.sweep import Row, Sweep


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
    ordered, (score, _) = sweep.points(), sweep.judged_by()
    if not ordered or not ordered[0].values:
        return []
    names = [key.rpartition(".")[2] for key in ordered[0].values]
    rows = [(*names, score, "", "seeds", "against the best")]
    verdicts = ["best", *(_text.difference(*pair) for pair in sweep.against_best(ordered))]
    for point, verdict in zip(ordered, verdicts, strict=True):
        error = "" if point.error != point.error else f"± {_text.number(point.error)}"
        values = [_text.cut(_value(value), 24) for value in point.values.values()]
        mean, count = _text.number(point.mean), str(len(point.scores))
        rows.append((*values, mean, error, count, verdict if point.scores else ""))
    keys = len(names)
    head, *body = _text.table(rows, right=(keys, keys + 2), indent="")
    return ["", _text.heading(head), *body]


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
    return ["", f"look at one: neural show {near / (sweep.ranked()[0].run or '')}"]


def _data(sweep: Sweep) -> dict[str, Any]:
    score, larger = sweep.judged_by()
    points = sweep.points()
    others = [
        {**difference.as_json(), "verdict": verdict}
        for difference, verdict in sweep.against_best(points)
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
                "seeds": len(point.scores),
                "against_best": difference,
            }
            for point, difference in zip(points, compared, strict=True)
        ],
    }  # fmt: skip


def _number(value: float) -> float | None:
    return None if value != value else value


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
