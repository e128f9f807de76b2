"""Run folders with all data that a page can show."""

import numpy as np

from neural.capture.map_encoding import encode_map
from neural.core.settings import dump_settings
from neural.runs.run import Run
from neural.tasks.language_model.task import LanguageModel
from neural.tasks.segmentation.calibration_selection import RunCalibration, choose_calibration
from neural.tasks.segmentation.decoding import decode_boundaries
from neural.tasks.segmentation.held_out import (
    HELD_OUT_KEY,
    PREDICTED_LABELS_KEY,
    PROBABILITIES_KEY,
)
from neural.tasks.segmentation.metrics.boundary_f1 import BoundaryF1
from neural.tasks.segmentation.task import Segmentation

NASTY = "<img src=x onerror=alert(1)>"
"""Used as a name: it must stay text wherever it is shown."""


def write_run(
    root,
    name="six",
    *,
    layers=6,
    heads=6,
    positions=17,
    snapshots=4,
    seed=0,
    nasty=False,
    calibrated=False,
    task=None,
    samples=True,
):
    """Write a finished run: curves, a snapshot every 10 steps, maps, labels, samples."""
    own_settings = {
        "name": name,
        "data": "handbook",
        "training": {"steps": 10 * snapshots, "seed": seed},
    }
    settings = dump_settings(LanguageModel.Settings.model_validate(own_settings)) | (
        {"name": NASTY} if nasty else {}
    )
    settings |= {"task": task} if task else {}
    run = Run.create(
        root,
        name,
        settings=settings,
        program=None,
        environment={"python": "3.11", "command": ["neural"]},
    )
    random = np.random.default_rng(seed)
    paths = [f"{NASTY if nasty else 'decoder'}.{layer}.attention" for layer in range(layers)]
    run.set_metadata("steps", 10 * snapshots)
    run.set_metadata("parameters", 1234)
    run.set_metadata("attention/layers", paths)
    run.set_metadata("attention/heads", [heads] * layers)
    run.set_metadata(
        "attention/measures", {"entropy": {"unit": "nats", "description": "0 snapshots at one key"}}
    )
    run.set_metadata(
        "probe/labels",
        [
            [
                NASTY if nasty and position == 0 else chr(97 + position % 26)
                for position in range(positions)
            ]
        ],
    )
    if samples:
        texts = [f"text {index} {NASTY if nasty else ''}" for index in range(snapshots)]
        run.set_metadata(
            "generation/samples", {str(10 * index): text for index, text in enumerate(texts)}
        )
        run.set_metadata("generation/real_text", {"generation/bits": 1.5})
    for step in range(1, 10 * snapshots + 1):
        run.log(step, {"train/loss": 3 / step + seed / 10})
    for index in range(snapshots):
        step = 10 * index
        run.log(step, {"valid/loss": 2.0 - 0.1 * index})
        if samples:
            run.log(step, {"generation/bits": 3.0 - index / 10})
        run.log_arrays(
            step,
            {
                "entropy": random.random((layers, heads), np.float32),
                "span": random.random((layers, heads), np.float32),
                "head_diversity": random.random(layers, np.float32),
                "cosine_between": np.triu(random.random((layers, layers), np.float32), 1),
            },
        )
        run.log_maps(
            step,
            {
                path: encode_map(random_causal_maps(random, heads, positions), causal=True)
                for path in paths
            },
        )
    run.log_event(7, "warning", NASTY if nasty else "the seventh step was odd")
    run.heartbeat(10 * snapshots)
    run.finish("finished")
    if calibrated:
        scores = random.normal(size=240)
        truth = random.random(240) < 1 / (1 + np.exp(-2 * scores))
        choice = choose_calibration(scores, truth, np.arange(240) // 60, methods=["platt"])
        chosen = {"weights": "0", "data": "4 documents", "threshold": 0.25, "f1": 0.5}
        RunCalibration(boundary=choice, label=None, **chosen).save(run.path)
    # a copied run folder may have any name
    return run.path.rename(run.path.with_name(f"{NASTY} {seed}")) if nasty else run.path


def random_causal_maps(random, heads, positions):
    """Causal attention maps whose rows sum to 1."""
    weights = np.tril(random.random((heads, positions, positions)) ** 4 + 1e-3)
    return weights / weights.sum(axis=-1, keepdims=True)


def write_segmentation_run(
    root,
    name="segmenter",
    *,
    seed=0,
    quality=3.0,
    documents=6,
    attention="uniform",
    recorded=True,
    validated=True,
    calibrated=False,
    labels=False,
    nasty=False,
):
    """Write a finished run of the task `segmentation` with held-out documents of 24 elements.

    Validations are at the steps 10, 20 and 30; the one at 20 is the best. `quality` is how far the
    probabilities of true boundaries are above the others. `attention` is "uniform", "previous
    token" or None.
    """
    own_settings = {"name": name, "data": "songs.jsonl", "training": {"seed": seed}}
    settings = dump_settings(Segmentation.Settings.model_validate(own_settings))
    settings |= {"learn": "labels" if labels else "boundaries"}
    run = Run.create(
        root, name, settings=settings, program=None, environment={"command": ["neural"]}
    )
    random = np.random.default_rng(seed)
    truths = [
        np.isin(np.arange(24), random.choice(np.arange(2, 23), 4, replace=False))
        for _ in range(documents)
    ]
    texts = [f"Sentence number {element} of the text" for element in range(24)]
    if nasty:
        texts[1] = NASTY
    label_ids = [np.cumsum(truth) % 2 for truth in truths]
    run.set_metadata("steps", 30)
    if recorded:
        shown = [
            {"document": index, "name": f"song {index}", "texts": texts}
            | ({"labels": label_ids[index].tolist()} if labels else {})
            for index in range(min(3, documents))
        ]
        run.set_metadata(
            HELD_OUT_KEY,
            {
                "documents": documents,
                "lengths": [24] * documents,
                "boundaries": [np.flatnonzero(truth).tolist() for truth in truths],
                "shown": shown,
                "labels": ["verse", "chorus"] if labels else [],
            },
        )
    margins = {}
    for step, factor in ((10, 0.5), (20, 1.0), (30, 0.8)):
        run.log(step, {"train/loss": 1 / step})
        margins[step] = [factor * quality * truth - 2 + random.normal(size=24) for truth in truths]
        # the last boundary of the first document is predicted one element late
        last = int(np.flatnonzero(truths[0])[-1])
        margins[step][0][last : last + 2] = -4, quality
        probabilities = [1 / (1 + np.exp(-margin)) for margin in margins[step]]
        for document in probabilities:
            document[0] = 0.0
        if validated:
            f1 = score_boundaries(truths, probabilities, 0.4)
            run.log(step, {"valid/f1": f1 if step != 30 else f1 / 2, "valid/threshold": 0.4})
        if validated and recorded:
            run.log_arrays(step, {PROBABILITIES_KEY: np.concatenate(probabilities)})
            if labels:
                run.log_arrays(step, {PREDICTED_LABELS_KEY: np.concatenate(label_ids)})
    if attention:
        run.set_metadata("attention/layers", ["attention"])
        run.set_metadata("attention/heads", [2])
        is_uniform = attention == "uniform"
        previous = np.eye(24, k=-1) + np.eye(24)[:1] * np.eye(24)[:, :1]
        weights = np.full((2, 24, 24), 1 / 24) if is_uniform else np.stack([previous] * 2)
        for step in (0, 30):
            run.log_arrays(step, {"relative_entropy": np.full((1, 2), float(is_uniform))})
            run.log_arrays(step, {"previous_token_mass": np.full((1, 2), 0.9 - is_uniform * 0.8)})
            run.log_maps(step, {"attention": encode_map(weights, causal=False)})
    run.heartbeat(30)
    run.finish("finished")
    if calibrated:
        scores = np.concatenate([margin[1:] for margin in margins[20]])
        truth = np.concatenate([truth[1:] for truth in truths])
        choice = choose_calibration(scores, truth, np.repeat(np.arange(documents), 23))
        chosen = {"weights": "step 20", "data": "songs", "threshold": 0.35, "f1": 0.5}
        RunCalibration(boundary=choice, label=None, **chosen).save(run.path)
    return run.path


def score_boundaries(truths, probabilities, threshold):
    """F1 of the boundaries of all documents together, as the task computes it."""
    metric = BoundaryF1()
    predicted = [decode_boundaries(document, threshold=threshold) for document in probabilities]
    counts = metric.count_documents(truths, predicted).sum(axis=0)
    return float(metric.scores(counts)["boundary_f1"])
