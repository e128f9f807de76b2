"""Which sources documents share: as `compose` noted them, or as shared text shows them."""

import numpy as np

from neural.tasks.cutting.clusters import Clusters
from neural.tasks.cutting.compose import compose
from neural.tasks.cutting.document import joined

TEXTS = [[f"Sentence {at} of the text that has the number {text}." for at in range(20)] for text in range(9)]


def test_composed_documents_know_their_sources():
    documents = compose(TEXTS[:4], 6, seed=0, parts=3)
    clusters = Clusters.of(documents)
    assert str(clusters) == "6 documents and 4 shared sources"
    for ids, document in zip(clusters.sources, documents, strict=True):
        changes = np.flatnonzero(np.diff(ids)) + 1
        assert changes.tolist() == np.flatnonzero(document.boundaries).tolist()


def test_shared_text_shows_the_sources_of_other_documents():
    documents = [
        joined("a", [TEXTS[0][:5], TEXTS[1][:5]]),
        joined("b", [TEXTS[2][:5], TEXTS[0][3:9]]),
        joined("c", [TEXTS[3][:5], TEXTS[4][:5]]),
    ]
    clusters = Clusters.of(documents)
    assert clusters.shared == 1
    assert clusters.sources[0][0] == clusters.sources[1][-1]
    assert len(np.unique(np.concatenate(clusters.sources))) == 5


def test_documents_of_their_own_share_nothing():
    documents = [joined(str(at), [TEXTS[2 * at], TEXTS[2 * at + 1]]) for at in range(4)]
    clusters = Clusters.of(documents)
    assert clusters.sources is None
    assert clusters.pairs(gaps=True) is None
    assert str(clusters) == "4 documents"


def test_a_common_phrase_is_no_source():
    greeting = ["Thank you.", "Welcome back."]
    documents = [joined(str(at), [TEXTS[at], greeting]) for at in range(3)]
    assert Clusters.of(documents).sources is None


def test_a_gap_depends_on_both_its_sides():
    clusters = Clusters.of(compose(TEXTS[:4], 6, seed=0, parts=3))
    first, last = clusters.pairs(gaps=True)
    assert len(first) == sum(map(len, clusters.sources)) - 6
    assert (first != last).sum() == 12
