"""Importance of a run's heads over training as page data (`importance.json`, `neural ablate`).

The importance of a head is the change of the loss when it is removed. The page shows it as a
picture of heads and steps, with the decisions of findings/head_necessity.py. Arrays are [step,
layer, head], 32-bit floats in base64, as measures are (report/page_data.py).
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from neural.findings.head_necessity import (
    MIN_EXAMPLES,
    HeadNecessity,
    find_redundant_pairs,
    find_takeovers,
    has_importance,
    load_necessity,
)
from neural.findings.record import Record
from neural.findings.run_loading import MissingDataError
from neural.findings.run_summary import to_json_numbers
from neural.runs.importance_file import PairImportance

ALL_TOKENS = "all tokens"
"""Name of the class that has all targets; tasks without tokens have "all examples"."""
MAX_IMPORTANCE_VALUES = 200_000
"""Numbers of a run in a page, 4 bytes each; of more steps, some are left out."""


def load_importance_data(run: Record) -> tuple[dict[str, Any] | None, list[str]]:
    """Page data of the importance of heads, and error messages; None where it was not measured."""
    if not has_importance(run):
        return None, []
    try:
        necessity = load_necessity(run)
    except MissingDataError as error:
        return None, [str(error)]
    return encode_importance(necessity, run.name), []


def encode_importance(necessity: HeadNecessity, run_name: str) -> dict[str, Any]:
    """JSON data of a record and its decisions."""
    record = necessity.record
    whole = ALL_TOKENS if record.classes else "all examples"
    shown = _select_steps(len(record.steps), record.change[0].size * (3 + 2 * len(record.classes)))
    classes: list[dict[str, Any]] = [
        {"name": whole, "share": None, **_encode_pair(record.change, record.se, shown)}
    ]
    for name, series in record.classes.items():
        shares = series.share[np.isfinite(series.share)]
        classes.append(
            {
                "name": name,
                "share": float(shares[-1]) if len(shares) else None,
                **_encode_pair(series.change, series.se, shown),
            }
        )
    redundant = {(pair.first, pair.second) for pair in find_redundant_pairs(necessity)}
    pair_index = max((index for index, pairs in enumerate(record.pairs) if pairs), default=None)
    pairs = [] if pair_index is None else record.pairs[pair_index]
    is_last = pair_index == len(record.steps) - 1
    layers, heads = record.change.shape[1:]
    return {
        "data": record.header.data,
        "metric": record.header.metric,
        "unit": record.header.unit,
        "method": record.header.method,
        "examples": record.header.examples,
        "has_enough_examples": record.header.examples >= MIN_EXAMPLES,
        "chance_loss": record.chance_loss,
        "command": format_command(run_name, record.header.method, len(record.steps)),
        "heads": list(record.header.heads),
        "shape": [len(shown), layers, heads],
        "steps": [int(step) for step in record.steps[shown]],
        "loss": to_json_numbers(record.loss[shown]),
        "loss_se": to_json_numbers(record.loss_se[shown]),
        "smallest_change": _finite_or_none(necessity.smallest_change),
        "is_better_than_chance": bool(np.isfinite(necessity.learned[-1])),
        "gradient": _encode(record.gradient[shown]),
        "classes": classes,
        "onsets": [
            [necessity.find_onset_step(layer, head) for head in range(heads)]
            for layer in range(layers)
        ],
        "half_onsets": [
            [necessity.find_half_step(layer, head) for head in range(heads)]
            for layer in range(layers)
        ],
        "without_effect": necessity.is_without_effect[-1].tolist(),
        "pair_step": None if pair_index is None else int(record.steps[pair_index]),
        "pairs": [
            _encode_heads(pair, is_last and (pair.first, pair.second) in redundant)
            for pair in sorted(pairs, key=_order_pairs)
        ],
        "takeovers": [
            {
                "earlier": list(takeover.earlier),
                "later": list(takeover.later),
                "step": takeover.step,
            }
            for takeover in find_takeovers(necessity)
        ],
    }


def format_command(run_name: str, method: str, steps: int) -> str:
    """The command that measures the importance of a run's heads."""
    name, _, pattern = method.partition(" ")
    options = [
        "--over-training" if steps > 1 else "",
        f"--method {name}" if name not in ("", "mean") else "",
        f"--pattern {pattern}" if name == "pattern" and pattern not in ("", "uniform") else "",
    ]
    return " ".join(["neural ablate", run_name, *(option for option in options if option)])


def _select_steps(count: int, values_per_step: int) -> np.ndarray:
    """Indices of the steps in the page: all, or evenly chosen ones with the first and the last."""
    limit = max(2, MAX_IMPORTANCE_VALUES // max(1, values_per_step))
    if count <= limit:
        return np.arange(count)
    return np.linspace(0, count - 1, limit).round().astype(int)


def _encode(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def _encode_pair(change: np.ndarray, error: np.ndarray, shown: np.ndarray) -> dict[str, str]:
    return {"change": _encode(change[shown]), "se": _encode(error[shown])}


def _encode_heads(pair: PairImportance, is_redundant: bool) -> dict[str, Any]:
    return {
        "first": list(pair.first),
        "second": list(pair.second),
        "both": _finite_or_none(pair.both),
        "both_se": _finite_or_none(pair.both_se),
        "interaction": _finite_or_none(pair.interaction),
        "interaction_se": _finite_or_none(pair.interaction_se),
        "is_redundant": is_redundant,
    }


def _finite_or_none(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _order_pairs(pair: PairImportance) -> float:
    """The largest cost first; pairs without a number last."""
    return -pair.both if math.isfinite(pair.both) else math.inf
