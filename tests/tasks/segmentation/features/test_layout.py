"""Layout features."""

import numpy as np

from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features, list_columns


def compute_columns(text, **options):
    table = compute_features(SegmentationDocument.from_text(text, **options), ["layout"])
    names = [name.partition(".")[2] for name in list_columns(["layout"])]
    return dict(zip(names, table.T, strict=True))


def test_line_breaks_blank_lines_and_items_are_marked():
    columns = compute_columns("One. Two.\n\n\n    - Three.\n\fFour.")
    assert columns["known"].tolist() == [1, 1, 1, 1]
    assert columns["new_line"].tolist() == [1, 0, 1, 1]
    assert columns["blank_lines"].tolist() == [0, 0, 2, 1]  # a form feed counts as a blank line
    assert columns["break"].tolist() == [0, 0, 0, 1]
    assert columns["item"].tolist() == [0, 0, 1, 0]
    expected = [0, 0, np.log1p(4), -np.log1p(4)]
    np.testing.assert_allclose(columns["indentation_change"], expected, rtol=1e-6)


def test_headings_have_their_rank_in_the_document():
    columns = compute_columns("## A\n\nOne.\n\n#### B\n\nTwo.\n\n## C\n\nThree.\n")
    assert columns["heading"].tolist() == [1, 0, 1, 0, 1, 0]
    assert columns["heading_rank"].tolist() == [1, 0, 0.5, 0, 1, 0]
    assert columns["after_heading"].tolist() == [0, 1, 0, 1, 0, 1]
    np.testing.assert_allclose(columns["heading_share"], 0.5)


def test_a_gap_that_is_wider_than_usual_is_marked():
    columns = compute_columns("One.\n\nTwo.\n\nThree.\n\n\n\nFour.\n\nFive.\n")
    assert columns["wider_gap"].tolist() == [0, 0, 0, 2, 0]
    np.testing.assert_allclose(columns["paragraph_share"], 0.8)


def test_code_and_turns_are_marked():
    columns = compute_columns("One.\n\n```\nx\n```\n\nTwo.\n", markup="markdown")
    assert columns["raw"].tolist() == [0, 1, 0] and columns["after_raw"].tolist() == [0, 0, 1]
    assert compute_columns("Ann: a\nBob: b\nAnn: c\nBob: d\n")["turn"].tolist() == [1, 1, 1, 1]


def test_elements_without_layout_have_zeros():
    assert not compute_features(SegmentationDocument("x", ("One.", "Two.")), ["layout"]).any()
    document = SegmentationDocument.from_text("# A\n\nOne.\n").without_layout()
    assert not compute_features(document, ["layout"]).any()


def test_documents_with_and_without_layout_are_cached_apart(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURAL_CACHE", str(tmp_path))
    document = SegmentationDocument.from_text("One is here.\n\n" * 100)
    with_layout = compute_features(document, ["layout"], use_cache=True)
    without = compute_features(document.without_layout(), ["layout"], use_cache=True)
    assert with_layout.any() and not without.any()
