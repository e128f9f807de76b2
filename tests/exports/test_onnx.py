"""An ONNX file is the network, for any batch and length; also where layers read step by step."""

import json

import onnx
import onnxruntime
import pytest

from neural.export import export
from neural.export_inputs import CannotExport
from neural.exports import onnx as exporting
from neural.exports.onnx import Onnx
from tests.exports.networks import segmenter, writer


@pytest.fixture(scope="module")
def leaving():
    return segmenter("boundary_aware", masked=True)


@pytest.fixture(scope="module")
def path(leaving, tmp_path_factory):
    path = tmp_path_factory.mktemp("onnx") / "segmenter.onnx"
    done = export(leaving, Onnx, path)
    assert done.difference <= 1e-4
    assert len({shape[1] for shape in done.shapes}) == 3, "compared at three lengths"
    return path


def test_a_segmenter_reads_documents_of_any_length_and_steps_over_padding(leaving, path):
    session = onnxruntime.InferenceSession(path)
    for shape in ((1, 1), (4, 7), (2, 90)):
        x, mask = leaving.batch(*shape)
        (got,) = session.run(["probabilities"], {"x": x.numpy(), "mask": mask.numpy()})
        assert got == pytest.approx(leaving(x, mask).numpy(), abs=1e-4)


def test_its_axes_have_names_and_its_facts_go_along(path):
    model = onnx.load(path)
    sizes = {
        one.name: [dim.dim_param or dim.dim_value for dim in one.type.tensor_type.shape.dim]
        for one in (*model.graph.input, *model.graph.output)
    }
    assert sizes == {"x": ["batch", "time", 5], "mask": ["batch", "time"], "probabilities": ["batch", "time", 3]}
    assert {one.key: json.loads(one.value) for one in model.metadata_props} == {
        "labels": ["verse", "chorus", "bridge"]
    }


def test_no_path_of_this_machine_is_in_it(path):
    assert b".py" not in path.read_bytes()


def test_a_network_too_large_for_one_file_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(exporting, "MOST", 100)
    with pytest.raises(CannotExport, match="an ONNX file holds 2; --to torch has no such limit"):
        export(writer(), Onnx, tmp_path / "writer.onnx")
    assert not list(tmp_path.iterdir())
