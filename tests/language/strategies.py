"""Random programs: trees of any names (what the parser and printer promise), and texts made of the registry's own
declarations (what the checker promises about the modules). No list of layers is kept here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from random import Random
from typing import Any

from hypothesis import strategies as st

from neural.core.diagnostics import Findings, Where
from neural.core.registry import Registry
from neural.language import kinds
from neural.language.check import check
from neural.language.declaration import Declared, Setting, spelt
from neural.language.lexer import tokenize
from neural.language.network import Network
from neural.language.parser import parse
from neural.language.syntax import (
    SECTIONS,
    Argument,
    Block,
    Call,
    Comments,
    Group,
    Layer,
    Literal,
    Program,
    Section,
    Value,
)
from neural.standard import CATALOGUE

NOWHERE = Where(0, 0)
NOT_MEANING = {"where", "name_where", "comments", "tail", "text"}


def without_places(node: Any) -> Any:
    """The tree without places, comments and spellings: what a formatter must never change."""
    if isinstance(node, Literal):
        return type(node.value).__name__, node.value
    if is_dataclass(node):
        parts = {one.name: getattr(node, one.name) for one in fields(node) if one.name not in NOT_MEANING}
        return type(node).__name__, {name: without_places(part) for name, part in parts.items()}
    return [without_places(one) for one in node] if isinstance(node, tuple) else node


def read(text: str) -> Program:
    """The text's tree; fails with its mistakes."""
    findings = Findings()
    program = parse(text, findings)
    assert not findings.items, ([one.message for one in findings.items], text)
    return program


def comments_in(text: str) -> Counter[str]:
    """Every comment of a text, as the lexer tidies it."""
    return Counter(remark.text for token in tokenize(text, Findings()) for remark in token.remarks)


def comments_of(node: Any) -> Counter[str]:
    """Every comment of a tree."""
    if isinstance(node, Comments):
        return Counter(text for text in (*node.above, node.behind) if text)
    if isinstance(node, tuple):
        return sum(map(comments_of, node), Counter())
    if not is_dataclass(node):
        return Counter()
    tail = Counter(text for text in getattr(node, "tail", ()) if text)
    return sum((comments_of(getattr(node, one.name)) for one in fields(node) if one.name != "tail"), tail)


# --- trees ------------------------------------------------------------------------------------------------------

LETTERS = "abcXYZ_éß名"
MARKS = " 09#'\\\"=/>(){}[],:*\n\t\r"


class Tree:
    """Builds a random tree; `random` is hypothesis' own, so that a failing tree shrinks."""

    def __init__(self, random: Random, commented: bool) -> None:
        self.random, self.commented = random, commented

    def several(self, make: Callable[[], Any], most: int) -> tuple[Any, ...]:
        return tuple(make() for _ in range(self.random.randint(0, most)))

    def letters(self, pool: str, most: int) -> str:
        return "".join(self.random.choice(pool) for _ in range(self.random.randint(0, most)))

    def name(self) -> str:
        return self.random.choice(LETTERS) + self.letters(LETTERS + "09", 3)

    def comment(self) -> str:
        words = self.letters(LETTERS + MARKS, 6).replace("\n", "").replace("\r", "")
        return f"# {words}".rstrip()

    def comments(self) -> Comments:
        if not self.commented or self.random.random() < 0.5:
            return Comments()
        behind = self.comment() if self.random.random() < 0.5 else ""
        return Comments(above=self.several(self.comment, 2), behind=behind, blank=self.random.random() < 0.5)

    def tail(self) -> tuple[str, ...]:
        return self.several(self.comment, 2) if self.commented and self.random.random() < 0.3 else ()

    def literal(self) -> Literal:
        kind = self.random.randint(0, 5)
        value: Any
        if kind == 0:
            value = self.random.choice([None, True, False])
        elif kind <= 2:
            value = self.random.randint(-3, 3) * 10 ** self.random.randint(0, 20)
        elif kind == 3:
            value = self.random.choice([1.0, -0.0, 0.5, 2e-5, 1e22, 1.7976931348623157e308, 5e-324, -1 / 3])
        else:
            value = self.letters(LETTERS + MARKS, 6)
        return Literal(value=value, text=spelt(value), where=NOWHERE)

    def value(self, depth: int = 0) -> Value:
        kind = self.random.randint(0, 5 if depth < 4 else 2)
        if kind <= 2:
            return self.literal()
        if kind == 3:
            return self.call(depth)
        items = self.several(lambda: self.argument(depth + 1, named=False), 3)
        return Group(bracket=self.random.choice("(["), items=items, where=NOWHERE, tail=self.tail())

    def argument(self, depth: int, *, named: bool) -> Argument:
        name = self.name() if named and self.random.random() < 0.5 else None
        return Argument(name=name, value=self.value(depth), where=NOWHERE, comments=self.comments())

    def call(self, depth: int = 0) -> Call:
        arguments = self.several(lambda: self.argument(depth + 1, named=True), 3)
        return Call(name=self.name(), name_where=NOWHERE, arguments=arguments, where=NOWHERE, tail=self.tail())

    def layer(self) -> Layer:
        copies = self.literal() if self.random.random() < 0.3 else None
        if copies is not None and type(copies.value) not in (int, float):
            copies = None
        return Layer(call=self.call(), copies=copies, where=NOWHERE, comments=self.comments())

    def section(self, depth: int = 0) -> Section:
        """One value, layers (also under a misspelt name), or a block of sections."""
        kind = self.random.choice(["value", "value", "layers", "misspelt", "block"])
        name, body = self.random.choice([self.name(), self.name(), "input", "loss", "optimizer"]), self.value()
        if kind == "layers":
            name, body = "layers", self.several(self.layer, 3)
        elif kind == "misspelt":
            name, body = self.name(), (self.layer(), self.layer(), *self.several(self.layer, 1))
        elif kind == "block":
            name = self.random.choice([self.name(), "train"])
            pairs = [self.section(depth + 1) for _ in range(self.random.randint(0, 3 if depth < 2 else 0))]
            body = tuple(pair for pair in pairs if pair.name not in SECTIONS)
        return Section(
            name=name, name_where=NOWHERE, body=body, block=kind == "block", where=NOWHERE, comments=self.comments(),
            tail=self.tail() if kind == "block" else (),
        )  # fmt: skip

    def network(self) -> Block:
        return Block(
            name=self.name(), name_where=NOWHERE, sections=self.several(self.section, 4), where=NOWHERE,
            comments=self.comments(), tail=self.tail(),
        )  # fmt: skip

    def program(self) -> Program:
        items: list[Block | Section | Layer] = []
        for make in self.several(lambda: self.random.choice([self.network, self.section, self.layer]), 3):
            if make == self.layer and items and isinstance(items[-1], Section):
                continue   # a layer behind `layers:` belongs to it
            items.append(make())
        return Program(items=tuple(items), tail=self.tail())


