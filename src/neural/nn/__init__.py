"""From a checked `.neural` program (language/network.py: Network) to a torch module.

layers/               one file per layer: arguments, output shape, cost, torch module
attention/            one file per attention mechanism: `weights` defines it, `attend` is fast
positions/            one file per positional encoding
losses/               one file per loss
kernels/              operators with native loops (neural.native), imported at first use
source_export/        Network → a standalone Python file that needs torch alone
build.py              Network → nn.Module
attend.py             attention as a function: `neural.attend`
generation.py         text generation; with sampling.py, kv_cache.py, compiled_decoder.py
lazy_torch.py         stand-ins for torch, nn and nn.Module that import torch at first use
"""
