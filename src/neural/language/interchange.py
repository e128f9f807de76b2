"""Program ⇄ JSON: the same tree in plain dicts and lists, for tools that do not read programs. Comments are left out.

    {"networks": [{"name": "Tiny", "sections": {
        "input": [7, 3],
        "layers": [{"call": "Dense", "arguments": [5, {"name": "activation", "value": "relu"}], "copies": 2}],
        "optimizer": {"call": "Adam", "arguments": [{"name": "learning_rate", "value": 0.001}]},
        "train": {"epochs": 3}}}],
     "rest": []}

A tuple is a list; a list is `{"list": […]}`; an argument without a name is its value. `rest` is what stands outside
the networks, in its order: layers and sections, each section a dict of one key. Unknown keys are refused.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from neural.core.diagnostics import Where
from neural.language.declaration import spelt
from neural.language.lexer import LONGEST_NUMBER, LONGEST_STRING
from neural.language.syntax import Argument, Block, Call, Group, Layer, Literal, Program, Section, Value
from neural.language.values import DEEPEST

NOWHERE = Where(0, 0)


class NotAProgram(ValueError):
    """JSON that does not describe a program; the message says which part."""


def to_json(program: Program) -> dict[str, Any]:
    """The program as plain data. Of a section given twice (a mistake) the last one stays."""
    rest = [item for item in program.items if not isinstance(item, Block)]
    return {
        "networks": [{"name": block.name, "sections": _sections(block.sections)} for block in program.networks],
        "rest": [_layer(item) if isinstance(item, Layer) else _sections((item,)) for item in rest],
    }


def _sections(sections: tuple[Section, ...]) -> dict[str, Any]:
    return {section.name: _body(section) for section in sections}


def _body(section: Section) -> Any:
    if not isinstance(section.body, tuple):
        return _value(section.body)
    if section.block:
        return _sections(tuple(pair for pair in section.body if isinstance(pair, Section)))
    return [_layer(layer) for layer in section.body if isinstance(layer, Layer)]


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
    value = _value(argument.value)
    return {"name": argument.name, "value": value} if argument.name else value


def from_json(data: Any) -> Program:
    """The program that `to_json` gave; NotAProgram where the data is something else."""
    parts = _keys(data, 'a program is {"networks": […], "rest": […]}', "networks", rest=[])
    networks, rest = _list(parts["networks"], "`networks`"), _list(parts["rest"], "`rest`")
    return Program(items=(*map(_read_block, networks), *map(_read_rest, rest)))


def _read_block(data: Any) -> Block:
    parts = _keys(data, 'a network is {"name": …, "sections": {…}}', "name", "sections")
    return Block(
        name=_name(parts["name"]), name_where=NOWHERE, sections=_read_sections(parts["sections"], 1), where=NOWHERE
    )


def _read_rest(data: Any) -> Section | Layer:
    if isinstance(data, dict) and "call" in data:
        return _read_layer(data)
    sections = _read_sections(data, 0)
    if len(sections) != 1:
        raise NotAProgram(f"outside a network stands a layer, or a dict of one section; got {_shown(data)}")
    return sections[0]


def _read_sections(data: Any, depth: int) -> tuple[Section, ...]:
    if not isinstance(data, dict) or depth > DEEPEST:
        raise NotAProgram(f"sections are a dict, at most {DEEPEST} deep; got {_shown(data)}")
    return tuple(_read_section(_name(name), body, depth) for name, body in data.items())


def _read_section(name: str, body: Any, depth: int) -> Section:
    made: Value | tuple[Layer, ...] | tuple[Section, ...]
    block = False
    if name == "layers":
        made = tuple(map(_read_layer, _list(body, "`layers`")))
    elif isinstance(body, dict) and "call" not in body and "list" not in body:
        if name == "network":
            raise NotAProgram("a network stands in `networks`")
        made, block = _read_sections(body, depth + 1), True
    else:
        made = _read_value(body)
    return Section(name=name, name_where=NOWHERE, body=made, block=block, where=NOWHERE)


def _read_layer(data: Any) -> Layer:
    parts = _keys(data, 'a layer is {"call": …, "arguments": […], "copies": …}', "call", arguments=[], copies=None)
    copies = parts.pop("copies")
    made = _read_value(copies) if copies is not None else None
    if made is not None and not (isinstance(made, Literal) and type(made.value) in (int, float)):
        raise NotAProgram(f"`copies` is a number, got {_shown(copies)}")
    return Layer(call=_read_call(parts, 0), copies=made, where=NOWHERE)   # type: ignore[arg-type]  # a literal, see above


def _read_call(data: Any, depth: int) -> Call:
    parts = _keys(data, 'a call is {"call": …, "arguments": […]}', "call", arguments=[])
    arguments = tuple(_read_argument(one, depth) for one in _list(parts["arguments"], "`arguments`"))
    return Call(name=_name(parts["call"]), name_where=NOWHERE, arguments=arguments, where=NOWHERE)


def _read_argument(data: Any, depth: int) -> Argument:
    if isinstance(data, dict) and "name" in data:
        parts = _keys(data, 'a named argument is {"name": …, "value": …}', "name", "value")
        return Argument(name=_name(parts["name"]), value=_read_value(parts["value"], depth + 1), where=NOWHERE)
    return Argument(name=None, value=_read_value(data, depth + 1), where=NOWHERE)


def _read_value(data: Any, depth: int = 0) -> Value:
    if depth > DEEPEST - 1:
        raise NotAProgram(f"values are at most {DEEPEST} deep")
    if data is None or isinstance(data, bool | int | float | str):
        return Literal(value=_plain(data), text=spelt(data), where=NOWHERE)
    if isinstance(data, dict) and "call" in data:
        return _read_call(data, depth)
    bracket = "(" if isinstance(data, list) else "["
    if not isinstance(data, list):
        data = _keys(data, 'a value is a number, a string, a list, {"call": …} or {"list": […]}', "list")["list"]
    values = [_read_value(one, depth + 1) for one in _list(data, "`list`")]
    items = tuple(Argument(name=None, value=one, where=NOWHERE) for one in values)
    return Group(bracket=bracket, items=items, where=NOWHERE)


def _plain(value: Any) -> Any:
    """The value, if a program can spell it."""
    spellable = True
    if isinstance(value, str):
        spellable = len(value) <= LONGEST_STRING and not re.search("[\0\ud800-\udfff]", value)
    elif isinstance(value, float):
        spellable = isfinite(value)
    elif value is not None:
        spellable = abs(value) < 10 ** (LONGEST_NUMBER - 1)
    if not spellable:
        raise NotAProgram(f"a program cannot spell {_shown(value)}")
    return value


def _keys(data: Any, says: str, *required: str, **optional: Any) -> dict[str, Any]:
    """A dict of these keys and no others, the optional ones filled in."""
    if not isinstance(data, dict) or not all(key in data for key in required):
        raise NotAProgram(f"{says}; got {_shown(data)}")
    strange = [key for key in data if key not in (*required, *optional)]
    if strange:
        raise NotAProgram(f"{says}; got the key {_shown(strange[0])}")
    return {**optional, **data}


def _list(data: Any, what: str) -> list[Any]:
    if not isinstance(data, list):
        raise NotAProgram(f"{what} is a list, got {_shown(data)}")
    return data


def _name(data: Any) -> str:
    if not isinstance(data, str) or not re.fullmatch(r"[^\W\d]\w*", data):
        raise NotAProgram(f"a name is letters, digits and underscores, got {_shown(data)}")
    return data


def _shown(data: Any) -> str:
    """A few words for a message, however large or deep the data is."""
    if isinstance(data, dict):
        return f"a dict of {len(data)}"
    if isinstance(data, list | tuple):
        return f"a list of {len(data)}"
    if isinstance(data, int) and abs(data) >= 10**LONGEST_NUMBER:
        return f"a number of {data.bit_length()} bits"
    return repr(data[:40] if isinstance(data, str) else data)[:60]
