"""Load a network, its weights and an input for `neural debug`; write the captured attention.

A subject is a model with one batch for it. The probe of a run is the batch of a few fixed examples
whose attention was captured during its training. A blueprint is a checked network of a program;
`build()` makes the torch module.

subject = load_subject(Path("net.neural"))                     random weights
subject = load_subject(None, run=Path("runs/…"), step=500)     trained weights, the run's own probe
capture = subject.capture_attention()                          like the result of `neural.watch`

Descriptions of weights and input say where they come from; they are printed with every result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.labels import AxisLabels
from neural.capture.tracker import preserve_model_state
from neural.capture.watch import watch
from neural.core.errors import TaskError
from neural.core.files import (
    format_missing_file,
    is_file_name,
    open_atomic,
    write_atomically,
)
from neural.data.input_checks import get_vocabulary_size
from neural.data.numpy_files import load_npy
from neural.data.text_encoding import VISIBLE_WHITESPACE, select_alphabet
from neural.language.network import Network
from neural.language.shapes import format_shape
from neural.nn.build import NetworkModule, accepts_any_length
from neural.nn.lazy_torch import torch
from neural.report.capture_page import build_capture_page_data
from neural.report.html_page import render_page
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks._text_generator import load_tokenizer
from neural.tasks.task import Task
from neural.training.load_model import load_model, load_weights
from neural.training.load_task import read_source, restore_task
from neural.training.trained_run import TrainedRunFolder
from neural.workflows.load import load

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.runs.checkpoint import Checkpoint
    from neural.tasks._text_generator import CharacterTokenizer

DEFAULT_SENTENCE = "the cat sat on the mat and the dog sat on the rug"
"""Input of networks that read text, if there is no other."""
DEFAULT_OPEN_LENGTH = 32
"""Positions of a random input if the program leaves the length open, as `input: (T, 8)`."""
Labels = list[str]


@dataclass(frozen=True)
class DebugSubject:
    """A network in evaluation mode and one batch for it."""

    name: str
    model: nn.Module
    weights_description: str
    """Where the weights come from, for people."""
    is_trained: bool
    input_description: str
    """What the input is, for people."""
    forward: Callable[[], Tensor]
    """Run the model once on the batch."""
    objective: Callable[[], Tensor]
    """Compute the scalar whose gradients are measured."""
    objective_name: str
    """What the objective is, for people."""
    tokens: Tensor | None = None
    """Token ids of the batch, (B, T); None if the inputs are not tokens."""
    source_labels: Labels | None = None
    """A label per position of the first example."""
    target_labels: Labels | None = None
    """The same for the second sequence of networks with two inputs."""

    def capture_attention(self) -> Capture:
        """Capture all attention calls of one forward pass."""
        # no warning for networks without attention: the command prints its own message
        watching = watch(self.model, tokens=self.tokens, on_warning=lambda _: None)
        with preserve_model_state(self.model), watching as capture:
            self.forward()
        return capture

    def axis_labels(self, call: CapturedCall) -> AxisLabels:
        """Labels of the queries and of the keys of an attention call."""
        if call.attention is None:  # its queries or keys were not finite
            return AxisLabels(None, None)
        is_target = self.target_labels is not None and "decoder" in call.path
        queries = self.target_labels if is_target else self.source_labels
        keys = self.source_labels if "cross" in call.path else queries
        return AxisLabels(
            _truncate_labels(queries, call.attention.queries),
            _truncate_labels(keys, call.attention.positions),  # number of key positions
        )


def load_subject(
    program: Path | None,
    *,
    run: Path | None = None,
    step: int | None = None,
    inputs: Sequence[str] = (),
    network: str | None = None,
    seed: int = 0,
) -> DebugSubject:
    """Load a program with random weights, or a run with those of the checkpoint at `step`.

    Without `step`, the best checkpoint, else the newest. `network` selects one of a program's
    networks by name; `seed` is for random weights and inputs. With both `program` and `run`, the
    program's network gets the run's weights.

    `inputs` are texts or files (.npy or text), one for each sequence that the network takes.
    Without them, a run gets its probe. Raises TaskError, RunError or ProgramError.
    """
    if run is not None:
        return _load_run_subject(Run.open(run), program, step, inputs, network)
    if program is None:
        raise TaskError("name a program, or a run with --run")
    if step is not None:
        raise TaskError("--step selects a checkpoint of a run: add --run")
    read_source(program)  # raises TaskError for a file that cannot be read
    blueprint = load(program, network=network)
    torch.manual_seed(seed)
    model = blueprint.build().eval()
    weights_description = f"random weights (seed {seed}): nothing was trained"
    model_input = create_input(blueprint.network, inputs, seed=seed)
    return _create_subject(
        blueprint.name, model, weights_description, model_input, is_trained=False
    )


def _load_run_subject(
    run: Run, program: Path | None, step: int | None, inputs: Sequence[str], network: str | None
) -> DebugSubject:
    """The part of `load_subject` for runs, with the same arguments."""
    checkpoint = (
        run.load_checkpoint(step)
        if step is not None
        else run.load_checkpoint("best") or run.load_checkpoint()
    )
    if checkpoint is None:
        raise RunError(f"{run.path} has no checkpoint yet")
    prefix = "best checkpoint, " if step is None and checkpoint.is_best else ""
    weights_description = f"weights of {run.name}, {prefix}step {checkpoint.step:,}"
    task, data_note = None, ""
    if not inputs:
        # a run whose data were moved or deleted can still be debugged, with a default input
        try:
            task = restore_task(run)
        except (TaskError, RunError) as error:
            data_note = f"; the run's own data cannot be read: {error}"
    model = (
        load_model(run, checkpoint, task)
        if program is None
        else _load_program_with_weights(program, network, run, checkpoint)
    )
    if task is not None:
        return _create_probe_subject(run, model, weights_description, task)
    if not isinstance(model, NetworkModule):
        reason = f"a run of the task `{run.settings.get('task')}` takes only its own data"
        raise TaskError(f"{reason}: leave out --input" if inputs else reason + data_note)
    tokenizer = (
        load_tokenizer(TrainedRunFolder(run), model) if model.network.takes_token_ids else None
    )
    model_input = create_input(model.network, inputs, tokenizer=tokenizer)
    model_input = model_input._replace(description=model_input.description + data_note)
    return _create_subject(run.name, model, weights_description, model_input, is_trained=True)


def _load_program_with_weights(
    program: Path, network: str | None, run: Run, checkpoint: Checkpoint
) -> NetworkModule:
    """Build the program's network with the run's weights."""
    read_source(program)
    blueprint = load(program, network=network)
    model = blueprint.build()
    try:
        load_weights(model, checkpoint)
    except RuntimeError:
        raise TaskError(
            f"the weights of {run.name} do not fit {blueprint.name} in {program}; "
            "leave the program out to use the run's own"
        ) from None
    return model.eval()


def _create_subject(
    name: str, model: Any, weights_description: str, model_input: ModelInput, *, is_trained: bool
) -> DebugSubject:
    """A network of a program, and tensors for it.

    `model(…)` returns predictions, after the output activation; `model.logits(…)` returns what a
    loss takes.
    """
    tokens = model_input.tensors[0] if model.network.takes_token_ids else None
    return DebugSubject(
        name=name,
        model=model,
        weights_description=weights_description,
        is_trained=is_trained,
        input_description=model_input.description,
        forward=lambda: model(*model_input.tensors),
        # without targets there is no loss; any scalar of all logits shows which layers get gradient
        objective=lambda: model.logits(*model_input.tensors).square().mean() / 2,
        objective_name="half the mean square of the logits (there are no targets)",
        tokens=tokens,
        source_labels=model_input.source_labels,
        target_labels=model_input.target_labels,
    )


def _create_probe_subject(
    run: Run, model: nn.Module, weights_description: str, task: Task
) -> DebugSubject:
    """A run's model, and its probe: the batch whose attention was captured in training."""
    batch = task.probe_batch()
    labels = task.position_labels(batch)
    target_labels = None
    if labels and "target" in batch:
        target_labels = [str(token) for token in batch["target"][0].tolist()]
    examples = len(next(iter(batch.values())))
    return DebugSubject(
        name=run.name,
        model=model.eval(),
        weights_description=weights_description,
        is_trained=True,
        input_description=f"the probe of the run: {examples} example{'s' * (examples != 1)} "
        "of its data, the first is shown",
        forward=lambda: task.forward(model, batch),
        objective=lambda: task.loss(model, task.batch(0))[0],
        objective_name="the loss of the first training batch",
        tokens=task.token_ids(batch),
        source_labels=labels[0] if labels else None,
        target_labels=target_labels,
    )


