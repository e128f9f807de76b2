"""Every diagnostic, word by word: one golden file per code, from its example program.

`UPDATE_GOLDEN=1 pytest tests/language/test_diagnostic_codes.py` rewrites them; review the diff.
"""

import ast
import os
import re
from pathlib import Path

import pytest

import neural
from neural.core.diagnostics import Diagnostic, SourceText, render_diagnostic
from neural.core.experiment import Experiment
from neural.core.registry import UnknownNameError
from neural.core.settings import SettingsError, read_settings
from neural.language import diagnostic_codes
from neural.language.catalogue import Catalogue
from neural.language.check import CheckResult, check
from neural.language.diagnostic_codes import CodeExample
from neural.nn.layers import registry as layers
from neural.nn.losses import registry as losses
from neural.optim.optimizers import registry as optimizers

GOLDEN = Path(__file__).parent / "golden"
SOURCE_FOLDER = Path(neural.__path__[0])

LAYERS = """
    Conv1D Conv2D Dense Dropout Embedding Flatten GlobalAveragePooling1D LayerNormalization MaxPooling1D Output
    PositionalEncoding Reshape Residual TransformerDecoder TransformerEncoder
"""
FIXED_CATALOGUE = Catalogue(
    layers=layers.restrict_to(LAYERS.split()),
    losses=losses.restrict_to(
        [
            "binary_crossentropy",
            "categorical_crossentropy",
            "mse",
            "sparse_categorical_crossentropy",
        ]
    ),
    optimizers=optimizers.restrict_to(["Adam", "AdamW", "SGD"]),
)
"""So that a new layer changes no message here."""

LARGE_EXAMPLES = {
    "E0102": CodeExample(text="\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    "E0107": CodeExample(text="Dense(5)\n" * 300_000),
}
"""Examples that are too large for an explanation page."""

SETTINGS_PREFIX = "E08"
"""Codes about experiment files, whose examples are YAML."""

every_code = pytest.mark.parametrize("code", diagnostic_codes.list_codes())


def check_example(example: CodeExample) -> CheckResult:
    return check(example.text, FIXED_CATALOGUE, network=example.network)


def get_source(code: str, example: CodeExample) -> SourceText:
    return SourceText(
        "experiment.yaml" if code.startswith(SETTINGS_PREFIX) else "net.neural", example.text
    )


def get_diagnostics(code: str, example: CodeExample) -> tuple[Diagnostic, ...]:
    """The diagnostics of the checker, or of the settings reader for YAML examples."""
    if not code.startswith(SETTINGS_PREFIX):
        return check_example(example).diagnostics
    try:
        read_settings(Experiment, get_source(code, example))
    except SettingsError as error:
        return error.diagnostics
    return ()


def get_wrong_example(code: str) -> CodeExample:
    return diagnostic_codes.load_code(code).wrong or LARGE_EXAMPLES[code]


def get_codes(result: CheckResult) -> list[str]:
    return [diagnostic.code for diagnostic in result.diagnostics]


def test_exactly_the_codes_of_the_source_are_explained():
    trees = [
        ast.parse(file.read_text(encoding="utf-8")) for file in sorted(SOURCE_FOLDER.rglob("*.py"))
    ]
    strings = [
        node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant)
    ]
    used = {
        text for text in strings if isinstance(text, str) and re.fullmatch(r"[EWN]0\d{3}", text)
    }
    assert used == set(diagnostic_codes.list_codes())


@every_code
def test_an_explanation_has_a_title_a_paragraph_and_two_programs(code):
    explanation = diagnostic_codes.load_code(code)
    assert explanation.code == code
    assert 1 <= len(explanation.title.split()) <= 10
    assert explanation.title[0].isupper() or explanation.title[0] == "`"
    assert not explanation.title.endswith(".")
    assert 10 <= len(explanation.cause.split()) <= 80
    assert explanation.cause.endswith(".")
    assert "```" not in explanation.cause
    assert (explanation.wrong is None) == (code in LARGE_EXAMPLES)


