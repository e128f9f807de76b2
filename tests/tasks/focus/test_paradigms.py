"""Paradigms: losses and gradients against hand-written ones, and classifier calls."""

import pytest
import torch

from neural.tasks.focus.estimators.exact import Exact
from neural.tasks.focus.estimators.topk import Topk
from neural.tasks.focus.paradigm import ParadigmProgress
from neural.tasks.focus.paradigms import registry
from neural.tasks.focus.paradigms.annealed import Annealed
from neural.tasks.focus.paradigms.gated import Gated
from neural.tasks.focus.paradigms.gumbel_straight_through import GumbelStraightThrough
from neural.tasks.focus.paradigms.hard import Hard
from neural.tasks.focus.paradigms.hybrid import Hybrid
from neural.tasks.focus.paradigms.logit_average import LogitAverage
from neural.tasks.focus.paradigms.lvml import Lvml
from neural.tasks.focus.paradigms.reinforce import Reinforce
from neural.tasks.focus.paradigms.renyi import Renyi
from neural.tasks.focus.paradigms.soft import Soft
from neural.tasks.focus.paradigms.sparsemax import Sparsemax
from neural.tasks.focus.paradigms.variational import Variational
from neural.tasks.focus.segment_batch import SegmentBatch
from tests.tasks.focus.segment_batches import (
    B,
    C,
    D,
    M,
    create_batch,
    create_model,
    focus_and_probs_by_hand,
    gradients,
    hard_gradient,
    has_mean_gradient,
)

every_paradigm = pytest.mark.parametrize("name", registry.names())


def example_paradigm(name):
    return registry.get(name).example().at_progress(ParadigmProgress(0.0))


@every_paradigm
def test_a_paradigm_has_a_summary_and_a_repr_that_creates_it(name):
    entry = registry.get(name)
    assert entry.summary().endswith(".")
    assert repr(entry.example()).startswith(name)


@every_paradigm
def test_the_loss_is_one_number_per_example_with_a_gradient_for_both_networks(name):
    batch = create_batch()
    losses = example_paradigm(name).loss(batch)
    assert losses.shape == (B,)
    for network in (batch.model.focus, batch.model.classifier):
        results = torch.autograd.grad(losses.sum(), list(network.parameters()), retain_graph=True)
        assert any(bool(gradient.abs().max() > 0) for gradient in results)
        assert all(bool(gradient.isfinite().all()) for gradient in results)


@every_paradigm
def test_predictions_are_probabilities_and_the_focus_sums_to_one(name):
    batch = create_batch()
    paradigm = example_paradigm(name)
    torch.testing.assert_close(
        paradigm.predict(batch).exp().sum(dim=-1), torch.ones(B, dtype=torch.float64)
    )
    torch.testing.assert_close(
        paradigm.focus_weights(batch.scores).sum(dim=-1), torch.ones(B, dtype=torch.float64)
    )


@every_paradigm
def test_classifier_calls_never_exceed_the_declared_maximum(name):
    paradigm, samples = example_paradigm(name), 3
    batch = create_batch(
        estimator=Topk() if paradigm.uses_estimator else None,
        samples=samples if paradigm.uses_estimator else M,
    )
    batch.model.classifier_calls = 0
    paradigm.loss(batch)
    assert 0 < batch.model.classifier_calls <= B * paradigm.max_classifier_calls(M, samples)
    if not isinstance(paradigm, Sparsemax):
        assert (
            batch.model.classifier_calls == B * paradigm.max_classifier_calls(M, samples)
            or name == "entmax15"
        )


@every_paradigm
def test_padded_segments_do_not_change_the_loss(name):
    mask = torch.ones(B, M, dtype=torch.bool)
    mask[:, -2:] = False
    batch, padded_batch = create_batch(mask=mask), create_batch(mask=mask)
    padded_batch.x[:, -2:] = 7.0
    torch.manual_seed(3)
    first = example_paradigm(name).loss(batch)
    torch.manual_seed(3)
    torch.testing.assert_close(example_paradigm(name).loss(padded_batch), first)


