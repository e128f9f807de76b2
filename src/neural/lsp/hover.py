"""Hover texts for editors: explain the word at an offset of a `.neural` program, in Markdown.

The outline (outline.py) is a tree of the calls, sections and networks in the text. A registry
lists, by name, the entries of one kind, such as layers or losses. A declaration is the class of an
entry; an ArgumentSpec describes one of its arguments.
"""

from __future__ import annotations

from typing import Any

from neural.core.diagnostics import SourceSpan
from neural.core.registry import Registry
from neural.language.declaration import ArgumentSpec, Declaration, format_value
from neural.language.lexer import Token
from neural.language.network import Network, PlacedLayer
from neural.language.shapes import format_shape
from neural.language.summary import format_activation_memory, format_quantity, format_summary
from neural.language.train_options import TrainOptions
from neural.lsp.document import ProgramDocument
from neural.lsp.lookup import (
    NETWORK_DOC,
    SECTION_DOCS,
    find_argument_spec,
    find_declaration,
    find_entry,
    find_registry,
    list_options,
)
from neural.lsp.outline import OutlineNode


def get_hover(document: ProgramDocument, offset: int) -> tuple[str, SourceSpan] | None:
    """Markdown and the span it explains; None where there is nothing to explain."""
    token = document.outline.find_token(offset)
    if (
        token is None
        or token.kind not in ("name", "string", "number")
        or document.outline.is_comment(offset)
    ):
        return None
    node = _find_named_node(document.outline.root, token)
    text = _describe_node(document, node) if node is not None else _describe_word(document, token)
    return (text, token.span) if text else None


def _find_named_node(node: OutlineNode, token: Token) -> OutlineNode | None:
    """The node of the outline whose name this token is."""
    for child in node.children:
        if child.span == token.span and child.kind != "group":
            return child
        if child.span.start <= token.span.start < child.end:
            return _find_named_node(child, token)
    return None


def _describe_node(document: ProgramDocument, node: OutlineNode) -> str | None:
    """Explain the name of a network, call, section or key of `train`."""
    if node.kind == "network":
        network = document.find_network(node)
        return describe_network(network) if network else NETWORK_DOC
    if node.kind == "call":
        declaration = find_declaration(node, document.catalogue)
        registry = (
            find_registry(node.parent, document.catalogue, node.span.start) if node.parent else None
        )
        if declaration is None or registry is None:
            return None
        layer_and_network = (
            document.find_placed_layer(node) if registry is document.catalogue.layers else None
        )
        return describe_entry(declaration, registry) + (
            f"\n\n{describe_placed_layer(*layer_and_network)}" if layer_and_network else ""
        )
    if node.parent is not None and node.parent.kind == "block":
        spec = TrainOptions.argument_specs().get(node.name) if node.parent.name == "train" else None
        return describe_argument(spec, "train") if spec else None
    return f"`{node.name}`: {SECTION_DOCS[node.name]}" if node.name in SECTION_DOCS else None


def _describe_word(document: ProgramDocument, token: Token) -> str | None:
    """Explain an argument's name or a value."""
    node = document.outline.root.find_innermost(token.span.start)
    while node.kind == "group" and node.parent is not None:  # brackets of a tuple or list
        node = node.parent
    if token.text == "network" and node.kind == "file":
        return NETWORK_DOC
    spec = find_argument_spec(node, document.catalogue, token.span.start)
    index_and_argument = node.find_argument(token.span.start)
    is_name = (
        index_and_argument is not None
        and index_and_argument[1].name is not None
        and index_and_argument[1].name.span == token.span
    )
    if token.kind == "string" and not is_name:
        registry = find_registry(node, document.catalogue, token.span.start)
        entry = find_entry(registry, str(token.value))
        if entry is not None and registry is not None:
            return describe_entry(entry, registry)
    return describe_argument(spec, node.name if node.kind == "call" else "train") if spec else None


MAX_SIGNATURE_WIDTH = 88
"""Largest width of a signature on one line, in characters."""


def format_signature(declaration: type[Declaration], name: str) -> str:
    """The signature, such as `Dense(units, activation="linear", bias=true)`.

    A signature longer than MAX_SIGNATURE_WIDTH has one argument per line.
    """
    parts = [
        spec.name if spec.is_required else f"{spec.name}={format_value(spec.default)}"
        for spec in declaration.argument_specs().values()
    ]
    flat = f"{name}({', '.join(parts)})"
    return (
        flat
        if len(flat) <= MAX_SIGNATURE_WIDTH
        else "\n".join([f"{name}(", *(f"  {part}," for part in parts), ")"])
    )


def describe_entry(declaration: type[Declaration], registry: Registry[Any]) -> str:
    """Signature and docstring of a registry entry."""
    signature = format_signature(declaration, registry.name_of(declaration))
    return f"{_format_code(signature)}\n{(declaration.__doc__ or '').strip()}"


def describe_argument(spec: ArgumentSpec, owner: str) -> str:
    """Meaning, type and default of an argument; `owner` is the name of its layer, loss …"""
    default = (
        "needed"
        if spec.is_required
        else "optional"
        if spec.default is None
        else f"default `{format_value(spec.default)}`"
    )
    aliases = (
        f"; also called {', '.join(f'`{name}`' for name in spec.aliases)}" if spec.aliases else ""
    )
    options = ", ".join(f'`"{name}"`' for name in list_options(spec))
    return "\n\n".join(
        text
        for text in (
            f"`{spec.name}` of `{owner}`: {spec.doc}",
            f"{spec.kind.description}; {default}{aliases}",
            options,
        )
        if text
    )


def describe_placed_layer(placed: PlacedLayer, network: Network) -> str:
    """Shapes and cost of a layer in its network."""
    cost = placed.cost
    facts = [
        f"`{format_shape(placed.input_shape, batch=True)}` → "
        f"`{format_shape(placed.output_shape, batch=True)}`",
        f"{cost.parameters:,} parameters",
        f"{format_quantity(cost.multiply_adds)} multiply-adds",
        f"{format_activation_memory(cost)} activations",
    ]
    if placed.copies > 1:  # written as `Dense(10) * 3`
        facts.append(f"all {placed.copies} copies together")
    open_sizes = [f"{name} = {value:,}" for name, value in network.assumed_sizes.items()]
    return " · ".join(facts) + (f"  \ncosts for {', '.join(open_sizes)}" if open_sizes else "")


def describe_network(network: Network) -> str:
    """The table of layers that `neural check` prints."""
    return _format_code(format_summary(network), "text")


def _format_code(text: str, language: str = "neural") -> str:
    return f"```{language}\n{text}\n```"
