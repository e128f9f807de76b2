"""What `make demo` shows: every example program checked, built, run forward and backward, and exported.

The numbers printed are measured while it runs. The inputs are random: nothing is trained yet.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import click
import torch

import neural
from neural.language.network import Network

EXAMPLES = Path(__file__).parent
MISSPELT = """network Oops {
  input: (100, 64)
  layers:
    TransformerEncodr(num_heads=4, d_model=64, dff=256)
    TransformerEncoder(num_heads=7, d_model=64, dff=256)
    Output(10, activation="softmx")
  loss: "sparse_categorical_crossentropy"
}
"""


def title(text: str) -> None:
    """A heading."""
    click.echo("\n" + click.style(f"── {text} " + "─" * max(0, 76 - len(text)), fg="blue", bold=True) + "\n")


def example_inputs(network: Network, batch: int) -> list[torch.Tensor]:
    """Random inputs of the declared shape, one or two."""
    sizes = [16 if isinstance(dim, str) else dim for dim in network.input]
    ids = network.layers[0].layer.input_dim if network.ids else 0

    def one(length: int) -> torch.Tensor:
        shape = (batch, length, *sizes[1:])
        return torch.randint(1, ids, shape) if network.ids else torch.randn(shape)

    return [one(sizes[0]), one(7)] if network.two_streams else [one(sizes[0])]


def random_target(network: Network, scores: torch.Tensor) -> torch.Tensor:
    """Something to learn, of the form that the loss wants."""
    if type(network.loss).__name__ == "SparseCategoricalCrossentropy":
        return torch.randint(0, scores.shape[-1], scores.shape[:-1])
    if type(network.loss).__name__ == "CategoricalCrossentropy":
        return torch.randn_like(scores).softmax(dim=-1)
    return torch.randn_like(scores)


def exported_difference(blueprint: neural.Blueprint, module: torch.nn.Module, inputs: list[torch.Tensor]) -> float:
    """Largest difference between the module and the exported file with the same weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "exported.py"
        path.write_text(blueprint.to_pytorch(), encoding="utf-8")
        spec = importlib.util.spec_from_file_location("exported", path)
        assert spec is not None and spec.loader is not None
        exported = importlib.util.module_from_spec(spec)
        sys.modules["exported"] = exported
        spec.loader.exec_module(exported)
    twin = getattr(exported, blueprint.name)().eval()
    twin.load_state_dict(module.state_dict())
    with torch.no_grad():
        return float((twin(*inputs) - module.eval()(*inputs)).abs().max())


def show(path: Path) -> None:
    """Check, build and run one program."""
    title(f"neural check examples/{path.name}")
    blueprint = neural.load(path)
    click.echo(blueprint.summary() + "\n")
    torch.manual_seed(0)
    module = blueprint.build().train()
    learned = sum(parameter.numel() for parameter in module.parameters())
    inputs = example_inputs(blueprint.network, batch=4)
    started = time.perf_counter()
    scores = module.scores(*inputs)
    loss = module.loss(scores, random_target(blueprint.network, scores))
    loss.backward()
    milliseconds = 1000 * (time.perf_counter() - started)
    same = "as predicted" if learned == blueprint.parameters else f"but {blueprint.parameters:,} were predicted"
    click.echo(f"  built     {learned:,} parameters, {same}")
    click.echo(f"  ran       {[tuple(one.shape) for one in inputs]} → {tuple(scores.shape)}, loss {loss.item():.3f}")
    click.echo(f"            forward and backward in {milliseconds:.0f} ms")
    click.echo(f"  exported  largest difference {exported_difference(blueprint, module, inputs):.1e}")


def main() -> None:
    """Mistakes first, then the examples."""
    title("A program with three mistakes: all are found at once")
    try:
        neural.parse(MISSPELT, name="oops.neural")
    except neural.ProgramError as error:
        click.echo(str(error))
    for path in sorted(EXAMPLES.glob("*.neural")):
        show(path)
    click.echo("\nNext: neural layers · neural explain E0203 · neural compile examples/tiny.neural")


if __name__ == "__main__":
    main()
