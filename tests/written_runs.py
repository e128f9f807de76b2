"""Run folders of language models with random weights, as training writes them."""

import torch

import neural
from neural.runs.run import Run

CHARACTERS = "\n !abcdefghij"
CONTEXT = 16


def program(ids, *, context=CONTEXT, attention="self"):
    return f"""network Small {{
  input: ({context},)
  layers:
    Embedding(input_dim={ids}, output_dim=12)
    TransformerDecoder(num_heads=2, d_model=12, dff=17, attention="{attention}") * 2
    Output({ids}, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}
"""


def write_run(
    root, name="small", *, text=None, vocabulary=None, settings=None, has_checkpoint=True
):
    """Write a run without rows; returns its path."""
    text = text or program(len(CHARACTERS))
    settings = settings or {"task": "language_model", "name": name}
    run = Run.create(root, name, settings=settings, program=text, environment={})
    if vocabulary is not None:
        run.set_metadata("vocabulary", vocabulary)
    torch.manual_seed(0)
    weights = neural.parse(text).build().state_dict()
    if has_checkpoint:
        tensors = {f"model.{name}": 2 * tensor for name, tensor in weights.items()}
        run.save(3, tensors, {}, best=True)
    run.finish("finished")
    return run.path
