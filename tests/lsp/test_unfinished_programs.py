"""Every request is answered for unfinished and random programs."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from neural.lsp.completion import list_completions
from neural.lsp.document import ProgramDocument, list_symbols
from neural.lsp.hover import get_hover
from neural.lsp.positions import TextPositions
from neural.optim.catalogue import CATALOGUE

EXAMPLES = [
    path.read_text() for path in sorted((Path(__file__).parents[2] / "examples").glob("*.neural"))
]
PIECES = [
    "network A {",
    "layers:",
    "Dense(",
    "(",
    ")",
    "[",
    "}",
    "{",
    "loss:",
    ",",
    "=",
    '"',
    "'",
    "* 2",
    "#",
    "\n",
    " ",
    "3",
    "train",
    "epochs: 3",
    "attention=",
    '"localized"',
    "Residual(",
    "я🧠",
    "\x00",
    "optimizer: Adam(",
]


def request_everything(text, offset):
    document = ProgramDocument(text, CATALOGUE)
    span, completions = list_completions(document, offset)
    assert 0 <= span.start <= offset <= span.end <= len(text)
    assert all(item.label and item.text for item in completions)
    hover = get_hover(document, offset)
    assert hover is None or hover[1].start <= offset <= hover[1].end
    positions = TextPositions(text)
    for item in document.diagnostics:
        assert positions.to_range(item.span)
    list(list_symbols(document))
    document.format_text()


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(EXAMPLES), st.data())
def test_a_truncated_program_is_answered_at_every_offset(program, data):
    text = program[: data.draw(st.integers(0, len(program)))]
    request_everything(text, data.draw(st.integers(0, len(text))))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(EXAMPLES), st.data())
def test_a_program_with_a_gap_is_answered(program, data):
    start = data.draw(st.integers(0, len(program)))
    text = program[:start] + program[start + data.draw(st.integers(1, 40)) :]
    request_everything(text, min(start, len(text)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=20), st.data())
def test_random_pieces_are_answered(pieces, data):
    text = "".join(pieces)
    request_everything(text, data.draw(st.integers(0, len(text))))
