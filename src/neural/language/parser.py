"""Tokens of a `.neural` program → Program, its syntax tree (see syntax.py).

Recursive descent. After an error the methods raise RecoverySignal, and parsing resumes at the next
line, section or network. Any layer and argument name is accepted here: `check` looks them up later.
A section is `name: value`, `layers:` with layers, or a block `name { … }`. `broken` marks a node
with a syntax error, `tail` holds the comments before a closing bracket. `token.after_error`: the
lexer has reported an error directly before the token, so the parser does not report a second one.
"""

from __future__ import annotations

from dataclasses import replace

from neural.core.diagnostics import (
    MAX_SOURCE_CHARACTERS,
    DiagnosticCollector,
    Fix,
    Label,
    SourceSpan,
)
from neural.language.foreign.text import IMPORT_WORDS
from neural.language.foreign.training_names import SECTIONS, SETUP_CALLS
from neural.language.lexer import Token, tokenize
from neural.language.syntax import (
    SECTION_NAMES,
    Argument,
    CallExpression,
    Comments,
    LayerStatement,
    Literal,
    NetworkBlock,
    Program,
    Section,
    SequenceLiteral,
    Value,
)
from neural.language.token_cursor import CLOSING_BRACKETS, RecoverySignal, TokenCursor

MAX_BRACKET_DEPTH = 32
"""Deepest accepted nesting of brackets or braces; usual programs have at most five."""

_CONSTANTS: dict[str, bool | None] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "None": None,
}
_LAYERS_HELP = "one layer per line, such as `Dense(10)`, without brackets and commas around them"


def parse(text: str, diagnostics: DiagnosticCollector) -> Program:
    """Parse the text of a program as far as possible; errors go to `diagnostics`."""
    if len(text) > MAX_SOURCE_CHARACTERS:
        size = (
            f"{len(text) / 2**20:.0f} MB"
            if len(text) < 4 * MAX_SOURCE_CHARACTERS
            else f"{4 * MAX_SOURCE_CHARACTERS // 2**20} MB or more"
        )
        diagnostics.add(
            "E0107",
            f"this file has {size}; a program has at most {MAX_SOURCE_CHARACTERS // 2**20} MB",
            SourceSpan(0, 0),
        )
        return Program(items=())
    if "\0" in text[:8192]:
        diagnostics.add(
            "E0102",
            "this is not a text file",
            SourceSpan(0, 0),
            helps=["a program is plain UTF-8 text"],
        )
        return Program(items=())
    return _Parser(tokenize(text, diagnostics), diagnostics).parse_program()


