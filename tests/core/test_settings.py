"""Settings from files: all errors at once, each with its span and a help."""

import enum
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field, ValidationError, field_validator

from neural.core.diagnostics import SourceText
from neural.core.registry import UnknownNameError
from neural.core.settings import (
    Settings,
    SettingsError,
    dump_settings,
    load_settings,
    read_settings,
    read_settings_by_key,
)
from neural.core.settings_errors import SettingsConflictError
from neural.core.settings_fields import MAX_COUNT, Aliases, ValueDescription


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Inner(Settings):
    """A section."""

    low: float = Field(0.0, ge=0, le=5, description="Where it begins.")
    high: Annotated[float, Aliases("top", "upper")] = Field(
        1.0, gt=0, lt=10, description="Where it ends."
    )
    count: Annotated[int, Field(ge=1, le=MAX_COUNT)] = Field(3, description="How many.")

    def verify(self) -> Iterator[SettingsConflictError]:
        yield from super().verify()
        if self.low > self.high:
            yield SettingsConflictError("`low` is above `high`", "low", "high", help="swap them")
        if self.count == 13:
            yield SettingsConflictError("13 of anything is too many", "count")


class Item(Settings):
    units: int = Field(description="How wide.")


class Sample(Settings):
    """A bit of everything."""

    title: str = Field(description="What to call it.")
    inner: Inner = Field(default_factory=Inner, description="A section.")
    maybe: Inner | None = None
    items: tuple[Item, ...] = ()
    named: dict[str, Item] = Field(default_factory=dict)
    flag: bool = False
    rate: float | Literal["auto"] = "auto"
    word: Literal["near", "far"] = "near"
    colour: Colour = Colour.RED
    sizes: tuple[int, int] = (1, 2)
    words: list[str] = Field(default_factory=list, max_length=3)
    place: Path | None = None
    code: Annotated[str, Field(pattern="^[a-z]+$"), ValueDescription("lower-case letters")] = "abc"
    free: Any = None
    even: int = 2

    @field_validator("even")
    @classmethod
    def _even(cls, value: int) -> int:
        if value % 2:
            raise ValueError("only even numbers are taken")
        return value


def get_errors(
    text: str | None, *overrides: str, kind: type[Settings] = Sample
) -> list[tuple[str, str, str]]:
    """Code, message and underlined text of every error."""
    with pytest.raises(SettingsError) as error:
        read_settings(kind, None if text is None else SourceText("a.yaml", text), overrides)
    return [
        (
            diagnostic.code,
            diagnostic.message,
            source.text[diagnostic.span.start : diagnostic.span.end],
        )
        for source, diagnostics in error.value.diagnostics_by_source
        for diagnostic in diagnostics
    ]


def get_helps(text: str, kind: type[Settings] = Sample) -> tuple[str, ...]:
    with pytest.raises(SettingsError) as error:
        read_settings(kind, SourceText("a.yaml", text))
    (diagnostic,) = error.value.diagnostics
    return diagnostic.helps


def read(text: str, *overrides: str) -> Sample:
    return read_settings(Sample, SourceText("a.yaml", text), overrides)


def test_given_keys_are_read_and_others_have_their_defaults():
    sample = read(
        "title: x\ninner: {low: 0.25, count: 7}\nitems:\n- units: 3\nnamed: {a: {units: 1}}\ncolour: green\n"
    )
    assert sample == Sample(
        title="x",
        inner=Inner(low=0.25, count=7),
        items=(Item(units=3),),
        named={"a": Item(units=1)},
        colour=Colour.GREEN,
    )


def test_all_yaml_notations_of_numbers_are_read():
    assert read("title: x\ninner: {low: 4e-4, high: 2, count: 1_000}").inner == Inner(
        low=0.0004, high=2.0, count=1000
    )


def test_a_section_with_only_comments_has_its_defaults():
    assert read("title: x\ninner:\n  # low: 1\n").inner == Inner()
    assert read("title: x\nmaybe:\n").maybe is None


def test_aliases_are_read_and_the_field_name_is_saved():
    assert read("title: x\ninner: {top: 5}").inner.high == 5.0
    assert dump_settings(read("title: x\ninner: {upper: 5}"))["inner"]["high"] == 5.0


