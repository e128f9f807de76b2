"""Broken promises are told in words: attention and layers with one fault each, as somebody might write them."""

import sys
from dataclasses import replace

import pytest

from neural.contract import mechanisms
from neural.contract.attention_inputs import Lengths
from neural.contract.promise import Check, hold, promise, promises_in
from neural.contract.promises import promises_of
from neural.language.layer import Layer
from neural.language.shapes import Cost
from neural.modules.attention.self import Self, fused, scores
from neural.modules.late import Module, nn
from neural.modules.mask import Mask
from neural.modules.mechanism import Mechanism


class Peeking(Self):
    """Looks ahead."""

    def weights(self, q, k, mask, extra=None):
        return super().weights(q, k, replace(mask, causal=False))

    def mix(self, q, k, v, mask, dropout=0.0, extra=None):
        return super().mix(q, k, v, replace(mask, causal=False), dropout)


class Lossy(Self):
    """Loses a tenth of every row."""

    def weights(self, q, k, mask, extra=None):
        return 0.9 * super().weights(q, k, mask)

    def mix(self, q, k, v, mask, dropout=0.0, extra=None):
        return 0.9 * super().mix(q, k, v, mask, dropout)


class Blind(Self):
    """Knows no mask."""

    def weights(self, q, k, mask, extra=None):
        return scores(q, k, mask).softmax(dim=-1)

    def mix(self, q, k, v, mask, dropout=0.0, extra=None):
        return self.weights(q, k, mask) @ v


class Hasty(Self):
    """Defined well, run by another formula."""

    def mix(self, q, k, v, mask, dropout=0.0, extra=None):
        return fused(q, k, v, Mask(), dropout)


class Boasting(Self):
    """Says that it is cheaper than it is, and sharper."""

    def cost(self, heads, queries, keys, width):
        return Cost(multiply_adds=heads * queries * width)

    def as_softmax(self, q, k, mask, extra=None):
        return mask.near(1)


class Forgetful(Mechanism):
    """Has no `weights` at all."""


def told(entry: type, name: str) -> str:
    """What the first broken case of a promise says."""
    for check in promises_of(entry):
        if check.promise.name == name:
            try:
                check()
            except AssertionError as broken:
                return str(broken)
    raise AssertionError(f"{entry.__name__} keeps {name}")


ROWS = "rows_sum_to_one_and_masked_keys_get_nothing"
REACHED = "nothing_that_is_masked_reaches_the_result"


@pytest.mark.parametrize(("entry", "name", "words"), [
    (Peeking, ROWS, ("(5 queries, 7 keys, causal)", "query 0 gives key 3 a weight of", "it lies ahead")),
    (Peeking, REACHED, ("causal", "key 1 changes what `mix` gives query 0", "it lies ahead")),
    (Lossy, ROWS, ("5 queries, 7 keys, none", "the weights of query 0 sum to 0.9, must sum to 1",)),
    (Blind, ROWS, ("it lies ahead", "`mask.kept(queries, keys, device)` says who may be seen")),
    (Blind, REACHED, ("causal", "key 1 changes what `mix` gives query 0, and must not")),
    (Blind, "a_fully_masked_row_is_zero_not_nan", ("`mix` is not zero where everything is masked",)),
    (Hasty, "the_fast_way_equals_the_definition_in_values_and_gradients", ("is not `weights(q, k, mask) @ v`",)),
    (Boasting, "the_predicted_multiply_adds_are_the_counted_ones", ("predicts 165 multiply-adds", "counts 2,310")),
    (Boasting, "what_says_it_is_a_softmax_is_one", ("`as_softmax` gives a mask under which",)),
    (Lossy, "an_entry_is_found_by_its_name", ("no attention mechanism is called `lossy`", "pyproject.toml",
                                              f'lossy = "{__name__}:Lossy"')),
    (Lossy, "an_entry_is_a_file_of_its_own_name", ("Lossy is in a file called test_promises.py",)),
])  # fmt: skip
def test_a_broken_promise_is_told_in_words(entry, name, words):
    said = told(entry, name)
    assert said.startswith(f"{entry.__name__} breaks a promise: {name.replace('_', ' ')}")
    assert all(one in said for one in words), said


def test_padding_that_is_seen_is_called_padding():
    (rows,) = [one for one in promises_in(mechanisms) if one.name == ROWS]
    with pytest.raises(AssertionError, match=r"query 0 gives key 5 a weight of .* it is padding"):
        Check(rows, Blind, {"lengths": Lengths(5, 7), "kind": "keys"})()


def test_an_error_of_the_entry_itself_goes_through_with_a_note_where_it_came_up():
    check = next(one for one in promises_of(Forgetful) if one.promise.name == ROWS)
    with pytest.raises(NotImplementedError) as caught:
        check()
    (note,) = caught.value.__notes__
    assert note == f"while looking whether Forgetful keeps a promise: {check}"
    assert str(check) == "rows sum to one and masked keys get nothing (5 queries, 7 keys, none)"


def test_what_is_no_entry_is_refused():
    with pytest.raises(TypeError, match=r"must be a subclass of one of .*Layer.*Mechanism"):
        promises_of(dict)


def test_promises_hold_under_python_without_asserts_and_cases_are_combined():
    @promise(first=(1, 2), second=("a", "b"))
    def second_is_a(entry, first, second):
        hold(second == "a", f"it is {second}")

    assert [(one["first"], one["second"]) for one in second_is_a.cases] == [(1, "a"), (1, "b"), (2, "a"), (2, "b")]
    with pytest.raises(AssertionError, match=r"Peeking breaks a promise: second is a \(2, b\)\nit is b"):
        Check(second_is_a, Peeking, second_is_a.cases[-1])()


class Doubled(Layer):
    """Declares half of what it has."""

    def shape(self, x):
        return x

    def cost(self, x):
        return Cost(parameters=x[-1])

    def build(self, x):
        return Twice(x[-1])

    @classmethod
    def tiny(cls):
        return cls(), (7, 3)


class Twice(Module):
    """Adds one table, and never uses the other."""

    def __init__(self, width):
        super().__init__()
        self.one, self.other = nn.Linear(width, 1, bias=False), nn.Linear(width, 1, bias=False)

    def forward(self, x):
        return x + self.one(x)


@pytest.mark.parametrize(("name", "words"), [
    ("the_predicted_parameters_are_the_real_ones", "`cost(7, 3)` predicts 3 parameters, and there are 6"),
    ("every_parameter_gets_a_gradient", "no gradient reaches the parameter `other.weight`"),
])  # fmt: skip
def test_a_layer_that_declares_something_else_is_told(name, words):
    assert words in told(Doubled, name)


def test_a_file_that_imports_torch_at_once_is_told_another_way(tmp_path, monkeypatch):
    (tmp_path / "hurried.py").write_text(
        '"""Imports torch."""\nimport torch\nfrom neural.modules.attention.self import Self\n'
        'class Hurried(Self):\n    """Slow to read."""\n'
    )
    (tmp_path / "torch.py").write_text("")   # as good as the real one for a process that only looks whether it comes
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = __import__("hurried").Hurried
    try:
        said = told(entry, "its_declaration_is_read_without_torch")
    finally:
        del sys.modules["hurried"]
    assert "imports torch; take it from `neural.modules.late`" in said
