"""Small valid files of every kind, from which fuzzing starts. Created, not stored."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import pickle
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests import programs as known

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM_WORDS = tuple(
    b'network input layers loss optimizer train ( ) { } [ ] : , = * # " Dense Embedding Output Adam true None '
    b"TransformerEncoder num_heads d_model attention localized 2147483648 1e308".split()
)
YAML_WORDS = (
    b"!!python/object/apply:os.system [x]",
    b"&a [*a]",
    b"*a",
    b"<<: ",
    b"- ",
    b"? ",
    b": ",
    b"|\n ",
    b"%YAML 1.1\n",
    b"---\n",
    b"!!binary ",
    b"{",
    b"}",
    b"task: ",
    b"training:\n  ",
    b'"\\UFFFFFFFF"',
)
JSON_WORDS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b",",
    b":",
    b"null",
    b"true",
    b"1e999",
    b'"\\ud800"',
    b"NaN",
    b"-Infinity",
    b"\n",
    b'"label"',
)
MARKUP_WORDS = tuple(
    b"# ,## ,```,~~~,---,===,| a | b |,|---|,> ,- ,1. ,    ,<h1>,</h1>,<p>,<li>,<pre>,<table>,<td>,"
    b"<script>,</script>,<!--,-->,&amp;,&#x110000;,&#0;,<![CDATA[,<?,\f,\r\n,\n\n".split(b",")
)
NPY_WORDS = (
    b"'descr': '|O'",
    b"(1000000000000,)",
    b"(-1,)",
    b"'<f8'",
    b"'<U999999'",
    b"[('a', '<f8')]",
    b"True",
    b"\x93NUMPY",
    b"PK\x01\x02",
    b"'|V2147483647'",
)
PICKLE_WORDS = (
    b"cos\nsystem\n",
    b"\x8c\x02os\x8c\x06system\x93",
    b"(",
    b"R",
    b"t",
    b"}",
    b"]",
    b"r\xff\xff\xff\x7f",
    b"h\x00",
    b"\x85",
    b"\x86",
    b"2",
    b"b",
    b"\x8e\xff\xff\xff\xff\x00\x00\x00\x00",
)


@cache
def programs() -> list[bytes]:
    """Programs of the tests and the examples."""
    texts = [text for name, text in vars(known).items() if name.isupper() and isinstance(text, str)]
    return [text.encode() for text in texts] + [
        path.read_bytes() for path in sorted(EXAMPLES.glob("**/*.neural"))
    ]


@cache
def snippets() -> list[bytes]:
    """Three lines of programs each: short, so that many are tried."""
    chunks = []
    for lines in (program.splitlines(keepends=True) for program in programs()):
        chunks += [b"".join(lines[start : start + 3]) for start in range(0, len(lines), 3)]
    return chunks


@cache
def experiments() -> list[bytes]:
    """Experiment files."""
    anchors = (
        b'task: supervised\ntraining: &a {steps: 3}\ntracking: {measures: [entropy]}\nname: "n"\n'
    )
    return [anchors, *(path.read_bytes() for path in sorted(EXAMPLES.glob("**/*.yaml")))]


@cache
def songs() -> list[bytes]:
    """Documents with labels and with boundaries."""
    rows = [
        {"name": "a", "lines": ["x y", "z", "é"], "labels": ["verse", "verse", "chorus"]},
        {"lines": ["a", "b"], "boundaries": [1, 0]},
        {"lines": ["a", "b", "c"], "labels": [0, 1, 1]},
        {"title": "t", "lines": ["a", "b", "c"], "boundaries": [2]},
    ]
    return [_to_lines(rows), _to_lines(rows[:1]), _to_lines(rows[2:])]


def articles() -> list[bytes]:
    """Texts with headings and blank lines."""
    text = "# One\n\nFirst sentence. And a second!\n\nTwo\n---\n- item\n- item\n\n```\n# code\n```\n2.1 Three\n\nEnd.\n"
    return [text.encode(), text.encode("utf-16"), b"a\r\n\r\nb\fc\n"]


@cache
def tokens() -> list[bytes]:
    """Texts with rationales, and HateXplain's form."""
    rows = [
        {"tokens": ["you", f"w{at}"], "label": str(at % 2), "rationale": [0, 1]} for at in range(12)
    ]
    votes = [{"label": "hate"}, {"label": "no"}]
    posts = [{"post_tokens": ["a", "b"], "annotators": votes, "rationales": [[0, 1]]}] * 12
    return [_to_lines(rows), _to_lines(posts), json.dumps(posts).encode()]


@cache
def captions() -> list[bytes]:
    """A caption for each of twelve pictures."""
    rows = [{"caption": "a red circle", "picture": at, "regions": [None, 1, 2]} for at in range(12)]
    return [_to_lines(rows), _to_lines([{"caption": ["a", "b"]}] * 12)]


def tables() -> list[bytes]:
    """CSV with and without column names."""
    return [b"a,b,c,d,label\n" + b"1,2,3,4,cat\n0.5,-1,2e3,4,dog\n" * 2, b"1;2;3;4;0\n1;2;3;4;1\n"]


