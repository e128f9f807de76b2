"""Decisions about heads: necessary, without effect, redundant, taken over."""

import math

import numpy as np
import pytest

from neural.findings.head_necessity import (
    HeadRole,
    decide_necessity,
    find_redundant_pairs,
    find_roles_without_effect,
    find_takeovers,
    format_change,
    load_necessity,
    load_roles,
)
from neural.findings.run_loading import MissingDataError
from neural.runs.importance_file import IMPORTANCE_FILE, load_importance
from neural.runs.run import Run
from tests.findings.symptomatic_runs import write_attention_run
from tests.findings.synthetic_runs import write_synthetic_run
from tests.importance_files import create_story, write_importance_file

ROLE = HeadRole("induction", 700, True)


def decide(folder, change, **options):
    write_importance_file(folder, change, **options)
    return decide_necessity(load_importance(folder))


def test_a_head_is_necessary_if_the_change_is_certain_and_relevant(tmp_path):
    # the smallest relevant change is .02; standard errors differ
    change = np.array([[[0.41, 0.03, 0.015, 0.03, -0.4, math.nan]]])
    se = np.array([[[0.02, 0.004, 0.001, 0.01, 0.02, 0.01]]])
    necessity = decide(tmp_path, change, se=se, loss=[1.3])
    assert necessity.smallest_change == pytest.approx(0.02)
    assert necessity.is_necessary[0, 0].tolist() == [True, True, False, False, False, False]
    assert necessity.list_necessary_heads() == [(0, 0), (0, 1)]


def test_without_effect_needs_an_interval_inside_the_bounds(tmp_path):
    change = np.array([[[0.0, 0.0, 0.012, 0.3, -0.3, math.nan]]])
    se = np.array([[[0.003, 0.03, 0.005, 0.003, 0.003, 0.003]]])
    necessity = decide(tmp_path, change, se=se, loss=[1.3])
    assert necessity.is_without_effect[0, 0].tolist() == [True, False, False, False, False, False]


@pytest.mark.parametrize(
    "options",
    [{"loss": [3.5]}, {"loss": [3.29]}, {"chance_loss": None, "loss": [1.3]}, {"examples": 15}],
    ids=["worse than chance", "within the error of chance", "unknown chance", "few examples"],
)
def test_nothing_is_decided_without_a_model_that_learned_and_enough_examples(tmp_path, options):
    necessity = decide(tmp_path, np.array([[[0.5, 0.0]]]), **{"loss": [1.3], **options})
    assert not necessity.is_necessary.any() and not necessity.is_without_effect.any()
    assert find_redundant_pairs(necessity) == find_takeovers(necessity) == []


def test_the_first_loss_stands_for_an_unknown_chance_loss(tmp_path):
    change = np.full((2, 1, 1), 0.5)
    necessity = decide(tmp_path, change, chance_loss=None, loss=[2.3, 1.3])
    assert necessity.is_necessary[:, 0, 0].tolist() == [False, True]
    assert necessity.learned[1] == pytest.approx(1.0)
    record = load_importance(tmp_path)
    assert decide_necessity(record, chance_loss=4.3).learned[0] == pytest.approx(2.0)


def test_equal_examples_have_no_error_and_are_decided_by_their_sign(tmp_path):
    necessity = decide(tmp_path, np.array([[[0.3, 0.0, -0.3]]]), se=0.0, loss=[1.3])
    assert necessity.is_necessary[0, 0].tolist() == [True, False, False]
    assert necessity.is_without_effect[0, 0].tolist() == [False, True, False]


def test_a_single_step_that_differs_does_not_move_the_onset(tmp_path):
    change = np.zeros((10, 1, 3))
    change[4:, 0, 0] = 0.3
    change[7, 0, 0] = 0.0  # a noisy step after the onset
    change[1, 0, 0] = 0.3  # and one before it
    change[:5, 0, 1] = 0.3
    necessity = decide(tmp_path, change)
    assert necessity.find_onset_step(0, 0) == 250
    assert necessity.find_onset_step(0, 1) is None, "it is not necessary at the end"
    assert necessity.find_onset_step(0, 2) is None


def test_the_bound_does_not_grow_with_the_model_and_half_of_the_importance_comes_later(tmp_path):
    change = np.zeros((10, 1, 2))
    # signs that exceed 1 % of the little that is learned by then, but not of what is learned later
    change[2:4, 0, 0] = 0.01
    change[4:6, 0, 0] = 0.05
    change[6:, 0, 0] = 0.4
    loss = np.array([3.3, 3.25, 3.2, 3.15, 3.1, 3.0, 1.5, 1.4, 1.3, 1.3])
    necessity = decide(tmp_path, change, se=0.001, loss=loss)
    assert necessity.find_onset_step(0, 0) == 250
    assert necessity.find_half_step(0, 0) == 350
    assert necessity.find_half_step(0, 1) is None


