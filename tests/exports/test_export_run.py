"""`neural.export` from Python."""

import numpy as np
import pytest

import neural
from neural.core.registry import UnknownNameError
from tests.training.programs import PROGRAM


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    random = np.random.default_rng(0)
    x = random.normal(size=(20, 5, 6)).astype(np.float32)
    y = x[:, :, :3].mean(axis=1).argmax(axis=1)
    program = PROGRAM % "AdamW(learning_rate=0.01)"
    return neural.fit(
        program, x, y, steps=1, quiet=True, runs=tmp_path_factory.mktemp("project") / "runs"
    )


def test_a_run_is_exported_by_name(fitted, tmp_path):
    result = neural.export("small", "torch", tmp_path / "net.pt2", runs=fitted.run.path.parent)
    assert result.path == tmp_path / "net.pt2"
    assert result.path.stat().st_size == result.num_bytes
    assert result.max_difference < 1e-4


def test_an_export_is_named_after_the_run(fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert neural.export(fitted, "torch").path.stem == fitted.run.name


def test_an_unknown_format_lists_the_known_ones(fitted):
    with pytest.raises(UnknownNameError, match="onx"):
        neural.export(fitted, "onx")
