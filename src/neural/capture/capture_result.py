"""Result of `neural.watch(model)`: the captured attention calls in order, measures and maps.

    capture[0].path                  "transformer_encoder.0.attention.sublayer"
    capture[0].measures["entropy"]   per head, (H,)
    capture[0].maps()                attention weights, (B, H, Q, K)
    capture.measure_arrays()         measure → (layer, head)
    capture.compare_layers()         measure of two layers → (layer, layer)

A measure is a number per head, such as the entropy (capture/measures/). A layer is one captured
call. Weights are those without dropout, in 32 bits. Everything is computed on first use and cached.
Values of single rows (queries) are not: of long inputs, they would take as much memory as the keys.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from neural.capture.attention_call import AttentionCall, full_precision
from neural.capture.dense_weights import DenseAttentionCall
from neural.capture.head_divergence import compute_head_divergence
from neural.capture.labels import AxisLabels, label_axes, label_two_sequences
from neural.capture.measure import HeadMeasure, LayerMeasure, Measure, PairMeasure
from neural.capture.measures import registry
from neural.capture.statistics import (
    aggregate_rows,
    is_applicable,
    measure_pairs,
    measure_rows,
)
from neural.core.table import format_number, format_table
from neural.nn.attention.self import Self
from neural.nn.kernel_dispatch import no_kernels
from neural.nn.lazy_torch import torch
from neural.nn.mask import Mask

if TYPE_CHECKING:
    from jaxtyping import Float

    from neural.capture.probe_image import ProbeImage

MAX_LAYERS_ALL_PAIRS = 12
"""Up to this many layers, every two are compared; with more layers, each with the next only."""


class RowMeans(NamedTuple):
    """A measure of one call or of two, averaged over the rows (queries) that count."""

    values: torch.Tensor
    """One number per head, (H,), or one number for a measure of all heads together, ()."""
    counts: torch.Tensor
    """Number of rows that count, of the same shape: weights for a mean over several calls."""
    halves: list[torch.Tensor]
    """The same on the even and on the odd examples; empty if there is only one example."""

    def stack_halves(self) -> Float[np.ndarray, "2 ..."]:
        """Both halves, if there are any."""
        return np.stack([half.cpu().numpy() for half in self.halves])


@dataclass(frozen=True, repr=False)
class CapturedCall:
    """One call of one attention module."""

    path: str
    """Path of the module, for `model.get_submodule`."""
    heads: int
    attention: AttentionCall | None
    """None if queries or keys were not finite: then nothing can be measured."""
    measure_names: tuple[str, ...] | None = None
    """Names of the measures to compute; all that apply to the call if None."""
    note: str = ""
    """Why measures of positions are left out; empty if they are included."""

    def __repr__(self) -> str:
        return f"attention of {self.path}: {self.heads} heads, {self._describe_shape()}"

    def _describe_shape(self) -> str:
        if self.attention is None:
            return "not finite"
        call = self.attention
        return f"{call.batch} × {call.queries} queries × {call.positions} keys"

    def _mean_entropy(self) -> float | None:
        """Mean entropy of the weights over all heads; None if it is not measured."""
        is_selected = self.measure_names is None or "entropy" in self.measure_names
        if self.attention is None or not is_selected or not self._applies(registry.get("entropy")):
            return None
        (means,) = self._measure(["entropy"]).values()
        return float(means.values.nanmean())

    @cached_property
    def measures(self) -> dict[str, Float[np.ndarray, " H"]]:
        """Values per head by name; one number for measures of all heads together.

        A value is the mean over rows (queries). It is NaN if no row counts, because all are padding
        or the measure is undefined for them.
        """
        names = [
            name
            for name in _select_measures(self.measure_names, HeadMeasure | LayerMeasure)
            if self._applies(registry.get(name))
        ]
        if self.attention is None:
            per_head = {name for name in names if issubclass(registry.get(name), HeadMeasure)}
            return {
                name: np.full(self.heads if name in per_head else (), np.nan, np.float32)
                for name in names
            }
        return {name: means.values.cpu().numpy() for name, means in self._measure(names).items()}

    def count_rows(self) -> dict[str, Float[np.ndarray, " H"]]:
        """Number of rows of which each of `measures` is the mean."""
        if self.attention is None:
            return {name: np.zeros(values.shape) for name, values in self.measures.items()}
        means = self._measure(list(self.measures))
        return {name: row_means.counts.cpu().numpy() for name, row_means in means.items()}

    def _measure(self, names: Sequence[str]) -> dict[str, RowMeans]:
        """Means over the rows; cached with the call."""
        assert self.attention is not None
        cache = self.__dict__.setdefault("_row_means", {})
        missing = [name for name in names if name not in cache]
        if missing:
            cache |= _measure_calls(missing, self.attention)
        return {name: cache[name] for name in names}

    def half_means(self) -> dict[str, Float[np.ndarray, "2 H"]]:
        """Every measure, on the even and on the odd examples.

        The difference of the halves shows how much a measure depends on the choice of examples.
        Empty if there is only one example.
        """
        if self.attention is None or self.attention.batch < 2:
            return {}
        means = self._measure(list(self.measures))
        return {name: row_means.stack_halves() for name, row_means in means.items()}

    def _applies(self, measure: type[Measure]) -> bool:
        if self.attention is None:
            # there are no queries and keys, so neither tokens nor extra keys are known
            needs_call = {"induction", "extra"} & set(measure.required_statistics)
            return not needs_call and not measure.signed_only
        return is_applicable(measure, self.attention)

    def maps(
        self,
        examples: int | None = None,
        positions: int | None = None,
        *,
        hidden: float = 0.0,
    ) -> Float[np.ndarray, "B H Q K"]:
        """Attention weights, limited to the first `examples` and to the first `positions` if given.

        `hidden` is the weight of masked pairs; NaN tells them from pairs of weight 0.
        Of a signed mechanism, with their sign: weights may be negative and rows have any sum.
        One column for every key that is a position. With other keys (a learned sink), a row sums to
        1 minus their weight; the measure `extra_key_mass` is the mean of that weight.
        """
        call = self.attention
        if call is None:
            raise ValueError(
                f"`{self.path}` has queries or keys that are not finite: there are no weights"
            )
        batch = min(examples or call.batch, call.batch)
        queries = min(positions or call.queries, call.queries)
        keys = min(positions or call.positions, call.positions)
        maps = np.empty((batch, call.heads, queries, keys), np.float32)
        with full_precision(call.q.device):
            for block in call.iter_blocks(heads=call.heads):
                if block.batch.start < batch and block.rows.start < queries:
                    target = maps[block]  # a view; the last block may reach beyond it
                    block_maps = call.compute_maps(block)
                    weights = block_maps.weights
                    if block_maps.signed_weights is not None:
                        weights = block_maps.signed_weights
                    weights = weights.masked_fill(~block_maps.visible_mask, hidden)
                    target[:] = weights[: len(target), :, : target.shape[2], :keys].cpu().numpy()
        return maps


class Capture(Sequence[CapturedCall]):
    """All captured attention calls, in order."""

    def __init__(self, measure_names: Iterable[str] | None = None) -> None:
        """`measure_names`: measures of one layer or of two layers; all that apply if None."""
        self.measure_names = None if measure_names is None else tuple(measure_names)
        for name in self.measure_names or ():
            registry.get(name)  # raises UnknownNameError with a suggestion
        self.calls: list[CapturedCall] = []
        self.refusals: dict[str, str] = {}
        """Modules that attended but are not measured: path → reason."""
        self.labels: list[list[str]] | None = None
        """Labels of the positions of each example, such as tokens; None without labels."""
        self.decoder_labels: list[list[str]] | None = None
        """Labels of the decoder's positions, if the model reads two sequences."""
        self.images: list[ProbeImage] = []
        """The images of each example, if the model reads images as patches."""
        self.image_note = ""
        """Why there are no images, although the model reads some."""

    @overload
    def __getitem__(self, index: int) -> CapturedCall: ...
    @overload
    def __getitem__(self, index: slice) -> list[CapturedCall]: ...
    def __getitem__(self, index: int | slice) -> CapturedCall | list[CapturedCall]:
        return self.calls[index]

    def __len__(self) -> int:
        return len(self.calls)

    def __iter__(self) -> Iterator[CapturedCall]:
        return iter(self.calls)

    def __repr__(self) -> str:
        """A row per layer, with the mean entropy of its heads."""
        if not self.calls:
            return "no attention captured"
        rows = [
            (name, str(call.heads), call._describe_shape(), format_number(call._mean_entropy()))
            for name, call in zip(self.layer_names(), self.calls, strict=True)
        ]
        head = ("layer", "heads", "batch", "entropy (nats)")
        noun = "layer" if len(self) == 1 else "layers"
        lines = [f"attention of {len(self)} {noun}", format_table([head, *rows], (1, 3))]
        lines += [f"  not measured: {path}: {reason}" for path, reason in self.refusals.items()]
        return "\n".join(lines)

    def layer_names(self) -> list[str]:
        """A unique name for each call: its path, and `#2`, `#3` … for later calls of a module."""
        names: list[str] = []
        counts = Counter[str]()
        for call in self.calls:
            counts[call.path] += 1
            number = counts[call.path]
            names.append(call.path if number == 1 else f"{call.path}#{number}")
        return names

    def select_measured(self) -> Capture:
        """The capture without calls that have no weights; itself if all have."""
        if all(call.attention is not None for call in self):
            return self
        selected = copy(self)
        selected.__dict__.pop("_pair_means", None)
        selected.calls = [call for call in self if call.attention is not None]
        return selected

    def axis_labels(self, layer: int, example: int = 0) -> AxisLabels:
        """Labels of the rows and columns of a layer's map; None for an axis without labels."""
        attention = self.calls[layer].attention
        if attention is None or not self.labels:
            return AxisLabels(None, None)
        if self.decoder_labels:
            return label_two_sequences(
                self.calls[layer].path,
                attention,
                self.labels[example],
                self.decoder_labels[example],
            )
        return label_axes(attention, self.labels[example])

    def measure_arrays(self) -> dict[str, Float[np.ndarray, "layer head"]]:
        """Every measure as (layer, head) or (layer,); NaN where a layer has no value."""
        max_heads, arrays = max((call.heads for call in self.calls), default=0), {}
        for layer, call in enumerate(self.calls):
            for name, values in call.measures.items():
                shape = (len(self), max_heads) if values.ndim else (len(self),)
                array = arrays.setdefault(name, np.full(shape, np.nan, np.float32))
                array[(layer, slice(len(values))) if values.ndim else layer] = values
        return arrays

    def half_means(self) -> dict[str, Float[np.ndarray, " 2"]]:
        """Mean of every measure over all heads, on two halves of the examples."""
        collected: dict[str, list[np.ndarray]] = {}
        for call in self.calls:
            for name, values in call.half_means().items():
                collected.setdefault(name, []).append(values.reshape(2, -1))
        for name, pairs in self._pair_means.items():
            for row_means in pairs.values():
                if row_means.halves:
                    collected.setdefault(name, []).append(row_means.stack_halves())
        means = {
            name: mean_of_finite(np.concatenate(values, axis=1))
            for name, values in collected.items()
        }
        return {name: values for name, values in means.items() if np.isfinite(values).all()}

    def head_divergence(self) -> Float[np.ndarray, "N N"] | None:
        """Distances between all pairs of the N heads of all layers (head_divergence.py).

        None if the layers are not comparable, such as with different numbers of keys.
        """
        return compute_head_divergence([call.attention for call in self.calls])

    @cached_property
    def _pair_means(self) -> dict[str, dict[tuple[int, int], RowMeans]]:
        """Means (H,) of the measures of two layers: name → (layer, later layer) → means."""
        names = _select_measures(self.measure_names, PairMeasure)
        pair_means: dict[str, dict[tuple[int, int], RowMeans]] = {name: {} for name in names}
        if not names:
            return pair_means
        for pair, values in self._measure_pairs(names):
            for name, row_means in values.items():
                pair_means[name][pair] = row_means
        return pair_means

    def _measure_pairs(
        self, names: Sequence[str]
    ) -> Iterator[tuple[tuple[int, int], dict[str, RowMeans]]]:
        """Measures of two layers for every two layers that are compared: ((i, j), means)."""
        calls, layers = [call.attention for call in self.calls], range(len(self))
        has_all_pairs = len(self) <= MAX_LAYERS_ALL_PAIRS
        pairs = combinations(layers, 2) if has_all_pairs else pairwise(layers)
        comparable = [call for call in calls[:1] if call is not None]
        for call in calls[1:] if has_all_pairs else ():
            aligned = _align_pair(calls[0], call)
            if aligned is not None and aligned[0] is calls[0]:
                comparable.append(aligned[1])
        if len(comparable) == len(calls) > 2:
            # all layers are comparable: together, each is scored only once
            for indices, rows in measure_pairs(names, comparable).items():
                yield indices, _average_rows(rows)
            return
        for i, j in pairs:
            pair = _align_pair(calls[i], calls[j])
            if pair:
                yield (i, j), _measure_calls(names, *pair)

    def compare_layers(self) -> dict[str, Float[np.ndarray, "layer layer"]]:
        """Measures of two layers, averaged over heads: [i, j] compares layer i and a later layer j.

        NaN elsewhere, and for layers with different numbers of heads, queries or keys. With more
        than MAX_LAYERS_ALL_PAIRS layers, only neighbours are compared.
        """
        matrices = {}
        for name, pairs in self._pair_means.items():
            matrices[name] = np.full((len(self), len(self)), np.nan, np.float32)
            for pair, row_means in pairs.items():
                matrices[name][pair] = row_means.values.nanmean()
        return matrices


