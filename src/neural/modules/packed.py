"""A GPT-like network packed for one compiled call per token (kernels/decoding.py).

What fits: token ids, positions that are added or rotary ones, decoder blocks of one size with plain attention and a
norm before each part, perhaps a last norm, an output. Everything else is decoded by `Cached`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from neural.modules.activations import SquaredReLU
from neural.modules.attention.causal import Causal
from neural.modules.attention.self import Self
from neural.modules.build import Built
from neural.modules.cache import Added
from neural.modules.decoding import Cached, unfit_for_cache
from neural.modules.late import late, nn, torch
from neural.modules.position import InsideAttention
from neural.modules.positions.rotary import RotaryPositions
from neural.modules.rounded import whole

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor

    from neural.modules.block import FeedForward
    from neural.modules.heads import Heads

kernel = late("neural.modules.kernels.decoding")
Precision = Literal["float32", "int8"]
Map = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A linear map: weights (row, feature), a scale and a bias for each row; of several layers, these first."""
RMS, LAYER = 1, 2
"""Kinds of norm, as the kernel knows them; 0 is none."""


@dataclass(frozen=True)
class Norm:
    """A norm, whichever: what the features are multiplied with and what is added."""

    kind: int
    scale: np.ndarray
    shift: np.ndarray
    epsilon: float


