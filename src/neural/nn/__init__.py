"""Network → torch.

layers/               one file per layer: arguments, shape, cost, module
attention/            one file per mechanism: `weights` defines it, `attend` computes it fast
positions/            one file per positional encoding
losses/               one file per loss
kernels/              compiled kernels, imported at their first use
source_export/        Network → a standalone Python file that needs torch alone
build.py              Network → nn.Module
attend.py             attention as a function: `neural.attend`
generation.py         text generation; with sampling.py, kv_cache.py, compiled_decoder.py
lazy_torch.py         torch, imported at its first use
"""