class ValueParser(TokenCursor):
    """Parser of values: literals, tuples and lists, calls."""

    def __init__(self, tokens: list[Token], diagnostics: DiagnosticCollector) -> None:
        super().__init__(tokens, diagnostics)
        self.open_brackets: list[str] = []
        """Closing brackets that are expected, innermost last."""
        self.variables: dict[str, Literal] = {}
        """Variables above the network, such as `D = 64`: an error, but the value is known."""
        self.repaired_count = 0
        """Errors after which the parser knows what is meant: the syntax tree has it."""
        self.is_stopped = False
        """True after too deep nesting: the remaining text is not parsed."""

    def parse_value(self) -> Value:
        """Parse one value. Raises RecoverySignal if the current token does not begin one."""
        token = self.token
        if token.kind in ("number", "string"):
            self.advance()
            if token.kind == "number" and self.open_brackets and self.token.kind == "*":
                return self.parse_product(token)
            return Literal(value=token.value, text=token.text, span=token.span)
        if token.kind in ("(", "["):
            self.advance()
            items, tail, end = self.parse_items(token, allow_names=False)
            return SequenceLiteral(
                bracket=token.kind, items=items, span=SourceSpan(token.span.start, end), tail=tail
            )
        if self.begins_call():
            return self.parse_call()
        if token.kind in ("name", "path"):
            self.advance()
            if token.text in _CONSTANTS:
                return Literal(value=_CONSTANTS[token.text], text=token.text, span=token.span)
            self.repaired_count += 1
            if token.text in self.variables:
                return self.replace_variable(token)
            self.diagnostics.add(
                "E0110",
                f"`{token.text[:30]}` stands alone",
                token.span,
                helps=[f'a word is written in quotes: `"{token.text[:30]}"`'],
                fix=Fix(token.span, f'"{token.text}"'),
            )
            return Literal(value=token.text, text=token.text, span=token.span)
        self.raise_unexpected("expected a value")
        raise AssertionError  # not reached: raise_unexpected always raises

    def replace_variable(self, token: Token) -> Literal:
        """The value of a variable, instead of its name."""
        variable = self.variables[token.text]
        self.diagnostics.add(
            "E0110",
            f"`{token.text[:30]}` stands alone",
            token.span,
            helps=[f"a program has no variables: write `{variable.text[:40]}`"],
            fix=Fix(token.span, variable.text),
        )
        return replace(variable, span=token.span)

    def parse_product(self, first: Token) -> Literal:
        """Parse the rest of `4 * 64`: an error, because programs do not compute."""
        value = first.value
        last = first
        while self.token.kind == "*" and self.peek().kind == "number":
            self.advance()
            last = self.advance()
            if isinstance(value, int) and isinstance(last.value, int):
                value *= last.value
        literal = Literal(value=value, text=str(value), span=first.span.to(last.span))
        if last is not first:
            self.repaired_count += 1
            self.report_syntax_error(
                "numbers are not multiplied here",
                literal.span,
                f"write `{literal.text}`",
                fix=Fix(literal.span, literal.text),
            )
        return literal

    def parse_call(self) -> CallExpression:
        """Parse `Name(…)`; the name and the bracket are known to be next."""
        name, bracket = self.advance(), self.advance()
        unclear_before = self.diagnostics.error_count - self.repaired_count
        items, tail, end = self.parse_items(bracket, allow_names=True)
        return CallExpression(
            name=name.text,
            name_span=name.span,
            arguments=items,
            span=SourceSpan(name.span.start, end),
            tail=tail,
            broken=self.is_stopped
            or self.diagnostics.error_count - self.repaired_count > unclear_before,
        )

    def parse_items(
        self, bracket: Token, *, allow_names: bool
    ) -> tuple[tuple[Argument, ...], tuple[str, ...], int]:
        """Parse from behind the opening `bracket` to the closing one.

        Returns the arguments, the comments before the closing bracket, and its end offset in the
        text. `allow_names`: items may be `name=value`, as in a call.
        """
        # When the error limit is reached, `bracket` is the end token, which is not in the table.
        closing = CLOSING_BRACKETS.get(bracket.text, ")")
        self.open_brackets.append(closing)
        if len(self.open_brackets) > MAX_BRACKET_DEPTH:
            self.stop_parsing(bracket)
        items: list[Argument] = []
        while self.token.kind not in (")", "]") and not self.is_unclosed():
            try:
                items.append(self.parse_argument(allow_name=allow_names))
                if self.token.kind == ",":
                    self.advance()
                    comments = self.add_trailing_comment(items[-1].comments)
                    if comments is not items[-1].comments:
                        items[-1] = replace(items[-1], comments=comments)
                elif self.token.kind not in (")", "]"):
                    if self.is_unclosed(after_value=True):
                        break
                    self.raise_unexpected(f"expected `,` or `{closing}`")
            except RecoverySignal:
                if not self.skip_in_brackets(closing):
                    break
        tail = self.take_tail_comments() if self.token.kind == closing else ()
        end = self.close_bracket(bracket, f"this `{bracket.text}` is not closed")
        self.open_brackets.pop()
        return tuple(items), tail, end

    def parse_argument(self, *, allow_name: bool) -> Argument:
        """Parse `value` or `name=value`."""
        comments, start = self.take_leading_comments(), self.token
        name = None
        if start.kind == "name" and self.peek().kind in ("=", ":"):
            if not allow_name:
                self.raise_unexpected("a list or tuple has values without names")
            name = self.advance().text
            if self.token.kind == ":":
                self.repaired_count += 1
                self.report_syntax_error(
                    f"expected `=` after `{name[:30]}`, found `:`",
                    self.token.span,
                    fix=Fix(start.span.to(self.token.span), f"{name}="),
                )
            self.advance()
            comments = self.add_inner_comments(comments)
        value = self.parse_value()
        return Argument(
            name=name,
            value=value,
            span=start.span.to(value.span),
            comments=self.add_trailing_comment(comments),
        )

    # --- brackets ---------------------------------------------------------------------------------

    def is_unclosed(self, *, after_value: bool = False) -> bool:
        """Whether the current token cannot be inside brackets: the closing bracket is missing.

        With `after_value` (a comma or bracket is expected), a name that starts a line counts too,
        unless enough closing brackets follow.
        """
        token = self.token
        if token.kind in ("}", "end") or self.begins_network():
            return True
        if token.kind != "name" or not token.is_first_on_line:
            return False
        if self.begins_known_section():
            return True
        return (
            after_value
            and self.peek().kind != "="
            and self.count_brackets_left() < len(self.open_brackets)
        )

    def skip_in_brackets(self, closing: str) -> bool:
        """Skip past the next comma of this bracket, or to `closing`; False if there is neither."""
        depth = 0
        while depth or not self.is_unclosed(after_value=True):
            kind = self.token.kind
            if kind == "end" or (depth == 0 and kind == closing):
                return kind == closing
            self.advance()
            if kind in CLOSING_BRACKETS:
                depth += 1
            elif kind in (")", "]", "}"):
                depth = max(0, depth - 1)
            elif kind == "," and depth == 0:
                return True
        return False

    def close_bracket(self, bracket: Token | None, message: str) -> int:
        """Consume the closing bracket, or report `message` at the opening one; return the end.

        `bracket` is the opening bracket. It is None if that is missing, which was reported: then a
        missing `}` is not reported.
        """
        closing = CLOSING_BRACKETS.get(bracket.text, ")") if bracket else "}"
        if self.token.kind == closing:
            return self.advance().span.end
        last_span = self.tokens[self.index - 1].span
        if self.is_stopped or bracket is None:
            return last_span.end
        if self.token.kind in (")", "]") and not self.closes_outer():
            labels = [Label(self.token.span, f"`{closing}` is meant here")]
            message = f"this `{bracket.text}` is closed by `{self.token.text}`"
            fix = Fix(self.token.span, closing)
            self.diagnostics.add("E0104", message, bracket.span, labels=labels, fix=fix)
            return self.advance().span.end
        labels = (
            [Label(self.token.span, f"`{closing}` is missing before this")]
            if self.token.kind != "end"
            else []
        )
        self.diagnostics.add(
            "E0104",
            message,
            bracket.span,
            labels=labels,
            helps=[f"add `{closing}`"],
            fix=Fix(SourceSpan(last_span.end, last_span.end), "\n}" if closing == "}" else closing),
        )
        return last_span.end

    def closes_outer(self) -> bool:
        """Whether the closing brackets from here on all match brackets further out."""
        outer_closers = self.open_brackets[-2::-1]
        count = 0
        while self.peek(count).kind in (")", "]") and count <= len(outer_closers):
            count += 1
        return 0 < count <= len(outer_closers) and outer_closers[0] == self.token.kind

    def stop_parsing(self, bracket: Token) -> None:
        """Report too deep nesting and skip the remaining text."""
        self.diagnostics.add(
            "E0106", f"brackets are nested more than {MAX_BRACKET_DEPTH} deep", bracket.span
        )
        self.index, self.is_stopped = len(self.tokens) - 1, True


