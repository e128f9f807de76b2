"""Roles of heads of a run are computed once, and again after a change."""

import numpy as np
import pytest

from neural.findings import head_roles
from neural.findings.head_roles import assign_head_roles, find_head_roles
from neural.runs.run import Run
from tests.findings.synthetic_runs import write_synthetic_run


@pytest.fixture
def decoded_steps(monkeypatch):
    """Steps whose maps were decoded, in order."""
    steps, load_maps = [], head_roles.load_maps

    def load_and_count(run, step):
        steps.append(step)
        return load_maps(run, step)

    monkeypatch.setattr(head_roles, "load_maps", load_and_count)
    return steps


def write_run(root):
    uniform = np.tril(np.ones((6, 6))) / np.arange(1, 7)[:, None]
    maps = [np.broadcast_to(uniform, (1, 2, 6, 6))] * 3
    return write_synthetic_run(root, 0, maps=maps)


def test_maps_of_an_ended_run_are_decoded_once(tmp_path, decoded_steps):
    run = write_run(tmp_path)
    first, second = find_head_roles(run), find_head_roles(run)
    assert decoded_steps == [50, 100, 150]
    assert first.keys() == second.keys() and first is not second
    # another opened folder is another run
    with Run.open(run.path) as again:
        find_head_roles(again)
    assert len(decoded_steps) == 6


def test_a_changed_run_is_read_again(tmp_path, decoded_steps):
    run = write_run(tmp_path)
    find_head_roles(run)
    with Run.reopen(run.path) as writer:
        writer.log(200, {"valid/loss": 1.0})
        writer.finish("finished")
    find_head_roles(run)
    assert len(decoded_steps) == 6


@pytest.mark.parametrize(("length", "role"), [(11, "local"), (8, "too short to tell")])
def test_rows_of_padding_are_no_part_of_a_role(tmp_path, length, role):
    distance = np.arange(16)[:, None] - np.arange(16)
    weights = np.where((distance >= 0) & (distance <= 3), 1.0, 0.01)
    weights[length:] = np.where(np.arange(16) == 5, 1.0, 0.01)  # what padding attends to
    weights = np.where((distance >= 0) & (np.arange(16) < length), weights, 0)
    weights /= weights.sum(axis=1, keepdims=True)
    weights[:, length:] = np.nan
    maps = np.stack([weights, weights])[None]
    roles = find_head_roles(write_synthetic_run(tmp_path, 0, maps=[maps]))
    assert assign_head_roles(roles).tolist() == [[role, role]]
