"""Nothing in a file is executed, and nothing larger than the file is made of it."""

import zipfile
from pathlib import Path

import pytest
import torch

from neural.importing import CannotImport, document_of, import_file, tensors_in
from neural.imports.nn_transformer_encoder import NnTransformerEncoder


class Harmful:
    """Unpickled the careless way, it makes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_file_with_code_in_it_is_refused_and_the_code_does_not_run(tmp_path):
    torch.save({"model": Harmful(tmp_path / "harm")}, tmp_path / "code.pt")
    with pytest.raises(CannotImport, match="holds more than tensors and plain data"):
        document_of(tmp_path / "code.pt")
    assert not (tmp_path / "harm").exists()


def test_a_tensor_that_claims_to_be_larger_than_the_file_is_refused(tmp_path):
    torch.save({"a": {"b": torch.ones(1).expand(10**9)}}, tmp_path / "wide.pt")
    with pytest.raises(CannotImport, match=r"a tensor of .* is larger than the file"):
        document_of(tmp_path / "wide.pt")


def test_a_packed_archive_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/data.pkl", b"0" * 10**6)
    with pytest.raises(CannotImport, match="says that it holds 1,000,000 bytes"):
        document_of(tmp_path / "bomb.pt")


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("old.pt", b"\x80\x02}q\x00.", "no file of today's torch.save"),
        ("bad.safetensors", b"\xff" * 40, "is no safetensors file"),
        ("empty.safetensors", b"", "is no safetensors file"),
    ],
)
def test_other_files_are_refused(name, content, says, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CannotImport, match=says):
        document_of(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CannotImport, match="there is no file"):
        document_of(tmp_path / "none.pt")


def test_a_list_is_no_state_dict(tmp_path):
    torch.save([torch.ones(2)], tmp_path / "list.pt")
    with pytest.raises(CannotImport, match="holds a list, no state dict"):
        document_of(tmp_path / "list.pt")


def test_a_state_dict_may_be_wrapped_but_must_hold_floats():
    assert list(tensors_in({"epoch": 3, "state_dict": {"a": torch.ones(2)}}, "it")) == ["a"]
    with pytest.raises(CannotImport, match="no tensors of floats"):
        tensors_in({"a": torch.ones(2, dtype=torch.long)}, "it")


def test_a_folder_that_is_there_is_not_touched(tmp_path):
    layer = torch.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    (tmp_path / "mine").mkdir()
    with pytest.raises(CannotImport, match="is there already"):
        import_file(tmp_path / "layer.pt", NnTransformerEncoder, ["num_heads=2"], output=tmp_path / "mine")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["layer.pt", "mine"]


def test_names_that_are_numbers_and_tensors_that_are_sparse_are_refused_in_words():
    assert list(tensors_in({1: torch.ones(2)}, "it")) == ["1"]
    with pytest.raises(CannotImport, match=r"`a` is a sparse tensor; save it with `\.to_dense\(\)`"):
        tensors_in({"a": torch.eye(2).to_sparse()}, "it")


def test_two_networks_of_one_second_get_two_folders(tmp_path):
    layer = torch.nn.TransformerEncoderLayer(4, 2, 5, batch_first=True)
    torch.save(layer.state_dict(), tmp_path / "layer.pt")
    runs = tmp_path / "runs"
    made = {import_file(tmp_path / "layer.pt", NnTransformerEncoder, ["num_heads=2"], runs=runs).path for _ in "ab"}
    assert {*runs.iterdir()} == made and len(made) == 2
