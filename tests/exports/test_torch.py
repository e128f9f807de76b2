"""A .pt2 file is the network, for any batch and length, and has nothing of this package in it."""

import json
import zipfile

import pytest
import torch

from neural.export import export
from neural.exports.torch import Torch
from tests.exports.networks import CHARACTERS, writer


@pytest.fixture(scope="module")
def leaving():
    return writer(masked=True)


@pytest.fixture(scope="module")
def path(leaving, tmp_path_factory):
    path = tmp_path_factory.mktemp("torch") / "writer.pt2"
    done = export(leaving, Torch, path)
    assert done.difference <= 1e-5
    assert done.shapes == [(2, 16), (3, 15), (1, 8)]
    return path


@pytest.mark.filterwarnings("ignore::FutureWarning")   # torch's own, about its own classes
def test_it_runs_at_lengths_that_nobody_tried(leaving, path):
    module = torch.export.load(path).module()
    for shape in ((1, 1), (5, 3), (2, 40)):
        inputs = leaving.batch(*shape)
        torch.testing.assert_close(module(*inputs), leaving(*inputs), rtol=0, atol=1e-5)


def test_nothing_of_this_package_and_no_path_of_this_machine_is_in_it(path):
    with zipfile.ZipFile(path) as archive:
        texts = [archive.read(name).decode() for name in archive.namelist() if name.endswith(".json")]
        (facts,) = (archive.read(name) for name in archive.namelist() if name.endswith("facts.json"))
    assert json.loads(facts) == {"vocabulary": list(CHARACTERS)}
    assert not any("neural" in text or ".py" in text for text in texts)


def test_nothing_else_is_left_beside_it(path):
    assert [one.name for one in path.parent.iterdir()] == ["writer.pt2"]
