"""Train the word vectors that come with the package, on the texts of corpora.py.

    python examples/segmentation/word_vectors.py CORPORA [--out FILE] [--leave-out DOMAIN …]

Two steps. First the counts of words that occur together in three consecutive sentences give a
matrix of positive pointwise mutual information, whose largest singular vectors are the word vectors
(Levy, Goldberg and Dagan, 2015). Then the vectors are tuned: two passages of the same section of a
document shall be more similar than passages of other sections and other documents (contrastive
learning with the other passages of a batch as negatives). The vector of a passage is the sum of the
vectors of its words, so the length of a vector is the weight of its word.

Words are stems without stop words; see neural/tasks/segmentation/word_vectors.py for the entries of
the table. The result depends on the seed and the texts only.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from sklearn.utils.extmath import randomized_svd
from torch.nn import functional

from neural.tasks.segmentation.text_splitting import find_elements
from neural.tasks.segmentation.tokenization import stem_topic_word, tokenize_elements
from neural.tasks.segmentation.word_vectors import (
    PREFIX_LETTERS,
    WORD_VECTORS_FILE,
    find_row,
    normalize_number,
    save_word_vectors,
)

VOCABULARY_SIZE = 40_000
SAVED_WORDS = 38_000
"""The rarest words are trained, for the sake of their prefixes, but not saved."""
PREFIX_COUNT = 6_000
"""Number of prefixes that have a vector, for words outside of the vocabulary."""
WIDTH = 112
MIN_WORD_COUNT = 5
CONTEXT_WORDS = 20_000
"""The most frequent words are the columns of the co-occurrence matrix."""
WINDOW_SENTENCES = 3
MIN_PARAGRAPH_CHARACTERS = 40
PARAGRAPHS_PER_CHUNK = 3_000
MAX_DOMAIN_BYTES = 150_000_000
"""Of a larger file, chunks at equal distances are read: old books would outweigh all others."""
WINDOWS_PER_CHUNK = 60_000
MIN_COOCCURRENCE = 0.08
"""Smaller weighted counts are left out: they are noise, and most of the memory."""
CONTEXT_POWER = 0.75
"""Exponent of the context frequencies, which weakens the bias of PMI towards rare words."""
FREQUENCY_SCALE = 1e-3
"""Relative frequency at which the initial weight of a word is one half."""
PREFIX_WEIGHT = 0.6
"""Initial length of the vectors of prefixes."""
BATCH_PASSAGES = 256
MAX_PASSAGE_SENTENCES = 4
PARTS_PER_DOCUMENT = 4
"""Most parts of one document in a batch: they are the negatives that are hard to tell apart."""
EPOCHS = 10.0
LEARNING_RATE = 1e-3
VALIDATION_SHARE = 20
"""Every 20th document is for validation."""


@dataclass
class Corpus:
    """Sentences of all texts as ids of stems."""

    words: list[str]
    ids: np.ndarray
    """Ids of all words, in order."""
    lengths: np.ndarray
    """Number of words of each sentence."""
    paragraphs: np.ndarray
    """Paragraph number of each sentence."""


def list_files(corpora: Path, pattern: str, left_out: Sequence[str]) -> list[Path]:
    """Files of all domains but those left out; the domain is the file's stem or its folder."""
    return sorted(
        path for path in corpora.glob(pattern) if not {path.stem, path.parent.name} & set(left_out)
    )


def read_corpus(paths: Sequence[Path]) -> Corpus:
    """Read texts with a paragraph per line."""
    word_ids: dict[str, int] = {}
    chunks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    first_paragraph = 0
    for path in paths:
        for paragraphs in read_paragraphs(path):
            chunks.append(encode_paragraphs(paragraphs, first_paragraph, word_ids))
            first_paragraph += len(paragraphs)
        print(f"{path}: {len(word_ids):,} different words so far", flush=True)
    ids, lengths, numbers = map(np.concatenate, zip(*chunks, strict=True))
    return Corpus(list(word_ids), ids, lengths, numbers)


