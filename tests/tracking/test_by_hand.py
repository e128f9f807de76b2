"""Measures of maps that are small enough to work out on paper."""

import math

import pytest
import torch

from neural.modules.mask import Mask
from neural.tracking.look import Look
from neural.tracking.maps import Maps
from neural.tracking.measures import registry
from neural.tracking.statistics import compare, head_statistics, row_statistics


def look_with(weights: list, **more) -> Look:
    """One head whose weights are these: the logs are the scores of queries that each stand on an axis of their own."""
    rows = torch.tensor(weights)
    k = rows.log().clamp(min=-1e4).t().contiguous()
    return Look(torch.eye(len(rows))[None, None], k[None, None], scale=1.0, **more)


def of(name: str, weights: list, **more) -> list[float]:
    look = look_with(weights, **more)
    found = row_statistics(look.q, look.k, look.mask, wanted=[name], scale=1.0, tokens=look.tokens, first=look.first)
    return found[name].flatten().tolist()


ONE, TWO, ALL = [1.0, 0, 0, 0], [0.5, 0, 0, 0.5], [0.25, 0.25, 0.25, 0.25]


@pytest.mark.parametrize(
    ("name", "weights", "values"),
    [
        ("entropy", [ONE, TWO, ALL], [0, math.log(2), math.log(4)]),
        ("relative_entropy", [ONE, TWO, ALL], [0, 0.5, 1]),
        ("effective_keys", [ONE, TWO, ALL], [1, 2, 4]),
        ("largest_weight", [ONE, TWO, ALL], [1, 0.5, 0.25]),
        ("expected_position", [ONE, TWO, ALL], [0, 1.5, 1.5]),
        ("position_spread", [ONE, TWO, ALL], [0, 1.5, math.sqrt(1.25)]),
        ("first_key_mass", [ONE, TWO, ALL], [1, 0.5, 0.25]),
        # the three queries stand at keys 1, 2 and 3
        ("span", [ONE, TWO, ALL], [1, 1.5, 1.5]),
        ("span90", [ONE, TWO, ALL], [1, 2, 3]),
        ("previous_token_mass", [ONE, TWO, [0.1, 0.2, 0.3, 0.4]], [1, 0, 0.3]),
        ("diagonal_mass", [ONE, TWO, [0.1, 0.2, 0.3, 0.4]], [0, 0, 0.4]),
        ("largest_logit", [ONE, TWO, ALL], [0, math.log(0.5), math.log(0.25)]),
    ],
)
def test_a_row_of_four_keys(name, weights, values):
    assert of(name, weights) == pytest.approx(values, abs=1e-6)


def test_ninety_percent_of_ten_equal_weights_are_nine():
    assert of("span90", [[0.1] * 10]) == [8]
    assert of("span90", [[0.1] * 10], first=0) == [8]
    assert of("span90", [[0.1] * 10], first=5) == [4]   # five before, itself, four after: nine within four


def test_induction_is_the_mass_on_what_came_after_the_last_time():
    tokens = torch.tensor([[5, 6, 5, 5, 6]])
    weights = [[0.1, 0.2, 0.3, 0.15, 0.25]] * 5
    found = of("induction_mass", weights, tokens=tokens)
    # a new token asks no question; nor does one that stands twice in a row: what followed it is the query itself
    assert [math.isnan(one) for one in found] == [True, True, False, True, False]
    assert (found[2], found[4]) == pytest.approx((0.2, 0.3))   # after 0 comes 1, after 1 comes 2


def test_a_head_that_looks_at_itself_is_no_induction_head():
    alternating, same = torch.tensor([[5, 6, 5, 6, 5, 6]]), torch.tensor([[5, 5, 5, 5, 5, 5]])
    itself = torch.eye(6).tolist()
    mass = of("induction_mass", itself, tokens=alternating)
    assert [one for one in mass if not math.isnan(one)] == pytest.approx([0] * 4, abs=1e-6)
    assert all(math.isnan(one) for one in of("induction_mass", itself, tokens=same))


def test_the_edge_of_a_window_is_no_sink():
    far = torch.zeros(8, 8)
    for query in range(8):
        far[query, max(0, query - 4)] = 1.0
    rows = row_statistics(
        torch.eye(8)[None, None], far.log().clamp(min=-1e4).t()[None, None], Mask(causal=True, reach=4),
        wanted=["first_key_mass", "sink_excess"], scale=1.0,
    )  # fmt: skip
    assert rows["first_key_mass"].flatten()[1:].tolist() == pytest.approx([1, 1, 1, 1, 0, 0, 0], abs=1e-6)
    assert math.isnan(rows["first_key_mass"].flatten()[0])   # it has no choice


