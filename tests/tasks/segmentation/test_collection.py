"""Documents from files, folders and the handbook, split into training, validation and test."""

import json

import numpy as np
import pytest

from neural.core.errors import TaskError
from neural.tasks.segmentation.collection import (
    compose_documents,
    load_collection,
    load_documents,
    load_handbook,
)
from neural.tasks.segmentation.document import split_segments
from neural.tasks.segmentation.duplicates import measure_overlap
from neural.tasks.segmentation.reader import ReaderOptions


def write_ref(folder, name, segments):
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["==========", *(line for segment in segments for line in [*segment, "=========="])]
    (folder / f"{name}.ref").write_text("\n".join(lines), encoding="utf-8")


def names(documents):
    return {document.name for document in documents}


def split_sizes(collection):
    return len(collection.train), len(collection.valid), len(collection.test)


def test_a_folder_is_split_by_the_seed(tmp_path):
    for number in range(20):
        write_ref(tmp_path, f"d{number}", [["a", "b"], [f"c {number}"]])
    collection, other = load_collection(tmp_path), load_collection(tmp_path, seed=1)
    assert split_sizes(collection) == (16, 2, 2)
    assert len(names(collection.documents)) == 20
    assert names(collection.valid) == names(load_collection(tmp_path).valid)
    assert names(collection.valid) != names(other.valid)


@pytest.mark.parametrize(("count", "sizes"), [(1, (1, 0, 0)), (2, (1, 1, 0)), (3, (1, 1, 1))])
def test_a_document_is_always_left_to_train_on(tmp_path, count, sizes):
    for number in range(count):
        write_ref(tmp_path, f"d{number}", [["a", "b"], [f"c {number}"]])
    assert split_sizes(load_collection(tmp_path)) == sizes


def test_folders_named_after_splits_are_the_splits(tmp_path):
    for split in ("train", "dev", "test"):
        write_ref(tmp_path / split, f"in_{split}", [["a"], [f"b {split}"]])
    write_ref(tmp_path, "outside", [["a"], ["b"]])
    collection = load_collection(tmp_path)
    assert [names(split) for split in (collection.train, collection.valid, collection.test)] == [
        {"in_train"},
        {"in_dev"},
        {"in_test"},
    ]
    assert "1 documents outside" in collection.notes[0]


def test_files_of_splits_share_their_label_ids(tmp_path):
    for name, labels in (("train", ["verse", "chorus"]), ("valid", ["chorus", "verse"])):
        (tmp_path / f"{name}.jsonl").write_text(
            json.dumps({"lines": ["a", name], "labels": labels})
        )
    collection = load_collection(tmp_path)
    assert collection.labels == ("verse", "chorus")
    assert collection.train[0].labels.tolist() == [0, 1] and collection.valid[
        0
    ].labels.tolist() == [1, 0]


def test_training_files_alone_give_a_validation_split(tmp_path):
    for number in range(10):
        write_ref(tmp_path / "train", f"d{number}", [["a"], [f"b {number}"]])
    assert split_sizes(load_collection(tmp_path)) == (9, 1, 0)


def test_equal_documents_are_in_one_split(tmp_path):
    for number in range(40):
        write_ref(
            tmp_path,
            f"d{number}",
            [
                [f"The first line of {number % 10}."],
                ["And  its SECOND" if number < 20 else "and its second"],
            ],
        )
    collection = load_collection(tmp_path)
    assert split_sizes(collection) == (32, 4, 4)
    texts = [
        {document.elements[0] for document in split}
        for split in (collection.train, collection.valid, collection.test)
    ]
    assert [len(split_texts) for split_texts in texts] == [8, 1, 1]
    assert not texts[0] & (texts[1] | texts[2])
    assert collection.notes == (
        f"{tmp_path.name}: 30 of 40 documents are duplicates; equal documents are in one split",
    )


