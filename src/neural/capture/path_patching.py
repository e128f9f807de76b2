"""Path patching: what one head tells another, and what it tells the output directly.

    clean = record_head_outputs(model, clean_ids)
    logits = patch_path(model, corrupted_ids, "L0 h1", "L1 h0", clean=clean, through="k")
    logits = patch_path(model, corrupted_ids, "L1 h0", "output", clean=clean)

The model runs on the corrupted input. The receiver alone reads the stream as if the sender had
written what it wrote on the clean input (Wang et al., 2022):

1. The sender is patched, and all heads between sender and receiver are frozen to what they write on
   the corrupted input. So the receiver gets the change directly, not through other heads.
2. What the receiver writes then is patched into a run on the corrupted input, in which nothing else
   is changed or frozen. With `through`, only its queries, keys or values are those of step 1.

The receiver "output" is the model's output, with all heads after the sender frozen. MLPs and norms
are not frozen: a path leads through them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import (
    Head,
    HeadOutputs,
    Intervention,
    InterventionError,
    parse_head,
    patch,
)
from neural.capture.threads import in_this_thread
from neural.capture.watch import run_model
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor, nn

    from neural.capture.interventions import HeadAddress

Through = Literal["all", "q", "k", "v"]
THROUGH = ("all", "q", "k", "v")
"""Inputs of a receiver: all, or only its queries, keys or values."""
OUTPUT = "output"
"""The receiver that stands for the model's output."""
PROJECTION_NAMES = (
    {"q": "query", "k": "key", "v": "value"},
    {"q": "q_proj", "k": "k_proj", "v": "v_proj"},
    {"q": "q", "k": "k", "v": "v"},
    {"q": "wq", "k": "wk", "v": "wv"},
)
"""Attributes of attention modules that project to queries, keys and values: `neural` and BERT;
Llama, OPT and their relatives; T5; others."""
FUSED_NAMES = ("c_attn",)
"""Attributes that project to queries, keys and values in this order: GPT-2."""


def patch_path(
    model: nn.Module,
    corrupted: Any,
    sender: HeadAddress | Head,
    receiver: HeadAddress | Head | str,
    *,
    clean: HeadOutputs,
    frozen: HeadOutputs | None = None,
    through: Through = "all",
    rows: Sequence[int] | Tensor | None = None,
    forward: Callable[[], Any] | None = None,
) -> Any:
    """The model's output if only the receiver reads the sender's clean output.

    `corrupted`: a batch as for `neural.watch`. `clean`: head outputs on the clean input; `rows`: for
    each example of the batch, the example of `clean`. `frozen`: head outputs on `corrupted`, if
    they are recorded already. `receiver`: a head of a later layer, or "output". `forward` runs the
    model on `corrupted`; by default it is called with the batch. Without gradients.
    """
    forward = (lambda: run_model(model, corrupted)) if forward is None else forward
    frozen = record_head_outputs(model, corrupted) if frozen is None else frozen
    sender_head = locate_head(sender, frozen)
    if isinstance(receiver, str) and receiver.strip().lower() == OUTPUT:
        _check_through(through, allow_parts=False)
        later = frozen_layers(frozen, sender_head.layer + 1, len(frozen))
        interventions = [patch((sender_head.layer, sender_head.head), clean, rows=rows), *later]
        with torch.no_grad(), intervene(model, *interventions):
            return forward()
    receiver_head = locate_head(receiver, frozen)
    received = compute_received(
        model,
        corrupted,
        sender_head,
        receiver_head.layer,
        clean=clean,
        frozen=frozen,
        rows=rows,
        through=through,
        receiver_head=receiver_head.head,
    )
    return patch_received(model, receiver_head, received, forward)


@dataclass(frozen=True)
class LocatedHead:
    """A head whose layer is an index of the forward pass."""

    layer: int
    head: int

    def __str__(self) -> str:
        return f"L{self.layer} h{self.head}"


def locate_head(address: HeadAddress | Head | LocatedHead, outputs: HeadOutputs) -> LocatedHead:
    """The head of an address; InterventionError if the model has none such."""
    if isinstance(address, LocatedHead):
        address = (address.layer, address.head)
    head = parse_head(address)
    layer = head.layer
    if isinstance(layer, str):
        paths = [layer_outputs.path for layer_outputs in outputs.layers]
        if layer not in paths:
            raise InterventionError(
                f"there is no layer `{layer}`: there are {', '.join(paths[:4])}"
            )
        layer = paths.index(layer)
    if layer >= len(outputs):
        raise InterventionError(
            f"there is no head {head}: the model has {len(outputs)} layers of attention, L0 to "
            f"L{len(outputs) - 1}"
        )
    heads = outputs[layer].output.shape[1]
    if head.head >= heads:
        raise InterventionError(
            f"there is no head {head}: L{layer} has {heads} heads, h0 to h{heads - 1}"
        )
    return LocatedHead(layer, head.head)


def frozen_layers(outputs: HeadOutputs, start: int, stop: int) -> list[Intervention]:
    """Interventions that freeze all heads of layers to recorded outputs."""
    return [
        patch([(layer, head) for head in range(outputs[layer].output.shape[1])], outputs)
        for layer in range(start, stop)
    ]


