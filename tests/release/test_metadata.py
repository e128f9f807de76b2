"""Version, name and licence are the same wherever they are written, and the wheel's data are complete."""

import re
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

import neural
from neural.cli.main import main
from neural.runs.environment import collect_environment

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
LINK = re.compile(r"\]\(([^)]+)\)")
CITATION = YAML(typ="safe").load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))


def test_the_version_is_written_in_one_place():
    assert "version" in PROJECT["dynamic"] and "version" not in PROJECT
    providers = {provider["field"]: provider for provider in PYPROJECT["tool"]["dynamic-metadata"]}
    provider = providers["version"]
    text = (ROOT / provider["input"]).read_text(encoding="utf-8")
    assert re.findall(r'^__version__ = "(.+)"$', text, re.M) == [neural.__version__]


def test_links_of_the_readme_work_on_the_package_index():
    """Files of the repository are not there, so their links get an address."""
    settings = PYPROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    (fragment,) = settings["fragments"]
    text = (ROOT / fragment["path"]).read_text(encoding="utf-8")
    relative_links = [link for link in LINK.findall(text) if not link.startswith(("http", "#"))]
    assert relative_links
    for substitution in settings["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    links = LINK.findall(text)
    assert all(link.startswith(("https://", "#")) for link in links)
    assert [link for link in links if link.endswith(".png")] == [
        "https://raw.githubusercontent.com/neural-lab/neural/main/docs/figures/report-heads.png"
    ]
    for link in relative_links:
        assert sum(address.endswith(f"/main/{link}") for address in links) >= 1, link


def test_command_language_server_and_runs_give_the_version():
    from neural.lsp.server import NeuralLanguageServer

    assert CliRunner().invoke(main, ["--version"]).output == f"neural {neural.__version__}\n"
    assert NeuralLanguageServer().version == neural.__version__
    assert collect_environment()["packages"]["neural"] == neural.__version__


def test_the_citation_has_the_version_licence_and_authors_of_the_project():
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] == "software"
    assert str(CITATION["version"]) == neural.__version__
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["authors"] == PROJECT["authors"]
    assert CITATION["title"].startswith("Neural: a laboratory for attention")
    assert CITATION["message"]


def test_supported_versions_of_python_are_classifiers():
    minors = [
        int(line.rpartition(".")[2])
        for line in PROJECT["classifiers"]
        if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", line)
    ]
    assert PROJECT["requires-python"] == f">=3.{min(minors)}"
    assert minors == list(range(min(minors), max(minors) + 1))


def test_types_are_announced_and_shipped():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (ROOT / "src/neural/py.typed").is_file()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/install.md"])
def test_the_address_of_the_repository_is_that_of_the_metadata(name):
    """Strangers copy addresses; a second spelling of the repository would lead them elsewhere."""
    repository = PROJECT["urls"]["Repository"]
    organisation = repository.rpartition("/")[0]
    text = (ROOT / name).read_text(encoding="utf-8")
    for address in re.findall(rf"{organisation}/[\w./-]*", text):
        assert address.startswith(repository)
