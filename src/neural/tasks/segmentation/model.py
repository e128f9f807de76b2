"""The segmenter network: bidirectional LSTM, self-attention block, linear classifier per element.

    x (B, T, F) → BiLSTM (2h) → AttentionBlock (d inside, 2h outside) → dropout → classifier (C)

A sequence is a document of T elements (sentences or lines) with F features each. h is the hidden
width of each LSTM direction, C the number of classes. The attention width d may differ from 2h;
only then are there linear projections before and after the attention.

A `Mechanism` (nn/mechanism.py) computes attention weights, a `Position` (nn/position.py) is a
positional encoding; both are declarations, which build torch modules.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from neural.core.names import to_snake_case
from neural.nn.attention.boundary_aware import BoundaryScorer
from neural.nn.bilstm import BiLSTM
from neural.nn.lazy_torch import Module, nn, torch
from neural.nn.mask import as_bool, check_keep_mask
from neural.nn.mechanism import Mechanism
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.nn.position import Position

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor


class AttentionBlock(Module):
    """Self-attention block with a residual connection.

    x + output_projection(norm(y + attention(y))) with y = position(input_projection(x)).
    """

    def __init__(
        self,
        input_width: int,
        attention_dim: int,
        num_heads: int,
        mechanism: Mechanism,
        *,
        dropout: float = 0.0,
        position: Position | None = None,
    ) -> None:
        super().__init__()
        if attention_dim % num_heads:
            raise ValueError(f"{num_heads} heads do not share a width of {attention_dim} evenly")
        encoding: Any = None
        if position is not None:
            position.validate(("time", attention_dim), num_heads, attention_dim // num_heads)
            encoding = position.build(("time", attention_dim), num_heads)
        # Additive encodings are added before the attention; others (rotary, relative, ALiBi) are
        # applied inside it.
        inner_encoding = encoding if position is not None and not position.is_additive else None
        self.input_projection = (
            nn.Linear(input_width, attention_dim) if attention_dim != input_width else nn.Identity()
        )
        self.position = (
            encoding if inner_encoding is None and encoding is not None else nn.Identity()
        )
        # The attention module. The name is part of the keys of saved weights.
        self.heads = MultiHeadAttentionModule(
            attention_dim,
            num_heads,
            attention_dim // num_heads,
            mechanism,
            dropout=dropout,
            position=inner_encoding,
        )
        self.norm = nn.LayerNorm(attention_dim)
        self.output_projection = (
            nn.Linear(attention_dim, input_width) if attention_dim != input_width else nn.Identity()
        )

    def forward(
        self, x: Float[Tensor, "B T U"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T U"]:
        """Output of the same shape as `x`. `mask` is True for elements, False for padding."""
        inner = self.position(self.input_projection(x))
        return x + self.output_projection(self.norm(inner + self.heads(inner, mask)))


class Segmenter(Module):
    """Network that predicts a class for every element. It standardizes its inputs itself."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        num_features: int,
        num_classes: int,
        *,
        hidden_dim: int,
        num_layers: int,
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        attention: AttentionBlock | None = None,
    ) -> None:
        super().__init__()
        self.input_dropout = nn.Dropout(input_dropout)
        self.lstm = BiLSTM(num_features, hidden_dim, num_layers, dropout)
        self.attention = attention
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * hidden_dim, num_classes)
        self.register_buffer("mean", torch.zeros(num_features))
        self.register_buffer("std", torch.ones(num_features))

    def set_standardization(self, mean: Float[Tensor, " F"], std: Float[Tensor, " F"]) -> None:
        """Use (x − mean) / std as input from now on; both are saved with the weights."""
        self.mean.copy_(mean)
        self.std.copy_(std)

    def forward(
        self, x: Float[Tensor, "B T F"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        """Class probabilities."""
        return self.logits(x, mask).softmax(dim=-1)

    def logits(
        self, x: Float[Tensor, "B T F"], mask: Bool[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T C"]:
        """Class logits. `mask` is True for elements, False for padding at the end of each row.

        Logits at padding are meaningless.
        """
        num_features = self.mean.shape[0]
        if x.ndim != 3 or x.shape[-1] != num_features:
            raise ValueError(
                f"the model takes (documents, elements, {num_features}), got {tuple(x.shape)}"
            )
        check_keep_mask(mask)
        mask = as_bool(mask)
        hidden = self.lstm(self.input_dropout((x - self.mean) / self.std), mask)
        if self.attention is not None:
            hidden = self.attention(hidden, mask)
        return self.classifier(self.dropout(hidden))

    @property
    def boundary_logits(self) -> Float[Tensor, "B T"] | None:
        """Boundary logits inside the attention in the last forward pass, for an auxiliary loss.

        Only boundary-aware attention has them: its `BoundaryScorer` predicts where segments begin.
        None for any other attention.
        """
        # `learned` is the module with the mechanism's own parameters, if it has any.
        scorer = None if self.attention is None else self.attention.heads.learned
        return scorer.logits if isinstance(scorer, BoundaryScorer) else None


def parameter_shares(model: nn.Module) -> list[tuple[str, int, float]]:
    """Number of parameters by module, as rows of (label, count, fraction of all parameters).

    The row of the attention is followed by rows of its parts, whose labels are indented.
    """
    counts: dict[str, int] = {}
    class_labels = {
        name: to_snake_case(type(module).__name__).replace("_", " ")
        for name, module in model.named_modules()
    }
    for name, param in model.named_parameters():
        for label in _module_labels(name, class_labels.get("attention.heads.learned", "")):
            counts[label] = counts.get(label, 0) + param.numel()
    total = sum(param.numel() for param in model.parameters())
    return [(label, count, count / total) for label, count in counts.items()]


def format_parameter_table(model: nn.Module) -> str:
    """Text table of `parameter_shares` with percentages and the total."""
    rows = [
        (label, f"{count:,}", format_percent(share))
        for label, count, share in parameter_shares(model)
    ]
    rows.append(("total", f"{sum(param.numel() for param in model.parameters()):,}", ""))
    header = ("module", "parameters", "share")
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(3)]
    lines = [
        f"{label:<{widths[0]}}  {count:>{widths[1]}}  {share:>{widths[2]}}".rstrip()
        for label, count, share in (header, *rows)
    ]
    rule = "─" * (sum(widths) + 4)
    return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1]])


def format_percent(share: float) -> str:
    """Percentage with one decimal; with two for shares below 0.1 %."""
    return f"{share:.1%}" if share >= 0.001 or share == 0 else f"{share:.2%}"


MODULE_LABELS = {"lstm": "LSTM", "attention": "attention", "classifier": "classifier"}
"""Row label in the parameter table by the first part of a parameter's name."""
ATTENTION_MODULE_LABELS = {
    "input_projection": "projections in and out",
    "output_projection": "projections in and out",
    "norm": "norm",
    "position": "positions",
    "heads.position": "positions",
    "heads.learned": "",
    "heads": "queries, keys, values, output",
}
"""Row label by prefix of a parameter's name inside the attention; the first match counts.

`heads.learned` is the module with the mechanism's own parameters; its label is its class name.
"""


def _module_labels(name: str, mechanism_label: str) -> Iterator[str]:
    """Yield the labels of the rows in which the parameter `name` is counted.

    `mechanism_label` is the label of the mechanism's own module.
    """
    module_name, _, inner_name = name.partition(".")
    yield MODULE_LABELS.get(module_name, module_name)
    if module_name == "attention":
        yield "  " + next(
            label or mechanism_label
            for prefix, label in ATTENTION_MODULE_LABELS.items()
            if inner_name.startswith(f"{prefix}.")
        )
