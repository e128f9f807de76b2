"""Where does one part end and the next begin? An LSTM in both directions, attention over what it read, a linear map.

    x (B, T, F) → BothWays (2h) → LookAround (width d inside, 2h outside) → dropout → classifier (C)

The attention's own width d may differ from 2h: then, and only then, it is projected in and out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from neural.core.names import snake
from neural.modules.attention.boundary_aware import BoundaryScorer
from neural.modules.both_ways import BothWays
from neural.modules.heads import Heads
from neural.modules.late import Module, nn, torch
from neural.modules.mask import as_bool, check_keep_mask
from neural.modules.mechanism import Mechanism
from neural.modules.position import Position

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class LookAround(Module):
    """Attention among the elements, normed with what it was added to, and added to what came in."""

    def __init__(
        self, outside: int, width: int, heads: int, mechanism: Mechanism, *, dropout: float = 0.0,
        position: Position | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if width % heads:
            raise ValueError(f"{heads} heads do not share a width of {width} evenly")
        placed: Any = None
        if position is not None:
            position.fits(("time", width), heads, width // heads)
            placed = position.build(("time", width), heads)
        inside = placed if position is not None and not position.adds else None
        self.enter = nn.Linear(outside, width) if width != outside else nn.Identity()
        self.position = placed if inside is None and placed is not None else nn.Identity()
        self.heads = Heads(width, heads, width // heads, mechanism, dropout=dropout, position=inside)
        self.norm = nn.LayerNorm(width)
        self.leave = nn.Linear(width, outside) if width != outside else nn.Identity()

    def forward(self, x: Float[Tensor, "B T U"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T U"]:
        """`mask` tells the elements from padding."""
        inner = self.position(self.enter(x))
        return x + self.leave(self.norm(inner + self.heads(inner, mask)))


class Segmenter(Module):
    """Scores of the classes for every element of a document."""

    centre: Tensor
    spread: Tensor

    def __init__(
        self, inputs: int, classes: int, *, hidden_dim: int, num_layers: int, dropout: float = 0.0,
        input_dropout: float = 0.0, attention: LookAround | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.input_dropout = nn.Dropout(input_dropout)
        self.lstm = BothWays(inputs, hidden_dim, num_layers, dropout)
        self.attention = attention
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * hidden_dim, classes)
        self.register_buffer("centre", torch.zeros(inputs))
        self.register_buffer("spread", torch.ones(inputs))

    def standardize(self, centre: Float[Tensor, " F"], spread: Float[Tensor, " F"]) -> None:
        """Take the inputs as (x − centre) / spread from now on; saved with the weights."""
        self.centre.copy_(centre)
        self.spread.copy_(spread)

    def forward(self, x: Float[Tensor, "B T F"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T C"]:
        """Probabilities of the classes."""
        return self.scores(x, mask).softmax(dim=-1)

    def scores(self, x: Float[Tensor, "B T F"], mask: Bool[Tensor, "B T"] | None = None) -> Float[Tensor, "B T C"]:
        """What the loss takes. `mask` is True for the first elements of each row; what stands at padding means nothing.
        """
        wanted = self.centre.shape[0]
        if x.ndim != 3 or x.shape[-1] != wanted:
            raise ValueError(f"the model takes (documents, elements, {wanted}), got {tuple(x.shape)}")
        check_keep_mask(mask)
        mask = as_bool(mask)
        read = self.lstm(self.input_dropout((x - self.centre) / self.spread), mask)
        if self.attention is not None:
            read = self.attention(read, mask)
        return self.classifier(self.dropout(read))

    @property
    def boundary_logits(self) -> Float[Tensor, "B T"] | None:
        """What boundary-aware attention held each element of the last call for; None where there is no such score."""
        scorer = None if self.attention is None else self.attention.heads.learned
        return scorer.logits if isinstance(scorer, BoundaryScorer) else None


def shares(model: nn.Module) -> list[tuple[str, int, float]]:
    """What the parameters are for: part, number, share of all. Parts of the attention follow it, indented."""
    found: dict[str, int] = {}
    own = {name: snake(type(one).__name__).replace("_", " ") for name, one in model.named_modules()}
    for name, one in model.named_parameters():
        for part in _parts(name, own.get("attention.heads.learned", "")):
            found[part] = found.get(part, 0) + one.numel()
    whole = sum(one.numel() for one in model.parameters())
    return [(part, number, number / whole) for part, number in found.items()]


def summary(model: nn.Module) -> str:
    """The parameters as a table, with percentages."""
    rows = [(part, f"{number:,}", percent(share)) for part, number, share in shares(model)]
    rows.append(("total", f"{sum(one.numel() for one in model.parameters()):,}", ""))
    head = ("part", "parameters", "share")
    left, middle, right = (max(len(row[column]) for row in (head, *rows)) for column in range(3))
    lines = [f"{one:<{left}}  {two:>{middle}}  {three:>{right}}".rstrip() for one, two, three in (head, *rows)]
    rule = "─" * (left + middle + right + 4)
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


def percent(share: float) -> str:
    """One decimal, or as many as the first digit needs."""
    return f"{share:.1%}" if share >= 0.001 or share == 0 else f"{share:.2%}"


NAMES = {"lstm": "LSTM", "attention": "attention", "classifier": "classifier"}
INSIDE = {
    "enter": "projections in and out", "leave": "projections in and out", "norm": "norm", "position": "positions",
    "heads.position": "positions", "heads.learned": "", "heads": "queries, keys, values, output",
}  # fmt: skip
"""What a name inside the attention is for, the first that fits; what a mechanism learns is called as its class is."""


def _parts(name: str, learned: str) -> Iterator[str]:
    first, _, rest = name.partition(".")
    yield NAMES.get(first, first)
    if first == "attention":
        yield "  " + next(said or learned for start, said in INSIDE.items() if rest.startswith(f"{start}."))
