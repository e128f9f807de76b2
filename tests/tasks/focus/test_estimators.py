"""Estimators: unbiased sums and gradients, and no more classifier calls than allowed."""

import pytest
import torch

from neural.tasks.focus.estimator import NO_SEGMENT
from neural.tasks.focus.estimators import registry
from neural.tasks.focus.estimators.nucleus import sample_rows
from neural.tasks.focus.paradigms.hard import Hard
from neural.tasks.focus.paradigms.lvml import Lvml
from tests.tasks.focus.segment_batches import B, M, create_batch, hard_gradient, has_mean_gradient

every_estimator = pytest.mark.parametrize("name", registry.names())
DRAWS = 4000
HALF = {"topk": {"tail": 0.5}}
"""With three samples, more than one is taken from the tail."""


def focus_and_values():
    """Focus scores with gradients, and a function of the segments."""
    random = torch.Generator().manual_seed(5)
    scores = (2 * torch.randn(3, M, generator=random, dtype=torch.float64)).requires_grad_()
    return scores, torch.randn(3, M, generator=random, dtype=torch.float64)


@every_estimator
@pytest.mark.parametrize("samples", [1, 3, M])
def test_estimated_sums_and_gradients_are_unbiased(name, samples):
    scores, values = focus_and_values()
    repeated_scores = scores.repeat_interleave(DRAWS, dim=0)
    log_focus = repeated_scores.log_softmax(dim=-1)
    torch.manual_seed(0)
    index, log_w = registry.get(name)(**HALF.get(name, {})).choose(log_focus, samples)
    f = values.repeat_interleave(DRAWS, dim=0)
    sums = (log_w.exp() * (f if index is None else f.gather(-1, index.clamp(min=0)))).sum(dim=-1)
    (sample_gradients,) = torch.autograd.grad(sums.sum(), repeated_scores)
    exact = (scores.softmax(dim=-1) * values).sum(dim=-1)
    (expected,) = torch.autograd.grad(exact.sum(), scores)
    for samples_, exact_value in (
        (sums.view(3, DRAWS, 1), exact[:, None]),
        (sample_gradients.view(3, DRAWS, M), expected),
    ):
        error = samples_.std(dim=1) / DRAWS**0.5
        assert bool(((samples_.mean(dim=1) - exact_value).abs() < 4.5 * error + 1e-9).all())


@every_estimator
def test_only_chosen_segments_are_classified(name):
    estimator = registry.get(name)()
    batch = create_batch(estimator=estimator, samples=2)
    batch.model.classifier_calls = 0
    Hard().loss(batch)
    assert batch.model.classifier_calls == B * estimator.max_segments(M, 2)
    assert estimator.max_segments(M, 2) == (M if name == "exact" else 2)


def test_a_nucleus_is_smaller_for_a_sharper_focus():
    segments_read = []
    for sharpness in (0.01, 1.0, 100.0):
        log_focus = (sharpness * torch.arange(float(M)).repeat(B, 1)).log_softmax(dim=-1)
        index, _ = registry.get("nucleus")().choose(log_focus, M)
        segments_read.append(int((index != NO_SEGMENT).sum()) / B)
    assert segments_read[0] == M
    assert segments_read == sorted(segments_read, reverse=True)
    assert segments_read[-1] == 2, "the one in focus, and a sample of the rest"


@pytest.mark.parametrize("name", ["exact", "gumbel", "topk"])
def test_classifying_all_segments_is_exact(name):
    batch = create_batch(estimator=registry.get(name)(), samples=M)
    torch.testing.assert_close(Lvml().loss(batch), Lvml().loss(create_batch(batch.model)))


@every_estimator
def test_the_hard_loss_has_the_exact_mean_gradient(name):
    assert has_mean_gradient(Hard(), hard_gradient(), estimator=registry.get(name)(), samples=2)


@every_estimator
def test_the_error_of_the_log_falls_with_more_samples(name):
    exact = create_batch()
    expected = Lvml().loss(exact).mean()
    errors = []
    for samples in (1, M - 1):
        torch.manual_seed(0)
        batch = create_batch(exact.model, estimator=registry.get(name)(), samples=samples)
        errors.append(
            torch.stack(
                [(Lvml().loss(batch).mean() - expected).detach().abs() for _ in range(200)]
            ).mean()
        )
    assert float(errors[1]) <= float(errors[0])


@every_estimator
def test_padding_has_no_weight(name):
    mask = torch.ones(B, M, dtype=torch.bool)
    mask[:, 3:] = False
    torch.manual_seed(0)
    index, log_w = registry.get(name)().choose(create_batch(mask=mask).log_focus.detach(), 5)
    weights = log_w.exp()
    if index is not None:
        weights = torch.zeros(B, M, dtype=torch.float64).scatter_add(1, index.clamp(min=0), weights)
    assert float(weights[:, 3:].abs().max()) == 0.0
    assert bool(log_w.exp().isfinite().all())


def test_a_baseline_reduces_the_variance_of_the_gradient():
    scores, values = focus_and_values()
    repeated_scores = scores.repeat_interleave(DRAWS, dim=0)
    deviations = {}
    for name in ("rloo", "importance"):
        torch.manual_seed(0)
        index, log_w = registry.get(name)().choose(repeated_scores.log_softmax(dim=-1), 4)
        # The constant 10 is removed by a baseline.
        f = 10 + values.repeat_interleave(DRAWS, dim=0)
        (gradient_samples,) = torch.autograd.grad(
            (log_w.exp() * f.gather(-1, index)).sum(), repeated_scores
        )
        deviations[name] = float(gradient_samples.view(3, DRAWS, M).std(dim=1).mean())
    assert deviations["rloo"] < deviations["importance"]


def test_row_samples_follow_the_weights_and_never_have_weight_zero():
    torch.manual_seed(0)
    weights = torch.tensor([[0.0, 0.5, 0.0, 0.3, 0.2, 0.0]])
    counts = torch.bincount(sample_rows(weights.expand(20_000, -1)).flatten(), minlength=6) / 20_000
    assert counts[[0, 2, 5]].tolist() == [0, 0, 0]
    torch.testing.assert_close(counts, weights[0], rtol=0, atol=0.015)
