"""One call of every command, for tests on other systems and in odd or read-only folders.

    python every_command.py

The commands run in the current folder, which `write_files` has filled. For each of them a line
`exit CODE: COMMAND` is printed. `NEURAL_TEST_OUTPUT` names another folder for what they write.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

PROGRAM = """network Small {
  input: (5, 6)
  layers:
    Dense(8)
    TransformerEncoder(num_heads=2, d_model=8, dff=11)
    GlobalAveragePooling1D()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.01)

  train {
    data: "data.npz"
    steps: 4
    batch_size: 4
  }
}
"""
TEXT_PROGRAM = """network Text {
  input: (16,)
  layers:
    Embedding(input_dim=20, output_dim=8)
    TransformerDecoder(num_heads=2, d_model=8, dff=11)
    Output(20, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.01)
  train { steps: 3 batch_size: 2 }
}
"""
LANGUAGE_MODEL = """task: language_model
network: text.neural
data: text.txt
"""
SEGMENTER = """task: segmentation
name: Songs
data: songs.jsonl
elements: lines
features: [word_overlap, shape]
model: {hidden_dim: 3, num_layers: 1, attention_heads: 1, attention_dim: 4}
training: {batch_size: 4, steps: 3}
"""
PAIRS = """pairs:
  - {clean: "The sea is", corrupted: "Bread is b", answer: " ", wrong: "."}
  - {clean: "The sky is", corrupted: "Bread is b", answer: " ", wrong: "."}
"""
NOT_CALLED = {
    "bench": "runs files of a checkout",
    "board": "serves until it is stopped; has tests of its own",
    "caption": "needs a captioning run, which trains for minutes",
    "dynamics": "trains for minutes",
    "lsp": "serves an editor until it is stopped; has tests of its own",
    "study": "trains for minutes",
}
"""Commands without a call here, and why."""


def list_commands(output: str) -> list[list[str]]:
    """The calls, in an order in which each finds what it needs."""
    runs = f"{output}/runs"
    network = ["Small", "--runs", runs]
    text_model = ["Text", "--runs", runs]
    return [
        ["check", "small.neural"],
        ["fmt", "--check", "small.neural"],
        ["compile", "small.neural", "--out", f"{output}/small.py"],
        ["train", "small.neural", "--runs", runs, "--quiet"],
        ["train", "text.yaml", "--runs", runs, "--quiet"],
        ["train", "songs.yaml", "--runs", runs, "--quiet"],
        ["sweep", "rates.yaml", "--runs", runs],
        ["runs", "--runs", runs],
        ["show", *network],
        ["top", *network, "--once"],
        ["compare", *network, "Text"],
        ["analyze", *network],
        ["report", *network, "--out", f"{output}/report.html"],
        ["figure", *network, "--kind", "curves", "--out", f"{output}/curves.svg"],
        ["debug", *network, "--out", f"{output}/heads.html"],
        ["evaluate", *network],
        ["predict", "Small", "data.npz", "--runs", runs, "--out", f"{output}/predicted.csv"],
        ["calibrate", "Songs", "--runs", runs],
        ["ablate", *network],
        ["export", *network, "--to", "torch", "--out", f"{output}/small.pt2"],
        ["export", *network, "--to", "huggingface", "--out", f"{output}/folder"],
        ["generate", *text_model, "--tokens", "9"],
        ["attribute", *text_model, "--input", "The sea is"],
        ["patch", "Text", "pairs.yaml", "--runs", runs],
        ["watch", "Text", "--input", "The sea is", "--runs", runs],
        ["segment", "text.txt", "--out", f"{output}/parts.json"],
        ["import", "encoder.pt", "--as", "nn.TransformerEncoder", "--set", "num_heads=2",
         "--runs", runs],
        ["new", "kindling", "--into", output],
        ["layers"],
        ["explain", "E0203"],
        ["schema", "language_model"],
        ["completion", "bash"],
        ["doctor"],
    ]  # fmt: skip


def write_files(folder: Path) -> None:
    """Write the files that the commands read."""
    import numpy as np
    import torch

    random = np.random.default_rng(0)
    x = random.normal(size=(41, 5, 6)).astype(np.float32)
    np.savez(folder / "data.npz", x=x, y=x[:, :, :3].mean(axis=1).argmax(axis=1))
    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(8, 2, 11, batch_first=True), 1
    )
    torch.save(encoder.state_dict(), folder / "encoder.pt")
    sentences = "The sea is cold. The sea is deep.\nThe sky is blue.\nBread is baked.\n\n" * 30
    songs = [
        json.dumps({"lines": [f"sea {n}"] * n + [f"bread {n}"] * 3, "boundaries": [n]}) + "\n"
        for n in range(2, 14)
    ]
    for name, text in {
        "small.neural": PROGRAM,
        "text.neural": TEXT_PROGRAM,
        "text.yaml": LANGUAGE_MODEL,
        "songs.yaml": SEGMENTER,
        "songs.jsonl": "".join(songs),
        "pairs.yaml": PAIRS,
        "rates.yaml": "experiment: small.neural\nseeds: [0]\n",
        "text.txt": sentences,
    }.items():
        (folder / name).write_text(text, encoding="utf-8")


def main() -> None:
    from neural.cli.main import main as run_command

    for words in list_commands(os.environ.get("NEURAL_TEST_OUTPUT", ".")):
        code: object = 0
        try:
            run_command(words, prog_name="neural")
        except SystemExit as error:
            code = error.code or 0
        print(f"\nexit {code}: {' '.join(words)}", flush=True)


if __name__ == "__main__":
    sys.argv[1:] = []
    main()
