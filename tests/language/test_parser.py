"""Structure of programs, and recovery after errors: one diagnostic per error."""

import random

import pytest

from neural.core.diagnostics import DiagnosticCollector, SourceText, render_diagnostic
from neural.language.check import check
from neural.language.parser import parse
from neural.language.syntax import CallExpression, Literal, Section, SequenceLiteral, to_python
from neural.optim.catalogue import CATALOGUE
from tests.cpu_time import limit_cpu_time
from tests.language.strategies import read, strip_positions


def parse_section(text: str) -> Section:
    """The only section of a text."""
    (section,) = read(text).items
    assert isinstance(section, Section)
    return section


def parse_value(text: str) -> object:
    """A value as Python data."""
    return to_python(parse_section(f"data: {text}").body)


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(128,)", (128,)),
        ("(16, 16)", (16, 16)),
        ("(224, 224, 3)", (224, 224, 3)),
        ("(1, 2, 3, 4,)", (1, 2, 3, 4)),
        ("()", ()),
        ("(5)", (5,)),
        ("[]", []),
        ("[1]", [1]),
        ("[1, 2,]", [1, 2]),
        ("[(1, 2), [3]]", [(1, 2), [3]]),
        ("true", True),
        ("True", True),
        ("false", False),
        ("False", False),
        ("None", None),
        ("(None, 3)", (None, 3)),
        ('"text"', "text"),
        ("'text'", "text"),
        ("2e-5", 2e-5),
        ("-1", -1),
        ('("time", 64)', ("time", 64)),
    ],
)
def test_values_are_scalars_tuples_and_lists(text, expected):
    value = parse_value(text)
    assert value == expected and type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("Flatten()", []),
        ("Dense(5)", [(None, 5)]),
        ("Dense(units=5)", [("units", 5)]),
        ('Dense(5, activation="relu")', [(None, 5), ("activation", "relu")]),
        ('Dense(\n  5,\n  activation="relu",  # why\n)', [(None, 5), ("activation", "relu")]),
        (
            "Conv2D(7, kernel_size=(16, 16), strides=16)",
            [(None, 7), ("kernel_size", (16, 16)), ("strides", 16)],
        ),
        ("Reshape((3, -1),)", [(None, (3, -1))]),
    ],
)
def test_a_call_has_positional_and_named_arguments(text, arguments):
    (layer,) = read(text).items
    assert [
        (argument.name, to_python(argument.value)) for argument in layer.call.arguments
    ] == arguments
    assert not layer.call.broken


def test_a_call_is_a_value():
    body = parse_section(
        "optimizer: Adam(\n  learning_rate=ExponentialDecay(0.0002, 9000, 0.9)\n)"
    ).body
    assert isinstance(body, CallExpression)
    inner = body.arguments[0].value
    assert isinstance(inner, CallExpression) and inner.name == "ExponentialDecay"
    assert [to_python(argument.value) for argument in inner.arguments] == [0.0002, 9000, 0.9]


# --- structure ------------------------------------------------------------------------------------


def test_a_layer_may_have_copies():
    layers = parse_section("layers:\n  Dense(5) * 3\n  Dense(4)*2\n  Dense(3)\n").body
    assert [layer.copies.value if layer.copies else None for layer in layers] == [3, 2, None]


def test_layers_end_at_the_next_section_or_brace():
    text = 'network A {\n layers:\n  Dense(5)\n  Dense(4)\n loss: "mse"\n}\nnetwork B { layers: Dense(3) }'
    network, _ = read(text).networks
    assert [(section.name, section.is_block) for section in network.sections] == [
        ("layers", False),
        ("loss", False),
    ]
    assert len(network.sections[0].body) == 2


def test_a_file_may_have_several_networks():
    program = read("network A { }\nnetwork B2 { } network C_ { }")
    assert [network.name for network in program.networks] == ["A", "B2", "C_"]


