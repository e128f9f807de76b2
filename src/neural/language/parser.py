"""Tokens → Program, by recursive descent; after a mistake it goes on at the next place that makes sense.

Layer and argument names are not in the grammar (syntax.py has it whole): they live in the registries.
"""

from __future__ import annotations

from dataclasses import replace

from neural.core.diagnostics import Findings, Fix, Label, Where
from neural.language.cursor import Lost
from neural.language.lexer import Token, tokenize
from neural.language.syntax import SECTIONS, Block, Call, Comments, Layer, Literal, Program, Section, Value
from neural.language.values import DEEPEST, Values

LARGEST = 2 * 2**20
"""Characters in a program."""

_ONE_PER_LINE = "one layer per line, such as `Dense(10)`, without brackets and commas around them"


def parse(text: str, findings: Findings) -> Program:
    """The program that the text spells, as far as it can be read; mistakes go to `findings`."""
    if len(text) > LARGEST:
        size = f"{len(text) / 2**20:.0f} MB" if len(text) < 4 * LARGEST else f"{4 * LARGEST // 2**20} MB or more"
        findings.say("E0107", f"this file has {size}; a program has at most {LARGEST // 2**20} MB", Where(0, 0))
        return Program(items=())
    if "\0" in text[:8192]:
        findings.say("E0102", "this is not a text file", Where(0, 0), helps=["a program is plain UTF-8 text"])
        return Program(items=())
    return _Parser(tokenize(text, findings), findings).program()


