"""Tokens → Program, by recursive descent; after a mistake it goes on at the next place that makes sense.

Layer and argument names are not in the grammar (syntax.py has it whole): they live in the registries.
"""

from __future__ import annotations

from dataclasses import replace

from neural.core.diagnostics import Findings, Label, Where
from neural.language.lexer import Token, tokenize
from neural.language.syntax import Argument, Block, Call, Comments, Group, Layer, Literal, Program, Section, Value

DEEPEST = 32
"""Brackets inside brackets; the deepest sensible program has five."""
LARGEST = 2 * 2**20
"""Characters in a program."""

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_WORDS: dict[str, bool | None] = {"true": True, "True": True, "false": False, "False": False, "None": None}


class _Lost(Exception):  # noqa: N818 (not an error: a jump to the next sensible place)
    """What follows cannot be read from here; whoever can find its footing again catches this."""


def parse(text: str, findings: Findings) -> Program:
    """The program that the text spells, as far as it can be read; mistakes go to `findings`."""
    if len(text) > LARGEST:
        size = f"{len(text) / 2**20:.0f} MB"
        findings.say("E0107", f"this file has {size}; a program has at most {LARGEST // 2**20} MB", Where(0, 0))
        return Program(items=())
    if "\0" in text[:8192]:
        findings.say("E0102", "this is not a text file", Where(0, 0), helps=["a program is plain UTF-8 text"])
        return Program(items=())
    return _Parser(tokenize(text, findings), findings).program()


