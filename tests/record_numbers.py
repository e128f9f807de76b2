"""Golden recording: what a refactoring must not change, with fixed seeds and one thread.

    python -m tests.record_numbers before.json                      trains and asks; some minutes
    python -m tests.record_numbers after.json
    python -m tests.record_numbers --compare before.json after.json [--renamed names.json] [--tolerance 1e-9]

Recorded are the final weights and all rows of six trainings, the answers of every command that prints
JSON, the data of the pages, exported files, figures, and the help of every verb. Run folders are read by
their file formats (SQLite, safetensors), not through the package, so that it still works after names in
the package have changed. `names.json` maps old keys to new ones.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import itertools
import json
import math
import os
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from safetensors.numpy import load_file

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
TRAININGS = {
    "language_model": [
        EXAMPLES / "language_model/tiny.yaml",
        *("--set", "training.steps=120", "--set", "training.keep_checkpoints=1000"),
        *("--set", "training.checkpoint_every=40"),
    ],
    "segmentation": [EXAMPLES / "demo/segmenter.yaml"],
    "digits": [EXAMPLES / "digits.yaml", "--set", "training.steps=120"],
    "captions": [EXAMPLES / "focus/captions.yaml", "--set", "training.steps=100"],
    "table": ["plants.csv", "--set", "training.steps=60"],
}
"""Name of the run → arguments of `neural train`."""
COMPARISON = EXAMPLES / "demo/focus.yaml"
CONCURRENT_COMMANDS = 2
MAX_LIST_LENGTH = 64
"""Longer lists of plain values are recorded as a digest."""
PATHS = re.compile(r"(?<![\w<])(/[\w.+-]+)+|\d{4}-\d\d-\d\d[_T ]\d\d[-:]\d\d[-:]\d\d[\d.+:Z]*")
"""Folders and start times, which differ from one recording to the next."""
TIMES = re.compile(
    r"second(?!_)|(?<!le)time(?!ns)|(\b|_)ms\b|took|began|begun|heartbeat|speed|per_s|\bage\b|pid|"
    r"started|finished_at|host|version|commit|environment|memory",
    re.IGNORECASE,
)
"""Keys of durations and of facts about the machine."""
TIME_TEXTS = re.compile(
    r"\d[\d,.]* ?(ms|s|min|h|steps/s|MB|kB)\b|\d+:\d\d\b|\d+ (second|minute|hour|day)s?"
)
WORDS = ["the", "cat", "dog", "sat", "saw", "on", "mat", "rug", "and", "a"]
PATCHING_PAIRS = {
    "characters": ("for example, th", "for exbmple, th", "e", "o"),
    "words": ("the cat sat on the mat and the", "the dog sat on the mat and the", "cat", "dog"),
}


def digest(data: bytes) -> str:
    """16 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()[:16]


# ── Inputs ───────────────────────────────────────────────────────────────────


def write_documents(folder: Path) -> None:
    """200 texts of three topics each: plain, with paragraphs, as Markdown and as HTML."""
    sentences = {
        name: re.split(r"(?<=\.)\s+", re.sub(r"\s+", " ", text))[:40]
        for name, text in sorted(topics.items())
    }
    names = [name for name, parts in sentences.items() if len(parts) >= 12]
    rng = random.Random(0)
    folder.mkdir()
    for index in range(200):
        parts = []
        for name in rng.sample(names, 3):
            start = rng.randrange(len(sentences[name]) - 8)
            parts.append((name, " ".join(sentences[name][start : start + rng.randint(4, 8)])))
        kind = index % 4
        if kind == 0:
            text, suffix = " ".join(part for _, part in parts), "txt"
        elif kind == 1:
            text, suffix = "\n\n".join(part for _, part in parts), "txt"
        elif kind == 2:
            text, suffix = "\n\n".join(f"## {name}\n\n{part}" for name, part in parts), "md"
        else:
            body = "".join(f"<h2>{name}</h2>\n<p>{part}</p>\n" for name, part in parts)
            text, suffix = f"<html><body>\n{body}</body></html>\n", "html"
        (folder / f"{index:03d}.{suffix}").write_text(text, encoding="utf-8")


def write_table(path: Path) -> None:
    """A table with numbers, categories, empty cells and a class."""
    rng = random.Random(1)
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["height", "width", "colour", "plant"])
        for _ in range(240):
            plant = rng.choice(["oak", "pine", "rose"])
            height = rng.gauss({"oak": 20, "pine": 25, "rose": 1}[plant], 4)
            width = rng.gauss({"oak": 15, "pine": 6, "rose": 1}[plant], 3)
            colour = rng.choice(["green", "red"] if plant == "rose" else ["green", "brown"])
            rows.writerow(
                [f"{height:.2f}", f"{width:.2f}" if rng.random() > 0.1 else "", colour, plant]
            )


