"""The loop: what it learns, what it leaves behind, and that nothing about it is left to chance."""

import math
import os
import signal
import threading

import pytest
import torch

import neural
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.tracking.tracker import Tracker
from neural.training.engine import Diverged, fit, steps_of
from tests.training.programs import begun, small, trace


def trained(folder, tell=lambda progress: None, **settings):
    task = small(folder, **settings)
    run = begun(task, folder)
    outcome = fit(task, run, tell=tell)
    return outcome, Run.open(run.path)


def test_a_run_is_finished_and_has_learned(tmp_path):
    outcome, run = trained(tmp_path, steps=80, validate_every=20)
    assert outcome.state == run.status.state == "finished"
    steps, loss = run.scalars("train/loss")
    assert list(steps) == list(range(1, 81))
    assert loss[-10:].mean() < 0.8 * loss[:10].mean()
    assert outcome.scores["valid/loss"] == min(run.scalars("valid/loss")[1])


def test_two_trainings_with_one_seed_are_the_same_to_the_last_bit(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    one, other = (trace(trained(tmp_path / name, gradient_accumulation_steps=2, ema=0.9)[1].path) for name in "ab")
    assert one == other


def test_another_seed_is_another_training(tmp_path):
    one, other = (trained(tmp_path, seed=seed)[1].scalars("train/loss")[1].tolist() for seed in (0, 1))
    assert one != other


def test_looking_at_the_attention_changes_nothing(tmp_path):
    with_looks, without = (
        trained(tmp_path, tracking={"track_every": every})[1] for every in (2, 0)
    )
    assert with_looks.rows() == without.rows()
    assert with_looks.measures()
    assert not without.measures()


def test_a_look_leaves_mode_and_random_numbers_as_they_were(tmp_path):
    task = small(tmp_path)
    model = task.build().train()
    before = torch.get_rng_state()
    Tracker(task, None, task.experiment.tracking).look(model, 0)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in model.modules())


def test_looks_are_without_dropout(tmp_path):
    """Two looks at the same weights say the same."""
    task = small(tmp_path)
    run, model = begun(task, tmp_path), task.build().train()
    tracker = Tracker(task, run, task.experiment.tracking)
    for step in (0, 4):
        torch.manual_seed(step)
        tracker.look(model, step)
    run.finish("finished")
    first, second = Run.open(run.path).measure("entropy")[1]
    assert first.tolist() == second.tolist()


def test_looks_are_arrays_of_layers_and_heads(tmp_path):
    _, run = trained(tmp_path, steps=8)
    steps, entropy = run.measure("entropy")
    assert list(steps) == [0, 4, 8]
    assert entropy.shape == (3, 2, 3)
    assert len(run.described("attention/layers")) == 2


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_step_learns_from_all_its_batches(tmp_path, accumulate):
    """By hand: the first step of plain SGD moves the weights along the mean gradient of its batches."""
    task = small(tmp_path, optimizer="SGD(learning_rate=0.1)", steps=1, gradient_accumulation_steps=accumulate)
    run = begun(task, tmp_path)
    torch.manual_seed(0)
    model = task.build().eval()   # without dropout; below too
    before = {name: one.detach().clone() for name, one in model.named_parameters()}
    sum(task.loss(model, task.batch(turn))[0] for turn in range(accumulate)).backward()
    wanted = {name: before[name] - 0.1 * one.grad / accumulate for name, one in model.named_parameters()}
    for module in (built := task.build()).modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0
    built.load_state_dict(before)
    task.build = lambda: built
    fit(task, run)
    for name, one in built.named_parameters():
        torch.testing.assert_close(one.detach(), wanted[name])


