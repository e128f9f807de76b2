"""What leaves is compared with the network first; what does not agree never takes a name."""

import os

import pytest
import torch

from neural import export as exporting
from neural.export import Export, export, leaving_from
from neural.export_inputs import CannotExport, leaving_of
from neural.tracking.trouble import RunError
from tests.exports.networks import network, segmenter, writer
from tests.written_runs import CHARACTERS, write_run


class Faithful(Export):
    """The file is a word; the network itself answers for it."""

    suffix = ".txt"
    off, length = 0.0, None

    def write(self, leaving, path):
        path.write_text("whole")

    def read(self, leaving, path):
        def called(*inputs):
            if self.length not in (None, inputs[0].shape[1]):
                raise RuntimeError(f"expected {self.length}\nand a long story")
            return leaving(*inputs) + self.off

        return called


class Liar(Faithful):
    off = 1e-3


class OneLength(Faithful):
    length = 16


class Broken(Faithful):
    off = float("nan")


def test_what_agrees_takes_its_name_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("old")
    done = export(writer(), Faithful, path)
    assert path.read_text() == "whole"
    assert (done.size, done.difference, done.shapes) == (5, 0.0, [(2, 16), (3, 15), (1, 8)])
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("form", "says"),
    [
        (Liar, r"differs by 0.001 at \(2, 16\); 1e-04 is allowed. It was thrown away; --length 16"),
        (OneLength, r"fails at \(3, 15\): expected 16. It was thrown away"),
        (Broken, "differs by nan"),
    ],
)
def test_what_does_not_agree_is_thrown_away_and_the_old_file_stays(form, says, tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("old")
    with pytest.raises(CannotExport, match=says):
        export(writer(), form, path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_one_length_alone_can_be_asked_for(tmp_path):
    assert export(writer(length=16), OneLength, tmp_path / "net.txt").shapes == [(2, 16), (3, 16), (1, 16)]


def test_a_missing_package_names_the_command_that_installs_it(tmp_path, monkeypatch):
    monkeypatch.setattr(Faithful, "needs", ("no_such_package",))
    with pytest.raises(CannotExport, match=r'needs no_such_package, .*: pip install "neural\[export\]"'):
        export(writer(), Faithful, tmp_path / "net.txt")


def test_a_folder_in_the_way_is_not_touched(tmp_path):
    (tmp_path / "net.txt").mkdir()
    with pytest.raises(CannotExport, match="is a folder with something in it"):
        export(writer(), Faithful, tmp_path / "net.txt")


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(RunError, match=r"nowhere/net\.txt cannot be written"):
        export(writer(), Faithful, tmp_path / "nowhere" / "net.txt")


def test_the_best_weights_of_a_run_leave_with_its_characters(tmp_path):
    path = write_run(tmp_path, vocabulary=list(CHARACTERS))
    leaving = leaving_from(path)
    assert leaving.facts == {"vocabulary": list(CHARACTERS)}
    assert leaving.gives == "probabilities"
    ids = torch.zeros(1, 3, dtype=torch.long)
    assert leaving(ids).sum(dim=-1) == pytest.approx(1)
    assert leaving_from(path, scores=True)(ids).softmax(dim=-1) == pytest.approx(leaving(ids))


def test_a_network_that_knows_its_length_leaves_with_that_one():
    text = 'network Flat {\n  input: (7, 3)\n  layers:\n    Flatten()\n    Output(2)\n}'
    leaving = network(text)
    assert not leaving.free
    assert leaving.trials == ((2, 7), (3, 7), (1, 7))
    assert leaving.gives == "predictions"
    with pytest.raises(CannotExport, match="takes sequences of 7 and no others; leave --length out"):
        network(text, length=5)


def test_images_have_no_padding():
    text = "network Image {\n  input: (8, 9, 1)\n  layers:\n    Conv2D(2)\n    Flatten()\n    Output(2)\n}"
    with pytest.raises(CannotExport, match="takes no sequences, so there is no padding; leave --mask out"):
        network(text, masked=True)


def test_padding_is_not_compared():
    leaving = segmenter(masked=True)
    x, mask = leaving.batch(3, 9)
    assert not mask.all()
    assert leaving.counted((x, mask), leaving(x, mask)) is mask


def test_what_is_more_than_one_network_is_refused():
    with pytest.raises(CannotExport, match="a run of `focus` is more than one network"):
        leaving_of(torch.nn.Linear(2, 2), "run", task="focus")
    assert exporting.INSTALL == 'pip install "neural[export]"'


def test_numbers_above_one_are_compared_by_their_share(tmp_path):
    text = "network Price {\n  input: (3,)\n  layers:\n    Output(1)\n}"
    leaving = network(text)
    with torch.no_grad():
        leaving.model.output.linear.bias += 1000
    assert export(leaving, Liar, tmp_path / "price.txt").difference == pytest.approx(1e-6, rel=0.1)


def test_features_have_no_time_and_are_tried_in_batches_of_three_sizes():
    leaving = network("network Price {\n  input: (3,)\n  layers:\n    Output(1)\n}")
    assert not leaving.free
    assert leaving.trials == ((2, 3), (3, 3), (1, 3))


def test_a_program_for_one_position_leaves_for_any_number_of_them():
    leaving = network("network One {\n  input: (1, 3)\n  layers:\n    Output(2)\n}")
    assert leaving.free
    assert leaving.trials[0] == (2, 2), "what is traced at one position stays at one"


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/null")])
def test_a_device_or_a_pipe_is_never_replaced_by_a_file(make, tmp_path):
    make(tmp_path / "net.txt")
    with pytest.raises(CannotExport, match=r"net\.txt is no place for a file; name another with -o"):
        export(writer(), Faithful, tmp_path / "net.txt")
    assert not (tmp_path / "net.txt").is_file()
