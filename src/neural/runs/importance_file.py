"""Importance of attention heads over training: `importance.json` in a run folder.

`neural ablate` writes it: for each checkpoint, how much the loss changes when a head is removed,
with standard errors over examples (capture/head_importance.py). Every step is written at once and
atomically, so that an interrupted measurement resumes at the next step. Arrays are [layer, head];
where a layer has fewer heads than another, the file has null and the arrays NaN.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.files import read_small_file, write_atomically
from neural.core.json_values import parse_json

IMPORTANCE_FILE = "importance.json"
IMPORTANCE_FILE_VERSION = 1
MAX_FILE_BYTES = 256 << 20
"""A larger file is refused: 1,000 steps of a model with 1,000 heads have about 100 MB."""
MAX_LAYERS, MAX_HEADS = 4096, 4096
"""Larger counts are refused before arrays are allocated: a folder may come from anybody."""
MAX_HEAD_CELLS, MAX_CELLS = 1 << 18, 1 << 26
"""Largest layers × heads, and steps × layers × heads."""

Head = tuple[int, int]
"""Layer and head, from 0."""


@dataclass(frozen=True)
class ClassImportance:
    """Importance for the targets of one token class, such as repeated tokens."""

    share: float
    """Share of all targets that are in the class."""
    change: np.ndarray
    """Change of the mean loss of these targets, [layer, head]."""
    se: np.ndarray


@dataclass(frozen=True)
class PairImportance:
    """Two heads, removed together."""

    first: Head
    second: Head
    both: float
    """Change of the loss without both heads."""
    both_se: float
    interaction: float
    """`both` minus the changes without the first and without the second alone."""
    interaction_se: float


@dataclass(frozen=True)
class ImportanceStep:
    """Importance of all heads at one checkpoint."""

    step: int
    loss: float
    """Mean loss of the unchanged model."""
    loss_se: float
    change: np.ndarray
    """Change of the loss when a head is removed, [layer, head]; positive: the head helps."""
    se: np.ndarray
    """Standard errors of `change` over examples."""
    gradient: np.ndarray
    """First-order estimate of `change` by one backward pass."""
    classes: Mapping[str, ClassImportance] = field(default_factory=dict)
    pairs: Sequence[PairImportance] = ()


@dataclass(frozen=True)
class ImportanceHeader:
    """What was measured; the same for all steps of a file."""

    data: str
    """`64 validation windows of novel.txt`."""
    method: str
    """How heads are removed: `mean`, `zero`, `resample`, `pattern uniform`."""
    examples: int
    layers: tuple[str, ...]
    """Paths of the attention modules."""
    heads: tuple[int, ...]
    """Number of heads of each layer."""
    chance_loss: float | None = None
    """Loss of the frequencies of the targets; None if they are not tokens or classes."""
    metric: str = "loss"
    unit: str = "nats"


@dataclass(frozen=True)
class ClassSeries:
    """Importance for one token class over training."""

    share: np.ndarray
    """[step]; NaN at steps without the class."""
    change: np.ndarray
    """[step, layer, head]."""
    se: np.ndarray


@dataclass(frozen=True)
class ImportanceRecord:
    """The content of the file, with arrays over the steps in ascending order."""

    header: ImportanceHeader
    time: float
    """When the newest step was measured, in seconds since 1970."""
    steps: np.ndarray
    """[step]."""
    loss: np.ndarray
    loss_se: np.ndarray
    change: np.ndarray
    """[step, layer, head]; NaN where a layer has fewer heads."""
    se: np.ndarray
    gradient: np.ndarray
    classes: dict[str, ClassSeries]
    pairs: tuple[tuple[PairImportance, ...], ...]
    """Measured pairs of each step."""

    @property
    def chance_loss(self) -> float | None:
        """Loss of the frequencies of the targets; None if unknown."""
        return self.header.chance_loss

    @property
    def layers(self) -> tuple[str, ...]:
        """Paths of the attention modules."""
        return self.header.layers

    @property
    def heads(self) -> tuple[int, ...]:
        """Number of heads of each layer."""
        return self.header.heads

    @property
    def method(self) -> str:
        """How heads are removed."""
        return self.header.method

    @property
    def data(self) -> str:
        """The examples, for people."""
        return self.header.data

    @property
    def examples(self) -> int:
        """Number of examples."""
        return self.header.examples


def load_importance(folder: Path) -> ImportanceRecord | None:
    """Read the file of a run folder; None without one. ValueError if the file is not valid."""
    loaded = load_importance_steps(folder)
    return None if loaded is None else _stack_steps(*loaded)


def load_importance_steps(
    folder: Path,
) -> tuple[ImportanceHeader, list[ImportanceStep], float] | None:
    """Header, steps in ascending order and time; None without a file. ValueError if not valid."""
    try:
        try:
            saved = parse_json(read_small_file(folder / IMPORTANCE_FILE, MAX_FILE_BYTES).decode())
        except FileNotFoundError:
            return None
        if not isinstance(saved, dict) or saved.get("version") != IMPORTANCE_FILE_VERSION:
            raise ValueError(f"its version is not {IMPORTANCE_FILE_VERSION}")
        header = _parse_header(saved)
        steps = [_parse_step(step, header) for step in _get_list(saved, "steps")]
        numbers = [step.step for step in steps]
        if numbers != sorted(set(numbers)):
            raise ValueError("`steps` must ascend")
        cells = len(steps) * len(header.layers) * max(header.heads, default=0)
        if not steps or cells > MAX_CELLS:
            raise ValueError("it has no steps" if not steps else "it has too many steps and heads")
        return header, steps, _get_number(saved, "time")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(
            f"{IMPORTANCE_FILE} is not valid: {error}; delete it and measure again with "
            "`neural ablate`"
        ) from None


def save_importance_step(folder: Path, header: ImportanceHeader, step: ImportanceStep) -> Path:
    """Add a step to the file of a run folder, or replace it; atomic.

    Steps of another header (other data, method or number of examples) cannot be compared: they are
    dropped. A damaged file is replaced, too. Raises OSError.
    """
    try:
        loaded = load_importance_steps(folder)
    except ValueError:
        loaded = None
    # compared as written: numbers of the file are rounded
    is_same = loaded is not None and encode_header(loaded[0]) == encode_header(header)
    steps = loaded[1] if loaded is not None and is_same else []
    steps = [other for other in steps if other.step != step.step]
    return write_importance(folder, header, [*steps, step])


def write_importance(
    folder: Path, header: ImportanceHeader, steps: Sequence[ImportanceStep]
) -> Path:
    """Write all steps, replacing an earlier file. Raises OSError."""
    saved = {
        "version": IMPORTANCE_FILE_VERSION,
        "time": time.time(),
        **encode_header(header),
        "steps": [
            encode_step(step, header.heads) for step in sorted(steps, key=lambda step: step.step)
        ],
    }
    path = folder / IMPORTANCE_FILE
    write_atomically(path, json.dumps(saved, allow_nan=False, separators=(",", ":")) + "\n")
    return path


def encode_header(header: ImportanceHeader) -> dict[str, Any]:
    """JSON data of a header."""
    return {
        "data": header.data,
        "metric": header.metric,
        "unit": header.unit,
        "method": header.method,
        "examples": header.examples,
        "chance_loss": _encode_number(header.chance_loss),
        "layers": list(header.layers),
        "heads": list(header.heads),
    }


def encode_step(step: ImportanceStep, heads: Sequence[int]) -> dict[str, Any]:
    """JSON data of a step; rows have as many numbers as their layer has heads."""

    def encode_array(array: np.ndarray) -> list[list[float | None]]:
        return [
            [_encode_number(value) for value in row[:count]]
            for row, count in zip(array, heads, strict=True)
        ]

    return {
        "step": step.step,
        "loss": _encode_number(step.loss),
        "loss_se": _encode_number(step.loss_se),
        "change": encode_array(step.change),
        "se": encode_array(step.se),
        "gradient": encode_array(step.gradient),
        "classes": {
            name: {
                "share": _encode_number(values.share),
                "change": encode_array(values.change),
                "se": encode_array(values.se),
            }
            for name, values in step.classes.items()
        },
        "pairs": [
            {
                "first": list(pair.first),
                "second": list(pair.second),
                "both": _encode_number(pair.both),
                "both_se": _encode_number(pair.both_se),
                "interaction": _encode_number(pair.interaction),
                "interaction_se": _encode_number(pair.interaction_se),
            }
            for pair in step.pairs
        ],
    }


def _encode_number(value: float | None) -> float | None:
    """A float with six significant digits; None for NaN and infinity, which JSON does not have."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{float(value):.6g}")


