"""Captioning task: learning by every paradigm, captured attention, CLI, refused settings."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.errors import TaskError
from neural.core.experiment import TrackingSettings, TrainingSettings
from neural.findings.run_loading import MissingDataError
from neural.optim.catalogue import CATALOGUE
from neural.report.caption_attention import load_caption_attention
from neural.report.caption_plots import draw_run_caption
from neural.runs.run import Run
from neural.tasks.captions.task import Captions, CaptionsSettings
from tests.tasks.captions.caption_files import make_captioned_regions, write_files
from tests.tasks.focus.test_task import train_run


def create_task(folder, steps=60, paradigm="lvml", **settings):
    """A task with two animals and three regions, learned in a second."""
    if not (folder / "own.npz").exists():
        write_files(folder, *make_captioned_regions(60))
    training = TrainingSettings(
        steps=steps, batch_size=16, optimizer="AdamW(learning_rate=0.03)", validate_every=steps
    )
    task = CaptionsSettings(
        data="own.npz", units=16, paradigm=paradigm, training=training, focus_rate=0.3, **settings
    )
    return Captions(task, folder, CATALOGUE)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """A trained run on scenes of nine cells, by marginal likelihood."""
    folder = tmp_path_factory.mktemp("scenes")
    training = TrainingSettings(
        steps=360,
        batch_size=32,
        optimizer="AdamW(learning_rate=0.01)",
        clip_norm=1.0,
        validate_every=180,
    )
    counts = {"examples": 2000, "valid_examples": 60, "test_examples": 40}
    settings = CaptionsSettings(
        grid=3,
        units=32,
        focus_rate=0.2,
        training=training,
        tracking=TrackingSettings(track_every=180, maps_every=1),
        **counts,
    )
    run, outcome = train_run(Captions(settings, folder, CATALOGUE), folder / "runs")
    return run, outcome.scores


def test_the_focus_finds_the_region_of_every_word_from_captions_alone(scenes):
    _, scores = scenes
    assert scores["valid/focus_accuracy"] > 0.85, "chance is 1 in 9"
    word_accuracies = {
        name: value for name, value in scores.items() if name.startswith("valid/focus_accuracy_")
    }
    assert {"valid/focus_accuracy_red", "valid/focus_accuracy_circle"} <= set(word_accuracies)
    assert min(word_accuracies.values()) > 0.5
    assert scores["valid/accuracy"] > 0.9
    assert scores["valid/caption_accuracy"] > 0.45


def test_caption_attention_is_saved_in_the_run_and_drawn_without_the_data(scenes, tmp_path):
    run, _ = scenes
    attention = load_caption_attention(run)
    assert attention.focus.shape == (len(attention.words), 9)
    np.testing.assert_allclose(attention.focus.sum(axis=1), 1, atol=0.05)
    assert attention.image is not None and attention.image.shape == (24, 24, 3)
    focus_and_region = [
        (focus.argmax(), region)
        for focus, region in zip(attention.focus, attention.regions, strict=True)
        if region is not None
    ]
    assert len(focus_and_region) == 4
    assert sum(focused == region for focused, region in focus_and_region) >= 3
    _, entropy = run.measure("entropy")
    assert entropy[-1].mean() < entropy[0].mean(), "looks at one region instead of at all"
    path = draw_run_caption(run, tmp_path / "words.png")
    assert path.stat().st_size > 5000


@pytest.mark.parametrize(
    "paradigm", ["soft", "hard", "lvml", "hybrid", 'hybrid(first="lvml")', "annealed"]
)
def test_each_paradigm_learns_captions_and_focus(paradigm, tmp_path):
    run, outcome = train_run(create_task(tmp_path, paradigm=paradigm), tmp_path / "runs")
    assert outcome.scores["valid/caption_accuracy"] > 0.9
    assert outcome.scores["valid/focus_accuracy"] > 0.8, "chance is 1 in 3"
    assert run.metadata("focus/paradigm").startswith(paradigm.partition("(")[0])


def test_a_few_regions_are_enough_to_learn_from(tmp_path):
    run, outcome = train_run(create_task(tmp_path, estimator="topk", samples=2), tmp_path / "runs")
    assert outcome.scores["valid/focus_accuracy"] > 0.8
    assert (run.scalars("train/classifier_calls")[1] <= 2).all()


def test_a_switch_is_an_event_of_the_run(tmp_path):
    run, _ = train_run(
        create_task(tmp_path, steps=20, paradigm='hybrid(switch="step", value=10)'),
        tmp_path / "runs",
    )
    assert [(step, kind) for step, kind, _, _ in run.events()] == [(10, "switch")]


def run_caption(*arguments):
    return CliRunner().invoke(main, ["caption", *map(str, arguments)])


def test_the_caption_command_describes_and_draws_test_pictures(scenes, tmp_path):
    run, _ = scenes
    result = run_caption(run.path, "--pictures", 7)
    assert result.exit_code == 0, result.output
    assert "and 2 more" in result.output
    assert "of 7 captions match the reference word for word" in result.output
    assert "drawn: " in run_caption(run.path, "--pictures", 1, "-o", tmp_path / "drawn").output
    assert len(list((tmp_path / "drawn").glob("*.png"))) == 1
    captions = json.loads(run_caption(run.path, "--pictures", 2, "--json").output)
    assert [len(caption["words"]) == len(caption["caption"].split()) for caption in captions] == [
        True,
        True,
    ]
    assert all(0 <= word["region"] < 9 for caption in captions for word in caption["words"])


def test_new_pictures_are_captioned_from_their_regions(tmp_path):
    run, _ = train_run(create_task(tmp_path), tmp_path / "runs")
    regions, _ = make_captioned_regions(4)
    np.savez(tmp_path / "new.npz", regions=regions)
    captions = json.loads(run_caption(run.path, tmp_path / "new.npz", "--json").output)
    assert [caption["caption"] for caption in captions] == ["a cat", "a dog", "a cat", "a dog"]
    np.savez(tmp_path / "other.npz", regions=np.zeros((4, 5, 2)))
    result = run_caption(run.path, tmp_path / "other.npz")
    assert (
        result.exit_code,
        "5 regions of 2 numbers, but the run was trained on 3 of 4" in result.output,
    ) == (2, True)


def test_attention_over_regions_without_a_picture_is_drawn_as_a_row(tmp_path):
    task = create_task(tmp_path, steps=2, tracking=TrackingSettings(track_every=1, maps_every=1))
    run, _ = train_run(task, tmp_path / "runs")
    assert load_caption_attention(run).image is None
    assert draw_run_caption(run, tmp_path / "row.png").exists()


def test_a_run_of_another_task_has_no_caption_attention(tmp_path):
    run = Run.create(tmp_path, "run", settings={"task": "focus"}, program=None, environment={})
    run.finish("finished")
    with pytest.raises(MissingDataError, match="has no attention maps of a captioner"):
        load_caption_attention(Run.open(run.path))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"paradigm": "sparsemax"}, "uses a softmax focus, but `sparsemax` has another"),
        ({"paradigm": 'hybrid(then="entmax15")'}, "uses a softmax focus"),
        ({"paradigm": "sofd"}, "did you mean `soft`"),
        ({"estimator": "topk", "samples": 4}, "`samples` is 4, but must be at most 3"),
        ({"data": "scene"}, "for `data`; did you mean `scenes`?"),
        ({"captions": "none.jsonl"}, "for `captions`; set"),
        ({"grid": 5}, "`grid` is for `data: scenes`"),
        ({"data": "scenes", "captions": "own.jsonl"}, "scenes have their captions"),
        ({"features": 7}, "`features` is 7, but regions have 4 features"),
    ],
)
def test_invalid_settings_are_refused_before_training(settings, message, tmp_path):
    write_files(tmp_path, *make_captioned_regions())
    with pytest.raises(TaskError, match=message):
        Captions(CaptionsSettings(**{"data": "own.npz", **settings}), tmp_path, CATALOGUE)


def test_the_network_of_a_run_is_built_without_its_data(tmp_path):
    task = create_task(tmp_path)
    shapes = {name: tensor.shape for name, tensor in task.build().state_dict().items()}
    alone = Captions.build_from_settings(task.experiment, CATALOGUE)
    assert alone is not None
    assert {name: tensor.shape for name, tensor in alone.state_dict().items()} == shapes
