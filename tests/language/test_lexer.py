"""Tokens: comments, spaces, names, numbers, strings, punctuation."""

import pytest

from neural.core.diagnostics import DiagnosticCollector, SourceText
from neural.language.lexer import MAX_TOKENS, Token, tokenize
from tests.cpu_time import limit_cpu_time
from tests.language.strategies import read


def tokenize_valid(text: str) -> list[Token]:
    """All tokens except the end; fails on diagnostics."""
    diagnostics = DiagnosticCollector()
    tokens = tokenize(text, diagnostics)
    assert not diagnostics.items, [diagnostic.message for diagnostic in diagnostics.items]
    assert tokens[-1].kind == "end"
    return tokens[:-1]


def get_errors(text: str) -> list[tuple[str, int]]:
    """Codes and lines of the lexer's diagnostics."""
    diagnostics = DiagnosticCollector()
    tokenize(text, diagnostics)
    return [
        (diagnostic.code, SourceText("text", text).line_and_column(diagnostic.span.start)[0])
        for diagnostic in diagnostics.items
    ]


def value_of(text: str) -> object:
    (token,) = tokenize_valid(text)
    return token.value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("512", 512),
        ("-1", -1),
        ("+3", 3),
        ("10_000", 10_000),
        ("007", 7),
        ("0.1", 0.1),
        (".5", 0.5),
        ("5.", 5.0),
        ("-0.25", -0.25),
        ("2e-5", 2e-5),
        ("1E3", 1000.0),
        ("1.5e+2", 150.0),
        ("1e-400", 0.0),
        ("1" * 40, int("1" * 40)),
        ("٣", 3),
    ],
)
def test_a_number_has_the_value_it_spells(text, value):
    assert value_of(text) == value
    assert type(value_of(text)) is type(value)
    assert tokenize_valid(text)[0].text == text


@pytest.mark.parametrize(
    "text", ["5k", "1e", "1e5x", "0x10", "12abc", "1" * 41, "1e400", "-1e999", "1__x", "2D"]
)
def test_an_invalid_number_is_one_error(text):
    assert get_errors(text) == [("E0108", 1)]


@pytest.mark.parametrize(
    "name", ["Conv2D", "GlobalAveragePooling1D", "_hidden", "d_model", "x", "Größe", "名前"]
)
def test_a_name_has_letters_digits_and_underscores(name):
    assert [(token.kind, token.text) for token in tokenize_valid(name)] == [("name", name)]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('"softmax"', "softmax"),
        ("'softmax'", "softmax"),
        ('""', ""),
        ('"a b"', "a b"),
        ('"it\'s"', "it's"),
        ("'say \"hi\"'", 'say "hi"'),
        (r'"a\"b"', 'a"b'),
        (r'"a\\"', "a\\"),
        (r'"a\nb\tc\r"', "a\nb\tc\r"),
        (r'"\q"', "q"),
        ('"# no comment"', "# no comment"),
        ('"(,)"', "(,)"),
        ('"ü → 名"', "ü → 名"),
    ],
)
def test_a_string_may_use_either_kind_of_quotes(text, value):
    assert tokenize_valid(text)[0].kind == "string"
    assert value_of(text) == value


def test_punctuation_is_its_own_kind():
    assert [token.kind for token in tokenize_valid("{ } ( ) [ ] , : = *")] == list("{}()[],:=*")


def test_blank_lines_spaces_and_indentation_mean_nothing():
    compact = 'network A{input:(7,3)layers:Dense(5)Dense(4)*2 loss:"mse"}'
    spaced = (
        "\n\n   \n\t network \n\n A \r\n {\n \t \n input\n:\n(\n7\n,\n\n3\n)\nlayers\n:\n        Dense\n(5)\n"
        'Dense(\n\n4\n\n)\n*\n2\n\n\nloss:\n\n"mse"\n   \n}\n  \n\n'
    )
    assert [token.text for token in tokenize_valid(compact)] == [
        token.text for token in tokenize_valid(spaced)
    ]


@pytest.mark.parametrize("space", ["\t", "\r\n", "\u00a0", "\u2003", "\ufeff", "\f", "\u2028"])
def test_any_kind_of_space_is_space(space):
    assert [token.text for token in tokenize_valid(f"{space}input{space}:{space}5{space}")] == [
        "input",
        ":",
        "5",
    ]


def test_a_byte_order_mark_is_ignored():
    assert read("\ufeffnetwork A {\n}\n").networks[0].name == "A"


