"""The training loop: `fit`.

A task (tasks/task.py) defines model, data, loss and validation scores; a run (runs/run.py) is the
folder that receives metrics and checkpoints. A snapshot is the attention of the model on a few
fixed examples, the probe; it is captured every `tracking.track_every` steps (capture/tracker.py).
Curves are means beside the loss that a task logs at every step.

Batches and random numbers depend on the seed and the step only; all other state is in the
checkpoint. So a run that was killed and resumed gives the same weights, bit for bit, as one that
was not.
"""

from __future__ import annotations

import json
import math
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

from neural.capture.tracker import AttentionTracker
from neural.core.errors import TaskError
from neural.core.platform_support import STOP_SIGNALS
from neural.core.settings import dump_settings, flatten_settings
from neural.nn.lazy_torch import torch
from neural.runs.checkpoint import check_network_match, select_weights
from neural.runs.run import Run
from neural.tasks.task import Task, split_scores
from neural.training.buffer_sync import BufferSync
from neural.training.cpu_threads import use_threads_for
from neural.training.errors import (
    DivergenceError,
    describe_last_checkpoint,
    translate_memory_errors,
)
from neural.training.loss_module import (
    LossModule,
    compute_shares,
    enable_checkpointing,
    find_blocks,
)
from neural.training.process_group import ProcessGroup
from neural.training.state import TrainingState

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.tasks.task import Batch

    ExtraMetrics = Callable[[int, nn.Module], Mapping[str, float]]
    """Metrics to log with the scores of a validation, from the step and the model in eval mode."""

Result = TypeVar("Result")
ENDED_STATES = ("finished", "stopped")
"""States of a run that ended without an error."""
MAX_VALIDATE_EVERY, MIN_VALIDATE_EVERY = 250, 50
"""Without the setting `validate_every`, validation comes after every epoch, but at intervals of at
least MIN and at most MAX steps."""
MIN_TIMED_STEPS = 3
"""Steps after the first one from which the time of a step is estimated."""


