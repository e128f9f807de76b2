"""What a user writes as `data` finds the one source that reads it."""

import numpy as np
import pytest

from neural.tasks.data.find import known, locate, read, said
from neural.tasks.data.sources import registry
from neural.tasks.task import TaskError
from tests.tasks.networks import DENSE

every_source = pytest.mark.parametrize("name", registry.names())


@every_source
def test_a_source_says_how_it_is_recognised_and_takes_its_own_names(name):
    source = registry.get(name)
    assert source.looks
    assert source.__doc__
    assert all(source.fits(one) for one in source.names)


def test_no_two_sources_know_the_same_name():
    assert len(known()) == len(set(known()))


@every_source
def test_nothing_that_is_not_its_own_fits_a_source(name, tmp_path):
    (tmp_path / "notes.xyz").touch()
    (tmp_path / "empty").mkdir()
    for where in ("no such name", tmp_path / "notes.xyz", tmp_path / "empty"):
        assert not registry.get(name).fits(where)


def test_a_known_name_is_the_data_set_and_a_path_is_the_folder(tmp_path):
    (tmp_path / "digits").mkdir()
    assert locate("digits", tmp_path) == "digits"
    assert locate("./digits", tmp_path) == tmp_path / "digits"


def test_paths_are_seen_from_the_folder_and_written_down_whole(tmp_path):
    (tmp_path / "a.npy").touch()
    assert said(locate("a.npy", tmp_path)) == str(tmp_path / "a.npy")
    assert said(locate({"x": "a.npy", "y": "a.npy"}, tmp_path)) == {name: str(tmp_path / "a.npy") for name in "xy"}
    assert said("digits") == "digits"


def test_arrays_in_memory_are_known_to_be_gone(tmp_path):
    with pytest.raises(TaskError, match="the data was in memory, and went with the process; give the arrays again"):
        locate(said((np.zeros(3), np.zeros(3))), tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("digist", r"there is no data `digist`: no such file or folder in .*; did you mean `digits`\?"),
        ("gone.npz", "there is no data `gone.npz`.*known by name: .*digits"),
        ({"x": "a.npy", "y": "gone.npy"}, "there is no data"),
        ("x" * 5000, "there is no data"),
        (3, "data must be a name, a path or arrays, got int"),
    ],
)
def test_data_that_is_not_there_is_named(data, message, tmp_path):
    (tmp_path / "a.npy").touch()
    with pytest.raises(TaskError, match=message):
        locate(data, tmp_path)


def test_what_nobody_can_read_is_answered_with_what_can_be_read(tmp_path):
    (tmp_path / "notes.xyz").touch()
    with pytest.raises(TaskError, match="nothing that can be read; known are") as caught:
        read(tmp_path / "notes.xyz", DENSE)
    for name in registry.names():
        assert registry.get(name).looks in str(caught.value)


def test_a_folder_of_two_kinds_is_refused(tmp_path):
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "a.txt").touch()
    (tmp_path / "cats" / "a.png").touch()
    with pytest.raises(TaskError, match=r"could be read in two ways: .*pictures.*txt"):
        read(tmp_path, DENSE)
