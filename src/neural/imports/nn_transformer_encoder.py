"""Import of torch's `nn.TransformerEncoder`: its state dict becomes a run of our supervised task.

A run is a folder with settings, weights and metrics of a model. A state dict lacks the number of
heads and other arguments of the module: they are settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from neural.core.settings import Settings
from neural.nn.lazy_torch import nn, torch
from neural.tasks.supervised.task import SupervisedSettings
from neural.workflows.import_model import (
    ImportedModel,
    Importer,
    ModelImportError,
    extract_state_dict,
)

if TYPE_CHECKING:
    from torch import Tensor

LAYER_NAMES = {
    "self_attn.in_proj_": (
        "attention.sublayer.query.",
        "attention.sublayer.key.",
        "attention.sublayer.value.",
    ),
    "self_attn.out_proj.": ("attention.sublayer.output.",),
    "norm1.": ("attention.norm.",),
    "linear1.": ("feed_forward.sublayer.up.",),
    "linear2.": ("feed_forward.sublayer.down.",),
    "norm2.": ("feed_forward.norm.",),
}
"""torch's prefixes of a layer's parameters → ours; torch has query, key, value in one matrix."""
PARAMETER_NAME = re.compile(r"(?:layers\.(\d{1,6})\.)?(\w+\.(?:out_proj\.|in_proj_)?)(weight|bias)")
"""Groups: number of the layer, name in the layer, weight or bias."""


class EncoderSettings(Settings):
    """Settings that a state dict does not contain; the defaults are torch's."""

    num_heads: int | None = Field(None, ge=1, description="`nhead`; required.")
    norm_first: bool = Field(
        False, description="Norms before attention and feed-forward, not after."
    )
    activation: Literal["relu", "gelu"] = Field(
        "relu", description="Between the two linear layers."
    )


class NnTransformerEncoder(Importer):
    """The state dict of an `nn.TransformerEncoder`, or of a single layer of it."""

    aliases: ClassVar[tuple[str, ...]] = ("transformer_encoder",)
    Settings: ClassVar[type[Settings]] = EncoderSettings

    def read(
        self, checkpoint: Mapping[str, Any], settings: EncoderSettings, name: str
    ) -> ImportedModel:
        """A `.neural` program with the same encoder blocks, and the weights under our names."""
        state = extract_state_dict(checkpoint, "nn.TransformerEncoder")
        num_layers, width, inner_width = _read_sizes(state)
        num_heads = settings.num_heads
        if num_heads is None or width % num_heads:
            divisors = [str(size) for size in range(1, min(width, 64) + 1) if width % size == 0]
            raise ModelImportError(
                "a state dict does not contain the number of heads: --set num_heads=…, "
                f"one of {', '.join(divisors)}"
            )
        options = [
            f"num_heads={num_heads}",
            f"d_model={width}",
            f"dff={inner_width}",
            f'activation="{settings.activation}"',
            f'norm="{"pre" if settings.norm_first else "post"}"',
            'positional="none"',
            *(["final_norm=true"] if "norm.weight" in state else []),
            *([] if _has_bias(state) else ["bias=false"]),
        ]
        copies = f" * {num_layers}" if num_layers > 1 else ""
        program = (
            f"network Encoder {{\n  input: (None, {width})\n  layers:\n"
            f"    TransformerEncoder({', '.join(options)}){copies}\n}}\n"
        )
        weights = {
            our_name: tensor.contiguous()
            for torch_name, torch_tensor in state.items()
            for our_name, tensor in _rename_parameter(torch_name, torch_tensor, num_layers)
        }
        return ImportedModel(
            SupervisedSettings(network=program, name="encoder"), program, weights, {}
        )

    def verify(self, checkpoint: Mapping[str, Any], settings: EncoderSettings, model: Any) -> float:
        """Largest difference from the outputs of torch's encoder with the same weights."""
        state = extract_state_dict(checkpoint, "nn.TransformerEncoder")
        num_layers, width, inner_width = _read_sizes(state)
        layer = nn.TransformerEncoderLayer(
            width,
            settings.num_heads or 1,
            inner_width,
            dropout=0.0,
            activation=settings.activation,
            batch_first=True,
            norm_first=settings.norm_first,
            bias=_has_bias(state),
        )
        final_norm = nn.LayerNorm(width, bias=_has_bias(state)) if "norm.weight" in state else None
        is_single_layer = not any(name.startswith("layers.") for name in state)
        original = (
            layer
            if is_single_layer
            else nn.TransformerEncoder(layer, num_layers, final_norm, enable_nested_tensor=False)
        )
        original.load_state_dict(state)
        x = torch.randn(2, 7, width, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            return (model(x) - original.float().eval()(x)).abs().max().item()


def _read_sizes(state: Mapping[str, Tensor]) -> tuple[int, int, int]:
    """Number of layers, model width, and width inside the feed-forward layer.

    Raises ModelImportError if `state` is not the state dict of an encoder.
    """
    matches = {name: PARAMETER_NAME.fullmatch(name) for name in state}
    unknown = next(
        (name for name, match in matches.items() if match is None or not _is_known(match)), None
    )
    if unknown is not None:
        raise ModelImportError(
            f"not a state dict of nn.TransformerEncoder: unknown parameter `{unknown}`"
        )
    layer_numbers = {
        int(match[1] or 0) for match in matches.values() if match and match[2] != "norm."
    }
    prefix = "layers.0." if any(name.startswith("layers.") for name in state) else ""
    matrices = [state.get(f"{prefix}{name}.weight") for name in ("linear1", "linear2")]
    if layer_numbers != set(range(len(layer_numbers))) or any(
        matrix is None or matrix.ndim != 2 or not matrix.numel() for matrix in matrices
    ):
        raise ModelImportError(
            "not a state dict of nn.TransformerEncoder: its layers are not layers.0, layers.1, …"
        )
    inner_width, width = (int(size) for size in state[f"{prefix}linear1.weight"].shape)
    return len(layer_numbers), width, inner_width


def _is_known(match: re.Match[str]) -> bool:
    """Whether a parameter is one of an encoder layer, or of the final norm, outside the layers."""
    return match[2] in LAYER_NAMES or (match[2] == "norm." and match[1] is None)


def _has_bias(state: Mapping[str, Tensor]) -> bool:
    return any(name.endswith("linear1.bias") for name in state)


def _rename_parameter(name: str, tensor: Tensor, num_layers: int) -> Iterator[tuple[str, Tensor]]:
    """Our names and tensors for a parameter of torch: three for query, key and value."""
    match = PARAMETER_NAME.fullmatch(name)
    assert match is not None
    if match[2] == "norm.":
        yield f"layer_normalization.{match[3]}", tensor
        return
    our_names = LAYER_NAMES[match[2]]
    layer_number = int(match[1] or 0)
    block = f"transformer_encoder.{layer_number}" if num_layers > 1 else "transformer_encoder"
    for our_name, chunk in zip(our_names, tensor.chunk(len(our_names)), strict=True):
        yield f"{block}.{our_name}{match[3]}", chunk
