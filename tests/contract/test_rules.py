"""Messages of the contract rules: mechanisms and layers with one typical fault each."""

import sys
from dataclasses import replace

import pytest

from neural.language.layer import Layer
from neural.language.shapes import Cost
from neural.nn.attention.self import Self, dot_product_scores, fused_attention
from neural.nn.lazy_torch import Module, nn
from neural.nn.mask import Mask
from neural.nn.mechanism import Mechanism
from neural.testing import attention_rules
from neural.testing.attention_inputs import SequenceLengths
from neural.testing.contract import collect_checks
from neural.testing.failure_summary import run_checks
from neural.testing.rule import ContractCheck, contract_rule, find_rules, require


class Peeking(Self):
    """Ignores causality."""

    def weights(self, q, k, mask, extra=None):
        return super().weights(q, k, replace(mask, causal=False))

    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        return super().attend(q, k, v, replace(mask, causal=False), dropout)


class Lossy(Self):
    """Loses a tenth of every row."""

    def weights(self, q, k, mask, extra=None):
        return 0.9 * super().weights(q, k, mask)

    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        return 0.9 * super().attend(q, k, v, mask, dropout)


class Blind(Self):
    """Ignores the mask."""

    def weights(self, q, k, mask, extra=None):
        return dot_product_scores(q, k, mask).softmax(dim=-1)

    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        return self.weights(q, k, mask) @ v


class Hasty(Self):
    """`attend` computes a different formula than `weights`."""

    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        return fused_attention(q, k, v, Mask(), dropout)


class Unmasked(Self):
    """Forgets the mask in `weights` only."""

    def weights(self, q, k, mask, extra=None):
        return dot_product_scores(q, k, mask).softmax(dim=-1)


class Averaged(Self):
    """`weights` has no axis of heads."""

    def weights(self, q, k, mask, extra=None):
        return super().weights(q, k, mask).mean(dim=1)


class Boasting(Self):
    """Declares too low a cost and a wrong softmax mask."""

    def cost(self, heads, queries, keys, width):
        return Cost(multiply_adds=heads * queries * width)

    def softmax_mask(self, q, k, mask, extra=None):
        return mask.limit_reach(1)


class Forgetful(Mechanism):
    """Does not define `weights`."""


def get_message(entry: type, name: str) -> str:
    """The message of the first case that breaks a rule."""
    for check in collect_checks(entry):
        if check.rule.name == name:
            try:
                check()
            except AssertionError as broken:
                return str(broken)
    raise AssertionError(f"{entry.__name__} keeps {name}")


ROWS = "rows_sum_to_one_and_masked_keys_get_zero"
LEAK = "masked_keys_do_not_reach_the_output"
DEFINITION = "attend_equals_weights_times_v_in_values_and_gradients"


@pytest.mark.parametrize(
    ("entry", "name", "words"),
    [
        (
            Peeking,
            ROWS,
            (
                "(5 queries, 7 keys, causal)",
                "query 0 gives key 3 a weight of",
                "it is in the future",
            ),
        ),
        (
            Peeking,
            LEAK,
            ("causal", "key 1 changes the output of `attend` for query 0", "it is in the future"),
        ),
        (
            Lossy,
            ROWS,
            (
                "5 queries, 7 keys, none",
                "the weights of query 0 sum to 0.9, must sum to 1",
            ),
        ),
        (
            Blind,
            ROWS,
            ("it is in the future", "a query may see a key, and None if all keys are visible"),
        ),
        (Blind, LEAK, ("causal", "key 1 changes the output of `attend` for query 0")),
        (
            Blind,
            "a_fully_masked_row_is_zero_not_nan",
            ("`attend` is not zero where everything is masked",),
        ),
        (
            Hasty,
            DEFINITION,
            ("is not `weights(q, k, mask) @ v`",),
        ),
        (Unmasked, DEFINITION, ("(5 queries, 7 keys, causal)", "must be 0: it is in the future")),
        (Averaged, DEFINITION, ("`weights` has shape (2, 5, 7), must be (2, 3, 5, 7)",)),
        (Averaged, ROWS, ("`weights` has shape (2, 5, 7), must be (2, 3, 5, 7)",)),
        (
            Boasting,
            "the_predicted_multiply_adds_are_the_counted_ones",
            ("predicts 165 multiply-adds", "counts 2,310"),
        ),
        (
            Boasting,
            "softmax_mask_gives_the_same_weights",
            ("the softmax under `softmax_mask` is not `weights`",),
        ),
        (
            Lossy,
            "an_entry_is_found_by_its_name",
            (
                "no attention mechanism is called `lossy`",
                "pyproject.toml",
                f'lossy = "{__name__}:Lossy"',
            ),
        ),
        (
            Lossy,
            "an_entry_is_a_file_of_its_own_name",
            ("Lossy is in a file called test_rules.py",),
        ),
    ],
)
def test_a_broken_rule_has_a_clear_message(entry, name, words):
    message = get_message(entry, name)
    assert message.startswith(f"{entry.__name__} breaks a contract rule: {name.replace('_', ' ')}")
    assert all(word in message for word in words), message


