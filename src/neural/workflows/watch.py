"""`neural.watch`: capture the attention of any torch model, name what its heads do, save a page.

    capture = watch(model, "The cat sat", tokenizer=tokenizer)
    capture = watch(model, ids, labels=["the", "cat", "sat"])
    capture.head_roles()          what each head does, by layer and head
    capture.to_dataframe()        a row per head: role and all measures
    capture.save("heads.html")    one page that opens offline

capture/watch.py does the capturing. This module is above `analysis`, which names the roles of
heads, and above `report`, which writes pages; `capture` may import neither of them. Both are
imported at their first use: watching alone does not need them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from neural.capture.capture_result import Capture
from neural.capture.patch_positions import attach_images, find_pixels
from neural.capture.watch import capture_calls, run_probe, warn_at_caller
from neural.capture.watch_arguments import (
    check_model,
    check_positions,
    convert_positions,
    explain_input_error,
)
from neural.core.page_section import PageSection
from neural.core.result import HTML_SUFFIXES, Result
from neural.core.table import Table

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import numpy as np
    from jaxtyping import Bool, Int
    from torch import Tensor, nn

    from neural.interpret.inputs import Inputs

    Labels = Sequence[str] | Sequence[Sequence[str]] | np.ndarray
    TokenIds = Int[Tensor, "B T"] | Sequence[Sequence[int]] | np.ndarray
    PaddingMask = Bool[Tensor, "B T"] | Sequence[Sequence[bool]] | np.ndarray


class WatchResult(Capture, Result):
    """The captured attention of one model, which can be saved as a page or turned into a table."""

    model_name = "model"
    """Name of the model's class, the title of the page."""

    def head_roles(self) -> np.ndarray:
        """What each head does on all examples, [layer, head]: "previous token", "uniform" …

        `neural explain role` defines the roles. "mixed" for heads without one of them, "too short
        to tell" for inputs of fewer than 10 positions, "" where a layer has fewer heads.
        """
        from neural.findings.capture_roles import find_capture_roles

        return find_capture_roles(self)

    def save(self, path: str | Path, *, example: int = 0, title: str | None = None) -> Path:
        """Write a page that opens offline (.html), the numbers (.json) or the heads (.csv).

        The page has every head with its labels, measures and roles; its maps are those of one
        `example` of the batch. ValueError if there is no such example.
        """
        if Path(path).suffix.lower() not in HTML_SUFFIXES:
            return super().save(path)
        from neural.report.capture_page import write_capture_page

        return write_capture_page(self, Path(path), name=title or self.model_name, example=example)

    @property
    def tables(self) -> dict[str, Table]:
        """`heads`: layer, head, path, role, all measures.

        A measure of a whole layer, such as `head_diversity`, has the same value in all of its rows.
        """
        from neural.workflows.capture_tables import build_table

        return {"heads": build_table(self)}

    def build_dict(self) -> dict[str, Any]:
        """Labels, layers, heads, roles and measures; the keys are those of `neural watch --json`.

        There are no maps: `capture[layer].maps()`.
        """
        from neural.workflows.capture_tables import build_dict

        return build_dict(self, self.model_name)

    def to_sections(self, width: int) -> list[PageSection]:
        """The heads with their roles."""
        heads = self.tables["heads"]
        rows = [(f"L{layer} h{head}", role, path) for layer, head, path, role, *_ in heads.rows]
        head = ("head", "role", "module")
        return [PageSection(title=self.model_name, text="", table_head=head, table_rows=rows)]

    def to_xarray(
        self,
        *,
        maps: bool = True,
        examples: int | None = None,
        positions: int | None = None,
    ) -> Any:
        """An xarray Dataset: measures and roles (layer, head), and the maps of every layer.

        `map_2` are the maps of layer 2 (example, head, query, key), with the labels `query_token`
        and `key_token`. Axes that differ from those of earlier layers, such as the decoder's, are
        `query_2`, `key_2` … `examples` and `positions` limit the maps to the first ones. ValueError
        if they need more than 4 GiB; TaskError if xarray is not installed.
        """
        from neural.workflows.capture_tables import build_dataset

        return build_dataset(
            self, self.model_name, maps=maps, examples=examples, positions=positions
        )


