"""Network → torch.

layers/      one file per layer: arguments, shape, cost, module
attention/   one file per mechanism: `weights` defines it, `mix` runs it
positions/   one file per way of telling a transformer where things are
losses/      one file per loss
build.py     Network → nn.Module
export.py    Network → a Python file that needs torch alone
late.py      where torch comes from
"""