def _truncate_labels(labels: Labels | None, count: int) -> Labels | None:
    """The first `count` labels; None if there are fewer."""
    return labels[:count] if labels is not None and len(labels) >= count else None


class ModelInput(NamedTuple):
    """Tensors for a network's `forward`, with a description and labels of the positions."""

    tensors: tuple[Tensor, ...]
    description: str
    source_labels: Labels | None
    target_labels: Labels | None


def create_input(
    network: Network,
    inputs: Sequence[str],
    *,
    tokenizer: CharacterTokenizer | None = None,
    seed: int = 0,
) -> ModelInput:
    """Convert texts and files to the network's inputs; a default input if there are none.

    A network has two streams if it is an encoder-decoder: `forward(source, target)`. A single input
    is then both source and target. Without a tokenizer (of a run), text is encoded by an alphabet:
    a built-in character vocabulary that fits the network's vocabulary size.
    """
    count = 2 if network.is_encoder_decoder else 1
    if len(inputs) > count:
        raise TaskError(f"{network.name} takes {count} input{'s' * (count > 1)}, got {len(inputs)}")
    sequences = [
        _read_input(network, text, tokenizer, stream)
        for text, stream in zip(inputs, ("source", "target"), strict=False)
    ]
    sequences = sequences or [_create_default_input(network, tokenizer, seed)]
    description = "; ".join(sequence.description for sequence in sequences)
    if len(sequences) < count:
        sequences.append(sequences[0])
        description += ", as source and as target"
    return ModelInput(
        tuple(sequence.tensors[0] for sequence in sequences),
        description,
        sequences[0].source_labels,
        sequences[1].source_labels if count == 2 else None,
    )


