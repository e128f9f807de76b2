"""A compiled file is run and compared with the network before it is returned."""

import sys

import pytest
import torch

from neural.nn.layers.dense import DenseModule
from neural.nn.source_export.symbols import SourceExportError
from neural.workflows import compile as compile_workflow
from neural.workflows.compile import compile_network
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, load_network


@pytest.mark.parametrize(
    "text", [CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR], ids=["classifier", "decoder", "both"]
)
def test_a_compiled_file_is_compared_at_several_lengths(text):
    compiled = compile_network(load_network(text))
    assert compiled.max_difference is not None and compiled.max_difference <= 1e-5
    assert len(compiled.shapes) == 3
    if text is TRANSLATOR:
        assert all(source != target for source, target in compiled.shapes)


def plant_error(monkeypatch, old, new):
    """Replace source code in the written file."""
    write = compile_workflow.write_network

    def write_with_error(network):
        source = write(network)
        assert old in source.text
        return source._replace(text=source.text.replace(old, new))

    monkeypatch.setattr(compile_workflow, "write_network", write_with_error)


ERRORS = {
    "numbers": (
        "return apply_norm(self.norm, x + ",
        "return apply_norm(self.norm, x - ",
        "differs by .* in its predictions at",
    ),
    "weights": (
        "self.down = nn.Linear(inner_width, width",
        "self.up2 = self.down = nn.Linear(inner_width, width",
        "takes other weights",
    ),
    "shapes": (
        "return self.output_activation(self.logits(x, mask))",
        "return self.logits(x, mask)[:1]",
        "gives predictions of",
    ),
    "errors": ("q @ k.transpose", "q @ k.transposed", "fails at .*: AttributeError"),
    "imports": (
        "import torch\n",
        "import torch\nimport no_such_module\n",
        "fails when it is imported: Module",
    ),
    "package": (
        "import torch\n",
        "import torch\nimport neural.core\n",
        "needs neural: `import neural.core`",
    ),
    "loss": (
        "return functional.mse_loss(",
        "return 2 * functional.mse_loss(",
        "differs by .* in its loss",
    ),
    "masks": ("mask = as_bool(mask)", "mask = None", "differs by .* in its predictions"),
}


@pytest.mark.parametrize(("old", "new", "message"), ERRORS.values(), ids=list(ERRORS))
def test_a_file_that_differs_from_the_network_is_refused(old, new, message, monkeypatch):
    text = """network A {
      input: (9, 8)
      layers:
        TransformerEncoder(num_heads=2, norm="post", attention="topk", k=3)
        Output(2)
      loss: "mse"
    }"""
    plant_error(monkeypatch, old, new)
    with pytest.raises(
        SourceExportError, match=f"the file written for A does not match the network: it {message}"
    ):
        compile_network(load_network(text))


def test_weights_initialized_with_zero_do_not_hide_errors(monkeypatch):
    text = 'network A {\n input: (9, 8)\n layers:\n TransformerEncoder(num_heads=2, init="zero")\n}'
    plant_error(monkeypatch, "return self.down(", "return 2 * self.down(")
    with pytest.raises(SourceExportError, match="differs by"):
        compile_network(load_network(text))


def test_the_random_state_and_sys_modules_are_unchanged():
    torch.manual_seed(3)
    before, modules = torch.get_rng_state(), set(sys.modules)
    compile_network(load_network(CLASSIFIER))
    assert torch.equal(torch.get_rng_state(), before)
    assert not [name for name in set(sys.modules) - modules if name.startswith("neural_compiled")]


def test_of_a_very_large_network_only_shapes_are_compared(monkeypatch):
    monkeypatch.setattr(compile_workflow, "MAX_COMPARED_PARAMETERS", 100)
    compiled = compile_network(load_network(TRANSLATOR))
    assert compiled.max_difference is None and len(compiled.shapes) == 3
    plant_error(monkeypatch, "q @ k.transpose", "q @ k.transposed")
    block = 'TransformerEncoder(num_heads=2, attention="topk")'
    text = f"network A {{\n input: (9, 8)\n layers:\n {block}\n}}"
    with pytest.raises(SourceExportError, match="AttributeError"):
        compile_network(load_network(text))


def test_windows_longer_than_the_trial_length_are_run_on_longer_sequences():
    compiled = compile_network(
        load_network("network A {\n input: (90, 3)\n layers:\n Conv1D(2, kernel_size=80)\n}")
    )
    assert all(length >= 80 for _, length, _ in compiled.shapes)


def test_an_error_of_the_network_itself_is_reported_as_such(monkeypatch):
    def fail(*arguments):
        raise TypeError("of the network")

    monkeypatch.setattr(DenseModule, "forward", fail)
    text = "network A {\n input: (9, 8)\n layers:\n Dense(3)\n}"
    with pytest.raises(
        SourceExportError, match=r"^A itself cannot be run: TypeError: of the network"
    ):
        compile_network(load_network(text))
