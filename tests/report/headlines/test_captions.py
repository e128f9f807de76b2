"""Headlines of captioning."""

import numpy as np

from neural.report.headlines.captions import Captions
from tests.report.experiments import write_group


def write(root, label="soft", caption=0.5, focus=0.9):
    scores = {"valid/loss": np.array([2.0, 1.0])}
    if caption is not None:
        scores["valid/caption_accuracy"] = np.array([0.1, caption])
        scores["valid/focus_accuracy"] = np.array([0.1, focus])
    return write_group(root, label, scores=lambda *_: scores, settings={"task": "captions"})


def test_captions_and_located_words(tmp_path):
    headline = Captions().write([write(tmp_path)])
    assert headline.text == "Describes 50 % of the held-out pictures exactly like a reference"
    assert headline.details == ["Words located in the right region 90 %"]


def test_paradigms_are_compared(tmp_path):
    headline = Captions().write([write(tmp_path), write(tmp_path, "lvml", 0.625, 0.95)])
    assert headline.text == "Share of exact captions: lvml 62.5 %, soft 50 %"
    assert headline.details == ["Words located in the right region: lvml 95 %, soft 90 %"]


def test_without_these_scores_the_loss_is_the_headline(tmp_path):
    assert Captions().write([write(tmp_path, caption=None)]).text == "Validation loss 1"


def test_no_validation(tmp_path):
    group = write_group(tmp_path, settings={"task": "captions"}, state="failed")
    assert Captions().write([group]).text == "Training failed at step 0"
