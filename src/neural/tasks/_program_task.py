"""Tasks whose network is a `.neural` program: loading, checking, training settings, loss.

A program is the source text of a network in the `.neural` language (neural.language). An experiment
is a settings file that names a program. Its settings take precedence; the program's block
`train { … }` fills in the rest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from neural.core.diagnostics import SourceText, render_diagnostic
from neural.core.errors import TaskError
from neural.core.experiment import TrainingSettings
from neural.core.files import expand_home, read_source_text
from neural.core.settings_errors import format_validation_error
from neural.language.check import check
from neural.language.network import Network
from neural.language.summary import format_summary
from neural.nn.build import NetworkModule, build
from neural.optim.optimizer import Optimizer
from neural.optim.optimizer_factory import create_optimizer
from neural.tasks.task import Task

if TYPE_CHECKING:
    from neural.language.catalogue import Catalogue
    from neural.language.loss import Loss

PROGRAM_TO_EXPERIMENT_KEYS = {"early_stopping_patience": "patience"}
"""Keys of `train { … }` that have another name in an experiment."""


class ProgramTask(Task):
    """Base class of tasks whose network is one program."""

    source: SourceText
    """Text and name of the program."""
    network: Network
    """The checked program."""

    @property
    def optimizer(self) -> Optimizer:
        """The program's optimizer, unless the experiment names another."""
        declared = self.network.optimizer
        return create_optimizer(
            self.experiment.training, declared if isinstance(declared, Optimizer) else None
        )

    def build(self) -> NetworkModule:
        """A new module of the network."""
        return build(self.network)

    def model_summary(self) -> str:
        """Table of the layers with shapes and parameters."""
        return format_summary(self.network)

    @property
    def program(self) -> str:
        """The text of the program."""
        return self.source.text


def load_program(network: str, folder: Path) -> SourceText:
    """Program text: `network` itself if it contains a brace, else the file of that name."""
    if "{" in network:
        return SourceText("the program", network)
    path = folder / expand_home(network)
    try:
        return read_source_text(path, network)
    except OSError as error:
        raise TaskError(
            f"the network `{network}` cannot be read: {error.strerror} ({path.absolute()})"
        ) from None


def check_program(source: SourceText, catalogue: Catalogue, name: str | None) -> Network:
    """The checked network of a program. Raises TaskError with all diagnostics.

    `catalogue` holds the known layers, losses and optimizers; `name` selects one of several
    networks.
    """
    result = check(source.text, catalogue, network=name)
    if result.errors:
        raise TaskError(
            "\n".join(render_diagnostic(diagnostic, source) for diagnostic in result.errors)
        )
    return result.networks[0]


def merge_training(settings: TrainingSettings, network: Network) -> TrainingSettings:
    """Training settings of the experiment; unset ones come from the program's `train { … }`."""
    program_settings: dict[str, Any] = {
        PROGRAM_TO_EXPERIMENT_KEYS.get(name, name): getattr(network.train, name)
        for name in type(network.train).argument_specs()
        if PROGRAM_TO_EXPERIMENT_KEYS.get(name, name) in TrainingSettings.model_fields
    }
    if network.optimizer is not None:
        program_settings["optimizer"] = repr(network.optimizer)
    experiment_settings = settings.model_dump(include=set(settings.model_fields_set))
    if experiment_settings.keys() & {"steps", "epochs"}:
        # Both limit the training: the experiment's `epochs` replaces the program's `steps` too.
        program_settings |= {"steps": None, "epochs": None}
    try:
        return TrainingSettings.model_validate({**program_settings, **experiment_settings})
    except ValidationError as error:
        raise TaskError(
            f"`train` of {network.name}, merged with the experiment: "
            f"{format_validation_error(error)}"
        ) from None


def resolve_loss(network: Network, label_smoothing: float) -> Loss:
    """The program's loss, with the experiment's label smoothing."""
    loss = network.loss
    if loss is None:
        raise TaskError(f'{network.name} has no loss: add a line such as `loss: "mse"`')
    if not label_smoothing:
        return loss
    if "label_smoothing" not in loss.argument_specs():
        raise TaskError(
            f"`label_smoothing` is {label_smoothing}, but {loss!r} has no label smoothing; "
            "leave it out"
        )
    program_smoothing = getattr(loss, "label_smoothing", 0.0)
    if program_smoothing not in (0.0, label_smoothing):
        raise TaskError(
            f"`label_smoothing` is {label_smoothing} in the experiment and {program_smoothing} "
            "in the program; keep one"
        )
    return replace(loss, label_smoothing=label_smoothing)  # type: ignore[call-arg]  # checked above


def remove_label_smoothing(loss: Loss) -> Loss:
    """The same loss without label smoothing, for validation."""
    if not getattr(loss, "label_smoothing", 0.0):
        return loss
    return replace(loss, label_smoothing=0.0)  # type: ignore[call-arg]  # checked above
