"""Inputs of networks of `neural`: texts, arrays, a default, and the probe of a run.

    create_network_input(network, ["to be or not"])       a text, or a file: text or .npy
    create_network_input(network, [])                     a sentence, random ids or random numbers
    prepare_run_input(subject, [])                        the probe of a run

The probe of a run is the batch of a few fixed examples whose attention was captured during its
training. Without a tokenizer (of a run), text is encoded by an alphabet: a built-in character
vocabulary that fits the network's vocabulary size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from neural.core.errors import TaskError
from neural.core.files import format_missing_file, is_file_name
from neural.data.input_checks import get_vocabulary_size
from neural.data.numpy_files import load_npy
from neural.data.text_encoding import VISIBLE_WHITESPACE, select_alphabet
from neural.interpret.inputs import Inputs, read_inputs
from neural.interpret.subject import Subject
from neural.interpret.tokens import label_ids
from neural.language.network import Network
from neural.language.shapes import format_shape
from neural.nn.build import NetworkModule, accepts_any_length
from neural.nn.lazy_torch import torch
from neural.runs.errors import RunError
from neural.training.load_task import restore_task

if TYPE_CHECKING:
    from neural.tasks._text_generator import CharacterTokenizer
    from neural.tasks.task import Task

DEFAULT_SENTENCE = "the cat sat on the mat and the dog sat on the rug"
"""Input of networks that read text, if there is no other."""
DEFAULT_OPEN_LENGTH = 32
"""Positions of a random input if the program leaves the length open, as `input: (T, 8)`."""


def create_probe(task: Task) -> Inputs:
    """The batch of a run's data whose attention was captured in training."""
    batch = task.probe_batch()
    labels = task.position_labels(batch)
    decoder_labels = None
    if labels and "target" in batch:
        decoder_labels = [[str(token) for token in row] for row in batch["target"].tolist()]
    examples = len(next(iter(batch.values())))
    return Inputs(
        batch,
        f"the probe of the run: {examples} example{'s' * (examples != 1)} "
        "of its data, the first is shown",
        labels or None,
        decoder_labels,
        task.token_ids(batch),
        task=task,
    )


def prepare_run_input(subject: Subject, texts: Sequence[str]) -> Inputs:
    """Texts or files as the input of a run's model; without them, the probe of the run."""
    run, model = subject.trained_run, subject.model
    assert run is not None
    data_note = ""
    if not texts:
        # a run whose data were moved or deleted can still be read, with a default input
        try:
            return create_probe(restore_task(run))
        except (TaskError, RunError) as error:
            data_note = f"; the run's own data cannot be read: {error}"
    if not isinstance(model, NetworkModule):
        reason = f"a run of the task `{run.settings.get('task')}` takes only its own data"
        raise TaskError(f"{reason}: leave out --input" if texts else reason + data_note)
    if subject.tokenizer_error:
        raise TaskError(subject.tokenizer_error)
    inputs = create_network_input(model.network, texts, tokenizer=subject.tokenizer)
    return replace(inputs, description=inputs.description + data_note)


def create_network_input(
    network: Network,
    inputs: Sequence[str],
    *,
    tokenizer: CharacterTokenizer | None = None,
    seed: int = 0,
) -> Inputs:
    """Convert texts and files to the network's inputs; a default input if there are none.

    A network has two streams if it is an encoder-decoder: `forward(source, target)`. A single input
    is then both source and target.
    """
    count = 2 if network.is_encoder_decoder else 1
    if len(inputs) > count:
        raise TaskError(f"{network.name} takes {count} input{'s' * (count > 1)}, got {len(inputs)}")
    sequences = [
        _read_input(network, text, tokenizer, stream)
        for text, stream in zip(inputs, ("source", "target"), strict=False)
    ]
    sequences = sequences or [_create_default_input(network, tokenizer, seed)]
    first, last = sequences[0], sequences[-1]
    description = "; ".join(sequence.description for sequence in sequences)
    if len(sequences) < count:
        description += ", as source and as target"
    if count == 1:
        return first
    return replace(
        first,
        batch=(*first.batch, *last.batch),
        description=description,
        decoder_labels=last.labels,
    )


def _read_input(
    network: Network, text: str, tokenizer: CharacterTokenizer | None, stream: str
) -> Inputs:
    """Read one value of --input: the name of a file, or the text itself.

    `stream` is "source" or "target", the network's input that it is for.
    """
    is_file = is_file_name(text)
    if Path(text).suffix == ".npy":
        if not is_file:  # its name is never meant as text
            raise TaskError(format_missing_file(text))
        return _load_array(network, Path(text), stream)
    description = f"the text of {Path(text)}" if is_file else "the given text"
    (text,) = read_inputs([text])
    if not text:
        raise TaskError("--input is empty")
    return _encode_text(network, text, tokenizer, description, stream)


def _encode_text(
    network: Network,
    text: str,
    tokenizer: CharacterTokenizer | None,
    description: str,
    stream: str = "source",
) -> Inputs:
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
    return _create_token_input([ids], description, [labels])


def _load_array(network: Network, path: Path, stream: str) -> Inputs:
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
        return Inputs((tensor,), f"the numbers of {path}")
    is_integer = np.issubdtype(array.dtype, np.integer) or (array == np.floor(array)).all()
    vocab_size = get_vocabulary_size(network)
    if not is_integer or array.min() < 0 or array.max() >= vocab_size:
        raise TaskError(f"{path} must hold token ids: whole numbers from 0 to {vocab_size - 1}")
    return _create_token_input(array.astype(np.int64).tolist(), f"the ids of {path}")


def _create_default_input(
    network: Network, tokenizer: CharacterTokenizer | None, seed: int
) -> Inputs:
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
        return _create_token_input(ids.tolist(), f"random ids (seed {seed})")
    tensor = torch.randn(1, *shape, generator=generator)
    return Inputs((tensor,), f"random numbers (seed {seed})")


def _create_token_input(
    rows: list[list[int]], description: str, labels: list[list[str]] | None = None
) -> Inputs:
    """Token ids (B, T), labelled by themselves without `labels`."""
    ids = torch.tensor(rows)
    labels = label_ids(None, ids) if labels is None else labels
    return Inputs((ids,), description, labels, tokens=ids)


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