def test_a_uniform_head_of_a_short_text_is_no_sink():
    q = torch.zeros(1, 1, 4, 3)
    found = head_statistics(q, q, Mask(causal=True), wanted=["first_key_mass", "sink_excess"])
    assert found["first_key_mass"].item() == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert found["sink_excess"].item() == pytest.approx(0, abs=1e-6)


def test_spans_without_the_sink():
    # half of the mass on the first key, half on the previous one
    weights = [[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]]
    look = look_with(weights)
    found = row_statistics(look.q, look.k, Mask(causal=True), wanted=["span_without_sink", "span"], scale=1.0)
    assert found["span"].flatten().tolist() == pytest.approx([0, 1, 1.5, 2], abs=1e-5)
    without = found["span_without_sink"].flatten().tolist()
    assert [math.isnan(one) for one in without] == [True, True, False, False]   # nothing else is looked at
    assert without[2:] == pytest.approx([1, 1], abs=1e-5)


def test_heads_that_share_no_key_are_as_diverse_as_can_be():
    look = Look(torch.eye(3)[None, :, None], 100 * torch.eye(3)[None, None].repeat(1, 3, 1, 1), scale=1.0)
    found = head_statistics(look.q, look.k, wanted=["head_diversity", "head_variance"], scale=1.0)
    assert found["head_diversity"].item() == pytest.approx(math.log(3), abs=1e-6)
    assert found["head_variance"].item() == pytest.approx(2 / 9, abs=1e-6)   # of (1, 0, 0), for each of three keys
    alike = head_statistics(look.q[:, :1].repeat(1, 3, 1, 1), look.k, wanted=["head_diversity", "head_variance"])
    assert alike["head_diversity"].item() == pytest.approx(0, abs=1e-6)
    assert alike["head_variance"].item() == 0


def between(one: list, other: list) -> dict[str, float]:
    first, second = look_with([one]), look_with([other])
    return {name: value.item() for name, value in compare(first.q, first.k, second.q, second.k, scale=1.0).items()}


def test_two_rows_that_share_no_key_are_one_bit_apart():
    found = between(ONE, [0, 0, 0, 1.0])
    assert found["js_between"] == pytest.approx(1, abs=1e-6)
    assert found["cosine_between"] == pytest.approx(0, abs=1e-6)
    assert found["centred_cosine_between"] == pytest.approx(-1 / 3, abs=1e-6)   # of the corners of a tetrahedron


def test_two_rows_that_are_one():
    found = between([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4])
    assert found["js_between"] == pytest.approx(0, abs=1e-6)
    assert found["kl_between"] == pytest.approx(0, abs=1e-6)
    assert found["cosine_between"] == pytest.approx(1, abs=1e-6)
    assert found["centred_cosine_between"] == pytest.approx(1, abs=1e-6)


def test_half_a_row_in_common():
    found = between([0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0])
    assert found["js_between"] == pytest.approx(0.5, abs=1e-6)
    assert found["cosine_between"] == pytest.approx(0.5, abs=1e-6)
    assert found["centred_cosine_between"] == pytest.approx(0, abs=1e-6)
    found = between([0.75, 0.25], [0.25, 0.75])
    assert found["kl_between"] == pytest.approx(0.5 * math.log(3), abs=1e-6)


def test_a_uniform_row_has_no_direction_but_a_cosine():
    found = between(ALL, ONE)
    assert math.isnan(found["centred_cosine_between"])
    assert found["cosine_between"] == pytest.approx(0.5, abs=1e-6)


def test_rollout_of_two_layers_is_their_product_with_half_the_residual():
    first = torch.tensor([[1.0, 0], [1.0, 0]])
    second = torch.tensor([[1.0, 0], [0.0, 1.0]])
    maps = [
        Maps(
            weights=one[None, None], kept=torch.ones(1, 1, 2, 2, dtype=torch.bool), at=torch.arange(2),
            origins=torch.zeros(1, 2, dtype=torch.long),
        )
        for one in (first, second)
    ]
    wanted = torch.tensor([[1.0, 0], [0.5, 0.5]])
    torch.testing.assert_close(registry.get("rollout")().plain(*maps), wanted[None])


def test_a_causal_first_row_has_no_previous_token_and_no_choice():
    q, k = torch.randn(1, 1, 3, 4), torch.randn(1, 1, 3, 4)
    rows = row_statistics(q, k, Mask(causal=True), wanted=["previous_token_mass", "relative_entropy", "entropy"])
    assert rows["previous_token_mass"][0, 0].isnan().tolist() == [True, False, False]
    assert rows["relative_entropy"][0, 0].isnan().tolist() == [True, False, False]
    assert rows["entropy"][0, 0, 0] == 0
