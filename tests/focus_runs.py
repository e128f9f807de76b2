"""Run folders of focus models with recorded examples, written without training."""

import numpy as np

from neural.core.settings import dump_settings
from neural.runs.run import Run
from neural.tasks.focus.recorded_examples import (
    EXAMPLES_KEY,
    FOCUS_ARRAY,
    PREDICTION_ARRAY,
    RecordedExamples,
)
from neural.tasks.focus.task import FocusSettings

STEPS = (0, 10, 20, 30)
CLASSES = ["seven", "eight", "nine"]
MEAN_SAIF = {"soft": 0.8, "hard": 0.87, "lvml": 0.89}
EXAMPLE_COUNT = 8


def create_examples(m=5, count=EXAMPLE_COUNT):
    """Recorded examples with pictures of 4 × 4 pixels; the foreground is at position index mod m."""
    random = np.random.default_rng(0)
    return RecordedExamples(
        labels=[index % 3 for index in range(count)],
        tiles=[list(range(m))] * count,
        foreground=[[index % m] for index in range(count)],
        segments=m,
        image_shape=(4, 4, 1),
        images=random.integers(0, 256, size=count * m * 16).astype(np.uint8).tobytes(),
    )


def create_weights(paradigm, seed, step, m=5, count=EXAMPLE_COUNT):
    """Focus weights [example, tile]: they sharpen over time; paradigms differ most on example 3."""
    random = np.random.default_rng([seed, step, *paradigm.encode()])
    weights = random.random((count, m)) + 0.2
    if paradigm != "soft":
        sharpness = 0.1 * step * (1 + 19 * (np.arange(count) == 3))
        weights[np.arange(count), np.arange(count) % m] += sharpness
    return (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)


def write_focus_run(
    root,
    paradigm,
    seed,
    *,
    m=5,
    recorded=True,
    state="finished",
    saif=None,
    **settings,
):
    """Write a run; its last SAIF is that of MEAN_SAIF plus some noise of the seed."""
    name = f"paradigm-{paradigm}_seed-{seed}"
    own_settings = {
        "name": name,
        "data": "digits",
        "segments": m,
        "paradigm": paradigm,
        "training": {"steps": STEPS[-1], "seed": seed},
        **settings,
    }
    run = Run.create(
        root,
        name,
        settings=dump_settings(FocusSettings.model_validate(own_settings)),
        program=None,
        environment={"python": "3.11", "command": ["neural"]},
    )
    run.set_metadata("steps", STEPS[-1])
    run.set_metadata("focus/classes", CLASSES)
    run.set_metadata("focus/segments", m)
    if recorded:
        run.set_metadata(EXAMPLES_KEY, create_examples(m).to_metadata())
    random = np.random.default_rng([seed, *paradigm.encode()])
    for step in range(1, STEPS[-1] + 1):
        run.log(
            step, {"train/loss": 1 / step, "train/classifier_calls": 1 if paradigm == "soft" else m}
        )
    last_saif = MEAN_SAIF[paradigm] + 0.003 * random.uniform(-1, 1) if saif is None else saif
    for step in STEPS:
        share = step / STEPS[-1]
        run.log(
            step,
            {
                "valid/loss": 2 - share,
                "valid/accuracy": 0.4 + 0.55 * share,
                "valid/focus_accuracy": 0.3 + 0.6 * share,
                "valid/focus_confidence": 0.3 + 0.5 * share + 0.01 * random.random(),
                "valid/saif": last_saif * share,
            },
        )
        if recorded:
            weights = create_weights(paradigm, seed, step, m)
            predicted = np.arange(EXAMPLE_COUNT) % (2 if paradigm == "soft" else 3)
            confidence = random.random(EXAMPLE_COUNT)
            predictions = np.stack([predicted, confidence, confidence / 2], axis=1)
            run.log_arrays(step, {FOCUS_ARRAY: weights, PREDICTION_ARRAY: predictions})
    run.heartbeat(STEPS[-1])
    run.finish(state)
    return run.path


def write_sweep(root, paradigms=("soft", "hard", "lvml"), seeds=5, **options):
    """Runs of every paradigm and seed."""
    return [
        write_focus_run(root, paradigm, seed, **options)
        for paradigm in paradigms
        for seed in range(seeds)
    ]