@every_code
def test_the_wrong_program_has_only_its_code(code):
    assert [diagnostic.code for diagnostic in get_diagnostics(code, get_wrong_example(code))] == [
        code
    ]


@every_code
def test_the_right_program_has_no_errors_and_not_the_code(code):
    diagnostics = get_diagnostics(code, diagnostic_codes.load_code(code).right)
    assert [
        diagnostic.message for diagnostic in diagnostics if diagnostic.severity == "error"
    ] == []
    assert code not in [diagnostic.code for diagnostic in diagnostics]


@every_code
def test_the_message_is_the_golden_one(code):
    example = get_wrong_example(code)
    source = get_source(code, example)
    rendered = (
        "\n\n".join(
            render_diagnostic(diagnostic, source) for diagnostic in get_diagnostics(code, example)
        )
        + "\n"
    )
    file = GOLDEN / f"{code}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(rendered, encoding="utf-8")
        pytest.fail(f"{file.name} was rewritten, review it")
    assert rendered == file.read_text(encoding="utf-8")


def test_no_golden_file_is_left_over():
    assert sorted(file.stem for file in GOLDEN.iterdir()) == diagnostic_codes.list_codes()


def test_a_code_is_found_in_any_case_and_an_unknown_one_is_guessed():
    assert diagnostic_codes.load_code("e0201").code == "E0201"
    with pytest.raises(
        UnknownNameError, match=r"^no code is called `E201`; did you mean `E0201`\?$"
    ):
        diagnostic_codes.load_code("E201")
    with pytest.raises(UnknownNameError, match=r"^no code is called `nonsense`$"):
        diagnostic_codes.load_code("nonsense")
    with pytest.raises(UnknownNameError):
        diagnostic_codes.load_code("../codes/E0201")


def test_looking_up_one_code_reads_one_file(monkeypatch):
    opened = []
    read = Path.read_text
    monkeypatch.setattr(
        Path,
        "read_text",
        lambda path, **options: (opened.append(path.name), read(path, **options))[1],
    )
    diagnostic_codes.load_code("E0203")
    assert opened == ["E0203.md"]


NINE = """\
network Nine {
  input: (16, 32)
  layrs:
    Dens(5)
    Dense(5, activaton="relu")
    TransformerEncoder(num_heads=7, d_model=32)
    Dropout(1.5) * 0
    Conv2D(8)
    Output(3, activation="softmax")
  loss: "msse"
  optimizer: Adam(learning_rate=-1)
  train {
    epoch: 3
  }
}
"""


def test_all_mistakes_of_a_file_are_reported_in_one_go_each_on_its_line():
    result = check(NINE, FIXED_CATALOGUE)
    source = SourceText("nine.neural", NINE)
    places = [(one.code, source.line_and_column(one.span.start)[0]) for one in result.diagnostics]
    assert places == [
        ("E0401", 3),
        ("E0201", 4),
        ("E0202", 5),
        ("E0203", 6),
        ("E0301", 6),
        ("E0209", 7),
        ("E0212", 7),
        ("E0302", 8),
        ("E0404", 10),
        ("E0207", 11),
        ("E0501", 13),
    ]
    assert result.networks == ()


def test_shapes_are_followed_past_a_misfit():
    text = """\
network Chain {
  input: (16, 32)
  layers:
    TransformerEncoder(num_heads=2, d_model=64)
    Embedding(10, 64)
    Reshape((5, 5))
    Output(3, activation="sigmoid")
  loss: "categorical_crossentropy"
}
"""
    assert get_codes(check(text, FIXED_CATALOGUE)) == ["E0301", "E0306", "E0304", "E0407"]


def small(layer: str = "Dense(5)", shape: str = "(100, 64)", rest: str = "") -> str:
    return f"network Small {{\n  input: {shape}\n  layers:\n    {layer}\n  {rest}\n}}\n"


