"""Labels of positions: the texts that name the rows and columns of attention maps.

    labels = check_labels(["the", "cat"], calls)     one list of labels per example
    label_axes(call, labels[0])                      labels of the call's queries and keys

A label is usually the text of a token. The labels of an example belong to one sequence, with one
label per position, padding included. They name an axis of a map only if the axis is known to be
this sequence: the keys if there are as many as labels, the queries if they share the keys' sequence
(self-attention). Other axes have no labels, and a page shows their positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from neural.capture.attention_call import AttentionCall
    from neural.capture.capture_result import CapturedCall


class AxisLabels(NamedTuple):
    """Labels of one map; an axis without labels has None."""

    queries: list[str] | None
    """Labels of the rows."""
    keys: list[str] | None
    """Labels of the columns."""


def check_labels(labels: Any, calls: Iterable[CapturedCall]) -> list[list[str]]:
    """The labels of each example of a batch: `labels` itself, or one list for all examples.

    ValueError if `labels` is neither a list of texts nor a list of such lists per example, or if
    their lengths do not match the captured attention.
    """
    attention = {call.path: call.attention for call in calls if call.attention is not None}
    batch = max((call.batch for call in attention.values()), default=1)
    if isinstance(labels, str):
        raise ValueError(
            "labels is one text; give a list with a label per position, such as "
            "list(text) for characters or text.split() for words"
        )
    labels = _convert_array(labels)
    if not isinstance(labels, Sequence):
        raise ValueError(
            f"labels must be a list of texts, or a list of such lists, not {_describe(labels)}"
        )
    labels = [_convert_array(row) for row in labels]
    is_per_example = any(isinstance(row, Sequence) and not isinstance(row, str) for row in labels)
    if is_per_example and attention and len(labels) != batch:
        raise ValueError(
            f"labels has {len(labels)} lists, but the batch size is {batch}: "
            "give one list of labels per example"
        )
    rows = labels if is_per_example else [labels] * batch
    checked = []
    for example, row in enumerate(rows):
        name = f"labels[{example}]" if is_per_example else "labels"
        checked.append(_check_texts(name, row))
        _check_length(name, len(row), attention)
    return checked


def label_axes(call: AttentionCall, labels: Sequence[str]) -> AxisLabels:
    """Labels of the queries and keys of a call, from the labels of one example."""
    if len(labels) != call.positions:
        return AxisLabels(None, None)
    first, last = call.first_query_position, call.first_query_position + call.queries
    is_known = call.known_positions == "queries_and_keys" and first >= 0 and last <= call.positions
    return AxisLabels(list(labels[first:last]) if is_known else None, list(labels))


def label_two_sequences(
    path: str, call: AttentionCall, source: Sequence[str], target: Sequence[str]
) -> AxisLabels:
    """Labels of a call of an encoder–decoder model: `source` is read by the encoder.

    In cross-attention the queries are the target's positions and the keys the source's. In
    self-attention both are of one sequence: of the target in modules of the decoder.
    """
    if call.known_positions == "keys":
        return AxisLabels(
            list(target) if call.queries == len(target) else None,
            list(source) if call.positions == len(source) else None,
        )
    is_decoder = "decoder" in path.lower() or call.positions != len(source)
    return label_axes(call, target if is_decoder else source)


def _convert_array(labels: Any) -> Any:
    """An array of texts as a list; all other values as they are."""
    is_array = isinstance(labels, np.ndarray) and labels.ndim > 0
    return labels.tolist() if is_array else labels


def _check_texts(name: str, labels: Any) -> list[str]:
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise ValueError(f"{name} must be a list of texts, not {_describe(labels)}")
    for position, label in enumerate(labels):
        if not isinstance(label, str):
            advice = (
                'write "" for a position without a label'
                if label is None
                else "str(…) makes a label of a number"
            )
            raise ValueError(f"{name}[{position}] is {_describe(label)}, not a text; {advice}")
    return list(labels)


def _check_length(name: str, length: int, attention: dict[str, AttentionCall]) -> None:
    """Check that some captured call has as many keys as there are labels."""
    positions = {path: call.positions for path, call in attention.items()}
    if positions and length not in positions.values():
        path, expected = next(iter(positions.items()))
        raise ValueError(
            f"{name} has {length} labels, but the attention has {expected} positions (`{path}`): "
            "give one label per position, also for padding and special tokens"
        )


def _describe(value: Any) -> str:
    """A value in a message: its representation, or its type if that is long."""
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"