def test_sections_may_be_in_any_order():
    program = read(
        'network A { loss: "mse" layers: Dense(5) train { epochs: 3 } optimizer: Adam() input: (7, 3) }'
    )
    assert [section.name for section in program.networks[0].sections] == [
        "loss",
        "layers",
        "train",
        "optimizer",
        "input",
    ]


def test_a_train_block_has_pairs():
    body = parse_section(
        'train {\n  epochs: 3  # c\n  batch_size: 16 data: "here"\n\n  seed: 1\n}'
    ).body
    assert [(pair.name, to_python(pair.body)) for pair in body] == [
        ("epochs", 3),
        ("batch_size", 16),
        ("data", "here"),
        ("seed", 1),
    ]


def test_fragments_are_parsed():
    items = read(
        'Dense(5)\nDense(4) * 2\noptimizer: Adam()\ntrain { epochs: 3 }\nloss: "mse"'
    ).items
    assert [type(item).__name__ for item in items] == [
        "LayerStatement",
        "LayerStatement",
        "Section",
        "Section",
        "Section",
    ]


def test_a_known_section_takes_one_value_and_not_the_next_layer():
    items = read("optimizer: Adam()\nDense(5)").items
    assert [type(item).__name__ for item in items] == ["Section", "LayerStatement"]


def test_layers_under_a_misspelt_name_are_still_layers():
    body = parse_section("layer:\n  Dense(5) * 2\n  Dense(4)\n").body
    assert [layer.call.name for layer in body] == ["Dense", "Dense"]


def test_spans_are_those_of_the_text():
    text = 'network A {\n  input: (7, 3)\n  layers:\n    Dense(5, activation="relu") * 2\n}'
    (network,) = read(text).networks
    (layer,) = network.sections[1].body

    def source(span):
        return text[span.start : span.end]

    assert source(network.span) == text and source(network.name_span) == "A"
    assert (
        source(network.sections[0].span) == "input: (7, 3)"
        and source(network.sections[0].name_span) == "input"
    )
    assert source(network.sections[0].body.span) == "(7, 3)"
    assert source(layer.span) == 'Dense(5, activation="relu") * 2'
    assert source(layer.call.span) == 'Dense(5, activation="relu")'
    assert [source(argument.span) for argument in layer.call.arguments] == [
        "5",
        'activation="relu"',
    ]


def test_trees_are_comparable_data():
    program = read("Dense(5, kernel=[1, (2, 3)])")
    assert strip_positions(program) == strip_positions(
        read("Dense(\n5,\n kernel = [ 1 , ( 2,3 ), ] )")
    )
    assert isinstance(program.items[0].call.arguments[1].value, SequenceLiteral)
    assert isinstance(program.items[0].call.arguments[0].value, Literal)


# --- recovery -------------------------------------------------------------------------------------

START, END = "network A {\n  input: (7, 3)\n  layers:\n", "}\n"


