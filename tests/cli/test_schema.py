"""`neural schema` as a user types it."""

import json

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.tasks import registry


def invoke(*words: str):
    return CliRunner().invoke(main, ["schema", *words])


def test_the_schema_of_all_tasks_names_each():
    schema = json.loads(invoke().stdout)
    assert schema["properties"]["task"]["enum"] == registry.names()
    assert len(schema["allOf"]) == len(registry.names())


@pytest.mark.parametrize("name", registry.names())
def test_every_task_has_a_schema_and_tables_of_its_keys(name):
    schema = json.loads(invoke(name).stdout)
    ref = schema["allOf"][0]["then"]["$ref"].rpartition("/")[2]
    keys = registry.get(name).Settings.model_fields
    assert set(schema["$defs"][ref]["properties"]) >= set(keys)
    printed = invoke(name, "--format", "markdown").stdout
    assert all(f"| `{key}` |" in printed for key in keys)


def test_an_unknown_task_is_a_message_and_exit_code_two():
    result = invoke("segmentatoin")
    assert result.exit_code == 2
    assert "no task is called `segmentatoin`" in result.output
