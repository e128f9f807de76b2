"""A regression learns targets of any scale, and all its numbers for users are in their units."""

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.datasets import load_diabetes
from sklearn.metrics import r2_score

import neural
from neural.cli.main import main
from neural.core.errors import TaskError
from neural.training.load_task import restore_task
from neural.training.trained_run import TrainedRunFolder
from tests.tasks.networks import program

PROGRAM = program(
    "(10,)",
    'Dense(16, activation="relu") | Dense(1)',
    'loss: "mse"',
    "optimizer: Adam(learning_rate=0.01)",
)
SETTINGS = {
    "standardize_target": True,
    "table": {"standardize": True},
    "name": "prices",
    "training": {"steps": 60, "batch_size": 32},
}


@pytest.fixture(scope="module")
def prices():
    """(inputs, targets from 25,000 to 346,000)."""
    X, y = load_diabetes(return_X_y=True)
    return X.astype(np.float32), y * 1000


@pytest.fixture(scope="module")
def folder(prices, tmp_path_factory):
    folder = tmp_path_factory.mktemp("prices")
    np.savez(folder / "prices.npz", x=prices[0], y=prices[1])
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    return neural.fit(
        PROGRAM, folder / "prices.npz", settings=SETTINGS, runs=folder / "runs", quiet=True
    )


def held_out(fitted, prices):
    rows = fitted.task.data.held_out_indices
    return prices[0][rows], prices[1][rows]


def test_a_target_of_large_numbers_is_learned_in_few_steps(fitted, prices):
    X, y = held_out(fitted, prices)
    assert r2_score(y, fitted.predict(X)) > 0.3
    assert r2_score(prices[1], fitted.predict(prices[0])) > 0.4


def test_the_loss_is_in_deviations_and_the_absolute_error_in_units(fitted, prices):
    X, y = held_out(fitted, prices)
    scores = fitted.task.evaluate(fitted.model)
    error = fitted.predict(X) - y
    assert scores["valid/mae"] == pytest.approx(np.abs(error).mean(), rel=1e-4)
    std = fitted.task.target_scaler.std[0]
    assert scores["valid/loss"] == pytest.approx(np.mean((error / std) ** 2), rel=1e-4)
    assert fitted.run.metadata("data/chance_loss") == pytest.approx((y / std).var())
    assert 10_000 < fitted.history["train/mae"].iloc[-1] < 200_000


def test_an_evaluation_is_in_units(fitted, prices):
    X, y = held_out(fitted, prices)
    rows = fitted.evaluate().to_dict()["rows"]
    error = np.abs(fitted.predict(X) - y).mean()
    assert rows["this run"]["mae"]["value"] == pytest.approx(error, rel=1e-4)
    assert rows["mean"]["mae"]["value"] > error
    others = fitted.evaluate(X, y).to_dict()["rows"]
    assert others["this run"]["mae"]["value"] == pytest.approx(error, rel=1e-4)


def test_a_run_opened_later_predicts_the_same_numbers(fitted, prices):
    X = prices[0][:5]
    records = neural.predict("prices", X, runs=fitted.run.path.parent).to_records()
    values = [record["predicted"] for record in records]
    np.testing.assert_allclose(values, fitted.predict(X), rtol=1e-5)
    assert min(values) > 10_000


def test_large_numbers_are_printed_without_exponents(fitted, prices):
    X, y = held_out(fitted, prices)
    predicted = neural.predict("prices", X[:2], runs=fitted.run.path.parent)
    expected = [f"{value:.0f}" for value in fitted.predict(X[:2])]
    (section,) = predicted.to_sections(80)
    assert [row[1] for row in section.table_rows] == expected
    error = np.abs(fitted.predict(X) - y).mean()
    scores, *_ = fitted.evaluate().to_sections(80)
    assert scores.table_rows[0][:2] == ("MAE", f"{error:,.0f}")


def test_a_restored_run_keeps_the_scale_and_cannot_change_it(fitted):
    run = neural.open_run(fitted.run.path)
    saved = run.metadata("data/target_scaler")
    assert restore_task(run).target_scaler.to_dict() == saved
    assert TrainedRunFolder(run).load_task().target_scaler == fitted.task.target_scaler
    with pytest.raises(TaskError, match="`standardize_target` cannot change in a resumed run"):
        restore_task(run, ["standardize_target=false"])


def test_an_export_says_that_its_outputs_are_standardised(fitted, tmp_path):
    arguments = ["export", str(fitted.run.path), "--to", "torch", "-o", str(tmp_path / "p.pt")]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    assert "the outputs are standardised" in result.output
    assert "`data/target_scaler`" in result.output


def test_a_constant_target_is_predicted_without_dividing_by_zero(prices, tmp_path):
    constant = np.full(len(prices[0]), 5e4)
    settings = {**SETTINGS, "training": {"steps": 60, "learning_rate": 0.01}}
    fitted = neural.fit(PROGRAM, prices[0], constant, settings, runs=tmp_path, quiet=True)
    np.testing.assert_allclose(fitted.predict(prices[0]), 5e4, atol=2)


def test_targets_are_as_they_are_by_default(prices, tmp_path):
    fitted = neural.fit(PROGRAM, *prices, {"training": {"steps": 1}}, runs=tmp_path, quiet=True)
    assert fitted.task.target_scaler is None
    assert fitted.run.metadata("data/target_scaler") is None
    assert np.abs(fitted.predict(prices[0])).max() < 10, "an untrained network predicts about 0"
