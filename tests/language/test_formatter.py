"""One style for every program; comments stay, and the meaning does not change."""

from collections import Counter

import pytest

from neural.language.formatter import format_program
from tests import programs
from tests.language.strategies import (
    count_text_comments,
    count_tree_comments,
    read,
    strip_positions,
)


def format_checked(text: str) -> str:
    """The formatted text; checked to be stable and to keep comments and meaning."""
    program = read(text)
    formatted = format_program(program)
    reparsed = read(formatted)
    assert format_program(reparsed) == formatted, "formatting is idempotent"
    assert strip_positions(reparsed) == strip_positions(program), "the tree is unchanged"
    assert (
        count_text_comments(formatted) == count_text_comments(text) == count_tree_comments(program)
    ), "the comments are unchanged"
    return formatted


STYLE = """\
# Where does one topic end and the next begin?
# Two lines above a network.

network Boundaries {
  input: (128, 64)  # 128 sentences
  layers:
    # attention first
    TransformerEncoder(num_heads=4, d_model=64, dff=256, attention="localized", window=7) * 2

    GlobalAveragePooling1D()
    Output(2, activation="softmax")  # yes or no

  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=4e-4)

  train {
    batch_size: 16  # small
    # as long as it takes
    epochs: 10_000
  }
}
"""


def test_a_formatted_program_is_unchanged():
    assert format_checked(STYLE) == STYLE


def test_any_layout_gets_the_style():
    text = (
        "#Where does one topic end and the next begin?\n# Two lines above a network.\n\n\n\nnetwork   Boundaries{\n"
        "input:\n(128,64,)# 128 sentences\nlayers:\n# attention first\n   TransformerEncoder(num_heads = 4,\n\n"
        "d_model=64,\n dff=256,attention='localized',window=7,)*2\n\n\n\nGlobalAveragePooling1D( )\n\t"
        "Output(2,activation='softmax')# yes or no\n\n\nloss:'sparse_categorical_crossentropy' optimizer:"
        "Adam(learning_rate=4e-4)\n\n\n train{batch_size:16 # small\n# as long as it takes\n epochs:10_000}}"
    )
    assert format_checked(text) == STYLE


@pytest.mark.parametrize(
    "text", [programs.CLASSIFIER, programs.LANGUAGE_MODEL, programs.TRANSLATOR]
)
def test_the_shared_programs_keep_their_line_breaks(text):
    assert [line.split("#")[0].split() for line in format_checked(text).splitlines()] == [
        line.split("#")[0].split() for line in text.strip().splitlines()
    ]


@pytest.mark.parametrize(
    ("text", "style"),
    [
        # values: numbers as they are spelt, words in their one spelling
        ("a: 2e-5", "a: 2e-5\n"),
        ("a: 10_000", "a: 10_000\n"),
        ("a: 1.50", "a: 1.50\n"),
        ("a: .5", "a: .5\n"),
        ("a: +3", "a: 3\n"),
        ("a: -1", "a: -1\n"),
        ("a: 'it\"s'", 'a: "it\\"s"\n'),
        (r"a: 'x\\y\n'", 'a: "x\\\\y\\n"\n'),
        ("a: True", "a: true\n"),
        ("a: False", "a: false\n"),
        ("a: None", "a: None\n"),
        ("a: (5)", "a: (5,)\n"),
        ("a: (5,6,)", "a: (5, 6)\n"),
        ("a: ( )", "a: ()\n"),
        ("a: [1,[2],(3,)]", "a: [1, [2], (3,)]\n"),
        ("Dense( 5 ,activation = 'relu' , )*2", 'Dense(5, activation="relu") * 2\n'),
        ("f( g(h( )) )", "f(g(h()))\n"),
        # blank lines: at most one, none at the beginning or the end of a block
        ("\n\n\nDense(5)\n\n\n\nDense(4)\n\n\n", "Dense(5)\n\nDense(4)\n"),
        (
            "network A {\n\n\n  input: 5\n\n\n\n  loss: 6\n\n\n}\n",
            "network A {\n  input: 5\n\n  loss: 6\n}\n",
        ),
        ("network A { }\nnetwork B { }", "network A {\n}\n\nnetwork B {\n}\n"),
        ("network A {\n}\ntrain {\n  epochs: 3\n}", "network A {\n}\n\ntrain {\n  epochs: 3\n}\n"),
        ("layers:\n\n\n  Dense(5)\n", "layers:\n  Dense(5)\n"),
        ("", ""),
        ("\n\n  \n", ""),
        ("# only this\n", "# only this\n"),
        ("# one\n\n\n\n# two\n\n", "# one\n\n# two\n"),
    ],
)
def test_details_of_the_style(text, style):
    assert format_checked(text) == style


