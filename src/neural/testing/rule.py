"""Contract rules: functions that check one property of an entry, and the cases they run with.

An entry is a registered class, such as a layer or an attention mechanism. The contract of its kind
is the rules that all entries of the kind must keep. A case is the keyword arguments of one call of
a rule, such as `{"kind": "causal"}`. A cause is the reason of a failure in a few words: many checks
may fail for one cause (failure_summary.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import TYPE_CHECKING, Any

from neural.core.errors import NeuralError
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import Tensor

Case = Mapping[str, Any]


class ContractError(NeuralError, AssertionError):
    """A broken rule, with an explanation."""

    def __init__(self, message: str, cause: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        """What to change, in a few words; empty if the rule does not know."""


@dataclass(frozen=True)
class ContractRule:
    """A property that every entry of a kind must have. Its name is a sentence that states it."""

    name: str
    """The name of the function, such as `a_state_dict_restores_the_output`."""
    check: Callable[..., None]
    """Called as `check(entry, **case)`; raises AssertionError if the rule is broken."""
    cases: tuple[Case, ...]
    applies: Callable[[type[Any]], bool]
    """Whether the rule applies to an entry."""


@dataclass(frozen=True)
class ContractCheck:
    """One rule for one entry with one case. Call it to run the check."""

    rule: ContractRule
    entry: type[Any]
    case: Case

    def __call__(self) -> None:
        """Raise ContractError, an AssertionError, if the entry breaks the rule.

        Other exceptions that the entry raises pass through, with a note that names the rule.
        """
        try:
            self.rule.check(self.entry, **self.case)
        except AssertionError as error:
            raise ContractError(
                f"{self.entry.__name__} breaks a contract rule: {self}\n{error}",
                getattr(error, "cause", ""),
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
    """Decorator that makes a function a rule, which runs with every combination of `cases`.

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


def require(condition: bool | Tensor, message: str, cause: str = "") -> None:
    """Raise ContractError unless the condition holds. Unlike `assert`, also under `python -O`."""
    if not condition:
        raise ContractError(message, cause)


def require_close(actual: Tensor, expected: Tensor, message: str, **tolerance: Any) -> None:
    """Raise AssertionError with the message and the difference if two tensors are not close."""
    torch.testing.assert_close(
        actual, expected, **tolerance, msg=lambda difference: f"{message}\n{difference}"
    )


def first_true_index(mask: Tensor) -> list[int]:
    """Indices of the first True."""
    return [int(index) for index in mask.nonzero()[0]]


def format_shape_of(tensor: Tensor) -> str:
    """The tensor's shape as a Python tuple."""
    return str(tuple(tensor.shape))
