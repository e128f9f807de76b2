"""`neural compare`: runs side by side, and only where they differ."""

from __future__ import annotations

import json
import math
from collections.abc import Hashable, Sequence
from pathlib import Path
from string import ascii_uppercase
from typing import TYPE_CHECKING, Any

import click

from neural.cli._arguments import RUN

if TYPE_CHECKING:
    import numpy as np

    from neural.tracking.run import Run

SEEDS = ("name", "training.seed", "split_seed")
"""Settings in which two runs of one group may differ."""
CELL = 14
"""Columns of a run in a table."""


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="RUN RUN…", type=RUN)
@click.option("--runs", "root", type=click.Path(path_type=Path), default=Path("runs"), show_default=True,
              help="Where runs are.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="For machines.")
def command(runs: tuple[str, ...], root: Path, as_json: bool) -> None:
    """Compare runs: the settings that differ, best scores, curves, attention at the end.

    Runs that differ in their seeds alone are one group; groups are compared by pairs of seeds.

    \b
    $ neural compare 01-38-55 01-39-06
    $ neural compare runs/2026-11-16_01-50-12_rates/2026*
    """
    if len(runs) < 2:
        raise click.UsageError("name two runs or more")
    from contextlib import ExitStack

    from neural.cli._mistakes import told

    with told(), ExitStack() as stack:
        from neural.experiments import find_run
        from neural.tracking.run import Run

        opened = [stack.enter_context(Run.open(find_run(name, root))) for name in runs]
        data = compared(opened)
        click.echo(json.dumps(data, indent=2) if as_json else "\n".join(_page(opened, data)))


def compared(runs: Sequence[Run]) -> dict[str, Any]:
    """What differs, as plain data; a list has one item per run."""
    from neural.digest import brief, thinned

    curves = [name for name in ("train/loss", "valid/loss") if all(name in run.names() for run in runs)]
    return {
        "runs": [brief(run) for run in runs],
        "settings": differing(runs),
        "groups": by_seeds(runs),
        "windows": by_windows(runs),
        "programs": [run.program for run in runs] if len({run.program for run in runs}) > 1 else None,
        "curves": {
            name: [dict(zip(("steps", "values"), thinned(*run.scalars(name)), strict=True)) for run in runs]
            for name in curves
        },
        "attention": _attention(runs),
    }


def differing(runs: Sequence[Run]) -> dict[str, list[Any]]:
    """The settings that differ between runs, as they were used; without program and name."""
    from neural.digest import settings_used

    settings = [settings_used(run) for run in runs]
    keys = dict.fromkeys(key for one in settings for key in one if key not in ("name", "network"))
    found = {key: [one.get(key) for one in settings] for key in keys}
    return {key: values for key, values in found.items() if any(value != values[0] for value in values)}


def by_seeds(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Groups of runs that differ in their seeds alone, each against the first by pairs of seeds.

    A pair shares the seed of the training and that of the split, so both are judged by the same
    data. Empty where there is one group, or where scores cannot be compared.
    """
    from neural.digest import best, settings_used
    from neural.views.paired import compare_pairs
    from neural.views.watched import watched

    tops = [top for run in runs if (top := best(run)) is not None]
    if len(tops) < len(runs) or len({top.name for top in tops}) > 1:
        return []
    members: dict[str, list[int]] = {}
    scores: dict[str, dict[Hashable, float]] = {}
    for number, (run, top) in enumerate(zip(runs, tops, strict=True)):
        settings = settings_used(run)
        seed = settings.get("training.seed")
        # a run of before had no seed for the split: the training's decided it
        pair = seed, settings.get("split_seed", seed)
        rest = {key: value for key, value in settings.items() if key not in SEEDS}
        group = json.dumps(rest, sort_keys=True)
        members.setdefault(group, []).append(number)
        scores.setdefault(group, {})[pair] = top.score
    if len(members) < 2:
        return []
    _, larger = watched(str(runs[0].settings.get("task", "")))
    first, *others = members
    data: list[dict[str, Any]] = [
        {
            "runs": members[group],
            "score": tops[0].name,
            "mean": sum(own.values()) / len(own),
            "against_first": None,
        }
        for group, own in scores.items()
    ]
    compared = compare_pairs(
        [scores[group] for group in others], scores[first], larger_is_better=larger
    )
    for entry, (difference, p, verdict) in zip(data[1:], compared, strict=True):
        corrected = None if math.isnan(p) else p
        entry["against_first"] = {**difference.as_json(), "p": corrected, "verdict": verdict}
    return data


def by_windows(runs: Sequence[Run]) -> list[dict[str, Any] | None]:
    """Every run against the first, window by window of the same held-out text: its loss minus the first one's, in nats.

    Both at their best validation. The interval is by long blocks of windows, because neighbouring ones are alike. None
    for the first, and for runs that were not judged by the same windows.
    """
    from scipy.special import stdtrit

    from neural.tasks.block_means import block_mean
    from neural.views.paired import verdict
    from neural.views.seeds import Estimate

    losses = [_window_losses(run) for run in runs]
    compared: list[dict[str, Any] | None] = [None]
    for own in losses[1:]:
        if own is None or losses[0] is None or own[0] != losses[0][0]:
            compared.append(None)
            continue
        mean, error, blocks = block_mean(own[1] - losses[0][1])
        reach = -float(stdtrit(max(1, blocks - 1), 0.025)) * error
        estimate = Estimate(value=mean, low=mean - reach, high=mean + reach, seeds=1)
        decided = verdict(estimate, larger_is_better=False)
        compared.append({**estimate.as_json(), "blocks": blocks, "windows": len(own[1]), "verdict": decided})
    return compared


def _window_losses(run: Run) -> tuple[tuple[Any, ...], np.ndarray] | None:
    """Which windows a language model was judged by, and its loss on each at the best validation."""
    from neural.digest import best
    from neural.tasks.language_model import WINDOW_LOSSES
    from neural.tracking.trouble import RunError

    keys = ("fingerprint", "context", "validation_split", "validation_windows", "vocabulary")
    top = best(run)
    try:
        steps, losses = run.measure(WINDOW_LOSSES)
    except RunError:
        return None
    if top is None or top.step not in steps:
        return None
    which = (*(run.settings.get(key) for key in keys), losses.shape[1])
    return which, losses[list(steps).index(top.step)].astype(float)


def _attention(runs: Sequence[Run]) -> dict[str, list[float | None]]:
    """The mean over heads of every measure at the last look; None where a run has not that measure."""
    import numpy as np

    from neural.digest import attention

    looks = [(attention(run) or {"measures": {}})["measures"] for run in runs]
    found: dict[str, list[float | None]] = {}
    for name in dict.fromkeys(name for one in looks for name in one):
        arrays = [np.array(one[name]["last"], dtype=float) if name in one else np.full(1, np.nan) for one in looks]
        found[name] = [None if np.isnan(one).all() else float(np.nanmean(one)) for one in arrays]
    return found


def _page(runs: Sequence[Run], data: dict[str, Any]) -> list[str]:
    from neural.cli import _text

    letters = [_letter(number) for number in range(len(runs))]
    rows = [(letter, one["name"], _text.state(one["state"])) for letter, one in zip(letters, data["runs"], strict=True)]
    lines = _text.table(rows, indent="")
    lines += ["", _text.heading("settings that differ")]
    texts = {key: [_text.cut(_value(one), CELL) for one in values] for key, values in data["settings"].items()}
    lines += _columns(letters, texts) if texts else ["  none"]
    lines += _programs(letters, data["programs"]) if data["programs"] else []
    lines += ["", _text.heading("best scores"), *_columns(letters, _scores(data["runs"]))]
    lines += _groups(letters, data["groups"])
    lines += _windows(letters, data["windows"])
    lines += _curves(runs, letters, data["curves"])
    if data["attention"]:
        measured = {
            name.replace("_", " "): [*(_text.share(one) for one in values), *_change(values)]
            for name, values in data["attention"].items()
        }
        heads = [*letters, *([f"{letters[1]} − {letters[0]}"] if len(runs) == 2 else [])]
        lines += ["", _text.heading("attention at the last look") + ", mean over heads", *_columns(heads, measured)]
    return lines


def _groups(letters: Sequence[str], groups: list[dict[str, Any]]) -> list[str]:
    """A line per group of runs that differ in their seeds alone."""
    from neural.cli import _text
    from neural.views.seeds import Estimate

    if not groups:
        return []
    rows = []
    for group in groups:
        members = " ".join(letters[number] for number in group["runs"])
        verdict = ""
        if (against := group["against_first"]) is not None:
            numbers = [against[key] for key in ("value", "low", "high")]
            value, low, high = [math.nan if number is None else number for number in numbers]
            estimate = Estimate(value=value, low=low, high=high, seeds=against["seeds"])
            verdict = _text.difference(estimate, against["verdict"])
        rows.append((members, _text.number(group["mean"]), verdict))
    about = f", {groups[0]['score']}, against {rows[0][0]} by pairs of seeds"
    return ["", _text.heading("over seeds") + about, *_text.table(rows, right=(1,))]


def _windows(letters: Sequence[str], compared: list[dict[str, Any] | None]) -> list[str]:
    """A line per language model that was judged by the same windows as the first."""
    from neural.cli import _text
    from neural.views.seeds import number

    rows = []
    for letter, own in zip(letters, compared, strict=True):
        if own is not None:
            interval = f"{number(own['value'])} ({number(own['low'])} … {number(own['high'])}) nats"
            rows.append((f"{letter} − {letters[0]}", interval, own["verdict"]))
    if not rows:
        return []
    one = next(own for own in compared if own is not None)
    about = f", loss on the same {one['windows']:,} windows of held-out text, in {one['blocks']} blocks; this seed only"
    return ["", _text.heading("window by window") + about, *_text.table(rows)]


def _scores(runs: list[dict[str, Any]]) -> dict[str, list[str]]:
    from neural.cli import _text

    names = dict.fromkeys(name for one in runs if one["best"] for name in one["best"]["scores"])
    found = {name: [_text.number(one["best"]["scores"].get(name)) if one["best"] else "–" for one in runs]
             for name in names}  # fmt: skip
    return {**found, "at step": [f"{one['best']['step']:,}" if one["best"] else "–" for one in runs],
            "steps made": [f"{one['step']:,}" for one in runs]}  # fmt: skip


def _columns(letters: Sequence[str], rows: dict[str, list[str]]) -> list[str]:
    """A row per name, a column per run; as many columns at once as fit."""
    from neural.cli import _text

    margin = max(map(len, rows), default=0) + 4
    wide = max((len(cell) for cells in rows.values() for cell in cells), default=0)
    fit = max(1, (_text.width() - margin) // (max(wide, 3) + 2))
    lines: list[str] = []
    for start in range(0, len(letters), fit):
        part = slice(start, start + fit)
        body = [("", *letters[part]), *((name, *cells[part]) for name, cells in rows.items())]
        lines += _text.table(body, right=range(1, len(letters[part]) + 1))
    return lines


def _curves(runs: Sequence[Run], letters: Sequence[str], names: dict[str, Any]) -> list[str]:
    """A line per run, all on one scale."""
    import numpy as np

    from neural.cli import _text

    lines: list[str] = []
    for name in names:
        curves = [run.scalars(name) for run in runs]
        finite = np.concatenate([values[np.isfinite(values)] for _, values in curves])
        if not len(finite):
            continue
        last = int(max(steps.max(initial=0) for steps, _ in curves))
        low, high = float(finite.min()), float(np.quantile(finite, 0.99))
        rows = []
        for letter, (steps, values) in zip(letters, curves, strict=True):
            drawn = _text.sparkline(steps, values, last=last, low=low, high=high, columns=min(_text.width() - 26, 60))
            rows.append((letter, drawn, f"ends at {_text.number(float(values[-1]))}"))
        scale = f", {_text.number(low)} to {_text.number(high)}, steps 0 to {last:,}"
        lines += ["", _text.heading(name) + scale, *_text.table(rows)]
    return lines


def _programs(letters: Sequence[str], programs: list[str | None]) -> list[str]:
    """The lines in which each program differs from the first one."""
    from difflib import unified_diff

    lines: list[str] = []
    for letter, program in zip(letters[1:], programs[1:], strict=True):
        first, other = ((one or "").splitlines() for one in (programs[0], program))
        changed = [one for one in unified_diff(first, other, n=0, lineterm="") if not one.startswith("@@")]
        if changed:
            lines += ["", f"the program of {letter} beside that of {letters[0]}", *(f"  {one}" for one in changed[2:])]
    return lines


def _change(values: list[float | None]) -> list[str]:
    """Of two, the second minus the first."""
    from neural.cli import _text

    if len(values) != 2:
        return []
    first, second = values
    return ["–" if first is None or second is None else f"{'+' if second >= first else '−'}"
            + _text.share(abs(second - first))]  # fmt: skip


def _value(value: Any) -> str:
    return value if isinstance(value, str) else "–" if value is None else json.dumps(value)


def _letter(number: int) -> str:
    """A … Z, then A1 …"""
    turn, place = divmod(number, len(ascii_uppercase))
    return ascii_uppercase[place] + (str(turn) if turn else "")
