"""Error rates and coverage of calibration errors on clustered data."""

import numpy as np
import pytest
from scipy.special import expit, ndtri

from neural.tasks.segmentation.calibration_error import (
    compute_reliability,
    estimate_calibration_errors,
    estimate_mean,
    simulate_perfect_model,
)
from neural.tasks.segmentation.probability import element_log_losses

REPEATS = 150
SETS = {
    "10 documents": (10, None, 0.1),
    "30 documents": (30, None, 0.1),
    "30 documents, strongly clustered": (30, None, 0.2),
    "30 documents that are not clustered": (30, None, 0.0),
    "20 documents of 8 sources": (20, 8, 0.1),
}
"""Documents, shared sources, and latent correlation of two elements of a document or source."""


def create_elements(draw, case, *, shift=0.0):
    """Probabilities and outcomes; the true log-odds exceed the predicted ones by `shift`."""
    count, shared, correlation = SETS[case]
    if shared is None:
        documents = np.repeat(np.arange(count), draw.integers(20, 61, size=count))
        clusters, sources = documents, None
    else:
        orders = [draw.permutation(shared) for _ in range(count)]
        lengths = draw.integers(3, 12, size=(count, shared))
        clusters = np.concatenate([np.repeat(*pair) for pair in zip(orders, lengths, strict=True)])
        documents = np.repeat(np.arange(count), lengths.sum(axis=1))
        sources = clusters, clusters
    margins = draw.normal(-1, 1.5, size=len(documents))
    cluster_effect = draw.normal(size=clusters.max() + 1)[clusters]
    latent = np.sqrt(correlation) * cluster_effect + np.sqrt(1 - correlation) * draw.normal(
        size=len(margins)
    )
    hits = (latent < ndtri(expit(margins + shift))).astype(float)
    return expit(margins), hits, documents, sources


def rejection_rate(case, repeats, *, shift=0.0, clustered=True):
    """Share of simulations whose calibration error exceeds that of 95 % of perfect models."""
    rejected = []
    for repeat in range(repeats):
        p, hits, documents, sources = create_elements(
            np.random.default_rng(repeat), case, shift=shift
        )
        error = estimate_calibration_errors(p, hits, documents).plain.value
        clusters = (hits, documents) if clustered else ()
        perfect = simulate_perfect_model(
            p, *clusters, sources=sources, simulations=300, seed=repeat
        )
        rejected.append(error > perfect.high)
    return float(np.mean(rejected))


def coverage(case, repeats, *, shift=0.7):
    """Coverage of intervals of the debiased error, the log loss and the frequency in a bin."""
    draw = np.random.default_rng(10**6)
    margins = draw.normal(-1, 1.5, size=1_000_000)
    p, true_p = expit(margins), expit(margins + shift)
    error = np.sqrt(((true_p - p) ** 2).mean())
    loss = float(-(true_p * np.log(p) + (1 - true_p) * np.log(1 - p)).mean())
    # the bins have equal counts, so their edges differ between repeats
    order = np.argsort(p)
    sorted_p, true_sums = p[order], np.concatenate([[0.0], np.cumsum(true_p[order])])
    covered = {"debiased ECE": [], "log loss": [], "share of a bin": []}
    for repeat in range(repeats):
        p, hits, documents, sources = create_elements(
            np.random.default_rng(repeat), case, shift=shift
        )
        debiased = estimate_calibration_errors(p, hits, documents, sources=sources).debiased
        mean = estimate_mean(
            element_log_losses(p, hits.astype(int)), documents, sources=sources, scale="positive"
        )
        diagram = compute_reliability(p, hits, documents, sources=sources)
        covered["debiased ECE"].append(debiased.low <= error <= debiased.high)
        covered["log loss"].append(mean.low <= loss <= mean.high)
        first, last = np.searchsorted(sorted_p, diagram.edges[9:11])
        share = (true_sums[last] - true_sums[first]) / (last - first)
        covered["share of a bin"].append(diagram.low[10] <= share <= diagram.high[10])
    return {name: float(np.mean(hits)) for name, hits in covered.items()}


@pytest.mark.parametrize("case", SETS)
def test_a_perfect_model_is_rarely_called_miscalibrated(case):
    assert rejection_rate(case, REPEATS) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / REPEATS)


def test_independent_elements_call_a_perfect_model_of_clustered_documents_wrong():
    case = "20 documents of 8 sources"
    assert rejection_rate(case, REPEATS, clustered=False) > 0.2 > 2 * rejection_rate(case, REPEATS)


def test_a_miscalibrated_model_is_called_miscalibrated():
    assert rejection_rate("30 documents", 40, shift=0.5) >= 0.8


@pytest.mark.parametrize("case", ["30 documents", "20 documents of 8 sources"])
def test_intervals_cover_the_truth(case):
    for name, covered in coverage(case, REPEATS).items():
        assert 0.88 <= covered <= 0.995, (name, covered)


def rates(repeats=1_000):
    """Error rates of the comparison with a perfect model, and coverage of the intervals."""
    rows = [
        {
            "what": "ECE above that of a perfect model",
            "null": f"perfect model, {case}",
            "false_positive_rate": rejection_rate(case, repeats),
            "truth": "true log-odds .5 above the predicted ones (ECE .09)",
            "power": rejection_rate(case, max(50, repeats // 5), shift=0.5),
            "repeats": repeats,
        }
        for case in SETS
    ]
    for case in SETS:
        for name, covered in coverage(case, repeats).items():
            rows.append({"what": name, "truth": case, "coverage": covered, "repeats": repeats})
    return rows