def test_documents_in_two_splits_of_the_data_are_refused(tmp_path):
    for number in range(6):
        write_ref(tmp_path / "train", f"t{number}", [["a"], [f"b {number}"]])
        write_ref(tmp_path / "test", f"d{number}", [["A", f" b {number} "], ["c"][: number // 5]])
    message = (
        r"5 documents are in two splits: t\d \(train, test\), .* and 2 more; "
        r".* `allow_duplicates: true`"
    )
    with pytest.raises(TaskError, match=message):
        load_collection(tmp_path)
    collection = load_collection(tmp_path, allow_duplicates=True)
    assert len(collection.test) == 6
    assert "5 documents are in two splits" in collection.notes[0]


def test_text_that_is_shared_between_splits_is_noted(tmp_path):
    lines = [
        f"This is line {number}, long enough not to be equal by chance." for number in range(40)
    ]
    for number in range(20):
        write_ref(tmp_path, f"d{number}", [lines[number : number + 9], [f"{number}"]])
    assert "% of the held-out elements" in load_collection(tmp_path).notes[0]
    for number in range(20):
        write_ref(
            tmp_path,
            f"d{number}",
            [[f"{line} In document {number}." for line in lines[:9]], [f"{number}"]],
        )
    assert load_collection(tmp_path).notes == ()


def test_held_out_topics_of_the_handbook_are_not_in_training_topics():
    collection = load_collection("handbook")
    assert measure_overlap((*collection.valid, *collection.test), collection.train) < 0.05


def test_the_handbook_needs_no_download_and_its_splits_share_no_topic():
    collection = load_collection("handbook", compose=30)
    assert len(collection.documents) == 30 and all(
        document.boundaries.any() for document in collection.documents
    )
    topics_by_element: dict[str, list[str]] = {}
    for name, elements in load_handbook():
        for element in elements:
            topics_by_element.setdefault(element, []).append(name)
    topics = [
        {
            topics_by_element[element][0]
            for document in split
            for element in document.elements
            if len(topics_by_element[element]) == 1
        }
        for split in (collection.train, collection.valid, collection.test)
    ]
    assert (
        all(topics)
        and not topics[0] & topics[1]
        and not topics[0] & topics[2]
        and not topics[1] & topics[2]
    )


def test_composed_documents_have_segments_from_different_sources():
    sources = [[f"{name}{number}" for number in range(20)] for name in "abcdefghijklm"]
    for document in compose_documents(sources, 25, seed=3):
        segments = split_segments(document)
        assert len(segments) == 10 and all(3 <= len(segment) <= 11 for segment in segments)
        assert len({segment[0][0] for segment in segments}) == 10
        for segment in segments:  # consecutive elements of the source
            first = int(segment[0][1:])
            assert [int(line[1:]) for line in segment] == list(range(first, first + len(segment)))


def test_composing_is_a_pure_function_of_the_seed():
    sources = [[f"{name}{number}" for number in range(9)] for name in "abc"]
    first, again, other = (
        [document.elements for document in compose_documents(sources, 4, seed=seed)]
        for seed in (0, 0, 1)
    )
    assert first == again != other
    assert compose_documents(sources, 2, seed=0)[1].elements == first[1]


def test_composing_needs_two_sources(tmp_path):
    with pytest.raises(ValueError, match="needs two texts of 3 or more"):
        compose_documents([["a"] * 5, ["b"]], 1, seed=0)
    write_ref(tmp_path, "one", [["a", "b"], ["c"]])
    with pytest.raises(TaskError, match="train: composing needs two texts"):
        load_collection(tmp_path, compose=5)


def test_splits_of_composed_documents_share_no_source(tmp_path):
    for number in range(30):
        write_ref(
            tmp_path, f"d{number}", [[f"{number}-{line}" for line in range(6)], ["end of it"]]
        )
    collection = load_collection(tmp_path, compose=40)
    assert len(collection.documents) == 40
    sources = [
        {
            element.split("-")[0]
            for document in split
            for element in document.elements
            if "-" in element
        }
        for split in (collection.train, collection.valid, collection.test)
    ]
    assert not sources[0] & sources[1]
    assert not sources[0] & sources[2]
    assert not sources[1] & sources[2]


@pytest.mark.parametrize(
    ("data", "message"),
    [("hanbook", "did you mean `handbook`"), ("nowhere/at/all", "known by name: handbook")],
)
def test_missing_data_gets_a_suggestion(tmp_path, data, message):
    with pytest.raises(TaskError, match=message):
        load_collection(data, tmp_path)


def test_a_folder_of_several_formats_is_refused(tmp_path):
    write_ref(tmp_path, "a", [["a"], ["b"]])
    (tmp_path / "b.txt").write_text("text")
    with pytest.raises(
        TaskError, match=r"several formats, such as (a.ref and b.txt|b.txt and a.ref)"
    ):
        load_documents(tmp_path)


def test_a_folder_without_documents_is_refused(tmp_path):
    (tmp_path / "a.pdf").write_bytes(b"x")
    with pytest.raises(TaskError, match="holds no documents"):
        load_documents(tmp_path)


def test_hidden_files_are_ignored(tmp_path):
    write_ref(tmp_path, "a", [["a"], ["b"]])
    (tmp_path / ".b.txt").write_text("text")
    assert len(load_documents(tmp_path)) == 1


def test_notes_of_the_reader_are_notes_of_the_collection(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n\nbar")
    collection = load_collection(tmp_path, options=ReaderOptions("lines"))
    assert collection.notes == ("a.txt is not UTF-8 (byte 3): read as Latin-1",)
    np.testing.assert_array_equal(collection.train[0].boundaries, [False, True])
