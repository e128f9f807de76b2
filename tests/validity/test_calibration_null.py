"""Calibration of perfect and of wrong models whose documents and sources go together: false alarms, power, coverage."""

import numpy as np
import pytest
from scipy.special import expit, ndtri

from neural.tasks.cutting.calibration_scores import mean_over
from neural.tasks.cutting.expected_error import expected_errors, of_a_perfect_model
from neural.tasks.cutting.probability import losses
from neural.tasks.cutting.reliability import reliability

REPEATS = 150
SETS = {
    "10 documents": (10, None, 0.1),
    "30 documents": (30, None, 0.1),
    "30 documents, strongly clustered": (30, None, 0.2),
    "30 documents that are not clustered": (30, None, 0.0),
    "20 documents of 8 sources": (20, 8, 0.1),
}
"""Documents, sources they share, and the correlation of two elements of one document or source (latent normal)."""


def elements(draw, case, *, shift=0.0):
    """Probabilities and what came true, where the right log-odds are so much higher than said."""
    count, shared, correlation = SETS[case]
    if shared is None:
        documents = np.repeat(np.arange(count), draw.integers(20, 61, size=count))
        clusters, sources = documents, None
    else:
        parts = [draw.permutation(shared) for _ in range(count)]
        lengths = draw.integers(3, 12, size=(count, shared))
        clusters = np.concatenate([np.repeat(*pair) for pair in zip(parts, lengths, strict=True)])
        documents = np.repeat(np.arange(count), lengths.sum(axis=1))
        sources = clusters, clusters
    margins = draw.normal(-1, 1.5, size=len(documents))
    together = draw.normal(size=clusters.max() + 1)[clusters]
    latent = np.sqrt(correlation) * together + np.sqrt(1 - correlation) * draw.normal(size=len(margins))
    hits = (latent < ndtri(expit(margins + shift))).astype(float)
    return expit(margins), hits, documents, sources


def rejections(case, repeats, *, shift=0.0, clustered=True):
    """How often the expected error lies above what 95 % of perfect models have."""
    rejected = []
    for repeat in range(repeats):
        p, hits, documents, sources = elements(np.random.default_rng(repeat), case, shift=shift)
        error = expected_errors(p, hits, documents).plain.value
        known = (hits, documents) if clustered else ()
        perfect = of_a_perfect_model(p, *known, sources=sources, simulations=300, seed=repeat)
        rejected.append(error > perfect.high)
    return float(np.mean(rejected))


def coverage(case, repeats, *, shift=0.7):
    """How often intervals hold the truth: debiased error, log loss, the share that came true in a bin."""
    draw = np.random.default_rng(10**6)
    margins = draw.normal(-1, 1.5, size=1_000_000)
    p, right = expit(margins), expit(margins + shift)
    error = np.sqrt(((right - p) ** 2).mean())
    loss = float(-(right * np.log(p) + (1 - right) * np.log(1 - p)).mean())
    inside = (p >= 0.2) & (p < 4 / 15)
    share = float(right[inside].mean())
    held = {"debiased ECE": [], "log loss": [], "share of a bin": []}
    for repeat in range(repeats):
        p, hits, documents, sources = elements(np.random.default_rng(repeat), case, shift=shift)
        debiased = expected_errors(p, hits, documents, sources=sources).debiased
        mean = mean_over(
            losses(p, hits.astype(int)), documents, sources=sources, scale="positive"
        )
        diagram = reliability(p, hits, documents, sources=sources)
        held["debiased ECE"].append(debiased.low <= error <= debiased.high)
        held["log loss"].append(mean.low <= loss <= mean.high)
        held["share of a bin"].append(diagram.low[3] <= share <= diagram.high[3])
    return {name: float(np.mean(hits)) for name, hits in held.items()}


@pytest.mark.parametrize("case", SETS)
def test_a_perfect_model_is_rarely_called_wrong(case):
    assert rejections(case, REPEATS) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / REPEATS)


def test_independent_elements_call_a_perfect_model_of_clustered_documents_wrong():
    case = "20 documents of 8 sources"
    assert rejections(case, REPEATS, clustered=False) > 0.2 > 2 * rejections(case, REPEATS)


def test_a_wrong_model_is_called_wrong():
    assert rejections("30 documents", 40, shift=0.5) >= 0.8


@pytest.mark.parametrize("case", ["30 documents", "20 documents of 8 sources"])
def test_intervals_hold_the_truth(case):
    for name, covered in coverage(case, REPEATS).items():
        assert 0.88 <= covered <= 0.995, (name, covered)


def rates(repeats=1_000):
    """False alarms and power of the perfect model's expected error, and coverage of the intervals."""
    rows = [
        {
            "what": "ECE above that of a perfect model",
            "null": f"perfect model, {case}",
            "false_positive_rate": rejections(case, repeats),
            "truth": "right log-odds .5 above what is said (ECE .09)",
            "power": rejections(case, max(50, repeats // 5), shift=0.5),
            "repeats": repeats,
        }
        for case in SETS
    ]
    for case in SETS:
        for name, covered in coverage(case, repeats).items():
            rows.append({"what": name, "truth": case, "coverage": covered, "repeats": repeats})
    return rows
