"""The `data` setting selects the one source that reads it."""

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.loading import list_datasets, load_data, locate_data, serialize_location
from neural.data.sources import registry
from tests.tasks.networks import DENSE

every_source = pytest.mark.parametrize("name", registry.names())


@every_source
def test_a_source_has_a_description_and_matches_its_dataset_names(name):
    source = registry.get(name)
    assert source.description
    assert source.__doc__
    assert all(source.matches(dataset_name) for dataset_name in source.dataset_names)


def test_no_two_sources_have_the_same_dataset_name():
    assert len(list_datasets()) == len(set(list_datasets()))


@every_source
def test_a_source_does_not_match_unrelated_locations(name, tmp_path):
    (tmp_path / "notes.xyz").touch()
    (tmp_path / "empty").mkdir()
    for location in ("no such name", tmp_path / "notes.xyz", tmp_path / "empty"):
        assert not registry.get(name).matches(location)


def test_a_known_name_is_the_dataset_and_a_path_is_the_folder(tmp_path):
    (tmp_path / "digits").mkdir()
    assert locate_data("digits", tmp_path) == "digits"
    assert locate_data("./digits", tmp_path) == tmp_path / "digits"


def test_relative_paths_start_at_the_folder_and_are_saved_absolute(tmp_path):
    (tmp_path / "a.npy").touch()
    assert serialize_location(locate_data("a.npy", tmp_path)) == str(tmp_path / "a.npy")
    assert serialize_location(locate_data({"x": "a.npy", "y": "a.npy"}, tmp_path)) == {
        name: str(tmp_path / "a.npy") for name in "xy"
    }
    assert serialize_location("digits") == "digits"


def test_arrays_in_memory_cannot_be_loaded_again(tmp_path):
    with pytest.raises(
        TaskError,
        match="the data was in memory and is gone with its process; pass the arrays again",
    ):
        locate_data(serialize_location((np.zeros(3), np.zeros(3))), tmp_path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            "digist",
            r"there is no data `digist`: no such file or folder in .*; did you mean `digits`\?",
        ),
        ("nothing", "there is no data `nothing`.*known by name: .*digits"),
        ("gone.npz", "there is no data `gone.npz`: no such file or folder in [^;]*$"),
        ("b.npy", "there is no data `b.npy`: no such file or folder in [^;]*$"),
        ("pateints.csv", r"there is no data `pateints.csv`: .*; did you mean `patients.csv`\?"),
        ({"x": "a.npy", "y": "gone.npy"}, "there is no data"),
        ("x" * 5000, "there is no data"),
        (3, "data must be a name, a path or arrays, got int"),
    ],
)
def test_missing_data_is_named(data, message, tmp_path):
    (tmp_path / "a.npy").touch()
    (tmp_path / "patients.csv").touch()
    with pytest.raises(TaskError, match=message):
        locate_data(data, tmp_path)


def test_an_unknown_kind_of_data_is_reported_with_the_known_kinds(tmp_path):
    (tmp_path / "notes.xyz").touch()
    with pytest.raises(TaskError, match="is not a known kind of data; known are") as caught:
        load_data(tmp_path / "notes.xyz", DENSE)
    for name in registry.names():
        assert registry.get(name).description in str(caught.value)


def test_a_spreadsheet_should_be_saved_as_csv(tmp_path):
    (tmp_path / "data.xlsx").touch()
    with pytest.raises(TaskError, match=r"data.xlsx is a spreadsheet; save it as CSV"):
        load_data(tmp_path / "data.xlsx", DENSE)


def test_a_folder_of_two_kinds_is_refused(tmp_path):
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "a.txt").touch()
    (tmp_path / "cats" / "a.png").touch()
    with pytest.raises(TaskError, match=r"matches several kinds of data: .*images.*txt"):
        load_data(tmp_path, DENSE)