ERRORS = {
    "a misspelt key": ("titel: x", ("E0801", "`titel` is not known here", "titel")),
    "a misspelt key in a section": (
        "title: x\ninner: {lo: 1}",
        ("E0801", "`lo` is not known in `inner`", "lo"),
    ),
    "a misspelt key in an item": (
        "title: x\nitems: [{units: 3, unit: 3}]",
        ("E0801", "`unit` is not known here", "unit"),
    ),
    "a key that is missing": ("flag: true", ("E0804", "`title` is missing", "")),
    "a key that is missing in an item": (
        "title: x\nitems: [{}]",
        ("E0804", "`units` is missing in item 1 of `items`", "{}"),
    ),
    "a number in quotes": (
        'title: x\ninner:\n  count: "32"',
        ("E0802", '`count` must be a whole number of 1 or more, got "32"', '"32"'),
    ),
    "a fraction": (
        "title: x\neven: 32.5",
        ("E0802", "`even` must be a whole number, got 32.5", "32.5"),
    ),
    "a whole float": (
        "title: x\neven: 32.0",
        ("E0802", "`even` must be a whole number, got 32.0", "32.0"),
    ),
    "true for a number": (
        "title: x\neven: true",
        ("E0802", "`even` must be a whole number, got true", "true"),
    ),
    "a number for true": (
        "title: x\nflag: 1",
        ("E0802", "`flag` must be true or false, got 1", "1"),
    ),
    "yes for true": (
        "title: x\nflag: yes",
        ("E0802", "`flag` must be true or false, got yes", "yes"),
    ),
    "a number for a text": ("title: 3", ("E0802", "`title` must be text, got 3", "3")),
    "nothing for a text": ("title:", ("E0802", "`title` must be text, got nothing", "title")),
    "a text for a section": (
        "title: x\ninner: fast",
        ("E0802", "`inner` must be a section: keys with values, got fast", "fast"),
    ),
    "a list for a section": (
        "title: x\ninner:\n- 1\n",
        ("E0802", "`inner` must be a section: keys with values, got a list", "inner"),
    ),
    "a section for a number": (
        "title: x\neven:\n  more: 3\n",
        ("E0802", "`even` must be a whole number, got keys with values", "even"),
    ),
    "a number for a list": (
        "title: x\nwords: 3",
        ("E0802", "`words` must be a list of names, got 3", "3"),
    ),
    "a number in a list of words": (
        "title: x\nwords: [a, 3]",
        ("E0802", "item 2 of `words` must be text, got 3", "3"),
    ),
    "neither a number nor the word": (
        "title: x\nrate: fast",
        ("E0808", "`rate` must be a number or `auto`, got fast", "fast"),
    ),
    "not one of the words": (
        "title: x\nword: nera",
        ("E0808", "`word` must be `near` or `far`, got nera", "nera"),
    ),
    "not one of the colours": (
        "title: x\ncolour: blue",
        ("E0808", "`colour` must be `red` or `green`, got blue", "blue"),
    ),
    "too small": (
        "title: x\ninner: {low: -1}",
        ("E0803", "`low` must be a number from 0 to 5, got -1", "-1"),
    ),
    "too large": (
        "title: x\ninner: {top: 10}",
        ("E0803", "`high` must be a number above 0 and below 10, got 10", "10"),
    ),
    "no count": (
        "title: x\ninner: {count: 0}",
        ("E0803", "`count` must be a whole number of 1 or more, got 0", "0"),
    ),
    "beyond every count": (
        "title: x\ninner: {count: 3000000000}",
        ("E0803", "`count` must be at most 2,147,483,647, got 3000000000", "3000000000"),
    ),
    "infinity": (
        "title: x\nrate: .inf",
        ("E0803", "`rate` must be a number or `auto`, got .inf", ".inf"),
    ),
    "not a number": (
        "title: x\nrate: .nan",
        ("E0803", "`rate` must be a number or `auto`, got .nan", ".nan"),
    ),
    "a form that is not allowed": (
        "title: x\ncode: A1",
        ("E0803", "`code` must be lower-case letters, got A1", "A1"),
    ),
    "a list that is too long": (
        "title: x\nwords: [a, b, c, d]",
        ("E0803", "`words` must be a list of names, got [a, b, c, d]", "[a, b, c, d]"),
    ),
    "what a validator refuses": (
        "title: x\neven: 3",
        ("E0803", "`even`: only even numbers are taken", "3"),
    ),
    "a contradiction": (
        "title: x\ninner: {low: 0.5, high: 0.25}",
        ("E0807", "`low` is above `high`", "low"),
    ),
    "a key twice": ("title: x\ntitle: y", ("E0806", "`title` stands here twice", "title")),
    "two names for one key": (
        "title: x\ninner: {top: 3, upper: 3}",
        ("E0806", "`upper` and `top` are two names for one thing", "upper"),
    ),
    "a list as the file": (
        "- a\n- b\n",
        ("E0802", "a file of settings holds keys with values, got a list", ""),
    ),
    "a word as the file": (
        "hello",
        ("E0802", "a file of settings holds keys with values, got hello", "hello"),
    ),
    "an empty file": ("", ("E0809", "there is nothing in this file", "")),
    "a null file": ("# nothing\n---\n", ("E0809", "there is nothing in this file", "")),
}


