"""What Python code sees: neural.load, neural.parse, blueprints."""

import subprocess
import sys

import pytest
import torch

import neural
from neural.language.interchange import from_json
from neural.language.printer import print_program
from tests.programs import CLASSIFIER, TRANSLATOR


def test_a_loaded_network_has_shapes_a_summary_and_builds(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text(CLASSIFIER)
    blueprint = neural.load(path)
    assert blueprint.name == "Classifier"
    assert blueprint.shapes["output"] == (5,)
    assert blueprint.shapes["transformer_encoder"] == (13, 12)
    assert "transformer" in blueprint.summary().lower()
    module = blueprint.build()
    assert isinstance(module, torch.nn.Module)
    assert sum(one.numel() for one in module.parameters()) == blueprint.parameters
    assert module(torch.randn(3, 13, 12)).shape == (3, 5)


def test_mistakes_are_one_exception_that_shows_them_all():
    with pytest.raises(neural.ProgramError) as caught:
        neural.parse(CLASSIFIER.replace("num_heads=3", "num_heads=5").replace("Output", "Outptu"))
    assert "E0203" in str(caught.value)
    assert "did you mean `Output`?" in str(caught.value)
    assert [one.code for one in caught.value.diagnostics] == ["E0203", "E0201"]


def test_a_program_survives_json():
    first = neural.parse(TRANSLATOR)
    again = neural.parse(print_program(from_json(first.to_json())))
    assert again.summary() == first.summary()


def test_importing_neural_does_not_import_torch():
    code = "import sys, neural; neural.parse; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = neural.lode
