"""Small trained networks that leave; all sizes differ, so that a swapped axis cannot pass by luck."""

import torch

import neural
from neural.export_inputs import leaving_of
from neural.modules.attention import registry as attention
from neural.modules.positions import registry as positions
from neural.modules.segmenter import LookAround, Segmenter

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


def learned(make):
    """The same every time; norms, biases and running means begin at 0 or 1, where a mix-up would not be seen."""
    torch.manual_seed(0)
    model = make()
    with torch.no_grad():
        for one in (*model.parameters(), *(one for one in model.buffers() if one.is_floating_point())):
            one.add_(0.3 * torch.rand_like(one))
    return model.eval()


def network(text, name="net", **how):
    return leaving_of(learned(neural.parse(text).build), name, **how)


def writer(**how):
    return network(WRITER, "writer", facts={"vocabulary": list(CHARACTERS)}, **how)


def segmenter(mechanism="self", **how):
    def made():
        look = LookAround(6, 4, 2, attention.get(mechanism)(), position=positions.get("sinusoidal")())
        return Segmenter(5, 3, hidden_dim=3, num_layers=1, attention=look)

    return leaving_of(learned(made), "segmenter", facts={"labels": ["verse", "chorus", "bridge"]}, **how)
