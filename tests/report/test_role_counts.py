"""Sentences about the roles of heads."""

import numpy as np
import pytest

from neural.findings.head_roles import ROLE_THRESHOLDS
from neural.report.role_counts import ROLE_DESCRIPTIONS, count_head_roles, describe_roles
from tests.findings.synthetic_runs import write_synthetic_run

SNAPSHOTS = 10


def write_roles(root, heads, seed=0):
    """A run with one layer; `heads` has the mass on the previous token (start, end), or "uniform".

    A head is uniform throughout, or from the middle on for "became uniform", or until it gets 0.9.
    """
    previous = np.zeros((SNAPSHOTS, 1, len(heads)))
    entropy = np.full((SNAPSHOTS, 1, len(heads)), 0.5)
    for index, head in enumerate(heads):
        if isinstance(head, str):
            first = SNAPSHOTS // 2 if head.startswith("became") else 0
            entropy[first:, 0, index] = 0.99
            if head.endswith("0.9"):
                entropy[5:, 0, index], previous[5:, 0, index] = 0.5, 0.9
        else:
            start, end = head
            previous[:, 0, index] = np.where(np.arange(SNAPSHOTS) < 5, start, end)
    arrays = {"previous_token_mass": previous, "relative_entropy": entropy}
    return write_synthetic_run(root, seed, arrays=arrays)


@pytest.mark.parametrize(
    ("heads", "sentence"),
    [
        ([(0, 0.9), (0, 0.1), (0, 0.2)], "1 of 3 heads found a role"),
        ([(0, 0.9), (0, 0.8)], "All 2 heads found a role"),
        (["uniform, then 0.9", "uniform"], "From uniform attention, 1 of 2 heads found a role"),
        ([(0.9, 0.9), (0, 0.8), (0, 0)], "2 of 3 heads have a role, 1 of them from the start"),
        ([(0.9, 0.9), (0, 0)], "1 of 2 heads has a role, as it had from the start"),
        ([(0.9, 0.9), (0.8, 0.8)], "All 2 heads have a role, as they had from the start"),
        ([(0, 0.1), (0, 0.2)], "None of 2 heads found a role"),
        (["uniform"] * 4, "No head found a role: the attention of all 4 stayed uniform"),
        (
            ["uniform", "uniform", (0, 0)],
            "No head found a role: the attention of 2 of 3 heads stayed uniform",
        ),
        (
            ["became uniform", (0, 0)],
            "No head found a role: the attention of 1 of 2 heads became uniform",
        ),
        ([(0, 0.9)], "Its only head found a role: previous token"),
        ([(0, 0.1)], "Its only head found no role"),
        (["uniform"], "The attention of its only head is uniform"),
    ],
)
def test_one_run(tmp_path, heads, sentence):
    assert describe_roles([count_head_roles(write_roles(tmp_path, heads))]) == sentence


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [
        (
            [[(0, 0.9), (0, 0)], [(0, 0.9), (0, 0.9)]],
            "On average 1.5 of 2 heads found a role: 1 to 2 with 2 seeds",
        ),
        (
            [[(0, 0.9), (0, 0)], [(0, 0), (0, 0.9)]],
            "1 of 2 heads found a role with each of 2 seeds",
        ),
        ([[(0, 0), (0, 0)]] * 3, "No head found a role with any of 3 seeds"),
    ],
)
def test_several_seeds(tmp_path, seeds, sentence):
    counts = [
        count_head_roles(write_roles(tmp_path, heads, seed)) for seed, heads in enumerate(seeds)
    ]
    assert describe_roles(counts) == sentence


def test_counts_of_a_run(tmp_path):
    counts = count_head_roles(write_roles(tmp_path, [(0, 0.7), "uniform", (0, 0.9), (0, 0)]))
    assert counts.head_count == 4 and counts.heads == [(0, 0), (0, 2)]
    assert counts.uniform_count == 1
    assert counts.format_tally() == "2 previous token"
    assert counts.find_clearest_head() == (0, 2)
    # the sixth snapshot; there is one every 50 steps
    assert counts.list_onsets() == {(0, head): ("previous token", 300) for head in (0, 2)}


def test_every_role_is_explained():
    assert set(ROLE_DESCRIPTIONS) == set(ROLE_THRESHOLDS) - {"uniform"}


def test_a_run_without_attention_has_no_counts(tmp_path):
    run = write_synthetic_run(tmp_path, 0, scalars={"valid/loss": np.array([2.0, 1.0])})
    assert count_head_roles(run) is None
