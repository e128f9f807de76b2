"""Keras layers with the weights of our torch modules, added to a functional Keras model.

The torch modules are those of neural/nn: `RecurrentModule` wraps an nn.LSTM or nn.GRU,
`ResidualNorm` is a sublayer of a transformer block with its norm and residual connection.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import ceil, log
from typing import TYPE_CHECKING, Any

from neural.exports._keras_attention import build_attention
from neural.nn.lazy_torch import lazy_import, nn, torch
from neural.nn.positions.learned import LearnedPositions
from neural.nn.positions.sinusoidal import SinusoidalPositions

if TYPE_CHECKING:
    from neural.nn.recurrent import RecurrentModule
    from neural.nn.transformer_block import FeedForward, ResidualNorm

os.environ.setdefault("KERAS_BACKEND", "torch")  # before keras is imported
keras = lazy_import("keras")
LEAKY_RELU_SLOPE = 0.01
"""torch's default; that of Keras is 0.3."""


class KerasBuilder:
    """Adds Keras layers to a model. Most methods take a Keras input `x`, a torch module and a name.

    A name that is used twice is one layer with the same weights: layers that both sequences of an
    encoder-decoder pass through are called for each of them.
    """

    def __init__(self) -> None:
        self.created: dict[str, Any] = {}
        """Keras layers by name."""
        self.layers, self.ops = keras.layers, keras.ops

    def add_layer(
        self,
        class_name: str,
        name: str,
        x: Any,
        *arguments: Any,
        weights: Sequence[Any] = (),
        call_arguments: dict[str, Any] | None = None,
        **options: Any,
    ) -> Any:
        """Output for `x` of the Keras layer called `name`, which the first call creates.

        `class_name` is its class in `keras.layers`, `arguments` and `options` are those of the
        class. `weights` are in the order of `set_weights`. `call_arguments` are passed with `x`.
        """
        call_arguments = call_arguments or {}
        if name in self.created:
            return self.created[name](x, **call_arguments)
        layer_class = getattr(self.layers, class_name)
        layer = self.created[name] = layer_class(*arguments, name=name, **options)
        output = layer(x, **call_arguments)  # creates the variables that `set_weights` sets
        layer.set_weights(
            [weight.detach().numpy() if hasattr(weight, "detach") else weight for weight in weights]
        )
        return output

    def dense(self, x: Any, linear: nn.Linear, name: str) -> Any:
        """x·Wᵀ + b."""
        weights = [linear.weight.T] + ([] if linear.bias is None else [linear.bias])
        return self.add_layer(
            "Dense",
            name,
            x,
            linear.out_features,
            weights=weights,
            use_bias=linear.bias is not None,
        )

    def activation(self, x: Any, module: nn.Module) -> Any:
        """The Keras operation of an activation module."""
        name, ops = type(module).__name__, self.ops
        if name == "Identity":
            return x
        if name == "SquaredReLU":
            return ops.square(ops.relu(x))
        if name == "LeakyReLU":
            return ops.leaky_relu(x, negative_slope=LEAKY_RELU_SLOPE)
        if name == "GELU":
            return ops.gelu(x, approximate=False)
        return getattr(ops, name.lower())(x)

    def normalize(self, x: Any, module: nn.Module, name: str) -> Any:
        """Layer norm or RMS norm."""
        if isinstance(module, nn.RMSNorm):
            return self.add_layer(
                "RMSNormalization", name, x, weights=[module.weight], epsilon=module.eps
            )
        assert isinstance(module, nn.LayerNorm)
        has_bias = module.bias is not None
        weights = [module.weight, module.bias] if has_bias else [module.weight]
        return self.add_layer(
            "LayerNormalization", name, x, weights=weights, epsilon=module.eps, center=has_bias
        )

    def position_indices(self, x: Any) -> Any:
        """0, 1, 2, … along the time axis as floats, (B, T), for any length."""
        ones = self.ops.ones_like(x[:, :, 0])
        return self.ops.cumsum(ones, axis=1) - 1

    def add_positions(self, x: Any, module: nn.Module, name: str) -> Any:
        """Add a sinusoidal encoding or learned positions.

        Angles are the output of a Dense layer without bias: frequencies are its fixed weights.
        """
        if isinstance(module, SinusoidalPositions):
            width = x.shape[-1]
            exponents = torch.arange(0, width, 2, dtype=torch.float32)
            frequencies = torch.exp(exponents * (-log(10000.0) / width))
            time, half = self.ops.expand_dims(self.position_indices(x), -1), ceil(width / 2)
            angles = self.add_layer(
                "Dense",
                name,
                time,
                half,
                weights=[frequencies[None]],
                use_bias=False,
                trainable=False,
            )
            waves = self.ops.stack([self.ops.sin(angles), self.ops.cos(angles)], axis=-1)
            interleaved = self.add_layer("Reshape", f"{name}_side_by_side", waves, (-1, 2 * half))
            return x + interleaved[:, :, :width]
        assert isinstance(module, LearnedPositions)
        indices = self.ops.cast(self.position_indices(x), "int32")
        return x + self.add_layer(
            "Embedding", name, indices, *module.table.shape, weights=[module.table]
        )

    def recurrent_stack(
        self, x: Any, mask: Any, rnn: nn.LSTM | nn.GRU, return_sequences: bool, name: str
    ) -> Any:
        """All layers of a torch LSTM or GRU. Padding is skipped."""
        class_name, last = type(rnn).__name__, rnn.num_layers - 1
        for number in range(rnn.num_layers):
            all_steps = return_sequences or number < last
            # If only the last state is returned, padding at the end must repeat the state, not
            # output zeros.
            layer = getattr(self.layers, class_name)(
                rnn.hidden_size, return_sequences=all_steps, zero_output_for_mask=all_steps
            )
            suffixes = ("", "_reverse") if rnn.bidirectional else ("",)
            weights = [
                weight
                for suffix in suffixes
                for weight in _direction_weights(rnn, f"l{number}{suffix}")
            ]
            call_arguments = {} if mask is None else {"mask": mask}
            if rnn.bidirectional:
                x = self.add_layer(
                    "Bidirectional",
                    f"{name}_{number}",
                    x,
                    layer,
                    weights=weights,
                    call_arguments=call_arguments,
                )
            else:
                layer.name = f"{name}_{number}"
                x = layer(x, **call_arguments)
                layer.set_weights([weight.detach().numpy() for weight in weights])
        return x

    def recurrent_layer(self, x: Any, mask: Any, module: RecurrentModule, name: str) -> Any:
        """A recurrent layer of a `.neural` program; `module.cell` is its nn.LSTM or nn.GRU."""
        return self.recurrent_stack(x, mask, module.cell, module.return_sequences, name)

    def feed_forward(self, x: Any, module: FeedForward, name: str) -> Any:
        """Up projection, activation, dropout, down projection."""
        inner = self.activation(self.dense(x, module.up, f"{name}_up"), module.activation)
        return self.dense(
            self.dropout(inner, module.dropout, f"{name}_dropout"), module.down, f"{name}_down"
        )

    def dropout(self, x: Any, module: nn.Dropout, name: str) -> Any:
        """Dropout, which has an effect only if the exported model is trained."""
        return self.add_layer("Dropout", name, x, module.p) if module.p else x

    def residual_sublayer(
        self, x: Any, module: ResidualNorm, name: str, mask: Any = None, memory: Any = None
    ) -> Any:
        """x + sublayer(norm(x)) if `module.pre`, else norm(x + sublayer(x)).

        `memory` is the encoder's output for cross-attention, `mask` the padding mask of the keys.
        """
        sublayer: Any = module.sublayer
        inner = self.normalize(x, module.norm, f"{name}_norm") if module.pre else x
        if hasattr(sublayer, "mechanism"):  # only attention modules have one
            inner = build_attention(self, inner, sublayer, name, mask=mask, memory=memory)
        else:
            inner = self.feed_forward(inner, sublayer, name)
        x = x + self.dropout(inner, module.dropout, f"{name}_residual_dropout")
        return x if module.pre else self.normalize(x, module.norm, f"{name}_norm")


def _direction_weights(rnn: nn.LSTM | nn.GRU, suffix: str) -> list[Any]:
    """Weights of one layer and direction in Keras' order. Keras' LSTM has one bias, its GRU two.

    `suffix` is the end of torch's parameter names, such as `l0_reverse`.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = (
        getattr(rnn, f"{name}_{suffix}")
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    if type(rnn).__name__ == "LSTM":
        return [weight_ih.T, weight_hh.T, bias_ih + bias_hh]
    weight_ih, weight_hh, bias_ih, bias_hh = (
        _update_gate_first(gates) for gates in (weight_ih, weight_hh, bias_ih, bias_hh)
    )
    return [weight_ih.T, weight_hh.T, torch.stack((bias_ih, bias_hh))]


def _update_gate_first(gates: Any) -> Any:
    """From torch's order of GRU gates (reset, update, candidate) to that of Keras."""
    reset, update, candidate = gates.chunk(3)
    return torch.cat((update, reset, candidate))
