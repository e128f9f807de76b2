"""Decoder of GPT-like networks with one call of a native kernel per token (kernels/decode_step.py).

Supported networks take token ids and have additive or rotary positions, pre-norm decoder blocks of
one size with softmax attention, an optional final norm, and an output layer. For others,
`find_compile_obstacle` returns the reason, and sampling.py has decoders in torch.

A sample is one of the texts that are generated together.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from neural.nn.activations import SquaredReLU
from neural.nn.attention.causal import Causal
from neural.nn.attention.self import Self
from neural.nn.build import NetworkModule
from neural.nn.kernels import decode_step
from neural.nn.kernels.decode_step import GROUP, pad_to_groups
from neural.nn.kv_cache import copy_sharing_weights
from neural.nn.lazy_torch import nn, torch
from neural.nn.position import AttentionPositions
from neural.nn.positions.rotary import RotaryPositions
from neural.nn.quantization import quantize_dequantize, quantize_rows
from neural.nn.sampling import TokenDecoder, find_cache_obstacle

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.nn.multi_head_attention import MultiHeadAttentionModule
    from neural.nn.transformer_block import FeedForward

Precision = Literal["float32", "int8"]
RMS_NORM, LAYER_NORM = 1, 2
"""Codes of the norms in native/kernels/decode_step.cpp; 0 is no norm."""
MAX_PROMPT_ROWS = 128
"""Tokens of a prompt, of all samples together, that the kernel reads at a time.