@cache
def npz() -> list[bytes]:
    """Training data, compressed and not, and the result of a focus experiment."""
    x, y = np.arange(8, dtype=np.float32).reshape(2, 4), np.array([0, 1])
    metadata = {
        "run": "r",
        "paradigm": "soft",
        "segments": 3,
        "seed": 0,
        "classes": ["a"],
        "scores": {"s": 0.5},
    }
    about = json.dumps(metadata)
    return [
        _save_to_bytes(np.savez, x=x, y=y),
        _save_to_bytes(np.savez_compressed, x=x, y=y, x_valid=x, y_valid=y),
        _save_to_bytes(np.savez, about=np.array(about), heat=x, shown_x=x),
    ]


@cache
def npy() -> list[bytes]:
    """Floats, integers, strings, Fortran order."""
    arrays = [
        np.arange(8.0).reshape(2, 4),
        np.arange(4),
        np.array(["a", "bc"]),
        np.asfortranarray(np.ones((2, 4))),
    ]
    return [
        _save_to_bytes(lambda out, **named: np.save(out, named["x"]), x=array) for array in arrays
    ]


@cache
def pickles() -> list[bytes]:
    """A batch of two images in several pickle protocols, and the class names."""
    batch = {
        "data": np.zeros((2, 3072), np.uint8),
        "labels": [0, 1],
        "filenames": [b"a.png", b"b.png"],
    }
    return [
        *(pickle.dumps(batch, protocol=protocol) for protocol in (2, 4)),
        pickle.dumps({"label_names": ["cat", b"dog"]}, 2),
    ]


@cache
def archives() -> list[bytes]:
    """CIFAR-10 with one image per file, compressed and not."""
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name in names:
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{name}")
            info.size = 3073
            archive.addfile(info, io.BytesIO(bytes(3073)))
    return [out.getvalue(), gzip.compress(out.getvalue(), mtime=0)]


