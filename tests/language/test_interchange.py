"""Programs as JSON and back: the same tree; and data that is no program is refused, whatever it is."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.language.interchange import NotAProgram, from_json, to_json
from neural.language.printer import print_program
from neural.language.syntax import Program
from tests import programs
from tests.language.strategies import read, without_places

WHOLE = """
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


def there_and_back(text: str) -> Program:
    """The program after a trip through real JSON text."""
    return from_json(json.loads(json.dumps(to_json(read(text)), allow_nan=False)))


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        programs.CLASSIFIER,
        programs.LANGUAGE_MODEL,
        programs.TRANSLATOR,
        "Dense(5)\nDense(4) * 2\n",
        "optimizer: Adam()\n",
        "train {\n  epochs: 3\n}\n",
        "layers:\n  Dense(5)\n",
        "a { b { c { d: (1, 2) } } }\n",
        "a: -1\nb: 1e300\nc: -0.5\nd: 12345678901234567890123\ne: []\nf: ()\n",
        "",
    ],
)
def test_a_program_comes_back_from_json_as_it_was(text):
    assert without_places(there_and_back(text)) == without_places(read(text))
    assert without_places(read(print_program(there_and_back(text)))) == without_places(read(text))


def test_a_number_may_be_spelt_otherwise_but_has_its_value():
    assert print_program(there_and_back("a: 2e-5\nb: 10_000")) == "a: 2e-05\nb: 10000\n"


def test_networks_come_first_and_the_rest_keeps_its_order():
    back = there_and_back("Dense(5)\ntrain {\n}\nnetwork A {\n}\nDense(4)\nnetwork B {\n}")
    assert print_program(back) == "network A {\n}\n\nnetwork B {\n}\n\nDense(5)\ntrain {\n}\nDense(4)\n"


def test_the_format_is_the_documented_one():
    text = 'network Tiny { input: (7, 3) layers: Dense(5, activation="relu") * 2 train { epochs: 3 } }'
    dense = {"call": "Dense", "arguments": [5, {"name": "activation", "value": "relu"}], "copies": 2}
    assert to_json(read(text)) == {
        "networks": [{"name": "Tiny", "sections": {"input": [7, 3], "layers": [dense], "train": {"epochs": 3}}}],
        "rest": [],
    }


def test_what_may_be_left_out_is_filled_in():
    program = from_json({"networks": [{"name": "A", "sections": {"layers": [{"call": "Flatten"}]}}]})
    assert print_program(program) == "network A {\n  layers:\n    Flatten()\n}\n"


def network(**sections: Any) -> dict[str, Any]:
    return {"networks": [{"name": "A", "sections": sections}]}


def nested(depth: int, wrap: Any, core: Any = 1) -> Any:
    for _ in range(depth):
        core = wrap(core)
    return core


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (None, "a program is"),
        ([], "a program is"),
        ("network A {}", "a program is"),
        ({}, "a program is"),
        ({"networks": {}}, "`networks` is a list"),
        ({"networks": [], "rest": 5}, "`rest` is a list"),
        ({"networks": [], "more": []}, "got the key 'more'"),
        ({"networks": [5]}, "a network is"),
        ({"networks": [{"name": "A"}]}, "a network is"),
        ({"networks": [{"name": "A B", "sections": {}}]}, "a name is"),
        ({"networks": [{"name": 5, "sections": {}}]}, "a name is"),
        ({"networks": [{"name": "A", "sections": []}]}, "sections are a dict"),
        ({"networks": [], "rest": [5]}, "sections are a dict"),
        ({"networks": [], "rest": [{}]}, "a dict of one section"),
        ({"networks": [], "rest": [{"a": 1, "b": 2}]}, "a dict of one section"),
        (network(layers=5), "`layers` is a list"),
        (network(layers={"call": "Dense"}), "`layers` is a list"),
        (network(layers=[5]), "a layer is"),
        (network(layers=[{"arguments": []}]), "a layer is"),
        (network(layers=[{"call": "Dense", "args": [5]}]), "got the key 'args'"),
        (network(layers=[{"call": "Dense", "arguments": 5}]), "`arguments` is a list"),
        (network(layers=[{"call": "Dense", "copies": "2"}]), "`copies` is a number"),
        (network(layers=[{"call": "Dense", "copies": True}]), "`copies` is a number"),
        (network(layers=[{"call": "", "arguments": []}]), "a name is"),
        (network(layers=[{"call": "2D"}]), "a name is"),
        (network(loss={"call": "mse", "copies": 2}), "got the key 'copies'"),
        (network(loss={"list": 5}), "`list` is a list"),
        (network(loss=[{"name": "a", "value": 1}]), "a value is"),
        (network(loss={"call": "mse", "arguments": [{"name": "a"}]}), "a named argument is"),
        (network(loss={"call": "mse", "arguments": [{"name": None, "value": 1}]}), "a name is"),
        (network(loss=float("nan")), "cannot spell"),
        (network(loss=float("inf")), "cannot spell"),
        (network(loss=10**50), "cannot spell"),
        (network(loss=-(10**5000)), "cannot spell"),
        (network(loss="\0"), "cannot spell"),
        (network(loss="\ud800"), "cannot spell"),
        (network(loss="x" * 20_000), "cannot spell"),
        (network(loss=object()), "a value is"),
        (network(network={"a": 1}), "stands in `networks`"),
        (network(**{"a b": 1}), "a name is"),
        (network(loss=nested(40, lambda core: [core])), "at most 32 deep"),
        (network(loss=nested(100_000, lambda core: [core])), "at most 32 deep"),
        (network(loss=nested(100_000, lambda core: {"list": [core]})), "at most 32 deep"),
        (network(loss=nested(100_000, lambda core: {"call": "a", "arguments": [core]})), "at most 32 deep"),
        (network(train=nested(100_000, lambda core: {"a": core})), "at most 32 deep"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_program_is_refused_with_the_part_that_is_wrong(data, words):
    with pytest.raises(NotAProgram) as refused:
        from_json(data)
    assert words in str(refused.value) and len(str(refused.value)) < 200


keys = st.sampled_from(
    ["networks", "rest", "name", "sections", "call", "arguments", "copies", "list", "value", "layers", "a"]
)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(["Dense", "mse"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys | st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(junk)
def test_any_data_is_a_program_that_can_be_printed_and_read_or_is_refused(data):
    rest = {"networks": [], "rest": [data]}
    for candidate in (data, {"networks": [data]}, network(a=data), network(layers=[data]), rest):
        try:
            program = from_json(candidate)
        except NotAProgram:
            continue
        again = read(print_program(program))
        assert without_places(again) == without_places(program)
