"""Roles of heads as page data."""

import numpy as np

import tests.report_runs
from neural.findings.head_roles import TOO_SHORT
from neural.report.head_role_data import NO_ROLE_DATA, collect_role_data, list_role_strengths
from neural.report.run_report import build_run_data
from neural.runs.run import Run
from neural.runs.run_reader import ROLES_PREFIX
from tests.report_runs import random_causal_maps, write_run


def write_positional_run(root, monkeypatch, *, snapshots=4):
    """A run with one layer; its second head attends to the previous token from step 10 on."""
    previous = np.eye(12, k=-1)
    previous[0, 0] = 1
    calls = iter(range(snapshots))

    def create_maps(random, heads, positions):
        maps = random_causal_maps(random, heads, positions)
        if next(calls) > 0:
            maps[1] = 0.9 * previous + 0.1 * maps[1]
        return maps

    monkeypatch.setattr(tests.report_runs, "random_causal_maps", create_maps)
    return write_run(root, layers=1, heads=2, positions=12, snapshots=snapshots)


def test_a_head_has_its_role_with_strength_and_onset(tmp_path, monkeypatch):
    with Run.open(write_positional_run(tmp_path, monkeypatch)) as run:
        data = collect_role_data(run)
    assert data["roles"] == [["mixed", "positional"]]
    assert data["role_onsets"] == [[None, 10]]
    ((nothing, strength),) = data["role_strengths"]
    assert nothing is None and 1 < strength < 2  # the threshold is 0.5, the largest score 1


def test_a_run_without_attention_has_none(tmp_path):
    run = Run.create(tmp_path, "none", settings={}, program=None, environment={})
    assert collect_role_data(run) == NO_ROLE_DATA


def test_pages_get_the_name_of_no_role_for_inputs_that_are_too_short(tmp_path):
    step = {f"{ROLES_PREFIX}uniform": [[0.0, 1.0]], ROLES_PREFIX + TOO_SHORT: [[1.0, 1.0]]}
    run = Run.create(tmp_path, "short", settings={}, program=None, environment={})
    run.set_metadata("attention/layers", ["0"])
    run.log_arrays(0, {name: np.array(scores, np.float32) for name, scores in step.items()})
    run.finish("finished")
    with Run.open(run.path) as opened:
        assert collect_role_data(opened)["roles"] == [["mixed", "uniform"]]


def test_updates_and_running_trainings_do_not_compute_roles(tmp_path, monkeypatch):
    path = write_positional_run(tmp_path, monkeypatch)
    with Run.open(path) as run:
        assert build_run_data(run)["roles"] == [["mixed", "positional"]]
        assert build_run_data(run, after_step=10)["roles"] is None
    with Run.reopen(path) as run:
        run.heartbeat(40)
        assert run.status.state == "running" and build_run_data(run)["roles"] is None


def test_heads_without_a_role_have_no_strength():
    names = np.array([["uniform", "mixed", ""]], dtype=object)
    assert list_role_strengths(names, {}) == [[None, None, None]]
