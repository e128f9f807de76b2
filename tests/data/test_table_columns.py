"""Columns of a table: which are features, target, identifier and group."""

import pytest

from neural.core.errors import TaskError
from neural.core.settings import SettingsError, load_settings
from neural.data.table_cells import parse_table_text
from neural.data.table_columns import TableSettings, assign_columns, match_columns

SHOP = "customer,age,city,price,label\n7,30,Rome,2.5,yes\n8,40,Oslo,3.5,no\n"
PLAIN = "7,30,2.5\n8,40,3.5\n"


def name_roles(text, **settings):
    """Names of the features and of target, id and group."""
    table = parse_table_text(text, "t.csv")
    roles = assign_columns(table, TableSettings(**settings))
    others = (roles.target, roles.id, roles.group)
    return [table.names[column] for column in roles.features], *(
        None if column is None else table.names[column] for column in others
    )


@pytest.mark.parametrize(
    ("settings", "features", "target"),
    [
        ({}, ["customer", "age", "city", "price"], "label"),
        ({"target": "price"}, ["customer", "age", "city", "label"], "price"),
        ({"drop": ("label", "customer")}, ["age", "city"], "price"),
        ({"features": ("price", "age")}, ["price", "age"], "label"),
        ({"features": ("price", "age"), "target": "city"}, ["price", "age"], "city"),
    ],
)
def test_the_settings_choose_features_and_target(settings, features, target):
    assert name_roles(SHOP, **settings)[:2] == (features, target)


def test_identifier_and_group_are_no_features():
    roles = name_roles(SHOP, id="customer", group="city")
    assert roles == (["age", "price"], "label", "customer", "city")


def test_columns_without_a_header_are_named_by_number():
    assert name_roles(PLAIN, target=2, drop=(1,))[:2] == (["3"], "2")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target": "prize"}, r"t.csv has no column `prize` \(`table.target`\); did you mean `pri"),
        ({"drop": ("zzz",)}, r"`zzz` \(`table.drop`\); its columns are customer, age, city"),
        ({"group": "zzz"}, r"\(`table.group`\)"),
        ({"categorical": ("ctiy",)}, r"\(`table.categorical`\); did you mean `city`"),
        ({"features": ("age", "age")}, "`table.features` names the column `age` twice"),
        ({"drop": ("customer", "age", "city", "price")}, "no column left for the features"),
    ],
)
def test_a_column_that_does_not_exist_is_named_with_its_key(settings, message):
    with pytest.raises(TaskError, match=message):
        name_roles(SHOP, **settings)


def test_a_name_in_a_table_without_header_is_refused_with_the_numbers():
    with pytest.raises(TaskError, match="it has no header; name columns by their numbers, 1 to 3"):
        name_roles(PLAIN, target="price")


@pytest.mark.parametrize(
    "settings",
    [
        {"target": "a", "features": ["a"]},
        {"target": "a", "drop": ["a"]},
        {"id": "a", "drop": ["a"]},
        {"features": ["a"], "drop": ["a"]},
        {"target": "a", "group": "a"},
        {"impute": "zero"},
    ],
)
def test_contradicting_settings_are_refused(settings):
    with pytest.raises(SettingsError):
        load_settings(TableSettings, settings)


def test_columns_that_the_training_left_out_may_be_missing_or_present_in_other_data():
    settings = TableSettings(drop=("city",), id="customer")
    for text in (SHOP, "price,age\n2.5,30\n", "city,price,age\nRome,1,2\n"):
        table = parse_table_text(text, "t.csv")
        positions = match_columns(table, ("age", "price"), "label", settings)
        assert [table.names[position] for position in positions] == ["age", "price"]
    only = TableSettings(features=("age", "price"))
    table = parse_table_text("x,price,age\n1,2.5,30\n", "t.csv")
    assert match_columns(table, ("age", "price"), "label", only) == [2, 1]
