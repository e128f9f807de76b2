"""Random programs for property tests.

Trees with arbitrary names test the parser and formatter; texts built from the registries'
declarations test that checked networks build and run. There is no list of layers here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from neural.core.diagnostics import DiagnosticCollector, SourceSpan
from neural.core.registry import Registry
from neural.language import argument_types
from neural.language.check import check
from neural.language.declaration import ArgumentSpec, Declaration, format_value
from neural.language.lexer import tokenize
from neural.language.network import Network
from neural.language.parser import parse
from neural.language.syntax import (
    SECTION_NAMES,
    Argument,
    CallExpression,
    Comments,
    LayerStatement,
    Literal,
    NetworkBlock,
    Program,
    Section,
    SequenceLiteral,
    Value,
)
from neural.optim.catalogue import CATALOGUE

NO_SPAN = SourceSpan(0, 0)
IGNORED_FIELDS = {"span", "name_span", "comments", "tail", "text"}


def strip_positions(node: Any) -> Any:
    """The tree without spans, comments and spellings: what formatting must never change."""
    if isinstance(node, Literal):
        return type(node.value).__name__, node.value
    if is_dataclass(node):
        values = {
            item.name: getattr(node, item.name)
            for item in fields(node)
            if item.name not in IGNORED_FIELDS
        }
        return type(node).__name__, {name: strip_positions(value) for name, value in values.items()}
    return [strip_positions(item) for item in node] if isinstance(node, tuple) else node


def read(text: str) -> Program:
    """The syntax tree of a text; fails on diagnostics."""
    diagnostics = DiagnosticCollector()
    program = parse(text, diagnostics)
    assert not diagnostics.items, ([diagnostic.message for diagnostic in diagnostics.items], text)
    return program


def count_text_comments(text: str) -> Counter[str]:
    """Every comment of a text, as the lexer normalizes it."""
    return Counter(
        comment.text
        for token in tokenize(text, DiagnosticCollector())
        for comment in token.comments
    )


def count_tree_comments(node: Any) -> Counter[str]:
    """Every comment of a syntax tree."""
    if isinstance(node, Comments):
        return Counter(text for text in (*node.above, node.behind) if text)
    if isinstance(node, tuple):
        return sum(map(count_tree_comments, node), Counter())
    if not is_dataclass(node):
        return Counter()
    tail = Counter(text for text in getattr(node, "tail", ()) if text)
    return sum(
        (
            count_tree_comments(getattr(node, item.name))
            for item in fields(node)
            if item.name != "tail"
        ),
        tail,
    )


# --- trees ----------------------------------------------------------------------------------------

LETTERS = "abcXYZ_éß名"
MARKS = " 09#'\\\"=/>(){}[],:*\n\t\r"


class TreeBuilder:
    """Builds a random tree; `random` is hypothesis' own, so that a failing tree shrinks."""

    def __init__(self, random: Random, with_comments: bool) -> None:
        self.random, self.with_comments = random, with_comments

    def several(self, make: Callable[[], Any], max_count: int) -> tuple[Any, ...]:
        return tuple(make() for _ in range(self.random.randint(0, max_count)))

    def letters(self, pool: str, max_length: int) -> str:
        return "".join(self.random.choice(pool) for _ in range(self.random.randint(0, max_length)))

    def name(self) -> str:
        return self.random.choice(LETTERS) + self.letters(LETTERS + "09", 3)

    def comment(self) -> str:
        words = self.letters(LETTERS + MARKS, 6).replace("\n", "").replace("\r", "")
        return f"# {words}".rstrip()

    def comments(self) -> Comments:
        if not self.with_comments or self.random.random() < 0.5:
            return Comments()
        behind = self.comment() if self.random.random() < 0.5 else ""
        return Comments(
            above=self.several(self.comment, 2), behind=behind, blank=self.random.random() < 0.5
        )

    def tail(self) -> tuple[str, ...]:
        return (
            self.several(self.comment, 2)
            if self.with_comments and self.random.random() < 0.3
            else ()
        )

    def literal(self) -> Literal:
        kind = self.random.randint(0, 5)
        value: Any
        if kind == 0:
            value = self.random.choice([None, True, False])
        elif kind <= 2:
            value = self.random.randint(-3, 3) * 10 ** self.random.randint(0, 20)
        elif kind == 3:
            value = self.random.choice(
                [1.0, -0.0, 0.5, 2e-5, 1e22, 1.7976931348623157e308, 5e-324, -1 / 3]
            )
        else:
            value = self.letters(LETTERS + MARKS, 6)
        return Literal(value=value, text=format_value(value), span=NO_SPAN)

    def value(self, depth: int = 0) -> Value:
        kind = self.random.randint(0, 5 if depth < 4 else 2)
        if kind <= 2:
            return self.literal()
        if kind == 3:
            return self.call(depth)
        items = self.several(lambda: self.argument(depth + 1, named=False), 3)
        return SequenceLiteral(
            bracket=self.random.choice("(["), items=items, span=NO_SPAN, tail=self.tail()
        )

    def argument(self, depth: int, *, named: bool) -> Argument:
        name = self.name() if named and self.random.random() < 0.5 else None
        return Argument(name=name, value=self.value(depth), span=NO_SPAN, comments=self.comments())

    def call(self, depth: int = 0) -> CallExpression:
        arguments = self.several(lambda: self.argument(depth + 1, named=True), 3)
        return CallExpression(
            name=self.name(),
            name_span=NO_SPAN,
            arguments=arguments,
            span=NO_SPAN,
            tail=self.tail(),
        )

    def layer(self) -> LayerStatement:
        copies = self.literal() if self.random.random() < 0.3 else None
        if copies is not None and type(copies.value) not in (int, float):
            copies = None
        return LayerStatement(
            call=self.call(), copies=copies, span=NO_SPAN, comments=self.comments()
        )

    def section(self, depth: int = 0) -> Section:
        """One value, layers (also under a misspelt name), or a block of sections."""
        kind = self.random.choice(["value", "value", "layers", "misspelt", "block"])
        name, body = (
            self.random.choice([self.name(), self.name(), "input", "loss", "optimizer"]),
            self.value(),
        )
        if kind == "layers":
            name, body = "layers", self.several(self.layer, 3)
        elif kind == "misspelt":
            name, body = self.name(), (self.layer(), self.layer(), *self.several(self.layer, 1))
        elif kind == "block":
            name = self.random.choice([self.name(), "train"])
            pairs = [
                self.section(depth + 1)
                for _ in range(self.random.randint(0, 3 if depth < 2 else 0))
            ]
            body = tuple(pair for pair in pairs if pair.name not in SECTION_NAMES)
        return Section(
            name=name,
            name_span=NO_SPAN,
            body=body,
            is_block=kind == "block",
            span=NO_SPAN,
            comments=self.comments(),
            tail=self.tail() if kind == "block" else (),
        )

    def network(self) -> NetworkBlock:
        return NetworkBlock(
            name=self.name(),
            name_span=NO_SPAN,
            sections=self.several(self.section, 4),
            span=NO_SPAN,
            comments=self.comments(),
            tail=self.tail(),
        )

    def program(self) -> Program:
        items: list[NetworkBlock | Section | LayerStatement] = []
        for make in self.several(
            lambda: self.random.choice([self.network, self.section, self.layer]), 3
        ):
            if make == self.layer and items and isinstance(items[-1], Section):
                continue  # a layer after `layers:` belongs to it
            items.append(make())
        return Program(items=tuple(items), tail=self.tail())