Enough to use each weight for many tokens; few enough for their activations to stay in the caches.
"""


@dataclass(frozen=True)
class NormWeights:
    """A layer norm or RMS norm."""

    kind: int
    """`RMS_NORM`, `LAYER_NORM` or 0."""
    scale: Tensor
    shift: Tensor
    epsilon: float


class BlockConfig(NamedTuple):
    """What the kernel must know of a block besides its weights."""

    heads: int
    kv_heads: int
    norm_kind: int
    qk_norm: bool
    activation: int
    """Code in native/kernels/decode_step.cpp."""


class CompiledDecoder(TokenDecoder):
    """Reads prompts and single tokens with a native kernel.

    The constructor copies the weights: after further training, create a new decoder. With "int8"
    the kernel computes with the weights of `quantize_model(model)`, in 32-bit floats.
    """

    def __init__(
        self, model: NetworkModule, context: int, precision: Precision = "float32"
    ) -> None:
        super().__init__(model, context)
        self.precision: Precision = precision
        self.num_weights = 0
        """Weights that a step reads, with padding."""
        self._weight_tensors: list[Tensor] = []
        """Memory that `_network` points to."""
        with torch.inference_mode():
            self._network = self._collect_network(model)
        self._state = decode_step.StateArguments()
        """Key/value cache and workspace for `_samples` and `_threads`; allocated by `prefill`."""
        self._state_tensors: dict[str, Tensor] = {}
        self._samples = self._threads = 0

    def prefill(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """Logits after a text; its keys and values replace those of the text before."""
        samples, length = ids.shape
        threads = decode_step.count_threads(self.num_weights)
        if (self._samples, self._threads) != (samples, threads):
            self._allocate_state(samples, threads)
        chunk_length = max(1, MAX_PROMPT_ROWS // samples)
        *starts, last_start = range(0, length, chunk_length)
        for start in starts:
            self._read(ids[:, start : start + chunk_length], start, None)
        return self._compute_logits(ids[:, last_start:], last_start)

    def decode_next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """Logits after one more token per sample."""
        if self.length > self.context:
            raise ValueError(f"the cache holds {self.context} positions, got {self.length}")
        return self._compute_logits(ids.unsqueeze(-1), self.length - 1)

    def _compute_logits(self, ids: Int[Tensor, "B T"], position: int) -> Float[Tensor, "B V"]:
        """Logits after tokens that start at `position`."""
        logits = torch.empty(len(ids), self._network.output.groups * GROUP)
        self._read(ids, position, logits)
        return logits[:, : self._vocab_size]

    def _read(self, ids: Int[Tensor, "B T"], position: int, logits: Tensor | None) -> None:
        """Read tokens that start at `position`; write padded logits if they are wanted."""
        samples, count = ids.shape
        if samples != self._samples:
            raise ValueError(f"expected ids of {self._samples} samples, got {samples}")
        numbers = ids.reshape(-1).tolist()  # for few ids this is faster than torch.aminmax
        if min(numbers) < 0 or max(numbers) >= self._num_embeddings:
            raise IndexError(f"token ids must be from 0 to {self._num_embeddings - 1}: {numbers}")
        ids = ids.to("cpu", torch.int64).contiguous()
        decode_step.run_step(
            ctypes.byref(self._network),
            ctypes.byref(self._state),
            ids.data_ptr(),
            samples,
            count,
            position,
            None if logits is None else logits.data_ptr(),
            self._threads,
        )

    def _allocate_state(self, samples: int, threads: int) -> None:
        """Allocate the key/value cache and the workspace for a number of samples."""
        network = self._network
        rows = max(samples, min(MAX_PROMPT_ROWS, samples * self.context))
        slots = max(rows, threads)  # a single row is computed by each thread for itself
        positions, head_width = pad_to_groups(self.context), pad_to_groups(network.head_width)
        heads = network.layers * samples * network.kv_heads
        width = pad_to_groups(network.width)
        linears = (network.qkv, network.attention_output, network.up, network.down, network.output)
        plane_size = decode_step.PLANES * max(linear.width for linear in linears)
        # queries, weighted sums of values, attention weights
        scratch_size = decode_step.MAX_QUERY_TILE * (2 * head_width + positions)
        sizes = {
            "keys": heads * positions * network.head_width,
            "values": heads * positions * head_width,
            "x": rows * width,
            "normed": slots * width,
            "projected": rows * network.qkv.groups * GROUP,
            "attended": rows * network.attention_output.width,
            "hidden": rows * network.up.groups * GROUP,
            "scratch": threads * scratch_size,
            "planes": slots * plane_size // 4,
            "plane_scale": slots,
        }
        # zeros: padded features are never written, and must not be NaN
        self._state_tensors = {
            name: decode_step.allocate_zeros((size,), torch.float32) for name, size in sizes.items()
        }
        addresses = {name: tensor.data_ptr() for name, tensor in self._state_tensors.items()}
        self._state = decode_step.StateArguments(
            **addresses, scratch_size=scratch_size, plane_size=plane_size
        )
        self._samples, self._threads = samples, threads

    def _collect_network(self, model: NetworkModule) -> decode_step.NetworkArguments:
        """The argument of the kernel that describes the network."""
        blocks: list[Any] = model.blocks()
        attentions: list[MultiHeadAttentionModule] = [block.attention.sublayer for block in blocks]
        feed_forwards: list[FeedForward] = [block.feed_forward.sublayer for block in blocks]
        config, final_norm = _block_config(blocks[0]), _final_norm(model)
        norms = [
            _norm_weights(sublayer.norm)
            for block in blocks
            for sublayer in (block.attention, block.feed_forward)
        ]
        cosine, sine = _rotary_angles(attentions[0], self.context)
        token_table, output = _to_float(model.embedding_weight()), _output_weights(model)
        if self.precision == "int8" and model.network.layers[-1].layer.uses_embedding_table:
            token_table = quantize_dequantize(token_table)
        self._num_embeddings, self._vocab_size = len(token_table), len(output[0])
        return decode_step.NetworkArguments(
            layers=len(blocks),
            heads=config.heads,
            kv_heads=config.kv_heads,
            head_width=attentions[0].head_width,
            width=token_table.shape[1],
            context=self.context,
            rotary_pairs=cosine.shape[1],
            norm_kind=config.norm_kind,
            final_norm_kind=final_norm.kind,
            qk_norm=config.qk_norm,
            activation=config.activation,
            is_int8=self.precision == "int8",
            epsilon=norms[0].epsilon,
            final_epsilon=final_norm.epsilon,
            token_table=self._keep(token_table),
            position_table=self._keep(_position_table(model, self.context)),
            cosine=self._keep(cosine),
            sine=self._keep(sine),
            norm_scale=self._keep(torch.stack([norm.scale for norm in norms])),
            norm_shift=self._keep(torch.stack([norm.shift for norm in norms])),
            final_scale=self._keep(final_norm.scale),
            final_shift=self._keep(final_norm.shift),
            qkv=self._pack_linears(
                [_concat_linears([module.query, module.key, module.value]) for module in attentions]
            ),
            attention_output=self._pack_linears(
                [_concat_linears([module.output]) for module in attentions]
            ),
            up=self._pack_linears([_concat_linears([module.up]) for module in feed_forwards]),
            down=self._pack_linears([_concat_linears([module.down]) for module in feed_forwards]),
            output=self._pack_linears([output]),
        )

    def _keep(self, tensor: Tensor) -> int:
        """Address of the values; they stay allocated as long as the decoder."""
        self._weight_tensors.append(tensor.contiguous())
        return self._weight_tensors[-1].data_ptr()

    def _pack_linears(self, linears: list[tuple[Tensor, Tensor]]) -> decode_step.LinearArguments:
        """The linear map of all blocks, given as (weights, bias) of each, quantized for "int8"."""
        rows, width = linears[0][0].shape
        groups, is_int8 = pad_to_groups(rows) // GROUP, self.precision == "int8"
        set_size = decode_step.INT8_FEATURES if is_int8 else 1
        sets = -(-width // set_size)
        weights = decode_step.allocate_zeros(
            (len(linears), groups, sets, GROUP, set_size), torch.int8 if is_int8 else torch.float32
        )
        scale, bias, sums = (torch.zeros(len(linears), groups * GROUP) for _ in range(3))
        for layer, (matrix, layer_bias) in enumerate(linears):
            values = matrix
            if is_int8:
                values, scale[layer, :rows] = quantize_rows(matrix)
                sums[layer, :rows] = values.sum(dim=-1)  # exact in a float: below 2²⁴
            decode_step.pack_groups(values, weights[layer])
            bias[layer, :rows] = layer_bias
        self.num_weights += weights.numel()
        return decode_step.LinearArguments(
            weights=self._keep(weights),
            scale=self._keep(scale),
            weight_sums=self._keep(sums.int()),
            bias=self._keep(bias),
            groups=groups,
            width=sets * set_size,
        )


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
    widths = [weight.shape[-1] for block in blocks for weight in block.parameters()]
    if max(widths) > decode_step.MAX_WIDTH:
        return f"its layers have more than {decode_step.MAX_WIDTH:,} inputs"
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
    """Code of the activation in native/kernels/decode_step.cpp: its index in `supported`, or None."""
    activation = block.feed_forward.sublayer.activation
    supported = (nn.ReLU, nn.GELU, SquaredReLU, nn.SiLU)
    is_exact = getattr(activation, "approximate", "none") == "none"
    return next(
        (code for code, cls in enumerate(supported) if isinstance(activation, cls) and is_exact),
        None,
    )


def _block_config(block: Any) -> BlockConfig:
    """The configuration of a supported block."""
    attention = block.attention.sublayer
    num_heads = attention.query.out_features // attention.head_width
    activation = _activation_code(block)
    assert activation is not None
    return BlockConfig(
        num_heads,
        num_heads // attention.groups,
        _norm_weights(block.attention.norm).kind,
        attention.qk_norm,
        activation,
    )


def _rotary_angles(attention: MultiHeadAttentionModule, context: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of rotary positions (position, pair); 0 pairs without rotation."""
    if not _rotary_base(attention):
        return torch.zeros(context, 0), torch.zeros(context, 0)
    half = attention.head_width // 2
    # Rotating the vector (1, 0) of each pair gives (cos, sin).
    unit = torch.cat((torch.ones(1, 1, context, half), torch.zeros(1, 1, context, half)), dim=-1)
    assert attention.position is not None
    rotated = _to_float(attention.position.rotate(unit, 0)[0, 0])
    return rotated[:, :half], rotated[:, half:]


