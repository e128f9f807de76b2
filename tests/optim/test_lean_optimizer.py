"""Optimizers train, save and load without importing torch's compiler."""

import subprocess
import sys

import torch

from neural.optim.lean_optimizer import lean_class

SCRIPT = """
import sys, torch
from neural.optim.optimizers import registry

for name in registry.names():
    weights = [torch.nn.Parameter(torch.randn(4, 3)) for _ in range(3)]
    declared = registry.get(name).example()
    for optimizer in declared.build([(f"layer{i}.weight", w) for i, w in enumerate(weights)]):
        for weight in weights:
            weight.grad = torch.randn(4, 3)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        optimizer.load_state_dict(optimizer.state_dict())
assert not weights[0].grad_fn
assert "torch._dynamo" not in sys.modules
"""


def test_no_optimizer_imports_the_compiler():
    subprocess.run([sys.executable, "-c", SCRIPT], check=True)


def test_steps_equal_those_of_torch():
    results = []
    for optimizer_class in (torch.optim.AdamW, lean_class(torch.optim.AdamW)):
        torch.manual_seed(0)
        weight = torch.nn.Parameter(torch.randn(5, 3))
        optimizer = optimizer_class([weight], lr=0.1)
        for _ in range(3):
            weight.grad = torch.randn(5, 3)
            optimizer.step()
        results.append(weight.detach())
        assert type(optimizer).__name__ == "AdamW"
    assert torch.equal(*results)
