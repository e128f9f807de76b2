"""Weights to start a training from: those of the shipped segmenter, or of a saved one.

    initial: shipped          in an experiment; or the path of a `.json` file of `save_pipeline`

Features, model and elements that the experiment does not set are those of the saved segmenter. If
it sets others, all tensors of equal name and shape are loaded; of the first layer, which has a
column per feature, those of the features that both have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from neural.core.errors import TaskError
from neural.core.files import expand_home
from neural.nn.lazy_torch import torch
from neural.tasks.segmentation.feature_cache import FeatureNames, list_columns
from neural.tasks.segmentation.model import Segmenter
from neural.tasks.segmentation.pipeline import SHIPPED_SEGMENTER, read_saved_weights
from neural.tasks.segmentation.settings import SegmentationSettings, fill_missing

SHIPPED = "shipped"
"""Name of the segmenter that comes with the package."""
INPUT_TENSORS = ("mean", "std", "lstm.cell.weight_ih_l0", "lstm.cell.weight_ih_l0_reverse")
"""Tensors of a model whose last axis has a column per feature."""
FILLED_SETTINGS = ("features", "elements", "model")
"""Settings of the saved segmenter that replace missing ones."""


@dataclass(frozen=True)
class InitialWeights:
    """Weights of a saved segmenter."""

    name: str
    """Used in messages."""
    settings: SegmentationSettings
    """Its settings, without those of the training."""
    tensors: Mapping[str, np.ndarray]

    def fill_settings(self, settings: SegmentationSettings) -> SegmentationSettings:
        """Settings with features, model and elements of the saved segmenter where none are set."""
        saved = self.settings.model_dump(include=set(FILLED_SETTINGS))
        return fill_missing(settings, saved)

    def load_into(self, model: Segmenter, features: FeatureNames) -> None:
        """Copy the weights into a model with these features. TaskError if they do not fit."""
        columns, saved_columns = list_columns(features), list_columns(self.settings.features)
        shared = [column for column in columns if column in saved_columns]
        here = [columns.index(column) for column in shared]
        there = [saved_columns.index(column) for column in shared]
        state = model.state_dict()
        for name in self.list_matching(model, features):
            values = torch.from_numpy(np.asarray(self.tensors[name], np.float32))
            if name in INPUT_TENSORS:
                state[name][..., here] = values[..., there]
            else:
                state[name].copy_(values)

    def list_matching(self, model: Segmenter, features: FeatureNames) -> list[str]:
        """Names of the tensors that fit a model, which may be on the device `meta`.

        TaskError if those of the first layer do not: the others would read unknown inputs.
        """
        shared = set(list_columns(features)) & set(list_columns(self.settings.features))
        state = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
        matching = []
        for name in state.keys() & self.tensors.keys():
            shape, saved_shape = state[name], self.tensors[name].shape
            axes = slice(None, -1 if name in INPUT_TENSORS else None)
            if len(shape) == len(saved_shape) and shape[axes] == saved_shape[axes]:
                matching.append(name)
        if not shared or not set(matching).issuperset(INPUT_TENSORS):
            raise TaskError(
                f"initial: the weights of {self.name} do not fit this model; leave out `features` "
                f"and `model`, or set them as it has them: {_describe_sizes(self.settings)}"
            )
        return sorted(matching)

    def describe(self, model: Segmenter, features: FeatureNames) -> str:
        """How much of a model starts from these weights, as a note for the user."""
        columns, saved_columns = list_columns(features), set(list_columns(self.settings.features))
        shared = sum(column in saved_columns for column in columns)
        tensors, names = model.state_dict(), self.list_matching(model, features)
        note = f"starts from {self.name}, which has weights for {shared} of {len(columns)} inputs"
        missing = len(tensors) - len(names)
        return f"{note}; {missing} of {len(tensors)} tensors do not fit" if missing else note


def load_initial_weights(initial: str, folder: Path) -> InitialWeights:
    """Weights that the setting `initial` names; a path is relative to `folder`."""
    path = SHIPPED_SEGMENTER if initial == SHIPPED else folder / expand_home(initial)
    if path.suffix != ".json" or not path.exists():
        raise TaskError(
            f"initial: there is no segmenter {initial}; write `shipped`, or the path of a .json "
            "file that `save_pipeline` wrote"
        )
    settings, tensors = read_saved_weights(path)
    name = "the shipped segmenter" if initial == SHIPPED else path.name
    return InitialWeights(name, settings, tensors)


def _describe_sizes(settings: SegmentationSettings) -> str:
    model = settings.model
    return (
        f"hidden_dim {model.hidden_dim}, num_layers {model.num_layers}, "
        f"attention_type {model.attention_type}, attention_dim {model.attention_dim}"
    )