MUST_BE_CAUGHT = {
    "misspelt layer": ("E0201", small("Dens(5)")),
    "misspelt argument": ("E0202", small("Dense(unit=5)")),
    "misspelt section": ("E0401", small(rest='los: "mse"')),
    "misspelt loss": ("E0404", small(rest='loss: "msee"')),
    "misspelt activation": ("E0213", small('Dense(5, activation="rleu")')),
    "misspelt optimizer": ("E0405", small(rest="optimizer: Adamm()")),
    "misspelt schedule": ("E0406", small(rest="optimizer: Adam(CosineDecai(0.1, 100))")),
    "misspelt attention": ("E0214", small('TransformerEncoder(1, attention="locallized")')),
    "misspelt attention with an argument": (
        "E0214",
        small('TransformerEncoder(1, attention="locallized", window=3)'),
    ),
    "misspelt positional": ("E0215", small('TransformerEncoder(1, positional="rotarry")')),
    "num_heads not dividing d_model": (
        "E0203",
        small("TransformerEncoder(num_heads=7, d_model=64)"),
    ),
    "negative counts": ("E0207", small("Dense(-5)")),
    "zero counts": ("E0207", small("Dense(0)")),
    "fractional counts": ("E0208", small("Dense(2.5)")),
    "dropout of one": ("E0209", small("Dropout(1)")),
    "dropout of more than one": ("E0209", small("Dropout(1.5)")),
    "dropout below zero": ("E0209", small("Dropout(-0.1)")),
    "d_model ≠ incoming width": ("E0301", small("TransformerEncoder(num_heads=1, d_model=32)")),
    "duplicate argument": ("E0205", small("Dense(units=5, units=5)")),
    "missing argument": ("E0204", small("Dense()")),
    "wrong type, text for a number": ("E0206", small('Dense("5")')),
    "wrong type, number for text": ("E0206", small("Dense(5, activation=3)")),
    "wrong type, number for true or false": ("E0206", small("Dense(5, use_bias=3)")),
    "wrong type, list for a number": ("E0206", small("Dense([5])")),
    "* 0": ("E0212", small("Dense(5) * 0")),
    "* 2.5": ("E0212", small("Dense(5) * 2.5")),
    "* -1": ("E0212", small("Dense(5) * -1")),
    "Reshape that does not fit": ("E0304", small("Reshape((7, 7))")),
    "Reshape that does not divide": ("E0304", small("Reshape((-1, 7))")),
    "Conv on the wrong rank": ("E0302", small("Conv2D(8)")),
    "kernel larger than its input": ("E0303", small("Conv1D(8, kernel_size=101)")),
    "kernel larger than its input, second axis": (
        "E0303",
        small("Conv2D(8, (3, 9))", "(28, 8, 1)"),
    ),
    "softmax/label mismatch": (
        "E0407",
        small('Dense(5, activation="softmax")', rest='loss: "binary_crossentropy"'),
    ),
    "sigmoid/label mismatch": (
        "E0407",
        small('Dense(5, activation="sigmoid")', rest='loss: "sparse_categorical_crossentropy"'),
    ),
    "one unit/label mismatch": (
        "E0407",
        small("Dense(1)", rest='loss: "categorical_crossentropy"'),
    ),
    "two networks without --network": ("E0408", small() + small().replace("Small", "Large")),
    "unknown keys in train": ("E0501", small(rest="train { learning_rate: 1 }")),
    "train key twice": ("E0502", small(rest="train { seed: 1\n seed: 2 }")),
    "train key with text": ("E0206", small(rest='train { epochs: "ten" }')),
    "train key with a block": ("E0206", small(rest="train { epochs { steps: 3 } }")),
    "train key with zero": ("E0207", small(rest="train { batch_size: 0 }")),
    "train key with a fraction": ("E0208", small(rest="train { epochs: 1.5 }")),
    "train key with another word": ("E0217", small(rest='train { device: "toaster" }')),
    "input missing": ("E0403", "network Small {\n  layers:\n    Dense(5)\n}\n"),
    "layers missing": ("E0403", "network Small {\n  input: (100, 64)\n}\n"),
    "input empty": ("E0410", small(shape="()")),
    "input zero": ("E0410", small(shape="(0, 64)")),
    "input negative": ("E0410", small(shape="(100, -64)")),
    "input fractional": ("E0410", small(shape="(100, 6.4)")),
    "input nested": ("E0410", small(shape="((100, 64),)")),
    "input a call": ("E0410", small(shape="Dense(5)")),
    "section twice": ("E0402", small(rest="layers:\n    Dense(5)")),
    "train twice for the whole file": ("E0402", small() + "train { seed: 1 }\ntrain { seed: 2 }\n"),
    "unclosed round bracket": ("E0104", small("Dense(5")),
    "unclosed square bracket": ("E0104", small("Reshape([64, 100)")),
    "unclosed brace": ("E0104", small().rstrip("}\n")),
    "unclosed string": ("E0103", small('Dense(5, activation="relu)')),
    "binary junk": ("E0102", "\x7fELF\x02\x01\x01\0\0\0"),
    "10 MB of (": ("E0107", "(" * 10_000_000),
    "1 MB of (": ("E0107", "(" * 1_000_000),
    "deep nesting": ("E0106", small("Residual(" * 100 + "Dense(64)" + ")" * 100)),
    "deep nesting, never closed": ("E0106", small(shape="(" * 100)),
    "a decoder with no sequence to look at": (
        "E0302",
        small("TransformerEncoder(1)\n    GlobalAveragePooling1D()\n    TransformerDecoder(1)"),
    ),
    "a schedule by name without its numbers": (
        "E0204",
        small(rest='optimizer: Adam("CosineDecay")'),
    ),
    "a schedule by name with numbers that do not fit": (
        "E0220",
        small(rest='optimizer: Adam("PiecewiseConstantDecay", boundaries=[5], values=[1])'),
    ),
    "a number in quotes": ("E0206", small(rest='optimizer: Adam("0.001")')),
    "misspelt section before an embedding": (
        "E0401",
        small("Embedding(9, 4)", "(7,)").replace("input", "inputs", 1),
    ),
    "copies of the head": ("E0413", small("Output(5) * 2")),
}
"""Sentences of facts/language.md, split into their parts, and what probing found beside them."""


