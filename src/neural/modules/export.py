"""Network → a Python file that needs torch alone: readable, and loads the state dict of what `build` makes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from neural.language.network import Network, Placed
from neural.language.shapes import show
from neural.language.summary import text_table
from neural.modules.build import Built, build
from neural.modules.late import nn
from neural.modules.source.bundle import Bundle
from neural.modules.source.symbols import CannotCompile, Symbol

WIDEST = 110
AS_BOOL = Symbol("neural.modules.mask", "as_bool")


class WrittenModule(NamedTuple):
    """A Python file with a class or function that makes a module."""

    text: str
    name: str
    """Of what makes the module."""


def to_pytorch(network: Network) -> str:
    """The network as a standalone Python file; CannotCompile names the layer that has no source."""
    return write_network(network).text


def write_network(network: Network) -> WrittenModule:
    """The network as a standalone Python file, and what its class is called there."""
    built, bundle = build(network, device="meta"), Bundle()
    for placed in network.layers:
        with _about_layer(placed):
            bundle.add_value(getattr(built, placed.name))
    bundle.add_value(built.head)
    if network.loss is not None:
        bundle.add_value(network.loss)
    bundle.add_symbol(AS_BOOL, AS_BOOL.module)
    bundle.choose_names()
    name = bundle.free_name(network.name, "Network")
    pieces = ["\n".join(_network(name, network, built, bundle)), "\n".join(_main(name, network))]
    return WrittenModule(_file(f"{_title(network)}\n\n{_about(network, bundle)}", bundle, pieces), name)


def write_module(
    module: nn.Module, name: str, about: str, body: Callable[[Bundle], Iterable[str]]
) -> WrittenModule:
    """A module that no program declares, as a standalone Python file: `body` is the function that makes it."""
    bundle = Bundle()
    bundle.add_value(module)
    bundle.choose_names()
    name = bundle.free_name(name, "_")
    inside = "\n".join(f"    {line}" for line in body(bundle))
    made = f'def {name}() -> {bundle.call_name(type(module))}:\n    """Untrained."""\n{inside}'
    return WrittenModule(_file(f"{about}\n", bundle, [made]), name)


@contextmanager
def _about_layer(placed: Placed) -> Iterator[None]:
    """Name the layer in what is wrong with it."""
    try:
        yield
    except CannotCompile as problem:
        raise CannotCompile(f"{placed.name}: {problem}") from problem


def _file(about: str, bundle: Bundle, pieces: list[str]) -> str:
    """A Python file: what it is, what it imports, what it is made of."""
    standard, others = bundle.import_lines()
    head = [f'"""{about}"""', "", "from __future__ import annotations", ""]
    imports = [*standard, *([""] if standard else []), *others]
    return "\n".join([*head, *imports]) + "\n\n\n" + "\n\n\n".join([*bundle.definitions(), *pieces]) + "\n"


def _title(network: Network) -> str:
    return f"{network.name}: {show(network.input, batch=True)} → {show(network.output, batch=True)}."


def _about(network: Network, bundle: Bundle) -> str:
    optimizer = f"\nTrained with {network.optimizer!r}." if network.optimizer is not None else ""
    others = bundle.packages()
    needs = f"needs torch, {', '.join(others)}" if others else "needs torch alone"
    return f"Written by `neural compile`; {needs}.{optimizer}\n\n{text_table(network)}\n"


def _network(name: str, network: Network, built: Built, bundle: Bundle) -> Iterator[str]:
    """The network's own class."""
    yield f"class {name}(nn.Module):"
    yield f'    """{_title(network)}"""'
    yield ""
    yield "    def __init__(self) -> None:"
    yield "        super().__init__()"
    for placed in network.layers:
        with _about_layer(placed):
            call = _module(built, placed, bundle)
        yield from _wrapped(f"        self.{placed.name} = ", call)
    yield f"        self.head = {bundle.expression(built.head)}"
    yield ""
    inputs = "source: Tensor, target: Tensor" if network.two_streams else "x: Tensor"
    masks = "mask: Tensor | None = None" + (", target_mask: Tensor | None = None" if network.two_streams else "")
    passed = "source, target, mask, target_mask" if network.two_streams else "x, mask"
    yield f"    def forward(self, {inputs}, {masks}) -> Tensor:"
    yield '        """Predictions. A mask (batch, time) is True or 1 where a sequence is real, not padding."""'
    yield f"        return self.head(self.scores({passed}))"
    yield ""
    yield f"    def scores(self, {inputs}, {masks}) -> Tensor:"
    yield '        """What the loss takes: before the head\'s activation where the loss contains it."""'
    yield from (f"        {line}" for line in _scores(network, bundle.names[AS_BOOL]))
    if network.loss is not None:
        yield ""
        yield "    def loss(self, scores: Tensor, target: Tensor) -> Tensor:"
        yield f'        """{type(network.loss).summary()}"""'
        yield f"        return {bundle.expression(network.loss)}.measure(scores, target)"


