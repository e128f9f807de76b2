"""Keras 3: one .keras file of Keras' own layers, which can be trained without this package.

An ExportBundle (neural.workflows.export_bundle) is a trained model with its inputs. The model is a
NetworkModule, built from a `.neural` program, or a Segmenter (neural.tasks.segmentation). An entry
of `network.layers` (PlacedLayer) is the declaration `layer` of the program with its shapes;
`getattr(model, placed_layer.name)` is its torch module. `Layer(…) * N` in a program has N copies,
with weights of their own: then that module is an nn.ModuleList.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neural.exports._keras_attention import (
    LOWEST_VALUE,
    build_attention,
    declared_class,
    list_unsupported_attention,
)
from neural.exports._keras_layers import KerasBuilder, keras
from neural.exports._tracing import suppress_export_logs
from neural.nn.build import NetworkModule
from neural.nn.convolution import Convolution, MaxPooling
from neural.nn.layers.batch_normalization import BatchNorm
from neural.nn.layers.dense import DenseModule
from neural.nn.layers.embedding import EmbeddingModule
from neural.nn.layers.gaussian_noise import GaussianNoiseModule
from neural.nn.layers.global_average_pooling1d import MeanOverTime
from neural.nn.layers.output import TiedOutputModule
from neural.nn.layers.reshape import ReshapeModule
from neural.nn.layers.residual import ResidualModule
from neural.nn.layers.transformer_decoder import DecoderBlock
from neural.nn.layers.transformer_encoder import EncoderBlock
from neural.nn.lazy_torch import nn, torch
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.nn.positions.learned import LearnedPositions
from neural.nn.positions.sinusoidal import SinusoidalPositions
from neural.nn.recurrent import RecurrentModule
from neural.tasks.segmentation.model import Segmenter
from neural.workflows.export import Exporter
from neural.workflows.export_bundle import ExportBundle, ExportError

if TYPE_CHECKING:
    from torch import Tensor

BuildLayer = Callable[[KerasBuilder, Any, Any, Any, str], Any]
"""(builder, Keras input, padding mask or None, torch module, layer name) → Keras output."""


class Keras(Exporter):
    """One .keras file of Keras' own layers, which can be trained; not for every network."""

    aliases: ClassVar[tuple[str, ...]] = ("tensorflow", "tf")
    suffix: ClassVar[str] = ".keras"
    required_packages: ClassVar[tuple[str, ...]] = ("keras",)

    def check(self, bundle: ExportBundle) -> None:
        """Report everything that Keras has no equivalent for, at once."""
        reasons = list(list_unsupported_layers(bundle))
        if reasons:
            raise ExportError(
                f"{bundle.name} cannot be exported to Keras; --to onnx, --to torch and "
                "--to huggingface support any network\n"
                + "\n".join(f"  {reason}" for reason in reasons)
            )

    def write(self, bundle: ExportBundle, path: Path) -> None:
        """Write Keras' archive of JSON and arrays."""
        if path.suffix != self.suffix:
            raise ExportError(f"Keras loads only *.keras files: use -o {path.name}.keras")
        with suppress_export_logs():
            build_keras_model(bundle).save(path)

    def read(self, bundle: ExportBundle, path: Path) -> Callable[..., Tensor]:
        """Load the file with Keras, in the mode that executes no code from files."""
        with suppress_export_logs():
            model = keras.models.load_model(path, safe_mode=True)

        def run(*inputs: Tensor) -> Tensor:
            with torch.no_grad(), suppress_export_logs():
                arrays = [tensor.numpy() for tensor in inputs]
                output = model(arrays if len(arrays) > 1 else arrays[0], training=False)
                return torch.from_numpy(keras.ops.convert_to_numpy(output))

        return run

    def describe_usage(self, bundle: ExportBundle, path: Path) -> str:
        """A line of Python that loads and calls the model."""
        names = ", ".join(spec.name for spec in bundle.inputs)
        inputs = f"[{names}]" if len(bundle.inputs) > 1 else names
        return f'keras.models.load_model("{path.name}")({inputs})'


