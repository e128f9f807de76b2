"""Compare `neural.watch` with the attention weights that Hugging Face models return.

    python -m tests.capture.watch_table                            all models, as text
    python -m tests.capture.watch_table --models gpt_oss,llama     some models
    python -m tests.capture.watch_table --write docs/watched-models.md   replace the table

Every model of hf_models.py × eager attention, SDPA, FlexAttention and an opaque operator with the
semantics of flash attention (opaque_attention.py) × no, left and right padding × dynamic and static
cache (where the model generates): a pass over the text, then one token, then two tokens. Some
models also read two documents, packed into one sequence.

The reference does not depend on what is checked. It is one eager pass over the whole text, in
double precision, without a cache, with `output_attentions=True`; each attention module's weights
are taken from its own output. The measures are recomputed below in NumPy, from these weights and
the true position of every query and key. A cached pass must give the rows of its tokens. Where a
model computes something else with a cache or another implementation, the weights are those of the
same pass: the opaque operator stores its own, and FlexAttention gives them with the identity as
values.

A case passes if every attention module that ran was measured, with the right number of calls and
heads, and all maps and measures agree to 1e-5; or if a message that names the module refuses it.
Outputs must be bit-identical with and without the watch.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from neural.capture.capture_result import Capture, CapturedCall
from neural.capture.watch import NoAttentionError, watch
from tests.capture.hf_models import MODELS, VOCABULARY, TinyModel
from tests.capture.opaque_attention import (
    FLEX_PROBE,
    OPAQUE,
    OPAQUE_DENSE,
    collect_opaque_weights,
    register_opaque_functions,
)

TOLERANCE = 1e-5
IMPLEMENTATIONS = ("eager", "sdpa", "flex_attention", OPAQUE)
"""Columns "by" of the table: `attn_implementation` of transformers."""
OPAQUE_IMPLEMENTATIONS = (OPAQUE, OPAQUE_DENSE)
PACKED_MODELS = (
    "llama",
    "mistral",
    "mixtral",
    "qwen2",
    "qwen3",
    "gemma2",
    "gemma3",
    "phi3",
    "cohere2",
    "olmo2",
    "starcoder2",
    "deepseek_v3",
    "gpt_oss",
)
"""Models that also read two documents, packed into one sequence."""
UNSHARED_SINKS = ("granite_swa",)
"""Models that return weights before their sink takes its share; the opaque operator includes it."""
PADDINGS = ("no", "left", "right", "packed")
FIRST_DOCUMENT = 4
"""Tokens of the first of two packed documents."""
UNSUPPORTED_ERRORS = (ValueError, RuntimeError, KeyError, AttributeError, TypeError, IndexError)
"""Errors of models that do not support an implementation, a static cache, or a mask."""
TARGET_LENGTH = 5
"""Tokens of the target sequence, before any is generated."""
PADDED_TOKENS = 3
"""Padding tokens in the second example."""
MAX_CACHE_LENGTH = 24
"""Slots of a static cache: more than the number of tokens."""
BEGIN, END = "<!-- watch table: begin -->", "<!-- watch table: end -->"
MEASURES = (
    "entropy",
    "relative_entropy",
    "effective_keys",
    "largest_weight",
    "span",
    "span90",
    "expected_position",
    "first_key_mass",
    "previous_token_mass",
    "diagonal_mass",
    "extra_key_mass",
)
RETURN_SCORES = {"SqueezeBertSelfAttention", "ProphetNetAttention"}
"""Modules that return scores before the softmax instead of weights."""
NEED_QUERY_POSITIONS = {"span", "span90", "previous_token_mass", "diagonal_mass"}
NEED_KEY_POSITIONS = NEED_QUERY_POSITIONS | {"expected_position", "first_key_mass"}


class Mismatch(AssertionError):
    """A measured value differs from the reference."""


@dataclass(frozen=True)
class Case:
    """One cell of the table."""

    model: TinyModel
    implementation: str
    padding: str
    cache: str | None

    def __str__(self) -> str:
        parts = (
            self.model.name,
            self.implementation,
            self.padding if self.padding == "packed" else f"{self.padding} padding",
            self.cache or "no cache",
        )
        return ", ".join(parts)


@dataclass
class Outcome:
    """Result of a case."""

    error: float = 0.0
    calls: int = 0
    unplaced: set[str] = field(default_factory=set)
    """Calls whose queries have no known position: their measures of positions are left out."""
    refusals: dict[str, str] = field(default_factory=dict)
    unsupported: str = ""
    """Why the model itself does not support the case."""
    pass_references: dict[int, Reference] | None = None
    """References per pass, if a cache changes what the model computes."""

    @property
    def text(self) -> str:
        """Text of a table cell."""
        if self.unsupported:
            return "–"
        if not self.calls:
            return "refused"
        error = f"{self.error:.0e}".replace("e-0", "e-").replace("0e+00", "0")
        return f"{error}*" if self.pass_references else error


def list_cases(names: list[str]) -> Iterator[Case]:
    """All cases of some models."""
    for name in names:
        model = MODELS[name]
        paddings = ("no", "left", "right") if model.pads and (model.inputs is None) else ("no",)
        caches = ("dynamic", "static") if model.caches else (None,)
        for implementation in IMPLEMENTATIONS:
            for padding, cache in itertools.product(paddings, caches):
                yield Case(model, implementation, padding, cache)
            if name in PACKED_MODELS:
                yield Case(model, implementation, "packed", None)


# the reference


@dataclass
class Reference:
    """The weights that every attention module returned, in the order of its runs."""

    weights: dict[str, list[np.ndarray]] = field(default_factory=dict)
    is_averaged: set[str] = field(default_factory=set)
    """Modules that return the mean of their heads."""
    output: torch.Tensor | None = None
    is_finite: bool = True
    is_of_pass: bool = False
    """Whether it is of a cached pass, and not of one pass over the complete text."""


@contextlib.contextmanager
def collect_weights(model: nn.Module) -> Iterator[Reference]:
    """Collect the weights that attention modules return inside the block."""
    reference, handles = Reference(), []

    def store_weights(path: str, module: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if isinstance(module, nn.MultiheadAttention):  # by default it averages its heads
            output = type(module).forward(
                module, *args, **{**kwargs, "average_attn_weights": False}
            )
        tensors = list(_tensors(output))[1:]
        if type(module).__name__ in RETURN_SCORES:
            tensors = [item.softmax(dim=-1) for item in tensors]
        weights = [item for item in tensors if _are_weights(item)]
        if weights:
            is_last = type(module).__name__ == "XLNetRelativeAttention"  # it returns (Q, K, B, H)
            first = weights[0].permute(2, 3, 0, 1) if is_last else weights[0]
            reference.weights.setdefault(path, []).append(first.detach().double().numpy())
        if type(module).__name__ == "WavLMAttention":
            reference.is_averaged.add(path)

    for path, module in model.named_modules():
        name = f"{path.rpartition('.')[2]} {type(module).__name__}"
        is_named = re.search("attention|attn|temporal_block", name, re.IGNORECASE)
        if is_named and not path.endswith("_hc"):  # a hyper-connection beside attention
            handles.append(
                module.register_forward_hook(partial(store_weights, path), with_kwargs=True)
            )
    try:
        yield reference
    finally:
        for handle in handles:
            handle.remove()
    # modules that pass on the weights of a module inside them
    inner = [
        path
        for path in reference.weights
        if any(other.startswith(f"{path}.") for other in reference.weights)
    ]
    for path in inner:
        del reference.weights[path]


def _tensors(output: Any) -> Iterator[torch.Tensor]:
    if torch.is_tensor(output):
        yield output
    elif isinstance(output, dict | tuple | list):
        for item in output.values() if isinstance(output, dict) else output:
            yield from _tensors(item)


def _are_weights(item: torch.Tensor) -> bool:
    """Whether rows are shares that sum to at most 1: a sink may take the rest."""
    if item.ndim < 4 or not item.is_floating_point() or not (item >= 0).all() or not item.any():
        return False
    return any(bool((item.sum(dim=dim) < 1 + 1e-4).all()) for dim in (-1, 1))


@contextlib.contextmanager
def in_double_precision() -> Iterator[None]:
    """Keep softmax in double precision: models ask for 32 bits, where add_mask rows become NaN."""
    original = nn.functional.softmax

    def softmax(scores: torch.Tensor, dim: int, *args: Any, **kwargs: Any) -> torch.Tensor:
        if scores.dtype == torch.float64:
            return original(scores, dim=dim)
        return original(scores, dim, *args, **kwargs)

    nn.functional.softmax = softmax
    try:
        yield
    finally:
        nn.functional.softmax = original


def compute_measures(
    weights: np.ndarray,
    counted: np.ndarray,
    queries: np.ndarray | None,
    extra: bool,
    starts: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Recompute the measures of every head, (H,), from weights (B, H, Q, K).

    `counted` (B, Q): queries that are not padding. `queries` (Q,): their positions; those of the
    keys are 0 … K − 1. `extra`: the rest of a row to 1 is the weight of a learned sink. `starts`
    (Q,): first key of the document of each query, if several are packed.
    """
    sums: dict[str, list[list[float]]] = {
        name: [[] for _ in range(weights.shape[1])] for name in MEASURES
    }
    visible = weights > 0
    first_keys = [
        np.flatnonzero(visible[b][:, counted[b]].any(axis=(0, 1)))[:1] for b in range(len(weights))
    ]
    for b, h, q in itertools.product(*map(range, weights.shape[:3])):
        row = weights[b, h, q]
        seen_keys = np.flatnonzero(row > 0)
        if not counted[b, q] or not len(seen_keys):
            continue
        sink = max(0.0, 1 - row.sum()) if extra else 0.0
        nonzero = np.append(row[seen_keys], sink) if extra else row[seen_keys]
        entropy = -(nonzero * np.log(nonzero)).sum()
        values = {
            "entropy": entropy,
            "effective_keys": np.exp(entropy),
            "largest_weight": nonzero.max(),
            "expected_position": (row * np.arange(len(row))).sum() / row.sum(),
        }
        if len(nonzero) > 1:
            values["relative_entropy"] = entropy / np.log(len(nonzero))
            values["first_key_mass"] = row[first_keys[b][0] if starts is None else starts[q]]
        if extra:
            values["extra_key_mass"] = sink
        if queries is not None:
            position = queries[q]
            distances = np.abs(np.arange(len(row)) - position)
            values["span"] = (row * distances).sum()
            inside = [
                distance
                for distance in range(len(row))
                if sink + row[distances <= distance].sum() >= 0.9 - 1e-6
            ]
            values["span90"] = float(inside[0]) if inside else float(distances.max())
            for name, key in (("diagonal_mass", position), ("previous_token_mass", position - 1)):
                if key in seen_keys:
                    values[name] = row[key]
        for name, value in values.items():
            sums[name][h].append(value)
    return {
        name: np.array([np.mean(values) if values else np.nan for values in heads])
        for name, heads in sums.items()
        if any(heads)
    }


