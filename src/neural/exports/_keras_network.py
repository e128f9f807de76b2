"""The way through a network in Keras' words, layer by layer, from its inputs to what goes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from neural.export_inputs import Leaving
from neural.exports._keras_attention import attention_words, no_words_for
from neural.exports._keras_words import Words, keras
from neural.modules.build import Built
from neural.modules.heads import Heads
from neural.modules.late import nn
from neural.modules.layers.gaussian_noise import Noise
from neural.modules.segmenter import Segmenter

Step = Callable[[Words, Any, Any, Any, str], Any]
LOWEST = -3e38
"""Below every number that comes in; finite, because the file is JSON."""


def _convolution(words: Words, x: Any, mask: Any, module: Any, name: str) -> Any:
    kind = f"Conv{len(module.kernel)}D"
    if mask is not None:
        x = x * words.ops.expand_dims(words.ops.cast(mask, x.dtype), -1)
    weights = [module.convolution.weight.movedim((0, 1), (-1, -2)), module.convolution.bias]
    padding = "same" if module.same else "valid"
    filters = module.convolution.out_channels
    x = words.put(kind, name, x, weights, filters, module.kernel, strides=module.strides, padding=padding)
    return words.activation(x, module.activation)


def _pool(words: Words, x: Any, mask: Any, module: Any, name: str) -> Any:
    """Padded positions are never the largest; a window of nothing else gives 0."""
    kind, padding = f"MaxPooling{len(module.pool)}D", "same" if module.same else "valid"
    if mask is not None:
        x = words.ops.where(words.ops.expand_dims(mask, -1), x, LOWEST)
    x = words.put(kind, name, x, [], module.pool, strides=module.strides, padding=padding)
    return x if mask is None else words.ops.where(words.ops.less_equal(x, LOWEST), 0.0, x)


def _window_mask(words: Words, mask: Any, module: Any) -> Any:
    """What `output_mask` of a convolution or pooling over time gives."""
    window = (module.kernel if hasattr(module, "kernel") else module.pool)[0]
    stride = module.strides[0]
    if module.same or window == 1:
        return mask[:, ::stride]
    padding = words.ops.expand_dims(words.ops.cast(words.ops.logical_not(mask), "float32"), -1)
    pooled = words.ops.max_pool(padding, window, stride, padding="valid")
    return words.ops.equal(words.ops.squeeze(pooled, -1), 0.0)


def _batch_norm(words: Words, x: Any, mask: Any, module: Any, name: str) -> Any:
    norm = module.norm
    weights = [norm.weight, norm.bias, norm.running_mean, norm.running_var]
    return words.put("BatchNormalization", name, x, weights, epsilon=norm.eps, momentum=1 - norm.momentum)


def _mean(words: Words, x: Any, mask: Any, module: Any, name: str) -> Any:
    """Keras' own divides by zero where all is padding; here that gives zeros."""
    if mask is None:
        return words.put("GlobalAveragePooling1D", name, x, [])
    real = words.ops.expand_dims(words.ops.cast(mask, x.dtype), -1)
    count = words.ops.maximum(words.ops.sum(real, axis=1), 1.0)
    return words.ops.sum(x * real, axis=1) / count


def _residual(words: Words, x: Any, mask: Any, module: Any, name: str) -> Any:
    inner = x
    flags = zip(module.parts, module.masked, module.mapped, strict=True)
    for number, (part, masked, mapped) in enumerate(flags):
        given = mask if masked else None
        inner = STEPS[class_name(part)](words, inner, given, part, f"{name}_{number}")
        if mapped and mask is not None:
            mask = _window_mask(words, mask, part)
    return x + inner


def _encoder(words: Words, x: Any, mask: Any, module: Any, name: str) -> Any:
    x = words.around(x, module.attention, f"{name}_attention", mask)
    return words.around(x, module.feed_forward, f"{name}_feed_forward")


def _dense(words: Words, x: Any, mask: Any, module: Any, name: str) -> Any:
    return words.activation(words.dense(x, module.linear, name), module.activation)


STEPS: dict[str, Step] = {
    "Linear": _dense, "Convolution": _convolution, "MaxPooling": _pool, "BatchNorm": _batch_norm,
    "MeanOverTime": _mean, "Around": _residual, "Encoder": _encoder, "Decoder": _encoder,
    "Noise": lambda words, x, mask, module, name: words.put("GaussianNoise", name, x, [], module.stddev),
    "Dropout": lambda words, x, mask, module, name: words.dropped(x, module, name),
    "Flatten": lambda words, x, mask, module, name: words.put("Flatten", name, x, []),
    "View": lambda words, x, mask, module, name: words.put("Reshape", name, x, [], module.target_shape),
    "LayerNorm": lambda words, x, mask, module, name: words.norm(x, module, name),
    "RMSNorm": lambda words, x, mask, module, name: words.norm(x, module, name),
    "SinusoidalPositions": lambda words, x, mask, module, name: words.positions(x, module, name),
    "LearnedPositions": lambda words, x, mask, module, name: words.positions(x, module, name),
    "Recurrence": lambda words, x, mask, module, name: words.recurrent(x, mask, module, name),
    "Heads": lambda words, x, mask, module, name: attention_words(words, x, module, name, mask=mask),
    "Lookup": lambda words, x, mask, module, name: words.put(
        "Embedding", name, x, [module.table.weight], *module.table.weight.shape
    ),
}  # fmt: skip
"""By the class of the module."""