def programs(commented: bool = False) -> st.SearchStrategy[Program]:
    """A file of networks, sections and layers, with comments everywhere if wanted."""
    return st.randoms(use_true_random=False).map(lambda random: Tree(random, commented).program())


def one_of_each(program: Program) -> bool:
    """Whether every block names its sections once, and layers stand under `layers` alone: what JSON can say."""

    def fits(found: tuple[Section, ...]) -> bool:
        unique = len({section.name for section in found}) == len(found)
        inner = (section.body for section in found if section.block)
        plain = not any(
            section.name != "layers" and not section.block and isinstance(section.body, tuple) for section in found
        )
        return unique and plain and all(map(fits, inner))

    tops = [item for item in program.items if not isinstance(item, Layer)]
    return all(fits(item.sections if isinstance(item, Block) else (item,)) for item in tops)


# --- networks that work -----------------------------------------------------------------------------------------

SOURCE, TARGET = 7, 5
"""What open lengths are filled with when a network runs."""
SMALL = (1, 2, 3, 4, 5, 6, 8, 12)
REALS = (0.0, 0.1, 0.25, 0.5, 0.9, 1.0, 1e-6, 1e-3, 2.0, 10.0, 1000.0)
ATTEMPTS = 6


def is_accepted(kind: kinds.Kind, value: Any) -> bool:
    """Whether a kind takes a value."""
    try:
        kind.accept(value)
    except kinds.Refused:
        return False
    return True


class Writer:
    """Writes random calls of what the registries declare, with arguments of the right kinds."""

    def __init__(self, random: Random, width: int) -> None:
        self.random, self.width = random, width

    def value(self, kind: kinds.Kind, depth: int) -> str:
        """A value of a kind, as a program spells it."""
        choose = self.random.choice
        if isinstance(kind, kinds.Whole):
            pool = [*SMALL, *[self.width] * 4]
            return spelt(choose([one for one in pool if one >= kind.at_least]))
        if isinstance(kind, kinds.Real):
            return spelt(choose([one for one in REALS if is_accepted(kind, one)]))
        if isinstance(kind, kinds.Flag):
            return choose(["true", "false", "True", "False"])
        if isinstance(kind, kinds.Choice):
            return spelt(choose(kind.options))
        if isinstance(kind, kinds.Pair):
            return spelt(choose([1, 2, 3, (1, 2), (3, 2), (2, 2)]))
        if isinstance(kind, kinds.Sizes):
            width = self.width
            return spelt(choose([(-1,), (width, -1), (-1, width), (2, -1, 2), (SOURCE, width), (3, 2, -1)]))
        if isinstance(kind, kinds.Numbers):
            return f"[{', '.join(self.value(kind.each, depth) for _ in range(self.random.randint(1, 3)))}]"
        if isinstance(kind, kinds.Several):
            most = 2 if depth < 2 else 1
            return ", ".join(self.call(kind.registry, depth=depth + 1) for _ in range(self.random.randint(1, most)))
        if isinstance(kind, kinds.Entry):
            if kind.or_number is not None and self.random.random() < 0.5:
                return self.value(kind.or_number, depth)
            return self.call(kind.registry, depth=depth + 1)
        assert isinstance(kind, kinds.Text), f"teach this test to write {type(kind).__name__}"
        return '"words"'

    def argument(self, one: Setting, depth: int) -> list[str]:
        """An argument; an entry may be named, with its own arguments beside it."""
        name = self.random.choice([one.name] * 3 + list(one.aliases))
        if isinstance(one.kind, kinds.Entry) and one.kind.or_number is None and self.random.random() < 0.5:
            chosen = self.random.choice(one.kind.registry.names())
            lent = [
                f"{beside.name}={self.value(beside.kind, depth)}"
                for beside in one.kind.registry.get(chosen).settings().values()
                if beside.required or self.random.random() < 0.5
            ]
            return [f'{name}="{chosen}"', *lent]
        text = self.value(one.kind, depth)
        return [text if isinstance(one.kind, kinds.Several) else f"{name}={text}"]

    def call(self, registry: Registry[Any], name: str | None = None, depth: int = 0) -> str:
        """A call of an entry, of any one if it is not named."""
        name = name or self.random.choice(registry.names())
        declaration: type[Declared] = registry.get(name)
        arguments: list[str] = []
        for one in declaration.settings().values():
            if one.required or self.random.random() < 0.25:
                arguments += self.argument(one, depth)
        return f"{name}({', '.join(arguments)})"


