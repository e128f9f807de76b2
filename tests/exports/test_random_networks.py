"""A sample of the random networks; `python tests/exports/random_networks.py` tries hundreds."""

import pytest
import torch

from tests.exports import random_networks
from tests.exports.networks import writer
from tests.exports.random_networks import FORMATS, Result, compare, random_network, results, table

QUICK = ("compiled", "keras", "huggingface")
SAMPLE = (1, 9, 12, 15, 21, 27, 30, 33, 39, 52, 60, 66, 81)
"""Chosen so that every mechanism of a user, two sequences and windows over time are among them."""
IN_EVERY_FORMAT = (4, 42)


def complaints(numbers, formats):
    """What is neither equal nor refused with a reason."""
    return [
        result
        for result in results(numbers, formats)
        if result.status not in ("agrees", "refused") or (result.status == "refused" and not result.message)
    ]


@pytest.mark.filterwarnings("ignore")   # of other programs, about themselves
@pytest.mark.parametrize("number", SAMPLE)
def test_a_random_network_agrees_or_is_refused_with_a_reason(number):
    assert not complaints([number], QUICK)


@pytest.mark.filterwarnings("ignore")   # of other programs, about themselves
@pytest.mark.parametrize("number", IN_EVERY_FORMAT)
def test_a_random_network_agrees_in_every_format(number):
    assert not complaints([number], FORMATS)


def test_the_sample_has_what_is_easily_mixed_up():
    with random_networks.user_attentions():
        texts = {number: random_network(number)[0] for number in (*SAMPLE, *IN_EVERY_FORMAT)}
    every = "\n".join(texts.values())
    for word in ("sharpened", "fading", "linear(", "topk", "cross_attention", "Conv1D", "MaxPooling1D", "GRU"):
        assert word in every


def test_a_network_that_differs_is_found():
    leaving = writer()
    wrong = {
        "a number": lambda *inputs: leaving(*inputs) + 1e-3,
        "a shape": lambda *inputs: leaving(*inputs)[:, :0],
        "an error": lambda *inputs: torch.zeros(2) @ torch.zeros(3),
        "a NaN": lambda *inputs: leaving(*inputs) * float("nan"),
    }
    for call in wrong.values():
        assert compare(leaving, call, 0, "torch").status == "wrong"
    assert compare(leaving, leaving, 0, "torch").status == "agrees"


def test_the_table_counts_and_tells_reasons():
    shown = table(
        [
            Result(0, "keras", "agrees", difference=2e-6),
            Result(1, "keras", "refused", "Keras has no words\n  block.3: Keras has no such 5\n  x: another"),
            Result(2, "keras", "wrong", "differs"),
        ]
    )
    assert "| `keras` | 1 | 2e-06 | 0 | 1 | 1 | 0 |" in shown
    assert "| `keras` | 1 | Keras has no such N |" in shown
