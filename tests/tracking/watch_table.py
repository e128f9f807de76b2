"""Compare `neural.watch` with the attention weights that Hugging Face models return.

    python -m tests.tracking.watch_table                            all models, as text
    python -m tests.tracking.watch_table --models gpt_oss,llama     some models
    python -m tests.tracking.watch_table --write docs/watching.md   replace the table in that page

Every model of hf_models.py × eager attention and SDPA × no, left and right padding × dynamic and
static cache (where the model generates): a pass over the text, then one token, then two tokens.

The reference does not depend on what is checked. It is one eager pass over the whole text, in
double precision, without a cache, with `output_attentions=True`; each attention module's weights
are taken from its own output. The measures are recomputed below in NumPy, from these weights and
the true position of every query and key. A cached pass must give the rows of its tokens.

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

from neural.tracking.seen import Call, Seen
from neural.tracking.watch import NothingSeen, watch
from tests.tracking.hf_models import MODELS, VOCABULARY, TinyModel

TOLERANCE = 1e-5
CANNOT = (ValueError, RuntimeError, KeyError)
"""Errors of models that do not support SDPA, a static cache, or a mask."""
TARGET = 5
"""Tokens of the second sequence, before any is generated."""
PADDED = 3
"""Tokens of padding in the second example."""
MAX_CACHE_LENGTH = 24
"""Slots of a static cache: more than there are ever tokens."""
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
"""Modules that return what their weights are a softmax of."""
NEED_SHARED_AXIS = {"span", "span90", "previous_token_mass", "diagonal_mass"}
NEED_KEY_AXIS = NEED_SHARED_AXIS | {"expected_position", "first_key_mass"}


class Mismatch(AssertionError):
    """Something was measured, and it is not what the model does."""


@dataclass(frozen=True)
class Case:
    """One cell of the table."""

    model: TinyModel
    implementation: str
    padding: str
    cache: str | None

    def __str__(self) -> str:
        words = (
            self.model.name,
            self.implementation,
            f"{self.padding} padding",
            self.cache or "no cache",
        )
        return ", ".join(words)


@dataclass
class Outcome:
    """What became of a case."""

    error: float = 0.0
    calls: int = 0
    unplaced: set[str] = field(default_factory=set)
    """Calls without a shared axis: their measures of positions are left out."""
    refused: dict[str, str] = field(default_factory=dict)
    unsupported: str = ""
    """Why the model itself cannot do this."""
    of_passes: dict[int, Reference] | None = None
    """References taken pass by pass, where a cache changes what the model computes."""

    @property
    def text(self) -> str:
        """For a cell of the table."""
        if self.unsupported:
            return "–"
        if not self.calls:
            return "refused"
        error = f"{self.error:.0e}".replace("e-0", "e-").replace("0e+00", "0")
        return f"{error}*" if self.of_passes else error


def cases(names: list[str]) -> Iterator[Case]:
    """All cells of the table for some models."""
    for name in names:
        model = MODELS[name]
        paddings = ("no", "left", "right") if model.pads and (model.inputs is None) else ("no",)
        caches = ("dynamic", "static") if model.caches else (None,)
        for implementation, padding, cache in itertools.product(
            ("eager", "sdpa"), paddings, caches
        ):
            yield Case(model, implementation, padding, cache)


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
    """Whether it was taken in a cached pass, and not in one pass over the whole text."""


@contextlib.contextmanager
def collected(model: nn.Module) -> Iterator[Reference]:
    """Collect what attention modules return as their weights."""
    reference, handles = Reference(), []

    def after(path: str, module: nn.Module, args: Any, named: Any, output: Any) -> None:
        if isinstance(module, nn.MultiheadAttention):  # its own weights are the mean of its heads
            output = type(module).forward(module, *args, **{**named, "average_attn_weights": False})
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
            handles.append(module.register_forward_hook(partial(after, path), with_kwargs=True))
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
    """Whether rows are shares; a sink may take a part of them."""
    if item.ndim < 4 or not item.is_floating_point() or not (item >= 0).all() or not item.any():
        return False
    return any(bool((item.sum(dim=dim) < 1 + 1e-4).all()) for dim in (-1, 1))


@contextlib.contextmanager
def in_double_precision() -> Iterator[None]:
    """Keep softmax in double precision: models ask for 32 bits, where masked rows become NaN."""
    own = nn.functional.softmax

    def softmax(scores: torch.Tensor, dim: int, *rest: Any, **named: Any) -> torch.Tensor:
        if scores.dtype == torch.float64:
            return own(scores, dim=dim)
        return own(scores, dim, *rest, **named)

    nn.functional.softmax = softmax
    try:
        yield
    finally:
        nn.functional.softmax = own


def measures_of(
    weights: np.ndarray, counted: np.ndarray, queries: np.ndarray | None, extra: bool
) -> dict[str, np.ndarray]:
    """Recompute the measures of every head, (H,), from weights (B, H, Q, K).

    `counted` (B, Q): queries that are not padding. `queries` (Q,): their positions; those of the
    keys are 0 … K − 1. `extra`: what a row lacks to 1 is the weight of a learned sink.
    """
    sums: dict[str, list[list[float]]] = {
        name: [[] for _ in range(weights.shape[1])] for name in MEASURES
    }
    visible = weights > 0
    origins = [np.flatnonzero(visible[b][:, counted[b]].any(axis=(0, 1)))[:1] for b in range(len(weights))]
    for b, h, q in itertools.product(*map(range, weights.shape[:3])):
        row = weights[b, h, q]
        seen = np.flatnonzero(row > 0)
        if not counted[b, q] or not len(seen):
            continue
        sink = max(0.0, 1 - row.sum()) if extra else 0.0
        every = np.append(row[seen], sink) if extra else row[seen]
        entropy = -(every * np.log(every)).sum()
        values = {
            "entropy": entropy,
            "effective_keys": np.exp(entropy),
            "largest_weight": every.max(),
            "expected_position": (row * np.arange(len(row))).sum() / row.sum(),
        }
        if len(every) > 1:
            values["relative_entropy"] = entropy / np.log(len(every))
            values["first_key_mass"] = row[origins[b][0]]
        if extra:
            values["extra_key_mass"] = sink
        if queries is not None:
            at = queries[q]
            away = np.abs(np.arange(len(row)) - at)
            values["span"] = (row * away).sum()
            inside = [
                distance
                for distance in range(len(row))
                if sink + row[away <= distance].sum() >= 0.9 - 1e-6
            ]
            values["span90"] = float(inside[0]) if inside else float(away.max())
            for name, key in (("diagonal_mass", at), ("previous_token_mass", at - 1)):
                if key in seen:
                    values[name] = row[key]
        for name, value in values.items():
            sums[name][h].append(value)
    return {
        name: np.array([np.mean(values) if values else np.nan for values in heads])
        for name, heads in sums.items()
        if any(heads)
    }


# what is compared


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
    case: Case, seen: Seen, ran: set[str], reference: Reference, now: Pass, outcome: Outcome
) -> None:
    """Compare all calls of one pass; raises Mismatch."""
    refused = seen.refused
    outcome.refused |= refused
    expected = [
        path for path in reference.weights if path in ran and not _is_refused(path, refused)
    ]
    by_path: dict[str, list[Call]] = {}
    for call in seen:
        by_path.setdefault(call.path, []).append(call)
    if sorted(by_path) != sorted(expected):
        measured = f"measured {sorted(by_path)}, refused {refused}"
        raise Mismatch(f"{case}: attention of {sorted(expected)}, {measured}")
    for path, calls in by_path.items():
        if len(calls) != len(reference.weights[path]):
            raise Mismatch(
                f"{case}, {path}: {len(reference.weights[path])} calls, measured {len(calls)}"
            )
        for number, (call, whole) in enumerate(zip(calls, reference.weights[path], strict=True)):
            rows = rows_of(case, call, whole, now, reference, number, len(calls))
            compare(
                f"{case}, {path}, pass from {now.start}",
                call,
                rows,
                outcome,
                averaged=path in reference.is_averaged,
            )
            outcome.calls += 1


def _is_refused(path: str, refused: dict[str, str]) -> bool:
    return any(
        path == other or path.startswith(f"{other}.") or other.startswith(f"{path}.")
        for other in refused
    )


@dataclass
class Rows:
    """The rows of the reference that one call should have."""

    weights: np.ndarray
    counted: np.ndarray
    queries: np.ndarray | None
    """Where queries stand among the columns; None where keys are of another sequence."""
    is_loose: bool = False
    """Compare the maps alone: the model computes something else with its cache than without."""


def rows_of(
    case: Case,
    call: Call,
    whole: np.ndarray,
    now: Pass,
    reference: Reference,
    number: int,
    calls: int,
) -> Rows:
    """The part of a module's weights that belongs to one call of one pass."""
    family = case.model.family
    in_decoder = family == "decoder" or (family == "encoder-decoder" and "decoder" in call.path)
    is_cross = bool(re.search(r"cross|encoder_attn|EncDec|^head\.", call.path))
    queries: np.ndarray | None = np.arange(whole.shape[2])
    if reference.is_of_pass and in_decoder and not is_cross:
        # empty slots of a static cache are the last columns, if the model does not look at them
        used = min(whole.shape[3], now.start + whole.shape[2])
        used = whole.shape[3] if whole[..., used:].any() else used
        whole, queries = whole[..., :used], np.arange(used - whole.shape[2], used)
    elif in_decoder and not reference.is_of_pass and (case.model.caches or is_cross):
        rows = slice(now.start, now.start + now.queries)
        whole = whole[:, :, rows] if is_cross else whole[:, :, rows, : rows.stop]
        queries = np.arange(rows.start, rows.stop)
    counted = np.ones((whole.shape[0], whole.shape[2]), bool)
    of_first_sequence = family != "encoder-decoder" or not in_decoder
    if of_first_sequence and now.counted.shape == counted.shape:
        counted = now.counted
    elif of_first_sequence and now.counted.shape[1] == calls * whole.shape[2]:
        # the module runs once for every chunk of the text
        counted = now.counted[:, number * whole.shape[2] :][:, : whole.shape[2]]
    if is_cross or queries[-1] != whole.shape[3] - 1:  # also pooled or compressed keys
        queries = None
    return Rows(whole, counted, queries, reference.is_of_pass)


