"""The segmenter network for inference without torch: NumPy and native kernels.

    x (T, F) → BiLSTM (2h) → attention block (d inside, 2h outside) → classifier (C)

model.py defines the network, and trains it; this class computes the same logits from saved weights.
It has the architectures of the pipelines that are saved most: an LSTM alone, or with localized
attention without positions. Importing torch would take longer than segmenting a text.

The layers are functions of one document; each has a kernel in native/kernels/segmenter.cpp and plain
NumPy code for the case that the native library is missing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from neural.native.library import NativeFunction, native_available
from neural.tasks.segmentation.settings import SegmenterSettings

PADDING = 16
"""Kernels need rows of weights whose length is a multiple of this number."""
LAYER_NORM_EPSILON = 1e-5
"""The default of `torch.nn.LayerNorm`."""
_linear = NativeFunction("segmenter_linear", "pi pp p iii")
_lstm = NativeFunction("segmenter_lstm", "pi p pi iiii p")
_window_attention = NativeFunction("segmenter_window_attention", "ppp p ii iii f p")


class NumpySegmenter:
    """Network that predicts class logits for every element of a document."""

    def __init__(
        self, settings: SegmenterSettings, num_features: int, tensors: Mapping[str, np.ndarray]
    ) -> None:
        """Take the weights of a `Segmenter` with these settings, by the names of its state.

        ValueError if a weight is missing, superfluous or of another shape.
        """
        weights = _Weights(tensors)
        hidden, width = settings.hidden_dim, settings.attention_dim
        self.num_features = num_features
        self.mean = weights.take("mean", num_features)
        self.std = weights.take("std", num_features)
        self.lstm_layers = [
            BiLSTMLayer.from_weights(weights, layer, hidden, 2 * hidden if layer else num_features)
            for layer in range(settings.num_layers)
        ]
        self.attention: WindowAttentionBlock | None = None
        if settings.attention_enabled:
            self.attention = WindowAttentionBlock.from_weights(
                weights,
                input_width=2 * hidden,
                width=width,
                heads=settings.attention_heads,
                reach=settings.window_size // 2,
            )
        self.classifier = Linear.from_weights(
            weights, "classifier", weights.rows("classifier.bias"), 2 * hidden
        )
        weights.check_all_taken()

    @staticmethod
    def supports(settings: SegmenterSettings) -> bool:
        """True for the architectures of this class."""
        return not settings.attention_enabled or (
            settings.attention_type == "localized" and settings.positional_encoding is False
        )

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Class logits of one document, (T, C), float32, from its features, (T, F)."""
        if x.ndim != 2 or x.shape[1] != self.num_features:
            raise ValueError(
                f"the model takes (elements, {self.num_features}), got {tuple(x.shape)}"
            )
        hidden = (x.astype(np.float32) - self.mean) / self.std
        for layer in self.lstm_layers:
            hidden = layer(hidden)
        if self.attention is not None:
            hidden = self.attention(hidden)
        return self.classifier(hidden)


class NumpyEnsemble:
    """Several networks, whose mean log probabilities are the logits: see ensemble.py."""

    def __init__(self, members: Sequence[NumpySegmenter]) -> None:
        self.members = tuple(members)

    def logits(self, x: np.ndarray) -> np.ndarray:
        """Class logits of one document, (T, C), float32, from its features, (T, F)."""
        return np.mean([_log_softmax(member.logits(x)) for member in self.members], axis=0)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


class _Weights:
    """Tensors by name; remembers which of them were taken."""

    def __init__(self, tensors: Mapping[str, np.ndarray]) -> None:
        self._tensors, self._taken = tensors, set[str]()

    def take(self, name: str, *shape: int) -> np.ndarray:
        """A tensor as float32; ValueError for another shape."""
        tensor = self._get(name)
        if tensor.shape != shape:
            raise ValueError(f"{name} has the shape {tensor.shape}, not {shape}")
        self._taken.add(name)
        return np.ascontiguousarray(tensor, np.float32)

    def rows(self, name: str) -> int:
        """Length of a tensor."""
        return len(self._get(name))

    def check_all_taken(self) -> None:
        """ValueError if there are tensors that the network does not have."""
        superfluous = sorted(set(self._tensors) - self._taken)
        if superfluous:
            raise ValueError(f"the network has no {', '.join(superfluous)}")

    def _get(self, name: str) -> np.ndarray:
        if name not in self._tensors:
            raise ValueError(f"{name} is missing")
        return self._tensors[name]