def test_a_pair_is_redundant_if_either_can_be_removed_but_not_both(tmp_path):
    change = np.zeros((1, 2, 3))
    change[0, 1, 0] = 0.3
    pairs = [((0, 0), (0, 1), 0.31), ((0, 0), (1, 0), 0.31), ((0, 0), (0, 2), 0.01)]
    (pair,) = find_redundant_pairs(decide(tmp_path, change, loss=[1.3], pairs=pairs))
    assert (pair.first, pair.second) == ((0, 0), (0, 1))
    assert pair.both == pytest.approx(0.31)


def test_two_small_effects_that_add_up_are_not_redundant(tmp_path):
    change = np.full((1, 1, 2), 0.013)
    pair = ((0, 0), (0, 1), 0.026)
    necessity = decide(tmp_path, change, se=0.0005, loss=[1.3], pairs=[pair])
    assert necessity.is_without_effect.all()
    assert find_redundant_pairs(necessity) == []


def test_a_role_without_effect_is_not_one_of_a_redundant_pair(tmp_path):
    change = np.zeros((1, 2, 2))
    change[0, 1, 1] = 0.4
    necessity = decide(tmp_path, change, loss=[1.3], pairs=[((0, 0), (0, 1), 0.31)])
    roles = dict.fromkeys([(0, 0), (1, 0), (1, 1), (7, 7)], ROLE)
    assert find_roles_without_effect(necessity, roles) == [(1, 0)]


def test_a_takeover_names_both_heads_and_the_step(tmp_path):
    (takeover,) = find_takeovers(decide(tmp_path, create_story()))
    assert (takeover.earlier, takeover.later, takeover.step) == ((0, 1), (1, 3), 650)
    assert takeover.fall.before == pytest.approx(0.22, abs=0.01)
    assert takeover.fall.after == pytest.approx(0, abs=0.01)
    assert takeover.rise.after == pytest.approx(0.25, abs=0.01)


def jumps(snapshots, fall, rise, *, size=0.3, later_size=0.3):
    change = 0.001 * np.random.default_rng(1).normal(size=(snapshots, 2, 2))
    change[:fall, 0, 0] += size
    change[rise:, 1, 1] += later_size
    return change


@pytest.mark.parametrize(
    "change",
    [
        jumps(20, 8, 12),
        jumps(20, 10, 10, later_size=0.9),
        jumps(20, 10, 10, size=0.04, later_size=0.04),
        jumps(6, 3, 4),
        jumps(20, 1, 1),
        np.linspace(1, 0, 20)[:, None, None] * np.array([[0.3, 0]])
        + np.linspace(0, 1, 20)[:, None, None] * np.array([[0, 0.3]]),
    ],
    ids=["apart", "another size", "small", "few checkpoints", "at the start", "gradual"],
)
def test_what_is_no_takeover(tmp_path, change):
    assert find_takeovers(decide(tmp_path, change)) == []


def test_a_takeover_between_neighbouring_steps_needs_more_checkpoints(tmp_path):
    assert find_takeovers(decide(tmp_path, jumps(12, 6, 7))) == []
    (takeover,) = find_takeovers(decide(tmp_path, jumps(30, 15, 16)))
    assert takeover.chance == pytest.approx(3 / 27)


def test_roles_and_decisions_of_a_run(tmp_path):
    run = write_attention_run(tmp_path)
    roles = load_roles(run)
    assert roles[2, 2] == HeadRole("previous token", 550, True)
    assert roles[2, 2].describe() == "it became a previous-token head at step 550"
    assert roles[1, 0].describe() == "it became a sink head at step 550"
    assert ROLE.noun == "an induction head"
    necessity = load_necessity(run)
    assert necessity.find_onset_step(2, 2) == 550
    assert load_necessity(run) is necessity, "computed once"
    write_importance_file(run.path, np.zeros((1, 3, 4)))
    assert load_necessity(run) is not necessity, "the file changed"


def test_a_missing_or_damaged_file_is_a_message(tmp_path):
    run = write_synthetic_run(tmp_path, 0)
    assert load_roles(run) == {}
    with pytest.raises(MissingDataError, match=r"has no importance of heads; .*neural ablate"):
        load_necessity(run)
    (run.path / IMPORTANCE_FILE).write_text("{")
    with pytest.raises(MissingDataError, match=r"has no importance of heads: importance\.json"):
        load_necessity(Run.open(run.path))


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (0.4123, 0.0231, "0.41 ± 0.02 nats"),
        (0.4123, 0.0131, "0.412 ± 0.013 nats"),
        (-0.0031, 0.0042, "−0.003 ± 0.004 nats"),
        (12.3, 2.2, "12 ± 2 nats"),
        (0.5, 0.0, "0.50 ± 0.00 nats"),
        (0.51234, math.nan, "0.512 nats"),
    ],
)
def test_changes_have_the_digits_that_their_error_allows(change, error, text):
    assert format_change(change, error, "nats") == text