# comparison


@dataclass
class Pass:
    """One forward pass of a model."""

    inputs: dict[str, Any]
    start: int
    """Position of the decoder's first query."""
    queries: int
    counted: np.ndarray
    """(B, Q): which queries of the first sequence are not padding."""

    @property
    def real_rows(self) -> Any:
        """Outputs (B, Q) that are not of padding."""
        has_rows = self.counted.shape[1:] == (self.queries,)
        return torch.from_numpy(self.counted) if has_rows else slice(None)


def check(
    case: Case,
    capture: Capture,
    ran: set[str],
    reference: Reference,
    current: Pass,
    outcome: Outcome,
) -> None:
    """Compare all calls of one pass; raises Mismatch."""
    refusals = capture.refusals
    outcome.refusals |= refusals
    expected = [
        path for path in reference.weights if path in ran and not _is_refused(path, refusals)
    ]
    by_path: dict[str, list[CapturedCall]] = {}
    for call in capture:
        by_path.setdefault(call.path, []).append(call)
    if sorted(by_path) != sorted(expected):
        measured = f"measured {sorted(by_path)}, refused {refusals}"
        raise Mismatch(f"{case}: attention of {sorted(expected)}, {measured}")
    for path, calls in by_path.items():
        if len(calls) != len(reference.weights[path]):
            raise Mismatch(
                f"{case}, {path}: {len(reference.weights[path])} calls, measured {len(calls)}"
            )
        for number, (call, whole) in enumerate(zip(calls, reference.weights[path], strict=True)):
            rows = select_rows(case, call, whole, current, reference, number, len(calls))
            compare(
                f"{case}, {path}, pass from {current.start}",
                call,
                rows,
                outcome,
                averaged=path in reference.is_averaged,
            )
            outcome.calls += 1