def _position_table(model: NetworkModule, context: int) -> Float[Tensor, "T E"]:
    """What additive positions add to the embedding: the output of their layers for zeros."""
    zeros = torch.zeros(1, context, model.embedding_weight().shape[1])
    table = zeros[0]
    for placed_layer in model.network.layers:
        if placed_layer.layer.role == "positions":
            positions = copy_sharing_weights(getattr(model, placed_layer.name)).eval()
            table = table + positions(zeros)[0]
    return table


def _norm_weights(norm: Any) -> NormWeights:
    """The weights of an `nn.LayerNorm` or `nn.RMSNorm`; by default scale 1 and shift 0."""
    weight, bias = norm.weight, getattr(norm, "bias", None)
    kind = LAYER_NORM if isinstance(norm, nn.LayerNorm) else RMS_NORM
    epsilon = norm.eps if norm.eps is not None else float(torch.finfo(torch.float32).eps)
    width = norm.normalized_shape[-1]
    return NormWeights(
        kind,
        torch.ones(width) if weight is None else _to_float(weight),
        torch.zeros(width) if bias is None else _to_float(bias),
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
    unused = torch.zeros(model.embedding_weight().shape[1])
    return NormWeights(0, unused, unused, 1.0)


def _output_weights(model: NetworkModule) -> tuple[Tensor, Tensor]:
    """Weights and bias of the output layer; a tied one has the embedding's weights."""
    placed_layer = model.network.layers[-1]
    module = getattr(model, placed_layer.name)
    if not placed_layer.layer.uses_embedding_table:
        return _concat_linears([module.linear])
    weights = _to_float(model.embedding_weight())
    return weights, torch.zeros(len(weights)) if module.bias is None else _to_float(module.bias)


def _concat_linears(linears: list[nn.Linear]) -> tuple[Tensor, Tensor]:
    """Weights and bias of one linear map that concatenates the outputs of several."""
    weights = torch.cat([_to_float(linear.weight) for linear in linears])
    biases = [
        torch.zeros(linear.out_features) if linear.bias is None else _to_float(linear.bias)
        for linear in linears
    ]
    return weights, torch.cat(biases)


def _to_float(tensor: Tensor) -> Tensor:
    return tensor.detach().float().cpu().contiguous()
