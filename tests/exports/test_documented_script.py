"""The script of docs/export.md: from raw rows to class names with onnxruntime alone."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest

import neural
from neural.exports import registry
from neural.workflows.export import export, load_bundle
from tests.tasks.networks import CLASSIFY, program
from tests.test_doc_samples import FENCE

PAGE = Path(__file__).parents[2] / "docs" / "export.md"
SCRIPT = next(text for _, title, text in FENCE.findall(PAGE.read_text()) if title)
ONE_UNIT = 'Output(1, activation="sigmoid")'


def write_rows(folder):
    random = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": random.integers(18, 80, 60).astype(float),
            "city": random.choice(["Rome", "Oslo", "São Paulo"], 60),
            "price": random.normal(900, 90, 60).round(2),
            "label": random.choice(["barolo", "grignolino"], 60),
        }
    )
    frame.loc[::9, "age"] = None
    frame.loc[::7, "city"] = "NA"
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


@pytest.mark.parametrize("layers", ['Output(2, activation="softmax")', ONE_UNIT, "Output(1)"])
def test_rows_become_the_predictions_of_the_run(layers, tmp_path):
    rows = write_rows(tmp_path)
    is_value = layers == "Output(1)"
    table = {
        "target": "price" if is_value else "label",
        "drop": ["label" if is_value else "price"],
        "categorical": ["city"],
        "impute": "median",
        "standardize": True,
    }
    loss = {"Output(1)": 'loss: "mse"', ONE_UNIT: 'loss: "binary_crossentropy"'}.get(
        layers, CLASSIFY
    )
    result = neural.fit(
        program("(4,)", layers, loss),
        rows,
        settings={"table": table, "standardize_target": is_value, "training": {"steps": 9}},
        runs=tmp_path / "runs",
        quiet=True,
    )
    export(load_bundle(result.run.path), registry.get("onnx"), tmp_path / "net.onnx")
    (tmp_path / "predict_rows.py").write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "predict_rows.py", "net.onnx", "rows.csv"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    predicted = neural.predict(result.run, rows).items[0]
    if is_value:
        assert np.array(lines, float)[:, 0] == pytest.approx(predicted.predicted_labels(), rel=1e-4)
        return
    assert [name for name, _ in lines] == predicted.predicted_labels().tolist()
    probabilities = predicted.class_probabilities().max(axis=1)
    assert [float(value) for _, value in lines] == pytest.approx(probabilities, abs=1e-4)
