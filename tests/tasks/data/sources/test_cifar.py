"""CIFAR from its ordinary files: both versions, folders and archives, a download, and broken ones."""

import hashlib
import pickle
from dataclasses import replace

import numpy as np
import pytest

from neural.language.check import check
from neural.standard import CATALOGUE
from neural.tasks.data import find
from neural.tasks.data.sources import cifar
from neural.tasks.focusing.networks import default_program
from neural.tasks.task import TaskError
from tests.tasks.data.cifar_files import TEN, binary, packed, pickles, write


def read(where, shape=(32, 32, 3)):
    network = check(default_program("Reader", shape, 1, None), CATALOGUE).networks[0]
    return find.read(where, network)


def holds_cifar10(found):
    assert found.classes == TEN
    assert found.train["x"].shape == (200, 32, 32, 3)
    assert found.valid["x"].shape == (40, 32, 32, 3)
    assert found.train["x"][3, 0, 0].tolist() == [255, 65, 65], "colours last: the first byte is the first pixel's red"
    assert found.train["y"][:12].tolist() == [*range(10), 0, 1]
    assert found.scale == pytest.approx(1 / 255)


@pytest.mark.parametrize("files", [binary, pickles])
def test_both_versions_say_the_same(files, tmp_path):
    holds_cifar10(read(write(tmp_path / "mine", files())))


@pytest.mark.parametrize("files", [binary, pickles])
def test_an_archive_is_read_without_unpacking_it(files, tmp_path):
    name = "cifar-10-binary.tar.gz" if files is binary else "cifar-10-python.tar.gz"
    (tmp_path / name).write_bytes(packed(files()))
    holds_cifar10(read(tmp_path / name))
    assert [one.name for one in tmp_path.iterdir()] == [name]


def test_cifar100_has_its_fine_classes(tmp_path):
    found = read(write(tmp_path / "cifar-100-binary", binary(100, 200)))
    assert len(found.classes) == 100
    assert found.train["y"].tolist() == [*range(100)] * 2


def test_a_name_finds_the_folder_in_the_users_own_data(tmp_path, monkeypatch):
    write(tmp_path / "cifar-10-batches-bin", binary())
    monkeypatch.setenv("NEURAL_DATA", str(tmp_path))
    holds_cifar10(read(find.locate("cifar10", tmp_path)))


def test_a_name_that_is_nowhere_is_downloaded_once(server, tmp_path, monkeypatch):
    content = packed(binary())
    server.content = content
    digest = hashlib.sha256(content).hexdigest()
    ours = replace(cifar.DOWNLOADS["cifar10"], url=server.url, size=len(content), sha256=digest)
    monkeypatch.setitem(cifar.DOWNLOADS, "cifar10", ours)
    holds_cifar10(read("cifar10"))
    holds_cifar10(read("cifar10"))
    assert server.asked == [None]


@pytest.mark.parametrize(("shape", "gives"), [((3072,), (200, 3072)), ((8, 8, 1), (200, 8, 8, 1))])
def test_pictures_come_as_the_network_takes_them(shape, gives, tmp_path):
    assert read(write(tmp_path / "mine", binary()), shape).train["x"].shape == gives


def test_a_pickle_that_names_anything_but_an_array_is_refused_and_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    files = pickles() | {"data_batch_2": pickle.dumps({"data": Trap()}, protocol=2)}
    with pytest.raises(TaskError, match=r"mine/data_batch_2 \(the binary version needs no pickles\) cannot be read as "
                                        r"plain data: it names `(io|_io|builtins|__builtin__)\.open`"):  # fmt: skip
        read(write(tmp_path / "mine", files))
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("change", "says"),
    [({"data_batch_3.bin": b"x" * 3000}, "mine/data_batch_3.bin is broken: 3,000 bytes are no whole number"),
     ({"data_batch_4.bin": None, "data_batch_5.bin": None}, "data_batch_4.bin, data_batch_5.bin missing"),
     ({"batches.meta.txt": b"cat\ndog\n"}, "a picture is of class 9, but batches.meta.txt names 2")],
)  # fmt: skip
def test_broken_files_are_named(change, says, tmp_path):
    files = {name: one for name, one in (binary() | change).items() if one is not None}
    with pytest.raises(TaskError, match=says):
        read(write(tmp_path / "mine", files))


@pytest.mark.parametrize(
    ("part", "says"),
    [({"data": np.zeros((2, 9), np.uint8), "labels": [0, 1]}, r"`data` must be bytes of shape \(N, 3,072\)"),
     ({"data": np.zeros((2, 3072), np.uint8), "labels": [0]}, "`labels` must be a class number for each of the 2"),
     ({"data": np.zeros((2, 3072), np.uint8)}, "`labels` must be"), ([1], "holds no dictionary")],
)  # fmt: skip
def test_a_pickle_of_other_things_is_named(part, says, tmp_path):
    files = pickles() | {"data_batch_1": pickle.dumps(part, protocol=2)}
    with pytest.raises(TaskError, match=says):
        read(write(tmp_path / "mine", files))


def test_an_archive_that_broke_off_is_said_to_be_so(tmp_path):
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(packed(binary())[:500])
    with pytest.raises(TaskError, match=r"cifar-10-binary.tar.gz cannot be read"):
        read(tmp_path / "cifar-10-binary.tar.gz")
