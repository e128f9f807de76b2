"""The training loop: learning, schedules, metrics, checkpoints, signals, reproducibility."""

import math
import os
import signal
import threading

import pytest
import torch

import neural
from neural.capture.tracker import AttentionTracker
from neural.core.errors import TaskError
from neural.core.platform_support import STOP_SIGNALS
from neural.optim.optimizers.sgd import SGD
from neural.runs.run import Run
from neural.training.engine import DivergenceError, count_steps, fit
from neural.training.load_task import restore_task
from neural.training.state import TrainingState
from tests.training.programs import create_small_run, create_small_task, read_run_contents


def train(folder, on_step=lambda progress: None, **settings):
    task = create_small_task(folder, **settings)
    run = create_small_run(task, folder)
    result = fit(task, run, on_step=on_step)
    return result, Run.open(run.path)


def test_a_run_is_finished_and_has_learned(tmp_path):
    result, run = train(tmp_path, steps=80, validate_every=20)
    assert result.state == run.status.state == "finished"
    steps, loss = run.scalars("train/loss")
    assert list(steps) == list(range(1, 81))
    assert loss[-10:].mean() < 0.8 * loss[:10].mean()
    assert result.scores["valid/loss"] == min(run.scalars("valid/loss")[1])


def test_two_trainings_with_one_seed_are_equal_bit_for_bit(tmp_path):
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    first, second = (
        read_run_contents(train(tmp_path / name, gradient_accumulation_steps=2, ema=0.9)[1].path)
        for name in "ab"
    )
    assert first == second


def test_another_seed_is_another_training(tmp_path):
    first, second = (
        train(tmp_path, seed=seed)[1].scalars("train/loss")[1].tolist() for seed in (0, 1)
    )
    assert first != second


def test_snapshots_of_attention_do_not_change_training(tmp_path):
    with_snapshots, without = (
        train(tmp_path, tracking={"track_every": every})[1] for every in (2, 0)
    )
    assert with_snapshots.scalar_rows() == without.scalar_rows()
    assert with_snapshots.measure_names()
    assert not without.measure_names()


def test_a_snapshot_preserves_training_mode_and_random_state(tmp_path):
    task = create_small_task(tmp_path)
    model = task.build().train()
    before = torch.get_rng_state()
    AttentionTracker(task, None, task.experiment.tracking).capture_snapshot(model, 0)
    assert torch.equal(torch.get_rng_state(), before)
    assert all(module.training for module in model.modules())


def test_snapshots_are_taken_without_dropout(tmp_path):
    """Two snapshots of the same weights are equal."""
    task = create_small_task(tmp_path)
    run, model = create_small_run(task, tmp_path), task.build().train()
    tracker = AttentionTracker(task, run, task.experiment.tracking)
    for step in (0, 4):
        torch.manual_seed(step)
        tracker.capture_snapshot(model, step)
    run.finish("finished")
    first, second = Run.open(run.path).measure("entropy")[1]
    assert first.tolist() == second.tolist()


def test_measures_are_arrays_of_layers_and_heads(tmp_path):
    _, run = train(tmp_path, steps=8)
    steps, entropy = run.measure("entropy")
    assert list(steps) == [0, 4, 8]
    assert entropy.shape == (3, 2, 3)
    assert len(run.metadata("attention/layers")) == 2


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_step_averages_the_gradients_of_all_its_batches(tmp_path, accumulate):
    """The first step of plain SGD moves the weights along the mean gradient of its batches."""
    task = create_small_task(
        tmp_path,
        optimizer="SGD(learning_rate=0.1)",
        steps=1,
        gradient_accumulation_steps=accumulate,
    )
    run = create_small_run(task, tmp_path)
    torch.manual_seed(0)
    model = task.build().eval()  # without dropout; below too
    before = {name: param.detach().clone() for name, param in model.named_parameters()}
    sum(task.loss(model, task.batch(index))[0] for index in range(accumulate)).backward()
    expected = {
        name: before[name] - 0.1 * param.grad / accumulate
        for name, param in model.named_parameters()
    }
    for module in (trained := task.build()).modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0
    trained.load_state_dict(before)
    task.build = lambda: trained
    fit(task, run)
    for name, param in trained.named_parameters():
        torch.testing.assert_close(param.detach(), expected[name])


