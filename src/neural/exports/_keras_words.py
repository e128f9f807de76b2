"""Our layers in Keras' words: Keras' layer of the same meaning, with our weights. Nothing of ours is in the file.

Each function takes what comes in, a module of ours and a name, and gives what comes out. A layer that is called
twice, as by two sequences, is made once.
"""

from __future__ import annotations

import os
from math import ceil
from typing import TYPE_CHECKING, Any

from neural.exports._keras_attention import attention_words
from neural.modules.late import late, nn, torch
from neural.modules.positions.learned import LearnedPositions
from neural.modules.positions.sinusoidal import SinusoidalPositions

if TYPE_CHECKING:
    from neural.modules.block import FeedForward, ResidualNorm
    from neural.modules.recurrence import Recurrence

os.environ.setdefault("KERAS_BACKEND", "torch")
keras = late("keras")
LEAK = 0.01
"""torch's slope below zero; Keras' own is 0.3."""


class Words:
    """A dialogue with Keras: layers that were made, by name."""

    def __init__(self) -> None:
        self.made: dict[str, Any] = {}
        self.layers, self.ops = keras.layers, keras.ops

    def put(self, kind: str, name: str, x: Any, weights: list[Any], *arguments: Any, **named: Any) -> Any:
        """Call Keras' layer of that kind, and give it weights; `call` names what it is called with beside `x`."""
        call = named.pop("call", {})
        if name in self.made:
            return self.made[name](x, **call)
        made = self.made[name] = getattr(self.layers, kind)(*arguments, name=name, **named)
        gives = made(x, **call)
        made.set_weights([one.detach().numpy() if hasattr(one, "detach") else one for one in weights])
        return gives

    def dense(self, x: Any, linear: nn.Linear, name: str) -> Any:
        """x·W + b."""
        weights = [linear.weight.T] + ([] if linear.bias is None else [linear.bias])
        return self.put("Dense", name, x, weights, linear.out_features, use_bias=linear.bias is not None)

    def activation(self, x: Any, module: nn.Module) -> Any:
        """By the class of torch's."""
        kind, ops = type(module).__name__, self.ops
        if kind == "Identity":
            return x
        if kind == "SquaredReLU":
            return ops.square(ops.relu(x))
        if kind == "LeakyReLU":
            return ops.leaky_relu(x, negative_slope=LEAK)
        if kind == "GELU":
            return ops.gelu(x, approximate=False)
        return getattr(ops, kind.lower())(x)

    def norm(self, x: Any, module: nn.Module, name: str) -> Any:
        """Of layers or of mean squares."""
        if isinstance(module, nn.RMSNorm):
            return self.put("RMSNormalization", name, x, [module.weight], epsilon=module.eps)
        assert isinstance(module, nn.LayerNorm)
        weights = [module.weight] + ([] if module.bias is None else [module.bias])
        centred = module.bias is not None
        return self.put("LayerNormalization", name, x, weights, epsilon=module.eps, center=centred)

    def places(self, x: Any) -> Any:
        """0, 1, 2, … for each sequence, whatever its length."""
        ones = self.ops.ones_like(x[:, :, 0])
        return self.ops.cumsum(ones, axis=1) - 1

    def positions(self, x: Any, module: nn.Module, name: str) -> Any:
        """Added: waves, whose rates are weights that do not learn; or rows of a table."""
        if isinstance(module, SinusoidalPositions):
            width = x.shape[-1]
            rates = torch.exp(torch.arange(0, width, 2, dtype=torch.float32) * (-9.210340371976184 / width))
            time, half = self.ops.expand_dims(self.places(x), -1), ceil(width / 2)
            angles = self.put("Dense", name, time, [rates[None]], half, use_bias=False, trainable=False)
            waves = self.ops.stack([self.ops.sin(angles), self.ops.cos(angles)], axis=-1)
            return x + self.put("Reshape", f"{name}_side_by_side", waves, [], (-1, 2 * half))[:, :, :width]
        assert isinstance(module, LearnedPositions)
        places = self.ops.cast(self.places(x), "int32")
        return x + self.put("Embedding", name, places, [module.table], *module.table.shape)

    def recurrence(self, x: Any, mask: Any, cell: Any, sequences: bool, name: str) -> Any:
        """One bidirectional or forward layer after the other; padding is stepped over."""
        kind, last = type(cell).__name__, cell.num_layers - 1
        for layer in range(cell.num_layers):
            whole = sequences or layer < last
            # without sequences, the memory after the last real step goes out, not zeros for padding behind it
            made = getattr(self.layers, kind)(cell.hidden_size, return_sequences=whole, zero_output_for_mask=whole)
            ways = ("", "_reverse") if cell.bidirectional else ("",)
            weights = [one for way in ways for one in _gates(cell, f"l{layer}{way}")]
            called = {} if mask is None else {"mask": mask}
            if cell.bidirectional:
                x = self.put("Bidirectional", f"{name}_{layer}", x, weights, made, call=called)
            else:
                made.name = f"{name}_{layer}"
                x = made(x, **called)
                made.set_weights([one.detach().numpy() for one in weights])
        return x

    def feed_forward(self, x: Any, part: FeedForward, name: str) -> Any:
        """Up, activation, down."""
        inner = self.activation(self.dense(x, part.up, f"{name}_up"), part.activation)
        return self.dense(self.dropped(inner, part.dropout, f"{name}_dropout"), part.down, f"{name}_down")

    def dropped(self, x: Any, module: nn.Dropout, name: str) -> Any:
        """Nothing, unless it is trained on."""
        return self.put("Dropout", name, x, [], module.p) if module.p else x

    def around(self, x: Any, module: ResidualNorm, name: str, mask: Any = None, memory: Any = None) -> Any:
        """x + part(norm(x)), or norm(x + part(x))."""
        part: Any = module.part
        inner = self.norm(x, module.norm, f"{name}_norm") if module.pre else x
        if hasattr(part, "mechanism"):
            inner = attention_words(self, inner, part, name, mask=mask, memory=memory)
        else:
            inner = self.feed_forward(inner, part, name)
        x = x + self.dropped(inner, module.dropout, f"{name}_residual_dropout")
        return x if module.pre else self.norm(x, module.norm, f"{name}_norm")

    def recurrent(self, x: Any, mask: Any, module: Recurrence, name: str) -> Any:
        """A recurrent layer of a program."""
        return self.recurrence(x, mask, module.cell, module.sequences, name)


def _gates(cell: Any, name: str) -> list[Any]:
    """Weights of one direction as Keras orders them: input, memory, bias. Its LSTM has one bias, its GRU two."""
    into, over, shift, lift = (
        getattr(cell, f"{part}_{name}") for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    if type(cell).__name__ == "LSTM":
        return [into.T, over.T, shift + lift]
    into, over, shift, lift = (_update_first(one) for one in (into, over, shift, lift))
    return [into.T, over.T, torch.stack((shift, lift))]


def _update_first(gates: Any) -> Any:
    reset, update, new = gates.chunk(3)
    return torch.cat((update, reset, new))
