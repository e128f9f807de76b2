"""The documentation site: it builds without warnings or downloads, and its samples work."""

import logging
import math
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from docs._reference import pages
from docs._reference.catalogue import PAGES
from neural.analysis.head_roles import ROLE_THRESHOLDS
from neural.capture.measures import registry as measures
from neural.cli.main import main
from neural.nn.layers import registry as layers
from tests.programs import check_text
from tests.segmentation_runs import write_songs

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
TESTED_PAGES = [
    "index",
    "tutorial-supervised",
    "tutorial-language-model",
    "tutorial-segmentation",
    "tutorial-focus",
    "walkthrough-table",
    "walkthrough-text",
    "walkthrough-own-model",
    "coming-from",
    "watching",
    "interventions",
    "python",
]
"""Pages whose files, commands and Python blocks are all run, in their order."""
FEWER_STEPS = [
    "training.steps=4",
    "training.warmup_steps=0",
    "training.validate_every=2",
    "tracking.track_every=2",
]
"""Overrides that shorten the trainings of these pages."""
SMALLER_DATA = {
    "tutorial-segmentation": ("data: handbook", "data: few.jsonl"),
    "walkthrough-text": ("sorted(topics)", "sorted(topics)[:12]"),
    "walkthrough-own-model": ("range(400)", "range(3)"),
}
"""Replacements that reduce the number of documents, or of steps: page → (old, new)."""
VARIABLE_OUTPUT = re.compile(
    rf"\d[\d.,]*|'(?:{'|'.join([*ROLE_THRESHOLDS, 'mixed'])})'|\b(?:yes|no)\b"
)
"""Printed words that depend on a training: numbers, roles of heads, predicted classes."""
EXACT_OUTPUT_COMMANDS = {
    "neural check tiny.neural",
    "neural check rows.neural",
    "neural check writer.neural --network Writer",
    "neural segment notes.txt",
    "neural train own.yaml --dry-run",
}
"""Commands whose output depends neither on a training nor on the version of Python."""
MEASURED_LINE = re.compile(r"^  time  +.*\n", re.M)
"""The line of a plan that depends on the machine."""