@pytest.mark.parametrize(
    "optimizer",
    [
        "Adam()",
        "SGD(momentum=0.9)",
        "Muon(learning_rate=0.02)",
        "AdamW(learning_rate=CosineDecay(0.1, 9))",
    ],
)
def test_every_optimizer_trains(tmp_path, optimizer):
    _, run = train(tmp_path, optimizer=optimizer, steps=15)
    assert all(map(math.isfinite, run.scalars("train/loss")[1]))


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        ({"scheduler": "constant"}, [1, 1, 1, 1, 1]),
        ({"scheduler": "linear"}, [1, 0.8, 0.6, 0.4, 0.2]),
        ({"scheduler": "LinearDecay(0.01, decay_steps=10)"}, [1, 0.9, 0.8, 0.7, 0.6]),
        ({"scheduler": "cosine"}, [0.5 * (1 + math.cos(math.pi * step / 5)) for step in range(5)]),
        ({"warmup_steps": 2}, [0, 0.5, 1, 1, 1]),
        ({"scheduler": "linear", "warmup_steps": 2}, [0, 0.5, 1, 2 / 3, 1 / 3]),
        (
            {"scheduler": "linear", "min_learning_rate": 0.5, "learning_rate": 1.0},
            [100, 90, 80, 70, 60],
        ),
    ],
    ids=lambda value: "-".join(map(str, value.values())) if isinstance(value, dict) else "",
)
def test_the_learning_rate_follows_its_schedule(tmp_path, settings, rates):
    _, run = train(tmp_path, steps=5, **settings)
    assert run.scalars("train/learning_rate")[1] == pytest.approx([0.01 * rate for rate in rates])


def test_the_checked_optimizer_of_the_program_is_used_unless_the_experiment_names_another(tmp_path):
    task = create_small_task(tmp_path, optimizer="SGD(learning_rate=0.1, momentum=0.9)")
    assert task.optimizer is task.network.optimizer
    assert restore_task(create_small_run(task, tmp_path)).optimizer == task.optimizer
    decayed = create_small_task(tmp_path, optimizer="SGD()", weight_decay=0.5)
    assert decayed.optimizer == SGD(weight_decay=0.5)


def test_a_schedule_scales_both_learning_rates_of_muon(tmp_path):
    task = create_small_task(
        tmp_path,
        optimizer="Muon(learning_rate=0.02, other_learning_rate=0.005)",
        scheduler="linear",
        steps=4,
    )
    state = TrainingState.create(task.build(), task.optimizer, task.experiment.training, 4)
    state.optimizers.step(2)
    rates = [
        group["lr"] for optimizer in state.optimizers.optimizers for group in optimizer.param_groups
    ]
    assert rates == [0.01, *[0.0025] * (len(rates) - 1)]


def test_a_plateau_halves_the_learning_rate(tmp_path):
    _, run = train(
        tmp_path,
        steps=12,
        validate_every=1,
        scheduler="plateau",
        plateau_patience=2,
        learning_rate=1e-12,
    )
    rates = run.scalars("train/learning_rate")[1]
    assert rates[-1] < rates[0]
    assert set(rates / rates[0]) <= {2.0**-power for power in range(7)}


def test_early_stopping_after_patience_validations(tmp_path):
    result, _ = train(tmp_path, steps=100, validate_every=2, patience=3, learning_rate=0.5)
    assert result.state == "finished"
    assert result.step < 100
    assert "no improvement in 3 validations" in result.message


def test_gradients_are_clipped_to_the_norm(tmp_path):
    """Plain SGD at rate 1 moves the weights by the gradient: at most by `clip_norm`."""
    task = create_small_task(tmp_path, optimizer="SGD(learning_rate=1.0)", steps=1, clip_norm=0.01)
    torch.manual_seed(0)
    before = task.build()
    run = create_small_run(task, tmp_path)
    fit(task, run)
    after = Run.open(run.path).load_checkpoint().tensors
    steps = [
        (after[f"model.{name}"] - param.detach()).flatten()
        for name, param in before.named_parameters()
    ]
    assert float(torch.cat(steps).norm()) == pytest.approx(0.01, rel=1e-3)
    assert Run.open(run.path).scalars("train/grad_norm")[1][0] > 0.01


def test_activation_checkpointing_gives_the_same_losses(tmp_path):
    first, second = (
        train(tmp_path, gradient_checkpointing=flag)[1].scalar_rows() for flag in (False, True)
    )
    assert [row[:2] for row in first] == [row[:2] for row in second]
    assert [row[2] for row in first] == pytest.approx([row[2] for row in second], rel=1e-5)


def test_mixed_precision_trains(tmp_path):
    _, run = train(tmp_path, mixed_precision=True, steps=40)
    loss = run.scalars("train/loss")[1]
    assert loss[-8:].mean() < loss[:8].mean()