@dataclass(frozen=True)
class TrainingProgress:
    """Progress of a training after a step, as `on_step` gets it."""

    step: int
    """Optimizer steps done, including those before the run was resumed."""
    steps: int
    """Optimizer steps of the complete training."""
    loss: float
    learning_rate: float
    seconds: float
    """Time since this process started to train."""
    steps_done: int
    """Steps of this process; fewer than `step` in a resumed run."""
    first_step_seconds: float
    """The part of `seconds` until the end of the first step of this process. That one is slow:
    a snapshot of the attention comes before it, and caches are filled."""
    attention_summary: tuple[str, float] | None = None
    """Name and mean of one attention measure (say, entropy) in the last snapshot; the same measure
    throughout a training."""
    scores: dict[str, float] | None = None
    """Scores of a validation, if one followed this step."""
    member: int | None = None
    """Which model of an ensemble is trained, from 1; None for a single model.

    `step` and `steps` then count the steps of all members.
    """
    members: int = 1
    """Number of models."""

    @property
    def seconds_per_step(self) -> float | None:
        """Mean over the steps after the first, with their snapshots, validations and checkpoints.

        None while it is unknown: before MIN_TIMED_STEPS of them.
        """
        timed_steps = self.steps_done - 1
        if timed_steps < MIN_TIMED_STEPS:
            return None
        return (self.seconds - self.first_step_seconds) / timed_steps

    @property
    def seconds_left(self) -> float | None:
        """Estimated time until the last step; None while it is unknown."""
        seconds = self.seconds_per_step
        return None if seconds is None else (self.steps - self.step) * seconds


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended."""

    state: str
    """`finished` (also by early stopping) or `stopped` (by a signal)."""
    step: int
    """Optimizer steps done."""
    scores: dict[str, float]
    """Scores of the best validation."""
    message: str


def fit(
    task: Task,
    run: Run | None,
    *,
    group: ProcessGroup | None = None,
    on_step: Callable[[TrainingProgress], None] = lambda progress: None,
    extra_metrics: ExtraMetrics | None = None,
    on_warning: Callable[[str], None] = lambda text: None,
) -> TrainingResult:
    """Train until the last step, early stopping or a stop signal.

    Resumes from the run's newest checkpoint. In a `group` of several processes only rank 0 has a
    run and writes to it. `on_step` is called after every step, in rank 0 only; `on_warning`
    with each message for the user, before the first step. `extra_metrics` are logged at every
    validation.
    """
    group, loop = group or ProcessGroup(), None
    with StopSignals() as stop_signals:
        try:
            with translate_memory_errors(run, task.experiment.training):
                loop = _TrainingLoop(task, run, group, on_step, extra_metrics)
                for text in loop.warnings:
                    on_warning(text)
                # of batch 0 in a resumed run, too: the number of threads changes the last digits
                positions = task.count_positions(task.batch(0))
                with use_threads_for(loop.state.model, positions):
                    result = loop.train(stop_signals)
        except KeyboardInterrupt:
            message = "stopped at once; resumes from the last checkpoint"
            _finish_run(run, "stopped", message, has_started=loop is not None)
            raise
        except BaseException as error:
            _finish_run(
                run, "failed", f"{type(error).__name__}: {error}", has_started=loop is not None
            )
            raise
    _finish_run(run, result.state, result.message)
    return result


def _finish_run(run: Run | None, state: str, message: str, *, has_started: bool = True) -> None:
    """Write the final status, and close the run.

    `has_started` is False if the training loop could not be set up. A run that had ended before and
    cannot be resumed now keeps its state.
    """
    if run is None:
        return
    if not has_started and run.previous is not None and run.previous.state in ENDED_STATES:
        state, message = run.previous.state, f"cannot be resumed with these settings: {message}"
    run.finish(state, message)


class _TrainingLoop:
    """The training in one process. The constructor builds or restores all state; `train` trains."""

    def __init__(
        self,
        task: Task,
        run: Run | None,
        group: ProcessGroup,
        on_step: Callable[[TrainingProgress], None],
        extra_metrics: ExtraMetrics | None,
    ) -> None:
        self.task, self.run, self.group = task, run, group
        self.on_step, self.extra_metrics = on_step, extra_metrics
        self.settings = task.experiment.training
        self.device = group.select_device(self.settings.device)
        self.steps = count_steps(task, group.size)
        batches_per_step = self.settings.gradient_accumulation_steps * group.size
        self.validate_every = count_validation_interval(task, group.size)
        self.checkpoint_every = self.settings.checkpoint_every or self.validate_every
        torch.manual_seed(self.settings.seed)
        model = task.build().to(self.device)
        checkpoint = group.broadcast_object(run.load_checkpoint() if run is not None else None)
        source = run.path if run is not None else ""
        # weights are loaded before FSDP shards them; the optimizers' state is loaded after that,
        # because it is sharded in the same way
        if checkpoint is not None:
            with check_network_match(checkpoint, source):
                model.load_state_dict(select_weights(checkpoint))
        blocks = find_blocks(model) if self.settings.gradient_checkpointing else []
        enable_checkpointing(blocks)
        self.is_sharded = self.settings.shard and group.size > 1
        self.loss_module: Any = group.distribute(
            LossModule(task, model), self.device, shard=self.is_sharded
        )
        self.buffers = BufferSync(model, group)
        self.state = TrainingState.create(model, task.optimizer, self.settings, self.steps)
        # listed once: walking through the modules takes 1 % of a small step
        self.parameters = list(model.parameters())
        if checkpoint is not None:
            with check_network_match(checkpoint, source):
                self.state.load_checkpoint(checkpoint)
        # newer checkpoints that were damaged, one message each
        skipped = checkpoint.skipped if checkpoint is not None and run is not None else ()
        self.warnings = [
            f"{text}; resumes from the checkpoint of step {self.state.step}" for text in skipped
        ]
        """Messages for the user before the first step."""
        if self.settings.gradient_checkpointing and not blocks and group.is_first:
            self.warnings.append(
                "`gradient_checkpointing` has no effect: the network has no transformer blocks"
            )
        # a sharded model runs in all processes or in none: all capture, only rank 0 writes
        self.tracker = (
            AttentionTracker(task, run, task.experiment.tracking)
            if run is not None or self.is_sharded
            else None
        )
        if run is not None:
            run.add_sinks(task.experiment.tracking.sinks)  # loggers such as TensorBoard
            # rows that were logged after the checkpoint: these steps are trained again
            run.delete_after(self.state.step)
            if checkpoint is not None:
                changes = self.update_settings(run) if self.state.step < self.steps else ""
                event = f"resumes from the checkpoint of step {self.state.step}"
                run.log_event(
                    self.state.step, "restart", event + (f"; {changes}" if changes else "")
                )
            run.set_metadata("parameters", sum(param.numel() for param in self.parameters))
            metadata = {
                "steps": self.steps,
                # in optimizer steps, each of which takes the batches of all processes
                "batches_per_epoch": task.batches_per_epoch / batches_per_step,
                **task.metadata(),
            }
            for key, value in metadata.items():
                run.set_metadata(key, value)

    def update_settings(self, run: Run) -> str:
        """Write the settings to a resumed run if they changed; returns the changes as text."""
        previous, current = run.settings, dump_settings(self.task.experiment)
        if previous == current:
            return ""
        run.replace_settings(current, self.task.program)
        old_values, new_values = flatten_settings(previous), flatten_settings(current)
        changes = [
            f"{key} {json.dumps(old_values.get(key))} → {json.dumps(value)}"
            for key, value in new_values.items()
            # "network" holds the source text of the network, which is too long for a message
            if key != "network" and old_values.get(key) != value
        ]
        return ", ".join(changes)

    def train(self, stop_signals: StopSignals) -> TrainingResult:
        """Train from the current step to the end, to early stopping or to a stop signal."""
        state, patience = self.state, self.settings.patience
        track_every = self.task.experiment.tracking.track_every
        start_time, steps_done, attention_summary = time.perf_counter(), 0, None
        first_step_seconds = 0.0
        if state.step == 0 and track_every:
            attention_summary = self.capture_snapshot(0)
        state.model.train()
        while state.step < self.steps and not state.is_out_of_patience(patience):
            loss, curves = self.accumulate_gradients()
            grad_norm = self.clip_gradients()
            if not (math.isfinite(loss) and math.isfinite(grad_norm)):
                raise DivergenceError(self.describe_divergence(loss, grad_norm))
            learning_rate = state.optimizers.learning_rate_at(state.step)
            state.optimizers.step(state.step)
            state.step += 1
            steps_done += 1
            if state.ema is not None:
                state.ema.update(state.step)
            is_last = state.step == self.steps
            if self.run is not None:
                metrics = {
                    "train/loss": loss,
                    "train/grad_norm": grad_norm,
                    "train/learning_rate": learning_rate,
                }
                self.run.log(state.step, {**metrics, **curves})
                for kind, text in self.task.pop_events():
                    self.run.log_event(state.step, kind, text)
            if track_every and state.step % track_every == 0:
                # `last`: no further snapshot follows this one
                attention_summary = self.capture_snapshot(
                    state.step, last=state.step + track_every > self.steps
                )
            scores = self.validate() if is_last or state.step % self.validate_every == 0 else None
            # a signal may reach one process only, but all must stop after the same step
            must_stop = self.group.any(stop_signals.requested is not None)
            is_due = scores is not None or state.step % self.checkpoint_every == 0
            if is_last or must_stop or is_due:
                self.save_checkpoint(
                    is_best=scores is not None and state.validations_since_best == 0
                )
            if steps_done == 1:
                first_step_seconds = time.perf_counter() - start_time
            if self.run is not None:
                self.run.heartbeat(state.step, steps=self.steps, loss=loss, best=state.best)
                self.on_step(
                    TrainingProgress(
                        step=state.step,
                        steps=self.steps,
                        loss=loss,
                        learning_rate=learning_rate,
                        seconds=time.perf_counter() - start_time,
                        steps_done=steps_done,
                        first_step_seconds=first_step_seconds,
                        attention_summary=attention_summary,
                        scores=scores,
                    )
                )
            if must_stop and not is_last:
                message = f"stopped after step {state.step} by {stop_signals.requested}"
                return TrainingResult("stopped", state.step, state.best, message)
        message = (
            f"stopped early: no improvement in {state.validations_since_best} validations"
            if state.step < self.steps
            else ""
        )
        return TrainingResult("finished", state.step, state.best, message)

    def accumulate_gradients(self) -> tuple[float, dict[str, float]]:
        """Forward and backward pass of each micro-batch of a step.

        Returns the loss and the task's other curves by name, as means over the step and all
        processes.
        """
        accumulation, group = self.settings.gradient_accumulation_steps, self.group
        first = self.state.step * accumulation * group.size + group.rank
        batch_indices = [first + micro_step * group.size for micro_step in range(accumulation)]
        batches = [self.task.batch(index) for index in batch_indices]
        totals: dict[str, Tensor] = {}
        for index, batch, shares in zip(
            batch_indices, batches, self.batch_shares(batches), strict=True
        ):
            batch = {name: tensor.to(self.device) for name, tensor in batch.items()}
            seed_generators(batch_seed(self.settings.seed, index), self.device)
            with group.accumulate(self.loss_module, last=index == batch_indices[-1]):
                with torch.autocast(
                    self.device.type, torch.bfloat16, enabled=self.settings.mixed_precision
                ):
                    loss, curves = self.loss_module(batch, shares)
                loss.backward()
            for name, value in {"loss": loss, **curves}.items():
                totals[name] = (
                    totals[name] + value.detach() if name in totals else value.detach().clone()
                )
        self.buffers.step()
        means = group.mean(torch.stack([value.float() for value in totals.values()])).tolist()
        mean_curves = dict(zip(totals, means, strict=True))
        return mean_curves.pop("loss"), mean_curves

    def batch_shares(self, batches: Sequence[Batch]) -> list[dict[str, float]]:
        """The share of each of this process's batches in the step, by name of a loss term or curve.

        Padding makes batches differ in their number of targets (say, tokens). The mean over all
        targets of the step is the mean of the batches' means weighted by these numbers. The result
        has one mapping per batch; it is empty for a step of one batch, which needs no weights.
        """
        if len(batches) * self.group.size == 1:
            return [{}]
        weights = [self.task.loss_weights(batch) for batch in batches]
        names = sorted(weights[0])
        sums = self.group.sum_numbers([sum(weight[name] for weight in weights) for name in names])
        totals = dict(zip(names, sums, strict=True))
        return [compute_shares(weight, totals, self.group.size) for weight in weights]

    def clip_gradients(self) -> float:
        """Clip the gradients to `clip_norm`, if it is set; returns their norm before clipping."""
        clip_norm = self.state.optimizers.clip_norm
        norm = torch.nn.utils.clip_grad_norm_(
            self.parameters, math.inf if clip_norm is None else clip_norm
        )
        return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)

    def capture_snapshot(self, step: int, *, last: bool = False) -> tuple[str, float] | None:
        """Capture and log the model's attention on the probe (`Task.probe_batch`).

        Returns name and mean of one measure, always the same. `last` says that no further snapshot
        follows.
        """
        tracker = self.tracker
        if tracker is None:
            return None
        return self.call_with_full_weights(
            lambda model: tracker.capture_snapshot(model, step, last=last)
        )

    def call_with_full_weights(self, call: Callable[[nn.Module], Result]) -> Result:
        """Call a function with the model and its full weights, outside of a training step."""
        if not self.is_sharded:
            return call(self.state.model)
        with torch.no_grad():
            result = self.loss_module.call_with_model(call)
        # FSDP keeps the gathered weights of the root module, which the next step makes outdated
        self.loss_module.reshard()
        return result

    def validate(self) -> dict[str, float]:
        """Compute and log the validation scores, with the averaged (EMA) weights if there are any.

        Rank 0 computes them alone, or all processes together if the model is sharded.
        """
        state = self.state
        all_scores: dict[str, Any] = {}
        extra_metrics: Mapping[str, float] = {}
        if self.run is not None or self.is_sharded:
            state.model.eval()
            with (
                torch.no_grad(),
                state.use_ema_weights(),
                torch.autocast(
                    self.device.type, torch.bfloat16, enabled=self.settings.mixed_precision
                ),
            ):
                all_scores = self.call_with_full_weights(self.task.evaluate)
                if self.extra_metrics and self.run is not None:
                    extra_metrics = self.extra_metrics(state.step, state.model)
            state.model.train()
        scores, arrays = split_scores(self.group.broadcast_object(all_scores))
        state.update_best(
            scores,
            self.task.monitor,
            larger_is_better=self.task.larger_is_better,
            settings=self.settings,
        )
        if self.run is not None and (scores or extra_metrics):
            self.run.log(state.step, {**scores, **extra_metrics})
            self.run.log_arrays(state.step, arrays)
        return scores

    def save_checkpoint(self, *, is_best: bool) -> None:
        """Save a checkpoint from which the run can resume."""
        # in all processes: under FSDP this gathers the shards
        tensors, metadata = self.state.state_dict()
        if self.run is not None:
            self.run.save(
                self.state.step,
                tensors,
                metadata,
                best=is_best,
                keep=self.settings.keep_checkpoints,
            )
        # used as a barrier: no process runs ahead of the checkpoint on disk
        self.group.any(False)

    def describe_divergence(self, loss: float, grad_norm: float) -> str:
        """Return the message of a DivergenceError, and log it as an event of the run."""
        name, value = ("loss", loss) if not math.isfinite(loss) else ("gradient norm", grad_norm)
        batches = self.settings.gradient_accumulation_steps * self.group.size
        first = self.state.step * batches
        indices = f"batch {first}" if batches == 1 else f"batches {first} to {first + batches - 1}"
        checkpoint = (
            describe_last_checkpoint(self.run)
            if self.run is not None
            else "process 0 reports the last checkpoint"
        )
        message = (
            f"{name} is {'NaN' if math.isnan(value) else value} at step {self.state.step + 1} "
            f"({indices}); {checkpoint}. "
            "Try a smaller learning rate, `clip_norm: 1.0` or some `warmup_steps`"
        )
        if self.run is not None:
            self.run.log_event(self.state.step + 1, "diverged", message)
        return message


def count_steps(task: Task, processes: int = 1) -> int:
    """The number of optimizer steps that a task's settings ask for."""
    settings = task.experiment.training
    steps = settings.total_steps(
        task.batches_per_epoch, settings.gradient_accumulation_steps * processes
    )
    if steps < 1:
        raise TaskError("there is nothing to train on: the data does not fill one batch")
    return steps


