"""Small causal transformers of different seeds, untrained or trained, with their maps."""

import copy
import math
from functools import lru_cache

import numpy as np
import torch
from torch.nn.functional import cross_entropy, layer_norm

from neural.findings.head_matching import ModelHeads, build_patterns

VOCABULARY, WIDTH, LENGTH = 24, 32, 32


class TinyTransformer(torch.nn.Module):
    """Attention and an MLP per layer, all weights in plain matrices; biases are left out."""

    def __init__(self, seed, layers=2, heads=4, scale=0.7):
        """`scale`: size of the initial projections of queries, keys and values."""
        super().__init__()
        generator = torch.Generator().manual_seed(seed)

        def draw(*shape, std):
            return torch.nn.Parameter(torch.randn(*shape, generator=generator) * std)

        unit = 1 / math.sqrt(WIDTH)
        self.heads = heads
        self.tokens = draw(VOCABULARY, WIDTH, std=1.0)
        self.positions = draw(LENGTH, WIDTH, std=0.5)
        self.layers = torch.nn.ModuleList(
            torch.nn.ParameterDict(
                {
                    "qkv": draw(WIDTH, 3 * WIDTH, std=scale * unit),
                    "output": draw(WIDTH, WIDTH, std=unit),
                    "up": draw(WIDTH, 2 * WIDTH, std=unit),
                    "down": draw(2 * WIDTH, WIDTH, std=unit / math.sqrt(2)),
                }
            )
            for _ in range(layers)
        )
        self.logits = draw(WIDTH, VOCABULARY, std=unit)

    def forward(self, ids, maps=None):
        """Logits (B, T, V); appends the maps (H, T, T) of the first example to `maps`."""
        batch, length = ids.shape
        x = self.tokens[ids] + self.positions[:length]
        is_visible = torch.ones(length, length, dtype=torch.bool).tril()
        for layer in self.layers:
            qkv = normalize(x) @ layer["qkv"]
            q, k, v = (
                part.view(batch, length, self.heads, -1).transpose(1, 2)
                for part in qkv.chunk(3, dim=-1)
            )
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            weights = scores.masked_fill(~is_visible, -torch.inf).softmax(dim=-1)
            if maps is not None:
                maps.append(weights[0].detach().numpy())
            x = x + (weights @ v).transpose(1, 2).reshape(batch, length, -1) @ layer["output"]
            x = x + torch.relu(normalize(x) @ layer["up"]) @ layer["down"]
        return normalize(x) @ self.logits


def normalize(x):
    return layer_norm(x, x.shape[-1:])


@lru_cache
def draw_texts():
    """Sequences of a language with frequent pairs, whose second half repeats the first."""
    draw = np.random.default_rng(5)
    transitions = draw.dirichlet(np.full(VOCABULARY, 0.15), size=VOCABULARY).cumsum(axis=1)
    half = LENGTH // 2
    texts = np.empty((512, half), int)
    texts[:, 0] = draw.integers(VOCABULARY, size=len(texts))
    for position in range(1, half):
        shares = draw.uniform(size=(len(texts), 1))
        texts[:, position] = (shares > transitions[texts[:, position - 1]]).sum(axis=1)
    texts = texts.clip(max=VOCABULARY - 1)
    shifts = draw.integers(0, 4, size=len(texts))
    repeated = [
        np.concatenate([text, text[shift:], text])[:LENGTH]
        for text, shift in zip(texts, shifts, strict=True)
    ]
    return torch.tensor(np.array(repeated))


PROBE = 0
"""Index of the text on which heads are compared; it is not trained on."""


def train(model, steps, seed):
    """Train to predict the next token; the model itself is changed."""
    texts = draw_texts()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(steps):
        batch = texts[torch.randint(1, len(texts), (16,), generator=generator)]
        logits = model(batch)
        loss = cross_entropy(logits[:, :-1].flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model


def list_heads(model, length=LENGTH):
    """Maps of all heads on the probe."""
    maps = []
    with torch.no_grad():
        model(draw_texts()[PROBE : PROBE + 1, :length], maps)
    return ModelHeads.from_layers(maps)


def list_patterns(length=LENGTH):
    texts = [str(token) for token in draw_texts()[PROBE, :length].tolist()]
    visible = np.tri(length, dtype=bool)
    return build_patterns(visible, np.arange(length), texts, [texts] * length)


def permute_heads(model, draw):
    """The same function with the heads of each layer in another order, and the orders."""
    permuted, orders = copy.deepcopy(model), []
    for layer in permuted.layers:
        order = draw.permutation(model.heads)
        orders.append(order.tolist())
        with torch.no_grad():
            qkv = layer["qkv"].view(WIDTH, 3, model.heads, -1)
            qkv.copy_(qkv[:, :, order].clone())
            output = layer["output"].view(model.heads, -1, WIDTH)
            output.copy_(output[order].clone())
    return permuted, orders


def add_low_rank_change(model, layer, head, *, size, seed, rank=2):
    """A copy whose projections of queries and keys of one head have a change of low rank.

    `size`: norm of the change as a share of that of the weights.
    """
    changed = copy.deepcopy(model)
    generator = torch.Generator().manual_seed(seed)
    width = WIDTH // model.heads
    with torch.no_grad():
        for part in (0, 1):
            start = part * WIDTH + head * width
            weights = changed.layers[layer]["qkv"][:, start : start + width]
            change = torch.randn(WIDTH, rank, generator=generator) @ torch.randn(
                rank, width, generator=generator
            )
            weights += size * weights.norm() * change / change.norm()
    return changed