def write_models(folder: Path) -> None:
    """Three tiny Hugging Face models of different families, and a text for them."""
    import torch
    import transformers

    from tests.hugging_face_folders import build_gpt2, save_folder, train_tokenizer

    tokenizer, pairs = train_tokenizer(), train_tokenizer(pair_template=True)
    save_folder(folder / "gpt2", build_gpt2(tokenizer), tokenizer)
    save_folder(folder / "gpt2_other", build_gpt2(tokenizer, layers=3), tokenizer)
    sizes: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "max_position_embeddings": 64,
    }
    torch.manual_seed(1)
    llama = transformers.LlamaConfig(**sizes, num_key_value_heads=2, bos_token_id=2, eos_token_id=3)
    save_folder(folder / "llama", transformers.LlamaForCausalLM(llama).eval(), tokenizer)
    bert = transformers.BertConfig(**sizes, num_labels=3)
    save_folder(folder / "bert", transformers.BertForSequenceClassification(bert).eval(), pairs)
    save_folder(folder / "encoder", transformers.BertModel(bert).eval(), pairs)
    rng = random.Random(2)
    text = "\n".join(" ".join(rng.choices(WORDS, k=30)) for _ in range(40))
    (folder / "words.txt").write_text(text, encoding="utf-8")
    lines = [
        " ".join(rng.choices(WORDS, k=6)) + "\t" + " ".join(rng.choices(WORDS, k=6))
        for _ in range(12)
    ]
    (folder / "sentences.tsv").write_text("\n".join(lines), encoding="utf-8")


def write_pairs(folder: Path) -> None:
    """Pairs for `neural patch`: characters for a run, words for a model, texts for an encoder."""
    rng = random.Random(3)
    for name, (clean, corrupted, answer, wrong) in PATCHING_PAIRS.items():
        rows = []
        for _ in range(6):
            lead = rng.choice(WORDS) if name == "words" else rng.choice("abcdefgh")
            rows.append(
                {
                    "clean": f"{lead} {clean}",
                    "corrupted": f"{lead} {corrupted}",
                    "answer": answer,
                    "wrong": wrong,
                }
            )
        data = {"metric": "logit_difference", "pairs": rows}
        (folder / f"{name}.yaml").write_text(json.dumps(data), encoding="utf-8")
    texts = [("cat " + " ".join(rng.choices(WORDS, k=7)), "dog") for _ in range(6)]
    rows = [
        {"clean": text, "corrupted": f"{word} " + text.split(" ", 1)[1]} for text, word in texts
    ]
    (folder / "texts.yaml").write_text(json.dumps({"pairs": rows}), encoding="utf-8")


def write_inputs(folder: Path) -> None:
    """All files that the commands read."""
    from tests.studies import write_study

    write_documents(folder / "documents")
    write_table(folder / "plants.csv")
    write_models(folder)
    write_pairs(folder)
    write_study(folder)
    rng = np.random.default_rng(4)
    np.savez(folder / "bags.npz", segments=rng.random((12, 10, 64), dtype=np.float32))
    sweep = (
        f"experiment: {EXAMPLES / 'digits.neural'}\nseeds: [0, 1, 2]\n"
        "grid: {training.learning_rate: [1e-3, 3e-3]}\nset: [training.steps=30]\n"
    )
    (folder / "rates.yaml").write_text(sweep, encoding="utf-8")


# ── What is asked ────────────────────────────────────────────────────────────


