"""A run against documents that it has not seen, beside every baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from neural.held_out import HeldOut, held_out, targets_of
from neural.segmenting import Cutter, cutter_of_run
from neural.tasks.cutting.clusters import Clusters
from neural.tasks.cutting.scores import Table, baseline_answers, scores
from neural.tracking.run import Run


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How well a segmenter finds the parts of documents."""

    table: Table
    held: HeldOut
    cutter: Cutter
    threshold: float
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what is not known is None, since JSON has no NaN."""
        return {
            "segmenter": self.cutter.name, "data": self.held.where, "threshold": self.threshold,
            "calibration": self.cutter.calibration.name(), "remarks": list(self.remarks),
            **known(self.table.to_dict()),
        }  # fmt: skip


def evaluate(
    run: Run, data: str | None = None, *, threshold: float | None = None, allow_duplicates: bool = False
) -> Evaluation:
    """On the test part of the run's documents, on the validation part where there is none, or on other documents.

    Documents that the run learned from are refused, unless `allow_duplicates`.
    """
    cutter = cutter_of_run(run)
    held = held_out(run, "test", data, allow_duplicates=allow_duplicates)
    return evaluated(cutter, held, threshold=threshold)


def evaluated(cutter: Cutter, held: HeldOut, *, threshold: float | None = None) -> Evaluation:
    """Any segmenter on any documents."""
    said = [cutter.scores(one) for one in held.documents]
    found = [cutter.cut_at(cutter.boundary_probabilities(one), threshold=threshold) for one in said]
    targets, remarks = targets_of(held, cutter), [*cutter.remarks, *held.remarks]
    labels = None if targets is None else (targets, [cutter.label_probabilities(one).argmax(axis=1) for one in said])
    if cutter.learned == "labels" and targets is None:
        remarks.append("these documents have no labels: boundaries alone are judged")
    table = scores(
        held.truths, found, labels=labels, name="this run", clusters=Clusters.of(held.documents),
        baselines=baseline_answers([one.elements for one in held.documents], held.training),
    )  # fmt: skip
    return Evaluation(
        table=table, held=held, cutter=cutter, threshold=threshold or cutter.threshold, remarks=tuple(remarks)
    )


def known(value: Any) -> Any:
    """The same data with None in the place of NaN."""
    if isinstance(value, dict):
        return {key: known(one) for key, one in value.items()}
    return None if isinstance(value, float) and value != value else value
