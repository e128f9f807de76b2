"""Pickles are checked before they run; sources/test_cifar.py tests their contents."""

import pickle

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.data.safe_pickle import load_plain_pickle


# In protocol 5, arrays name a function that is not allowed.
@pytest.mark.parametrize("protocol", range(5))
def test_plain_data_of_every_protocol_is_read(protocol):
    data = {
        "x": np.arange(6, dtype=np.uint8).reshape(2, 3),
        "y": [1, 2.5, None, True, "a"],
        b"z": (1, (2, 3)),
    }
    data["twice"] = [data["x"], data["y"], "text", data["y"]]
    loaded = load_plain_pickle(pickle.dumps(data, protocol=protocol), "here")
    assert loaded["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert loaded["y"] == [1, 2.5, None, True, "a"]
    assert loaded["z"] == (1, (2, 3))
    assert loaded["twice"][1] is loaded["twice"][3]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            pickle.dumps({"a": {1, 2}}, protocol=4),
            r"plain data does not use the opcode EMPTY_SET",
        ),
        (
            pickle.dumps({"a": bytearray(3)}, protocol=5),
            r"plain data does not use the opcode BYTEARRAY8",
        ),
        (b"\x80\x02}r\xff\xff\xff\x7f.", "its memo index 2147483647 is out of range"),
        (b"(p-1\n.", "its memo index -1 is out of range"),
        (b"\x80\x02}K\x01\x85q\x00h\x00\x86K\x01s.", "it references a tuple twice"),
        (b"\x80\x02}K\x01\x85Nbq\x00h\x00\x86K\x01s.", "it references a tuple twice"),
        (b"\x80\x02}K\x01\x85(eq\x00h\x00\x86K\x01s.", "it references a tuple twice"),
        (b"\x80\x02}K\x01\x85N0q\x00h\x00\x86K\x01s.", "it references a tuple twice"),
        (b"\x80\x02}2.", r"plain data does not use the opcode DUP"),
        (b"", "cannot be read as plain data"),
        (b"\x80\x02", "cannot be read as plain data"),
    ],
)
def test_opcodes_that_plain_data_does_not_need_are_refused(content, message):
    with pytest.raises(TaskError, match=message):
        load_plain_pickle(content, "here")