def compute_received(
    model: nn.Module,
    corrupted: Any,
    sender: LocatedHead,
    receiver_layer: int,
    *,
    clean: HeadOutputs,
    frozen: HeadOutputs,
    rows: Sequence[int] | Tensor | None = None,
    through: Through = "all",
    receiver_head: int | None = None,
) -> HeadOutputs:
    """What heads of the receiver's layer write if they read the sender's clean output.

    With `through` "q", "k" or "v", only the output of `receiver_head` has a meaning. Other layers
    of the result are not to be used.
    """
    _check_through(through)
    if receiver_layer <= sender.layer:
        raise InterventionError(
            f"L{receiver_layer} cannot receive from {sender}: it is not a later layer"
        )
    changes = [
        patch((sender.layer, sender.head), clean, rows=rows),
        *frozen_layers(frozen, sender.layer + 1, receiver_layer),
    ]
    if through == "all":
        return record_head_outputs(model, corrupted, *changes)
    if receiver_head is None:
        raise InterventionError(f"`through={through}` needs a head as the receiver")
    path = frozen[receiver_layer].path
    _, heads, _, width = frozen[receiver_layer].output.shape
    part = find_projection(model, path, through, receiver_head, heads, width)
    recording = _RecordProjection(part)
    record_head_outputs(model, corrupted, *changes, recording)
    if recording.values is None:
        raise InterventionError(f"the projection to {through} of `{path}` did not run")
    return record_head_outputs(model, corrupted, _ReplaceProjection(part, recording.values))


def patch_received(
    model: nn.Module, receiver: LocatedHead, received: HeadOutputs, forward: Callable[[], Any]
) -> Any:
    """Run the model with what the receiver wrote in `compute_received`, and nothing else changed."""
    with torch.no_grad(), intervene(model, patch((receiver.layer, receiver.head), received)):
        return forward()


def _check_through(through: str, *, allow_parts: bool = True) -> None:
    if through not in THROUGH:
        raise InterventionError(f"`through` is one of {', '.join(THROUGH)}, not `{through}`")
    if through != "all" and not allow_parts:
        raise InterventionError(f"the output has no `{through}`: leave `through` out")


@dataclass(frozen=True)
class ProjectionPart:
    """The features of a linear map that one head reads as queries, keys or values."""

    module: nn.Module
    features: slice


def find_projection(
    model: nn.Module, path: str, through: str, head: int, heads: int, width: int
) -> ProjectionPart:
    """The part of the projections of an attention module that belongs to one head.

    `heads` and `width`: number and width of the heads. Query heads that share keys and values share
    the part, too.
    """
    module = model.get_submodule(path)
    for names in PROJECTION_NAMES:
        projection = getattr(module, names[through], None)
        size = getattr(projection, "out_features", None)
        if isinstance(projection, torch.nn.Module) and isinstance(size, int):
            # grouped heads: neighbouring query heads share a head of keys and values
            count = size // width
            if size % width or not count or heads % count:
                break
            start = head // (heads // count) * width
            return ProjectionPart(projection, slice(start, start + width))
    for name in FUSED_NAMES:
        projection = getattr(module, name, None)
        if isinstance(projection, torch.nn.Module) and _has_three_parts(projection, heads * width):
            start = "qkv".index(through) * heads * width + head * width
            return ProjectionPart(projection, slice(start, start + width))
    raise InterventionError(
        f"the projection to {through} of `{path}` ({type(module).__name__}) is not known; "
        "paths through all inputs of a head (`through=all`) work for every model. Known are "
        "networks of `neural`, GPT-2, and modules with q_proj, k_proj and v_proj, such as Llama"
    )


def _has_three_parts(projection: nn.Module, size: int) -> bool:
    """Whether a linear map or Conv1D of transformers has three times `size` output features."""
    bias = getattr(projection, "bias", None)
    features = getattr(projection, "out_features", getattr(projection, "nf", None))
    return (features if features is not None else bias.numel() if bias is not None else 0) == (
        3 * size
    )


class _ProjectionIntervention(Intervention):
    """Hooks on a projection."""

    def __init__(self, part: ProjectionPart) -> None:
        self.part = part

    @contextmanager
    def attach(self, model: nn.Module) -> Iterator[None]:
        handle = self.part.module.register_forward_hook(in_this_thread(self.hook))
        try:
            yield
        finally:
            handle.remove()

    def hook(self, module: nn.Module, args: Any, output: Tensor) -> Tensor | None:
        """Called with the output of the projection; returns a new one or None."""
        raise NotImplementedError


class _RecordProjection(_ProjectionIntervention):
    values: Float[Tensor, "B T D"] | None = None

    def hook(self, module: nn.Module, args: Any, output: Tensor) -> None:
        self.values = output[..., self.part.features].detach().clone()


class _ReplaceProjection(_ProjectionIntervention):
    def __init__(self, part: ProjectionPart, values: Float[Tensor, "B T D"]) -> None:
        super().__init__(part)
        self.values = values

    def hook(self, module: nn.Module, args: Any, output: Tensor) -> Tensor:
        changed = output.clone()
        changed[..., self.part.features] = self.values
        return changed
