"""Experiments: the documents' files are read as they stand, and what cannot hold together is refused."""

from pathlib import Path
from typing import Literal

import pytest
from pydantic import Field

from neural.core.diagnostics import Source
from neural.core.registry import UnknownName
from neural.core.schema import tables
from neural.core.settings import Settings, SettingsError, read_settings, resolved, restored
from neural.tasks.experiment import Count, Experiment, Tracking, Training, read_experiment

# as people write them, remarks included
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
"""  # noqa: W293


class Model(Settings):
    """The network."""

    hidden_dim: Count = Field(256, description="Width of one direction.")
    num_layers: Count = Field(1, description="Recurrent layers.")
    attention_enabled: bool = Field(True, description="Whether there is attention.")
    attention_type: Literal["self", "localized", "boundary_aware"] = Field("self", description="Which one.")
    attention_heads: Count = Field(8, description="How many.")
    attention_dropout: float = Field(0.1, ge=0, lt=1, description="Of the weights.")
    attention_dim: Count = Field(256, description="Width of the attention.")
    positional_encoding: bool = Field(False, description="Whether positions are added.")
    window_size: Count = Field(7, description="For localized attention.")


class BoundaryTraining(Training):
    """How to train, and what else is in the loss."""

    entropy_lambda: float = Field(0.0, ge=0, description="Weight of the confidence penalty.")


class Boundaries(Experiment):
    """Where one topic ends and the next begins."""

    task: str = Field("boundaries", description="What is learned.")
    model: Model = Field(default_factory=Model, description="The network.")
    training: BoundaryTraining = Field(default_factory=BoundaryTraining, description="How to train.")


def choose(name: str) -> type[Experiment]:
    if name != "boundaries":
        raise UnknownName("task", name, "boundaries" if name.startswith("bound") else None)
    return Boundaries


def wrong(text: str, *changes: str) -> list[tuple[str, str]]:
    with pytest.raises(SettingsError) as error:
        read_experiment(Source("a.yaml", text), changes, choose=choose)
    return [(one.code, one.message) for one in error.value.diagnostics]


def test_the_document_is_read_as_it_stands():
    made = read_settings(Boundaries, Source("a.yaml", DOCUMENT))
    assert made == Boundaries(
        model=Model(num_layers=2, attention_dropout=0.15),
        training=BoundaryTraining(
            batch_size=24, learning_rate=0.0004, scheduler="cosine", label_smoothing=0.1, entropy_lambda=0.08
        ),
    )
    with_task = read_experiment(Source("a.yaml", DOCUMENT), ["task=boundaries"], choose=choose)
    assert with_task == made


def test_a_misspelt_key_of_the_document_is_guessed_whichever_class_declares_it():
    text = DOCUMENT.replace("entropy_lambda", "entropy_lamda").replace("batch_size", "bach_size")
    with pytest.raises(SettingsError) as error:
        read_settings(Boundaries, Source("a.yaml", text))
    assert [one.helps for one in error.value.diagnostics] == [
        ("did you mean `batch_size`?",), ("did you mean `entropy_lambda`?",)
    ]  # fmt: skip


def test_an_experiment_without_a_task_says_what_to_write():
    with pytest.raises(SettingsError, match=r"`task` is missing"):
        read_experiment(Source("a.yaml", DOCUMENT), choose=choose)


def test_an_unknown_task_is_guessed():
    assert wrong("task: boundary\nmodel: {}\n") == [("E0808", "no task is called `boundary`")]


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ("steps: 10\n  epochs: 2", "`steps` and `epochs` both say how long to train"),
        ("steps: 10\n  warmup_steps: 10", "the warm-up of 10 steps does not end within 10"),
        ("learning_rate: 1e-4\n  min_learning_rate: 1e-3", "the smallest rate is above the peak"),
    ],
)
def test_what_cannot_hold_together_is_refused(training, message):
    assert wrong(f"task: boundaries\ntraining:\n  {training}\n") == [("E0807", message)]


def test_null_takes_back_what_a_file_says():
    source = Source("a.yaml", "task: boundaries\ntraining: {steps: 10}")
    made = read_experiment(source, ["training.steps=null", "training.epochs=2"], choose=choose)
    assert (made.training.steps, made.training.epochs) == (None, 2.0)


def test_the_words_of_programs_are_understood_in_experiments():
    text = "early_stopping_patience: 3\nlr: 0.1\nclipnorm: 1"
    assert read_settings(Training, Source("a.yaml", text)) == Training(patience=3, learning_rate=0.1, clip_norm=1.0)


def test_a_name_that_cannot_be_a_folder_is_refused():
    assert wrong("task: boundaries\nname: ../../etc\n") == [
        ("E0803", "`name` must be up to 80 letters, digits, `.`, `_` and `-`, got ../../etc")
    ]


def test_what_is_saved_with_a_run_holds_everything_and_is_read_back():
    made = Boundaries(tracking=Tracking(measures=("entropy", "span")), training=BoundaryTraining(steps=3))
    data = resolved(made)
    assert data["training"]["batch_size"] == 32
    assert data["tracking"]["measures"] == ["entropy", "span"]
    assert restored(Boundaries, data) == made


def test_every_field_says_what_it_is_for():
    for kind in (Training, Tracking, Experiment):
        assert all((one.description or "").endswith(".") for one in kind.model_fields.values())


def test_the_page_about_experiments_lists_the_keys_that_there_are():
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    expected = "\n".join(tables(Experiment))
    assert expected in page, f"docs/experiments.md wants this:\n\n{expected}"