@pytest.mark.parametrize(
    "optimizer", ["Adam()", "SGD(momentum=0.9)", "Muon(learning_rate=0.02)", "AdamW(learning_rate=CosineDecay(0.1, 9))"]
)
def test_every_optimizer_trains(tmp_path, optimizer):
    _, run = trained(tmp_path, optimizer=optimizer, steps=15)
    assert all(map(math.isfinite, run.scalars("train/loss")[1]))


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        ({"scheduler": "constant"}, [1, 1, 1, 1, 1]),
        ({"scheduler": "linear"}, [1, 0.8, 0.6, 0.4, 0.2]),
        ({"scheduler": "cosine"}, [0.5 * (1 + math.cos(math.pi * step / 5)) for step in range(5)]),
        ({"warmup_steps": 2}, [0, 0.5, 1, 1, 1]),
        ({"scheduler": "linear", "warmup_steps": 2}, [0, 0.5, 1, 2 / 3, 1 / 3]),
        ({"scheduler": "linear", "min_learning_rate": 0.5, "learning_rate": 1.0}, [100, 90, 80, 70, 60]),
    ],
    ids=lambda one: "-".join(map(str, one.values())) if isinstance(one, dict) else "",
)
def test_the_rate_follows_its_schedule(tmp_path, settings, rates):
    _, run = trained(tmp_path, steps=5, **settings)
    assert run.scalars("train/rate")[1] == pytest.approx([0.01 * rate for rate in rates])


def test_both_halves_of_muon_take_the_same_share(tmp_path):
    task = small(tmp_path, optimizer="Muon(learning_rate=0.02, other_learning_rate=0.005)", scheduler="linear", steps=4)
    from neural.training.state import State

    steps = State.first(task.build(), task.experiment.training, 4).optimizing
    steps.take(2)
    rates = [group["lr"] for one in steps.optimizers for group in one.param_groups]
    assert rates == [0.01, *[0.0025] * (len(rates) - 1)]


def test_a_plateau_halves_the_rate(tmp_path):
    _, run = trained(
        tmp_path, steps=12, validate_every=1, scheduler="plateau", plateau_patience=2, learning_rate=1e-12
    )
    rates = run.scalars("train/rate")[1]
    assert rates[-1] < rates[0]
    assert set(rates / rates[0]) <= {2.0**-power for power in range(7)}


def test_patience_ends_a_training_that_gets_no_better(tmp_path):
    outcome, _ = trained(tmp_path, steps=100, validate_every=2, patience=3, learning_rate=0.5)
    assert outcome.state == "finished"
    assert outcome.step < 100
    assert "no better for 3 validations" in outcome.message


def test_gradients_are_cut_to_the_norm(tmp_path):
    """Plain SGD at rate 1 moves the weights by the gradient: at most by `clip_norm`."""
    task = small(tmp_path, optimizer="SGD(learning_rate=1.0)", steps=1, clip_norm=0.01)
    torch.manual_seed(0)
    before = task.build()
    run = begun(task, tmp_path)
    fit(task, run)
    after = Run.open(run.path).restore().tensors
    steps = [(after[f"model.{name}"] - one.detach()).flatten() for name, one in before.named_parameters()]
    assert float(torch.cat(steps).norm()) == pytest.approx(0.01, rel=1e-3)
    assert Run.open(run.path).scalars("train/grad_norm")[1][0] > 0.01


def test_recomputing_activations_gives_the_same_losses(tmp_path):
    one, other = (trained(tmp_path, gradient_checkpointing=flag)[1].rows() for flag in (False, True))
    assert [row[:2] for row in one] == [row[:2] for row in other]
    assert [row[2] for row in one] == pytest.approx([row[2] for row in other], rel=1e-5)


def test_sixteen_bits_train_too(tmp_path):
    _, run = trained(tmp_path, mixed_precision=True, steps=40)
    loss = run.scalars("train/loss")[1]
    assert loss[-8:].mean() < loss[:8].mean()


