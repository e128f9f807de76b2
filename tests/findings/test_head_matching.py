"""Matching of heads on maps whose truth is known."""

import math

import numpy as np
import pytest

from neural.findings.head_matching import (
    MatchingError,
    ModelHeads,
    build_patterns,
    compute_divergence,
    estimate_exponent,
    fit_patterns,
    match_heads,
)
from neural.findings.head_roles import NO_ROLES

QUERIES = 24
CAUSAL = np.tri(QUERIES, dtype=bool)
TEXTS = [f"w{index * index % 11}" for index in range(QUERIES)]
PATTERNS = build_patterns(CAUSAL, np.arange(QUERIES), TEXTS, [TEXTS] * QUERIES)


def softmax(scores):
    scores = np.where(CAUSAL, scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def draw_model(draw, layers=2, heads=4, size=1.5):
    return ModelHeads.from_layers(
        [softmax(size * draw.normal(size=(heads, QUERIES, QUERIES))) for _ in range(layers)]
    )


def previous_token_scores(sharpness):
    scores = np.zeros((QUERIES, QUERIES))
    scores[np.arange(1, QUERIES), np.arange(QUERIES - 1)] = sharpness
    return scores


def test_divergence_is_in_bits_and_averaged_over_rows():
    first = np.array([[[1.0, 0, 0], [0.5, 0.5, 0]]])
    second = np.array([[[0, 1.0, 0], [0.5, 0.5, 0]], [[1.0, 0, 0], [0, 0, 1.0]]])
    assert compute_divergence(first, second) == pytest.approx(np.array([[0.5, 0.5]]))
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.3, 0.6])
    mean = (p + q) / 2
    expected = (p @ np.log2(p / mean) + q @ np.log2(q / mean)) / 2
    assert compute_divergence(p[None, None], q[None, None])[0, 0] == pytest.approx(expected)