def programs(with_comments: bool = False) -> st.SearchStrategy[Program]:
    """Files of networks, sections and layers, optionally with comments everywhere."""
    return st.randoms(use_true_random=False).map(
        lambda random: TreeBuilder(random, with_comments).program()
    )


# --- valid networks -------------------------------------------------------------------------------

SOURCE_LENGTH, TARGET_LENGTH = 7, 5
"""What open lengths are filled with when a network runs."""
SMALL_INTEGERS = (1, 2, 3, 4, 5, 6, 8, 12)
FLOATS = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 1e-6, 1e-3, 2.0, 10.0, 1000.0)
MAX_ATTEMPTS = 6


def is_accepted(kind: argument_types.ArgumentType, value: Any) -> bool:
    """Whether an argument type accepts a value."""
    try:
        kind.convert(value)
    except argument_types.InvalidArgumentError:
        return False
    return True


class CallWriter:
    """Writes random calls of registered declarations, with arguments of the right types."""

    def __init__(self, random: Random, width: int) -> None:
        self.random, self.width = random, width

    def value(self, kind: argument_types.ArgumentType, depth: int) -> str:
        """A random value of a type, as a program writes it."""
        choose = self.random.choice
        if isinstance(kind, argument_types.IntType):
            pool = [*SMALL_INTEGERS, *[self.width] * 4]
            return format_value(choose([value for value in pool if value >= kind.at_least]))
        if isinstance(kind, argument_types.FloatType):
            return format_value(choose([value for value in FLOATS if is_accepted(kind, value)]))
        if isinstance(kind, argument_types.BoolType):
            return choose(["true", "false", "True", "False"])
        if isinstance(kind, argument_types.ChoiceType):
            return format_value(choose(kind.options))
        if isinstance(kind, argument_types.IntPairType):
            return format_value(choose([1, 2, 3, (1, 2), (3, 2), (2, 2)]))
        if isinstance(kind, argument_types.ShapeType):
            width = self.width
            return format_value(
                choose(
                    [
                        (-1,),
                        (width, -1),
                        (-1, width),
                        (2, -1, 2),
                        (SOURCE_LENGTH, width),
                        (3, 2, -1),
                    ]
                )
            )
        if isinstance(kind, argument_types.ListType):
            return f"[{', '.join(self.value(kind.item_type, depth) for _ in range(self.random.randint(1, 3)))}]"
        if isinstance(kind, argument_types.EntryListType):
            max_count = 2 if depth < 2 else 1
            return ", ".join(
                self.call(kind.registry, depth=depth + 1)
                for _ in range(self.random.randint(1, max_count))
            )
        if isinstance(kind, argument_types.EntryType):
            if kind.or_number is not None and self.random.random() < 0.5:
                return self.value(kind.or_number, depth)
            return self.call(kind.registry, depth=depth + 1)
        assert isinstance(kind, argument_types.TextType), (
            f"teach this test to write {type(kind).__name__}"
        )
        return '"words"'

    def argument(self, spec: ArgumentSpec, depth: int) -> list[str]:
        """An argument; an entry may be named, with its own arguments beside it."""
        name = self.random.choice([spec.name] * 3 + list(spec.aliases))
        if (
            isinstance(spec.kind, argument_types.EntryType)
            and spec.kind.or_number is None
            and self.random.random() < 0.5
        ):
            entry_name = self.random.choice(spec.kind.registry.names())
            entry_arguments = [
                f"{entry_spec.name}={self.value(entry_spec.kind, depth)}"
                for entry_spec in spec.kind.registry.get(entry_name).argument_specs().values()
                if entry_spec.is_required or self.random.random() < 0.5
            ]
            return [f'{name}="{entry_name}"', *entry_arguments]
        text = self.value(spec.kind, depth)
        return [text if isinstance(spec.kind, argument_types.EntryListType) else f"{name}={text}"]

    def call(self, registry: Registry[Any], name: str | None = None, depth: int = 0) -> str:
        """A call of an entry, of a random one if it is not named."""
        name = name or self.random.choice(registry.names())
        declaration: type[Declaration] = registry.get(name)
        arguments: list[str] = []
        for spec in declaration.argument_specs().values():
            if spec.is_required or self.random.random() < 0.25:
                arguments += self.argument(spec, depth)
        return f"{name}({', '.join(arguments)})"


