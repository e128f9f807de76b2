"""The two networks of a focus model: one scores segments, one classifies them. Both are programs of the language."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.diagnostics import Source
from neural.language.network import Network
from neural.language.shapes import Shape, show
from neural.modules.build import build
from neural.modules.late import Module, torch
from neural.tasks._program import checked, program_source
from neural.tasks.task import TaskError

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.language.catalogue import Catalogue

WIDTH = 32
"""Of the hidden layer, where no network was given."""
LOSS = 'loss: "sparse_categorical_crossentropy"'
"""With it, a classifier's scores are what comes before its softmax."""
DONE, STAGE, AGREED, SWITCHED = range(4)
"""Places in `history`: batches learned, stage, checks in a row that agreed, the batch of the switch."""


class FocusModel(Module):
    """A focus and a classifier; counts the segments that the classifier reads."""

    history: Tensor

    def __init__(self, focus: Network, classifier: Network, *, rate: float = 1.0, informed: bool = False) -> None:
        """`rate` is the focus's learning rate over the classifier's.

        `informed` adds a second classifier: its score of the label is how much a segment looks like the one behind it.
        """
        super().__init__()
        self.inference: Any = build(classifier) if informed else None
        self.faster = {"focus.": rate}   # what the engine asks for
        self.focus: Any = build(focus)
        self.classifier: Any = build(classifier)
        layers = classifier.layers
        stem = 1 + max((at for at, one in enumerate(layers) if one.layer.role == "embedding"), default=-1)
        self._parts = {"stem": layers[:stem], "body": layers[stem:-1], "rest": layers[stem:], "head": layers[-1:]}
        # what a schedule has to remember; saved with the weights, so that a run goes on where it was
        self.register_buffer("history", torch.zeros(4, dtype=torch.int64))
        self.calls = 0

    def score(self, x: Float[Tensor, "B m *shape"]) -> Float[Tensor, "B m"]:
        """How much each segment looks like the one that matters."""
        return self.focus.scores(x.flatten(0, 1)).view(x.shape[:2])

    def classify(self, x: Tensor) -> Float[Tensor, "N C"]:
        """The classifier's scores of segments, (N, …)."""
        self.calls += len(x)
        return self.classifier.scores(x)

    def classify_blend(self, x: Float[Tensor, "B m *shape"], weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Scores of the weighted mean of the segments; ids are embedded before they are averaged."""
        self.calls += len(x)
        return self._through("rest", blend(self._each("stem", x), weights))

    def classify_features(self, x: Float[Tensor, "B m *shape"], weights: Float[Tensor, "B m"]) -> Float[Tensor, "B C"]:
        """Scores of the weighted mean of what the last layer reads."""
        self.calls += x.shape[0] * x.shape[1]
        inner = self._each("stem", x)
        return self._through("head", blend(self._each("body", inner), weights))

    def classify_blend_of(self, x: Tensor, weights: Float[Tensor, "B U"]) -> Float[Tensor, "B C"]:
        """Scores of weighted means of segments that all examples share, (U, …)."""
        self.calls += len(weights)
        return self._through("rest", mean_of(self._through("stem", x), weights))

    def classify_features_of(self, x: Tensor, weights: Float[Tensor, "B U"]) -> Float[Tensor, "B C"]:
        """The same of what the last layer reads of them; the calls are for whoever knows them to count."""
        return self._through("head", mean_of(self._through("body", self._through("stem", x)), weights))

    def forward(self, x: Float[Tensor, "B m *shape"]) -> Float[Tensor, "B m"]:
        """The focus on each segment."""
        return self.score(x).softmax(dim=-1)

    def _each(self, part: str, x: Tensor) -> Tensor:
        return self._through(part, x.flatten(0, 1)).unflatten(0, x.shape[:2])

    def _through(self, part: str, x: Tensor) -> Tensor:
        return self.classifier.through(self._parts[part], x, None)[0]


def blend(x: Float[Tensor, "B m *shape"], weights: Float[Tensor, "B m"]) -> Tensor:
    """The weighted mean of the segments."""
    return torch.einsum("bm,bmd->bd", weights, x.flatten(2)).unflatten(1, x.shape[2:])


def mean_of(x: Tensor, weights: Float[Tensor, "B U"]) -> Tensor:
    """Weighted means of what all examples share, (U, …)."""
    return (weights @ x.flatten(1)).unflatten(1, x.shape[1:])


def default_program(name: str, shape: Shape, outputs: int, vocabulary: int | None) -> str:
    """A small perceptron over one segment."""
    head = f'Output({outputs}, activation="softmax")' if outputs > 1 else "Output(1)"
    layers = [f"Embedding(input_dim={vocabulary}, output_dim={WIDTH})"] if vocabulary else []
    layers += ["Flatten()"] if vocabulary or len(shape) > 1 else []
    layers += [f'Dense({WIDTH}, activation="relu")', head]
    written = "\n    ".join(layers)
    loss = f"\n  {LOSS}" if outputs > 1 else ""
    return f"network {name} {{\n  input: {show(shape)}\n  layers:\n    {written}{loss}\n}}\n"


def network_of(
    said: str | None, name: str, folder: Path, catalogue: Catalogue, *, shape: Shape, outputs: int,
    vocabulary: int | None,
) -> tuple[Source, Network]:  # fmt: skip
    """The program that was named, or the usual one; TaskError where it does not fit the segments."""
    if said is None:
        source = Source("the program", default_program(name, shape, outputs, vocabulary))
    else:
        source = program_source(said, folder)
    found = checked(source, catalogue, None)
    if found.two_streams or (found.output != (outputs,)):
        what = "one score" if name == "Focus" else f"{outputs} class scores"
        way = "Output(1)" if name == "Focus" else f'Output({outputs}, activation="softmax")'
        raise TaskError(f"{found.name} gives {show(found.output)}, but must give {what} per segment: end with `{way}`")
    if found.ids != (vocabulary is not None):
        kind = "tokens" if vocabulary else "numbers"
        raise TaskError(f"{found.name} takes {'ids' if found.ids else 'numbers'}, but the segments are {kind}")
    if getattr(found.layers[-1].layer, "activation", "linear") != "linear" and found.head == "linear":
        raise TaskError(f"{found.name} ends in an activation, but scores are needed: " + (
            "write `Output(1)`" if name == "Focus" else f"add the line `{LOSS}`"))
    fits = len(found.input) == len(shape) and all(
        isinstance(want, str) or want == got for want, got in zip(found.input, shape, strict=True)
    )
    if not fits:
        raise TaskError(f"{found.name} takes {show(found.input)}, but segments are {show(shape)}; change its `input:`")
    return source, found
