"""Sentence splitting in many languages, beside `sentencex`.

    python benchmarks/sentence_splitting.py FOLDER [--part test|dev] [--json]

FOLDER holds checkouts of Universal Dependencies treebanks, `UD_English-EWT/en_ewt-ud-test.conllu`
and so on (https://universaldependencies.org). Every eight sentences are joined to a paragraph, by
spaces (in Chinese and Japanese by nothing), and each splitter finds their ends again. F1 is that of
the sentence ends within paragraphs. Speed is the median of three runs over the treebank, in MB of
UTF-8 per second of CPU. `sentencex` is compared if it is installed.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from neural.tasks.segmentation.text_splitting import find_elements

SPACELESS_LANGUAGES = frozenset(("zh", "ja"))
"""Languages whose sentences are joined without a space."""
PARAGRAPH_SENTENCES = 8
TIMED_RUNS = 3
EndFinder = Callable[[str, str], set[int]]
"""(text, language code) → ends of its sentences, white space after them not included."""


@dataclass(frozen=True)
class SplittingScore:
    """Quality and speed of one splitter on one treebank."""

    treebank: str
    splitter: str
    precision: float
    recall: float
    f1: float
    megabytes_per_second: float


def read_sentences(path: Path) -> list[str]:
    """Texts of the sentences of a CoNLL-U file."""
    prefix = "# text = "
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line[len(prefix) :].strip() for line in lines if line.startswith(prefix)]


def find_our_ends(text: str, language: str) -> set[int]:
    """Sentence ends of this package; they do not depend on the language."""
    return {end for _, end in find_elements(text)}


def find_sentencex_ends(text: str, language: str) -> set[int]:
    """Sentence ends of `sentencex`."""
    from sentencex import segment

    ends, position = set(), 0
    for sentence in segment(language, text):
        stripped = sentence.strip()
        if stripped:
            position = text.index(stripped, position) + len(stripped)
            ends.add(position)
    return ends


def score_splitter(
    treebank: str, name: str, find_ends: EndFinder, sentences: list[str], language: str
) -> SplittingScore:
    """Score and time a splitter on the joined sentences."""
    separator = "" if language in SPACELESS_LANGUAGES else " "
    true_ends, paragraph_ends = set(), set()
    chunks, position = [], 0
    for number, sentence in enumerate(sentences, start=1):
        is_last = number % PARAGRAPH_SENTENCES == 0 or number == len(sentences)
        gap = "\n\n" if is_last else separator
        chunks += [sentence, gap]
        (paragraph_ends if is_last else true_ends).add(position + len(sentence))
        position += len(sentence) + len(gap)
    text = "".join(chunks)
    seconds = []
    for _ in range(TIMED_RUNS):
        start = time.process_time()
        ends = find_ends(text, language)
        seconds.append(time.process_time() - start)
    ends -= paragraph_ends
    correct = len(ends & true_ends)
    precision, recall = correct / max(len(ends), 1), correct / max(len(true_ends), 1)
    return SplittingScore(
        treebank,
        name,
        precision,
        recall,
        2 * correct / max(len(ends) + len(true_ends), 1),
        len(text.encode()) / 1e6 / max(statistics.median(seconds), 1e-9),
    )


def run(folder: Path, part: str) -> list[SplittingScore]:
    """Scores of all treebanks of the folder."""
    splitters: dict[str, EndFinder] = {"neural": find_our_ends}
    if find_spec("sentencex"):
        splitters["sentencex"] = find_sentencex_ends
    scores = []
    for path in sorted(folder.glob(f"UD_*/*-ud-{part}.conllu")):
        sentences = read_sentences(path)
        language = path.name.partition("_")[0]
        if len(sentences) > 1:
            scores += [
                score_splitter(path.parent.name, name, find_ends, sentences, language)
                for name, find_ends in splitters.items()
            ]
    return scores


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", choices=("test", "dev"), default="test")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    scores = run(arguments.folder, arguments.part)
    if not scores:
        parser.error(f"{arguments.folder} has no UD_*/*-ud-{arguments.part}.conllu")
    if arguments.json:
        print(json.dumps([asdict(score) for score in scores]))
        return
    print(f"{'treebank':24} {'splitter':10} {'P':>6} {'R':>6} {'F1':>6} {'MB/s':>8}")
    for score in scores:
        print(
            f"{score.treebank:24} {score.splitter:10} {score.precision:6.3f} {score.recall:6.3f} "
            f"{score.f1:6.3f} {score.megabytes_per_second:8.2f}"
        )
    for name in dict.fromkeys(score.splitter for score in scores):
        mean = statistics.mean(score.f1 for score in scores if score.splitter == name)
        print(f"{'mean':24} {name:10} {'':6} {'':6} {mean:6.3f}")


if __name__ == "__main__":
    main()
