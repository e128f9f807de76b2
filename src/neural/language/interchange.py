"""Program ⇄ JSON: the same tree in plain dicts and lists, for tools that do not read programs. Comments stay behind.

    {"networks": [{"name": "Tiny", "sections": {
        "input": [7, 3],
        "layers": [{"call": "Dense", "arguments": [5, {"name": "activation", "value": "relu"}], "copies": 2}],
        "optimizer": {"call": "Adam", "arguments": [{"name": "learning_rate", "value": 0.001}]},
        "train": {"epochs": 3}}}],
     "rest": []}

A tuple is a list; a list is `{"list": […]}`; an argument without a name is its value.
"""

from __future__ import annotations

from typing import Any

from neural.core.diagnostics import Where
from neural.language.declaration import spelt
from neural.language.syntax import Argument, Block, Call, Group, Layer, Literal, Program, Section, Value

NOWHERE = Where(0, 0)


class NotAProgram(ValueError):  # noqa: N818
    """JSON that does not describe a program; the message says which part."""


def to_json(program: Program) -> dict[str, Any]:
    """The program as plain data."""
    rest = [_layer(item) if isinstance(item, Layer) else _section(item) for item in program.items if not isinstance(item, Block)]
    return {"networks": [_block(block) for block in program.networks], "rest": rest}


def _block(block: Block) -> dict[str, Any]:
    # a section given twice is a mistake, and its program has one; the pairs keep both
    return {"name": block.name, "sections": {s.name: _body(s) for s in block.sections}}


def _section(section: Section) -> dict[str, Any]:
    return {section.name: _body(section)}


def _body(section: Section) -> Any:
    if isinstance(section.body, tuple):
        if section.block:
            return {pair.name: _body(pair) for pair in section.body if isinstance(pair, Section)}
        return [_layer(layer) for layer in section.body if isinstance(layer, Layer)]
    return _value(section.body)


def _layer(layer: Layer) -> dict[str, Any]:
    copies = {"copies": layer.copies.value} if layer.copies else {}
    return {**_value(layer.call), **copies}


def _value(value: Value) -> Any:
    if isinstance(value, Literal):
        return value.value
    if isinstance(value, Call):
        return {"call": value.name, "arguments": [_argument(one) for one in value.arguments]}
    items = [_argument(one) for one in value.items]
    return items if value.bracket == "(" else {"list": items}


def _argument(argument: Argument) -> Any:
    return {"name": argument.name, "value": _value(argument.value)} if argument.name else _value(argument.value)


def from_json(data: Any) -> Program:
    """The program that `to_json` gave; NotAProgram where the data is something else."""
    if not isinstance(data, dict) or not isinstance(data.get("networks"), list):
        raise NotAProgram('expected {"networks": […]}')
    blocks = [_read_block(one) for one in data["networks"]]
    rest = [_read_layer(one) if "call" in one else _read_section(*next(iter(one.items()))) for one in data.get("rest", [])]
    return Program(items=(*blocks, *rest))


def _read_block(data: Any) -> Block:
    if not isinstance(data, dict) or not isinstance(data.get("name"), str) or not isinstance(data.get("sections"), dict):
        raise NotAProgram(f'a network is {{"name": …, "sections": {{…}}}}, got {str(data)[:60]}')
    sections = tuple(_read_section(name, body) for name, body in data["sections"].items())
    return Block(name=data["name"], name_where=NOWHERE, sections=sections, where=NOWHERE)


def _read_section(name: str, body: Any) -> Section:
    made: Value | tuple[Layer, ...] | tuple[Section, ...]
    block = isinstance(body, dict) and "call" not in body and "list" not in body
    if block:
        made = tuple(_read_section(key, value) for key, value in body.items())
    elif name == "layers" and isinstance(body, list):
        made = tuple(_read_layer(one) for one in body)
    else:
        made = _read_value(body)
    return Section(name=name, name_where=NOWHERE, body=made, block=block, where=NOWHERE)


def _read_layer(data: Any) -> Layer:
    call = _read_value(data)
    if not isinstance(call, Call):
        raise NotAProgram(f'a layer is {{"call": …, "arguments": […]}}, got {str(data)[:60]}')
    copies = _read_value(data["copies"]) if "copies" in data else None
    return Layer(call=call, copies=copies if isinstance(copies, Literal) else None, where=NOWHERE)


def _read_value(data: Any) -> Value:
    if data is None or isinstance(data, bool | int | float | str):
        return Literal(value=data, text=spelt(data), where=NOWHERE)
    if isinstance(data, list):
        return Group(bracket="(", items=tuple(map(_read_argument, data)), where=NOWHERE)
    if isinstance(data, dict) and isinstance(data.get("list"), list):
        return Group(bracket="[", items=tuple(map(_read_argument, data["list"])), where=NOWHERE)
    if isinstance(data, dict) and isinstance(data.get("call"), str) and isinstance(data.get("arguments", []), list):
        arguments = tuple(map(_read_argument, data.get("arguments", [])))
        return Call(name=data["call"], name_where=NOWHERE, arguments=arguments, where=NOWHERE)
    raise NotAProgram(f"not a value: {str(data)[:60]}")


def _read_argument(data: Any) -> Argument:
    if isinstance(data, dict) and "name" in data and "value" in data:
        return Argument(name=str(data["name"]), value=_read_value(data["value"]), where=NOWHERE)
    return Argument(name=None, value=_read_value(data), where=NOWHERE)