def test_a_mask_that_only_weights_forgets_is_named_as_the_cause():
    causes = {
        failure.reason
        for failure in run_checks(
            [check for check in collect_checks(Unmasked) if check.rule.name in (ROWS, DEFINITION)]
        )
    }
    assert causes and all(cause.startswith("`weights` does not apply the mask") for cause in causes)


def test_a_weight_on_padding_names_the_padding():
    (rule,) = [candidate for candidate in find_rules(attention_rules) if candidate.name == ROWS]
    with pytest.raises(AssertionError, match=r"query 0 gives key 5 a weight of .* it is padding"):
        ContractCheck(rule, Blind, {"lengths": SequenceLengths(5, 7), "kind": "keys"})()


def test_an_exception_of_the_entry_passes_through_with_a_note():
    check = next(
        candidate for candidate in collect_checks(Forgetful) if candidate.rule.name == ROWS
    )
    with pytest.raises(NotImplementedError) as caught:
        check()
    (note,) = caught.value.__notes__
    assert note == f"while checking Forgetful: {check}"
    assert str(check) == "rows sum to one and masked keys get zero (5 queries, 7 keys, none)"


def test_a_class_that_is_no_entry_is_refused():
    with pytest.raises(TypeError, match=r"must be a subclass of one of .*Layer.*Mechanism"):
        collect_checks(dict)


def test_rules_do_not_use_assert_and_cases_are_combined():
    @contract_rule(first=(1, 2), second=("a", "b"))
    def second_is_a(entry, first, second):
        require(second == "a", f"it is {second}")

    assert [(case["first"], case["second"]) for case in second_is_a.cases] == [
        (1, "a"),
        (1, "b"),
        (2, "a"),
        (2, "b"),
    ]
    with pytest.raises(
        AssertionError, match=r"Peeking breaks a contract rule: second is a \(2, b\)\nit is b"
    ):
        ContractCheck(second_is_a, Peeking, second_is_a.cases[-1])()


class Doubled(Layer):
    """Declares half of its parameters."""

    def shape(self, x):
        return x

    def cost(self, x):
        return Cost(parameters=x[-1])

    def build(self, x):
        return Twice(x[-1])

    @classmethod
    def example(cls):
        return cls(), (7, 3)


class Twice(Module):
    """Has two weight matrices and uses one."""

    def __init__(self, width):
        super().__init__()
        self.one, self.other = nn.Linear(width, 1, bias=False), nn.Linear(width, 1, bias=False)

    def forward(self, x):
        return x + self.one(x)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "the_predicted_parameters_are_the_real_ones",
            "`cost(7, 3)` predicts 3 parameters, the module has 6",
        ),
        ("every_parameter_gets_a_gradient", "no gradient reaches the parameter `other.weight`"),
    ],
)
def test_a_layer_with_a_wrong_declaration_has_a_clear_message(name, words):
    assert words in get_message(Doubled, name)


def test_an_entry_that_imports_torch_is_told_to_import_it_lazily(tmp_path, monkeypatch):
    (tmp_path / "hurried.py").write_text(
        '"""Imports torch."""\nimport torch\nfrom neural.nn.attention.self import Self\n'
        'class Hurried(Self):\n    """Slow to read."""\n'
    )
    (tmp_path / "torch.py").write_text("")  # the process only checks whether it is imported
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = __import__("hurried").Hurried
    try:
        message = get_message(entry, "its_declaration_is_read_without_torch")
    finally:
        del sys.modules["hurried"]
    assert "imports torch at import time; import it lazily: `from neural.nn.lazy_torch" in message