def read_paragraphs(path: Path) -> Iterator[list[str]]:
    """Chunks of the paragraphs of a file, at most `MAX_DOMAIN_BYTES` in all."""
    chunk: list[str] = []
    share = min(1.0, MAX_DOMAIN_BYTES / path.stat().st_size)
    number = 0
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if len(line) >= MIN_PARAGRAPH_CHARACTERS:
                chunk.append(line.strip())
            if len(chunk) == PARAGRAPHS_PER_CHUNK:
                number += 1
                if int(number * share) > int((number - 1) * share):
                    yield chunk
                chunk = []
    if chunk:
        yield chunk


def encode_paragraphs(
    paragraphs: Sequence[str], first: int, word_ids: dict[str, int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Word ids, words per sentence and paragraph per sentence; new words get the next ids."""
    sentences, numbers = [], []
    for number, paragraph in enumerate(paragraphs, start=first):
        spans = find_elements(paragraph)
        sentences += [paragraph[start:end] for start, end in spans]
        numbers += [number] * len(spans)
    tokens = tokenize_elements(sentences)

    def find_id(word: str) -> int:
        stem = stem_topic_word(word)
        return word_ids.setdefault(normalize_number(stem), len(word_ids)) if stem else -1

    ids = tokens.map_vocabulary(find_id)[tokens.ids]
    lengths = np.bincount(tokens.element_ids[ids >= 0], minlength=len(sentences))
    return ids[ids >= 0].astype(np.int32), lengths, np.array(numbers)


def keep_frequent_words(corpus: Corpus) -> tuple[Corpus, np.ndarray]:
    """Words in order of falling frequency, cut to the vocabulary size, and their counts.

    Ids of words outside of the vocabulary stay, but have no word.
    """
    counts = np.bincount(corpus.ids, minlength=len(corpus.words))
    order = np.argsort(-counts, kind="stable")
    ranks = np.empty(len(order), np.int32)
    ranks[order] = np.arange(len(order))
    size = min(VOCABULARY_SIZE, int((counts >= MIN_WORD_COUNT).sum()))
    words = [corpus.words[index] for index in order[:size]]
    ids = ranks[corpus.ids]
    print(f"{len(ids):,} words, {(ids < size).mean():.1%} of them in a vocabulary of {size:,}")
    return Corpus(words, ids, corpus.lengths, corpus.paragraphs), counts[order[:size]]


def count_cooccurrences(corpus: Corpus) -> sparse.csr_matrix:
    """How often each word occurs with each context word in a window of sentences.

    A window counts less the longer it is.
    """
    size, count = len(corpus.words), len(corpus.lengths)
    begins = np.append(True, np.diff(corpus.paragraphs) != 0)
    index = np.arange(count)
    position = index - np.maximum.accumulate(np.where(begins, index, 0))
    windows = np.cumsum(begins | (position % WINDOW_SENTENCES == 0)) - 1
    known = corpus.ids < size
    rows = np.repeat(windows, corpus.lengths)[known]
    matrix = sparse.csr_matrix(
        (np.ones(len(rows), np.float32), (rows, corpus.ids[known])), shape=(windows[-1] + 1, size)
    )
    matrix.data = np.minimum(matrix.data, 2)
    totals = np.asarray(matrix.sum(axis=1)).ravel()
    counts = sparse.csr_matrix((size, min(CONTEXT_WORDS, size)), dtype=np.float32)
    for first in range(0, matrix.shape[0], WINDOWS_PER_CHUNK):
        chunk = slice(first, first + WINDOWS_PER_CHUNK)
        scale = 1 / np.sqrt(np.maximum(totals[chunk], 1))
        weighted = matrix[chunk].multiply(scale[:, None]).tocsr().astype(np.float32)
        counts = counts + weighted.T @ weighted[:, :CONTEXT_WORDS]
    counts.setdiag(0)
    counts.data[counts.data < MIN_COOCCURRENCE] = 0
    counts.eliminate_zeros()
    return counts.tocsr()


def factorize(counts: sparse.csr_matrix, width: int) -> np.ndarray:
    """Word vectors from the positive pointwise mutual information, (words, width)."""
    word_totals = np.asarray(counts.sum(axis=1)).ravel()
    context_shares = np.asarray(counts.sum(axis=0)).ravel() ** CONTEXT_POWER
    context_shares /= context_shares.sum()
    entries = counts.tocoo()
    expected = word_totals[entries.row] * context_shares[entries.col]
    information = np.log(np.maximum(entries.data, 1e-9) / expected)
    matrix = sparse.csr_matrix(
        (np.maximum(information, 0).astype(np.float32), (entries.row, entries.col)), entries.shape
    )
    left, values, _ = randomized_svd(matrix, width, n_iter=4, random_state=0)
    return (left * np.sqrt(values)).astype(np.float32)


def add_prefixes(
    words: list[str], vectors: np.ndarray, counts: np.ndarray
) -> tuple[list[str], np.ndarray]:
    """Table with initial weights, and entries of the prefixes that most words share."""
    families: dict[str, list[int]] = {}
    for row, word in enumerate(words):
        if len(word) > PREFIX_LETTERS and word[0] != "#":
            families.setdefault(word[:PREFIX_LETTERS], []).append(row)
    prefixes = sorted(families, key=lambda prefix: -len(families[prefix]))[:PREFIX_COUNT]
    means = np.stack(
        [
            np.average(vectors[families[prefix]], axis=0, weights=np.sqrt(counts[families[prefix]]))
            for prefix in prefixes
        ]
    )
    weights = FREQUENCY_SCALE / (FREQUENCY_SCALE + counts / counts.sum())
    table = np.concatenate(
        [scale_rows(vectors) * weights[:, None], scale_rows(means) * PREFIX_WEIGHT]
    )
    return [*words, *(f"{prefix}*" for prefix in prefixes)], table.astype(np.float32)


def scale_rows(vectors: np.ndarray) -> np.ndarray:
    """Rows of length 1; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 1e-6, norms, 1)


@dataclass
class SectionedDocument:
    """Sentences of a document as ids of words."""

    ids: np.ndarray
    sentence_starts: np.ndarray
    """Index in `ids` of the first word of each sentence, and the number of words."""
    part_starts: np.ndarray
    """Index of the first sentence of each part, and the number of sentences."""


def read_documents(paths: Sequence[Path], words: Sequence[str]) -> list[SectionedDocument]:
    """Documents with two or more parts of two or more sentences."""
    row_by_word = {word: row for row, word in enumerate(words)}

    def find_word_row(word: str) -> int:
        stem = stem_topic_word(word)
        return find_row(row_by_word, stem) if stem else -1

    documents = []
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            parts = [
                [
                    text[start:end]
                    for text in part["paragraphs"]
                    for start, end in find_elements(text)
                ]
                for part in json.loads(line)["parts"]
            ]
            parts = [sentences for sentences in parts if len(sentences) >= 2]
            if len(parts) < 2:
                continue
            tokens = tokenize_elements([sentence for part in parts for sentence in part])
            rows = tokens.map_vocabulary(find_word_row)[tokens.ids]
            counts = np.bincount(tokens.element_ids[rows >= 0], minlength=len(tokens))
            documents.append(
                SectionedDocument(
                    rows[rows >= 0],
                    np.concatenate([[0], np.cumsum(counts)]),
                    np.concatenate([[0], np.cumsum([len(part) for part in parts])]),
                )
            )
    return documents


class PassagePairs:
    """Random pairs of passages of the same part."""

    def __init__(self, documents: Sequence[SectionedDocument], seed: int) -> None:
        self.documents, self.rng = documents, np.random.default_rng(seed)

    def draw_batch(self) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Word ids of both passages of each pair."""
        pairs: list[tuple[np.ndarray, np.ndarray]] = []
        while len(pairs) < BATCH_PASSAGES:
            document = self.documents[self.rng.integers(len(self.documents))]
            parts = self.rng.permutation(len(document.part_starts) - 1)[:PARTS_PER_DOCUMENT]
            pairs += [pair for part in parts if (pair := self._draw_pair(document, part))]
        first, second = zip(*pairs[:BATCH_PASSAGES], strict=True)
        return list(first), list(second)

    def _draw_pair(
        self, document: SectionedDocument, part: int
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Two passages of a part that do not overlap; None if the draw does not succeed."""
        low, high = document.part_starts[part : part + 2]
        size = min(int(self.rng.integers(1, MAX_PASSAGE_SENTENCES + 1)), (high - low) // 2)
        starts = self.rng.integers(low, high - size + 1, 2)
        if abs(starts[0] - starts[1]) < size:
            return None
        first, second = (
            document.ids[document.sentence_starts[start] : document.sentence_starts[start + size]]
            for start in starts
        )
        return (first, second) if len(first) and len(second) else None


def tune_vectors(
    vectors: np.ndarray, documents: Sequence[SectionedDocument], epochs: float
) -> np.ndarray:
    """Contrastive learning: the vectors after training."""
    torch.manual_seed(0)
    validation = documents[::VALIDATION_SHARE]
    training = [document for index, document in enumerate(documents) if index % VALIDATION_SHARE]
    table = torch.nn.EmbeddingBag.from_pretrained(
        torch.from_numpy(vectors.copy()), freeze=False, mode="sum"
    )
    log_scale = torch.nn.Parameter(torch.tensor(2.3))
    groups = [
        {"params": table.parameters(), "lr": LEARNING_RATE},
        {"params": [log_scale], "lr": 10 * LEARNING_RATE},
    ]
    optimizer = torch.optim.Adam(groups, betas=(0.9, 0.99))
    parts = sum(len(document.part_starts) - 1 for document in training)
    steps = max(1, round(epochs * parts / BATCH_PASSAGES))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / steps)
    pairs = PassagePairs(training, seed=0)

    def compute_loss(pairs: PassagePairs) -> torch.Tensor:
        first, second = (embed(table, passages) for passages in pairs.draw_batch())
        logits = first @ second.T * log_scale.exp()
        target = torch.arange(len(logits))
        return (
            functional.cross_entropy(logits, target) + functional.cross_entropy(logits.T, target)
        ) / 2

    for step in range(steps):
        loss = compute_loss(pairs)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % max(1, steps // 8) == 0 or step == steps - 1:
            held_out = PassagePairs(validation, seed=1)
            with torch.no_grad():
                losses = [compute_loss(held_out).item() for _ in range(10)]
            print(f"step {step} of {steps}: held-out loss {np.mean(losses):.3f}", flush=True)
    return table.weight.detach().numpy()


def embed(table: torch.nn.EmbeddingBag, passages: Sequence[np.ndarray]) -> torch.Tensor:
    """Vectors of passages, scaled to length 1."""
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids in passages[:-1]])])
    sums = table(torch.from_numpy(np.concatenate(passages)), torch.from_numpy(starts))
    return functional.normalize(sums, dim=1)


