"""Differential attention, written in one file of a new project: signed weights work everywhere."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import nn

from neural.capture.map_encoding import decode_map, is_signed_map
from neural.capture.watch import watch
from neural.cli.main import main
from neural.nn.attention import registry as attention
from neural.runs.run import Run
from neural.testing.contract import check_contract, collect_checks
from neural.testing.failure_summary import run_checks, summarize_failures
from neural.training.load_model import load_best_model
from neural.workflows.load import load
from neural.workflows.new import create_project
from tests.nn.source_export.test_standalone_file import assert_exported_equal
from tests.workflows.installed_project import use_installed_project

MECHANISM = Path(__file__).parents[1] / "extensions" / "differential.py"
OVERRIDES = ("training.steps=2", "tracking.track_every=1", "tracking.maps_every=1")


def run_command(*arguments: str) -> str:
    """Output of a command that must succeed."""
    result = CliRunner().invoke(main, list(arguments))
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with differential attention and one trained run."""
    project = create_project(
        "contrast", tmp_path_factory.mktemp("work"), attention="differential"
    ).path
    shutil.copy(MECHANISM, project / "src" / "contrast" / "attention" / "differential.py")
    program = project / "contrast.neural"
    # with λ near 1 some weights are negative from the start
    text = program.read_text(encoding="utf-8")
    assert 'attention="differential"' in text
    program.write_text(
        text.replace('attention="differential"', 'attention="differential", start=0.95'),
        encoding="utf-8",
    )
    with use_installed_project(project):
        overrides = [word for text in OVERRIDES for word in ("--set", text)]
        run_command("train", "experiment.yaml", "--quiet", *overrides)
        yield project


@pytest.fixture(scope="module")
def run(project):
    (path,) = (project / "runs").iterdir()
    return Run.open(path)


def test_all_rules_pass_with_signed_declared(project):
    assert run_checks(collect_checks(attention.get("differential"))) == []


def test_without_it_all_failures_have_one_cause_and_one_line(project, monkeypatch):
    entry = attention.get("differential")
    monkeypatch.setattr(entry, "signed", False)
    rows = [
        check
        for check in collect_checks(entry)
        if check.rule.name == "rows_sum_to_one_and_masked_keys_get_zero"
    ]
    failures = run_checks(rows)
    assert summarize_failures(failures) == [
        f"{len(rows)} rules failed for one reason: weights below 0; declare `signed = True`"
    ]
    assert len(rows) == 60
    monkeypatch.setattr("neural.testing.contract.collect_checks", lambda entry: rows[:3])
    with pytest.raises(AssertionError, match="breaks its contract\n3 rules failed for one reason"):
        check_contract(entry)


def test_declaring_signed_without_need_is_refused(project):
    class Positive(attention.get("self")):
        """Never negative."""

        signed = True

    (failure,) = run_checks(
        [
            check
            for check in collect_checks(Positive)
            if check.rule.name.startswith(("a_signed_mechanism", "signed_weights"))
        ]
    )
    assert "remove `signed = True`" in failure.reason


def test_it_trains_and_its_maps_keep_the_sign(run):
    factors = load_best_model(run.path).state_dict()[
        "transformer_encoder.0.attention.sublayer.learned.factors"
    ]
    assert not torch.equal(factors, torch.full_like(factors, 0.95))
    encoded = run.maps(run.map_steps()[-1])
    assert encoded
    for layer in encoded.values():
        weights = decode_map(layer)
        assert is_signed_map(layer)
        assert weights.min() < -0.01
        # a row sums to 1 − λ, up to the rounding of 8 weights
        np.testing.assert_allclose(weights.sum(axis=-1), 0.05, atol=0.03)


def test_measures_are_those_of_the_absolute_weights_and_one_is_of_the_sign(run):
    _, entropy = run.measure("relative_entropy")
    assert np.isfinite(entropy).all()
    assert (entropy >= 0).all() and (entropy <= 1 + 1e-6).all()
    _, negative = run.measure("negative_mass")
    assert (negative > 0).all() and (negative < 0.5).all()  # the first softmax outweighs
    assert np.isfinite(run.measure("heads/divergence")[1]).all()


def test_a_capture_has_signed_maps_and_defined_measures(project):
    model = load("contrast.neural").build()
    with watch(model) as capture:
        model(torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(0)))
    weights = capture[0].maps()
    assert weights.min() < 0
    shares = np.abs(weights) / np.abs(weights).sum(axis=-1, keepdims=True)
    entropy = -(shares * np.log(shares)).sum(axis=-1).mean(axis=(0, 2))
    np.testing.assert_allclose(capture[0].measures["entropy"], entropy, rtol=1e-4)
    negative = np.where(weights < 0, shares, 0).sum(axis=-1).mean(axis=(0, 2))
    np.testing.assert_allclose(capture[0].measures["negative_mass"], negative, rtol=1e-4)


def test_softmax_attention_has_no_measure_of_the_sign():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 5, 8)
    with watch(layer) as capture:
        layer(x, x, x)
    assert capture and "negative_mass" not in capture[0].measures


def test_it_is_shown_analyzed_and_reported(project, run):
    assert "negative_mass" in run_command("show", str(run.path), "--json")
    assert json.loads(run_command("analyze", str(run.path), "--json"))
    run_command("report", str(run.path), "-o", "report.html")
    assert "differential" in (project / "report.html").read_text(encoding="utf-8")


def test_the_compiled_network_needs_only_torch(project, tmp_path):
    text = (project / "contrast.neural").read_text(encoding="utf-8")
    assert_exported_equal(text, tmp_path)


def test_it_is_exported_to_torch(project, run, tmp_path):
    file = tmp_path / "contrast.pt2"
    run_command("export", str(run.path), "--to", "torch", "-o", str(file))
    x = torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(0))
    probabilities = torch.export.load(str(file)).module()(x)
    torch.testing.assert_close(probabilities, load_best_model(run.path).eval()(x))
