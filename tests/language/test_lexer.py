"""The smallest pieces of a program: comments, spaces, names, numbers, strings, marks."""

import time

import pytest

from neural.core.diagnostics import Findings, Source
from neural.language.lexer import MOST_TOKENS, Token, tokenize
from tests.language.strategies import read


def tokens(text: str) -> list[Token]:
    """All tokens but the end; fails with the text's mistakes."""
    findings = Findings()
    found = tokenize(text, findings)
    assert not findings.items, [one.message for one in findings.items]
    assert found[-1].kind == "end"
    return found[:-1]


def mistakes(text: str) -> list[tuple[str, int]]:
    """Codes and lines of what the lexer says."""
    findings = Findings()
    tokenize(text, findings)
    return [(one.code, Source("text", text).place(one.where.start)[0]) for one in findings.items]


def value_of(text: str) -> object:
    (token,) = tokens(text)
    return token.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0), ("512", 512), ("-1", -1), ("+3", 3), ("10_000", 10_000), ("007", 7),
        ("0.1", 0.1), (".5", 0.5), ("5.", 5.0), ("-0.25", -0.25), ("2e-5", 2e-5), ("1E3", 1000.0), ("1.5e+2", 150.0),
        ("1e-400", 0.0), ("1" * 40, int("1" * 40)), ("٣", 3),
    ],
)  # fmt: skip
def test_a_number_has_the_value_it_spells(text, value):
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)
    assert tokens(text)[0].text == text


@pytest.mark.parametrize("text", ["5k", "1e", "1e5x", "0x10", "12abc", "1" * 41, "1e400", "-1e999", "1__x", "2D"])
def test_what_only_begins_like_a_number_is_one_mistake(text):
    assert mistakes(text) == [("E0108", 1)]


@pytest.mark.parametrize("name", ["Conv2D", "GlobalAveragePooling1D", "_hidden", "d_model", "x", "Größe", "名前"])
def test_a_name_has_letters_digits_and_underscores(name):
    assert [(token.kind, token.text) for token in tokens(name)] == [("name", name)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"softmax"', "softmax"), ("'softmax'", "softmax"), ('""', ""), ('"a b"', "a b"), ('"it\'s"', "it's"),
        ("'say \"hi\"'", 'say "hi"'), (r'"a\"b"', 'a"b'), (r'"a\\"', "a\\"), (r'"a\nb\tc\r"', "a\nb\tc\r"),
        (r'"\q"', "q"), ('"# no comment"', "# no comment"), ('"(,)"', "(,)"), ('"ü → 名"', "ü → 名"),
    ],
)  # fmt: skip
def test_a_string_stands_in_either_kind_of_quotes(text, value):
    assert tokens(text)[0].kind == "string"
    assert value_of(text) == value


def test_marks_are_their_own_kinds():
    assert [token.kind for token in tokens("{ } ( ) [ ] , : = *")] == list("{}()[],:=*")


def test_blank_lines_spaces_and_indentation_mean_nothing():
    tight = "network A{input:(7,3)layers:Dense(5)Dense(4)*2 loss:\"mse\"}"
    loose = (
        "\n\n   \n\t network \n\n A \r\n {\n \t \n input\n:\n(\n7\n,\n\n3\n)\nlayers\n:\n        Dense\n(5)\n"
        "Dense(\n\n4\n\n)\n*\n2\n\n\nloss:\n\n\"mse\"\n   \n}\n  \n\n"
    )
    assert [token.text for token in tokens(tight)] == [token.text for token in tokens(loose)]


@pytest.mark.parametrize("space", ["\t", "\r\n", "\u00a0", "\u2003", "\ufeff", "\f", "\u2028"])
def test_any_kind_of_space_is_space(space):
    assert [token.text for token in tokens(f"{space}input{space}:{space}5{space}")] == ["input", ":", "5"]


def test_a_byte_order_mark_before_the_first_word_is_no_mistake():
    assert read("\ufeffnetwork A {\n}\n").networks[0].name == "A"


def remarks(text: str) -> list[tuple[str, str, bool]]:
    """The comments: which token they stand before, their text, and whether they have a line of their own."""
    found = tokenize(text, Findings())
    return [(token.text, remark.text, remark.own_line) for token in found for remark in token.remarks]


def test_comments_stand_on_their_own_line_or_behind_something():
    text = "# first\nDense(5)  # behind\n# above\nDense(4)\n# last"
    assert remarks(text) == [
        ("Dense", "# first", True), ("Dense", "# behind", False), ("Dense", "# above", True), ("", "# last", True),
    ]  # fmt: skip


@pytest.mark.parametrize("comment", ["# a = b / c > d (e)", '# "quoted', "# network A {", "# ) ] }", "# ünï → 名", "#"])
def test_a_comment_may_contain_anything(comment):
    assert remarks(f"{comment}\nDense") == [("Dense", comment, True)]
    assert mistakes(f"Dense(5) {comment}\n{comment}\n") == []


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("#tight", "# tight"), ("#   far", "#   far"), ("# end   ", "# end"), ("## title", "## title"),
        ("#!shebang", "#!shebang"), ("#---", "# ---"), ("#", "#"), ("#  ", "#"), ("#\ttab", "# \ttab"),
    ],
)  # fmt: skip
def test_a_comment_is_tidied_and_keeps_its_words(written, kept):
    assert remarks(written) == [("", kept, True)]
    assert remarks(kept) == [("", kept, True)]


def test_an_unclosed_string_ends_where_it_was_meant_to():
    findings = Findings()
    found = tokenize('Dense(5, activation="relu)\nloss: "mse  # why\noptimizer', findings)
    assert [one.code for one in findings.items] == ["E0103", "E0103"]
    assert [token.value for token in found if token.kind == "string"] == ["relu", "mse"]
    assert [token.text for token in found if token.kind in (")", "name")][-2:] == ["loss", "optimizer"]
    assert remarks('loss: "mse  # why\noptimizer') == [("optimizer", "# why", False)]


def test_a_string_that_lacks_its_first_quote_is_one_mistake():
    findings = Findings()
    found = tokenize('Dense(5, activation=relu")', findings)
    assert [one.message for one in findings.items] == ["this string is not opened"]
    assert [token.kind for token in found][-4:] == ["=", "string", ")", "end"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Dense(5);", [1]), ("a @ b\nc $ d", [1, 2]), ("a - b", [1]), ("→\n∑∑∑", [1, 2]), ("5 % 3 & 2", [1, 1]),
        ("a.b", [1]),
    ],
)  # fmt: skip
def test_characters_that_mean_nothing_are_said_once_each(text, lines):
    assert mistakes(text) == [("E0101", line) for line in lines]


def test_after_a_hundred_mistakes_nobody_reads_on():
    assert len(mistakes("@ \n" * 1000)) == 100


@pytest.mark.no_cover   # tracing every line takes longer than reading
@pytest.mark.parametrize(
    "text",
    ["(" * 1_900_000, "a" * 1_900_000, "'" * 1_900_001, '("\\",' + '\\",' * 300_000, "1 " * 900_000],
    ids=["brackets", "one name", "quotes", "escapes", "numbers"],
)
def test_a_huge_text_is_read_or_refused_in_less_than_a_second(text):
    start = time.process_time()
    tokenize(text, Findings())
    assert time.process_time() - start < 1


def test_more_words_than_a_program_has_are_one_mistake():
    findings = Findings()
    assert [token.kind for token in tokenize("a " * (MOST_TOKENS + 1), findings)] == ["end"]
    assert [one.code for one in findings.items] == ["E0107"]