@pytest.mark.parametrize("case", MUST_BE_CAUGHT)
def test_an_error_is_reported_once_with_its_own_code(case):
    code, text = MUST_BE_CAUGHT[case]
    assert get_codes(check(text, FIXED_CATALOGUE)) == [code]


@pytest.mark.parametrize("case", [case for case in MUST_BE_CAUGHT if case.startswith("misspelt")])
def test_a_misspelt_name_is_reported_with_the_closest_one(case):
    (diagnostic,) = check(MUST_BE_CAUGHT[case][1], FIXED_CATALOGUE).diagnostics
    assert re.fullmatch(r"did you mean `\w+`\?", diagnostic.helps[0])


@pytest.mark.parametrize(
    "text",
    [
        "\x01\x02\x03\xff" * 100,
        "(" * 50_000,
        "network a {" * 1_000,
        "}" * 1_000,
        '"' * 999,
        "* * * = : , ,",
        "network",
        "network {",
        "network Small {",
        "network Small { input",
        "network Small { input:",
        "\ufeff",
        "",
    ],
)
def test_junk_gives_errors_and_no_network(text):
    result = check(text, FIXED_CATALOGUE)
    assert result.errors
    assert result.networks == ()
    for diagnostic in result.diagnostics:
        assert render_diagnostic(diagnostic, SourceText("junk.neural", text)).startswith(
            f"error[{diagnostic.code}]: "
        )


def test_an_unknown_mechanism_says_how_one_of_your_own_is_found():
    (error,) = check(small('TransformerEncoder(1, attention="top_few")'), FIXED_CATALOGUE).errors
    assert error.code == "E0214"
    assert any('[project.entry-points."neural.nn.attention"]' in text for text in error.helps)
    assert any("`pip install -e .`" in text for text in error.helps)
