"""What `neural.intervene` can change: heads, patterns, MLPs, layers, the residual stream.

    from neural import interventions

    with neural.intervene(model, interventions.zero("L1 h3"), interventions.skip_layer(2)):
        model(ids)

Public as `neural.interventions`; docs/interventions.md explains them. The definitions are in
neural.capture: interventions.py for heads, blocks.py for the rest.
"""

from __future__ import annotations

from neural.capture.blocks import (
    find_blocks,
    patch_mlp,
    patch_residual,
    record_mlp_outputs,
    record_residual,
    replace_mlp_by_mean,
    skip_layer,
    zero_mlp,
)
from neural.capture.interventions import (
    HeadOutputs,
    InterventionError,
    patch,
    replace_by_mean,
    replace_pattern,
    scale,
    zero,
)

__all__ = [
    "HeadOutputs",
    "InterventionError",
    "find_blocks",
    "patch",
    "patch_mlp",
    "patch_residual",
    "record_mlp_outputs",
    "record_residual",
    "replace_by_mean",
    "replace_mlp_by_mean",
    "replace_pattern",
    "scale",
    "skip_layer",
    "zero",
    "zero_mlp",
]
