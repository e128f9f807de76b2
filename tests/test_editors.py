"""The grammar and the extension for editors, and the colours in documentation: they know the language as it is."""

import json
import re
from pathlib import Path

import pytest
from pygments.token import Error, Token

from neural.core.diagnostics import Findings
from neural.highlighting import NeuralLexer
from neural.language.lexer import tokenize
from neural.language.syntax import SECTIONS

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "editors" / "vscode"
GRAMMAR = json.loads((FOLDER / "neural.tmLanguage.json").read_text())
MANIFEST = json.loads((FOLDER / "package.json").read_text())
PROGRAMS = sorted((ROOT / "examples").rglob("*.neural"))
every_program = pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
MARKS = {**dict.fromkeys("{}()[]", "punctuation.bracket"), **dict.fromkeys(",:", "punctuation.separator"),
         "=": "keyword.operator.assignment", "*": "keyword.operator.copies"}  # fmt: skip


def scopes(line):
    """What a TextMate engine makes of a line where all rules are plain matches: the first, by place and by order."""
    found, at = [], 0
    while at < len(line):
        matches = [(match.start(), number, match) for number, rule in enumerate(GRAMMAR["patterns"])
                   if (match := re.compile(rule["match"]).search(line, at)) and match.end() > at]  # fmt: skip
        if not matches:
            break
        _, number, match = min(matches, key=lambda one: one[:2])
        rule = GRAMMAR["patterns"][number]
        for group, inner in rule.get("captures", {"0": rule}).items():
            found.append((*match.span(int(group)), inner["name"].removesuffix(".neural")))
        at = match.end()
    return found


def expected(tokens, number):
    """The scope of a token of the lexer."""
    token, behind = tokens[number], tokens[number + 1].kind
    if token.kind in MARKS:
        return MARKS[token.kind]
    if token.kind == "number":
        return "constant.numeric"
    if token.kind == "string":
        return "string.quoted.double" if token.text[0] == '"' else "string.quoted.single"
    if token.text == "network":
        return "keyword.declaration.network"
    if number and tokens[number - 1].text == "network":
        return "entity.name.type.network"
    if token.text in ("true", "false", "True", "False", "None"):
        return "constant.language"
    if token.text in SECTIONS and behind in (":", "{"):
        return "keyword.other.section"
    return {"(": "entity.name.function.call", "=": "variable.parameter", ":": "support.type.property-name"}[behind]


def words(text):
    """Every token with its line, its first and its last column."""
    tokens = tokenize(text, Findings())
    for number, token in enumerate(tokens[:-1]):
        start = token.where.start - (text.rfind("\n", 0, token.where.start) + 1)
        yield text.count("\n", 0, token.where.start), start, start + len(token.text), expected(tokens, number)


@every_program
def test_every_token_of_the_examples_has_its_scope(path):
    text = path.read_text()
    lines = [scopes(line) for line in text.split("\n")]
    for line, start, end, scope in words(text):
        assert (start, end, scope) in lines[line], text.split("\n")[line]


def test_what_the_examples_do_not_hold_has_its_scope_as_well():
    text = "network Ñandú {\n  input: ('T', .5, -1e-3, 10_000)\n  layers:\n    Dense ( 3, bias = True ) * 2\n}"
    lines = [scopes(line) for line in text.split("\n")]
    for line, start, end, scope in words(text):
        assert (start, end, scope) in lines[line], (start, end, scope)
    assert scopes('a # "b"')[-1] == (2, 7, "comment.line.number-sign")
    assert scopes('"open # text')[-1] == (0, 12, "string.quoted.double")


def test_the_sections_are_those_of_the_language():
    named = {one.get("name"): one["match"] for one in GRAMMAR["patterns"]}
    rule = named["keyword.other.section.neural"]
    assert re.search(r"\(\?:([\w|]+)\)", rule)[1].split("|") == list(SECTIONS)


def test_the_extension_names_files_that_are_there():
    parts = MANIFEST["contributes"]
    named = [MANIFEST["main"], parts["languages"][0]["configuration"], parts["grammars"][0]["path"]]
    assert [name for name in named if not (FOLDER / name).is_file()] == []
    assert parts["languages"][0]["extensions"] == [".neural"]
    assert parts["grammars"][0]["scopeName"] == GRAMMAR["scopeName"]
    json.loads((FOLDER / "language-configuration.json").read_text())


@every_program
def test_pygments_colours_every_token_and_loses_no_letter(path):
    text = path.read_text()
    found = list(NeuralLexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert "".join(piece for _, piece in found) == text
    assert not [piece for kind, piece in found if kind is Error]
    kinds = {piece: kind for kind, piece in found}
    assert (kinds["network"], kinds["input"]) == (Token.Keyword.Declaration, Token.Keyword)
