"""What a network takes from a batch: its inputs, and which positions are not padding.

A batch has tensors by name: `x`, for an encoder-decoder `source` and `target`; the labels `y`; and
masks, which are False for padding (data/dataset.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from neural.data.input_checks import get_pad_id
from neural.language.network import Network
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

    from neural.tasks.task import Batch


def get_model_inputs(network: Network, batch: Batch) -> tuple[Tensor | None, ...]:
    """Arguments of the model for a batch."""
    if network.is_encoder_decoder:
        return batch["source"], batch["target"], batch.get("mask"), batch.get("target_mask")
    return batch["x"], batch.get("mask")


def find_real_positions(
    network: Network, batch: Batch, *, predicts_target_tokens: bool
) -> Tensor | None:
    """True for positions that are not padding, by the mask and the network's `pad_id`.

    None if there is neither. `predicts_target_tokens`: the labels of an encoder-decoder are the
    tokens of `target`, shifted by one.
    """
    pad = get_pad_id(network)
    ids_name, mask_name = ("target", "y_mask") if network.is_encoder_decoder else ("x", "mask")
    ids_name = "y" if predicts_target_tokens else ids_name
    if pad is None:
        return batch.get(mask_name)
    is_real = torch.ne(batch[ids_name], pad)
    return is_real & batch[mask_name] if mask_name in batch else is_real


def find_real_predictions(
    network: Network,
    batch: Batch,
    position_shape: tuple[int, ...],
    *,
    predicts_target_tokens: bool,
) -> Tensor | None:
    """True for predictions that are not padding; None if there is no padding.

    Also None if the network does not predict at every position. `position_shape` is the shape of
    the predictions of an example, without the units.
    """
    mask = find_real_positions(network, batch, predicts_target_tokens=predicts_target_tokens)
    is_per_position = mask is not None and mask.shape == (len(batch["y"]), *position_shape)
    return mask if is_per_position else None
