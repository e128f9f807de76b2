"""Results of patching: arrays, tables, JSON, files."""

import json

import numpy as np
import pytest

from neural.capture.path_patching import LocatedHead
from neural.core.errors import NeuralError
from neural.findings.patching_effects import UnitEffects
from neural.workflows.patching_pairs import TokenPair
from neural.workflows.patching_result import (
    PatchingResult,
    PatchingSweep,
    PathEffects,
    PathUnit,
    Unit,
)


def make_effects(restored, p):
    restored = np.array(restored, float)
    return UnitEffects(
        restored=restored,
        standard_error=restored / 10,
        low=restored - 0.1,
        high=np.full(len(restored), np.nan),
        change=restored,
        mismatched=np.zeros(len(restored)),
        excess=restored,
        p=np.array(p, float),
    )


def make_result():
    pair = TokenPair((5, 3), (5, 4), 7, 8, (" the", " <b>"), (" the", " dog"), "pair 1")
    heads = [Unit(0, 0), Unit(0, 1), Unit(1, 0)]
    at_positions = [unit._replace(position=position) for unit in heads for position in (-2, -1)]
    return PatchingResult(
        model="small",
        source="step 3",
        metric="logit_difference",
        pairs=[pair, pair],
        is_used=np.array([True, False]),
        clean=np.array([2.0, np.nan]),
        corrupted=np.array([-1.0, 0.0]),
        layers=["a", "b"],
        labels=[" the", " <b>/ dog"],
        sweeps={
            "heads": PatchingSweep(
                "heads", heads, make_effects([0.0, 0.9, -0.5], [1, 0.01, 0.02]), (2, 2)
            ),
            "positions": PatchingSweep(
                "positions",
                at_positions,
                make_effects([0, 0, 0, 0.9, 0, -0.5], [1, 1, 1, 0.01, 1, 0.2]),
                (2, 2, 2),
            ),
        },
        paths=PathEffects(
            [PathUnit(LocatedHead(0, 1), LocatedHead(1, 0), "k")], make_effects([0.8], [0.03])
        ),
        notes=["something"],
    )


@pytest.fixture
def result():
    return make_result()


def test_arrays_have_a_place_for_every_head(result):
    heads = result["heads"]
    np.testing.assert_allclose(heads.restored, [[0, 0.9], [-0.5, np.nan]])
    assert heads.has_effect.tolist() == [[False, True], [True, False]]
    np.testing.assert_allclose(heads.low, [[-0.1, 0.8], [-0.6, np.nan]])
    assert result["positions"].restored.shape == (2, 2, 2)
    assert result["positions"].restored[0, 1].tolist() == [0, 0.9]
    with pytest.raises(KeyError, match="heads, positions"):
        result["residual"]


def test_rows_name_units_and_tokens(result):
    rows = result.tables["positions"].to_records()
    assert rows[3]["position"] == 1
    assert rows[3]["token"] == " <b>/ dog"
    assert rows[3]["effect"] is True
    assert rows[3]["high"] is None
    table = result.to_dataframe("heads")
    assert list(table["restored"]) == [0, 0.9, -0.5]
    assert list(result.to_dataframe("paths")["through"]) == ["k"]


def test_json_has_no_nan(result):
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["pairs"][1]["clean_metric"] is None
    assert data["pairs"][0]["clean"] == " the <b>"
    assert data["paths"][0]["sender"] == "L0 h1"
    assert data["unit"] == "logits"


@pytest.mark.parametrize("suffix", ["html", "svg", "json"])
def test_files_are_written_by_their_ending(result, tmp_path, suffix):
    path = result.save(tmp_path / f"result.{suffix}")
    text = path.read_text()
    assert ("<svg" in text) == (suffix != "json")
    assert "<b>" not in text or suffix == "json"  # labels are escaped
    assert text == result.save(tmp_path / f"again.{suffix}").read_text()


def test_other_endings_are_a_message(result, tmp_path):
    with pytest.raises(
        NeuralError, match=r"name it \.html, \.json or \.csv, or \.svg for a figure"
    ):
        result.save(tmp_path / "result.pdf")
    for suffix in ("html", "svg"):
        with pytest.raises(NeuralError, match="no such file"):
            result.save(tmp_path / "none" / f"result.{suffix}")


def test_the_text_of_a_result_counts_effects(result):
    assert "1 of 2 pairs" in repr(result)
    assert "2 of 3 have an effect" in repr(result)
    assert str(result.paths.paths[0]) == "L0 h1 → L1 h0 (k)"