def _read_input(
    network: Network, text: str, tokenizer: CharacterTokenizer | None, stream: str
) -> ModelInput:
    """Read one value of --input: the name of a file, or the text itself.

    `stream` is "source" or "target", the network's input that it is for.
    """
    path = Path(text)
    is_file = is_file_name(text)
    # a missing .npy or .txt file is an error: its name is never meant as text
    if path.suffix in (".npy", ".txt") and not is_file:
        raise TaskError(format_missing_file(text))
    if path.suffix == ".npy":
        return _load_array(network, path, stream)
    description = "the given text"
    if is_file:
        description = f"the text of {path}"
        text = path.read_text(encoding="utf-8", errors="replace")
    if not text:
        raise TaskError("--input is empty")
    return _encode_text(network, text, tokenizer, description, stream)


def _encode_text(
    network: Network,
    text: str,
    tokenizer: CharacterTokenizer | None,
    description: str,
    stream: str = "source",
) -> ModelInput:
    """Encode text as token ids, truncated to the network's length."""
    if tokenizer is not None:
        try:
            ids = tokenizer.encode(text)
        except TaskError as error:
            raise TaskError(str(error).replace("the prompt", "--input")) from None
        decode = tokenizer.create_decoder()
        labels = [_to_printable(decode(token)) for token in ids]
    else:
        alphabet = select_alphabet(network, "--input")
        encoded = alphabet.encode(text)
        if unknown := alphabet.count_unknown(text):
            description += f" ({unknown} non-ASCII characters replaced by question marks)"
        ids, labels = encoded.tolist(), [alphabet.tokens[token] for token in encoded]
    length = network.input[0]
    if isinstance(length, int):
        if len(ids) > length:
            description += f", its first {length} of {len(ids):,} positions"
        elif len(ids) < length and not accepts_any_length(network, stream):
            raise TaskError(
                f"{network.name} takes exactly {length} positions; {description} has {len(ids)}"
            )
        ids, labels = ids[:length], labels[:length]
    return ModelInput((torch.tensor([ids]),), description, labels, None)


def _load_array(network: Network, path: Path, stream: str) -> ModelInput:
    """Load a .npy file for the input `stream`: one example, or several along the first axis."""
    array = load_npy(path)
    if array.dtype.kind not in "biuf":
        raise TaskError(f"{path} holds {array.dtype}, not numbers")
    array = array[None] if array.ndim == len(network.input) else array
    # The time axis, the first of an example, is not compared if the network accepts any length.
    first_fixed_axis = int(accepts_any_length(network, stream))
    sizes = zip(network.input[first_fixed_axis:], array.shape[1 + first_fixed_axis :], strict=False)
    fits = array.ndim == len(network.input) + 1 and all(
        # a name such as "T" is a size that the program leaves open
        isinstance(expected, str) or expected == size
        for expected, size in sizes
    )
    if not fits or not array.size:
        expected_shape = format_shape(network.input, batch=True)
        raise TaskError(f"{path} is {array.shape}, but {network.name} takes {expected_shape}")
    if not np.isfinite(array).all():
        raise TaskError(f"{path} has values that are not finite")
    if not network.takes_token_ids:
        tensor = torch.tensor(array.astype(np.float32))
        return ModelInput((tensor,), f"the numbers of {path}", None, None)
    is_integer = np.issubdtype(array.dtype, np.integer) or (array == np.floor(array)).all()
    vocab_size = get_vocabulary_size(network)
    if not is_integer or array.min() < 0 or array.max() >= vocab_size:
        raise TaskError(f"{path} must hold token ids: whole numbers from 0 to {vocab_size - 1}")
    ids = array.astype(np.int64)
    labels = [str(token) for token in ids[0]]
    return ModelInput((torch.tensor(ids),), f"the ids of {path}", labels, None)