def _is_refused(path: str, refusals: dict[str, str]) -> bool:
    return any(
        path == other or path.startswith(f"{other}.") or other.startswith(f"{path}.")
        for other in refusals
    )


@dataclass
class Rows:
    """The rows of the reference that one call should have."""

    weights: np.ndarray
    counted: np.ndarray
    queries: np.ndarray | None
    """Positions of the queries among the columns; None if keys are of another sequence."""
    is_loose: bool = False
    """Compare only the maps: the model computes different weights with its cache."""
    starts: np.ndarray | None = None
    """First key of the document of each query; None if there is one document."""


def select_rows(
    case: Case,
    call: CapturedCall,
    whole: np.ndarray,
    current: Pass,
    reference: Reference,
    number: int,
    calls: int,
) -> Rows:
    """The rows of a module's weights that belong to one call of one pass."""
    family = case.model.family
    in_decoder = family == "decoder" or (family == "encoder-decoder" and "decoder" in call.path)
    is_cross = bool(re.search(r"cross|encoder_attn|EncDec|^head\.", call.path))
    queries: np.ndarray | None = np.arange(whole.shape[2])
    if reference.is_of_pass and in_decoder and not is_cross:
        # empty slots of a static cache are the last columns, if the model does not attend to them
        used = min(whole.shape[3], current.start + whole.shape[2])
        used = whole.shape[3] if whole[..., used:].any() else used
        whole, queries = whole[..., :used], np.arange(used - whole.shape[2], used)
    elif in_decoder and not reference.is_of_pass and (case.model.caches or is_cross):
        rows = slice(current.start, current.start + current.queries)
        whole = whole[:, :, rows] if is_cross else whole[:, :, rows, : rows.stop]
        queries = np.arange(rows.start, rows.stop)
    counted = np.ones((whole.shape[0], whole.shape[2]), bool)
    of_first_sequence = family != "encoder-decoder" or not in_decoder
    if of_first_sequence and current.counted.shape == counted.shape:
        counted = current.counted
    elif of_first_sequence and current.counted.shape[1] == calls * whole.shape[2]:
        # the module runs once for every chunk of the text
        counted = current.counted[:, number * whole.shape[2] :][:, : whole.shape[2]]
    if is_cross or queries[-1] != whole.shape[3] - 1:  # also pooled or compressed keys
        queries = None
    starts = None
    # dense masks do not say which of the visible keys is the first of a document
    if case.padding == "packed" and case.implementation == OPAQUE:
        starts = np.where(np.arange(whole.shape[2]) < FIRST_DOCUMENT, 0, FIRST_DOCUMENT)
    return Rows(whole, counted, queries, reference.is_of_pass, starts)


