"""A text with a place in it, marked by `|`."""

from neural.lsp.document import Document
from neural.standard import CATALOGUE

HEAD = "network A {\n  input: (13, 12)\n  layers:\n    "


def at(text):
    """The document without its mark, and where that was."""
    before, _, behind = text.partition("|")
    return Document(before + behind, CATALOGUE), len(before)


def in_layers(text):
    """The same inside `layers:`, which may go on as other sections."""
    return at(HEAD + text)