def test_an_average_of_the_weights_is_what_is_validated(tmp_path):
    task = small(tmp_path, ema=0.99, steps=6, validate_every=6)
    run = begun(task, tmp_path)
    fit(task, run)
    saved, model = Run.open(run.path), task.build()
    tensors = saved.restore().tensors
    parameters = dict(model.named_parameters())
    model.load_state_dict({
        name: tensors[f"average.{name}" if name in parameters else f"model.{name}"] for name in model.state_dict()
    })  # fmt: skip
    with torch.no_grad():
        assert task.evaluate(model.eval())["valid/loss"] == saved.scalars("valid/loss")[1][-1]
    assert any(not torch.equal(tensors[f"average.{name}"], tensors[f"model.{name}"]) for name in parameters)


def test_a_loss_that_is_no_number_stops_the_run_and_says_where(tmp_path):
    task = small(tmp_path, optimizer="SGD(learning_rate=1e30)", checkpoint_every=1, steps=50)
    run = begun(task, tmp_path)
    with pytest.raises(Diverged, match=r"at step \d+ \(batch \d+\); the last good checkpoint is of step \d+"):
        fit(task, run)
    run = Run.open(run.path)
    assert run.status.state == "failed"
    assert any(kind == "diverged" for _, kind, _, _ in run.events())
    assert all(one.isfinite().all() for one in run.restore().tensors.values() if one.is_floating_point())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_step_and_saves(tmp_path, number):
    def tell(progress):
        if progress.step == 4:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    outcome, run = trained(tmp_path, tell=tell, steps=50)
    assert (outcome.state, run.status.state) == ("stopped", "stopped")
    assert outcome.step == run.restore().step == 5
    assert number.name in outcome.message
    assert signal.getsignal(number) == before


def test_a_second_interrupt_stops_at_once(tmp_path):
    def tell(progress):
        if progress.step == 6:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    task = small(tmp_path, steps=50)
    run = begun(task, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fit(task, run, tell=tell)
    assert Run.open(run.path).status.state == "stopped"


def test_training_works_outside_the_main_thread(tmp_path):
    thread = threading.Thread(target=lambda: trained(tmp_path, steps=3))
    thread.start()
    thread.join()
    (path,) = (tmp_path / "runs").iterdir()
    assert Run.open(path).status.state == "finished"


def test_a_device_that_is_not_there_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    task = small(tmp_path, device="cuda")
    run = begun(task, tmp_path)
    with pytest.raises(TaskError, match="torch finds no GPU here"):
        fit(task, run)
    assert Run.open(run.path).status.state == "failed"


def test_epochs_become_steps(tmp_path):
    assert steps_of(small(tmp_path, steps=None, epochs=2, batch_size=5)) == 2 * (55 // 5)
    assert steps_of(small(tmp_path, steps=None, epochs=3, batch_size=5, gradient_accumulation_steps=2)) == 17


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ("AdamV", "did you mean `Adam`"),
        ("AdamW(learning_rat=3)", "learning_rate"),
        ("3", "optimizer"),
        ("AdamW(learning_rate=-1)", "learning_rate"),
    ],
)
def test_an_optimizer_that_makes_no_sense_is_refused(tmp_path, optimizer, message):
    from neural.tasks.experiment import Training
    from neural.training.rates import optimizer_of

    with pytest.raises(TaskError, match=message):
        optimizer_of(Training(optimizer=optimizer))


def test_the_last_look_of_a_run_keeps_its_maps_wherever_the_run_ends(tmp_path):
    _, run = trained(tmp_path, steps=7, tracking={"track_every": 3, "maps_every": 5})
    assert list(run.map_steps()) == [0, 6]


def test_a_setting_that_changes_nothing_is_told(tmp_path):
    task, told = small(tmp_path, steps=1, gradient_checkpointing=True), []
    task.build = lambda: neural.parse(NO_BLOCKS).build()
    fit(task, None, remark=told.append)
    assert told == ["`gradient_checkpointing` saves nothing here: there are no transformer blocks"]


NO_BLOCKS = """network NoBlocks {
  input: (5, 6)
  layers:
    Flatten()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""
