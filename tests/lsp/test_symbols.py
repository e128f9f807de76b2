"""The outline of a program."""

from neural.lsp.symbols import symbols
from tests.lsp.written import at


def test_networks_hold_their_sections_and_those_their_layers():
    sections = "input: (3,)\n  layers:\n    Dense(3)\n    Dense(4)\n  train { epochs: 3 }"
    document, _ = at(f"network A {{\n  {sections}\n}}\nnetwork B {{")
    first, second = symbols(document)
    assert [(one.name, [each.name for each in one.inside]) for one in first.inside] == [
        ("input", []), ("layers", ["Dense", "Dense"]), ("train", ["epochs"]),
    ]  # fmt: skip
    assert (second.name, second.inside) == ("B", ())


def test_a_name_lies_within_what_it_names():
    document, _ = at("network A {\n  layers:\n    Dense(3\n  loss: \n")
    (whole,) = symbols(document)
    for one in (whole, *whole.inside):
        assert one.whole.start <= one.where.start < one.where.end <= one.whole.end
