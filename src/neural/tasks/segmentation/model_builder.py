"""Build a segmenter network from its settings.

It needs no data, so a trained model can be loaded without its training documents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neural.core.errors import TaskError
from neural.core.registry import UnknownNameError
from neural.language.expression import InvalidCallError, parse_call
from neural.language.shapes import ShapeError
from neural.nn.attention import registry as mechanisms
from neural.nn.mechanism import Mechanism
from neural.nn.position import Position
from neural.nn.positions import registry as positions
from neural.nn.positions.sinusoidal import Sinusoidal
from neural.tasks.segmentation.feature_cache import list_columns
from neural.tasks.segmentation.model import AttentionBlock, Segmenter

if TYPE_CHECKING:
    from neural.tasks.segmentation.settings import SegmentationSettings, SegmenterSettings


def build_segmenter(settings: SegmentationSettings) -> Segmenter:
    """New, untrained model. TaskError for an unknown feature or attention.

    `settings` are the resolved ones of a task or run: `labels` holds the class names.
    """
    model, num_classes = settings.model, len(settings.labels or ())
    try:
        num_features = len(list_columns(settings.features))
        attention = build_attention(model) if model.attention_enabled else None
    except UnknownNameError as error:
        raise TaskError(f"features: {error}") from None
    return Segmenter(
        num_features,
        num_classes,
        hidden_dim=model.hidden_dim,
        num_layers=model.num_layers,
        dropout=model.dropout,
        input_dropout=model.input_dropout,
        attention=attention,
    )


def build_attention(model: SegmenterSettings) -> AttentionBlock:
    """Attention block between the LSTM and the classifier."""
    try:
        return AttentionBlock(
            2 * model.hidden_dim,
            model.attention_dim,
            model.attention_heads,
            resolve_mechanism(model),
            dropout=model.attention_dropout,
            position=resolve_position(model),
        )
    except ShapeError as error:
        raise TaskError(f"model.positional_encoding: {error}") from None


def resolve_mechanism(model: SegmenterSettings) -> Mechanism:
    """Attention mechanism by name (`localized`) or `.neural` call (`sparse(window=5)`)."""
    try:
        mechanism = parse_call(model.attention_type, mechanisms)
    except InvalidCallError as error:
        raise TaskError(f"model.attention_type: {error}") from None
    # A mechanism without arguments takes its window from the setting `window_size`.
    if "window" in mechanism.argument_specs() and "(" not in model.attention_type:
        return replace(mechanism, window=model.window_size)  # type: ignore[call-arg]
    return mechanism


def resolve_position(model: SegmenterSettings) -> Position | None:
    """Positional encoding of the attention; None for none."""
    if isinstance(model.positional_encoding, bool):
        return Sinusoidal() if model.positional_encoding else None
    try:
        return parse_call(model.positional_encoding, positions)
    except InvalidCallError as error:
        raise TaskError(f"model.positional_encoding: {error}") from None
