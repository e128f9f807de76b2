"""`.neural` program → JSON: its syntax tree as dicts and lists, for other tools, without comments.

    {"networks": [{"name": "Tiny", "sections": {
        "input": [7, 3],
        "layers": [{"call": "Dense", "arguments": [5, {"name": "activation", "value": "relu"}],
                    "copies": 2}],
        "optimizer": {"call": "Adam", "arguments": [{"name": "learning_rate", "value": 0.001}]},
        "train": {"epochs": 3}}}],
     "rest": []}

A tuple is a list; a list is `{"list": […]}`; an argument without a name is its value. `rest` has
the layers and sections outside networks, in order; each section is a dict with one key.
"""

from __future__ import annotations

from typing import Any

from neural.language.syntax import (
    Argument,
    CallExpression,
    LayerStatement,
    Literal,
    NetworkBlock,
    Program,
    Section,
    Value,
)


def program_to_json(program: Program) -> dict[str, Any]:
    """The program as JSON values. Of a section given twice (an error) the last one stays."""
    rest = [item for item in program.items if not isinstance(item, NetworkBlock)]
    return {
        "networks": [
            {"name": block.name, "sections": _dump_sections(block.sections)}
            for block in program.networks
        ],
        "rest": [
            _dump_layer(item) if isinstance(item, LayerStatement) else _dump_sections((item,))
            for item in rest
        ],
    }


def _dump_sections(sections: tuple[Section, ...]) -> dict[str, Any]:
    return {section.name: _dump_body(section) for section in sections}


def _dump_body(section: Section) -> Any:
    """A value, the pairs of a block as a dict, or a list of layers."""
    if not isinstance(section.body, tuple):
        return _dump_value(section.body)
    if section.is_block:
        return _dump_sections(tuple(pair for pair in section.body if isinstance(pair, Section)))
    return [_dump_layer(layer) for layer in section.body if isinstance(layer, LayerStatement)]


def _dump_layer(layer: LayerStatement) -> dict[str, Any]:
    copies = {"copies": layer.copies.value} if layer.copies else {}
    return {**_dump_value(layer.call), **copies}


def _dump_value(value: Value) -> Any:
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, CallExpression):
        return {
            "call": value.name,
            "arguments": [_dump_argument(argument) for argument in value.arguments],
        }
    items = [_dump_argument(item) for item in value.items]
    return items if value.bracket == "(" else {"list": items}


def _dump_argument(argument: Argument) -> Any:
    value = _dump_value(argument.value)
    return {"name": argument.name, "value": value} if argument.name else value
