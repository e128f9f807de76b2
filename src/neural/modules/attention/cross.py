"""Cross-attention (Bahdanau et al., 2015; Vaswani et al., 2017): one sequence looks at another."""

from __future__ import annotations

from neural.modules.attention.self import Self


class Cross(Self):
    """The softmax of scaled dot products over the keys of another sequence: the same formula, other keys."""
