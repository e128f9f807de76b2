"""Features of documents: against loops over all pairs, and megabytes of text per second.

    python benchmarks/features.py [--json] [--quick]

600 documents of some 40 generated lines, as songs are: the sixty numbers of five self-similarity matrices, against the
loops that define them (tests/tasks/cutting/features/loops.py), which must give the same numbers. Then ten megabytes of
generated text: cut into sentences, and everything that describes them, in seconds of CPU.
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
from measures import peak_so_far

sys.path.insert(0, str(Path(__file__).parents[1]))

from neural.tasks.cutting.described import SETS, features, features_of_all
from neural.tasks.cutting.document import Document
from neural.tasks.cutting.features import registry
from neural.tasks.cutting.words import words_of
from neural.tasks.data.sources.handbook import handbook_text
from tests.tasks.cutting.features.loops import by_loops

GOALS = {"loops / ours": 20.0, "MB per second": 1.0}
LINES = 40


def songs(count, seed=0):
    """Documents of stanzas and a chorus that comes again, from the words of the handbook."""
    dice = np.random.default_rng(seed)
    words = [word for word in dict.fromkeys(handbook_text().lower().split()) if word.isalpha()][:2000]

    def lines(many):
        return [" ".join(words[int(at)] for at in dice.zipf(1.3, 7) % len(words)) for _ in range(many)]

    made = []
    for number in range(count):
        chorus = lines(4)
        stanzas = [lines(4) if part % 2 else chorus for part in range(LINES // 4 + int(dice.integers(-1, 2)))]
        made.append(Document(f"song {number}", tuple(line for stanza in stanzas for line in stanza)))
    return made


def text(megabytes):
    """The handbook's sentences in another order, over and over; words get endings, so that the vocabulary grows."""
    whole = handbook_text()
    sentences = [whole[a:b] for a, b in Document.of(whole).offsets or ()]
    dice = np.random.default_rng(0)
    parts, size = [], 0
    while size < megabytes * 1e6:
        number = len(parts) // 500
        part = " ".join(sentences[int(at)] for at in dice.integers(0, len(sentences), 12)) + f" It is x{number}y.\n\n"
        parts.append(part)
        size += len(part)
    return "".join(parts)


def seconds(call):
    """CPU time of one call, and its result."""
    start = time.process_time()
    result = call()
    return time.process_time() - start, result


def measured(quick):
    """All figures."""
    documents = songs(60 if quick else 600)
    for name in ("60", "text"):
        features(Document.of("One line. Another line. A third line here."), name)   # compiled before the clock starts
    rounds = [seconds(lambda: features_of_all(documents, 60, keep=False)) for _ in range(3)]
    ours, fast = min(rounds, key=lambda one: one[0])
    loops, slow = seconds(lambda: [np.array(by_loops(one.elements), dtype=np.float32) for one in documents])
    for one, other in zip(fast, slow, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    figures = {"documents": len(documents), "lines": sum(map(len, documents)), "ours, s": ours, "loops, s": loops}
    figures["loops / ours"] = loops / ours
    figures |= kept(documents)
    figures |= throughput(1 if quick else 10)
    return figures


def kept(documents):
    """One long document: computed, and read again from the cache."""
    long = Document("long", tuple(line for one in documents for line in one.elements)[:2000])
    with tempfile.TemporaryDirectory() as folder:
        environ["NEURAL_CACHE"] = folder
        first, _ = seconds(lambda: features(long, 60, keep=True))
        again, _ = seconds(lambda: features(long, 60, keep=True))
    return {f"{len(long)} lines, computed, s": first, f"{len(long)} lines, kept, s": again}


def throughput(megabytes):
    """Seconds of CPU for a text, stage by stage."""
    whole = text(megabytes)
    size = len(whole.encode()) / 1e6
    before = peak_so_far(forget=True)
    stages = {}
    stages["sentences"], document = seconds(lambda: Document.of(whole))
    stages["words"], words = seconds(lambda: words_of(document.elements))
    stages["stems"], _ = seconds(lambda: words.stems)
    for name in SETS["text"]:
        stages[name], _ = seconds(lambda name=name: registry.get(name)().compute(document, words))
    total, table = seconds(lambda: features(Document.of(whole), "text"))
    figures = {f"{name}, s/MB": value / size for name, value in stages.items()}
    return {
        "MB": size, "elements": len(table), **figures, "MB per second": size / total,
        "memory, MB": peak_so_far() - before,
    }  # fmt: skip


def main():
    """Measure, print, and fail where a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    figures = measured(given.quick)
    if given.json:
        print(json.dumps({"figures": figures, "goals": GOALS}))
    else:
        for name, value in figures.items():
            goal = f"   goal {GOALS[name]:g}" if name in GOALS else ""
            print(f"{name:28} {value:12,.4g}{goal}")
    sys.exit(any(figures[name] < goal for name, goal in GOALS.items()))


if __name__ == "__main__":
    main()
