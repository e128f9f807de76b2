"""Queries are placed among keys by evidence only."""

import pytest
import torch

from neural.capture.attention_call import AttentionCall
from neural.capture.placement import CacheUpdate, Placement, place_queries
from neural.nn.mask import Mask

B, H, D = 2, 3, 5


def make_keys(count: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(B, H, count, D, generator=torch.Generator().manual_seed(seed))


def causal_mask(first: int, queries: int, count: int, window: int | None = None) -> torch.Tensor:
    """A causal mask for queries at `first` and later positions, (1, 1, Q, K)."""
    ahead = torch.arange(count) - torch.arange(first, first + queries)[:, None]
    visible = ahead <= 0
    visible = visible if window is None else visible & (-ahead < window)
    return visible[None, None]


def place(queries, k, visible=None, **options) -> Placement:
    defaults = {"is_cross": False, "update": None, "previous": None}
    return place_queries(queries, k, visible=visible, **(defaults | options))


def test_as_many_queries_as_keys_share_an_axis():
    assert place(7, make_keys(7)) == Placement("queries_and_keys", 7, query_offset=0)


def test_two_sequences_of_equal_length_share_no_axis():
    placement = place(7, make_keys(7), is_cross=True)
    assert (placement.known_positions, placement.query_offset) == ("keys", None)
    assert "two sequences" in placement.note


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize(("first", "queries"), [(0, 7), (4, 2), (9, 4)])
def test_the_diagonal_of_a_causal_mask_places_queries(first, queries, window):
    placement = place(queries, make_keys(13), causal_mask(first, queries, 13, window))
    assert placement == Placement("queries_and_keys", first + queries, query_offset=first)


def test_padding_on_either_side_does_not_hide_the_diagonal():
    visible = causal_mask(0, 7, 13).repeat(3, 1, 1, 1)
    visible[1, :, :, :3] = False  # rows that see nothing
    visible[2, :, :, 4:] = False  # rows that end at the last real key
    assert place(7, make_keys(13), visible) == Placement("queries_and_keys", 7, query_offset=0)


@pytest.mark.parametrize(
    "rows", ["all keys", "one row", "two examples that differ", "not one by one"]
)
def test_a_mask_without_a_diagonal_places_nothing(rows):
    visible = causal_mask(2, 3, 13)
    if rows == "all keys":
        visible = torch.ones_like(visible)
    elif rows == "one row":
        visible = visible[:, :, :1]
    elif rows == "two examples that differ":
        visible = torch.cat((visible, causal_mask(3, 3, 13)))
    else:
        visible = visible[:, :, [0, 2, 1]]
    placement = place(visible.shape[2], make_keys(13), visible)
    assert (placement.known_positions, placement.query_offset, placement.keys) == ("none", None, 13)
    assert "are unknown" in placement.note


@pytest.mark.parametrize(("returned", "filled"), [(13, 13), (24, 13)], ids=["dynamic", "static"])
def test_a_cache_update_places_queries(returned, filled):
    visible = (torch.arange(returned) < filled).expand(1, 1, 1, -1)
    placement = place(1, make_keys(returned), visible, update=CacheUpdate(1, returned, filled))
    assert placement == Placement("queries_and_keys", filled, query_offset=filled - 1)


def test_a_cache_update_of_other_keys_places_nothing():
    assert (
        place(1, make_keys(13), update=CacheUpdate(13, 13, 13)).known_positions == "none"
    )  # cross-attention fills its own
    assert place(1, make_keys(13), update=CacheUpdate(1, 24, 13)).known_positions == "none"


def test_a_slot_that_a_query_may_see_is_not_empty():
    assert place(1, make_keys(24), update=CacheUpdate(1, 24, 13)).known_positions == "none"
    assert (
        place(
            1,
            make_keys(24),
            torch.ones(1, 1, 1, 24, dtype=torch.bool),
            update=CacheUpdate(1, 24, 13),
        ).known_positions
        == "none"
    )


def test_keys_that_continue_the_previous_call_place_queries():
    k = make_keys(9)
    before = AttentionCall(make_keys(7, seed=1)[:, :, :7], k[:, :, :7], Mask())
    assert place(2, k, previous=before) == Placement("queries_and_keys", 9, query_offset=7)
    other = AttentionCall(before.q, make_keys(7, seed=2), Mask())
    assert place(2, k, previous=other).known_positions == "none"


def test_scores_recorded_without_keys_prove_no_continuation():
    zeros = torch.zeros(B, 1, 7, 1)
    before = AttentionCall(torch.zeros(B, H, 7, 1), zeros, Mask(bias=torch.randn(B, H, 7, 7)))
    assert place(1, torch.zeros(B, 1, 8, 1), previous=before).known_positions == "none"


def test_a_sample_of_the_queries_has_no_known_positions():
    placement = place(3, make_keys(7), causal_mask(0, 3, 7), projected_length=7)
    assert placement.known_positions == "none"
    assert "3 of 7" in placement.note
