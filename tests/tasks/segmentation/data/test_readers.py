"""Document readers: contents of every format, and messages for broken files."""

import pytest

from neural.core.errors import TaskError
from neural.tasks.segmentation.data import registry
from neural.tasks.segmentation.document import split_segments
from neural.tasks.segmentation.reader import ReaderOptions


def read(tmp_path, name, text, **options):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    reader = next(
        reader for reader in map(registry.get, registry.names()) if path.suffix in reader.suffixes
    )
    return reader.read(path, ReaderOptions(**options))[0]


@pytest.mark.parametrize("name", registry.names())
def test_every_reader_has_a_description_and_refuses_empty_and_binary_files(name, tmp_path):
    reader = registry.get(name)
    assert reader.description and all(suffix.startswith(".") for suffix in reader.suffixes)
    with pytest.raises(TaskError, match=f"empty{reader.suffixes[0]} is empty"):
        read(tmp_path, f"empty{reader.suffixes[0]}", "")
    with pytest.raises(TaskError, match="is not a text file"):
        read(tmp_path, f"binary{reader.suffixes[0]}", b"\0\1\2")


@pytest.mark.parametrize("name", registry.names())
def test_no_two_readers_have_the_same_suffix(name):
    others = [registry.get(other) for other in registry.names() if other != name]
    assert not set(registry.get(name).suffixes) & {
        suffix for other in others for suffix in other.suffixes
    }


def test_boundaries_are_label_changes(tmp_path):
    first, second = read(
        tmp_path,
        "a.jsonl",
        '\ufeff{"name": "one", "lines": ["a", " b\\n c "], "labels": ["verse", "chorus"]}\r\n\n'
        '{"lines": ["x", "y", "z"], "labels": [3, 3, 1]}',
    )
    assert (first.name, second.name) == ("one", "a.jsonl, line 3")
    assert first.elements == ("a", "b c") and first.labels.tolist() == [0, 1]
    assert second.boundaries.tolist() == [False, False, True] and second.labels.tolist() == [
        3,
        3,
        1,
    ]


@pytest.mark.parametrize("boundaries", ["[false, false, true]", "[0, 0, 1]", "[1, 0, 1]", "[2]"])
def test_boundaries_are_flags_or_indices_of_lines(tmp_path, boundaries):
    row = f'{{"lines": ["x", "y", "z"], "boundaries": {boundaries}}}'
    (document,) = read(tmp_path, "a.jsonl", row)
    assert document.boundaries.tolist() == [False, False, True] and document.labels is None


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"lines": ["a",', r"line 2 is not valid JSON at column 16"),
        ("[" * 100_000, r"line 2 is not valid JSON"),
        ("[1]", "line 2 must be an object with `lines`"),
        (
            '{"line": ["a"], "labels": [1]}',
            "line 2: `lines` must be a list of texts; did you mean `line`",
        ),
        ('{"lines": "a", "labels": [1]}', "line 2: `lines` must be a list of texts; it is a text"),
        ('{"lines": [], "labels": []}', "line 2: `lines` is empty"),
        ('{"lines": ["a", "b"], "labels": ["x"]}', "line 2 has 2 lines and 1 labels"),
        ('{"lines": ["a", "b"], "labels": "xy"}', "line 2: `labels` must be a list, it is a text"),
        ('{"lines": ["a", "b"], "labels": [1, "x"]}', "line 2: label 1 is a number"),
        ('{"lines": ["a", "b"], "labels": [null, "x"]}', "line 2: label 1 is missing"),
        (
            '{"lines": ["a", "b"], "label": [1, 2]}',
            "line 2: `labels` or `boundaries` is needed; did you mean `label`",
        ),
        (
            '{"lines": ["a", "b"], "boundaries": [5]}',
            "line 2: boundary 5 is not a line: 2 lines are numbered 0 to 1",
        ),
        ('{"lines": ["a", "b"], "boundaries": [true]}', "line 2 has 2 lines and 1 boundaries"),
        (
            '{"lines": ["a", "b"], "boundaries": [0.5, 1]}',
            "line 2: `boundaries` must be true and false",
        ),
    ],
)
def test_a_broken_line_is_named_by_its_number(tmp_path, line, message):
    with pytest.raises(TaskError, match=message):
        read(tmp_path, "a.jsonl", '{"lines": ["a"], "labels": [1]}\n' + line)