def get_errors(text: str) -> list[tuple[str, int]]:
    """Codes and lines of all errors of a text."""
    source = SourceText("text", text)
    return [
        (error.code, source.line_and_column(error.span.start)[0])
        for error in check(text, CATALOGUE).errors
    ]


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        # brackets: the first layer is on line 4
        ('Dense(5, activation="relu"\nDense(10)\nDense(3)', [("E0104", 4)]),
        ('Dense(5, activation="relu"\nloss: "mse"', [("E0104", 4)]),
        ("Dense(5", [("E0104", 4)]),
        ('Dense(5,\nloss: "mse"', [("E0104", 4)]),
        ('Dense(\n5,\nactivation="relu"\nDense(3)\nDense(4)', [("E0104", 4)]),
        ("Residual(Dense(5), Dense(3)\nDense(4)", [("E0104", 4)]),
        ("Residual(\nDense(3)\nDense(3)\n)\nDense(4)", [("E0105", 6)]),
        (
            'Dense(5)\noptimizer: Adam(learning_rate=ExponentialDecay(0.1, 10, 0.9)\nloss: "mse"',
            [("E0104", 5)],
        ),
        ("Dense(3]\nDense(4)", [("E0104", 4)]),
        ("Conv1D(3, kernel_size=[3, 4)\nDense(4)", [("E0104", 4)]),
        ("Dense(5))\nDense(4)", [("E0109", 4)]),
        ("Dense(5)]\n)\nDense(4)", [("E0109", 4), ("E0109", 5)]),
        ("Dense(5, activation={3})\nDense(4)", [("E0105", 4)]),
        # commas, values, names
        ('Dense(5 activation="relu")\nDense(4)', [("E0105", 4)]),
        ("Dense(,5)\nDense(5,,)\nDense(4)", [("E0105", 4), ("E0105", 5)]),
        ("Dense(units=)\nDense(activation=, 5)\nDense(4)", [("E0105", 4), ("E0105", 5)]),
        ("Dense(units: 5)\nDense(4)", [("E0105", 4)]),
        ("Dense(units=5, units)\nDense(4)", [("E0110", 4)]),
        ("Dense(5, activation=relu)\nDense(4)", [("E0110", 4)]),
        ('Dense(5, activation="relu)\nDense(4)', [("E0103", 4)]),
        ('Dense(5, activation=relu")\nDense(4)', [("E0103", 4)]),
        ("Dense(5 % 3)\nDense(4)", [("E0101", 4)]),
        ("Dense(5) ;\nDense(4);", [("E0101", 4), ("E0101", 5)]),
        ("Dense(5) - Dense(4)\nDense(3)", [("E0101", 4)]),
        ("Dense(5k)\nDense(4)", [("E0108", 4)]),
        # lines
        ("Dense 10\nDense(4)", [("E0105", 4)]),
        ("Dense\nFlatten\nDense(4)", [("E0105", 4), ("E0105", 5)]),
        ('Dense(5, activation="relu"\nDense 10\nDense(4)', [("E0104", 4), ("E0105", 5)]),
        ("Dense(5, activation=relu\nDense 10", [("E0104", 4), ("E0110", 4), ("E0105", 5)]),
        (
            'Dense(3) *\nDense(3) * x\nDense(3) * "a"\nDense(3)',
            [("E0105", 4), ("E0105", 5), ("E0105", 6)],
        ),
        ("3 * Dense(3)\nDense(3) ** 2\nDense(4)", [("E0105", 4), ("E0105", 5)]),
        ("Dense(3),\nDense(4),\nDense(5)", [("E0105", 4)]),
        ('"what"\n12 34\nDense(4)', [("E0105", 4), ("E0105", 5)]),
        ('[\nDense(3),\nDense(4)\n]\nloss: "mse"', [("E0105", 4)]),
        # sections
        ('Dense(5)\nloss "mse"\noptimizer: Adam()', [("E0105", 5)]),
        ('Dense(5)\nloss = "mse"\noptimizer = Adam()', [("E0105", 5), ("E0105", 6)]),
        ("Dense(5)\nloss:\noptimizer: Adam()", [("E0105", 5)]),
        ("Dense(5)\nloss\noptimizer: Adam()", [("E0105", 5)]),
        ("Dense(5)\nloss:", [("E0105", 5)]),
        ("Dense(5)\nloss: mse", [("E0110", 5)]),
        ('Dense(5)\nloss: "mse\noptimizer: Adam()', [("E0103", 5)]),
        ('Dense(5)\nloss: mse"\noptimizer: Adam()', [("E0103", 5)]),
        ('Dense(5)\nloss: "mse"]\noptimizer: Adam()', [("E0109", 5)]),
        ('Dense(5)\n}\nloss: "mse"\noptimizer: Adam()', [("E0109", 5)]),
        ("Dense(5)\nlayers:\nDense(4)", [("E0402", 5)]),
        ('Dense(5)\nloss: "mse"\nDense(4)\nDense(3)\noptimizer: Adam()', [("E0111", 6)]),
        # train
        ("Dense(5)\ntrain {\nepochs 3\nbatch_size: 4\n}", [("E0105", 6)]),
        ("Dense(5)\ntrain {\nepochs = 3\nbatch_size:\nseed: 1\n}", [("E0105", 6), ("E0105", 7)]),
        ('Dense(5)\ntrain {\nepochs: 3\nloss: "mse"', [("E0104", 5)]),
        ("Dense(5)\ntrain: {\nepochs: 3\n}", [("E0105", 5)]),
        ("Dense(5)\ntrain:\nepochs: 3\nseed: 1\n}", [("E0105", 5)]),
        ("Dense(5)\ntrain\nepochs: 3\nseed: 1\n}", [("E0105", 5)]),
        ("Dense(5)\ntrain {\nepochs: 3,\nseed: 1)\n}", [("E0105", 6), ("E0109", 7)]),
    ],
)
def test_an_error_in_the_layers_is_one_diagnostic(layers, expected):
    assert get_errors(f"{START}{layers}\n{END}") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("network A {\n  input: (7, 3\n  layers:\n    Dense(5)\n}", [("E0104", 2)]),
        ("network A {\n  input: (7, 3]\n  layers:\n    Dense(5)\n}", [("E0104", 2)]),
        ("network A {\n  input: 7, 3)\n  layers:\n    Dense(5)\n}", [("E0105", 2)]),
        ("network A {\n  input: (7 3)\n  layers:\n    Dense(5)\n}", [("E0105", 2)]),
        ("network A {\n  input: (7, 3))\n  layers:\n    Dense(5)\n}", [("E0109", 2)]),
        ("network A {\n  input: (x=7, 3)\n  layers:\n    Dense(5)\n}", [("E0105", 2)]),
        ("network A {\n  input (7, 3)\n  layers:\n    Dense(5)\n}", [("E0105", 2)]),
        ("network A {\n  input:\n  layers:\n    Dense(5)\n}", [("E0105", 2)]),
        ("network A {\n  input: (7, 3)\n  layers\n    Dense(5)\n    Dense(4)\n}", [("E0105", 3)]),
        (
            "network A {\n  input: (7, 3)\n  layers {\n    Dense(5)\n    Dense(4)\n  }\n}",
            [("E0105", 3)],
        ),
        ("network A {\n  input: (7, 3)\n  Dense(5)\n  Dense(4)\n}", [("E0111", 3)]),
        (
            "network A {\n  hello you\n  input: (7, 3)\n  1 2\n  layers:\n    Dense(5)\n}",
            [("E0105", 2), ("E0105", 4)],
        ),
        ("network A {\n  input: (7, 3)\n  layers:\n    Dense(5)\n", [("E0104", 1)]),
        ("network A\n  input: (7, 3)\n  layers:\n    Dense(5)\n}", [("E0105", 2)]),
        ("network A\n  input: (7, 3)\n  layers:\n    Dense(5)\n", [("E0105", 2)]),
        ("network {\n  input: (7, 3)\n  layers:\n    Dense(5)\n}", [("E0105", 1)]),
        ('network "A" {\n  input: (7, 3)\n  layers:\n    Dense(5)\n}', [("E0105", 1)]),
        ("network my-net {\n  input: (7, 3)\n  layers:\n    Dense(5)\n}", [("E0101", 1)]),
        ("network 3D {\n  input: (7, 3)\n  layers:\n    Dense(5)\n}", [("E0108", 1), ("E0105", 1)]),
        ("netwerk A {\n  input: (7, 3)\n  layers:\n    Dense(5)\n}", [("E0105", 1)]),
        ("network A {\n  input: (7, 3)\n  layers:\n    Dense(5)\n}\n}", [("E0109", 6)]),
        ("network", [("E0105", 1)]),
        ("network A", [("E0105", 1)]),
        ("network A {", [("E0104", 1)]),
        (")", [("E0109", 1)]),
        ("12", [("E0105", 1)]),
        ("hello", [("E0105", 1)]),
    ],
)
def test_an_error_around_the_layers_is_one_diagnostic(text, expected):
    assert [pair for pair in get_errors(text) if pair[0][:3] in ("E01", "E03")] == expected


