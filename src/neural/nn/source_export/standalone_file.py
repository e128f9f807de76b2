"""Network → a readable Python file that needs torch alone.

The file defines a class of the network that can load the state dict of the module that `build`
(nn/build.py) creates. The text of that class is written here, line by line. A `SourceBundle`
(bundle.py) collects the classes and functions that it uses and gives them names in the file. A
`PlacedLayer` is a layer of the network with its name; `copies` is N of `Layer(…) * N`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from neural.language.network import Network, PlacedLayer
from neural.language.shapes import format_shape
from neural.language.summary import format_summary
from neural.nn.build import NetworkModule, build
from neural.nn.lazy_torch import nn
from neural.nn.mask import as_bool
from neural.nn.source_export.bundle import SourceBundle
from neural.nn.source_export.symbols import SourceExportError, SourceSymbol

MAX_LINE_WIDTH = 110  # of the lines that are written here; copied text keeps its lines
AS_BOOL = SourceSymbol(as_bool.__module__, as_bool.__name__)


class ModuleSource(NamedTuple):
    """The text of a Python file that defines a module."""

    text: str
    name: str
    """Name of the class or function that creates the module."""


def export_pytorch(network: Network) -> str:
    """The network as a standalone Python file.

    Raises SourceExportError, with the name of the layer, if a layer has no source.
    """
    return write_network(network).text


def write_network(network: Network) -> ModuleSource:
    """The network as a standalone Python file, and the name of its class."""
    built, bundle = build(network, device="meta"), SourceBundle()
    for placed_layer in network.layers:
        with _name_layer_in_errors(placed_layer):
            bundle.add_value(getattr(built, placed_layer.name))
    bundle.add_value(built.output_activation)
    if network.loss is not None:
        bundle.add_value(network.loss)
    bundle.add_symbol(AS_BOOL, AS_BOOL.module)
    bundle.choose_names()
    name = bundle.free_name(network.name, "Network")
    definitions = [
        "\n".join(_render_network_class(name, network, built, bundle)),
        "\n".join(_render_main(name, network)),
    ]
    docstring = f"{_format_title(network)}\n\n{_format_description(network, bundle)}"
    return ModuleSource(_render_file(docstring, bundle, definitions), name)


def write_module(
    module: nn.Module,
    name: str,
    docstring: str,
    render_body: Callable[[SourceBundle], Iterable[str]],
) -> ModuleSource:
    """A module that no `.neural` program declares, as a standalone Python file.

    `render_body` returns the body of the function called `name`, which creates the module.
    """
    bundle = SourceBundle()
    bundle.add_value(module)
    bundle.choose_names()
    name = bundle.free_name(name, "_")
    body = "\n".join(f"    {line}" for line in render_body(bundle))
    class_name = bundle.format_call_name(type(module))
    function = f'def {name}() -> {class_name}:\n    """The untrained model."""\n{body}'
    return ModuleSource(_render_file(f"{docstring}\n", bundle, [function]), name)


@contextmanager
def _name_layer_in_errors(placed_layer: PlacedLayer) -> Iterator[None]:
    """Add the name of the layer to export errors."""
    try:
        yield
    except SourceExportError as error:
        raise SourceExportError(f"{placed_layer.name}: {error}") from error


def _render_file(docstring: str, bundle: SourceBundle, definitions: list[str]) -> str:
    """The text of a file: docstring, imports, copied definitions, then `definitions`."""
    standard, others = bundle.render_imports()
    header = [f'"""{docstring}"""', "", "from __future__ import annotations", ""]
    imports = [*standard, *([""] if standard else []), *others]
    return (
        "\n".join([*header, *imports])
        + "\n\n\n"
        + "\n\n\n".join([*bundle.render_definitions(), *definitions])
        + "\n"
    )


def _format_title(network: Network) -> str:
    """Name, input shape and output shape of the network."""
    input_shape = format_shape(network.input, batch=True)
    return f"{network.name}: {input_shape} → {format_shape(network.output, batch=True)}."


def _format_description(network: Network, bundle: SourceBundle) -> str:
    optimizer = f"\nTrained with {network.optimizer!r}." if network.optimizer is not None else ""
    packages = bundle.required_packages()
    needs = f"needs torch, {', '.join(packages)}" if packages else "needs torch alone"
    return f"Written by `neural compile`; {needs}.{optimizer}\n\n{format_summary(network)}\n"


def _render_network_class(
    name: str, network: Network, built: NetworkModule, bundle: SourceBundle
) -> Iterator[str]:
    """Lines of the network's class."""
    yield f"class {name}(nn.Module):"
    yield f'    """{_format_title(network)}"""'
    yield ""
    yield "    def __init__(self) -> None:"
    yield "        super().__init__()"
    for placed_layer in network.layers:
        with _name_layer_in_errors(placed_layer):
            call = _render_module(built, placed_layer, bundle)
        yield from _wrap_call(f"        self.{placed_layer.name} = ", call)
    yield f"        self.output_activation = {bundle.format_expression(built.output_activation)}"
    yield ""
    inputs = "source: Tensor, target: Tensor" if network.is_encoder_decoder else "x: Tensor"
    masks = "mask: Tensor | None = None" + (
        ", target_mask: Tensor | None = None" if network.is_encoder_decoder else ""
    )
    arguments = "source, target, mask, target_mask" if network.is_encoder_decoder else "x, mask"
    yield f"    def forward(self, {inputs}, {masks}) -> Tensor:"
    yield '        """Predictions. Masks (batch, time) are True or 1 where there is no padding."""'
    yield f"        return self.output_activation(self.logits({arguments}))"
    yield ""
    yield f"    def logits(self, {inputs}, {masks}) -> Tensor:"
    yield '        """Input of the loss: the output before `output_activation`."""'
    yield from (f"        {line}" for line in _render_logits(network, bundle.names[AS_BOOL]))
    if network.loss is not None:
        yield ""
        yield "    def loss(self, logits: Tensor, target: Tensor) -> Tensor:"
        yield f'        """{type(network.loss).summary()}"""'
        yield f"        return {bundle.format_expression(network.loss)}.compute(logits, target)"


