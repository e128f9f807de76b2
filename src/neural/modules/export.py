"""Network → a Python file that needs torch alone: readable, and loads the state dict of what `build` makes."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from keyword import iskeyword

from neural.language.declaration import Declared
from neural.language.network import Network, Placed
from neural.language.shapes import show
from neural.language.summary import text_table
from neural.modules import build as building
from neural.modules.build import Built, build
from neural.modules.late import nn
from neural.modules.source import GIVEN, Bundle, arguments, comes_along, expression

WIDEST = 110


def to_pytorch(network: Network) -> str:
    """The network as a standalone Python file."""
    built = build(network, device="meta")
    bundle = _bundled(module for module in built.modules() if module is not built)
    if network.loss is not None:
        bundle.add(type(network.loss).__name__, importlib.import_module(type(network.loss).__module__))
    bundle.add("as_bool", building)
    taken = network.name in {*bundle.pieces, *GIVEN} or iskeyword(network.name)
    name = f"{network.name}Network" if taken else network.name
    pieces = ["\n".join(_network(name, network, built)), "\n".join(_main(name, network))]
    return _file(f"{_title(network)}\n\n{_about(network)}", bundle, pieces)


def module_to_pytorch(module: nn.Module, name: str, about: str, body: Sequence[str]) -> str:
    """A module of ours that no program declares, as a standalone Python file: its `body` is the function that makes it.
    """
    inside = "\n".join(f"    {line}" for line in body)
    made = f'def {name}() -> {type(module).__name__}:\n    """Untrained."""\n{inside}'
    return _file(f"{about}\n", _bundled(module.modules()), [made])


def _bundled(modules: Iterable[nn.Module]) -> Bundle:
    """The source of the modules that are ours, and of what they were made with."""
    bundle = Bundle()
    for module in modules:
        for made in (module, *arguments(module)):
            home = type(made).__module__
            ours = isinstance(made, Declared) or hasattr(made, "made_with") or home.startswith("neural.modules.")
            if ours and comes_along(home):
                bundle.add(type(made).__name__, importlib.import_module(home))
    return bundle


def _file(about: str, bundle: Bundle, pieces: list[str]) -> str:
    """A Python file: what it is, what it imports, what it is made of."""
    head = [f'"""{about}"""', "", "from __future__ import annotations", ""]
    standard = list(_merged(bundle.imports))
    imports = [*standard, *([""] if standard else []), "import torch", "from torch import Tensor, nn"]
    if any("functional." in piece for piece in bundle.pieces.values()):
        imports.append("from torch.nn import functional")
    return "\n".join([*head, *imports]) + "\n\n\n" + "\n\n\n".join([*bundle.pieces.values(), *pieces]) + "\n"


def _merged(imports: set[str]) -> Iterator[str]:
    """`from x import a` and `from x import b` in one line."""
    found: dict[str, list[str]] = {}
    yield from sorted(line for line in imports if line.startswith("import "))
    for line in sorted(line for line in imports if line.startswith("from ")):
        module, _, name = line.removeprefix("from ").partition(" import ")
        found.setdefault(module, []).append(name)
    for module, names in found.items():
        yield f"from {module} import {', '.join(names)}"


def _title(network: Network) -> str:
    return f"{network.name}: {show(network.input, batch=True)} → {show(network.output, batch=True)}."


def _about(network: Network) -> str:
    optimizer = f"\nTrained with {network.optimizer!r}." if network.optimizer is not None else ""
    return f"Written by `neural compile`; needs torch alone.{optimizer}\n\n{text_table(network)}\n"


def _network(name: str, network: Network, built: Built) -> Iterator[str]:
    """The network's own class."""
    yield f"class {name}(nn.Module):"
    yield f'    """{_title(network)}"""'
    yield ""
    yield "    def __init__(self) -> None:"
    yield "        super().__init__()"
    for placed in network.layers:
        yield from _wrapped(f"        self.{placed.name} = ", _module(built, placed))
    yield f"        self.head = {expression(built.head)}"
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
    yield from (f"        {line}" for line in _scores(network))
    if network.loss is not None:
        yield ""
        yield "    def loss(self, scores: Tensor, target: Tensor) -> Tensor:"
        yield f'        """{type(network.loss).summary()}"""'
        yield f"        return {expression(network.loss)}.measure(scores, target)"


def _module(built: Built, placed: Placed) -> str:
    found = getattr(built, placed.name)
    if placed.copies == 1:
        return expression(found)
    assert isinstance(found, nn.ModuleList)
    each = [expression(module) for module in found]
    if len(set(each)) == 1:
        return f"nn.ModuleList({each[0]} for _ in range({placed.copies}))"
    return f"nn.ModuleList([{', '.join(each)}])"


def _wrapped(before: str, call: str) -> Iterator[str]:
    """An assignment, over several lines where one is too long."""
    if len(before + call) <= WIDEST or "(" not in call:
        yield before + call
        return
    opening, _, inside = call.partition("(")
    yield f"{before}{opening}("
    indent = " " * (len(before) - len(before.lstrip()) + 4)
    room = WIDEST - len(indent)
    for line in textwrap.wrap(inside[:-1], room, break_long_words=False, break_on_hyphens=False):
        yield indent + line
    yield f"{indent[4:]})"


def _scores(network: Network) -> Iterator[str]:
    """The way through the layers, a line each."""
    first = network.layers[0].name
    if not network.two_streams:
        yield "mask = as_bool(mask)"
        yield from _through(network.layers, "x", "mask", first)
        yield "return x"
        return
    stem = [placed for placed in network.layers if placed.stream == "both"]
    read = [placed for placed in network.layers if placed.stream == "source"]
    write = [placed for placed in network.layers if placed.stream == "target"]
    yield "mask, target_mask = as_bool(mask), as_bool(target_mask)"
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
