"""An export is compared with the network before it gets its final name."""

import os

import pytest
import torch

from neural.runs.errors import RunError
from neural.workflows.export import Exporter, export, load_bundle
from neural.workflows.export_bundle import ExportError, create_bundle
from tests.exports.networks import network, segmenter, writer
from tests.written_runs import CHARACTERS, write_run


class ExactExporter(Exporter):
    """Writes a dummy file; the network itself computes the outputs of the export."""

    suffix = ".txt"
    error, length = 0.0, None

    def write(self, bundle, path):
        path.write_text("dummy")

    def read(self, bundle, path):
        def run(*inputs):
            if self.length not in (None, inputs[0].shape[1]):
                raise RuntimeError(f"expected {self.length}\nand more lines")
            return bundle(*inputs) + self.error

        return run


class InexactExporter(ExactExporter):
    error = 1e-3


class OneLengthExporter(ExactExporter):
    length = 16


class NanExporter(ExactExporter):
    error = float("nan")


def test_an_equal_export_replaces_the_old_file_and_leaves_no_other(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("old")
    result = export(writer(), ExactExporter, path)
    assert path.read_text() == "dummy"
    assert (result.num_bytes, result.max_difference, result.shapes) == (
        5,
        0.0,
        [(2, 16), (3, 15), (1, 8)],
    )
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("exporter_type", "message"),
    [
        (
            InexactExporter,
            r"differs by 0.001 at \(2, 16\); 1e-04 is allowed. It was deleted; --length 16",
        ),
        (OneLengthExporter, r"fails at \(3, 15\): expected 16. It was deleted"),
        (NanExporter, "differs by nan"),
    ],
)
def test_a_different_export_is_deleted_and_the_old_file_stays(exporter_type, message, tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("old")
    with pytest.raises(ExportError, match=message):
        export(writer(), exporter_type, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_export_can_be_limited_to_one_length(tmp_path):
    assert export(writer(length=16), OneLengthExporter, tmp_path / "net.txt").shapes == [
        (2, 16),
        (3, 16),
        (1, 16),
    ]


def test_a_missing_package_names_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(ExactExporter, "required_packages", ("no_such_package",))
    with pytest.raises(
        ExportError, match=r'needs no_such_package, .*: pip install "neural-lab\[export\]"'
    ):
        export(writer(), ExactExporter, tmp_path / "net.txt")


def test_an_existing_folder_is_not_replaced(tmp_path):
    (tmp_path / "net.txt").mkdir()
    with pytest.raises(ExportError, match="is a folder; choose another path with -o"):
        export(writer(), ExactExporter, tmp_path / "net.txt")


def test_a_path_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(RunError, match=r"nowhere/net\.txt cannot be written"):
        export(writer(), ExactExporter, tmp_path / "nowhere" / "net.txt")


def test_a_bundle_has_the_best_weights_of_a_run_and_its_vocabulary(tmp_path):
    path = write_run(tmp_path, vocabulary=list(CHARACTERS))
    bundle = load_bundle(path)
    assert bundle.metadata == {"vocabulary": list(CHARACTERS)}
    assert bundle.output_name == "probabilities"
    ids = torch.zeros(1, 3, dtype=torch.long)
    assert bundle(ids).sum(dim=-1) == pytest.approx(1)
    assert load_bundle(path, return_logits=True)(ids).softmax(dim=-1) == pytest.approx(bundle(ids))


def test_a_network_of_fixed_length_is_exported_with_that_length():
    text = "network Flat {\n  input: (7, 3)\n  layers:\n    Flatten()\n    Output(2)\n}"
    bundle = network(text)
    assert not bundle.has_dynamic_length
    assert bundle.trial_sizes == ((2, 7), (3, 7), (1, 7))
    assert bundle.output_name == "predictions"
    with pytest.raises(
        ExportError, match="takes only sequences of 7 positions; leave --length out"
    ):
        network(text, length=5)


def test_images_have_no_padding():
    text = "network Image {\n  input: (8, 9, 1)\n  layers:\n    Conv2D(2)\n    Flatten()\n    Output(2)\n}"
    with pytest.raises(
        ExportError, match="takes no sequences, so there is no padding; leave --mask out"
    ):
        network(text, with_mask=True)


def test_padding_is_not_compared():
    bundle = segmenter(with_mask=True)
    x, mask = bundle.create_batch(3, 9)
    assert not mask.all()
    assert bundle.compute_output_mask((x, mask), bundle(x, mask)) is mask


def test_a_model_of_several_networks_is_refused():
    with pytest.raises(ExportError, match="a run of `focus` is more than one network"):
        create_bundle(torch.nn.Linear(2, 2), "run", task="focus")


def test_the_difference_of_numbers_above_one_is_relative(tmp_path):
    text = "network Price {\n  input: (3,)\n  layers:\n    Output(1)\n}"
    bundle = network(text)
    with torch.no_grad():
        bundle.model.output.linear.bias += 1000
    assert export(bundle, InexactExporter, tmp_path / "price.txt").max_difference == pytest.approx(
        1e-6, rel=0.1
    )


def test_features_have_no_time_axis_and_are_compared_at_three_batch_sizes():
    bundle = network("network Price {\n  input: (3,)\n  layers:\n    Output(1)\n}")
    assert not bundle.has_dynamic_length
    assert bundle.trial_sizes == ((2, 3), (3, 3), (1, 3))


def test_a_program_with_one_position_is_exported_for_any_length():
    bundle = network("network One {\n  input: (1, 3)\n  layers:\n    Output(2)\n}")
    assert bundle.has_dynamic_length
    assert bundle.trial_sizes[0] == (2, 2), "an axis of size 1 is constant in a trace"


@pytest.mark.parametrize("create", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_a_device_or_a_pipe_is_never_replaced_by_a_file(create, tmp_path):
    create(tmp_path / "net.txt")
    with pytest.raises(ExportError, match=r"net\.txt cannot be replaced by a file"):
        export(writer(), ExactExporter, tmp_path / "net.txt")
    assert not (tmp_path / "net.txt").is_file()
