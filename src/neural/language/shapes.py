"""Shapes and costs in the `.neural` language. Channels last; the batch axis is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from neural.core.errors import NeuralError

Dim = int | str
"""A size, or the name of a size that the program leaves open, such as "T"."""
Shape = tuple[Dim, ...]
"""Shape of one example: `("T", 64)` is a sequence of any length with 64 features."""


class ShapeError(NeuralError, ValueError):
    """A layer cannot be applied: shapes or arguments do not fit.

    `code` is the diagnostic code, `at` names the arguments to underline, `notes` are labels for
    other arguments by name. Checking continues with the shape `assumed_output`, None if unknown.
    `layer_before` is the layer that a fix puts before this one, such as `Reshape((196, 16))`.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        at: Iterable[str] = (),
        notes: Mapping[str, str] | None = None,
        helps: Iterable[str | None] = (),
        assumed_output: Shape | None = None,
        layer_before: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.message, self.at, self.notes = code, message, tuple(at), dict(notes or {})
        self.helps, self.assumed_output = tuple(helps), assumed_output
        self.layer_before = layer_before


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerAdvice:
    """A note (code N…) or warning (W…) about a valid layer; `at`: arguments to underline."""

    code: str
    message: str
    at: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Cost of one example in the forward pass."""

    parameters: int = 0
    multiply_adds: int = 0
    """Multiply-adds of matrix products and convolutions; plain additions are not counted."""
    activations: int = 0
    """Float32 values stored for the backward pass. Counts a layer's own results, not its input: the
    layer that computed the input counts it."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            parameters=self.parameters + other.parameters,
            multiply_adds=self.multiply_adds + other.multiply_adds,
            activations=self.activations + other.activations,
        )

    def __mul__(self, factor: int) -> Cost:
        return Cost(
            parameters=self.parameters * factor,
            multiply_adds=self.multiply_adds * factor,
            activations=self.activations * factor,
        )


def format_shape(shape: Shape, *, batch: bool = False) -> str:
    """`(128, 512)`, or with the batch `(B, 128, 512)`."""
    parts = [*(["B"] if batch else []), *map(str, shape)]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def require_known_sizes(x: Shape) -> tuple[int, ...]:
    """The shape as integers. Raises ValueError if a size is open."""
    if any(isinstance(dim, str) for dim in x):
        raise ValueError(f"sizes not known: {format_shape(x)}")
    return tuple(int(dim) for dim in x)


def numel(x: Shape) -> int:
    """Number of elements of a shape with known sizes."""
    return prod(require_known_sizes(x))


def feature_width(x: Shape) -> int:
    """The last size, which must be known. Raises ShapeError otherwise."""
    if not x:
        raise ShapeError(
            "E0302", "a single number arrives here; this layer needs at least a list of features"
        )
    if isinstance(x[-1], str):
        raise ShapeError(
            "E0307",
            f"the number of features must be known here, but {format_shape(x)} arrives",
            helps=["write the last size of `input:` as a number; the others may stay open"],
        )
    return x[-1]


def require_rank(x: Shape, rank: int, axes: str, assumed_output: Shape | None = None) -> None:
    """Raise ShapeError unless `x` has `rank` axes; `axes` names them, e.g. `(time, features)`.

    `assumed_output` is the shape with which checking continues.
    """
    if len(x) != rank:
        raise ShapeError(
            "E0302",
            f"this layer needs {axes}, but {format_shape(x)} arrives",
            helps=[_suggest_reshape(x, rank)],
            assumed_output=assumed_output,
            layer_before=_make_sequence(x) if rank == 2 else None,
        )


def _suggest_reshape(x: Shape, rank: int) -> str:
    """Help text: how to give `x` that many axes."""
    if len(x) == 1 and rank == 2:
        return (
            "a sequence has two sizes, such as `(100, 64)`; "
            "pooling and `Flatten` take the first one away"
        )
    if rank == 3 and len(x) == 2 and not any(isinstance(dim, str) for dim in x):
        return f"`Reshape({format_shape((*x, 1))})` makes an image with one channel of it"
    sequence = _make_sequence(x) if rank == 2 else None
    return f"`{sequence}` makes a sequence of it" if sequence else "`Reshape` gives it other axes"


def _make_sequence(x: Shape) -> str | None:
    """The `Reshape` that makes a sequence of an image of known size."""
    if len(x) != 3 or any(isinstance(dim, str) for dim in x):
        return None
    return f"Reshape({format_shape((numel(x[:2]), x[2]))})"
