"""What editors and readers are told is what the settings say."""

from typing import Annotated, Literal

import pytest
from pydantic import Field

from neural.core.fields import Also, annotation, says
from neural.core.schema import json_schema, tables
from neural.core.settings import Settings


class Inner(Settings):
    """A section."""

    rate: Annotated[float | None, Also("lr")] = Field(None, gt=0, description="How fast.")
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


def resolve(schema: dict, part: dict) -> dict:
    return schema["$defs"][part["$ref"].rpartition("/")[2]] if "$ref" in part else part


def test_the_schema_of_one_kind_refuses_unknown_keys_and_knows_other_names():
    schema = json_schema(Base, "kind", {})
    root = resolve(schema, schema)
    assert root["additionalProperties"] is False
    assert root["required"] == ["kind"]
    inner = resolve(schema, root["properties"]["inner"])
    assert set(inner["properties"]) == {"rate", "lr", "flag"}
    assert inner["properties"]["lr"]["description"] == "Same as `rate`."
    assert inner["properties"]["rate"]["anyOf"][0]["exclusiveMinimum"] == 0


def test_the_schema_of_several_kinds_follows_the_key_that_chooses():
    schema = json_schema(Base, "kind", {"small": Small, "large": Large})
    assert schema["properties"]["kind"]["enum"] == ["small", "large"]
    ways = {one["if"]["properties"]["kind"]["const"]: resolve(schema, one["then"]) for one in schema["allOf"]}
    assert set(ways["small"]["properties"]) == {"kind", "inner", "size"}
    assert set(ways["large"]["properties"]) == {"kind", "inner"}
    assert "lr" in resolve(schema, ways["large"]["properties"]["inner"])["properties"]
    assert "word" in resolve(schema, ways["large"]["properties"]["inner"])["properties"]
    assert "word" not in resolve(schema, ways["small"]["properties"]["inner"])["properties"]


def test_the_tables_show_what_each_key_takes():
    assert list(tables(Small)) == [
        "A small one.", "",
        "| key | takes | default | |",
        "|---|---|---|---|",
        "| `kind` | text | needed | Which one. |",
        "| `inner` | a section, see below |  | Inside. |",
        "| `size` | a whole number from 1 to 10 | `3` | How large. |",
        "", "### `inner`", "", "A section.", "",
        "| key | takes | default | |",
        "|---|---|---|---|",
        "| `rate` | a number above 0 |  | How fast. Also `lr`. |",
        "| `flag` | true or false | `false` | Whether. |",
    ]  # fmt: skip


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
        ("a", "a whole number above 0"), ("b", "a whole number of at least 0 and below 5"), ("c", "a number at most 3"),
        ("d", "`x` or a whole number"), ("e", "a list of numbers"), ("f", "a section: keys with values"),
        ("g", "a list"),
        ("h", "`2` or `4`"), ("i", "a list of whole numbers or names"),
    ],
)  # fmt: skip
def test_an_annotation_in_words(name, words):
    assert says(annotation(Words, name)) == words
