"""The loop: batches in, a finished run out. Everything that learns here learns through `fit`.

Nothing that changes is hidden: which batch comes next and every random number follow from the seed and the step, the
rest is in the checkpoint. So a run that was killed goes on as if nothing had happened, bit for bit.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, TypeVar

from neural.core.settings import resolved
from neural.modules.late import torch
from neural.tasks.task import Task, TaskError, split_scores
from neural.tracking.run import Run
from neural.tracking.sink import flat
from neural.tracking.tracker import Tracker
from neural.training.buffers import BufferSync
from neural.training.failure import Diverged, last_checkpoint, memory_in_words
from neural.training.objective import Objective, blocks_of, recompute, shares_of
from neural.training.signals import Signals
from neural.training.state import State, of_this_network, weights_in
from neural.training.workers import Workers

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.tasks.task import Batch

    Also = Callable[[int, nn.Module], Mapping[str, float]]
    """From a step and the model, in evaluation mode."""

Result = TypeVar("Result")
ENDED = ("finished", "stopped")
RARELY, OFTEN = 250, 50
"""Steps between validations at most and at least, whatever an epoch is, where nothing else was said."""


@dataclass(frozen=True)
class Progress:
    """What there is to say after a step."""

    step: int
    steps: int
    loss: float
    rate: float
    """Learning rate."""
    seconds: float
    """Since this process began to train."""
    done: int
    """Steps that this process made."""
    looked: tuple[str, float] | None = None
    """The liveliest measure of the last look at the attention."""
    scores: dict[str, float] | None = None
    """Of a validation, where one followed this step."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    state: str
    """finished or stopped."""
    step: int
    scores: dict[str, float]
    """Of the best validation."""
    message: str


def fit(
    task: Task, run: Run | None, *, workers: Workers | None = None,
    tell: Callable[[Progress], None] = lambda progress: None, also: Also | None = None,
    remark: Callable[[str], None] = lambda text: None,
) -> Outcome:  # fmt: skip
    """Train until done, stopped or out of patience; goes on from the run's newest checkpoint where there is one.

    Of several workers the first one writes the run; the others have none. `also` gives rows beside the scores of a
    validation; `remark` hears what the user should know before it begins.
    """
    workers, loop = workers or Workers(), None
    with Signals() as signals:
        try:
            with memory_in_words(run, task.experiment.training):
                loop = _Loop(task, run, workers, tell, also)
                for text in loop.remarks:
                    remark(text)
                outcome = loop.go(signals)
        except KeyboardInterrupt:
            message = "stopped at once; goes on from the last checkpoint"
            _end(run, "stopped", message, begun=loop is not None)
            raise
        except BaseException as wrong:
            _end(run, "failed", f"{type(wrong).__name__}: {wrong}", begun=loop is not None)
            raise
    _end(run, outcome.state, outcome.message)
    return outcome


def _end(run: Run | None, state: str, message: str, *, begun: bool = True) -> None:
    """Say how the run ended. One that had ended before and could not be resumed stays as it was."""
    if run is None:
        return
    if not begun and run.previous is not None and run.previous.state in ENDED:
        state, message = run.previous.state, f"cannot be resumed like this: {message}"
    run.finish(state, message)


