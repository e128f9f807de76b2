"""A call in a program + the declaration it names → an instance, or every mistake in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from neural.core.diagnostics import Findings, Fix, Label, Where
from neural.core.names import closest
from neural.core.registry import Registry, UnknownName
from neural.language.declaration import Declared, Setting, accept
from neural.language.kinds import Entry, Refused, Several
from neural.language.shapes import Advice, Misfit
from neural.language.syntax import Argument, Call, Literal, Value, plain

Made = TypeVar("Made", bound=Declared)

UNKNOWN = {
    "layer": "E0201", "activation": "E0213", "attention mechanism": "E0214", "positional encoding": "E0215",
    "loss": "E0404", "optimizer": "E0405", "schedule": "E0406",
}  # fmt: skip
"""The code for a misspelt name, by what was looked for."""


@dataclass(slots=True)
class Bound:
    """An instance (None where there was a mistake) and the places of its arguments."""

    made: Any
    call: Call
    places: dict[str, Where] = field(default_factory=dict)

    def place(self, names: Iterable[str]) -> Where:
        """The first of these arguments that the program wrote, else the call's name."""
        return next((self.places[name] for name in names if name in self.places), self.call.name_where)

    def report(self, findings: Findings, misfit: Misfit, said: str = "") -> None:
        """A misfit at its place in the text; `said` is added to the message."""
        labels = [Label(self.places[name], note) for name, note in misfit.notes.items() if name in self.places]
        unplaced = [f"`{name}`: {note}" for name, note in misfit.notes.items() if name not in self.places]
        helps = [*unplaced, *misfit.helps]
        findings.say(misfit.code, misfit.message + said, self.place(misfit.at), labels=labels, helps=helps)

    def advise(self, findings: Findings, advice: Advice) -> None:
        """A piece of advice at its place in the text."""
        findings.say(advice.code, advice.message, self.place(advice.at), helps=advice.helps)


