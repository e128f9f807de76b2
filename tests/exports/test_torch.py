"""A .pt2 file is the network, for any batch and length, and has nothing of this package in it."""

import json
import zipfile

import pytest
import torch

from neural.export import export
from neural.exports.torch import Torch
from tests.exports.networks import CHARACTERS, network, writer


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


def exported(leaving, folder, name="net"):
    export(leaving, Torch, folder / f"{name}.pt2")
    adapted = Torch().adapt(leaving)
    return adapted, Torch().read(adapted, folder / f"{name}.pt2")


def program(*lines, size):
    return f"network Net {{\n  input: {size}\n  layers:\n    " + "\n    ".join(lines) + "\n}"


def test_two_sequences_of_any_two_lengths(tmp_path):
    text = program(
        "TransformerEncoder(num_heads=2)", 'TransformerDecoder(num_heads=2, attention="localized")', size="(12, 4)"
    )
    leaving, run = exported(network(text, masked=True), tmp_path)
    for lengths in ((4, 12), (12, 4), (5, 5), (7, 1), (1, 7)):
        inputs = leaving.batch(2, *lengths)
        torch.testing.assert_close(run(*inputs), leaving(*inputs), rtol=0, atol=1e-5)


def test_what_was_exported_before_leaves_no_condition_behind(tmp_path):
    exported(network(program("LSTM(4)", "Flatten()", size="(7, 4)")), tmp_path, "first")
    leaving, run = exported(network(program("LSTM(8)", size="(4, 4)"), masked=True), tmp_path)
    for length in (1, 4, 7, 13):
        inputs = leaving.batch(2, length)
        torch.testing.assert_close(run(*inputs), leaving(*inputs), rtol=0, atol=1e-5)


def test_windows_that_leave_one_position_of_the_declared_length_fix_it(tmp_path):
    leaving, run = exported(network(program("MaxPooling1D(2) * 2", "Dense(3)", size="(7, 4)")), tmp_path)
    assert not leaving.free
    inputs = leaving.batch(3, 7)
    torch.testing.assert_close(run(*inputs), leaving(*inputs), rtol=0, atol=1e-5)


def test_windows_over_an_open_length_are_traced_at_one_that_leaves_several_positions(tmp_path):
    leaving, run = exported(network(program("Conv1D(3, kernel_size=5) * 3", size="(None, 4)")), tmp_path)
    for length in (14, 15, 20, 70):
        inputs = leaving.batch(2, length)
        torch.testing.assert_close(run(*inputs), leaving(*inputs), rtol=0, atol=1e-5)
