"""The site: it builds without a warning, reaches nothing outside, and what it says is what happens."""

import logging
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs._reference import pages
from docs._reference.catalogue import PAGES
from neural.cli.main import main
from neural.modules.layers import registry as layers
from neural.tracking.measures import registry as measures
from tests.programs import checked
from tests.segmentation_runs import write_songs

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
TOLD = [
    "index", "tutorial-supervised", "tutorial-language-model", "tutorial-segmentation", "tutorial-focus", "coming-from",
]  # fmt: skip
"""Pages whose every file, command and Python block is tried, in their order."""
SMALLER = ["training.steps=4", "training.warmup_steps=0", "training.validate_every=2", "tracking.track_every=2"]
"""Trainings of these pages are the same in a test, but for their length."""
FEWER = {"tutorial-segmentation": ("data: handbook", "data: few.jsonl")}
"""And but for the number of documents."""
EXACT = {
    "neural check tiny.neural", "neural check rows.neural", "neural check writer.neural --network Writer",
    "neural segment notes.txt", "neural train own.yaml --dry-run",
}  # fmt: skip
"""Nothing in what these print depends on a training or on the version of Python."""


@pytest.fixture(scope="module")
def reference():
    """The pages that are made from the package."""
    return pages()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site, built strictly: a warning is an error."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")   # a notice about the theme's future, not about these pages
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        folder = tmp_path_factory.mktemp("site")
        logging.getLogger("mkdocs").setLevel(logging.WARNING)
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_every_page_is_in_the_site(site, reference):
    written = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    made = {Path(path) for path in reference}
    assert {path.with_suffix(".html") for path in written | made} <= {
        path.relative_to(site) for path in site.rglob("*.html")
    }


def test_a_reader_needs_no_network(site):
    outside = re.compile(r'<(?:script|img|iframe)[^>]*\ssrc="?(?:https?:)?//|<link[^>]*href="?(?:https?:)?//')
    for page in site.rglob("*.html"):
        assert not outside.search(page.read_text()), page
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text()), style


def test_nothing_of_the_machine_is_in_the_site(site):
    for page in site.rglob("*.html"):
        assert str(ROOT) not in page.read_text(), page


# --- the reference ------------------------------------------------------------------------------------------------


def test_every_entry_has_its_place(reference):
    for page, (registry, _, _) in PAGES.items():
        for name in registry.names():
            assert f"\n## {name} {{ #{name.lower()} }}\n" in reference[f"reference/{page}.md"]


def test_tables_of_the_reference_are_whole(reference):
    for path, page in reference.items():
        prose = FENCE.sub("", page)
        assert not re.search(r"^[^|\n].*\|$", prose, re.M), path
        for block in re.findall(r"(?:^\|.*\n)+", prose, re.M):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, (path, block)


def test_every_program_of_the_reference_is_right(reference):
    programs = [
        (path, text)
        for path, page in reference.items()
        for language, _, text in FENCE.findall(page)
        if language == "neural" and text.startswith("network Example")
    ]
    assert len(programs) == sum(len(registry.names()) for registry, _, _ in PAGES.values())
    for path, text in programs:
        assert not checked(text).mistakes, (path, text)


@pytest.mark.parametrize("name", layers.names())
def test_the_formula_of_a_layers_parameters_is_true(name):
    layer, shape = layers.get(name).tiny()
    said = re.search(r"`([^`]+)`\s+parameters", type(layer).cost.__doc__)
    given = {one: getattr(layer, one) for one in (*layer.settings(), "gates") if hasattr(layer, one)}
    if said is None:   # it has none, or those of the layers inside it
        assert name == "Residual" or layer.cost(shape).parameters == 0
    else:
        assert evaluated(said[1], {**given, "E": shape[-1]}) == layer.cost(shape).parameters


@pytest.mark.parametrize("name", measures.names())
def test_the_bounds_of_a_measure_in_words_are_its_bounds(name):
    measure = measures.get(name)
    low, high = measure.bounds.__doc__.partition(":")[0].split(" to ")
    for heads, keys in ((3, 7), (5, 11)):
        names = {"K": keys, "H": heads, "inf": math.inf, "log": math.log}
        assert (evaluated(low, names), evaluated(high, names)) == pytest.approx(measure().bounds(heads, keys))


def evaluated(formula: str, names: dict) -> float:
    """A formula as the pages write it."""
    for written, meant in (("·", "*"), ("²", "**2"), ("∞", "inf"), ("−", "-")):
        formula = formula.replace(written, meant)
    return eval(re.sub(r"log (\w)", r"log(\1)", formula), dict(names))


# --- what the tutorials tell --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", TOLD)
def test_a_tutorial_is_true(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_songs(tmp_path / "few.jsonl", labels=False)
    names = {"__name__": page}
    for language, title, text in FENCE.findall((ROOT / f"docs/{page}.md").read_text()):
        if title:
            (tmp_path / title).write_text(text.replace(*FEWER.get(page, ("", ""))))
        if language == "python":
            exec(compile(text, f"{page}.md", "exec"), names)
        if language == "console":
            for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.M):
                run(command, shown)


def run(command: str, shown: str) -> None:
    """A command does what the page shows: to the letter, or at least under the same headings."""
    words = re.findall(r'"[^"]*"|\S+', command)
    verb, arguments = words[1], [word.strip('"') for word in words[2:]]
    if verb == "train" and "--dry-run" not in arguments:
        arguments += [word for change in SMALLER for word in ("--set", change)]
    done = CliRunner().invoke(main, [verb, *arguments])
    assert done.exit_code == 0, f"{command}\n{done.output}"
    if command in EXACT:
        assert done.stdout.strip() == shown.strip(), command
    else:
        for heading in re.findall(r"^([a-z][^\d…\n]*)\n ", shown, re.M):
            assert f"{heading}\n" in done.output, f"{command}: {heading}"


def test_what_is_compared_to_the_letter_is_there():
    told = "".join((ROOT / f"docs/{page}.md").read_text() for page in TOLD)
    assert all(f"$ {command}\n" in told for command in EXACT)