class Binder:
    """Makes instances of calls; mistakes go to `findings`."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def call(self, call: Call, registry: Registry[Made], *, loosely: bool = False) -> Bound:
        """An instance of what the call names."""
        if call.broken and call.where == call.name_where:   # a word alone: perhaps no call at all
            return Bound(None, call)
        declaration = self.find(call.name, registry, call.name_where, loosely=loosely)
        if declaration is None or call.broken:
            return Bound(None, call)
        return self.arguments(call, declaration)

    def find(self, name: str, registry: Registry[Made], where: Where, *, loosely: bool = False) -> type[Made] | None:
        """The declaration of that name, or a mistake with the name that was probably meant."""
        try:
            return registry.get(name, loosely=loosely)
        except UnknownName as unknown:
            listing = "`neural layers` lists all layers" if registry.noun == "layer" else None
            known = f"known: {', '.join(registry.names())}" if listing is None else listing
            help_text = f"did you mean `{unknown.guess}`?" if unknown.guess else known
            message = f"no {registry.noun} is called `{name[:40]}`"
            in_quotes = where.end - where.start > len(name)
            fix = Fix(where, f'"{unknown.guess}"' if in_quotes else unknown.guess) if unknown.guess else None
            self.findings.say(UNKNOWN.get(registry.noun, "E0217"), message, where, helps=[help_text], fix=fix)
            return None

    def arguments(self, call: Call, declaration: type[Made]) -> Bound:
        """The call's arguments, each checked by its kind."""
        said = self.findings.wrong
        bound = Bound(None, call)
        settings = declaration.settings()
        lenders = self._lenders(call, settings)
        given, meant = self._sort(call, declaration, settings, lenders, bound)
        lent = {name: argument for name, argument in given.items() if name not in settings}
        values = {
            name: self._value(settings[name], argument, lenders, lent)
            for name, argument in given.items()
            if name in settings
        }
        for several in settings.values():
            if isinstance(several.kind, Several):
                nameless = [argument for argument in call.arguments if argument.name is None]
                registry = several.kind.registry
                values[several.name] = tuple(self._nested(argument, registry) for argument in nameless)
                if not nameless:
                    self._missing(call, declaration, [several])
        missing = [one for one in settings.values() if one.required and one.name not in {*values, *meant}]
        self._missing(call, declaration, missing)
        if self.findings.wrong == said:
            bound.made = declaration.unverified(**values)
            try:
                bound.made.verify()
            except Misfit as misfit:
                bound.report(self.findings, misfit)
        return bound

    def _missing(self, call: Call, declaration: type[Declared], missing: list[Setting]) -> None:
        if missing and not (len(missing) == 1 and isinstance(missing[0].kind, Several) and call.arguments):
            names = " and ".join(f"`{one.name}`" for one in missing)
            helps = [f"`{one.name}`: {one.doc[0].lower()}{one.doc[1:].rstrip('.')}" for one in missing]
            self.findings.say("E0204", f"`{call.name}` needs {names}", call.name_where, helps=helps)

    def _lenders(self, call: Call, settings: dict[str, Setting]) -> dict[str, type[Declared]]:
        """The entries that the call chooses by name: their arguments may stand beside its own.

        `attention="localized", window=7` says the same as `attention=localized(window=7)`.
        """
        found: dict[str, type[Declared]] = {}
        order = list(settings)
        for index, argument in enumerate(call.arguments):
            one = settings.get(argument.name or (order[index] if index < len(order) else ""))
            if one is None or not isinstance(one.kind, Entry) or not isinstance(argument.value, Literal):
                continue
            if isinstance(argument.value.value, str) and not _is_number_in_quotes(one.kind, argument.value.value):
                entry = self.find(argument.value.value, one.kind.registry, argument.value.where)
                if entry is not None:
                    found[one.name] = entry
        return found

    def _sort(
        self, call: Call, declaration: type[Declared], settings: dict[str, Setting],
        lenders: dict[str, type[Declared]], bound: Bound,
    ) -> tuple[dict[str, Argument], set[str]]:  # fmt: skip
        """Arguments by the name of their setting: positions, names, aliases; duplicates and strangers are mistakes.

        Beside them the names that a mistake was probably meant for: those are not missing as well.
        """
        order = list(settings)
        aliases = {alias: one.name for one in settings.values() for alias in one.aliases}
        lent = {name for entry in lenders.values() for name in entry.settings()}
        takes_several = any(isinstance(one.kind, Several) for one in settings.values())
        given: dict[str, Argument] = {}
        meant: set[str] = set()
        keyword_seen = False
        position = 0
        for argument in call.arguments:
            if argument.name is None:
                if takes_several:
                    continue
                if keyword_seen:
                    self.findings.say(
                        "E0211", "a value without a name stands behind one with a name", argument.where,
                        helps=["write the nameless values first, or name this one"],
                    )  # fmt: skip
                    meant.update(order)
                    continue
                if position >= len(order):
                    most = f"at most {len(order)}" if order else "no"
                    self.findings.say(
                        "E0210", f"`{call.name}` takes {most} argument{'s' if len(order) != 1 else ''}", argument.where,
                        helps=[f"they are {', '.join(order)}" if len(order) > 1 else None],
                    )  # fmt: skip
                    break
                name, position = order[position], position + 1
            else:
                keyword_seen = True
                name = aliases.get(argument.name, argument.name)
                if name != argument.name:
                    there = Where(argument.where.start, argument.where.start + len(argument.name))
                    said = f"`{argument.name}` is another name for `{name}`"
                    self.findings.say("N0701", said, argument.where, fix=Fix(there, name))
                if name not in settings and name not in lent:
                    unclear = {one.name for one in call.arguments if one.name} - set(lenders)
                    guess = self._stranger(call, declaration, argument, [*settings, *aliases, *lent], unclear)
                    meant.add(aliases.get(guess, guess))
                    continue
            if name in given:
                first = given[name]
                others = {one.name for one in (first, argument) if one.name} - {name}
                helps = [f"`{other}` is another name for `{name}`" for other in sorted(others)]
                if first.name is None:
                    helps.append(f"the value without a name is `{name}` already")
                label = Label(first.where, "first here")
                self.findings.say("E0205", f"`{name}` is given twice", argument.where, labels=[label], helps=helps)
                continue
            given[name], bound.places[name] = argument, argument.where
        return given, meant

    def _stranger(
        self, call: Call, declaration: type[Declared], argument: Argument, known: list[str], unclear: set[str]
    ) -> str:
        """An argument that nobody declared. Gives the name that was probably meant, or nothing.

        It may belong to an entry whose own name is misspelt: the choices in `unclear` are not known.
        """
        name = argument.name or ""
        where = Where(argument.where.start, argument.where.start + len(name))
        for one in declaration.settings().values():
            if isinstance(one.kind, Entry) and one.kind.or_number is None:
                registry = one.kind.registry
                owners = [owner for owner in registry.names() if name in registry.get(owner).settings()]
                if owners and one.name in unclear:
                    return ""
                if owners:
                    self.findings.say(
                        "E0216", f"`{name}` belongs to `{one.name}=\"{owners[0]}\"`", where,
                        helps=[f'add `{one.name}="{owners[0]}"`, or leave `{name}` out'],
                    )  # fmt: skip
                    return ""
        guess = closest(name, known)
        takes = f"`{call.name}` takes {', '.join(declaration.settings())}" if known else f"`{call.name}` takes none"
        self.findings.say(
            "E0202", f"`{call.name}` has no argument `{name[:40]}`", where,
            helps=[f"did you mean `{guess}`?" if guess else takes], fix=Fix(where, guess) if guess else None,
        )  # fmt: skip
        return guess or ""

    def _value(
        self, one: Setting, argument: Argument, lenders: dict[str, type[Declared]], given: dict[str, Argument]
    ) -> Any:
        """The value of an argument as its setting wants it, or None after a mistake."""
        literal = argument.value.value if isinstance(argument.value, Literal) else None
        if isinstance(one.kind, Entry) and isinstance(literal, str) and not _is_number_in_quotes(one.kind, literal):
            entry = lenders.get(one.name) or self.find(literal, one.kind.registry, argument.value.where)
            return self._with_lent(entry, argument, given) if entry else None
        if isinstance(one.kind, Entry) and isinstance(argument.value, Call):
            return self._nested(argument, one.kind.registry)
        return self.accept(one, argument.value, argument.where)

    def _with_lent(self, entry: type[Declared], argument: Argument, given: dict[str, Argument]) -> Declared | None:
        """An entry chosen by name, with those of its arguments that stand beside it."""
        said = self.findings.wrong
        beside = {name: (one, given[name]) for name, one in entry.settings().items() if name in given}
        values = {name: self._value(one, its, {}, {}) for name, (one, its) in beside.items()}
        missing = [one for one in entry.settings().values() if one.required and one.name not in values]
        named = argument.value.where
        call = Call(name=entry.__name__, name_where=named, arguments=(), where=named)
        self._missing(call, entry, missing)
        if missing or self.findings.wrong > said:
            return None
        made = entry.unverified(**values)
        try:
            made.verify()
        except Misfit as misfit:
            Bound(None, call, {name: its.where for name, (_, its) in beside.items()}).report(self.findings, misfit)
        return made

    def accept(self, one: Setting, value: Value, where: Where) -> Any:
        """A plain value, checked by the setting's kind."""
        if isinstance(value, Call) and value.broken:
            return None
        try:
            return accept(one, plain(value))
        except Refused as refused:
            fix = Fix(value.where, refused.meant) if refused.meant else None
            self.findings.say(refused.code, refused.sentence(one.name), where, helps=refused.helps, fix=fix)
            return None

    def _nested(self, argument: Argument, registry: Registry[Any]) -> Any:
        """A call inside a call: a schedule, a layer in a `Residual`."""
        if isinstance(argument.value, Call):
            return self.call(argument.value, registry, loosely=registry.spelling == "file").made
        self.findings.say("E0206", f"expected a {registry.noun} here", argument.where)
        return None


def _is_number_in_quotes(kind: Entry, text: str) -> bool:
    """`learning_rate="0.001"`: the quotes are the mistake, not the name."""
    if kind.or_number is None:
        return False
    try:
        float(text)
    except ValueError:
        return False
    return True
