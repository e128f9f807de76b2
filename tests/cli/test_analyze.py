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
from tests.findings.synthetic_runs import write_synthetic_run

SNAPSHOTS = 6
FALLING = np.linspace(3, 1, SNAPSHOTS)[:, None, None] * np.ones((1, 1, 2))
SATURATED = {"arrays": {"largest_logit": np.full((SNAPSHOTS, 1, 2), 83.0), "entropy": FALLING}}
TIME = np.arange(40) / 40
JITTER = 1 + 0.005 * np.random.default_rng(0).normal(size=40)
FALLING_LOSS = (1 + 2 * np.exp(-2 * TIME)) * JITTER
SATURATED_LOSS = (1 + 2 * np.exp(-13 * TIME)) * JITTER
HEALTHY = {"arrays": {"largest_logit": np.full((SNAPSHOTS, 1, 2), 12.0)}}


def invoke(*words):
    return CliRunner().invoke(main, ["analyze", *(str(word) for word in words)])


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def test_advice_comes_first_with_its_evidence(root):
    run = write_synthetic_run(root, 0, **SATURATED)
    result = invoke()
    assert result.exit_code == 0, result.output
    for text in (
        run.name,
        "finished",
        "what to do\n  1. attention logits are saturated (ATT006)",
        "L0 h0 (83.00), L0 h1 (83.00)",
        "→ normalize queries and keys",
        "not examined",
    ):
        assert text in result.output
    assert "warnings" not in result.output  # the only warning is the advice
    assert result.output.count("ATT006") == 1


def test_claims_are_tested_only_if_asked_for(root):
    write_synthetic_run(root, 0, **SATURATED)
    assert "EVO" not in invoke().output
    assert "EVO" not in invoke("--json").output
    output = invoke("--claims").output
    assert "needs 5 seeds, has 1; so far" in output
    assert "EVO001" in output[output.index("claims, over seeds") :]
    (group,) = json.loads(invoke("--claims", "--json").output)
    assert "EVO001" in {finding["code"] for finding in group["findings"]}


def test_a_network_without_attention_gets_no_paragraph_about_it(root):
    write_synthetic_run(root, 0, scalars={"valid/loss": FALLING_LOSS})
    for words in ((), ("--claims",), ("--json",), ("--claims", "--json")):
        output = invoke(*words).output
        assert not re.search("ATT0|EVO0|FOC0|attention|tracking", output), words
    assert "TRN007" in invoke().output


def test_a_loss_that_still_falls_is_advice_with_steps_and_a_key_to_set(root):
    write_synthetic_run(root, 0, scalars={"valid/loss": FALLING_LOSS})
    text = " ".join(invoke().output.split())
    assert "best valid/loss 1.29 at step 2,000" in text
    assert "1. validation loss still falls at the end (TRN007) valid/loss fell by 0.1" in text
    assert re.search(r"\(steps 1,500 to 2,000\), \d+% of its fall since step 50", text)
    assert "→ train twice as long: `--set training.steps=4000`" in text
    (group,) = json.loads(invoke("--json").output)
    (advice,) = group["advice"]
    assert advice["code"] == "TRN007"
    assert advice["problem"] == "validation loss still falls at the end"
    assert advice["action"].endswith("`--set training.steps=4000`")
    assert advice["evidence"].startswith("valid/loss fell by")


def test_a_healthy_run_has_no_advice(root):
    write_synthetic_run(root, 0, scalars={"valid/loss": SATURATED_LOSS})
    assert "what to do" not in invoke().output
    (group,) = json.loads(invoke("--json").output)
    assert group["advice"] == []


def test_checks_that_found_nothing_notable_are_listed(root):
    write_synthetic_run(root, 0, **HEALTHY)
    result = invoke("seed-0").output
    assert "warnings" not in result
    assert "ATT006 attention logits are saturated" in result[
        result.index("looked for, nothing notable") :
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
    result = invoke(*(run.path for run in runs), "--claims")
    assert result.exit_code == 0, result.output
    assert "seeds 0, 1, 2, 3, 4" in result.output
    text = " ".join(result.output.split())
    assert re.search(
        r"EVO001 yes: entropy falls while the model learns, −2\.\d+ \(−2\.\d+ … −1\.9\d+\) nats, 5 seeds",
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
