"""Contract rules: functions that check one property of an entry, and the cases they run in.

An entry is a registered class, such as a layer or an attention mechanism. A case is the keyword
arguments of one call of the rule: `{"kind": "causal"}`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING, Any

from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

Case = Mapping[str, Any]


@dataclass(frozen=True)
class ContractRule:
    """A property of every entry of a kind. The name is a sentence about the behaviour."""

    name: str
    """The name of the function, such as `a_state_dict_restores_the_output`."""
    check: Callable[..., None]
    """Called as `check(entry, **case)`; raises AssertionError."""
    cases: tuple[Case, ...]
    applies: Callable[[type[Any]], bool]
    """Whether the rule applies to an entry."""


@dataclass(frozen=True)
class ContractCheck:
    """One rule for one entry in one case. Calling it raises where the rule is broken."""

    rule: ContractRule
    entry: type[Any]
    case: Case

    def __call__(self) -> None:
        """Raise AssertionError where the rule is broken.

        An exception of the entry itself passes through, with a note that names the rule.
        """
        try:
            self.rule.check(self.entry, **self.case)
        except AssertionError as error:
            raise AssertionError(
                f"{self.entry.__name__} breaks a contract rule: {self}\n{error}"
            ) from None
        except Exception as error:
            error.add_note(f"while checking {self.entry.__name__}: {self}")
            raise

    def __str__(self) -> str:
        """The rule as a sentence, and the case in brackets."""
        case = format_case(self.case)
        return self.rule.name.replace("_", " ") + (f" ({case})" if case else "")


def contract_rule(
    *, applies: Callable[[type[Any]], bool] = lambda entry: True, **cases: Sequence[Any]
) -> Callable[[Callable[..., None]], ContractRule]:
    """Decorator: make a rule of a function, to be run with every combination of `cases`.

    `@contract_rule(kind=("causal", "none"))` passes the argument `kind`. The rule is skipped for
    entries where `applies(entry)` is false.
    """
    combined = tuple(dict(zip(cases, values, strict=True)) for values in product(*cases.values()))

    def create_rule(check: Callable[..., None]) -> ContractRule:
        return ContractRule(check.__name__, check, combined, applies)

    return create_rule


def find_rules(module: ModuleType) -> Iterator[ContractRule]:
    """The rules of a module, in file order."""
    yield from (value for value in vars(module).values() if isinstance(value, ContractRule))


def format_case(case: Case) -> str:
    """A case in a few words: `5 queries, 7 keys, causal`."""
    return ", ".join(map(str, case.values()))


def require(condition: bool | Tensor, message: str) -> None:
    """Raise AssertionError unless the condition holds. Unlike `assert`, also under `python -O`."""
    if not condition:
        raise AssertionError(message)


def require_close(actual: Tensor, expected: Tensor, message: str, **tolerance: Any) -> None:
    """Raise AssertionError with the message and the difference where two tensors differ."""
    torch.testing.assert_close(
        actual, expected, **tolerance, msg=lambda difference: f"{message}\n{difference}"
    )


def first_true_index(mask: Tensor) -> list[int]:
    """Indices of the first True."""
    return [int(index) for index in mask.nonzero()[0]]


def format_shape_of(tensor: Tensor) -> str:
    """The tensor's shape as a Python tuple."""
    return str(tuple(tensor.shape))