def compare(
    where: str, call: CapturedCall, rows: Rows, outcome: Outcome, *, averaged: bool
) -> None:
    """Compare one call with the rows of the reference; raises Mismatch."""
    whole, counted, queries, maps = rows.weights, rows.counted, rows.queries, call.maps()
    if averaged:
        maps, whole = maps.mean(axis=1, keepdims=True), whole[:, :1]
    if rows.is_loose:
        maps = np.pad(maps, ((0, 0), (0, 0), (0, 0), (0, max(0, whole.shape[3] - maps.shape[3]))))
    if maps.shape[1] != whole.shape[1]:
        raise Mismatch(f"{where}: {whole.shape[1]} heads, measured {maps.shape[1]}")
    # a sliding cache has dropped keys that no row may see
    dropped = whole.shape[3] - maps.shape[3]
    if dropped < 0 or whole[:, :, :, :dropped].any() or maps.shape[:3] != whole.shape[:3]:
        raise Mismatch(f"{where}: a map of {whole.shape}, measured {maps.shape}")
    whole = whole[:, :, :, dropped:]
    queries = None if queries is None else queries - dropped
    keep = counted[:, None, :, None]
    if rows.is_loose:  # rows that see no key have weights, but do not count
        keep = keep & (maps.sum(axis=-1, keepdims=True) > 0)
    _compare_arrays(f"{where}: maps", np.where(keep, maps, 0), np.where(keep, whole, 0), outcome)
    if averaged or rows.is_loose:
        return
    extra = call.attention is not None and call.attention.extra_keys > 0
    known = None if call.attention is None else call.attention.known_positions
    if known == "queries_and_keys" and queries is None:
        raise Mismatch(f"{where}: positions of two sequences are compared")
    if known != "queries_and_keys":
        outcome.unplaced.add(call.path)
        if queries is not None or not call.note:
            raise Mismatch(f"{where}: positions are left out, with the note `{call.note}`")
    expected = compute_measures(whole, counted, queries, extra, rows.starts)
    without = {"queries_and_keys": set(), "keys": NEED_QUERY_POSITIONS, "none": NEED_KEY_POSITIONS}
    left_out = without[known or "none"]
    for name in MEASURES:
        if name in left_out:
            if name in call.measures:
                raise Mismatch(f"{where}: {name} is measured without positions")
        elif name in expected or name in call.measures:
            missing = np.full(whole.shape[1], np.nan)
            measured = call.measures.get(name, missing)
            _compare_arrays(f"{where}: {name}", measured, expected.get(name, missing), outcome)


