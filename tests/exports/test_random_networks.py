"""A sample of the random networks; `python tests/exports/random_networks.py` runs hundreds."""

import pytest
import torch

from tests.exports import random_networks
from tests.exports.networks import writer
from tests.exports.random_networks import FORMATS, Result, compare, random_network, results, table

QUICK = ("compiled", "keras", "huggingface")
SAMPLE = (1, 9, 12, 15, 21, 27, 30, 33, 39, 52, 60, 66, 81)
"""Contains every mechanism of a user, two sequences and windows over time."""
IN_EVERY_FORMAT = (4, 42)


def list_failures(numbers, formats):
    """Results that neither agree nor are refused with a reason."""
    return [
        result
        for result in results(numbers, formats)
        if result.status not in ("agrees", "refused")
        or (result.status == "refused" and not result.message)
    ]


@pytest.mark.filterwarnings("ignore")  # warnings of other packages
@pytest.mark.parametrize("number", SAMPLE)
def test_a_random_network_agrees_or_is_refused_with_a_reason(number):
    assert not list_failures([number], QUICK)


@pytest.mark.filterwarnings("ignore")  # warnings of other packages
@pytest.mark.parametrize("number", IN_EVERY_FORMAT)
def test_a_random_network_agrees_in_every_format(number):
    assert not list_failures([number], FORMATS)


def test_the_sample_contains_the_difficult_layers():
    with random_networks.user_attentions():
        texts = {number: random_network(number)[0] for number in (*SAMPLE, *IN_EVERY_FORMAT)}
    text = "\n".join(texts.values())
    for word in (
        "sharpened",
        "fading",
        "linear(",
        "topk",
        "cross_attention",
        "Conv1D",
        "MaxPooling1D",
        "GRU",
    ):
        assert word in text


def test_a_different_network_is_noticed():
    bundle = writer()
    wrong_calls = {
        "a number": lambda *inputs: bundle(*inputs) + 1e-3,
        "a shape": lambda *inputs: bundle(*inputs)[:, :0],
        "an error": lambda *inputs: torch.zeros(2) @ torch.zeros(3),
        "a NaN": lambda *inputs: bundle(*inputs) * float("nan"),
    }
    for call in wrong_calls.values():
        assert compare(bundle, call, 0, "torch").status == "wrong"
    assert compare(bundle, bundle, 0, "torch").status == "agrees"


def test_the_table_has_counts_and_reasons():
    shown = table(
        [
            Result(0, "keras", "agrees", difference=2e-6),
            Result(
                1,
                "keras",
                "refused",
                "not for Keras\n  block.3: Keras has no such 5\n  x: another",
            ),
            Result(2, "keras", "wrong", "differs"),
        ]
    )
    assert "| `keras` | 1 | 2e-06 | 0 | 1 | 1 | 0 |" in shown
    assert "| `keras` | 1 | Keras has no such N |" in shown
