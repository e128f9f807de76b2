"""Documents from files, folders and the handbook, shared out."""

import json

import numpy as np
import pytest

from neural.tasks.cutting.collection import collection, documents, handbook
from neural.tasks.cutting.compose import compose
from neural.tasks.cutting.document import parts
from neural.tasks.cutting.duplicates import shared_elements
from neural.tasks.cutting.reader import Reading
from neural.tasks.task import TaskError


def ref(folder, name, sections):
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["==========", *(line for section in sections for line in [*section, "=========="])]
    (folder / f"{name}.ref").write_text("\n".join(lines), encoding="utf-8")


def names(found):
    return {one.name for one in found}


def test_a_folder_is_shared_out_by_the_seed(tmp_path):
    for number in range(20):
        ref(tmp_path, f"d{number}", [["a", "b"], [f"c {number}"]])
    one, other = collection(tmp_path), collection(tmp_path, seed=1)
    assert (len(one.train), len(one.valid), len(one.test)) == (16, 2, 2)
    assert len(names(one.documents)) == 20
    assert names(one.valid) == names(collection(tmp_path).valid)
    assert names(one.valid) != names(other.valid)


@pytest.mark.parametrize(("count", "shares"), [(1, (1, 0, 0)), (2, (1, 1, 0)), (3, (1, 1, 1))])
def test_something_is_always_left_to_train_on(tmp_path, count, shares):
    for number in range(count):
        ref(tmp_path, f"d{number}", [["a", "b"], [f"c {number}"]])
    found = collection(tmp_path)
    assert (len(found.train), len(found.valid), len(found.test)) == shares


def test_folders_of_parts_keep_their_meaning(tmp_path):
    for split in ("train", "dev", "test"):
        ref(tmp_path / split, f"in_{split}", [["a"], [f"b {split}"]])
    ref(tmp_path, "outside", [["a"], ["b"]])
    found = collection(tmp_path)
    assert [names(part) for part in (found.train, found.valid, found.test)] == [{"in_train"}, {"in_dev"}, {"in_test"}]
    assert "1 documents outside" in found.remarks[0]


def test_files_of_parts_share_their_labels(tmp_path):
    for name, labels in (("train", ["verse", "chorus"]), ("valid", ["chorus", "verse"])):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"lines": ["a", name], "labels": labels}))
    found = collection(tmp_path)
    assert found.labels == ("verse", "chorus")
    assert found.train[0].labels.tolist() == [0, 1] and found.valid[0].labels.tolist() == [1, 0]


def test_training_files_alone_are_judged_by_a_part_of_them(tmp_path):
    for number in range(10):
        ref(tmp_path / "train", f"d{number}", [["a"], [f"b {number}"]])
    found = collection(tmp_path)
    assert (len(found.train), len(found.valid), len(found.test)) == (9, 1, 0)


def test_equal_documents_are_in_one_part(tmp_path):
    for number in range(40):
        ref(tmp_path, f"d{number}", [
            [f"The first line of {number % 10}."], ["And  its SECOND" if number < 20 else "and its second"],
        ])  # fmt: skip
    found = collection(tmp_path)
    assert (len(found.train), len(found.valid), len(found.test)) == (32, 4, 4)
    texts = [{one.elements[0] for one in part} for part in (found.train, found.valid, found.test)]
    assert [len(part) for part in texts] == [8, 1, 1]
    assert not texts[0] & (texts[1] | texts[2])
    assert found.remarks == (f"{tmp_path.name}: 30 of 40 documents occur before; equal documents are in one part",)


