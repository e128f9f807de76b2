"""Settings → the segmenter that they describe. No data is needed: a run can be used where its documents are gone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neural.core.registry import UnknownName
from neural.language.expression import NotACall, read_call
from neural.language.shapes import Misfit
from neural.modules.attention import registry as mechanisms
from neural.modules.mechanism import Mechanism
from neural.modules.position import Position
from neural.modules.positions import registry as positions
from neural.modules.positions.sinusoidal import Sinusoidal
from neural.modules.segmenter import LookAround, Segmenter
from neural.tasks.cutting.described import columns
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from neural.tasks.cutting.settings import Model, SegmentationSettings


def segmenter_of(settings: SegmentationSettings) -> Segmenter:
    """A new model for resolved settings, those with `labels`; TaskError where a name in them means nothing."""
    model, classes = settings.model, len(settings.labels or ())
    try:
        inputs = len(columns(settings.features))
        attention = looking(model) if model.attention_enabled else None
    except UnknownName as unknown:
        raise TaskError(f"features: {unknown}") from None
    return Segmenter(
        inputs, classes, hidden_dim=model.hidden_dim, num_layers=model.num_layers, dropout=model.dropout,
        input_dropout=model.input_dropout, attention=attention,
    )  # fmt: skip


def looking(model: Model) -> LookAround:
    """The attention between the LSTM and the classifier."""
    try:
        return LookAround(
            2 * model.hidden_dim, model.attention_dim, model.attention_heads, mechanism_of(model),
            dropout=model.attention_dropout, position=position_of(model),
        )  # fmt: skip
    except Misfit as wrong:
        raise TaskError(f"model.positional_encoding: {wrong}") from None


def mechanism_of(model: Model) -> Mechanism:
    """By name, as `localized`, or as a program calls it, as `sparse(window=5)`."""
    try:
        found = read_call(model.attention_type, mechanisms)
    except NotACall as wrong:
        raise TaskError(f"model.attention_type: {wrong}") from None
    if "window" in found.settings() and "(" not in model.attention_type:
        return replace(found, window=model.window_size)   # type: ignore[call-arg]  # it has the setting
    return found


def position_of(model: Model) -> Position | None:
    """How the attention is told positions, if at all."""
    if isinstance(model.positional_encoding, bool):
        return Sinusoidal() if model.positional_encoding else None
    try:
        return read_call(model.positional_encoding, positions)
    except NotACall as wrong:
        raise TaskError(f"model.positional_encoding: {wrong}") from None
