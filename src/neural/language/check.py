"""Program → Network, or every mistake in it at once.

`check` never stops at the first mistake: each section and each layer is looked at, and the shape goes on with a
sensible guess where it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from neural.core.diagnostics import Diagnostic, Findings, Label, Where
from neural.core.names import did_you_mean
from neural.language.advice import advise_network
from neural.language.binding import Binder, Bound
from neural.language.catalogue import Catalogue
from neural.language.flow import Step, Walk, arrange, check_size, check_stem, place, walk
from neural.language.kinds import MOST_AXES
from neural.language.loss import Loss
from neural.language.network import Network
from neural.language.parser import parse
from neural.language.shapes import Shape
from neural.language.syntax import SECTIONS, Block, Call, Group, Layer, Literal, Program, Section, plain
from neural.language.train import Train

UNREAD = ("E0102", "E0106", "E0107")
"""After these the text was not read to its end: what seems to be missing is not."""
MOST_COPIES = 10_000
USUAL_LENGTH = 1024
"""Costs are computed for this many positions where a program leaves the length open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What came of a text: the networks that work, and everything there is to say."""

    program: Program
    networks: tuple[Network, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def mistakes(self) -> tuple[Diagnostic, ...]:
        """Only what is wrong."""
        return tuple(one for one in self.diagnostics if one.severity == "error")


def check(
    text: str, catalogue: Catalogue, *, network: str | None = None, fragment: bool = False,
    sizes: Mapping[str, int] | None = None,
) -> Checked:  # fmt: skip
    """Read and check a text: one network (named if there are several), or with `fragment` whatever stands there.

    `sizes` are the values for costs of sizes that the program leaves open.
    """
    findings = Findings()
    program = parse(text, findings)
    unread = [one for one in findings.items if one.code in UNREAD]
    if unread:
        return Checked(program=program, networks=(), diagnostics=tuple(unread))
    checker = _Checker(catalogue, findings, dict(sizes or {}))
    if fragment:
        networks = [checker.network(block, None) for block in program.networks]
        for item in program.items:
            checker.fragment(item)
    else:
        networks = checker.chosen(program, network)
    # advice waits until there are no mistakes: half of it would be about them
    order = sorted(findings.mistakes or findings.items, key=lambda one: (one.severity != "warning", one.where.start))
    return Checked(program=program, networks=tuple(net for net in networks if net), diagnostics=tuple(order))


class _Checker:
    def __init__(self, catalogue: Catalogue, findings: Findings, sizes: dict[str, int]) -> None:
        self.catalogue, self.findings, self.sizes = catalogue, findings, sizes
        self.binder = Binder(findings)
        self.said = 0
        """Mistakes that have nothing to do with the network at hand."""
        self.unsure = False
        """Whether the network at hand could not be read in full: then nothing is said to be missing."""

    def chosen(self, program: Program, name: str | None) -> list[Network | None]:
        """Check all networks, give the wanted one."""
        blocks, shared = program.networks, None
        lost = any(not any(_inside(one, block) for block in blocks) for one in self.findings.mistakes)
        for item in program.items:
            if isinstance(item, Section) and item.name == "train" and item.block:
                if shared is not None:
                    first = Label(shared.name_where, "first here")
                    self.findings.say("E0402", "`train` is given twice", item.name_where, labels=[first])
                shared = shared or item
            elif not isinstance(item, Block) and not lost:
                what = f"`{item.call.name}(…)`" if isinstance(item, Layer) else f"`{item.name}`"
                self.findings.say(
                    "E0112", f"{what} stands outside a network", item.where if isinstance(item, Layer) else item.name_where,
                    helps=["put it inside `network Name { … }`, or check it alone with `--fragment`"],
                )  # fmt: skip
        if not blocks and not self.findings.mistakes:
            self.findings.say("E0113", "there is no network here", Where(0, 0), helps=["begin with `network MyNetwork {`"])
        seen: dict[str, Block] = {}
        for block in blocks:
            if block.name in seen:
                first = Label(seen[block.name].name_where, "first here")
                self.findings.say(
                    "E0412", f"two networks are called `{block.name}`", block.name_where, labels=[first],
                    helps=["give one of them another name"],
                )  # fmt: skip
            seen.setdefault(block.name, block)
        networks = {block.name: self.network(block, shared) for block in blocks}
        names = ", ".join(seen)
        if name is not None and blocks and name not in seen:
            self.findings.say("E0409", f"there is no network `{name}`", Where(0, 0), helps=[did_you_mean(name, seen) or f"here are: {names}"])
        if name is None and len(seen) > 1:
            second = list(seen.values())[1]
            self.findings.say("E0408", "which of these networks?", second.name_where, helps=[f"say `--network NAME`; here are: {names}"])
        return [networks[name]] if name in networks else list(networks.values())

    # --- sections -------------------------------------------------------------------------------------------

    def network(self, block: Block, shared_train: Section | None) -> Network | None:
        """One network, or None after a mistake."""
        inside = [one for one in self.findings.mistakes if _inside(one, block)]
        self.said = said = self.findings.wrong - len(inside)
        self.unsure = bool(inside)
        sections = self.sections(block)
        start = self.input(sections.get("input"), block)
        steps, whole = self.layers(sections.get("layers"), block)
        loss = self.loss(sections.get("loss"))
        optimizer = self.optimizer(sections.get("optimizer"))
        train = self.train(sections.get("train") or shared_train)
        made = self.assemble(block, sections, start, steps, whole, loss, optimizer, train)
        return made if self.findings.wrong == said else None

    def sections(self, block: Block) -> dict[str, Section]:
        """The sections by name; unknown and repeated ones are mistakes."""
        found: dict[str, Section] = {}
        for section in block.sections:
            name = section.name
            if name not in SECTIONS:
                guess = did_you_mean(name, SECTIONS)
                known = f"sections are: {', '.join(SECTIONS)}"
                self.findings.say("E0401", f"`{name[:40]}` is no section of a network", section.name_where, helps=[guess or known])
                name = guess.split("`")[1] if guess else name
            if name in found:
                first = Label(found[name].name_where, "first here")
                self.findings.say("E0402", f"`{name}` is given twice", section.name_where, labels=[first])
                continue
            found[name] = section
        return found

    def input(self, section: Section | None, block: Block) -> Shape | None:
        """The shape of the input: sizes, names of sizes, or None for a size that is open."""
        if section is None and not self.unsure:
            self.findings.say(
                "E0403", f"`{block.name}` has no `input:`", block.name_where, helps=["for example `input: (100, 64)`"]
            )
        if section is None or section.broken:
            return None
        value = plain(section.body) if isinstance(section.body, Literal) or hasattr(section.body, "bracket") else None
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

    def layers(self, section: Section | None, block: Block) -> tuple[list[Step], bool]:
        """The declared layers, and whether all of them could be read."""
        if section is None:
            if not self.unsure:
                helps = ["below a line `layers:`, one layer per line, such as `Dense(10)`"]
                self.findings.say("E0403", f"`{block.name}` has no `layers:`", block.name_where, helps=helps)
            return [], False
        body = section.body
        if isinstance(body, Call):   # a misspelt `layers:` with one layer
            body = (Layer(call=body, copies=None, where=body.where),)
        found = [item for item in body if isinstance(item, Layer)] if isinstance(body, tuple) else []
        if not found and not self.unsure:
            self.findings.say(
                "E0411", f"`{block.name}` has no layers", section.name_where, helps=["one layer per line, such as `Dense(10)`"]
            )
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

    def loss(self, section: Section | None) -> tuple[Loss | None, Where | None]:
        if section is None:
            return None, None
        bound = self.named(section, self.catalogue.losses)
        return (bound.made, bound.call.where) if bound else (None, None)

    def optimizer(self, section: Section | None) -> Bound | None:
        return self.named(section, self.catalogue.optimizers) if section else None

    def train(self, section: Section | None) -> Train:
        """The keys of `train { … }`."""
        values: dict[str, Any] = {}
        first: dict[str, Section] = {}
        settings = Train.settings()
        if section is not None and not (section.block and isinstance(section.body, tuple)):
            self.findings.say(
                "E0105", "`train` is a block", section.name_where, helps=["`train { batch_size: 16 }`, one key per line"]
            )
            return Train()
        for pair in section.body if section is not None and isinstance(section.body, tuple) else ():
            if not isinstance(pair, Section) or pair.broken or self.findings.full:
                continue
            if pair.name not in settings:
                guess = did_you_mean(pair.name, settings) or f"`train` takes {', '.join(settings)}"
                self.findings.say("E0501", f"`train` has no key `{pair.name[:40]}`", pair.name_where, helps=[guess])
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

    # --- the whole ------------------------------------------------------------------------------------------

    def assemble(
        self, block: Block, sections: dict[str, Section], start: Shape | None, steps: list[Step], whole: bool,
        loss: tuple[Loss | None, Where | None], optimizer: Bound | None, train: Train,
    ) -> Network | None:  # fmt: skip
        """Shapes, costs, head and loss of what was read."""
        ids = bool(steps) and steps[0].layer.role == "embedding"
        if start is not None and steps and ids:
            start = self.token_input(start, steps[0], sections["input"])
        layers = self.catalogue.layers
        steps, two_streams = arrange(steps, layers.get("PositionalEncoding"), layers.get("LayerNormalization"))
        check_stem(steps, self.findings)
        for step in steps:
            if step.layer.role == "head" and (step is not steps[-1] or step.copies > 1) and not step.automatic:
                self.findings.say(
                    "E0413", "`Output` must be the last layer", step.bound.call.name_where,
                    helps=["leave the copies out" if step is steps[-1] else "`Dense` may stand anywhere"],
                )  # fmt: skip
        if start is None or not whole:
            return None
        target = "T" if "T" not in start else "U"
        walked = walk(steps, start, self.findings, two_streams, target)
        for step in steps[1:]:
            if step.layer.role == "embedding" and walked.whole:
                self.findings.say(
                    "E0306", "`Embedding` takes token ids, but features arrive", step.bound.call.name_where,
                    helps=["it must be the first layer, after `input: (length,)`"],
                )  # fmt: skip
        head = self.head(steps, loss)
        if not walked.whole or self.findings.wrong > self.said:
            return None
        measured, assumed = self.measured(steps, start, target if two_streams else None)
        if not measured.whole:
            return None
        check_size(steps, measured, self.findings)
        network = Network(
            name=block.name, input=start, ids=ids, layers=place(steps, walked, measured.costs), output=walked.gives[-1],
            head=head, two_streams=two_streams, loss=loss[0], optimizer=optimizer.made if optimizer else None,
            train=train, assumed=assumed,
        )  # fmt: skip
        for step, given in zip(steps, measured.given, strict=True):
            if not step.automatic:
                for one in step.layer.advice(given):
                    step.bound.advise(self.findings, one)
        advise_network(network, steps[-1].bound, optimizer, self.findings)
        return network

    def token_input(self, start: Shape, first: Step, section: Section) -> Shape:
        """Rule 1: before an `Embedding` the input is token ids; a second size is the embedding's width, checked."""
        where = section.where if isinstance(section.body, tuple) else section.body.where
        expected = first.layer.output_dim   # type: ignore[attr-defined]  # embeddings declare it
        if len(start) == 2:
            if start[1] != expected:
                place = first.bound.place(["output_dim"])
                self.findings.say(
                    "E0305", f"`output_dim` is {expected}, but `input` says {start[1]} features", place,
                    labels=[Label(where, "token ids need no width")], helps=[f"write `input: ({start[0]},)`"],
                )  # fmt: skip
            else:
                self.findings.say(
                    "N0702", f"the input is {start[0]} token ids; {start[1]} is the width after `Embedding`", where,
                    helps=[f"`input: ({start[0]},)` is clearer"],
                )  # fmt: skip
            return start[:1]
        return start

    def head(self, steps: list[Step], loss: tuple[Loss | None, Where | None]) -> str:
        """The activation that the loss takes over from the last layer; a head that the loss cannot judge is a mistake."""
        last = steps[-1]
        activation = getattr(last.layer, "activation", "linear")
        made, where = loss
        if made is None:
            return "linear"
        units = getattr(last.layer, "units", None)
        problem = made.head_problem(activation, units)
        if problem is not None and where is not None:
            message, way_out = problem
            label = Label(where, "judged by this loss")
            place = last.bound.call.where if units == 1 else last.bound.place(["activation"])
            self.findings.say("E0407", message, place, labels=[label], helps=[way_out])
        return activation if activation in made.fuses else "linear"

    def measured(self, steps: list[Step], start: Shape, target: str | None) -> tuple[Walk, dict[str, int]]:
        """The costs, at values for the open sizes: as asked, else the source's length for the target, else a usual one.

        Where a layer ends earlier (learned positions), the usual length is halved until it fits.
        """
        length = next((dim for dim in start[:1] if isinstance(dim, int)), USUAL_LENGTH)
        names = [dim for dim in (*start, target) if isinstance(dim, str)]
        tried: list[tuple[Walk, dict[str, int]]] = []
        while length and not (tried and tried[-1][0].whole):
            assumed = {name: self.sizes.get(name, length) for name in names}
            known = tuple(assumed.get(dim, dim) if isinstance(dim, str) else dim for dim in start)
            tried.append((walk(steps, known, None, target is not None, assumed.get(target or "", 0)), assumed))
            length = length // 2 if not all(name in self.sizes for name in names) else 0
        if tried[-1][0].whole:
            return tried[-1]
        failed, assumed = tried[0]
        if failed.misfit is not None:
            sizes = ", ".join(f"{name} = {value}" for name, value in assumed.items())
            steps[len(failed.gives)].bound.report(self.findings, failed.misfit, f", with {sizes}")
        return failed, assumed

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
                self.loss(item)
            elif item.name == "layers" and isinstance(item.body, tuple):
                for layer in item.body:
                    self.fragment(layer)
            elif item.name != "input":
                guess = did_you_mean(item.name, SECTIONS) or f"sections are: {', '.join(SECTIONS)}"
                self.findings.say("E0401", f"`{item.name[:40]}` is no section of a network", item.name_where, helps=[guess])

    def fragment_advice(self, step: Step) -> Any:
        """Advice that needs only the layer's own arguments, for the width it asks for."""
        width = getattr(step.layer, "d_model", None)
        return step.layer.advice((1, width)) if width else ()


def _inside(one: Diagnostic, block: Block) -> bool:
    return block.where.start <= one.where.start < block.where.end
