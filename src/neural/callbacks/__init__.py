"""Tracking of attention in the training loops of other libraries, one module per library.

from neural.callbacks.huggingface import NeuralCallback     transformers.Trainer
from neural.callbacks.lightning import NeuralCallback       lightning.pytorch.Trainer
"""