@pytest.mark.parametrize("case", ERRORS)
def test_an_error_is_reported_once_with_message_and_span(case):
    text, expected = ERRORS[case]
    assert get_errors(text) == [expected]


@pytest.mark.parametrize(
    ("text", "help_text"),
    [
        ("titel: x", "did you mean `title`?"),
        ("title: x\ninner: {uper: 3}", "did you mean `upper`?"),
        ("title: x\nlow: 3", "it belongs in the section `inner`"),
        ("title: x\ninner: {zzz: 3}", "known here: low, high, count"),
        ('title: x\neven: "4"', "write it without quotes: `4`"),
        ("title: x\nflag: 'true'", "write it without quotes: `true`"),
        ("title: x\nflag: on", "write `true`"),
        ("title: x\nflag: No", "write `false`"),
        ("title: x\neven: 1e3", "write `1000`"),
        ("title: 2024", 'write it in quotes: `"2024"`'),
        ("title: x\nword: nera", "did you mean `near`?"),
        ("title: x\neven:", "leave the line out to have the default"),
        ("flag: true", "`title`: What to call it."),
        ("title: x\n<<: {flag: true}", "merging is not part of YAML 1.2: write the keys out"),
        ("title: x\ninner: {low: 0.5, high: 0.25}", "swap them"),
    ],
)
def test_an_error_has_a_help(text, help_text):
    assert get_helps(text) == (help_text,)


def test_a_required_key_without_a_value_has_no_help_about_defaults():
    assert get_helps("title:") == ()


def test_all_errors_of_a_file_are_reported_in_line_order():
    text = "titel: x\ninner:\n  low: -1\n  count: many\n  hihg: 3\nitems:\n- units: x\n- unit: 3\nflag: 3\n"
    assert [(code, part) for code, _, part in get_errors(text)] == [
        ("E0801", "titel"),
        ("E0803", "-1"),
        ("E0802", "many"),
        ("E0801", "hihg"),
        ("E0802", "x"),
        ("E0801", "unit"),
        ("E0802", "3"),
    ]


def test_a_conflict_is_reported_beside_errors_unless_it_depends_on_one():
    assert [code for code, *_ in get_errors("title: 3\ninner: {low: 0.5, high: 0.25}")] == [
        "E0802",
        "E0807",
    ]
    assert [
        code for code, *_ in get_errors("title: x\ninner: {low: 0.5, high: 0.25, count: x}")
    ] == [
        "E0807",
        "E0802",
    ]
    assert [code for code, *_ in get_errors("title: x\ninner: {low: 3, high: -1}")] == ["E0803"]


def test_all_conflicts_of_a_section_are_reported():
    errors = get_errors("title: x\ninner: {low: 0.5, high: 0.25, count: 13}")
    assert [part for *_, part in errors] == ["low", "count"]


def test_the_message_renders_the_diagnostics():
    with pytest.raises(SettingsError) as error:
        read_settings(Sample, SourceText("a.yaml", 'title: x\neven: "4"\n'))
    assert str(error.value) == (
        'error[E0802]: `even` must be a whole number, got "4"\n  --> a.yaml:2:7\n 2 | even: "4"\n   |       ^^^\n'
        "   = help: write it without quotes: `4`"
    )


# --- overrides ------------------------------------------------------------------------------------


