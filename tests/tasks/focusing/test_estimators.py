"""Estimators: no bias where they claim to have none, in values and in gradients, and no call more than they may."""

import pytest
import torch

from neural.tasks.focusing.estimator import UNREAD
from neural.tasks.focusing.estimators import registry
from neural.tasks.focusing.estimators.nucleus import drawn as one_drawn
from neural.tasks.focusing.paradigms.hard import Hard
from neural.tasks.focusing.paradigms.lvml import Lvml
from tests.tasks.focusing.small import B, M, given, hard_gradient, same_on_average

every_estimator = pytest.mark.parametrize("name", registry.names())
DRAWS = 4000
HALF = {"topk": {"tail": 0.5}}
"""So that three samples hold more than one that is drawn."""


def focus_and_values():
    """A focus that learns and a function of the segments."""
    random = torch.Generator().manual_seed(5)
    scores = (2 * torch.randn(3, M, generator=random, dtype=torch.float64)).requires_grad_()
    return scores, torch.randn(3, M, generator=random, dtype=torch.float64)


@every_estimator
@pytest.mark.parametrize("samples", [1, 3, M])
def test_sums_over_the_focus_and_their_gradients_have_no_bias(name, samples):
    scores, values = focus_and_values()
    many = scores.repeat_interleave(DRAWS, dim=0)
    log_focus = many.log_softmax(dim=-1)
    torch.manual_seed(0)
    index, log_w = registry.get(name)(**HALF.get(name, {})).choose(log_focus, samples)
    f = values.repeat_interleave(DRAWS, dim=0)
    sums = (log_w.exp() * (f if index is None else f.gather(-1, index.clamp(min=0)))).sum(dim=-1)
    (by_draw,) = torch.autograd.grad(sums.sum(), many)
    exact = (scores.softmax(dim=-1) * values).sum(dim=-1)
    (wanted,) = torch.autograd.grad(exact.sum(), scores)
    for drawn, true in ((sums.view(3, DRAWS, 1), exact[:, None]), (by_draw.view(3, DRAWS, M), wanted)):
        error = drawn.std(dim=1) / DRAWS**0.5
        assert bool(((drawn.mean(dim=1) - true).abs() < 4.5 * error + 1e-9).all())


@every_estimator
def test_the_classifier_reads_what_was_chosen_and_nothing_else(name):
    estimator = registry.get(name)()
    one = given(estimator=estimator, samples=2)
    one.model.calls = 0
    Hard().loss(one)
    assert one.model.calls == B * estimator.calls(M, 2)
    assert estimator.calls(M, 2) == (M if name == "exact" else 2)


def test_a_nucleus_reads_less_the_surer_the_focus_is():
    read = []
    for sharpness in (0.01, 1.0, 100.0):
        log_focus = (sharpness * torch.arange(float(M)).repeat(B, 1)).log_softmax(dim=-1)
        index, _ = registry.get("nucleus")().choose(log_focus, M)
        read.append(int((index != UNREAD).sum()) / B)
    assert read[0] == M
    assert read == sorted(read, reverse=True)
    assert read[-1] == 2, "the one that has the focus, and a draw"


@pytest.mark.parametrize("name", ["exact", "gumbel", "topk"])
def test_reading_everything_is_exact(name):
    one = given(estimator=registry.get(name)(), samples=M)
    torch.testing.assert_close(Lvml().loss(one), Lvml().loss(given(one.model)))


@every_estimator
def test_the_hard_loss_keeps_its_gradient_on_average(name):
    assert same_on_average(Hard(), hard_gradient(), estimator=registry.get(name)(), samples=2)


@every_estimator
def test_the_logarithm_is_nearer_the_more_is_read(name):
    exact = given()
    wanted = Lvml().loss(exact).mean()
    errors = []
    for samples in (1, M - 1):
        torch.manual_seed(0)
        one = given(exact.model, estimator=registry.get(name)(), samples=samples)
        errors.append(torch.stack([(Lvml().loss(one).mean() - wanted).detach().abs() for _ in range(200)]).mean())
    assert float(errors[1]) <= float(errors[0])


@every_estimator
def test_padding_is_never_chosen_or_counts_nothing(name):
    mask = torch.ones(B, M, dtype=torch.bool)
    mask[:, 3:] = False
    torch.manual_seed(0)
    index, log_w = registry.get(name)().choose(given(mask=mask).log_focus.detach(), 5)
    weights = log_w.exp()
    if index is not None:
        weights = torch.zeros(B, M, dtype=torch.float64).scatter_add(1, index.clamp(min=0), weights)
    assert float(weights[:, 3:].abs().max()) == 0.0
    assert bool(log_w.exp().isfinite().all())


def test_a_baseline_makes_the_gradient_calmer_than_plain_draws():
    scores, values = focus_and_values()
    many = scores.repeat_interleave(DRAWS, dim=0)
    spread = {}
    for name in ("rloo", "importance"):
        torch.manual_seed(0)
        index, log_w = registry.get(name)().choose(many.log_softmax(dim=-1), 4)
        f = 10 + values.repeat_interleave(DRAWS, dim=0)   # a common part, which a baseline takes away
        (found,) = torch.autograd.grad((log_w.exp() * f.gather(-1, index)).sum(), many)
        spread[name] = float(found.view(3, DRAWS, M).std(dim=1).mean())
    assert spread["rloo"] < spread["importance"]


def test_a_draw_follows_the_weights_and_never_takes_what_weighs_nothing():
    torch.manual_seed(0)
    weights = torch.tensor([[0.0, 0.5, 0.0, 0.3, 0.2, 0.0]])
    counts = torch.bincount(one_drawn(weights.expand(20_000, -1)).flatten(), minlength=6) / 20_000
    assert counts[[0, 2, 5]].tolist() == [0, 0, 0]
    torch.testing.assert_close(counts, weights[0], rtol=0, atol=0.015)