def _compare_arrays(
    what: str, measured: np.ndarray, expected: np.ndarray, outcome: Outcome
) -> None:
    if (np.isnan(measured) != np.isnan(expected)).any():
        raise Mismatch(f"{what}: {expected}, measured {measured}")
    error = np.abs(measured - expected) / np.maximum(1, np.abs(expected))
    error = float(np.nanmax(error)) if not np.isnan(error).all() else 0.0
    if error > TOLERANCE:
        raise Mismatch(f"{what}: {expected}, measured {measured}")
    outcome.error = max(outcome.error, error)


# track_modules models


def make_texts(model: TinyModel, padding: str, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids of two examples, and 1 for tokens that are not padding, 0 for padding."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(3, VOCABULARY, (2, length), generator=generator)
    real = torch.ones_like(ids)
    if padding in ("left", "right"):
        first = 0 if padding == "left" else model.length - PADDED_TOKENS
        real[1, first : first + PADDED_TOKENS] = 0
        ids = torch.where(real == 1, ids, dict(model.settings).get("pad_token_id") or 0)
    return ids, real


def add_mask(case: Case, inputs: dict[str, Any], real: torch.Tensor) -> dict[str, Any]:
    """The inputs, with an attention mask if there is padding."""
    return inputs if case.padding in ("no", "packed") else {**inputs, "attention_mask": real}


def list_passes(case: Case) -> tuple[dict[str, Any], list[Pass]]:
    """Inputs of the one reference pass, and of the passes that are watched."""
    model = case.model
    if model.family == "encoder-decoder":
        return _two_sequences(case)
    if model.inputs is not None:
        inputs = model.inputs()
        return inputs, [Pass(inputs, 0, 0, np.ones((0, 0), bool))]
    steps = model.steps if model.caches else ()
    if case.padding == "packed":
        ids = make_texts(model, "no", model.length)[0][:1]
        lengths = FIRST_DOCUMENT, model.length - FIRST_DOCUMENT
        positions = torch.cat([torch.arange(length) for length in lengths])[None]
        inputs = {"input_ids": ids, "position_ids": positions}
        return inputs, [Pass(inputs, 0, model.length, np.ones((1, model.length), bool))]
    ids, real = make_texts(model, case.padding, model.length + sum(steps))
    whole = add_mask(case, {"input_ids": ids}, real)
    passes = []
    for start, stop in _spans(model.length, steps):
        inputs = add_mask(case, {"input_ids": ids[:, start:stop]}, real[:, :stop])
        counted = real[:, start:stop].bool().numpy()
        passes.append(Pass(inputs, start, stop - start, counted))
    return whole, passes


def _two_sequences(case: Case) -> tuple[dict[str, Any], list[Pass]]:
    model = case.model
    steps = model.steps if model.caches else ()
    length = TARGET_LENGTH + sum(steps)
    targets = torch.randint(3, VOCABULARY, (2, length), generator=torch.Generator().manual_seed(5))
    counted = np.ones((0, 0), bool)
    if model.inputs is None:
        ids, real = make_texts(model, case.padding, model.length)
        source, counted = add_mask(case, {"input_ids": ids}, real), real.bool().numpy()
    else:
        source = model.inputs()
    passes = [
        Pass({**source, "decoder_input_ids": targets[:, start:stop]}, start, stop - start, counted)
        for start, stop in _spans(TARGET_LENGTH, steps)
    ]
    return {**source, "decoder_input_ids": targets}, passes


def _spans(length: int, steps: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(itertools.accumulate((length, *steps), initial=0)))


def create_cache(case: Case, model: nn.Module) -> Any:
    """A fresh cache of the kind of the case."""
    from transformers import DynamicCache, EncoderDecoderCache, StaticCache

    if case.cache is None:
        return None
    config = model.config
    if case.model.family != "encoder-decoder":
        if case.cache == "dynamic":
            return DynamicCache(config=config)
        return StaticCache(config=config, max_cache_len=MAX_CACHE_LENGTH)
    decoder = config.get_text_config(decoder=True)
    if case.cache == "dynamic":
        return EncoderDecoderCache(DynamicCache(config=decoder), DynamicCache(config=decoder))
    source = 12 if case.model.name == "whisper" else case.model.length
    own = StaticCache(config=decoder, max_cache_len=MAX_CACHE_LENGTH)
    return EncoderDecoderCache(own, StaticCache(config=decoder, max_cache_len=source))


def run_passes(
    case: Case, model: nn.Module, passes: list[Pass], observe: Callable[..., None]
) -> list[Any]:
    """Run all passes with one cache; `observe(pass, run)` must call `run()`.

    `run(call=…)` calls something else than the model, which returns the model's output.
    """
    cache, outputs, memory = create_cache(case, model), [], None
    for current in passes:
        inputs = dict(current.inputs)
        if cache is not None:
            inputs["past_key_values"] = cache
        elif case.model.family == "decoder":
            inputs["use_cache"] = False
        if memory is not None:  # the source is encoded already
            for name in ("input_ids", "input_features"):
                inputs.pop(name, None)
            inputs["encoder_outputs"] = memory

        def run(inputs: dict[str, Any] = inputs, call: Callable[..., Any] = model) -> Any:
            torch.manual_seed(0)
            with torch.no_grad():
                outputs.append(call(**inputs))
            return outputs[-1]

        observe(current, run)
        if case.model.family == "encoder-decoder":
            from transformers.modeling_outputs import BaseModelOutput

            memory = BaseModelOutput(last_hidden_state=outputs[-1].encoder_last_hidden_state)
    return outputs


def get_output(output: Any) -> torch.Tensor:
    """The first tensor of an output."""
    return next(value for value in output.values() if torch.is_tensor(value))


def _add(names: set[str], path: str, *_: Any) -> None:
    names.add(path)


@contextlib.contextmanager
def track_modules(model: nn.Module) -> Iterator[set[str]]:
    """Collect the paths of the modules that run inside the block."""
    names, handles = set(), []
    for path, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(partial(_add, names, path)))
    try:
        yield names
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def run_uncompiled():
    """Run FlexAttention in eager mode: transformers compiles it, by means that torch deprecates."""
    with warnings.catch_warnings(), torch.compiler.set_stance("force_eager"):
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.filterwarnings("ignore", message="flex_attention called without")
        yield