@cache
def pictures() -> list[bytes]:
    """One of every readable image format, and PostScript."""
    from PIL import Image

    image = Image.fromarray(np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3))
    files = []
    for image_format in ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM"):
        out = io.BytesIO()
        image.save(out, image_format)
        files.append(out.getvalue())
    return [*files, b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\nshowpage\n"]


@cache
def weights() -> list[bytes]:
    """A state dict in torch's format and in safetensors."""
    import safetensors.torch
    import torch

    state, out = {"a": torch.ones(2, 3), "b": torch.zeros(2)}, io.BytesIO()
    torch.save({"model": state, "epoch": 3}, out)
    return [out.getvalue(), safetensors.torch.save(state)]


@cache
def checkpoints() -> list[bytes]:
    """Length of the tensors, tensors, and JSON metadata."""
    tensors = weights()[1]
    metadata = {
        "step": 3,
        "best": True,
        "shared": {"c": "a"},
        "metadata": {"step": 3, "best": {}},
        "tensors": {
            "file": "step-00000003.safetensors",
            "bytes": len(tensors),
            "sha256": hashlib.sha256(tensors).hexdigest(),
        },
    }
    return [len(tensors).to_bytes(4, "little") + tensors + json.dumps(metadata).encode()]


@cache
def maps() -> list[bytes]:
    """Full and causal."""
    from neural.capture.map_encoding import encode_map

    weights = np.random.default_rng(0).dirichlet(np.ones(5), (2, 4)).astype(np.float32)
    return [encode_map(weights), encode_map(weights, causal=True)]


@cache
def calibrations() -> list[bytes]:
    """Of boundaries only."""
    from neural.tasks.segmentation.calibration_selection import (
        CALIBRATION_FILE,
        RunCalibration,
        choose_calibration,
    )

    random = np.random.default_rng(0)
    truth = random.random(60) < 0.3
    margins = truth * 2.0 - 1 + random.normal(size=60)
    chosen = choose_calibration(margins, truth, np.repeat(np.arange(6), 10))
    calibration = RunCalibration(
        weights="step 3", data="six", boundary=chosen, label=None, threshold=0.5, f1=0.7
    )
    with tempfile.TemporaryDirectory() as folder:
        calibration.save(Path(folder))
        return [(Path(folder) / CALIBRATION_FILE).read_bytes()]


@cache
def structured_texts() -> list[bytes]:
    """Markdown, HTML and plain text, with everything that their readers know."""
    markdown = (
        "# One\n\nFirst *sentence*. And a [second](http://x)!\n\n- item\n  - inner\n1. first\n\n"
        "| a | b |\n|---|---|\n| 1 | 2 |\n\n```python\n# code\n```\n\n> quote\n\nTwo\n---\nEnd.\n"
    )
    html = (
        "<!doctype html><html><head><title>T</title><style>p {}</style></head><body><h1>One</h1>"
        "<p>First &amp; second.<br>Third.</p><ul><li>item</li></ul><table><tr><td>1</td></tr>"
        "</table><pre>code\n  code</pre><!-- no --><script>if (1 < 2) {}</script></body></html>"
    )
    plain = "CHAPTER 1\n\nIt was. It is.\n\n   A verse\n   Another\n\n2.1 Next\n\nEnd.\n"
    return [text.encode() for text in (markdown, html, plain)]


def encoded_texts() -> list[bytes]:
    """Texts in every encoding that is recognized."""
    text = "Ein Satz. Noch einer – mit Ümlaut.\n\n日本語。"
    return [
        text.encode(),
        text.encode("utf-8-sig"),
        text.encode("utf-16"),
        text.encode("utf-32"),
        "Ümlaut".encode("latin-1"),
    ]


@cache
def text_rows() -> list[bytes]:
    """JSON lines with a text."""
    return [_to_lines([{"text": "One. Two."}, {"text": "é", "id": 3}])]


def references() -> list[bytes]:
    """Segments between separators."""
    return [b"==========\none\ntwo\n==========\nthree\n==========\n"]


@cache
def guesses() -> list[bytes]:
    """A table, lines of JSON and a text."""
    rows = b"".join(b"%d,%d,cat\n%d,%d,dog\n" % (at, at % 3, -at, at % 5) for at in range(20))
    return [b"size,age,label\n" + rows, songs()[0] + b"\n" + songs()[0], b"# One\n\ntext. " * 40]


@cache
def pairs() -> list[bytes]:
    """Pairs of texts and of token ids."""
    files = [path.read_bytes() for path in sorted((EXAMPLES / "patching").glob("*.yaml"))]
    ids = b"metric: loss\npairs:\n  - {clean: [1, 2], corrupted: [1, 3], answer: 4}\n"
    return [*files, ids]


def studies() -> list[bytes]:
    """Studies of the examples."""
    folder = EXAMPLES / "language_model"
    return [path.read_bytes() for path in sorted(folder.glob("evolution*.yaml"))]


@cache
def importances() -> list[bytes]:
    """With pairs and classes, and without."""
    from neural.runs.importance_file import IMPORTANCE_FILE
    from tests.importance_files import write_importance_file

    files = []
    with tempfile.TemporaryDirectory() as folder:
        change = np.full((2, 2, 3), 0.1)
        for options in ({}, {"classes": {"a": change}, "pairs": [((0, 0), (1, 1), 0.3)]}):
            write_importance_file(Path(folder), change, **options)
            files.append((Path(folder) / IMPORTANCE_FILE).read_bytes())
    return files


@cache
def evaluations() -> list[bytes]:
    """Scores as numbers, and as intervals with tables."""
    scores = {"version": 1, "time": 1.5, "sections": [], "evaluation": {"scores": {"f1": 0.5}}}
    table = {"title": "t", "text": "x", "table_head": ["a", "b"], "table_rows": [["x", 1.5]]}
    interval = {"value": 0.5, "low": 0.4, "high": 0.6}
    intervals = {
        **scores,
        "sections": [table],
        "evaluation": {"data": "six", "rows": {"model": {"f1": interval, "pk": None}}},
    }
    return [json.dumps(saved).encode() for saved in (scores, intervals)]


@cache
def segmenters() -> list[bytes]:
    """A small saved segmenter: length of the weights, weights, JSON."""
    from neural.optim.catalogue import CATALOGUE
    from neural.tasks.segmentation.calibration.none import None_
    from neural.tasks.segmentation.pipeline import save_pipeline
    from neural.tasks.segmentation.task import Segmentation

    with tempfile.TemporaryDirectory() as folder:
        task = Segmentation.example(Path(folder), CATALOGUE)
        path = save_pipeline(Path(folder), task.settings, task.build(), None_(), 0.4, name="saved")
        weights_file = path.with_suffix(".safetensors").read_bytes()
        return [len(weights_file).to_bytes(4, "little") + weights_file + path.read_bytes()]


@cache
def word_vectors() -> list[bytes]:
    """Four words."""
    from neural.tasks.segmentation.word_vectors import WIDTH_MULTIPLE, save_word_vectors

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "vectors.safetensors"
        vectors = np.random.default_rng(0).normal(size=(4, WIDTH_MULTIPLE))
        save_word_vectors(path, ["one", "two", "é", "0"], vectors)
        return [path.read_bytes()]


@cache
def tokenizers() -> list[bytes]:
    """A tokenizer of words."""
    vocabulary = {"[UNK]": 0, "one": 1, "two": 2}
    return [
        json.dumps(
            {
                "version": "1.0",
                "added_tokens": [],
                "pre_tokenizer": {"type": "Whitespace"},
                "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"},
            }
        ).encode()
    ]


def model_configs() -> list[bytes]:
    """A model and an adapter."""
    configs = [{"model_type": "gpt2", "n_layer": 2}, {"base_model_name_or_path": "gpt2"}]
    return [json.dumps(config).encode() for config in configs]


def _to_lines(rows: list[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, rows)).encode()


def _save_to_bytes(save: Any, **arrays: np.ndarray) -> bytes:
    out = io.BytesIO()
    save(out, **arrays)
    return out.getvalue()
