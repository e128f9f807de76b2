"""Decoder of GPT-like networks with one compiled call per token (kernels/decode_step.py).

Supported networks take token ids and have additive or rotary positions, pre-norm decoder blocks of
one size with softmax attention, an optional final norm, and an output layer. For others,
`find_compile_obstacle` returns the reason, and sampling.py has decoders in torch.

A sample is one of the texts that are generated together. Tuples of arrays are arguments of the
numba kernel, which cannot take our classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neural.nn.activations import SquaredReLU
from neural.nn.attention.causal import Causal
from neural.nn.attention.self import Self
from neural.nn.build import NetworkModule
from neural.nn.kv_cache import CachedPositions
from neural.nn.lazy_torch import nn, torch
from neural.nn.position import AttentionPositions
from neural.nn.positions.rotary import RotaryPositions
from neural.nn.quantization import quantize_rows
from neural.nn.sampling import CachedDecoder, find_cache_obstacle

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.nn.multi_head_attention import MultiHeadAttentionModule
    from neural.nn.transformer_block import FeedForward

Precision = Literal["float32", "int8"]
LinearWeights = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The same linear map of all blocks: weights (block, row, feature), scale and bias (block, row).

A row computes one output feature: weights·input · scale + bias. Scales are 1 unless the weights are
8-bit integers.
"""
RMS_NORM, LAYER_NORM = 1, 2
"""Codes of the norms in kernels/decode_step.py; 0 is no norm."""


@dataclass(frozen=True)
class NormWeights:
    """A layer norm or RMS norm as arrays."""

    kind: int
    """`RMS_NORM`, `LAYER_NORM` or 0."""
    scale: np.ndarray
    shift: np.ndarray
    epsilon: float


