"""One call of every command, for tests on other systems and in odd or read-only folders.

    python every_command.py

The commands run in the current folder, which `write_files` has filled. For each of them a line
`exit CODE: COMMAND` is printed. `NEURAL_TEST_OUTPUT` names another folder for what they write.
"""

from __future__ import annotations

import json
import os
import shlex
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
COMMANDS = """
check small.neural
fmt --check small.neural
compile small.neural --out {output}/small.py
train small.neural --runs {output}/runs --quiet
train text.yaml --runs {output}/runs --quiet
train songs.yaml --runs {output}/runs --quiet
sweep rates.yaml --runs {output}/runs
runs --runs {output}/runs
show Small --runs {output}/runs
top Small --runs {output}/runs --once
compare Small --runs {output}/runs Text
analyze Small --runs {output}/runs
report Small --runs {output}/runs --out {output}/report.html
figure Small --runs {output}/runs --kind curves --out {output}/curves.svg
debug Small --runs {output}/runs --out {output}/heads.html
evaluate Small --runs {output}/runs
predict Small data.npz --runs {output}/runs --out {output}/predicted.csv
calibrate Songs --runs {output}/runs
ablate Small --runs {output}/runs
export Small --runs {output}/runs --to torch --out {output}/small.pt2
export Small --runs {output}/runs --to huggingface --out {output}/folder
generate Text --runs {output}/runs --tokens 9
attribute Text --runs {output}/runs --input "The sea is"
patch Text pairs.yaml --runs {output}/runs
watch Text --input "The sea is" --runs {output}/runs
segment text.txt --out {output}/parts.json
import encoder.pt --as nn.TransformerEncoder --set num_heads=2 --runs {output}/runs
new kindling --into {output}
layers
explain E0203
schema language_model
completion bash
doctor
"""
"""One call per line, in an order in which each finds what it needs. {output} is a folder."""
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
    """The words of each call; `output` is the folder that they write to."""
    lines = COMMANDS.strip().splitlines()
    # the folder is inserted after the split: it may contain spaces
    return [[word.replace("{output}", output) for word in shlex.split(line)] for line in lines]


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
