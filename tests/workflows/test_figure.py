"""`neural.figure`: runs and captures as figures for papers."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import neural
from neural.core.registry import UnknownNameError
from neural.report.attention_snapshot import FigureError
from neural.report.paper_figures import registry
from tests.importance_files import write_importance_file
from tests.report_runs import write_run
from tests.vision_folders import add_image


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    path = write_run(root, "small", layers=2, heads=2, positions=9)
    add_image(path, layers=2, heads=2)
    write_importance_file(path, np.full((3, 2, 2), 0.1))
    return root


@pytest.mark.parametrize("kind", registry.names())
def test_every_kind_draws_the_newest_run(kind, root, tmp_path):
    figure = neural.figure(kind=kind, runs=root)
    assert figure.kind == kind
    assert figure.description.startswith(f"{kind} of small")
    assert figure.save(tmp_path / "figure.svg").stat().st_size > 1000


def test_the_same_run_gives_the_same_bytes_in_another_process(root, tmp_path):
    code = (
        "import sys, neural\n"
        "for kind in sys.argv[3:]:\n"
        "    figure = neural.figure('small', kind, runs=sys.argv[1])\n"
        "    for suffix in ('svg', 'pdf', 'png'):\n"
        "        figure.save(f'{sys.argv[2]}/{kind}.{suffix}')\n"
    )
    folders = [tmp_path / "first", tmp_path / "second"]
    for seed, folder in enumerate(folders):
        folder.mkdir()
        subprocess.run(
            [sys.executable, "-c", code, str(root), str(folder), *registry.names()],
            check=True,
            env={"PYTHONHASHSEED": str(seed), "PATH": "", "HOME": str(tmp_path)},
        )
    files = sorted(path.name for path in folders[0].iterdir())
    assert len(files) == 3 * len(registry.names())
    for name in files:
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes(), name


@pytest.mark.parametrize("kind", ["heads", "head", "lines", "roles"])
def test_a_capture_is_drawn_without_a_run(kind, tmp_path):
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    capture = neural.watch(encoder, torch.randn(1, 4, 8), labels=list("abcd"))
    assert neural.figure(capture, kind).save(tmp_path / "capture.svg").exists()


def test_a_capture_has_no_curves():
    capture = neural.watch(
        nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), torch.randn(1, 4, 8)
    )
    with pytest.raises(FigureError, match="a capture has no curves"):
        neural.figure(capture, "curves")


def test_an_unknown_kind_lists_the_kinds(root):
    with pytest.raises(UnknownNameError, match="curves, head, heads, image, importance, lines"):
        neural.figure("small", "heds", runs=root)


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        ("heads", {"layer": 1}, "`heads` has no layer"),
        ("curves", {"step": 3}, "`curves` has no step"),
        ("roles", {"metrics": ["valid/loss"]}, "`roles` has no metric"),
        ("head", {"height": "2in"}, "the height of `head` follows from its width"),
    ],
)
def test_an_argument_that_would_be_ignored_is_refused(kind, arguments, message, root):
    with pytest.raises(FigureError, match=message):
        neural.figure("small", kind, runs=root, **arguments)


def test_only_curves_show_several_runs(tmp_path):
    paths = [write_run(tmp_path, name, layers=1, heads=1, snapshots=1) for name in "ab"]
    with pytest.raises(FigureError, match="`heads` shows one run, not 2"):
        neural.figure(paths, "heads")