class _Parser:
    def __init__(self, tokens: list[Token], findings: Findings) -> None:
        self.tokens, self.findings = tokens, findings
        self.at = 0
        self.depth = 0
        self.stopped = False
        self.strays: list[str] = []
        """Comments met where no line of their own can hold them; the next finished line takes them above it."""

    # --- tokens ---------------------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def step(self) -> Token:
        """Take the token; its comments become strays unless `opening` took them before."""
        token = self.token
        if token.remarks:
            self.strays += [remark.text for remark in token.remarks]
            self.tokens[self.at] = replace(token, remarks=())
        if token.kind != "end":
            self.at += 1
        return token

    def opening(self) -> Comments:
        """The comments above the line that begins here."""
        token = self.token
        blank = token.remarks[0].blank if token.remarks else token.blank
        return Comments(above=self.above(), blank=blank)

    def above(self) -> tuple[str, ...]:
        """Take the comments before this token; an empty one stands for a blank line between them."""
        token = self.token
        lines: list[str] = []
        for remark in token.remarks:
            lines += ["", remark.text] if remark.blank and lines else [remark.text]
        if lines and token.blank and token.kind not in ("end", *_CLOSING.values()):
            lines.append("")
        self.tokens[self.at] = replace(token, remarks=())
        return tuple(lines)

    def closing(self, comments: Comments) -> Comments:
        """The same, with the comment behind the line that just ended, and with what strayed on the way."""
        behind = comments.behind or self.behind()
        above = (*comments.above, *self.strays)
        self.strays = []
        return replace(comments, above=above, behind=behind)

    def behind(self) -> str:
        token = self.token
        if not token.remarks or token.remarks[0].own_line:
            return ""
        self.tokens[self.at] = replace(token, remarks=token.remarks[1:])
        return token.remarks[0].text

    def tail(self) -> tuple[str, ...]:
        """The comments before a closing bracket or the end."""
        strays, self.strays = self.strays, []
        return (*strays, *self.above())

    def expect(self, kind: str, message: str) -> Token:
        if self.token.kind != kind:
            self.unexpected(message)
        return self.step()

    def unexpected(self, message: str, helps: list[str] | None = None) -> None:
        """Say that something else was expected here, and give up this place."""
        token = self.token
        found = "the end of the file" if token.kind == "end" else f"`{token.text[:30]}`"
        self.findings.say("E0105", f"{message}, found {found}", token.where, helps=helps or [])
        raise _Lost

    # --- where the next thing begins ------------------------------------------------------------------------

    def begins_network(self) -> bool:
        return self.token.text == "network" and self.peek().kind in ("name", "{")

    def begins_section(self) -> bool:
        return self.token.kind == "name" and self.peek().kind in (":", "{") and not self.begins_network()

    def begins_call(self) -> bool:
        return self.token.kind == "name" and self.peek().kind == "("

    def skip_to_item(self) -> None:
        """Go on to where a network, section or layer begins, or to a closing brace."""
        while self.token.kind not in ("end", "}"):
            if self.token.first and (self.begins_network() or self.begins_section() or self.begins_call()):
                break
            self.step()

    # --- the grammar ----------------------------------------------------------------------------------------

    def program(self) -> Program:
        items: list[Block | Section | Layer] = []
        while self.token.kind != "end":
            before = self.at
            try:
                if self.begins_network():
                    items.append(self.network())
                elif self.begins_section():
                    items.append(self.section())
                elif self.token.kind == "name":
                    items.append(self.layer())
                elif self.token.kind in ")]}":
                    self.findings.say("E0109", f"this `{self.token.text}` closes nothing", self.token.where)
                    self.step()
                else:
                    self.unexpected("expected `network`")
            except _Lost:
                if self.at == before:
                    self.step()
                self.skip_to_item()
        return Program(items=tuple(items), tail=self.tail())

    def network(self) -> Block:
        comments, start = self.opening(), self.step()
        if self.token.kind == "name":
            name = self.step()
        else:
            self.findings.say("E0105", "a network needs a name", self.token.where, helps=["`network MyNetwork {`"])
            name = replace(start, text="Unnamed")
        brace = self.expect("{", f"expected `{{` after `network {name.text}`")
        comments = self.closing(comments)
        sections: list[Section] = []
        while self.token.kind not in ("}", "end") and not self.begins_network():
            self.section_into(sections)
        tail = self.tail() if self.token.kind == "}" else ()
        end = self.close(brace, f"`network {name.text} {{` is not closed")
        return Block(
            name=name.text, name_where=name.where, sections=tuple(sections), where=Where(start.where.start, end),
            comments=comments, tail=tail,
        )  # fmt: skip

    def section_into(self, sections: list[Section]) -> None:
        before = self.at
        try:
            if self.begins_section():
                sections.append(self.section())
            elif self.begins_call():
                where = self.token.where
                layer = self.layer()
                self.findings.say(
                    "E0111", f"`{layer.call.name}(…)` stands outside `layers:`", where,
                    helps=["layers follow the line `layers:`"],
                )  # fmt: skip
            else:
                self.unexpected("expected a section such as `input:` or `layers:`")
        except _Lost:
            if self.at == before:
                self.step()
            self.skip_to_item()

    def section(self) -> Section:
        comments, name = self.opening(), self.step()
        mark = self.step()
        if mark.kind == "{":
            return self.pairs(comments, name, mark)
        body: Value | tuple[Layer, ...]
        broken = False
        if name.text == "layers":
            comments = self.closing(comments)
            body = self.layers()
        else:
            try:
                body = self.section_value(name)
            except _Lost:
                broken = True
                body = Literal(value=None, text="None", where=mark.where)
                self.skip_to_item()
            comments = self.closing(comments)
        end = self.tokens[self.at - 1].where
        return Section(
            name=name.text, name_where=name.where, body=body, block=False, where=name.where.to(end),
            comments=comments, broken=broken,
        )  # fmt: skip

    def section_value(self, name: Token) -> Value | tuple[Layer, ...]:
        """One value; or, under a misspelt `layers:`, the layers that were meant."""
        if not self.begins_call():
            if self.token.first and self.begins_section() or self.token.kind in ("}", "end"):
                self.unexpected(f"expected a value after `{name.text}:`")
            return self.value()
        value = self.call()
        if not (self.begins_call() or self.token.kind == "*"):
            return value
        first = Layer(call=value, copies=self.copies(), where=value.where, comments=self.closing(Comments()))
        return (first, *self.layers())

    def layers(self) -> tuple[Layer, ...]:
        found: list[Layer] = []
        while self.token.kind not in ("}", "end") and not self.begins_network() and not self.begins_section():
            before = self.at
            try:
                found.append(self.layer())
            except _Lost:
                if self.at == before:
                    self.step()
                self.skip_to_item()
        return tuple(found)

    def layer(self) -> Layer:
        comments = self.opening()
        if self.token.kind != "name":
            self.unexpected("expected a layer", ["a layer looks like `Dense(10)`"])
        if self.peek().kind != "(":
            name = self.step()
            self.findings.say(
                "E0105", f"expected `(` after `{name.text}`", name.where, helps=[f"a layer is a call: `{name.text}()`"]
            )
            call = Call(name=name.text, name_where=name.where, arguments=(), where=name.where, broken=True)
            while not self.token.first and self.token.kind not in ("}", "end"):
                self.step()
        else:
            call = self.call()
        copies = self.copies()
        where = call.where.to(copies.where) if copies else call.where
        return Layer(call=call, copies=copies, where=where, comments=self.closing(comments))

    def copies(self) -> Literal | None:
        if self.token.kind != "*":
            return None
        self.step()
        if self.token.kind != "number":
            self.unexpected("expected a number of copies after `*`", ["`* 6` makes six independent copies"])
        token = self.step()
        return Literal(value=token.value, text=token.text, where=token.where)

    def pairs(self, comments: Comments, name: Token, brace: Token) -> Section:
        comments = self.closing(comments)
        found: list[Section] = []
        while self.token.kind not in ("}", "end") and not self.begins_network():
            before = self.at
            try:
                if not self.begins_section():
                    self.unexpected(f"expected `key: value` in `{name.text}`")
                found.append(self.section())
            except _Lost:
                if self.at == before:
                    self.step()
                self.skip_to_item()
        tail = self.tail() if self.token.kind == "}" else ()
        end = self.close(brace, f"`{name.text} {{` is not closed")
        return Section(
            name=name.text, name_where=name.where, body=tuple(found), block=True, where=Where(name.where.start, end),
            comments=comments, tail=tail,
        )  # fmt: skip

    def value(self) -> Value:
        token = self.token
        if token.kind in ("number", "string"):
            self.step()
            return Literal(value=token.value, text=token.text, where=token.where)
        if token.kind in ("(", "["):
            self.step()
            items, tail, end, _ = self.items(token, named=False)
            return Group(bracket=token.kind, items=items, where=Where(token.where.start, end), tail=tail)
        if self.begins_call():
            return self.call()
        if token.kind == "name":
            self.step()
            if token.text in _WORDS:
                return Literal(value=_WORDS[token.text], text=token.text, where=token.where)
            self.findings.say(
                "E0110", f"`{token.text}` stands alone", token.where,
                helps=[f'a word is written in quotes: `"{token.text}"`'],
            )  # fmt: skip
            return Literal(value=token.text, text=token.text, where=token.where)
        self.unexpected("expected a value")
        raise AssertionError

    def call(self) -> Call:
        name, bracket = self.step(), self.step()
        said = len(self.findings.items)
        items, tail, end, whole = self.items(bracket, named=True)
        return Call(
            name=name.text, name_where=name.where, arguments=items, where=Where(name.where.start, end), tail=tail,
            broken=not whole or len(self.findings.items) > said,
        )  # fmt: skip

    def items(self, bracket: Token, *, named: bool) -> tuple[tuple[Argument, ...], tuple[str, ...], int, bool]:
        """What stands between two brackets: the arguments, the comments at the end, the end, and if it was closed."""
        self.depth += 1
        if self.depth > DEEPEST:
            self.findings.say("E0106", f"brackets are nested more than {DEEPEST} deep", bracket.where)
            self.at, self.stopped = len(self.tokens) - 1, True   # nobody meant this: read no further
        closing = _CLOSING[bracket.text]
        found: list[Argument] = []
        while self.token.kind not in (closing, "end") and not self.runs_out():
            try:
                found.append(self.argument(named=named))
                if self.token.kind == ",":
                    self.step()
                    found[-1] = replace(found[-1], comments=self.closing(found[-1].comments))
                elif self.token.kind != closing and not self.runs_out(after_value=True):
                    self.unexpected(f"expected `,` or `{closing}`")
                elif self.token.kind != closing:
                    break
            except _Lost:
                if not self.skip_in_brackets(closing):
                    break
        tail = self.tail() if self.token.kind == closing else ()
        whole = self.token.kind == closing
        end = self.close(bracket, f"this `{bracket.text}` is not closed")
        self.depth -= 1
        return tuple(found), tail, end, whole

    def argument(self, *, named: bool) -> Argument:
        comments, start = self.opening(), self.token
        name = None
        if start.kind == "name" and self.peek().kind == "=":
            if not named:
                self.unexpected("a list or tuple has values without names")
            name = self.step().text
            self.step()
        value = self.value()
        return Argument(
            name=name, value=value, where=start.where.to(value.where), comments=self.closing(comments)
        )

    # --- brackets -------------------------------------------------------------------------------------------

    def runs_out(self, *, after_value: bool = False) -> bool:
        """Whether something begins here that cannot stand in brackets: the bracket was forgotten."""
        if self.token.kind in ("}", "{", "end") or self.begins_network():
            return True
        return self.token.first and (self.begins_section() or (after_value and self.begins_call()))

    def skip_in_brackets(self, closing: str) -> bool:
        """Go on behind the next comma of this level, or to its closing bracket; False where there is none."""
        level = 0
        while not self.runs_out(after_value=True):
            kind = self.token.kind
            if level == 0 and kind == closing:
                return True
            self.step()
            if kind in "([":
                level += 1
            elif kind in ")]":
                level = max(0, level - 1)
            elif kind == "," and level == 0:
                return True
        return False

    def close(self, bracket: Token, message: str) -> int:
        """Take the closing bracket, or say where the open one is. Gives the end of what was enclosed."""
        closing = _CLOSING[bracket.text]
        if self.token.kind == closing:
            return self.step().where.end
        last = self.tokens[self.at - 1].where
        if self.stopped:
            return last.end
        labels = [Label(self.token.where, f"`{closing}` is missing before this")] if self.token.kind != "end" else []
        self.findings.say("E0104", message, bracket.where, labels=labels, helps=[f"add `{closing}`"])
        return last.end
