"""Synthetic documents and segmenters whose true scores are known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit

from neural.tasks.segmentation.metrics.boundary_f1 import BoundaryF1
from neural.tasks.segmentation.metrics.boundary_similarity import BoundarySimilarity
from neural.tasks.segmentation.metrics.pk import Pk
from neural.tasks.segmentation.metrics.window_diff import WindowDiff
from neural.tasks.segmentation.score_table import estimate_scores
from neural.tasks.segmentation.source_clusters import SourceClusters

METRICS = {
    "boundary_f1": BoundaryF1(),
    "pk": Pk(),
    "window_diff": WindowDiff(),
    "boundary_similarity": BoundarySimilarity(),
}
SEGMENTS_PER_DOCUMENT = 8


@dataclass(frozen=True)
class World:
    """Parameters of synthetic documents and segmenters."""

    sources: float = 0.0
    """Standard deviation of the effect of a source on the log-odds of hits and false alarms."""
    documents: float = 0.0
    """Standard deviation of the effect of a document."""
    hit: float = 0.6
    """Log-odds of finding a boundary."""
    false_alarm: float = -2.5
    """Log-odds of predicting a boundary where there is none."""


def create_documents(world, draw, count, shared=None):
    """Sources, boundaries and effects of documents, of `shared` sources or each of its own."""
    effects = world.sources * draw.normal(size=(shared or count * SEGMENTS_PER_DOCUMENT, 2))
    documents = []
    for number in range(count):
        sources = np.arange(SEGMENTS_PER_DOCUMENT) + number * SEGMENTS_PER_DOCUMENT
        if shared is not None:
            sources = draw.permutation(shared)[:SEGMENTS_PER_DOCUMENT]
        lengths = draw.integers(3, 12, size=len(sources))
        ids = np.repeat(sources, lengths)
        truth = np.zeros(len(ids), dtype=bool)
        truth[np.cumsum(lengths)[:-1]] = True
        previous = effects[np.concatenate([ids[:1], ids[:-1]]), 0]
        ends = (effects[ids, 0] + previous) / np.sqrt(2)
        document_effect = world.documents * draw.normal()
        documents.append((ids, truth, ends + document_effect, effects[ids, 1] + document_effect))
    return documents


def predict(world, draw, documents, better=0.0):
    """Predictions of a segmenter; `better` raises the log-odds of its hits."""
    predictions = []
    for _, truth, ends, inside in documents:
        odds = np.where(truth, world.hit + better + ends, world.false_alarm + inside)
        prediction = draw.random(len(truth)) < expit(odds)
        prediction[0] = False
        predictions.append(prediction)
    return predictions


def create_clusters(documents, shared):
    ids = tuple(ids for ids, *_ in documents)
    return SourceClusters(len(documents), ids if shared else None, shared or 0)


def estimate_score(documents, predictions, shared, name):
    """Estimate a score, with an interval over documents and shared sources."""
    truths = [truth for _, truth, *_ in documents]
    clusters = create_clusters(documents, shared)
    return estimate_scores(METRICS[name], truths, predictions, clusters)[name]


@cache
def true_scores(world, better=0.0, count=6_000):
    """Scores on very many independent documents."""
    draw = np.random.default_rng(1)
    documents = create_documents(world, draw, count)
    predictions = predict(world, draw, documents, better)
    return {name: estimate_score(documents, predictions, None, name).value for name in METRICS}
