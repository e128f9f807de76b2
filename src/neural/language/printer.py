"""Program → text, in one style: two spaces, a layer per line, comments where they were. Twice changes nothing more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from neural.language.declaration import spelt
from neural.language.syntax import Argument, Block, Call, Comments, Layer, Literal, Program, Section, Value

WIDEST = 100
STEP = "  "


def print_program(program: Program) -> str:
    """The text of a program."""
    lines: list[str] = []
    for index, item in enumerate(program.items):
        apart = isinstance(item, Block) or (index > 0 and isinstance(program.items[index - 1], Block))
        if lines and (apart or item.comments.blank) and lines[-1]:
            lines.append("")
        lines += _item(item, "")
    tail = list(_comments(program.tail, ""))
    if tail[:1] == [""]:
        tail = tail[1:]
    if tail and lines and lines[-1]:
        lines.append("")
    return "\n".join([*lines, *tail, ""]) if lines or tail else ""


def _comments(texts: Iterable[str], indent: str) -> Iterator[str]:
    for text in texts:
        yield f"{indent}{text}" if text else ""


def _item(item: Block | Section | Layer, indent: str) -> Iterator[str]:
    if isinstance(item, Block):
        yield from _block(f"network {item.name}", item.comments, item.sections, item.tail, indent)
    elif isinstance(item, Layer):
        copies = f" * {item.copies.text}" if item.copies else ""
        yield from _line("", item.call, copies, item.comments, indent)
    elif item.block:
        pairs = [pair for pair in item.body if isinstance(pair, Section)] if isinstance(item.body, tuple) else []
        yield from _block(item.name, item.comments, pairs, item.tail, indent)
    elif isinstance(item.body, tuple):
        yield from _comments(item.comments.above, indent)
        yield f"{indent}{item.name}:{_behind(item.comments)}"
        yield from _items(item.body, indent + STEP)
    else:
        yield from _line(f"{item.name}: ", item.body, "", item.comments, indent)


def _items(items: Iterable[Section | Layer], indent: str) -> Iterator[str]:
    first = True
    for item in items:
        if item.comments.blank and not first:
            yield ""
        first = False
        yield from _item(item, indent)


def _block(
    opening: str, comments: Comments, items: Iterable[Section], tail: Iterable[str], indent: str
) -> Iterator[str]:
    yield from _comments(comments.above, indent)
    yield f"{indent}{opening} {{{_behind(comments)}"
    inside = [*_items(items, indent + STEP), *_comments(tail, indent + STEP)]
    yield from inside if inside[:1] != [""] else inside[1:]
    yield f"{indent}}}"


def _line(before: str, value: Value, after: str, comments: Comments, indent: str) -> Iterator[str]:
    """Something that ends with a value: on one line if it fits and holds no comments, else an argument per line."""
    yield from _comments(comments.above, indent)
    short = f"{indent}{before}{_flat(value)}{after}"
    if isinstance(value, Literal) or (len(short) <= WIDEST and not _commented(value)):
        yield short + _behind(comments)
        return
    arguments = value.arguments if isinstance(value, Call) else value.items
    opening = f"{value.name}(" if isinstance(value, Call) else value.bracket
    closing = "]" if opening == "[" else ")"
    yield f"{indent}{before}{opening}"
    for argument in arguments:
        name = f"{argument.name}=" if argument.name else ""
        yield from _line(name, argument.value, ",", argument.comments, indent + STEP)
    yield from _comments(value.tail, indent + STEP)
    yield f"{indent}{closing}{after}{_behind(comments)}"


def _behind(comments: Comments) -> str:
    return f"  {comments.behind}" if comments.behind else ""


def _commented(value: Value) -> bool:
    if isinstance(value, Literal):
        return False
    inside = value.arguments if isinstance(value, Call) else value.items
    return bool(value.tail) or any(
        argument.comments.above or argument.comments.behind or _commented(argument.value) for argument in inside
    )


def _flat(value: Value) -> str:
    """On one line, without comments."""
    if isinstance(value, Literal):
        return _literal(value)
    if isinstance(value, Call):
        return f"{value.name}({', '.join(map(_argument, value.arguments))})"
    items = ", ".join(map(_argument, value.items))
    if value.bracket == "[":
        return f"[{items}]"
    return f"({items},)" if len(value.items) == 1 else f"({items})"


def _argument(argument: Argument) -> str:
    return (f"{argument.name}=" if argument.name else "") + _flat(argument.value)


def _literal(literal: Literal) -> str:
    """Numbers as they were written; words in their one spelling."""
    if isinstance(literal.value, int | float) and not isinstance(literal.value, bool):
        return literal.text.removeprefix("+")
    return spelt(literal.value)