@every_paradigm
def test_shared_segments_give_the_same_loss_and_gradients(name):
    focus_model, units = (
        create_model(),
        torch.randn(6, D, generator=torch.Generator().manual_seed(2), dtype=torch.float64),
    )
    members = torch.randint(6, (B, M), generator=torch.Generator().manual_seed(3))
    y, results, calls = torch.arange(B) % C, [], []
    for x, shared_members in ((units[members], None), (units, members)):
        batch = SegmentBatch(
            focus_model, x, y, estimator=Exact(), samples=M, members=shared_members
        )
        focus_model.classifier_calls = 0
        torch.manual_seed(3)
        losses = example_paradigm(name).loss(batch)
        calls.append(focus_model.classifier_calls)
        results.append(
            (losses, example_paradigm(name).predict(batch), gradients(focus_model, losses.mean()))
        )
    for plain_result, shared_result in zip(*results, strict=True):
        torch.testing.assert_close(shared_result, plain_result)
    assert calls[0] == calls[1], "calls are counted per segment, not per distinct unit"


def test_soft_is_the_loss_of_the_weighted_mean():
    batch = create_batch()
    focus, _ = focus_and_probs_by_hand(batch)
    blend = torch.stack(
        [(row[:, None] * xs).sum(dim=0) for row, xs in zip(focus, batch.x, strict=True)]
    )
    expected = [
        -batch.model.classifier.logits(x[None])[0].log_softmax(-1)[y]
        for x, y in zip(blend, batch.y, strict=True)
    ]
    torch.testing.assert_close(Soft().loss(batch), torch.stack(expected))


def test_hard_is_the_expected_loss_and_lvml_the_loss_of_the_expectation():
    batch = create_batch()
    focus, p = focus_and_probs_by_hand(batch)
    torch.testing.assert_close(Hard().loss(batch), -(focus * p.log()).sum(dim=1))
    torch.testing.assert_close(Lvml().loss(batch), -(focus * p).sum(dim=1).log())
    assert bool((Lvml().loss(batch) < Hard().loss(batch)).all()), "Jensen"


@pytest.mark.parametrize("tau", [0.3, 1.0, 2.5])
def test_the_renyi_loss_equals_its_formula(tau):
    batch = create_batch()
    focus, p = focus_and_probs_by_hand(batch)
    torch.testing.assert_close(Renyi(tau=tau).loss(batch), -(focus * p**tau).sum(dim=1).log() / tau)


def test_the_renyi_loss_has_hard_lvml_and_the_best_segment_as_limits():
    batch = create_batch()
    _, p = focus_and_probs_by_hand(batch)
    torch.testing.assert_close(Renyi(tau=0.0).loss(batch), Hard().loss(batch))
    torch.testing.assert_close(
        Renyi(tau=2e-3).loss(batch), Hard().loss(batch), rtol=2e-3, atol=2e-3
    )
    torch.testing.assert_close(Renyi(tau=1.0).loss(batch), Lvml().loss(batch))
    torch.testing.assert_close(
        Renyi(tau=100.0).loss(batch), -p.amax(dim=1).log(), rtol=0.05, atol=0.05
    )


def test_averaging_logits_is_not_the_marginal_likelihood():
    batch = create_batch()
    focus, _ = focus_and_probs_by_hand(batch)
    logits = batch.model.classifier.logits(batch.x.flatten(0, 1)).view(B, M, C)
    expected = (
        -(focus[..., None] * logits).sum(dim=1).log_softmax(-1).gather(-1, batch.y[:, None])[:, 0]
    )
    torch.testing.assert_close(LogitAverage().loss(batch), expected)
    assert not torch.allclose(expected, Lvml().loss(batch))


def test_the_gradient_of_expectation_maximisation_is_that_of_lvml():
    batch = create_batch()
    focus, p = focus_and_probs_by_hand(batch)
    posterior = (focus * p / (focus * p).sum(dim=1, keepdim=True)).detach()  # the E step
    expected = -(posterior * (focus.log() + p.log())).sum(dim=1).mean()  # what the M step climbs
    torch.testing.assert_close(
        gradients(batch.model, Lvml().loss(batch).mean()), gradients(batch.model, expected)
    )


def test_the_variational_loss_is_a_bound_on_that_of_lvml():
    batch = create_batch()
    assert bool((Variational().loss(batch) > Lvml().loss(batch)).all())


def test_the_variational_loss_equals_lvml_at_the_true_posterior(
    monkeypatch,
):
    batch = create_batch()
    focus, p = focus_and_probs_by_hand(batch)
    monkeypatch.setattr(SegmentBatch, "inference_scores", (focus * p).log())
    torch.testing.assert_close(Variational().loss(batch), Lvml().loss(batch))


