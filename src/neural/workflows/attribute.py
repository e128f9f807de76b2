"""`neural attribute`: why a model gave one answer, by several methods, and which one to trust.

    result = attribute("runs/characters", "To be or not to b", faithfulness=True)
    result.scores["rollout"]        a score per source position
    result.parts                    direct logit attribution: parts that sum to the logit
    result.lens                     the prediction after each layer
    result.faithfulness             gain over random explanations, with an interval, by method
    result.save("page.html")        or .svg, .pdf, .png

The answer is the token that follows a position, or the class of a classifier. interpret/explanations.py
has the methods, capture/attribution.py the parts, capture/faithfulness.py the measure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from neural.capture.attribution import AttentionTracing, LogitAttribution, trace_attention
from neural.capture.faithfulness import (
    RANDOM_ORDERS,
    REPLACEMENT_DRAWS,
    ExampleFaithfulness,
    count_variants,
    draw_replacements,
    measure_faithfulness,
)
from neural.capture.intervene import intervene
from neural.capture.interventions import zero
from neural.capture.logit_lens import LensRow, read_layers
from neural.capture.residual_stream import AttributionError
from neural.capture.tracker import preserve_model_state
from neural.capture.watch import assume_softmax
from neural.core.errors import TaskError
from neural.interpret.explanations import (
    METHODS,
    check_methods,
    compute_answer_gradients,
    compute_log_probabilities,
    explain,
    score_variants,
    weigh_positions,
)
from neural.interpret.foreign_models import find_first_line
from neural.interpret.objectives import ScoredModel, embed
from neural.interpret.subject import MODEL_ERRORS, Subject, load_subject
from neural.nn.lazy_torch import torch
from neural.runs.find import DEFAULT_RUNS_DIR
from neural.stats.means import estimate_mean
from neural.workflows.attribution_result import (
    Answer,
    AttributionResult,
    Faithfulness,
    quote_token,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

DEFAULT_EXAMPLES = 16
"""Predictions on which faithfulness is measured."""
MIN_SOURCE_POSITIONS = 4
"""Shorter prefixes of an input are no examples of faithfulness."""
ABLATION_DRAWS = 4
"""Tokens that replace each one in "ablation"; others than those that judge the methods."""
HEAD_CHUNK = 64
"""Heads that are removed in one batch."""
MAX_NAMED_POSITIONS = 5
"""Positions that a note names."""


def attribute(
    model: nn.Module | str | Path,
    inputs: str | Sequence[str] | Sequence[int] | Tensor,
    *,
    tokenizer: Any = None,
    position: int | None = None,
    answer: str | int | None = None,
    against: str | int | None = None,
    methods: Sequence[str] | None = None,
    objective: str | None = None,
    faithfulness: bool = False,
    examples: int = DEFAULT_EXAMPLES,
    random_orders: int = RANDOM_ORDERS,
    step: int | None = None,
    build: str | None = None,
    softmax: bool | None = None,
    seed: int = 0,
    runs: Path = DEFAULT_RUNS_DIR,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> AttributionResult:
    """Explain one prediction of a model, a run, or any target of `neural watch`.

        result = neural.attribute(model, "The cat sat on the", tokenizer=tokenizer)
        result = neural.attribute("runs/characters", "To be or not to b", faithfulness=True)
        result.to_dataframe()

    `inputs`: a text, token ids, or several texts; the first is explained, and all are examples of
    faithfulness.
    `position`: the prediction after this position is explained, counted from 0 or from the end
    (negative); the last by default. Classifiers have their own: what their class is read from.
    `answer`, `against`: a token or class, as text or id; by default the most probable one. With
    `against`, parts of the logit are those of the difference.
    `methods`: names of interpret/explanations.py; all by default.
    `objective`: explain a score instead of an answer (interpret/objectives.py): "cosine" of the first input with
    the second, "norm" of its embedding, "logit:LABEL" or "module:function".
    `softmax`: as in `neural.watch`.
    `faithfulness`: measure each method by deletion and insertion, on up to `examples` predictions
    of the inputs, against `random_orders` random orders each.
    `on_progress(done, total)`: tokens that the model has read, and all; 0 if not yet known.
    """
    names = check_methods(methods if methods is not None else list(METHODS))
    if examples < 1 or random_orders < 2:
        raise AttributionError("examples must be at least 1, and random orders at least 2")
    if isinstance(model, torch.nn.Module):
        with preserve_model_state(model):  # loading sets the evaluation mode
            subject = load_subject(model, tokenizer=tokenizer)
    else:
        subject = load_subject(model, tokenizer=tokenizer, step=step, build=build, runs=runs)
    subject.check_reads_tokens()
    rows = [_encode(subject, row) for row in _list_inputs(inputs)]
    if objective is not None:
        subject, rows = _score_by(objective, subject, rows)
    on_progress(0, 0)
    with preserve_model_state(subject.model), assume_softmax(softmax):
        subject.model.eval()
        try:
            progress = _Progress(on_progress)
            session = _Session(
                _RunCounter(**vars(subject), count=progress.count),
                rows,
                names,
                seed,
                progress,
                examples if faithfulness else 0,
                random_orders,
            )
            result = session.explain_first(position, answer, against)
            if faithfulness:
                result = session.measure(result)
        except MODEL_ERRORS as error:
            if isinstance(error, TaskError):
                raise
            longest, length = subject.max_positions, max(map(len, rows))
            limit = f"; it has {length} tokens, and the model reads {longest} at most"
            raise AttributionError(
                f"{subject.name} failed on this input: {find_first_line(error)}"
                + limit * (longest is not None and length > longest)
            ) from error
    return result


class _Progress:
    """Counts the tokens that the model has read, of those planned for each step.

    A step may need fewer, because a method does not apply or variants are equal; then its end is
    reached at once.
    """

    def __init__(self, report: Callable[[int, int], None]) -> None:
        self.report = report
        self.steps: list[int] = []
        self.done = 0

    def plan(self, steps: list[int]) -> None:
        """Begin the first of these steps."""
        self.steps, self.total = steps, sum(steps)
        self.report(0, self.total)

    def count(self, tokens: int) -> None:
        """Go on with the present step."""
        if self.steps:
            tokens = min(tokens, self.steps[0])
            self.steps[0] -= tokens
            self.done += tokens
            self.report(self.done, self.total)

    def end_step(self) -> None:
        """Go on to the next step."""
        self.count(self.steps[0])
        self.steps.pop(0)


@dataclass(frozen=True)
class _RunCounter(Subject):
    """A subject that says how many tokens it reads."""

    count: Callable[[int], None] = lambda tokens: None

    def compute_logits(self, ids: Tensor, *, last: bool = False) -> Tensor:
        logits = super().compute_logits(ids, last=last)
        self.count(ids.numel())
        return logits


@dataclass
class _Session:
    """One model and its inputs."""

    subject: Subject
    rows: list[Tensor]
    methods: list[str]
    seed: int
    progress: _Progress
    examples: int
    """Predictions on which faithfulness is measured; 0: it is not."""
    random_orders: int

    def __post_init__(self) -> None:
        self.pool = torch.cat(self.rows)
        self.failures: dict[str, str] = {}
        self.is_causal = True

    def explain_first(
        self, position: int | None, answer: str | int | None, against: str | int | None
    ) -> AttributionResult:
        tokens = self.rows[0]
        with torch.no_grad():
            logits = self.subject.compute_logits(tokens.unsqueeze(0))[0]
        if not bool(logits.isfinite().all()):
            raise AttributionError(
                f"the logits of {self.subject.name} are not finite on this input"
            )
        is_sequence = logits.ndim == 2
        self.is_sequence = is_sequence
        tracing = self._trace(tokens)
        self.is_causal = is_sequence and self.subject.is_causal(tokens.unsqueeze(0))
        index = self._check_position(position, len(tokens))
        if self.is_causal and index + 1 < len(tokens):
            tokens = tokens[: index + 1]
            tracing = self._trace(tokens)
        values = logits[index] if is_sequence else logits
        log_probabilities = values.double().log_softmax(-1)
        predicted_id = int(values.argmax())
        # a causal model predicts the next token, and a masked one that of the position itself
        context = tokens[: index + self.is_causal].tolist()
        answer_id, against_id = (
            None if value is None else self._find_answer(value, len(values), context)
            for value in (answer, against)
        )
        answer_id = predicted_id if answer_id is None else answer_id
        if against_id == answer_id:
            raise AttributionError("answer and against are the same: their difference is 0")

        def create_answer(token: int) -> Answer:
            probability = float(log_probabilities[token].exp())
            probability = math.nan if self.subject.is_score else probability
            return Answer(token, self._label_answer(token), probability, float(values[token]))

        self._plan(tokens, index, tracing)
        read, notes = self._find_read_positions(tokens, index, answer_id)
        if position is not None and not is_sequence:
            self._check_class_position(index, read)
        scores = explain(
            self.subject,
            tokens,
            position=index,
            answer=answer_id,
            methods=self.methods,
            replacements=self._draw(tokens, ABLATION_DRAWS, 0),
            tracing=tracing,
            read=read,
            on_failure=self._note_failure,
        )
        if against_id is not None:
            notes.append(
                "parts and the effects of removed heads are of the difference to the logit of "
                f"{quote_token(self._label_answer(against_id))}, scores of source positions of the "
                "answer alone"
            )
        attribution, reason = self._attribute(tracing, index, answer_id, against_id)
        missing: dict[str, list[str]] = {}
        if attribution is None and "direct" not in self.failures:
            missing[str(reason)] = [METHODS["direct"]]
        lens: list[LensRow] = []
        try:
            lens = read_layers(tracing, index, answer_id)
        except AttributionError as error:
            missing.setdefault(str(error), []).append("logit lens")
        removed = self._remove_heads(tokens, tracing, index, answer_id, against_id)
        lens_ids = {token for row in lens for token, _ in row.top}
        result = AttributionResult(
            model_name=self.subject.name,
            source=self.subject.source,
            tokens=self.subject.label(tokens.tolist()),
            token_ids=tokens.tolist(),
            position=index if is_sequence else None,
            answer=create_answer(answer_id),
            against=None if against_id is None else create_answer(against_id),
            predicted=create_answer(predicted_id),
            scores=scores,
            attribution=attribution,
            removed_heads=removed,
            head_agreement=_correlate_heads(attribution, removed),
            lens=lens,
            lens_tokens={token: self._label_answer(token) for token in lens_ids},
            head_rows=self._score_heads(tracing, tokens, index, answer_id, read),
            notes=[*self.subject.token_notes, *notes],
        )
        self.progress.end_step()
        for name, text in self.failures.items():
            missing.setdefault(text, []).append(METHODS[name])
        result.notes.extend(f"no {' and no '.join(names)}: {why}" for why, names in missing.items())
        if not scores:
            raise AttributionError(next(iter(self.failures.values())))
        return result

    def _plan(self, tokens: Tensor, index: int, tracing: AttentionTracing) -> None:
        """Choose the predictions of faithfulness, and count what the model will read."""
        heads = sum(layer.output.shape[1] for layer in tracing.outputs.layers)
        self.chosen = [(tokens, index)] if self.examples else []
        if self.examples > 1:
            self.chosen += self._choose_examples(self.examples - 1, skip=(0, index))
        orders = len(self.methods) + self.random_orders
        steps = [len(tokens) * (heads + self._count_runs(tokens))]
        for number, (row, _) in enumerate(self.chosen):
            variants = count_variants(len(row), orders)
            steps.append(len(row) * (variants + (self._count_runs(row) if number else 0)))
        self.progress.plan(steps)

    def _count_runs(self, tokens: Tensor) -> int:
        """Rows of tokens that the explanation of a prediction runs; gradients count for four."""
        variants = ABLATION_DRAWS * len(tokens) if "ablation" in self.methods else 0
        return variants + 4

    def measure(self, result: AttributionResult) -> AttributionResult:
        """The result with faithfulness numbers, on predictions of all inputs."""
        measured: list[ExampleFaithfulness] = []
        names = list(result.scores)
        for number, (tokens, position) in enumerate(self.chosen):
            scores, answer = result.scores, result.answer.id
            if number:
                answer = self._predict(tokens, position)
                scores = explain(
                    self.subject,
                    tokens,
                    position=position,
                    answer=answer,
                    methods=names,
                    replacements=self._draw(tokens, ABLATION_DRAWS, 2 * number),
                )
            measured.append(
                measure_faithfulness(
                    self._create_scorer(position, answer),
                    tokens,
                    scores,
                    # other draws than those with which "ablation" found its scores
                    self._draw(tokens, REPLACEMENT_DRAWS, 2 * number + 1),
                    random_orders=self.random_orders,
                    seed=self.seed + number,
                )
            )
            self.progress.end_step()
        faithfulness = {
            name: Faithfulness(
                gain=estimate_mean(example.gain(name) for example in measured),
                deletion=estimate_mean(example.deletion_gain(name) for example in measured),
                insertion=estimate_mean(example.insertion_gain(name) for example in measured),
                here=measured[0].gain(name),
            )
            for name in names
        }
        result.faithfulness.update(faithfulness)
        result.examples.extend(measured)
        if len(measured) == 1:
            advice = self._advise_more_predictions() if self.examples > 1 else ""
            result.notes.append(f"faithfulness of one prediction has no interval{advice}")
        return result

    def _advise_more_predictions(self) -> str:
        """What gives more predictions of this model than one; empty if nothing does."""
        if self.is_causal:
            return ": give a longer input, or several"
        takes_one = (
            isinstance(self.subject.model, ScoredModel) and self.subject.model.name == "cosine"
        )
        return "" if takes_one else ": give several inputs"

    def _create_scorer(self, position: int, answer: int) -> Callable[[Tensor], np.ndarray]:
        return lambda variants: score_variants(self.subject, variants, position, answer)

    def _choose_examples(self, count: int, skip: tuple[int, int]) -> list[tuple[Tensor, int]]:
        """Other predictions: prefixes of all inputs, evenly spaced; else whole inputs."""
        if not self.is_causal:
            # a class or a token of a bidirectional model: one prediction per input
            return [(row, len(row) - 1) for row in self.rows[1 : count + 1] if len(row) > 1]
        candidates = [
            (number, position)
            for number, row in enumerate(self.rows)
            for position in range(MIN_SOURCE_POSITIONS - 1, len(row))
            if (number, position) != skip
        ]
        places = np.linspace(0, len(candidates) - 1, min(count, len(candidates))).round()
        return [
            (self.rows[number][: position + 1], position)
            for number, position in (candidates[int(place)] for place in places)
        ]

    def _predict(self, tokens: Tensor, position: int) -> int:
        with torch.no_grad():
            values = compute_log_probabilities(self.subject, tokens.unsqueeze(0), position)
        return int(values[0].argmax())

    def _trace(self, tokens: Tensor) -> AttentionTracing:
        probe = self.subject.build_probe(tokens.unsqueeze(0), last=False)
        return trace_attention(self.subject.model, probe)

    def _note_failure(self, method: str, error: AttributionError) -> None:
        self.failures[method] = str(error)

    def _find_read_positions(
        self, tokens: Tensor, position: int, answer: int
    ) -> tuple[np.ndarray | None, list[str]]:
        """Weights of the positions that the answer is read from, and a note on those of a class."""
        try:
            read = weigh_positions(self.subject, tokens, position, answer)
        except AttributionError:
            return None, []  # `explain` raises it again for each method that needs them
        return read, [] if self.is_sequence else [self._describe_read_positions(read)]

    def _describe_read_positions(self, read: np.ndarray) -> str:
        positions = np.flatnonzero(read).tolist()
        what = "score" if self.subject.is_score else "class"
        if len(positions) == len(read):
            return f"the {what} is read from all {len(read)} positions"
        shown = ", ".join(map(str, positions[:MAX_NAMED_POSITIONS]))
        more = " …" * (len(positions) > MAX_NAMED_POSITIONS)
        return (
            f"the {what} is read from {'position' if len(positions) == 1 else 'the positions'} "
            + (shown + more)
        )

    def _check_class_position(self, position: int, read: np.ndarray | None) -> None:
        """AttributionError unless the class is read from this position and from no other."""
        if read is None or np.flatnonzero(read).tolist() != [position]:
            known = "" if read is None else f": {self._describe_read_positions(read)}"
            what = "has a score" if self.subject.is_score else "predicts a class"
            raise AttributionError(
                f"{self.subject.name} {what} of the input{known}; leave the position out"
            )

    def _check_position(self, position: int | None, length: int) -> int:
        position = -1 if position is None else position
        if not -length <= position < length:
            raise AttributionError(
                f"position {position} does not exist: the input has {length} tokens, from 0 to "
                f"{length - 1}, or from −1 backwards"
            )
        return position % length

    def _find_answer(self, answer: str | int, count: int, context: Sequence[int]) -> int:
        """The id of an answer that is given as text or id; `context`: the tokens before it."""
        if isinstance(answer, int):
            if not 0 <= answer < count:
                raise AttributionError(f"answer {answer} does not exist: ids are 0 to {count - 1}")
            return answer
        if not self.is_sequence:
            names = getattr(getattr(self.subject.model, "config", None), "id2label", None) or {}
            by_name = {str(name): int(number) for number, name in names.items()}
            if answer in by_name:
                return by_name[answer]
            if answer.isdecimal():
                return self._find_answer(int(answer), count, context)
            known = ", ".join(by_name) or f"0 to {count - 1}"
            raise AttributionError(f"`{answer}` is not a class: {known}")
        if self.subject.tokenizer is None:
            if answer.isdecimal():
                return self._find_answer(int(answer), count, context)
            raise AttributionError(
                f"{self.subject.name} has no tokenizer: give the answer as a token id"
            )
        ids = self.subject.encode_next(context, answer)
        if len(ids) != 1:
            texts = " ".join(map(quote_token, self.subject.label(ids)))
            raise AttributionError(
                f"`{answer}` is {len(ids)} tokens"
                + (f", {texts}: an answer is one token, such as the first" if ids else "")
            )
        return self._find_answer(ids[0], count, context)

    def _label_answer(self, token: int) -> str:
        if not self.is_sequence:
            names = getattr(getattr(self.subject.model, "config", None), "id2label", None) or {}
            return str(names.get(token, f"class {token}"))
        return self.subject.label([token])[0]

    def _draw(self, tokens: Tensor, count: int, number: int) -> Tensor:
        if len(self.pool.unique()) < 2:
            raise AttributionError(
                "all tokens of the input are the same: none can be replaced by another one"
            )
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        return draw_replacements(self.pool, tokens, count, generator)

    def _attribute(
        self, tracing: AttentionTracing, position: int, answer: int, against: int | None
    ) -> tuple[LogitAttribution | None, str]:
        """Direct attribution, or why there is none."""
        try:
            attribution = tracing.attribute_logits(
                torch.tensor([position]),
                torch.tensor([answer]),
                None if against is None else torch.tensor([against]),
            )
        except AttributionError as error:
            return None, str(error)
        return attribution, ""

    def _score_heads(
        self,
        tracing: AttentionTracing,
        tokens: Tensor,
        position: int,
        answer: int,
        read: np.ndarray | None,
    ) -> dict[str, list[np.ndarray]]:
        """(H, T) rows of every layer by method; methods that the model does not allow are left
        out."""
        rows: dict[str, list[np.ndarray]] = {}
        length = len(tokens)
        is_other = any(layer.output.shape[2] != length for layer in tracing.outputs.layers)
        if is_other or read is None:
            return rows
        try:
            maps = tracing.value_weighted_maps()
            rows["value_weighted"] = [read @ layer[0] for layer in maps]
            gradients = compute_answer_gradients(self.subject, tokens, position, answer, tracing)
        except AttributionError:
            return rows
        rows["gradient_attention"] = [
            (gradient[0] * tracing.weights(layer)[0].double().cpu().numpy()).sum(axis=1)
            for layer, gradient in enumerate(gradients)
        ]
        return rows

    def _remove_heads(
        self,
        tokens: Tensor,
        tracing: AttentionTracing,
        position: int,
        answer: int,
        against: int | None,
    ) -> np.ndarray:
        """[layer, head]: fall of the logit (or difference) if the head's output is zero."""
        counts = [layer.output.shape[1] for layer in tracing.outputs.layers]
        heads = [(layer, head) for layer, count in enumerate(counts) for head in range(count)]
        effects = np.full((len(counts), max(counts)), np.nan)

        def read(ids: Tensor) -> Tensor:
            logits = self.subject.compute_logits(ids)
            logits = (logits[:, position] if logits.ndim == 3 else logits).double()
            chosen = logits[:, answer]
            return chosen if against is None else chosen - logits[:, against]

        with torch.no_grad():
            reference = float(read(tokens.unsqueeze(0))[0])
            for start in range(0, len(heads), HEAD_CHUNK):
                chunk = heads[start : start + HEAD_CHUNK]
                changes = [zero(head, examples=[row]) for row, head in enumerate(chunk)]
                with intervene(self.subject.model, *changes):
                    values = read(tokens.repeat(len(chunk), 1))
                for (layer, head), value in zip(chunk, values.tolist(), strict=True):
                    effects[layer, head] = reference - value
        return effects


