"""The documentation site: it builds without warnings or downloads, and its reference is right."""

import math
import re
from pathlib import Path

import pytest
import torch

import neural
from docs._reference import pages
from docs._reference.catalogue import PAGES
from docs._reference.python import OTHER_MODULES
from docs._reference.source import list_definitions
from docs._repository_links import read_repository_url
from neural import interventions
from neural.capture.measures import registry as measures
from neural.nn.layers import registry as layers
from tests.documentation_site import ROOT, build_site
from tests.programs import check_text

FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)

PROGRAM_WITH_HEADS = """network Letters {
  input: (None,)
  layers:
    Embedding(input_dim=27, output_dim=16)
    TransformerDecoder(num_heads=4) * 3
    Output(27)
}"""


@pytest.fixture(scope="module")
def reference():
    """The generated pages."""
    return pages()


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built in strict mode: a warning is an error."""
    return build_site(tmp_path_factory.mktemp("site"))


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


def test_links_to_the_repository_lead_to_files_of_it(site):
    address = re.compile(rf'href="{re.escape(read_repository_url())}/(?:blob|tree)/main/([^"#]+)')
    paths = {path for page in site.rglob("*.html") for path in address.findall(page.read_text())}
    assert paths, "no page links to a source file"
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_pages_can_be_edited_and_name_the_repository(site):
    page = (site / "training.html").read_text()
    assert f"{read_repository_url()}/edit/main/docs/training.md" in page
    assert 'data-md-component="source"' not in page  # the theme would ask the network for stars


def test_no_path_of_this_machine_is_in_the_site(site):
    for page in site.rglob("*.html"):
        assert str(ROOT) not in page.read_text(), page


# --- reference pages ---


def test_every_public_name_has_a_signature_a_description_and_an_example(reference):
    sections = dict(
        re.findall(
            r"^### (neural\.\w+) \{[^}]*\}\n(.*?)(?=^##|\Z)",
            reference["reference/python.md"],
            re.M | re.S,
        )
    )
    assert set(sections) == {f"neural.{name}" for name in neural.__all__}
    for name, section in sections.items():
        is_class = isinstance(getattr(neural, name.removeprefix("neural.")), type)
        assert section.count("```python") >= (1 if is_class else 2), f"{name} has no example"


def test_every_result_of_a_public_function_is_described(reference):
    page = reference["reference/python.md"]
    returned = set(re.findall(r"^Returns .*?\[`(\w+)`\]", page, re.M))
    assert {"FitResult", "WatchResult", "Run", "PatchingResult"} <= returned
    assert [name for name in returned if not re.search(rf"^### .*{name} \{{", page, re.M)] == []


def test_the_python_reference_does_not_depend_on_this_process(reference):
    assert not re.search(r"0x[0-9a-f]{6}|PosixPath|<function", reference["reference/python.md"])


@pytest.mark.parametrize("name", [*interventions.__all__, "module"])
def test_the_example_of_an_intervention_runs(reference, name):
    if name == "InterventionError":  # raised, not used
        return
    heading = (
        "## `neural.interventions`" if name == "module" else f"### neural.interventions.{name} "
    )
    section = reference["reference/python.md"].partition(heading)[2].partition("\n##")[0]
    *_, example = [code for language, _, code in FENCE.findall(section) if language == "python"]
    model = neural.parse(PROGRAM_WITH_HEADS).build().eval()
    ids, other_ids = torch.randint(27, (2, 4, 12), generator=torch.Generator().manual_seed(0))
    names = {"neural": neural, "model": model, "ids": ids, "other_ids": other_ids}
    exec(compile(example, name, "exec"), names)


@pytest.mark.parametrize("module", OTHER_MODULES)
def test_a_module_begins_with_an_example(reference, module):
    introduction = (
        reference["reference/python.md"].partition(f"## `{module}`")[2].partition("\n##")[0]
    )
    examples = [code for language, _, code in FENCE.findall(introduction) if language == "python"]
    assert any(f"from {module} import " in example for example in examples)
    if module == "neural.testing.contract":  # the others need packages of others
        exec(compile(examples[0], module, "exec"), {})


@pytest.mark.parametrize("module", OTHER_MODULES)
def test_public_classes_of_a_module_have_a_section(reference, module):
    for definition in list_definitions(module):
        assert f"### {module}.{definition.name} {{" in reference["reference/python.md"]


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
