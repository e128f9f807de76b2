"""The segmentation task: settings, documents, losses and scores together."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.core.diagnostics import SourceText
from neural.core.errors import TaskError
from neural.core.settings import SettingsError, read_settings
from neural.optim.catalogue import CATALOGUE
from neural.runs.find import open_run
from neural.tasks.segmentation.inference import compute_logits
from neural.tasks.segmentation.model_builder import build_segmenter
from neural.tasks.segmentation.settings import PRESETS, SegmentationSettings, apply_preset
from neural.tasks.segmentation.task import Segmentation
from neural.tasks.task import split_scores
from neural.training.engine import fit
from neural.training.load_model import load_best_model
from neural.training.load_task import load_task, restore_task
from neural.training.loss_module import LossModule, compute_shares
from neural.workflows.train import create_run

EXAMPLES = Path(__file__).parents[3] / "examples" / "segmentation"
SMALL_MODEL = {
    "hidden_dim": 3,
    "num_layers": 1,
    "attention_heads": 2,
    "attention_dim": 4,
    "dropout": 0.0,
}
WORDS = ("red green blue grey", "one two three four", "north south east west")


def make_song(number, *, labels=False, lines=9):
    """JSON of three segments of three lines, each with its own words."""
    rng = np.random.default_rng(number)
    vocabularies = [WORDS[(number + line // 3) % 3].split() for line in range(lines)]
    row = {
        "lines": [" ".join(rng.choice(vocabulary, 4)) for vocabulary in vocabularies],
        "name": f"song {number}",
    }
    truth = (
        {"labels": [("verse", "chorus")[line // 3 % 2] for line in range(lines)]}
        if labels
        else {"boundaries": [3, 6]}
    )
    return json.dumps({**row, **truth})


def drop_late_boundaries(row):
    """The JSON of a song without boundaries after its last line."""
    data = json.loads(row)
    boundaries = [start for start in data["boundaries"] if start < len(data["lines"])]
    return json.dumps({**data, "boundaries": boundaries})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "songs.jsonl").write_text("\n".join(make_song(number) for number in range(20)))
    labelled = [make_song(number, labels=True) for number in range(20)]
    (tmp_path / "labelled.jsonl").write_text("\n".join(labelled))
    return tmp_path


def create_task(folder, **settings):
    defaults = {"data": "songs.jsonl", "features": "word_overlap", "model": SMALL_MODEL}
    settings = SegmentationSettings.model_validate({**defaults, **settings})
    return Segmentation(settings, folder, CATALOGUE)


def build_model(task):
    torch.manual_seed(0)
    return task.build().eval()


def read(text, *overrides):
    return read_settings(SegmentationSettings, SourceText("experiment.yaml", text), overrides)


def test_the_published_keys_are_read():
    settings = read("""
task: segmentation
model:
  hidden_dim: 256
  num_layers: 2
  attention_enabled: true
  attention_heads: 8
  attention_dropout: 0.15
  attention_dim: 256
  positional_encoding: false
  attention_type: localized
  window_size: 7
training:
  batch_size: 24
  learning_rate: 0.0004
  scheduler: cosine
  label_smoothing: 0.1
  entropy_lambda: 0.08
  patience: 20
