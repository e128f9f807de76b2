"""The catalogue that comes with the laboratory: its layers, losses and optimizers."""

from __future__ import annotations

from neural.language.catalogue import Catalogue
from neural.modules.layers import registry as layers
from neural.modules.losses import registry as losses
from neural.training.optimizers import registry as optimizers

CATALOGUE = Catalogue(layers=layers, losses=losses, optimizers=optimizers)
