"""Comparison of focus paradigms as page data: scores, claims, curves and mosaics with their focus.

A focus model (tasks/focus) distributes its focus, weights that sum to 1, over the m segments of an
example. The foreground is the segments that decide the label; a paradigm is the loss that trains
the model. SAIF is the share of examples in which the weight of the foreground and the probability
of the label are both above a threshold. The tiles of an example are the segments that were recorded
(tasks/focus/recorded_examples.py).
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from neural.core.registry import UnknownNameError
from neural.findings.focus_checks import find_focus_warnings
from neural.findings.focus_claims import ClaimVerdict, count_tests, evaluate_claims
from neural.findings.focus_results import (
    TIME_SCORES,
    FocusGroups,
    FocusResult,
    count_failed_seeds,
    estimate_score,
    estimate_time_to_reach,
    group_results,
    label_paradigm,
    list_paradigms,
    list_segment_counts,
    load_results,
)
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks.focus.paradigms import registry as paradigms
from neural.tasks.focus.recorded_examples import (
    EXAMPLES_KEY,
    FOCUS_ARRAY,
    PREDICTION_ARRAY,
    RecordedExamples,
)

SHOWN_SCORES = (
    "saif",
    "accuracy",
    "focus_accuracy",
    "focus_confidence",
    "steps_to_target",
    "classifier_calls",
)
"""Scores on the page, in this order."""
CURVE_SCORES = ("saif", "accuracy", "focus_accuracy")
"""Validation scores that are drawn by step."""
MAX_SHOWN_EXAMPLES = 6
"""Mosaics on the page for each number of segments."""
MAX_SHOWN_STEPS = 60
"""Validations of a run on the page; of more, some are left out evenly."""
MAX_WEIGHT_BYTES, MIN_SHOWN_STEPS = 400_000, 8
"""Size of the weights of all mosaics of one m; many runs show fewer validations, at least 8."""
COMPARED_SETTINGS = ("name", "paradigm", "estimator", "samples", "segments", "grow")
"""Settings in which the runs of a comparison may differ, beside their seed."""
PARADIGM_NAMES = {"lvml": "LVML"}
"""Names on the page; others are written as in the settings."""
PARADIGM_TEXTS = {
    "soft": "mixes all segments by their weights and classifies the mixture",
    "hard": "classifies every segment alone; its loss is the weighted mean of their losses",
    "lvml": "marginal likelihood over segments: classifies every segment alone and raises the "
    "weighted mean of their probabilities of the right class",
    "auto": "a schedule that the theory chooses for the number of classes and segments",
}
"""Descriptions in plain words; others have the first line of their documentation."""


class FocusRun(NamedTuple):
    """A run of a comparison and its id on the page."""

    run: Run
    run_id: str

    @property
    def segments(self) -> int | None:
        """Number of segments m of an example, if known."""
        value = self.run.metadata("focus/segments") or self.run.settings.get("segments")
        return value if isinstance(value, int) else None


@dataclass(frozen=True, kw_only=True)
class FocusComparison:
    """Finished runs that differ only by paradigm, number of segments and seed, with results."""

    runs: list[FocusRun]
    """Runs that are compared: finished and validated."""
    groups: FocusGroups
    data: str
    """What the scores are of: "test" or "validation" examples."""
    unfinished: int
    """Runs that are left out because they have not finished."""
    others: int
    """Runs that are left out because of their other settings."""

    def run_id(self, result: FocusResult) -> str:
        """Id on the page of the run of a result."""
        return next(
            entry.run_id
            for entry in self.runs
            if entry.run.name == result.run
            or (
                label_paradigm(entry.run.settings) == result.paradigm
                and entry.segments == result.segments
                and _get_seed(entry.run) == result.seed
            )
        )

    @property
    def threshold(self) -> float | None:
        """Threshold of SAIF."""
        value = self.runs[0].run.settings.get("threshold")
        return value if isinstance(value, float) else None

    @property
    def segment_noun(self) -> str:
        """What a segment is, in a sentence."""
        data = str(self.runs[0].run.settings.get("data", "")).lower()
        if data.endswith((".jsonl", ".json")):
            return "word"
        return "segment" if data.endswith(".npz") else "picture"


def load_comparison(runs: Sequence[Run], run_ids: Sequence[str]) -> FocusComparison | None:
    """The comparison among some focus runs; None if none has finished with a validation.

    Of runs with different settings (other than paradigm, m and seed), the largest set of equal
    settings is compared.
    """
    by_settings: dict[str, list[FocusRun]] = {}
    for run, run_id in zip(runs, run_ids, strict=True):
        by_settings.setdefault(_settings_key(run.settings), []).append(FocusRun(run, run_id))
    compared = max(by_settings.values(), key=len)
    finished = [entry for entry in compared if entry.run.status.state == "finished"]
    results, data = load_results([entry.run for entry in finished])
    failed = [entry.run for entry in compared if entry.run.status.state == "failed"]
    results = count_failed_seeds(results, failed)
    if not results:
        return None
    names = {result.run for result in results}
    return FocusComparison(
        runs=[entry for entry in finished if entry.run.name in names] or finished,
        groups=group_results(results),
        data=data,
        unfinished=len(compared) - len(finished),
        others=len(runs) - len(compared),
    )


def _settings_key(settings: Mapping[str, Any]) -> str:
    """A key that is equal for runs that can be compared."""
    shared = {key: value for key, value in settings.items() if key not in COMPARED_SETTINGS}
    training = shared.get("training")
    if isinstance(training, dict):
        shared["training"] = {key: value for key, value in training.items() if key != "seed"}
    return json.dumps(shared, sort_keys=True, default=str)


def _get_seed(run: Run) -> int:
    training = run.settings.get("training")
    seed = training.get("seed") if isinstance(training, dict) else None
    return seed if isinstance(seed, int) else 0


def name_paradigm(label: str) -> str:
    """Name of a paradigm in sentences: `lvml` is "LVML", `hybrid(first="lvml")` "LVML → hard"."""
    paradigm, estimator = _split_label(label)
    name, arguments = paradigm.partition("(")[::2]
    if name == "hybrid" and arguments:
        return " → ".join(_list_hybrid_stages(paradigm)) + estimator
    return PARADIGM_NAMES.get(paradigm, paradigm) + estimator


def describe_paradigm(label: str) -> str:
    """What a paradigm does, in one sentence without its name."""
    paradigm, _ = _split_label(label)
    name = paradigm.partition("(")[0]
    if name == "hybrid":
        first, then = _list_hybrid_stages(paradigm)
        return f"starts as {first} and switches to {then} during training"
    if name in PARADIGM_TEXTS:
        return PARADIGM_TEXTS[name]
    try:
        summary = paradigms.get(name).summary()
    except UnknownNameError:  # of another version, or a user's own
        return ""
    return summary[:1].lower() + summary[1:].removesuffix(".")


def _split_label(label: str) -> tuple[str, str]:
    """Paradigm with its arguments, and the rest of the label: `hard, topk 2` → `hard`, `, topk 2`."""
    end = label.rfind(")") + 1 or len(label.partition(",")[0])
    return label[:end], label[end:]


def _list_hybrid_stages(paradigm: str) -> list[str]:
    """Names of both paradigms of a hybrid, soft and hard by default."""
    stages = []
    for argument, default in (("first", "soft"), ("then", "hard")):
        match = re.search(rf"""\b{argument}\s*=\s*["'](\w+)""", paradigm)
        stage = match[1] if match else default
        stages.append(PARADIGM_NAMES.get(stage, stage))
    return stages