def mean_of_finite(values: Float[np.ndarray, "2 N"]) -> Float[np.ndarray, " 2"]:
    """Mean over the N heads that have a value in both halves of the examples; NaN without any."""
    is_finite = np.isfinite(values).all(axis=0)
    if not is_finite.any():
        return np.full(2, np.nan, np.float32)
    return values[:, is_finite].mean(axis=1)


def _select_measures(names: tuple[str, ...] | None, kind: type) -> list[str]:
    """Names of the measures of this class among `names`, or among all if None."""
    return [
        name
        for name in (registry.names() if names is None else names)
        if issubclass(registry.get(name), kind)
    ]


def _measure_calls(names: Sequence[str], *calls: AttentionCall) -> dict[str, RowMeans]:
    """Means over the rows of one or two calls, by measure.

    The kernels (compiled_statistics.py) are used only if all weights are a softmax of dot products.
    """
    with nullcontext() if all(type(call) is AttentionCall for call in calls) else no_kernels():
        return _average_rows(measure_rows(names, *calls))


def _average_rows(rows: Mapping[str, torch.Tensor]) -> dict[str, RowMeans]:
    """Means over all rows and, with more than one example, over those of the two halves."""
    means, batch = aggregate_rows(rows), max((len(values) for values in rows.values()), default=0)
    halves = [
        aggregate_rows({name: values[start::2] for name, values in rows.items()})
        for start in ((0, 1) if batch > 1 else ())
    ]
    return {
        name: RowMeans(
            values, (~rows[name].isnan()).sum(dim=(0, -1)), [half[name] for half in halves]
        )
        for name, values in means.items()
    }


