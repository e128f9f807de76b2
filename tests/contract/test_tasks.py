"""What every task promises."""

import sys

import pytest
import torch

from neural.core.names import key
from neural.standard import CATALOGUE
from neural.tasks import registry
from neural.tasks.task import split_scores
from neural.training.objective import Objective, shares_of

every_task = pytest.mark.parametrize("name", registry.names())


@pytest.fixture
def tiny(tmp_path):
    """Tiny instances by name, with any seed."""

    def make(name, seed=None):
        task = registry.get(name).tiny(tmp_path, CATALOGUE)
        if seed is None:
            return task
        training = task.experiment.training.model_copy(update={"seed": seed})
        return type(task)(task.experiment.model_copy(update={"training": training}), tmp_path, CATALOGUE)

    return make


def same(one, other):
    return one.keys() == other.keys() and all(
        torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name])) for name in one
    )


def model_of(task):
    torch.manual_seed(0)
    return task.build()


def trained(task, steps=2):
    """The model after some steps by hand, and the losses."""
    model, losses = model_of(task), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        loss, more = task.loss(model, task.batch(step))
        assert loss.shape == ()
        assert all(value.shape == () and not value.requires_grad for value in more.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return model, losses


@every_task
def test_a_task_is_a_file_of_its_own_name_and_says_what_it_is(name):
    task = registry.get(name)
    assert key(name) in (key(part) for part in task.__module__.split("."))
    assert task.summary().endswith(".")
    assert sys.modules[task.__module__].__doc__
    assert all(field.description for field in task.Settings.model_fields.values())


@every_task
def test_two_steps_by_hand_reach_every_part_of_the_model_and_stay_finite(name, tiny):
    task = tiny(name)
    before = model_of(task).state_dict()
    model, losses = trained(task)
    assert torch.isfinite(torch.tensor(losses)).all()
    for part, value in model.named_parameters():
        assert value.grad is not None, part
        assert value.grad.isfinite().all(), part
    assert not same(model.state_dict(), before)


@every_task
def test_the_same_seed_learns_the_same(name, tiny):
    first, second = trained(tiny(name)), trained(tiny(name))
    assert first[1] == second[1]
    assert same(first[0].state_dict(), second[0].state_dict())


@every_task
def test_a_batch_is_a_function_of_its_number_alone(name, tiny):
    forward, backward = tiny(name), tiny(name)
    numbers = [*range(2 * forward.epoch + 3), 10_007]
    wanted = {number: backward.batch(number) for number in reversed(numbers)}
    for number in numbers:
        assert same(forward.batch(number), wanted[number])
    assert same(forward.batch(0), wanted[0])


@every_task
def test_the_loss_of_a_batch_does_not_depend_on_how_it_is_cut(name, tiny):
    """One row and the rest, weighed as the engine weighs the batches of a step."""
    task = tiny(name)
    model, batch = model_of(task).eval(), task.batch(0)
    rows = len(next(iter(batch.values())))
    cuts = (slice(0, 1), slice(1, rows))
    parts = [{key: value[cut] for key, value in batch.items()} for cut in cuts]
    weights = [task.loss_weights(part) for part in parts]
    totals = {key: sum(weight[key] for weight in weights) for key in weights[0]}
    assert totals == pytest.approx(task.loss_weights(batch))
    objective = Objective(task, model)
    whole, curves = objective(batch, {})
    shares = [shares_of(weight, totals, 1) for weight in weights]
    results = [objective(part, share) for part, share in zip(parts, shares, strict=True)]
    torch.testing.assert_close(sum(loss for loss, _ in results), whole)
    for curve, value in curves.items():
        torch.testing.assert_close(sum(more[curve] for _, more in results), value)
    torch.testing.assert_close(task.loss(model, batch)[0], whole)


@every_task
def test_drawing_batches_leaves_the_random_numbers_of_training_alone(name, tiny):
    task = tiny(name)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    task.batch(0), task.batch(task.epoch), task.probe()
    assert torch.equal(torch.get_rng_state(), before)


@every_task
def test_batches_differ_and_another_seed_has_other_ones(name, tiny):
    one, other = tiny(name, seed=1), tiny(name, seed=2)
    assert not same(one.batch(0), one.batch(1))
    assert not same(one.batch(0), one.batch(one.epoch))
    assert not all(same(one.batch(number), other.batch(number)) for number in range(3))


@every_task
def test_another_seed_is_judged_by_the_same_examples(name, tiny):
    first, second = tiny(name, seed=1), tiny(name, seed=2)
    assert same(first.probe(), second.probe())
    model = model_of(first).eval()
    with torch.no_grad():
        scores, again = (split_scores(task.evaluate(model)) for task in (first, second))
    assert scores[0] == again[0]
    assert same(scores[1], again[1])


@every_task
def test_validation_is_the_same_every_time_and_has_the_score_that_is_watched(name, tiny):
    task = tiny(name)
    model = model_of(task).eval()
    with torch.no_grad():
        first, arrays = split_scores(task.evaluate(model))
        task.batch(5)
        second, again = split_scores(task.evaluate(model))
    assert first == second
    assert same(arrays, again)
    assert task.watched in first
    assert all(one.startswith("valid/") and isinstance(value, float) for one, value in first.items())


@every_task
def test_the_probe_is_fixed_and_can_be_looked_at(name, tiny):
    task = tiny(name)
    probe = task.probe()
    task.batch(7)
    assert same(probe, task.probe())
    with torch.no_grad():
        seen = task.look(model_of(task).eval(), probe)
    assert len(seen) == len(next(iter(probe.values())))
    tokens, labels = task.tokens(probe), task.labels(probe)
    assert tokens is None or tokens.ndim == 2
    assert labels is None or len(labels) == len(seen)


@every_task
def test_settings_survive_being_written_down_and_make_the_same_task(name, tiny, tmp_path_factory):
    task = tiny(name)
    again = type(task).Settings.model_validate_json(task.experiment.model_dump_json())
    assert again == task.experiment
    elsewhere = type(task)(again, tmp_path_factory.mktemp("elsewhere"), CATALOGUE)
    assert elsewhere.experiment == task.experiment
    assert same(elsewhere.batch(4), task.batch(4))
    assert same(elsewhere.probe(), task.probe())
    assert elsewhere.program == task.program