def test_all_errors_of_a_file_are_reported_at_once():
    text = """network A {
  input: (7, 3
  layers:
    Dense(5, activation="relu)
    Dense 10
    Dense(4 $ 3)
    Dense(3, activation=relu)
    Dense(2))
  loss
  train {
    epochs 3
  optimizer: Adam(
}
"""
    assert get_errors(text) == [
        ("E0104", 2),
        ("E0103", 4),
        ("E0105", 5),
        ("E0101", 6),
        ("E0110", 7),
        ("E0109", 8),
        ("E0105", 9),
        ("E0104", 10),
        ("E0105", 11),
        ("E0104", 12),
    ]


def test_a_forgotten_brace_does_not_swallow_the_next_network():
    text = f"network A {{\n  input: (7, 3)\n  layers:\n    Dense(5)\n{START.replace('A', 'B')}    Dense(5)\n}}\n"
    assert get_errors(text) == [("E0104", 1), ("E0408", 5)]
    assert [error.message for error in check(text, CATALOGUE, network="B").errors] == [
        "`network A {` is not closed"
    ]


def test_errors_after_a_broken_line_are_found():
    text = f'{START}    Dense(5\n    Dens(4)\n    Dense(units=-1)\n  loss: "msee"\n{END}'
    assert get_errors(text) == [("E0104", 4), ("E0201", 5), ("E0207", 6), ("E0404", 7)]


