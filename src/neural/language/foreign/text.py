"""Recognize text in another language: Python or JSON instead of a `.neural` program.

Such a text gets one error that says so, not one for each of its lines.
"""

from __future__ import annotations

import re

IMPORT_WORDS = ("import", "from")
"""First words of Python lines that a program cannot begin with."""

MAX_INSPECTED_CHARACTERS = 20_000
"""Only the beginning of a text is searched."""

_NETWORK = re.compile(r"^[ \t]*network\b[^\n=]*\{", re.M)
_PYTHON = re.compile(
    r"^[ \t]*(?:"
    r"import[ \t]+[\w.]+"
    r"|from[ \t]+[\w.]+[ \t]+import\b"
    r"|(?:async[ \t]+)?def[ \t]+\w+[ \t]*\("
    r"|class[ \t]+\w+[^\n]*:[ \t]*$"
    r"|(?:if|for|while|with|return|print)\b[^\n]*[:)][ \t]*$"
    r"|(?:model|net|self)\.\w+[ \t]*[(=]"
    r")"
    r"|^\w+[ \t]*=[ \t]*[\w.]+\(",
    re.M,
)
_JSON = re.compile(r'\s*(?:\{\s*"|\[\s*\{)')


def find_other_language(text: str) -> tuple[str, int] | None:
    """The language that a text is written in, and the offset of the first sign of it.

    None for a program, also a program with a few lines of Python in it.
    """
    beginning = text[:MAX_INSPECTED_CHARACTERS]
    if _NETWORK.search(beginning):
        return None
    match = _JSON.match(beginning)
    if match:
        return "JSON", len(beginning) - len(beginning.lstrip())
    match = _PYTHON.search(beginning)
    if match:
        return "Python", match.end() - len(match.group().lstrip())
    return None
