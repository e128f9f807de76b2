"""Losses against hand-written ones, their gradients against what they stand for, and what each costs."""

import pytest
import torch

from neural.tasks.focusing.estimators.exact import Exact
from neural.tasks.focusing.estimators.topk import Topk
from neural.tasks.focusing.paradigm import Moment
from neural.tasks.focusing.paradigms import registry
from neural.tasks.focusing.paradigms.annealed import Annealed
from neural.tasks.focusing.paradigms.gated import Gated
from neural.tasks.focusing.paradigms.gumbel_straight_through import GumbelStraightThrough
from neural.tasks.focusing.paradigms.hard import Hard
from neural.tasks.focusing.paradigms.hybrid import Hybrid
from neural.tasks.focusing.paradigms.logit_average import LogitAverage
from neural.tasks.focusing.paradigms.lvml import Lvml
from neural.tasks.focusing.paradigms.reinforce import Reinforce
from neural.tasks.focusing.paradigms.renyi import Renyi
from neural.tasks.focusing.paradigms.soft import Soft
from neural.tasks.focusing.paradigms.sparsemax import Sparsemax
from neural.tasks.focusing.paradigms.variational import Variational
from neural.tasks.focusing.segments import Segments
from tests.tasks.focusing.small import B, C, D, M, by_hand, given, gradients, hard_gradient, model, same_on_average

every_paradigm = pytest.mark.parametrize("name", registry.names())


def tiny(name):
    return registry.get(name).tiny().at(Moment(0.0))


@every_paradigm
def test_a_paradigm_says_what_it_is_and_prints_the_call_that_makes_it(name):
    entry = registry.get(name)
    assert entry.summary().endswith(".")
    assert repr(entry.tiny()).startswith(name)


@every_paradigm
def test_the_loss_is_one_number_per_example_with_a_gradient_for_both_networks(name):
    one = given()
    losses = tiny(name).loss(one)
    assert losses.shape == (B,)
    for part in (one.model.focus, one.model.classifier):
        found = torch.autograd.grad(losses.sum(), list(part.parameters()), retain_graph=True)
        assert any(bool(gradient.abs().max() > 0) for gradient in found)
        assert all(bool(gradient.isfinite().all()) for gradient in found)


@every_paradigm
def test_predictions_are_probabilities_and_the_focus_sums_to_one(name):
    one = given()
    paradigm = tiny(name)
    torch.testing.assert_close(paradigm.predict(one).exp().sum(dim=-1), torch.ones(B, dtype=torch.float64))
    torch.testing.assert_close(paradigm.focus(one.scores).sum(dim=-1), torch.ones(B, dtype=torch.float64))


@every_paradigm
def test_no_loss_calls_the_classifier_more_often_than_it_says(name):
    paradigm, samples = tiny(name), 3
    one = given(estimator=Topk() if paradigm.estimated else None, samples=samples if paradigm.estimated else M)
    one.model.calls = 0
    paradigm.loss(one)
    assert 0 < one.model.calls <= B * paradigm.calls(M, samples)
    if not isinstance(paradigm, Sparsemax):
        assert one.model.calls == B * paradigm.calls(M, samples) or name == "entmax15"


@every_paradigm
def test_segments_that_are_padding_change_nothing(name):
    mask = torch.ones(B, M, dtype=torch.bool)
    mask[:, -2:] = False
    one, other = given(mask=mask), given(mask=mask)
    other.x[:, -2:] = 7.0
    torch.manual_seed(3)
    first = tiny(name).loss(one)
    torch.manual_seed(3)
    torch.testing.assert_close(tiny(name).loss(other), first)


