"""Headlines of language models: every case that a run folder can be in."""

import numpy as np
import pytest

from neural.findings.checks.loss_above_chance import CHANCE_LOSS_KEY
from neural.findings.sample_quality import SAMPLES_KEY
from neural.report.headlines.language_model import LanguageModel
from tests.report.experiments import write_group

SNAPSHOTS = 10
LOSSES = {"valid/loss": np.linspace(1.8, 1.35, SNAPSHOTS)}


def create_roles(end):
    """Measures of 2 × 2 heads, of which the last two attend to the previous token at the end."""
    previous = np.zeros((SNAPSHOTS, 2, 2))
    previous[5:, 1] = end
    return {
        "previous_token_mass": previous,
        "relative_entropy": np.full((SNAPSHOTS, 2, 2), 0.5),
    }


def write(root, label="model", **data):
    return write_group(root, label, **{"scalars": LOSSES, **data})


def test_heads_with_roles_are_the_headline(tmp_path):
    uniform = np.tril(np.ones((12, 12)))
    uniform /= uniform.sum(axis=1, keepdims=True)  # no role can be seen in these maps
    maps = [np.broadcast_to(uniform, (2, 2, 12, 12))] * SNAPSHOTS
    group = write(
        tmp_path,
        arrays=create_roles(0.9),
        maps=maps,
        metadata={
            SAMPLES_KEY: {"50": "qz  x\nw", "250": "between", "500": "the class " + "is " * 99}
        },
    )
    headline = LanguageModel().write([group])
    assert headline.text == "2 of 4 heads found a role"
    assert headline.details == [
        "Held-out loss 1.35 nats per character",
        "A role is what a head attends to: previous token (the position before)",
    ]
    grid, samples = headline.figures
    assert grid["kind"] == "head_grid" and grid["run"] == group.run_ids[0]
    marks = [(mark["layer"], mark["head"], mark["label"], mark["onset"]) for mark in grid["marks"]]
    assert marks == [(1, 0, "previous token", 300), (1, 1, "previous token", 300)]
    assert grid["heads"] == [2, 2]
    assert samples["kind"] == "samples"
    assert [sample["step"] for sample in samples["samples"]] == [50, 500]
    assert samples["samples"][0]["text"] == "qz x w"
    assert len(samples["samples"][1]["text"]) == 240
    assert headline.link.route == {
        "pane": "attention",
        "run": group.run_ids[0],
        "layer": 1,
        "head": 0,
    }


def test_without_maps_the_roles_are_listed(tmp_path):
    headline = LanguageModel().write([write(tmp_path, arrays=create_roles(0.9))])
    assert headline.details[1] == "Roles: 2 previous token"


def test_no_role(tmp_path):
    headline = LanguageModel().write([write(tmp_path, arrays=create_roles(0.1))])
    assert headline.text == "None of 4 heads found a role"
    assert headline.details == ["Held-out loss 1.35 nats per character"]


def test_without_attention_the_loss_is_the_headline(tmp_path):
    scalars = {**LOSSES, "train/loss": np.linspace(4.6, 1.2, SNAPSHOTS)}
    headline = LanguageModel().write([write(tmp_path, scalars=scalars, every=1)])
    # the first batch is before any step
    assert headline.text == "Loss fell from 4.6 to 1.35 nats per character"
    assert headline.figures == [] and headline.link.route["pane"] == "curves"


def test_a_validation_before_training_is_the_start(tmp_path):
    scalars = {"valid/loss": np.array([5.5, 3.0, 1.5]), "train/loss": np.array([4.0, 3.0, 2.0])}
    group = write(tmp_path, scalars=scalars, every=1, metadata={"steps": 100})
    text = LanguageModel().write([group]).text
    assert text == "Loss fell from 5.5 to 1.5 nats per character"


def test_a_loss_that_never_fell_did_not_fall(tmp_path):
    scalars = {"valid/loss": np.array([2.0, 2.0]), "train/loss": np.array([1.9, 1.8])}
    text = LanguageModel().write([write(tmp_path, scalars=scalars, every=1)]).text
    assert text == "Held-out loss 2 nats per character"


def test_bytes(tmp_path):
    text = LanguageModel().write([write(tmp_path, settings={"units": "bytes"})]).text
    assert text == "Held-out loss 1.35 nats per byte"


def test_several_settings_are_compared_by_loss(tmp_path):
    groups = [
        write(tmp_path, "classic", scalars={"valid/loss": np.array([1.41])}),
        write(tmp_path, "modern", scalars={"valid/loss": np.array([1.35])}),
    ]
    headline = LanguageModel().write(groups)
    assert headline.text == "Held-out loss: modern 1.35, classic 1.41 nats per character"
    assert headline.figures[0]["kind"] == "estimates"


def test_several_seeds(tmp_path):
    group = write(
        tmp_path,
        seeds=3,
        arrays=create_roles(0.9),
        scores=lambda seed, _: {"valid/loss": LOSSES["valid/loss"] + seed / 100},
    )
    headline = LanguageModel().write([group])
    assert headline.text == "2 of 4 heads found a role with each of 3 seeds"
    assert headline.details[0].startswith(
        "Held-out loss 1.360 nats per character, mean of 3 seeds (1.3"
    )
    assert headline.details[1] == "First seed: 2 previous token"


@pytest.mark.parametrize("count", [1, 2])
def test_a_run_that_was_never_validated(tmp_path, count):
    groups = [
        write(tmp_path, f"model {number}", scalars={}, state="failed") for number in range(count)
    ]
    text = LanguageModel().write(groups).text
    assert text == ("Training failed at step 0" if count == 1 else "All 2 trainings failed")


def test_a_stopped_run_says_so(tmp_path):
    headline = LanguageModel().write([write(tmp_path, state="stopped")])
    assert headline.text == "Held-out loss 1.35 nats per character"
    assert len(headline.details) == 1 and "was stopped at step" in headline.details[0]


def test_a_loss_at_chance_is_not_celebrated(tmp_path):
    scalars = {"valid/loss": np.full(SNAPSHOTS, np.log(8))}
    group = write(
        tmp_path,
        scalars=scalars,
        arrays=create_roles(0.9),
        metadata={CHANCE_LOSS_KEY: float(np.log(8))},
    )
    text = LanguageModel().write([group]).text
    assert text == (
        "Learned little: its loss is not clearly below chance; held-out loss 2.08 nats per character"
    )


def test_one_sample_is_the_one_after(tmp_path):
    group = write(tmp_path, metadata={SAMPLES_KEY: {"500": "the end"}})
    headline = LanguageModel().write([group])
    (samples,) = headline.figures
    assert samples["samples"] == [{"step": 500, "text": "the end"}]
    assert headline.link.route["pane"] == "samples"
