"""Cohesion, novelty, chains and hashing, against their definitions."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.tasks.segmentation import kernels
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features, list_columns
from neural.tasks.segmentation.tokenization import tokenize_elements

WORDS = ("river", "engine", "garden", "music", "the", "planet")
ELEMENTS = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join), min_size=1, max_size=24
)


def compute_columns(elements, *names):
    document = SegmentationDocument("x", tuple(elements))
    return dict(zip(list_columns(names), compute_features(document, names).T, strict=True))


def reference_cosines(elements, scale):
    """Cosine of both sides of every gap, from blocks of counts."""
    stems = tokenize_elements(elements).stems
    counts = np.zeros((len(elements), len(stems.vocabulary) + 1))
    np.add.at(counts, (stems.element_ids, stems.ids), 1)
    counts[:, :-1] *= stems.idf
    cosines = [1.0]
    for gap in range(1, len(elements)):
        left = counts[max(0, gap - scale) : gap].sum(axis=0)
        right = counts[gap : gap + scale].sum(axis=0)
        norms = np.linalg.norm(left) * np.linalg.norm(right)
        cosines.append(left @ right / norms if norms else 0.0)
    return cosines


@settings(max_examples=60, deadline=None)
@given(elements=ELEMENTS, scale=st.sampled_from((1, 2, 4, 8, 16)))
def test_sliding_cosines_equal_the_definition(elements, scale):
    cosines = compute_columns(elements, "cohesion")[f"cohesion.cosine_{scale}"]
    np.testing.assert_allclose(cosines, reference_cosines(elements, scale), atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(values=st.lists(st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0)), min_size=2, max_size=12))
def test_depth_is_the_sum_of_the_climbs_to_both_peaks(values):
    values, out = np.array(values), np.zeros(len(values))
    kernels.compute_depths(values, out)
    for index in range(1, len(values)):
        left = right = index
        while left > 1 and values[left - 1] >= values[left]:
            left -= 1
        while right < len(values) - 1 and values[right + 1] >= values[right]:
            right += 1
        assert out[index] == values[left] + values[right] - 2 * values[index]


def test_a_change_of_topic_is_the_deepest_gap():
    elements = ["the river and the garden", "a garden by it"] * 8 + [
        "the engine of music",
        "music and engine",
    ] * 8
    columns = compute_columns(elements, "cohesion")
    for scale in (2, 4, 8, 16):
        assert columns[f"cohesion.cosine_{scale}"].argmin() == 16
        assert columns[f"cohesion.depth_{scale}"].argmax() == 16
        assert columns[f"cohesion.unusual_{scale}"].argmin() == 16


def test_new_and_gone_words_are_counted_at_the_gap():
    columns = compute_columns(["river garden", "river", "engine river", "engine"], "novelty")
    np.testing.assert_allclose(columns["novelty.new"], [1, 0, 0.5, 0])
    np.testing.assert_allclose(columns["novelty.gone"], [0, 0.5, 0, 0.5])


def test_a_word_is_new_again_after_a_long_distance():
    columns = compute_columns(["river", *["garden"] * 10, "river"], "novelty")
    assert (
        columns["novelty.new"][-1] == 0
        and columns["novelty.new_8"][-1] == 1
        and columns["novelty.new_32"][-1] == 0
    )


def test_links_bridge_the_gaps_between_two_uses():
    columns = compute_columns(["river", "garden", "river", "music", "music"], "chains")
    np.testing.assert_allclose(np.expm1(columns["chains.links_4"]), [0, 1, 1, 0, 1], atol=1e-6)
    np.testing.assert_allclose(columns["chains.begin_4"], [1, 0, 0, 1, 0])
    np.testing.assert_allclose(columns["chains.end_4"], [0, 0, 0, 1, 0])


def test_a_link_longer_than_the_distance_does_not_count():
    columns = compute_columns(["river", *["…"] * 5, "river"], "chains")
    assert not columns["chains.links_4"].any() and columns["chains.links_12"][1:].all()


def test_the_same_words_have_the_same_bins_in_all_documents():
    first = compute_features(SegmentationDocument("a", ("the river engine", "music")), ["hashed"])
    second = compute_features(SegmentationDocument("b", ("planet", "engine rivers")), ["hashed"])
    np.testing.assert_allclose(first[0], second[1], atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, atol=1e-6)
