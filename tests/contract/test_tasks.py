"""Contract of the tasks."""

import sys

import pytest
import torch

from neural.core.names import normalize_name
from neural.optim.catalogue import CATALOGUE
from neural.tasks import registry
from neural.tasks.task import split_scores
from neural.training.loss_module import LossModule, compute_shares

every_task = pytest.mark.parametrize("name", registry.names())


@pytest.fixture
def make_task(tmp_path):
    """Factory of example tasks by name, with any seed."""

    def make(name, seed=None):
        task = registry.get(name).example(tmp_path, CATALOGUE)
        if seed is None:
            return task
        training = task.experiment.training.model_copy(update={"seed": seed})
        return type(task)(
            task.experiment.model_copy(update={"training": training}), tmp_path, CATALOGUE
        )

    return make


def are_equal(first, second):
    return first.keys() == second.keys() and all(
        torch.equal(torch.as_tensor(first[name]), torch.as_tensor(second[name])) for name in first
    )


def build_model(task):
    torch.manual_seed(0)
    return task.build()


def train(task, steps=2):
    """The model after some SGD steps, and the losses."""
    model, losses = build_model(task), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        loss, extra = task.loss(model, task.batch(step))
        assert loss.shape == ()
        assert all(value.shape == () and not value.requires_grad for value in extra.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@every_task
def test_a_task_has_a_file_of_its_own_name_and_docstrings(name):
    task = registry.get(name)
    assert normalize_name(name) in (normalize_name(part) for part in task.__module__.split("."))
    assert task.summary().endswith(".")
    assert sys.modules[task.__module__].__doc__
    assert all(field.description for field in task.Settings.model_fields.values())


@every_task
def test_two_steps_give_every_parameter_a_finite_gradient(name, make_task):
    task = make_task(name)
    before = build_model(task).state_dict()
    model, losses = train(task)
    assert torch.isfinite(torch.tensor(losses)).all()
    for param_name, param in model.named_parameters():
        assert param.grad is not None, param_name
        assert param.grad.isfinite().all(), param_name
    assert not are_equal(model.state_dict(), before)


@every_task
def test_the_same_seed_gives_the_same_training(name, make_task):
    first, second = train(make_task(name)), train(make_task(name))
    assert first[1] == second[1]
    assert are_equal(first[0].state_dict(), second[0].state_dict())


@every_task
def test_a_batch_depends_only_on_its_index(name, make_task):
    forward, backward = make_task(name), make_task(name)
    indices = [*range(2 * forward.batches_per_epoch + 3), 10_007]
    expected = {index: backward.batch(index) for index in reversed(indices)}
    for index in indices:
        assert are_equal(forward.batch(index), expected[index])
    assert are_equal(forward.batch(0), expected[0])


@every_task
def test_the_loss_of_a_batch_does_not_depend_on_how_it_is_split(name, make_task):
    """One row and the others, weighted as the engine weights the batches of a step."""
    task = make_task(name)
    model, batch = build_model(task).eval(), task.batch(0)
    rows = len(next(iter(batch.values())))
    slices = (slice(0, 1), slice(1, rows))
    micro_batches = [
        {key: value[rows_slice] for key, value in batch.items()} for rows_slice in slices
    ]
    weights = [task.loss_weights(micro_batch) for micro_batch in micro_batches]
    totals = {key: sum(weight[key] for weight in weights) for key in weights[0]}
    assert totals == pytest.approx(task.loss_weights(batch))
    loss_module = LossModule(task, model)
    batch_loss, curves = loss_module(batch, {})
    shares = [compute_shares(weight, totals, 1) for weight in weights]
    results = [
        loss_module(micro_batch, share)
        for micro_batch, share in zip(micro_batches, shares, strict=True)
    ]
    torch.testing.assert_close(sum(loss for loss, _ in results), batch_loss)
    for curve, value in curves.items():
        torch.testing.assert_close(sum(extra[curve] for _, extra in results), value)
    torch.testing.assert_close(task.loss(model, batch)[0], batch_loss)


@every_task
def test_batches_do_not_use_the_global_random_state(name, make_task):
    task = make_task(name)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    task.batch(0), task.batch(task.batches_per_epoch), task.probe_batch()
    assert torch.equal(torch.get_rng_state(), before)


@every_task
def test_batches_differ_between_indices_and_seeds(name, make_task):
    first, second = make_task(name, seed=1), make_task(name, seed=2)
    assert not are_equal(first.batch(0), first.batch(1))
    assert not are_equal(first.batch(0), first.batch(first.batches_per_epoch))
    assert not all(are_equal(first.batch(index), second.batch(index)) for index in range(3))


@every_task
def test_evaluation_examples_do_not_depend_on_the_seed(name, make_task):
    first, second = make_task(name, seed=1), make_task(name, seed=2)
    assert are_equal(first.probe_batch(), second.probe_batch())
    model = build_model(first).eval()
    with torch.no_grad():
        scores, again = (split_scores(task.evaluate(model)) for task in (first, second))
    assert scores[0] == again[0]
    assert are_equal(scores[1], again[1])


@every_task
def test_validation_is_deterministic_and_has_the_watched_score(name, make_task):
    task = make_task(name)
    model = build_model(task).eval()
    with torch.no_grad():
        first, arrays = split_scores(task.evaluate(model))
        task.batch(5)
        second, again = split_scores(task.evaluate(model))
    assert first == second
    assert are_equal(arrays, again)
    assert task.monitor in first
    assert all(
        score_name.startswith("valid/") and isinstance(value, float)
        for score_name, value in first.items()
    )


@every_task
def test_the_probe_is_fixed_and_can_be_captured(name, make_task):
    task = make_task(name)
    probe = task.probe_batch()
    task.batch(7)
    assert are_equal(probe, task.probe_batch())
    with torch.no_grad():
        output = task.forward(build_model(task).eval(), probe)
    assert len(output) == len(next(iter(probe.values())))
    tokens, labels = task.token_ids(probe), task.position_labels(probe)
    assert tokens is None or tokens.ndim == 2
    assert labels is None or len(labels) == len(output)


@every_task
def test_the_losses_of_held_out_examples_do_not_depend_on_each_other(name, make_task):
    task = make_task(name)
    batch = task.held_out_batch(3)
    count = len(next(iter(batch.values())))
    assert 2 <= count <= 3
    model = build_model(task).eval()
    with torch.no_grad():
        losses = task.example_losses(model, batch)
        alone = [
            task.example_losses(model, {key: value[[row]] for key, value in batch.items()})
            for row in range(count)
        ]
    assert len(losses) == count and losses.ndim in (1, 2)
    torch.testing.assert_close(torch.cat(alone), losses, equal_nan=True, rtol=1e-4, atol=1e-5)
    has_target = ~losses.isnan()
    assert has_target.reshape(count, -1).any(dim=1).all() and losses[has_target].isfinite().all()
    classes = task.target_classes(batch)
    if classes is not None:
        assert torch.equal(classes >= 0, has_target)


@every_task
def test_saved_settings_create_the_same_task(name, make_task, tmp_path_factory):
    task = make_task(name)
    again = type(task).Settings.model_validate_json(task.experiment.model_dump_json())
    assert again == task.experiment
    elsewhere = type(task)(again, tmp_path_factory.mktemp("elsewhere"), CATALOGUE)
    assert elsewhere.experiment == task.experiment
    assert are_equal(elsewhere.batch(4), task.batch(4))
    assert are_equal(elsewhere.probe_batch(), task.probe_batch())
    assert elsewhere.program == task.program
