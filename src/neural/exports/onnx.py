"""ONNX: one file that onnxruntime and others run, without Python if need be; batch and length stay open."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neural.export import Export
from neural.export_inputs import CannotExport, Leaving
from neural.exports._traced import quiet, traced
from neural.modules.late import late, torch

if TYPE_CHECKING:
    from torch import Tensor

onnx = late("onnx")
runtime = late("onnxruntime")
MOST = 2_000_000_000
"""Bytes: a protocol buffer holds no more."""


class Onnx(Export):
    """A graph of ONNX operations; loops stay loops, so recurrent layers read any length."""

    suffix: ClassVar[str] = ".onnx"
    needs: ClassVar[tuple[str, ...]] = ("onnx", "onnxscript", "onnxruntime")

    def check(self, leaving: Leaving) -> None:
        """What is too large for one file."""
        size = sum(one.numel() * one.element_size() for one in leaving.model.state_dict().values())
        if size > MOST:
            raise CannotExport(
                f"{leaving.name} has {size / 1e9:.1f} GB of weights, an ONNX file holds 2; --to torch has no such limit"
            )

    def write(self, leaving: Leaving, path: Path) -> None:
        """By way of `torch.export`, whose graph is followed for any length."""
        graph, names = traced(leaving), [one.name for one in leaving.inputs]
        try:
            with quiet():
                program: Any = torch.onnx.export(
                    graph, dynamo=True, input_names=names, output_names=[leaving.gives], verbose=False
                )
        except Exception as problem:   # torch raises many kinds, with advice to those who write exporters
            said = str(problem.__cause__ or problem).strip().partition("\n")[0]
            raise CannotExport(f"torch.onnx has no words for {leaving.name}: {said}. --to torch may have") from problem
        model = program.model_proto
        _name_axes(model.graph, leaving)
        for one in (model.graph, *model.functions, *_parts(model.graph)):   # the files it came from on this machine
            del one.metadata_props[:]
        model.producer_name, model.producer_version, model.graph.name = "neural", "", leaving.name
        for name, fact in leaving.facts.items():
            model.metadata_props.add(key=name, value=json.dumps(fact, ensure_ascii=False))
        onnx.save(model, path)

    def read(self, leaving: Leaving, path: Path) -> Callable[..., Tensor]:
        """By onnxruntime."""
        onnx.checker.check_model(path)
        options = runtime.SessionOptions()
        options.log_severity_level = 4   # what is wrong is said by us
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        names = [one.name for one in leaving.inputs]

        def called(*inputs: Tensor) -> Tensor:
            given = {name: tensor.numpy() for name, tensor in zip(names, inputs, strict=True)}
            return torch.from_numpy(session.run(None, given)[0])

        return called

    def use(self, leaving: Leaving, path: Path) -> str:
        """A line of Python."""
        given = ", ".join(f'"{one.name}": {one.name}' for one in leaving.inputs)
        return f'onnxruntime.InferenceSession("{path.name}").run(None, {{{given}}})'


def _parts(graph: Any) -> Iterator[Any]:
    """Nodes and values of a graph, and of the graphs inside it."""
    yield from (*graph.input, *graph.output, *graph.value_info)
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _parts(attribute.g)


def _name_axes(graph: Any, leaving: Leaving) -> None:
    """`batch` and `time` in place of torch's numbered symbols."""
    names: dict[str, str] = {}
    for value, one in zip(graph.input, leaving.inputs, strict=True):
        time = "target_time" if one.name.startswith("target") else "time"
        for dim, name in zip(value.type.tensor_type.shape.dim, ("batch", time), strict=False):
            if dim.dim_param:
                names.setdefault(dim.dim_param, name)
    for value in (*graph.input, *graph.output, *graph.value_info):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = re.sub(r"\w+", lambda found: names.get(found[0], found[0]), dim.dim_param)
