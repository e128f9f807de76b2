"""Programs that Keras, PyTorch and Hugging Face users write, and how many the hints repair.

The files of snippets/ hold the programs: what is written, and the program that is meant. The author
of independent.md had not seen the hints, which were improved with these programs afterwards; that of
judgement.md had not seen them either; defects that it showed were fixed after its result was quoted.
A snippet is repaired
if, after all fixes of one check are applied once, the text has no errors and describes the network
that is meant: the same input, layers, loss, optimizer and training options.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from neural.core.diagnostics import apply_fixes
from neural.language.check import check
from neural.language.network import Network, PlacedLayer
from neural.optim.catalogue import CATALOGUE

SNIPPET_FOLDER = Path(__file__).with_name("snippets")
COLLECTIONS = ("development", "held_out", "independent", "judgement")

_SNIPPET = re.compile(
    r"^## (?P<name>\w+) \((?P<origin>\w+)\)\n\n"
    r"```written\n(?P<written>.*?)^```\n\n```meant\n(?P<meant>.*?)^```$",
    re.M | re.S,
)


@dataclass(frozen=True, slots=True)
class Snippet:
    """A program with habits of another library, and the program that its author means."""

    name: str
    origin: str
    """Where the habits come from: keras, torch or hf."""
    written: str
    meant: str


def load_snippets(collection: str) -> list[Snippet]:
    """The snippets of one of the collections."""
    text = (SNIPPET_FOLDER / f"{collection}.md").read_text(encoding="utf-8")
    return [Snippet(**match.groupdict()) for match in _SNIPPET.finditer(text)]


def describe_network(network: Network) -> dict[str, object]:
    """Everything that two equal networks have in common; the name is free."""
    return {
        "input": network.input,
        "layers": [(_describe_layer(placed), placed.copies) for placed in network.layers],
        "output": network.output,
        "output_activation": network.output_activation,
        "loss": repr(network.loss),
        "optimizer": repr(network.optimizer),
        "train": repr(network.train),
    }


def _describe_layer(placed: PlacedLayer) -> str:
    """The layer as a program writes it; `Reshape((-1, 16))` with its sizes."""
    if type(placed.layer).__name__ == "Reshape":
        return f"Reshape({placed.output_shape})"
    return repr(placed.layer)


def repair(text: str) -> str:
    """The text after every fix of one check."""
    return apply_fixes(text, check(text, CATALOGUE).diagnostics)[0]


def find_failure(snippet: Snippet) -> str:
    """Why the snippet is not right after one repair; empty if it is."""
    result = check(repair(snippet.written), CATALOGUE)
    if result.errors:
        return "; ".join(f"{error.code} {error.message}" for error in result.errors)
    (meant,) = check(snippet.meant, CATALOGUE).networks
    (network,) = result.networks
    repaired, expected = describe_network(network), describe_network(meant)
    differences = [
        f"{key} is {repaired[key]}, not {expected[key]}"
        for key in expected
        if repaired[key] != expected[key]
    ]
    return "; ".join(differences)
