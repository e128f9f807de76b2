"""Compile a program to a standalone Python file, and verify it by running it.

compile_network(network).text          the file that `neural compile` writes

`logits` are what the loss takes; `forward` returns predictions. A bundle (export_bundle.py) is a
network with its inputs and the batch sizes to compare it at. Plugins are installed packages that
add layers or attention mechanisms.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.language.network import Network
from neural.language.shapes import Shape
from neural.nn.build import NetworkModule, build
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.lazy_torch import torch
from neural.nn.source_export.standalone_file import write_network
from neural.nn.source_export.symbols import SourceExportError
from neural.workflows.export_bundle import (
    ExportBundle,
    create_bundle,
    input_shape,
    max_difference,
    takes_sequences,
)

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = 1e-5
"""Upper limit of `CompiledNetwork.max_difference`."""
MAX_COMPARED_PARAMETERS = 200_000_000
"""Larger networks run on torch's meta device, without memory: only shapes are compared."""
_module_numbers = count()  # for unique names of temporary modules


class CompileMismatchError(SourceExportError):
    """The written file differs from the network.

    Inside this module the message starts with a verb ("differs by 0.1 in its loss");
    `compile_network` puts "the file … does not match the network: it" before it.
    """


class CompiledNetwork(NamedTuple):
    """A Python file that was verified to equal the network."""

    text: str
    name: str
    """Name of the network's class in the file."""
    shapes: list[Shape]
    """Input shapes that both were run at."""
    max_difference: float | None
    """Largest difference of predictions, logits and loss; None if only shapes were compared."""


def compile_network(network: Network) -> CompiledNetwork:
    """Write the network as a Python file. SourceExportError if the file would differ from it."""
    source = write_network(network)
    device = "meta" if network.cost.parameters > MAX_COMPARED_PARAMETERS else "cpu"
    try:
        with (
            torch.random.fork_rng(devices=[]),
            no_kernels(),  # the file has no compiled kernels, and loading ours takes seconds
            import_network(source.text, source.name) as network_class,
        ):
            model, compiled = _build_pair(network, network_class, device)
            shapes, largest = _compare(model, compiled)
    except CompileMismatchError as error:
        raise CompileMismatchError(
            f"the file written for {network.name} does not match the network: it {error}"
        ) from error
    return CompiledNetwork(source.text, source.name, shapes, largest)


@contextmanager
def import_network(text: str, name: str) -> Iterator[Any]:
    """Import the class of a written file from a temporary module."""
    for node in ast.walk(ast.parse(text)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        if "neural" in [module.partition(".")[0] for module in modules]:
            raise CompileMismatchError(f"needs neural: `{ast.unparse(node)}`")
    module = ModuleType(f"neural_compiled_{next(_module_numbers)}")
    sys.modules[module.__name__] = module  # dataclasses look up their module there
    try:
        try:
            # our own output, written from installed code: as trusted as the package itself
            exec(compile(text, f"<{name}>", "exec"), module.__dict__)
        except Exception as error:  # copied code of plugins can raise any error
            raise CompileMismatchError(
                f"fails when it is imported: {_describe_error(error)}"
            ) from error
        yield getattr(module, name)
    finally:
        del sys.modules[module.__name__]


def _build_pair(network: Network, network_class: Any, device: str) -> tuple[NetworkModule, Any]:
    """Build the network and the written class, with the same random weights."""
    model = build(network, device=device)
    try:
        with torch.device(device):
            compiled = network_class()
    except Exception as error:
        raise CompileMismatchError(f"fails when it is built: {_describe_error(error)}") from error
    if device != "meta":
        _randomize(model)
    try:
        compiled.load_state_dict(model.state_dict(), assign=True)
    except RuntimeError as error:
        raise CompileMismatchError(f"takes other weights: {_describe_error(error)}") from error
    return model.eval(), compiled.eval()


def _randomize(model: NetworkModule) -> None:
    """Add noise to all weights: initial values of 0 or 1 would hide errors of the file."""
    with torch.no_grad():
        for param in model.parameters():
            width = param.shape[-1] if param.ndim > 1 else 1
            param.add_(torch.randn_like(param), alpha=0.1 * width**-0.5)
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.add_(torch.rand_like(buffer), alpha=0.1)


def _compare(model: NetworkModule, compiled: Any) -> tuple[list[Shape], float | None]:
    """Run both models at several shapes, with and without masks.

    Returns the input shapes and the largest difference; None on the meta device.
    """
    network, shapes, largest = model.network, list[Shape](), 0.0
    is_meta = next(model.parameters(), torch.empty(0)).is_meta
    for with_mask in (False, True) if takes_sequences(model) else (False,):
        try:
            bundle = create_bundle(model, network.name, with_mask=with_mask)
        except Exception as error:  # mechanisms of plugins can raise any error
            raise SourceExportError(
                f"{network.name} itself cannot be run: {_describe_error(error)}"
            ) from error
        for sizes in bundle.trial_sizes:
            inputs = bundle.create_batch(*sizes)
            shape = input_shape(bundle, inputs)
            with torch.no_grad():
                pairs = _output_pairs(model, compiled, bundle, inputs, shape)
                for name, expected, output in pairs:
                    if output.shape != expected.shape:
                        raise CompileMismatchError(
                            f"gives {name} of {tuple(output.shape)} at {shape}, "
                            f"not {tuple(expected.shape)}"
                        )
                    difference = 0.0 if is_meta else max_difference(output, expected)
                    if not difference <= TOLERANCE:  # also true for NaN
                        raise CompileMismatchError(
                            f"differs by {difference:.2g} in its {name} at {shape}"
                        )
                    largest = max(largest, difference)
            shapes += [shape] if shape not in shapes else []
    return shapes, None if is_meta else largest


def _output_pairs(
    model: Any, compiled: Any, bundle: ExportBundle, inputs: tuple[Tensor, ...], shape: Shape
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield (name, output of the network, output of the written file). `shape` is for messages."""
    logits = model.logits(*inputs)
    try:
        yield "predictions", model(*inputs), compiled(*inputs)
        yield "logits", logits, compiled.logits(*inputs)
        target = _create_target(model, logits)
        if target is not None:
            yield "loss", model.loss(logits, target), compiled.loss(logits, target)
    except Exception as error:
        location = f"at {shape}" + (" with a mask" if bundle.has_mask else "")
        raise CompileMismatchError(f"fails {location}: {_describe_error(error)}") from error


def _create_target(model: NetworkModule, logits: Tensor) -> Tensor | None:
    """A random target that the network's loss accepts: numbers, else classes.

    None without a loss, and on the meta device.
    """
    if model.network.loss is None or logits.is_meta:
        return None
    classes = torch.randint(0, logits.shape[-1], logits.shape[:-1])
    for target in (torch.rand_like(logits), classes):
        try:
            model.loss(logits, target)
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue
        return target
    return None


def _describe_error(error: Exception) -> str:
    """The class of an error and the first line of its message."""
    return f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"