@dataclass(frozen=True)
class Sample:
    """A valid program: with its open sizes, and with numbers in their place."""

    text: str
    network: Network = field(repr=False)
    resolved: Network = field(repr=False)


@dataclass
class Draft:
    """A program under construction."""

    shape: tuple[Any, ...]
    layers: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The program's text."""
        lines = [f"    {layer}" for layer in self.layers] + [f"  {line}" for line in self.ends]
        return "\n".join(
            ["network Sample {", f"  input: {format_value(self.shape)}", "  layers:", *lines, "}\n"]
        )

    def network(self) -> Network | None:
        """The checked network, or None after errors."""
        source, target = ("T", "U") if self.shape[0] is None else ("time", "T")
        result = check(
            self.text(), CATALOGUE, sizes={source: SOURCE_LENGTH, "T2": 6, target: TARGET_LENGTH}
        )
        return result.networks[0] if not result.errors else None

    def resolved(self) -> Draft:
        """The same with numbers for the open sizes."""
        lengths = {None: SOURCE_LENGTH, "time": SOURCE_LENGTH}
        shape = tuple(
            6 if index and size is None else lengths.get(size, size)
            for index, size in enumerate(self.shape)
        )
        return Draft(shape, self.layers, self.ends)

    def passes(self) -> Network | None:
        """The checked network; fails where it is valid only while a size is open."""
        network = self.network()
        if network is not None:
            assert self.resolved().network() is not None, (
                f"valid only while a length is open:\n{self.text()}"
            )
        return network


