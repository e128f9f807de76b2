"""Small networks for tests of data and tasks, each written as one line of layers."""

from neural.language.network import Network
from tests.programs import load_network

CLASSIFY = 'loss: "sparse_categorical_crossentropy"'


def build_network(
    input_shape: str, layers: str, loss: str = CLASSIFY, extra_lines: str = ""
) -> Network:
    """A checked network of these layers."""
    return load_network(program(input_shape, layers, loss, extra_lines))


def program(input_shape: str, layers: str, loss: str = CLASSIFY, extra_lines: str = "") -> str:
    """The program text of such a network; layers are separated by ` | `."""
    lines = "\n".join(f"    {layer}" for layer in layers.split(" | "))
    body = f"  input: {input_shape}\n  layers:\n{lines}\n  {loss}\n  {extra_lines}"
    return f"network Small {{\n{body}\n}}\n"


DENSE = build_network("(7,)", 'Output(3, activation="softmax")')
"""Seven features, three classes."""
SEQUENCE = build_network("(5, 3)", 'Output(2, activation="softmax")')
"""Two classes at each of five positions."""
READER = build_network(
    "(7,)",
    "Embedding(input_dim=11, output_dim=4) | GlobalAveragePooling1D() | "
    'Output(3, activation="softmax")',
)
"""Seven ids of eleven, three classes."""
LETTERS = build_network(
    "(16,)", 'Embedding(input_dim=97, output_dim=4, pad_id=0) | Output(97, activation="softmax")'
)
"""Characters, and the next ones."""
TRANSLATE = build_network(
    "(None,)",
    "Embedding(input_dim=11, output_dim=4, pad_id=0) | "
    "TransformerEncoder(num_heads=2, d_model=4, dff=5) | "
    'TransformerDecoder(num_heads=2, d_model=4, dff=5) | Dense(11, activation="softmax")',
)
"""Two sequences."""
