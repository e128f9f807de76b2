"""A program as a Python file: written, imported, run, and compared with the network it stands for.

compile_network(network).text          what `neural compile` writes
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from neural.export_inputs import Leaving, difference, leaving_of, shape_of, takes_sequences
from neural.language.network import Network
from neural.language.shapes import Shape
from neural.modules.build import Built, build
from neural.modules.compiled import plain_torch
from neural.modules.export import write_network
from neural.modules.late import torch
from neural.modules.source.symbols import CannotCompile

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = 1e-5
"""Of a `difference`."""
MAX_COMPARED_PARAMETERS = 200_000_000
"""Larger networks are run on torch's meta device, without memory: their shapes are compared."""
_numbers = count()


class NotTheNetwork(CannotCompile):
    """What was written does something else; the message says what it does."""


class CompiledNetwork(NamedTuple):
    """A Python file that was found to be the network."""

    text: str
    name: str
    """Of the network's class in it."""
    shapes: list[Shape]
    """Of the inputs at which both were run."""
    difference: float | None
    """The largest of any number that came out; None where shapes were compared alone."""


def compile_network(network: Network) -> CompiledNetwork:
    """The network as a Python file; CannotCompile where none can be written that is the same."""
    written = write_network(network)
    device = "meta" if network.cost.parameters > MAX_COMPARED_PARAMETERS else "cpu"
    try:
        with (
            torch.random.fork_rng(devices=[]),
            plain_torch(),  # the file has no compiled kernels, and loading ours takes seconds
            imported_network(written.text, written.name) as make,
        ):
            ours, theirs = _twins(network, make, device)
            shapes, largest = _compare(ours, theirs)
    except NotTheNetwork as problem:
        raise NotTheNetwork(
            f"the file written for {network.name} is not the network: it {problem}"
        ) from problem
    return CompiledNetwork(written.text, written.name, shapes, largest)


@contextmanager
def imported_network(text: str, name: str) -> Iterator[Any]:
    """The class of a written file, from a module of its own that is gone afterwards."""
    for node in ast.walk(ast.parse(text)):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [str(node.module)] if isinstance(node, ast.ImportFrom) else []
        if "neural" in [module.partition(".")[0] for module in modules]:
            raise NotTheNetwork(f"needs neural: `{ast.unparse(node)}`")
    module = ModuleType(f"neural_compiled_{next(_numbers)}")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        try:
            exec(compile(text, f"<{name}>", "exec"), module.__dict__)
        except Exception as problem:  # whatever the code of others does at import
            raise NotTheNetwork(f"fails when it is imported: {_said(problem)}") from problem
        yield getattr(module, name)
    finally:
        del sys.modules[module.__name__]


def _twins(network: Network, make: Any, device: str) -> tuple[Built, Any]:
    """The network, and the written class with the same random weights."""
    ours = build(network, device=device)
    try:
        with torch.device(device):
            theirs = make()
    except Exception as problem:
        raise NotTheNetwork(f"fails when it is built: {_said(problem)}") from problem
    if device != "meta":
        _randomize(ours)
    try:
        theirs.load_state_dict(ours.state_dict(), assign=True)
    except RuntimeError as problem:
        raise NotTheNetwork(f"takes other weights: {_said(problem)}") from problem
    return ours.eval(), theirs.eval()


def _randomize(model: Built) -> None:
    """Move all weights: those that begin at 0 or 1 would hide what is mixed up."""
    with torch.no_grad():
        for param in model.parameters():
            width = param.shape[-1] if param.ndim > 1 else 1
            param.add_(torch.randn_like(param), alpha=0.1 * width**-0.5)
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.add_(torch.rand_like(buffer), alpha=0.1)


def _compare(ours: Built, theirs: Any) -> tuple[list[Shape], float | None]:
    """Run both at several shapes, with and without masks; the largest difference."""
    network, shapes, largest = ours.network, list[Shape](), 0.0
    is_meta = next(ours.parameters(), torch.empty(0)).is_meta
    for masked in (False, True) if takes_sequences(ours) else (False,):
        try:
            leaving = leaving_of(ours, network.name, masked=masked)
        except Exception as problem:  # the code of others may fail in any way
            raise CannotCompile(
                f"{network.name} itself cannot be run: {_said(problem)}"
            ) from problem
        for trial in leaving.trials:
            inputs = leaving.batch(*trial)
            shape = shape_of(leaving, inputs)
            with torch.no_grad():
                pairs = _pairs(ours, theirs, leaving, inputs, shape)
                for name, wanted, got in pairs:
                    if got.shape != wanted.shape:
                        sizes = f"{tuple(got.shape)} at {shape}, not {tuple(wanted.shape)}"
                        raise NotTheNetwork(f"gives {name} of {sizes}")
                    apart = 0.0 if is_meta else difference(got, wanted)
                    if not apart <= TOLERANCE:
                        raise NotTheNetwork(f"differs by {apart:.2g} in its {name} at {shape}")
                    largest = max(largest, apart)
            shapes += [shape] if shape not in shapes else []
    return shapes, None if is_meta else largest


def _pairs(
    ours: Any, theirs: Any, leaving: Leaving, inputs: tuple[Tensor, ...], shape: Shape
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """What the network gives, and what the written file gives."""
    scores = ours.scores(*inputs)
    try:
        yield "predictions", ours(*inputs), theirs(*inputs)
        yield "scores", scores, theirs.scores(*inputs)
        target = _target(ours, scores)
        if target is not None:
            yield "loss", ours.loss(scores, target), theirs.loss(scores, target)
    except Exception as problem:
        where = f"at {shape}" + (" with a mask" if leaving.masked else "")
        raise NotTheNetwork(f"fails {where}: {_said(problem)}") from problem


def _target(model: Built, scores: Tensor) -> Tensor | None:
    """Something that the network's loss takes for a target: numbers, or classes."""
    if model.network.loss is None or scores.is_meta:
        return None
    classes = torch.randint(0, scores.shape[-1], scores.shape[:-1])
    for target in (torch.rand_like(scores), classes):
        try:
            model.loss(scores, target)
        except (RuntimeError, ValueError, TypeError, IndexError):
            continue
        return target
    return None


def _said(problem: Exception) -> str:
    """The kind of an error and its first line."""
    return f"{type(problem).__name__}: {next(iter(str(problem).strip().splitlines()), '')}"
