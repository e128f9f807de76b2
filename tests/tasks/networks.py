"""Small networks for tests of data: one line of layers each."""

from neural.language.network import Network
from tests.programs import network

CLASSIFY = 'loss: "sparse_categorical_crossentropy"'


def made(input_shape: str, layers: str, loss: str = CLASSIFY, more: str = "") -> Network:
    """A network from its parts."""
    return network(program(input_shape, layers, loss, more))


def program(input_shape: str, layers: str, loss: str = CLASSIFY, more: str = "") -> str:
    """Its text."""
    lines = "\n".join(f"    {layer}" for layer in layers.split(" | "))
    return f"network Small {{\n  input: {input_shape}\n  layers:\n{lines}\n  {loss}\n  {more}\n}}\n"


DENSE = made("(7,)", 'Output(3, activation="softmax")')
"""Seven features, three classes."""
SEQUENCE = made("(5, 3)", 'Output(2, activation="softmax")')
"""Two classes at each of five positions."""
READER = made(
    "(7,)", 'Embedding(input_dim=11, output_dim=4) | GlobalAveragePooling1D() | Output(3, activation="softmax")'
)
"""Seven ids of eleven, three classes."""
LETTERS = made("(16,)", 'Embedding(input_dim=97, output_dim=4, pad_id=0) | Output(97, activation="softmax")')
"""Characters, and the next ones."""
TRANSLATE = made(
    "(None,)",
    "Embedding(input_dim=11, output_dim=4, pad_id=0) | TransformerEncoder(num_heads=2, d_model=4, dff=5) | "
    'TransformerDecoder(num_heads=2, d_model=4, dff=5) | Dense(11, activation="softmax")',
)
"""Two sequences."""
