"""A program in an experiment: its text, its network, and what it says about training where the experiment does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from neural.core.diagnostics import Source, render
from neural.core.files import read_start
from neural.core.mistakes import briefly
from neural.language.check import check
from neural.language.network import Network
from neural.language.parser import LARGEST
from neural.language.summary import text_table
from neural.modules.build import Built, build
from neural.tasks.experiment import Training
from neural.tasks.task import Task, TaskError

if TYPE_CHECKING:
    from neural.language.catalogue import Catalogue
    from neural.language.loss import Loss

RENAMED = {"early_stopping_patience": "patience"}
"""Keys of `train { … }` that an experiment calls otherwise."""


class ProgramTask(Task):
    """A task whose network is one program."""

    source: Source
    network: Network

    def build(self) -> Built:
        """The network as a module."""
        return build(self.network)

    def layout(self) -> str:
        """Layer by layer."""
        return text_table(self.network)

    @property
    def program(self) -> str:
        """The text of the program."""
        return self.source.text


def program_source(network: str, folder: Path) -> Source:
    """The program's text: what was written, if it has a brace, else the file of that name."""
    if "{" in network:
        return Source("the program", network)
    path = folder / Path(network).expanduser()
    try:
        return Source(network, read_start(path, 4 * LARGEST + 1))
    except OSError as problem:
        raise TaskError(f"the network `{network}` cannot be read: {problem.strerror} ({path.absolute()})") from None


def checked(source: Source, catalogue: Catalogue, name: str | None) -> Network:
    """The network of the program; TaskError shows every mistake in it."""
    found = check(source.text, catalogue, network=name)
    if found.mistakes:
        raise TaskError("\n".join(render(one, source) for one in found.mistakes))
    return found.networks[0]


def own_training(said: Training, network: Network) -> Training:
    """How to train: as the experiment says, and where it says nothing, as the program does."""
    own: dict[str, Any] = {
        RENAMED.get(name, name): getattr(network.train, name)
        for name in type(network.train).settings()
        if RENAMED.get(name, name) in Training.model_fields
    }
    if network.optimizer is not None:
        own["optimizer"] = repr(network.optimizer)
    theirs = said.model_dump(include=set(said.model_fields_set))
    if theirs.keys() & {"steps", "epochs"}:
        own |= {"steps": None, "epochs": None}
    try:
        return Training.model_validate({**own, **theirs})
    except ValidationError as problem:
        raise TaskError(f"`train` of {network.name}, with the experiment: {briefly(problem)}") from None


def loss_of(network: Network, smoothing: float) -> Loss:
    """The loss to train with: the program's, smoothed where the experiment says so."""
    loss = network.loss
    if loss is None:
        raise TaskError(f'{network.name} has no loss: add a line such as `loss: "mse"`')
    if not smoothing:
        return loss
    if "label_smoothing" not in loss.settings():
        raise TaskError(f"`label_smoothing` is {smoothing}, but {loss!r} has no labels to smooth; leave it out")
    own = getattr(loss, "label_smoothing", 0.0)
    if own not in (0.0, smoothing):
        raise TaskError(f"`label_smoothing` is {smoothing} in the experiment and {own} in the program; keep one")
    return replace(loss, label_smoothing=smoothing)   # type: ignore[call-arg]  # it has the setting


def unsmoothed(loss: Loss) -> Loss:
    """The same loss with labels as they are: what validation measures, however training smooths."""
    if not getattr(loss, "label_smoothing", 0.0):
        return loss
    return replace(loss, label_smoothing=0.0)   # type: ignore[call-arg]  # it has the setting
