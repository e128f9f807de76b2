"""Every kind of file: what is read, and what is said where it is broken."""

import pytest

from neural.tasks.cutting.data import registry
from neural.tasks.cutting.document import parts
from neural.tasks.cutting.reader import Reading
from neural.tasks.task import TaskError


def read(tmp_path, name, text, **how):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    kind = next(kind for kind in map(registry.get, registry.names()) if path.suffix in kind.suffixes)
    return kind.read(path, Reading(**how))[0]


@pytest.mark.parametrize("name", registry.names())
def test_every_reader_says_what_it_reads_and_refuses_what_is_empty(name, tmp_path):
    kind = registry.get(name)
    assert kind.looks and all(suffix.startswith(".") for suffix in kind.suffixes)
    with pytest.raises(TaskError, match=f"empty{kind.suffixes[0]} is empty"):
        read(tmp_path, f"empty{kind.suffixes[0]}", "")
    with pytest.raises(TaskError, match="is no text"):
        read(tmp_path, f"binary{kind.suffixes[0]}", b"\0\1\2")


@pytest.mark.parametrize("name", registry.names())
def test_no_two_readers_want_the_same_file(name):
    others = [registry.get(other) for other in registry.names() if other != name]
    assert not set(registry.get(name).suffixes) & {suffix for other in others for suffix in other.suffixes}


def test_labels_tell_where_parts_begin(tmp_path):
    first, second = read(
        tmp_path, "a.jsonl",
        '\ufeff{"name": "one", "lines": ["a", " b\\n c "], "labels": ["verse", "chorus"]}\r\n\n'
        '{"lines": ["x", "y", "z"], "labels": [3, 3, 1]}',
    )  # fmt: skip
    assert (first.name, second.name) == ("one", "a.jsonl, line 3")
    assert first.elements == ("a", "b c") and first.labels.tolist() == [0, 1]
    assert second.boundaries.tolist() == [False, False, True] and second.labels.tolist() == [3, 3, 1]


@pytest.mark.parametrize("given", ["[false, false, true]", "[0, 0, 1]", "[1, 0, 1]", "[2]"])
def test_boundaries_are_flags_or_numbers_of_lines(tmp_path, given):
    (document,) = read(tmp_path, "a.jsonl", f'{{"lines": ["x", "y", "z"], "boundaries": {given}}}')
    assert document.boundaries.tolist() == [False, False, True] and document.labels is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"lines": ["a",', r"line 2 is no JSON at column 16"),
        ("[" * 100_000, r"line 2 is no JSON"),
        ("[1]", "line 2 must be an object with `lines`"),
        ('{"line": ["a"], "labels": [1]}', "line 2: `lines` must be a list of texts; did you mean `line`"),
        ('{"lines": "a", "labels": [1]}', "line 2: `lines` must be a list of texts; it is a text"),
        ('{"lines": [], "labels": []}', "line 2: `lines` is empty"),
        ('{"lines": ["a", "b"], "labels": ["x"]}', "line 2 has 2 lines and 1 labels"),
        ('{"lines": ["a", "b"], "labels": "xy"}', "line 2: `labels` must be a list, it is a text"),
        ('{"lines": ["a", "b"], "labels": [1, "x"]}', "line 2: label 1 is a number"),
        ('{"lines": ["a", "b"], "labels": [null, "x"]}', "line 2: label 1 is not there"),
        ('{"lines": ["a", "b"], "label": [1, 2]}', "line 2: neither `labels` nor `boundaries`.*did you mean `label`"),
        ('{"lines": ["a", "b"], "boundaries": [5]}', "line 2: boundary 5 is no line: 2 lines are numbered 0 to 1"),
        ('{"lines": ["a", "b"], "boundaries": [true]}', "line 2 has 2 lines and 1 boundaries"),
        ('{"lines": ["a", "b"], "boundaries": [0.5, 1]}', "line 2: `boundaries` must be true and false"),
    ],
)
def test_a_broken_line_is_named_by_its_number(tmp_path, line, message):
    with pytest.raises(TaskError, match=message):
        read(tmp_path, "a.jsonl", '{"lines": ["a"], "labels": [1]}\n' + line)


def test_separators_part_a_ref_file(tmp_path):
    text = "==========\none . \n\ntwo .\r\n==========\nthree ===\n==========\n==========\n"
    (document,) = read(tmp_path, "a.ref", text)
    assert parts(document) == [("one .", "two ."), ("three ===",)]


def test_a_ref_file_of_separators_alone_is_refused(tmp_path):
    with pytest.raises(TaskError, match="no elements between"):
        read(tmp_path, "a.ref", "==========\n==========\n")


SONG = "One line\r\nanother line\r\n \t\r\nA third\r\n\r\n\r\nThe last one"
PAGE = """Opening words. More of them.

# First

Its text. It goes on.

Second
------
Text of the second.

3. Third

Text of the third.

```
# no heading
```
"""


def test_blank_lines_part_a_song(tmp_path):
    (document,) = read(tmp_path, "a.txt", SONG, unit="lines")
    assert parts(document) == [("One line", "another line"), ("A third",), ("The last one",)]


def test_headings_part_a_page_and_are_left_out(tmp_path):
    (document,) = read(tmp_path, "a.md", PAGE)
    assert [part[0] for part in parts(document)] == [
        "Opening words.", "Its text.", "Text of the second.", "Text of the third."
    ]  # fmt: skip
    assert any("# no heading" in element for element in document.elements)
    assert not any("First" in element or "Second" in element or "---" in element for element in document.elements)


def test_blank_lines_may_be_asked_for_where_there_are_headings(tmp_path):
    (document,) = read(tmp_path, "a.md", PAGE, told_by="blank_lines")
    assert ("# First",) in parts(document)


def test_headings_may_be_asked_for_and_are_missed(tmp_path):
    with pytest.raises(TaskError, match=r"a.txt has no headings"):
        read(tmp_path, "a.txt", SONG, told_by="headings")


def test_what_read_text_looked_like_is_not_kept(tmp_path):
    (document,) = read(tmp_path, "a.txt", SONG)   # blank lines are the answer here
    assert document.text is None and document.offsets is None