def class_name(module: nn.Module) -> str:
    """The class of a module of ours or of torch; with its package where it is somebody else's.

    Another package may call something else by the same name.
    """
    cls = type(module)
    own = cls.__module__.startswith(("neural.modules.", "torch.nn."))
    return cls.__name__ if own else f"{cls.__module__}.{cls.__qualname__}"


def missing_words(leaving: Leaving) -> Iterator[str]:
    """What stands in the way, layer by layer."""
    model = leaving.model
    for name, module in model.named_modules():
        if isinstance(module, Heads):
            yield from (f"{name}: Keras has no {why}" for why in no_words_for(module))
    if not isinstance(model, Built):
        return
    for placed in model.network.layers:
        found = getattr(model, placed.name)
        parts = list(found) if isinstance(found, nn.ModuleList) else [found]
        inside = [one for part in parts for one in getattr(part, "parts", ())]
        for kind in sorted({class_name(one) for one in (*parts, *inside)} - {*STEPS, "Tied"}):
            yield f"{placed.name}: Keras has no {kind}"
        for noise in (one for one in (*parts, *inside) if isinstance(one, Noise)):
            if noise.stddev > 1:
                yield f"{placed.name}: Keras' GaussianNoise takes a stddev up to 1, not {noise.stddev:g}"


def keras_model(leaving: Leaving) -> Any:
    """The network as a functional model of Keras."""
    words, model = Words(), leaving.model
    inputs = {
        one.name: keras.Input(one.sizes, dtype="bool" if one.mask else "int32" if one.ids else "float32", name=one.name)
        for one in leaving.inputs
    }
    if isinstance(model, Segmenter):
        gives = _segmenter(words, model, inputs["x"], inputs.get("mask"))
        gives = gives if leaving.scores else words.ops.softmax(gives)
    else:
        gives = _program(words, model, inputs)
        gives = gives if leaving.scores else words.activation(gives, model.head)
    return keras.Model(list(inputs.values()), gives, name=leaving.name)


def _program(words: Words, model: Built, inputs: dict[str, Any]) -> Any:
    """The same steps as `scores` of a built network takes."""
    layers = model.network.layers
    if not model.network.two_streams:
        return _through(words, model, layers, inputs["x"], inputs.get("mask"), ())[0]
    stem, read, write = (
        tuple(one for one in layers if one.stream == stream) for stream in ("both", "source", "target")
    )
    memory = _through(words, model, (*stem, *read), inputs["source"], inputs.get("mask"), ())
    return _through(words, model, (*stem, *write), inputs["target"], inputs.get("target_mask"), memory)[0]


def _through(words: Words, model: Built, layers: Any, x: Any, mask: Any, memory: Any) -> tuple[Any, Any]:
    for placed in layers:
        found: Any = getattr(model, placed.name)
        for number, module in enumerate(found if placed.copies > 1 else [found]):
            name = f"{placed.name}_{number}" if placed.copies > 1 else placed.name
            if placed.layer.role == "embedding" and module.pad_id is not None:
                real = words.ops.not_equal(x, module.pad_id)
                mask = real if mask is None else words.ops.logical_and(real, mask)
            if placed.layer.uses_table:
                x = words.activation(_tied(words, x, model, module, name), module.activation)
            elif memory and placed.layer.role == "decoder":
                x = words.around(x, module.attention, f"{name}_attention", mask)
                x = words.around(x, module.cross, f"{name}_cross", memory[1], memory[0])
                x = words.around(x, module.feed_forward, f"{name}_feed_forward")
            else:
                x = STEPS[class_name(module)](words, x, mask, module, name)
            if placed.layer.maps_mask and mask is not None:
                mask = _window_mask(words, mask, module)
            elif not placed.layer.keeps_time:
                mask = None
    return x, mask


def _tied(words: Words, x: Any, model: Built, module: Any, name: str) -> Any:
    """Keras' layers own their weights: the embedding's are written once more."""
    table = model.table()
    weights = [table.T] + ([] if module.bias is None else [module.bias])
    return words.put("Dense", name, x, weights, table.shape[0], use_bias=module.bias is not None)


def _segmenter(words: Words, model: Segmenter, x: Any, mask: Any) -> Any:
    """The LSTM in both directions, the attention over what it read, the classifier."""
    usual = {"mean": model.centre.tolist(), "variance": model.spread.square().tolist()}
    x = words.put("Normalization", "standardized", x, [], axis=-1, **usual)
    x = words.recurrence(x, mask, model.lstm.cell, True, "lstm")
    if model.attention is not None:
        look: Any = model.attention
        inner = x if isinstance(look.enter, nn.Identity) else words.dense(x, look.enter, "enter")
        if not isinstance(look.position, nn.Identity):
            inner = words.positions(inner, look.position, "position")
        inner = inner + attention_words(words, inner, look.heads, "attention", mask=mask)
        inner = words.norm(inner, look.norm, "attention_norm")
        x = x + (inner if isinstance(look.leave, nn.Identity) else words.dense(inner, look.leave, "leave"))
    return words.dense(words.dropped(x, model.dropout, "dropout"), model.classifier, "classifier")
