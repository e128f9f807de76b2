"""The captioner: it learns to speak and where to look, by any paradigm; its gaze is kept and drawn; what it refuses."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.standard import CATALOGUE
from neural.tasks.captions import Captions, CaptionsSettings
from neural.tasks.experiment import Tracking, Training
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.views.caption_plots import caption_plot, looked
from neural.views.reading import Missing
from tests.tasks.captioning.own_files import pairs, write
from tests.tasks.test_focus import trained


def own(folder, steps=60, paradigm="lvml", **settings):
    """Two animals, three regions: learned in a second."""
    if not (folder / "own.npz").exists():
        write(folder, *pairs(60))
    training = Training(steps=steps, batch_size=16, optimizer="AdamW(learning_rate=0.03)", validate_every=steps)
    made = CaptionsSettings(data="own.npz", units=16, paradigm=paradigm, training=training, focus_rate=0.3, **settings)
    return Captions(made, folder, CATALOGUE)


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """A run on scenes of nine cells, by marginal likelihood."""
    folder = tmp_path_factory.mktemp("scenes")
    training = Training(steps=360, batch_size=32, optimizer="AdamW(learning_rate=0.01)", clip_norm=1.0,
                        validate_every=180)  # fmt: skip
    few = {"examples": 2000, "valid_examples": 60, "test_examples": 40}
    settings = CaptionsSettings(grid=3, units=32, focus_rate=0.2, training=training,
                                tracking=Tracking(track_every=180, maps_every=1), **few)  # fmt: skip
    run, outcome = trained(Captions(settings, folder, CATALOGUE), folder / "runs")
    return run, outcome.scores


def test_every_word_is_looked_for_where_it_is_though_nobody_said_so(scenes):
    _, scores = scenes
    assert scores["valid/focus_accuracy"] > 0.85, "chance is 1 in 9"
    each = {name: one for name, one in scores.items() if name.startswith("valid/focus_accuracy_")}
    assert {"valid/focus_accuracy_red", "valid/focus_accuracy_circle"} <= set(each)
    assert min(each.values()) > 0.5
    assert scores["valid/accuracy"] > 0.9
    assert scores["valid/captions_right"] > 0.45


def test_the_gaze_is_in_the_run_words_by_regions_and_can_be_drawn_without_the_data(scenes, tmp_path):
    run, _ = scenes
    kept = looked(run)
    assert kept.focus.shape == (len(kept.words), 9)
    np.testing.assert_allclose(kept.focus.sum(axis=1), 1, atol=0.05)
    assert kept.picture is not None and kept.picture.shape == (24, 24, 3)
    about = [(focus.argmax(), place) for focus, place in zip(kept.focus, kept.places, strict=True) if place is not None]
    assert len(about) == 4
    assert sum(seen == place for seen, place in about) >= 3
    _, entropy = run.measure("entropy")
    assert entropy[-1].mean() < entropy[0].mean(), "looks at one region instead of at all"
    path = caption_plot(run, tmp_path / "words.png")
    assert path.stat().st_size > 5000


@pytest.mark.parametrize("paradigm", ["soft", "hard", "lvml", "hybrid", 'hybrid(first="lvml")', "annealed"])
def test_each_paradigm_learns_to_speak_and_to_look(paradigm, tmp_path):
    run, outcome = trained(own(tmp_path, paradigm=paradigm), tmp_path / "runs")
    assert outcome.scores["valid/captions_right"] > 0.9
    assert outcome.scores["valid/focus_accuracy"] > 0.8, "chance is 1 in 3"
    assert run.described("focus/paradigm").startswith(paradigm.partition("(")[0])


def test_a_few_regions_are_enough_to_learn_from(tmp_path):
    run, outcome = trained(own(tmp_path, estimator="topk", samples=2), tmp_path / "runs")
    assert outcome.scores["valid/focus_accuracy"] > 0.8
    assert (run.scalars("train/classifier_calls")[1] <= 2).all()


def test_a_switch_is_an_event_of_the_run(tmp_path):
    run, _ = trained(own(tmp_path, steps=20, paradigm='hybrid(switch="step", value=10)'), tmp_path / "runs")
    assert [(step, kind) for step, kind, _, _ in run.events()] == [(10, "switch")]


def asked(*words):
    return CliRunner().invoke(main, ["caption", *map(str, words)])


def test_a_run_says_what_its_test_pictures_show_and_draws_it(scenes, tmp_path):
    run, _ = scenes
    done = asked(run.path, "--pictures", 7)
    assert done.exit_code == 0, done.output
    assert "and 2 more" in done.output
    assert "of 7 captions are, word for word, as given" in done.output
    assert "drawn: " in asked(run.path, "--pictures", 1, "-o", tmp_path / "drawn").output
    assert len(list((tmp_path / "drawn").glob("*.png"))) == 1
    told = json.loads(asked(run.path, "--pictures", 2, "--json").output)
    assert [len(one["words"]) == len(one["caption"].split()) for one in told] == [True, True]
    assert all(0 <= word["region"] < 9 for one in told for word in one["words"])


def test_pictures_that_were_never_seen_are_captioned_from_their_regions(tmp_path):
    run, _ = trained(own(tmp_path), tmp_path / "runs")
    regions, _ = pairs(4)
    np.savez(tmp_path / "new.npz", regions=regions)
    told = json.loads(asked(run.path, tmp_path / "new.npz", "--json").output)
    assert [one["caption"] for one in told] == ["a cat", "a dog", "a cat", "a dog"]
    np.savez(tmp_path / "other.npz", regions=np.zeros((4, 5, 2)))
    done = asked(run.path, tmp_path / "other.npz")
    assert (done.exit_code, "5 regions of 2 numbers, but the run learned from 3 of 4" in done.output) == (2, True)


def test_the_gaze_at_regions_without_a_picture_is_drawn_as_a_row(tmp_path):
    made = own(tmp_path, steps=2, tracking=Tracking(track_every=1, maps_every=1))
    run, _ = trained(made, tmp_path / "runs")
    assert looked(run).picture is None
    assert caption_plot(run, tmp_path / "row.png").exists()


def test_a_run_of_another_kind_is_no_captioner(tmp_path):
    run = Run.create(tmp_path, "run", settings={"task": "focus"}, program=None, environment={})
    run.finish("finished")
    with pytest.raises(Missing, match="has no maps of a captioner's gaze"):
        looked(Run.open(run.path))


@pytest.mark.parametrize(
    ("settings", "says"),
    [({"paradigm": "sparsemax"}, "looks by softmax, but `sparsemax` has a focus of its own"),
     ({"paradigm": 'hybrid(then="entmax15")'}, "looks by softmax"), ({"paradigm": "sofd"}, "did you mean `soft`"),
     ({"estimator": "topk", "samples": 4}, "`samples` is 4, but an example has 3 segments"),
     ({"data": "scene"}, "for `data`; did you mean `scenes`?"), ({"captions": "none.jsonl"}, "for `captions`; name"),
     ({"grid": 5}, "`grid` is for `data: scenes`"),
     ({"data": "scenes", "captions": "own.jsonl"}, "scenes bring theirs"),
     ({"features": 7}, "`features` is 7, but regions have 4 numbers")],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_trained(settings, says, tmp_path):
    write(tmp_path, *pairs())
    with pytest.raises(TaskError, match=says):
        Captions(CaptionsSettings(**{"data": "own.npz", **settings}), tmp_path, CATALOGUE)


def test_the_network_of_a_run_is_built_without_its_data(tmp_path):
    made = own(tmp_path)
    shapes = {name: one.shape for name, one in made.build().state_dict().items()}
    alone = Captions.without_data(made.experiment, CATALOGUE)
    assert alone is not None
    assert {name: one.shape for name, one in alone.state_dict().items()} == shapes