def run_case(case: Case) -> Outcome:
    """Run one case; raises Mismatch if something is measured wrongly or left out silently."""
    with run_uncompiled():
        return _run_case(case)


def _run_case(case: Case) -> Outcome:
    register_opaque_functions()
    outcome = Outcome()
    whole, passes = list_passes(case)
    try:
        model = case.model.build(case.implementation)
        with collect_opaque_weights() as opaque_calls:
            unwatched = [
                get_output(output)
                for output in run_passes(case, model, passes, lambda _, run: run())
            ]
    except UNSUPPORTED_ERRORS as error:
        outcome.unsupported = f"{type(error).__name__}: {error}".splitlines()[0][:100]
        return outcome
    if case.implementation in OPAQUE_IMPLEMENTATIONS and not opaque_calls:
        outcome.unsupported = "its attention does not use AttentionInterface"
        return outcome
    reference = compute_reference(case, whole)
    is_shared = not (opaque_calls and case.model.name in UNSHARED_SINKS)
    if not is_shared or not is_consistent(case, reference, passes, unwatched):
        outcome.pass_references = compute_pass_references(case, passes)
    watched = []

    def observe(current: Pass, run: Callable[[], Any]) -> None:
        messages: list[str] = []
        with track_modules(model) as ran:
            try:
                with watch(model, on_warning=messages.append, measures=MEASURES) as capture:
                    watched.append(get_output(run()))
            except NoAttentionError as error:
                outcome.refusals["all"] = str(error)
                return
        if capture.refusals and not messages:
            raise Mismatch(f"{case}: refused without a message")
        if not capture:
            outcome.refusals["all"] = " ".join(messages)
            if not messages:
                raise Mismatch(f"{case}: no call and no message")
            return
        pass_reference = (
            reference if outcome.pass_references is None else outcome.pass_references[current.start]
        )
        check(case, capture, ran, pass_reference, current, outcome)

    run_passes(case, model, passes, observe)
    pairs = zip(unwatched, watched, strict=True)
    if not all(torch.equal(without, with_watch) for without, with_watch in pairs):
        raise Mismatch(f"{case}: the watch changed an output")
    return outcome


