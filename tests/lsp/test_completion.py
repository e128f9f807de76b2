"""What could be written: names, arguments, values, each where it fits."""

import pytest

from neural.language.check import check
from neural.lsp.completion import complete
from neural.standard import CATALOGUE
from tests.lsp.written import HEAD, at, in_layers


def offered(text, where=in_layers):
    return [one.label for one in complete(*where(text))[1]]


def written(text, label, where=in_layers):
    """The text after one of the offers was taken, places to fill in left empty."""
    document, place = where(text)
    stretch, offers = complete(document, place)
    offer = next(one for one in offers if one.label == label)
    return document.text[: stretch.start] + offer.text + document.text[stretch.end :]


@pytest.mark.parametrize("text", ["|", "De|", "Dense(3)\n    |", "Dense(3)\n    D|\n  loss: 'mse'", "Residual(|"])
def test_layers_are_offered_where_one_can_stand(text):
    assert set(CATALOGUE.layers.names()) <= set(offered(text))


def test_a_layer_comes_with_the_arguments_that_it_needs():
    assert written("De|", "Dense").endswith("    Dense(${1:units})")
    assert written("|", "Embedding").endswith("Embedding(input_dim=$1, output_dim=$2)")
    assert written("|", "Flatten").endswith("Flatten()")


def test_an_editor_without_snippets_gets_plain_text():
    document, place = in_layers("Dense(3)\n  |")
    plain = {one.label: one.plain for one in complete(document, place)[1]}
    assert (plain["Dense"], plain["Embedding"]) == ("Dense()", "Embedding(input_dim=, output_dim=)")
    assert plain["optimizer"] == "optimizer: "
    (start, *_) = complete(*at("network A {\n  |"))[1]
    assert start.plain == "input: (100, 64)"


def test_a_name_that_has_its_brackets_gets_no_others():
    assert written("Den|s(3)", "Dense").endswith("    Dense(3)")
    assert written('Dense(3, acti|="relu")', "activation").endswith('Dense(3, activation="relu")')


@pytest.mark.parametrize("name", CATALOGUE.layers.names())
def test_every_layer_that_is_offered_is_explained(name):
    document, place = in_layers("|")
    offer = next(one for one in complete(document, place)[1] if one.label == name)
    assert f"{name}(" in offer.doc


def test_arguments_are_those_not_given_yet():
    assert offered("Dense(|)") == ["units", "activation", "bias", "init"]
    assert offered("Dense(3, |)") == ["activation", "bias", "init"]
    assert offered("Dense(3, |, bias=true)") == ["activation", "init"]
    assert "dff" not in offered("TransformerEncoder(ff_dim=3, |)")


def test_a_chosen_entry_lends_its_arguments():
    assert "window" in offered('TransformerEncoder(num_heads=3, attention="localized", |)')
    assert "window" not in offered("TransformerEncoder(num_heads=3, |)")


@pytest.mark.parametrize(
    ("text", "among"),
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
def test_values_fit_their_place(text, among):
    found = offered(text)
    assert [one for one in among if one not in found] == []


def test_sections_and_keys_are_those_not_given_yet():
    assert offered('Dense(3)\n  loss: "mse"\n  |') == ["optimizer", "train"]
    assert offered('Dense(3)\n  loss: "mse"\n  opt|\n}') == ["optimizer", "train"]
    assert "layers" not in offered("Dense(3)\n  |")
    assert "optimizer" in offered("Dense(3)\n  |")
    keys = offered("Dense(3)\n  train {\n    epochs: 3\n    |\n  }\n}")
    assert "steps" in keys
    assert "epochs" not in keys


@pytest.mark.parametrize("text", ["# De|", "Dense(3, # |", "Dense(1|0)", "Reshape((|", "Dense(3) * |"])
def test_where_nothing_fits_nothing_is_offered(text):
    assert offered(text) == []
    assert offered("network |", at) == offered("network Na| {", at) == []


def test_an_empty_file_begins_with_a_network_that_is_right_but_for_its_layers():
    text = written("|", "network", at)
    for place, word in {"${1:Name}": "Name", "${2:100}": "100", "${3:64}": "64", "$0": "Dense(3)"}.items():
        text = text.replace(place, word)
    assert not check(text, CATALOGUE).mistakes


def test_what_is_replaced_is_the_word_and_nothing_else():
    document, place = in_layers('Dense(3, activation="re|lu")')
    where, _ = complete(document, place)
    assert document.text[where.start : where.end] == "relu"
    assert HEAD in document.text
