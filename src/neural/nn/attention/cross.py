"""Cross-attention (Bahdanau et al., 2015; Vaswani et al., 2017): queries of another sequence."""

from __future__ import annotations

from neural.nn.attention.self import Self


class Cross(Self):
    """Scaled dot-product attention to the keys of another sequence; the formula of `Self`."""
