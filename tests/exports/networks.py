"""Small networks to export; all sizes differ, so that a swapped axis is noticed."""

import torch

import neural
from neural.nn.attention import registry as attention
from neural.nn.positions import registry as positions
from neural.tasks.segmentation.model import AttentionBlock, Segmenter
from neural.workflows.export_bundle import create_bundle

CHARACTERS = "\n !abcdefghij"
WRITER = f"""network Writer {{
  input: (16,)
  layers:
    Embedding(input_dim={len(CHARACTERS)}, output_dim=12)
    TransformerDecoder(num_heads=2, d_model=12, dff=17, attention="sparsemax")
    Output({len(CHARACTERS)}, activation="softmax", tied=true)
  loss: "sparse_categorical_crossentropy"
}}
"""


def build_perturbed(build):
    """A model with fixed random noise on all weights and buffers.

    Norms, biases and running means start at 0 or 1, where confusing them would not be noticed.
    """
    torch.manual_seed(0)
    model = build()
    buffers = [buffer for buffer in model.buffers() if buffer.is_floating_point()]
    with torch.no_grad():
        for tensor in (*model.parameters(), *buffers):
            tensor.add_(0.3 * torch.rand_like(tensor))
    return model.eval()


def network(text, name="net", **options):
    return create_bundle(build_perturbed(neural.parse(text).build), name, **options)


def writer(**options):
    return network(WRITER, "writer", metadata={"vocabulary": list(CHARACTERS)}, **options)


def segmenter(mechanism="self", **options):
    def build():
        block = AttentionBlock(
            6, 4, 2, attention.get(mechanism)(), position=positions.get("sinusoidal")()
        )
        return Segmenter(5, 3, hidden_dim=3, num_layers=1, attention=block)

    metadata = {"labels": ["verse", "chorus", "bridge"]}
    return create_bundle(build_perturbed(build), "segmenter", metadata=metadata, **options)
