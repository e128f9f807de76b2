"""Which calibration to take, decided on documents that it was not fitted to.

    choice = choose(*questions(margins_of_documents, boundaries_of_documents))
    choice.calibration(other_scores)        # probabilities
    print(choice.table())                   # every method on held-out documents, and why this one
    choice.save(folder / "calibration.json"); Choice.load(…)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from neural.core.files import write_atomically
from neural.tasks.cutting.calibrated import Calibration
from neural.tasks.cutting.calibration import registry
from neural.tasks.cutting.calibration_scores import CalibrationScores, calibration_scores, mean_over
from neural.tasks.cutting.clusters import Clusters
from neural.tasks.cutting.expected_error import Pairs, of_a_perfect_model
from neural.tasks.cutting.jackknife import Interval
from neural.tasks.cutting.probability import as_scores, as_truth, confidence, losses, plain_probabilities
from neural.tasks.cutting.reliability import Reliability, reliability

FOLDS = 5
TIE = 1e-4
"""Nats per element; methods that are no further from the best do equally well."""
VERSION = 1
"""Of the saved form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The calibration that was chosen, and the comparison behind it. All numbers are of held-out documents."""

    calibration: Calibration
    """Fitted to all documents."""
    why: str
    elements: int
    documents: int
    folds: int
    """0 where nothing could be held out."""
    methods: Mapping[str, CalibrationScores]
    """From the simplest to the freest; `none` is among them."""
    perfect: Interval
    """What the plain error would be if the chosen method's probabilities were exactly right; the middle 90 %."""
    diagrams: Mapping[str, Reliability]
    """Of `none`, and of the chosen method."""
    over: str
    """What the intervals are over: `20 documents and 8 shared sources`."""

    def table(self) -> str:
        """Text, a line for each method, the chosen one marked."""
        head = ("method", "log loss", "Brier", "ECE", "equal mass", "debiased")
        rows = [
            (name + " ←" * (name == self.calibration.name()), str(one.log_loss), f"{one.brier.value:.4f}",
             _fine(one.ece), f"{one.ece_equal_mass.value:.4f}", _fine(one.ece_debiased))
            for name, one in self.methods.items()
        ]  # fmt: skip
        widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
        padded = [[cell.ljust(width) for cell, width in zip(row, widths, strict=True)] for row in (head, *rows)]
        clustered = "elements of a document going together" if self.documents > 1 else "elements independent"
        perfect = f"a perfect model of this size, {clustered}: ECE {_fine(self.perfect)} in 90 % of cases"
        intervals = f"95 % intervals over {self.over}, each left out in turn"
        return "\n".join([*("  ".join(row).rstrip() for row in padded), intervals, perfect, self.why])

    def to_dict(self) -> dict[str, Any]:
        """Plain data that `json` writes; every float comes back as it was."""
        return {
            "version": VERSION, "calibration": self.calibration.to_dict(), "why": self.why, "elements": self.elements,
            "documents": self.documents, "over": self.over, "folds": self.folds, "perfect": asdict(self.perfect),
            "methods": {name: one.to_dict() for name, one in self.methods.items()},
            "diagrams": {name: one.to_dict() for name, one in self.diagrams.items()},
        }  # fmt: skip

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Choice:
        """What `to_dict` gave, also after a file; ValueError, LookupError or TypeError where it is something else."""
        if saved["version"] != VERSION:
            raise ValueError(f"its version is {saved['version']}, this program reads {VERSION}")
        return cls(
            calibration=calibration_of(saved["calibration"]), why=saved["why"], elements=saved["elements"],
            documents=saved["documents"], folds=saved["folds"], perfect=Interval(**saved["perfect"]),
            methods={name: CalibrationScores.from_dict(one) for name, one in saved["methods"].items()},
            diagrams={name: Reliability.from_dict(one) for name, one in saved["diagrams"].items()},
            over=str(saved.get("over", Clusters(saved["documents"]))),
        )  # fmt: skip

    def save(self, path: Path) -> None:
        """As JSON, whole or not at all."""
        write_atomically(path, json.dumps(self.to_dict(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Choice:
        """What `save` wrote; ValueError names the file if it is something else."""
        try:
            return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, LookupError, TypeError, AttributeError) as problem:
            raise ValueError(f"{path} is no calibration that can be used: {problem}; calibrate again") from None


def calibration_of(saved: Mapping[str, Any]) -> Calibration:
    """What `to_dict` of any method gave, also after a file."""
    return registry.get(saved["method"]).from_dict(saved)


def questions(
    scores: Sequence[ArrayLike], truth: Sequence[ArrayLike], *, boundaries: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and truth of documents, as `choose` takes them: all elements in a row, and of which document each is.

    `boundaries`: without the first element of each document, where no part can begin; labels have no such element.
    """
    first = 1 if boundaries else 0
    cut = [(np.asarray(s)[first:], np.asarray(t)[first:]) for s, t in zip(scores, truth, strict=True)]
    for at, (s, t) in enumerate(cut):
        if len(s) != len(t):
            raise ValueError(f"document {at + 1}: {len(s) + first} scores, but the truth of {len(t) + first} elements")
    if not cut:
        raise ValueError("nothing to calibrate on: there are no documents")
    which = np.repeat(np.arange(len(cut)), [len(s) for s, _ in cut])
    return np.concatenate([s for s, _ in cut]), np.concatenate([t for _, t in cut]), which


def choose(
    scores: ArrayLike, truth: ArrayLike, documents: ArrayLike, *, sources: Pairs = None,
    methods: Sequence[str] | None = None, folds: int = FOLDS, seed: int = 0,
) -> Choice:  # fmt: skip
    """Fit every method to some documents and measure it on the others, in turn; take the best, fitted to all of them.

    `documents` says which one each element is of, `sources` which two sources it depends on where documents share
    sources (`Clusters.pairs`). The best has the least held-out log loss, a tie goes to the simpler. `methods`: these,
    and `none`; without it, all that take such scores.
    """
    s = as_scores(scores)
    t = as_truth(truth, s)
    names, which = np.unique(np.asarray(documents), return_inverse=True)
    if which.shape != t.shape:
        raise ValueError(f"{len(t):,} elements, but the documents of {which.size:,} are given")
    if not len(t):
        raise ValueError("nothing to calibrate on: there are no elements")
    if folds < 2:
        raise ValueError(f"to hold something out takes 2 folds or more, got {folds}")
    candidates = _candidates(s, methods)
    parts = min(folds, len(names)) if len(names) > 1 else 0
    held_out = {
        one.name(): _held_out(one, s, t, which, parts, seed) if parts else plain_probabilities(s)
        for one in (candidates if parts else candidates[:1])
    }
    measured = calibration_scores(held_out, t, which, sources=sources)
    best = min(one.log_loss.value for one in measured.values())
    chosen = next(one for one in candidates if measured[one.name()].log_loss.value <= best + TIE)
    shown = dict.fromkeys(("none", chosen.name()))
    judged = {name: confidence(held_out[name], t) for name in shown}
    return Choice(
        calibration=chosen.fit(s, t), why=_why(chosen.name(), measured, held_out, t, which, sources), elements=len(t),
        documents=len(names), folds=parts, methods=measured,
        perfect=of_a_perfect_model(*judged[chosen.name()], which, sources=sources, seed=seed),
        diagrams={name: reliability(*pair, which, sources=sources) for name, pair in judged.items()},
        over=str(Clusters(len(names), shared=_shared(which, sources))),
    )  # fmt: skip


def _shared(which: np.ndarray, sources: Pairs) -> int:
    """Sources that are in two documents or more."""
    if sources is None:
        return 0
    pairs = np.unique(np.stack([np.tile(which, 2), np.concatenate(sources)], axis=1), axis=0)
    return int((np.bincount(pairs[:, 1]) > 1).sum())


def _fine(one: Interval) -> str:
    """Four digits: expected errors are small."""
    ends = f" ({one.low:.4f} … {one.high:.4f})" if one.low == one.low else ""
    return f"{one.value:.4f}{ends}"


def _candidates(scores: np.ndarray, methods: Sequence[str] | None) -> list[type[Calibration]]:
    """`none` first, then from the simplest to the freest."""
    wanted = [registry.get(name) for name in dict.fromkeys(("none", *(methods or registry.names())))]
    fitting = [one for one in wanted if one.takes(scores)]
    if methods and len(fitting) < len(wanted):
        lost = ", ".join(one.name() for one in wanted if one not in fitting)
        raise ValueError(f"not for scores of the shape {scores.shape}: {lost}")
    return sorted(fitting, key=lambda one: (one.simplicity, one.name()))


def _held_out(
    method: type[Calibration], scores: np.ndarray, truth: np.ndarray, which: np.ndarray, parts: int, seed: int
) -> np.ndarray:
    """Probabilities of every element by a fit to which its document, and the others of its part, gave nothing."""
    number = int(which.max()) + 1
    part = np.random.default_rng(seed).permutation(number)[which] % parts
    found = np.empty_like(scores)
    for at in range(parts):
        out = part == at
        found[out] = method.fit(scores[~out], truth[~out])(scores[out])
    return found


def _why(
    chosen: str, measured: Mapping[str, CalibrationScores], held_out: Mapping[str, np.ndarray], truth: np.ndarray,
    which: np.ndarray, sources: Pairs,
) -> str:  # fmt: skip
    if which.max() == 0:
        return "none: there is one document, so nothing can be held out to compare by; bring more documents"
    best = min(measured, key=lambda name: measured[name].log_loss.value)
    tie = "" if best == chosen else f"; {best} does equally well, and {chosen} is simpler"
    if chosen == "none":
        return f"none: no method has a lower log loss on held-out documents{tie}"
    gain = mean_over(losses(held_out["none"], truth) - losses(held_out[chosen], truth), which, sources=sources)
    sure = "" if gain.low > 0 else ": the interval includes 0, more documents would tell"
    return f"{chosen}: on held-out documents its log loss is lower than that of none by {gain} nats{tie}{sure}"
