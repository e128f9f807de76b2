"""A promise: a function that looks at an entry and complains in words, and the cases it is tried in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING, Any

from neural.modules.late import torch

if TYPE_CHECKING:
    from torch import Tensor

Case = Mapping[str, Any]


@dataclass(frozen=True)
class Promise:
    """What every entry of a kind keeps. Its name is the sentence: `rows_sum_to_one_and_masked_keys_get_nothing`."""

    name: str
    look: Callable[..., None]
    cases: tuple[Case, ...]
    applies: Callable[[type[Any]], bool]
    """Whether an entry has made this promise at all."""


@dataclass(frozen=True)
class Check:
    """A promise of one entry in one case; called, it raises where the promise is broken."""

    promise: Promise
    entry: type[Any]
    case: Case

    def __call__(self) -> None:
        """AssertionError says what is broken; any other exception is the entry's own, with a note where it came up."""
        try:
            self.promise.look(self.entry, **self.case)
        except AssertionError as broken:
            raise AssertionError(f"{self.entry.__name__} breaks a promise: {self}\n{broken}") from None
        except Exception as failed:
            failed.add_note(f"while looking whether {self.entry.__name__} keeps a promise: {self}")
            raise

    def __str__(self) -> str:
        """The sentence, and in which case."""
        case = named(self.case)
        return self.promise.name.replace("_", " ") + (f" ({case})" if case else "")


def promise(
    *, applies: Callable[[type[Any]], bool] = lambda entry: True, **cases: Sequence[Any]
) -> Callable[[Callable[..., None]], Promise]:
    """Make a promise of a function: it is tried with every combination of what is given by name."""
    combined = tuple(dict(zip(cases, values, strict=True)) for values in product(*cases.values()))

    def made(look: Callable[..., None]) -> Promise:
        return Promise(look.__name__, look, combined, applies)

    return made


def promises_in(module: ModuleType) -> Iterator[Promise]:
    """Those that a file makes, in its order."""
    yield from (one for one in vars(module).values() if isinstance(one, Promise))


def named(case: Case) -> str:
    """A case in a few words: `5 queries, 7 keys, causal`."""
    return ", ".join(map(str, case.values()))


def hold(true: bool | Tensor, sentence: str) -> None:
    """Complain with the sentence where it is not so; unlike `assert`, also under `python -O`."""
    if not true:
        raise AssertionError(sentence)


def same(found: Tensor, wanted: Tensor, sentence: str, **tolerance: Any) -> None:
    """Complain with the sentence, and with how far apart they are, where two tensors differ."""
    torch.testing.assert_close(found, wanted, **tolerance, msg=lambda apart: f"{sentence}\n{apart}")


def first_place(where: Tensor) -> list[int]:
    """The indices of the first True."""
    return [int(one) for one in where.nonzero()[0]]


def shape_of(tensor: Tensor) -> str:
    """As Python writes it."""
    return str(tuple(tensor.shape))
