"""Predictions of a focus model for new examples: classes, and the focus on every segment.

The data of the training is not needed, unless the run is of a version that did not save the number
of steps, the vocabulary and the scale of the segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neural.core.errors import TaskError
from neural.core.page_section import PageSection
from neural.data.array_conversion import to_array
from neural.data.input_checks import check_finite, format_array_shape
from neural.data.numpy_files import is_archive, load_npy, load_npz
from neural.nn.lazy_torch import torch
from neural.tasks.focus.base_task import MAX_VALIDATION_SEGMENTS, find_paradigm
from neural.tasks.focus.estimators.exact import Exact
from neural.tasks.focus.segment_batch import SegmentBatch
from neural.tasks.focus.token_files import encode_tokens, parse_tokens, read_json_records
from neural.tasks.focus.training_plan import parse_paradigm
from neural.tasks.supervised.predict import PredictedRows
from neural.tasks.task import TrainedRun

STEPS_KEY, VOCABULARY_KEY, SCALE_KEY = "focus/steps", "focus/vocabulary", "focus/scale"
"""Metadata of a run that predictions need."""


@dataclass(frozen=True, eq=False, kw_only=True)
class FocusedRows(PredictedRows):
    """Class probabilities of examples of several segments, and their focus."""

    focus: np.ndarray
    """Weight of every segment, (examples, m); rows sum to 1, padding has 0."""
    lengths: np.ndarray
    """Number of segments of every example, without padding."""
    tokens: tuple[tuple[str, ...], ...] | None = None
    """Tokens of every example, if segments are tokens."""

    @property
    def chosen_segments(self) -> np.ndarray:
        """Index of the segment with the largest weight, from 0."""
        return self.focus.argmax(axis=1)

    def to_columns(self) -> dict[str, list[Any]]:
        """The columns of `PredictedRows`, `segment`, its `token`, and `focus_0`, `focus_1` …"""
        columns, chosen = super().to_columns(), self.chosen_segments.tolist()
        columns["segment"] = chosen
        if self.tokens is not None:
            columns["token"] = [row[index] for row, index in zip(self.tokens, chosen, strict=True)]
        weights = np.round(self.focus.astype(np.float64), 6).T.tolist()
        return columns | {f"focus_{index}": column for index, column in enumerate(weights)}

    def to_records(self) -> Iterator[dict[str, Any]]:
        """One JSON object per example; `focus` is a list with a weight per segment."""
        focus = np.round(self.focus.astype(np.float64), 6).tolist()
        for record, row, length in zip(
            super().to_records(), focus, self.lengths.tolist(), strict=True
        ):
            kept = {key: value for key, value in record.items() if not key.startswith("focus_")}
            yield {**kept, "focus": row[:length]}

    def to_section(self, width: int) -> PageSection:
        """A table with a row per example: the most likely class, and the segment in focus."""
        section, chosen = super().to_section(width), self.chosen_segments.tolist()
        rows = []
        for index, (name, best, others) in enumerate(section.table_rows):
            segment = chosen[index]
            token = "" if self.tokens is None else f" `{self.tokens[index][segment]}`"
            weight = f"{segment}{token} {self.focus[index, segment]:.3f}"
            rows.append((name, best, others, weight))
        head = (*section.table_head, "segment in focus, its weight")
        return PageSection(title="", table_head=head, table_rows=rows)


def predict_focus(run: TrainedRun, source: Any) -> FocusedRows:
    """Predict for a file of segments or tokens, an array (N, m, …), or a dict with `segments`."""
    experiment: Any = run.load_experiment()
    model: Any = run.load_model()
    vocabulary = _load_metadata(run, VOCABULARY_KEY)
    tokens = None
    if vocabulary:
        tokens, (members, mask) = _read_texts(source, vocabulary)
        x, lengths = members[..., None], mask.sum(axis=1)
    else:
        x, mask = _read_segments(source), None
        scale = _load_metadata(run, SCALE_KEY)
        shape = tuple(model.classifier.network.input)
        if x.shape[2:] != shape:
            raise TaskError(
                f"`segments` is {format_array_shape(x)}, but a segment of the training data has the "
                f"shape {shape}: (N, m, {', '.join(map(str, shape))}) is needed"
            )
        x, lengths = x.astype(np.float32) * np.float32(scale), np.full(len(x), x.shape[1])
    paradigm = find_paradigm(
        parse_paradigm(run.metadata("focus/paradigm") or experiment.paradigm),
        model,
        experiment,
        max(1, _load_metadata(run, STEPS_KEY)),
    )
    device, segment_count = next(model.parameters()).device, x.shape[1]
    batch_size = max(1, MAX_VALIDATION_SEGMENTS // segment_count)
    probabilities, focus = [], []
    with torch.no_grad():
        for start in range(0, len(x), batch_size):
            rows = slice(start, start + batch_size)
            units = torch.from_numpy(x[rows]).to(device)
            batch = SegmentBatch(
                model,
                units,
                torch.zeros(len(units), dtype=torch.int64, device=device),
                None if mask is None else torch.from_numpy(mask[rows]).to(device),
                estimator=Exact(),
                samples=segment_count,
            )
            focus.append(paradigm.focus_weights(batch.scores).float().cpu().numpy())
            probabilities.append(paradigm.predict(batch).exp().float().cpu().numpy())
    return FocusedRows(
        output_activation="softmax",
        outputs=np.concatenate(probabilities),
        classes=tuple(run.metadata("focus/classes") or ()),
        focus=np.concatenate(focus),
        lengths=lengths,
        tokens=tokens,
    )


def describe_focus_input(run: TrainedRun) -> str:
    """The files that `predict_focus` reads for this run."""
    if _load_metadata(run, VOCABULARY_KEY):
        return 'a .jsonl file with a line per text: {"tokens": ["you", "are", "kind"]}'
    return "an .npz file with `segments` (N, m, …), or the same array as .npy"


def _load_metadata(run: TrainedRun, key: str) -> Any:
    """A value of the run, or of its data if an older version did not save it."""
    saved = run.metadata(key)
    if saved is not None:
        return saved
    task: Any = run.load_task()
    return task.metadata()[key]


def _read_segments(source: Any) -> np.ndarray:
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix.lower() not in (".npz", ".npy"):
            raise TaskError(f"{path.name}: segments are read from .npz or .npy")
        source = load_npz(path) if is_archive(path) else load_npy(path)
    if isinstance(source, Mapping):
        if "segments" not in source and len(source) != 1:
            names = ", ".join(map(str, source)) or "none"
            raise TaskError(f"there is no array `segments`; there are {names}")
        source = source.get("segments", next(iter(source.values())))
    if isinstance(source, bytes):
        raise TaskError("segments are arrays: name an .npz or .npy file")
    x = to_array(source, "`segments`")
    if x.ndim < 3 or x.dtype.kind not in "biuf" or not x.size:
        raise TaskError(
            f"`segments` is {format_array_shape(x)} of {x.dtype}, but must be numbers of shape "
            "(N, m, …)"
        )
    check_finite(x, "`segments`")
    return x


def _read_texts(
    source: Any, vocabulary: list[str]
) -> tuple[tuple[tuple[str, ...], ...], tuple[np.ndarray, np.ndarray]]:
    """Tokens of every text, and their ids with a mask."""
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix.lower() not in (".jsonl", ".json"):
            raise TaskError(f"{path.name}: texts are read from .jsonl or .json")
        records = [(f"{path.name}, {place}", record) for place, record in read_json_records(path)]
    elif isinstance(source, bytes):
        raise TaskError("texts of tokens are read from .jsonl or .json: name a file")
    else:
        records = [
            (f"text {number}", text if isinstance(text, Mapping) else {"tokens": list(text)})
            for number, text in enumerate(source)
        ]
    texts = [parse_tokens(record, location) for location, record in records]
    if not texts:
        raise TaskError("there are no texts")
    return tuple(map(tuple, texts)), encode_tokens(texts, vocabulary)