def _render_module(built: NetworkModule, placed_layer: PlacedLayer, bundle: SourceBundle) -> str:
    """The expression that creates a layer's module: an `nn.ModuleList` for several copies."""
    module = getattr(built, placed_layer.name)
    if placed_layer.copies == 1:
        return bundle.format_expression(module)
    assert isinstance(module, nn.ModuleList)
    copies = [bundle.format_expression(copy) for copy in module]
    if len(set(copies)) == 1:
        return f"nn.ModuleList({copies[0]} for _ in range({placed_layer.copies}))"
    return f"nn.ModuleList([{', '.join(copies)}])"


def _wrap_call(prefix: str, call: str) -> Iterator[str]:
    """Lines of an assignment; a long call is broken between its arguments."""
    indent = " " * (len(prefix) - len(prefix.lstrip()) + 4)
    parsed = ast.parse(call, mode="eval").body
    if (
        len(prefix + call) <= MAX_LINE_WIDTH
        or not isinstance(parsed, ast.Call)
        or not call.isascii()
    ):
        yield prefix + call
        return
    arguments = sorted([*parsed.args, *parsed.keywords], key=lambda node: node.col_offset)
    lines = [""]
    for node in arguments:
        text = call[node.col_offset : node.end_col_offset] + ("" if node is arguments[-1] else ",")
        if lines[-1] and len(indent + lines[-1] + text) >= MAX_LINE_WIDTH:
            lines.append("")
        lines[-1] += f" {text}" if lines[-1] else text
    yield f"{prefix}{call[: parsed.func.end_col_offset]}("
    yield from (indent + line for line in lines)
    yield f"{indent[4:]})"


def _render_logits(network: Network, as_bool_name: str) -> Iterator[str]:
    """Lines of the method `logits`: one or a few for each layer."""
    embedding_name = network.layers[0].name
    if not network.is_encoder_decoder:
        yield f"mask = {as_bool_name}(mask)"
        yield from _render_layers(network.layers, "x", "mask", embedding_name)
        yield "return x"
        return
    shared = [placed_layer for placed_layer in network.layers if placed_layer.stream == "both"]
    encoder = [placed_layer for placed_layer in network.layers if placed_layer.stream == "source"]
    decoder = [placed_layer for placed_layer in network.layers if placed_layer.stream == "target"]
    yield f"mask, target_mask = {as_bool_name}(mask), {as_bool_name}(target_mask)"
    yield "memory, memory_mask = source, mask"
    yield from _render_layers([*shared, *encoder], "memory", "memory_mask", embedding_name)
    yield "x, mask = target, target_mask"
    yield from _render_layers([*shared, *decoder], "x", "mask", embedding_name)
    yield "return x"


def _render_layers(
    layers: Sequence[PlacedLayer], x: str, mask: str, embedding_name: str
) -> Iterator[str]:
    """Lines that run the layers as `NetworkModule.run_layers` (nn/build.py) does.

    `x` and `mask` are names of variables in the written code. `embedding_name` is the layer whose
    weight a tied output layer uses.
    """
    for placed_layer in layers:
        indent, module = "", f"self.{placed_layer.name}"
        if placed_layer.copies > 1:
            yield f"for layer in self.{placed_layer.name}:"
            indent, module = "    ", "layer"
        arguments = ""
        if placed_layer.layer.role == "embedding":
            yield f"{indent}{mask} = {module}.mask({x}, {mask})"
        elif placed_layer.layer.role == "decoder":
            arguments = f", {mask}" + (
                ", memory, memory_mask" if placed_layer.stream == "target" else ""
            )
        elif placed_layer.layer.uses_embedding_table:
            arguments = f", self.{embedding_name}.table.weight"
        elif placed_layer.layer.uses_mask:
            arguments = f", {mask}"
        yield f"{indent}{x} = {module}({x}{arguments})"
        if placed_layer.layer.resizes_mask:
            yield f"{indent}{mask} = None if {mask} is None else {module}.output_mask({mask}, {x})"
        elif not placed_layer.layer.keeps_time:
            yield f"{indent}{mask} = None"


def _render_main(name: str, network: Network) -> Iterator[str]:
    """Lines that run the network on zeros when the file is executed."""
    sizes = [
        str(network.assumed_sizes.get(dim, dim) if isinstance(dim, str) else dim)
        for dim in network.input
    ]
    shape = f"(2, {', '.join(sizes)})"
    zeros = (
        f"torch.zeros({shape}, dtype=torch.long)"
        if network.takes_token_ids
        else f"torch.zeros({shape})"
    )
    yield 'if __name__ == "__main__":'
    yield f"    network = {name}().eval()"
    yield f"    x = {zeros}"
    yield f"    print(tuple(network({'x, x' if network.is_encoder_decoder else 'x'}).shape))"
