"""Text generation with a network that predicts the next token.

    decoder = create_decoder(model)
    for token in generate_tokens(decoder, prompt, 500, Sampler(len(prompt), temperature=0.8)):
        token.ids                                   one new id per sample

A sample is one of the texts that are generated at the same time. A decoder (sampling.py) computes
the logits of the next token. The window is the part of the text that the network reads, at most
`context` tokens. When it is full, its last half is read again at the positions 0, 1, …, because
learned positions end with the window. All decoders do that, so all generate the same text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from neural.nn.build import NetworkModule
from neural.nn.compiled_decoder import CompiledDecoder, Precision, find_compile_obstacle
from neural.nn.kernel_dispatch import kernels_available
from neural.nn.lazy_torch import torch
from neural.nn.quantization import quantize_model
from neural.nn.sampling import (
    CachedDecoder,
    DecodingError,
    RecomputedDecoder,
    Sampler,
    TokenDecoder,
    find_cache_obstacle,
    resolve_context,
)

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

DecoderName = Literal["auto", "compiled", "cached", "recomputed"]
"""Which decoder class to use; "auto" is the fastest that supports the network."""


def create_decoder(
    model: NetworkModule,
    *,
    context: int | None = None,
    decoder: DecoderName = "auto",
    precision: Precision | Literal["auto"] = "float32",
    capture_weights: bool = False,
) -> TokenDecoder:
    """The fastest decoder for a network, or the named one; DecodingError if it is not supported.

    `context` is the size of the window in tokens, by default the length of the program's input.
    With `precision="int8"` compiled steps are faster, and logits change by a few thousandths of
    their standard deviation; "auto" uses int8 for every network that the compiled decoder
    supports. `capture_weights` makes attention weights available. All decoders generate the same
    text at the same precision.
    """
    # Why the compiled decoder does not support the network; None if it does.
    context, obstacle = resolve_context(model, context), find_compile_obstacle(model)
    if precision == "auto":
        precision = "float32" if obstacle else "int8"
    if precision == "int8" and obstacle:
        raise DecodingError(f"{model.network.name} cannot have int8 weights: {obstacle}")
    if not kernels_available():
        obstacle = obstacle or "native kernels were not built, or NEURAL_KERNELS is off"
    if decoder == "compiled" or (decoder == "auto" and not capture_weights and not obstacle):
        if obstacle:
            raise DecodingError(
                f"{model.network.name} cannot be decoded by the compiled step: {obstacle}"
            )
        return CompiledDecoder(model, context, precision)
    model = quantize_model(model) if precision == "int8" else model
    if decoder == "recomputed" or (
        decoder == "auto" and not capture_weights and find_cache_obstacle(model.network)
    ):
        return RecomputedDecoder(model, context)
    return CachedDecoder(model, context, capture_weights=capture_weights)


@dataclass(frozen=True)
class GeneratedToken:
    """The next token of every sample."""

    ids: np.ndarray
    """Shape (samples,)."""
    window_start: int
    """First position of the window that predicted the token; the prompt starts at 0."""
    attention_weights: dict[str, np.ndarray]
    """Attention weights (samples, heads, keys) of the position that predicted the token.

    Keys of the dict are module paths. Empty unless captured.
    """


def generate_tokens(
    decoder: TokenDecoder,
    prompt: Int[Tensor, "B T"],
    max_tokens: int,
    sampler: Sampler,
    *,
    when_full: Literal["slide", "stop"] = "slide",
    capture_weights: bool = False,
) -> Iterator[GeneratedToken]:
    """Generate up to `max_tokens` tokens per sample. The start of a too long prompt is cut off.

    When the window is full, "slide" reads its last half again and continues, "stop" ends the text.
    """
    context, window_start = decoder.context, max(0, prompt.shape[1] - decoder.context)
    logits, generated = decoder.start(prompt[:, window_start:]), list[np.ndarray]()
    for index in range(max_tokens):
        generated.append(sampler.sample(logits.float().cpu().numpy()))
        attention_weights = (
            {
                path: weights.float().cpu().numpy()
                for path, weights in decoder.attention_weights().items()
            }
            if capture_weights
            else {}
        )
        yield GeneratedToken(generated[-1], window_start, attention_weights)
        if index + 1 == max_tokens or (decoder.length == context and when_full == "stop"):
            return
        if decoder.length < context:
            logits = decoder.step(torch.from_numpy(generated[-1]).to(prompt.device))
        else:
            half = max(1, context // 2)
            window_start = prompt.shape[1] + len(generated) - half
            newest = torch.from_numpy(np.stack(generated[-half:], axis=1)).to(prompt.device)
            logits = decoder.start(torch.cat((prompt, newest), dim=1)[:, -half:])
