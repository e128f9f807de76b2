"""A .pt2 file equals the network for any batch size and length, without this package."""

import json
import zipfile

import pytest
import torch

from neural.exports.torch import Torch
from neural.workflows.export import export
from tests.exports.networks import CHARACTERS, network, writer


@pytest.fixture(scope="module")
def bundle():
    return writer(with_mask=True)


@pytest.fixture(scope="module")
def path(bundle, tmp_path_factory):
    path = tmp_path_factory.mktemp("torch") / "writer.pt2"
    result = export(bundle, Torch, path)
    assert result.max_difference <= 1e-5
    assert result.shapes == [(2, 16), (3, 15), (1, 8)]
    return path


@pytest.mark.filterwarnings("ignore::FutureWarning")  # a warning of torch about its own classes
def test_it_runs_at_lengths_that_were_not_traced(bundle, path):
    module = torch.export.load(path).module()
    for shape in ((1, 1), (5, 3), (2, 40)):
        inputs = bundle.create_batch(*shape)
        torch.testing.assert_close(module(*inputs), bundle(*inputs), rtol=0, atol=1e-5)


def test_the_file_contains_no_name_of_this_package_and_no_path(path):
    with zipfile.ZipFile(path) as archive:
        texts = [
            archive.read(name).decode() for name in archive.namelist() if name.endswith(".json")
        ]
        (metadata,) = (
            archive.read(name) for name in archive.namelist() if name.endswith("facts.json")
        )
    assert json.loads(metadata) == {"vocabulary": list(CHARACTERS)}
    assert not any("neural" in text or ".py" in text for text in texts)


def test_no_other_file_is_left(path):
    assert [file.name for file in path.parent.iterdir()] == ["writer.pt2"]


def export_and_read(bundle, folder, name="net"):
    export(bundle, Torch, folder / f"{name}.pt2")
    adapted = Torch().adapt(bundle)
    return adapted, Torch().read(adapted, folder / f"{name}.pt2")


def program(*lines, size):
    return f"network Net {{\n  input: {size}\n  layers:\n    " + "\n    ".join(lines) + "\n}"


def test_two_sequences_of_any_two_lengths(tmp_path):
    text = program(
        "TransformerEncoder(num_heads=2)",
        'TransformerDecoder(num_heads=2, attention="localized")',
        size="(12, 4)",
    )
    bundle, run = export_and_read(network(text, with_mask=True), tmp_path)
    for lengths in ((4, 12), (12, 4), (5, 5), (7, 1), (1, 7)):
        inputs = bundle.create_batch(2, *lengths)
        torch.testing.assert_close(run(*inputs), bundle(*inputs), rtol=0, atol=1e-5)


def test_an_earlier_export_does_not_constrain_the_next(tmp_path):
    export_and_read(network(program("LSTM(4)", "Flatten()", size="(7, 4)")), tmp_path, "first")
    bundle, run = export_and_read(
        network(program("LSTM(8)", size="(4, 4)"), with_mask=True), tmp_path
    )
    for length in (1, 4, 7, 13):
        inputs = bundle.create_batch(2, length)
        torch.testing.assert_close(run(*inputs), bundle(*inputs), rtol=0, atol=1e-5)


def test_windows_that_leave_one_position_fix_the_declared_length(tmp_path):
    bundle, run = export_and_read(
        network(program("MaxPooling1D(2) * 2", "Dense(3)", size="(7, 4)")), tmp_path
    )
    assert not bundle.has_dynamic_length
    inputs = bundle.create_batch(3, 7)
    torch.testing.assert_close(run(*inputs), bundle(*inputs), rtol=0, atol=1e-5)


def test_windows_over_a_dynamic_length_are_traced_with_several_positions(tmp_path):
    bundle, run = export_and_read(
        network(program("Conv1D(3, kernel_size=5) * 3", size="(None, 4)")), tmp_path
    )
    for length in (14, 15, 20, 70):
        inputs = bundle.create_batch(2, length)
        torch.testing.assert_close(run(*inputs), bundle(*inputs), rtol=0, atol=1e-5)
