"""Error rates of head matching: seeds that are unrelated, copies, low-rank changes, fine-tuning."""

import copy
from functools import lru_cache
from itertools import combinations

import numpy as np
import pytest

from neural.findings.head_matching import match_heads
from tests.validity.tiny_transformers import (
    LENGTH,
    TinyTransformer,
    add_low_rank_change,
    list_heads,
    list_patterns,
    permute_heads,
    train,
)

HEADS = 4
SEEDS = 11
"""Pairs of seeds: 55."""


def create_models(steps, seeds=SEEDS, layers=2, heads=HEADS, scale=0.7):
    """Models of different seeds, trained for `steps`."""
    # a call with a default and one without it are the same
    return _create_models(steps, seeds, layers, heads, scale)


@lru_cache
def _create_models(steps, seeds, layers, heads, scale):
    return [
        train(TinyTransformer(seed, layers, heads, scale), steps, seed) for seed in range(seeds)
    ]


def compare_seeds(models, length=LENGTH):
    """Matchings of all pairs of models."""
    heads = [list_heads(model, length) for model in models]
    patterns = list_patterns(length)
    return [match_heads(*pair, patterns) for pair in combinations(heads, 2)]


def measure_null(matchings):
    """Share of pairs with any "same head", of heads with p ≤ .05, and of index tests below .05."""
    return (
        np.mean(["same head" in matching.counts for matching in matchings]),
        np.mean([pair.p <= 0.05 for matching in matchings for pair in matching.pairs]),
        np.mean([matching.index_p <= 0.05 for matching in matchings]),
    )


@pytest.mark.parametrize(
    ("layers", "heads", "scale", "length"),
    [(2, 4, 2.0, 12), (2, 4, 0.3, LENGTH), (4, 1, 2.0, LENGTH), (2, 2, 1.0, 6)],
)
def test_untrained_seeds_share_heads_at_most_at_the_level(layers, heads, scale, length):
    models = create_models(0, layers=layers, heads=heads, scale=scale)
    with_match, small_p, index = measure_null(compare_seeds(models, length))
    # 55 pairs at 5 %: more than 7 have a chance of 1 %
    assert with_match <= 7 / 55 and small_p <= 0.05 and index <= 7 / 55


def test_trained_seeds_share_heads_at_most_at_the_level():
    with_match, small_p, index = measure_null(compare_seeds(create_models(100)))
    assert with_match <= 7 / 55 and small_p <= 0.05 and index <= 7 / 55


def recover_permutations(models, draw):
    """Share of heads that are matched with their copies in permuted models."""
    patterns, hits = list_patterns(), []
    for model in models:
        permuted, orders = permute_heads(model, draw)
        for pair in match_heads(list_heads(model), list_heads(permuted), patterns).pairs:
            layer, head = pair.second
            hits.append(pair.first == (layer, orders[layer][head]) and pair.verdict == "same head")
    return np.mean(hits)


@pytest.mark.parametrize(("steps", "scale"), [(0, 0.02), (0, 2.0), (100, 0.7)])
def test_permuted_heads_are_recovered(steps, scale):
    assert recover_permutations(create_models(steps, scale=scale), np.random.default_rng(0)) == 1


def rank_planted_change(models, size, repeats):
    """Share of repeats in which the head with the planted change is the first of `changes`."""
    patterns, hits = list_patterns(), []
    for repeat in range(repeats):
        model = models[repeat % len(models)]
        planted = (repeat // 4 % 2, repeat % 4)
        changed = add_low_rank_change(model, *planted, size=size, seed=repeat)
        matching = match_heads(list_heads(model), list_heads(changed), patterns)
        hits.append(matching.changes[0].head == planted)
    return np.mean(hits)


@pytest.mark.parametrize("steps", [0, 100])
def test_the_head_with_a_planted_low_rank_change_is_ranked_first(steps):
    assert rank_planted_change(create_models(steps), 0.3, 24) >= 0.95


def measure_fine_tuning(models, steps):
    """Share of heads that are "same head" at their own index after more training; wrong ones."""
    patterns, right, wrong, index = list_patterns(), [], [], []
    for seed, model in enumerate(models):
        tuned = train(copy.deepcopy(model), steps, 1000 + seed)
        matching = match_heads(list_heads(model), list_heads(tuned), patterns)
        index.append(matching.index_p <= 0.05)
        for pair in matching.pairs:
            is_found = pair.verdict == "same head"
            right.append(is_found and pair.first == pair.second)
            wrong.append(is_found and pair.first != pair.second)
    return np.mean(right), np.mean(wrong), np.mean(index)


def test_heads_stay_the_same_after_fine_tuning():
    right, wrong, index = measure_fine_tuning(create_models(100)[:4], 20)
    assert right >= 0.6 and wrong == 0 and index == 1


def rates(repeats):
    """Rows of the table of error rates; the numbers of seeds and repeats are fixed by the time."""
    trained, untrained = create_models(400), create_models(0, scale=1.0)
    pairs = SEEDS * (SEEDS - 1) // 2
    rows = []
    for name, models in (("untrained", untrained), ("trained for 400 steps", trained)):
        with_match, _, index = measure_null(compare_seeds(models))
        right, _, index_power = measure_fine_tuning(models, 50)
        rows.append(
            {
                "what": f'any "same head" in two models, {name}',
                "null": "two seeds, 2 × 4 heads",
                "false_positive_rate": with_match,
                "truth": "50 more steps of training: share of heads",
                "power": right,
                "repeats": pairs,
            }
        )
        rows.append(
            {
                "what": f"equal indices belong together, {name}",
                "null": "two seeds, 2 × 4 heads",
                "false_positive_rate": index,
                "truth": "50 more steps of training",
                "power": index_power,
                "repeats": pairs,
            }
        )
        rows.append(
            {
                "what": f"the most changed head, {name}",
                "truth": "a change of rank 2 and 0.3 of the norm",
                "power": rank_planted_change(models, 0.3, max(repeats, 88)),
                "repeats": max(repeats, 88),
            }
        )
    return rows
