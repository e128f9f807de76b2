"""Diagnostics in an editor are those of `neural check`."""

from pathlib import Path

import pytest

from neural.language import diagnostic_codes
from neural.language.check import check
from neural.lsp.document import ProgramDocument
from neural.optim.catalogue import CATALOGUE
from tests.lsp.marked_text import in_layers
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.neural"))
WRONG = [
    code
    for code in diagnostic_codes.list_codes()
    if not code.startswith("E08") and diagnostic_codes.load_code(code).wrong
]
every_code = pytest.mark.parametrize("code", WRONG)


def open_document(text):
    return ProgramDocument(text, CATALOGUE)


@every_code
def test_diagnostics_are_those_of_the_checker(code):
    example = diagnostic_codes.load_code(code).wrong
    expected = check(example.text, CATALOGUE, network=example.network).diagnostics
    if code not in ("E0408", "E0409"):  # concern the command line only
        assert open_document(example.text).diagnostics == expected


@every_code
def test_a_fix_removes_its_diagnostic(code):
    text = diagnostic_codes.load_code(code).wrong.text
    for diagnostic in open_document(text).diagnostics:
        if diagnostic.fix is not None:
            fixed_text = (
                text[: diagnostic.fix.span.start]
                + diagnostic.fix.text
                + text[diagnostic.fix.span.end :]
            )
            remaining = [
                (other.code, other.message) for other in open_document(fixed_text).diagnostics
            ]
            assert (diagnostic.code, diagnostic.message) not in remaining, fixed_text


MISSPELT = {
    "Dnse(3)": "Dense",
    "Dense(3, activaton=1)": "activation",
    'Dense(3, activation="rleu")': '"relu"',
    "Dense(3, activation='rleu')": '"relu"',
    'TransformerEncoder(num_heads=3, attention="localised")': '"localized"',
    'TransformerEncoder(num_heads=3, positional="rotery")': '"rotary"',
    "Dropout(20)": "0.2",
    'Dense("3")': "3",
    'Dense(3, bias="False")': "false",
    "Dense(3, activation=relu)": '"relu"',
    "Flatten": "Flatten()",
    "TransformerEncoder(num_heads=3, ff_dim=7)": "dff",
    'Dense(3)\n  loss: "msee"': '"mse"',
    "Dense(3)\n  optimiser: Adam()": "optimizer",
    "Dense(3)\n  optimizer: Adm()": "Adam",
    "Dense(3)\n  optimizer: Adam(learning_rate=CosinDecay(1, 2))": "CosineDecay",
    "Dense(3)\n  train {\n    epoch: 3\n  }": "epochs",
    'Dense(3)\n  train {\n    device: "gpuu"\n  }': None,
}


@pytest.mark.parametrize("text", MISSPELT)
def test_a_misspelt_word_has_a_fix(text):
    document, _ = in_layers(f"{text}\n}}")
    fixes = [
        diagnostic.fix.text for diagnostic in document.diagnostics if diagnostic.fix is not None
    ]
    assert fixes == ([MISSPELT[text]] if MISSPELT[text] else [])


def test_all_networks_of_a_file_are_checked():
    both = open_document(CLASSIFIER + LANGUAGE_MODEL.replace("19", "0", 1))
    assert [diagnostic.code for diagnostic in both.diagnostics] == ["E0207"]
    assert [
        diagnostic.code for diagnostic in open_document(CLASSIFIER + TRANSLATOR).diagnostics
    ] == ["N0702"]


def test_formatting_is_that_of_the_command_and_keeps_invalid_text():
    assert open_document("network A{input:(3,)\nlayers:\nDense( 3 )}").format_text() == (
        "network A {\n  input: (3,)\n  layers:\n    Dense(3)\n}\n"
    )
    assert open_document("network A{input:(3,)\nlayers:\nDense( 3 }").format_text() is None


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_formatted(path):
    assert open_document(path.read_text()).format_text() == path.read_text()