def list_unsupported_layers(bundle: ExportBundle) -> Iterator[str]:
    """Reasons why a network cannot be exported, each with the name of the layer."""
    model = bundle.model
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttentionModule):
            yield from (
                f"{name}: Keras has no {reason}" for reason in list_unsupported_attention(module)
            )
    if not isinstance(model, NetworkModule):
        return
    supported = {*layer_builders(), TiedOutputModule}
    for placed_layer in model.network.layers:
        module_or_list = getattr(model, placed_layer.name)
        copies = (
            list(module_or_list) if isinstance(module_or_list, nn.ModuleList) else [module_or_list]
        )
        # `parts` are the layers inside a ResidualModule.
        modules = [*copies, *(inner for copy in copies for inner in getattr(copy, "parts", ()))]
        # Compared by `declared_class`, the class in our source file: torch is imported lazily, so
        # `type(module)` is a class derived from that one and nn.Module at run time.
        missing = {declared_class(module) for module in modules} - supported
        for name in sorted(_class_name(module_class) for module_class in missing):
            yield f"{placed_layer.name}: Keras has no {name}"
        for module in modules:
            if isinstance(module, GaussianNoiseModule) and module.stddev > 1:
                yield (
                    f"{placed_layer.name}: Keras' GaussianNoise takes a stddev up to 1, "
                    f"not {module.stddev:g}"
                )


def _class_name(module_class: type) -> str:
    """The name of a class; with its module if it belongs to another package than ours or torch."""
    package = module_class.__module__.partition(".")[0]
    if package in ("torch", __name__.partition(".")[0]):
        return module_class.__name__
    return f"{module_class.__module__}.{module_class.__qualname__}"


def build_keras_model(bundle: ExportBundle) -> Any:
    """The network as a functional Keras model."""
    builder, model = KerasBuilder(), bundle.model
    inputs = {
        spec.name: keras.Input(
            spec.shape,
            dtype="bool" if spec.is_mask else "int32" if spec.vocab_size else "float32",
            name=spec.name,
        )
        for spec in bundle.inputs
    }
    if isinstance(model, Segmenter):
        output = _build_segmenter(builder, model, inputs["x"], inputs.get("mask"))
        output = output if bundle.return_logits else builder.ops.softmax(output)
    else:
        output = _build_program(builder, model, inputs)
        output = (
            output if bundle.return_logits else builder.activation(output, model.output_activation)
        )
    return keras.Model(list(inputs.values()), output, name=bundle.name)


def _build_program(builder: KerasBuilder, model: NetworkModule, inputs: dict[str, Any]) -> Any:
    """The logits of a program's network, as `NetworkModule.logits` computes them.

    In an encoder-decoder, `stream` says which sequence passes through a layer: "source" (encoder),
    "target" (decoder) or "both".
    """
    layers = model.network.layers
    if not model.network.is_encoder_decoder:
        return _build_layers(builder, model, layers, inputs["x"], inputs.get("mask"), ())[0]
    shared, encoder, decoder = (
        tuple(placed_layer for placed_layer in layers if placed_layer.stream == stream)
        for stream in ("both", "source", "target")
    )
    memory = _build_layers(
        builder, model, (*shared, *encoder), inputs["source"], inputs.get("mask"), ()
    )
    return _build_layers(
        builder, model, (*shared, *decoder), inputs["target"], inputs.get("target_mask"), memory
    )[0]


def _build_layers(
    builder: KerasBuilder, model: NetworkModule, layers: Any, x: Any, mask: Any, memory: Any
) -> tuple[Any, Any]:
    """Output and padding mask after `layers`.

    `memory` is the encoder's output and padding mask for a decoder, else empty.
    """
    for placed_layer in layers:
        module_or_list: Any = getattr(model, placed_layer.name)
        for number, module in enumerate(
            module_or_list if placed_layer.copies > 1 else [module_or_list]
        ):
            name = f"{placed_layer.name}_{number}" if placed_layer.copies > 1 else placed_layer.name
            if placed_layer.layer.role == "embedding" and module.pad_id is not None:
                is_real = builder.ops.not_equal(x, module.pad_id)
                mask = is_real if mask is None else builder.ops.logical_and(is_real, mask)
            if (
                placed_layer.layer.uses_embedding_table
            ):  # an output layer tied to the embedding table
                x = _build_tied_output(builder, x, model, module, name)
                x = builder.activation(x, module.activation)
            elif memory and placed_layer.layer.role == "decoder":
                x = builder.residual_sublayer(x, module.attention, f"{name}_attention", mask)
                x = builder.residual_sublayer(
                    x, module.cross, f"{name}_cross", memory[1], memory[0]
                )
                x = builder.residual_sublayer(x, module.feed_forward, f"{name}_feed_forward")
            else:
                x = layer_builders()[declared_class(module)](builder, x, mask, module, name)
            # A convolution or pooling changes the length of sequence and padding mask.
            if placed_layer.layer.resizes_mask and mask is not None:
                mask = _window_mask(builder, mask, module)
            elif not placed_layer.layer.keeps_time:
                mask = None
    return x, mask