def list_comments(text: str) -> list[tuple[str, str, bool]]:
    """The comments: the token they precede, their text, and whether they have their own line."""
    tokens = tokenize(text, DiagnosticCollector())
    return [
        (token.text, comment.text, comment.is_own_line)
        for token in tokens
        for comment in token.comments
    ]


def test_comments_are_on_their_own_line_or_trailing():
    text = "# first\nDense(5)  # behind\n# above\nDense(4)\n# last"
    assert list_comments(text) == [
        ("Dense", "# first", True),
        ("Dense", "# behind", False),
        ("Dense", "# above", True),
        ("", "# last", True),
    ]


@pytest.mark.parametrize(
    "comment", ["# a = b / c > d (e)", '# "quoted', "# network A {", "# ) ] }", "# ünï → 名", "#"]
)
def test_a_comment_may_contain_anything(comment):
    assert list_comments(f"{comment}\nDense") == [("Dense", comment, True)]
    assert get_errors(f"Dense(5) {comment}\n{comment}\n") == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#tight", "# tight"),
        ("#   far", "#   far"),
        ("# end   ", "# end"),
        ("## title", "## title"),
        ("#!shebang", "#!shebang"),
        ("#---", "# ---"),
        ("#", "#"),
        ("#  ", "#"),
        ("#\ttab", "# \ttab"),
    ],
)
def test_a_comment_is_normalized(text, expected):
    assert list_comments(text) == [("", expected, True)]
    assert list_comments(expected) == [("", expected, True)]


def test_an_unclosed_string_ends_where_it_probably_should():
    diagnostics = DiagnosticCollector()
    tokens = tokenize('Dense(5, activation="relu)\nloss: "mse  # why\noptimizer', diagnostics)
    assert [diagnostic.code for diagnostic in diagnostics.items] == ["E0103", "E0103"]
    assert [token.value for token in tokens if token.kind == "string"] == ["relu", "mse"]
    assert [token.text for token in tokens if token.kind in (")", "name")][-2:] == [
        "loss",
        "optimizer",
    ]
    assert list_comments('loss: "mse  # why\noptimizer') == [("optimizer", "# why", False)]


def test_a_missing_opening_quote_is_one_error():
    diagnostics = DiagnosticCollector()
    tokens = tokenize('Dense(5, activation=relu")', diagnostics)
    assert [diagnostic.message for diagnostic in diagnostics.items] == ["this string is not opened"]
    assert [token.kind for token in tokens][-4:] == ["=", "string", ")", "end"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Dense(5);", [1]),
        ("a @ b\nc $ d", [1, 2]),
        ("a - b", [1]),
        ("→\n∑∑∑", [1, 2]),
        ("5 % 3 & 2", [1, 1]),
        ("a // b", [1]),
        ("activation=“relu”", [1]),
        ("- Dense(5)\n- Dense(4)", [1, 2]),
    ],
)
def test_invalid_characters_are_reported_once_each(text, lines):
    assert get_errors(text) == [("E0101", line) for line in lines]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("nn.Linear", "name"),
        ("torch.optim.AdamW", "name"),
        ("clean.csv", "name"),
        ("./data/clean.csv", "path"),
        ("data/clean-2024.csv", "path"),
        ("/data/clean.csv", "path"),
    ],
)
def test_a_dotted_name_and_a_path_are_one_token(text, kind):
    token, _ = tokenize(text, DiagnosticCollector())
    assert (token.kind, token.text) == (kind, text)


def test_reading_stops_after_a_hundred_errors():
    assert len(get_errors("@ \n" * 1000)) == 100


@pytest.mark.no_cover  # tracing every line takes longer than reading
@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_900_000,
        "a" * 1_900_000,
        "'" * 1_900_001,
        '("\\",' + '\\",' * 300_000,
        "1 " * 900_000,
    ],
    ids=["brackets", "one name", "quotes", "escapes", "numbers"],
)
def test_a_huge_text_is_read_or_refused_in_linear_time(text):
    with limit_cpu_time():
        tokenize(text, DiagnosticCollector())


def test_too_many_tokens_are_one_error():
    diagnostics = DiagnosticCollector()
    assert [token.kind for token in tokenize("a " * (MAX_TOKENS + 1), diagnostics)] == ["end"]
    assert [diagnostic.code for diagnostic in diagnostics.items] == ["E0107"]