def _module(built: Built, placed: Placed, bundle: Bundle) -> str:
    found = getattr(built, placed.name)
    if placed.copies == 1:
        return bundle.expression(found)
    assert isinstance(found, nn.ModuleList)
    each = [bundle.expression(module) for module in found]
    if len(set(each)) == 1:
        return f"nn.ModuleList({each[0]} for _ in range({placed.copies}))"
    return f"nn.ModuleList([{', '.join(each)}])"


def _wrapped(before: str, call: str) -> Iterator[str]:
    """An assignment, over several lines where one is too long; broken between arguments alone."""
    indent = " " * (len(before) - len(before.lstrip()) + 4)
    parsed = ast.parse(call, mode="eval").body
    if len(before + call) <= WIDEST or not isinstance(parsed, ast.Call) or not call.isascii():
        yield before + call
        return
    arguments = sorted([*parsed.args, *parsed.keywords], key=lambda node: node.col_offset)
    lines = [""]
    for node in arguments:
        text = call[node.col_offset : node.end_col_offset] + ("" if node is arguments[-1] else ",")
        if lines[-1] and len(indent + lines[-1] + text) >= WIDEST:
            lines.append("")
        lines[-1] += f" {text}" if lines[-1] else text
    yield f"{before}{call[: parsed.func.end_col_offset]}("
    yield from (indent + line for line in lines)
    yield f"{indent[4:]})"


def _scores(network: Network, as_bool: str) -> Iterator[str]:
    """The way through the layers, a line each."""
    first = network.layers[0].name
    if not network.two_streams:
        yield f"mask = {as_bool}(mask)"
        yield from _through(network.layers, "x", "mask", first)
        yield "return x"
        return
    stem = [placed for placed in network.layers if placed.stream == "both"]
    read = [placed for placed in network.layers if placed.stream == "source"]
    write = [placed for placed in network.layers if placed.stream == "target"]
    yield f"mask, target_mask = {as_bool}(mask), {as_bool}(target_mask)"
    yield "memory, memory_mask = source, mask"
    yield from _through([*stem, *read], "memory", "memory_mask", first)
    yield "x, mask = target, target_mask"
    yield from _through([*stem, *write], "x", "mask", first)
    yield "return x"


def _through(layers: Sequence[Placed], x: str, mask: str, first: str) -> Iterator[str]:
    """The same steps as `Built.through` takes; `first` is the layer that a tied head takes its weights from."""
    for placed in layers:
        indent, called = "", f"self.{placed.name}"
        if placed.copies > 1:
            yield f"for layer in self.{placed.name}:"
            indent, called = "    ", "layer"
        beside = ""
        if placed.layer.role == "embedding":
            yield f"{indent}{mask} = {called}.mask({x}, {mask})"
        elif placed.layer.role == "decoder":
            beside = f", {mask}" + (", memory, memory_mask" if placed.stream == "target" else "")
        elif placed.layer.uses_table:
            beside = f", self.{first}.table.weight"
        elif placed.layer.uses_mask:
            beside = f", {mask}"
        yield f"{indent}{x} = {called}({x}{beside})"
        if placed.layer.maps_mask:
            yield f"{indent}{mask} = None if {mask} is None else {called}.output_mask({mask}, {x})"
        elif not placed.layer.keeps_time:
            yield f"{indent}{mask} = None"


def _main(name: str, network: Network) -> Iterator[str]:
    """Something to run: the file on its own shows that it works."""
    sizes = [str(network.assumed.get(dim, dim) if isinstance(dim, str) else dim) for dim in network.input]
    shape = f"(2, {', '.join(sizes)})"
    made = f"torch.zeros({shape}, dtype=torch.long)" if network.ids else f"torch.zeros({shape})"
    yield 'if __name__ == "__main__":'
    yield f"    network = {name}().eval()"
    yield f"    x = {made}"
    yield f"    print(tuple(network({'x, x' if network.two_streams else 'x'}).shape))"
