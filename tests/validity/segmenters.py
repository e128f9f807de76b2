"""Documents and segmenters whose true scores are known: boundaries are found with known chances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit

from neural.tasks.cutting.clusters import Clusters
from neural.tasks.cutting.metrics.boundary_f1 import BoundaryF1
from neural.tasks.cutting.metrics.boundary_similarity import BoundarySimilarity
from neural.tasks.cutting.metrics.pk import Pk
from neural.tasks.cutting.metrics.window_diff import WindowDiff
from neural.tasks.cutting.scores import score_estimates

METRICS = {
    "boundary_f1": BoundaryF1(),
    "pk": Pk(),
    "window_diff": WindowDiff(),
    "boundary_similarity": BoundarySimilarity(),
}
PARTS = 8


@dataclass(frozen=True)
class World:
    """How documents are made, and how segmenters do on them."""

    sources: float = 0.0
    """Standard deviation of what a source adds to the log-odds: of a hit at its ends, of a false alarm in it."""
    documents: float = 0.0
    """The same of a document."""
    hit: float = 0.6
    """Log-odds of finding a boundary."""
    false_alarm: float = -2.5
    """Log-odds of saying that a part begins where none does."""


def texts(world, draw, count, shared=None):
    """Sources, boundaries and difficulties of documents; of `shared` sources, or each of sources of its own."""
    effects = world.sources * draw.normal(size=(shared or count * PARTS, 2))
    documents = []
    for number in range(count):
        own = np.arange(PARTS) + number * PARTS
        chosen = own if shared is None else draw.permutation(shared)[:PARTS]
        lengths = draw.integers(3, 12, size=len(chosen))
        ids = np.repeat(chosen, lengths)
        truth = np.zeros(len(ids), dtype=bool)
        truth[np.cumsum(lengths)[:-1]] = True
        before = effects[np.concatenate([ids[:1], ids[:-1]]), 0]
        ends = (effects[ids, 0] + before) / np.sqrt(2)
        hard = world.documents * draw.normal()
        documents.append((ids, truth, ends + hard, effects[ids, 1] + hard))
    return documents


def answers(world, draw, documents, better=0.0):
    """What a segmenter says; `better` raises the log-odds of its hits."""
    predictions = []
    for _, truth, ends, inside in documents:
        odds = np.where(truth, world.hit + better + ends, world.false_alarm + inside)
        prediction = draw.random(len(truth)) < expit(odds)
        prediction[0] = False
        predictions.append(prediction)
    return predictions


def clusters_of(documents, shared):
    ids = tuple(ids for ids, *_ in documents)
    return Clusters(len(documents), ids if shared else None, shared or 0)


def measured(documents, predictions, shared, name):
    """The estimate of a score, with intervals over documents and the sources they share."""
    truths = [truth for _, truth, *_ in documents]
    clusters = clusters_of(documents, shared)
    return score_estimates(METRICS[name], truths, predictions, clusters)[name]


@cache
def true_scores(world, better=0.0, count=6_000):
    """On very many documents that share nothing."""
    draw = np.random.default_rng(1)
    documents = texts(world, draw, count)
    predictions = answers(world, draw, documents, better)
    return {name: measured(documents, predictions, None, name).value for name in METRICS}
