"""The file of head importance: what is written is read again, and damage is a message."""

import json
import math

import numpy as np
import pytest

from neural.runs.importance_file import (
    IMPORTANCE_FILE,
    ClassImportance,
    ImportanceHeader,
    ImportanceStep,
    PairImportance,
    load_importance,
    save_importance_step,
)

HEADER = ImportanceHeader(
    data="7 windows", method="mean", examples=7, layers=("a", "b"), heads=(3, 2), chance_loss=3.3
)


def make_step(step, offset=0.0, **extra):
    change = np.arange(6.0).reshape(2, 3) / 7 + offset
    change[1, 2] = math.nan  # the second layer has two heads
    return ImportanceStep(step, 2.5, 0.1, change, change / 2, change + 1, **extra)


def test_steps_are_appended_in_order_and_read_as_arrays(tmp_path):
    pair = PairImportance((0, 2), (1, 1), 0.31, 0.02, 0.29, math.nan)
    repeated = ClassImportance(0.4, make_step(0).change * 2, make_step(0).se)
    save_importance_step(tmp_path, HEADER, make_step(200, pairs=(pair,)))
    save_importance_step(tmp_path, HEADER, make_step(100, 0.5, classes={"repeated": repeated}))
    record = load_importance(tmp_path)
    assert record.steps.tolist() == [100, 200] and record.header == HEADER
    assert record.change.shape == (2, 2, 3) and math.isnan(record.change[0, 1, 2])
    np.testing.assert_allclose(record.change[1], make_step(0).change, rtol=1e-5)
    np.testing.assert_allclose(record.gradient[0], make_step(0, 0.5).gradient, rtol=1e-5)
    assert record.pairs[0] == ()
    assert record.pairs[1][0].both == 0.31 and math.isnan(record.pairs[1][0].interaction_se)
    series = record.classes["repeated"]
    assert series.share[0] == 0.4 and math.isnan(series.share[1])
    np.testing.assert_allclose(series.change[0], repeated.change, rtol=1e-5)
    assert np.isnan(series.change[1]).all()


def test_a_step_is_replaced_and_other_settings_start_again(tmp_path):
    save_importance_step(tmp_path, HEADER, make_step(100))
    save_importance_step(tmp_path, HEADER, make_step(200))
    save_importance_step(tmp_path, HEADER, make_step(100, 5.0))
    record = load_importance(tmp_path)
    assert record.steps.tolist() == [100, 200] and record.change[0, 0, 0] == 5.0
    other = ImportanceHeader("7 windows", "zero", 7, ("a", "b"), (3, 2))
    save_importance_step(tmp_path, other, make_step(300))
    assert load_importance(tmp_path).steps.tolist() == [300]


def test_a_rounded_chance_loss_is_the_same_header(tmp_path):
    header = ImportanceHeader("d", "mean", 2, ("a",), (2,), chance_loss=1 / 3)
    step = ImportanceStep(1, 1.0, 0.1, *(np.zeros((1, 2)) for _ in range(3)))
    save_importance_step(tmp_path, header, step)
    save_importance_step(
        tmp_path, header, ImportanceStep(2, 1.0, 0.1, *(np.zeros((1, 2)) for _ in range(3)))
    )
    assert load_importance(tmp_path).steps.tolist() == [1, 2]


def test_without_a_file_there_is_no_record(tmp_path):
    assert load_importance(tmp_path) is None


def change_json(folder, change):
    path = folder / IMPORTANCE_FILE
    saved = json.loads(path.read_text())
    change(saved)
    path.write_text(json.dumps(saved))


DAMAGE = {
    "version": lambda saved: saved.update(version=2),
    "no steps": lambda saved: saved.update(steps=[]),
    "missing array": lambda saved: saved["steps"][0].pop("se"),
    "short row": lambda saved: saved["steps"][0]["change"][0].pop(),
    "text in an array": lambda saved: saved["steps"][0]["change"][0].__setitem__(0, "x"),
    "infinite": lambda saved: saved["steps"][0].update(loss=1e999),
    "boolean": lambda saved: saved["steps"][0].update(loss=True),
    "a head that does not exist": lambda saved: saved["steps"][0].update(
        pairs=[{"first": [0, 9], "second": [0, 0], "both": 0, "both_se": 0}]
    ),
    "many heads": lambda saved: saved.update(heads=[10**9, 2]),
    "huge array": lambda saved: saved.update(layers=["a"] * 4000, heads=[4000, *[1] * 3999]),
    "layers": lambda saved: saved.update(layers="ab"),
    "repeated step": lambda saved: saved.update(steps=saved["steps"] * 2),
    "huge step": lambda saved: saved["steps"][0].update(step=10**400),
    "classes": lambda saved: saved["steps"][0].update(classes=[1]),
    "list": lambda saved: saved.update(steps={"a": 1}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_a_message_with_a_way_out(tmp_path, damage):
    save_importance_step(tmp_path, HEADER, make_step(100))
    change_json(tmp_path, DAMAGE[damage])
    with pytest.raises(ValueError, match=r"importance\.json is not valid: .*neural ablate"):
        load_importance(tmp_path)
    save_importance_step(tmp_path, HEADER, make_step(200))  # measuring again repairs the file
    assert load_importance(tmp_path).steps.tolist() == [200]


def test_every_truncated_or_changed_file_is_a_message_or_a_record(tmp_path):
    save_importance_step(tmp_path, HEADER, make_step(100))
    path = tmp_path / IMPORTANCE_FILE
    text = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(text[: random.integers(len(text) + 1)] if random.random() < 0.3 else text)
        for position in random.integers(max(1, len(data)), size=3):
            if data:
                data[position] = random.integers(256)
        path.write_bytes(bytes(data))
        try:
            load_importance(tmp_path)
        except ValueError as error:
            assert "neural ablate" in str(error)
