"""A small sweep for tests: real data and network, one or two seconds per trial after importing torch."""

import numpy as np

PROGRAM = """network Tiny {
  input: (5, 6)
  layers:
    Dense(6)
    GlobalAveragePooling1D()
    Output(3, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=0.01)
  train { data: "tiny.npz" steps: 7 batch_size: 4 }
}
"""


def write_sweep(folder, text):
    """Write a sweep file to `folder`, with its program and data; return its path."""
    random = np.random.default_rng(0)
    x = random.normal(size=(41, 5, 6)).astype(np.float32)
    np.savez(folder / "tiny.npz", x=x, y=x[:, :, :3].mean(axis=1).argmax(axis=1))
    (folder / "tiny.neural").write_text(PROGRAM)
    path = folder / "rates.yaml"
    path.write_text(text)
    return path