@every_paradigm
def test_segments_that_examples_share_may_be_read_once(name):
    made, units = model(), torch.randn(6, D, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    members = torch.randint(6, (B, M), generator=torch.Generator().manual_seed(3))
    y, found, calls = torch.arange(B) % C, [], []
    for x, shared in ((units[members], None), (units, members)):
        one = Segments(made, x, y, estimator=Exact(), samples=M, members=shared)
        made.calls = 0
        torch.manual_seed(3)
        losses = tiny(name).loss(one)
        calls.append(made.calls)
        found.append((losses, tiny(name).predict(one), gradients(made, losses.mean())))
    for plain, once in zip(*found, strict=True):
        torch.testing.assert_close(once, plain)
    assert calls[0] == calls[1], "what is counted does not depend on how it is computed"


def test_soft_is_the_loss_of_the_weighted_mean():
    one = given()
    focus, _ = by_hand(one)
    blend = torch.stack([(row[:, None] * xs).sum(dim=0) for row, xs in zip(focus, one.x, strict=True)])
    expected = [-one.model.classifier.scores(x[None])[0].log_softmax(-1)[y] for x, y in zip(blend, one.y, strict=True)]
    torch.testing.assert_close(Soft().loss(one), torch.stack(expected))


def test_hard_is_the_expected_loss_and_lvml_the_loss_of_the_expectation():
    one = given()
    focus, p = by_hand(one)
    torch.testing.assert_close(Hard().loss(one), -(focus * p.log()).sum(dim=1))
    torch.testing.assert_close(Lvml().loss(one), -(focus * p).sum(dim=1).log())
    assert bool((Lvml().loss(one) < Hard().loss(one)).all()), "Jensen"


@pytest.mark.parametrize("tau", [0.3, 1.0, 2.5])
def test_the_renyi_family_is_what_its_formula_says(tau):
    one = given()
    focus, p = by_hand(one)
    torch.testing.assert_close(Renyi(tau=tau).loss(one), -(focus * p**tau).sum(dim=1).log() / tau)


def test_the_renyi_family_joins_hard_lvml_and_the_best_segment():
    one = given()
    _, p = by_hand(one)
    torch.testing.assert_close(Renyi(tau=0.0).loss(one), Hard().loss(one))
    torch.testing.assert_close(Renyi(tau=2e-3).loss(one), Hard().loss(one), rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(Renyi(tau=1.0).loss(one), Lvml().loss(one))
    torch.testing.assert_close(Renyi(tau=100.0).loss(one), -p.amax(dim=1).log(), rtol=0.05, atol=0.05)


def test_averaging_logits_is_not_the_marginal_likelihood():
    one = given()
    focus, _ = by_hand(one)
    logits = one.model.classifier.scores(one.x.flatten(0, 1)).view(B, M, C)
    expected = -(focus[..., None] * logits).sum(dim=1).log_softmax(-1).gather(-1, one.y[:, None])[:, 0]
    torch.testing.assert_close(LogitAverage().loss(one), expected)
    assert not torch.allclose(expected, Lvml().loss(one))


def test_the_gradient_of_expectation_maximisation_is_that_of_lvml():
    one = given()
    focus, p = by_hand(one)
    posterior = (focus * p / (focus * p).sum(dim=1, keepdim=True)).detach()   # the E step
    expected = -(posterior * (focus.log() + p.log())).sum(dim=1).mean()        # what the M step climbs
    torch.testing.assert_close(gradients(one.model, Lvml().loss(one).mean()), gradients(one.model, expected))


def test_the_variational_loss_is_a_bound_on_that_of_lvml():
    one = given()
    assert bool((Variational().loss(one) > Lvml().loss(one)).all())


def test_the_variational_loss_is_that_of_lvml_where_the_informed_focus_is_the_posterior(monkeypatch):
    one = given()
    focus, p = by_hand(one)
    monkeypatch.setattr(Segments, "informed_scores", (focus * p).log())
    torch.testing.assert_close(Variational().loss(one), Lvml().loss(one))


def test_two_open_gates_share_alike_however_far_apart_their_scores_are():
    shares = Gated().focus(torch.tensor([[30.0, 10.0, -30.0]]))
    torch.testing.assert_close(shares, torch.tensor([[0.5, 0.5, 0.0]]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("draws", [1, 2])
def test_reinforce_has_the_gradient_of_the_hard_loss_on_average(draws):
    assert same_on_average(Reinforce(draws=draws), hard_gradient())


def test_the_baseline_of_reinforce_makes_its_gradient_calmer():
    def plain(one):
        index = torch.multinomial(one.log_focus.detach().exp(), 1)
        reward, log_a = one.of_label(one.read(index)), one.log_focus.gather(-1, index)
        return -(reward + reward.detach() * (log_a - log_a.detach())).mean(dim=-1)

    made = model()
    spread = []
    for loss in (Reinforce().loss, plain):
        torch.manual_seed(0)
        drawn = [gradients(made.focus, loss(given(made)).mean()) for _ in range(100)]
        spread.append(float(torch.stack(drawn).std(dim=0).mean()))
    assert spread[0] < 0.8 * spread[1]


def test_the_mean_over_draws_of_one_segment_is_the_hard_loss():
    one = given()
    focus, p = by_hand(one)
    torch.manual_seed(0)
    drawn = torch.multinomial(focus.detach(), 20_000, replacement=True)
    losses = -p.detach().log().gather(1, drawn)
    error = losses.std(dim=1) / len(losses[0]) ** 0.5
    assert bool(((losses.mean(dim=1) - Hard().loss(one)).abs() < 5 * error).all())


def test_straight_through_reads_one_segment_as_it_is():
    one = given()
    torch.manual_seed(0)
    losses = GumbelStraightThrough().loss(one)
    _, p = by_hand(one)
    distance = (losses[:, None] + p.log()).abs().amin(dim=1)
    assert float(distance.detach().max()) < 1e-9


def test_a_sparse_focus_reads_its_support_only():
    one = given()
    one.scores = one.scores + torch.linspace(0, 9, M)   # the last segments lead by far
    one.model.calls = 0
    losses = Sparsemax().loss(one)
    support = Sparsemax().focus(one.scores) > 0
    assert one.model.calls == int(support.sum()) < B * M
    _, p = by_hand(one)
    expected = -(Sparsemax().focus(one.scores) * p).sum(dim=1).log()
    torch.testing.assert_close(losses, expected)


def test_annealing_falls_from_its_start_to_its_end():
    paradigm = Annealed(start=3.0, end=0.5, until=0.5)
    assert [paradigm.at(Moment(share)).tau for share in (0.0, 0.25, 0.5, 1.0)] == [3.0, 1.75, 0.5, 0.5]


def test_a_hybrid_is_its_first_stage_until_the_switch():
    paradigm = Hybrid(first=Lvml(), then=Hard())
    assert paradigm.at(Moment(0.9)) == Lvml()
    assert paradigm.at(Moment(0.1, stage=1)) == Hard()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [({"first": Annealed()}, "does not change itself"), ({"switch": "accuracy", "value": 3.0}, "1 at most"),
     ({"value": 0.5}, "needs no"), ({"first": Variational()}, "two networks")],
)  # fmt: skip
def test_a_hybrid_that_cannot_be_is_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        Hybrid(**arguments)


def test_the_push_of_the_background_is_least_where_nothing_is_decided():
    made = model()
    sure = Lvml().loss(given(made, background=1.0)) - Lvml().loss(given(made))
    with torch.no_grad():
        for one in made.classifier.parameters():
            one.zero_()
    unsure = Lvml().loss(given(made, background=1.0)) - Lvml().loss(given(made))
    torch.testing.assert_close(unsure, torch.full((B,), float(C), dtype=torch.float64).log())
    assert bool((sure > unsure).all())