class Compiled(Cached):
    """Each token in one compiled call; the prompt by torch, into the same memory.

    The weights are copied when this is made: train on, and make it again.
    """

    def __init__(self, model: Built, context: int, precision: Precision = "float32") -> None:
        super().__init__(model, context)
        blocks: list[Any] = model.blocks()
        heads: list[Heads] = [one.attention.part for one in blocks]
        feeds: list[FeedForward] = [one.feed_forward.part for one in blocks]
        self.shape = _shape(blocks[0])
        self.angles = _angles(heads[0], context)
        self.table = _array(model.table())
        norms = [[_norm(one.attention.norm), _norm(one.feed_forward.norm)] for one in blocks]
        self.norms = (
            np.array([[norm.scale for norm in pair] for pair in norms]),
            np.array([[norm.shift for norm in pair] for pair in norms]), np.float32(norms[0][0].epsilon),
        )  # fmt: skip
        last = _last_norm(model)
        self.final = (last.kind, last.scale, last.shift, np.float32(last.epsilon))
        self.qkv = _stacked([_joined([one.query, one.key, one.value]) for one in heads], precision)
        self.mix = _stacked([_joined([one.output]) for one in heads], precision)
        self.up = _stacked([_joined([one.up]) for one in feeds], precision)
        self.down = _stacked([_joined([one.down]) for one in feeds], precision)
        weights, scale, bias = _stacked([_head(model)], precision)
        self.head = weights[0], scale[0], bias[0]
        self.room: tuple[np.ndarray, ...] = ()

    def first(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B V"]:
        """As without the kernel, with keys and values where it finds them."""
        attentions = list(self.twin.attentions.values())
        heads, samples = self.shape[0], len(ids)
        threads = kernel.threads(sum(one[0].size for one in (self.qkv, self.mix, self.up, self.down, self.head)))
        if not self.room or self.room[1].shape[:2] != (threads, samples):
            width = self.mix[0].shape[2] // heads
            self.memory = torch.zeros(2, len(attentions), samples, heads, self.context, width)
            self.room = self._room(samples, threads)
        for number, one in enumerate(attentions):
            one.keys.all, one.values.all = self.memory[0, number], self.memory[1, number]
        scores = super().first(ids)
        self.places = np.zeros((self.context, self.table.shape[1]), np.float32)
        for part in self.twin.parts:
            if isinstance(part, Added) and part.table is not None:
                self.places += _array(part.table)
        return scores

    def next(self, ids: Int[Tensor, " B"]) -> Float[Tensor, "B V"]:
        """One call."""
        keys, values = self.memory.numpy()
        begin, at = (self.table, self.places, self.angles), self.length - 1
        kernel.step(
            np.ascontiguousarray(ids.numpy()), at, self.shape, begin, self.qkv, self.mix, self.up, self.down,
            self.head, self.norms, self.final, (keys, values), self.room,
        )  # fmt: skip
        return torch.from_numpy(self.room[-1].copy())

    def _room(self, samples: int, threads: int) -> tuple[np.ndarray, ...]:
        """Where the kernel works."""
        width = self.table.shape[1]
        shapes = [
            (samples, width), (threads, samples, width), (samples, self.qkv[0].shape[1]),
            (samples, self.mix[0].shape[2]), (samples, self.up[0].shape[1]), (samples, self.shape[0], self.context),
            (samples, self.head[0].shape[0]),
        ]  # fmt: skip
        return tuple(np.zeros(shape, np.float32) for shape in shapes)


def unfit(model: Built) -> str | None:
    """Why a network does not fit the kernel; None where it does."""
    why = unfit_for_cache(model.network)
    if why is not None:
        return why
    if any(one.device.type != "cpu" or one.dtype != torch.float32 for one in model.parameters()):
        return "its weights are not 32-bit floats on the CPU"
    order = [placed.layer.role for placed in model.network.layers if type(placed.layer).__name__ != "Dropout"]
    kinds = "".join({"embedding": "e", "positions": "p", "decoder": "d"}.get(role, "o") for role in order)
    middle = kinds.removeprefix("e").lstrip("p").lstrip("d")
    if kinds[0] != "e" or "d" not in kinds or middle not in ("o", "oo"):
        return "it is not an embedding, positions, decoder blocks, perhaps a norm, and an output"
    if len(middle) == 2 and not isinstance(_before_last(model), nn.LayerNorm | nn.RMSNorm):
        return "between its blocks and its output stands something else than a norm"
    last = getattr(model, model.network.layers[-1].name)
    if not isinstance(getattr(last, "activation", None), nn.Identity):
        return "its output has an activation that the loss does not take over"
    if getattr(getattr(model, model.network.layers[0].name), "pad_id", None) is not None:
        return "it has padding"
    return _unfit_blocks(model)


def _unfit_blocks(model: Built) -> str | None:
    blocks: list[Any] = model.blocks()
    for block in blocks:
        heads = block.attention.part
        if type(heads.mechanism) not in (Self, Causal) or heads.learned is not None:
            return "its attention is not the plain one"
        if not (heads.position is None or _rotary(heads) or _does_nothing(heads.position)):
            return "its positions are neither added nor rotary"
        if not block.attention.pre or block.cross is not None:
            return "its norms do not stand before each part"
        if _activation(block) is None:
            return "its activation is none of relu, gelu, squared_relu, silu"
    norms = [norm for block in blocks for norm in (block.attention.norm, block.feed_forward.norm)]
    last = _last_norm(model)
    if len({(_norm(one).kind, _norm(one).epsilon) for one in norms}) > 1 or last.kind not in (0, _norm(norms[0]).kind):
        return "its norms are of two kinds"
    shapes = {tuple(weight.shape for weight in block.parameters()) for block in blocks}
    settings = {(_shape(block), _rotary(block.attention.part)) for block in blocks}
    return None if len(shapes) == len(settings) == 1 else "its blocks are of several kinds"


def _rotary(heads: Heads) -> float | None:
    """The base of rotary positions."""
    return heads.position.base if isinstance(heads.position, RotaryPositions) else None


def _does_nothing(position: InsideAttention) -> bool:
    """Whether nothing of it is its own: no positions."""
    names = ("rotate", "bias", "key_bias")
    return all(getattr(type(position), name) is getattr(InsideAttention, name) for name in names)


def _activation(block: Any) -> int | None:
    """Its number in the kernel: the place in this list."""
    found = block.feed_forward.part.activation
    known = (nn.ReLU, nn.GELU, SquaredReLU, nn.SiLU)
    exact = getattr(found, "approximate", "none") == "none"
    return next((number for number, kind in enumerate(known) if isinstance(found, kind) and exact), None)


def _shape(block: Any) -> tuple[int, int, int, bool, int]:
    """What the kernel calls so."""
    heads = block.attention.part
    count = heads.query.out_features // heads.head_width
    activation = _activation(block)
    assert activation is not None
    return count, count // heads.groups, _norm(block.attention.norm).kind, heads.qk_norm, activation


def _angles(heads: Heads, context: int) -> np.ndarray:
    """Cosine and sine of rotary positions (2, position, pair), by turning (1, 0); no pairs where nothing turns."""
    if not _rotary(heads):
        return np.zeros((2, context, 0), np.float32)
    half = heads.head_width // 2
    flat = torch.cat((torch.ones(1, 1, context, half), torch.zeros(1, 1, context, half)), dim=-1)
    assert heads.position is not None
    turned = heads.position.rotate(flat, 0)[0, 0]
    return np.ascontiguousarray(np.stack((_array(turned[:, :half]), _array(turned[:, half:]))))


def _norm(norm: Any) -> Norm:
    weight, bias = norm.weight, getattr(norm, "bias", None)
    kind = LAYER if isinstance(norm, nn.LayerNorm) else RMS
    epsilon = norm.eps if norm.eps is not None else float(torch.finfo(torch.float32).eps)
    width = norm.normalized_shape[-1]
    return Norm(
        kind, np.ones(width, np.float32) if weight is None else _array(weight),
        np.zeros(width, np.float32) if bias is None else _array(bias), epsilon,
    )  # fmt: skip


def _before_last(model: Built) -> Any:
    """The module before the output, dropout left out."""
    layers = [one for one in model.network.layers if type(one.layer).__name__ != "Dropout"]
    return getattr(model, layers[-2].name)


def _last_norm(model: Built) -> Norm:
    """The one before the output; of kind 0 where there is none."""
    found = _before_last(model)
    if isinstance(found, nn.LayerNorm | nn.RMSNorm):
        return _norm(found)
    nothing = np.zeros(model.table().shape[1], np.float32)
    return Norm(0, nothing, nothing, 1.0)


def _head(model: Built) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias of the output; of a tied one, the embedding's."""
    placed = model.network.layers[-1]
    module = getattr(model, placed.name)
    if not placed.layer.uses_table:
        return _joined([module.linear])
    weights = _array(model.table())
    return weights, np.zeros(len(weights), np.float32) if module.bias is None else _array(module.bias)


def _joined(maps: list[nn.Linear]) -> tuple[np.ndarray, np.ndarray]:
    """Several linear maps of one input as one: weights and bias."""
    weights = np.concatenate([_array(one.weight) for one in maps])
    nothing = [np.zeros(one.out_features, np.float32) if one.bias is None else _array(one.bias) for one in maps]
    return weights, np.concatenate(nothing)


def _stacked(maps: list[tuple[np.ndarray, np.ndarray]], precision: Precision) -> Map:
    """One map per layer."""
    weights, bias = np.stack([one for one, _ in maps]), np.stack([one for _, one in maps])
    if precision == "float32":
        return weights, np.ones(weights.shape[:2], np.float32), bias
    return *whole(weights), bias


def _array(tensor: Tensor) -> np.ndarray:
    return tensor.detach().float().cpu().contiguous().numpy()
