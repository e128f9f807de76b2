"""Plots of runs: complete, labelled and reproducible."""

import numpy as np
import pytest

from neural.findings.run_loading import MissingDataError
from neural.report.plots import average_curves, draw_plots
from neural.stats.correlation import Curve
from tests.findings.synthetic_runs import write_synthetic_run


def write_run(root, seed, snapshots=5, **settings):
    random = np.random.default_rng(seed)
    arrays = {
        "entropy": random.random((snapshots, 3, 2)),
        "span": random.random((snapshots, 3, 2)),
        "cosine_between": np.array([np.triu(random.random((3, 3)), 1) for _ in range(snapshots)]),
    }
    scalars = {"train/loss": random.random(snapshots), "valid/loss": random.random(snapshots)}
    return write_synthetic_run(root, seed, arrays=arrays, scalars=scalars, settings=settings)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    return [
        write_run(root, seed, name=f"{name}_seed-{seed}", width=name)
        for name in ("classic", "_$x$_<b>")
        for seed in range(3)
    ]


def test_all_plots_are_drawn_with_their_labels(runs, tmp_path):
    files, skipped = draw_plots(runs, tmp_path / "plots")
    names = ("train_loss", "val_loss", "attention_metrics", "layer_similarity")
    assert [path.name for path in files] == [
        f"{name}_handbook.{kind}" for name in names for kind in ("svg", "png")
    ]
    assert not skipped
    labels = {
        "train_loss": "training loss (nats)",
        "val_loss": "validation loss (nats)",
        "attention_metrics": "span (positions)",
        "layer_similarity": "layers 1–3",
    }
    for path in files:
        if path.suffix == ".svg":
            text = path.read_text(encoding="utf-8")
            assert labels[path.stem.removesuffix("_handbook")] in text
            assert "classic (3 seeds)" in text
            assert "_$x$_&lt;b&gt;" in text, "a label is shown as it is written"
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_the_same_runs_give_the_same_bytes(runs, tmp_path):
    first, _ = draw_plots(runs[:3], tmp_path / "first")
    second, _ = draw_plots(runs[:3], tmp_path / "second")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_plots_without_data_are_skipped_with_a_reason(tmp_path):
    only_loss = write_synthetic_run(tmp_path, 0, scalars={"train/loss": np.ones(3)})
    files, skipped = draw_plots([only_loss], tmp_path / "plots", formats=("svg",))
    assert [path.name for path in files] == ["train_loss_handbook.svg"]
    assert len(skipped) == 3
    assert "val_loss_handbook: " in skipped[0]
    assert "no `valid/loss`" in skipped[0]
    assert not list((tmp_path / "plots").glob(".*"))


def test_every_data_set_has_its_own_files(tmp_path):
    runs = [write_run(tmp_path, 0, data="enwik8"), write_run(tmp_path, 0, data="../notes/a b.txt")]
    files, _ = draw_plots(runs, tmp_path / "plots", formats=("svg",))
    assert {"train_loss_enwik8.svg", "train_loss_a_b.svg"} <= {path.name for path in files}
    assert {path.parent for path in files} == {tmp_path / "plots"}


def test_the_band_is_the_standard_error_over_seeds():
    steps, mean, error = average_curves(
        [
            Curve(np.array([1, 2, 3]), np.array([1.0, 2, 9])),
            Curve(np.array([2, 3, 4]), np.array([4.0, 9, 9])),
        ]
    )
    assert (steps.tolist(), mean.tolist()) == ([2, 3], [3, 9])
    assert error.tolist() == [1, 0]  # 2 and 4: deviation √2, over √2


def test_a_single_seed_has_no_band_and_a_missing_common_step_is_an_error():
    first, second = Curve(np.array([1]), np.array([5.0])), Curve(np.array([2]), np.array([5.0]))
    assert np.isnan(average_curves([first])[2]).all()
    with pytest.raises(MissingDataError, match="no step in common"):
        average_curves([first, second])


def test_a_long_curve_is_averaged_not_thinned():
    steps = np.arange(1, 1001)
    block_steps, mean, _ = average_curves([Curve(steps, np.where(steps % 2, 1.0, 3.0))])
    assert len(block_steps) == 200
    assert block_steps[:2].tolist() == [3, 8]
    assert mean[:2].tolist() == pytest.approx([(1 + 3 + 1 + 3 + 1) / 5, (3 + 1 + 3 + 1 + 3) / 5])
