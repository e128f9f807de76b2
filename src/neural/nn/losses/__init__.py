"""Losses, one file each."""

from neural.core.registry import Registry
from neural.language.loss import Loss

registry = Registry(__name__, Loss, noun="loss", spelling="file")