@overload
def watch(
    model: nn.Module,
    *,
    labels: Labels | None = ...,
    tokens: TokenIds | None = ...,
    tokenizer: Any = ...,
    measures: Iterable[str] | None = ...,
    real: PaddingMask | None = ...,
    softmax: bool | None = ...,
    on_warning: Callable[[str], None] = ...,
) -> AbstractContextManager[WatchResult]: ...
@overload
def watch(
    model: nn.Module,
    first_input: Any,
    /,
    *inputs: Any,
    labels: Labels | None = ...,
    tokens: TokenIds | None = ...,
    tokenizer: Any = ...,
    measures: Iterable[str] | None = ...,
    real: PaddingMask | None = ...,
    softmax: bool | None = ...,
    on_warning: Callable[[str], None] = ...,
) -> WatchResult: ...
def watch(
    model: nn.Module,
    *inputs: Any,
    labels: Labels | None = None,
    tokens: TokenIds | None = None,
    tokenizer: Any = None,
    measures: Iterable[str] | None = None,
    real: PaddingMask | None = None,
    softmax: bool | None = None,
    on_warning: Callable[[str], None] = warn_at_caller,
) -> AbstractContextManager[WatchResult] | WatchResult:
    """Capture the attention of any torch model, in a `with` block or on one batch.

        capture = neural.watch(model, "The cat sat", tokenizer=tokenizer)
        capture = neural.watch(model, ids, labels=["the", "cat", "sat"])
        capture.measure_arrays()["entropy"]
        capture.save("heads.html")

        with neural.watch(model) as capture:
            model(ids)

    `inputs`: one batch, run without gradients: `watch(model, x)` calls `model(x)`, `watch(model, x,
    y)` calls `model(x, y)`; a mapping holds named inputs. Without inputs, `watch` is a `with` block
    in which you run the model.
    `tokenizer`: makes ids and labels from texts: one text, a list of texts, a pair of texts as a
    tuple, or a list of pairs. A second text or list is read by the decoder of an encoder–decoder
    model. If the inputs are token ids, it makes their labels.
    `labels`: a text for each position, such as its token, or a list of texts for each example.
    `tokens` (B, T): token ids, for measures that need them; a tensor, an array or nested lists.
    `measures`: names of measures; all that apply if None.
    `real` (B, T): True for positions that are not padding, if the model's masks do not show it.
    `softmax`: whether a softmax over the last axis of (B, H, Q, K) or (B, Q, K) is attention: in
    modules with "attention" in their names, or in all if none has. If None, only in Hugging Face
    models.
    `on_warning`: receives a message if some attention is not measured, or if there is none; by
    default an `AttentionWarning` is emitted.
    """
    check_model(model)
    prepared: Inputs | None = None
    if tokenizer is not None and inputs:
        prepared = _prepare_inputs(model, tokenizer, inputs)
        inputs = (prepared.batch,)
        tokens = prepared.tokens if tokens is None else tokens
        real = prepared.real if real is None else real
        for note in prepared.notes:
            on_warning(f"watch: {note}")
    elif tokenizer is not None and labels is None:
        labels = _label_tokens(tokenizer, tokens)
    token_ids, is_real = convert_positions("tokens", tokens), convert_positions("real", real)
    capture = WatchResult(measures)
    capture.model_name = type(model).__name__
    block = capture_calls(
        model,
        capture,
        labels=labels,
        tokens=token_ids,
        real=is_real,
        softmax=softmax,
        on_warning=on_warning,
    )
    checked_block = _check_at_end(block, token_ids, is_real)
    if not inputs:
        return checked_block
    batch = inputs[0] if len(inputs) == 1 else inputs
    try:
        result = run_probe(model, batch, checked_block)
    except (TypeError, ValueError, IndexError, RuntimeError, AttributeError) as error:
        advice = explain_input_error(batch)
        if not advice or capture.calls:
            raise
        raise ValueError(f"watch: the model failed on this input: {error}; {advice}") from error
    if prepared is not None and labels is None:
        result.labels, result.decoder_labels = prepared.labels, prepared.decoder_labels
    if result and find_pixels(batch) is not None:
        attach_images(result, model, batch, softmax=softmax)
    return result


