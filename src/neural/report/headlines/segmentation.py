"""Headlines of segmenters: the F1 of their boundaries, and what became of their attention.

The picture is a strip of a held-out document (report/segmentation_data.py): the probabilities, the
true and the predicted boundaries, and the texts around a boundary. An element is a sentence or line
of a document, a gap the place between two of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import chain

import numpy as np

from neural.core.errors import TaskError
from neural.core.files import read_small_file
from neural.core.json_values import parse_json
from neural.findings.check import FigureData, ViewLink
from neural.report.group_scores import rank_groups
from neural.report.headline import (
    ExperimentGroup,
    Headline,
    HeadlineWriter,
    build_score_figures,
    describe_missing_score,
    describe_repetitions,
    describe_scores,
    describe_states,
    format_mean,
)
from neural.report.role_counts import RoleCounts, count_head_roles
from neural.report.segmentation_data import HeldOutPredictions, load_held_out
from neural.runs.evaluation_file import EVALUATION_FILE
from neural.runs.run import Run
from neural.tasks.segmentation.calibration_selection import RunCalibration
from neural.tasks.segmentation.decoding import decode_boundaries
from neural.tasks.segmentation.metric import f1_score

EXCERPT_ELEMENTS = 6
"""Elements whose texts are on the strip."""
MIN_LETTER_SHARE = 0.6
"""Texts with fewer letters and blanks, such as tables and code, are avoided in the excerpt."""


class Segmentation(HeadlineWriter):
    """The F1 of the boundaries, and whether the heads found roles or stayed uniform."""

    def write(self, groups: Sequence[ExperimentGroup]) -> Headline:
        """The headline of segmenters; several settings are compared by their F1."""
        scored = {group.label: group for group in groups if group.score is not None}
        scores = {label: group.score for label, group in scored.items() if group.score is not None}
        if not scores:
            link = ViewLink("all curves", {"pane": "curves", "run": groups[0].run_ids[0]})
            return Headline(text=describe_missing_score(groups), link=link)
        best = scored[rank_groups(scores)[0]]
        held_out, run, run_id = _find_held_out(best)
        text = (
            describe_scores(scores, "validation F1", format_value=format_share)
            if len(scores) > 1
            else _describe_group(best, held_out)
        )
        details = [
            *_describe_baselines(run, held_out),
            *_describe_calibration(run),
            *describe_states(groups),
        ]
        figures = build_score_figures(scores)
        link = ViewLink("all curves", {"pane": "curves", "run": run_id})
        strip = build_text_strip(held_out, run_id) if held_out else None
        if strip is not None:
            figures = [strip, *figures]
            link = ViewLink(
                "held-out documents at any threshold",
                {"pane": "segmentation", "run": run_id, "document": strip["document"]},
            )
        return Headline(text=text, details=details, figures=figures, link=link)


def format_share(share: float) -> str:
    """A share from 0 to 1 as ".71"."""
    return f"{share:.2f}".removeprefix("0") if math.isfinite(share) else "unknown"


def _find_held_out(group: ExperimentGroup) -> tuple[HeldOutPredictions | None, Run, str]:
    """The first run of a group that recorded held-out documents; else the first run."""
    for run, run_id in zip(group.runs, group.run_ids, strict=True):
        if (held_out := load_held_out(run)) is not None:
            return held_out, run, run_id
    return None, group.runs[0], group.run_ids[0]


def _describe_group(group: ExperimentGroup, held_out: HeldOutPredictions | None) -> str:
    """The sentence about runs of one setting."""
    assert group.score is not None
    f1, repetitions = group.score.estimate().value, describe_repetitions(group.score)
    text = format_mean(group.score, format_value=format_share)
    every_gap = _score_every_gap(held_out) if held_out else None
    if every_gap is not None and f1 <= every_gap:
        return (
            f"Does not find boundaries yet: F1 {text}{repetitions}, and "
            f"{format_share(every_gap)} with a boundary at every gap"
        )
    clause = _describe_attention([count_head_roles(run) for run in group.runs])
    return f"Finds boundaries with F1 {text}{repetitions}{clause}"


def _describe_attention(counts: Sequence[RoleCounts | None]) -> str:
    """Clause about the heads of runs of one setting; "" if attention was not recorded."""
    recorded = [each for each in counts if each is not None]
    if not recorded:
        return ""
    head_count = recorded[0].head_count
    if all(each.uniform_count == each.head_count for each in recorded):
        verb = "stayed" if all(each.was_uniform() for each in recorded) else "became"
        return f"; its attention {verb} uniform"
    role_counts = [len(each.heads) for each in recorded]
    if max(role_counts):
        low, high = min(role_counts), max(role_counts)
        number = f"{low}" if low == high else f"{low} to {high}"
        return f"; {number} of {head_count} heads found a role"
    uniform = min(each.uniform_count for each in recorded)
    if uniform:
        return f"; {uniform} of {head_count} heads are uniform, and none found a role"
    return "; no head found a role"


def _describe_baselines(run: Run, held_out: HeldOutPredictions | None) -> list[str]:
    """The newest `neural evaluate`, and the F1 of a boundary at every gap."""
    sentences = []
    try:
        saved = parse_json(read_small_file(run.path / EVALUATION_FILE).decode())["evaluation"]
        score = float(saved["rows"]["this run"]["boundary_f1"]["value"])
        lift = saved["lifts"]["boundary_f1"]
        baseline, gain = str(lift["baseline"]), float(lift["difference"]["value"])
        sentences.append(
            f"On {saved['data']}: F1 {format_share(score)}; the best baseline, "
            f"{baseline.replace('_', ' ')}, has {format_share(score - gain)}"
        )
    # without an evaluation, or with one of another version: the page shows its tables elsewhere
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass
    if held_out is not None and (every_gap := _score_every_gap(held_out)) is not None:
        sentences.append(f"A boundary at every gap would have F1 {format_share(every_gap)}")
    return sentences


def _score_every_gap(held_out: HeldOutPredictions) -> float | None:
    """F1 of a boundary at every gap of the held-out documents; None without true ones."""
    true_count = sum(map(len, held_out.record["boundaries"]))
    gap_count = sum(length - 1 for length in held_out.record["lengths"])
    if not true_count:
        return None
    return float(f1_score(true_count, true_count, gap_count, empty_value=1.0))


def _describe_calibration(run: Run) -> list[str]:
    """Whether the probabilities were calibrated, with their calibration error."""
    try:
        calibration = RunCalibration.load(run.path)
    except TaskError:  # the page reports it as a note
        return []
    if calibration is None:
        return ["Its probabilities are not calibrated: `neural calibrate` does it"]
    choice = calibration.boundary
    method = choice.calibrator.name()
    error = format_share(choice.methods[method].ece.value)
    if method == "none":
        return [f"Its probabilities need no calibration: expected calibration error {error}"]
    return [f"Its probabilities are calibrated ({method}): expected calibration error {error}"]


def build_text_strip(held_out: HeldOutPredictions, run_id: str) -> FigureData | None:
    """The figure `text_strip`: one document, and the texts of a few elements around a boundary.

    The excerpt has a boundary that was found, if there is one, and shows errors beside it if they
    are close. None if no document has a text and a boundary.
    """
    prediction, truths = held_out.predictions[-1], held_out.truths
    best_value, best = 0.0, None
    for number, entry in enumerate(held_out.record["shown"], 1):
        probabilities = prediction.documents[entry["document"]]
        predicted = decode_boundaries(probabilities, threshold=prediction.threshold)
        truth, texts = truths[entry["document"]], entry["texts"]
        values = _rate_elements(texts)
        for first in range(max(1, len(texts) - EXCERPT_ELEMENTS + 1)):
            window = slice(first, first + EXCERPT_ELEMENTS)
            value = _rate_window(values[window], truth[window], predicted[window])
            if value > best_value:
                best_value, best = value, (number, entry, first, probabilities, truth, predicted)
    if best is None:
        return None
    number, entry, first, probabilities, truth, predicted = best
    return {
        "kind": "text_strip",
        "run": run_id,
        "document": number,
        "name": entry["name"],
        "first": first,
        "texts": entry["texts"][first : first + EXCERPT_ELEMENTS],
        "probabilities": [round(float(p), 4) for p in probabilities],
        "boundaries": np.flatnonzero(truth).tolist(),
        "predicted": np.flatnonzero(predicted).tolist(),
        "threshold": prediction.threshold,
    }


def _rate_elements(texts: Sequence[str]) -> np.ndarray:
    """How readable the text of each element is, (texts,): 1 for prose, 0 for tables and code."""
    shares = [
        sum(character.isalpha() or character.isspace() for character in text) / max(1, len(text))
        for text in texts
    ]
    return np.array(
        [
            float(share >= MIN_LETTER_SHARE and len(text) > 12)
            for share, text in zip(shares, texts, strict=True)
        ]
    )


def _rate_window(values: np.ndarray, truth: np.ndarray, predicted: np.ndarray) -> float:
    """Value of an excerpt: readable, with a hit that has texts on both sides, and other kinds.

    Arrays may be longer than `values` at the end of a cut document.
    """
    truth, predicted = truth[: len(values)], predicted[: len(values)]
    hits = np.flatnonzero(truth & predicted)
    errors = np.flatnonzero(truth != predicted)
    if not len(hits) and not len(errors):
        return 0.0
    middle = (len(values) - 1) / 2
    distance = min(abs(index - middle) for index in chain(hits, errors))
    return (
        2.0 * (len(hits) > 0)
        + 0.75 * (len(errors) > 0)
        + 2.0 * float(values.mean())
        - 0.1 * float(distance)
        + 1e-3
    )