@pytest.fixture(scope="module")
def reference():
    """The generated pages."""
    return pages()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built in strict mode: a warning is an error."""
    with pytest.MonkeyPatch.context() as patch:
        # a notice about the theme's future, not about these pages
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        from mkdocs.commands.build import build
        from mkdocs.config import load_config

        folder = tmp_path_factory.mktemp("site")
        logging.getLogger("mkdocs").setLevel(logging.WARNING)
        build(load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True))
    return folder


def test_every_page_is_in_the_site(site, reference):
    written = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    generated = {Path(path) for path in reference}
    assert {path.with_suffix(".html") for path in written | generated} <= {
        path.relative_to(site) for path in site.rglob("*.html")
    }


def test_pages_load_nothing_from_the_network(site):
    external = re.compile(
        r'<(?:script|img|iframe)[^>]*\ssrc="?(?:https?:)?//|<link[^>]*href="?(?:https?:)?//'
    )
    for page in site.rglob("*.html"):
        assert not external.search(page.read_text()), page
    for style in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text()), style


def test_no_path_of_this_machine_is_in_the_site(site):
    for page in site.rglob("*.html"):
        assert str(ROOT) not in page.read_text(), page


# --- reference pages ---


def test_every_entry_has_a_section(reference):
    for page, (registry, _, _) in PAGES.items():
        for name in registry.names():
            assert f"\n## {name} {{ #{name.lower()} }}\n" in reference[f"reference/{page}.md"]


def test_tables_of_the_reference_are_well_formed(reference):
    for path, page in reference.items():
        prose = FENCE.sub("", page)
        assert not re.search(r"^[^|\n].*\|$", prose, re.M), path
        for block in re.findall(r"(?:^\|.*\n)+", prose, re.M):
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, (
                path,
                block,
            )


def test_every_program_of_the_reference_has_no_errors(reference):
    programs = [
        (path, text)
        for path, page in reference.items()
        for language, _, text in FENCE.findall(page)
        if language == "neural" and text.startswith("network Example")
    ]
    assert len(programs) == sum(len(registry.names()) for registry, _, _ in PAGES.values())
    for path, text in programs:
        assert not check_text(text).errors, (path, text)


@pytest.mark.parametrize("name", layers.names())
def test_the_formula_of_a_layers_parameters_is_correct(name):
    layer, shape = layers.get(name).example()
    formula = re.search(r"`([^`]+)`\s+parameters", type(layer).cost.__doc__)
    arguments = {
        argument: getattr(layer, argument)
        for argument in (*layer.argument_specs(), "gates")
        if hasattr(layer, argument)
    }
    if formula is None:  # no parameters, or those of the inner layers
        assert name == "Residual" or layer.cost(shape).parameters == 0
    else:
        parameters = evaluate_formula(formula[1], {**arguments, "E": shape[-1]})
        assert parameters == layer.cost(shape).parameters


@pytest.mark.parametrize("name", measures.names())
def test_documented_bounds_of_a_measure_are_its_bounds(name):
    measure = measures.get(name)
    low, high = measure.value_range.__doc__.partition(":")[0].split(" to ")
    for heads, keys in ((3, 7), (5, 11)):
        names = {"K": keys, "H": heads, "inf": math.inf, "log": math.log}
        bounds = (evaluate_formula(low, names), evaluate_formula(high, names))
        assert bounds == pytest.approx(measure().value_range(heads, keys))


def evaluate_formula(formula: str, names: dict) -> float:
    """Value of a formula in the notation of the docs."""
    for symbol, python in (("·", "*"), ("²", "**2"), ("∞", "inf"), ("−", "-")):
        formula = formula.replace(symbol, python)
    return eval(re.sub(r"log (\w)", r"log(\1)", formula), dict(names))


# --- tutorials ---


@pytest.mark.parametrize("page", TESTED_PAGES)
def test_all_samples_of_a_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_songs(tmp_path / "few.jsonl", labels=False)
    names, printed = {"__name__": page}, ""
    for language, title, text in FENCE.findall((ROOT / f"docs/{page}.md").read_text()):
        text = text if language == "output" else text.replace(*SMALLER_DATA.get(page, ("", "")))
        if title:
            (tmp_path / title).write_text(text)
        if language == "python":
            capsys.readouterr()
            exec(compile(text, f"{page}.md", "exec"), names)
            printed = capsys.readouterr().out
        if language == "output":  # of the Python block before it
            shown, printed = (normalise_output(output) for output in (text, printed))
            assert printed == shown
        if language == "console":
            for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.M):
                run_command(command, shown)


def normalise_output(text: str) -> str:
    """Printed text without its white space; numbers, roles of heads and classes become `#`."""
    return re.sub(r"\s", "", VARIABLE_OUTPUT.sub("#", text))


def run_command(command: str, shown: str) -> None:
    """Run a command and compare its output with the page: exactly, or headings and row titles."""
    words = re.findall(r'"[^"]*"|\S+', command)
    verb, arguments = words[1], [word.strip('"') for word in words[2:]]
    if verb == "train" and "--dry-run" not in arguments:
        arguments += [word for override in FEWER_STEPS for word in ("--set", override)]
    if verb == "sweep":  # its trials are processes, which take seconds each
        arguments.append("--dry-run")
        shown = ""
    done = CliRunner().invoke(main, [verb, *arguments])
    assert done.exit_code == 0, f"{command}\n{done.output}"
    if command in EXACT_OUTPUT_COMMANDS:
        printed, shown = (MEASURED_LINE.sub("  time\n", text) for text in (done.stdout, shown))
        assert printed.strip() == shown.strip(), command
    else:
        for heading in re.findall(r"^([a-z][^\d…\n]*)\n ", shown, re.M):
            assert f"{heading}\n" in done.output, f"{command}: {heading}"
    if verb == "evaluate":
        titles = re.findall(r"^  ([^\W\d][^:\n]*?)  +[+\d]", shown, re.M)
        assert titles and [title for title in titles if f"  {title}  " not in done.output] == []


def test_commands_with_exact_output_are_in_the_pages():
    text = "".join((ROOT / f"docs/{page}.md").read_text() for page in TESTED_PAGES)
    assert all(f"$ {command}\n" in text for command in EXACT_OUTPUT_COMMANDS)
