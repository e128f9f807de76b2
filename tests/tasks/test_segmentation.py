"""Where parts begin: documents, settings, losses and scores together."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from neural.core.diagnostics import Source
from neural.core.settings import SettingsError, read_settings
from neural.experiments import best_model, new_run, open_run, task_of, task_of_run
from neural.standard import CATALOGUE
from neural.tasks.cutting.network import segmenter_of
from neural.tasks.cutting.predicted import scores_of
from neural.tasks.cutting.presets import PRESETS, with_preset
from neural.tasks.cutting.settings import SegmentationSettings
from neural.tasks.segmentation import Segmentation
from neural.tasks.task import TaskError
from neural.training.engine import fit
from neural.training.objective import Objective, shares_of

EXAMPLES = Path(__file__).parents[2] / "examples" / "segmentation"
SMALL = {"hidden_dim": 3, "num_layers": 1, "attention_heads": 2, "attention_dim": 4, "dropout": 0.0}
WORDS = ("red green blue grey", "one two three four", "north south east west")


def song(number, *, labels=False, lines=9):
    """Three parts of three lines, each with words of its own."""
    random = np.random.default_rng(number)
    kinds = [WORDS[(number + at // 3) % 3] for at in range(lines)]
    row = {"lines": [" ".join(random.choice(kind.split(), 4)) for kind in kinds], "name": f"song {number}"}
    truth = {"labels": [("verse", "chorus")[at // 3 % 2] for at in range(lines)]} if labels else {"boundaries": [3, 6]}
    return json.dumps({**row, **truth})


def without_late_boundaries(row):
    """A song of few lines, without boundaries behind its end."""
    data = json.loads(row)
    boundaries = [at for at in data["boundaries"] if at < len(data["lines"])]
    return json.dumps({**data, "boundaries": boundaries})


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "songs.jsonl").write_text("\n".join(song(one) for one in range(20)))
    (tmp_path / "labelled.jsonl").write_text("\n".join(song(one, labels=True) for one in range(20)))
    return tmp_path


def task_in(folder, **said):
    said = {"data": "songs.jsonl", "features": "word_overlap", "model": SMALL, **said}
    return Segmentation(SegmentationSettings.model_validate(said), folder, CATALOGUE)


def model_of(task):
    torch.manual_seed(0)
    return task.build().eval()


def read(text, *changes):
    return read_settings(SegmentationSettings, Source("experiment.yaml", text), changes)


def test_the_published_keys_are_read_as_they_were_written():
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


def test_heads_that_do_not_share_the_width_are_said_with_their_line():
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


def test_a_penalty_on_like_heads_needs_heads():
    with pytest.raises(SettingsError, match="no several heads"):
        read("task: segmentation\nmodel: {attention_enabled: false}\ntraining: {head_diversity_lambda: 0.1}\n")


@pytest.mark.parametrize(("name", "whole"), [
    ("document_self", 2_755_842), ("document_localized", 446_466), ("document_boundary_aware", 479_491),
    ("document_small", 87_939),
])  # fmt: skip
def test_the_published_presets_have_the_published_sizes(name, whole):
    settings = with_preset(SegmentationSettings(preset=name, labels=("goes on", "begins")), name)
    with torch.device("meta"):
        model = segmenter_of(settings)
    assert sum(one.numel() for one in model.parameters()) == whole


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_what_is_said_goes_before_the_preset(name):
    settings = SegmentationSettings.model_validate(
        {"preset": name, "model": {"num_layers": 3}, "training": {"steps": 5, "batch_size": 7}}
    )
    found = with_preset(settings, name)
    assert (found.model.num_layers, found.training.batch_size, found.training.steps) == (3, 7, 5)
    assert found.training.epochs is None
    assert found.model.hidden_dim == PRESETS[name]["model"]["hidden_dim"]
    assert with_preset(found, name) == found


@pytest.mark.parametrize(("said", "words"), [
    ({"model": {"attention_heads": 7}}, "heads must share the width evenly: 64 = 7 × 9 + 1"),
    ({"model": {"attention_heads": 1}, "training": {"head_diversity_lambda": 0.1}}, "there are no several heads"),
])  # fmt: skip
def test_what_does_not_go_with_a_preset_is_said(folder, said, words):
    with pytest.raises(TaskError, match=re.escape(f"does not go with the preset `articles`: {words}")):
        Segmentation(SegmentationSettings.model_validate(
            {"data": "songs.jsonl", "preset": "articles", **said}
        ), folder, CATALOGUE)  # fmt: skip


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_opens_with_its_command_and_its_settings_are_good(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# neural train examples/segmentation/{path.name}\n")
    settings = read(text)
    assert settings.data == "handbook"
    full = with_preset(settings, settings.preset).model_copy(update={"labels": ("goes on", "begins")})
    with torch.device("meta"):
        segmenter_of(full)


def test_the_published_example_is_the_published_preset():
    example = read((EXAMPLES / "document_self.yaml").read_text(encoding="utf-8"))
    preset = with_preset(SegmentationSettings(preset="document_self", name="document-self"), "document_self")
    assert example.model == preset.model
    assert example.features == preset.features
    assert example.training.model_copy(update={"boundary_lambda": 0.0}) == preset.training


def test_boundaries_are_learned_but_not_at_the_first_element(folder):
    task = task_in(folder)
    assert task.experiment.labels == ("goes on", "begins")
    batch = task.batch(0)
    assert (batch["target"] == batch["boundaries"]).all()
    model = model_of(task)
    plain = task.loss(model, batch)[0]
    batch["target"][:, 0] = 1   # nobody asks
    torch.testing.assert_close(task.loss(model, batch)[0], plain)


def test_labels_are_learned_where_the_data_has_them(folder):
    task = task_in(folder, data="labelled.jsonl")
    assert task.experiment.learn == "labels"
    assert task.experiment.labels == ("verse", "chorus")
    scores = task.evaluate(model_of(task))
    assert 0 <= scores["valid/label_f1"] <= 1
    assert task_in(folder, data="labelled.jsonl", learn="boundaries").experiment.labels == ("goes on", "begins")


def test_labels_that_are_not_there_cannot_be_learned(folder):
    with pytest.raises(TaskError, match=r"song .* has no labels; write `learn: boundaries`"):
        task_in(folder, learn="labels")


def test_documents_without_a_boundary_teach_nothing(folder):
    row = json.dumps({"lines": ["a", "b"], "boundaries": []})
    (folder / "one.jsonl").write_text("\n".join([row] * 5))
    with pytest.raises(TaskError, match="not one boundary in 5 documents"):
        task_in(folder, data="one.jsonl")


@pytest.mark.parametrize(("said", "message"), [
    ({"model": {**SMALL, "attention_type": "localised"}}, "did you mean `localized`"),
    ({"model": {**SMALL, "positional_encoding": "rotery"}}, "did you mean `rotary`"),
    ({"model": {**SMALL, "positional_encoding": "learned"}}, "longest sequence"),
    ({"features": "word_overlp"}, "did you mean `word_overlap`"),
    ({"data": "nothing.jsonl"}, "there is no data `nothing.jsonl`"),
    ({"training": {"class_weights": (1.0, 2.0, 3.0)}}, "3 numbers, but there are 2 classes: goes on, begins"),
])  # fmt: skip
def test_a_name_that_means_nothing_is_said_before_anything_is_trained(folder, said, message):
    with pytest.raises(TaskError, match=message):
        task_in(folder, **said)


@pytest.mark.parametrize("kind", ["self", "localized", "boundary_aware", "localized(window=3)"])
def test_any_mechanism_can_be_named(folder, kind):
    task = task_in(folder, model={**SMALL, "attention_type": kind, "window_size": 5})
    mechanism = task.build().attention.heads.mechanism
    assert repr(mechanism) == {"localized": "localized(window=5)"}.get(kind, repr(mechanism))
    assert torch.isfinite(task.loss(model_of(task), task.batch(0))[0])


def test_without_attention_it_still_learns(folder):
    task = task_in(folder, model={**SMALL, "attention_enabled": False})
    model = model_of(task)
    assert model.attention is None
    assert torch.isfinite(task.loss(model, task.batch(0))[0])


def test_each_part_of_the_loss_is_added_with_its_weight(folder):
    boundary = {**SMALL, "attention_type": "boundary_aware", "attention_dropout": 0.0}

    def loss(**said):
        task = task_in(folder, model=boundary, training={"boundary_lambda": 0.0, **said})
        torch.manual_seed(1)
        return task.loss(model_of(task), task.batch(0))

    plain, nothing = loss()
    assert nothing == {}
    for name, curve, sign in (
        ("boundary_lambda", "train/boundary_loss", 1), ("entropy_lambda", "train/entropy", -1),
        ("head_diversity_lambda", "train/heads_alike", 1),
    ):  # fmt: skip
        found, more = loss(**{name: 0.5})
        torch.testing.assert_close(found, plain + sign * 0.5 * more[curve])
    assert loss(boundary_weight=4.0)[0] != plain
    assert loss(class_weights=(1.0, 9.0))[0] != plain
    assert loss(label_smoothing=0.2)[0] != plain


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
def test_every_part_of_the_loss_is_weighed_by_what_it_is_a_mean_over(folder, data, training):
    """Documents of 3 to 9 lines, one by one and together: the same gradient."""
    labels = data == "labelled.jsonl"
    rows = [song(number, labels=labels, lines=3 + 2 * (number % 4)) for number in range(20)]
    rows = rows if labels else [without_late_boundaries(row) for row in rows]
    (folder / data).write_text("\n".join(rows))
    training = {**training, "boundary_lambda": 0.5, "batch_size": 6}
    network = {**SMALL, "attention_type": "boundary_aware"}
    task = task_in(folder, data=data, model=network, training=training)
    model, batch = model_of(task), task.batch(0)
    parts = [{name: value[row : row + 1] for name, value in batch.items()} for row in range(6)]
    weights = [task.loss_weights(part) for part in parts]
    totals = {name: sum(weight[name] for weight in weights) for name in weights[0]}
    assert len({weight["loss"] for weight in weights}) > 1
    objective = Objective(task, model)
    for part, weight in zip(parts, weights, strict=True):
        objective(part, shares_of(weight, totals, 1))[0].backward()
    cut = [param.grad.clone() for param in model.parameters()]
    model.zero_grad()
    task.loss(model, batch)[0].backward()
    for param, gradient in zip(model.parameters(), cut, strict=True):
        torch.testing.assert_close(gradient, param.grad, rtol=1e-4, atol=1e-6)


def test_an_epoch_between_validations_counts_the_batches_of_all_processes(folder, monkeypatch):
    alone = task_in(folder, training={"batch_size": 2, "gradient_accumulation_steps": 2})
    monkeypatch.setenv("WORLD_SIZE", "2")
    together = task_in(folder, training={"batch_size": 2})
    assert alone.experiment.training.validate_every == 4
    assert together.experiment.training.validate_every == 4


def test_long_documents_are_learned_in_pieces_and_judged_whole(folder):
    task = task_in(folder, longest=4)
    assert max(task.batch(number)["x"].shape[1] for number in range(task.epoch)) <= 4
    assert {len(one) for one in task.valid} == {9}


def test_inputs_are_standardized_by_what_is_learned_from(folder):
    task = task_in(folder)
    rows = np.concatenate([one.x for one in task.train])
    model = model_of(task)
    np.testing.assert_allclose(model.centre.numpy(), rows.mean(axis=0), atol=1e-5)
    moving = rows.std(axis=0) > 1e-3
    np.testing.assert_allclose(model.spread.numpy()[moving], rows.std(axis=0)[moving], rtol=1e-3)
    assert (model.spread.numpy() > 0).all()


def test_the_loss_of_a_validation_is_the_plain_log_loss(folder):
    task = task_in(folder, training={"label_smoothing": 0.3, "class_weights": "balanced"})
    model = model_of(task)
    each = []
    for one, scores in zip(task.valid, scores_of(model, [one.x for one in task.valid]), strict=True):
        logs = torch.from_numpy(scores).double().log_softmax(dim=-1).numpy()
        each += [-logs[place, one.target[place]] for place in range(1, len(one))]
    assert task.evaluate(model)["valid/loss"] == pytest.approx(np.mean(each))


def test_a_threshold_that_is_said_is_kept(folder):
    model = model_of(task_in(folder))
    assert task_in(folder, threshold=0.3).evaluate(model)["valid/threshold"] == 0.3
    assert task_in(folder, threshold=0.999).evaluate(model)["valid/f1"] == 0
    assert task_in(folder).evaluate(model)["valid/f1"] > 0


def test_the_probe_shows_its_lines_and_where_parts_begin(folder):
    task = task_in(folder)
    (first, *_) = task.labels(task.probe())
    assert [line.startswith("| ") for line in first] == [False, False, False, True, False, False, True, False, False]


@pytest.fixture
def trained(folder):
    task = task_in(
        folder, model={**SMALL, "attention_type": "boundary_aware"},
        tracking={"track_every": 1000, "measures": ("entropy",), "maps_every": 0},   # once, before the first step
        training={"epochs": 8.0, "batch_size": 4, "learning_rate": 0.1},
    )  # fmt: skip
    run = new_run(task, folder / "runs")
    return task, run, fit(task, run)


def test_it_learns_and_a_run_can_be_used_again(trained, folder):
    task, run, outcome = trained
    run = open_run(run.path)
    assert outcome.scores["valid/f1"] > 0.8
    assert len(run.scalars("valid/f1")[0]) == 8   # a validation per epoch
    assert "entropy" in run.measures()
    again = task_of_run(run)
    assert again.experiment == task.experiment
    model = best_model(run.path, again)
    assert again.evaluate(model)["valid/f1"] == outcome.scores["valid/f1"]

    # the documents are gone: the model is not
    (folder / "songs.jsonl").write_text(song(3))
    with pytest.raises(TaskError, match="its documents changed"):
        task_of_run(run)
    (folder / "songs.jsonl").unlink()
    with pytest.raises(TaskError, match="are gone"):
        task_of_run(run)
    rebuilt = segmenter_of(SegmentationSettings.model_validate_json(task.experiment.model_dump_json()))
    rebuilt.load_state_dict(model.state_dict())
    inputs = [one.x for one in task.valid]
    for mine, its in zip(scores_of(rebuilt.eval(), inputs), scores_of(model, inputs), strict=True):
        np.testing.assert_array_equal(mine, its)


def test_an_experiment_file_is_found_by_its_task(folder):
    (folder / "small.yaml").write_text(
        "task: segmentation\ndata: songs.jsonl\nfeatures: 36\n"
        "model: {hidden_dim: 3, attention_dim: 4, attention_heads: 2}\n"
    )
    task = task_of(folder / "small.yaml", ["model.num_layers=1"])
    assert isinstance(task, Segmentation)
    assert task.batch(0)["x"].shape[-1] == 36
    assert any("parameters: LSTM" in one for one in task.remarks)


def test_averaged_weights_are_used_with_the_inputs_standardized(folder):
    task = task_in(folder, training={"steps": 6, "batch_size": 4, "ema": 0.9, "learning_rate": 0.1},
                   tracking={"track_every": 0})  # fmt: skip
    run = new_run(task, folder / "runs")
    outcome = fit(task, run)
    rebuilt = best_model(run.path, _Forgetful(task))
    assert task.evaluate(rebuilt) == outcome.scores


class _Forgetful:
    """A task that builds its model without having seen the data."""

    def __init__(self, task):
        self.task = task

    def build(self):
        return segmenter_of(self.task.settings)


def test_a_run_can_be_used_where_its_documents_are_gone(tmp_path):
    task = Segmentation.tiny(tmp_path, CATALOGUE)
    run = new_run(task, tmp_path / "runs")
    fit(task, run)
    (tmp_path / "tiny.jsonl").unlink()
    again, whole = best_model(run.path), best_model(run.path, task)
    for name, one in whole.state_dict().items():
        assert torch.equal(one, again.state_dict()[name])