def _parse_header(saved: Mapping[str, Any]) -> ImportanceHeader:
    layers, heads = _get_list(saved, "layers"), _get_list(saved, "heads")
    texts = [saved["data"], saved["method"], saved["metric"], saved["unit"], *layers]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("`data`, `method`, `metric`, `unit` and `layers` must be texts")
    if not layers or len(layers) != len(heads) or len(layers) > MAX_LAYERS:
        raise ValueError("`layers` and `heads` must have an entry for each layer")
    if not all(_is_count(count) and 1 <= count <= MAX_HEADS for count in heads):
        raise ValueError("`heads` must be numbers of heads")
    if len(layers) * max(heads) > MAX_HEAD_CELLS:
        raise ValueError("it has too many heads")
    examples, chance_loss = saved["examples"], saved.get("chance_loss")
    if not _is_count(examples):
        raise ValueError("`examples` must be a number of examples")
    return ImportanceHeader(
        data=saved["data"],
        method=saved["method"],
        examples=examples,
        layers=tuple(layers),
        heads=tuple(heads),
        chance_loss=None if chance_loss is None else _get_number(saved, "chance_loss"),
        metric=saved["metric"],
        unit=saved["unit"],
    )


def _parse_step(saved: Any, header: ImportanceHeader) -> ImportanceStep:
    step = saved["step"]
    if not _is_count(step):
        raise ValueError("`step` must be a whole number")
    classes = saved.get("classes") or {}
    if not isinstance(classes, dict):
        raise ValueError("`classes` must be an object")
    return ImportanceStep(
        step=step,
        loss=_get_number(saved, "loss"),
        loss_se=_get_number(saved, "loss_se", is_optional=True),
        change=_parse_array(saved, "change", header.heads),
        se=_parse_array(saved, "se", header.heads),
        gradient=_parse_array(saved, "gradient", header.heads),
        classes={
            name: ClassImportance(
                _get_number(values, "share"),
                _parse_array(values, "change", header.heads),
                _parse_array(values, "se", header.heads),
            )
            for name, values in classes.items()
        },
        pairs=tuple(_parse_pair(pair, header.heads) for pair in saved.get("pairs") or ()),
    )


