"""Programs in colour wherever Pygments colours code: ```` ```neural ```` in documentation and notebooks."""

from __future__ import annotations

from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Whitespace

_WORD = r"[^\W\d]\w*"


class NeuralLexer(RegexLexer):
    """Found by Pygments through the entry point of the package."""

    name = "Neural"
    aliases = ["neural"]
    filenames = ["*.neural"]
    tokens = {
        "root": [
            (r"\s+", Whitespace),
            (r"#.*", Comment.Single),
            (r'"(?:[^"\\\n]|\\.)*"?|\'(?:[^\'\\\n]|\\.)*\'?', String),
            (rf"(network)(\s+)({_WORD})", bygroups(Keyword.Declaration, Whitespace, Name.Class)),
            (r"(?:input|layers|loss|optimizer|train)\b(?=\s*[:{])", Keyword),
            (r"(?:true|false|True|False|None)\b", Keyword.Constant),
            (rf"{_WORD}(?=\s*\()", Name.Function),
            (rf"{_WORD}(?=\s*[=:{{])", Name.Attribute),
            (_WORD, Name),
            (r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?", Number),
            (r"[*=]", Operator),
            (r"[{}()\[\],:]", Punctuation),
        ]
    }
