"""Focus model: one network scores segments, one classifies them. Both are `.neural` programs.

The focus is the softmax of the scores over the m segments of an example. A unit is a distinct
segment that several examples may share. A blend is the mean of segments weighted by their focus.
The method `logits` of a built network returns its output before the final activation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.diagnostics import SourceText
from neural.core.errors import TaskError
from neural.language.network import Network
from neural.language.shapes import Shape, format_shape
from neural.nn.build import build
from neural.nn.lazy_torch import Module, torch
from neural.tasks._program_task import check_program, load_program

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from neural.language.catalogue import Catalogue

DEFAULT_HIDDEN_WIDTH = 32
"""Width of embedding and hidden layer of the default networks."""
CLASSIFIER_LOSS = 'loss: "sparse_categorical_crossentropy"'
"""Line that a classifier's program needs: with it, `logits` is the output before the softmax."""
BATCHES_DONE, STAGE, CHECKS_AGREED, SWITCH_BATCH = range(4)
"""Indices of `FocusModel.schedule_state`, the state of a hybrid: a loss (paradigms/hybrid.py) that
switches from one paradigm to another. Number of trained batches; 1 after the switch, 0 before;
number of consecutive checks in favour of the switch; number of trained batches at the switch."""


class FocusModel(Module):
    """Focus network and classifier. `classifier_calls` counts classified segments or blends."""

    schedule_state: Tensor

    def __init__(
        self,
        focus: Network,
        classifier: Network,
        *,
        focus_lr_factor: float = 1.0,
        with_inference_network: bool = False,
    ) -> None:
        """`focus_lr_factor`: learning rate of the focus relative to the classifier's.

        `with_inference_network` adds a second classifier, whose logit of the label is the score of
        a segment (variational attention).
        """
        super().__init__()
        self.inference: Any = build(classifier) if with_inference_network else None
        self.rate_factors = {"focus.": focus_lr_factor}  # read by the training engine
        self.focus: Any = build(focus)
        self.classifier: Any = build(classifier)
        layers = classifier.layers
        stem_length = 1 + max(
            (index for index, entry in enumerate(layers) if entry.layer.role == "embedding"),
            default=-1,
        )
        # Layers of the classifier. The stem ends with the last embedding, because a blend averages
        # embeddings, not token ids. The head is the last layer; rest = body + head.
        self._layer_groups = {
            "stem": layers[:stem_length],
            "body": layers[stem_length:-1],
            "rest": layers[stem_length:],
            "head": layers[-1:],
        }
        # A buffer, so that checkpoints save the state and runs can resume.
        self.register_buffer("schedule_state", torch.zeros(4, dtype=torch.int64))
        self.classifier_calls = 0

    def score(self, x: Float[Tensor, "B m *shape"]) -> Float[Tensor, "B m"]:
        """Scores of the segments; their softmax is the focus."""
        return self.focus.logits(x.flatten(0, 1)).view(x.shape[:2])

    def classify(self, x: Tensor) -> Float[Tensor, "N C"]:
        """Class logits of segments (N, …)."""
        self.classifier_calls += len(x)
        return self.classifier.logits(x)

    def classify_blend(
        self, x: Float[Tensor, "B m *shape"], weights: Float[Tensor, "B m"]
    ) -> Float[Tensor, "B C"]:
        """Class logits of the blend of the segments of each example."""
        self.classifier_calls += len(x)
        return self._apply_layers(
            "rest", average_segments(self._apply_to_segments("stem", x), weights)
        )

    def classify_features(
        self, x: Float[Tensor, "B m *shape"], weights: Float[Tensor, "B m"]
    ) -> Float[Tensor, "B C"]:
        """Class logits of the weighted mean of the last layer's inputs."""
        self.classifier_calls += x.shape[0] * x.shape[1]
        inner = self._apply_to_segments("stem", x)
        return self._apply_layers(
            "head", average_segments(self._apply_to_segments("body", inner), weights)
        )

    def classify_shared_blend(
        self, x: Tensor, weights: Float[Tensor, "B U"]
    ) -> Float[Tensor, "B C"]:
        """Class logits of blends of units `x` (U, …), which all examples share."""
        self.classifier_calls += len(weights)
        return self._apply_layers(
            "rest", average_shared_segments(self._apply_layers("stem", x), weights)
        )

    def classify_shared_features(
        self, x: Tensor, weights: Float[Tensor, "B U"]
    ) -> Float[Tensor, "B C"]:
        """As `classify_features`, for units `x` (U, …), which all examples share.

        The caller counts the classifier calls: it knows the number of segments, this method only
        the number of units.
        """
        return self._apply_layers(
            "head",
            average_shared_segments(
                self._apply_layers("body", self._apply_layers("stem", x)), weights
            ),
        )

    def forward(self, x: Float[Tensor, "B m *shape"]) -> Float[Tensor, "B m"]:
        """Focus weight of each segment."""
        return self.score(x).softmax(dim=-1)

    def _apply_to_segments(self, group: str, x: Tensor) -> Tensor:
        """Apply a group of layers of the classifier to segments (B, m, …)."""
        return self._apply_layers(group, x.flatten(0, 1)).unflatten(0, x.shape[:2])

    def _apply_layers(self, group: str, x: Tensor) -> Tensor:
        return self.classifier.run_layers(self._layer_groups[group], x, None)[0]


