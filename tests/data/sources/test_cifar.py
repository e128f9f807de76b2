"""CIFAR: binary and Python versions, folders, archives, a download, and broken files."""

import hashlib
import pickle
from dataclasses import replace

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data import loading
from neural.data.sources import cifar
from neural.language.check import check
from neural.optim.catalogue import CATALOGUE
from neural.tasks.focus.model import write_default_program
from tests.data.cifar_files import TEN, binary_files, pack_archive, pickle_files, write_files


def read(location, shape=(32, 32, 3)):
    network = check(write_default_program("Reader", shape, 1, None), CATALOGUE).networks[0]
    return loading.load_data(location, network)


def holds_cifar10(examples):
    assert examples.classes == TEN
    assert examples.train["x"].shape == (200, 32, 32, 3)
    assert examples.valid["x"].shape == (40, 32, 32, 3)
    assert examples.train["x"][3, 0, 0].tolist() == [255, 65, 65], (
        "colours last: the first byte is the first pixel's red"
    )
    assert examples.train["y"][:12].tolist() == [*range(10), 0, 1]
    assert examples.scale == pytest.approx(1 / 255)


@pytest.mark.parametrize("files", [binary_files, pickle_files])
def test_both_versions_give_the_same_examples(files, tmp_path):
    holds_cifar10(read(write_files(tmp_path / "mine", files())))


@pytest.mark.parametrize("files", [binary_files, pickle_files])
def test_an_archive_is_read_without_unpacking_it(files, tmp_path):
    name = "cifar-10-binary.tar.gz" if files is binary_files else "cifar-10-python.tar.gz"
    (tmp_path / name).write_bytes(pack_archive(files()))
    holds_cifar10(read(tmp_path / name))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_cifar100_has_its_fine_classes(tmp_path):
    examples = read(write_files(tmp_path / "cifar-100-binary", binary_files(100, 200)))
    assert len(examples.classes) == 100
    assert examples.train["y"].tolist() == [*range(100)] * 2


def test_a_name_finds_the_folder_in_the_users_own_data(tmp_path, monkeypatch):
    write_files(tmp_path / "cifar-10-batches-bin", binary_files())
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    holds_cifar10(read(loading.locate_data("cifar10", tmp_path)))


def test_a_dataset_without_local_copy_is_downloaded_once(server, tmp_path, monkeypatch):
    content = pack_archive(binary_files())
    server.content = content
    digest = hashlib.sha256(content).hexdigest()
    local_download = replace(
        cifar.CIFAR_DOWNLOADS["cifar10"], url=server.url, size=len(content), sha256=digest
    )
    monkeypatch.setitem(cifar.CIFAR_DOWNLOADS, "cifar10", local_download)
    holds_cifar10(read("cifar10"))
    holds_cifar10(read("cifar10"))
    assert server.requested_ranges == [None]


@pytest.mark.parametrize(("shape", "gives"), [((3072,), (200, 3072)), ((8, 8, 1), (200, 8, 8, 1))])
def test_images_are_converted_to_the_input_shape(shape, gives, tmp_path):
    assert read(write_files(tmp_path / "mine", binary_files()), shape).train["x"].shape == gives


def test_a_pickle_that_names_anything_but_an_array_is_refused_and_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    files = pickle_files() | {"data_batch_2": pickle.dumps({"data": Trap()}, protocol=2)}
    with pytest.raises(
        TaskError,
        match=r"mine/data_batch_2 \(the binary version needs no pickles\) cannot be read as "
        r"plain data: it names `(io|_io|builtins|__builtin__)\.open`",
    ):
        read(write_files(tmp_path / "mine", files))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"data_batch_3.bin": b"x" * 3000},
            "mine/data_batch_3.bin is broken: 3,000 bytes are not a multiple of the 3,073",
        ),
        (
            {"data_batch_4.bin": None, "data_batch_5.bin": None},
            "data_batch_4.bin, data_batch_5.bin missing",
        ),
        (
            {"batches.meta.txt": b"cat\ndog\n"},
            "an image is of class 9, but batches.meta.txt names 2",
        ),
    ],
)
def test_broken_files_are_named(change, message, tmp_path):
    files = {
        name: content for name, content in (binary_files() | change).items() if content is not None
    }
    with pytest.raises(TaskError, match=message):
        read(write_files(tmp_path / "mine", files))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            {"data": np.zeros((2, 9), np.uint8), "labels": [0, 1]},
            r"`data` must be bytes of shape \(N, 3,072\)",
        ),
        (
            {"data": np.zeros((2, 3072), np.uint8), "labels": [0]},
            "`labels` must be a class number for each of the 2",
        ),
        ({"data": np.zeros((2, 3072), np.uint8)}, "`labels` must be"),
        ([1], "does not hold a dictionary"),
    ],
)
def test_a_pickle_with_wrong_contents_is_named(content, message, tmp_path):
    files = pickle_files() | {"data_batch_1": pickle.dumps(content, protocol=2)}
    with pytest.raises(TaskError, match=message):
        read(write_files(tmp_path / "mine", files))


def test_a_truncated_archive_is_reported(tmp_path):
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(pack_archive(binary_files())[:500])
    with pytest.raises(TaskError, match=r"cifar-10-binary.tar.gz cannot be read"):
        read(tmp_path / "cifar-10-binary.tar.gz")