def test_two_open_gates_have_equal_weights():
    shares = Gated().focus_weights(torch.tensor([[30.0, 10.0, -30.0]]))
    torch.testing.assert_close(shares, torch.tensor([[0.5, 0.5, 0.0]]), rtol=0, atol=1e-4)


@pytest.mark.parametrize("draws", [1, 2])
def test_reinforce_has_the_gradient_of_the_hard_loss_on_average(draws):
    assert has_mean_gradient(Reinforce(draws=draws), hard_gradient())


def test_the_baseline_of_reinforce_reduces_the_variance():
    def plain_result(batch):
        index = torch.multinomial(batch.log_focus.detach().exp(), 1)
        reward, log_a = (
            batch.gather_label(batch.log_probs(index)),
            batch.log_focus.gather(-1, index),
        )
        return -(reward + reward.detach() * (log_a - log_a.detach())).mean(dim=-1)

    focus_model = create_model()
    deviations = []
    for loss in (Reinforce().loss, plain_result):
        torch.manual_seed(0)
        samples = [
            gradients(focus_model.focus, loss(create_batch(focus_model)).mean()) for _ in range(100)
        ]
        deviations.append(float(torch.stack(samples).std(dim=0).mean()))
    assert deviations[0] < 0.8 * deviations[1]


def test_the_mean_loss_of_sampled_segments_is_the_hard_loss():
    batch = create_batch()
    focus, p = focus_and_probs_by_hand(batch)
    torch.manual_seed(0)
    samples = torch.multinomial(focus.detach(), 20_000, replacement=True)
    losses = -p.detach().log().gather(1, samples)
    error = losses.std(dim=1) / len(losses[0]) ** 0.5
    assert bool(((losses.mean(dim=1) - Hard().loss(batch)).abs() < 5 * error).all())


def test_straight_through_classifies_one_segment():
    batch = create_batch()
    torch.manual_seed(0)
    losses = GumbelStraightThrough().loss(batch)
    _, p = focus_and_probs_by_hand(batch)
    distance = (losses[:, None] + p.log()).abs().amin(dim=1)
    assert float(distance.detach().max()) < 1e-9


def test_a_sparse_focus_classifies_only_its_support():
    batch = create_batch()
    batch.scores = batch.scores + torch.linspace(0, 9, M)  # the last segments lead by far
    batch.model.classifier_calls = 0
    losses = Sparsemax().loss(batch)
    support = Sparsemax().focus_weights(batch.scores) > 0
    assert batch.model.classifier_calls == int(support.sum()) < B * M
    _, p = focus_and_probs_by_hand(batch)
    expected = -(Sparsemax().focus_weights(batch.scores) * p).sum(dim=1).log()
    torch.testing.assert_close(losses, expected)


def test_annealing_falls_from_its_start_to_its_end():
    paradigm = Annealed(start=3.0, end=0.5, until=0.5)
    assert [
        paradigm.at_progress(ParadigmProgress(share)).tau for share in (0.0, 0.25, 0.5, 1.0)
    ] == [
        3.0,
        1.75,
        0.5,
        0.5,
    ]


def test_a_hybrid_is_its_first_stage_until_the_switch():
    paradigm = Hybrid(first=Lvml(), then=Hard())
    assert paradigm.at_progress(ParadigmProgress(0.9)) == Lvml()
    assert paradigm.at_progress(ParadigmProgress(0.1, stage=1)) == Hard()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"first": Annealed()}, "without a schedule"),
        ({"switch": "accuracy", "value": 3.0}, "at most 1"),
        ({"value": 0.5}, "takes no"),
        ({"first": Variational()}, "without an inference network"),
    ],
)
def test_an_invalid_hybrid_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Hybrid(**arguments)


def test_the_background_loss_is_smallest_for_uniform_predictions():
    focus_model = create_model()
    sure = Lvml().loss(create_batch(focus_model, background=1.0)) - Lvml().loss(
        create_batch(focus_model)
    )
    with torch.no_grad():
        for batch in focus_model.classifier.parameters():
            batch.zero_()
    unsure = Lvml().loss(create_batch(focus_model, background=1.0)) - Lvml().loss(
        create_batch(focus_model)
    )
    torch.testing.assert_close(unsure, torch.full((B,), float(C), dtype=torch.float64).log())
    assert bool((sure > unsure).all())
