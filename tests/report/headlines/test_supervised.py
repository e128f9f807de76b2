"""Headlines of classification and regression."""

import numpy as np

from neural.report.headlines.supervised import Supervised
from tests.report.experiments import write_group

LOSS = np.array([2.0, 1.0])


def write(root, label="model", metric="accuracy", values=(0.9, 0.972), **options):
    return write_group(
        root,
        label,
        scores=lambda seed, fold: {
            "valid/loss": LOSS,
            f"valid/{metric}": np.array(values) - (seed + (fold or 0)) / 100,
        },
        settings={"task": "supervised"},
        **options,
    )


def test_accuracy_in_percent(tmp_path):
    headline = Supervised().write([write(tmp_path)])
    assert headline.text == "Classifies 97.2 % of the held-out examples correctly"


def test_a_cross_validation_has_its_interval(tmp_path):
    text = Supervised().write([write(tmp_path, folds=5)]).text
    assert text.startswith(
        "Classifies 94.2 % of the held-out examples correctly, mean of 5 folds (9"
    )
    assert text.endswith(" %)")


def test_regression(tmp_path):
    headline = Supervised().write([write(tmp_path, metric="mae", values=(4.0, 3.21))])
    assert headline.text == "Predicts held-out values with a mean absolute error of 3.21"


def test_settings_are_ranked_by_accuracy(tmp_path):
    groups = [write(tmp_path, "small", values=(0.5, 0.6)), write(tmp_path, "large")]
    headline = Supervised().write(groups)
    assert headline.text == "Validation accuracy: large 97.2 %, small 60 %"


def test_the_loss_where_nothing_else_was_recorded(tmp_path):
    group = write_group(
        tmp_path, scores=lambda *_: {"valid/loss": LOSS}, settings={"task": "supervised"}
    )
    assert Supervised().write([group]).text == "Validation loss 1"


def test_no_validation(tmp_path):
    group = write_group(tmp_path, settings={"task": "supervised"})
    assert Supervised().write([group]).text == "No validation yet"


def test_attention_is_described(tmp_path):
    previous = np.zeros((8, 1, 2))
    previous[4:, 0, 1] = 0.9
    arrays = {"previous_token_mass": previous, "relative_entropy": np.full((8, 1, 2), 0.5)}
    headline = Supervised().write([write(tmp_path, arrays=arrays)])
    assert "1 of 2 heads found a role" in headline.details
