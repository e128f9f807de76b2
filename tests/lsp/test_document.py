"""What is said of a text in an editor: what `neural check` says."""

from pathlib import Path

import pytest

from neural.language import codes
from neural.language.check import check
from neural.lsp.document import Document
from neural.standard import CATALOGUE
from tests.lsp.written import in_layers
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.neural"))
WRONG = [code for code in codes.names() if not code.startswith("E08") and codes.get(code).wrong]
every_code = pytest.mark.parametrize("code", WRONG)


def document(text):
    return Document(text, CATALOGUE)


@every_code
def test_every_mistake_is_said_as_the_checker_says_it(code):
    example = codes.get(code).wrong
    said = check(example.text, CATALOGUE, network=example.network).diagnostics
    if code not in ("E0408", "E0409"):   # questions to the command line
        assert document(example.text).diagnostics == said


@every_code
def test_what_mends_a_mistake_mends_it(code):
    text = codes.get(code).wrong.text
    for one in document(text).diagnostics:
        if one.fix is not None:
            mended = text[: one.fix.where.start] + one.fix.text + text[one.fix.where.end :]
            again = [(other.code, other.message) for other in document(mended).diagnostics]
            assert (one.code, one.message) not in again, mended


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
def test_what_was_probably_meant_can_be_put_in_its_place(text):
    written, _ = in_layers(f"{text}\n}}")
    found = [one.fix.text for one in written.diagnostics if one.fix is not None]
    assert found == ([MISSPELT[text]] if MISSPELT[text] else [])


def test_of_several_networks_each_is_checked_and_nobody_asks_which():
    both = document(CLASSIFIER + LANGUAGE_MODEL.replace("19", "0", 1))
    assert [one.code for one in both.diagnostics] == ["E0207"]
    assert [one.code for one in document(CLASSIFIER + TRANSLATOR).diagnostics] == ["N0702"]


def test_formatting_is_that_of_the_command_and_leaves_alone_what_cannot_be_read():
    assert document("network A{input:(3,)\nlayers:\nDense( 3 )}").formatted() == (
        "network A {\n  input: (3,)\n  layers:\n    Dense(3)\n}\n"
    )
    assert document("network A{input:(3,)\nlayers:\nDense( 3 }").formatted() is None


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_laid_out_already(path):
    assert document(path.read_text()).formatted() == path.read_text()