BOOK = """{"title": "Rivers", "parts": [
 {"title": "", "paragraphs": ["Water flows. It is wet.", " "]},
 {"title": "Fish", "paragraphs": ["Trout swim upstream.", "Eels are\\nlong. They hide."]},
 {"title": "Empty", "paragraphs": []},
 {"title": "Boats", "paragraphs": ["Boats float."]}]}""".replace("\n", "")


def test_parts_are_segments_of_the_sentences_of_their_paragraphs(tmp_path):
    (document,) = read(tmp_path, "a.jsonl", BOOK)
    assert document.name == "Rivers"
    assert split_segments(document) == [
        ("Water flows.", "It is wet."),
        ("Trout swim upstream.", "Eels are long.", "They hide."),
        ("Boats float.",),
    ]


def test_parts_keep_headings_and_blank_lines_if_told_to(tmp_path):
    (document,) = read(tmp_path, "a.jsonl", BOOK, layout="keep")
    assert document.text == (
        "Water flows. It is wet.\n\n## Fish\n\nTrout swim upstream.\n\n"
        "Eels are long. They hide.\n\n## Boats\n\nBoats float."
    )
    starts = [document.offsets[index][0] for index in document.boundaries.nonzero()[0]]
    assert [document.text[start:].split("\n")[0] for start in starts] == ["## Fish", "## Boats"]


def test_parts_are_also_read_without_their_segments(tmp_path):
    (document,) = read(tmp_path, "a.jsonl", BOOK, require_segments=False)
    assert len(document) == 6


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ('"text"', "line 1: `parts` must be a list, it is a text"),
        ("[]", "line 1: `parts` have no text"),
        ('[{"paragraphs": [" "]}]', "line 1: `parts` have no text"),
        ('[{"paragraphs": ["a"]}, {"text": "b"}]', "part 2 must be an object with `paragraphs`"),
        ('[{"paragraphs": ["a", 1]}]', "part 1 must be an object with `paragraphs`, a list of"),
        ("[3]", "part 1 must be an object"),
    ],
)
def test_broken_parts_are_named_by_their_number(tmp_path, parts, message):
    with pytest.raises(TaskError, match=message):
        read(tmp_path, "a.jsonl", f'{{"parts": {parts}}}')


def test_separators_split_a_ref_file(tmp_path):
    text = "==========\none . \n\ntwo .\r\n==========\nthree ===\n==========\n==========\n"
    (document,) = read(tmp_path, "a.ref", text)
    assert split_segments(document) == [("one .", "two ."), ("three ===",)]


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


def test_blank_lines_split_a_song(tmp_path):
    (document,) = read(tmp_path, "a.txt", SONG, unit="lines")
    assert split_segments(document) == [
        ("One line", "another line"),
        ("A third",),
        ("The last one",),
    ]


def test_headings_split_a_page_and_are_left_out(tmp_path):
    (document,) = read(tmp_path, "a.md", PAGE)
    assert [segment[0] for segment in split_segments(document)] == [
        "Opening words.",
        "Its text.",
        "Text of the second.",
        "Text of the third.",
    ]
    assert any("# no heading" in element for element in document.elements)
    assert not any(
        "First" in element or "Second" in element or "---" in element
        for element in document.elements
    )


def test_blank_lines_can_be_chosen_in_a_text_with_headings(tmp_path):
    (document,) = read(tmp_path, "a.md", PAGE, boundary_marker="blank_lines")
    assert ("# First",) in split_segments(document)


def test_missing_headings_are_refused_if_they_are_chosen(tmp_path):
    with pytest.raises(TaskError, match=r"a.txt has no headings"):
        read(tmp_path, "a.txt", SONG, boundary_marker="headings")


def test_the_layout_of_the_text_is_dropped(tmp_path):
    (document,) = read(tmp_path, "a.txt", SONG)  # blank lines would reveal the boundaries
    assert document.text is None and document.offsets is None
