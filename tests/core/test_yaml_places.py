"""YAML as it is read: the values of YAML 1.2, each with its place, and plain words where there is none."""

import math

import pytest

from neural.core.diagnostics import Findings, Source
from neural.core.yaml_places import DEEPEST, LARGEST, plain, read


def tree(text: str):
    findings = Findings()
    node = read(Source("a.yaml", text), findings)
    assert not findings.items, findings.items
    return node


def complaint(text: str):
    """The one thing that is wrong, and the text that is underlined."""
    findings = Findings()
    read(Source("a.yaml", text), findings)
    (one,) = findings.items
    return one.code, one.message, text[one.where.start : one.where.end]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("4e-4", 4e-4), ("1E5", 1e5), (".5", 0.5), ("5.", 5.0), ("-0.1", -0.1), ("10_000", 10_000), ("0x1F", 31),
        ("0o17", 15), ("012", 12), ("true", True), ("True", True), ("FALSE", False), ("null", None), ("~", None),
        ("", None), ("yes", "yes"), ("no", "no"), ("on", "on"), ("tRue", "tRue"), ("-.inf", -math.inf),
        ("1e999", math.inf),
        ("2026-11-16", "2026-11-16"), ("1:30", "1:30"), ("1.2.3", "1.2.3"), ("_1", "_1"), ("-", "-"),
        ("9" * 5000, "9" * 5000),
    ],
)  # fmt: skip
def test_a_word_without_quotes_is_what_yaml_1_2_says(written, value):
    assert plain(written) == value
    assert type(plain(written)) is type(value)


def test_every_key_and_value_knows_its_place():
    text = "# first\ntraining:\n  lr: 4e-4   # small\n  names: [a, 'b c']\n"
    node = tree(text)
    assert node.data == {"training": {"lr": 4e-4, "names": ["a", "b c"]}}
    training = node.value["training"]
    places = [training.key, training.node.value["lr"].key, training.node.value["lr"].node]
    places += [training.node.value["names"].node, *training.node.value["names"].node.value]
    shown = [text[one.where.start : one.where.end] for one in places]
    assert shown == ["training", "lr", "4e-4", "[a, 'b c']", "a", "'b c'"]


def test_places_are_right_under_an_older_directive_and_behind_a_byte_order_mark():
    for text in ("%YAML 1.1\n---\nfirst: 3\nsecond: 4\n", "\ufefffirst: 3\nsecond: 4\n", "first: 3\r\nsecond: 4\r\n"):
        where = tree(text).value["second"].key.where
        assert text[where.start : where.end] == "second"


def test_a_part_of_a_text_has_places_in_the_whole():
    source = Source("--set", "training.seed=12")
    node = read(source, Findings(), start=14)
    assert (node.value, node.where.start, node.where.end) == (12, 14, 16)


@pytest.mark.parametrize("text", ["", "\n\n", "# only a remark\n", "---\n", "null"])
def test_nothing_is_null(text):
    assert tree(text).value is None


def test_an_alias_repeats_its_anchor():
    assert tree("a: &x {b: 1}\nc: *x\n").data == {"a": {"b": 1}, "c": {"b": 1}}


def test_json_is_yaml_even_where_a_character_takes_two_escapes():
    assert tree('{"a": "\\ud83d\\ude42", "b": [1e-05, true, null]}').data == {"a": "🙂", "b": [1e-05, True, None]}


COMPLAINTS = {
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
    "a: !!python/object:os.system x": ("tags such as `!!str` have no meaning here", "!!python/object:os.system x"),
    "a: !<x": ("tags such as `!!str` have no meaning here", "!"),
    "%YAML x\n---\na: 1\n": ("lines that begin with `%` have no meaning here", "%"),
    "a: 1\n---\nb: 2\n": ("a second document begins here", "---"),
    "a: \x07": ("this is not a text: it holds the character U+0007", "\x07"),
    "\x7fELF\0": ("this is not a text: it holds the character U+007F", "\x7f"),
    "[" * 40: (f"nested more than {DEEPEST} deep", "["),
}


@pytest.mark.parametrize("text", COMPLAINTS)
def test_what_cannot_be_read_says_why_in_plain_words_where_it_is(text):
    assert complaint(text) == ("E0805", *COMPLAINTS[text])


def test_a_huge_file_is_refused_before_it_is_parsed():
    assert complaint("[" * 10_000_000)[1] == f"this has 10,000,000 characters, and {LARGEST:,} is the most"


def test_a_megabyte_of_numbers_is_refused_after_the_first_few():
    assert complaint("[" + "1, " * 300_000 + "]")[1] == "more than 10,000 values end here"


def test_a_few_lines_that_stand_for_billions_of_values_are_refused():
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    assert complaint("\n".join(lines))[1] == "this stands for more than 10,000 values"


def test_a_key_that_stands_twice_is_named_with_both_places():
    findings = Findings()
    text = "seed: 1\nother: 2\nseed: 3\n"
    node = read(Source("a.yaml", text), findings)
    (one,) = findings.items
    assert (one.code, one.where.start, one.labels[0].where.start) == ("E0806", text.rindex("seed"), 0)
    assert node.data == {"seed": 1, "other": 2}


@pytest.mark.parametrize(
    ("text", "got"), [("1: 2", "1"), ("true: 2", "true"), ("? [a]\n: 2", "[a]"), (": 2", "nothing")]
)
def test_a_key_that_is_not_a_name_is_refused(text, got):
    findings = Findings()
    read(Source("a.yaml", text), findings)
    assert [(one.code, one.message) for one in findings.items] == [("E0802", f"a key must be a name, got {got}")]