""")
    assert settings.model.attention_type == "localized"
    assert settings.training.entropy_lambda == 0.08
    assert settings.data == "handbook"


def test_a_width_that_heads_do_not_divide_is_refused_with_its_line():
    with pytest.raises(SettingsError, match=r"256 = 7 × 36 \+ 4") as caught:
        read("task: segmentation\nmodel:\n  attention_heads: 7\n  attention_dim: 256\n")
    assert "experiment.yaml:3" in str(caught.value)
    with pytest.raises(SettingsError, match=r"256 = 7 × 36 \+ 4"):
        read("task: segmentation\nmodel:\n  attention_heads: 7\n")


def test_an_even_window_is_refused_with_its_line():
    with pytest.raises(SettingsError, match="`window_size` must be odd, got 6") as caught:
        read("task: segmentation\nmodel:\n  window_size: 6\n")
    assert "experiment.yaml:3" in str(caught.value)
    assert "write 7" in str(caught.value)


def test_a_penalty_on_similar_heads_needs_heads():
    with pytest.raises(SettingsError, match="head_diversity_lambda needs attention_heads > 1"):
        read(
            "task: segmentation\nmodel: {attention_enabled: false}\n"
            "training: {head_diversity_lambda: 0.1}\n"
        )


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("document_self", 2_755_842),
        ("document_localized", 446_466),
        ("document_boundary_aware", 479_491),
        ("document_small", 87_939),
    ],
)
def test_the_published_presets_have_the_published_sizes(name, parameters):
    settings = apply_preset(SegmentationSettings(preset=name, labels=("inside", "boundary")), name)
    with torch.device("meta"):
        model = build_segmenter(settings)
    assert sum(param.numel() for param in model.parameters()) == parameters


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_settings_override_the_preset(name):
    settings = SegmentationSettings.model_validate(
        {"preset": name, "model": {"num_layers": 3}, "training": {"steps": 5, "batch_size": 7}}
    )
    filled = apply_preset(settings, name)
    assert (filled.model.num_layers, filled.training.batch_size, filled.training.steps) == (3, 7, 5)
    assert filled.training.epochs is None
    assert filled.model.hidden_dim == PRESETS[name]["model"]["hidden_dim"]
    assert apply_preset(filled, name) == filled


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": {"attention_heads": 7}}, "heads must share the width evenly: 64 = 7 × 9 + 1"),
        (
            {"model": {"attention_heads": 1}, "training": {"head_diversity_lambda": 0.1}},
            "head_diversity_lambda needs attention_heads > 1",
        ),
    ],
)
def test_settings_that_contradict_their_preset_are_refused(folder, settings, message):
    settings = SegmentationSettings.model_validate(
        {"data": "songs.jsonl", "preset": "articles", **settings}
    )
    expected = re.escape(f"the settings contradict the preset `articles`: {message}")
    with pytest.raises(TaskError, match=expected):
        Segmentation(settings, folder, CATALOGUE)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_begins_with_its_command_and_its_settings_are_valid(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# neural train examples/segmentation/{path.name}\n")
    settings = read(text)
    assert settings.data == "handbook"
    resolved = apply_preset(settings, settings.preset).model_copy(
        update={"labels": ("inside", "boundary")}
    )
    with torch.device("meta"):
        build_segmenter(resolved)


def test_the_published_example_is_the_published_preset():
    example = read((EXAMPLES / "document_self.yaml").read_text(encoding="utf-8"))
    preset = apply_preset(
        SegmentationSettings(preset="document_self", name="document-self"), "document_self"
    )
    assert example.model == preset.model
    assert example.features == preset.features
    assert example.training.model_copy(update={"boundary_lambda": 0.0}) == preset.training


def test_the_first_element_is_not_a_boundary_target(folder):
    task = create_task(folder)
    assert task.experiment.labels == ("inside", "boundary")
    batch = task.batch(0)
    assert (batch["target"] == batch["boundaries"]).all()
    model = build_model(task)
    loss = task.loss(model, batch)[0]
    batch["target"][:, 0] = 1  # not a target
    torch.testing.assert_close(task.loss(model, batch)[0], loss)


@pytest.mark.parametrize("data", ["songs.jsonl", "labelled.jsonl"])
def test_predictions_of_the_validation_documents_are_logged_and_can_be_scored(folder, data):
    task = create_task(folder, data=data)
    scores, arrays = split_scores(task.evaluate(build_model(task)))
    record = task.metadata()["segmentation/held_out"]
    assert len(arrays["valid/boundary_probabilities"]) == sum(record["lengths"])
    assert record["documents"] == len(task.valid)
    is_predicted = arrays["valid/boundary_probabilities"] > scores["valid/threshold"]
    starts = np.cumsum([0, *record["lengths"][:-1]])
    is_true = np.zeros(len(is_predicted), bool)
    for start, boundaries in zip(starts, record["boundaries"], strict=True):
        is_true[start + np.array(boundaries, int)] = True
    f1 = 2 * (is_predicted & is_true).sum() / (is_predicted.sum() + is_true.sum())
    assert scores["valid/f1"] == pytest.approx(f1)
    assert record["shown"][0]["texts"] == list(task.documents[len(task.train)].elements)
    if task.experiment.learn == "labels":
        assert len(arrays["valid/predicted_labels"]) == sum(record["lengths"])
        assert record["shown"][0]["labels"] == task.valid[0].target.tolist()


def test_labels_are_the_target_if_the_data_has_them(folder):
    task = create_task(folder, data="labelled.jsonl")
    assert task.experiment.learn == "labels"
    assert task.experiment.labels == ("verse", "chorus")
    scores = task.evaluate(build_model(task))
    assert 0 <= scores["valid/label_f1"] <= 1
    assert create_task(folder, data="labelled.jsonl", learn="boundaries").experiment.labels == (
        "inside",
        "boundary",
    )


def test_missing_labels_are_refused(folder):
    with pytest.raises(TaskError, match=r"song .* has no labels; write `learn: boundaries`"):
        create_task(folder, learn="labels")


def test_documents_without_a_boundary_are_refused(folder):
    row = json.dumps({"lines": ["a", "b"], "boundaries": []})
    (folder / "one.jsonl").write_text("\n".join([row] * 5))
    with pytest.raises(TaskError, match="no boundary in 5 documents"):
        create_task(folder, data="one.jsonl")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": {**SMALL_MODEL, "attention_type": "localised"}}, "did you mean `localized`"),
        ({"model": {**SMALL_MODEL, "positional_encoding": "rotery"}}, "did you mean `rotary`"),
        ({"model": {**SMALL_MODEL, "positional_encoding": "learned"}}, "maximum sequence length"),
        ({"features": "word_overlp"}, "did you mean `word_overlap`"),
        ({"data": "nothing.jsonl"}, "there is no data `nothing.jsonl`"),
        (
            {"training": {"class_weights": (1.0, 2.0, 3.0)}},
            "3 numbers, but there are 2 classes: inside, boundary",
        ),
    ],
)
def test_unknown_names_are_refused_before_training(folder, settings, message):
    with pytest.raises(TaskError, match=message):
        create_task(folder, **settings)


@pytest.mark.parametrize(
    "attention_type", ["self", "localized", "boundary_aware", "localized(window=3)"]
)
def test_any_mechanism_can_be_named(folder, attention_type):
    task = create_task(
        folder, model={**SMALL_MODEL, "attention_type": attention_type, "window_size": 5}
    )
    mechanism = task.build().attention.heads.mechanism
    assert repr(mechanism) == {"localized": "localized(window=5)"}.get(
        attention_type, repr(mechanism)
    )
    assert torch.isfinite(task.loss(build_model(task), task.batch(0))[0])


def test_the_loss_is_finite_without_attention(folder):
    task = create_task(folder, model={**SMALL_MODEL, "attention_enabled": False})
    model = build_model(task)
    assert model.attention is None
    assert torch.isfinite(task.loss(model, task.batch(0))[0])


def test_each_term_of_the_loss_is_added_with_its_factor(folder):
    model = {**SMALL_MODEL, "attention_type": "boundary_aware", "attention_dropout": 0.0}

    def compute_loss(**training):
        task = create_task(folder, model=model, training={"boundary_lambda": 0.0, **training})
        torch.manual_seed(1)
        return task.loss(build_model(task), task.batch(0))

    cross_entropy, terms = compute_loss()
    assert terms == {}
    for name, metric, sign in (
        ("boundary_lambda", "train/boundary_loss", 1),
        ("entropy_lambda", "train/entropy", -1),
        ("head_diversity_lambda", "train/head_similarity", 1),
    ):
        loss, terms = compute_loss(**{name: 0.5})
        torch.testing.assert_close(loss, cross_entropy + sign * 0.5 * terms[metric])
    assert compute_loss(boundary_weight=4.0)[0] != cross_entropy
    assert compute_loss(class_weights=(1.0, 9.0))[0] != cross_entropy
    assert compute_loss(label_smoothing=0.2)[0] != cross_entropy


@pytest.mark.parametrize("data", ["songs.jsonl", "labelled.jsonl"])
@pytest.mark.parametrize(
    "training",
    [
        {},
        {"class_weights": (1.0, 9.0)},
        {"boundary_weight": 3.0},
        {"entropy_lambda": 0.1, "label_smoothing": 0.1},
    ],
    ids=lambda training: "-".join(training) or "plain",
)
def test_terms_of_the_loss_are_averaged_by_their_denominators(folder, data, training):
    """Documents of 3 to 9 lines give the same gradient one by one and in a batch."""
    labels = data == "labelled.jsonl"
    rows = [make_song(number, labels=labels, lines=3 + 2 * (number % 4)) for number in range(20)]
    rows = rows if labels else [drop_late_boundaries(row) for row in rows]
    (folder / data).write_text("\n".join(rows))
    training = {**training, "boundary_lambda": 0.5, "batch_size": 6}
    network = {**SMALL_MODEL, "attention_type": "boundary_aware"}
    task = create_task(folder, data=data, model=network, training=training)
    model, batch = build_model(task), task.batch(0)
    rows = [{name: value[row : row + 1] for name, value in batch.items()} for row in range(6)]
    weights = [task.loss_weights(row) for row in rows]
    totals = {name: sum(weight[name] for weight in weights) for name in weights[0]}
    assert len({weight["loss"] for weight in weights}) > 1
    loss_module = LossModule(task, model)
    for row, weight in zip(rows, weights, strict=True):
        loss_module(row, compute_shares(weight, totals, 1))[0].backward()
    gradients = [param.grad.clone() for param in model.parameters()]
    model.zero_grad()
    task.loss(model, batch)[0].backward()
    for param, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(gradient, param.grad, rtol=1e-4, atol=1e-6)


def test_the_validation_interval_counts_the_batches_of_all_processes(folder, monkeypatch):
    accumulating = create_task(folder, training={"batch_size": 2, "gradient_accumulation_steps": 2})
    monkeypatch.setenv("WORLD_SIZE", "2")
    distributed = create_task(folder, training={"batch_size": 2})
    assert accumulating.experiment.training.validate_every == 4
    assert distributed.experiment.training.validate_every == 4


def test_long_documents_are_split_for_training_but_not_for_validation(folder):
    task = create_task(folder, max_elements=4)
    assert max(task.batch(index)["x"].shape[1] for index in range(task.batches_per_epoch)) <= 4
    assert {len(example) for example in task.valid} == {9}


def test_inputs_are_standardized_by_the_training_documents(folder):
    task = create_task(folder)
    rows = np.concatenate([example.x for example in task.train])
    model = build_model(task)
    np.testing.assert_allclose(model.mean.numpy(), rows.mean(axis=0), atol=1e-5)
    varying = rows.std(axis=0) > 1e-3
    np.testing.assert_allclose(model.std.numpy()[varying], rows.std(axis=0)[varying], rtol=1e-3)
    assert (model.std.numpy() > 0).all()


def test_the_validation_loss_is_unweighted_and_not_smoothed(folder):
    task = create_task(folder, training={"label_smoothing": 0.3, "class_weights": "balanced"})
    model = build_model(task)
    losses = []
    logits = compute_logits(model, [example.x for example in task.valid])
    for example, scores in zip(task.valid, logits, strict=True):
        log_probs = torch.from_numpy(scores).double().log_softmax(dim=-1).numpy()
        losses += [-log_probs[i, example.target[i]] for i in range(1, len(example))]
    assert task.evaluate(model)["valid/loss"] == pytest.approx(np.mean(losses))


def test_a_threshold_of_the_settings_is_used(folder):
    model = build_model(create_task(folder))
    assert create_task(folder, threshold=0.3).evaluate(model)["valid/threshold"] == 0.3
    assert create_task(folder, threshold=0.999).evaluate(model)["valid/f1"] == 0
    assert create_task(folder).evaluate(model)["valid/f1"] > 0


def test_position_labels_mark_the_starts_of_segments(folder):
    task = create_task(folder)
    (first, *_) = task.position_labels(task.probe_batch())
    assert [line.startswith("| ") for line in first] == [
        False,
        False,
        False,
        True,
        False,
        False,
        True,
        False,
        False,
    ]


@pytest.fixture
def trained(folder):
    task = create_task(
        folder,
        model={**SMALL_MODEL, "attention_type": "boundary_aware"},
        tracking={
            "track_every": 1000,
            "measures": ("entropy",),
            "maps_every": 0,
        },  # once, before the first step
        training={"epochs": 8.0, "batch_size": 4, "learning_rate": 0.1},
    )
    run = create_run(task, folder / "runs")
    return task, run, fit(task, run)


def test_it_learns_and_its_run_can_be_reloaded(trained, folder):
    task, run, result = trained
    run = open_run(run.path)
    assert result.scores["valid/f1"] > 0.8
    assert len(run.scalars("valid/f1")[0]) == 8  # a validation per epoch
    assert "entropy" in run.measure_names()
    again = restore_task(run)
    assert again.experiment == task.experiment
    model = load_best_model(run.path, again)
    assert again.evaluate(model)["valid/f1"] == result.scores["valid/f1"]

    # the model can be loaded without the documents
    (folder / "songs.jsonl").write_text(make_song(3))
    with pytest.raises(TaskError, match="its documents changed"):
        restore_task(run)
    (folder / "songs.jsonl").unlink()
    with pytest.raises(TaskError, match="the documents of the run are missing"):
        restore_task(run)
    rebuilt = build_segmenter(
        SegmentationSettings.model_validate_json(task.experiment.model_dump_json())
    )
    rebuilt.load_state_dict(model.state_dict())
    inputs = [example.x for example in task.valid]
    for actual, expected in zip(
        compute_logits(rebuilt.eval(), inputs), compute_logits(model, inputs), strict=True
    ):
        np.testing.assert_array_equal(actual, expected)


def test_an_experiment_file_is_found_by_its_task(folder):
    (folder / "small.yaml").write_text(
        "task: segmentation\ndata: songs.jsonl\nfeatures: 36\n"
        "model: {hidden_dim: 3, attention_dim: 4, attention_heads: 2}\n"
    )
    task = load_task(folder / "small.yaml", ["model.num_layers=1"])
    assert isinstance(task, Segmentation)
    assert task.batch(0)["x"].shape[-1] == 36
    assert any("parameters: LSTM" in note for note in task.notes)


def test_averaged_weights_are_used_with_the_inputs_standardized(folder):
    task = create_task(
        folder,
        training={"steps": 6, "batch_size": 4, "ema": 0.9, "learning_rate": 0.1},
        tracking={"track_every": 0},
    )
    run = create_run(task, folder / "runs")
    result = fit(task, run)
    rebuilt = load_best_model(run.path, _TaskWithoutData(task))
    assert split_scores(task.evaluate(rebuilt))[0] == result.scores


class _TaskWithoutData:
    """Builds the model of a task without its standardization."""

    def __init__(self, task):
        self.task = task

    def build(self):
        return build_segmenter(self.task.settings)


def test_a_run_can_be_used_without_its_documents(tmp_path):
    task = Segmentation.example(tmp_path, CATALOGUE)
    run = create_run(task, tmp_path / "runs")
    fit(task, run)
    (tmp_path / "tiny.jsonl").unlink()
    without_data, with_data = load_best_model(run.path), load_best_model(run.path, task)
    for name, tensor in with_data.state_dict().items():
        assert torch.equal(tensor, without_data.state_dict()[name])