def compare(where: str, call: Call, rows: Rows, outcome: Outcome, *, averaged: bool) -> None:
    """One call against the rows of the reference."""
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
    if rows.is_loose:  # rows that may see nothing have weights, but do not count
        keep = keep & (maps.sum(axis=-1, keepdims=True) > 0)
    _compare(f"{where}: maps", np.where(keep, maps, 0), np.where(keep, whole, 0), outcome)
    if averaged or rows.is_loose:
        return
    extra = call.look is not None and call.look.extra_keys > 0
    axis = None if call.look is None else call.look.axis
    if axis == "shared" and queries is None:
        raise Mismatch(f"{where}: positions of two sequences are compared")
    if axis != "shared":
        outcome.unplaced.add(call.path)
        if queries is not None or not call.note:
            raise Mismatch(f"{where}: positions are left out, with the note `{call.note}`")
    expected = measures_of(whole, counted, queries, extra)
    without = {"shared": set(), "keys": NEED_SHARED_AXIS, "unknown": NEED_KEY_AXIS}
    left_out = without[axis or "unknown"]
    for name in MEASURES:
        if name in left_out:
            if name in call.measures:
                raise Mismatch(f"{where}: {name} is measured without positions")
        elif name in expected or name in call.measures:
            nothing = np.full(whole.shape[1], np.nan)
            measured = call.measures.get(name, nothing)
            _compare(f"{where}: {name}", measured, expected.get(name, nothing), outcome)


