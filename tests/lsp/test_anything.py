"""Half-written programs, and anything else: every question has an answer."""

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from neural.lsp.completion import complete
from neural.lsp.document import Document
from neural.lsp.hover import hover
from neural.lsp.positions import Positions
from neural.lsp.symbols import symbols
from neural.standard import CATALOGUE

EXAMPLES = [path.read_text() for path in sorted((Path(__file__).parents[2] / "examples").glob("*.neural"))]
PIECES = [
    "network A {", "layers:", "Dense(", "(", ")", "[", "}", "{", "loss:", ",", "=", '"', "'", "* 2", "#", "\n", " ",
    "3", "train", "epochs: 3", "attention=", '"localized"', "Residual(", "я🧠", "\x00", "optimizer: Adam(",
]  # fmt: skip


def ask_everything(text, offset):
    document = Document(text, CATALOGUE)
    where, offers = complete(document, offset)
    assert 0 <= where.start <= offset <= where.end <= len(text)
    assert all(one.label and one.text for one in offers)
    found = hover(document, offset)
    assert found is None or found[1].start <= offset <= found[1].end
    positions = Positions(text)
    for one in document.diagnostics:
        assert positions.span(one.where)
    list(symbols(document))
    document.formatted()


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(EXAMPLES), st.data())
def test_a_program_that_ends_anywhere_can_be_asked_about_anywhere(whole, data):
    text = whole[: data.draw(st.integers(0, len(whole)))]
    ask_everything(text, data.draw(st.integers(0, len(text))))


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(EXAMPLES), st.data())
def test_a_piece_can_be_missing_in_the_middle(whole, data):
    start = data.draw(st.integers(0, len(whole)))
    text = whole[:start] + whole[start + data.draw(st.integers(1, 40)) :]
    ask_everything(text, min(start, len(text)))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=20), st.data())
def test_pieces_in_any_order_can_be_asked_about(pieces, data):
    text = "".join(pieces)
    ask_everything(text, data.draw(st.integers(0, len(text))))
