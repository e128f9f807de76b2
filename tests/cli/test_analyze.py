"""`neural analyze`, as a user types it."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.settings import Settings
from neural.sweep import created
from neural.trials import Trial
from tests.views.made_up import made_up

LOOKS = 6
FALLING = np.linspace(3, 1, LOOKS)[:, None, None] * np.ones((1, 1, 2))
ILL = {"arrays": {"largest_logit": np.full((LOOKS, 1, 2), 83.0), "entropy": FALLING}}
WELL = {"arrays": {"largest_logit": np.full((LOOKS, 1, 2), 12.0)}}


def typed(*words):
    return CliRunner().invoke(main, ["analyze", *(str(word) for word in words)])


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def test_a_warning_comes_with_its_evidence_and_advice(root):
    run = made_up(root, 0, **ILL)
    shown = typed()
    assert shown.exit_code == 0, shown.output
    for text in (
        run.name, "finished", "warnings", "ATT006  attention logits are saturated", "L0 h0 (83.00), L0 h1 (83.00)",
        "→ normed queries and keys", "1 of the 5 seeds that it takes to decide", "EVO001", "not examined",
    ):  # fmt: skip
        assert text in shown.output


def test_what_was_looked_for_and_not_found_is_said(root):
    made_up(root, 0, **WELL)
    shown = typed("seed-0").output
    assert "warnings" not in shown
    assert "ATT006 attention logits are saturated" in shown[shown.index("looked for, not found") :].replace("\n ", "")


def test_five_seeds_decide(root):
    runs = [
        made_up(root, seed, **{**ILL, "arrays": {**ILL["arrays"], "entropy": ILL["arrays"]["entropy"] * scale}})
        for seed, scale in enumerate((0.96, 0.98, 1.0, 1.02, 1.04))
    ]
    shown = typed(*(run.path for run in runs))
    assert shown.exit_code == 0, shown.output
    assert "seeds 0, 1, 2, 3, 4" in shown.output
    said = " ".join(shown.output.split())
    assert re.search(r"EVO001 yes: entropy falls while the model learns, −2 \(−2.\d+ … −1.9\d*\) nats, 5 seeds", said)


def test_runs_that_differ_in_more_than_their_seed_are_told_apart(root):
    one, other = made_up(root, 0, **ILL), made_up(root, 0, **WELL, settings={"width": 9})
    said = json.loads(typed(one.path, other.path, "--json").output)
    assert [group["runs"] for group in said] == [[str(one.path)], [str(other.path)]]
    found = [{finding["code"]: finding["kind"] for finding in group["findings"]} for group in said]
    assert found[0]["ATT006"] == "warning"
    assert "ATT006" not in found[1]
    assert any(text.startswith("ATT006") for text in said[1]["not_found"])


def test_a_sweep_stands_for_its_finished_trials(root):
    class Few(Settings):
        retries: int = 0

    sweep = created(root, "seeds", Few(), root, [Trial(name, seed, {}, ()) for seed, name in enumerate("ab")])
    assert "no finished trial" in typed(sweep.path).output
    run = made_up(sweep.path, 0, **ILL)
    sweep.rows[0].state, sweep.rows[0].run = "finished", run.name
    sweep.write()
    said = json.loads(typed(sweep.path, "--json").output)
    assert [group["runs"] for group in said] == [[str(run.path)]]


def test_a_run_that_is_not_there_is_a_mistake(root):
    shown = typed("nowhere")
    assert shown.exit_code == 2
    assert "there is no run `nowhere`" in shown.output
