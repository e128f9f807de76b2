"""Cross-attention (Bahdanau et al., 2015; Vaswani et al., 2017): keys of another sequence.

The decoder block passes queries and keys of different sequences; the formula is that of `Self`.
"""

from __future__ import annotations

from neural.nn.attention.self import Self


class Cross(Self):
    """Scaled dot-product attention to the keys of another sequence."""