class _Parser(ValueParser):
    """Parser of a program: networks, their sections, and layers."""

    def __init__(self, tokens: list[Token], diagnostics: DiagnosticCollector) -> None:
        super().__init__(tokens, diagnostics)
        self.block_depth = 0
        """Number of open braces."""

    # --- networks and sections --------------------------------------------------------------------

    def parse_program(self) -> Program:
        """Parse all items of a file."""
        items: list[NetworkBlock | Section | LayerStatement] = []
        while self.token.kind != "end":
            start_index = self.index
            try:
                if self.skip_import() or self.parse_variable():
                    continue
                if self.begins_network():
                    items.append(self.parse_network())
                elif self.begins_section():
                    items.append(self.parse_section())
                elif self.token.kind == "name":
                    items.append(self.parse_layer())
                elif not self.skip_stray_bracket(")", "]", "}"):
                    self.raise_unexpected("expected `network`")
            except RecoverySignal:
                self.ensure_progress(start_index)
                while self.token.kind not in ("end", "}") and not (
                    self.token.is_first_on_line and self.begins_item()
                ):
                    self.advance()
        return Program(items=tuple(items), tail=self.take_tail_comments())

    def begins_item(self) -> bool:
        """Whether a network, a section or a layer begins here."""
        return self.begins_network() or self.begins_section() or self.begins_call()

    def ensure_progress(self, start_index: int) -> None:
        """Advance if recovery did not: the same token would fail again."""
        if self.index == start_index:
            self.advance()

    def skip_import(self) -> bool:
        """Report and skip a line of Python that imports something."""
        start = self.token
        if not (start.is_first_on_line and start.text in IMPORT_WORDS):
            return False
        if self.peek().kind != "name" or self.peek().is_first_on_line:
            return False
        self.advance()
        self.skip_to_next_line()
        self.report_python_line(start.span.to(self.tokens[self.index - 1].span))
        return True

    def parse_variable(self) -> bool:
        """Report and note a variable such as `D = 64` outside a network."""
        name, value = self.token, self.peek(2)
        is_variable = name.kind == "name" and name.is_first_on_line and self.peek().kind == "="
        if not is_variable or name.text in SECTION_NAMES or value.kind not in ("number", "string"):
            return False
        if not self.peek(3).is_first_on_line:
            return False
        for _ in range(3):
            self.advance()
        self.variables[name.text] = Literal(value=value.value, text=value.text, span=value.span)
        span = name.span.to(value.span)
        self.report_syntax_error(
            "a program has no variables",
            span,
            "write the value where it is used",
            fix=Fix(span, ""),
        )
        return True

    def report_python_line(self, span: SourceSpan) -> None:
        """Report one line of Python in a program."""
        self.diagnostics.add(
            "E0114",
            "this is Python: a program imports nothing",
            span,
            helps=["leave it out: all layers are known"],
            fix=Fix(span, ""),
        )

    def skip_stray_bracket(self, *closers: str) -> bool:
        """Report and skip a closing bracket, one of `closers`, that closes nothing."""
        if self.token.kind not in closers:
            return False
        fix = Fix(self.token.span, "")
        message = f"this `{self.token.text}` closes nothing"
        self.diagnostics.add("E0109", message, self.token.span, fix=fix)
        self.advance()
        return True

    def parse_network(self) -> NetworkBlock:
        """Parse `network Name { … }`."""
        comments, start = self.take_leading_comments(), self.advance()
        if start.text != "network":
            self.report_syntax_error(
                f"expected `network`, found `{start.text[:30]}`",
                start.span,
                fix=Fix(start.span, "network"),
            )
        name, brace = self.parse_network_name(start)
        comments = self.add_trailing_comment(comments)
        sections: list[Section] = []
        self.enter_block(start)
        while self.token.kind != "end" and not self.begins_network():
            if self.token.kind == "}" and not self.skip_early_brace(name.text):
                break
            self.parse_section_into(sections)
        self.block_depth -= 1
        tail = self.take_tail_comments() if self.token.kind == "}" else ()
        end = self.close_bracket(brace, f"`network {name.text} {{` is not closed")
        return NetworkBlock(
            name=name.text,
            name_span=name.span,
            sections=tuple(sections),
            span=SourceSpan(start.span.start, end),
            comments=comments,
            tail=tail,
        )

    def parse_network_name(self, start: Token) -> tuple[Token, Token | None]:
        """The name after `start` (`network`), and `{` if present; skips the rest of the line."""
        has_name = self.token.kind == "name" and self.peek().kind != ":"
        name = self.advance() if has_name else start._replace(text="Unnamed")
        if not has_name:
            self.report_syntax_error(
                f"a network needs a name, found {self.token_description}",
                self.token.span,
                "`network MyNetwork {`",
            )
        elif "." in name.text:
            plain = name.text.replace(".", "_")
            self.report_syntax_error(
                "the name of a network has no dots",
                name.span,
                f"write `network {plain[:40]} {{`",
                fix=Fix(name.span, plain),
            )
        elif self.token.kind != "{" and not self.token.after_error:
            self.report_syntax_error(
                f"expected `{{` after `network {name.text}`, found {self.token_description}",
                self.token.span,
            )
        while self.token.kind != "{" and not self.token.is_first_on_line:
            self.advance()
        if self.token.kind == "{":
            return name, self.advance()
        if not self.begins_section():
            raise RecoverySignal
        return name, None

    def enter_block(self, brace: Token) -> None:
        """Count one more open brace; stop at too deep nesting."""
        self.block_depth += 1
        if self.block_depth > MAX_BRACKET_DEPTH:
            self.stop_parsing(brace)

    def skip_early_brace(self, name: str) -> bool:
        """Skip a `}` that is followed by more sections and a `}`; return whether it is one."""
        self.index += 1
        is_early = (
            self.token.is_first_on_line
            and self.begins_known_section()
            and self.count_braces_left() > 0
        )
        self.index -= 1
        if is_early:
            self.diagnostics.add(
                "E0109",
                f"this `}}` closes nothing: `network {name}` continues after it",
                self.token.span,
                labels=[Label(self.peek().span, "still part of this network")],
            )
            self.advance()
        return is_early

    def parse_section_into(self, sections: list[Section]) -> None:
        """Parse one section of a network and append it to `sections`."""
        start_index = self.index
        try:
            if self.skip_import():
                return
            if self.begins_section():
                sections.append(self.parse_section())
            elif self.begins_call() and self.token.text.rpartition(".")[2] in SETUP_CALLS:
                call = self.parse_call()  # `model.fit(…)`: the checker moves its arguments
                sections.append(
                    Section(
                        name=call.name.rpartition(".")[2],
                        name_span=call.name_span,
                        body=call,
                        is_block=False,
                        span=call.span,
                        broken=call.broken,
                    )
                )
            elif self.begins_call():
                first = self.token
                self.diagnostics.add(
                    "E0111",
                    f"`{first.text}(…)` stands outside `layers:`",
                    first.span,
                    helps=["layers follow the line `layers:`"],
                )
                body = self.parse_layers()
                # The line `layers:` was forgotten.
                if not any(section.name == "layers" for section in sections):
                    sections.append(
                        Section(
                            name="layers",
                            name_span=first.span,
                            body=body,
                            is_block=False,
                            span=first.span,
                        )
                    )
            elif not self.skip_stray_bracket(")", "]"):
                self.raise_unexpected("expected a section such as `input:` or `layers:`")
        except RecoverySignal:
            self.ensure_progress(start_index)
            self.skip_to_next_line()

    def parse_section(self) -> Section:
        """Parse `name: value`, `layers:` with its layers, or `name { … }`."""
        comments, name = self.take_leading_comments(), self.advance()
        errors_before = self.diagnostics.error_count
        mark = self.parse_section_mark(name)
        if mark.kind == "{" and name.text != "layers":
            return self.parse_pairs(comments, name, mark)
        body: Value | tuple[LayerStatement, ...]
        broken = False
        comments = self.add_trailing_comment(comments)
        if name.text == "layers":
            body = self.parse_layers()
            if mark.kind == "{":
                edits = ()
                if self.token.kind == "}":
                    edits = (Fix(self.advance().span, ""),)
                self.report_syntax_error(
                    "`layers` has no braces",
                    mark.span,
                    f"write `layers:`, then {_LAYERS_HELP}",
                    fix=Fix(SourceSpan(name.span.end, mark.span.end), ":", edits),
                )
        else:
            try:
                self.require_value(
                    name, mark, is_reported=self.diagnostics.error_count > errors_before
                )
                if name.text in SECTION_NAMES or not self.begins_call():
                    comments = self.add_inner_comments(comments)
                    body = self.parse_value()
                else:
                    comments, body = self.parse_call_or_layers(comments)
                self.skip_comma()
            except RecoverySignal:
                broken = True
                body = Literal(value=None, text="None", span=mark.span)
                self.skip_to_next_line()
            comments = self.add_trailing_comment(comments)
        end = self.tokens[self.index - 1].span
        return Section(
            name=name.text,
            name_span=name.span,
            body=body,
            is_block=False,
            span=name.span.to(end),
            comments=comments,
            broken=broken,
        )

    def parse_section_mark(self, name: Token) -> Token:
        """The mark (`:` or `{`) after a section's name.

        Where it is wrong or missing, reports that and returns a token of the expected kind with
        empty text.
        """
        token = self.token
        if token.kind == "{" and name.text == "layers":
            return self.advance()  # parse_section reports it when the closing brace is known
        if token.kind in (":", "{"):
            self.advance()
            if token.kind == "{" or name.text != "train":
                return token
            if self.token.kind == "{":
                self.report_syntax_error(
                    "`train` has no `:`", token.span, "write `train {`", fix=Fix(token.span, "")
                )
                return self.advance()
            if (
                not (self.token.is_first_on_line and self.begins_section())
                or self.begins_known_section()
            ):
                return token  # `train: 5` is valid syntax; the checker reports it
            self.report_syntax_error("expected `{` after `train`, found `:`", token.span)
            return token._replace(kind="{", text="")
        expected = "{" if name.text == "train" else ":"
        # the checker reports a section that a network does not have, with the right form
        is_unknown = token.kind == "=" and self.block_depth == 1
        is_unknown = is_unknown and name.text not in (*SECTION_NAMES, *SECTIONS)
        if not token.after_error and not is_unknown:
            span = name.span if token.is_first_on_line or token.kind == "end" else token.span
            found_text = "" if token.is_first_on_line else f", found {self.token_description}"
            mark_end = token.span.end if token.kind == "=" else name.span.end
            self.report_syntax_error(
                f"expected `{expected}` after `{name.text[:30]}`{found_text}",
                span,
                fix=Fix(SourceSpan(name.span.end, mark_end), expected) if expected == ":" else None,
            )
        if token.kind == "=":
            self.advance()
        return name._replace(kind=expected, text="")

    def require_value(self, name: Token, mark: Token, *, is_reported: bool) -> None:
        """Report a missing value after `name:` and raise RecoverySignal.

        With `is_reported`, the line has an error already, and no second one is reported.
        """
        if self.token.kind in ("}", "end") or (
            self.token.is_first_on_line and (is_reported or self.begins_section())
        ):
            if not is_reported:
                self.report_syntax_error(
                    f"expected a value after `{name.text[:30]}:`", name.span.to(mark.span)
                )
            raise RecoverySignal

    def parse_call_or_layers(
        self, comments: Comments
    ) -> tuple[Comments, Value | tuple[LayerStatement, ...]]:
        """Parse the value of an unknown section: a call, or the layers of a misspelt `layers:`."""
        first = self.take_leading_comments()
        call = self.parse_call()
        if not (self.begins_call() or self.token.kind == "*"):
            return replace(comments, above=(*comments.above, *first.above)), call
        layer = LayerStatement(
            call=call,
            copies=self.parse_copies(),
            span=call.span,
            comments=self.add_trailing_comment(first),
        )
        return comments, (layer, *self.parse_layers())

    def parse_pairs(self, comments: Comments, name: Token, brace: Token) -> Section:
        """Parse the `key: value` lines of a block such as `train { … }`; `brace` is its `{`."""
        comments = self.add_trailing_comment(comments)
        pairs: list[Section] = []
        self.enter_block(brace)
        while self.token.kind not in ("}", "end") and not self.begins_network():
            if (
                self.token.is_first_on_line
                and self.begins_known_section()
                and self.count_braces_left() < self.block_depth
            ):
                break  # the block was not closed, and the network continues
            start_index = self.index
            try:
                if self.token.kind == "name":
                    pairs.append(self.parse_section())
                elif not self.skip_stray_bracket(")", "]"):
                    self.raise_unexpected(f"expected `key: value` in `{name.text[:30]}`")
            except RecoverySignal:
                self.ensure_progress(start_index)
                self.skip_to_next_line()
        self.block_depth -= 1
        tail = self.take_tail_comments() if self.token.kind == "}" else ()
        # a brace with empty text is missing in the program: see parse_section_mark
        end = self.close_bracket(
            brace if brace.text else None, f"`{name.text[:30]} {{` is not closed"
        )
        return Section(
            name=name.text,
            name_span=name.span,
            body=tuple(pairs),
            is_block=True,
            span=SourceSpan(name.span.start, end),
            comments=comments,
            tail=tail,
        )

    # --- layers -----------------------------------------------------------------------------------

    def parse_layers(self) -> tuple[LayerStatement, ...]:
        """Parse the layers after `layers:`, up to the next section or network."""
        layers: list[LayerStatement] = []
        separators: list[Token] = []
        in_brackets = self.token.kind in ("(", "[") and not self.begins_module_number()
        if in_brackets:
            separators.append(self.advance())
        while (
            self.token.kind not in ("}", "end")
            and not self.begins_network()
            and not self.begins_section()
        ):
            start_index = self.index
            try:
                closers = (",", ")", "]") if in_brackets else (",",) if layers else ()
                if self.token.kind in closers:
                    separators.append(self.advance())
                elif not self.skip_stray_bracket(")", "]"):
                    layers.append(self.parse_layer())
            except RecoverySignal:
                self.ensure_progress(start_index)
                while not (
                    self.token.is_first_on_line or self.token.kind == "}" or self.begins_call()
                ):
                    self.advance()
        self.report_separators(separators)
        return tuple(layers)

    def report_separators(self, separators: list[Token]) -> None:
        """Report brackets and commas around layers: one error for all of them."""
        if separators:
            first, *others = separators
            noun = "commas" if first.kind == "," else "brackets"
            edits = tuple(Fix(token.span, "") for token in others)
            self.report_syntax_error(
                f"layers stand without {noun}",
                first.span,
                _LAYERS_HELP,
                fix=Fix(first.span, "", edits),
            )

    def skip_comma(self) -> None:
        """Report and skip a comma between two sections."""
        is_last = self.peek().is_first_on_line or self.peek().kind in ("}", "name")
        if self.token.kind == "," and not self.token.is_first_on_line and is_last:
            fix = Fix(self.token.span, "")
            self.report_syntax_error(
                "no comma stands behind a section", self.token.span, "leave it out", fix=fix
            )
            self.advance()

    def begins_module_number(self) -> bool:
        """Whether `(0):` is next, as PyTorch prints the modules of a network."""
        kinds = [self.peek(ahead).kind for ahead in range(4)]
        return kinds in (["(", "number", ")", ":"], ["(", "name", ")", ":"])

    def parse_layer(self) -> LayerStatement:
        """Parse `Name(…)` or `Name(…) * N`.

        Also what other libraries add to it, reported as one error: a name (`x = Dense(5)(x)`), a
        number (`(0): Dense(5)`), or the copies before it (`6 * Dense(5)`).
        """
        comments = self.take_leading_comments()
        start = self.token
        prefix_length = 0
        if self.begins_module_number():
            prefix_length = 4
        elif (start.kind, self.peek().kind) in (("name", "="), ("number", "*")):
            prefix_length = 2
        if not prefix_length or self.peek(prefix_length).kind != "name":
            return self.parse_plain_layer(comments)
        for _ in range(prefix_length):
            self.advance()
        edits = [Fix(SourceSpan(start.span.start, self.token.span.start), "")]
        layer = self.parse_plain_layer(comments)
        if start.kind == "number" and layer.copies is None:
            copies = Literal(value=start.value, text=start.text, span=start.span)
            end = SourceSpan(layer.span.end, layer.span.end)
            edits.append(Fix(end, f" * {start.text}"))
            message, help_text = "the number of copies stands behind the layer", f"`* {start.text}`"
            layer = replace(layer, copies=copies)
        else:
            message, help_text = "a layer has no name", "write only the call"
        self.report_syntax_error(
            message, start.span, help_text, fix=Fix(edits[0].span, "", tuple(edits[1:]))
        )
        return layer

    def parse_plain_layer(self, comments: Comments) -> LayerStatement:
        """Parse `Name(…)` or `Name(…) * N`, whose `comments` are taken already."""
        if self.token.kind != "name":
            self.raise_unexpected("expected a layer", [_LAYERS_HELP])
        if self.peek().kind == "(":
            call = self.parse_call()
            self.skip_layer_input(call)
            copies = self.parse_copies()
        else:
            name, copies = self.advance(), None
            help_text, fix = (
                f"a layer is a call: `{name.text[:30]}()`",
                Fix(name.span, f"{name.text}()"),
            )
            self.report_syntax_error(
                f"expected `(` after `{name.text[:30]}`", name.span, help_text, fix=fix
            )
            call = CallExpression(
                name=name.text, name_span=name.span, arguments=(), span=name.span, broken=True
            )
            self.skip_to_next_line()
        span = call.span.to(copies.span) if copies else call.span
        return LayerStatement(
            call=call, copies=copies, span=span, comments=self.add_trailing_comment(comments)
        )

    def skip_layer_input(self, call: CallExpression) -> None:
        """Report and skip the second bracket of `Dense(5)(x)`."""
        if self.token.kind != "(" or self.token.is_first_on_line:
            return
        while not self.token.is_first_on_line and self.token.kind not in (")", "}", "end"):
            self.advance()
        if self.token.kind == ")":
            self.advance()
        span = SourceSpan(call.span.end, self.tokens[self.index - 1].span.end)
        self.report_syntax_error(
            "a layer is not called: its input is the layer above it",
            span,
            "leave the second bracket out",
            fix=Fix(span, ""),
        )

    def parse_copies(self) -> Literal | None:
        """Parse `* N` after a layer, if it is there."""
        if self.token.kind != "*":
            return None
        star = self.advance()
        if self.token.kind != "number":
            if not self.token.after_error:
                found_text = (
                    "" if self.token.is_first_on_line else f", found {self.token_description}"
                )
                help_text = "`* 6` makes six independent copies"
                self.report_syntax_error(
                    f"expected a number of copies after `*`{found_text}", star.span, help_text
                )
            raise RecoverySignal
        token = self.advance()
        return Literal(value=token.value, text=token.text, span=token.span)