def list_questions() -> dict[str, list[str]]:
    """Name → words of every command whose answer is recorded; `{run}` stands for a run's path."""
    text = ["--data", "words.txt", "--examples", "8", "--length", "24"]
    probe = "the cat sat on the mat and the dog saw the cat on the rug"
    sentence = ["--input", probe, "--input", "a dog and a cat sat on a mat and saw the dog"]
    questions: dict[str, list[str]] = {}

    def ask(name: str, *words: str) -> None:
        questions[name] = list(words)

    for model in ("gpt2", "llama", "bert"):
        ask(f"watch {model}", "watch", model, *sentence, "--json")
        ask(f"watch {model}, page", "watch", model, *sentence, "-o", f"watch_{model}.html")
        ask(
            f"attribute {model}",
            "attribute",
            model,
            "--input",
            probe,
            "--faithfulness",
            "--examples",
            "3",
            "--json",
        )
    for method in ("mean", "zero", "resample"):
        ask(f"ablate {method}", "ablate", "gpt2", *text, "--method", method, "--json")
    for pattern in ("uniform", "diagonal", "previous", "average"):
        words = ["--method", "pattern", "--pattern", pattern, "--no-pairs", "--json"]
        ask(f"ablate pattern {pattern}", "ablate", "llama", *text, *words)
    ask(
        "ablate encoder",
        "ablate",
        "encoder",
        "--data",
        "sentences.tsv",
        "--objective",
        "cosine",
        "--json",
    )
    ask("ablate run", "ablate", "{language_model}", "--examples", "8", "--over-training", "--json")
    ask("ablate digits", "ablate", "{digits}", "--examples", "16", "--json")
    ask(
        "patch model",
        "patch",
        "gpt2",
        "words.yaml",
        "--paths",
        "--sweep",
        "heads",
        "--sweep",
        "residual",
        "--json",
    )
    ask("patch run", "patch", "{language_model}", "characters.yaml", "--paths", "--json")
    ask("patch encoder", "patch", "encoder", "texts.yaml", "--objective", "cosine", "--json")
    ask(
        "attribute run",
        "attribute",
        "{language_model}",
        "--input",
        "The statement",
        "--faithfulness",
        "--examples",
        "3",
        "--json",
    )
    ask("compare models", "compare", "gpt2", "gpt2_other", "--probe", probe, "--json")
    ask("compare runs", "compare", "{language_model}", "{digits}", "--json")
    ask("compare sweep", "compare", "rates", "--json")
    ask("segment", "segment", "documents", "--json")
    ask("segment budget", "segment", "documents", "--max-tokens", "60", "--overlap", "8", "--json")
    ask("segment sizes", "segment", "documents", "--min", "3", "--max", "12", "--json")
    ask("segment words", "segment", "documents", "--ignore-layout", "--json")
    ask("segment run", "segment", "documents", "--run", "{segmentation}", "--json")
    ask("segment page", "segment", "documents/002.md", "--format", "html", "--out", "segments.html")
    for run in TRAININGS:
        ask(f"show {run}", "show", f"{{{run}}}", "--json")
        ask(f"analyze {run}", "analyze", f"{{{run}}}", "--claims", "--json")
        ask(f"evaluate {run}", "evaluate", f"{{{run}}}", "--json")
        ask(f"report {run}", "report", f"{{{run}}}", "-o", f"{run}.html")
    ask("evaluate focus", "evaluate", "{focus}", "--json")
    ask("report focus", "report", "{comparison}", "-o", "focus.html")
    ask("report sweep", "report", "{sweep}", "-o", "sweep.html")
    ask("predict segmentation", "predict", "{segmentation}", "documents/001.txt", "--json")
    ask("predict table", "predict", "{table}", "plants.csv", "--json")
    ask("predict focus", "predict", "{focus}", "bags.npz", "--json")
    ask("caption", "caption", "{captions}", "--pictures", "5", "--json")
    ask("generate", "generate", "{language_model}", "--tokens", "120", "--samples", "2", "--json")
    ask(
        "generate greedy",
        "generate",
        "{language_model}",
        "--prompt",
        "The ",
        "--temperature",
        "0",
        "--weights",
        "float32",
        "--json",
    )
    ask("theory", "dynamics", "--theory", "C=3", "m=10", "--measure", "--json")
    ask("dynamics", "dynamics", "{comparison}", "--json")
    ask("runs", "runs", "--json")
    ask(
        "debug",
        "debug",
        "{language_model}",
        "--attention-weights",
        "--gradients",
        "--dead-heads",
        "--anomalies",
    )
    for form, file in (("torch", "net.pt2"), ("onnx", "net.onnx"), ("huggingface", "exported")):
        ask(f"export {form}", "export", "{language_model}", "--to", form, "-o", file, "--json")
    for kind in ("heads", "head", "lines", "roles", "curves"):
        ask(
            f"figure {kind}",
            "figure",
            "{language_model}",
            "--kind",
            kind,
            "-o",
            f"{kind}.svg",
            "--json",
        )
    for program in sorted(EXAMPLES.rglob("*.neural")):
        ask(f"check {program.relative_to(EXAMPLES)}", "check", str(program), "--json")
    for experiment in sorted(EXAMPLES.rglob("*.yaml")):
        if "patching" not in experiment.parts:
            ask(f"check {experiment.relative_to(EXAMPLES)}", "check", str(experiment))
    for topic in ("", "role", "E0203", "TRN007", "entropy"):
        ask(f"explain {topic}".strip(), "explain", *topic.split())
    return questions


# ── Answers ──────────────────────────────────────────────────────────────────


