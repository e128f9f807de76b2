"""What `neural debug` looks at: a network, its weights, and something to show it; each says where it comes from.

    subject = subject_of(Path("net.neural"))                     random weights
    subject = subject_of(None, run=Path("runs/…"), step=500)     trained ones, and the run's own probe
    seen = subject.watched()                                     as `neural.watch` gives it
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.blueprint import load
from neural.debug_input import Given, given
from neural.experiments import load_weights, model_at, source_of, task_of_run
from neural.generation import letters_of
from neural.modules.build import Built
from neural.modules.late import torch
from neural.tasks.task import Task, TaskError
from neural.tracking.run import Run
from neural.tracking.seen import Call, Seen
from neural.tracking.tracker import undisturbed
from neural.tracking.trouble import RunError
from neural.tracking.watch import watch

if TYPE_CHECKING:
    from torch import Tensor, nn

    from neural.tracking.checkpoint import Checkpoint

Labels = list[str]


@dataclass(frozen=True)
class Subject:
    """A network in evaluation mode, and one batch for it."""

    name: str
    model: nn.Module
    weights: str
    """Where they come from, in words."""
    trained: bool
    shown: str
    """What it is shown, in words."""
    forward: Callable[[], Tensor]
    """One pass of the batch."""
    objective: Callable[[], Tensor]
    """What gradients are taken of."""
    objective_name: str
    tokens: Tensor | None = None
    source: Labels | None = None
    """What stands at each position of the first example."""
    target: Labels | None = None
    """The same of the second sequence, where there are two."""

    def watched(self) -> Seen:
        """All attention of one pass."""
        # the command itself says that a network has no attention
        block = watch(self.model, tokens=self.tokens, on_warning=lambda _: None)
        with undisturbed(self.model), block as seen:
            self.forward()
        return seen

    def labels(self, call: Call) -> tuple[Labels | None, Labels | None]:
        """What to write beside the queries and the keys of a call."""
        if call.look is None:
            return None, None
        own = self.source if self.target is None or "decoder" not in call.path else self.target
        other = self.source if "cross" in call.path else own
        return _fitting(own, call.look.queries), _fitting(other, call.look.positions)


def subject_of(
    program: Path | None, *, run: Path | None = None, step: int | None = None, inputs: Sequence[str] = (),
    network: str | None = None, seed: int = 0,
) -> Subject:  # fmt: skip
    """What to look at; TaskError, RunError or ProgramError says what is wrong with what was asked for.

    `inputs` are texts or files (.npy, or of text), one for each sequence that the network takes. Without any, a run is
    shown the probe that it was tracked with.
    """
    if run is not None:
        return _of_run(Run.open(run), program, step, inputs, network)
    if program is None:
        raise TaskError("name a program, or a run with --run")
    if step is not None:
        raise TaskError("--step says which weights of a run: name it with --run")
    source_of(program)   # says it in our words where there is none
    plan = load(program, network=network)
    torch.manual_seed(seed)
    model = plan.build().eval()
    weights = f"random weights (seed {seed}): nothing was trained"
    return _shown(plan.name, model, weights, given(plan.network, inputs, seed=seed), trained=False)


def _of_run(run: Run, program: Path | None, step: int | None, inputs: Sequence[str], network: str | None) -> Subject:
    saved = run.restore(step) if step is not None else run.restore("best") or run.restore()
    if saved is None:
        raise RunError(f"{run.path} has no checkpoint yet")
    which = "best checkpoint, " if step is None and saved.best else ""
    weights = f"weights of {run.name}, {which}step {saved.step:,}"
    task, gone = None, ""
    if not inputs:
        try:
            task = task_of_run(run)
        except (TaskError, RunError) as problem:
            gone = f"; the run's own data cannot be read: {problem}"
    model = model_at(run, saved, task) if program is None else _fitted(program, network, run, saved)
    if task is not None:
        return _probed(run, model, weights, task)
    if not isinstance(model, Built):
        kind = f"a run of the task `{run.settings.get('task')}` is shown its own data alone"
        raise TaskError(f"{kind}: leave out --input" if inputs else kind + gone)
    letters = letters_of(run, model) if model.network.ids else None
    made = given(model.network, inputs, letters=letters)
    return _shown(run.name, model, weights, made._replace(said=made.said + gone), trained=True)


def _fitted(program: Path, network: str | None, run: Run, saved: Checkpoint) -> Built:
    """The program's network with the run's weights."""
    source_of(program)
    plan = load(program, network=network)
    model = plan.build()
    try:
        load_weights(model, saved)
    except RuntimeError:
        misfit = f"the weights of {run.name} do not fit {plan.name} in {program}"
        raise TaskError(f"{misfit}; leave the program out to take the run's own") from None
    return model.eval()


def _shown(name: str, model: Any, weights: str, made: Given, *, trained: bool) -> Subject:
    """A network of the language and tensors for it."""
    tokens = made.tensors[0] if model.network.ids else None
    return Subject(
        name=name, model=model, weights=weights, trained=trained, shown=made.said,
        forward=lambda: model(*made.tensors), objective=lambda: model.scores(*made.tensors).square().mean() / 2,
        objective_name="half the mean square of the scores (there are no answers to compare with)", tokens=tokens,
        source=made.source, target=made.target,
    )  # fmt: skip


def _probed(run: Run, model: nn.Module, weights: str, task: Task) -> Subject:
    """A run's model and the probe that it was tracked with."""
    batch = task.probe()
    labels = task.labels(batch)
    two = "target" in batch
    examples = len(next(iter(batch.values())))
    return Subject(
        name=run.name, model=model.eval(), weights=weights, trained=True,
        shown=f"the probe of the run: {examples} example{'s' * (examples != 1)} of its own data, the first one shown",
        forward=lambda: task.look(model, batch), objective=lambda: task.loss(model, task.batch(0))[0],
        objective_name="the loss of the first training batch", tokens=task.tokens(batch),
        source=labels[0] if labels else None,
        target=[str(one) for one in batch["target"][0].tolist()] if two and labels else None,
    )  # fmt: skip


def _fitting(labels: Labels | None, count: int) -> Labels | None:
    return labels[:count] if labels is not None and len(labels) >= count else None
