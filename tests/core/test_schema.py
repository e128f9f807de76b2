"""JSON schema and Markdown tables of settings."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from neural.core.schema import build_json_schema, format_tables
from neural.core.settings import Settings
from neural.core.settings_fields import Aliases, describe_type, get_annotation


class Inner(Settings):
    """A section."""

    rate: Annotated[float | None, Aliases("lr")] = Field(None, gt=0, description="How fast.")
    flag: bool = Field(False, description="Whether.")


class Base(Settings):
    """What all share."""

    kind: str = Field(description="Which one.")
    inner: Inner = Field(default_factory=Inner, description="Inside.")


class Small(Base):
    """A small one."""

    size: int = Field(3, ge=1, le=10, description="How large.")


class OtherInner(Inner):
    """Another section."""

    word: Literal["near", "far"] = Field("near", description="Where.")


class Large(Base):
    """A large one."""

    inner: OtherInner = Field(default_factory=OtherInner, description="Inside.")


def resolve(schema: dict, reference: dict) -> dict:
    return (
        schema["$defs"][reference["$ref"].rpartition("/")[2]] if "$ref" in reference else reference
    )


def test_the_schema_of_one_kind_forbids_unknown_keys_and_has_aliases():
    schema = build_json_schema(Base, "kind", {})
    root = resolve(schema, schema)
    assert root["additionalProperties"] is False
    assert root["required"] == ["kind"]
    inner = resolve(schema, root["properties"]["inner"])
    assert set(inner["properties"]) == {"rate", "lr", "flag"}
    assert inner["properties"]["lr"]["description"] == "Same as `rate`."
    assert inner["properties"]["rate"]["anyOf"][0]["exclusiveMinimum"] == 0


def test_the_schema_of_several_kinds_depends_on_the_key():
    schema = build_json_schema(Base, "kind", {"small": Small, "large": Large})
    assert schema["properties"]["kind"]["enum"] == ["small", "large"]
    branches = {
        branch["if"]["properties"]["kind"]["const"]: resolve(schema, branch["then"])
        for branch in schema["allOf"]
    }
    assert set(branches["small"]["properties"]) == {"kind", "inner", "size"}
    assert set(branches["large"]["properties"]) == {"kind", "inner"}
    assert "lr" in resolve(schema, branches["large"]["properties"]["inner"])["properties"]
    assert "word" in resolve(schema, branches["large"]["properties"]["inner"])["properties"]
    assert "word" not in resolve(schema, branches["small"]["properties"]["inner"])["properties"]


def test_the_tables_show_what_each_key_accepts():
    assert list(format_tables(Small)) == [
        "A small one.",
        "",
        "| key | takes | default | |",
        "|---|---|---|---|",
        "| `kind` | text | needed | Which one. |",
        "| `inner` | a section, see below |  | Inside. |",
        "| `size` | a whole number from 1 to 10 | `3` | How large. |",
        "",
        "### `inner`",
        "",
        "A section.",
        "",
        "| key | takes | default | |",
        "|---|---|---|---|",
        "| `rate` | a number above 0 |  | How fast. Also `lr`. |",
        "| `flag` | true or false | `false` | Whether. |",
    ]


class Words(Settings):
    a: int = Field(1, gt=0)
    b: int = Field(1, ge=0, lt=5)
    c: float = Field(1.0, le=3)
    d: Literal["x"] | int = 1
    e: list[float] | None = None
    f: dict[str, int] = Field(default_factory=dict)
    g: tuple[Inner, ...] = ()
    h: Literal[2, 4] = 2
    i: list[int | str] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("a", "a whole number above 0"),
        ("b", "a whole number of at least 0 and below 5"),
        ("c", "a number at most 3"),
        ("d", "`x` or a whole number"),
        ("e", "a list of numbers"),
        ("f", "a section: keys with values"),
        ("g", "a list"),
        ("h", "`2` or `4`"),
        ("i", "a list of whole numbers or names"),
    ],
)
def test_an_annotation_is_described(name, words):
    assert describe_type(get_annotation(Words, name)) == words
