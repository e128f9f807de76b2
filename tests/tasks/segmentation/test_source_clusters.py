"""Sources that documents share: as recorded by composing, or detected by shared text."""

import numpy as np

from neural.tasks.segmentation.collection import compose_documents
from neural.tasks.segmentation.document import join_segments
from neural.tasks.segmentation.source_clusters import SourceClusters

TEXTS = [
    [f"Sentence {sentence} of the text that has the number {text}." for sentence in range(20)]
    for text in range(9)
]


def test_composed_documents_record_their_sources():
    documents = compose_documents(TEXTS[:4], 6, seed=0, segments=3)
    clusters = SourceClusters.from_documents(documents)
    assert str(clusters) == "6 documents and 4 shared sources"
    for ids, document in zip(clusters.source_ids, documents, strict=True):
        changes = np.flatnonzero(np.diff(ids)) + 1
        assert changes.tolist() == np.flatnonzero(document.boundaries).tolist()


def test_shared_text_shows_the_sources_of_other_documents():
    documents = [
        join_segments("a", [TEXTS[0][:5], TEXTS[1][:5]]),
        join_segments("b", [TEXTS[2][:5], TEXTS[0][3:9]]),
        join_segments("c", [TEXTS[3][:5], TEXTS[4][:5]]),
    ]
    clusters = SourceClusters.from_documents(documents)
    assert clusters.shared_count == 1
    assert clusters.source_ids[0][0] == clusters.source_ids[1][-1]
    assert len(np.unique(np.concatenate(clusters.source_ids))) == 5


def test_documents_without_common_text_share_no_source():
    documents = [
        join_segments(str(index), [TEXTS[2 * index], TEXTS[2 * index + 1]]) for index in range(4)
    ]
    clusters = SourceClusters.from_documents(documents)
    assert clusters.source_ids is None
    assert clusters.source_pairs(gaps=True) is None
    assert str(clusters) == "4 documents"


def test_a_short_common_phrase_is_not_a_source():
    greeting = ["Thank you.", "Welcome back."]
    documents = [join_segments(str(index), [TEXTS[index], greeting]) for index in range(3)]
    assert SourceClusters.from_documents(documents).source_ids is None


def test_a_gap_depends_on_both_sides():
    clusters = SourceClusters.from_documents(compose_documents(TEXTS[:4], 6, seed=0, segments=3))
    first, last = clusters.source_pairs(gaps=True)
    assert len(first) == sum(map(len, clusters.source_ids)) - 6
    assert (first != last).sum() == 12