def _score_by(objective: str, subject: Subject, rows: list[Tensor]) -> tuple[Subject, list[Tensor]]:
    """The model with its score as its only class, and the inputs that are explained."""
    reference = None
    if objective == "cosine":
        if len(rows) != 2:
            raise AttributionError("cosine compares two inputs: give --input twice")
        with preserve_model_state(subject.model), torch.no_grad():
            ids = rows[1].unsqueeze(0)
            batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
            reference = embed(subject.model.eval(), batch)
        rows = rows[:1]
    return replace(subject, model=ScoredModel(subject.model, objective, reference)), rows


def _list_inputs(inputs: Any) -> list[Any]:
    """Inputs as a list of texts or of rows of ids."""
    if isinstance(inputs, str):
        return [inputs]
    if torch.is_tensor(inputs):
        inputs = inputs.tolist()
    inputs = list(inputs)
    if inputs and not isinstance(inputs[0], str | list | tuple):
        return [inputs]
    return inputs


def _encode(subject: Subject, row: Any) -> Tensor:
    """Token ids of one input; TaskError if the model cannot read them."""
    if isinstance(row, str):
        ids = subject.encode(row)
    else:
        try:
            ids = [int(token) for token in row]
        except (TypeError, ValueError):
            raise AttributionError("an input is a text, or token ids as whole numbers") from None
    if any(token < 0 for token in ids):
        raise AttributionError("token ids are not negative")
    problem = subject.check_ids(ids)
    if problem is not None:
        raise AttributionError(f"{subject.name} cannot read this input: {problem}")
    if len(ids) < 2:
        raise AttributionError("the input has one token: attribution needs at least two")
    return torch.tensor(ids)


def _correlate_heads(attribution: LogitAttribution | None, removed: np.ndarray) -> float:
    """Correlation of direct parts and effects of removing heads; NaN with fewer than 3 heads."""
    if attribution is None:
        return math.nan
    direct = np.concatenate([layer[0].sum(-1) for layer in attribution.heads])
    effects = removed[np.isfinite(removed)]
    if len(direct) < 3 or not direct.std() or not effects.std():
        return math.nan
    return float(np.corrcoef(direct, effects)[0, 1])