def compute_reference(case: Case, inputs: dict[str, Any]) -> Reference:
    """Weights of one eager pass over the complete text, without a cache."""
    if case.model.family == "decoder":
        inputs = {**inputs, "use_cache": False}
    doubled = {name: _double(value) for name, value in inputs.items()}
    with contextlib.suppress(RuntimeError):  # some models do not support it
        reference = _collect(case.model.build("eager").double(), doubled)
        if reference.is_finite:
            return reference
    return _collect(case.model.build("eager"), inputs)


def is_consistent(
    case: Case, reference: Reference, passes: list[Pass], outputs: list[torch.Tensor]
) -> bool:
    """Whether the model's outputs are the same with its cache as without."""
    if not case.model.caches and case.implementation in ("eager", "sdpa"):
        return True
    for current, output in zip(passes, outputs, strict=True):
        whole = reference.output
        if current.queries:
            whole = whole[:, current.start : current.start + current.queries]
        real_rows = current.real_rows if whole.shape[:2] == current.counted.shape else slice(None)
        if not (whole - output).abs()[real_rows].max() <= 1e-3:
            return False
    return True


def compute_pass_references(case: Case, passes: list[Pass]) -> dict[int, Reference]:
    """Weights of each pass, with the same cache: of an eager model, or of the function itself."""
    implementation = {"flex_attention": FLEX_PROBE, "sdpa": "eager"}.get(
        case.implementation, case.implementation
    )
    is_eager = implementation == "eager"
    model, references = case.model.build(implementation), {}
    paths = {id(module): path for path, module in model.named_modules()}

    def observe(current: Pass, run: Callable[[], Any]) -> None:
        with collect_weights(model) as reference, collect_opaque_weights() as opaque_calls:
            run()
        if not is_eager:
            for module, weights in opaque_calls:
                calls = reference.weights.setdefault(paths[id(module)], [])
                if not any(np.array_equal(weights, earlier) for earlier in calls):
                    calls.append(weights)  # equal weights of other values are recorded once
        reference.is_of_pass = True
        references[current.start] = reference

    passes = [
        replace(current, inputs={**current.inputs, "output_attentions": True}) for current in passes
    ]
    run_passes(case, model, passes, observe)
    return references


