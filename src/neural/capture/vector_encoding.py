"""Queries and keys of attention heads as JSON data, for the view of their products on a page.

A weight is the softmax of scale · q·k + biases over the keys. The products q_d · k_d of the single
dimensions d show what makes a score large. Only calls of this form are encoded; other mechanisms
have no dot product.

Numbers are stored as 16-bit integers times a scale for each tensor, in base64: the error is at most
1 / 65,534 of the largest number.
"""

from __future__ import annotations

import base64
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.attention_call import AttentionCall

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Float

    from neural.capture.capture_result import Capture

MAX_VECTOR_BYTES = 1_000_000
"""Limit of the encoded queries and keys of all layers together; more are left out."""
VECTORS_KEY = "attention/vectors"
"""Metadata of a run: {"step": …, "layers": the result of `encode_vectors`}."""
MAX_LEVEL = 2**15 - 1
"""Largest 16-bit integer."""
LAYER_KEYS = ("shape", "queries", "keys", "query_scale", "key_scale", "score_scale")
"""Entries of an encoded layer. The shape is (H, G, Q, K, D); the scales are numbers."""


def encode_vectors(
    capture: Capture,
    *,
    example: int = 0,
    max_positions: int | None = None,
    max_bytes: int = MAX_VECTOR_BYTES,
) -> dict[str, dict[str, Any]]:
    """Queries and keys of one example by layer name; empty if they take more than `max_bytes`.

    Layers without a dot product, or with keys or queries that are not finite, are left out.
    """
    layers: dict[str, dict[str, Any]] = {}
    used_bytes = 0
    for name, call in zip(capture.layer_names(), capture, strict=True):
        attention = call.attention
        # a subclass computes its weights in another way
        if type(attention) is not AttentionCall or not attention.has_logits:
            continue
        query_count = min(max_positions or attention.queries, attention.queries)
        key_count = min(max_positions or attention.positions, attention.positions)
        width = attention.q.shape[-1]
        rows = attention.heads * query_count + attention.k.shape[1] * key_count
        used_bytes += -(-rows * width * 2 * 4 // 3)  # base64 adds a third
        if used_bytes > max_bytes:
            return {}
        queries = attention.q[example, :, :query_count].detach().float().cpu().numpy()
        keys = attention.k[example, :, :key_count].detach().float().cpu().numpy()
        layers[name] = _encode_layer(queries, keys, attention.score_scale)
    return layers


def _encode_layer(
    queries: Float[np.ndarray, "H Q D"], keys: Float[np.ndarray, "G K D"], score_scale: float
) -> dict[str, Any]:
    heads, query_count, width = queries.shape
    encoded_queries, query_scale = _quantize(queries)
    encoded_keys, key_scale = _quantize(keys)
    return {
        "shape": [heads, keys.shape[0], query_count, keys.shape[1], width],
        "queries": encoded_queries,
        "keys": encoded_keys,
        "query_scale": query_scale,
        "key_scale": key_scale,
        "score_scale": float(score_scale),
    }


def _quantize(values: np.ndarray) -> tuple[str, float]:
    """The values as base64 of 16-bit integers, and the scale to multiply these with."""
    scale = float(np.abs(values).max(initial=0.0)) / MAX_LEVEL or 1.0
    levels = np.rint(values / scale).astype("<i2")
    return base64.b64encode(levels.tobytes()).decode(), scale


def decode_vectors(layer: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Queries [H, Q, D] and keys [G, K, D] of one encoded layer."""
    heads, key_heads, query_count, key_count, width = layer["shape"]

    def decode(name: str, scale: float, shape: tuple[int, ...]) -> np.ndarray:
        levels = np.frombuffer(base64.b64decode(layer[name]), "<i2")
        return levels.reshape(shape).astype(np.float32) * np.float32(scale)

    return (
        decode("queries", layer["query_scale"], (heads, query_count, width)),
        decode("keys", layer["key_scale"], (key_heads, key_count, width)),
    )


def check_vectors(layers: Any) -> dict[str, dict[str, Any]]:
    """The layers of a run's metadata that are encoded as above; a folder may come from anybody."""
    return {
        name: {key: layer[key] for key in LAYER_KEYS}
        for name, layer in (layers.items() if isinstance(layers, dict) else ())
        if _is_layer(layer)
    }


def _is_layer(layer: Any) -> bool:
    if not isinstance(layer, dict) or not set(LAYER_KEYS) <= layer.keys():
        return False
    shape = layer["shape"]
    if not isinstance(shape, list) or len(shape) != 5:
        return False
    if not all(type(size) is int and 0 < size <= MAX_VECTOR_BYTES for size in shape):
        return False
    heads, key_heads, query_count, key_count, width = shape
    scales = [layer[key] for key in ("query_scale", "key_scale", "score_scale")]
    return all(isinstance(scale, float) and math.isfinite(scale) for scale in scales) and all(
        isinstance(layer[name], str) and len(layer[name]) == -(-2 * size // 3) * 4
        for name, size in (
            ("queries", heads * query_count * width),
            ("keys", key_heads * key_count * width),
        )
    )


def count_vector_bytes(layers: Mapping[str, Mapping[str, Any]]) -> int:
    """Size of encoded layers in a page."""
    return sum(len(layer["queries"]) + len(layer["keys"]) for layer in layers.values())