def _build_segmenter(builder: KerasBuilder, model: Segmenter, x: Any, mask: Any) -> Any:
    """Standardization, bidirectional LSTM, attention block, classifier."""
    statistics = {"mean": model.mean.tolist(), "variance": model.std.square().tolist()}
    x = builder.add_layer("Normalization", "standardized", x, axis=-1, **statistics)
    x = builder.recurrent_stack(x, mask, model.lstm.cell, return_sequences=True, name="lstm")
    if model.attention is not None:
        block: Any = model.attention
        inner = x
        if not isinstance(block.input_projection, nn.Identity):
            inner = builder.dense(x, block.input_projection, "input_projection")
        if not isinstance(block.position, nn.Identity):
            inner = builder.add_positions(inner, block.position, "position")
        # `block.heads` is the MultiHeadAttentionModule; the name is part of saved weights.
        inner = inner + build_attention(builder, inner, block.heads, "attention", mask=mask)
        inner = builder.normalize(inner, block.norm, "attention_norm")
        if not isinstance(block.output_projection, nn.Identity):
            inner = builder.dense(inner, block.output_projection, "output_projection")
        x = x + inner
    x = builder.dropout(x, model.dropout, "dropout")
    return builder.dense(x, model.classifier, "classifier")


@cache
def layer_builders() -> dict[type, BuildLayer]:
    """The function that builds each layer, by the class of its module, without subclasses.

    This is a function and not a constant, because torch is imported lazily.
    """
    return {
        DenseModule: _build_dense,
        Convolution: _build_convolution,
        MaxPooling: _build_pooling,
        BatchNorm: _build_batch_norm,
        MeanOverTime: _build_mean,
        ResidualModule: _build_residual,
        EncoderBlock: _build_block,
        DecoderBlock: _build_block,
        GaussianNoiseModule: lambda builder, x, mask, module, name: builder.add_layer(
            "GaussianNoise", name, x, module.stddev
        ),
        nn.Dropout: lambda builder, x, mask, module, name: builder.dropout(x, module, name),
        nn.Flatten: lambda builder, x, mask, module, name: builder.add_layer("Flatten", name, x),
        ReshapeModule: lambda builder, x, mask, module, name: builder.add_layer(
            "Reshape", name, x, module.target_shape
        ),
        nn.LayerNorm: lambda builder, x, mask, module, name: builder.normalize(x, module, name),
        nn.RMSNorm: lambda builder, x, mask, module, name: builder.normalize(x, module, name),
        SinusoidalPositions: lambda builder, x, mask, module, name: builder.add_positions(
            x, module, name
        ),
        LearnedPositions: lambda builder, x, mask, module, name: builder.add_positions(
            x, module, name
        ),
        RecurrentModule: lambda builder, x, mask, module, name: builder.recurrent_layer(
            x, mask, module, name
        ),
        MultiHeadAttentionModule: lambda builder, x, mask, module, name: build_attention(
            builder, x, module, name, mask=mask
        ),
        EmbeddingModule: lambda builder, x, mask, module, name: builder.add_layer(
            "Embedding", name, x, *module.table.weight.shape, weights=[module.table.weight]
        ),
    }


def _build_dense(builder: KerasBuilder, x: Any, mask: Any, module: Any, name: str) -> Any:
    """A dense layer with its activation."""
    return builder.activation(builder.dense(x, module.linear, name), module.activation)


def _build_tied_output(
    builder: KerasBuilder, x: Any, model: NetworkModule, module: Any, name: str
) -> Any:
    """An output layer with a copy of the embedding table: Keras layers do not share weights."""
    table = model.embedding_weight()
    weights = [table.T] + ([] if module.bias is None else [module.bias])
    return builder.add_layer(
        "Dense", name, x, table.shape[0], weights=weights, use_bias=module.bias is not None
    )