def build_focus_data(comparison: FocusComparison) -> dict[str, Any]:
    """JSON data of a comparison (docs/report.md)."""
    verdicts = evaluate_claims(comparison.groups)
    first = next(iter(comparison.groups.values()))[0]
    return {
        "data": comparison.data,
        "threshold": comparison.threshold,
        "classes": list(first.classes),
        "noun": comparison.segment_noun,
        "segment_counts": list_segment_counts(comparison.groups),
        "descriptions": {
            name: {"name": name_paradigm(name), "text": describe_paradigm(name)}
            for name in list_paradigms(comparison.groups)
        },
        "groups": [
            _group_to_dict(comparison, paradigm, m, group)
            for (paradigm, m), group in comparison.groups.items()
        ],
        "claims": [_claim_to_dict(verdict) for verdict in verdicts],
        "tests": count_tests(verdicts),
        "warnings": [str(warning) for warning in find_focus_warnings(comparison.groups)],
        "notes": describe_left_out(comparison),
        "mosaics": [
            mosaics
            for m in list_segment_counts(comparison.groups)
            if (mosaics := build_mosaics(comparison, m)) is not None
        ],
    }


def describe_left_out(comparison: FocusComparison) -> list[str]:
    """Sentences about runs that are not compared."""
    counts = (
        (comparison.unfinished, "not finished"),
        (comparison.others, "trained with other settings"),
    )
    return [
        f"{count} run{'s' * (count != 1)} left out: {reason}" for count, reason in counts if count
    ]


