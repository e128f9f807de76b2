"""TextMate grammar, VS Code extension and Pygments lexer agree with the lexer of the language."""

import json
import re
from pathlib import Path

import pytest
from pygments.token import Error, Token

from neural.core.diagnostics import DiagnosticCollector
from neural.language.lexer import tokenize
from neural.language.pygments_lexer import NeuralLexer
from neural.language.syntax import SECTION_NAMES

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "editors" / "vscode"
GRAMMAR = json.loads((FOLDER / "neural.tmLanguage.json").read_text())
MANIFEST = json.loads((FOLDER / "package.json").read_text())
PROGRAMS = sorted((ROOT / "examples").rglob("*.neural"))
every_program = pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
PUNCTUATION_SCOPES = {
    **dict.fromkeys("{}()[]", "punctuation.bracket"),
    **dict.fromkeys(",:", "punctuation.separator"),
    "=": "keyword.operator.assignment",
    "*": "keyword.operator.copies",
}


def find_scopes(line):
    """Scopes of a line as a TextMate engine finds them: first match by position, then by rule."""
    scopes, offset = [], 0
    while offset < len(line):
        matches = [
            (match.start(), index, match)
            for index, rule in enumerate(GRAMMAR["patterns"])
            if (match := re.compile(rule["match"]).search(line, offset)) and match.end() > offset
        ]
        if not matches:
            break
        _, index, match = min(matches, key=lambda candidate: candidate[:2])
        rule = GRAMMAR["patterns"][index]
        for group, inner in rule.get("captures", {"0": rule}).items():
            scopes.append((*match.span(int(group)), inner["name"].removesuffix(".neural")))
        offset = match.end()
    return scopes


def expected_scope(tokens, index):
    """The scope that a token of the lexer must have."""
    token, next_kind = tokens[index], tokens[index + 1].kind
    if token.kind in PUNCTUATION_SCOPES:
        return PUNCTUATION_SCOPES[token.kind]
    if token.kind == "number":
        return "constant.numeric"
    if token.kind == "string":
        return "string.quoted.double" if token.text[0] == '"' else "string.quoted.single"
    if token.text == "network":
        return "keyword.declaration.network"
    if index and tokens[index - 1].text == "network":
        return "entity.name.type.network"
    if token.text in ("true", "false", "True", "False", "None"):
        return "constant.language"
    if token.text in SECTION_NAMES and next_kind in (":", "{"):
        return "keyword.other.section"
    return {
        "(": "entity.name.function.call",
        "=": "variable.parameter",
        ":": "support.type.property-name",
    }[next_kind]


def tokens_with_scopes(text):
    """Each token's line, first and last column, and expected scope."""
    tokens = tokenize(text, DiagnosticCollector())
    for index, token in enumerate(tokens[:-1]):
        start = token.span.start - (text.rfind("\n", 0, token.span.start) + 1)
        yield (
            text.count("\n", 0, token.span.start),
            start,
            start + len(token.text),
            expected_scope(tokens, index),
        )


@every_program
def test_every_token_of_the_examples_has_its_scope(path):
    text = path.read_text()
    lines = [find_scopes(line) for line in text.split("\n")]
    for line, start, end, scope in tokens_with_scopes(text):
        assert (start, end, scope) in lines[line], text.split("\n")[line]


def test_tokens_that_the_examples_do_not_contain_have_their_scopes():
    text = "network Ñandú {\n  input: ('T', .5, -1e-3, 10_000)\n  layers:\n    Dense ( 3, bias = True ) * 2\n}"
    lines = [find_scopes(line) for line in text.split("\n")]
    for line, start, end, scope in tokens_with_scopes(text):
        assert (start, end, scope) in lines[line], (start, end, scope)
    assert find_scopes('a # "b"')[-1] == (2, 7, "comment.line.number-sign")
    assert find_scopes('"open # text')[-1] == (0, 12, "string.quoted.double")


def test_the_sections_are_those_of_the_language():
    rules = {rule.get("name"): rule["match"] for rule in GRAMMAR["patterns"]}
    rule = rules["keyword.other.section.neural"]
    assert re.search(r"\(\?:([\w|]+)\)", rule)[1].split("|") == list(SECTION_NAMES)


def test_files_named_by_the_extension_exist():
    contributes = MANIFEST["contributes"]
    language, grammar = contributes["languages"][0], contributes["grammars"][0]
    names = [MANIFEST["main"], language["configuration"], grammar["path"]]
    assert [name for name in names if not (FOLDER / name).is_file()] == []
    assert language["extensions"] == [".neural"]
    assert grammar["scopeName"] == GRAMMAR["scopeName"]
    json.loads((FOLDER / "language-configuration.json").read_text())


@every_program
def test_pygments_highlights_every_token_and_loses_no_character(path):
    text = path.read_text()
    tokens = list(NeuralLexer(stripnl=False, ensurenl=False).get_tokens(text))
    assert "".join(value for _, value in tokens) == text
    assert not [value for kind, value in tokens if kind is Error]
    kinds = {value: kind for kind, value in tokens}
    assert (kinds["network"], kinds["input"]) == (Token.Keyword.Declaration, Token.Keyword)
