"""The sampling kernel draws the same ids as numpy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neural.native.library import available_levels, force_level, no_kernels
from neural.nn.sampling import MAX_KERNEL_VOCAB_SIZE, Sampler

every_level = pytest.mark.parametrize("level", available_levels())


def draw_both(level, logits, steps=5, **options):
    """Ids drawn by the kernel and by numpy, from equal random streams."""
    with force_level(level):
        sampler = Sampler(len(logits), **options)
        assert sampler._kernel_supports(logits[:, : sampler.vocab_size])
        kernel_ids = np.stack([sampler.sample(logits) for _ in range(steps)])
    with no_kernels():
        sampler = Sampler(len(logits), **options)
        numpy_ids = np.stack([sampler.sample(logits) for _ in range(steps)])
    return kernel_ids, numpy_ids


@every_level
@pytest.mark.parametrize("top_k", [None, 1, 2, 13, 200])
@pytest.mark.parametrize("temperature", [0.05, 0.8, 3.0])
def test_the_kernel_draws_the_ids_of_numpy(level, top_k, temperature):
    logits = np.random.default_rng(0).normal(size=(7, 67)).astype(np.float32)
    options = {"temperature": temperature, "top_k": top_k, "seed": 3}
    kernel_ids, numpy_ids = draw_both(level, logits, **options)
    assert (kernel_ids == numpy_ids).all()


@every_level
def test_equal_logits_are_all_kept_by_top_k(level):
    logits = np.zeros((3, 31), np.float32)
    kernel_ids, numpy_ids = draw_both(level, logits, steps=40, top_k=2)
    assert (kernel_ids == numpy_ids).all()
    assert len(np.unique(kernel_ids)) > 20


@every_level
def test_rows_may_be_apart_and_the_vocabulary_shorter_than_the_row(level):
    logits = np.random.default_rng(1).normal(size=(4, 2, 96)).astype(np.float32)[:, 0]
    kernel_ids, numpy_ids = draw_both(level, logits, vocab_size=5)
    assert (kernel_ids == numpy_ids).all()
    assert kernel_ids.max() < 5


@every_level
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_logits_that_are_not_finite_are_refused(level, value):
    logits = np.zeros((2, 9), np.float32)
    logits[1, 8] = value
    with force_level(level), pytest.raises(ValueError, match="not finite"):
        Sampler(2).sample(logits)


@settings(max_examples=40, deadline=None)
@given(
    samples=st.integers(1, 4),
    vocab=st.integers(1, 300),
    top_k=st.one_of(st.none(), st.integers(1, 300)),
    decimals=st.integers(0, 6),
    seed=st.integers(0, 99),
)
def test_random_sizes_draw_the_ids_of_numpy(samples, vocab, top_k, decimals, seed):
    if not available_levels():
        pytest.skip("native kernels were not built")
    # few decimals: many equal logits
    logits = np.random.default_rng(seed).normal(size=(samples, vocab)).round(decimals)
    kernel_ids, numpy_ids = draw_both(
        available_levels()[-1], logits.astype(np.float32), top_k=top_k, seed=seed
    )
    assert (kernel_ids == numpy_ids).all()


def test_large_vocabularies_and_top_p_are_drawn_by_numpy():
    logits = np.zeros((1, MAX_KERNEL_VOCAB_SIZE + 1), np.float32)
    assert not Sampler(1)._kernel_supports(logits)
    assert not Sampler(1, top_p=0.5)._kernel_supports(logits[:, :10])
    assert not Sampler(1, temperature=0)._kernel_supports(logits[:, :10])