def _align_pair(
    first: AttentionCall | None, second: AttentionCall | None
) -> tuple[AttentionCall, AttentionCall] | None:
    """Prepare two calls for comparison; None if their shapes differ.

    Equal masks become the same object, which the compiled loops require.
    """
    if first is None or second is None or _comparable_shape(first) != _comparable_shape(second):
        return None
    if (
        isinstance(second, DenseAttentionCall)
        and type(first) is AttentionCall
        and first.scale is None
        and first.k.shape[1] == first.heads
    ):
        # Both calls must iterate over the same blocks, and a dense call has blocks of its own. So
        # the first becomes one, too: `Self` is the mechanism of scaled dot-product attention.
        values = {field.name: getattr(first, field.name) for field in fields(AttentionCall)}
        first = DenseAttentionCall(**values, mechanism=Self())
    if _is_same_mask(first.mask, second.mask):
        second = replace(second, mask=first.mask)
    return first, second


def _comparable_shape(call: AttentionCall) -> tuple[int, ...]:
    return *call.q.shape[:3], call.keys, call.extra_keys


def _is_same_mask(first: Mask, second: Mask) -> bool:
    for field in fields(Mask):
        a, b = getattr(first, field.name), getattr(second, field.name)
        are_tensors = torch.is_tensor(a) and torch.is_tensor(b)
        if not (a is b or (torch.equal(a, b) if are_tensors else a == b)):
            return False
    return True
