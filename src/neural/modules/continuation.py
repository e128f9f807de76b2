"""One token after the other from a network that predicts the next one.

    decoding = decoding_of(model)
    for drawn in continued(decoding, prompt, 500, Sampler(len(prompt), temperature=0.8)):
        drawn.ids                                   one new id per sample

When the window is full, the text goes on with its last half read anew at the positions 0, 1, …: learned positions end
where the window does. All ways of decoding do the same, so all give the same text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from neural.modules.build import Built
from neural.modules.compiled import numba_is_there
from neural.modules.decoding import Cached, CannotDecode, Decoding, Recomputed, unfit_for_cache, window_of
from neural.modules.late import torch
from neural.modules.packed import Compiled, Precision, unfit
from neural.modules.rounded import rounded
from neural.modules.sampling import Sampler

if TYPE_CHECKING:
    from jaxtyping import Int
    from torch import Tensor

Way = Literal["auto", "compiled", "cached", "recomputed"]


def decoding_of(
    model: Built, *, context: int | None = None, way: Way = "auto", precision: Precision | Literal["auto"] = "float32",
    watched: bool = False,
) -> Decoding:  # fmt: skip
    """The fastest way that fits the network, or the one that is named; CannotDecode says why there is none.

    `context` is the window, by default as long as the program's input. `precision` of the weights: "int8" makes
    compiled steps faster and moves scores by a few thousandths of their spread; "auto" takes it for every network that
    such steps could be made for. Ways give the same text as long as the precision is the same.
    """
    context, why = window_of(model, context), unfit(model)
    if precision == "auto":
        precision = "float32" if why else "int8"
    if precision == "int8" and why:
        raise CannotDecode(f"{model.network.name} cannot have int8 weights: {why}")
    if not numba_is_there():
        why = why or "numba is not there, or NEURAL_KERNELS says off"
    model = rounded(model) if precision == "int8" else model
    if way == "compiled" or (way == "auto" and not watched and not why):
        if why:
            raise CannotDecode(f"{model.network.name} cannot be decoded by the compiled step: {why}")
        return Compiled(model, context, precision)
    if way == "recomputed" or (way == "auto" and not watched and unfit_for_cache(model.network)):
        return Recomputed(model, context)
    return Cached(model, context, watched=watched)


@dataclass(frozen=True)
class Drawn:
    """A new token of every sample."""

    ids: np.ndarray
    """(samples,)."""
    first: int
    """The position in the text, counted from the prompt's beginning, at which the window began that it follows from."""
    seen: dict[str, np.ndarray]
    """Where the decoding is watched: what the position before it looked at, (samples, heads, keys) by attention."""


def continued(
    decoding: Decoding, prompt: Int[Tensor, "B T"], tokens: int, sampler: Sampler, *,
    when_full: Literal["slide", "stop"] = "slide", watched: bool = False,
) -> Iterator[Drawn]:  # fmt: skip
    """New tokens one after the other. Of a prompt longer than the window, the end counts.

    "slide": when the window is full, its last half is read anew. "stop": the text ends there.
    """
    context, first = decoding.context, max(0, prompt.shape[1] - decoding.context)
    scores, new = decoding.start(prompt[:, first:]), list[np.ndarray]()
    for number in range(tokens):
        new.append(sampler.choose(scores.float().cpu().numpy()))
        seen = {path: one.float().cpu().numpy() for path, one in decoding.seen().items()} if watched else {}
        yield Drawn(new[-1], first, seen)
        if number + 1 == tokens or (decoding.length == context and when_full == "stop"):
            return
        if decoding.length < context:
            scores = decoding.step(torch.from_numpy(new[-1]).to(prompt.device))
        else:
            half = max(1, context // 2)
            first = prompt.shape[1] + len(new) - half
            late = torch.from_numpy(np.stack(new[-half:], axis=1)).to(prompt.device)
            scores = decoding.start(torch.cat((prompt, late), dim=1)[:, -half:])
