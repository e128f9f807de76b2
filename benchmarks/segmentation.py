"""Segmentation: the published models, Choi's documents, and the speed of the shipped segmenter.

    python benchmarks/segmentation.py [--data FOLDER] [--parts models choi speed] [--json] [--quick]

FOLDER has `choi/3/3-11/*.ref` (300 documents of ten segments of other texts each) and `wiki/*.ref`
(300 articles with their own sections); NEURAL_DATA by default. Pk is the share of wrong probes:
lower is better. Its intervals, and those of its distance to the best untrained method (`lift`),
are over documents and the sources that they share.

- models: no attention, self, localized, boundary-aware (segmentation_models.py); needs no data
- choi: Pk over words, as published (C99 .13), and over sentences: untrained methods, the shipped
  model, models trained on documents composed of wiki articles in the same way (not on texts of
  Choi), and chunkers of other packages (chunkers.py)
- speed: 20 MB through `neural segment` in seconds of CPU, `neural segment README.md` by the clock,
  and the memory of the shipped model for 2.5, 5 and 10 MB

Other domains: segmentation_domains.py. Models trained on articles:
`neural train examples/segmentation/wiki.yaml --set data=FOLDER/wiki`, `neural calibrate wiki`,
`neural evaluate wiki --decode expected_pk`; the shipped one: `neural evaluate shipped --data FOLDER`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import segmentation_models
from chunkers import list_missing, run_chunkers
from features import generate_text
from measures import read_peak_memory

from neural.optim.catalogue import CATALOGUE
from neural.stats.estimate import Estimate
from neural.stats.jackknife import JackknifeScore
from neural.tasks.segmentation.baselines import registry as baselines
from neural.tasks.segmentation.boundary_encoding import boundaries_to_words
from neural.tasks.segmentation.collection import compose_documents, load_documents
from neural.tasks.segmentation.decoding import decode_boundaries
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import compute_features_batch
from neural.tasks.segmentation.inference import (
    boundary_probabilities,
    class_probabilities,
    compute_logits,
)
from neural.tasks.segmentation.metrics.pk import Pk
from neural.tasks.segmentation.pipeline import load_shipped_pipeline
from neural.tasks.segmentation.score_table import estimate_lift, estimate_scores, run_baselines
from neural.tasks.segmentation.settings import SegmentationSettings
from neural.tasks.segmentation.source_clusters import SourceClusters
from neural.tasks.segmentation.task import Segmentation
from neural.training.engine import fit
from neural.training.load_model import load_best_model
from neural.workflows.train import create_run

GOALS = {
    "choi: ours / best untrained": 1.0,
    "choi: shipped / best untrained": 1.0,
    "MB per second of CPU": 4.0,
    "neural segment README.md, s": 0.8,
    "memory of 10 MB / of 5 MB": 2.2,
}
MINIMUM_GOALS = ("MB per second of CPU",)
"""The other goals are maxima."""
README = Path(__file__).parents[1] / "README.md"
PARTS = ["models", "choi", "speed"]
SEEDS = 5
TEXT_FEATURES = ("cohesion", "novelty", "chains", "openings", "vocabularies")
SETTINGS: dict[str, Any] = {
    "data": ".",
    "learn": "boundaries",
    "max_elements": 100,
    "tracking": {"track_every": 0},
    "model": {
        "hidden_dim": 64,
        "num_layers": 1,
        "dropout": 0.5,
        "input_dropout": 0.4,
        "attention_type": "localized",
        "window_size": 15,
        "attention_heads": 4,
        "attention_dim": 64,
        "attention_dropout": 0.1,
    },
    "training": {
        "batch_size": 16,
        "learning_rate": 1.5e-3,
        "scheduler": "cosine",
        "clip_norm": 1.0,
        "weight_decay": 0.05,
        "warmup_steps": 50,
        "epochs": 8.0,
        "ema": 0.98,
    },
}
THRESHOLDS = np.arange(0.1, 0.6, 0.025)

Arrays = list[np.ndarray]
"""An array per document: boundaries, probabilities or log-odds of its elements."""
pk = Pk()


class SegmentationByLoss(Segmentation):
    """The task with checkpoints selected by loss: probabilities are decoded and averaged later."""

    monitor: ClassVar[str] = "valid/loss"
    larger_is_better: ClassVar[bool] = False


def train_model(
    train: Sequence[SegmentationDocument],
    valid: Sequence[SegmentationDocument],
    features: Sequence[str],
    seed: int,
    epochs: float,
) -> Any:
    """Train a model on these documents."""
    training = {**SETTINGS["training"], "seed": seed, "epochs": epochs}
    settings = {**SETTINGS, "features": tuple(features), "training": training}
    with tempfile.TemporaryDirectory() as name:
        for split, documents in (("train", train), ("valid", valid)):
            rows = [
                {
                    "lines": document.elements,
                    "boundaries": np.flatnonzero(document.boundaries).tolist(),
                }
                for document in documents
            ]
            (Path(name) / f"{split}.jsonl").write_text(
                "\n".join(map(json.dumps, rows)), encoding="utf-8"
            )
        experiment = SegmentationSettings.model_validate(settings)
        task = SegmentationByLoss(experiment, Path(name), CATALOGUE)
        run = create_run(task, Path(name) / "runs")
        fit(task, run)
        return load_best_model(run.path, task)


def predict_probabilities(
    model: Any, documents: Sequence[SegmentationDocument], features: Sequence[str]
) -> Arrays:
    """Boundary probability of every sentence of every document."""
    scores = compute_logits(model, compute_features_batch(documents, features))
    return [
        boundary_probabilities(class_probabilities(document_scores), "boundaries")
        for document_scores in scores
    ]


def average_pk(documents: Sequence[SegmentationDocument], predictions: Iterable[Any]) -> float:
    """Mean Pk over documents."""
    return float(
        np.mean(
            [
                pk.score_document(document.boundaries, boundaries)
                for document, boundaries in zip(documents, predictions, strict=True)
            ]
        )
    )


def best_threshold(probabilities: Arrays, documents: Sequence[SegmentationDocument]) -> float:
    """The threshold with the smallest mean Pk."""

    def threshold_pk(threshold: float) -> float:
        return average_pk(
            documents, (decode_boundaries(p, threshold=threshold) for p in probabilities)
        )

    return float(min(THRESHOLDS, key=threshold_pk))


def predict_choi(
    choi: Sequence[SegmentationDocument],
    wiki: Sequence[SegmentationDocument],
    seeds: int,
    epochs: float,
) -> list[Arrays]:
    """Boundaries by models trained on documents composed of segments of articles."""
    predictions = []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(wiki))
        sources = [wiki[int(index)].elements for index in order]
        sixth = len(sources) // 6
        valid = compose_documents(sources[:sixth], 60, seed=seed)
        train = compose_documents(sources[sixth:], 400, seed=seed)
        model = train_model(train, valid, TEXT_FEATURES, seed, epochs)
        threshold = best_threshold(predict_probabilities(model, valid, TEXT_FEATURES), valid)
        predictions.append(
            [
                decode_boundaries(probabilities, threshold=threshold)
                for probabilities in predict_probabilities(model, choi, TEXT_FEATURES)
            ]
        )
    return predictions


def evaluate(
    documents: Sequence[SegmentationDocument],
    predictions: dict[str, Arrays],
    training: Sequence[SegmentationDocument],
) -> dict[str, dict[str, list[float]]]:
    """Mean Pk of every segmenter with its interval, over sentences and words; baselines first.

    Intervals are over documents and the sources they share. For segmenters that are not baselines,
    `… lift` is the Pk of the best untrained method minus theirs.
    """
    untrained = run_baselines(
        [document.elements for document in documents],
        [document.boundaries for document in training],
    )
    clusters = SourceClusters.from_documents(documents)
    truths = [document.boundaries for document in documents]
    counts = [[len(sentence.split()) for sentence in document.elements] for document in documents]
    rows: dict[str, dict[str, list[float]]] = {name: {} for name in (*untrained, *predictions)}
    for unit in ("sentences", "words"):
        estimates: dict[str, JackknifeScore] = {}
        for name, boundaries in {**untrained, **predictions}.items():
            if unit == "words":
                estimates[name] = estimate_pk(
                    list(map(boundaries_to_words, truths, counts)),
                    list(map(boundaries_to_words, boundaries, counts)),
                    clusters_of_words(clusters, counts),
                )
            else:
                estimates[name] = estimate_pk(truths, boundaries, clusters)
        baseline_estimates = {name: estimates[name] for name in untrained}
        for name, estimate in estimates.items():
            rows[name][unit] = to_list(estimate.estimate("share"))
            if name not in baseline_estimates:
                lift = estimate_lift(estimate, baseline_estimates, "low")
                rows[name][f"{unit} lift"] = to_list(lift.difference)
    return rows


def estimate_pk(
    truths: Sequence[np.ndarray], predictions: Sequence[np.ndarray], clusters: SourceClusters
) -> JackknifeScore:
    """Mean Pk over documents, with its jackknife replicates."""
    return estimate_scores(pk, truths, predictions, clusters)["pk"]


def clusters_of_words(clusters: SourceClusters, counts: Sequence[Sequence[int]]) -> SourceClusters:
    """The same documents and sources with words as elements."""
    if clusters.source_ids is None:
        return clusters
    pairs = zip(clusters.source_ids, counts, strict=True)
    source_ids = tuple(np.repeat(ids, np.maximum(count, 1)) for ids, count in pairs)
    return replace(clusters, source_ids=source_ids)


def to_list(interval: Estimate) -> list[float]:
    """Value, low and high end."""
    return [interval.value, interval.low, interval.high]


def compute_ratios(
    rows: dict[str, dict[str, list[float]]], name: str, unit: str
) -> dict[str, float]:
    """Our Pk over that of the best untrained method."""
    best = min(rows[baseline][unit][0] for baseline in baselines.names())
    seeds = [row[unit][0] for segmenter, row in rows.items() if segmenter.startswith("ours, seed")]
    return {
        f"{name}: ours / best untrained": float(np.mean(seeds)) / best,
        f"{name}: shipped / best untrained": rows["shipped"][unit][0] / best,
    }


def measure_speed(quick: bool) -> dict[str, float]:
    """Speed and memory of the shipped model, in fresh processes.

    The first two figures are those of the command, with an empty cache folder: start of Python,
    reading, segmenting and printing included.
    """
    size = 2.0 if quick else 20.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text.txt"
        path.write_text(generate_text(size), encoding="utf-8")
        runs = [time_command(path, Path(folder) / "cache") for _ in range(3)]
        starts = [time_command(README, Path(folder) / f"cache_{run}") for run in range(5)]
    figures = {
        "MB per second of CPU": size / float(np.median([cpu for _, cpu in runs])),
        "neural segment README.md, s": float(np.median([wall for wall, _ in starts])),
    }
    size /= 2  # memory: up to 10 MB
    for share in (0.25, 0.5, 1.0):
        command = [sys.executable, __file__, "--memory", str(size * share)]
        done = subprocess.run(command, capture_output=True, check=True)
        figures[f"memory of {size * share:g} MB"] = float(done.stdout.split()[-1])
    figures["memory of 10 MB / of 5 MB"] = (
        figures[f"memory of {size:g} MB"] / figures[f"memory of {size / 2:g} MB"]
    )
    return figures


def time_command(path: Path, cache: Path) -> tuple[float, float]:
    """Seconds of `neural segment` by the clock, and of CPU (user and system)."""
    command = [sys.executable, "-m", "neural", "segment", str(path)]
    environment = {**os.environ, "NEURAL_CACHE": str(cache)}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure_memory(megabytes: float) -> float:
    """Peak memory in MB that segmenting a text adds to this process."""
    text, pipeline = generate_text(megabytes), load_shipped_pipeline()
    pipeline.segment(SegmentationDocument.from_text(text[:20_000]))
    before = read_peak_memory(reset=True)
    pipeline.segment(SegmentationDocument.from_text(text))
    return read_peak_memory() - before


def measure(data: Path, parts: Sequence[str], quick: bool) -> dict[str, Any]:
    """Run the selected parts, and compute the ratios that have goals."""
    seeds, epochs, every = (1, 1.0, 6) if quick else (SEEDS, SETTINGS["training"]["epochs"], 1)
    results: dict[str, Any] = {"ratios": {}, "intervals over": {}}
    if "models" in parts:
        results["models"] = segmentation_models.measure_models(
            seeds=1 if quick else 3, epochs=2 if quick else 25
        )
    if "choi" in parts:
        wiki = load_documents(data / "wiki")[::every]
        pipeline = load_shipped_pipeline()
        choi = load_documents(data / "choi" / "3" / "3-11")[::every]
        predictions = {
            f"ours, seed {seed}": boundaries
            for seed, boundaries in enumerate(predict_choi(choi, wiki, seeds, epochs))
        }
        predictions["shipped"] = [pipeline.segment(document) for document in choi]
        predictions |= {name: boundaries for name, _, boundaries in run_chunkers(choi)}
        results["intervals over"]["choi"] = str(SourceClusters.from_documents(choi))
        results["choi"] = evaluate(choi, predictions, choi)
        results["ratios"] |= compute_ratios(results["choi"], "choi", "words")
    if "speed" in parts:
        results["speed"] = measure_speed(quick)
        results["ratios"] |= {
            name: value for name, value in results["speed"].items() if name in GOALS
        }
    return results


def format_table(results: dict[str, Any]) -> str:
    """The results as text."""
    lines = (
        [segmentation_models.format_rows(results["models"]) + "\n"] if "models" in results else []
    )
    for segmenter, units in results.get("choi", {}).items():
        figures = "   ".join(
            f"{unit} {value:.3f} ({low:.3f} … {high:.3f})"
            for unit, (value, low, high) in units.items()
        )
        lines.append(f"  choi  {segmenter:20} {figures}")
    for name, resampled in results["intervals over"].items():
        lines.append(f"  {name}: 95 % intervals over {resampled}")
    lines += [f"  {name:28} {value:8.2f}" for name, value in results.get("speed", {}).items()]
    for name, value in results["ratios"].items():
        lines.append(
            f"  {name:40} {value:7.3f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else "")
        )
    return "\n".join([*lines, *list_missing(), "wtpsplit downloads weights: not measured"])


def main() -> None:
    """Print a table or JSON; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("NEURAL_DATA", ".")))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--json", action="store_true")
    parser.add_argument(
        "--quick", action="store_true", help="few documents, one seed: does it run?"
    )
    parser.add_argument("--memory", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.memory:
        print(measure_memory(options.memory))
        return
    if not (options.data / "wiki").is_dir():
        print(
            "no choi and wiki in --data or NEURAL_DATA: only models and speed are measured",
            file=sys.stderr,
        )
        options.parts = [part for part in options.parts if part in ("models", "speed")]
    results = measure(options.data, options.parts, options.quick)
    print(
        json.dumps(results | {"goals": GOALS}, indent=2) if options.json else format_table(results)
    )
    missed = [
        name
        for name, value in results["ratios"].items()
        if name in GOALS and (value < GOALS[name]) == (name in MINIMUM_GOALS)
    ]
    sys.exit(bool(missed) and not options.quick)


if __name__ == "__main__":
    main()
