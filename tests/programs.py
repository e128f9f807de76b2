"""Programs that several tests share, and functions that check them."""

from neural.language.check import CheckResult, check
from neural.language.network import Network
from neural.optim.catalogue import CATALOGUE

CLASSIFIER = """
# Which of five kinds is this sequence?
network Classifier {
  input: (13, 12)
  layers:
    TransformerEncoder(num_heads=3, d_model=12, dff=17) * 2
    GlobalAveragePooling1D()
    Output(5, activation="softmax")

  loss: "sparse_categorical_crossentropy"
  optimizer: Adam(learning_rate=0.001)
}
"""

LANGUAGE_MODEL = """
network LanguageModel {
  input: (11,)
  layers:
    Embedding(input_dim=19, output_dim=12)
    TransformerDecoder(num_heads=2, d_model=12, dff=17) * 2
    Dense(19, activation="softmax")
  loss: "sparse_categorical_crossentropy"
  optimizer: AdamW(learning_rate=CosineDecay(3e-4, 1000, warmup_steps=100))
}
"""

TRANSLATOR = """
network Translator {
  input: (11, 12)   # the second number is the width after the embedding
  layers:
    Embedding(input_dim=19, output_dim=12, pad_id=0)
    TransformerEncoder(num_heads=2, d_model=12, dff=17) * 2
    TransformerDecoder(num_heads=2, d_model=12, dff=17) * 2
    Dense(19, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}
"""


def check_text(text: str, **options) -> CheckResult:
    """Check a program against the built-in catalogue."""
    return check(text, CATALOGUE, **options)


def load_network(text: str, **options) -> Network:
    """The only network of a program; fails with its errors."""
    result = check_text(text, **options)
    assert not result.errors, [error.message for error in result.errors]
    (network,) = result.networks
    return network
