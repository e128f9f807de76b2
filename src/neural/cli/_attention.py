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
    margin = max(map(len, names)) + 4
    both = margin + last.shape[1] * (CELL + 2) <= _text.width()
    rows = [("", *(f"head {number}" if both else f"h{number}" for number in range(last.shape[1])))]
    for layer, start, end in zip(names, first, last, strict=True):
        pairs = zip(start, end, strict=True)
        cells = [f"{_text.share(a)}→{_text.share(b)}" if both else _text.share(b) for a, b in pairs]
        rows.append((layer, *("" if np.isnan(b) else cell for cell, b in zip(cells, end, strict=True))))
    title = _text.heading(name.replace("_", " ")) + (f", in {about['unit']}" if about["unit"] else "")
    lines = _text.table(rows, right=range(1, last.shape[1] + 1))
    return [title + (", first look → last" if both else ", last look"), *lines]


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