@dataclass(frozen=True, eq=False)
class Linear:
    """x · weights + bias. Outputs are padded with zeros to a multiple of `PADDING`."""

    weights: np.ndarray
    """(inputs, padded outputs)."""
    bias: np.ndarray
    """(padded outputs,)."""
    outputs: int

    @classmethod
    def create(cls, weights: np.ndarray, bias: np.ndarray) -> Linear:
        """Layer from weights in torch's layout, (outputs, inputs)."""
        padding = -len(bias) % PADDING
        return cls(
            np.ascontiguousarray(np.pad(weights, ((0, padding), (0, 0))).T),
            np.pad(bias, (0, padding)),
            len(bias),
        )

    @classmethod
    def from_weights(cls, weights: _Weights, name: str, outputs: int, inputs: int) -> Linear:
        """Layer from `name.weight` and `name.bias`."""
        return cls.create(
            weights.take(f"{name}.weight", outputs, inputs), weights.take(f"{name}.bias", outputs)
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(T, inputs) → (T, outputs)."""
        return self.apply_padded(x)[:, : self.outputs]

    def apply_padded(self, x: np.ndarray) -> np.ndarray:
        """(T, inputs) → (T, padded outputs)."""
        if not native_available():
            return x @ self.weights + self.bias
        if x.strides[1] != x.itemsize:
            x = np.ascontiguousarray(x)
        out = np.empty((len(x), len(self.bias)), np.float32)
        _linear(
            x.ctypes.data,
            x.strides[0] // x.itemsize,
            self.weights.ctypes.data,
            self.bias.ctypes.data,
            out.ctypes.data,
            len(x),
            *self.weights.shape,
        )
        return out


@dataclass(frozen=True, eq=False)
class BiLSTMLayer:
    """One bidirectional LSTM layer with h hidden units in each direction.

    The gates of one direction are four groups (input, forget, cell, output) of p numbers, where p
    is h, padded with zeros to a multiple of `PADDING`.
    """

    input_projection: Linear
    """Products of the inputs for both directions, biases included: 2 · 4 · p outputs."""
    recurrent_weights: np.ndarray
    """(2, h, 4 · p)."""
    hidden: int

    @classmethod
    def from_weights(cls, weights: _Weights, layer: int, hidden: int, inputs: int) -> BiLSTMLayer:
        """Layer from the weights of a torch.nn.LSTM."""
        projections, biases, recurrent = [], [], []
        for suffix in (f"l{layer}", f"l{layer}_reverse"):
            name = f"lstm.cell.{{}}_{suffix}".format
            projections.append(weights.take(name("weight_ih"), 4 * hidden, inputs))
            recurrent.append(weights.take(name("weight_hh"), 4 * hidden, hidden))
            # torch has two biases; only their sum matters
            biases.append(
                weights.take(name("bias_ih"), 4 * hidden)
                + weights.take(name("bias_hh"), 4 * hidden)
            )
        projection = Linear.create(
            np.concatenate([_pad_gates(weight, hidden) for weight in projections]),
            np.concatenate([_pad_gates(bias, hidden) for bias in biases]),
        )
        recurrent_weights = np.stack([_pad_gates(weight, hidden).T for weight in recurrent])
        return cls(projection, np.ascontiguousarray(recurrent_weights), hidden)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(T, inputs) → hidden states of both directions, (T, 2 · h)."""
        gates = self.input_projection.apply_padded(x)
        width = gates.shape[1] // 2
        if not native_available():
            return self._run_in_numpy(gates)
        out = np.empty((len(x), 2 * self.hidden), np.float32)
        scratch = np.empty(6 * width // 4, np.float32)
        for direction in range(2):
            _lstm(
                gates[:, direction * width :].ctypes.data,
                gates.shape[1],
                self.recurrent_weights[direction].ctypes.data,
                out[:, direction * self.hidden :].ctypes.data,
                out.shape[1],
                len(x),
                self.hidden,
                width // 4,
                direction,
                scratch.ctypes.data,
            )
        return out

    def _run_in_numpy(self, gates: np.ndarray) -> np.ndarray:
        """Both directions step by step, side by side."""
        time = len(gates)
        padded = gates.shape[1] // 8
        # (T, 2, 1, 4 · p): the second direction reads the document from its end
        steps = gates.reshape(time, 2, 1, -1).copy()
        steps[:, 1] = steps[::-1, 1].copy()
        hidden, cell = np.zeros((2, 2, 1, padded), np.float32)
        out = np.empty((time, 2, self.hidden), np.float32)
        for step in range(time):
            sums = steps[step] + hidden[..., : self.hidden] @ self.recurrent_weights
            forward, forget, change, output = np.split(sums, 4, axis=-1)
            cell = _sigmoid(forget) * cell + _sigmoid(forward) * np.tanh(change)
            hidden = _sigmoid(output) * np.tanh(cell)
            out[step] = hidden[:, 0, : self.hidden]
        out[:, 1] = out[::-1, 1].copy()
        return out.reshape(time, -1)


def _pad_gates(weights: np.ndarray, hidden: int) -> np.ndarray:
    """Rows of four gates, each padded to a multiple of `PADDING`."""
    gates = weights.reshape(4, hidden, -1)
    padded = np.pad(gates, ((0, 0), (0, -hidden % PADDING), (0, 0)))
    return padded.reshape(-1, *weights.shape[1:])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    # tanh has no overflow
    return 0.5 + 0.5 * np.tanh(0.5 * x)


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowAttentionBlock:
    """Self-attention block with localized attention: `AttentionBlock` of model.py.

    x + output_projection(norm(y + attention(y))) with y = input_projection(x); without projections
    if the widths inside and outside are equal.
    """

    input_projection: Linear | None
    query_key_value: Linear
    """Three linear layers as one."""
    output: Linear
    norm_weight: np.ndarray
    norm_bias: np.ndarray
    output_projection: Linear | None
    heads: int
    reach: int
    """Largest distance of the elements that an element attends to."""

    @classmethod
    def from_weights(
        cls, weights: _Weights, *, input_width: int, width: int, heads: int, reach: int
    ) -> WindowAttentionBlock:
        """Block from the weights of an `AttentionBlock`."""
        if width % heads:
            raise ValueError(f"{heads} heads do not share a width of {width} evenly")
        names = [f"attention.heads.{name}" for name in ("query", "key", "value")]
        has_projections = width != input_width
        return cls(
            input_projection=Linear.from_weights(
                weights, "attention.input_projection", width, input_width
            )
            if has_projections
            else None,
            query_key_value=Linear.create(
                np.concatenate([weights.take(f"{name}.weight", width, width) for name in names]),
                np.concatenate([weights.take(f"{name}.bias", width) for name in names]),
            ),
            output=Linear.from_weights(weights, "attention.heads.output", width, width),
            norm_weight=weights.take("attention.norm.weight", width),
            norm_bias=weights.take("attention.norm.bias", width),
            output_projection=Linear.from_weights(
                weights, "attention.output_projection", input_width, width
            )
            if has_projections
            else None,
            heads=heads,
            reach=reach,
        )

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """(T, input width) → the same shape."""
        inner = x if self.input_projection is None else self.input_projection(x)
        normalized = self._normalize(inner + self.output(self._attend(inner)))
        if self.output_projection is not None:
            normalized = self.output_projection(normalized)
        return x + normalized

    def _normalize(self, x: np.ndarray) -> np.ndarray:
        """Layer norm."""
        centred = x - x.mean(axis=1, keepdims=True)
        variance = np.einsum("tw,tw->t", centred, centred)[:, None] / np.float32(x.shape[1])
        return centred / np.sqrt(variance + LAYER_NORM_EPSILON) * self.norm_weight + self.norm_bias

    def _attend(self, x: np.ndarray) -> np.ndarray:
        """Outputs of all heads side by side, (T, width)."""
        time, width = x.shape
        head_width = width // self.heads
        # Time is the last axis, with zeros on both sides for the windows of the first and the last
        # elements, and for whole vectors of the kernel.
        columns = np.zeros((3 * width, time + 2 * self.reach + PADDING), np.float32)
        columns[:, self.reach : self.reach + time] = self.query_key_value(x).T
        scale = head_width**-0.5
        if not native_available():
            return _attend_in_numpy(columns, time, self.heads, self.reach, scale)
        out = np.empty((width, columns.shape[1]), np.float32)
        scores = np.empty(PADDING * (2 * self.reach + 1), np.float32)
        query, key, value = columns.reshape(3, width, -1)
        _window_attention(
            query.ctypes.data,
            key.ctypes.data,
            value.ctypes.data,
            out.ctypes.data,
            time,
            columns.shape[1],
            self.heads,
            head_width,
            self.reach,
            scale,
            scores.ctypes.data,
        )
        return np.ascontiguousarray(out[:, self.reach : self.reach + time].T)


def _attend_in_numpy(
    columns: np.ndarray, time: int, heads: int, reach: int, scale: float
) -> np.ndarray:
    """Softmax attention to the positions at most `reach` away, (T, width).

    `columns` are queries, keys and values, (3 · width, reach + T + reach or more).
    """
    query, key, value = columns[:, : time + 2 * reach].reshape(3, heads, -1, time + 2 * reach)
    query = query[..., reach : reach + time]
    # One row per distance from −reach to reach: (heads, window, T).
    scores = np.stack(
        [
            np.einsum("hdt,hdt->ht", query, key[..., offset : offset + time])
            for offset in range(2 * reach + 1)
        ],
        axis=1,
    )
    positions = np.arange(time) + np.arange(-reach, reach + 1)[:, None]
    scores = np.where((positions >= 0) & (positions < time), scores * np.float32(scale), -np.inf)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    out = sum(
        weights[:, offset, None] * value[..., offset : offset + time]
        for offset in range(2 * reach + 1)
    )
    return np.asarray(out, np.float32).reshape(-1, time).T
