"""A network as a graph of torch operations, for any batch and any length: what .pt2 and ONNX files are made from."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from neural.export_inputs import CannotExport, Leaving
from neural.exports._steps import Stepped
from neural.modules.attention.self import fused
from neural.modules.both_ways import BothWays
from neural.modules.compiled import plain_torch
from neural.modules.heads import Heads
from neural.modules.late import Module, late, torch
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism
from neural.modules.recurrence import Recurrence

if TYPE_CHECKING:
    from torch import Tensor, nn

exporting = late("torch.export")


class AnyLength:
    """A mechanism whose `mix` does the same for every length: most choose another way for long sequences."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def mix(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, dropout: float = 0.0, extra: Tensor | None = None
    ) -> Tensor:
        """torch's own attention where the weights are a softmax under some mask; else the definition."""
        rules = self.mechanism.as_softmax(q, k, mask, extra)
        if rules is None:
            return self.mechanism.weights(q, k, mask, extra) @ v
        return fused(q, k, v, rules, 0.0).contiguous()   # in memory, torch's fused ways lay it out in different orders


class Called(Module):
    """A network with the inputs it leaves with and no others."""

    def __init__(self, leaving: Leaving) -> None:
        super().__init__()
        self.model: Any = traceable(leaving.model)
        self.scores = leaving.scores

    def forward(self, *inputs: Tensor) -> Tensor:
        """What goes out."""
        called: Tensor = (self.model.scores if self.scores else self.model)(*inputs)
        return called


def traceable(model: nn.Module) -> nn.Module:
    """A copy that computes the same, in ways that do not depend on the length."""
    model = copy.deepcopy(model)
    for module in list(model.modules()):
        if isinstance(module, Heads):
            module.mechanism = AnyLength(module.mechanism)   # type: ignore[assignment]  # all that heads call
        for name, part in module.named_children():
            if isinstance(part, Recurrence | BothWays):
                setattr(module, name, Stepped(part))
    return model.eval()


def traced(leaving: Leaving) -> Any:
    """The `torch.export.ExportedProgram`; where an axis is free, it is so there."""
    torch.compiler.reset()   # sizes of what was traced before would become conditions of this one
    free = [{0: exporting.Dim.AUTO, **_free(one.sizes)} for one in leaving.inputs]
    try:
        with torch.no_grad(), plain_torch(), quiet():
            program = exporting.export(
                Called(leaving), leaving.batch(*leaving.trials[0]), dynamic_shapes={"inputs": tuple(free)}, strict=False
            )
    except Exception as problem:   # torch raises many kinds, all of them about the network
        said = str(problem).strip().partition("\n")[0]
        raise CannotExport(
            f"torch.export cannot follow {leaving.name}: {said}. `neural compile` writes it as Python instead"
        ) from problem
    for node in program.graph.nodes:   # where in whose files it came from is nobody's business
        node.meta.pop("stack_trace", None)
    return program


def _free(sizes: tuple[int | None, ...]) -> dict[int, Any]:
    return {axis: exporting.Dim.AUTO for axis, size in enumerate(sizes, start=1) if size is None}


@contextmanager
def quiet() -> Iterator[None]:
    """Without what torch says to those who write exporters."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "torch.export", "torch._export")]
    levels = [one.level for one in loggers]
    for one in loggers:
        one.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for one, level in zip(loggers, levels, strict=True):
            one.setLevel(level)