def _group_to_dict(
    comparison: FocusComparison, paradigm: str, m: int, group: Sequence[FocusResult]
) -> dict[str, Any]:
    """Scores of one paradigm and number of segments, over seeds and by seed."""
    scores: dict[str, dict[str, Any]] = {}
    for name in SHOWN_SCORES:
        values = [result.scores.get(name, math.nan) for result in group]
        if name in TIME_SCORES:
            time = estimate_time_to_reach(group, name)
            if not time.seeds:
                continue
            scores[name] = {
                "value": _finite_or_none(time.median),
                "low": None,
                "high": None,
                "seeds": time.seeds,
                "reached": time.reached_seeds,
            }
        elif any(map(math.isfinite, values)):
            scores[name] = dict(estimate_score(group, name).to_dict("seeds"))
        else:
            continue
        scores[name]["by_seed"] = [_finite_or_none(value) for value in values]
    runs = [comparison.run_id(result) for result in group]
    return {
        "paradigm": paradigm,
        "segments": m,
        "seeds": [result.seed for result in group],
        "runs": runs,
        "scores": scores,
        "curves": {
            name: curve
            for name in CURVE_SCORES
            if (curve := _average_curves(_select_runs(comparison, runs), f"valid/{name}"))
        },
    }


def _select_runs(comparison: FocusComparison, run_ids: Sequence[str]) -> list[Run]:
    return [entry.run for entry in comparison.runs if entry.run_id in run_ids]


def _average_curves(runs: Sequence[Run], name: str) -> dict[str, Any] | None:
    """Mean over seeds of a share with a band of its standard error, at the steps of all runs."""
    by_run: list[dict[int, float]] = []
    for run in runs:
        try:
            steps, values = run.scalars(name)
        except RunError:
            return None
        by_run.append(dict(zip(steps.tolist(), values.tolist(), strict=True)))
    shared = sorted(set.intersection(*map(set, by_run))) if by_run else []
    shared = [shared[index] for index in _thin(len(shared))]
    if len(shared) < 2:
        return None
    values = np.array([[curve[step] for step in shared] for curve in by_run])
    mean = values.mean(axis=0)
    error = values.std(axis=0, ddof=1) / math.sqrt(len(runs)) if len(runs) > 1 else math.nan * mean
    bounds = {
        "value": mean,
        "low": np.maximum(0, mean - error),
        "high": np.minimum(1, mean + error),
    }
    return {
        "steps": shared,
        **{
            key: [_finite_or_none(float(value), digits=4) for value in column]
            for key, column in bounds.items()
        },
    }


def _claim_to_dict(verdict: ClaimVerdict) -> dict[str, Any]:
    return {
        "claim": verdict.claim,
        "segments": verdict.segments,
        "supported": verdict.supported,
        "number": verdict.number.to_dict("seeds"),
        "quantity": verdict.quantity,
        "evidence": verdict.evidence,
        "p": _finite_or_none(verdict.p),
        "is_exact": verdict.is_exact,
    }


class _RecordedFocus(NamedTuple):
    """Recorded focus of a run: weights [step, example, tile], predictions [step, example, 3]."""

    entry: FocusRun
    paradigm: str
    steps: list[int]
    weights: np.ndarray
    predictions: np.ndarray


