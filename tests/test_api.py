"""The Python API: its public names, neural.load, neural.parse and blueprints."""

import inspect
import pydoc
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import neural
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
    assert sum(param.numel() for param in module.parameters()) == blueprint.parameters
    assert module(torch.randn(3, 13, 12)).shape == (3, 5)


def test_all_errors_of_a_program_are_in_one_exception():
    with pytest.raises(neural.ProgramError) as caught:
        neural.parse(CLASSIFIER.replace("num_heads=3", "num_heads=5").replace("Output", "Outptu"))
    assert "E0203" in str(caught.value)
    assert "did you mean `Output`?" in str(caught.value)
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["E0203", "E0201"]


def test_a_network_is_converted_to_json():
    (data,) = neural.parse(TRANSLATOR).to_json()["networks"]
    assert data["name"] == "Translator"
    assert [layer["call"] for layer in data["sections"]["layers"]][:2] == [
        "Embedding",
        "TransformerEncoder",
    ]


def test_importing_neural_does_not_import_torch():
    code = "import sys, neural; neural.parse; print('torch' in sys.modules)"
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "False\n"
    )


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = neural.lode


FUNCTIONS = [
    "ablate",
    "analyze",
    "attend",
    "attribute",
    "check",
    "evaluate",
    "export",
    "figure",
    "fit",
    "generate",
    "intervene",
    "list_runs",
    "load",
    "open_run",
    "parse",
    "patch",
    "predict",
    "record_head_outputs",
    "segment",
    "track",
    "watch",
    "widget",
    "write_report",
]


def test_completion_shows_public_names_only():
    assert {name for name in dir(neural) if not name.startswith("__")} == {
        *FUNCTIONS,
        "Blueprint",
        "ProgramError",
        "Segmenter",
        "interventions",
        "sklearn",
    }
    assert set(neural.__all__) == {*FUNCTIONS, "Blueprint", "ProgramError", "Segmenter"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_a_signature_and_a_docstring(name):
    function = getattr(neural, name)
    assert inspect.isfunction(function)
    assert function.__name__ == name
    assert inspect.signature(function).parameters
    assert len(inspect.getdoc(function).splitlines()[0]) > 20


def test_help_lists_the_functions_and_nothing_private():
    text = pydoc.plain(pydoc.render_doc(neural))
    section = text[text.index("FUNCTIONS") :]
    for name in FUNCTIONS:
        assert f"    {name}(" in section
    assert "__getattr__" not in text
    assert "TYPE_CHECKING" not in text


def test_no_function_has_the_name_of_a_folder():
    folders = {path.name for path in Path(neural.__file__).parent.iterdir() if path.is_dir()}
    assert folders & {*FUNCTIONS} == set()


def test_checking_a_program_does_not_import_torch_or_scikit_learn():
    code = (
        "import sys, neural; neural.check('network A { }'); dir(neural); "
        "print([name for name in ('torch', 'sklearn', 'pandas') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
