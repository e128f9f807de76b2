"""A compiled file is run and compared before anybody gets it."""

import sys

import pytest
import torch

from neural import compiling
from neural.compiling import compile_network
from neural.modules.layers.dense import Linear
from neural.modules.source.symbols import CannotCompile
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR, network


@pytest.mark.parametrize(
    "text", [CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR], ids=["classifier", "decoder", "both"]
)
def test_what_is_written_was_run_at_several_lengths(text):
    done = compile_network(network(text))
    assert done.difference is not None and done.difference <= 1e-5
    assert len(done.shapes) == 3
    if text is TRANSLATOR:
        assert all(source != target for source, target in done.shapes)


def altered(monkeypatch, old, new):
    """The writer makes a mistake."""
    write = compiling.write_network

    def write_wrong(given):
        written = write(given)
        assert old in written.text
        return written._replace(text=written.text.replace(old, new))

    monkeypatch.setattr(compiling, "write_network", write_wrong)


WRONG = {
    "numbers": (
        "return self.norm(x + ",
        "return self.norm(x - ",
        "differs by .* in its predictions at",
    ),
    "weights": (
        "self.down = nn.Linear(inner, width",
        "self.up2 = self.down = nn.Linear(inner, width",
        "takes other weights",
    ),
    "shapes": (
        "return self.head(self.scores(x, mask))",
        "return self.scores(x, mask)[:1]",
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


@pytest.mark.parametrize(("old", "new", "says"), WRONG.values(), ids=list(WRONG))
def test_a_file_that_is_not_the_network_is_refused(old, new, says, monkeypatch):
    text = """network A {
      input: (9, 8)
      layers:
        TransformerEncoder(num_heads=2, norm="post", attention="topk", k=3)
        Output(2)
      loss: "mse"
    }"""
    altered(monkeypatch, old, new)
    with pytest.raises(
        CannotCompile, match=f"the file written for A is not the network: it {says}"
    ):
        compile_network(network(text))


def test_weights_that_begin_at_zero_hide_nothing(monkeypatch):
    text = 'network A {\n input: (9, 8)\n layers:\n TransformerEncoder(num_heads=2, init="zero")\n}'
    altered(monkeypatch, "return self.down(", "return 2 * self.down(")
    with pytest.raises(CannotCompile, match="differs by"):
        compile_network(network(text))


def test_the_random_state_and_the_modules_stay_as_they_were():
    torch.manual_seed(3)
    before, modules = torch.get_rng_state(), set(sys.modules)
    compile_network(network(CLASSIFIER))
    assert torch.equal(torch.get_rng_state(), before)
    assert not [name for name in set(sys.modules) - modules if name.startswith("neural_compiled")]


def test_a_network_too_large_for_numbers_is_compared_by_its_shapes(monkeypatch):
    monkeypatch.setattr(compiling, "MAX_COMPARED_PARAMETERS", 100)
    done = compile_network(network(TRANSLATOR))
    assert done.difference is None and len(done.shapes) == 3
    altered(monkeypatch, "q @ k.transpose", "q @ k.transposed")
    block = 'TransformerEncoder(num_heads=2, attention="topk")'
    text = f"network A {{\n input: (9, 8)\n layers:\n {block}\n}}"
    with pytest.raises(CannotCompile, match="AttributeError"):
        compile_network(network(text))


def test_windows_longer_than_usual_sequences_are_run_at_longer_ones():
    done = compile_network(
        network("network A {\n input: (90, 3)\n layers:\n Conv1D(2, kernel_size=80)\n}")
    )
    assert all(length >= 80 for _, length, _ in done.shapes)


def test_a_network_that_fails_itself_is_told_apart(monkeypatch):
    def fail(*arguments):
        raise TypeError("of the network")

    monkeypatch.setattr(Linear, "forward", fail)
    text = "network A {\n input: (9, 8)\n layers:\n Dense(3)\n}"
    with pytest.raises(CannotCompile, match=r"^A itself cannot be run: TypeError: of the network"):
        compile_network(network(text))
