"""Program → Network, or every mistake in it at once.

`check` never stops at the first mistake: each section and each layer is looked at (sections.py), and the shape goes on
with a sensible guess where it can (assembly.py, flow.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from neural.core.diagnostics import Diagnostic, Findings, Label, Where
from neural.core.names import did_you_mean
from neural.language.assembly import assemble
from neural.language.catalogue import Catalogue
from neural.language.network import Network
from neural.language.parser import parse
from neural.language.sections import Sections
from neural.language.syntax import Block, Layer, Program, Section

UNREAD = ("E0102", "E0106", "E0107")
"""After these the text was not read to its end: what seems to be missing is not."""


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
    checker = _Checker(catalogue, findings, sizes or {})
    if fragment:
        networks = [checker.network(block, None) for block in program.networks]
        for item in program.items:
            checker.sections.fragment(item)
    else:
        networks = checker.chosen(program, network)
    # advice waits until there are no mistakes: half of it would be about them
    order = sorted(findings.mistakes or findings.items, key=lambda one: (one.severity != "warning", one.where.start))
    return Checked(program=program, networks=tuple(net for net in networks if net), diagnostics=tuple(order))


class _Checker:
    def __init__(self, catalogue: Catalogue, findings: Findings, sizes: Mapping[str, int]) -> None:
        self.catalogue, self.findings, self.sizes = catalogue, findings, sizes
        self.sections = Sections(catalogue, findings)

    def chosen(self, program: Program, name: str | None) -> list[Network | None]:
        """Check all networks, give the wanted one."""
        blocks = program.networks
        shared = self.shared_train(program)
        if not blocks and not self.findings.mistakes:
            self.findings.say(
                "E0113", "there is no network here", Where(0, 0), helps=["begin with `network MyNetwork {`"]
            )
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
            helps = [did_you_mean(name, seen) or f"here are: {names}"]
            self.findings.say("E0409", f"there is no network `{name}`", Where(0, 0), helps=helps)
        if name is None and len(seen) > 1:
            second, helps = list(seen.values())[1], [f"say `--network NAME`; here are: {names}"]
            self.findings.say("E0408", "which of these networks?", second.name_where, helps=helps)
        return [networks[name]] if name in networks else list(networks.values())

    def shared_train(self, program: Program) -> Section | None:
        """A `train` block beside the networks counts for all of them; nothing else may stand there."""
        shared = None
        lost = any(not any(_inside(one, block) for block in program.networks) for one in self.findings.mistakes)
        for item in program.items:
            if isinstance(item, Section) and item.name == "train" and item.block:
                if shared is not None:
                    first = Label(shared.name_where, "first here")
                    self.findings.say("E0402", "`train` is given twice", item.name_where, labels=[first])
                shared = shared or item
            elif not isinstance(item, Block) and not lost:
                what = f"`{item.call.name}(…)`" if isinstance(item, Layer) else f"`{item.name}`"
                where = item.where if isinstance(item, Layer) else item.name_where
                self.findings.say(
                    "E0112", f"{what} stands outside a network", where,
                    helps=["put it inside `network Name { … }`, or check it alone with `--fragment`"],
                )  # fmt: skip
        return shared

    def network(self, block: Block, shared_train: Section | None) -> Network | None:
        """One network, or None after a mistake."""
        inside = [one for one in self.findings.mistakes if _inside(one, block)]
        before = self.findings.wrong - len(inside)
        parts = self.sections.read(block, shared_train, unsure=bool(inside))
        made = assemble(parts, self.catalogue, self.findings, self.sizes, before)
        return made if self.findings.wrong == before else None


def _inside(one: Diagnostic, block: Block) -> bool:
    return block.where.start <= one.where.start < block.where.end
