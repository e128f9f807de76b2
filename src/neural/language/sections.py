"""The sections of a network, read by the declarations: input, layers, loss, optimizer, train."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from neural.core.diagnostics import Findings, Fix, Label, Where
from neural.core.names import closest
from neural.language.binding import Binder, Bound
from neural.language.catalogue import Catalogue
from neural.language.flow import Step
from neural.language.kinds import MOST_AXES
from neural.language.loss import Loss
from neural.language.shapes import Shape
from neural.language.syntax import SECTIONS, Block, Call, Group, Layer, Literal, Section, plain
from neural.language.train import Train

MOST_COPIES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the sections of one network say, each on its own; None and empty where there was a mistake."""

    name: str
    start: Shape | None
    input_where: Where
    steps: list[Step]
    whole: bool
    """Whether every layer could be read."""
    loss: Loss | None
    loss_where: Where
    optimizer: Bound | None
    train: Train


class Sections:
    """Reads sections; mistakes go to `findings`."""

    def __init__(self, catalogue: Catalogue, findings: Findings) -> None:
        self.catalogue, self.findings = catalogue, findings
        self.binder = Binder(findings)

    def read(self, block: Block, shared_train: Section | None, unsure: bool) -> Parts:
        """All sections of a network; where it could not be read in full (`unsure`), nothing is said to be missing."""
        found = self.by_name(block)
        steps, whole = self.layers(found.get("layers"), block, unsure)
        loss = self.named(found["loss"], self.catalogue.losses) if "loss" in found else None
        body = found["input"].body if "input" in found else ()
        where = block.name_where if isinstance(body, tuple) else body.where
        return Parts(
            name=block.name, start=self.input(found.get("input"), block, unsure), input_where=where, steps=steps,
            whole=whole, loss=loss.made if loss else None, loss_where=loss.call.where if loss else block.name_where,
            optimizer=self.optimizer(found.get("optimizer")), train=self.train(found.get("train") or shared_train),
        )  # fmt: skip

    def by_name(self, block: Block) -> dict[str, Section]:
        """The sections by name; unknown and repeated ones are mistakes."""
        found: dict[str, Section] = {}
        for section in block.sections:
            name = section.name
            if name not in SECTIONS:
                self.no_section(section)
                name = closest(name, SECTIONS) or name
            if name in found:
                first = Label(found[name].name_where, "first here")
                self.findings.say("E0402", f"`{name}` is given twice", section.name_where, labels=[first])
                continue
            found[name] = section
        return found

    def input(self, section: Section | None, block: Block, unsure: bool) -> Shape | None:
        """The shape of the input: sizes, names of sizes, or None for a size that is open."""
        if section is None and not unsure:
            self.findings.say(
                "E0403", f"`{block.name}` has no `input:`", block.name_where, helps=["for example `input: (100, 64)`"]
            )
        if section is None or section.broken:
            return None
        value = plain(section.body) if isinstance(section.body, Literal | Group) else None
        dims = (tuple(value) or (None,)) if isinstance(value, tuple | list) else (value,)
        shape: list[int | str] = []
        for index, dim in enumerate(dims if len(dims) <= MOST_AXES else [0]):
            if dim is None and value:
                shape.append("T" if index == 0 else f"T{index + 1}")
            elif (isinstance(dim, int) and not isinstance(dim, bool) and 0 < dim < 2**31) or (
                isinstance(dim, str) and dim.isidentifier()
            ):
                shape.append(dim)
            else:
                where = section.where if section.block or isinstance(section.body, tuple) else section.body.where
                if isinstance(section.body, Group) and section.body.items:
                    where = section.body.items[index].where
                self.findings.say(
                    "E0410", "`input` must be whole sizes of 1 or more in brackets", where,
                    helps=["for example `(100, 64)`: 100 positions with 64 features; `None` leaves a size open"],
                )  # fmt: skip
                return None
        return tuple(shape)

    def layers(self, section: Section | None, block: Block, unsure: bool) -> tuple[list[Step], bool]:
        """The declared layers, and whether all of them could be read."""
        if section is None:
            if not unsure:
                helps = ["below a line `layers:`, one layer per line, such as `Dense(10)`"]
                self.findings.say("E0403", f"`{block.name}` has no `layers:`", block.name_where, helps=helps)
            return [], False
        body = section.body
        if isinstance(body, Call):   # a misspelt `layers:` with one layer
            body = (Layer(call=body, copies=None, where=body.where),)
        found = [item for item in body if isinstance(item, Layer)] if isinstance(body, tuple) else []
        if not found and not unsure:
            helps = ["one layer per line, such as `Dense(10)`"]
            self.findings.say("E0411", f"`{block.name}` has no layers", section.name_where, helps=helps)
        steps: list[Step] = []
        whole = True
        for layer in found:
            if self.findings.full:
                return [], False
            step = self.step(layer)
            whole = whole and step is not None
            steps += [step] if step else []
        return steps, whole and bool(steps)

    def step(self, layer: Layer) -> Step | None:
        """One line of `layers:`."""
        bound = self.binder.call(layer.call, self.catalogue.layers)
        copies = self.copies(layer.copies)
        return Step(bound.made, copies, bound) if bound.made is not None else None

    def copies(self, literal: Literal | None) -> int:
        """N of `* N`."""
        if literal is None:
            return 1
        value = literal.value
        if isinstance(value, int) and 1 <= value <= MOST_COPIES:
            return value
        self.findings.say(
            "E0212", f"`*` needs a whole number from 1 to {MOST_COPIES:,}, got {literal.text}", literal.where,
            helps=["`* 6` makes six independent copies"],
        )  # fmt: skip
        return 1

    def named(self, section: Section, registry: Any) -> Bound | None:
        """`"adam"`, `Adam(…)` or `Adam()`."""
        body = section.body
        if section.broken:
            return None
        if isinstance(body, Literal) and isinstance(body.value, str):
            inner = Where(body.where.start, body.where.end)
            body = Call(name=body.value, name_where=inner, arguments=(), where=body.where)
        if not isinstance(body, Call):
            where = body.where if not isinstance(body, tuple) else section.name_where
            self.findings.say(
                "E0206", f"`{section.name}` must be a name in quotes or a call", where,
                helps=[f"known: {', '.join(registry.names())}"],
            )  # fmt: skip
            return None
        return self.binder.call(body, registry, loosely=True)

    def optimizer(self, section: Section | None) -> Bound | None:
        """The optimizer, where one is named."""
        return self.named(section, self.catalogue.optimizers) if section else None

    def train(self, section: Section | None) -> Train:
        """The keys of `train { … }`."""
        values: dict[str, Any] = {}
        first: dict[str, Section] = {}
        settings = Train.settings()
        if section is not None and not (section.block and isinstance(section.body, tuple)):
            helps = ["`train { batch_size: 16 }`, one key per line"]
            self.findings.say("E0105", "`train` is a block", section.name_where, helps=helps)
            return Train()
        for pair in section.body if section is not None and isinstance(section.body, tuple) else ():
            if not isinstance(pair, Section) or pair.broken or self.findings.full:
                continue
            if pair.name not in settings:
                takes = f"`train` takes {', '.join(settings)}"
                self.unknown(pair, "E0501", f"`train` has no key `{pair.name[:40]}`", settings, takes)
            elif pair.name in first:
                label = Label(first[pair.name].name_where, "first here")
                self.findings.say("E0502", f"`{pair.name}` is given twice", pair.name_where, labels=[label])
            else:
                first[pair.name] = pair
                if isinstance(pair.body, tuple):
                    self.findings.say("E0206", f"`{pair.name}` must be {settings[pair.name].kind.says}", pair.where)
                    continue
                made = self.binder.accept(settings[pair.name], pair.body, pair.where)
                if made is not None:
                    values[pair.name] = made
        if "epochs" in values and "steps" in values:
            label = Label(first["epochs"].where, "and this")
            self.findings.say(
                "E0503", "`steps` and `epochs` cannot both say how long to train", first["steps"].where, labels=[label],
                helps=["keep one of them"],
            )  # fmt: skip
        return Train(**values)

    def no_section(self, section: Section) -> None:
        """A section that a network does not have."""
        message = f"`{section.name[:40]}` is no section of a network"
        self.unknown(section, "E0401", message, SECTIONS, f"sections are: {', '.join(SECTIONS)}")

    def unknown(self, section: Section, code: str, message: str, known: Iterable[str], otherwise: str) -> None:
        """A name that nobody knows, with the one that was probably meant."""
        guess = closest(section.name, known)
        fix = Fix(section.name_where, guess) if guess else None
        way_out = f"did you mean `{guess}`?" if guess else otherwise
        self.findings.say(code, message, section.name_where, helps=[way_out], fix=fix)

    def fragment(self, item: Block | Section | Layer) -> None:
        """A piece of a program on its own: what can be checked of it without the rest."""
        if isinstance(item, Layer):
            step = self.step(item)
            if step is not None:
                for one in self.fragment_advice(step):
                    step.bound.advise(self.findings, one)
        elif isinstance(item, Section):
            if item.name == "train":
                self.train(item)
            elif item.name == "optimizer":
                self.optimizer(item)
            elif item.name == "loss":
                self.named(item, self.catalogue.losses)
            elif item.name == "layers" and isinstance(item.body, tuple):
                for layer in item.body:
                    self.fragment(layer)
            elif item.name != "input":
                self.no_section(item)

    def fragment_advice(self, step: Step) -> Any:
        """Advice that needs only the layer's own arguments, for the width it asks for."""
        width = getattr(step.layer, "d_model", None)
        return step.layer.advice((1, width)) if width else ()
