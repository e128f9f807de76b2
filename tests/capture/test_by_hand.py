"""Measures of small maps whose values are known by hand."""

import math

import pytest
import torch

from neural.capture.attention_call import AttentionCall
from neural.capture.attention_maps import AttentionMaps
from neural.capture.measures import registry
from neural.capture.statistics import compare_layers, head_statistics, row_statistics
from neural.nn.mask import Mask


def make_call(weights: list, **fields) -> AttentionCall:
    """One head with these weights: queries are unit vectors, so that the scores are the logs."""
    rows = torch.tensor(weights)
    k = rows.log().clamp(min=-1e4).t().contiguous()
    return AttentionCall(torch.eye(len(rows))[None, None], k[None, None], scale=1.0, **fields)


def measure(name: str, weights: list, **fields) -> list[float]:
    call = make_call(weights, **fields)
    statistics = row_statistics(
        call.q,
        call.k,
        call.mask,
        measures=[name],
        scale=1.0,
        tokens=call.tokens,
        query_offset=call.query_offset,
    )
    return statistics[name].flatten().tolist()


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
        # the three queries are at keys 1, 2 and 3
        ("span", [ONE, TWO, ALL], [1, 1.5, 1.5]),
        ("span90", [ONE, TWO, ALL], [1, 2, 3]),
        ("previous_token_mass", [ONE, TWO, [0.1, 0.2, 0.3, 0.4]], [1, 0, 0.3]),
        ("diagonal_mass", [ONE, TWO, [0.1, 0.2, 0.3, 0.4]], [0, 0, 0.4]),
        ("largest_logit", [ONE, TWO, ALL], [0, math.log(0.5), math.log(0.25)]),
    ],
)
def test_rows_of_four_keys(name, weights, values):
    assert measure(name, weights) == pytest.approx(values, abs=1e-6)


def test_ninety_percent_of_ten_equal_weights_are_nine():
    assert measure("span90", [[0.1] * 10]) == [8]
    assert measure("span90", [[0.1] * 10], query_offset=0) == [8]
    assert measure("span90", [[0.1] * 10], query_offset=5) == [
        4
    ]  # five before, itself, four after: nine within four


def test_induction_is_the_mass_on_the_token_after_the_last_occurrence():
    tokens = torch.tensor([[5, 6, 5, 5, 6]])
    weights = [[0.1, 0.2, 0.3, 0.15, 0.25]] * 5
    statistics = measure("induction_mass", weights, tokens=tokens)
    # a new token does not count, nor a repeated one: what followed it is the query itself
    assert [math.isnan(value) for value in statistics] == [True, True, False, True, False]
    assert (statistics[2], statistics[4]) == pytest.approx(
        (0.2, 0.3)
    )  # after 0 comes 1, after 1 comes 2


def test_a_head_that_attends_to_itself_is_no_induction_head():
    alternating, same = torch.tensor([[5, 6, 5, 6, 5, 6]]), torch.tensor([[5, 5, 5, 5, 5, 5]])
    itself = torch.eye(6).tolist()
    mass = measure("induction_mass", itself, tokens=alternating)
    assert [value for value in mass if not math.isnan(value)] == pytest.approx([0] * 4, abs=1e-6)
    assert all(math.isnan(value) for value in measure("induction_mass", itself, tokens=same))


def test_the_edge_of_a_window_is_no_sink():
    far = torch.zeros(8, 8)
    for query in range(8):
        far[query, max(0, query - 4)] = 1.0
    rows = row_statistics(
        torch.eye(8)[None, None],
        far.log().clamp(min=-1e4).t()[None, None],
        Mask(causal=True, reach=4),
        measures=["first_key_mass", "sink_excess"],
        scale=1.0,
    )
    assert rows["first_key_mass"].flatten()[1:].tolist() == pytest.approx(
        [1, 1, 1, 1, 0, 0, 0], abs=1e-6
    )
    assert math.isnan(rows["first_key_mass"].flatten()[0])  # it sees one key only


def test_a_uniform_head_of_a_short_sequence_is_no_sink():
    q = torch.zeros(1, 1, 4, 3)
    statistics = head_statistics(
        q, q, Mask(causal=True), measures=["first_key_mass", "sink_excess"]
    )
    assert statistics["first_key_mass"].item() == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
    assert statistics["sink_excess"].item() == pytest.approx(0, abs=1e-6)