@dataclass(frozen=True)
class Sample:
    """A program that passes: with its open sizes, and with numbers in their place."""

    text: str
    network: Network = field(repr=False)
    settled: Network = field(repr=False)


@dataclass
class Draft:
    """A program in the making."""

    shape: tuple[Any, ...]
    layers: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)

    def text(self) -> str:
        """The program."""
        lines = [f"    {layer}" for layer in self.layers] + [f"  {line}" for line in self.ends]
        return "\n".join(["network Sample {", f"  input: {spelt(self.shape)}", "  layers:", *lines, "}\n"])

    def network(self) -> Network | None:
        """What it means, if nothing is wrong with it."""
        source, target = ("T", "U") if self.shape[0] is None else ("time", "T")
        result = check(self.text(), CATALOGUE, sizes={source: SOURCE, "T2": 6, target: TARGET})
        return result.networks[0] if not result.mistakes else None

    def settled(self) -> Draft:
        """The same with numbers for what is open."""
        lengths = {None: SOURCE, "time": SOURCE}
        shape = tuple(6 if index and one is None else lengths.get(one, one) for index, one in enumerate(self.shape))
        return Draft(shape, self.layers, self.ends)

    def passes(self) -> Network | None:
        """Whether it works, and goes on working when the open sizes get their values."""
        made = self.network()
        if made is not None:
            assert self.settled().network() is not None, f"only while a length is open:\n{self.text()}"
        return made


def names_of(role: str) -> list[str]:
    """The layers of a role."""
    layers = CATALOGUE.layers
    return [name for name in layers.names() if layers.get(name).role == role]


def sample_from(random: Random) -> Sample:
    """A network that passes `check`, one layer at a time: a layer that does not fit is left out again."""
    width = random.choice([4, 6, 8, 12])
    sequences = [(SOURCE,), (None,), (SOURCE, width), (None, width), ("time", width)]
    shapes = [*sequences, (9, 8, 3), (None, 6, 2), (6, None, 2), (width,)]
    any_layer = CATALOGUE.layers.names()
    draft = Draft(random.choice(shapes))
    plan = [random.choice(any_layer) for _ in range(random.randint(1, 5))]
    if random.random() < 0.3:   # two sequences are too rare to wait for
        draft = Draft(random.choice(sequences[:4]))
        roles = ["embedding", "encoder", "decoder"] if len(draft.shape) == 1 else ["encoder", "decoder"]
        plan = [random.choice(names_of(role)) for role in roles]
        for _ in range(random.randint(0, 2)):
            plan.insert(random.randint(1, len(plan)), random.choice(any_layer))
    elif len(draft.shape) == 1 and random.random() < 0.7:
        plan = [random.choice(names_of("embedding")), *plan]
    for name in plan:
        for _ in range(ATTEMPTS):
            copies = random.choice(["", "", "", " * 2", " * 3"])
            draft.layers.append(Writer(random, width).call(CATALOGUE.layers, name) + copies)
            made = draft.passes()
            if made is not None:
                width = made.output[-1] if made.output and isinstance(made.output[-1], int) else width
                break
            draft.layers.pop()
    if not draft.layers:
        draft = Draft((SOURCE, width), [repr(CATALOGUE.layers.get(names_of("head")[0]).tiny()[0])])
    for section, registry in (("loss", CATALOGUE.losses), ("optimizer", CATALOGUE.optimizers)):
        draft.ends.append(f"{section}: {Writer(random, width).call(registry)}")
        if random.random() < 0.3 or draft.passes() is None:
            draft.ends.pop()
    network, settled = draft.network(), draft.settled().network()
    assert network is not None and settled is not None
    return Sample(draft.text(), network, settled)


def samples() -> st.SearchStrategy[Sample]:
    """Networks that pass `check`."""
    return st.randoms(use_true_random=False).map(sample_from)
