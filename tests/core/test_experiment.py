"""Experiments: the example of the documentation, conflicts between settings, saving and loading."""

from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from neural.core.diagnostics import SourceText
from neural.core.experiment import (
    Experiment,
    PositiveInt,
    TrackingSettings,
    TrainingSettings,
)
from neural.core.registry import UnknownNameError
from neural.core.schema import format_tables
from neural.core.settings import (
    Settings,
    SettingsError,
    dump_settings,
    load_settings,
    read_settings,
    read_settings_by_key,
)

# as users write it, with comments and trailing spaces
DOCUMENT = """\
model:
  hidden_dim: 256
  num_layers: 2
  attention_enabled: true
  attention_heads: 8
  attention_dropout: 0.15
  attention_dim: 256
  positional_encoding: false  # Disabled - BiLSTM provides sequence order
  
training:
  batch_size: 24
  learning_rate: 0.0004
  scheduler: cosine
  label_smoothing: 0.1
  entropy_lambda: 0.08  # Attention head diversity regularization
"""  # noqa: W293 (white space on an empty line is part of the text)


class Model(Settings):
    """The network."""

    hidden_dim: PositiveInt = Field(256, description="Width of one direction.")
    num_layers: PositiveInt = Field(1, description="Recurrent layers.")
    attention_enabled: bool = Field(True, description="Whether there is attention.")
    attention_type: Literal["self", "localized", "boundary_aware"] = Field(
        "self", description="Which one."
    )
    attention_heads: PositiveInt = Field(8, description="How many.")
    attention_dropout: float = Field(0.1, ge=0, lt=1, description="Of the weights.")
    attention_dim: PositiveInt = Field(256, description="Width of the attention.")
    positional_encoding: bool = Field(False, description="Whether positions are added.")
    window_size: PositiveInt = Field(7, description="For localized attention.")


class BoundaryTraining(TrainingSettings):
    """How to train, and what else is in the loss."""

    entropy_lambda: float = Field(0.0, ge=0, description="Weight of the confidence penalty.")


class Boundaries(Experiment):
    """Where one topic ends and the next begins."""

    task: str = Field("boundaries", description="What is learned.")
    model: Model = Field(default_factory=Model, description="The network.")
    training: BoundaryTraining = Field(
        default_factory=BoundaryTraining, description="How to train."
    )


def find_settings(name: str) -> type[Experiment]:
    if name != "boundaries":
        raise UnknownNameError("task", name, "boundaries" if name.startswith("bound") else None)
    return Boundaries


def read_experiment(text: str, *overrides: str) -> Experiment:
    return read_settings_by_key(
        Experiment, "task", find_settings, SourceText("a.yaml", text), overrides
    )


def get_errors(text: str, *overrides: str) -> list[tuple[str, str]]:
    with pytest.raises(SettingsError) as error:
        read_experiment(text, *overrides)
    return [(diagnostic.code, diagnostic.message) for diagnostic in error.value.diagnostics]


def test_the_documented_example_is_read():
    experiment = read_settings(Boundaries, SourceText("a.yaml", DOCUMENT))
    assert experiment == Boundaries(
        model=Model(num_layers=2, attention_dropout=0.15),
        training=BoundaryTraining(
            batch_size=24,
            learning_rate=0.0004,
            scheduler="cosine",
            label_smoothing=0.1,
            entropy_lambda=0.08,
        ),
    )
    with_task = read_experiment(DOCUMENT, "task=boundaries")
    assert with_task == experiment


def test_a_misspelt_key_is_guessed_whichever_class_declares_it():
    text = DOCUMENT.replace("entropy_lambda", "entropy_lamda").replace("batch_size", "bach_size")
    with pytest.raises(SettingsError) as error:
        read_settings(Boundaries, SourceText("a.yaml", text))
    assert [diagnostic.helps for diagnostic in error.value.diagnostics] == [
        ("did you mean `batch_size`?",),
        ("did you mean `entropy_lambda`?",),
    ]


def test_a_missing_task_is_reported():
    with pytest.raises(SettingsError, match=r"`task` is missing"):
        read_experiment(DOCUMENT)


def test_an_unknown_task_is_guessed():
    assert get_errors("task: boundary\nmodel: {}\n") == [("E0808", "no task is called `boundary`")]


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ("steps: 10\n  epochs: 2", "`steps` and `epochs` both say how long to train"),
        ("steps: 10\n  warmup_steps: 10", "the warm-up of 10 steps does not end within 10"),
        ("learning_rate: 1e-4\n  min_learning_rate: 1e-3", "the smallest rate is above the peak"),
    ],
)
def test_conflicting_settings_are_refused(training, message):
    assert get_errors(f"task: boundaries\ntraining:\n  {training}\n") == [("E0807", message)]


def test_null_unsets_a_key_of_the_file():
    text = "task: boundaries\ntraining: {steps: 10}"
    experiment = read_experiment(text, "training.steps=null", "training.epochs=2")
    assert (experiment.training.steps, experiment.training.epochs) == (None, 2.0)


def test_keys_of_programs_are_aliases_in_experiments():
    text = "early_stopping_patience: 3\nlr: 0.1\nclipnorm: 1"
    assert read_settings(TrainingSettings, SourceText("a.yaml", text)) == TrainingSettings(
        patience=3, learning_rate=0.1, clip_norm=1.0
    )


def test_a_name_that_cannot_be_a_folder_is_refused():
    assert get_errors("task: boundaries\nname: ../../etc\n") == [
        ("E0803", "`name` must be up to 80 letters, digits, `.`, `_` and `-`, got ../../etc")
    ]


def test_saved_settings_are_complete_and_can_be_loaded():
    experiment = Boundaries(
        tracking=TrackingSettings(measures=("entropy", "span")), training=BoundaryTraining(steps=3)
    )
    data = dump_settings(experiment)
    assert data["training"]["batch_size"] == 32
    assert data["tracking"]["measures"] == ["entropy", "span"]
    assert load_settings(Boundaries, data) == experiment


def test_every_field_has_a_description():
    for kind in (TrainingSettings, TrackingSettings, Experiment):
        assert all((field.description or "").endswith(".") for field in kind.model_fields.values())


def test_the_documentation_lists_all_keys():
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    expected = "\n".join(format_tables(Experiment))
    assert expected in page, f"docs/experiments.md must contain:\n\n{expected}"
