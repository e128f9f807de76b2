"""Document symbols of a program."""

from neural.lsp.document import list_symbols
from tests.lsp.marked_text import at


def test_networks_contain_sections_and_sections_layers():
    sections = "input: (3,)\n  layers:\n    Dense(3)\n    Dense(4)\n  train { epochs: 3 }"
    document, _ = at(f"network A {{\n  {sections}\n}}\nnetwork B {{")
    first, second = list_symbols(document)
    assert [
        (section.name, [layer.name for layer in section.children]) for section in first.children
    ] == [
        ("input", []),
        ("layers", ["Dense", "Dense"]),
        ("train", ["epochs"]),
    ]
    assert (second.name, second.children) == ("B", ())


def test_the_span_of_a_name_is_inside_the_full_span():
    document, _ = at("network A {\n  layers:\n    Dense(3\n  loss: \n")
    (network,) = list_symbols(document)
    for symbol in (network, *network.children):
        assert symbol.full_span.start <= symbol.span.start < symbol.span.end <= symbol.full_span.end
