"""`neural debug`: load a network and an input; write the captured attention.

    subject, inputs = prepare(Path("net.neural"))                     random weights
    subject, inputs = prepare(None, run=Path("runs/…"), step=500)     trained, the run's own probe
    capture = subject.capture_attention(inputs, Capture())            like that of `neural.watch`

Descriptions of weights and input say where they come from; they are printed with every result.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from neural.capture.capture_result import Capture
from neural.core.errors import TaskError
from neural.core.files import open_atomic, write_atomically
from neural.interpret.inputs import Inputs
from neural.interpret.network_inputs import create_network_input, prepare_run_input
from neural.interpret.subject import Subject, load_checkpoint
from neural.language.network import Network
from neural.nn.build import build
from neural.nn.lazy_torch import torch
from neural.optim.program import check_program
from neural.report.capture_page import build_capture_page_data
from neural.report.html_page import render_page
from neural.runs.run import Run
from neural.training.load_task import read_source


def prepare(
    program: Path | None,
    *,
    run: Path | None = None,
    step: int | None = None,
    inputs: Sequence[str] = (),
    network: str | None = None,
    seed: int = 0,
) -> tuple[Subject, Inputs]:
    """A program with random weights, or a run with those of the checkpoint at `step`; an input.

    Without `step`, the best checkpoint, else the newest. `network` selects one of a program's
    networks by name; `seed` is for random weights and inputs. With both `program` and `run`, the
    program's network gets the run's weights.

    `inputs` are texts or files (.npy or text), one for each sequence that the network takes.
    Without them, a run gets its probe. Raises TaskError, RunError or ProgramError.
    """
    if run is not None:
        subject = _load_run(Run.open(run), step, program, network)
        return subject, prepare_run_input(subject, inputs)
    if program is None:
        raise TaskError("name a program, or a run with --run")
    if step is not None:
        raise TaskError("--step selects a checkpoint of a run: add --run")
    checked = _check_network(program, network)
    torch.manual_seed(seed)
    source = f"random weights (seed {seed}): nothing was trained"
    subject = Subject(checked.name, build(checked).eval(), source=source)
    return subject, create_network_input(checked, inputs, seed=seed)


def _load_run(run: Run, step: int | None, program: Path | None, name: str | None) -> Subject:
    """A run at a step; the network of a program with its weights, if there is a program."""
    if program is None:
        return load_checkpoint(run, step)
    network = _check_network(program, name)
    try:
        return load_checkpoint(run, step, model=build(network))
    except RuntimeError:
        raise TaskError(
            f"the weights of {run.name} do not fit {network.name} in {program}; "
            "leave the program out to use the run's own"
        ) from None


def _check_network(program: Path, name: str | None) -> Network:
    return check_program(read_source(program), name).networks[0]


def collect_arrays(subject: Subject, inputs: Inputs, capture: Capture) -> dict[str, np.ndarray]:
    """Attention weights, labels and measures, under the keys of the .npz file.

    Measures are numbers per attention head, such as the entropy of its weights.
    """
    arrays: dict[str, Any] = {
        "layers": np.array(capture.layer_names()),
        "heads": np.array([call.heads for call in capture]),
        "about": np.array([subject.name, subject.weights, inputs.description]),
    }
    for index, call in enumerate(capture):
        if call.attention is None:
            continue
        arrays[f"weights/{index}"] = call.maps()
        for axis, labels in zip(("queries", "keys"), capture.axis_labels(index), strict=True):
            if labels is not None:
                arrays[f"{axis}/{index}"] = np.array(labels)
    measures = capture.measure_arrays()
    return arrays | {f"measures/{name}": values for name, values in measures.items()}


def write_arrays(subject: Subject, inputs: Inputs, capture: Capture, path: Path) -> None:
    """Write the arrays as a compressed .npz file, atomically."""
    with open_atomic(path, durable=False) as file:
        arrays: dict[str, Any] = collect_arrays(subject, inputs, capture)
        np.savez_compressed(file, **arrays)


def write_page(subject: Subject, inputs: Inputs, capture: Capture, path: Path) -> None:
    """Write the first example's attention maps, of every head, as one self-contained HTML page."""
    data = build_capture_page_data(
        capture,
        name=subject.name,
        notes=[subject.weights, inputs.description],
        settings={"weights": subject.weights, "input": inputs.description},
    )
    write_atomically(path, render_page(data, f"{subject.name}: attention"), durable=False)