class _Parser(Values):
    def __init__(self, tokens: list[Token], findings: Findings) -> None:
        super().__init__(tokens, findings)
        self.blocks = 0
        """The braces that are open here."""

    # --- networks and sections ------------------------------------------------------------------------------

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
                elif not self.stray(")", "]", "}"):
                    self.unexpected("expected `network`")
            except Lost:
                self.step_from(before)
                while self.token.kind not in ("end", "}") and not (self.token.first and self.begins_item()):
                    self.step()
        return Program(items=tuple(items), tail=self.tail())

    def begins_item(self) -> bool:
        return self.begins_network() or self.begins_section() or self.begins_call()

    def step_from(self, before: int) -> None:
        """Never stay: what was lost at this very token will not be found there."""
        if self.at == before:
            self.step()

    def stray(self, *closers: str) -> bool:
        """Say of a closing bracket that it closes nothing, and step over it."""
        if self.token.kind not in closers:
            return False
        self.findings.say("E0109", f"this `{self.token.text}` closes nothing", self.token.where)
        self.step()
        return True

    def network(self) -> Block:
        comments, start = self.opening(), self.step()
        if start.text != "network":
            self.say(f"expected `network`, found `{start.text[:30]}`", start.where)
        name, brace = self.network_name(start)
        comments = self.closing(comments)
        sections: list[Section] = []
        self.enter(start)
        while self.token.kind != "end" and not self.begins_network():
            if self.token.kind == "}" and not self.ends_early(name.text):
                break
            self.section_into(sections)
        self.blocks -= 1
        tail = self.tail() if self.token.kind == "}" else ()
        end = self.close(brace, f"`network {name.text} {{` is not closed")
        return Block(
            name=name.text, name_where=name.where, sections=tuple(sections), where=Where(start.where.start, end),
            comments=comments, tail=tail,
        )  # fmt: skip

    def network_name(self, start: Token) -> tuple[Token, Token | None]:
        """The name, and the brace behind it if there is one; what else stands on the line is stepped over."""
        named = self.token.kind == "name" and self.peek().kind != ":"
        name = self.step() if named else start._replace(text="Unnamed")
        if not named:
            self.say(f"a network needs a name, found {self.found}", self.token.where, "`network MyNetwork {`")
        elif self.token.kind != "{" and not self.token.damaged:
            self.say(f"expected `{{` after `network {name.text}`, found {self.found}", self.token.where)
        while self.token.kind != "{" and not self.token.first:
            self.step()
        if self.token.kind == "{":
            return name, self.step()
        if not self.begins_section():
            raise Lost
        return name, None

    def enter(self, brace: Token) -> None:
        """One brace deeper."""
        self.blocks += 1
        if self.blocks > DEEPEST:
            self.stop(brace)

    def ends_early(self, name: str) -> bool:
        """Whether this `}` is one too many: sections follow, and another `}`. Steps over it."""
        self.at += 1
        early = self.token.first and self.begins_known_section() and self.braces_left() > 0
        self.at -= 1
        if early:
            self.findings.say(
                "E0109", f"this `}}` closes nothing: `network {name}` goes on behind it", self.token.where,
                labels=[Label(self.peek().where, "still of this network")],
            )  # fmt: skip
            self.step()
        return early

    def section_into(self, sections: list[Section]) -> None:
        before = self.at
        try:
            if self.begins_section():
                sections.append(self.section())
            elif self.begins_call():
                first = self.token
                self.findings.say(
                    "E0111", f"`{first.text}(…)` stands outside `layers:`", first.where,
                    helps=["layers follow the line `layers:`"],
                )  # fmt: skip
                body = self.layers()
                if not any(section.name == "layers" for section in sections):   # the line was forgotten
                    sections.append(
                        Section(name="layers", name_where=first.where, body=body, block=False, where=first.where)
                    )
            elif not self.stray(")", "]"):
                self.unexpected("expected a section such as `input:` or `layers:`")
        except Lost:
            self.step_from(before)
            self.next_line()

    def section(self) -> Section:
        comments, name = self.opening(), self.step()
        said = self.findings.wrong
        mark = self.mark(name)
        if mark.kind == "{" and name.text != "layers":
            return self.pairs(comments, name, mark)
        body: Value | tuple[Layer, ...]
        broken = False
        comments = self.closing(comments)
        if name.text == "layers":
            body = self.layers()
            if mark.kind == "{" and self.token.kind == "}":
                self.step()
        else:
            try:
                self.need_value(name, mark, quiet=self.findings.wrong > said)
                if name.text in SECTIONS or not self.begins_call():
                    comments = self.gathered(comments)
                    body = self.value()
                else:
                    comments, body = self.call_or_layers(comments)
            except Lost:
                broken = True
                body = Literal(value=None, text="None", where=mark.where)
                self.next_line()
            comments = self.closing(comments)
        end = self.tokens[self.at - 1].where
        return Section(
            name=name.text, name_where=name.where, body=body, block=False, where=name.where.to(end),
            comments=comments, broken=broken,
        )  # fmt: skip

    def mark(self, name: Token) -> Token:
        """The `:` or `{` behind a section's name; where another one is meant, a token of the one that is."""
        token = self.token
        if token.kind == "{" and name.text == "layers":
            self.say("`layers` has no braces", token.where, f"write `layers:`, then {_ONE_PER_LINE}")
            return self.step()
        if token.kind in (":", "{"):
            self.step()
            if token.kind == "{" or name.text != "train":
                return token
            if self.token.kind == "{":
                self.say("`train` has no `:`", token.where, "write `train {`")
                return self.step()
            if not (self.token.first and self.begins_section()) or self.begins_known_section():
                return token   # `train: 5`; what it means is not the parser's business
            self.say("expected `{` after `train`, found `:`", token.where)
            return token._replace(kind="{", text="")
        wanted = "{" if name.text == "train" else ":"
        if not token.damaged:
            where = name.where if token.first or token.kind == "end" else token.where
            told = "" if token.first else f", found {self.found}"
            self.say(f"expected `{wanted}` after `{name.text[:30]}`{told}", where)
        if token.kind == "=":
            self.step()
        return name._replace(kind=wanted, text="")

    def need_value(self, name: Token, mark: Token, *, quiet: bool) -> None:
        """Lost where no value follows; `quiet`: something was said about this line already."""
        if self.token.kind in ("}", "end") or (self.token.first and (quiet or self.begins_section())):
            if not quiet:
                self.say(f"expected a value after `{name.text[:30]}:`", name.where.to(mark.where))
            raise Lost

    def call_or_layers(self, comments: Comments) -> tuple[Comments, Value | tuple[Layer, ...]]:
        """The value of a section that nobody knows: a call, or the layers that were meant by a misspelt `layers:`."""
        first = self.opening()
        call = self.call()
        if not (self.begins_call() or self.token.kind == "*"):
            return replace(comments, above=(*comments.above, *first.above)), call
        layer = Layer(call=call, copies=self.copies(), where=call.where, comments=self.closing(first))
        return comments, (layer, *self.layers())

    def pairs(self, comments: Comments, name: Token, brace: Token) -> Section:
        comments = self.closing(comments)
        found: list[Section] = []
        self.enter(brace)
        while self.token.kind not in ("}", "end") and not self.begins_network():
            if self.token.first and self.begins_known_section() and self.braces_left() < self.blocks:
                break   # the block was not closed, and the network goes on
            before = self.at
            try:
                if self.token.kind == "name":
                    found.append(self.section())
                elif not self.stray(")", "]"):
                    self.unexpected(f"expected `key: value` in `{name.text[:30]}`")
            except Lost:
                self.step_from(before)
                self.next_line()
        self.blocks -= 1
        tail = self.tail() if self.token.kind == "}" else ()
        end = self.close(brace if brace.text else None, f"`{name.text[:30]} {{` is not closed")
        return Section(
            name=name.text, name_where=name.where, body=tuple(found), block=True, where=Where(name.where.start, end),
            comments=comments, tail=tail,
        )  # fmt: skip

    # --- layers ---------------------------------------------------------------------------------------------

    def layers(self) -> tuple[Layer, ...]:
        found: list[Layer] = []
        listed = self.token.kind in ("(", "[")
        if listed:
            self.say("layers stand without brackets", self.token.where, _ONE_PER_LINE)
            self.step()
        while self.token.kind not in ("}", "end") and not self.begins_network() and not self.begins_section():
            before = self.at
            try:
                if listed and self.token.kind in (",", ")", "]"):
                    self.step()
                elif not self.stray(")", "]"):
                    found.append(self.layer())
            except Lost:
                self.step_from(before)
                while not (self.token.first or self.token.kind == "}" or self.begins_call()):
                    self.step()
        return tuple(found)

    def layer(self) -> Layer:
        comments = self.opening()
        if self.token.kind != "name":
            self.unexpected("expected a layer", [_ONE_PER_LINE])
        if self.peek().kind == "(":
            call = self.call()
            copies = self.copies()
        else:
            name, copies = self.step(), None
            way_out, fix = f"a layer is a call: `{name.text[:30]}()`", Fix(name.where, f"{name.text}()")
            self.say(f"expected `(` after `{name.text[:30]}`", name.where, way_out, fix=fix)
            call = Call(name=name.text, name_where=name.where, arguments=(), where=name.where, broken=True)
            self.next_line()
        where = call.where.to(copies.where) if copies else call.where
        return Layer(call=call, copies=copies, where=where, comments=self.closing(comments))

    def copies(self) -> Literal | None:
        if self.token.kind != "*":
            return None
        star = self.step()
        if self.token.kind != "number":
            if not self.token.damaged:
                found = "" if self.token.first else f", found {self.found}"
                way_out = "`* 6` makes six independent copies"
                self.say(f"expected a number of copies after `*`{found}", star.where, way_out)
            raise Lost
        token = self.step()
        return Literal(value=token.value, text=token.text, where=token.where)