def test_permuted_heads_are_recovered_across_layers():
    draw = np.random.default_rng(0)
    first = draw_model(draw)
    order = draw.permutation(8)
    second = ModelHeads(first.maps[order], first.layers, first.heads)
    matching = match_heads(first, second, PATTERNS)
    for pair in matching.pairs:
        index = pair.first[0] * 4 + pair.first[1]
        place = int(np.flatnonzero(order == index)[0])
        assert pair.second == (place // 4, place % 4)
        assert pair.verdict == "same head" and pair.divergence < 1e-12
        assert pair.cosine == pytest.approx(1, abs=0.02)


def test_a_smaller_model_is_matched_with_some_heads_of_a_larger_one():
    draw = np.random.default_rng(1)
    large = draw_model(draw, layers=3, heads=4)
    chosen = [1, 4, 6, 11, 9]
    small = ModelHeads.from_layers([large.maps[chosen]])
    pairs = match_heads(small, large, PATTERNS).pairs
    assert [4 * pair.second[0] + pair.second[1] for pair in pairs] == chosen
    assert not match_heads(small, large, PATTERNS).changes  # no indices in common


def test_matching_can_be_restricted_to_equal_layers():
    draw = np.random.default_rng(2)
    first = draw_model(draw)
    swapped = ModelHeads(
        np.concatenate([first.maps[4:], first.maps[:4]]), first.layers, first.heads
    )
    assert all(p.first[0] != p.second[0] for p in match_heads(first, swapped, PATTERNS).pairs)
    restricted = match_heads(first, swapped, PATTERNS, same_layer=True)
    assert len(restricted.pairs) == 8
    assert all(pair.first[0] == pair.second[0] for pair in restricted.pairs)
    assert "same head" not in restricted.counts
    other = ModelHeads(first.maps, first.layers + 5, first.heads)
    with pytest.raises(MatchingError, match="no layer of the same number"):
        match_heads(first, other, PATTERNS, same_layer=True)


def test_heads_with_one_role_and_different_contents_are_not_the_same_head():
    draw = np.random.default_rng(3)
    first, second = draw_model(draw), draw_model(draw)
    for model, sharpness in ((first, 7.0), (second, 8.0)):
        noise = 0.3 * draw.normal(size=(QUERIES, QUERIES))
        model.maps[5] = softmax(previous_token_scores(sharpness) + noise)
    roles = ["mixed"] * 5 + ["previous token"] + ["mixed"] * 2
    for names in (None, (roles, roles)):
        matching = match_heads(first, second, PATTERNS, roles=names)
        (pair,) = [pair for pair in matching.pairs if pair.first == (1, 1)]
        assert pair.second == (1, 1) and pair.divergence < 0.1
        assert pair.verdict == "same role"
        assert matching.counts.get("same head", 0) == 0


@pytest.mark.parametrize("sharpness", [(4.0, 5.0), (7.0, 8.0), (9.0, 9.0)])
def test_heads_that_are_a_pattern_and_nothing_else_share_a_role(sharpness):
    draw = np.random.default_rng(12)
    first, second = draw_model(draw), draw_model(draw)
    for model, own_sharpness in zip((first, second), sharpness, strict=True):
        model.maps[3] = softmax(
            previous_token_scores(own_sharpness) + 1e-9 * draw.normal(size=(24, 24))
        )
    verdicts = {p.first: (p.second, p.verdict) for p in match_heads(first, second, PATTERNS).pairs}
    assert verdicts[0, 3] == ((0, 3), "same role")


def test_the_same_role_with_the_same_content_is_the_same_head():
    draw = np.random.default_rng(4)
    first, second = draw_model(draw), draw_model(draw)
    noise = draw.normal(size=(QUERIES, QUERIES))
    for model in (first, second):
        own = 0.1 * draw.normal(size=(QUERIES, QUERIES))
        model.maps[2] = softmax(previous_token_scores(4.0) + noise + own)
    verdicts = {p.first: (p.second, p.verdict) for p in match_heads(first, second, PATTERNS).pairs}
    assert verdicts.pop((0, 2)) == ((0, 2), "same head")
    assert {verdict for _, verdict in verdicts.values()} == {"undecided"}


def test_a_model_has_every_head_in_common_with_itself():
    draw = np.random.default_rng(0)
    maps = draw_model(draw).maps
    # heads that are a pattern and rounding, two of them uniform: nothing is left of their contents
    maps[1] = softmax(previous_token_scores(40.0) + 1e-6 * draw.normal(size=(QUERIES, QUERIES)))
    maps[2] = maps[6] = softmax(np.zeros((QUERIES, QUERIES)))
    model = ModelHeads(maps, np.repeat([0, 1], 4), np.tile(np.arange(4), 2))
    same = match_heads(model, ModelHeads(maps.copy(), model.layers, model.heads), PATTERNS)
    assert all(pair.first == pair.second for pair in same.pairs)
    assert same.counts == {"same head": 8}
    order = np.array([3, 1, 0, 2, 4, 5, 7, 6])
    permuted = match_heads(model, ModelHeads(maps[order], model.layers, model.heads), PATTERNS)
    found = {pair.first: pair for pair in permuted.pairs}
    assert found[0, 3].second == (0, 0) and found[0, 3].verdict == "same head"


def test_equal_indices_are_evidence_of_the_same_head():
    draw = np.random.default_rng(3)
    scores = 1.5 * draw.normal(size=(8, QUERIES, QUERIES))
    tuned = scores + 1.2 * draw.normal(size=scores.shape)
    first, second = (
        ModelHeads.from_layers([softmax(half) for half in np.split(values, 2)])
        for values in (scores, tuned)
    )
    order = [1, 2, 3, 0, 5, 6, 7, 4]
    moved = ModelHeads(second.maps[order], second.layers, second.heads)
    same, other = match_heads(first, second, PATTERNS), match_heads(first, moved, PATTERNS)
    by_index = {pair.first: pair.p for pair in same.pairs if pair.first == pair.second}
    assert len(by_index) == 8
    # 2 / (4 + 1) of the plain p-value, and 2 times the plain one
    for pair in other.pairs:
        assert pair.p == pytest.approx(min(1, 5 * by_index[pair.first]), rel=1e-6)


def test_equal_uniform_heads_are_no_evidence_but_a_role():
    draw = np.random.default_rng(5)
    first, second = draw_model(draw), draw_model(draw)
    for model in (first, second):
        model.maps[:2] = softmax(1e-7 * draw.normal(size=(2, QUERIES, QUERIES)))
    roles = ["uniform", "uniform", *["mixed"] * 6]
    pairs = match_heads(first, second, PATTERNS, roles=(roles, roles)).pairs
    assert [pair.verdict for pair in pairs[:2]] == ["same role", "same role"]


def test_names_that_are_no_role_are_nothing_in_common():
    draw = np.random.default_rng(6)
    first, second = draw_model(draw), draw_model(draw)
    for name in (*NO_ROLES, ""):
        matching = match_heads(first, second, PATTERNS, roles=([name] * 8, [name] * 8))
        assert matching.counts == {"undecided": 8}


def test_changed_heads_are_ranked_and_indices_tested():
    draw = np.random.default_rng(6)
    first = draw_model(draw)
    second = ModelHeads(first.maps.copy(), first.layers, first.heads)
    second.maps[6] = softmax(draw.normal(size=(QUERIES, QUERIES)))
    matching = match_heads(first, second, PATTERNS)
    assert matching.changes[0].head == (1, 2) and matching.changes[1].divergence == 0
    # 4!² = 576 permutations; few others keep as many heads
    assert matching.index_p < 0.05
    assert match_heads(first, draw_model(draw), PATTERNS).index_p > 0.05


def test_patterns_reproduce_the_mass_of_distances_and_of_equal_tokens():
    draw = np.random.default_rng(7)
    maps = softmax(draw.normal(size=(2, QUERIES, QUERIES)))
    fitted = fit_patterns(maps, CAUSAL, PATTERNS)
    assert fitted.sum(axis=2) == pytest.approx(1)
    for pattern in PATTERNS:
        for value in np.unique(pattern[CAUSAL]):
            is_class = (pattern == value) & CAUSAL
            assert (fitted * is_class).sum() == pytest.approx((maps * is_class).sum(), abs=1e-3)
    positional = softmax(previous_token_scores(4.0))[None]
    assert fit_patterns(positional, CAUSAL, PATTERNS) == pytest.approx(positional, abs=1e-4)


def test_the_exponent_is_that_of_the_law_of_ratios():
    draw = np.random.default_rng(8)
    # points that are uniform in a ball of d dimensions around each head: distances are U^(1/d)
    for dimension in (2.0, 8.0):
        distances = draw.uniform(size=(200, 200)) ** (1 / dimension)
        assert 0.8 * dimension < estimate_exponent(distances) < dimension
    assert math.isnan(estimate_exponent(distances[:3]))


def test_few_heads_are_matched_and_not_tested():
    draw = np.random.default_rng(9)
    first = draw_model(draw, layers=1, heads=2)
    noise = 1 + 1e-3 * draw.random(first.maps.shape)
    second = ModelHeads(first.maps * noise, first.layers, first.heads)
    pairs = match_heads(first, second, PATTERNS).pairs
    assert [pair.second for pair in pairs] == [(0, 0), (0, 1)]
    assert {pair.verdict for pair in pairs} == {"not tested"}


def test_maps_of_other_tokens_are_refused():
    draw = np.random.default_rng(10)
    first = draw_model(draw)
    shorter = ModelHeads(first.maps[:, :5, :5], first.layers, first.heads)
    with pytest.raises(MatchingError, match="24 × 24 and 5 × 5"):
        match_heads(first, shorter)
    with pytest.raises(MatchingError, match="no query sees two keys"):
        one_key = ModelHeads(np.ones((4, 3, 1)), np.zeros(4, int), np.arange(4))
        match_heads(one_key, one_key)
    with pytest.raises(MatchingError, match="signed"):
        ModelHeads(-first.maps, first.layers, first.heads)


def test_many_rows_are_sampled(monkeypatch):
    draw = np.random.default_rng(11)
    first = draw_model(draw)
    monkeypatch.setattr("neural.findings.head_matching.MAX_DIVERGENCE_WEIGHTS", 10 * 64 * QUERIES)
    matching = match_heads(first, first, PATTERNS)
    assert matching.compared_rows == 10 and matching.counts == {"same head": 8}
