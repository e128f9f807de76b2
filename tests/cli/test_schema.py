"""`neural schema` as a user types it."""

import json

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from neural.tasks import registry


def run(*words: str):
    return CliRunner().invoke(main, ["schema", *words])


def test_the_schema_of_all_tasks_names_each():
    shown = json.loads(run().stdout)
    assert shown["properties"]["task"]["enum"] == registry.names()
    assert len(shown["allOf"]) == len(registry.names())


@pytest.mark.parametrize("name", registry.names())
def test_every_task_has_a_schema_and_tables_of_its_keys(name):
    shown = json.loads(run(name).stdout)
    ref = shown["allOf"][0]["then"]["$ref"].rpartition("/")[2]
    keys = registry.get(name).Settings.model_fields
    assert set(shown["$defs"][ref]["properties"]) >= set(keys)
    printed = run(name, "--format", "markdown").stdout
    assert all(f"| `{key}` |" in printed for key in keys)


def test_an_unknown_task_is_a_message_and_exit_code_two():
    done = run("segmentatoin")
    assert done.exit_code == 2
    assert "no task is called `segmentatoin`" in done.output