def _prepare_inputs(model: nn.Module, tokenizer: Any, inputs: tuple[Any, ...]) -> Inputs:
    """Texts as a batch with labels; inputs that are ids as they are, with labels.

    ValueError if the inputs are neither.
    """
    from neural.interpret.inputs import Inputs, prepare_input
    from neural.interpret.subject import Subject
    from neural.interpret.tokens import label_ids
    from neural.workflows.track import find_token_ids

    subject = Subject(type(model).__name__, model, tokenizer)
    if _has_texts(inputs[0]):
        texts, pairs, decoder_texts = _sort_texts(inputs, subject.is_encoder_decoder)
        pad_token = getattr(tokenizer, "pad_token", None)
        try:
            prepared = prepare_input(subject, texts, pairs=pairs, decoder_texts=decoder_texts)
        finally:
            if getattr(tokenizer, "pad_token", None) != pad_token:
                tokenizer.pad_token = pad_token  # the tokenizer is the caller's: stays as it was
        return replace(prepared, batch=_move_to_model(model, prepared.batch))
    batch = inputs[0] if len(inputs) == 1 else inputs
    ids = find_token_ids(batch)
    if ids is None:
        raise ValueError(
            "watch: with a tokenizer, the inputs are texts, or token ids (B, T) as a tensor"
        )
    named = batch if isinstance(batch, Mapping) else {}
    decoder_ids, mask = named.get("decoder_input_ids"), named.get("attention_mask")
    is_two_sequences = subject.is_encoder_decoder
    is_real = None
    if mask is not None and mask.shape == ids.shape and not is_two_sequences:
        is_real = mask.bool()
    return Inputs(
        batch,
        "",
        label_ids(tokenizer, ids),
        None if decoder_ids is None else label_ids(tokenizer, decoder_ids),
        tokens=None if is_two_sequences else ids,
        real=is_real,
    )


def _has_texts(value: Any) -> bool:
    """Whether this is a text, or a list or tuple of texts or of pairs of texts."""
    if isinstance(value, list | tuple):
        return not value or _has_texts(value[0])
    return isinstance(value, str)


def _sort_texts(
    inputs: tuple[Any, ...], is_encoder_decoder: bool
) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Texts, pairs of texts, and texts of the decoder; ValueError if they are something else."""
    first, *rest = inputs
    if len(rest) > is_encoder_decoder:
        raise ValueError(
            "watch: the decoder reads one text or list of texts"
            if is_encoder_decoder
            else "watch: this model reads one sequence: give a pair of texts as a tuple, and "
            "several texts as a list"
        )
    entries = [first] if isinstance(first, str) or _is_pair(first) else list(first)
    decoder_entries = rest[0] if rest else []
    decoder_texts = [decoder_entries] if isinstance(decoder_entries, str) else list(decoder_entries)
    if not entries:
        raise ValueError("watch: the list of texts is empty")
    if all(_is_pair(entry) for entry in entries):
        texts, pairs = [], [(entry[0], entry[1]) for entry in entries]
    else:
        texts, pairs = entries, []
    if not all(isinstance(text, str) for text in (*texts, *decoder_texts)):
        raise ValueError("watch: give a list of texts, or a list of pairs of texts, not both")
    if decoder_texts and len(decoder_texts) != len(entries):
        raise ValueError(
            f"watch: {len(entries)} texts for the encoder and {len(decoder_texts)} for the decoder"
        )
    return texts, pairs, decoder_texts


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(text, str) for text in value)
    )


def _move_to_model(model: nn.Module, batch: Any) -> Any:
    """The batch on the device of the model's weights."""
    device = next((param.device for param in model.parameters()), None)
    if isinstance(batch, Mapping):
        return {name: tensor.to(device) for name, tensor in batch.items()}
    return tuple(tensor.to(device) for tensor in batch)


def _label_tokens(tokenizer: Any, tokens: TokenIds | None) -> list[list[str]]:
    """Labels of the ids that a model will read in a `with` block."""
    from neural.interpret.tokens import label_ids

    ids = convert_positions("tokens", tokens)
    if ids is None:
        raise ValueError(
            "watch: in a `with` block, the tokenizer needs the ids that the model reads: tokens=ids"
        )
    return label_ids(tokenizer, ids)


@contextmanager
def _check_at_end(
    block: AbstractContextManager[WatchResult], tokens: Tensor | None, real: Tensor | None
) -> Iterator[WatchResult]:
    """The block, then a check that `tokens` and `real` fit the captured attention."""
    with block as capture:
        yield capture
    check_positions("tokens", tokens, capture)
    check_positions("real", real, capture)
