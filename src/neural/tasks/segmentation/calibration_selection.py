"""Choose a calibration method by cross-validation over documents; the calibration file of a run.

    choice = choose_calibration(*flatten_documents(margins, boundaries))
    choice.calibrator(other_margins)        # probabilities
    print(choice.format_table())            # every method on held-out documents
    choice.save(path); CalibrationChoice.load(path)

A calibration method (calibrator.py) maps the scores of a model to probabilities that match observed
frequencies. Scores are margins, (n,), the log-odds that a segment begins at each element (sentence
or line), or class logits, (n, C). The method `none` is the model's own probabilities.

Sources are texts that several documents contain parts of; elements of one document or source are
correlated, which the confidence intervals account for (stats/jackknife.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from neural.core.errors import TaskError, describe_os_error
from neural.core.files import read_small_file, write_atomically
from neural.core.json_values import parse_json
from neural.stats.estimate import Estimate
from neural.tasks.segmentation.calibration import registry
from neural.tasks.segmentation.calibration_error import (
    DEFAULT_SIMULATIONS,
    CalibrationScores,
    ReliabilityDiagram,
    SourcePairs,
    compute_reliability,
    estimate_mean,
    score_calibrations,
    simulate_perfect_model,
)
from neural.tasks.segmentation.calibrator import Calibrator
from neural.tasks.segmentation.probability import (
    check_scores,
    check_targets,
    compute_confidence,
    element_log_losses,
    scores_to_probabilities,
)
from neural.tasks.segmentation.source_clusters import SourceClusters

DEFAULT_FOLDS = 5
"""Number of folds of the cross-validation."""
MAX_TIE_NATS = 1e-4
"""A method whose log loss is at most this far above the best counts as equally good."""
CHOICE_VERSION = 2
"""Format version of `CalibrationChoice.to_dict`."""
CALIBRATION_FILE = "calibration.json"
"""Name of the calibration file in a run folder."""
CALIBRATION_FILE_VERSION = 2
"""Format version of the calibration file of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationChoice:
    """The chosen calibrator and the comparison of all methods on held-out documents."""

    calibrator: Calibrator
    """Fitted to all documents."""
    reason: str
    """Why this method was chosen, as a sentence for the user."""
    elements: int
    documents: int
    """Numbers of elements and documents in the comparison."""
    folds: int
    """Folds of the cross-validation; 0 for a single document, where nothing can be held out."""
    methods: Mapping[str, CalibrationScores]
    """Log loss and calibration errors by method, from the simplest method to the most complex."""
    perfect_model_error: Estimate
    """ECE that chance alone would cause if the chosen method's probabilities were exactly right.

    The mean, and the range of the central 90 % of simulations.
    """
    diagrams: Mapping[str, ReliabilityDiagram]
    """Reliability diagrams of `none` and of the chosen method."""
    interval_basis: str
    """What the intervals are computed over, for the user: `20 documents and 8 shared sources`."""

    def format_table(self) -> str:
        """Text table with a line for each method; an arrow marks the chosen one."""
        header = ("method", "log loss", "Brier", "ECE", "equal mass", "debiased")
        rows = [
            (
                describe_method(name) + " ←" * (name == self.calibrator.name()),
                str(scores.log_loss),
                scores.brier.format_value(),
                str(scores.ece),
                scores.ece_equal_mass.format_value(),
                str(scores.ece_debiased),
            )
            for name, scores in self.methods.items()
        ]
        widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
        padded = [
            [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            for row in (header, *rows)
        ]
        assumption = (
            "with correlated elements per document"
            if self.documents > 1
            else "with independent elements"
        )
        return "\n".join(
            [
                *("  ".join(row).rstrip() for row in padded),
                f"95 % intervals by jackknife over {self.interval_basis}",
                f"a perfect model of this size, {assumption}: "
                f"ECE {self.perfect_model_error} in 90 % of cases",
                self.reason,
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; floats round-trip exactly."""
        return {
            "version": CHOICE_VERSION,
            "calibration": self.calibrator.to_dict(),
            "reason": self.reason,
            "elements": self.elements,
            "documents": self.documents,
            "interval_basis": self.interval_basis,
            "folds": self.folds,
            "perfect_model_error": self.perfect_model_error.to_dict(),
            "methods": {name: scores.to_dict() for name, scores in self.methods.items()},
            "diagrams": {name: diagram.to_dict() for name, diagram in self.diagrams.items()},
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> CalibrationChoice:
        """Inverse of `to_dict`. ValueError, LookupError or TypeError for any other data."""
        if saved["version"] != CHOICE_VERSION:
            raise ValueError(
                f"its version is {saved['version']}, this program reads {CHOICE_VERSION}"
            )
        return cls(
            calibrator=calibrator_from_dict(saved["calibration"]),
            reason=saved["reason"],
            elements=saved["elements"],
            documents=saved["documents"],
            folds=saved["folds"],
            perfect_model_error=Estimate.from_dict(
                saved["perfect_model_error"], n=DEFAULT_SIMULATIONS
            ),
            methods={
                name: CalibrationScores.from_dict(scores, saved["documents"])
                for name, scores in saved["methods"].items()
            },
            diagrams={
                name: ReliabilityDiagram.from_dict(diagram)
                for name, diagram in saved["diagrams"].items()
            },
            interval_basis=str(saved.get("interval_basis", SourceClusters(saved["documents"]))),
        )

    def save(self, path: Path) -> None:
        """Write as JSON, atomically."""
        write_atomically(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> CalibrationChoice:
        """Read what `save` wrote. ValueError names the file if it is broken."""
        try:
            return cls.from_dict(json.loads(read_small_file(path)))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{path} is not a valid calibration: {error}; calibrate again"
            ) from None


def describe_method(name: str) -> str:
    """Name of a calibration method for the user: the method `none` is "uncalibrated"."""
    return "uncalibrated" if name == "none" else name


def calibrator_from_dict(saved: Mapping[str, Any]) -> Calibrator:
    """Calibrator of any method from its `to_dict`."""
    return registry.get(saved["method"]).from_dict(saved)


def flatten_documents(
    scores: Sequence[ArrayLike], truth: Sequence[ArrayLike], *, skip_first: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Concatenated scores, targets and document indices, as `choose_calibration` takes them.

    The arguments have one array per document. `skip_first` drops the first element of each
    document, which cannot be a boundary; use False for labels.
    """
    skipped = 1 if skip_first else 0
    pairs = [
        (np.asarray(s)[skipped:], np.asarray(t)[skipped:])
        for s, t in zip(scores, truth, strict=True)
    ]
    for index, (s, t) in enumerate(pairs):
        if len(s) != len(t):
            raise ValueError(
                f"document {index + 1}: {len(s) + skipped} scores, "
                f"but the truth of {len(t) + skipped} elements"
            )
    if not pairs:
        raise ValueError("nothing to calibrate on: there are no documents")
    document_ids = np.repeat(np.arange(len(pairs)), [len(s) for s, _ in pairs])
    return (
        np.concatenate([s for s, _ in pairs]),
        np.concatenate([t for _, t in pairs]),
        document_ids,
    )


def choose_calibration(
    scores: ArrayLike,
    truth: ArrayLike,
    documents: ArrayLike,
    *,
    sources: SourcePairs = None,
    methods: Sequence[str] | None = None,
    folds: int = DEFAULT_FOLDS,
    seed: int = 0,
) -> CalibrationChoice:
    """Compare all methods by cross-validation over documents and choose the best.

    The best method has the lowest log loss on held-out documents; of equally good methods the
    simplest wins. The result is that method, fitted to all documents.

    `truth` is 0 or 1 for margins, the class index for logits, (n,). `documents` is the document id
    of each element. `sources` are the two sources that each element depends on, if documents share
    sources (`SourceClusters.source_pairs`). `methods` limits the candidates; `none` is always among
    them.
    """
    s = check_scores(scores)
    t = check_targets(truth, s)
    unique_documents, document_ids = np.unique(np.asarray(documents), return_inverse=True)
    if document_ids.shape != t.shape:
        raise ValueError(
            f"{len(t):,} elements, but the documents of {document_ids.size:,} are given"
        )
    if not len(t):
        raise ValueError("nothing to calibrate on: there are no elements")
    if folds < 2:
        raise ValueError(f"cross-validation needs 2 folds or more, got {folds}")
    candidates = _select_candidates(s, methods)
    fold_count = min(folds, len(unique_documents)) if len(unique_documents) > 1 else 0
    # With a single document, `none` is the only candidate: it needs no fit.
    held_out_probabilities = {
        method.name(): _cross_fit(method, s, t, document_ids, fold_count, seed)
        if fold_count
        else scores_to_probabilities(s)
        for method in (candidates if fold_count else candidates[:1])
    }
    method_scores = score_calibrations(held_out_probabilities, t, document_ids, sources=sources)
    least_loss = min(scores.log_loss.value for scores in method_scores.values())
    chosen = next(
        method
        for method in candidates
        if method_scores[method.name()].log_loss.value <= least_loss + MAX_TIE_NATS
    )
    confidences = {
        name: compute_confidence(held_out_probabilities[name], t)
        for name in dict.fromkeys(("none", chosen.name()))
    }
    return CalibrationChoice(
        calibrator=chosen.fit(s, t),
        reason=_explain_choice(
            chosen.name(), method_scores, held_out_probabilities, t, document_ids, sources
        ),
        elements=len(t),
        documents=len(unique_documents),
        folds=fold_count,
        methods=method_scores,
        perfect_model_error=simulate_perfect_model(
            *confidences[chosen.name()], document_ids, sources=sources, seed=seed
        ),
        diagrams={
            name: compute_reliability(*pair, document_ids, sources=sources)
            for name, pair in confidences.items()
        },
        interval_basis=str(
            SourceClusters(
                len(unique_documents), shared_count=_count_shared_sources(document_ids, sources)
            )
        ),
    )


def _count_shared_sources(document_ids: np.ndarray, sources: SourcePairs) -> int:
    """Number of sources that occur in at least two documents."""
    if sources is None:
        return 0
    pairs = np.unique(np.stack([np.tile(document_ids, 2), np.concatenate(sources)], axis=1), axis=0)
    return int((np.bincount(pairs[:, 1]) > 1).sum())


def _select_candidates(scores: np.ndarray, methods: Sequence[str] | None) -> list[type[Calibrator]]:
    """Methods that accept scores of this shape, from the simplest (`none`) to the most complex."""
    requested = [
        registry.get(name) for name in dict.fromkeys(("none", *(methods or registry.names())))
    ]
    accepted = [method for method in requested if method.accepts(scores)]
    if methods and len(accepted) < len(requested):
        rejected = ", ".join(method.name() for method in requested if method not in accepted)
        raise ValueError(f"not for scores of the shape {scores.shape}: {rejected}")
    return sorted(accepted, key=lambda method: (method.complexity_rank, method.name()))


def _cross_fit(
    method: type[Calibrator],
    scores: np.ndarray,
    truth: np.ndarray,
    document_ids: np.ndarray,
    folds: int,
    seed: int,
) -> np.ndarray:
    """Held-out probabilities: those of an element come from a fit without the fold it is in.

    A document is in one fold as a whole.
    """
    count = int(document_ids.max()) + 1
    fold_ids = np.random.default_rng(seed).permutation(count)[document_ids] % folds
    probabilities = np.empty_like(scores)
    for fold in range(folds):
        is_held_out = fold_ids == fold
        calibrator = method.fit(scores[~is_held_out], truth[~is_held_out])
        probabilities[is_held_out] = calibrator(scores[is_held_out])
    return probabilities


def _explain_choice(
    chosen: str,
    method_scores: Mapping[str, CalibrationScores],
    held_out_probabilities: Mapping[str, np.ndarray],
    truth: np.ndarray,
    document_ids: np.ndarray,
    sources: SourcePairs,
) -> str:
    """Sentence for the user: the chosen method and its gain in log loss over `none`."""
    if document_ids.max() == 0:
        return (
            "uncalibrated: there is only one document, so methods cannot be compared "
            "on held-out documents; use more documents"
        )
    best = min(method_scores, key=lambda name: method_scores[name].log_loss.value)
    tie = (
        ""
        if best == chosen
        else f"; {best} does equally well, and {describe_method(chosen)} is simpler"
    )
    if chosen == "none":
        return f"uncalibrated: no method has a lower log loss on held-out documents{tie}"
    gain = estimate_mean(
        element_log_losses(held_out_probabilities["none"], truth)
        - element_log_losses(held_out_probabilities[chosen], truth),
        document_ids,
        sources=sources,
    )
    caveat = "" if gain.low > 0 else ": the interval includes 0, so more documents are needed"
    return (
        f"{chosen}: on held-out documents its log loss is lower than uncalibrated "
        f"by {gain} nats{tie}{caveat}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCalibration:
    """Calibration of a run: `calibration.json` in its folder."""

    weights: str
    """Name of the checkpoint that was calibrated (`TrainedRun.best_checkpoint`)."""
    data: str
    """Description of the documents that the calibration was fitted to, for the user."""
    boundary: CalibrationChoice
    """Calibration of boundary probabilities."""
    label: CalibrationChoice | None
    """Calibration of label probabilities; None if boundaries are the target."""
    threshold: float
    """Threshold on calibrated boundary probabilities that gives the best F1 of boundaries."""
    f1: float
    """The F1 at this threshold."""

    def save(self, folder: Path) -> Path:
        """Write into a run folder, replacing an earlier file. Returns the path."""
        saved = {
            "version": CALIBRATION_FILE_VERSION,
            "weights": self.weights,
            "data": self.data,
            "threshold": self.threshold,
            "f1": self.f1,
            "boundary": self.boundary.to_dict(),
            "label": self.label.to_dict() if self.label else None,
        }
        path = folder / CALIBRATION_FILE
        write_atomically(path, json.dumps(saved, indent=1, allow_nan=False) + "\n")
        return path

    @classmethod
    def load(cls, folder: Path) -> RunCalibration | None:
        """Calibration of a run folder; None if there is none. TaskError if the file is broken."""
        path = folder / CALIBRATION_FILE
        try:
            saved = parse_json(read_small_file(path).decode())
            if saved["version"] != CALIBRATION_FILE_VERSION:
                raise ValueError(
                    f"its version is {saved['version']}, "
                    f"this program reads {CALIBRATION_FILE_VERSION}"
                )
            label = saved["label"]
            return cls(
                weights=saved["weights"],
                data=saved["data"],
                boundary=CalibrationChoice.from_dict(saved["boundary"]),
                label=CalibrationChoice.from_dict(label) if label else None,
                threshold=float(saved["threshold"]),
                f1=float(saved["f1"]),
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TaskError(f"{path} cannot be read: {describe_os_error(error)}") from None
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            raise TaskError(
                f"{path} is not a valid calibration: {error}; calibrate again"
            ) from None
