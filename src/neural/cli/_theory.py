"""`neural dynamics --theory`: what was typed → the theory's numbers → tables, JSON and pictures."""

from __future__ import annotations

import dataclasses
import json
import math
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

from neural.cli import _text
from neural.cli._mistakes import Refused
from neural.tasks.focusing.theory.overview import Overview, overview
from neural.tasks.focusing.theory.setting import Setting

ALPHAS = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))


def show(
    words: Sequence[str], alpha: str | None, rate: float, until: float | None, measure: bool, out: Path | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Compute, draw if asked, and print."""
    classes, segments = _sizes(words)
    found = overview(Setting(classes, segments, rate), alphas=_alphas(alpha), until=until, finely=measure)
    drawn = _drawn(found, out) if out is not None else []
    if as_json:
        click.echo(json.dumps(_plain(found) | {"drawn": [str(one) for one in drawn]}))
        return
    click.echo("\n".join(_page(found)))
    if drawn:
        click.echo(f"drawn: {', '.join(str(one) for one in drawn)}")


def _sizes(words: Sequence[str]) -> tuple[int, int]:
    """C and m, from `C=3 m=10`."""
    sizes: dict[str, int] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or name not in ("C", "m"):
            raise Refused(f"`{word}`: the theory takes C=… (classes) and m=… (segments), as in C=3 m=10")
        if name in sizes:
            raise Refused(f"`{word}`: {name} is said twice")
        try:
            sizes[name] = int(value.replace(",", "").replace("_", ""))
        except ValueError:
            raise Refused(f"`{word}`: {name} is a whole number, as in {name}=10") from None
    missing = [name for name in ("C", "m") if name not in sizes]
    if missing:
        raise Refused(f"{' and '.join(missing)} not said: --theory C=3 m=10 has 3 classes and 10 segments")
    return sizes["C"], sizes["m"]


def _alphas(text: str | None) -> tuple[float, ...]:
    """The focuses, in order; whether they can be held is for the theory to say."""
    if text is None:
        return ALPHAS
    try:
        return tuple(sorted({float(one) for one in text.split(",")}))
    except ValueError:
        raise Refused(f"--alpha {text}: numbers with commas between them, as in 0.2,0.4") from None


def _drawn(found: Overview, folder: Path) -> list[Path]:
    from neural.views.theory_plots import theory_plots

    try:
        return theory_plots(found, folder)
    except OSError as error:
        raise Refused(f"--out {folder}: {(error.strerror or str(error)).lower()}") from None


def _page(found: Overview) -> list[str]:
    setting = found.setting
    rate = "" if setting.rate == 1 else f", focus rate r = {setting.rate:g}"
    title = f"linear orthogonal setting, C = {setting.classes}, m = {setting.segments}{rate}"
    parts = [_schedules(found), _switches(found), _finishes(found), _slopes(found), _held(found)]
    lines = [_text.heading(title), "times are steps × learning rate, from zero"]
    for part in parts:
        lines += ["", *part]
    advice = textwrap.wrap(found.advice.reason, _text.width() - 2)
    return [*lines, "", _text.heading("advice"), *(f"  {line}" for line in advice)]


def _schedules(found: Overview) -> list[str]:
    last = found.levels[-1]
    heads = ["", *(f"α = {level:g}" for level in found.levels), "measured", "apart", "switch", "calls"]
    rows = [
        [one.name, *(_time(time) for time in one.times),
         "–" if one.measured is None else _time(one.measured.time_to(last)),
         "–" if one.apart is None else f"{one.apart:.4f}", _switch(one.switches),
         f"{one.calls:,.0f}"]
        for one in found.schedules
    ]  # fmt: skip
    note = [
        f"  measured: the time to α = {last:g} of gradient descent on the real linear model;",
        "  apart: the largest difference between its α and the predicted one;",
        "  calls: of the classifier per example until then, a step being a unit of time;",
        "  steepest: the Rényi order that pulls hardest at every moment, then hard",
    ]
    if all(one.measured is None for one in found.schedules):
        note.append("  not measured here: the data set would be too large")
    return [_text.heading("time until the focus is α"), *_text.table([heads, *rows], right=range(1, 9)), *note]


def _switches(found: Overview) -> list[str]:
    level = found.levels[-1]
    heads = ["", "equal incentive", f"α = {level:g}", "best by search", f"α = {level:g}", "lost"]
    rows = [
        [one.name, "never" if one.equal is None else _time(one.equal), _time(one.time_equal),
         _time(one.best), _time(one.time_best), f"{one.time_equal / one.time_best - 1:.2%}"]
        for one in found.switches
    ]  # fmt: skip
    return [_text.heading("when to switch"), *_text.table([heads, *rows], right=range(1, 6))]


def _finishes(found: Overview) -> list[str]:
    setting = found.setting
    heads = ["", "1 − α →", f"at t = {found.far:,.0f}", "first order", "next order"]
    rows = [
        [one.name, one.formula, *(_text.number(value) for value in (one.exact, one.leading, one.refined))]
        for one in found.finishes
    ]
    note = [] if setting.rate == 1 else [f"  the formulas are those of r = 1; divided by r = {setting.rate:g}"]
    return [_text.heading("how the focus finishes"), *_text.table([heads, *rows], right=range(2, 5)), *note]


def _slopes(found: Overview) -> list[str]:
    heads = ["", "by the formula", "exact", "measured"]
    rows = [[one.name, *map(_slope, (one.slope, one.slope_exact, one.slope_measured))] for one in found.finishes]
    title = f"slope of log(1 − α) against log t, from t = {found.far / 10:,.0f} to {found.far:,.0f}"
    return [_text.heading(title), *_text.table([heads, *rows], right=range(1, 4))]


def _slope(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".replace("-", "−")


def _held(found: Overview) -> list[str]:
    held = found.held
    names = list(held.loss)
    heads = ["α", f"loss: {names[0]}", *names[1:], f"incentive: {names[0]}", *names[1:]]
    rows = [
        [f"{alpha:g}", *(f"{held.loss[name][-1, place]:.4f}" for name in names),
         *(f"{held.incentive[name][-1, place]:.4f}" for name in names)]
        for place, alpha in enumerate(held.alphas)
    ]  # fmt: skip
    title = f"focus held at α, classifier trained until t = {held.times[-1]:g}"
    return [_text.heading(title), *_text.table([heads, *rows], right=range(7))]


def _time(value: float) -> str:
    return "later" if math.isinf(value) else f"{value:,.1f}" if value < 1e7 else f"{value:.2e}"


def _switch(times: Sequence[float]) -> str:
    return ", ".join(_time(one) for one in times) or "–"


def _plain(value: Any) -> Any:
    """As JSON has it: dataclasses as objects, arrays as lists, the infinite as null."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
