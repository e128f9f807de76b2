"""Sizes, shapes and costs. Channels last; the batch is implicit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

Dim = int | str
"""A size, or the name of a size that is not known yet."""
Shape = tuple[Dim, ...]
"""What one example has: `("T", 64)` is a sequence of any length with 64 features."""


class Misfit(ValueError):
    """A layer cannot work like this.

    `at` names the arguments to underline, `notes` says something about others, `assume` is the shape with which
    to go on checking (None: not known).
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        at: Iterable[str] = (),
        notes: Mapping[str, str] | None = None,
        helps: Iterable[str | None] = (),
        assume: Shape | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.at, self.notes = code, message, tuple(at), dict(notes or {})
        self.helps, self.assume = tuple(helps), assume


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something worth knowing about a layer that works: a note (N…) or a warning (W…)."""

    code: str
    message: str
    at: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one example costs on its way forward."""

    parameters: int = 0
    multiply_adds: int = 0
    """Multiplications with an addition in matrix products and convolutions; additions alone are not counted."""
    activations: int = 0
    """Numbers kept until the backward pass, in 32-bit floats; the layer's own input is counted where it was made."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            parameters=self.parameters + other.parameters,
            multiply_adds=self.multiply_adds + other.multiply_adds,
            activations=self.activations + other.activations,
        )

    def __mul__(self, times: int) -> Cost:
        return Cost(
            parameters=self.parameters * times,
            multiply_adds=self.multiply_adds * times,
            activations=self.activations * times,
        )


def show(shape: Shape, *, batch: bool = False) -> str:
    """`(128, 512)`, or with the batch `(B, 128, 512)`."""
    parts = [*(["B"] if batch else []), *map(str, shape)]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def numbers(x: Shape) -> tuple[int, ...]:
    """The shape where every size is known: costs are always asked with known sizes."""
    if any(isinstance(dim, str) for dim in x):
        raise ValueError(f"sizes not known: {show(x)}")
    return tuple(int(dim) for dim in x)


def size(x: Shape) -> int:
    """How many numbers a shape of known sizes holds."""
    return prod(numbers(x))


def width(x: Shape) -> int:
    """The number of features: the last size, which must be known."""
    if not x:
        raise Misfit("E0302", "a single number arrives here; this layer needs at least a list of features")
    if isinstance(x[-1], str):
        raise Misfit(
            "E0307", f"the number of features must be known here, but {show(x)} arrives",
            helps=["write the last size of `input:` as a number; the others may stay open"],
        )  # fmt: skip
    return x[-1]


def need_rank(x: Shape, rank: int, meaning: str, assume: Shape | None = None) -> None:
    """Refuse a shape with another number of axes; `meaning` says what the axes are, e.g. `(time, features)`."""
    if len(x) != rank:
        raise Misfit(
            "E0302", f"this layer needs {meaning}, but {show(x)} arrives", helps=[_other_axes(x, rank)], assume=assume
        )


def _other_axes(x: Shape, rank: int) -> str:
    """How to come to that many axes."""
    if len(x) == 1 and rank == 2:
        return "a sequence has two sizes, such as `(100, 64)`; pooling and `Flatten` take the first one away"
    if rank == 3 and len(x) == 2 and not any(isinstance(dim, str) for dim in x):
        return f"`Reshape({show((*x, 1))})` makes an image with one channel of it"
    if rank == 2 and len(x) == 3 and not any(isinstance(dim, str) for dim in x):
        return f"`Reshape({show((size(x[:2]), x[2]))})` makes a sequence of it"
    return "`Reshape` gives it other axes"
