"""`torch.export`: one .pt2 file with graph and weights, for torch in Python or C++.

An ExportBundle (neural.workflows.export_bundle) is a trained model with its inputs and metadata; a
NetworkModule is a model built from a `.neural` program.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neural.exports._tracing import suppress_export_logs, torch_export, trace_network
from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import torch
from neural.workflows.export import Exporter
from neural.workflows.export_bundle import ExportBundle, min_positions

if TYPE_CHECKING:
    from torch import Tensor


class Torch(Exporter):
    """One .pt2 file of torch operations, which torch loads without this package."""

    aliases: ClassVar[tuple[str, ...]] = ("pytorch", "pt2")
    suffix: ClassVar[str] = ".pt2"
    max_output_difference: ClassVar[float] = 1e-5

    def adapt(self, bundle: ExportBundle) -> ExportBundle:
        """Fix the length to that of the program if a layer reduces it to a single position.

        Convolution and pooling windows shorten a sequence. torch.export specializes on an axis of
        size 1: it becomes a constant, and a graph traced with a longer one refuses size 1.
        """
        model: Any = bundle.model
        declared_length = model.network.input[0] if isinstance(model, NetworkModule) else None
        if None not in bundle.inputs[0].shape or not isinstance(declared_length, int):
            return bundle
        if min_positions(model.network, "source", declared_length) >= min(2, declared_length):
            return bundle
        inputs = tuple(
            spec if spec.is_target else spec._replace(shape=(declared_length, *spec.shape[1:]))
            for spec in bundle.inputs
        )
        return replace(bundle, inputs=inputs, length=declared_length)

    def write(self, bundle: ExportBundle, path: Path) -> None:
        """Write the graph, and the metadata beside it as `facts.json`."""
        program = trace_network(bundle)
        # Delete references to our classes, which the file does not need.
        for node in program.graph.nodes:
            for name in ("nn_module_stack", "source_fn_stack", "torch_fn", "from_node"):
                node.meta.pop(name, None)
        with suppress_export_logs():
            torch_export.save(
                program,
                path,
                extra_files={"facts.json": json.dumps(bundle.metadata, ensure_ascii=False)},
            )

    def read(self, bundle: ExportBundle, path: Path) -> Callable[..., Tensor]:
        """Load the file with torch."""
        with suppress_export_logs():
            module: Callable[..., Tensor] = torch_export.load(path).module()

        def run(*inputs: Tensor) -> Tensor:
            # With gradients, torch would trace the backward pass of every scan in the file.
            with torch.no_grad(), suppress_export_logs():
                return module(*inputs)

        return run

    def describe_usage(self, bundle: ExportBundle, path: Path) -> str:
        """A line of Python that loads and calls the model."""
        names = ", ".join(spec.name for spec in bundle.inputs)
        return f'torch.export.load("{path.name}").module()({names})'