def _build_convolution(builder: KerasBuilder, x: Any, mask: Any, module: Any, name: str) -> Any:
    """A convolution over inputs whose padding is set to zero."""
    if mask is not None:
        x = x * builder.ops.expand_dims(builder.ops.cast(mask, x.dtype), -1)
    convolution = module.convolution
    x = builder.add_layer(
        f"Conv{len(module.kernel)}D",
        name,
        x,
        convolution.out_channels,
        module.kernel,
        weights=[convolution.weight.movedim((0, 1), (-1, -2)), convolution.bias],
        strides=module.strides,
        padding="same" if module.same else "valid",
    )
    return builder.activation(x, module.activation)


def _build_pooling(builder: KerasBuilder, x: Any, mask: Any, module: Any, name: str) -> Any:
    """Max pooling that ignores padding; a window with only padding gives 0."""
    if mask is not None:
        x = builder.ops.where(builder.ops.expand_dims(mask, -1), x, LOWEST_VALUE)
    x = builder.add_layer(
        f"MaxPooling{len(module.pool)}D",
        name,
        x,
        module.pool,
        strides=module.strides,
        padding="same" if module.same else "valid",
    )
    if mask is None:
        return x
    return builder.ops.where(builder.ops.less_equal(x, LOWEST_VALUE), 0.0, x)


def _window_mask(builder: KerasBuilder, mask: Any, module: Any) -> Any:
    """The padding mask after a convolution or pooling over time.

    The same as the module's own method `output_mask`. Without "same" padding, a window is real if
    all its positions are.
    """
    window = (module.kernel if hasattr(module, "kernel") else module.pool)[0]
    stride = module.strides[0]
    if module.same or window == 1:
        return mask[:, ::stride]
    is_padding = builder.ops.cast(builder.ops.logical_not(mask), "float32")
    pooled = builder.ops.max_pool(
        builder.ops.expand_dims(is_padding, -1), window, stride, padding="valid"
    )
    return builder.ops.equal(builder.ops.squeeze(pooled, -1), 0.0)


def _build_batch_norm(builder: KerasBuilder, x: Any, mask: Any, module: Any, name: str) -> Any:
    """Batch norm. Keras' momentum is the weight of the old average, torch's that of the batch."""
    norm = module.norm
    return builder.add_layer(
        "BatchNormalization",
        name,
        x,
        weights=[norm.weight, norm.bias, norm.running_mean, norm.running_var],
        epsilon=norm.eps,
        momentum=1 - norm.momentum,
    )


def _build_mean(builder: KerasBuilder, x: Any, mask: Any, module: Any, name: str) -> Any:
    """Mean over time; zeros if all is padding.

    With a mask it is not Keras' own layer, which then divides by zero.
    """
    if mask is None:
        return builder.add_layer("GlobalAveragePooling1D", name, x)
    is_real = builder.ops.expand_dims(builder.ops.cast(mask, x.dtype), -1)
    count = builder.ops.maximum(builder.ops.sum(is_real, axis=1), 1.0)
    return builder.ops.sum(x * is_real, axis=1) / count


def _build_residual(builder: KerasBuilder, x: Any, mask: Any, module: Any, name: str) -> Any:
    """x + the output of the layers inside a ResidualModule.

    Its `uses_mask` says which of them take the padding mask, `resizes_mask` which of them change
    its length.
    """
    inner = x
    children = zip(module.parts, module.uses_mask, module.resizes_mask, strict=True)
    for number, (child, uses_mask, resizes_mask) in enumerate(children):
        child_mask = mask if uses_mask else None
        build_layer = layer_builders()[declared_class(child)]
        inner = build_layer(builder, inner, child_mask, child, f"{name}_{number}")
        if resizes_mask and mask is not None:
            mask = _window_mask(builder, mask, child)
    return x + inner


def _build_block(builder: KerasBuilder, x: Any, mask: Any, module: Any, name: str) -> Any:
    """A transformer block without cross-attention."""
    x = builder.residual_sublayer(x, module.attention, f"{name}_attention", mask)
    return builder.residual_sublayer(x, module.feed_forward, f"{name}_feed_forward")
