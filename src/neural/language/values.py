"""Values: numbers, words, lists and calls, and what happens where a bracket is missing, wrong or too many."""

from __future__ import annotations

from dataclasses import replace

from neural.core.diagnostics import Findings, Fix, Label, Where
from neural.language.cursor import CLOSING, Cursor, Lost
from neural.language.lexer import Token
from neural.language.syntax import Argument, Call, Group, Literal, Value

DEEPEST = 32
"""Brackets inside brackets; the deepest sensible program has five."""

_WORDS: dict[str, bool | None] = {"true": True, "True": True, "false": False, "False": False, "None": None}


class Values(Cursor):
    """The part of the parser that reads a value."""

    def __init__(self, tokens: list[Token], findings: Findings) -> None:
        super().__init__(tokens, findings)
        self.open: list[str] = []
        """What closes the brackets that are open here."""
        self.stopped = False
        """Brackets were nested too deep: the rest was not read."""

    def value(self) -> Value:
        """One value; Lost where none begins."""
        token = self.token
        if token.kind in ("number", "string"):
            self.step()
            return Literal(value=token.value, text=token.text, where=token.where)
        if token.kind in ("(", "["):
            self.step()
            items, tail, end = self.items(token, named=False)
            return Group(bracket=token.kind, items=items, where=Where(token.where.start, end), tail=tail)
        if self.begins_call():
            return self.call()
        if token.kind == "name":
            self.step()
            if token.text in _WORDS:
                return Literal(value=_WORDS[token.text], text=token.text, where=token.where)
            self.findings.say(
                "E0110", f"`{token.text[:30]}` stands alone", token.where,
                helps=[f'a word is written in quotes: `"{token.text[:30]}"`'], fix=Fix(token.where, f'"{token.text}"'),
            )  # fmt: skip
            return Literal(value=token.text, text=token.text, where=token.where)
        self.unexpected("expected a value")
        raise AssertionError

    def call(self) -> Call:
        """`Name(…)`; the name and the bracket are known to stand here."""
        name, bracket = self.step(), self.step()
        said = self.findings.wrong
        items, tail, end = self.items(bracket, named=True)
        return Call(
            name=name.text, name_where=name.where, arguments=items, where=Where(name.where.start, end), tail=tail,
            broken=self.stopped or self.findings.wrong > said,
        )  # fmt: skip

    def items(self, bracket: Token, *, named: bool) -> tuple[tuple[Argument, ...], tuple[str, ...], int]:
        """What stands between two brackets: the arguments, the comments before the closing one, and its end."""
        closing = CLOSING.get(bracket.text, ")")   # after too many mistakes the bracket is the end
        self.open.append(closing)
        if len(self.open) > DEEPEST:
            self.stop(bracket)
        found: list[Argument] = []
        while self.token.kind not in (")", "]") and not self.runs_out():
            try:
                found.append(self.argument(named=named))
                if self.token.kind == ",":
                    self.step()
                    comments = self.closing(found[-1].comments)
                    if comments is not found[-1].comments:
                        found[-1] = replace(found[-1], comments=comments)
                elif self.token.kind not in (")", "]"):
                    if self.runs_out(after_value=True):
                        break
                    self.unexpected(f"expected `,` or `{closing}`")
            except Lost:
                if not self.skip_in_brackets(closing):
                    break
        tail = self.tail() if self.token.kind == closing else ()
        end = self.close(bracket, f"this `{bracket.text}` is not closed")
        self.open.pop()
        return tuple(found), tail, end

    def argument(self, *, named: bool) -> Argument:
        """`value` or `name=value`."""
        comments, start = self.opening(), self.token
        name = None
        if start.kind == "name" and self.peek().kind in ("=", ":"):
            if not named:
                self.unexpected("a list or tuple has values without names")
            name = self.step().text
            if self.token.kind == ":":
                self.say(f"expected `=` after `{name[:30]}`, found `:`", self.token.where)
            self.step()
            comments = self.gathered(comments)
        value = self.value()
        return Argument(
            name=name, value=value, where=start.where.to(value.where), comments=self.closing(comments)
        )

    # --- brackets -------------------------------------------------------------------------------------------

    def runs_out(self, *, after_value: bool = False) -> bool:
        """Whether something begins here that cannot stand in brackets: the closing one was forgotten."""
        token = self.token
        if token.kind in ("}", "end") or self.begins_network():
            return True
        if token.kind != "name" or not token.first:
            return False
        if self.begins_known_section():
            return True
        return after_value and self.peek().kind != "=" and self.brackets_left() < len(self.open)

    def skip_in_brackets(self, closing: str) -> bool:
        """Go on behind the next comma of this level, or to its closing bracket; False where there is none."""
        level = 0
        while level or not self.runs_out(after_value=True):
            kind = self.token.kind
            if kind == "end" or (level == 0 and kind == closing):
                return kind == closing
            self.step()
            if kind in CLOSING:
                level += 1
            elif kind in (")", "]", "}"):
                level = max(0, level - 1)
            elif kind == "," and level == 0:
                return True
        return False

    def close(self, bracket: Token | None, message: str) -> int:
        """Take the closing bracket, or say where the open one is. Gives the end of what was enclosed.

        With no bracket (it was missing, and that has been said) the closing one may be missing as well.
        """
        closing = CLOSING.get(bracket.text, ")") if bracket else "}"
        if self.token.kind == closing:
            return self.step().where.end
        last = self.tokens[self.at - 1].where
        if self.stopped or bracket is None:
            return last.end
        if self.token.kind in (")", "]") and not self.closes_outer():
            labels = [Label(self.token.where, f"`{closing}` is meant here")]
            crossed = f"this `{bracket.text}` is closed by `{self.token.text}`"
            self.findings.say("E0104", crossed, bracket.where, labels=labels)
            return self.step().where.end
        labels = [Label(self.token.where, f"`{closing}` is missing before this")] if self.token.kind != "end" else []
        self.findings.say("E0104", message, bracket.where, labels=labels, helps=[f"add `{closing}`"])
        return last.end

    def closes_outer(self) -> bool:
        """Whether the closing brackets from here on are all wanted by the brackets further out."""
        outer = self.open[-2::-1]
        closers = 0
        while self.peek(closers).kind in (")", "]") and closers <= len(outer):
            closers += 1
        return 0 < closers <= len(outer) and outer[0] == self.token.kind

    def stop(self, bracket: Token) -> None:
        """Nobody meant so many brackets: read no further."""
        self.findings.say("E0106", f"brackets are nested more than {DEEPEST} deep", bracket.where)
        self.at, self.stopped = len(self.tokens) - 1, True