def main() -> None:
    """Read the corpora, count, factorize, tune, write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", type=Path, help="folder that corpora.py wrote")
    parser.add_argument("--out", type=Path, default=WORD_VECTORS_FILE)
    parser.add_argument(
        "--leave-out", nargs="*", default=[], metavar="DOMAIN", help="domains that are not read"
    )
    parser.add_argument("--epochs", type=float, default=EPOCHS, help="passes over the sections")
    options = parser.parse_args()
    start = time.perf_counter()
    texts = list_files(options.corpora, "plain/*.txt", options.leave_out)
    files = list_files(options.corpora, "*/*.jsonl", options.leave_out)
    if not texts or not files:
        parser.error(f"{options.corpora} has no plain/*.txt and DOMAIN/*.jsonl: run corpora.py")
    corpus, counts = keep_frequent_words(read_corpus(texts))
    vectors = factorize(count_cooccurrences(corpus), WIDTH)
    words, vectors = add_prefixes(corpus.words, vectors, counts)
    documents = read_documents(files, words)
    print(f"{len(documents):,} documents with sections; {time.perf_counter() - start:.0f} s so far")
    vectors = tune_vectors(vectors, documents, options.epochs)
    is_saved = [row < SAVED_WORDS or word.endswith("*") for row, word in enumerate(words)]
    words = [word for word, saved in zip(words, is_saved, strict=True) if saved]
    save_word_vectors(options.out, words, vectors[is_saved])
    size = options.out.stat().st_size / 1e6
    print(
        f"{options.out}: {len(words):,} vectors, {size:.1f} MB, {time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