def _parse_pair(saved: Any, heads: Sequence[int]) -> PairImportance:
    first, second = _parse_head(saved["first"], heads), _parse_head(saved["second"], heads)
    names = ("both", "both_se", "interaction", "interaction_se")
    numbers = {name: _get_number(saved, name, is_optional=True) for name in names}
    return PairImportance(first=first, second=second, **numbers)


def _parse_head(saved: Any, heads: Sequence[int]) -> Head:
    layer, head = saved
    is_valid = _is_count(layer) and _is_count(head) and layer < len(heads) and head < heads[layer]
    if not is_valid:
        raise ValueError(f"there is no head {saved}")
    return layer, head


def _parse_array(saved: Mapping[str, Any], name: str, heads: Sequence[int]) -> np.ndarray:
    """Numbers [layer, head]; NaN for null and where a layer has fewer heads."""
    rows = _get_list(saved, name)
    if len(rows) != len(heads):
        raise ValueError(f"`{name}` must have a row for each layer")
    array = np.full((len(heads), max(heads)), np.nan)
    for layer, (row, count) in enumerate(zip(rows, heads, strict=True)):
        if not isinstance(row, list) or len(row) != count:
            raise ValueError(f"`{name}` must have a number for each head of layer {layer}")
        if not all(value is None or _is_finite(value) for value in row):
            raise ValueError(f"`{name}` must hold numbers")
        array[layer, :count] = [math.nan if value is None else value for value in row]
    return array


def _stack_steps(
    header: ImportanceHeader, steps: Sequence[ImportanceStep], saved_time: float
) -> ImportanceRecord:
    names = dict.fromkeys(name for step in steps for name in step.classes)
    missing = np.full_like(steps[0].change, np.nan)
    empty = ClassImportance(math.nan, missing, missing)
    classes = {}
    for name in names:
        series = [step.classes.get(name, empty) for step in steps]
        classes[name] = ClassSeries(
            np.array([values.share for values in series]),
            np.stack([values.change for values in series]),
            np.stack([values.se for values in series]),
        )
    return ImportanceRecord(
        header=header,
        time=saved_time,
        steps=np.array([step.step for step in steps]),
        loss=np.array([step.loss for step in steps]),
        loss_se=np.array([step.loss_se for step in steps]),
        change=np.stack([step.change for step in steps]),
        se=np.stack([step.se for step in steps]),
        gradient=np.stack([step.gradient for step in steps]),
        classes=classes,
        pairs=tuple(tuple(step.pairs) for step in steps),
    )


def _get_list(saved: Mapping[str, Any], name: str) -> list[Any]:
    value = saved[name]
    if not isinstance(value, list):
        raise ValueError(f"`{name}` must be a list")
    return value


def _get_number(saved: Mapping[str, Any], name: str, *, is_optional: bool = False) -> float:
    value = saved[name]
    if value is None and is_optional:
        return math.nan
    if not _is_finite(value):
        raise ValueError(f"`{name}` must be a number")
    return float(value)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 53


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
