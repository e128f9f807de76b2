"""YAML 1.2 values with spans, and messages for invalid YAML."""

import math

import pytest

from neural.core.diagnostics import DiagnosticCollector, SourceText
from neural.core.yaml_positions import MAX_CHARACTERS, MAX_DEPTH, parse_scalar, parse_yaml


def parse(text: str):
    diagnostics = DiagnosticCollector()
    node = parse_yaml(SourceText("a.yaml", text), diagnostics)
    assert not diagnostics.items, diagnostics.items
    return node


def get_error(text: str):
    """Code, message and underlined text of the only error."""
    diagnostics = DiagnosticCollector()
    parse_yaml(SourceText("a.yaml", text), diagnostics)
    (error,) = diagnostics.items
    return error.code, error.message, text[error.span.start : error.span.end]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("4e-4", 4e-4),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.1", -0.1),
        ("10_000", 10_000),
        ("0x1F", 31),
        ("0o17", 15),
        ("012", 12),
        ("true", True),
        ("True", True),
        ("FALSE", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("tRue", "tRue"),
        ("-.inf", -math.inf),
        ("1e999", math.inf),
        ("2026-11-16", "2026-11-16"),
        ("1:30", "1:30"),
        ("1.2.3", "1.2.3"),
        ("_1", "_1"),
        ("-", "-"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_unquoted_scalars_follow_yaml_1_2(written, value):
    assert parse_scalar(written) == value
    assert type(parse_scalar(written)) is type(value)


def test_every_key_and_value_has_a_span():
    text = "# first\ntraining:\n  lr: 4e-4   # small\n  names: [a, 'b c']\n"
    node = parse(text)
    assert node.data == {"training": {"lr": 4e-4, "names": ["a", "b c"]}}
    training = node.value["training"]
    nodes = [training.key, training.node.value["lr"].key, training.node.value["lr"].node]
    nodes += [training.node.value["names"].node, *training.node.value["names"].node.value]
    texts = [text[child.span.start : child.span.end] for child in nodes]
    assert texts == ["training", "lr", "4e-4", "[a, 'b c']", "a", "'b c'"]


def test_spans_are_right_after_a_directive_and_a_byte_order_mark():
    for text in (
        "%YAML 1.1\n---\nfirst: 3\nsecond: 4\n",
        "\ufefffirst: 3\nsecond: 4\n",
        "first: 3\r\nsecond: 4\r\n",
    ):
        span = parse(text).value["second"].key.span
        assert text[span.start : span.end] == "second"


def test_spans_count_from_the_start_of_the_text():
    source = SourceText("--set", "training.seed=12")
    node = parse_yaml(source, DiagnosticCollector(), start=14)
    assert (node.value, node.span.start, node.span.end) == (12, 14, 16)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n", "---\n", "null"])
def test_an_empty_document_is_null(text):
    assert parse(text).value is None


def test_an_alias_repeats_its_anchor():
    assert parse("a: &x {b: 1}\nc: *x\n").data == {"a": {"b": 1}, "c": {"b": 1}}


def test_json_with_surrogate_pairs_is_valid():
    assert parse('{"a": "\\ud83d\\ude42", "b": [1e-05, true, null]}').data == {
        "a": "🙂",
        "b": [1e-05, True, None],
    }


ERRORS = {
    "a: b: c": ("no `:` can stand here", ":"),
    "a: 1\n  b: 2\n": ("this line goes on with the text above, so no `:` can stand here", ":"),
    "a:\n\tb: 1\n": ("this line is indented by a tab", "\t"),
    "a: [1, 2\nb: 3": ("a `,` or `]` is missing before this", ":"),
    "a: {b: 3": ("a `,` or `}` is missing before this", ""),
    "a: 'x\nb: 3\n": ("this quote is not closed", "'"),
    'a: "x\n---\n': ("this quote is not closed", '"'),
    "a: 1\nb 2\n": ("a `:` is missing in this line", "b 2"),
    "a: @x": ("`@` cannot begin a value", "@"),
    "a: ? b": ("no `?` can stand here", "?"),
    "'a' b\n": ("this does not belong to what stands before it", "b"),
    "a: - b": ("no `-` can stand here", "-"),
    'a: "\\q"': ("`\\q` is no escape", "q"),
    'a: "\\x0"': ("this escape wants more digits", "0"),
    'a: "\\UFFFFFFFF"': ("this escape stands for no character", "\\UFFFFFFFF"),
    'a: "\\ud800"': ("an escape in this text stands for no character", '"\\ud800"'),
    "a: [, ]": ("a value is missing before this", ","),
    "a:\n  - b\n c: 3\n": ("this line does not fit the lines above it", "c"),
    "- a\nb: 3\n": ("this belongs to no list", "b"),
    "a: | x\n": ("this cannot stand behind `|` or `>`", "x"),
    "a: &": ("a name must follow `&`", ""),
    "a: * b": ("a name must follow `*`", " "),
    "a: *x": ("no `&x` stands before this", "*x"),
    "a: &x [*x]": ("`*x` stands inside what it repeats", "*x"),
    "a: !!python/object:os.system x": (
        "tags such as `!!str` have no meaning here",
        "!!python/object:os.system x",
    ),
    "a: !<x": ("tags such as `!!str` have no meaning here", "!"),
    "%YAML x\n---\na: 1\n": ("lines that begin with `%` have no meaning here", "%"),
    "a: 1\n---\nb: 2\n": ("a second document begins here", "---"),
    "a: \x07": ("this is not a text: it holds the character U+0007", "\x07"),
    "\x7fELF\0": ("this is not a text: it holds the character U+007F", "\x7f"),
    "[" * 40: (f"nested more than {MAX_DEPTH} deep", "["),
}


@pytest.mark.parametrize("text", ERRORS)
def test_invalid_yaml_has_a_clear_message_and_span(text):
    assert get_error(text) == ("E0805", *ERRORS[text])


def test_a_huge_file_is_refused_before_it_is_parsed():
    assert (
        get_error("[" * 10_000_000)[1]
        == f"this has 10,000,000 characters, and {MAX_CHARACTERS:,} is the most"
    )


def test_a_megabyte_of_numbers_is_refused_after_the_first_few():
    assert get_error("[" + "1, " * 300_000 + "]")[1] == "more than 10,000 values end here"


def test_aliases_that_expand_to_billions_of_values_are_refused():
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert get_error("\n".join(lines))[1] == "this stands for more than 10,000 values"


def test_a_duplicate_key_is_reported_with_both_spans():
    diagnostics = DiagnosticCollector()
    text = "seed: 1\nother: 2\nseed: 3\n"
    node = parse_yaml(SourceText("a.yaml", text), diagnostics)
    (error,) = diagnostics.items
    assert (error.code, error.span.start, error.labels[0].span.start) == (
        "E0806",
        text.rindex("seed"),
        0,
    )
    assert node.data == {"seed": 1, "other": 2}


@pytest.mark.parametrize(
    ("text", "got"), [("1: 2", "1"), ("true: 2", "true"), ("? [a]\n: 2", "[a]"), (": 2", "nothing")]
)
def test_a_key_that_is_not_a_name_is_refused(text, got):
    diagnostics = DiagnosticCollector()
    parse_yaml(SourceText("a.yaml", text), diagnostics)
    assert [(error.code, error.message) for error in diagnostics.items] == [
        ("E0802", f"a key must be a name, got {got}")
    ]
