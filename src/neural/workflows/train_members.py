"""Train an ensemble: several models with different seeds, one after the other, as one run.

    runs/2026-11-18_00-30-12_articles/           the run of the ensemble
      checkpoints/                               weights of all members, once all are trained
      members/2026-11-18_00-30-13_seed-0/        a run like any other, for each member

A step of the ensemble's run is a step of one of its members. After each member, the validation
scores of the ensemble so far are logged as `ensemble/…`, after the last one also as `valid/…`. A
killed training resumes in the member that was not finished: members resume bit for bit, so the
ensemble does, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from neural.core.settings import dump_settings
from neural.nn.lazy_torch import torch
from neural.runs.folder import load_status
from neural.runs.run import Run
from neural.tasks.task import Task, split_scores
from neural.training.engine import TrainingProgress, TrainingResult, count_steps
from neural.training.engine import fit as fit_task
from neural.training.load_model import load_best_model
from neural.training.process_group import ProcessGroup

if TYPE_CHECKING:
    from torch import nn

MEMBERS_DIR = "members"
"""Folder of the members' runs in the run of an ensemble."""
CreateRun = Callable[[Task, Path], Run]


def train_members(
    task: Task,
    run: Run | None,
    create_run: CreateRun,
    *,
    group: ProcessGroup,
    on_step: Callable[[TrainingProgress], None],
    on_warning: Callable[[str], None],
) -> TrainingResult:
    """Train the members of `task`, and save their ensemble in `run`, which is closed.

    `create_run` creates the run of a member in a folder. In a group of several processes only
    rank 0 has a run.
    """
    training = _EnsembleTraining(task, run, create_run, group, on_step, on_warning)
    try:
        result = training.train()
    except KeyboardInterrupt:
        if run is not None:
            run.finish("stopped", "stopped at once; resumes from the last checkpoint")
        raise
    except BaseException as error:
        if run is not None:
            run.finish("failed", f"{type(error).__name__}: {error}")
        raise
    if run is not None:
        run.finish(result.state, result.message)
    return result


class _EnsembleTraining:
    """The training of all members in one process."""

    def __init__(
        self,
        task: Task,
        run: Run | None,
        create_run: CreateRun,
        group: ProcessGroup,
        on_step: Callable[[TrainingProgress], None],
        on_warning: Callable[[str], None],
    ) -> None:
        self.task, self.run, self.create_run, self.group = task, run, create_run, group
        self.on_step, self.on_warning = on_step, on_warning
        self.members = task.members()
        self.member_steps = count_steps(self.members[0], group.size)
        """Steps of one member; those that early stopping saves are counted, too."""
        self.steps = len(self.members) * self.member_steps

    def train(self) -> TrainingResult:
        """Train all members that are not finished, and save the ensemble."""
        models: list[nn.Module] = []
        scores: dict[str, float] = {}
        for index in range(len(self.members)):
            path, result = self.train_member(index)
            if result is not None and result.state != "finished":
                step = index * self.member_steps + result.step
                message = f"model {index + 1} of {len(self.members)}: {result.message}"
                return TrainingResult(result.state, step, scores, message)
            if path is not None:
                models.append(load_best_model(path, self.members[index]))
                scores = self.log_scores(models)
        if self.run is not None:
            self.save_ensemble(self.run, models, scores)
        return TrainingResult("finished", self.steps, self.group.broadcast_object(scores), "")

    def train_member(self, index: int) -> tuple[Path | None, TrainingResult | None]:
        """Train or resume a member. Returns its run folder, which only rank 0 has, and the result.

        The result is None if the member was finished before.
        """
        member, path = self.members[index], None
        if self.run is not None:
            folders = (self.run.path / MEMBERS_DIR).glob(f"[!.]*_{member.experiment.name}")
            path = next(iter(sorted(folders)), None)
        is_finished = path is not None and load_status(path).state == "finished"
        if self.group.broadcast_object(is_finished):
            return path, None
        member_run = None
        if self.run is not None:
            member_run = (
                self.create_run(member, self.run.path / MEMBERS_DIR)
                if path is None
                else Run.reopen(path)
            )
            path = member_run.path

        def show_step(progress: TrainingProgress) -> None:
            step = index * self.member_steps + progress.step
            if self.run is not None:
                self.run.heartbeat(step, steps=self.steps, loss=progress.loss)
            count = len(self.members)
            self.on_step(
                replace(progress, step=step, steps=self.steps, member=index + 1, members=count)
            )

        result = fit_task(
            member, member_run, group=self.group, on_step=show_step, on_warning=self.on_warning
        )
        return path, result

    def log_scores(self, models: Sequence[nn.Module]) -> dict[str, float]:
        """Log the validation scores of the ensemble of the members so far, and return them."""
        assert self.run is not None
        with torch.no_grad():
            scores, arrays = split_scores(self.task.evaluate(self.task.combine(models).eval()))
        step = len(models) * self.member_steps
        by_size = {name.replace("valid/", "ensemble/"): value for name, value in scores.items()}
        self.run.log(step, by_size)
        if len(models) == len(self.members):
            # Only these are scores of the run: it has no checkpoint of a smaller ensemble.
            self.run.log(step, scores)
            self.run.log_arrays(step, arrays)
        return scores

    def save_ensemble(
        self, run: Run, models: Sequence[nn.Module], scores: dict[str, float]
    ) -> None:
        """Save the weights of all members as the checkpoint of the run."""
        settings = dump_settings(self.task.experiment)
        if run.settings != settings:  # resumed with more members
            run.replace_settings(settings, self.task.program)
        ensemble = self.task.combine(models)
        batches_per_step = (
            self.task.experiment.training.gradient_accumulation_steps * self.group.size
        )
        metadata = {
            "parameters": sum(param.numel() for param in ensemble.parameters()),
            "steps": self.steps,
            "batches_per_epoch": self.task.batches_per_epoch / batches_per_step,
            **self.task.metadata(),
        }
        for key, value in metadata.items():
            run.set_metadata(key, value)
        tensors = {f"model.{name}": tensor for name, tensor in ensemble.state_dict().items()}
        run.heartbeat(self.steps, steps=self.steps, best=scores)
        run.save(self.steps, tensors, {}, best=True)
