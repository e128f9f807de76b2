"""`neural analyze`, as a user types it."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.core.settings import Settings
from neural.workflows.sweep import create_sweep
from neural.workflows.sweep_trials import Trial
from tests.analysis.synthetic_runs import write_synthetic_run

SNAPSHOTS = 6
FALLING = np.linspace(3, 1, SNAPSHOTS)[:, None, None] * np.ones((1, 1, 2))
SATURATED = {"arrays": {"largest_logit": np.full((SNAPSHOTS, 1, 2), 83.0), "entropy": FALLING}}
HEALTHY = {"arrays": {"largest_logit": np.full((SNAPSHOTS, 1, 2), 12.0)}}


def invoke(*words):
    return CliRunner().invoke(main, ["analyze", *(str(word) for word in words)])


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def test_a_warning_comes_with_its_evidence_and_advice(root):
    run = write_synthetic_run(root, 0, **SATURATED)
    result = invoke()
    assert result.exit_code == 0, result.output
    for text in (
        run.name,
        "finished",
        "warnings",
        "ATT006  attention logits are saturated",
        "L0 h0 (83.00), L0 h1 (83.00)",
        "→ normalize queries and keys",
        "1 of the 5 seeds that a decision needs",
        "EVO001",
        "not examined",
    ):
        assert text in result.output


def test_claims_that_were_not_found_are_listed(root):
    write_synthetic_run(root, 0, **HEALTHY)
    result = invoke("seed-0").output
    assert "warnings" not in result
    assert "ATT006 attention logits are saturated" in result[
        result.index("looked for, not found") :
    ].replace("\n ", "")


def test_five_seeds_decide(root):
    runs = [
        write_synthetic_run(
            root,
            seed,
            **{
                **SATURATED,
                "arrays": {
                    **SATURATED["arrays"],
                    "entropy": SATURATED["arrays"]["entropy"] * scale,
                },
            },
        )
        for seed, scale in enumerate((0.96, 0.98, 1.0, 1.02, 1.04))
    ]
    result = invoke(*(run.path for run in runs))
    assert result.exit_code == 0, result.output
    assert "seeds 0, 1, 2, 3, 4" in result.output
    text = " ".join(result.output.split())
    assert re.search(
        r"EVO001 yes: entropy falls while the model learns, −2 \(−2.\d+ … −1.9\d*\) nats, 5 seeds",
        text,
    )


def test_runs_that_differ_in_more_than_their_seed_form_separate_groups(root):
    first, second = (
        write_synthetic_run(root, 0, **SATURATED),
        write_synthetic_run(root, 0, **HEALTHY, settings={"width": 9}),
    )
    groups = json.loads(invoke(first.path, second.path, "--json").output)
    assert [group["runs"] for group in groups] == [[str(first.path)], [str(second.path)]]
    kinds = [
        {finding["code"]: finding["kind"] for finding in group["findings"]} for group in groups
    ]
    assert kinds[0]["ATT006"] == "warning"
    assert "ATT006" not in kinds[1]
    assert any(text.startswith("ATT006") for text in groups[1]["not_found"])


def test_a_sweep_stands_for_its_finished_trials(root):
    class SweepSettings(Settings):
        retries: int = 0

    sweep = create_sweep(
        root,
        "seeds",
        SweepSettings(),
        root,
        [Trial(name, seed, {}, ()) for seed, name in enumerate("ab")],
    )
    assert "no finished trial" in invoke(sweep.path).output
    run = write_synthetic_run(sweep.path, 0, **SATURATED)
    sweep.rows[0].state, sweep.rows[0].run = "finished", run.name
    sweep.write()
    groups = json.loads(invoke(sweep.path, "--json").output)
    assert [group["runs"] for group in groups] == [[str(run.path)]]


def test_a_missing_run_is_an_error(root):
    result = invoke("nowhere")
    assert result.exit_code == 2
    assert "there is no run `nowhere`" in result.output