# --- invalid input --------------------------------------------------------------------------------

JUNK = random.Random(0).randbytes(2_000_000)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("(" * 10_000_000, {"E0107"}),
        ("(" * 1_900_000, {"E0107"}),
        ("(" * 40_000, {"E0105"}),
        ("data: " + "(" * 40_000, {"E0106"}),
        ("a {\n" * 20_000, {"E0106"}),
        ("Residual(" * 1000 + ")" * 1000, {"E0106"}),
        ("data: " + "[" * 1000 + "]" * 1000, {"E0106"}),
        (JUNK.decode("utf-8", errors="replace"), {"E0102"}),
        (JUNK.replace(b"\0", b"").decode("utf-8", errors="replace"), {"E0101"}),
        (JUNK.decode("latin-1").replace("\0", ""), {"E0101"}),
        ("network A { input: (7,) layers: " + "Dense(3) " * 2_000 + "}", set()),
        ("x" * 100_000, {"E0105"}),
        ("# nothing\n" * 50_000, {"E0113"}),
        ("", {"E0113"}),
        (" \n\t\n" * 100_000, {"E0113"}),
        ("network A {\n  layers:\n" + "Dense(3\n" * 9_000, {"E0104"}),
        ("network A {\n" + "train {\nloss: 3\n" * 6_000, {"E0104"}),
        ("network A { layers: " + "Dense(]" * 12_000, {"E0104"}),
        ("network " * 40_000, {"E0105"}),
        ("data: (" + "a b, " * 9_000, {"E0105", "E0110"}),
        ('data: "' + "a" * 100_000 + '"', {"E0103"}),
    ],
    ids=lambda value: f"{len(value)} characters" if isinstance(value, str) else "",
)
def test_invalid_input_is_refused_in_linear_time(text, codes):
    source = SourceText("text", text)
    with limit_cpu_time():
        result = check(text, CATALOGUE)
        rendered = [render_diagnostic(diagnostic, source) for diagnostic in result.diagnostics]
    found_codes = {diagnostic.code for diagnostic in result.errors}
    assert codes <= found_codes and bool(found_codes) == bool(codes)
    assert len(rendered) <= 101 and all(
        len(line) < 400 for text in rendered for line in text.splitlines()
    )


def test_parse_never_raises():
    for text in (
        "",
        "}",
        "{{{",
        ")]}",
        "network network {",
        "a: b: c:",
        "*",
        ":",
        "=,",
        "network A { a { b { c: 1 } ",
    ):
        parse(text, DiagnosticCollector())