def test_a_long_call_has_one_argument_per_line():
    call = 'TransformerEncoder(num_heads=8, d_model=512, dff=2048, dropout_rate=0.1, attention="localized", window=7)'
    assert (
        format_checked(f"network A {{ layers: {call} * 6 # deep\n }}")
        == """\
network A {
  layers:
    TransformerEncoder(
      num_heads=8,
      d_model=512,
      dff=2048,
      dropout_rate=0.1,
      attention="localized",
      window=7,
    ) * 6  # deep
}
"""
    )


def test_only_calls_that_are_too_long_are_split():
    steps = ", ".join(["1000"] * 12)
    text = (
        f"optimizer: Adam(learning_rate=PiecewiseConstantDecay([{steps}], [0.1, 0.2]), beta_1=0.9)"
    )
    assert (
        format_checked(text)
        == f"""\
optimizer: Adam(
  learning_rate=PiecewiseConstantDecay(
    [{steps}],
    [0.1, 0.2],
  ),
  beta_1=0.9,
)
"""
    )


# --- comments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "# header\n\nnetwork A {\n}\n",
        "# header\nnetwork A {\n}\n",
        "# one\n#\n# three\n\n# four\n\nnetwork A {\n}\n",
        "network A {  # behind the brace\n}\n",
        "network A {\n  input: (7, 3)  # behind a value\n}\n",
        'network A {\n  # above a section\n  input: (7, 3)\n\n  # with a blank line\n  loss: "mse"\n}\n',
        "network A {\n  layers:  # behind it\n    Dense(5)  # behind one\n    # between\n    Dense(4) * 2  # x\n}\n",
        "network A {\n  layers:\n    Dense(5)\n  # before a brace\n}\n",
        "network A {\n  layers:\n    Dense(5)\n\n  # after a blank line, before a brace\n  # and another\n}\n",
        "network A {\n  # alone\n}\n",
        "train {  # how\n  # above\n  epochs: 3  # behind\n  # last\n}\n",
        "TransformerEncoder(\n  num_heads=8,\n  dropout_rate=0.1,  # behind the last argument\n)\n",
        'Dense(\n  # above\n  5,  # behind\n  # above the next\n  activation="relu",\n  # before the bracket\n)\n',
        "Dense(\n  # nothing else\n)\n",
        "input: (\n  7,  # time\n  3,  # features\n)  # behind all\n",
        "Dense(5)\n\n# the end\n",
        "Dense(5)  # Each head: 512 / 8 = 64 > 32 (fine)\n",
    ],
)
def test_a_comment_in_a_usual_position_stays_there(text):
    assert format_checked(text) == text


@pytest.mark.parametrize(
    ("text", "style"),
    [
        # after the last argument, without a comma
        ("Dense(\n  5,\n  rate=0.1  # both\n)", "Dense(\n  5,\n  rate=0.1,  # both\n)\n"),
        # behind the opening bracket: above the first argument
        ("Dense(  # why\n  5)", "Dense(\n  # why\n  5,\n)\n"),
        # between a name and its value: above the line
        ('loss:\n  # why\n  "mse"', '# why\nloss: "mse"\n'),
        (
            "optimizer:\n  # why\n  Adam(learning_rate=0.1)",
            "# why\noptimizer: Adam(learning_rate=0.1)\n",
        ),
        (
            "Adam(learning_rate=\n  # why\n  Decay(1))",
            "Adam(\n  # why\n  learning_rate=Decay(1),\n)\n",
        ),
        ('loss:  # why\n  "mse"', 'loss: "mse"  # why\n'),
        # between a layer and its copies
        ("Dense(5)  # why\n  * 2", "# why\nDense(5) * 2\n"),
        # between the layers and the next section: it belongs to what follows
        (
            "network A {\n  layers:\n    Dense(5)\n    # about the loss\n  loss: 1\n}\n",
            "network A {\n  layers:\n    Dense(5)\n  # about the loss\n  loss: 1\n}\n",
        ),
        ("network A  # why\n{ }", "# why\nnetwork A {\n}\n"),
    ],
)
def test_a_comment_in_an_unusual_position_moves_as_little_as_possible(text, style):
    assert format_checked(text) == style


def test_every_comment_of_a_crowded_program_is_kept_once():
    program = "network A { input : ( 7 , 3 ) layers : Dense ( units = 5 , kernel = [ 1 , 2 ] ) * 2 Flatten ( ) train { "
    program += "epochs : 3 seed : 1 } }"
    lines = [
        f"{word}  # behind {index}\n# above {index}\n" for index, word in enumerate(program.split())
    ]
    expected = Counter(
        f"# {position} {index}" for index in range(len(lines)) for position in ("behind", "above")
    )
    assert count_text_comments(format_checked("".join(lines))) == expected