def _create_default_input(
    network: Network, tokenizer: CharacterTokenizer | None, seed: int
) -> ModelInput:
    """A sentence for networks that read text, else random ids or random numbers."""
    shape = tuple(DEFAULT_OPEN_LENGTH if isinstance(size, str) else size for size in network.input)
    if network.takes_token_ids and _can_encode_default_sentence(network, tokenizer):
        text = DEFAULT_SENTENCE
        if not accepts_any_length(network, "source"):
            text = (DEFAULT_SENTENCE + " ") * (shape[0] // len(DEFAULT_SENTENCE) + 1)
        description = f"a built-in sentence, “{DEFAULT_SENTENCE}”"
        return _encode_text(network, text, tokenizer, description)
    generator = torch.Generator().manual_seed(seed)
    if network.takes_token_ids:
        ids = torch.randint(0, get_vocabulary_size(network), (1, *shape), generator=generator)
        labels = [str(token) for token in ids[0].tolist()]
        return ModelInput((ids,), f"random ids (seed {seed})", labels, None)
    tensor = torch.randn(1, *shape, generator=generator)
    return ModelInput((tensor,), f"random numbers (seed {seed})", None, None)


def _can_encode_default_sentence(network: Network, tokenizer: CharacterTokenizer | None) -> bool:
    if tokenizer is not None:
        characters = tokenizer.characters
        return characters is None or set(characters) >= set(DEFAULT_SENTENCE)
    try:
        select_alphabet(network, "--input")
    except TaskError:
        return False
    return True


def _to_printable(label: str) -> str:
    """A character as a label: whitespace as a symbol, other unprintable characters as `·`."""
    return VISIBLE_WHITESPACE.get(label, label if label.isprintable() and label else "·")


def collect_arrays(subject: DebugSubject, capture: Capture) -> dict[str, np.ndarray]:
    """Attention weights, labels and measures, under the keys of the .npz file.

    Measures are numbers per attention head, such as the entropy of its weights.
    """
    arrays: dict[str, Any] = {
        "layers": np.array(capture.layer_names()),
        "heads": np.array([call.heads for call in capture]),
        "about": np.array([subject.name, subject.weights_description, subject.input_description]),
    }
    for index, call in enumerate(capture):
        if call.attention is None:
            continue
        arrays[f"weights/{index}"] = call.maps()
        for axis, labels in zip(("queries", "keys"), subject.axis_labels(call), strict=True):
            if labels is not None:
                arrays[f"{axis}/{index}"] = np.array(labels)
    measures = capture.measure_arrays()
    return arrays | {f"measures/{name}": values for name, values in measures.items()}


def write_arrays(subject: DebugSubject, capture: Capture, path: Path) -> None:
    """Write the arrays as a compressed .npz file, atomically."""
    with open_atomic(path, durable=False) as file:
        arrays: dict[str, Any] = collect_arrays(subject, capture)
        np.savez_compressed(file, **arrays)


def write_page(subject: DebugSubject, capture: Capture, path: Path) -> None:
    """Write the first example's attention maps, of every head, as one self-contained HTML page."""
    batch = max((call.attention.batch for call in capture if call.attention), default=1)
    if subject.source_labels is not None:
        capture.labels = [subject.source_labels] * batch
        if subject.target_labels is not None:
            capture.decoder_labels = [subject.target_labels] * batch
    data = build_capture_page_data(
        capture,
        name=subject.name,
        notes=[subject.weights_description, subject.input_description],
        settings={"weights": subject.weights_description, "input": subject.input_description},
    )
    write_atomically(path, render_page(data, f"{subject.name}: attention"), durable=False)