def clean(answer: Any) -> Any:
    """An answer without paths, durations and facts about the machine; long lists as digests."""
    if isinstance(answer, dict):
        return {
            PATHS.sub("…", key): clean(value)
            for key, value in answer.items()
            if not TIMES.search(key)
        }
    if isinstance(answer, list):
        cleaned = [clean(value) for value in answer]
        is_plain = not any(isinstance(value, dict) for value in cleaned)
        if is_plain and len(json.dumps(cleaned)) > 20 * MAX_LIST_LENGTH:
            return {"length": len(cleaned), "digest": digest(json.dumps(cleaned).encode())}
        return cleaned
    if isinstance(answer, str):
        text = TIME_TEXTS.sub("…", PATHS.sub("…", answer))
        return text if len(text) <= 2000 else {"length": len(text), "digest": digest(text.encode())}
    return answer


def read_answer(text: str) -> Any:
    """JSON, JSON lines, or the lines of a text."""
    try:
        return clean(json.loads(text))
    except ValueError:
        pass
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    try:
        return {f"line {index}": clean(json.loads(line)) for index, line in enumerate(lines)}
    except ValueError:
        return [clean(line) for line in lines]


def read_page(path: Path) -> Any:
    """The data of a page, or the text of a page without data."""
    html = path.read_text(encoding="utf-8")
    data = re.search(r'id="neural-data">(.*?)</script>', html, re.DOTALL)
    return clean(json.loads(data[1])) if data else digest(PATHS.sub("…", html).encode())


def read_file(path: Path) -> Any:
    """Digests of what a file or folder contains."""
    if path.is_dir():
        return {file.name: read_file(file) for file in sorted(path.iterdir()) if file.is_file()}
    if path.suffix == ".html":
        return read_page(path)
    if path.suffix == ".onnx":
        import onnx

        weights = [tensor.raw_data for tensor in onnx.load(path).graph.initializer]
        return sorted(map(digest, weights))
    if path.suffix == ".pt2":
        with zipfile.ZipFile(path) as archive:
            weights = [name for name in archive.namelist() if "/weights/" in name]
            return sorted(digest(archive.read(name)) for name in weights)
    if path.suffix in (".md", ".py"):  # they name the run, which begins with its start
        return digest(PATHS.sub("…", path.read_text(encoding="utf-8")).encode())
    return digest(path.read_bytes())


def read_run(path: Path) -> dict[str, Any]:
    """Digests of a run's last weights and of all rows that were measured, except times."""
    checkpoint = max((path / "checkpoints").glob("*.safetensors"))
    rows = sqlite3.connect(f"file:{path / 'rows.sqlite'}?mode=ro", uri=True)
    query = "SELECT names.name, step, {} FROM {} JOIN names ON names.id = {}.name ORDER BY 1, 2"
    scalars: dict[str, list] = {}
    arrays: dict[str, list] = {}
    for name, step, value in rows.execute(query.format("value", "scalars", "scalars")):
        scalars.setdefault(name, []).append((step, value))
    for name, step, data in rows.execute(query.format("data", "arrays", "arrays")):
        arrays.setdefault(name, []).append((step, digest(data)))
    rows.close()
    return {
        # names of parameters may change, so the tensors are compared as a set
        "weights": sorted(digest(tensor.tobytes()) for tensor in load_file(checkpoint).values()),
        "scalars": {name: values for name, values in scalars.items() if not TIMES.search(name)},
        "arrays": arrays,
    }


# ── Recording ────────────────────────────────────────────────────────────────


