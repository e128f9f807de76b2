"""ONNX: one file for onnxruntime and other runtimes, with dynamic batch size and length.

An ExportBundle (neural.workflows.export_bundle) is a trained model with its inputs and metadata.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neural.exports._tracing import suppress_export_logs, trace_network
from neural.nn.lazy_torch import lazy_import, torch
from neural.workflows.export import Exporter
from neural.workflows.export_bundle import ExportBundle, ExportError

if TYPE_CHECKING:
    from torch import Tensor

onnx = lazy_import("onnx")
onnxruntime = lazy_import("onnxruntime")
MAX_FILE_BYTES = 2_000_000_000
"""Most bytes of weights: an ONNX file is one protocol buffer, which is limited to 2 GB."""


class Onnx(Exporter):
    """One .onnx file for onnxruntime; recurrent layers are loops, so any length works."""

    suffix: ClassVar[str] = ".onnx"
    required_packages: ClassVar[tuple[str, ...]] = ("onnx", "onnxscript", "onnxruntime")

    def check(self, bundle: ExportBundle) -> None:
        """Refuse weights that are too large for one file."""
        num_bytes = sum(
            tensor.numel() * tensor.element_size() for tensor in bundle.model.state_dict().values()
        )
        if num_bytes > MAX_FILE_BYTES:
            raise ExportError(
                f"{bundle.name} has {num_bytes / 1e9:.1f} GB of weights, more than the 2 GB of an "
                "ONNX file; --to torch has no such limit"
            )

    def write(self, bundle: ExportBundle, path: Path) -> None:
        """Convert the graph of `torch.export`, which is traced for any length."""
        exported_program = trace_network(bundle)
        try:
            with suppress_export_logs():
                onnx_program: Any = torch.onnx.export(
                    exported_program,
                    dynamo=True,
                    input_names=[spec.name for spec in bundle.inputs],
                    output_names=[bundle.output_name],
                    verbose=False,
                )
        except Exception as error:  # torch raises many classes, with advice for exporter authors
            reason = str(error.__cause__ or error).strip().partition("\n")[0]
            raise ExportError(
                f"torch.onnx cannot convert {bundle.name}: {reason}. Try --to torch"
            ) from error
        model = onnx_program.model_proto
        _name_axes(model.graph, bundle)
        # Delete torch's metadata, which contains paths of source files on this machine.
        for item in (model.graph, *model.functions, *_iterate_items(model.graph)):
            del item.metadata_props[:]
        model.producer_name, model.producer_version, model.graph.name = "neural", "", bundle.name
        for key, value in bundle.metadata.items():
            model.metadata_props.add(key=key, value=json.dumps(value, ensure_ascii=False))
        onnx.save(model, path)

    def read(self, bundle: ExportBundle, path: Path) -> Callable[..., Tensor]:
        """Load the file with onnxruntime."""
        onnx.checker.check_model(path)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # fatal only: the caller reports errors
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [spec.name for spec in bundle.inputs]

        def run(*inputs: Tensor) -> Tensor:
            arrays = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True)}
            return torch.from_numpy(session.run(None, arrays)[0])

        return run

    def describe_usage(self, bundle: ExportBundle, path: Path) -> str:
        """A line of Python that loads and calls the model."""
        inputs = ", ".join(f'"{spec.name}": {spec.name}' for spec in bundle.inputs)
        return f'onnxruntime.InferenceSession("{path.name}").run(None, {{{inputs}}})'


def _iterate_items(graph: Any) -> Iterator[Any]:
    """Nodes, inputs, outputs and values of a graph and of its subgraphs (loop bodies)."""
    yield from (*graph.input, *graph.output, *graph.value_info)
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _iterate_items(attribute.g)


def _name_axes(graph: Any, bundle: ExportBundle) -> None:
    """Rename dynamic axes, which torch numbers (`s0`, `s1`), to `batch`, `time`, `target_time`.

    An axis may also be an expression of them, such as `2*s1`.
    """
    names_by_symbol: dict[str, str] = {}
    for value, spec in zip(graph.input, bundle.inputs, strict=True):
        time_name = "target_time" if spec.name.startswith("target") else "time"
        for dim, name in zip(value.type.tensor_type.shape.dim, ("batch", time_name), strict=False):
            if dim.dim_param:
                names_by_symbol.setdefault(dim.dim_param, name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = re.sub(
                    r"\w+", lambda match: names_by_symbol.get(match[0], match[0]), dim.dim_param
                )
