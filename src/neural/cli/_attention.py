"""The attention of a run as text: every measure in a line, and one of them head by head."""

from __future__ import annotations

from typing import Any

import numpy as np

from neural.cli import _text

CELL = len("12.34→12.34")


def overview(attention: dict[str, Any]) -> list[str]:
    """A line per measure: the mean over heads at the first and the last look, and the two ends now."""
    rows = [("", "first", "last", "lowest", "", "highest", "")]
    for name, about in attention["measures"].items():
        first, last = _array(about["first"]), _array(about["last"])
        if np.isnan(last).all():
            continue
        low, high = int(np.nanargmin(last)), int(np.nanargmax(last))
        unit = f" ({about['unit']})" if about["unit"] else ""
        rows.append((name.replace("_", " ") + unit, _text.share(_mean(first)), _text.share(_mean(last)),
                     _text.share(last.flat[low]), _head(last, low), _text.share(last.flat[high]),
                     _head(last, high)))  # fmt: skip
    steps = f"mean over heads at step {attention['first_step']:,} and {attention['last_step']:,}"
    return [f"{_text.heading('attention')}, {steps}", *_text.table(rows, right=(1, 2, 3, 5))]


def heads(attention: dict[str, Any], measure: str | None) -> list[str]:
    """One measure for each layer and head: first → last look; the last alone where there are many heads."""
    by_head = {name: one for name, one in attention["measures"].items() if _array(one["last"]).ndim == 2}
    lively = [*(name for name, one in by_head.items() if one["bounded"]), *by_head]
    name = measure or next(iter(lively), None)
    if name is None:
        return []
    about = attention["measures"][name]
    first, last = _array(about["first"]), _array(about["last"])
    first, last = (one if one.ndim == 2 else one[:, None] for one in (first, last))
    names = [f"L{number} {name}" for number, name in enumerate(short(attention["layers"]))]
    heads_there, width = last.shape[1], _text.width() - 2
    both = max(map(len, names)) + heads_there * (CELL + 2) <= width
    if not both:
        names = [name.partition(" ")[0] for name in names]
    title = _text.heading(name.replace("_", " ")) + (f", in {about['unit']}" if about["unit"] else "")
    lines = [title + (", first look → last" if both else ", last look")]
    at_once = heads_there if both else max(1, (width - max(map(len, names))) // (len("12.34") + 2))
    for start in range(0, heads_there, at_once):
        numbers = range(start, min(start + at_once, heads_there))
        rows = [("", *(f"head {number}" if both else f"h{number}" for number in numbers))]
        rows += [
            (layer, *(_cell(before[number], now[number], both=both) for number in numbers))
            for layer, before, now in zip(names, first, last, strict=True)
        ]
        lines += _text.table(rows, right=range(1, len(numbers) + 1))
    return lines


def _cell(first: float, last: float, *, both: bool) -> str:
    """Nothing where a layer has fewer heads than others."""
    if np.isnan(last):
        return ""
    return f"{_text.share(first)}→{_text.share(last)}" if both else _text.share(last)


def short(layers: list[str]) -> list[str]:
    """Names of layers without the parts that all of them end with."""
    parts = [one.split(".") for one in layers]
    while len({one[-1] for one in parts}) == 1 and all(len(one) > 1 for one in parts):
        parts = [one[:-1] for one in parts]
    return [_text.cut(".".join(one), 26) for one in parts]


def _head(values: np.ndarray, flat: int) -> str:
    layer, *head = np.unravel_index(flat, values.shape)
    return f"L{layer}" + (f" h{head[0]}" if head else "")


def _array(values: list[Any]) -> np.ndarray:
    return np.array(values, dtype=float)   # None becomes NaN


def _mean(values: np.ndarray) -> float:
    return float("nan") if np.isnan(values).all() else float(np.nanmean(values))
