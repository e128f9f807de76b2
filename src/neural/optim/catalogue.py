"""The built-in catalogue: layers, losses and optimizers that `.neural` programs can name."""

from __future__ import annotations

from neural.language.catalogue import Catalogue
from neural.nn.layers import registry as layers
from neural.nn.losses import registry as losses
from neural.optim.optimizers import registry as optimizers

CATALOGUE = Catalogue(layers=layers, losses=losses, optimizers=optimizers)