def test_an_override_replaces_a_value_and_keeps_the_others():
    sample = read(
        "title: x\ninner: {low: 0.5, count: 5}", "inner.low=2e-1", "title = 'y: z'", "words=[a, b]"
    )
    assert sample == Sample(title="y: z", inner=Inner(low=0.2, count=5), words=["a", "b"])


def test_an_override_creates_a_missing_or_empty_section():
    assert read("title: x", "inner.low=0.5").inner.low == 0.5
    assert read("title: x\ninner:\n", "inner.low=0.5").inner.low == 0.5
    assert read("title: x\nmaybe:\n", "maybe.low=0.5").maybe == Inner(low=0.5)


def test_a_section_as_an_override_replaces_the_old_section():
    assert read("title: x\ninner: {low: 0.5, count: 5}", "inner={low: 0.25}").inner == Inner(
        low=0.25
    )


def test_overrides_accept_aliases_and_the_last_one_wins():
    assert read("title: x\ninner: {high: 2}", "inner.top=3", "inner.upper=4").inner.high == 4.0


def test_overrides_work_without_a_file():
    assert read_settings(Sample, None, ["title=x"]) == Sample(title="x")
    assert get_errors(None) == [("E0804", "`title` is missing", "")]


def test_an_override_may_correct_the_file():
    assert read("title: x\neven: 3", "even=4").even == 4


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("even=x", ("E0802", "`even` must be a whole number, got x", "x")),
        ("even=", ("E0802", "`even` must be a whole number, got nothing", "even")),
        ("inner.lwo=3", ("E0801", "`lwo` is not known in `inner`", "lwo")),
        ("iner.low=3", ("E0801", "`iner` is not known here", "iner")),
        ("inner.low=7", ("E0803", "`low` must be a number from 0 to 5, got 7", "7")),
        ("even.more=3", ("E0802", "`even` must be a whole number, got keys with values", "even")),
        ("words=[a", ("E0805", "a `,` or `]` is missing before this", "")),
        ("even", ("E0805", "a change is KEY=VALUE, the key with dots between its parts", "even")),
        ("=3", ("E0805", "a change is KEY=VALUE, the key with dots between its parts", "=3")),
        (
            "inner..low=3",
            ("E0805", "a change is KEY=VALUE, the key with dots between its parts", "inner..low=3"),
        ),
        ("", ("E0805", "a change is KEY=VALUE, the key with dots between its parts", "")),
    ],
)
def test_an_invalid_override_is_shown_in_its_own_text(override, expected):
    assert get_errors("title: x", override) == [expected]
    with pytest.raises(SettingsError, match=r"--> --set:1:\d"):
        read("title: x", override)


def test_errors_of_the_file_and_all_overrides_are_reported_together():
    errors = get_errors("titel: x\neven: 3", "flag=3", "inner.low=x")
    assert [part for *_, part in errors] == ["titel", "3", "3", "x"]


def test_a_conflict_with_an_override_points_to_the_override():
    with pytest.raises(SettingsError, match=r"--> --set:1:7"):
        read("title: x\ninner: {low: 0.5}", "inner.high=0.25")


# --- settings chosen by a key ---------------------------------------------------------------------


class Named(Settings):
    """What all kinds share."""

    kind: str = Field(description="Which one.")
    inner: Inner = Field(default_factory=Inner)


class Special(Named):
    extra: int = 3


def find_kind(name: str) -> type[Named]:
    if name != "special":
        raise UnknownNameError("kind", name, "special" if name.startswith("s") else None)
    return Special


def read_by_key(text: str, *overrides: str) -> Named:
    return read_settings_by_key(Named, "kind", find_kind, SourceText("a.yaml", text), overrides)


def test_a_key_selects_the_settings_class():
    assert read_by_key("kind: special\nextra: 5") == Special(kind="special", extra=5)
    assert read_by_key("extra: 5", "kind=special") == Special(kind="special", extra=5)
    assert read_by_key("kind: unheard\nextra: 5", "kind=special") == Special(
        kind="special", extra=5
    )


@pytest.mark.parametrize(
    ("text", "codes", "help_text"),
    [
        ("kind: spezial\nextra: 5\ninner: {low: 7}", ["E0808", "E0803"], "did you mean `special`?"),
        ("kind: odd\nextra: 5", ["E0808"], None),
        ("extra: 5\ninner: {low: 7}", ["E0804", "E0803"], "`kind`: Which one."),
        ("kind: 3\nextra: 5", ["E0802"], 'write it in quotes: `"3"`'),
    ],
)
def test_without_a_known_kind_only_the_shared_keys_are_checked(text, codes, help_text):
    with pytest.raises(SettingsError) as error:
        read_by_key(text)
    assert [diagnostic.code for diagnostic in error.value.diagnostics] == codes
    assert error.value.diagnostics[0].helps == ((help_text,) if help_text else ())