class CompiledDecoder(CachedDecoder):
    """Reads the prompt with torch and each further token with one compiled call.

    Both write keys and values to the same tensor, `kv_memory`. The constructor copies the weights:
    after further training, create a new decoder.
    """

    def __init__(
        self, model: NetworkModule, context: int, precision: Precision = "float32"
    ) -> None:
        super().__init__(model, context)
        blocks: list[Any] = model.blocks()
        attentions: list[MultiHeadAttentionModule] = [block.attention.sublayer for block in blocks]
        feed_forwards: list[FeedForward] = [block.feed_forward.sublayer for block in blocks]
        self.block_config = _block_config(blocks[0])
        self.rotary_angles = _rotary_angles(attentions[0], context)
        self.token_table = _to_numpy(model.embedding_weight())
        norms = [
            [_norm_weights(block.attention.norm), _norm_weights(block.feed_forward.norm)]
            for block in blocks
        ]
        # Scale and shift, each (block, 2, feature), and epsilon. The second axis is the norm before
        # attention and the norm before the feed-forward network.
        self.norms = (
            np.array([[norm.scale for norm in pair] for pair in norms]),
            np.array([[norm.shift for norm in pair] for pair in norms]),
            np.float32(norms[0][0].epsilon),
        )
        final_norm = _final_norm(model)
        self.final_norm = (
            final_norm.kind,
            final_norm.scale,
            final_norm.shift,
            np.float32(final_norm.epsilon),
        )
        self.qkv = _stack_layers(
            [_concat_linears([module.query, module.key, module.value]) for module in attentions],
            precision,
        )
        self.attention_output = _stack_layers(
            [_concat_linears([module.output]) for module in attentions], precision
        )
        self.up = _stack_layers(
            [_concat_linears([module.up]) for module in feed_forwards], precision
        )
        self.down = _stack_layers(
            [_concat_linears([module.down]) for module in feed_forwards], precision
        )
        weights, scale, bias = _stack_layers([_output_weights(model)], precision)
        self.output_layer = weights[0], scale[0], bias[0]  # without the axis of blocks
        self.workspace: tuple[np.ndarray, ...] = ()
        """Arrays that the kernel writes; allocated by `prefill`."""

    def prefill(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """`CachedDecoder.prefill`, with keys and values in `kv_memory`, which the kernel reads."""
        from neural.nn.kernels import decode_step

        mechanisms = list(self.cached_model.attentions.values())
        heads, samples = self.block_config[0], len(ids)
        linears = (self.qkv, self.attention_output, self.up, self.down, self.output_layer)
        threads = decode_step.set_thread_count(sum(linear[0].size for linear in linears))
        if not self.workspace or self.workspace[1].shape[:2] != (threads, samples):
            head_width = self.attention_output[0].shape[2] // heads
            # per query head: keys and values are cached after they are repeated for their group
            self.kv_memory = torch.zeros(
                2, len(mechanisms), samples, heads, self.context, head_width
            )
            self.workspace = self._allocate_workspace(samples, threads)
        # Let the caches of the torch modules write to the kernel's memory: torch reads the prompt,
        # the kernel continues with the next position.
        for layer, mechanism in enumerate(mechanisms):
            mechanism.keys.storage = self.kv_memory[0, layer]
            mechanism.values.storage = self.kv_memory[1, layer]
        logits = super().prefill(ids)
        self.position_table = np.zeros((self.context, self.token_table.shape[1]), np.float32)
        for module in self.cached_model.stateful_modules:
            if isinstance(module, CachedPositions) and module.table is not None:
                self.position_table += _to_numpy(module.table)
        return logits

    def decode_next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Logits after one more token per sample, by one compiled call."""
        from neural.nn.kernels import decode_step

        keys, values = self.kv_memory.numpy()
        decode_step.step(
            np.ascontiguousarray(ids.numpy()),
            self.length - 1,
            self.block_config,
            (self.token_table, self.position_table, self.rotary_angles),
            self.qkv,
            self.attention_output,
            self.up,
            self.down,
            self.output_layer,
            self.norms,
            self.final_norm,
            (keys, values),
            self.workspace,
        )
        return torch.from_numpy(self.workspace[-1].copy())

    def _allocate_workspace(self, samples: int, threads: int) -> tuple[np.ndarray, ...]:
        """Arrays that the kernel writes, in the order that `decode_step.step` documents."""
        width = self.token_table.shape[1]
        shapes = [
            (samples, width),
            (threads, samples, width),
            (samples, self.qkv[0].shape[1]),
            (samples, self.attention_output[0].shape[2]),
            (samples, self.up[0].shape[1]),
            (samples, self.block_config[0], self.context),
            (samples, self.output_layer[0].shape[0]),
        ]
        return tuple(np.zeros(shape, np.float32) for shape in shapes)


def find_compile_obstacle(model: NetworkModule) -> str | None:
    """Why the compiled decoder does not support a network, as a message; None if it does."""
    obstacle = find_cache_obstacle(model.network)
    if obstacle is not None:
        return obstacle
    if any(
        param.device.type != "cpu" or param.dtype != torch.float32 for param in model.parameters()
    ):
        return "its weights are not 32-bit floats on the CPU"
    roles = [
        placed_layer.layer.role
        for placed_layer in model.network.layers
        if type(placed_layer.layer).__name__ != "Dropout"
    ]
    # The order of the layers as a string: e embedding, p positions, d decoder block, o other.
    letters = "".join(
        {"embedding": "e", "positions": "p", "decoder": "d"}.get(role, "o") for role in roles
    )
    after_blocks = letters.removeprefix("e").lstrip("p").lstrip("d")
    if letters[0] != "e" or "d" not in letters or after_blocks not in ("o", "oo"):
        return "it is not an embedding, positions, decoder blocks, an optional norm and an output"
    if len(after_blocks) == 2 and not isinstance(
        _module_before_output(model), nn.LayerNorm | nn.RMSNorm
    ):
        return "the layer between its blocks and its output is not a norm"
    output = getattr(model, model.network.layers[-1].name)
    if not isinstance(getattr(output, "activation", None), nn.Identity):
        return "its output has an activation that the loss does not contain"
    if getattr(getattr(model, model.network.layers[0].name), "pad_id", None) is not None:
        return "it has padding"
    return _find_block_obstacle(model)


def _find_block_obstacle(model: NetworkModule) -> str | None:
    """Why the kernel does not support the blocks of a network; None if it does."""
    blocks: list[Any] = model.blocks()
    for block in blocks:
        attention = block.attention.sublayer
        # `learned` is the module with the mechanism's own parameters
        if type(attention.mechanism) not in (Self, Causal) or attention.learned is not None:
            return "its attention is not plain self-attention"
        position = attention.position
        if not (position is None or _rotary_base(attention) or _is_identity(position)):
            return "its positions are neither additive nor rotary"
        if not block.attention.pre or block.cross is not None:
            return "its blocks are not pre-norm, or have cross-attention"
        if _activation_code(block) is None:
            return "its activation is none of relu, gelu, squared_relu, silu"
    norms = [norm for block in blocks for norm in (block.attention.norm, block.feed_forward.norm)]
    kinds = {(_norm_weights(norm).kind, _norm_weights(norm).epsilon) for norm in norms}
    if len(kinds) > 1 or _final_norm(model).kind not in (0, _norm_weights(norms[0]).kind):
        return "it has norms of different kinds"
    shapes = {tuple(weight.shape for weight in block.parameters()) for block in blocks}
    configs = {(_block_config(block), _rotary_base(block.attention.sublayer)) for block in blocks}
    return None if len(shapes) == len(configs) == 1 else "its blocks differ"


def _rotary_base(attention: MultiHeadAttentionModule) -> float | None:
    """The base of rotary positions; None for other positions."""
    position = attention.position
    return position.base if isinstance(position, RotaryPositions) else None


def _is_identity(position: AttentionPositions) -> bool:
    """Whether positions change nothing: no method is overridden."""
    names = ("rotate", "bias", "key_bias")
    return all(getattr(type(position), name) is getattr(AttentionPositions, name) for name in names)


def _activation_code(block: Any) -> int | None:
    """Code of the activation in kernels/decode_step.py: its index in `supported`, or None."""
    activation = block.feed_forward.sublayer.activation
    supported = (nn.ReLU, nn.GELU, SquaredReLU, nn.SiLU)
    is_exact = getattr(activation, "approximate", "none") == "none"
    return next(
        (code for code, cls in enumerate(supported) if isinstance(activation, cls) and is_exact),
        None,
    )


def _block_config(block: Any) -> tuple[int, int, int, bool, int]:
    """The `config` argument of `decode_step.step`.

    Number of heads, number of key/value heads, code of the norms, whether queries and keys are
    normalized, code of the activation.
    """
    attention = block.attention.sublayer
    num_heads = attention.query.out_features // attention.head_width
    activation = _activation_code(block)
    assert activation is not None
    return (
        num_heads,
        num_heads // attention.groups,
        _norm_weights(block.attention.norm).kind,
        attention.qk_norm,
        activation,
    )


def _rotary_angles(attention: MultiHeadAttentionModule, context: int) -> np.ndarray:
    """Cosine and sine of rotary positions (2, position, pair); 0 pairs without rotation."""
    if not _rotary_base(attention):
        return np.zeros((2, context, 0), np.float32)
    half = attention.head_width // 2
    # Rotating the vector (1, 0) of each pair gives (cos, sin).
    unit = torch.cat((torch.ones(1, 1, context, half), torch.zeros(1, 1, context, half)), dim=-1)
    assert attention.position is not None
    rotated = attention.position.rotate(unit, 0)[0, 0]
    return np.ascontiguousarray(
        np.stack((_to_numpy(rotated[:, :half]), _to_numpy(rotated[:, half:])))
    )


def _norm_weights(norm: Any) -> NormWeights:
    """The weights of an `nn.LayerNorm` or `nn.RMSNorm`; by default scale 1 and shift 0."""
    weight, bias = norm.weight, getattr(norm, "bias", None)
    kind = LAYER_NORM if isinstance(norm, nn.LayerNorm) else RMS_NORM
    epsilon = norm.eps if norm.eps is not None else float(torch.finfo(torch.float32).eps)
    width = norm.normalized_shape[-1]
    return NormWeights(
        kind,
        np.ones(width, np.float32) if weight is None else _to_numpy(weight),
        np.zeros(width, np.float32) if bias is None else _to_numpy(bias),
        epsilon,
    )


def _module_before_output(model: NetworkModule) -> Any:
    """The module before the output layer; dropout layers are skipped."""
    names = [
        placed_layer.name
        for placed_layer in model.network.layers
        if type(placed_layer.layer).__name__ != "Dropout"
    ]
    return getattr(model, names[-2])


def _final_norm(model: NetworkModule) -> NormWeights:
    """The norm before the output layer; kind 0 if there is none."""
    module = _module_before_output(model)
    if isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return _norm_weights(module)
    unused = np.zeros(model.embedding_weight().shape[1], np.float32)
    return NormWeights(0, unused, unused, 1.0)


def _output_weights(model: NetworkModule) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias of the output layer; a tied one has the embedding's weights."""
    placed_layer = model.network.layers[-1]
    module = getattr(model, placed_layer.name)
    if not placed_layer.layer.uses_embedding_table:
        return _concat_linears([module.linear])
    weights = _to_numpy(model.embedding_weight())
    has_bias = module.bias is not None
    return weights, _to_numpy(module.bias) if has_bias else np.zeros(len(weights), np.float32)


def _concat_linears(linears: list[nn.Linear]) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias of one linear map that concatenates the outputs of several."""
    weights = np.concatenate([_to_numpy(linear.weight) for linear in linears])
    biases = [
        np.zeros(linear.out_features, np.float32) if linear.bias is None else _to_numpy(linear.bias)
        for linear in linears
    ]
    return weights, np.concatenate(biases)


def _stack_layers(
    linears: list[tuple[np.ndarray, np.ndarray]], precision: Precision
) -> LinearWeights:
    """Weights, scale and bias with blocks as first axis, quantized for "int8".

    `linears` are the (weights, bias) of each block.
    """
    weights = np.stack([weights for weights, _ in linears])
    bias = np.stack([bias for _, bias in linears])
    if precision == "float32":
        return weights, np.ones(weights.shape[:2], np.float32), bias
    return *quantize_rows(weights), bias


def _to_numpy(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().contiguous().numpy()
