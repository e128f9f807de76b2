"""The JSON form of a program."""

import json

import pytest

from neural.language.formatter import format_program
from neural.language.program_json import program_to_json
from tests import programs
from tests.language.strategies import read

PROGRAM = """
network Tiny {
  input: (None, 3)
  layers:
    Dense(5, activation="relu", kernel=[1, (2, None), {list}]) * 2
    Residual(Dense(5), Flatten())
  loss: "mse"
  optimizer: Adam(learning_rate=ExponentialDecay(2e-5, 10_000, 0.96), amsgrad=true)
  train {
    epochs: 3
    data: "it\\"s\\there"
  }
}

network Other {
}
""".replace("{list}", "[]")


def test_the_format_is_the_documented_one():
    text = (
        'network Tiny { input: (7, 3) layers: Dense(5, activation="relu") * 2 train { epochs: 3 } }'
    )
    dense = {
        "call": "Dense",
        "arguments": [5, {"name": "activation", "value": "relu"}],
        "copies": 2,
    }
    assert program_to_json(read(text)) == {
        "networks": [
            {
                "name": "Tiny",
                "sections": {"input": [7, 3], "layers": [dense], "train": {"epochs": 3}},
            }
        ],
        "rest": [],
    }


def test_lists_calls_and_special_values_are_written():
    (tiny, other) = program_to_json(read(PROGRAM))["networks"]
    sections = tiny["sections"]
    assert sections["input"] == [None, 3]
    assert sections["layers"][0]["arguments"][2] == {
        "name": "kernel",
        "value": {"list": [1, [2, None], {"list": []}]},
    }
    assert [layer["call"] for layer in sections["layers"]] == ["Dense", "Residual"]
    assert sections["optimizer"]["arguments"][0]["value"]["arguments"] == [2e-5, 10_000, 0.96]
    assert sections["train"] == {"epochs": 3, "data": 'it"s\there'}
    assert other == {"name": "Other", "sections": {}}


def test_networks_come_first_and_the_rest_keeps_its_order():
    data = program_to_json(read("Dense(5)\ntrain {\n}\nnetwork A {\n}\nDense(4)\nnetwork B {\n}"))
    assert [network["name"] for network in data["networks"]] == ["A", "B"]
    assert data["rest"] == [
        {"call": "Dense", "arguments": [5]},
        {"train": {}},
        {"call": "Dense", "arguments": [4]},
    ]


@pytest.mark.parametrize(
    "text", [PROGRAM, programs.CLASSIFIER, programs.LANGUAGE_MODEL, programs.TRANSLATOR, ""]
)
def test_the_data_can_be_written_as_json_and_does_not_depend_on_the_layout(text):
    data = program_to_json(read(text))
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    assert program_to_json(read(format_program(read(text)))) == data