@dataclass
class Recording:
    """Runs commands in one folder and collects what they give."""

    folder: Path
    paths: dict[str, Path] = field(default_factory=dict)
    """Name of a run → its folder."""
    numbers: dict[str, Any] = field(default_factory=dict)

    def run(self, *words: str | Path, may_fail: bool = False) -> str:
        """What `neural WORDS` prints; of a command that may fail, also its message."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "100"}
        environment["HF_HUB_OFFLINE"] = "1"
        command = [sys.executable, "-m", "neural", *map(str, words)]
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        if not done.returncode:
            return done.stdout
        if may_fail and done.returncode == 2:
            return f"{done.stdout}{done.stderr}\nexit code 2"
        raise SystemExit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")

    def train(self) -> None:
        """Train everything that the questions are about."""
        runs = self.folder / "runs"
        for name, words in TRAININGS.items():
            self.run("train", *words, "--name", name)
            (self.paths[name],) = runs.glob(f"*_{name}")
            self.numbers[f"run {name}"] = read_run(self.paths[name])
        self.run("dynamics", COMPARISON, "--workers", "2")
        self.run("sweep", "rates.yaml", "--workers", "2")
        self.numbers["study"] = read_answer(
            self.run("study", "evolve.yaml", "--json", "--workers", "2")
        )
        (self.paths["comparison"],) = runs.glob("*_focus")
        (self.paths["sweep"],) = runs.glob("*_rates")
        for name in ("comparison", "sweep"):
            for path in sorted(self.paths[name].iterdir()):
                if (path / "rows.sqlite").exists():
                    self.numbers[f"run {name} {PATHS.sub('', path.name)}"] = read_run(path)
        trials = [path for path in self.paths["comparison"].iterdir() if "lvml" in path.name]
        self.paths["focus"] = min(path for path in trials if path.is_dir())
        self.numbers["calibrate"] = read_answer(
            self.run("calibrate", self.paths["segmentation"], "--json")
        )

    def ask(self, name: str, words: list[str]) -> None:
        """Record the answer of one command, and the files that it writes."""
        written = [
            self.folder / word
            for flag, word in itertools.pairwise(words)
            if flag in ("-o", "--out")
        ]
        # experiments on data that this machine does not have
        may_fail = words[0] == "check"
        filled = (word.format(**self.paths) if "{" in word else word for word in words)
        text = self.run(*filled, may_fail=may_fail)
        self.numbers[name] = read_answer(text)
        for path in written:
            self.numbers[f"{name} › {path.name}"] = read_file(path)
        print(name, file=sys.stderr)

    def read_help(self) -> None:
        """Record the help of every verb."""
        listing = self.run("--help")
        self.numbers["help"] = listing.splitlines()
        for verb in re.findall(r"^  ([a-z]+)  ", listing, re.MULTILINE):
            self.numbers[f"help {verb}"] = self.run(verb, "--help").splitlines()


def record() -> dict[str, Any]:
    """All numbers."""
    with tempfile.TemporaryDirectory() as temporary:
        recording = Recording(Path(temporary))
        write_inputs(recording.folder)
        recording.train()
        questions = list_questions()
        errors = []
        # pages show evaluations and importance, which other commands write
        for are_pages in (False, True):
            with ThreadPoolExecutor(CONCURRENT_COMMANDS) as pool:
                answers = [
                    pool.submit(recording.ask, name, words)
                    for name, words in questions.items()
                    if (words[0] == "report") == are_pages
                ]
                errors += [str(error) for answer in answers if (error := answer.exception())]
        if errors:
            raise SystemExit("\n\n".join(errors))
        recording.read_help()
        return dict(sorted(recording.numbers.items()))


def flatten(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Leaves of nested data with their paths."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flatten(inner, f"{path} › {key}" if path else str(key))
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for index, inner in enumerate(value):
            yield from flatten(inner, f"{path} › {index}")
    else:
        yield path, value


def rename(value: Any, names: dict[str, str]) -> Any:
    """The same data with renamed keys."""
    if isinstance(value, dict):
        return {names.get(key, key): rename(inner, names) for key, inner in value.items()}
    return [rename(inner, names) for inner in value] if isinstance(value, list) else value


def is_close(first: Any, second: Any, tolerance: float) -> bool:
    """Whether two values are equal, or numbers that differ by at most this relative error."""
    if isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        return all(is_close(a, b, tolerance) for a, b in zip(first, second, strict=True))
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=tolerance)
    return first == second


def compare(before: dict, after: dict, tolerance: float = 0) -> int:
    """Print every difference; the number of them."""
    old, new = dict(flatten(before)), dict(flatten(after))
    differences = [
        path
        for path in sorted(old.keys() | new.keys())
        if not is_close(old.get(path), new.get(path), tolerance)
    ]
    for path in differences:
        print(f"{path}\n  before {str(old.get(path))[:160]}\n  after  {str(new.get(path))[:160]}")
    print(f"{len(differences)} of {len(old)} values differ")
    return len(differences)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", nargs="?", type=Path, help="where the numbers go")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--renamed", type=Path, help="JSON: old keys and their new names")
    parser.add_argument("--tolerance", type=float, default=0, help="relative, of numbers")
    arguments = parser.parse_args()
    if arguments.compare:
        before, after = (json.loads(path.read_text(encoding="utf-8")) for path in arguments.compare)
        names = (
            json.loads(arguments.renamed.read_text(encoding="utf-8")) if arguments.renamed else {}
        )
        return int(compare(rename(before, names), after, arguments.tolerance) > 0)
    if arguments.out is None:
        parser.error("where to? name a file, or --compare two")
    arguments.out.write_text(json.dumps(record(), indent=1, ensure_ascii=False), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
