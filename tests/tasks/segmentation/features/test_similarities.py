"""The five self-similarity features against loops over all pairs."""

import numpy as np
import pytest

from neural.tasks.segmentation import feature
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import (
    FEATURE_SETS,
    SIMILARITY_FEATURES,
    compute_features,
    compute_features_batch,
    list_columns,
)
from neural.tasks.segmentation.features import registry
from neural.tasks.segmentation.tokenization import tokenize_elements
from tests.tasks.segmentation.features.loops import compute_by_loops

SONG = SegmentationDocument(
    "song",
    (
        "Walking down the road tonight",
        "Nothing left but fading light",
        "",
        "Oh the river runs away",
        "Oh the river runs away",
        "Every night and every day",
        "Walking down",
        "I was singing quietly",
        "…",
        "light",
        "Walking up the hill at night",
        "Oh the river",
        "Seven days",
        "They were never mine to stay",
    ),
)


@pytest.mark.parametrize("name", SIMILARITY_FEATURES)
def test_every_feature_equals_its_loops(name):
    np.testing.assert_allclose(
        compute_features(SONG, [name]), compute_by_loops(SONG.elements, [name]), atol=1e-6
    )


def test_the_block_size_does_not_matter(monkeypatch):
    expected = compute_features(SONG, 60)
    monkeypatch.setattr(feature, "MAX_BLOCK_VALUES", 3 * len(SONG))
    np.testing.assert_array_equal(compute_features(SONG, 60), expected)


def test_a_batch_of_documents_equals_single_documents():
    documents = [
        SONG,
        SegmentationDocument("one", ("Alone",)),
        SegmentationDocument("two", SONG.elements[3:9]),
        SegmentationDocument("none", ("", "?")),
    ]
    for table, document in zip(
        compute_features_batch(documents, "songs", use_cache=False), documents, strict=True
    ):
        np.testing.assert_array_equal(table, compute_features(document, "songs"))


def test_elements_of_other_documents_are_not_compared():
    alone = compute_features(SONG, 60)
    np.testing.assert_array_equal(
        compute_features_batch([SONG, SONG], 60, use_cache=False)[1], alone
    )


@pytest.mark.parametrize(("inputs", "matrices"), [("36", 3), ("48", 4), ("60", 5)])
def test_numeric_feature_sets_are_matrices_in_a_fixed_order(inputs, matrices):
    names = list_columns(int(inputs))
    assert len(names) == int(inputs)
    assert FEATURE_SETS[inputs] == SIMILARITY_FEATURES[:matrices]
    assert [name.partition(".")[2] for name in names] == list(feature.STATISTICS) * matrices


def test_a_single_element_has_zero_statistics():
    assert not compute_features(SegmentationDocument("one", ("Alone in the night",)), 60).any()


def test_a_repeated_line_is_matched_with_its_first_occurrence():
    table = dict(zip(list_columns(60), compute_features(SONG, 60)[4], strict=True))
    assert table["word_overlap.maximum"] == 1 and table["word_overlap.previous"] == 1
    assert table["word_overlap.match"] == pytest.approx(3 / (len(SONG) - 1))


def test_the_memory_of_a_long_document_is_bounded(monkeypatch):
    blocks = []

    class RecordingFeature(registry.get("first_words")):
        def make_similarity_function(self, tokens):
            compute_block = super().make_similarity_function(tokens)
            return lambda rows, columns: blocks.append(compute_block(rows, columns)) or blocks[-1]

    monkeypatch.setattr(feature, "MAX_BLOCK_VALUES", 1 << 12)
    document = SegmentationDocument(
        "long", tuple(f"line {number % 7} of many" for number in range(500))
    )
    RecordingFeature().compute(document, tokenize_elements(document.elements))
    assert max(block.size for block in blocks) <= 1 << 12
    assert sum(block.size for block in blocks) == 500 * 500
