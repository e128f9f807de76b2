"""Formatter of `.neural` programs: two spaces, a layer per line, comments stay. Idempotent.

Works on the syntax tree (syntax.py). A `tail` holds comments before a closing bracket or the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from neural.language.declaration import format_value
from neural.language.syntax import (
    Argument,
    CallExpression,
    Comments,
    LayerStatement,
    Literal,
    NetworkBlock,
    Program,
    Section,
    Value,
)

MAX_LINE_WIDTH = 100
INDENT = "  "


def format_program(program: Program) -> str:
    """The program's formatted text."""
    lines: list[str] = []
    for index, item in enumerate(program.items):
        needs_blank_line = isinstance(item, NetworkBlock) or (
            index > 0 and isinstance(program.items[index - 1], NetworkBlock)
        )
        if lines and (needs_blank_line or item.comments.blank) and lines[-1]:
            lines.append("")
        lines += _format_item(item, "")
    tail_lines = list(_format_comments(program.tail, ""))
    if tail_lines[:1] == [""]:
        tail_lines = tail_lines[1:]
    if tail_lines and lines and lines[-1]:
        lines.append("")
    return "\n".join([*lines, *tail_lines, ""]) if lines or tail_lines else ""


def _format_comments(texts: Iterable[str], indent: str) -> Iterator[str]:
    """One line per comment; an empty text is a blank line."""
    for text in texts:
        yield f"{indent}{text}" if text else ""


def _format_item(item: NetworkBlock | Section | LayerStatement, indent: str) -> Iterator[str]:
    """The lines of a network, section or layer; `indent` is the whitespace before them."""
    if isinstance(item, NetworkBlock):
        yield from _format_block(
            f"network {item.name}", item.comments, item.sections, item.tail, indent
        )
    elif isinstance(item, LayerStatement):
        copies = f" * {item.copies.text}" if item.copies else ""
        yield from _format_line("", item.call, copies, item.comments, indent)
    elif item.is_block:
        pairs = (
            [pair for pair in item.body if isinstance(pair, Section)]
            if isinstance(item.body, tuple)
            else []
        )
        yield from _format_block(item.name, item.comments, pairs, item.tail, indent)
    elif isinstance(item.body, tuple):
        yield from _format_comments(item.comments.above, indent)
        yield f"{indent}{item.name}:{_format_trailing_comment(item.comments)}"
        yield from _format_items(item.body, indent + INDENT)
    else:
        yield from _format_line(f"{item.name}: ", item.body, "", item.comments, indent)


def _format_items(items: Iterable[Section | LayerStatement], indent: str) -> Iterator[str]:
    """The lines of several items; a blank line stays, except before the first item."""
    is_first = True
    for item in items:
        if item.comments.blank and not is_first:
            yield ""
        is_first = False
        yield from _format_item(item, indent)


def _format_block(
    opening: str, comments: Comments, items: Iterable[Section], tail: Iterable[str], indent: str
) -> Iterator[str]:
    """The lines of `opening { … }`."""
    yield from _format_comments(comments.above, indent)
    yield f"{indent}{opening} {{{_format_trailing_comment(comments)}"
    lines = [*_format_items(items, indent + INDENT), *_format_comments(tail, indent + INDENT)]
    yield from lines if lines[:1] != [""] else lines[1:]
    yield f"{indent}}}"


def _format_line(
    before: str, value: Value, after: str, comments: Comments, indent: str
) -> Iterator[str]:
    """`before`, a value and `after`, such as `loss: ` and `"mse"`.

    On one line if they fit and the value has no comments inside, else one argument per line.
    """
    yield from _format_comments(comments.above, indent)
    flat = f"{indent}{before}{format_flat(value)}{after}"
    if isinstance(value, Literal) or (len(flat) <= MAX_LINE_WIDTH and not has_comments(value)):
        yield flat + _format_trailing_comment(comments)
        return
    arguments = value.arguments if isinstance(value, CallExpression) else value.items
    opening = f"{value.name}(" if isinstance(value, CallExpression) else value.bracket
    closing = "]" if opening == "[" else ")"
    yield f"{indent}{before}{opening}"
    for argument in arguments:
        name = f"{argument.name}=" if argument.name else ""
        yield from _format_line(name, argument.value, ",", argument.comments, indent + INDENT)
    yield from _format_comments(value.tail, indent + INDENT)
    yield f"{indent}{closing}{after}{_format_trailing_comment(comments)}"


def _format_trailing_comment(comments: Comments) -> str:
    """The comment at the end of the line, with two spaces before it."""
    return f"  {comments.behind}" if comments.behind else ""


def has_comments(value: Value) -> bool:
    """Whether there are comments inside a call, tuple or list."""
    if isinstance(value, Literal):
        return False
    arguments = value.arguments if isinstance(value, CallExpression) else value.items
    return bool(value.tail) or any(
        argument.comments.above or argument.comments.behind or has_comments(argument.value)
        for argument in arguments
    )


def format_flat(value: Value) -> str:
    """The value on one line, without comments."""
    if isinstance(value, Literal):
        return _format_literal(value)
    if isinstance(value, CallExpression):
        return f"{value.name}({', '.join(map(_format_argument, value.arguments))})"
    items = ", ".join(map(_format_argument, value.items))
    if value.bracket == "[":
        return f"[{items}]"
    return f"({items},)" if len(value.items) == 1 else f"({items})"


def _format_argument(argument: Argument) -> str:
    """`value` or `name=value` on one line."""
    return (f"{argument.name}=" if argument.name else "") + format_flat(argument.value)


def _format_literal(literal: Literal) -> str:
    """Numbers as written; other literals in their canonical spelling."""
    if isinstance(literal.value, int | float) and not isinstance(literal.value, bool):
        return literal.text.removeprefix("+")
    return format_value(literal.value)
