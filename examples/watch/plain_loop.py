"""A plain training loop with `neural.track`: heads find their roles while a small model learns.

    python examples/watch/plain_loop.py [STEPS]
    neural report plain_loop        the slider over all snapshots, measures, findings

A text repeats 4 to 12 random letters: the rest is what followed the same letters before.
"""

import sys

import torch
from torch import Tensor, nn
from torch.nn import functional

import neural

LETTERS, LENGTH, WIDTH, HEADS = "abcdefghijklmnop", 24, 32, 2


class Reader(nn.Embedding):
    def forward(self, ids: Tensor) -> Tensor:
        return super().forward(ids) + self.weight[-LENGTH:]  # the last rows are those of positions


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.qkv, self.output = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        heads = self.qkv(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        attended = functional.scaled_dot_product_attention(*heads, is_causal=True)
        return x + self.output(attended.transpose(1, 2).flatten(2))


def write_texts(count: int) -> Tensor:
    """Token ids (count, LENGTH); the period of each text is another."""
    periods = torch.randint(4, 13, (count, 1))
    return torch.rand(count, len(LETTERS)).argsort(1).gather(1, torch.arange(LENGTH) % periods)


steps = int(sys.argv[1]) if len(sys.argv) > 1 else 300
torch.manual_seed(0)
reader, output = Reader(len(LETTERS) + LENGTH, WIDTH), nn.Linear(WIDTH, len(LETTERS))
model = nn.Sequential(reader, Block(), Block(), output)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))
probe = write_texts(8)
labels = [[LETTERS[letter] for letter in row] for row in probe.tolist()]
with neural.track(model, probe, every=25, run="runs/plain_loop", labels=labels) as run:
    for _ in range(steps):
        ids = write_texts(64)
        logits = model(ids)[:, 12:-1].transpose(1, 2)  # where the first period is over
        loss = functional.cross_entropy(logits, ids[:, 13:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        run.step(loss=loss)
print(f"loss {loss:.2f}; the run is {run.path.name}")