def test_spans_without_the_sink():
    # half of the mass on the first key, half on the previous one
    weights = [[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]]
    call = make_call(weights)
    statistics = row_statistics(
        call.q, call.k, Mask(causal=True), measures=["span_without_sink", "span"], scale=1.0
    )
    assert statistics["span"].flatten().tolist() == pytest.approx([0, 1, 1.5, 2], abs=1e-5)
    without = statistics["span_without_sink"].flatten().tolist()
    assert [math.isnan(value) for value in without] == [
        True,
        True,
        False,
        False,
    ]  # all mass is on the first key
    assert without[2:] == pytest.approx([1, 1], abs=1e-5)


def test_heads_that_share_no_key_are_as_diverse_as_can_be():
    call = AttentionCall(
        torch.eye(3)[None, :, None], 100 * torch.eye(3)[None, None].repeat(1, 3, 1, 1), scale=1.0
    )
    statistics = head_statistics(
        call.q, call.k, measures=["head_diversity", "head_variance"], scale=1.0
    )
    assert statistics["head_diversity"].item() == pytest.approx(math.log(3), abs=1e-6)
    assert statistics["head_variance"].item() == pytest.approx(
        2 / 9, abs=1e-6
    )  # of (1, 0, 0), for each of three keys
    alike = head_statistics(
        call.q[:, :1].repeat(1, 3, 1, 1), call.k, measures=["head_diversity", "head_variance"]
    )
    assert alike["head_diversity"].item() == pytest.approx(0, abs=1e-6)
    assert alike["head_variance"].item() == 0


def compare_rows(first_row: list, second_row: list) -> dict[str, float]:
    first, second = make_call([first_row]), make_call([second_row])
    return {
        name: value.item()
        for name, value in compare_layers(first.q, first.k, second.q, second.k, scale=1.0).items()
    }


def test_two_rows_that_share_no_key_are_one_bit_apart():
    statistics = compare_rows(ONE, [0, 0, 0, 1.0])
    assert statistics["js_between"] == pytest.approx(1, abs=1e-6)
    assert statistics["cosine_between"] == pytest.approx(0, abs=1e-6)
    assert statistics["centred_cosine_between"] == pytest.approx(
        -1 / 3, abs=1e-6
    )  # of the corners of a tetrahedron


def test_two_equal_rows():
    statistics = compare_rows([0.1, 0.2, 0.3, 0.4], [0.1, 0.2, 0.3, 0.4])
    assert statistics["js_between"] == pytest.approx(0, abs=1e-6)
    assert statistics["kl_between"] == pytest.approx(0, abs=1e-6)
    assert statistics["cosine_between"] == pytest.approx(1, abs=1e-6)
    assert statistics["centred_cosine_between"] == pytest.approx(1, abs=1e-6)


def test_half_a_row_in_common():
    statistics = compare_rows([0.5, 0.5, 0, 0], [0, 0.5, 0.5, 0])
    assert statistics["js_between"] == pytest.approx(0.5, abs=1e-6)
    assert statistics["cosine_between"] == pytest.approx(0.5, abs=1e-6)
    assert statistics["centred_cosine_between"] == pytest.approx(0, abs=1e-6)
    statistics = compare_rows([0.75, 0.25], [0.25, 0.75])
    assert statistics["kl_between"] == pytest.approx(0.5 * math.log(3), abs=1e-6)


def test_a_uniform_row_has_no_direction_but_a_cosine():
    statistics = compare_rows(ALL, ONE)
    assert math.isnan(statistics["centred_cosine_between"])
    assert statistics["cosine_between"] == pytest.approx(0.5, abs=1e-6)


def test_rollout_of_two_layers_is_their_product_with_half_the_residual():
    first = torch.tensor([[1.0, 0], [1.0, 0]])
    second = torch.tensor([[1.0, 0], [0.0, 1.0]])
    maps = [
        AttentionMaps(
            weights=weights[None, None],
            visible_mask=torch.ones(1, 1, 2, 2, dtype=torch.bool),
            query_positions=torch.arange(2),
            first_keys=torch.zeros(1, 2, dtype=torch.long),
        )
        for weights in (first, second)
    ]
    expected = torch.tensor([[1.0, 0], [0.5, 0.5]])
    torch.testing.assert_close(registry.get("rollout")().reference(*maps), expected[None])


def test_the_first_causal_row_has_no_previous_token_and_no_relative_entropy():
    q, k = torch.randn(1, 1, 3, 4), torch.randn(1, 1, 3, 4)
    rows = row_statistics(
        q, k, Mask(causal=True), measures=["previous_token_mass", "relative_entropy", "entropy"]
    )
    assert rows["previous_token_mass"][0, 0].isnan().tolist() == [True, False, False]
    assert rows["relative_entropy"][0, 0].isnan().tolist() == [True, False, False]
    assert rows["entropy"][0, 0, 0] == 0
