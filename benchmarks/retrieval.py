"""Retrieval with chunks of several splitters: do the best chunks hold the answer?

    python benchmarks/retrieval.py [--data FOLDER] [--tokens 256 512 1024] [--layout keep remove]
                                   [--json] [--quick]

FOLDER (NEURAL_DATA by default) has `openstax/*.jsonl`: sections of textbooks, whose parts have a
title and paragraphs. Five sections in a row are a document. It is cut into chunks of at most 256,
512 or 1,024 tokens (words between white space) by `neural.segment` and by others: every N words,
and the splitters of langchain, semchunk and chonkie that are installed (chunkers.py). The chunks of
all documents are one index, ranked by BM25.

Queries are the titles of the parts, and the first sentences of the parts; the answer is the part.
Chunks are indexed without titles, and for the second kind of queries also without the first
sentences of the parts: no query is in the index. Titles that several parts have are no queries.

- recall@5: share of queries for which one of the five best chunks overlaps the part by at least
  half of the smaller of the two, in characters
- containment: share of the part's characters that the five best chunks hold
- within the budget: the same for the best chunks that together have at most five times the limit,
  so that splitters with small chunks retrieve as many tokens as others
- tokens: in the five best chunks

`--layout keep` cuts texts with titles as headings and blank lines between paragraphs; `remove` cuts
the sentences alone, in one line. 95 % intervals are by bootstrap over documents; differences from
`neural.segment` are paired.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from chunkers import Chunker, Span, list_chunkers, list_missing

import neural
from neural.tasks.segmentation.text_splitting import find_elements
from neural.tasks.segmentation.tokenization import STOP_WORDS

GOALS = {"worst limit: recall@5 of the best other / ours": 1.0}
LIMITS = (256, 512, 1024)
SECTIONS_PER_DOCUMENT = 5
TOP_CHUNKS = 5
MIN_PART_WORDS = 40
"""Shorter parts are no answers."""
RESAMPLES = 1000
METRICS = ("recall@5", "containment", "within the budget", "tokens")
COMPARED_METRICS = ("recall@5", "within the budget")
"""Metrics of which the table shows the difference between ours and others."""
OURS = "neural.segment"


@dataclass
class Part:
    """A part of a document, with the queries that it answers."""

    span: Span
    title: str
    first_sentence: str


@dataclass
class Document:
    """A text of several parts; spans are in characters."""

    text: str = ""
    parts: list[Part] = field(default_factory=list)
    titles: list[Span] = field(default_factory=list)
    first_sentences: list[Span] = field(default_factory=list)

    def append(self, text: str, separator: str) -> Span:
        """Add a text after a separator. Returns its span."""
        self.text += (separator if self.text else "") + text
        return len(self.text) - len(text), len(self.text)


def load_books(folder: Path, layout: str, max_documents: int | None) -> list[Document]:
    """Documents of all books; each has SECTIONS_PER_DOCUMENT sections."""
    documents = []
    for file in sorted(folder.glob("*.jsonl")):
        sections = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for first in range(0, len(sections), SECTIONS_PER_DOCUMENT):
            chapter = sections[first : first + SECTIONS_PER_DOCUMENT]
            documents.append(build_document(chapter, keep_layout=layout == "keep"))
    if max_documents:
        documents = documents[:: max(1, len(documents) // max_documents)]
    return documents


def build_document(sections: Sequence[dict[str, Any]], *, keep_layout: bool) -> Document:
    """Join sections; with their layout, titles are headings and paragraphs are apart."""
    document, separator = Document(), "\n\n" if keep_layout else " "
    for section in sections:
        if keep_layout:
            document.titles.append(document.append(f"# {section['title']}", separator))
        for part in section["parts"]:
            paragraphs = [" ".join(text.split()) for text in part["paragraphs"]]
            paragraphs = [text for text in paragraphs if text]
            if not paragraphs:
                continue
            if keep_layout and part["title"]:
                document.titles.append(document.append(f"## {part['title']}", separator))
            (_, sentence_end), *_ = find_elements(paragraphs[0], "sentences")
            spans = [document.append(text, separator) for text in paragraphs]
            start, end = spans[0][0], spans[-1][1]
            document.first_sentences.append((start, start + sentence_end))
            if len(document.text[start:end].split()) >= MIN_PART_WORDS:
                document.parts.append(
                    Part((start, end), part["title"], paragraphs[0][:sentence_end])
                )
    return document


def split_fixed(text: str, limit: int) -> Iterator[Span]:
    """Spans of `limit` words each."""
    words = [match.span() for match in re.finditer(r"\S+", text)]
    for first in range(0, len(words), limit):
        yield words[first][0], words[min(first + limit, len(words)) - 1][1]


def list_splitters() -> dict[str, Callable[[str, int], Iterable[Span]]]:
    """Splitters by name: a text and a limit in words → spans."""

    def adapt(chunker: Chunker) -> Callable[[str, int], Iterable[Span]]:
        return lambda text, limit: chunker.split(text, limit, count_words)

    def split_ours(text: str, limit: int) -> Iterator[Span]:
        return (
            (segment.start, segment.end)
            for segment in neural.segment(text, max_tokens=limit, tokenizer="words")
        )

    return {
        OURS: split_ours,
        "fixed size": split_fixed,
        **{chunker.name: adapt(chunker) for chunker in list_chunkers() if chunker.has_limit},
    }


def count_words(text: str) -> int:
    """Number of words between white space."""
    return len(text.split())


class Bm25:
    """Okapi BM25 index; `rank` returns the texts with the best scores."""

    K1, B = 1.5, 0.75

    def __init__(self, texts: Sequence[str]) -> None:
        counts = [Counter(extract_terms(text)) for text in texts]
        lengths = np.array([sum(count.values()) for count in counts], float)
        norm = self.K1 * (1 - self.B + self.B * lengths / max(1.0, lengths.mean()))
        postings: dict[str, list[tuple[int, int]]] = {}
        for index, count in enumerate(counts):
            for term, frequency in count.items():
                postings.setdefault(term, []).append((index, frequency))
        self.size = len(texts)
        self.weights: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for term, entries in postings.items():
            indices, frequencies = np.array(entries).T
            idf = np.log(1 + (self.size - len(indices) + 0.5) / (len(indices) + 0.5))
            scores = idf * frequencies * (self.K1 + 1) / (frequencies + norm[indices])
            self.weights[term] = indices, scores

    def rank(self, query: str) -> np.ndarray:
        """Indices of all texts that share a term with the query, best first."""
        scores = np.zeros(self.size)
        for term in extract_terms(query):
            if term in self.weights:
                indices, weights = self.weights[term]
                scores[indices] += weights
        order = np.argsort(-scores, kind="stable")
        return order[scores[order] > 0]


def extract_terms(text: str) -> list[str]:
    """Words in lower case, without stop words."""
    return [word for word in re.findall(r"\w+", text.lower()) if word not in STOP_WORDS]


@dataclass(frozen=True)
class Chunk:
    """A chunk of a document."""

    document: int
    span: Span
    tokens: int


def overlap(first: Span, second: Span) -> int:
    """Number of characters that two spans share."""
    return max(0, min(first[1], second[1]) - max(first[0], second[0]))


def cut_out(text: str, span: Span, removed: Iterable[Span]) -> str:
    """The text of a span without the removed spans, which are in order."""
    texts, position = [], span[0]
    for start, end in removed:
        if end > position and start < span[1]:
            texts.append(text[position : max(position, start)])
            position = max(position, end)
    return " ".join([*texts, text[position : max(position, span[1])]])


def measure_splitter(
    documents: Sequence[Document], split: Callable[[str, int], Iterable[Span]], limit: int
) -> tuple[dict[str, np.ndarray], np.ndarray, int]:
    """Metrics of every query, (queries,) each; the document of each query; largest chunk."""
    chunks = [
        Chunk(index, span, count_words(document.text[slice(*span)]))
        for index, document in enumerate(documents)
        for span in split(document.text, limit)
    ]
    titles = Counter(part.title for document in documents for part in document.parts)
    values: dict[str, list[float]] = {name: [] for name in METRICS}
    owners: list[int] = []
    for kind in ("title", "first_sentence"):
        index = Bm25(
            [
                cut_out(
                    documents[chunk.document].text,
                    chunk.span,
                    removed_spans(documents[chunk.document], kind),
                )
                for chunk in chunks
            ]
        )
        for owner, document in enumerate(documents):
            for part in document.parts:
                query = getattr(part, kind)
                if not query or (kind == "title" and titles[query] > 1):
                    continue
                ranked = [chunks[position] for position in index.rank(query)[: 20 * TOP_CHUNKS]]
                for name, value in score_query(ranked, owner, part.span, limit).items():
                    values[name].append(value)
                owners.append(owner)
    return (
        {name: np.array(each) for name, each in values.items()},
        np.array(owners),
        max(chunk.tokens for chunk in chunks),
    )


def removed_spans(document: Document, kind: str) -> list[Span]:
    """Spans that are not indexed for this kind of queries."""
    first_sentences = document.first_sentences if kind == "first_sentence" else []
    return sorted([*document.titles, *first_sentences])


def score_query(ranked: Sequence[Chunk], owner: int, answer: Span, limit: int) -> dict[str, float]:
    """Metrics of one query; `ranked` are the best chunks, `owner` the document of the answer."""

    def find_shared(chunks: Iterable[Chunk]) -> list[int]:
        return [overlap(chunk.span, answer) * (chunk.document == owner) for chunk in chunks]

    top, length = ranked[:TOP_CHUNKS], answer[1] - answer[0]
    shared = find_shared(top)
    smaller = [min(length, chunk.span[1] - chunk.span[0]) for chunk in top]
    within, tokens = [], 0
    for chunk in ranked:
        tokens += chunk.tokens
        if tokens > TOP_CHUNKS * limit:
            break
        within.append(chunk)
    return {
        "recall@5": float(any(2 * a >= b for a, b in zip(shared, smaller, strict=True))),
        # Chunks of one splitter do not overlap, so the shares add up.
        "containment": sum(shared) / length,
        "within the budget": sum(find_shared(within)) / length,
        "tokens": float(sum(chunk.tokens for chunk in top)),
    }


def estimate_means(values: np.ndarray, owners: np.ndarray, draws: np.ndarray) -> list[float]:
    """Mean over queries, with the ends of its 95 % interval by bootstrap over documents.

    `draws` is how often each document is drawn, (resamples, documents).
    """
    sums = np.bincount(owners, values, minlength=draws.shape[1])
    counts = np.bincount(owners, minlength=draws.shape[1])
    low, high = np.quantile((draws @ sums) / (draws @ counts), (0.025, 0.975))
    return [float(values.mean()), float(low), float(high)]


def measure(documents: Sequence[Document], limits: Sequence[int]) -> dict[str, Any]:
    """Metrics of all splitters by limit, with intervals, and differences from ours."""
    count = len(documents)
    draws = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), RESAMPLES)
    results: dict[str, Any] = {}
    for limit in limits:
        rows, ours = {}, {}
        for name, split in list_splitters().items():
            values, owners, largest = measure_splitter(documents, split, limit)
            ours = ours or values
            rows[name] = {
                metric: estimate_means(values[metric], owners, draws) for metric in METRICS
            }
            rows[name]["ours minus this"] = {
                metric: estimate_means(ours[metric] - values[metric], owners, draws)
                for metric in METRICS[:3]
            }
            rows[name]["largest chunk"] = largest
            rows[name]["queries"] = len(owners)
        results[f"{limit} tokens"] = rows
    return results


def format_results(results: dict[str, Any]) -> str:
    """The results as text."""
    lines = []
    for layout, limits in results["layouts"].items():
        for limit, rows in limits.items():
            queries = next(iter(rows.values()))["queries"]
            lines += [
                f"layout: {layout}; chunks of at most {limit}; {queries:,} queries",
                f"  {'':20}"
                + "".join(f"{metric:>24}" for metric in METRICS)
                + "".join(f"{f'ours − this, {metric}':>32}" for metric in COMPARED_METRICS),
            ]
            for name, row in rows.items():
                cells = "".join(f"{format_interval(row[metric]):>24}" for metric in METRICS[:3])
                tokens = f"{row['tokens'][0]:,.0f} (largest {row['largest chunk']:,})"
                differences = [
                    format_interval(row["ours minus this"][metric], "+") if name != OURS else ""
                    for metric in COMPARED_METRICS
                ]
                lines.append(
                    f"  {name:20}{cells}{tokens:>24}"
                    + "".join(f"{difference:>32}" for difference in differences)
                )
            lines.append("")
    lines += [
        f"  {name:50} {value:7.3f}   goal {GOALS[name]:g}"
        for name, value in results["ratios"].items()
    ]
    return "\n".join([*lines, *list_missing()])


def format_interval(interval: Sequence[float], sign: str = "") -> str:
    """`0.712 (0.690 … 0.734)`."""
    value, low, high = (f"{each:{sign}.3f}" for each in interval)
    return f"{value} ({low} … {high})"


def main() -> None:
    """Print a table or JSON; exit code 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("NEURAL_DATA", ".")))
    parser.add_argument("--tokens", type=int, nargs="+", default=LIMITS)
    parser.add_argument(
        "--layout", nargs="+", choices=["keep", "remove"], default=["keep", "remove"]
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few documents: does it run?")
    options = parser.parse_args()
    folder = options.data / "openstax"
    if not folder.is_dir():
        sys.exit("no openstax in --data or NEURAL_DATA")
    limits = options.tokens[:1] if options.quick else options.tokens
    results: dict[str, Any] = {"layouts": {}}
    for layout in options.layout:
        documents = load_books(folder, layout, 6 if options.quick else None)
        results["layouts"][layout] = measure(documents, limits)
    name = "worst limit: recall@5 of the best other / ours"
    results["ratios"] = {
        name: max(
            max(row["recall@5"][0] for other, row in rows.items() if other != OURS)
            / rows[OURS]["recall@5"][0]
            for layout in results["layouts"].values()
            for rows in layout.values()
        )
    }
    print(
        json.dumps(results | {"goals": GOALS}, indent=1)
        if options.json
        else format_results(results)
    )
    sys.exit(results["ratios"][name] > GOALS[name] and not options.quick)


if __name__ == "__main__":
    main()
