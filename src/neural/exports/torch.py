"""`torch.export`: one .pt2 file with graph and weights, which torch alone loads and runs, from Python or C++."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neural.export import Export
from neural.export_inputs import Leaving, fewest_positions
from neural.exports._traced import exporting, quiet, traced
from neural.modules.build import Built

if TYPE_CHECKING:
    from torch import Tensor


class Torch(Export):
    """A graph of torch's own operations: nothing of this package is in it."""

    suffix: ClassVar[str] = ".pt2"
    tolerance: ClassVar[float] = 1e-5

    def adapt(self, leaving: Leaving) -> Leaving:
        """For the declared length alone, where windows leave one position of it.

        torch.export takes such a size for a constant, and where it is traced with more, refuses one.
        """
        model: Any = leaving.model
        declared = model.network.input[0] if isinstance(model, Built) else None
        if None not in leaving.inputs[0].sizes or not isinstance(declared, int):
            return leaving
        if fewest_positions(model.network, "source", declared) >= min(2, declared):
            return leaving
        inputs = tuple(
            one if one.is_target else one._replace(sizes=(declared, *one.sizes[1:]))
            for one in leaving.inputs
        )
        return replace(leaving, inputs=inputs, length=declared)

    def write(self, leaving: Leaving, path: Path) -> None:
        """The program, and the facts beside it as `facts.json`."""
        program = traced(leaving)
        for node in program.graph.nodes:   # the classes it came from are not needed again
            for name in ("nn_module_stack", "source_fn_stack", "torch_fn", "from_node"):
                node.meta.pop(name, None)
        with quiet():
            exporting.save(program, path, extra_files={"facts.json": json.dumps(leaving.facts, ensure_ascii=False)})

    def read(self, leaving: Leaving, path: Path) -> Callable[..., Tensor]:
        """By torch."""
        with quiet():
            run: Callable[..., Tensor] = exporting.load(path).module()

        def called(*inputs: Tensor) -> Tensor:
            with quiet():
                return run(*inputs).detach()

        return called

    def use(self, leaving: Leaving, path: Path) -> str:
        """A line of Python."""
        return f'torch.export.load("{path.name}").module()({", ".join(one.name for one in leaving.inputs)})'
