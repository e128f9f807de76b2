"""Importance of attention heads: the change of the loss when a head is removed.

    importance = measure_head_importance(model, objective, batches, method="mean")
    importance.change[2, 3], importance.standard_error[2, 3]        L2 h3, in nats per target

Methods, what a removed head writes instead of its output z = weights @ values:

    mean        its mean over all examples and positions that are not padding (the default)
    zero        nothing
    resample    its output for another example of the batch, at the same position
    pattern     its values under another pattern: uniform, diagonal, previous, or its own average

Statistics: an example is the unit, because the tokens of one text depend on each other. D is the
sum of the changes of an example's targets and n their number; the change is ΣD / Σn, the mean over
all targets (a ratio estimate), and its standard error that of the residuals D − n·change. With
equally long examples this is the mean over examples with its usual standard error. Changes are
paired: the same examples with and without the head. Examples should be independent; overlapping
windows are not.

The gradient estimate is the first-order change, Σ (new output − z)·∂L/∂z, from one backward pass;
for `zero` it is −∂L/∂gate for a gate of 1 at the head (Michel et al., 2019).

Pairs: with at most `MAX_HEADS_ALL_PAIRS` heads, all pairs are measured. Otherwise candidates are
chosen on every fourth example and judged on the others (up to four examples are too few to divide;
a note says so): pairs of the most important heads; pairs
whose outputs point in the same direction in the residual stream, because either can then do the
work of both; and pairs of heads that write much, but do nothing alone. A redundant pair of another
kind, such as a later head that takes over only when the first is gone, can be missed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.intervene import intervene
from neural.capture.interventions import (
    HeadCall,
    HeadOutputs,
    Intervention,
    InterventionError,
    LayerOutputs,
    parse_heads,
    replace_pattern,
    widen,
)
from neural.capture.replay import CleanPass, LayerHead, Replay, count_examples, take_rows
from neural.capture.tracker import preserve_model_state
from neural.core.errors import TaskError
from neural.nn.lazy_torch import torch
from neural.runs.importance_file import ClassImportance, PairImportance

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from torch import Tensor, nn

    from neural.capture.interventions import Heads
    from neural.capture.replay import Batch, Objective

METHODS = ("mean", "zero", "resample", "pattern")
PATTERNS = ("uniform", "diagonal", "previous", "average")
DEFAULT_MEMORY_BYTES = 512 << 20
"""Memory for stored outputs, and again for each pass."""
MAX_CPU_TENSOR_BYTES = 13 << 20
"""Largest output of a module in a pass on a CPU. With three times as much, a pass is about a tenth
slower per example: its tensors no longer fit into caches, and their memory is mapped anew."""
MAX_HEADS_ALL_PAIRS = 16
"""Heads of a model up to which all pairs are measured."""
TOP_HEADS = 5
"""Heads whose pairs are candidates: the most important ones, and those that write most."""
MAX_OVERLAP_PAIRS = 10
"""Candidate pairs by the overlap of what the two heads write."""
SELECTION_STRIDE = 4
"""Every fourth example chooses candidate pairs."""
OVERLAP_VECTORS = 256
"""Positions at which the outputs of heads are compared."""
MAX_SILENT_RATIO = 2.0
"""A head does nothing alone if its change is below this number of standard errors."""
MIN_CLASS_TARGETS, MIN_CLASS_EXAMPLES = 30, 5
"""Smaller token classes are left out."""


class ImportanceError(TaskError):
    """Importance cannot be measured; the message says why and what to do."""


@dataclass(frozen=True)
class HeadImportance:
    """Importance of all heads of a model on some examples. Arrays are [layer, head].

    NaN where a layer has fewer heads than another, and for heads that were not measured.
    """

    method: str
    layers: tuple[str, ...]
    """Paths of the attention modules."""
    heads: tuple[int, ...]
    """Number of heads of each layer."""
    examples: int
    targets: int
    """Number of predicted tokens, or of examples."""
    loss: float
    """Mean loss of the unchanged model."""
    loss_se: float
    change: np.ndarray
    """Change of the loss without each head; positive: the head helps."""
    standard_error: np.ndarray
    gradient_estimate: np.ndarray
    example_changes: np.ndarray
    """Mean change of each example, [layer, head, example]; NaN for one without targets."""
    target_counts: np.ndarray
    """Number of targets of each example."""
    classes: Mapping[str, ClassImportance] = field(default_factory=dict)
    pairs: tuple[PairImportance, ...] = ()
    notes: tuple[str, ...] = ()


def measure_head_importance(
    model: nn.Module,
    objective: Objective,
    batches: Sequence[Batch],
    *,
    method: str = "mean",
    pattern: str = "uniform",
    heads: Heads | None = None,
    with_pairs: bool = True,
    classes: Sequence[Mapping[str, Bool[Tensor, "B T"]]] | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    seed: int = 0,
    use_blocks: bool = True,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> HeadImportance:
    """Remove every head in turn and measure the change of the loss.

    `objective(model, batch)` returns losses (B, T) or (B,), NaN where there is no target; examples
    must not influence each other. `batches`: mappings of tensors, with examples along the first
    axis. `pattern`: for method "pattern". `heads`: only these; all if None. `classes`: for each
    batch, the targets of each token class. `memory_bytes` bounds stored outputs and the size of a
    pass.
    `seed`: for "resample". `use_blocks=False` runs the complete model each time (replay.py).
    `on_progress(done, total)` counts passes. The model is not changed; it runs in evaluation mode.

    ImportanceError if there is no loss, a loss is not finite, or there are fewer than two examples;
    InterventionError if a head does not exist or cannot be changed.
    """
    if method not in METHODS:
        raise ImportanceError(f"there is no method `{method}`: use {', '.join(METHODS)}")
    if method == "pattern" and pattern not in PATTERNS:
        raise ImportanceError(f"there is no pattern `{pattern}`: use {', '.join(PATTERNS)}")
    _check_weights(model)
    examples = sum(count_examples(batch) for batch in batches)
    if examples < 2:
        raise ImportanceError(
            f"importance needs at least 2 examples for its standard errors, got {examples}"
        )
    with preserve_model_state(model):
        return _Measurement(
            model,
            objective,
            batches,
            method,
            pattern,
            heads,
            classes,
            memory_bytes,
            seed,
            use_blocks,
            on_progress,
        ).run(with_pairs=with_pairs)


def _check_weights(model: nn.Module) -> None:
    for name, param in model.named_parameters():
        if param.is_floating_point() and not bool(param.isfinite().all()):
            raise ImportanceError(
                f"the weight `{name}` has values that are not finite: the training diverged, or "
                "the file is damaged; choose an earlier checkpoint with --step"
            )


class _Measurement:
    """One measurement: chunks of examples, unchanged passes, removals, pairs."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        batches: Sequence[Batch],
        method: str,
        pattern: str,
        heads: Heads | None,
        classes: Sequence[Mapping[str, Tensor]] | None,
        memory_bytes: int,
        seed: int,
        use_blocks: bool,
        on_progress: Callable[[int, int], None],
    ) -> None:
        self.model, self.objective, self.method = model, objective, method
        self.pattern_name, self.memory_bytes = pattern, memory_bytes
        self.on_progress, self.notes = on_progress, list[str]()
        self.replay = Replay(model, objective, batches[0], use_blocks=use_blocks)
        self.selected = self._select_heads(heads)
        gradient_rows, self.pass_rows = self.replay.choose_rows(memory_bytes)
        if next(model.parameters()).device.type == "cpu":
            largest = max(1, self.replay.largest_bytes)
            self.pass_rows = min(self.pass_rows, max(2, MAX_CPU_TENSOR_BYTES // largest))
        rows, random = min(gradient_rows, self.pass_rows), np.random.default_rng(seed)
        self.chunks = list(_split_batches(batches, rows, classes, random))
        self.examples = sum(count_examples(chunk.batch) for chunk in self.chunks)
        self.class_names = _select_classes(self.chunks)
        self.pattern: Intervention | None = None
        self.means: list[Tensor] = []
        """Mean output of each head, by layer: (1, H, 1, D)."""
        self.done = self.total = self.planned_pairs = 0

    def _select_heads(self, heads: Heads | None) -> list[LayerHead]:
        counts = self.replay.heads
        every = [(layer, head) for layer, count in enumerate(counts) for head in range(count)]
        parsed = None if heads is None else parse_heads(heads)
        if parsed is None:
            return every
        selected = []
        for address in parsed:
            paths = self.replay.paths
            layer = paths.index(address.layer) if address.layer in paths else address.layer
            if (layer, address.head) not in every:
                shown = ", ".join(f"L{index}: {count}" for index, count in enumerate(counts[:8]))
                raise InterventionError(
                    f"there is no head {address}: heads of each layer are {shown}"
                    + (" …" if len(counts) > 8 else "")
                )
            selected.append((int(layer), address.head))
        return sorted(set(selected))

    def run(self, *, with_pairs: bool) -> HeadImportance:
        """Unchanged passes, then all removals of each chunk, then pairs."""
        self.planned_pairs = self._plan_pairs() if with_pairs else 0
        self.total = len(self.chunks) * (1 + len(self.selected) + self.planned_pairs)
        self.on_progress(0, self.total)
        if self.method == "pattern":
            self.pattern = self._build_pattern()
        clean_passes = self._run_clean()
        sums = np.full((*self._shape, self.examples), np.nan)
        class_sums = {name: sums.copy() for name in self.class_names}
        for chunk, clean in zip(self.chunks, clean_passes, strict=True):
            clean = self._run_chunk(chunk) if clean is None else clean
            replacements = self._build_replacements(clean, chunk)
            for group in self._group_removals([(head,) for head in self.selected], chunk):
                changes = self._remove(clean, chunk, group, replacements)
                for (head,), change in zip(group, changes, strict=True):
                    sums[head][chunk.rows] = change.nansum(dim=-1).cpu().numpy()
                    for name in self.class_names:
                        values = torch.where(chunk.get_class(name), change, 0.0)
                        class_sums[name][head][chunk.rows] = values.nansum(dim=-1).cpu().numpy()
        change, standard_error = estimate_ratio(sums, self.counts)
        pairs: tuple[PairImportance, ...] = ()
        if with_pairs and len(self.selected) > 1:
            pairs = self._measure_pairs(clean_passes, sums)
        with np.errstate(invalid="ignore", divide="ignore"):
            example_changes = sums / self.counts
        loss, loss_se = estimate_ratio(self.loss_sums, self.counts)
        return HeadImportance(
            method=f"pattern {self.pattern_name}" if self.method == "pattern" else self.method,
            layers=self.replay.paths,
            heads=self.replay.heads,
            examples=int((self.counts > 0).sum()),
            targets=int(self.counts.sum()),
            loss=float(loss),
            loss_se=float(loss_se),
            change=change,
            standard_error=standard_error,
            gradient_estimate=self._mask_selected(self.gradients / self.counts.sum()),
            example_changes=example_changes,
            target_counts=self.counts,
            classes={
                name: ClassImportance(
                    float(self.class_counts[name].sum() / self.counts.sum()),
                    *estimate_ratio(class_sums[name], self.class_counts[name]),
                )
                for name in self.class_names
            },
            pairs=pairs,
            notes=tuple(self.notes),
        )

    def _plan_pairs(self) -> int:
        """Number of pairs that will be measured, or the largest possible one of candidates."""
        every = math.comb(len(self.selected), 2)
        if len(self.selected) <= MAX_HEADS_ALL_PAIRS:
            return every
        return min(every, 2 * math.comb(TOP_HEADS, 2) + MAX_OVERLAP_PAIRS)

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.replay.heads), max(self.replay.heads)

    def _mask_selected(self, array: np.ndarray) -> np.ndarray:
        """NaN for heads that are not measured."""
        masked = np.full_like(array, np.nan)
        for head in self.selected:
            masked[head] = array[head]
        return masked

    def _run_clean(self) -> list[CleanPass | None]:
        """Unchanged passes of all chunks: losses, means, gradients.

        A pass is stored if all passes fit into the memory, and None otherwise.
        """
        self.counts, self.loss_sums = np.zeros(self.examples), np.zeros(self.examples)
        self.class_counts = {name: np.zeros(self.examples) for name in self.class_names}
        self.gradients = np.zeros(self._shape)
        widths = self.replay.head_widths
        output_sums = [
            torch.zeros(count, width, dtype=torch.float64)
            for count, width in zip(self.replay.heads, widths, strict=True)
        ]
        slope_sums = [torch.zeros_like(sums) for sums in output_sums]
        real_counts = [0.0] * len(output_sums)
        passes: list[CleanPass | None] = []
        stored_bytes, with_gradients = 0, True
        for chunk in self.chunks:
            clean, with_gradients = self._run_with_gradients(chunk, with_gradients)
            losses = _check_losses(clean.losses, chunk)
            has_target = ~losses.isnan()
            self.counts[chunk.rows] = has_target.sum(dim=-1).cpu().numpy()
            self.loss_sums[chunk.rows] = losses.nansum(dim=-1).double().cpu().numpy()
            for name in self.class_names:
                members = chunk.get_class(name) & has_target
                self.class_counts[name][chunk.rows] = members.sum(dim=-1).cpu().numpy()
            replacements = None if self.method == "mean" else self._build_replacements(clean, chunk)
            for layer, state in enumerate(clean.layers):
                output = widen(state.output)
                real = _get_real_weights(state.real, output)
                total = output.sum(dim=(0, 2)) if real is None else (output * real).sum(dim=(0, 2))
                output_sums[layer] += total.double().cpu()
                positions = output.shape[0] * output.shape[2] if real is None else real.sum()
                real_counts[layer] += float(positions)
                if state.gradient is not None:
                    slope = widen(state.gradient)
                    heads = slice(0, self.replay.heads[layer])
                    # Σ (new − z)·∂L/∂z; the mean is not known yet, so its part is added at the end
                    new = None if replacements is None else replacements[layer]
                    new = state.pattern_output if isinstance(new, Intervention) else new
                    difference = output if new is None else output - new.to(output)
                    products = (difference * slope).sum(dim=(0, 2, 3))
                    self.gradients[layer, heads] -= products.double().cpu().numpy()
                    slope_sums[layer] += slope.sum(dim=(0, 2)).double().cpu()
                else:
                    self.gradients[layer] = np.nan
            clean = _drop_gradients(clean)
            stored_bytes += clean.memory_bytes
            passes.append(clean)
            if stored_bytes > self.memory_bytes:
                passes = [None] * len(passes)
            self._advance(1)
        self.means = [
            (sums / max(count, 1.0))[None, :, None, :]
            for sums, count in zip(output_sums, real_counts, strict=True)
        ]
        if self.method == "mean":
            for layer, (mean, slopes) in enumerate(zip(self.means, slope_sums, strict=True)):
                part = (mean[0, :, 0] * slopes).sum(dim=-1).numpy()
                self.gradients[layer, : len(part)] += part
        unknown = [layer for layer, row in enumerate(self.gradients) if np.isnan(row).any()]
        if unknown:
            where = "" if len(unknown) == len(widths) else f" of {_name_layers(unknown)}"
            self.notes.append(
                f"the gradient estimate{where} is missing: the model has no derivative here"
            )
        if not self.counts.sum():
            raise ImportanceError(
                "no example has a target, or every loss is NaN, so there is no loss to measure"
            )
        return passes

    def _run_with_gradients(self, chunk: _Chunk, with_gradients: bool) -> tuple[CleanPass, bool]:
        """An unchanged pass; without gradients if the model cannot be differentiated."""
        if with_gradients:
            try:
                return self._run_chunk(chunk, with_gradients=True), True
            except (RuntimeError, NotImplementedError) as error:
                if "memory" in str(error):
                    raise
        return self._run_chunk(chunk), False

    def _run_chunk(self, chunk: _Chunk, *, with_gradients: bool = False) -> CleanPass:
        return self.replay.run_clean(
            chunk.batch, pattern=self.pattern, with_gradients=with_gradients
        )

    def _build_pattern(self) -> Intervention:
        """The intervention that replaces the pattern of all heads."""
        if self.pattern_name != "average":
            return replace_pattern("all", self.pattern_name)
        collector = _WeightCollector()
        for chunk in self.chunks:
            with torch.no_grad(), intervene(self.model, collector):
                self.objective(self.model, chunk.batch)
        outputs = [
            LayerOutputs(
                path,
                weights.new_zeros(1, len(weights), 1, width),
                weights,
                (weights / collector.examples[layer])[None],
            )
            for layer, (path, weights, width) in enumerate(
                zip(
                    self.replay.paths,
                    (collector.sums[layer] for layer in sorted(collector.sums)),
                    self.replay.head_widths,
                    strict=True,
                )
            )
        ]
        return replace_pattern("all", HeadOutputs(outputs))

    def _build_replacements(self, clean: CleanPass, chunk: _Chunk) -> list[Tensor | Intervention]:
        """What removed heads write, by layer."""
        if self.method == "mean":
            return [
                mean.to(state.output) for mean, state in zip(self.means, clean.layers, strict=True)
            ]
        if self.method == "zero":
            return [state.output.new_zeros(()) for state in clean.layers]
        if self.pattern is not None:
            return [self.pattern] * len(clean.layers)
        return [_shift_examples(state, chunk.shift) for state in clean.layers]

    def _group_removals(
        self, removals: Sequence[tuple[LayerHead, ...]], chunk: _Chunk
    ) -> Iterator[list[tuple[LayerHead, ...]]]:
        """Removals that run in one pass: of one first layer, as many as the memory allows."""
        rows = count_examples(chunk.batch)
        copies = max(1, self.pass_rows // rows) if self.replay.can_repeat else 1
        for _, group in itertools.groupby(removals, key=lambda heads: min(heads)[0]):
            members = list(group)
            passes = math.ceil(len(members) / copies)
            for index in range(passes):  # of equal size, as far as possible
                yield members[index * len(members) // passes : (index + 1) * len(members) // passes]

    def _remove(
        self,
        clean: CleanPass,
        chunk: _Chunk,
        group: Sequence[tuple[LayerHead, ...]],
        replacements: list[Tensor | Intervention],
    ) -> Float[Tensor, "n B T"]:
        """Changes of all losses for each set of removed heads; NaN where there is no target."""
        losses = self.replay.run_without(clean, group, replacements)
        expected = _to_matrix(clean.losses)
        changes = losses.reshape(len(group), *expected.shape).double() - expected.double()
        is_wrong = ~changes.isfinite() & ~expected.isnan()
        if bool(is_wrong.any()):
            removal, example = is_wrong.any(dim=-1).nonzero()[0].tolist()
            names = " and ".join(f"L{layer} h{head}" for layer, head in group[removal])
            raise ImportanceError(
                f"without {names}, the loss of example {chunk.rows.start + example} is not "
                "finite; try another --method"
            )
        self._advance(len(group))
        return changes

    def _measure_pairs(
        self, clean_passes: Sequence[CleanPass | None], sums: np.ndarray
    ) -> tuple[PairImportance, ...]:
        """Measure candidate pairs."""
        pairs, is_judged = list(itertools.combinations(self.selected, 2)), self.counts > 0
        if len(self.selected) > MAX_HEADS_ALL_PAIRS:
            is_selecting, how = is_judged, "and measured on the same few examples"
            if self.examples > SELECTION_STRIDE:
                is_selecting = np.arange(self.examples) % SELECTION_STRIDE == 0
                is_judged = is_judged & ~is_selecting
                how = f"on every {SELECTION_STRIDE}th example and measured on the others"
            pairs = self._choose_pairs(clean_passes, sums[..., is_selecting], is_selecting)
            self.notes.append(f"{len(pairs)} pairs of heads were chosen {how}")
        # candidates of several kinds may be the same pair
        self.total -= (self.planned_pairs - len(pairs)) * len(self.chunks)
        both = np.zeros((len(pairs), self.examples))
        index = {pair: position for position, pair in enumerate(pairs)}
        for chunk, clean in zip(self.chunks, clean_passes, strict=True):
            clean = self._run_chunk(chunk) if clean is None else clean
            replacements = self._build_replacements(clean, chunk)
            for group in self._group_removals(pairs, chunk):
                changes = self._remove(clean, chunk, group, replacements)
                for pair, change in zip(group, changes, strict=True):
                    both[index[pair], chunk.rows] = change.nansum(dim=-1).cpu().numpy()
        results = []
        counts = self.counts[is_judged]
        for (first, second), values in zip(pairs, both, strict=True):
            joint, joint_se = estimate_ratio(values[is_judged], counts)
            excess = values - sums[first] - sums[second]
            interaction, interaction_se = estimate_ratio(excess[is_judged], counts)
            results.append(
                PairImportance(
                    first,
                    second,
                    float(joint),
                    float(joint_se),
                    float(interaction),
                    float(interaction_se),
                )
            )
        return tuple(sorted(results, key=lambda pair: -abs(pair.interaction)))

    def _choose_pairs(
        self,
        clean_passes: Sequence[CleanPass | None],
        sums: np.ndarray,
        is_selecting: np.ndarray,
    ) -> list[tuple[LayerHead, ...]]:
        """Candidate pairs, in the order of their first layers."""
        change, standard_error = estimate_ratio(sums, self.counts[is_selecting])
        by_change = sorted(self.selected, key=lambda head: -abs(change[head]))
        clean = clean_passes[0] or self._run_chunk(self.chunks[0])
        writes = self._compare_writes(clean)
        norms = {head: writes.get((head, head), 0.0) for head in self.selected}
        silent = [
            head
            for head in self.selected
            if not abs(change[head]) > MAX_SILENT_RATIO * standard_error[head]
        ]
        by_norm = sorted(silent, key=norms.__getitem__, reverse=True)
        overlapping = sorted(
            (pair for pair in writes if pair[0] < pair[1] and writes[pair] > 0),
            key=writes.__getitem__,
            reverse=True,
        )
        pairs = {
            *itertools.combinations(sorted(by_change[:TOP_HEADS]), 2),
            *itertools.combinations(sorted(by_norm[:TOP_HEADS]), 2),
            *overlapping[:MAX_OVERLAP_PAIRS],
        }
        return sorted(pairs)

    def _compare_writes(self, clean: CleanPass) -> dict[tuple[LayerHead, LayerHead], float]:
        """Inner products of what two heads add to the residual stream, beyond their replacement.

        At the first positions of the examples, summed. The pair of a head with itself has its
        squared norm. Heads of layers with another number of positions or an unknown projection
        are compared within their layer, by their outputs.
        """
        replacements = self._build_replacements(clean, self.chunks[0])
        groups: dict[tuple[Any, ...], list[tuple[LayerHead, Tensor]]] = {}
        for layer, (state, new) in enumerate(zip(clean.layers, replacements, strict=True)):
            new = state.pattern_output if isinstance(new, Intervention) else new
            assert new is not None
            positions = max(1, OVERLAP_VECTORS // len(state.output))
            excess = (state.output - new)[:, :, :positions].float()
            weight = self.replay.get_projection_weight(layer)
            for head in range(state.output.shape[1]):
                if (layer, head) not in self.selected:
                    continue
                vectors = excess[:, head]
                if weight is not None:
                    width = vectors.shape[-1]
                    vectors = vectors @ weight[head * width : (head + 1) * width].float()
                key = (tuple(vectors.shape), layer if weight is None else None)
                groups.setdefault(key, []).append(((layer, head), vectors.flatten()))
        products = {}
        for members in groups.values():
            stacked = torch.stack([vectors for _, vectors in members])
            gram = (stacked @ stacked.T).cpu().numpy()
            for row, (first, _) in enumerate(members):
                for column, (second, _) in enumerate(members):
                    products[first, second] = float(gram[row, column])
        return products

    def _advance(self, passes: int) -> None:
        self.done += passes
        self.on_progress(self.done, max(self.total, self.done))


@dataclass(frozen=True)
class _Chunk:
    """Examples that run in one pass."""

    batch: Batch
    rows: slice
    """Their positions among all examples."""
    classes: Mapping[str, Tensor]
    shift: int
    """For resampling: example i takes the output of example i + shift of the chunk."""

    def get_class(self, name: str) -> Bool[Tensor, "B T"]:
        """Targets of a token class; none if the batch does not have it."""
        members = self.classes.get(name)
        count = count_examples(self.batch)
        return torch.zeros(count, 1, dtype=torch.bool) if members is None else _to_matrix(members)


class _WeightCollector(Intervention):
    """Sums the attention weights of all examples, for the average pattern."""

    needs_weights = True

    def __init__(self) -> None:
        self.sums: dict[int, Tensor] = {}
        """By layer: a module that runs several times has several layers."""
        self.examples: dict[int, int] = {}

    def targets(self, layer: int, path: str) -> bool:
        """Every layer."""
        return True

    def apply(self, call: HeadCall) -> Float[Tensor, "B H Q D"]:
        """Add the weights."""
        weights = call.compute_weights().detach()
        total = weights.float().sum(dim=0)
        if call.layer in self.sums and self.sums[call.layer].shape != total.shape:
            raise ImportanceError(
                "the average pattern needs examples of one length; use --pattern uniform"
            )
        self.sums[call.layer] = self.sums.get(call.layer, 0) + total
        self.examples[call.layer] = self.examples.get(call.layer, 0) + len(weights)
        return call.output


def estimate_ratio(sums: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Σ sums / Σ counts over the last axis, and its standard error; NaN with fewer than 2 examples.

    `sums` [..., example]; `counts` [example], the numbers of targets.
    """
    has_targets = counts > 0
    sums, counts = np.asarray(sums)[..., has_targets], counts[has_targets]
    examples = len(counts)
    if not examples:
        missing = np.full(sums.shape[:-1], np.nan)
        return missing, missing
    ratio = sums.sum(axis=-1) / counts.sum()
    residuals = sums - ratio[..., None] * counts
    if examples < 2:
        return ratio, np.full_like(ratio, np.nan)
    variance = examples / (examples - 1) * (residuals**2).sum(axis=-1)
    return ratio, np.sqrt(variance) / counts.sum()


def _split_batches(
    batches: Sequence[Batch],
    max_rows: int,
    classes: Sequence[Mapping[str, Tensor]] | None,
    random: np.random.Generator,
) -> Iterator[_Chunk]:
    """Chunks of nearly equal size; none has one example if its batch has more."""
    position = 0
    for index, batch in enumerate(batches):
        count = count_examples(batch)
        chunks = min(math.ceil(count / max_rows), max(1, count // 2))
        members = {} if classes is None else classes[index]
        for chunk in range(chunks):
            rows = slice(chunk * count // chunks, (chunk + 1) * count // chunks)
            size = rows.stop - rows.start
            yield _Chunk(
                take_rows(batch, rows),
                slice(position, position + size),
                {name: mask[rows] for name, mask in members.items()},
                shift=int(random.integers(1, max(2, size))),
            )
            position += size


def _select_classes(chunks: Sequence[_Chunk]) -> list[str]:
    """Names of token classes with enough targets in enough examples."""
    names = dict.fromkeys(name for chunk in chunks for name in chunk.classes)
    selected = []
    for name in names:
        counts = torch.cat([chunk.get_class(name).sum(dim=-1).cpu() for chunk in chunks])
        has_enough = int((counts > 0).sum()) >= MIN_CLASS_EXAMPLES
        if has_enough and int(counts.sum()) >= MIN_CLASS_TARGETS:
            selected.append(name)
    return selected


def _to_matrix(values: Tensor) -> Tensor:
    """(B, T) from (B,) or (B, …)."""
    return values.unsqueeze(-1) if values.ndim == 1 else values.flatten(1)


def _check_losses(losses: Tensor, chunk: _Chunk) -> Float[Tensor, "B T"]:
    """Losses as (B, T); ImportanceError if one is infinite or the shape is wrong."""
    examples = count_examples(chunk.batch)
    if losses.ndim == 0 or len(losses) != examples:
        raise ImportanceError(
            f"the objective returned losses of shape {tuple(losses.shape)} for {examples} "
            "examples; it must return a loss for each example or token"
        )
    matrix = _to_matrix(losses)
    is_infinite = matrix.isinf().any(dim=-1)
    if bool(is_infinite.any()):
        example = chunk.rows.start + int(is_infinite.nonzero()[0])
        raise ImportanceError(
            f"the loss of example {example} is infinite, so nothing can be compared"
        )
    return matrix


def _name_layers(layers: Sequence[int]) -> str:
    return ", ".join(f"L{layer}" for layer in layers)


def _get_real_weights(real: Tensor | None, output: Tensor) -> Float[Tensor, "B 1 Q 1"] | None:
    """1 for positions that are not padding, 0 for others; None if no position is padding."""
    return None if real is None else real[:, None, :, None].to(output)


def _drop_gradients(clean: CleanPass) -> CleanPass:
    """The pass without derivatives, which are used once."""
    layers = [
        type(state)(state.path, state.output, state.real, state.pattern_output)
        for state in clean.layers
    ]
    return CleanPass(clean.batch, clean.examples, clean.losses, layers, clean.units)


def _shift_examples(state: Any, shift: int) -> Float[Tensor, "B H Q D"]:
    """Head outputs of another example for each example, at the same position.

    Positions beyond the end of the other example take its positions from the start again.
    """
    output = state.output
    rows = len(output)
    if rows < 2:
        raise ImportanceError(
            "resampling needs at least two examples in each batch; use --method mean"
        )
    source = (torch.arange(rows, device=output.device) + shift) % rows
    if bool((source == torch.arange(rows, device=output.device)).any()):
        source = (torch.arange(rows, device=output.device) + 1) % rows
    shifted = output[source]
    if state.real is None:
        return shifted
    real = state.real[source]
    queries = output.shape[2]
    order = (~real).int().argsort(dim=-1, stable=True)  # positions that are not padding come first
    lengths = real.sum(dim=-1, keepdim=True).clamp(min=1)
    own = state.real.cumsum(dim=-1) - 1  # rank of each position among its example's
    position = order.gather(1, own.clamp(min=0) % lengths)
    index = position[:, None, :, None].expand(-1, shifted.shape[1], queries, shifted.shape[3])
    return shifted.gather(2, index)