def average_segments(x: Float[Tensor, "B m *shape"], weights: Float[Tensor, "B m"]) -> Tensor:
    """Weighted mean of the segments, (B, *shape)."""
    return torch.einsum("bm,bmd->bd", weights, x.flatten(2)).unflatten(1, x.shape[2:])


def average_shared_segments(x: Tensor, weights: Float[Tensor, "B U"]) -> Tensor:
    """Weighted means of the units `x` (U, …), which all examples share, as (B, …)."""
    return (weights @ x.flatten(1)).unflatten(1, x.shape[1:])


def write_default_program(name: str, shape: Shape, outputs: int, vocabulary: int | None) -> str:
    """Program text of a small MLP over one segment."""
    output_layer = f'Output({outputs}, activation="softmax")' if outputs > 1 else "Output(1)"
    layers = (
        [f"Embedding(input_dim={vocabulary}, output_dim={DEFAULT_HIDDEN_WIDTH})"]
        if vocabulary
        else []
    )
    layers += ["Flatten()"] if vocabulary or len(shape) > 1 else []
    layers += [f'Dense({DEFAULT_HIDDEN_WIDTH}, activation="relu")', output_layer]
    layer_lines = "\n    ".join(layers)
    loss = f"\n  {CLASSIFIER_LOSS}" if outputs > 1 else ""
    body = f"  input: {format_shape(shape)}\n  layers:\n    {layer_lines}{loss}"
    return f"network {name} {{\n{body}\n}}\n"


def load_network(
    program: str | None,
    name: str,
    folder: Path,
    catalogue: Catalogue,
    *,
    shape: Shape,
    outputs: int,
    vocabulary: int | None,
) -> tuple[SourceText, Network]:
    """Load the network of `program` (a file name or the program text); None: a default network.

    Raises TaskError if it does not fit segments of shape `shape`. `name` is "Focus" or
    "Classifier". `vocabulary` is the number of token ids, None if segments are numbers.
    """
    if program is None:
        source = SourceText("the program", write_default_program(name, shape, outputs, vocabulary))
    else:
        source = load_program(program, folder)
    network = check_program(source, catalogue, None)
    if network.is_encoder_decoder or (network.output != (outputs,)):
        expected = "one score" if name == "Focus" else f"{outputs} class logits"
        output_layer = (
            "Output(1)" if name == "Focus" else f'Output({outputs}, activation="softmax")'
        )
        raise TaskError(
            f"{network.name} outputs {format_shape(network.output)}, but must output {expected} "
            f"per segment: end with `{output_layer}`"
        )
    if network.takes_token_ids != (vocabulary is not None):
        kind = "tokens" if vocabulary else "numbers"
        raise TaskError(
            f"{network.name} takes {'token ids' if network.takes_token_ids else 'numbers'}, but "
            f"the segments are {kind}"
        )
    if (
        getattr(network.layers[-1].layer, "activation", "linear") != "linear"
        and network.output_activation == "linear"
    ):
        raise TaskError(
            f"{network.name} ends in an activation, but logits are needed: "
            + ("write `Output(1)`" if name == "Focus" else f"add the line `{CLASSIFIER_LOSS}`")
        )
    fits_shape = len(network.input) == len(shape) and all(
        isinstance(dim, str) or dim == segment_dim
        for dim, segment_dim in zip(network.input, shape, strict=True)
    )
    if not fits_shape:
        raise TaskError(
            f"{network.name} takes {format_shape(network.input)}, but segments are "
            f"{format_shape(shape)}; change its `input:`"
        )
    return source, network
