"""Completions: names, arguments and values where they fit."""

import pytest

from neural.language.check import check
from neural.lsp.completion import list_completions
from neural.optim.catalogue import CATALOGUE
from tests.lsp.marked_text import HEAD, at, in_layers


def list_labels(text, where=in_layers):
    return [completion.label for completion in list_completions(*where(text))[1]]


def accept(text, label, where=in_layers):
    """The text after accepting one completion, with its placeholders."""
    document, offset = where(text)
    span, completions = list_completions(document, offset)
    chosen = next(completion for completion in completions if completion.label == label)
    return document.text[: span.start] + chosen.text + document.text[span.end :]


@pytest.mark.parametrize(
    "text", ["|", "De|", "Dense(3)\n    |", "Dense(3)\n    D|\n  loss: 'mse'", "Residual(|"]
)
def test_layers_are_completed_where_one_can_be(text):
    assert set(CATALOGUE.layers.names()) <= set(list_labels(text))


def test_a_layer_is_inserted_with_its_required_arguments():
    assert accept("De|", "Dense").endswith("    Dense(${1:units})")
    assert accept("|", "Embedding").endswith("Embedding(input_dim=$1, output_dim=$2)")
    assert accept("|", "Flatten").endswith("Flatten()")


def test_an_editor_without_snippets_gets_plain_text():
    document, offset = in_layers("Dense(3)\n  |")
    plain = {
        completion.label: completion.plain_text
        for completion in list_completions(document, offset)[1]
    }
    assert (plain["Dense"], plain["Embedding"]) == ("Dense()", "Embedding(input_dim=, output_dim=)")
    assert plain["optimizer"] == "optimizer: "
    (start, *_) = list_completions(*at("network A {\n  |"))[1]
    assert start.plain_text == "input: (100, 64)"


def test_existing_brackets_are_not_doubled():
    assert accept("Den|s(3)", "Dense").endswith("    Dense(3)")
    assert accept('Dense(3, acti|="relu")', "activation").endswith('Dense(3, activation="relu")')


@pytest.mark.parametrize("name", CATALOGUE.layers.names())
def test_every_completed_layer_is_documented(name):
    document, offset = in_layers("|")
    completion = next(item for item in list_completions(document, offset)[1] if item.label == name)
    assert f"{name}(" in completion.doc


def test_only_missing_arguments_are_completed():
    assert list_labels("Dense(|)") == ["units", "activation", "bias", "init"]
    assert list_labels("Dense(3, |)") == ["activation", "bias", "init"]
    assert list_labels("Dense(3, |, bias=true)") == ["activation", "init"]
    assert "dff" not in list_labels("TransformerEncoder(ff_dim=3, |)")


def test_the_arguments_of_a_chosen_entry_are_completed():
    assert "window" in list_labels('TransformerEncoder(num_heads=3, attention="localized", |)')
    assert "window" not in list_labels("TransformerEncoder(num_heads=3, |)")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dense(3, activation=|", ['"relu"', '"gelu"']),
        ('Dense(3, activation="re|', ["relu", "gelu"]),
        ('Dense(3, activation="|")', ["relu"]),
        ('TransformerEncoder(num_heads=3, attention="|"', ["localized", "sparse"]),
        ("TransformerEncoder(num_heads=3, positional=|", ['"rotary"']),
        ("TransformerEncoder(num_heads=3, final_norm=|", ["true", "false"]),
        ("Dense(3)\n  loss: |", ['"mse"', "mse"]),
        ('Dense(3)\n  loss: "|"', ["mse"]),
        ("Dense(3)\n  optimizer: |", ["AdamW"]),
        ("Dense(3)\n  optimizer: Adam(learning_rate=|", ["CosineDecay"]),
        ("Dense(3)\n  optimizer: Adam(learning_rate=CosineDecay(|", ["decay_steps"]),
        ("Dense(3)\n  train {\n    device: |", ['"cpu"']),
        ("Residual(Dense(|", ["units"]),
        ("Dense(3\n    Conv1D(|", ["filters"]),
    ],
)
def test_values_fit_their_argument(text, expected):
    labels = list_labels(text)
    assert [label for label in expected if label not in labels] == []


def test_only_missing_sections_and_keys_are_completed():
    assert list_labels('Dense(3)\n  loss: "mse"\n  |') == ["optimizer", "train"]
    assert list_labels('Dense(3)\n  loss: "mse"\n  opt|\n}') == ["optimizer", "train"]
    assert "layers" not in list_labels("Dense(3)\n  |")
    assert "optimizer" in list_labels("Dense(3)\n  |")
    keys = list_labels("Dense(3)\n  train {\n    epochs: 3\n    |\n  }\n}")
    assert "steps" in keys
    assert "epochs" not in keys


@pytest.mark.parametrize(
    "text", ["# De|", "Dense(3, # |", "Dense(1|0)", "Reshape((|", "Dense(3) * |"]
)
def test_where_nothing_fits_nothing_is_list_labels(text):
    assert list_labels(text) == []
    assert list_labels("network |", at) == list_labels("network Na| {", at) == []


def test_the_network_snippet_is_valid_except_for_its_layers():
    text = accept("|", "network", at)
    for placeholder, word in {
        "${1:Name}": "Name",
        "${2:100}": "100",
        "${3:64}": "64",
        "$0": "Dense(3)",
    }.items():
        text = text.replace(placeholder, word)
    assert not check(text, CATALOGUE).errors


def test_only_the_word_at_the_cursor_is_replaced():
    document, offset = in_layers('Dense(3, activation="re|lu")')
    span, _ = list_completions(document, offset)
    assert document.text[span.start : span.end] == "relu"
    assert HEAD in document.text
