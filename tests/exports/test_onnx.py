"""An ONNX file equals the network for any batch size and length, also with recurrent layers."""

import json

import onnx
import onnxruntime
import pytest

from neural.exports import onnx as onnx_export
from neural.exports.onnx import Onnx
from neural.workflows.export import export
from neural.workflows.export_bundle import ExportError
from tests.exports.networks import segmenter, writer


@pytest.fixture(scope="module")
def bundle():
    return segmenter("boundary_aware", with_mask=True)


@pytest.fixture(scope="module")
def path(bundle, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "segmenter.onnx"
    result = export(bundle, Onnx, path)
    assert result.max_difference <= 1e-4
    assert len({shape[1] for shape in result.shapes}) == 3, "compared at three lengths"
    return path


def test_a_segmenter_takes_documents_of_any_length_with_padding(bundle, path):
    session = onnxruntime.InferenceSession(path)
    for shape in ((1, 1), (4, 7), (2, 90)):
        x, mask = bundle.create_batch(*shape)
        (output,) = session.run(["probabilities"], {"x": x.numpy(), "mask": mask.numpy()})
        assert output == pytest.approx(bundle(x, mask).numpy(), abs=1e-4)


def test_axes_are_named_and_metadata_is_written(path):
    model = onnx.load(path)
    sizes = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    }
    assert sizes == {
        "x": ["batch", "time", 5],
        "mask": ["batch", "time"],
        "probabilities": ["batch", "time", 3],
    }
    assert {prop.key: json.loads(prop.value) for prop in model.metadata_props} == {
        "labels": ["verse", "chorus", "bridge"]
    }


def test_the_file_contains_no_path_of_this_machine(path):
    assert b".py" not in path.read_bytes()


def test_a_network_too_large_for_one_file_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(onnx_export, "MAX_FILE_BYTES", 100)
    with pytest.raises(ExportError, match="2 GB of an ONNX file; --to torch has no such limit"):
        export(writer(), Onnx, tmp_path / "writer.onnx")
    assert not list(tmp_path.iterdir())
