"""Run folders with everything that a page can show."""

import numpy as np

from neural.core.settings import resolved
from neural.tasks.cutting.calibration_choice import choose
from neural.tasks.cutting.calibration_file import Calibrated
from neural.tasks.language_model import LanguageModel
from neural.tracking.quantised import pack
from neural.tracking.run import Run

NASTY = "<img src=x onerror=alert(1)>"
"""As a name: it must stay text wherever it is shown."""


def write_run(
    root, name="six", *, layers=6, heads=6, positions=17, looks=4, seed=0, nasty=False, calibrated=False, task=None
):
    """A finished run: curves, a look every 10 steps, maps, labels, texts."""
    said = {"name": name, "data": "handbook", "training": {"steps": 10 * looks, "seed": seed}}
    settings = resolved(LanguageModel.Settings.model_validate(said)) | ({"name": NASTY} if nasty else {})
    settings |= {"task": task} if task else {}
    run = Run.create(root, name, settings=settings, program=None, environment={"python": "3.11", "command": ["neural"]})
    random = np.random.default_rng(seed)
    paths = [f"{NASTY if nasty else 'decoder'}.{layer}.attention" for layer in range(layers)]
    run.describe("steps", 10 * looks)
    run.describe("parameters", 1234)
    run.describe("attention/layers", paths)
    run.describe("attention/heads", [heads] * layers)
    run.describe("attention/measures", {"entropy": {"unit": "nats", "says": "0 looks at one key"}})
    run.describe("probe/labels", [[NASTY if nasty and at == 0 else chr(97 + at % 26) for at in range(positions)]])
    run.describe("generation/texts", {str(10 * look): f"text {look} {NASTY if nasty else ''}" for look in range(looks)})
    run.describe("generation/real", {"generation/bits": 1.5})
    for step in range(1, 10 * looks + 1):
        run.log(step, {"train/loss": 3 / step + seed / 10})
    for look in range(looks):
        step = 10 * look
        run.log(step, {"valid/loss": 2.0 - 0.1 * look, "generation/bits": 3.0 - look / 10})
        run.log_arrays(step, {
            "entropy": random.random((layers, heads), np.float32), "span": random.random((layers, heads), np.float32),
            "head_diversity": random.random(layers, np.float32),
            "cosine_between": np.triu(random.random((layers, layers), np.float32), 1),
        })  # fmt: skip
        run.log_maps(step, {path: pack(causal(random, heads, positions), causal=True) for path in paths})
    run.event(7, "warning", NASTY if nasty else "the seventh step was odd")
    run.beat(10 * looks)
    run.finish("finished")
    if calibrated:
        scores = random.normal(size=240)
        truth = random.random(240) < 1 / (1 + np.exp(-2 * scores))
        choice = choose(scores, truth, np.arange(240) // 60, methods=["platt"])
        told = {"weights": "0", "data": "4 documents", "threshold": 0.25, "f1": 0.5}
        Calibrated(boundary=choice, label=None, **told).save(run.path)
    # whoever copies a run may call it anything
    return run.path.rename(run.path.with_name(f"{NASTY} {seed}")) if nasty else run.path


def causal(random, heads, positions):
    """Maps of which every row sums to 1 and sees what came before."""
    weights = np.tril(random.random((heads, positions, positions)) ** 4 + 1e-3)
    return weights / weights.sum(axis=-1, keepdims=True)
