"""Hover texts."""

import pytest

from neural.lsp.hover import get_hover
from tests.lsp.marked_text import HEAD, at, in_layers


def hover_text(text):
    hover = get_hover(*in_layers(text))
    return hover[0] if hover else None


def test_a_layer_shows_signature_shapes_parameters_and_costs():
    text = hover_text("Dense(5)\n    D|ense(7)\n}")
    assert 'Dense(units, activation="linear", bias=true, init="torch")' in text
    assert "`(B, 13, 5)` → `(B, 13, 7)` · 42 parameters · 455 multiply-adds" in text


def test_an_error_after_a_layer_does_not_hide_its_shape():
    assert "`(B, 13, 5)` → `(B, 13, 7)`" in hover_text(
        "Dense(5)\n    De|nse(7)\n    Dnse(9)\n    Dense(\n"
    )


def test_an_error_before_a_layer_leaves_its_signature():
    text = hover_text("Dnse(5)\n    De|nse(7)\n}")
    assert "Dense(units" in text
    assert "→" not in text


def test_copies_are_counted_together():
    assert "3 copies together" in hover_text("De|nse(12) * 3\n}")


def test_costs_of_an_open_size_name_the_assumed_value():
    text, _ = get_hover(*at("network A {\n  input: (None, 4)\n  layers:\n    De|nse(7)\n}"))
    assert "costs for T = 1,024" in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "Dense(5, activ|ation=3)",
            ["`activation` of `Dense`", 'a known activation; default `"linear"`'],
        ),
        ("Dense(|5)", ["`units` of `Dense`: ", "a whole number of 1 or more; needed"]),
        (
            'TransformerEncoder(num_heads=3, attention="local|ized", window=7)',
            ["localized(window=7)"],
        ),
        ('TransformerEncoder(num_heads=3, attention="localized", win|dow=7)', ["`window` of"]),
        (
            "TransformerEncoder(num_heads=3, drop|out=0.1)",
            ["`dropout_rate`", "also called `dropout`"],
        ),
        ("Conv1D(3)\n    Reshape(target_shape=(|13, 3))", ["`target_shape` of `Reshape`"]),
        ('Dense(3)\n  lo|ss: "mse"', ["`loss`: The loss"]),
        ('Dense(3)\n  loss: "m|se"', ["mse()", "squared"]),
        ("Dense(3)\n  optimizer: Ad|am()", ["Adam("]),
        ("Dense(3)\n  optimizer: Adam(learning_rate=Cosine|Decay(1, 2))", ["half a cosine"]),
        ("Dense(3)\n  tr|ain { epochs: 3 }", ["`train`: Duration"]),
        ("Dense(3)\n  train { epo|chs: 3 }", ["`epochs` of `train`"]),
    ],
)
def test_words_are_explained(text, words):
    text_shown = hover_text(text)
    assert [word for word in words if word not in text_shown] == []


def test_sections_and_networks_are_explained():
    text = HEAD + "Dense(5)\n}"
    for word, expected in {
        "layers": "`layers`: ",
        "input": "`input`: ",
        "network": "A network",
    }.items():
        offset = text.index(word) + 1
        assert get_hover(*at(text[:offset] + "|" + text[offset:]))[0].startswith(expected)
    assert "65 " in get_hover(*at(text.replace("network A", "network |A")))[0]


@pytest.mark.parametrize(
    "text", ["De|nsee(3)", "# De|nse(3)", "Dense(3) |\n}", "Dense(3) * 2| \n", "Dense(x|yz=3)"]
)
def test_nothing_is_explained_where_nothing_is_known(text):
    assert hover_text(text) is None


def test_the_span_is_the_explained_word():
    document, offset = in_layers("Dense(5, activ|ation=3)")
    _, span = get_hover(document, offset)
    assert document.text[span.start : span.end] == "activation"