# --- saving and Python ----------------------------------------------------------------------------


def test_settings_are_frozen_and_not_coerced():
    sample = Sample(title="x")
    with pytest.raises(ValidationError):
        sample.title = "y"
    for bad in (
        {"title": 3},
        {"title": "x", "even": "4"},
        {"title": "x", "flag": 1},
        {"title": "x", "titel": "y"},
    ):
        with pytest.raises(ValidationError):
            Sample(**bad)
    with pytest.raises(ValidationError, match="`low` is above `high`"):
        Inner(low=0.5, high=0.25)


def test_settings_of_another_version_are_reported():
    with pytest.raises(SettingsError, match=r"--> settings.json:3:3"):
        load_settings(Inner, {"low": 0.5, "gone": 3})


def test_saved_settings_may_be_long_and_use_aliases():
    assert load_settings(Sample, {"title": "x" * 2_000_000}).title == "x" * 2_000_000
    assert load_settings(Inner, {"top": 3}) == Inner(high=3.0)


words = st.text(max_size=12)
samples = st.builds(
    Sample,
    title=words,
    flag=st.booleans(),
    even=st.integers(-50, 50).map(lambda n: 2 * n),
    inner=st.builds(Inner, low=st.floats(0, 1), high=st.floats(1, 9.99), count=st.integers(1, 12)),
    maybe=st.none() | st.builds(Inner),
    rate=st.floats(allow_nan=False, allow_infinity=False) | st.just("auto"),
    items=st.lists(st.builds(Item, units=st.integers()), max_size=2).map(tuple),
    colour=st.sampled_from(Colour),
    named=st.dictionaries(words, st.builds(Item, units=st.integers()), max_size=2),
    words=st.lists(words, max_size=3),
    place=st.none() | st.just(Path("some/where")),
    sizes=st.tuples(st.integers(), st.integers()),
)


@given(samples)
@settings(max_examples=100, deadline=None)
def test_saved_settings_load_equal(sample):
    data = dump_settings(sample)
    assert json.loads(json.dumps(data)) == data
    assert load_settings(Sample, data) == sample
    assert read(json.dumps(data)) == sample  # through YAML


PIECES = [
    "title",
    "inner",
    "low",
    "items",
    "units",
    "even",
    "flag",
    "rate",
    ":",
    ": ",
    "- ",
    "\n",
    "\n  ",
    "\n    ",
    "  ",
    "x",
    "3",
    "-1",
    "4e-4",
    "true",
    "null",
    "~",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "'",
    '"',
    "&a ",
    "*a",
    "!!int ",
    "|\n",
    ">",
    "? ",
    "#",
    "\t",
    "---\n",
    "...",
    "%YAML 1.1\n",
    "<<",
    "=",
    ".",
    "@",
    "\\",
    "\\x",
    "\\ud800",
    "\\UFFFFFFFF",
    "\x00",
    "\x85",
    "\u2028",
    "\ufeff",
    "\r",
    "é",
    "🙂",
    "9" * 500,
    "1e999",
    ".nan",
    "0x",
    "_",
]
yamlish = st.lists(st.sampled_from(PIECES), max_size=40).map("".join) | st.text(max_size=60)


@given(yamlish, st.lists(yamlish | yamlish.map(lambda text: f"even={text}"), max_size=2))
@settings(max_examples=400, deadline=None)
def test_any_text_gives_settings_or_diagnostics(text, overrides):
    for start in ("", "title: x\n"):
        try:
            assert isinstance(read(start + text, *overrides), Sample)
        except SettingsError as error:
            assert error.diagnostics
            assert "pydantic" not in str(error)
            assert all(
                diagnostic.severity == "error" and diagnostic.code.startswith("E08")
                for diagnostic in error.diagnostics
            )
            for source, diagnostics in error.diagnostics_by_source:
                assert all(
                    0 <= diagnostic.span.start <= len(source.text) for diagnostic in diagnostics
                )