def _compare(what: str, measured: np.ndarray, expected: np.ndarray, outcome: Outcome) -> None:
    if (np.isnan(measured) != np.isnan(expected)).any():
        raise Mismatch(f"{what}: {expected}, measured {measured}")
    error = np.abs(measured - expected) / np.maximum(1, np.abs(expected))
    error = float(np.nanmax(error)) if not np.isnan(error).all() else 0.0
    if error > TOLERANCE:
        raise Mismatch(f"{what}: {expected}, measured {measured}")
    outcome.error = max(outcome.error, error)


# running models


def texts(model: TinyModel, padding: str, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Two texts with some tokens to generate behind them, and which of their tokens are real."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(3, VOCABULARY, (2, length), generator=generator)
    real = torch.ones_like(ids)
    if padding != "no":
        first = 0 if padding == "left" else model.length - PADDED
        real[1, first : first + PADDED] = 0
        ids = torch.where(real == 1, ids, dict(model.settings).get("pad_token_id") or 0)
    return ids, real


def masked(case: Case, inputs: dict[str, Any], real: torch.Tensor) -> dict[str, Any]:
    """The inputs, with a mask where there is padding."""
    return inputs if case.padding == "no" else {**inputs, "attention_mask": real}


def passes_of(case: Case) -> tuple[dict[str, Any], list[Pass]]:
    """Inputs of the one reference pass, and of the passes that are watched."""
    model = case.model
    if model.family == "encoder-decoder":
        return _two_sequences(case)
    if model.inputs is not None:
        inputs = model.inputs()
        return inputs, [Pass(inputs, 0, 0, np.ones((0, 0), bool))]
    steps = model.steps if model.caches else ()
    ids, real = texts(model, case.padding, model.length + sum(steps))
    whole = masked(case, {"input_ids": ids}, real)
    passes = []
    for start, stop in _spans(model.length, steps):
        inputs = masked(case, {"input_ids": ids[:, start:stop]}, real[:, :stop])
        counted = real[:, start:stop].bool().numpy()
        passes.append(Pass(inputs, start, stop - start, counted))
    return whole, passes


def _two_sequences(case: Case) -> tuple[dict[str, Any], list[Pass]]:
    model = case.model
    steps = model.steps if model.caches else ()
    length = TARGET + sum(steps)
    targets = torch.randint(3, VOCABULARY, (2, length), generator=torch.Generator().manual_seed(5))
    counted = np.ones((0, 0), bool)
    if model.inputs is None:
        ids, real = texts(model, case.padding, model.length)
        source, counted = masked(case, {"input_ids": ids}, real), real.bool().numpy()
    else:
        source = model.inputs()
    passes = [
        Pass({**source, "decoder_input_ids": targets[:, start:stop]}, start, stop - start, counted)
        for start, stop in _spans(TARGET, steps)
    ]
    return {**source, "decoder_input_ids": targets}, passes


def _spans(length: int, steps: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(itertools.pairwise(itertools.accumulate((length, *steps), initial=0)))


def new_cache(case: Case, model: nn.Module) -> Any:
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
    """Run all passes with one cache; `observe(now, run)` calls `run()`."""
    cache, outputs, memory = new_cache(case, model), [], None
    for now in passes:
        inputs = dict(now.inputs)
        if cache is not None:
            inputs["past_key_values"] = cache
        elif case.model.family == "decoder":
            inputs["use_cache"] = False
        if memory is not None:  # the source was read already
            for name in ("input_ids", "input_features"):
                inputs.pop(name, None)
            inputs["encoder_outputs"] = memory

        def run(inputs: dict[str, Any] = inputs) -> Any:
            torch.manual_seed(0)
            with torch.no_grad():
                outputs.append(model(**inputs))
            return outputs[-1]

        observe(now, run)
        if case.model.family == "encoder-decoder":
            from transformers.modeling_outputs import BaseModelOutput

            memory = BaseModelOutput(last_hidden_state=outputs[-1].encoder_last_hidden_state)
    return outputs


def logits_of(output: Any) -> torch.Tensor:
    """The first tensor of an output."""
    return next(value for value in output.values() if torch.is_tensor(value))


def _add(names: set[str], path: str, *_: Any) -> None:
    names.add(path)


@contextlib.contextmanager
def running(model: nn.Module) -> Iterator[set[str]]:
    """Which modules run."""
    names, handles = set(), []
    for path, module in model.named_modules():
        handles.append(module.register_forward_pre_hook(partial(_add, names, path)))
    try:
        yield names
    finally:
        for handle in handles:
            handle.remove()


def outcome_of(case: Case) -> Outcome:
    """Run one case; raises Mismatch if something is measured wrongly or left out silently."""
    outcome = Outcome()
    whole, passes = passes_of(case)
    try:
        model = case.model.build(case.implementation)
        plain = [
            logits_of(output) for output in run_passes(case, model, passes, lambda _, run: run())
        ]
    except CANNOT as problem:
        outcome.unsupported = f"{type(problem).__name__}: {problem}".splitlines()[0][:100]
        return outcome
    reference = whole_reference(case, whole)
    if not is_consistent(case, reference, passes, plain):
        outcome.of_passes = references_of_passes(case, passes)
    watched = []

    def observe(now: Pass, run: Callable[[], Any]) -> None:
        messages: list[str] = []
        with running(model) as ran:
            try:
                with watch(model, on_warning=messages.append, measures=MEASURES) as seen:
                    watched.append(logits_of(run()))
            except NothingSeen as nothing:
                outcome.refused["all"] = str(nothing)
                return
        if seen.refused and not messages:
            raise Mismatch(f"{case}: refused without a message")
        if not seen:
            outcome.refused["all"] = " ".join(messages)
            if not messages:
                raise Mismatch(f"{case}: nothing was seen, and nothing was said")
            return
        own = reference if outcome.of_passes is None else outcome.of_passes[now.start]
        check(case, seen, ran, own, now, outcome)

    run_passes(case, model, passes, observe)
    pairs = zip(plain, watched, strict=True)
    if not all(torch.equal(without, with_watch) for without, with_watch in pairs):
        raise Mismatch(f"{case}: the watch changed an output")
    return outcome


def whole_reference(case: Case, inputs: dict[str, Any]) -> Reference:
    """The weights of one eager pass over everything, without a cache."""
    if case.model.family == "decoder":
        inputs = {**inputs, "use_cache": False}
    doubled = {name: _double(value) for name, value in inputs.items()}
    with contextlib.suppress(RuntimeError):  # a model that cannot
        reference = _collect(case.model.build("eager").double(), doubled)
        if reference.is_finite:
            return reference
    return _collect(case.model.build("eager"), inputs)


def is_consistent(
    case: Case, reference: Reference, passes: list[Pass], outputs: list[torch.Tensor]
) -> bool:
    """Whether the model's outputs are the same with its cache as without."""
    if not case.model.caches:
        return True
    for now, output in zip(passes, outputs, strict=True):
        whole = reference.output[:, now.start : now.start + now.queries]
        if (whole - output).abs()[now.real_rows].max() > 1e-3:
            return False
    return True


def references_of_passes(case: Case, passes: list[Pass]) -> dict[int, Reference]:
    """What an eager model returns in each of the passes, with the same cache."""
    model, references = case.model.build("eager"), {}

    def observe(now: Pass, run: Callable[[], Any]) -> None:
        with collected(model) as reference:
            run()
        reference.is_of_pass = True
        references[now.start] = reference

    passes = [replace(now, inputs={**now.inputs, "output_attentions": True}) for now in passes]
    run_passes(case, model, passes, observe)
    return references


def _collect(model: nn.Module, inputs: dict[str, Any]) -> Reference:
    torch.manual_seed(0)
    with in_double_precision(), collected(model) as reference, torch.no_grad():
        output = logits_of(model(**inputs, output_attentions=True))
    reference.is_finite = bool(output.isfinite().all())
    reference.output = output
    return reference


def _double(value: Any) -> Any:
    return value.double() if torch.is_tensor(value) and value.is_floating_point() else value


# the table


def table(
    names: list[str], on_case: Callable[[Case, Outcome], None] = lambda case, outcome: None
) -> str:
    """The table of some models, in Markdown; raises Mismatch."""
    results: dict[tuple[str, str], dict[tuple[str, str | None], Outcome]] = {}
    for case in cases(names):
        outcome = outcome_of(case)
        on_case(case, outcome)
        results.setdefault((case.model.name, case.implementation), {})[case.padding, case.cache] = (
            outcome
        )
    outcomes = [outcome for row in results.values() for outcome in row.values()]
    lines = [
        _counts(outcomes),
        "",
        "| model | attention | by | no padding | left | right | not measured |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, implementation), row in results.items():
        if all(outcome.unsupported for outcome in row.values()):
            continue
        cells = [
            " · ".join(outcome.text for (padding, _), outcome in row.items() if padding == wanted)
            for wanted in ("no", "left", "right")
        ]
        start = [f"`{name}`", MODELS[name].attention, implementation]
        lines.append(f"| {' | '.join([*start, *cells, _left_out(list(row.values()))])} |")
    return "\n".join(lines)


def _counts(outcomes: list[Outcome]) -> str:
    """How many cases there are, and what became of them."""
    supported = [outcome for outcome in outcomes if not outcome.unsupported]
    measured = [outcome for outcome in supported if outcome.calls]
    partly = [outcome for outcome in measured if outcome.refused]
    largest = max((outcome.error for outcome in measured), default=0.0)
    return (
        f"{len(supported)} cases: {len(measured)} measured, {len(partly)} of them in part, and "
        f"{len(supported) - len(measured)} refused; the largest error is {largest:.0e}. "
        f"transformers does not support another {len(outcomes) - len(supported)}."
    )


def _left_out(outcomes: list[Outcome]) -> str:
    """Which measures and modules are left out, and why."""
    unplaced = {path for outcome in outcomes for path in outcome.unplaced}
    words = [f"positions of `{_example(sorted(unplaced))}`"] if unplaced else []
    paths: dict[str, list[str]] = {}
    for outcome in outcomes:
        for path, reason in outcome.refused.items():
            # sizes differ between passes
            paths.setdefault(re.sub(r"\([\d, ]+\)", "(…)", reason), []).append(path)
    for reason, those in paths.items():
        message = reason.partition(". What is recognised")[0].replace("|", "\\|")
        words.append(message if those[0] == "all" else f"`{_example(those)}`: {message}")
    return "; ".join(words)


def _example(paths: list[str]) -> str:
    """One of several modules, with numbers of layers replaced."""
    return re.sub(r"\.\d+", ".N", paths[0])


def main() -> None:
    """Print the table, or put it into a page."""
    import transformers

    transformers.logging.set_verbosity_error()
    warnings.filterwarnings("ignore")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()

    def show(case: Case, outcome: Outcome) -> None:
        words = (
            outcome.unsupported or f"{outcome.text} ({outcome.calls} calls) {outcome.refused or ''}"
        )
        print(f"{case}: {words}", file=sys.stderr)

    text = table(asked.models.split(","), show)
    if asked.write is None:
        print(text)
        return
    page = asked.write.read_text(encoding="utf-8")
    before, after = page.partition(BEGIN)[0], page.partition(END)[2]
    asked.write.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
