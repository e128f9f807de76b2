"""Kernels over word vectors, on every instruction set, against NumPy; sums against brute force."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.native.library import available_levels, force_level, no_kernels
from neural.tasks.segmentation import vector_kernels as kernels

needs_library = pytest.mark.skipif(not available_levels(), reason="the native library is not built")
each_level = pytest.mark.parametrize("level", available_levels())


def make_vectors(count, width, seed):
    return np.random.default_rng(seed).normal(size=(count, width)).astype(np.float32)


@needs_library
@each_level
@settings(max_examples=25, deadline=None)
@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=30),
    width=st.sampled_from((16, 48, 96)),
    seed=st.integers(0, 99),
)
def test_sums_of_word_vectors(level, counts, width, seed):
    random = np.random.default_rng(seed)
    rows = random.integers(-127, 128, (20, width)).astype(np.int8)
    scales = random.random(20).astype(np.float32)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    ids = random.integers(-1, 20, starts[-1]).astype(np.int32)
    with force_level(level):
        result = kernels.sum_word_vectors(ids, starts, rows, scales)
    with no_kernels():
        expected = kernels.sum_word_vectors(ids, starts, rows, scales)
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-3)
    assert np.all(result[np.array(counts) == 0] == 0)


@needs_library
@each_level
@pytest.mark.parametrize("count", [1, 2, 3, 17, 101])
@pytest.mark.parametrize("scale", [1, 2, 5, 21])
def test_comparison_of_both_sides(level, count, scale):
    vectors = make_vectors(count, 32, seed=count)
    vectors[count // 2] = 0  # an element without known words
    with force_level(level):
        results = (
            *kernels.compare_sides(vectors, scale),
            *kernels.compare_with_context(vectors, scale),
        )
    with no_kernels():
        expected = (
            *kernels.compare_sides(vectors, scale),
            *kernels.compare_with_context(vectors, scale),
        )
    for result, plain in zip(results, expected, strict=True):
        np.testing.assert_allclose(result, plain, atol=1e-9)


@needs_library
@each_level
@pytest.mark.parametrize("count", [1, 2, 7, 40, 83])
@pytest.mark.parametrize("longest", [1, 5, 64])
def test_sums_over_segmentations(level, count, longest):
    vectors = make_vectors(count, 16, seed=count)
    longest = min(longest, count)
    lengths = np.arange(1, longest + 1)
    constants, slopes = np.full(longest, -2.5), 2.0 / lengths
    results = []
    for context in (force_level(level), no_kernels()):
        with context:
            squares = kernels.square_run_sums(vectors, longest)
            results.append((squares, *kernels.sum_change_points(squares, constants, slopes)))
    for result, expected in zip(*results, strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
@pytest.mark.parametrize("longest", [2, 8])
def test_sums_over_segmentations_equal_an_enumeration(count, longest):
    vectors = make_vectors(count, 16, seed=3)
    longest = min(longest, count)
    squares = kernels.square_run_sums(vectors, longest)
    constants, slopes = np.linspace(-1, -2, longest), np.linspace(0.3, 0.1, longest)
    forward, backward = kernels.sum_change_points(squares, constants, slopes)
    total = 0.0
    boundary_weights = np.zeros(count)
    for flags in product((False, True), repeat=count - 1):
        edges = [0, *(index for index, flag in enumerate(flags, start=1) if flag), count]
        if max(end - start for start, end in pairwise(edges)) > longest:
            continue
        weight = np.exp(
            sum(
                constants[end - start - 1]
                + slopes[end - start - 1] * np.sum(vectors[start:end].sum(axis=0) ** 2)
                for start, end in pairwise(edges)
            )
        )
        total += weight
        boundary_weights[edges[1:-1]] += weight
    assert forward[-1] == pytest.approx(np.log(total), rel=1e-5)
    assert backward[0] == pytest.approx(forward[-1], rel=1e-5)
    posterior = np.exp(forward[:-1] + backward[:-1] - forward[-1])
    np.testing.assert_allclose(posterior[1:], boundary_weights[1:] / total, rtol=1e-4, atol=1e-7)
