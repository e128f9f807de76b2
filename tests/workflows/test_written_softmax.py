"""`ablate`, `attribute` and `patch` of a model whose own code computes its weights by a softmax."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import neural
from neural.core.errors import TaskError


class Mixing(nn.Module):
    def __init__(self, is_written: bool) -> None:
        super().__init__()
        self.is_written, self.qkv, self.out = is_written, nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = (y.unflatten(-1, (4, 4)).transpose(1, 2) for y in self.qkv(x).chunk(3, dim=-1))
        if self.is_written:
            scores = (q @ k.mT / 2).masked_fill(torch.ones(x.shape[1:2] * 2).triu(1) > 0, -1e9)
            z = torch.softmax(scores, dim=-1) @ v
        else:
            z = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(z.transpose(1, 2).flatten(2))


class Model(nn.Module):
    def __init__(self, is_written: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(23, 16), nn.Linear(16, 23)
        self.layers = nn.ModuleList(Mixing(is_written) for _ in range(2))

    def forward(self, ids):
        x = self.embedding(ids)
        for layer in self.layers:
            x = x + layer(x)
        return self.head(x)


def ablate(model, **options):
    ids = torch.randint(23, (4, 9), generator=torch.Generator().manual_seed(3))
    batches = [{"x": ids[:, :-1], "y": ids[:, 1:]}]

    def objective(model, batch):
        logits = model(batch["x"]).transpose(1, 2)
        return functional.cross_entropy(logits, batch["y"], reduction="none")

    options |= {"objective": objective, "batches": batches, "pairs": False}
    return neural.ablate(model, **options).last.change


def attribute(model, **options):
    result = neural.attribute(model, [3, 1, 4, 1, 5], methods=["rollout"], **options)
    return np.concatenate([result.removed_heads.ravel(), result.scores["rollout"]])


def patch(model, **options):
    pair = {"clean": [3, 1, 4], "corrupted": [3, 2, 4], "answer": 5, "wrong": 6}
    return neural.patch(model, [pair], null=False, **options)["heads"].restored


@pytest.mark.parametrize("measure", [ablate, attribute, patch])
def test_a_written_softmax_gives_the_values_of_the_fused_function(measure):
    expected = measure(Model(is_written=False))
    assert np.abs(expected).max() > 0.01
    assert measure(Model(is_written=True), softmax=True) == pytest.approx(expected, 1e-4, 1e-5)


@pytest.mark.parametrize("measure", [ablate, attribute, patch])
def test_without_the_option_the_message_names_it(measure):
    name = measure.__name__
    with pytest.raises(TaskError, match=rf"`layers.0` looks like attention: softmax=True.*{name}"):
        measure(Model(is_written=True))
