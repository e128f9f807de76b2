"""Document features: speed against loops over all pairs, and megabytes of text per second.

    python benchmarks/features.py [--json] [--quick]

600 documents of about 40 generated lines, like songs: the sixty features of five self-similarity
matrices, against the loops that define them (tests/tasks/segmentation/features/loops.py), which
must give equal values. Then ten megabytes of generated text: sentence splitting and all text
features, in seconds of CPU.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from os import environ
from pathlib import Path

import numpy as np
from measures import read_peak_memory

sys.path.insert(0, str(Path(__file__).parents[1]))

from neural.data.sources.handbook import read_handbook
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.feature_cache import (
    FEATURE_SETS,
    compute_features,
    compute_features_batch,
)
from neural.tasks.segmentation.features import registry
from neural.tasks.segmentation.tokenization import tokenize_elements
from tests.tasks.segmentation.features.loops import compute_by_loops

GOALS = {"loops / ours": 20.0, "MB per second": 4.0}
LINES_PER_DOCUMENT = 40


def generate_songs(count, seed=0):
    """Documents of stanzas and a repeated chorus, from the words of the handbook."""
    random = np.random.default_rng(seed)
    words = [word for word in dict.fromkeys(read_handbook().lower().split()) if word.isalpha()][
        :2000
    ]

    def generate_lines(number):
        return [
            " ".join(words[int(index)] for index in random.zipf(1.3, 7) % len(words))
            for _ in range(number)
        ]

    documents = []
    for number in range(count):
        chorus = generate_lines(4)
        stanzas = [
            generate_lines(4) if stanza % 2 else chorus
            for stanza in range(LINES_PER_DOCUMENT // 4 + int(random.integers(-1, 2)))
        ]
        lines = tuple(line for stanza in stanzas for line in stanza)
        documents.append(SegmentationDocument(f"song {number}", lines))
    return documents


def generate_text(megabytes):
    """Sentences of the handbook in random order, with new words, so that the vocabulary grows."""
    handbook = read_handbook()
    offsets = SegmentationDocument.from_text(handbook).offsets or ()
    sentences = [handbook[start:end] for start, end in offsets]
    random = np.random.default_rng(0)
    paragraphs, size = [], 0
    while size < megabytes * 1e6:
        number = len(paragraphs) // 500
        chosen = [sentences[int(index)] for index in random.integers(0, len(sentences), 12)]
        paragraph = f"{' '.join(chosen)} It is x{number}y.\n\n"
        paragraphs.append(paragraph)
        size += len(paragraph)
    return "".join(paragraphs)


def time_call(call):
    """CPU seconds of one call, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def measure(quick):
    """All figures."""
    documents = generate_songs(60 if quick else 600)
    warm_up = SegmentationDocument.from_text("One line. Another line. A third line here.")
    for name in ("60", "text"):
        compute_features(warm_up, name)  # compiles
    rounds = [
        time_call(lambda: compute_features_batch(documents, 60, use_cache=False)) for _ in range(3)
    ]
    our_seconds, features = min(rounds, key=lambda result: result[0])
    loop_seconds, loop_features = time_call(
        lambda: [
            np.array(compute_by_loops(document.elements), np.float32) for document in documents
        ]
    )
    for ours, expected in zip(features, loop_features, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-5)
    figures = {
        "documents": len(documents),
        "lines": sum(map(len, documents)),
        "ours, s": our_seconds,
        "loops, s": loop_seconds,
    }
    figures["loops / ours"] = loop_seconds / our_seconds
    figures |= measure_cache(documents)
    figures |= measure_throughput(1 if quick else 10)
    return figures


def measure_cache(documents):
    """Seconds to compute the features of a long document, and to read them from the cache."""
    lines = tuple(line for document in documents for line in document.elements)
    long = SegmentationDocument("long", lines[:2000])
    with tempfile.TemporaryDirectory() as folder:
        environ["NEURAL_CACHE"] = folder
        computed, _ = time_call(lambda: compute_features(long, 60, use_cache=True))
        cached, _ = time_call(lambda: compute_features(long, 60, use_cache=True))
    return {f"{len(long)} lines, computed, s": computed, f"{len(long)} lines, cached, s": cached}


def measure_throughput(megabytes):
    """CPU seconds for a text, stage by stage."""
    text = generate_text(megabytes)
    size = len(text.encode()) / 1e6
    before = read_peak_memory(reset=True)
    stages = {}
    stages["sentences"], document = time_call(lambda: SegmentationDocument.from_text(text))
    stages["words"], words = time_call(lambda: tokenize_elements(document.elements))
    stages["stems"], _ = time_call(lambda: words.stems)
    for name in FEATURE_SETS["text"]:
        feature = registry.get(name)()
        stages[name], _ = time_call(lambda feature=feature: feature.compute(document, words))
    total, table = time_call(lambda: compute_features(SegmentationDocument.from_text(text), "text"))
    figures = {f"{name}, s/MB": value / size for name, value in stages.items()}
    return {
        "MB": size,
        "elements": len(table),
        **figures,
        "MB per second": size / total,
        "memory, MB": read_peak_memory() - before,
    }


def main():
    """Measure and print; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    figures = measure(options.quick)
    if options.json:
        print(json.dumps({"figures": figures, "goals": GOALS}))
    else:
        for name, value in figures.items():
            goal = f"   goal {GOALS[name]:g}" if name in GOALS else ""
            print(f"{name:28} {value:12,.4g}{goal}")
    sys.exit(any(figures[name] < goal for name, goal in GOALS.items()))


if __name__ == "__main__":
    main()
