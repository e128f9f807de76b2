"""Pickles are read through before they run; tests of what they hold are in sources/test_cifar.py."""

import pickle

import numpy as np
import pytest

from neural.tasks.data.unpickled import unpickled
from neural.tasks.task import TaskError


@pytest.mark.parametrize("protocol", range(5))   # arrays of the sixth name a function that is not known here
def test_plain_data_of_every_protocol_is_read(protocol):
    data = {"x": np.arange(6, dtype=np.uint8).reshape(2, 3), "y": [1, 2.5, None, True, "a"], b"z": (1, (2, 3))}
    data["twice"] = [data["x"], data["y"], "text", data["y"]]
    found = unpickled(pickle.dumps(data, protocol=protocol), "here")
    assert found["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert found["y"] == [1, 2.5, None, True, "a"]
    assert found["z"] == (1, (2, 3))
    assert found["twice"][1] is found["twice"][3]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (pickle.dumps({"a": {1, 2}}, protocol=4), r"it does what plain data does not \(empty_set\)"),
        (pickle.dumps({"a": bytearray(3)}, protocol=5), r"plain data does not \(bytearray8\)"),
        (b"\x80\x02}r\xff\xff\xff\x7f.", "it remembers a value under the number 2147483647"),
        (b"(p-1\n.", "remembers a value under the number -1"),
        (b"\x80\x02}K\x01\x85q\x00h\x00\x86K\x01s.", "a tuple stands in it twice"),
        (b"\x80\x02}K\x01\x85Nbq\x00h\x00\x86K\x01s.", "a tuple stands in it twice"),
        (b"\x80\x02}K\x01\x85(eq\x00h\x00\x86K\x01s.", "a tuple stands in it twice"),
        (b"\x80\x02}K\x01\x85N0q\x00h\x00\x86K\x01s.", "a tuple stands in it twice"),
        (b"\x80\x02}2.", r"\(dup\)"),
        (b"", "cannot be read as plain data"),
        (b"\x80\x02", "cannot be read as plain data"),
    ],
)
def test_what_no_pickle_of_data_does_is_refused(content, says):
    with pytest.raises(TaskError, match=says):
        unpickled(content, "here")
