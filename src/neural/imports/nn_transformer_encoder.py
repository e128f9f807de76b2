"""torch's `nn.TransformerEncoder`: a state dict, and what leaves no trace in one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from neural.core.settings import Settings
from neural.importing import Came, CannotImport, Import, tensors_in
from neural.modules.late import nn, torch
from neural.tasks.supervised import SupervisedSettings

if TYPE_CHECKING:
    from torch import Tensor

PARTS = {
    "self_attn.in_proj_": ("attention.part.query.", "attention.part.key.", "attention.part.value."),
    "self_attn.out_proj.": ("attention.part.output.",), "norm1.": ("attention.norm.",),
    "linear1.": ("feed_forward.part.up.",), "linear2.": ("feed_forward.part.down.",), "norm2.": ("feed_forward.norm.",),
}  # fmt: skip
"""The parts of a layer; queries, keys and values stand on top of each other in one matrix."""
_IN_A_LAYER = re.compile(r"(?:layers\.(\d{1,6})\.)?(\w+\.(?:out_proj\.|in_proj_)?)(weight|bias)")


class EncoderSettings(Settings):
    """What a state dict does not tell; the defaults are torch's."""

    num_heads: int | None = Field(None, ge=1, description="`nhead`: must be said.")
    norm_first: bool = Field(False, description="Norms before attention and feed-forward part, not after.")
    activation: Literal["relu", "gelu"] = Field("relu", description="Between the two linear maps.")


class NnTransformerEncoder(Import):
    """A stack of `nn.TransformerEncoderLayer`s, or one alone."""

    Settings: ClassVar[type[Settings]] = EncoderSettings

    def read(self, document: Mapping[str, Any], settings: EncoderSettings, name: str) -> Came:
        """A program of as many encoder blocks."""
        state = tensors_in(document, "nn.TransformerEncoder")
        layers, width, inner = _sizes(state)
        heads = settings.num_heads
        if heads is None or width % heads:
            fit = ", ".join(str(one) for one in range(1, min(width, 64) + 1) if width % one == 0)
            raise CannotImport(f"a state dict does not tell the number of heads: --set num_heads=…, one of {fit}")
        norm, bias = "pre" if settings.norm_first else "post", _bias(state)
        final = ", final_norm=true" if "norm.weight" in state else ""
        block = (
            f'num_heads={heads}, d_model={width}, dff={inner}, activation="{settings.activation}", norm="{norm}", '
            f'positional="none"{final}{"" if bias else ", bias=false"}'
        )
        program = (
            f"network Encoder {{\n  input: (None, {width})\n  layers:\n"
            f"    TransformerEncoder({block}){f' * {layers}' if layers > 1 else ''}\n}}\n"
        )
        weights = {ours: one.contiguous() for key, one in state.items() for ours, one in _renamed(key, one, layers)}
        return Came(SupervisedSettings(network=program, name="encoder"), program, weights, {})

    def verify(self, document: Mapping[str, Any], settings: EncoderSettings, model: Any) -> float:
        """torch's own encoder with the same weights, asked the same."""
        state = tensors_in(document, "nn.TransformerEncoder")
        layers, width, inner = _sizes(state)
        layer = nn.TransformerEncoderLayer(
            width, settings.num_heads or 1, inner, dropout=0.0, activation=settings.activation, batch_first=True,
            norm_first=settings.norm_first, bias=_bias(state),
        )  # fmt: skip
        last = nn.LayerNorm(width, bias=_bias(state)) if "norm.weight" in state else None
        single = not any(name.startswith("layers.") for name in state)
        theirs = layer if single else nn.TransformerEncoder(layer, layers, last, enable_nested_tensor=False)
        theirs.load_state_dict(state)
        x = torch.randn(2, 7, width, generator=torch.Generator().manual_seed(0))
        with torch.no_grad():
            return (model(x) - theirs.float().eval()(x)).abs().max().item()


def _sizes(state: Mapping[str, Tensor]) -> tuple[int, int, int]:
    """Layers, width, inner width; refuses what is no encoder."""
    found = {name: _IN_A_LAYER.fullmatch(name) for name in state}
    strange = next((name for name, match in found.items() if match is None or not _known(match)), None)
    if strange is not None:
        raise CannotImport(f"no state dict of nn.TransformerEncoder: `{strange}` is none of its names")
    numbers = {int(match[1] or 0) for match in found.values() if match and match[2] != "norm."}
    first = "layers.0." if any(name.startswith("layers.") for name in state) else ""
    maps = [state.get(f"{first}{name}.weight") for name in ("linear1", "linear2")]
    if numbers != set(range(len(numbers))) or any(one is None or one.ndim != 2 or not one.numel() for one in maps):
        raise CannotImport("no state dict of nn.TransformerEncoder: its layers are not layers.0, layers.1, …")
    inner, width = (int(size) for size in state[f"{first}linear1.weight"].shape)
    return len(numbers), width, inner


def _known(match: re.Match[str]) -> bool:
    return match[2] in PARTS or (match[2] == "norm." and match[1] is None)


def _bias(state: Mapping[str, Tensor]) -> bool:
    return any(name.endswith("linear1.bias") for name in state)


def _renamed(name: str, tensor: Tensor, layers: int) -> Iterator[tuple[str, Tensor]]:
    """Our names for a weight of torch's, with what belongs to each."""
    match = _IN_A_LAYER.fullmatch(name)
    assert match is not None
    if match[2] == "norm.":
        yield f"layer_normalization.{match[3]}", tensor
        return
    ours = PARTS[match[2]]
    block = f"transformer_encoder.{int(match[1] or 0)}" if layers > 1 else "transformer_encoder"
    for one, share in zip(ours, tensor.chunk(len(ours)), strict=True):
        yield f"{block}.{one}{match[3]}", share
