"""Native kernels of the features, on every instruction set, against plain NumPy and Python."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.native.library import available_levels, force_level, no_kernels
from neural.tasks.segmentation import kernels, plain_kernels
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features
from neural.tasks.segmentation.tokenization import tokenize_elements

FEATURES = ("cohesion", "novelty", "chains", "openings", "vocabularies", "hashed", "60")

pytestmark = pytest.mark.skipif(not available_levels(), reason="the native library is not built")
each_level = pytest.mark.parametrize("level", available_levels())
word_lists = st.lists(st.lists(st.integers(0, 12), max_size=9), min_size=1, max_size=40)
"""Word ids of the elements of a document."""


def to_arrays(words):
    """`ids` and `starts` of lists of word ids."""
    starts = np.concatenate([[0], np.cumsum([len(element) for element in words])])
    ids = [word for element in words for word in element]
    return np.array(ids, np.int32), starts.astype(np.int64)


def assert_all_equal(results, expected):
    for result, plain in zip(results, expected, strict=True):
        np.testing.assert_array_equal(result, plain)


def make_elements(count, seed):
    """Sentences of random words, some of them empty or with years."""
    random = np.random.default_rng(seed)
    words = [
        f"{a}{b}" for a in ("river", "the", "song", "He", "1984", "x") for b in ("", "s", "ed")
    ]
    return [
        " ".join(random.choice(words, random.integers(0, 14), p=random.dirichlet([0.3] * 18)))
        for _ in range(count)
    ]


@each_level
@settings(max_examples=40, deadline=None)
@given(words=word_lists, distance=st.sampled_from((1, 4, 32)))
def test_counts_equal_the_plain_loops(level, words, distance):
    ids, starts = to_arrays(words)
    new_ids = np.array([-1, 3, 0, -1, 1, 2, 2, 5, 4, -1, 6, 7, 8], np.int32)
    kinds = np.array([-1, 0, 1, 2, -1, 0, 1, 2, -1, -1, 2, 1, 0], np.int8)
    calls = (
        ("find_distinct_words", (ids, starts, 13)),
        ("replace_words", (ids, starts, new_ids)),
        ("find_word_distances", (ids, starts, 13)),
        (
            "count_chain_links",
            (*plain_kernels.find_word_distances(ids, starts, 13), starts, distance),
        ),
    )
    with force_level(level):
        for name, arguments in calls:
            assert_all_equal(
                getattr(kernels, name)(*arguments), getattr(plain_kernels, name)(*arguments)
            )
        back, _ = plain_kernels.find_word_distances(ids, starts, 13)
        for name, arguments in (
            ("count_far_words", (back, starts, (0, 2, 8))),
            ("mark_word_kinds", (ids, starts, kinds, 3, (1, 3, 100))),
        ):
            np.testing.assert_array_equal(
                getattr(kernels, name)(*arguments), getattr(plain_kernels, name)(*arguments)
            )


@each_level
@settings(max_examples=30, deadline=None)
@given(words=word_lists, scale=st.sampled_from((1, 3, 16)))
def test_cosines_and_depths_have_the_bits_of_the_plain_loops(level, words, scale):
    ids, starts = to_arrays(words)
    weights = np.random.default_rng(0).random(13)
    tables = []
    for module in (plain_kernels, kernels):
        # columns of a table: not contiguous
        table = np.ones((len(words), 3))
        with force_level(level):
            module.compute_sliding_cosine(ids, starts, weights, scale, table[:, 1])
            module.compute_depths(table[:, 1], table[:, 2])
        tables.append(table)
    np.testing.assert_array_equal(*tables)


@each_level
@pytest.mark.parametrize("count", [2, 3, 7, 41])
def test_similarities_equal_the_plain_loops(level, count):
    random = np.random.default_rng(count)
    block = random.random((count, count)).round(1)
    block[count // 2] = 0
    outs = np.zeros((2, count, 12))
    with force_level(level):
        kernels.summarize_similarities(block[:1], 0, 0.5, 4, outs[0])
        kernels.summarize_similarities(block[1:], 1, 0.5, 4, outs[0])
    plain_kernels.summarize_similarities(block, 0, 0.5, 4, outs[1])
    np.testing.assert_allclose(*outs, atol=1e-12)


@each_level
@settings(max_examples=30, deadline=None)
@given(words=word_lists, max_elements=st.integers(1, 50), models=st.integers(1, 6))
def test_sums_over_segmentations_equal_the_plain_loop(level, words, max_elements, models):
    distinct = plain_kernels.find_distinct_words(*to_arrays(words), 13)
    random = np.random.default_rng(0)
    log_counts, log_totals = np.log(
        np.arange(400)[:, None] + random.uniform(0.1, 9, (2, 1, models))
    )
    priors = np.log(random.uniform(0.1, 0.9, (2, models)))
    arguments = (*distinct, 13, log_counts, log_totals, *priors, max_elements)
    with force_level(level):
        log_sums = kernels.sum_segmentations(*arguments)
    np.testing.assert_allclose(
        log_sums, plain_kernels.sum_segmentations(*arguments), rtol=1e-11, atol=1e-11
    )


@each_level
@pytest.mark.parametrize("count", [1, 2, 5, 17, 67])
def test_features_equal_those_without_kernels(level, count):
    document = SegmentationDocument("x", tuple(make_elements(count, seed=count)))
    with no_kernels():
        expected = compute_features(document, FEATURES)
    with force_level(level):
        table = compute_features(document, FEATURES)
    np.testing.assert_allclose(table, expected, atol=2e-6)


@each_level
def test_a_word_that_is_repeated_often_takes_linear_time(level):
    # 200,000 equal words in one element: a quadratic loop would take minutes
    document = SegmentationDocument("x", ("river " * 200_000, "river", "song river"))
    with force_level(level):
        assert np.isfinite(compute_features(document, FEATURES[:5])).all()


@each_level
def test_elements_without_words_have_finite_features(level):
    document = SegmentationDocument("x", ("", "…", "—", ""))
    with force_level(level):
        assert np.isfinite(compute_features(document, FEATURES)).all()


@each_level
def test_arrays_of_another_type_are_refused(level):
    tokens = tokenize_elements(["a river"])
    with force_level(level):
        with pytest.raises(ValueError, match="int32"):
            kernels.find_distinct_words(tokens.ids.astype(np.int64), tokens.starts, 2)
        with pytest.raises(ValueError, match="contiguous"):
            kernels.find_distinct_words(np.zeros(8, np.int32)[::2], tokens.starts, 2)
