"""The pictures of a study: made, labelled, and the same twice."""

import numpy as np
import pytest

from neural.views.correlation import Curve
from neural.views.plots import band, plots
from neural.views.reading import Missing
from tests.views.made_up import made_up


def run(root, seed, looks=5, **settings):
    random = np.random.default_rng(seed)
    arrays = {
        "entropy": random.random((looks, 3, 2)), "span": random.random((looks, 3, 2)),
        "cosine_between": np.array([np.triu(random.random((3, 3)), 1) for _ in range(looks)]),
    }  # fmt: skip
    scalars = {"train/loss": random.random(looks), "valid/loss": random.random(looks)}
    return made_up(root, seed, arrays=arrays, scalars=scalars, settings=settings)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return [run(root, seed, name=f"{name}_seed-{seed}", width=name) for name in ("classic", "_$x$_<b>")
            for seed in range(3)]  # fmt: skip


def test_every_picture_of_the_document_is_made_and_names_its_series(runs, tmp_path):
    files, left_out = plots(runs, tmp_path / "plots")
    names = ("train_loss", "val_loss", "attention_metrics", "layer_similarity")
    assert [one.name for one in files] == [f"{name}_handbook.{kind}" for name in names for kind in ("svg", "png")]
    assert not left_out
    words = {"train_loss": "training loss (nats)", "val_loss": "validation loss (nats)",
             "attention_metrics": "span (positions)", "layer_similarity": "layers 1–3"}  # fmt: skip
    for one in files:
        if one.suffix == ".svg":
            text = one.read_text(encoding="utf-8")
            assert words[one.stem.removesuffix("_handbook")] in text
            assert "classic (3 seeds)" in text
            assert "_$x$_&lt;b&gt;" in text, "a label is shown as it is written"
        else:
            assert one.read_bytes().startswith(b"\x89PNG")


def test_the_same_runs_give_the_same_bytes(runs, tmp_path):
    first, _ = plots(runs[:3], tmp_path / "first")
    second, _ = plots(runs[:3], tmp_path / "second")
    assert [one.read_bytes() for one in first] == [one.read_bytes() for one in second]


def test_what_cannot_be_drawn_is_named_and_the_rest_is_drawn(tmp_path):
    only_loss = made_up(tmp_path, 0, scalars={"train/loss": np.ones(3)})
    files, left_out = plots([only_loss], tmp_path / "plots", formats=("svg",))
    assert [one.name for one in files] == ["train_loss_handbook.svg"]
    assert len(left_out) == 3
    assert "val_loss_handbook: " in left_out[0]
    assert "no `valid/loss`" in left_out[0]
    assert not list((tmp_path / "plots").glob(".*"))


def test_data_sets_have_files_of_their_own(tmp_path):
    both = [run(tmp_path, 0, data="enwik8"), run(tmp_path, 0, data="../notes/a b.txt")]
    files, _ = plots(both, tmp_path / "plots", formats=("svg",))
    assert {"train_loss_enwik8.svg", "train_loss_a_b.svg"} <= {one.name for one in files}
    assert {one.parent for one in files} == {tmp_path / "plots"}


def test_the_band_is_the_standard_error_over_seeds():
    steps, mean, error = band([Curve(np.array([1, 2, 3]), np.array([1.0, 2, 9])),
                               Curve(np.array([2, 3, 4]), np.array([4.0, 9, 9]))])  # fmt: skip
    assert (steps.tolist(), mean.tolist()) == ([2, 3], [3, 9])
    assert error.tolist() == [1, 0]   # 2 and 4: deviation √2, over √2


def test_a_single_seed_has_no_band_and_no_common_step_is_said():
    one, other = Curve(np.array([1]), np.array([5.0])), Curve(np.array([2]), np.array([5.0]))
    assert np.isnan(band([one])[2]).all()
    with pytest.raises(Missing, match="no step in common"):
        band([one, other])


def test_a_long_curve_is_averaged_not_thinned():
    steps = np.arange(1, 1001)
    middle, mean, _ = band([Curve(steps, np.where(steps % 2, 1.0, 3.0))])
    assert len(middle) == 200
    assert middle[:2].tolist() == [3, 8]
    assert mean[:2].tolist() == pytest.approx([(1 + 3 + 1 + 3 + 1) / 5, (3 + 1 + 3 + 1 + 3) / 5])