def build_mosaics(
    comparison: FocusComparison, m: int, count: int = MAX_SHOWN_EXAMPLES
) -> dict[str, Any] | None:
    """The recorded examples on which the paradigms differ most, with the focus of every run.

    Weights and probabilities are rounded to 1/255. None without recorded examples.
    """
    examples, recorded = _load_recorded(comparison, m)
    if examples is None:
        return None
    shown = select_disagreements(examples, recorded)[:count]
    bytes_per_step = len(recorded) * len(shown) * max(map(len, examples.tiles))
    fitting = MAX_WEIGHT_BYTES // max(1, bytes_per_step)
    max_steps = min(MAX_SHOWN_STEPS, max(MIN_SHOWN_STEPS, fitting))
    return {
        "segments": m,
        "recorded": len(examples.labels),
        "image_shape": examples.image_shape,
        "examples": [
            {
                "index": index,
                "label": examples.labels[index],
                "tiles": examples.tiles[index],
                "foreground": [] if examples.foreground is None else examples.foreground[index],
                "images": base64.b64encode(examples.image_of(index)).decode(),
                "words": None if examples.words is None else examples.words[index],
            }
            for index in shown
        ],
        "runs": {focus.entry.run_id: _focus_to_dict(focus, shown, max_steps) for focus in recorded},
    }


def _focus_to_dict(focus: _RecordedFocus, shown: Sequence[int], max_steps: int) -> dict[str, Any]:
    steps = _thin(len(focus.steps), max_steps)
    selected = np.ix_(steps, shown)
    return {
        "paradigm": focus.paradigm,
        "seed": _get_seed(focus.entry.run),
        "steps": [focus.steps[index] for index in steps],
        "weights": _encode_bytes(focus.weights[selected]),
        "predicted": focus.predictions[selected][..., 0].astype(int).tolist(),
        "probability": _encode_bytes(focus.predictions[selected][..., 1]),
    }


def _encode_bytes(shares: np.ndarray) -> str:
    """Shares of 0 … 1 as bytes 0 … 255 in base64, row-major; NaN is 0."""
    levels = np.rint(255 * np.clip(np.nan_to_num(shares), 0, 1)).astype(np.uint8)
    return base64.b64encode(np.ascontiguousarray(levels).tobytes()).decode()


def _load_recorded(
    comparison: FocusComparison, m: int
) -> tuple[RecordedExamples | None, list[_RecordedFocus]]:
    """Recorded examples of runs with m segments; runs that recorded other examples are left out."""
    examples: RecordedExamples | None = None
    recorded: list[_RecordedFocus] = []
    for entry in comparison.runs:
        if entry.segments != m:
            continue
        own = RecordedExamples.from_metadata(entry.run.metadata(EXAMPLES_KEY))
        if own is None or (examples is not None and own != examples):
            continue
        try:
            steps, weights = entry.run.measure(FOCUS_ARRAY)
            prediction_steps, predictions = entry.run.measure(PREDICTION_ARRAY)
        except RunError:  # of an older version, or damaged
            continue
        shape = (len(own.labels), max(map(len, own.tiles)))
        is_complete = (
            len(steps) > 0
            and weights.shape[1:] == shape
            and predictions.shape[1:] == (shape[0], 3)
            and np.array_equal(steps, prediction_steps)
            and np.isfinite(predictions).all()
        )
        if is_complete:
            examples = own
            recorded.append(
                _RecordedFocus(
                    entry, label_paradigm(entry.run.settings), steps.tolist(), weights, predictions
                )
            )
    return examples, recorded


def select_disagreements(
    examples: RecordedExamples, recorded: Sequence[_RecordedFocus]
) -> list[int]:
    """Indices of all recorded examples, those first on which the paradigms differ most at the end.

    Compared is the mean over seeds of the weight of the foreground; where the foreground is
    unknown, of the probability of the label. One paradigm alone: as they were recorded.
    """
    by_paradigm: dict[str, list[np.ndarray]] = {}
    for focus in recorded:
        values = focus.predictions[-1, :, 2].astype(float)
        for index, tiles in enumerate(examples.tiles):
            foreground = [] if examples.foreground is None else examples.foreground[index]
            if foreground:
                values[index] = focus.weights[-1, index, : len(tiles)][
                    np.isin(tiles, foreground)
                ].sum()
        by_paradigm.setdefault(focus.paradigm, []).append(values)
    means = np.array([np.mean(group, axis=0) for group in by_paradigm.values()])
    return np.argsort(-np.ptp(means, axis=0), kind="stable").tolist()


def _thin(count: int, limit: int = MAX_SHOWN_STEPS) -> list[int]:
    """Indices of at most `limit` of `count` items, evenly, the first and last included."""
    if count <= limit:
        return list(range(count))
    return np.linspace(0, count - 1, limit).round().astype(int).tolist()


def _finite_or_none(value: float, digits: int | None = None) -> float | None:
    if not math.isfinite(value):
        return None
    return value if digits is None else round(value, digits)
