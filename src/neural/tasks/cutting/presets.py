"""Segmenters ready to train: the published configurations, and one each for articles and songs.

The published ones describe an element by self-similarities with all others (36, 48 or 60 numbers) and meet the
published parameter counts exactly: 2,755,842, 446,466, 479,491 and 87,939.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar

from neural.core.settings import Settings

Preset = Literal[
    "document_self", "document_localized", "document_boundary_aware", "document_small", "articles", "songs"
]
Kind = TypeVar("Kind", bound=Settings)

_PUBLISHED = {
    "batch_size": 24, "learning_rate": 4e-4, "scheduler": "cosine", "label_smoothing": 0.1, "entropy_lambda": 0.08,
    "boundary_lambda": 0.0, "patience": 20, "epochs": 25.0,
}  # fmt: skip
_MEDIUM = {"hidden_dim": 128, "num_layers": 1, "attention_heads": 8, "attention_dim": 256, "attention_dropout": 0.15}
_OURS = {"batch_size": 16, "learning_rate": 1e-3, "scheduler": "cosine", "clip_norm": 1.0, "epochs": 10.0}

PRESETS: dict[Preset, dict[str, Any]] = {
    "document_self": {
        "features": 60, "training": _PUBLISHED,
        "model": {
            "hidden_dim": 256, "num_layers": 2, "attention_type": "self", "attention_heads": 8, "attention_dim": 256,
            "attention_dropout": 0.15, "positional_encoding": False,
        },
    },
    "document_localized": {
        "features": 48, "training": _PUBLISHED, "model": {**_MEDIUM, "attention_type": "localized", "window_size": 7},
    },
    "document_boundary_aware": {
        "features": 48, "training": {**_PUBLISHED, "boundary_lambda": 0.2},
        "model": {**_MEDIUM, "attention_type": "boundary_aware"},
    },
    "document_small": {
        "features": 36, "training": {**_PUBLISHED, "boundary_lambda": 0.2},
        "model": {
            "hidden_dim": 64, "num_layers": 1, "attention_type": "boundary_aware", "attention_heads": 4,
            "attention_dim": 64, "attention_dropout": 0.15,
        },
    },
    "articles": {
        "features": "articles", "elements": "sentences", "training": _OURS,
        "model": {
            "hidden_dim": 64, "num_layers": 1, "dropout": 0.3, "attention_type": "localized", "window_size": 15,
            "attention_heads": 4, "attention_dim": 64, "attention_dropout": 0.1,
        },
    },
    "songs": {
        "features": "songs", "elements": "lines", "training": _OURS,
        "model": {
            "hidden_dim": 64, "num_layers": 1, "dropout": 0.3, "attention_type": "self", "attention_heads": 4,
            "attention_dim": 64, "attention_dropout": 0.1,
        },
    },
}  # fmt: skip


def with_preset(settings: Kind, preset: Preset | None) -> Kind:
    """The same settings with the preset's values where nothing was said."""
    return settings if preset is None else _filled(settings, PRESETS[preset])


def _filled(settings: Kind, values: dict[str, Any]) -> Kind:
    said: dict[str, Any] = {name: getattr(settings, name) for name in settings.model_fields_set}
    for name, value in values.items():
        section = getattr(settings, name)
        if isinstance(section, Settings) and isinstance(value, dict):
            said[name] = _filled(section, value)
        elif name == "epochs" and said.get("steps") is not None:
            continue   # how long was said another way
        else:
            said.setdefault(name, value)
    kind: type[Kind] = type(settings)
    return kind.model_validate(said)
