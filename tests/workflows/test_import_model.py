"""Importing a file executes no code and allocates no more than the size of the file."""

import zipfile
from pathlib import Path

import pytest
import torch

from neural.imports.nn_transformer_encoder import NnTransformerEncoder
from neural.workflows.import_model import (
    ModelImportError,
    extract_state_dict,
    import_file,
    read_checkpoint_file,
)


class Harmful:
    """Creates a file when it is unpickled without `weights_only`."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_file_with_code_in_it_is_refused_and_the_code_does_not_run(tmp_path):
    torch.save({"model": Harmful(tmp_path / "harm")}, tmp_path / "code.pt")
    with pytest.raises(ModelImportError, match="holds more than tensors and plain data"):
        read_checkpoint_file(tmp_path / "code.pt")
    assert not (tmp_path / "harm").exists()


def test_a_tensor_that_claims_to_be_larger_than_the_file_is_refused(tmp_path):
    torch.save({"a": {"b": torch.ones(1).expand(10**9)}}, tmp_path / "wide.pt")
    with pytest.raises(ModelImportError, match=r"a tensor of .* is larger than the file"):
        read_checkpoint_file(tmp_path / "wide.pt")


def test_a_compressed_archive_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/data.pkl", b"0" * 10**6)
    with pytest.raises(ModelImportError, match="claims to hold 1,000,000 bytes"):
        read_checkpoint_file(tmp_path / "bomb.pt")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("old.pt", b"\x80\x02}q\x00.", "is not a zip file of torch.save"),
        ("bad.safetensors", b"\xff" * 40, "is not a safetensors file"),
        ("empty.safetensors", b"", "is not a safetensors file"),
    ],
)
def test_other_files_are_refused(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ModelImportError, match=message):
        read_checkpoint_file(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ModelImportError, match="there is no file"):
        read_checkpoint_file(tmp_path / "none.pt")


def test_a_list_is_not_a_state_dict(tmp_path):
    torch.save([torch.ones(2)], tmp_path / "list.pt")
    with pytest.raises(ModelImportError, match="holds a list, not a state dict"):
        read_checkpoint_file(tmp_path / "list.pt")


def test_a_state_dict_may_be_wrapped_but_must_hold_floats():
    assert list(extract_state_dict({"epoch": 3, "state_dict": {"a": torch.ones(2)}}, "a test")) == [
        "a"
    ]
    with pytest.raises(ModelImportError, match="it has no float tensors"):
        extract_state_dict({"a": torch.ones(2, dtype=torch.long)}, "a test")


def test_an_existing_folder_is_not_changed(tmp_path):
    layer = torch.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    (tmp_path / "mine").mkdir()
    with pytest.raises(ModelImportError, match="exists already"):
        import_file(
            tmp_path / "layer.pt", NnTransformerEncoder, ["num_heads=2"], output=tmp_path / "mine"
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["layer.pt", "mine"]


def test_numeric_names_become_strings_and_sparse_tensors_are_refused():
    assert list(extract_state_dict({1: torch.ones(2)}, "a test")) == ["1"]
    with pytest.raises(
        ModelImportError, match=r"`a` is a sparse tensor; save it with `\.to_dense\(\)`"
    ):
        extract_state_dict({"a": torch.eye(2).to_sparse()}, "a test")


def test_two_imports_in_one_second_get_two_folders(tmp_path):
    layer = torch.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    runs = tmp_path / "runs"
    paths = {
        import_file(tmp_path / "layer.pt", NnTransformerEncoder, ["num_heads=2"], runs=runs).path
        for _ in "ab"
    }
    assert {*runs.iterdir()} == paths and len(paths) == 2