def _collect(model: nn.Module, inputs: dict[str, Any]) -> Reference:
    torch.manual_seed(0)
    with in_double_precision(), collect_weights(model) as reference, torch.no_grad():
        output = get_output(model(**inputs, output_attentions=True))
    reference.is_finite = bool(output.isfinite().all())
    reference.output = output
    return reference


def _double(value: Any) -> Any:
    return value.double() if torch.is_tensor(value) and value.is_floating_point() else value


# the table


def format_table(
    names: list[str], on_case: Callable[[Case, Outcome], None] = lambda case, outcome: None
) -> str:
    """The table of some models, in Markdown; raises Mismatch."""
    results: dict[tuple[str, str], dict[tuple[str, str | None], Outcome]] = {}
    for case in list_cases(names):
        outcome = run_case(case)
        on_case(case, outcome)
        results.setdefault((case.model.name, case.implementation), {})[case.padding, case.cache] = (
            outcome
        )
    outcomes = [outcome for row in results.values() for outcome in row.values()]
    lines = [
        _format_counts(outcomes),
        "",
        "| model | attention | by | no padding | left | right | packed | not measured |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (name, implementation), row in results.items():
        if all(outcome.unsupported for outcome in row.values()):
            continue
        cells = [
            " · ".join(outcome.text for (padding, _), outcome in row.items() if padding == column)
            for column in PADDINGS
        ]
        start = [f"`{name}`", MODELS[name].attention, implementation]
        lines.append(f"| {' | '.join([*start, *cells, _format_left_out(list(row.values()))])} |")
    return "\n".join(lines)


def _format_counts(outcomes: list[Outcome]) -> str:
    """Number of cases, by result."""
    supported = [outcome for outcome in outcomes if not outcome.unsupported]
    measured = [outcome for outcome in supported if outcome.calls]
    partly = [outcome for outcome in measured if outcome.refusals]
    largest = max((outcome.error for outcome in measured), default=0.0)
    return (
        f"{len(supported)} cases: {len(measured)} measured, {len(partly)} of them in part, and "
        f"{len(supported) - len(measured)} refused; the largest error is {largest:.0e}. "
        f"transformers does not support another {len(outcomes) - len(supported)}."
    )


def _format_left_out(outcomes: list[Outcome]) -> str:
    """Measures and modules that are left out, with reasons."""
    unplaced = {path for outcome in outcomes for path in outcome.unplaced}
    notes = [f"positions of `{_format_example_path(sorted(unplaced))}`"] if unplaced else []
    paths_by_reason: dict[str, list[str]] = {}
    for outcome in outcomes:
        for path, reason in outcome.refusals.items():
            # sizes differ between passes
            paths_by_reason.setdefault(re.sub(r"\([\d, ]+\)", "(…)", reason), []).append(path)
    for reason, paths in paths_by_reason.items():
        message = reason.partition(". Recognised are")[0].replace("|", "\\|")
        notes.append(
            message if paths[0] == "all" else f"`{_format_example_path(paths)}`: {message}"
        )
    return "; ".join(notes)


def _format_example_path(paths: list[str]) -> str:
    """The first path, with layer numbers replaced by N."""
    return re.sub(r"\.\d+", ".N", paths[0])


def main() -> None:
    """Print the table, or write it into a page."""
    import transformers

    transformers.logging.set_verbosity_error()
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--write", type=Path)
    args = parser.parse_args()

    def show(case: Case, outcome: Outcome) -> None:
        result = (
            outcome.unsupported
            or f"{outcome.text} ({outcome.calls} calls) {outcome.refusals or ''}"
        )
        print(f"{case}: {result}", file=sys.stderr)

    text = format_table(args.models.split(","), show)
    if args.write is None:
        print(text)
        return
    page = args.write.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    args.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