def list_layers(role: str) -> list[str]:
    """The layers of a role."""
    layers = CATALOGUE.layers
    return [name for name in layers.names() if layers.get(name).role == role]


def build_sample(random: Random) -> Sample:
    """A random valid network, built layer by layer: a layer that does not fit is dropped."""
    width = random.choice([4, 6, 8, 12])
    sequences = [(SOURCE_LENGTH,), (None,), (SOURCE_LENGTH, width), (None, width), ("time", width)]
    shapes = [*sequences, (9, 8, 3), (None, 6, 2), (6, None, 2), (width,)]
    any_layer = CATALOGUE.layers.names()
    draft = Draft(random.choice(shapes))
    plan = [random.choice(any_layer) for _ in range(random.randint(1, 5))]
    if random.random() < 0.3:  # encoder-decoder networks are too rare otherwise
        draft = Draft(random.choice(sequences[:4]))
        roles = (
            ["embedding", "encoder", "decoder"] if len(draft.shape) == 1 else ["encoder", "decoder"]
        )
        plan = [random.choice(list_layers(role)) for role in roles]
        for _ in range(random.randint(0, 2)):
            plan.insert(random.randint(1, len(plan)), random.choice(any_layer))
    elif len(draft.shape) == 1 and random.random() < 0.7:
        plan = [random.choice(list_layers("embedding")), *plan]
    for name in plan:
        for _ in range(MAX_ATTEMPTS):
            copies = random.choice(["", "", "", " * 2", " * 3"])
            draft.layers.append(CallWriter(random, width).call(CATALOGUE.layers, name) + copies)
            network = draft.passes()
            if network is not None:
                width = (
                    network.output[-1]
                    if network.output and isinstance(network.output[-1], int)
                    else width
                )
                break
            draft.layers.pop()
    if not draft.layers:
        draft = Draft(
            (SOURCE_LENGTH, width),
            [repr(CATALOGUE.layers.get(list_layers("output")[0]).example()[0])],
        )
    for section, registry in (("loss", CATALOGUE.losses), ("optimizer", CATALOGUE.optimizers)):
        draft.ends.append(f"{section}: {CallWriter(random, width).call(registry)}")
        if random.random() < 0.3 or draft.passes() is None:
            draft.ends.pop()
    network, resolved = draft.network(), draft.resolved().network()
    assert network is not None and resolved is not None
    return Sample(draft.text(), network, resolved)


def samples() -> st.SearchStrategy[Sample]:
    """Valid networks."""
    return st.randoms(use_true_random=False).map(build_sample)