def test_the_averaged_weights_are_validated(tmp_path):
    task = create_small_task(tmp_path, ema=0.99, steps=6, validate_every=6)
    run = create_small_run(task, tmp_path)
    fit(task, run)
    saved, model = Run.open(run.path), task.build()
    tensors = saved.load_checkpoint().tensors
    parameters = dict(model.named_parameters())
    model.load_state_dict(
        {
            name: tensors[f"ema.{name}" if name in parameters else f"model.{name}"]
            for name in model.state_dict()
        }
    )
    with torch.no_grad():
        assert task.evaluate(model.eval())["valid/loss"] == saved.scalars("valid/loss")[1][-1]
    assert any(
        not torch.equal(tensors[f"ema.{name}"], tensors[f"model.{name}"]) for name in parameters
    )


def test_a_nan_loss_stops_the_run_and_names_the_step(tmp_path):
    task = create_small_task(
        tmp_path, optimizer="SGD(learning_rate=1e30)", checkpoint_every=1, steps=50
    )
    run = create_small_run(task, tmp_path)
    with pytest.raises(
        DivergenceError,
        match=r"(loss|gradient norm) is (NaN|inf) at step \d+ \(batch \d+\); "
        r"the last good checkpoint is of step \d+",
    ):
        fit(task, run)
    run = Run.open(run.path)
    assert run.status.state == "failed"
    assert any(kind == "diverged" for _, kind, _, _ in run.events())
    assert all(
        tensor.isfinite().all()
        for tensor in run.load_checkpoint().tensors.values()
        if tensor.is_floating_point()
    )


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_a_signal_finishes_the_step_and_saves(tmp_path, number):
    def on_step(progress):
        if progress.step == 4:
            os.kill(os.getpid(), number)

    before = signal.getsignal(number)
    result, run = train(tmp_path, on_step=on_step, steps=50)
    assert (result.state, run.status.state) == ("stopped", "stopped")
    assert result.step == run.load_checkpoint().step == 5
    assert number.name in result.message
    assert signal.getsignal(number) == before


def test_a_second_interrupt_stops_at_once(tmp_path):
    def on_step(progress):
        if progress.step == 6:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    task = create_small_task(tmp_path, steps=50)
    run = create_small_run(task, tmp_path)
    with pytest.raises(KeyboardInterrupt):
        fit(task, run, on_step=on_step)
    assert Run.open(run.path).status.state == "stopped"


def test_training_works_outside_the_main_thread(tmp_path):
    thread = threading.Thread(target=lambda: train(tmp_path, steps=3))
    thread.start()
    thread.join()
    (path,) = (tmp_path / "runs").iterdir()
    assert Run.open(path).status.state == "finished"


def test_an_unavailable_device_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    task = create_small_task(tmp_path, device="cuda")
    run = create_small_run(task, tmp_path)
    with pytest.raises(TaskError, match="torch finds no GPU here"):
        fit(task, run)
    assert Run.open(run.path).status.state == "failed"


def test_epochs_become_steps(tmp_path):
    assert count_steps(create_small_task(tmp_path, steps=None, epochs=2, batch_size=5)) == 2 * (
        55 // 5
    )
    assert (
        count_steps(
            create_small_task(
                tmp_path, steps=None, epochs=3, batch_size=5, gradient_accumulation_steps=2
            )
        )
        == 17
    )


@pytest.mark.parametrize(
    ("optimizer", "message"),
    [
        ("AdamV", "did you mean `Adam`"),
        ("AdamW(learning_rat=3)", "learning_rate"),
        ("3", "optimizer"),
        ("AdamW(learning_rate=-1)", "learning_rate"),
    ],
)
def test_an_invalid_optimizer_is_an_error(tmp_path, optimizer, message):
    from neural.core.experiment import TrainingSettings
    from neural.optim.optimizer_factory import create_optimizer

    with pytest.raises(TaskError, match=message):
        create_optimizer(TrainingSettings(optimizer=optimizer))


def test_the_last_snapshot_of_a_run_keeps_its_maps(tmp_path):
    _, run = train(tmp_path, steps=7, tracking={"track_every": 3, "maps_every": 5})
    assert list(run.map_steps()) == [0, 6]


def test_gradient_checkpointing_without_blocks_is_a_warning(tmp_path):
    task, warnings = create_small_task(tmp_path, steps=1, gradient_checkpointing=True), []
    task.build = lambda: neural.parse(NO_BLOCKS).build()
    fit(task, None, on_warning=warnings.append)
    assert warnings == [
        "`gradient_checkpointing` has no effect: the network has no transformer blocks"
    ]


NO_BLOCKS = """network NoBlocks {
  input: (5, 6)
  layers:
    Flatten()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""
