"""Documents with a cursor, written as `|` in the text."""

from neural.lsp.document import ProgramDocument
from neural.optim.catalogue import CATALOGUE

HEAD = "network A {\n  input: (13, 12)\n  layers:\n    "


def at(text):
    """The document without the mark, and the mark's offset."""
    before, _, after = text.partition("|")
    return ProgramDocument(before + after, CATALOGUE), len(before)


def in_layers(text):
    """The same inside `layers:` of a network."""
    return at(HEAD + text)