def count_validation_interval(task: Task, processes: int = 1) -> int:
    """The number of optimizer steps between two validations."""
    settings = task.experiment.training
    batches_per_step = settings.gradient_accumulation_steps * processes
    steps_per_epoch = max(1, task.batches_per_epoch // batches_per_step)
    return settings.validate_every or min(
        max(steps_per_epoch, MIN_VALIDATE_EVERY), MAX_VALIDATE_EVERY, count_steps(task, processes)
    )


def batch_seed(seed: int, batch: int) -> int:
    """The torch seed for dropout and sampling of a batch, from the training's seed.

    `batch` is the index of the batch over all steps and processes, from 0. So the result is the
    same for any number of processes.
    """
    # 7 bytes: torch seeds are signed 64-bit integers
    return int.from_bytes(blake2b(f"{seed}/{batch}".encode(), digest_size=7).digest())


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the random generators of a device.

    On a CPU without `torch.manual_seed`, which also prepares seeds for every kind of accelerator
    and formats the stack for each of them: that takes longer than the step of a small network.
    """
    if device.type == "cpu":
        torch.default_generator.manual_seed(seed)
    else:
        torch.manual_seed(seed)


class StopSignals:
    """Records the stop signals (Ctrl-C, SIGTERM …) inside the `with` block in `requested`.

    The training loop reads it after each step and stops. A second SIGINT raises KeyboardInterrupt.
    """

    def __init__(self) -> None:
        self.requested: str | None = None
        """Name of the signal that was received; None so far."""
        self._previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> StopSignals:
        # Python allows signal handlers in the main thread only
        if threading.current_thread() is threading.main_thread():
            for number in STOP_SIGNALS:
                self._previous_handlers[number] = signal.signal(number, self._request_stop)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    def _request_stop(self, number: int, _frame: FrameType | None) -> None:
        if self.requested is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.requested = signal.Signals(number).name