class _Loop:
    def __init__(
        self, task: Task, run: Run | None, workers: Workers, tell: Callable[[Progress], None], also: Also | None
    ) -> None:
        self.task, self.run, self.workers, self.tell, self.also = task, run, workers, tell, also
        self.settings = task.experiment.training
        self.device = workers.device(self.settings.device)
        self.steps = steps_of(task, workers.count)
        epoch = max(1, task.epoch // (self.settings.gradient_accumulation_steps * workers.count))
        self.validate_every = self.settings.validate_every or min(max(epoch, OFTEN), RARELY, self.steps)
        self.checkpoint_every = self.settings.checkpoint_every or self.validate_every
        torch.manual_seed(self.settings.seed)
        model = task.build().to(self.device)
        saved = workers.told(run.restore() if run is not None else None)
        where = run.path if run is not None else ""
        if saved is not None:
            with of_this_network(saved, where):
                model.load_state_dict(weights_in(saved))
        blocks = blocks_of(model) if self.settings.gradient_checkpointing else []
        recompute(blocks)
        self.split = self.settings.shard and workers.count > 1
        self.objective: Any = workers.spread(Objective(task, model), self.device, shard=self.split)
        self.buffers = BufferSync(model, workers)
        self.state = State.first(model, self.settings, self.steps)
        self.parameters = list(model.parameters())   # a walk through the modules costs 1 % of a small step
        if saved is not None:
            with of_this_network(saved, where):
                self.state.load(saved)
        damaged = saved.skipped if saved is not None and run is not None else ()
        self.remarks = [f"{text}; goes on from the checkpoint of step {self.state.step}" for text in damaged]
        """What the user should know before it begins, a sentence each."""
        if self.settings.gradient_checkpointing and not blocks and workers.first:
            self.remarks.append("`gradient_checkpointing` saves nothing here: there are no transformer blocks")
        # a split model runs in all processes or in none: all of them look, one writes
        self.tracker = Tracker(task, run, task.experiment.tracking) if run is not None or self.split else None
        if run is not None:
            run.send_to(task.experiment.tracking.sinks)
            run.forget_after(self.state.step)
            if saved is not None:
                changed = self.keep_settings(run) if self.state.step < self.steps else ""
                where = f"goes on from the checkpoint of step {self.state.step}"
                run.event(self.state.step, "restart", where + (f"; {changed}" if changed else ""))
            run.describe("parameters", sum(one.numel() for one in model.parameters()))
            epoch = task.epoch / (self.settings.gradient_accumulation_steps * workers.count)
            for key, value in {"steps": self.steps, "epoch": epoch, **task.facts()}.items():
                run.describe(key, value)

    def keep_settings(self, run: Run) -> str:
        """Write the settings of a resumed run if they changed; returns what changed, as text."""
        before, now = run.settings, resolved(self.task.experiment)
        if before == now:
            return ""
        run.replace_settings(now, self.task.program)
        old, new = flat(before), flat(now)
        changes = [
            f"{key} {json.dumps(old.get(key))} → {json.dumps(value)}"
            for key, value in new.items()
            if key != "network" and old.get(key) != value
        ]
        return ", ".join(changes)

    def go(self, signals: Signals) -> Outcome:
        """Step after step."""
        state, settings, every = self.state, self.settings, self.task.experiment.tracking.track_every
        started, done, looked = time.perf_counter(), 0, None
        if state.step == 0 and every:
            looked = self.look(0)
        state.model.train()
        while state.step < self.steps and not state.patience_is_out(settings.patience):
            loss, terms = self.learn()
            norm = self.clip()
            if not (math.isfinite(loss) and math.isfinite(norm)):
                raise Diverged(self.divergence(loss, norm))
            rate = state.optimizing.rate(state.step)
            state.optimizing.take(state.step)
            state.step += 1
            done += 1
            if state.average is not None:
                state.average.update(state.step)
            last = state.step == self.steps
            if self.run is not None:
                self.run.log(state.step, {"train/loss": loss, "train/grad_norm": norm, "train/rate": rate, **terms})
                for kind, text in self.task.news():
                    self.run.event(state.step, kind, text)
            if every and state.step % every == 0:
                looked = self.look(state.step, last=state.step + every > self.steps)
            scores = self.validate() if last or state.step % self.validate_every == 0 else None
            stop = self.workers.any(signals.asked is not None)
            if last or stop or scores is not None or state.step % self.checkpoint_every == 0:
                self.save(best=scores is not None and state.waited == 0)
            if self.run is not None:
                self.run.beat(state.step, steps=self.steps, loss=loss, best=state.best)
                seconds = time.perf_counter() - started
                self.tell(Progress(state.step, self.steps, loss, rate, seconds, done, looked, scores))
            if stop and not last:
                return Outcome("stopped", state.step, state.best, f"stopped after step {state.step} by {signals.asked}")
        early = state.step < self.steps
        said = f"no better for {state.waited} validations" if early else ""
        return Outcome("finished", state.step, state.best, said)

    def learn(self) -> tuple[float, dict[str, float]]:
        """Gradients of one step: forward and backward for each of its batches."""
        accumulation, workers = self.settings.gradient_accumulation_steps, self.workers
        first = self.state.step * accumulation * workers.count + workers.rank
        numbers = [first + turn * workers.count for turn in range(accumulation)]
        batches = [self.task.batch(number) for number in numbers]
        shares = self.shares(batches)
        total: dict[str, Tensor] = {}
        for number, batch, share in zip(numbers, batches, shares, strict=True):
            batch = {name: tensor.to(self.device) for name, tensor in batch.items()}
            torch.manual_seed(seed_of(self.settings.seed, number))
            with workers.adding(self.objective, last=number == numbers[-1]):
                with torch.autocast(self.device.type, torch.bfloat16, enabled=self.settings.mixed_precision):
                    loss, curves = self.objective(batch, share)
                loss.backward()
            for name, value in {"loss": loss, **curves}.items():
                total[name] = total[name] + value.detach() if name in total else value.detach().clone()
        self.buffers.step()
        means = workers.mean(torch.stack([value.float() for value in total.values()])).tolist()
        curves = dict(zip(total, means, strict=True))
        return curves.pop("loss"), curves

    def shares(self, batches: Sequence[Batch]) -> list[dict[str, float]]:
        """How much of the means of the step each of this process's batches is.

        Padding makes batches differ in their number of targets. The mean over all targets of the
        step is the mean of the batches' means, weighted by these numbers, over all processes.
        """
        if len(batches) * self.workers.count == 1:
            return [{}]
        weights = [self.task.loss_weights(batch) for batch in batches]
        names = sorted(weights[0])
        sums = self.workers.sums([sum(weight[name] for weight in weights) for name in names])
        totals = dict(zip(names, sums, strict=True))
        return [shares_of(weight, totals, self.workers.count) for weight in weights]

    def clip(self) -> float:
        """The norm of all gradients together, cut where it is too large."""
        most = self.state.optimizing.clip
        norm = torch.nn.utils.clip_grad_norm_(self.parameters, math.inf if most is None else most)
        return float(norm.full_tensor() if hasattr(norm, "full_tensor") else norm)

    def look(self, step: int, *, last: bool = False) -> tuple[str, float] | None:
        """At the attention of the probe."""
        tracker = self.tracker
        if tracker is None:
            return None
        return self.with_model(lambda model: tracker.look(model, step, last=last))

    def with_model(self, call: Callable[[nn.Module], Result]) -> Result:
        """Call a function with the model and its whole weights, outside of a training step."""
        if not self.split:
            return call(self.state.model)
        with torch.no_grad():
            result = self.objective.run(call)
        self.objective.reshard()   # the root stays whole otherwise: stale once the weights change
        return result

    def validate(self) -> dict[str, float]:
        """Scores on the validation data, by the average of the weights where one is kept."""
        state = self.state
        scores: dict[str, Any] = {}
        rows: Mapping[str, float] = {}
        if self.run is not None or self.split:
            state.model.eval()
            with torch.no_grad(), state.averaged(), torch.autocast(
                self.device.type, torch.bfloat16, enabled=self.settings.mixed_precision
            ):
                scores = self.with_model(self.task.evaluate)
                rows = self.also(state.step, state.model) if self.also and self.run is not None else {}
            state.model.train()
        scores = self.workers.told(scores)
        scores, arrays = split_scores(scores)
        state.judge(scores, self.task.watched, larger=self.task.larger_is_better, settings=self.settings)
        if self.run is not None and (scores or rows):
            self.run.log(state.step, {**scores, **rows})
            self.run.log_arrays(state.step, arrays)
        return scores

    def save(self, *, best: bool) -> None:
        """A checkpoint from which the run goes on."""
        tensors, facts = self.state.saved()   # all processes help where the weights are split
        if self.run is not None:
            self.run.save(self.state.step, tensors, facts, best=best, keep=self.settings.keep_checkpoints)
        self.workers.any(False)   # nobody runs ahead of what is on disk

    def divergence(self, loss: float, norm: float) -> str:
        """What to tell the user; the run's last checkpoint is from before."""
        what = f"the loss is {loss}" if not math.isfinite(loss) else f"the gradients' norm is {norm}"
        batches = self.settings.gradient_accumulation_steps * self.workers.count
        first = self.state.step * batches
        numbers = f"batch {first}" if batches == 1 else f"batches {first} to {first + batches - 1}"
        kept = last_checkpoint(self.run) if self.run is not None else "the first process tells what is kept"
        message = (
            f"{what} at step {self.state.step + 1} ({numbers}); {kept}. "
            "Try a smaller learning rate, `clip_norm: 1.0` or some `warmup_steps`"
        )
        if self.run is not None:
            self.run.event(self.state.step + 1, "diverged", message)
        return message


def steps_of(task: Task, workers: int = 1) -> int:
    """How many steps a task's settings ask for."""
    settings = task.experiment.training
    steps = settings.total_steps(task.epoch, settings.gradient_accumulation_steps * workers)
    if steps < 1:
        raise TaskError("there is nothing to train on: not one batch")
    return steps


def seed_of(seed: int, batch: int) -> int:
    """For what is random while a batch is learned: dropout, sampling. The same in however many processes."""
    return int.from_bytes(blake2b(f"{seed}/{batch}".encode(), digest_size=7).digest())