def test_documents_in_two_parts_of_the_data_are_refused(tmp_path):
    for number in range(6):
        ref(tmp_path / "train", f"t{number}", [["a"], [f"b {number}"]])
        ref(tmp_path / "test", f"d{number}", [["A", f" b {number} "], ["c"][: number // 5]])
    refused = r"5 documents are in two parts: t\d \(train, test\), .* and 2 more; .* `allow_duplicates: true`"
    with pytest.raises(TaskError, match=refused):
        collection(tmp_path)
    found = collection(tmp_path, allow_duplicates=True)
    assert len(found.test) == 6
    assert "5 documents are in two parts" in found.remarks[0]


def test_text_that_is_shared_between_parts_is_noted(tmp_path):
    lines = [f"This is line {number}, long enough not to be equal by chance." for number in range(40)]
    for number in range(20):
        ref(tmp_path, f"d{number}", [lines[number : number + 9], [f"{number}"]])
    assert "% of the elements held out" in collection(tmp_path).remarks[0]
    for number in range(20):
        ref(tmp_path, f"d{number}", [[f"{line} In document {number}." for line in lines[:9]], [f"{number}"]])
    assert collection(tmp_path).remarks == ()


def test_held_out_topics_of_the_handbook_are_not_in_training_topics():
    found = collection("handbook")
    assert shared_elements((*found.valid, *found.test), found.train) < 0.05


def test_the_handbook_needs_no_download_and_its_topics_stay_apart():
    found = collection("handbook", compose=30)
    assert len(found.documents) == 30 and all(one.boundaries.any() for one in found.documents)
    homes: dict[str, list[str]] = {}
    for name, elements in handbook():
        for element in elements:
            homes.setdefault(element, []).append(name)
    topics = [
        {homes[element][0] for one in part for element in one.elements if len(homes[element]) == 1}
        for part in (found.train, found.valid, found.test)
    ]
    assert all(topics) and not topics[0] & topics[1] and not topics[0] & topics[2] and not topics[1] & topics[2]


def test_composed_documents_have_parts_from_different_sources():
    sources = [[f"{name}{number}" for number in range(20)] for name in "abcdefghijklm"]
    for document in compose(sources, 25, seed=3):
        sections = parts(document)
        assert len(sections) == 10 and all(3 <= len(section) <= 11 for section in sections)
        assert len({section[0][0] for section in sections}) == 10
        for section in sections:   # a run of the source, in its order
            first = int(section[0][1:])
            assert [int(line[1:]) for line in section] == list(range(first, first + len(section)))


def test_composing_is_a_pure_function_of_the_seed():
    sources = [[f"{name}{number}" for number in range(9)] for name in "abc"]
    one, again, other = (compose(sources, 4, seed=seed) for seed in (0, 0, 1))
    assert [a.elements for a in one] == [b.elements for b in again] != [c.elements for c in other]
    assert compose(sources, 2, seed=0)[1].elements == one[1].elements


def test_composing_needs_two_sources(tmp_path):
    with pytest.raises(ValueError, match="two texts of 3 or more"):
        compose([["a"] * 5, ["b"]], 1, seed=0)
    ref(tmp_path, "one", [["a", "b"], ["c"]])
    with pytest.raises(TaskError, match="train: two texts"):
        collection(tmp_path, compose=5)


def test_a_collection_can_be_composed_anew(tmp_path):
    for number in range(30):
        ref(tmp_path, f"d{number}", [[f"{number}-{line}" for line in range(6)], ["end of it"]])
    found = collection(tmp_path, compose=40)
    assert len(found.documents) == 40
    homes = [{one.split("-")[0] for document in part for one in document.elements if "-" in one}
             for part in (found.train, found.valid, found.test)]  # fmt: skip
    assert not homes[0] & homes[1] and not homes[0] & homes[2] and not homes[1] & homes[2]


@pytest.mark.parametrize(
    ("data", "message"),
    [("hanbook", "did you mean `handbook`"), ("nowhere/at/all", "known by name: handbook")],
)
def test_data_that_is_not_there_is_guessed(tmp_path, data, message):
    with pytest.raises(TaskError, match=message):
        collection(data, tmp_path)


def test_a_folder_of_several_kinds_is_refused(tmp_path):
    ref(tmp_path, "a", [["a"], ["b"]])
    (tmp_path / "b.txt").write_text("text")
    with pytest.raises(TaskError, match=r"several kinds, as (a.ref and b.txt|b.txt and a.ref)"):
        documents(tmp_path)


def test_a_folder_without_documents_lists_what_can_be_read(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"x")
    with pytest.raises(TaskError, match="holds no documents"):
        documents(tmp_path)


def test_hidden_files_are_left_alone(tmp_path):
    ref(tmp_path, "a", [["a"], ["b"]])
    (tmp_path / ".b.txt").write_text("text")
    assert len(documents(tmp_path)) == 1


def test_what_is_worth_knowing_is_handed_on(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n\nbar")
    found = collection(tmp_path, reading=Reading("lines"))
    assert found.remarks == ("a.txt is not UTF-8 (byte 3): read as Latin-1",)
    np.testing.assert_array_equal(found.train[0].boundaries, [False, True])
