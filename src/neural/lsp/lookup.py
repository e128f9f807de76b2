"""Look up what a position in a `.neural` program means: declarations, arguments, entries.

A declaration is the class of a layer, loss or optimizer. A registry lists the declarations of one
kind by name; these are its entries. An ArgumentSpec describes one argument of a declaration: name,
type, default. An OutlineNode (outline.py) is a network, section, block, call or pair of brackets in
the text.
"""

from __future__ import annotations

from typing import Any

from neural.core.registry import Registry, UnknownNameError
from neural.language.argument_types import ChoiceType, EntryListType, EntryType
from neural.language.catalogue import Catalogue
from neural.language.declaration import ArgumentSpec, Declaration
from neural.language.train_options import TrainOptions
from neural.lsp.outline import OutlineNode

SECTION_DOCS = {
    "input": "The shape of one example, such as `(100, 64)`: 100 positions with 64 features. "
    "`None` leaves a size open; before an `Embedding`, `(100,)` is 100 token ids.",
    "layers": "The layers, one per line, in the order of the forward pass. `Dense(10) * 3` makes "
    "three independent copies.",
    "loss": "The loss function that training minimizes.",
    "optimizer": "The optimizer and its learning rate.",
    "train": "Duration, data and safeguards of training; one key per line.",
}
"""Descriptions of the sections of a network."""
NETWORK_DOC = (
    "A network: what comes in (`input:`), what happens to it (`layers:`), and how it is trained."
)


def find_registry(node: OutlineNode, catalogue: Catalogue, offset: int) -> Registry[Any] | None:
    """The registry whose entries can be called at an offset in this node."""
    if node.kind == "section":
        registries = {
            "layers": catalogue.layers,
            "loss": catalogue.losses,
            "optimizer": catalogue.optimizers,
        }
        return registries.get(node.name)
    if node.kind == "call":
        spec = find_argument_spec(node, catalogue, offset)
        return (
            spec.kind.registry
            if spec is not None and isinstance(spec.kind, EntryType | EntryListType)
            else None
        )
    # A file may be a fragment: layers without a network around them.
    return catalogue.layers if node.kind == "file" else None


def find_declaration(call: OutlineNode, catalogue: Catalogue) -> type[Declaration] | None:
    """The declaration that a call names."""
    registry = find_registry(call.parent, catalogue, call.span.start) if call.parent else None
    return find_entry(registry, call.name) if call.kind == "call" else None


def find_entry(registry: Registry[Any] | None, name: str) -> type[Declaration] | None:
    """The entry of that name, or None."""
    if registry is None or not name:
        return None
    try:
        return registry.get(name, ignore_case=True)
    except UnknownNameError:
        return None


def list_arguments(call: OutlineNode, catalogue: Catalogue) -> dict[str, ArgumentSpec]:
    """The arguments of a call: its own, and those of the entries that its arguments name.

    For example, `attention="localized"` adds the arguments of the entry `localized`.
    """
    declaration = find_declaration(call, catalogue)
    specs = declaration.argument_specs() if declaration else {}
    entry_specs: dict[str, ArgumentSpec] = {}
    for index, argument in enumerate(call.arguments):
        spec = _select_spec(specs, index, argument.name.text if argument.name else None)
        if (
            spec is not None
            and isinstance(spec.kind, EntryType)
            and argument.value is not None
            and argument.value.kind == "string"
        ):
            entry = find_entry(spec.kind.registry, str(argument.value.value))
            entry_specs |= entry.argument_specs() if entry else {}
    return {**entry_specs, **specs}


def find_argument_spec(node: OutlineNode, catalogue: Catalogue, offset: int) -> ArgumentSpec | None:
    """The spec of the argument at an offset in a call, or of a key in a `train { … }` block."""
    if node.kind == "section" and node.parent is not None and node.parent.kind == "block":
        return TrainOptions.argument_specs().get(node.name) if node.parent.name == "train" else None
    match = node.find_argument(offset) if node.kind == "call" else None
    if match is None:
        return None
    index, argument = match
    return _select_spec(
        list_arguments(node, catalogue), index, argument.name.text if argument.name else None
    )


def _select_spec(
    specs: dict[str, ArgumentSpec], index: int, name: str | None
) -> ArgumentSpec | None:
    """The spec of an argument by name or alias, else by its position `index` in the call."""
    if name is not None:
        return specs.get(name) or next(
            (spec for spec in specs.values() if name in spec.aliases), None
        )
    list_spec = next(
        (spec for spec in specs.values() if isinstance(spec.kind, EntryListType)), None
    )
    return list_spec or next(iter(list(specs.values())[index : index + 1]), None)


def list_options(spec: ArgumentSpec) -> list[str]:
    """The strings that an argument accepts; empty if they cannot be listed."""
    if isinstance(spec.kind, ChoiceType):
        return list(spec.kind.options)
    return (
        spec.kind.registry.names()
        if isinstance(spec.kind, EntryType) and spec.kind.or_number is None
        else []
    )
