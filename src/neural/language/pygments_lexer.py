"""Pygments lexer for `.neural` programs, for ```` ```neural ```` blocks in docs and notebooks."""

from __future__ import annotations

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

_IDENTIFIER = r"[^\W\d]\w*"


class NeuralLexer(RegexLexer):
    """Registered with Pygments through the package's entry point."""

    name = "Neural"
    aliases = ["neural"]
    filenames = ["*.neural"]
    tokens = {
        "root": [
            (r"\s+", Whitespace),
            (r"#.*", Comment.Single),
            (r'"(?:[^"\\\n]|\\.)*"?|\'(?:[^\'\\\n]|\\.)*\'?', String),
            (
                rf"(network)(\s+)({_IDENTIFIER})",
                bygroups(Keyword.Declaration, Whitespace, Name.Class),
            ),
            (r"(?:input|layers|loss|optimizer|train)\b(?=\s*[:{])", Keyword),
            (r"(?:true|false|True|False|None)\b", Keyword.Constant),
            (rf"{_IDENTIFIER}(?=\s*\()", Name.Function),
            (rf"{_IDENTIFIER}(?=\s*[=:{{])", Name.Attribute),
            (_IDENTIFIER, Name),
            (r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?", Number),
            (r"[*=]", Operator),
            (r"[{}()\[\],:]", Punctuation),
        ]
    }
