"""Patching experiments: which heads carry what makes the clean input differ from the corrupted one.

    result = patch("./gpt2", "pairs.yaml")
    result["heads"].restored               restored shares [layer, head]
    result["positions"].has_effect         [layer, head, position]
    result.to_dataframe(), result.to_dict(), result.save("page.html")

The model runs on the corrupted input, and what one unit wrote on the clean input is patched in: a
head, a head at one position, or the residual stream before a block at one position. The restored
share of the metric is averaged over the pairs, and compared with that of other, mismatched pairs
(findings/patching_effects.py). Many units run in one batch: each example has its own patch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neural.capture.blocks import find_blocks, patch_residual, record_residual
from neural.capture.intervene import intervene, record_head_outputs
from neural.capture.interventions import (
    HeadCall,
    HeadOutputs,
    Intervention,
    InterventionError,
    LayerOutputs,
)
from neural.capture.path_patching import (
    OUTPUT,
    THROUGH,
    LocatedHead,
    compute_received,
    locate_head,
    patch_path,
    patch_received,
)
from neural.capture.watch import NoAttentionError, assume_softmax
from neural.core.errors import TaskError
from neural.findings.patching_effects import (
    MAX_BLOCK_SIZE,
    UnitEffects,
    can_decide,
    estimate_effects,
    find_weak_pairs,
    make_blocks,
)
from neural.interpret.objectives import ScoredModel
from neural.interpret.subject import Subject, load_subject
from neural.nn.lazy_torch import torch
from neural.runs.find import DEFAULT_RUNS_DIR
from neural.stats.estimate import format_number
from neural.stats.means import estimate_mean
from neural.workflows.patching_pairs import TokenPair, read_pairs, tokenize_pairs
from neural.workflows.patching_result import (
    PatchingResult,
    PatchingSweep,
    PathEffects,
    PathUnit,
    Unit,
)

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor, nn

    from neural.capture.blocks import BlockOutputs

SWEEPS = ("heads", "positions", "residual")
"""What is patched: a head at all positions, a head at one, the residual stream at one."""
DEFAULT_BATCH_SIZE = 64
"""Examples of a batch, at most."""
MAX_BATCH_VALUES = 2**25
"""Logits that a batch may compute, 128 MB in 32 bits; longer inputs get smaller batches."""
MAX_DEFAULT_COST = 1e11
"""Without a choice of sweeps, that over positions runs if examples × parameters are at most this."""
MAX_PATH_HEADS = 6
"""Heads between which a sweep of paths looks for paths."""
MIN_PATH_SHARE = 0.05
"""Smallest restored share of a head in a sweep of paths, if there is no null."""

OnProgress = Callable[[str, int, int], None]


def patch(
    target: str | Path | nn.Module,
    pairs: str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    metric: str | None = None,
    objective: str | None = None,
    sweeps: str | Iterable[str] | None = None,
    paths: bool | Sequence[tuple[str, ...]] = False,
    null: bool = True,
    tokenizer: Any = None,
    step: int | None = None,
    build: str | None = None,
    implementation: str | None = None,
    softmax: bool | None = None,
    batch_size: int | None = None,
    seed: int = 0,
    runs: str | Path = DEFAULT_RUNS_DIR,
    on_progress: OnProgress = lambda name, done, total: None,
) -> PatchingResult:
    """Patch heads from clean into corrupted inputs, and measure how much of a metric is restored.

        result = neural.patch("./gpt2", "pairs.yaml")
        result["heads"].restored, result["heads"].p          arrays [layer, head]
        result.to_dataframe(), result.save("page.html")
        neural.patch(model, [{"clean": [5, 3, 9], "corrupted": [5, 4, 9], "answer": 7, "wrong": 8}])

    `target`: a run or its name, a target of `neural watch`, or a torch module (then texts need a
    `tokenizer`). `pairs`: a YAML file, or a list of dictionaries (docs/patching.md). `metric`:
    logit_difference, loss or probability; replaces that of the file. `objective`: instead of a
    metric and answers, for models that predict no token (interpret/objectives.py): "cosine" (with the
    embedding of the clean input), "norm", "logit:LABEL" or "module:function". `sweeps`: "heads",
    "positions" (heads × positions) and "residual" (layers × positions); by default heads, and
    positions if they take few examples. `paths`: paths such as [("L0 h1", "L1 h0"), ("L1 h0",
    "output"), ("L0 h1", "L1 h0", "k")], or True for all between the heads that matter. `null=False`
    skips the comparison with mismatched pairs. `step`: checkpoint of a run. `softmax`: as in
    `neural.watch`. `on_progress` is called with a name, the number of examples that are done, and of
    all.
    SettingsError, TaskError or RunError with a message if the input is wrong.
    """
    if metric is not None and objective is not None:
        raise TaskError("--metric and --objective are two scores: choose one of them")
    pair_source = read_pairs(pairs, metric=metric, needs_targets=objective is None)
    kinds = _check_sweeps(sweeps)
    model = load_subject(
        target,
        tokenizer=tokenizer,
        step=step,
        build=build,
        implementation=implementation,
        runs=Path(runs),
    )
    model.check_reads_tokens()
    token_pairs = tokenize_pairs(pair_source, model, needs_targets=objective is None)
    score = pair_source.settings.metric if objective is None else objective
    if objective is not None:
        model = replace(model, model=ScoredModel(model.model, objective).eval())
    experiment = _Experiment(model, token_pairs, score, batch_size, seed, on_progress, null=null)
    try:
        with assume_softmax(softmax):
            return experiment.run(kinds, paths)
    except (InterventionError, NoAttentionError) as error:
        raise TaskError(f"{model.name}: {error}") from error


def _check_sweeps(sweeps: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if sweeps is None:
        return None
    kinds = (sweeps,) if isinstance(sweeps, str) else tuple(sweeps)
    unknown = [kind for kind in kinds if kind not in SWEEPS]
    if unknown or not kinds:
        raise TaskError(f"there is no sweep `{', '.join(unknown)}`: there are {', '.join(SWEEPS)}")
    return tuple(dict.fromkeys(kinds))


@dataclass
class _LengthGroup:
    """Recorded runs of all pairs with the same number of tokens."""

    pairs: list[int]
    """Indices of the pairs; the order of the rows of all tensors."""
    clean: Int[Tensor, "n T"]
    corrupted: Int[Tensor, "n T"]
    outputs: HeadOutputs
    """Of the clean inputs, then of the corrupted ones."""
    streams: BlockOutputs | None = None
    """Residual streams, in the same order."""

    def find_rows(self, pairs: Sequence[int]) -> list[int]:
        """Rows of pairs in the tensors of the inputs."""
        return [self.pairs.index(pair) for pair in pairs]

    def find_source_rows(self, examples: Sequence[_Example]) -> list[int]:
        """Rows of the sources of examples in the recorded outputs."""
        rows = self.find_rows([example.source for example in examples])
        count = len(self.pairs)
        return [
            row + (0 if example.is_clean else count)
            for row, example in zip(rows, examples, strict=True)
        ]


class _Example(NamedTuple):
    """One example of a sweep: a unit is patched from one pair into another."""

    unit: int
    pair: int
    slot: int
    """Index of the source in the block of the pair."""
    source: int
    """The pair whose input is the source."""
    is_clean: bool = True
    """Whether the source is the clean input of that pair; its corrupted one is subtracted."""


class _Experiment:
    """A model with pairs, as `patch` runs them."""

    def __init__(
        self,
        model: Subject,
        pairs: list[TokenPair],
        metric: str,
        batch_size: int | None,
        seed: int,
        on_progress: OnProgress,
        *,
        null: bool,
    ) -> None:
        self.model, self.pairs, self.metric = model, pairs, metric
        self.batch_size, self.seed, self.on_progress = batch_size, seed, on_progress
        self.has_null = null
        self.answers = torch.tensor([pair.answer for pair in pairs])
        self.wrongs = torch.tensor([-1 if pair.wrong is None else pair.wrong for pair in pairs])
        self.notes = model.token_notes
        self.sign = -1.0 if metric == "loss" else 1.0
        """Scores are the metric, or minus the loss: larger is nearer to the answer."""

    def run(
        self, kinds: tuple[str, ...] | None, paths: bool | Sequence[tuple[str, ...]]
    ) -> PatchingResult:
        """Measure all pairs, then all sweeps and paths."""
        if self.metric == "cosine":
            embeddings = [self.model.check_run(torch.tensor([pair.clean])) for pair in self.pairs]
            self.references = torch.cat(embeddings)
        clean, corrupted = (
            self._score_inputs([getattr(pair, key) for pair in self.pairs])
            for key in ("clean", "corrupted")
        )
        self._check_finite(clean, corrupted)
        is_used = ~find_weak_pairs(clean - corrupted)
        self._note_weak_pairs(is_used, clean, corrupted)
        self.used = [int(pair) for pair in np.flatnonzero(is_used)]
        self.base = corrupted
        self.differences = clean - corrupted
        lengths = [self.pairs[pair].length for pair in self.used]
        self.blocks = None
        if self.has_null:
            self.blocks = make_blocks(lengths, max_size=MAX_BLOCK_SIZE, seed=self.seed)
            self._note_blocks(lengths)
        self.groups = {length: self._record(length) for length in sorted(set(lengths))}
        self.positions = min(lengths)
        layers = self.groups[lengths[0]].outputs.layers
        result = PatchingResult(
            model=self.model.name,
            source=self.model.source,
            metric=self.metric,
            pairs=self.pairs,
            is_used=is_used,
            clean=self.sign * clean,
            corrupted=self.sign * corrupted,
            layers=[layer.path for layer in layers],
            labels=self._label_positions(),
            notes=self.notes,
        )
        if len(set(lengths)) > 1 and kinds != ("heads",):
            self.notes.append(
                f"inputs have {min(lengths)} to {max(lengths)} tokens: positions are counted from "
                f"the end, and the last {self.positions} are compared; tokens are those of the "
                "first pair"
            )
        for kind in self._choose_sweeps(kinds, layers):
            result.sweeps[kind] = self._sweep(kind, layers)
        if paths is not False:
            measured = self._measure_paths(paths, result)
            result = replace(result, paths=measured)
        return result

    # the pairs

    def _score(self, logits: Float[Tensor, "B C"], pairs: Sequence[int]) -> np.ndarray:
        """Scores of examples that belong to pairs."""
        if self.model.is_score:
            scores = logits[:, 0]
            if self.metric == "cosine":
                references = self.references[list(pairs)]
                scores = torch.nn.functional.cosine_similarity(logits, references, dim=-1)
            return scores.double().cpu().numpy()
        rows = torch.arange(len(logits))
        answers = self.answers[list(pairs)]
        if self.metric == "logit_difference":
            scores = logits[rows, answers] - logits[rows, self.wrongs[list(pairs)]]
        else:
            log_probability = logits.log_softmax(-1)[rows, answers]
            scores = log_probability if self.metric == "loss" else log_probability.exp()
        return scores.double().cpu().numpy()

    def _score_inputs(self, inputs: Sequence[Sequence[int]]) -> Float[np.ndarray, " n"]:
        """Scores of unchanged runs, one input per pair."""
        scores = np.empty(len(inputs))
        for length in sorted({len(ids) for ids in inputs}):
            members = [pair for pair, ids in enumerate(inputs) if len(ids) == length]
            for batch in _iter_batches(members, self._count_examples(length)):
                ids = torch.tensor([list(inputs[pair]) for pair in batch])
                logits = self.model.check_run(ids)
                classes = logits.shape[1]
                for pair in batch:
                    largest = max(self.pairs[pair].answer, self.pairs[pair].wrong or 0)
                    if largest >= classes:
                        raise TaskError(
                            f"{self.pairs[pair].place}: the target {largest} is not one of the "
                            f"{classes} classes of {self.model.name}"
                        )
                scores[batch] = self._score(logits, batch)
        return scores

    def _check_finite(self, *scores: np.ndarray) -> None:
        for pair in range(len(self.pairs)):
            if not all(np.isfinite(values[pair]) for values in scores):
                raise TaskError(
                    f"{self.pairs[pair].place}: the logits of {self.model.name} are NaN or "
                    "infinite; check the weights with `neural debug` or `neural watch`"
                )

    def _note_weak_pairs(
        self, is_used: np.ndarray, clean: np.ndarray, corrupted: np.ndarray
    ) -> None:
        weak = [int(pair) for pair in np.flatnonzero(~is_used)]
        if weak:
            names = ", ".join(self.pairs[pair].place for pair in weak[:3])
            more = f" and {len(weak) - 3} more" if len(weak) > 3 else ""
            self.notes.append(
                f"left out, because {self.metric} of clean and corrupted is nearly the same: "
                f"{names}{more}"
            )
        if not is_used.any():
            raise TaskError(
                f"{self.model.name} does not tell clean from corrupted inputs: {self.metric} is "
                f"the same in all {len(is_used)} pairs, so there is nothing to restore"
            )
        mean = estimate_mean((clean - corrupted)[is_used])
        if mean.low <= 0 <= mean.high:
            self.notes.append(
                f"on average, clean inputs do not have a better {self.metric} than corrupted ones "
                f"(95 % interval of the difference {format_number(mean.low)} … "
                f"{format_number(mean.high)}): restored shares mean little"
            )
        opposite = int((clean < corrupted)[is_used].sum())
        if opposite:
            self.notes.append(
                f"in {opposite} of {int(is_used.sum())} pairs the corrupted input gives the better "
                f"{self.metric}"
            )

    def _note_blocks(self, lengths: Sequence[int]) -> None:
        assert self.blocks is not None
        if not can_decide(self.blocks):
            self.notes.append(
                f"no unit is called an effect: that takes 4 pairs or more of the same number of "
                f"tokens, here are {len(lengths)}"
            )
        targets = {(self.pairs[pair].answer, self.pairs[pair].wrong) for pair in self.used}
        is_scored = self.model.is_score
        if len(targets) == 1 and len(lengths) > 1 and not is_scored:
            self.notes.append(
                "all pairs have the same targets: other pairs may restore as much, so that "
                "no unit stands out; mix pairs with different answers"
            )

    def _record(self, length: int) -> _LengthGroup:
        """Run the clean and corrupted inputs of one length, and record the heads."""
        members = [pair for pair in self.used if self.pairs[pair].length == length]
        clean, corrupted = (
            torch.tensor([list(getattr(self.pairs[pair], key)) for pair in members])
            for key in ("clean", "corrupted")
        )
        outputs = self._record_heads(torch.cat((clean, corrupted)))
        return _LengthGroup(members, clean, corrupted, outputs)

    def _record_heads(self, ids: Int[Tensor, "n T"]) -> HeadOutputs:
        """Head outputs of all rows, recorded in batches."""
        parts = [
            record_head_outputs(self.model.model, self.model.build_probe(ids[list(batch)]))
            for batch in _iter_batches(range(len(ids)), self._count_examples(ids.shape[1]))
        ]
        return HeadOutputs(
            [
                LayerOutputs(
                    layer.path,
                    torch.cat([part[index].output for part in parts]),
                    layer.values[:0],
                )
                for index, layer in enumerate(parts[0].layers)
            ]
        )

    def _label_positions(self) -> list[str]:
        pair = self.pairs[self.used[0]]
        labels = [
            clean if clean == corrupted else f"{clean}/{corrupted}"
            for clean, corrupted in zip(pair.clean_labels, pair.corrupted_labels, strict=True)
        ]
        return labels[-self.positions :]

    # the sweeps

    def _choose_sweeps(
        self, kinds: tuple[str, ...] | None, layers: list[LayerOutputs]
    ) -> tuple[str, ...]:
        if kinds is not None:
            return kinds
        examples = len(self._list_units("positions", layers)) * self._count_sources()
        parameters = sum(param.numel() for param in self.model.model.parameters())
        if examples * parameters > MAX_DEFAULT_COST:
            self.notes.append(
                f"heads × positions are left out: {examples:,} examples; choose the sweep "
                "`positions` to have them"
            )
            return ("heads",)
        return ("heads", "positions")

    def _count_sources(self) -> int:
        """Examples of one unit: pairs times their sources."""
        if self.blocks is None:
            return len(self.used)
        return sum(len(block) * (2 * len(block) - 1) for block in self.blocks)

    def _list_units(self, kind: str, layers: list[LayerOutputs]) -> list[Unit]:
        positions = range(-self.positions, 0)
        if kind == "residual":
            blocks = len(find_blocks(self.model.model))
            if not blocks:
                raise TaskError(
                    f"{self.model.name}: its blocks are not recognised, so the residual stream "
                    "cannot be patched; choose the sweeps heads or positions"
                )
            return [
                Unit(layer, None, position) for layer in range(blocks + 1) for position in positions
            ]
        heads = [
            Unit(layer, head)
            for layer, outputs in enumerate(layers)
            for head in range(outputs.output.shape[1])
        ]
        if kind == "heads":
            return heads
        if len({outputs.output.shape[2] for outputs in layers}) > 1:
            raise TaskError(
                f"{self.model.name}: its layers have different numbers of positions, so heads "
                "cannot be patched at one position; choose the sweep heads"
            )
        return [unit._replace(position=position) for unit in heads for position in positions]

    def _sweep(self, kind: str, layers: list[LayerOutputs]) -> PatchingSweep:
        units = self._list_units(kind, layers)
        if kind == "residual":
            for group in self.groups.values():
                probe = self.model.build_probe(torch.cat((group.clean, group.corrupted)))
                group.streams = record_residual(self.model.model, probe)
        changes = np.zeros((len(self.used), self._source_slots, len(units)))
        total, done = len(units) * self._count_sources(), 0
        for length, group in self.groups.items():
            examples = [
                example
                for unit in range(len(units))
                for example in self._list_examples(unit, group)
            ]
            for batch in _iter_batches(examples, self._count_examples(length)):
                logits = self._run_batch(group, units, batch)
                pairs = [example.pair for example in batch]
                self._add_changes(changes, batch, self._score(logits, pairs))
                done += len(batch)
                self.on_progress(kind, done, total)
        effects = self._estimate(changes, [self._describe_unit(unit) for unit in units])
        shape = self._find_shape(kind, units)
        return PatchingSweep(kind, units, effects, shape)

    def _add_changes(
        self, changes: np.ndarray, examples: Sequence[_Example], scores: np.ndarray
    ) -> None:
        """Add scores with clean sources, subtract those with corrupted sources.

        The corrupted source of a pair itself changes nothing: its score is that of the corrupted
        input.
        """
        for example, score in zip(examples, scores, strict=True):
            index = self.used.index(example.pair), example.slot, example.unit
            changes[index] += score if example.is_clean else -score
            if example.source == example.pair:
                changes[index] -= self.base[example.pair]

    def _find_shape(self, kind: str, units: list[Unit]) -> tuple[int, ...]:
        layers = max(unit.layer for unit in units) + 1
        if kind == "residual":
            return layers, self.positions
        heads = max(unit.head or 0 for unit in units) + 1
        return (layers, heads) if kind == "heads" else (layers, heads, self.positions)

    @property
    def _source_slots(self) -> int:
        return 1 if self.blocks is None else max(map(len, self.blocks))

    def _list_examples(self, unit: int, group: _LengthGroup) -> Iterator[_Example]:
        """All sources of all pairs of a group, for one unit."""
        if self.blocks is None:
            for pair in group.pairs:
                yield _Example(unit, pair, 0, pair)
            return
        for block in self.blocks:
            members = [self.used[index] for index in block]
            if members[0] in group.pairs:
                for pair in members:
                    for slot, source in enumerate(members):
                        yield _Example(unit, pair, slot, source)
                        if source != pair:
                            yield _Example(unit, pair, slot, source, is_clean=False)

    def _run_batch(
        self, group: _LengthGroup, units: list[Unit], batch: Sequence[_Example]
    ) -> Float[Tensor, "B C"]:
        """Logits of a batch in which every example has its own patch."""
        ids = group.corrupted[group.find_rows([example.pair for example in batch])]
        rows = group.find_source_rows(batch)
        chosen = [units[example.unit] for example in batch]
        interventions: list[Intervention]
        if group.streams is not None and chosen[0].head is None:
            interventions = [
                patch_residual(
                    unit.layer,
                    group.streams,
                    rows=rows,
                    examples=[index for index, other in enumerate(chosen) if other == unit],
                    positions=None if unit.position is None else [unit.position],
                )
                for unit in dict.fromkeys(chosen)
            ]
        else:
            interventions = [PatchUnits(chosen, group.outputs, rows)]
        with torch.no_grad(), intervene(self.model.model, *interventions):
            return self.model.run(ids)

    def _estimate(self, changes: np.ndarray, names: list[str]) -> UnitEffects:
        if not np.isfinite(changes).all():
            unit = int(np.argwhere(~np.isfinite(changes))[0, 2])
            raise TaskError(
                f"{self.model.name}: patching {names[unit]} gives logits that are NaN or infinite"
            )
        return estimate_effects(changes, self.differences[self.used], self.blocks, seed=self.seed)

    def _describe_unit(self, unit: Unit) -> str:
        head = "the residual stream" if unit.head is None else f"h{unit.head}"
        position = "" if unit.position is None else f" at position {unit.position}"
        return f"L{unit.layer} {head}{position}"

    def _count_examples(self, length: int) -> int:
        """Examples of a batch, so that its memory is bounded."""
        if self.batch_size is not None:
            return max(1, self.batch_size)
        classes = self.model.class_count or int(self.answers.max()) + 1
        positions = 1 if self.model.gives_last_logits else length
        return max(1, min(DEFAULT_BATCH_SIZE, MAX_BATCH_VALUES // (classes * positions)))

    # the paths

    def _measure_paths(
        self, paths: bool | Sequence[tuple[str, ...]], result: PatchingResult
    ) -> PathEffects | None:
        outputs = next(iter(self.groups.values())).outputs
        units = (
            self._choose_paths(result)
            if isinstance(paths, bool)
            else [_parse_path(path, outputs) for path in paths]
        )
        if not units:
            return None
        changes = np.zeros((len(self.used), self._source_slots, len(units)))
        total, done = len(units) * self._count_sources(), 0
        for length, group in self.groups.items():
            examples = list(self._list_examples(0, group))
            for batch in _iter_batches(examples, self._count_examples(length)):
                pairs = [example.pair for example in batch]
                for index, logits in self._run_paths(group, units, batch):
                    of_path = [example._replace(unit=index) for example in batch]
                    self._add_changes(changes, of_path, self._score(logits, pairs))
                    done += len(batch)
                    self.on_progress("paths", done, total)
        return PathEffects(units, self._estimate(changes, [str(unit) for unit in units]))

    def _choose_paths(self, result: PatchingResult) -> list[PathUnit]:
        """All paths between the heads that matter, and from each to the output."""
        if "heads" not in result.sweeps:
            layers = next(iter(self.groups.values())).outputs.layers
            result.sweeps["heads"] = self._sweep("heads", layers)
        sweep = result["heads"]
        effects = sweep.effects
        is_decided = self.blocks is not None and can_decide(self.blocks)
        matters = effects.has_effect if is_decided else np.abs(effects.restored) >= MIN_PATH_SHARE
        order = sorted(np.flatnonzero(matters), key=lambda unit: -abs(effects.restored[unit]))
        if not order:
            self.notes.append("no head matters, so there are no paths between heads")
            return []
        if len(order) > MAX_PATH_HEADS:
            self.notes.append(
                f"paths between the {MAX_PATH_HEADS} heads that restore most, of {len(order)}"
            )
        units = sorted(sweep.units[index] for index in order[:MAX_PATH_HEADS])
        heads = [LocatedHead(unit.layer, unit.head or 0) for unit in units]
        return [
            PathUnit(sender, receiver)
            for sender in heads
            for receiver in [*(head for head in heads if head.layer > sender.layer), OUTPUT]
        ]

    def _run_paths(
        self, group: _LengthGroup, units: list[PathUnit], batch: Sequence[_Example]
    ) -> Iterator[tuple[int, Tensor]]:
        """Logits of a batch for every path; what a layer receives is computed once per sender."""
        rows = group.find_rows([example.pair for example in batch])
        sources = group.find_source_rows(batch)
        ids, model = group.corrupted[rows], self.model.model
        probe = self.model.build_probe(ids)
        frozen = HeadOutputs(
            [
                replace(layer, output=layer.output[len(group.pairs) :][rows])
                for layer in group.outputs.layers
            ]
        )

        def forward() -> Tensor:
            return self.model.run(ids)

        received: dict[tuple[Any, ...], HeadOutputs] = {}
        for index, unit in enumerate(units):
            if isinstance(unit.receiver, str):
                logits = patch_path(
                    model,
                    probe,
                    (unit.sender.layer, unit.sender.head),
                    OUTPUT,
                    clean=group.outputs,
                    frozen=frozen,
                    rows=sources,
                    forward=forward,
                )
            else:
                key = (unit.sender, unit.receiver.layer)
                if unit.through != "all" or key not in received:
                    received[key] = compute_received(
                        model,
                        probe,
                        unit.sender,
                        unit.receiver.layer,
                        clean=group.outputs,
                        frozen=frozen,
                        rows=sources,
                        through=unit.through,
                        receiver_head=unit.receiver.head,
                    )
                logits = patch_received(model, unit.receiver, received[key], forward)
                if unit.through != "all":
                    del received[key]
            yield index, logits


class PatchUnits(Intervention):
    """Patches another head, or another position, in every example of a batch.

    `units[b]` is patched in example b by what it is in row `rows[b]` of the source.
    """

    def __init__(self, units: Sequence[Unit], source: HeadOutputs, rows: Sequence[int]) -> None:
        self.units, self.source, self.rows = list(units), source, list(rows)
        self.layers = {unit.layer for unit in self.units}

    def targets(self, layer: int, path: str) -> bool:
        """Whether a unit is in the layer."""
        return layer in self.layers

    def apply(self, call: HeadCall) -> Float[Tensor, "B H Q D"]:
        """Copy the units of this layer from the source."""
        output, source = call.output.clone(), self.source[call.layer].output
        if output.shape[1:] != source.shape[1:] or len(output) != len(self.units):
            raise InterventionError(
                f"L{call.layer} has outputs {tuple(output.shape)}, and the source "
                f"{tuple(source.shape)}: clean and corrupted inputs do not run alike"
            )
        source = source.to(output)
        for is_complete in (True, False):
            examples = [
                index
                for index, unit in enumerate(self.units)
                if unit.layer == call.layer and (unit.position is None) == is_complete
            ]
            heads = [self.units[index].head for index in examples]
            rows = [self.rows[index] for index in examples]
            if examples and is_complete:
                output[examples, heads] = source[rows, heads]
            elif examples:
                positions = [self.units[index].position for index in examples]
                output[examples, heads, positions] = source[rows, heads, positions]
        return output


def _parse_path(path: Sequence[str], outputs: HeadOutputs) -> PathUnit:
    """A path from texts: sender, receiver or "output", and q, k or v if not all."""
    if isinstance(path, str) or len(path) not in (2, 3):
        raise TaskError(
            f'{path!r} is not a path: write ("L0 h1", "L1 h0"), ("L1 h0", "output") or '
            '("L0 h1", "L1 h0", "k")'
        )
    sender, receiver, *rest = path
    through = rest[0] if rest else "all"
    if through not in THROUGH:
        raise TaskError(f"a path leads through {', '.join(THROUGH)}, not `{through}`")
    located = locate_head(sender, outputs)
    if isinstance(receiver, str) and receiver.strip().lower() == OUTPUT:
        if through != "all":
            raise TaskError(f"the output has no `{through}`: leave it out")
        return PathUnit(located, OUTPUT)
    target = locate_head(receiver, outputs)
    if target.layer <= located.layer:
        raise TaskError(f"{target} cannot receive from {located}: it is not in a later layer")
    return PathUnit(located, target, through)  # type: ignore[arg-type]


def _iter_batches(items: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
