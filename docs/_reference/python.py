"""Python reference: signatures and docstrings of the public names of `neural`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator

import neural
from neural import interventions, sklearn

from .markdown import fence, join_paragraphs, table
from .source import Definition, find_definition, list_definitions, read_module_doc

INTRODUCTION = """
All public names, with signatures and docstrings; [Python](../python.md) has a guided tour that runs
as it stands. Everything else is imported from the module that defines it, such as
`from neural.runs.run import Run`, and may change between versions.
"""
GUIDES = {
    "ablate": "ablation.md",
    "analyze": "analysis.md",
    "attend": "attention.md",
    "attribute": "attribution.md",
    "check": "language.md",
    "evaluate": "evaluation.md",
    "export": "export.md",
    "figure": "report.md#figures-for-papers",
    "fit": "training.md",
    "generate": "generation.md",
    "intervene": "interventions.md",
    "load": "language.md",
    "open_run": "run-folder.md",
    "parse": "language.md",
    "patch": "patching.md",
    "predict": "data.md#predictions-in-files",
    "record_head_outputs": "interventions.md",
    "report": "report.md",
    "segment": "segmentation.md",
    "Segmenter": "segmentation.md#in-python",
    "track": "watching.md#a-training-loop",
    "watch": "watching.md",
    "widget": "report.md#in-python-and-in-notebooks",
}
"""The page that explains a function."""
OTHER_MODULES = (
    "neural.callbacks.huggingface",
    "neural.callbacks.lightning",
    "neural.integrations.langchain",
    "neural.integrations.llama_index",
    "neural.integrations.haystack",
    "neural.testing.contract",
)
PARAMETER_LINE = re.compile(r"`[^`]+`(?:, `[^`]+`)*(?: \([^)]*\))?: ")
"""The beginning of the description of a parameter in a docstring."""


def pages() -> dict[str, str]:
    """One page with all public names."""
    functions = [find_public("neural", name) for name in neural.__all__]
    results = collect_results(functions)
    anchors = {name: f"interventions-{name.lower()}" for name in interventions.__all__}
    anchors |= {definition.name: definition.name.lower() for definition in [*functions, *results]}
    sections = [
        *format_group("Functions and classes of `neural`", "neural", functions, anchors),
        *format_group("What they return", "neural", results, anchors, is_result=True),
        *format_submodule(
            "neural.interventions",
            interventions.__all__,
            anchors,
            source="neural.workflows.interventions",
        ),
        *format_submodule("neural.sklearn", sklearn.__all__, anchors),
    ]
    for module in OTHER_MODULES:
        names = [definition.name for definition in list_definitions(module)]
        sections += format_submodule(module, names, anchors)
    overview = table(
        ["", ""],
        [
            [f"[`neural.{definition.name}`](#{definition.name.lower()})", summarize(definition.doc)]
            for definition in functions
        ],
    )
    text = join_paragraphs("# Python API", INTRODUCTION.strip(), overview, *sections)
    return {"python": text}


def find_public(module: str, name: str) -> Definition:
    """The definition of a public name."""
    definition = find_definition(module, name)
    assert definition is not None, f"{module}.{name}"
    return definition


def collect_results(functions: Iterable[Definition]) -> list[Definition]:
    """Classes that public functions return and that are not public names themselves."""
    results = {
        definition.name: definition
        for function in functions
        for definition in function.returned_classes()
        if definition.name not in {*neural.__all__, *interventions.__all__}
    }
    return [results[name] for name in sorted(results)]


def format_submodule(
    module: str, names: Iterable[str], anchors: dict[str, str], *, source: str | None = None
) -> Iterator[str]:
    """Heading, docstring and public names of a module; `source` if its file has another name."""
    definitions = [find_public(source or module, name) for name in names]
    introduction = read_module_doc(source or module)
    yield from format_group(f"`{module}`", module, definitions, anchors, introduction=introduction)


def format_group(
    title: str,
    module: str,
    definitions: Iterable[Definition],
    anchors: dict[str, str],
    *,
    introduction: str = "",
    is_result: bool = False,
) -> Iterator[str]:
    """A heading and a section for each definition."""
    yield f"## {title}"
    yield format_doc(introduction)
    prefix = module.removeprefix("neural").replace(".", "-").lower().lstrip("-")
    for definition in definitions:
        anchor = "-".join(filter(None, [prefix, definition.name.lower()]))
        name = definition.name if is_result else f"{module}.{definition.name}"
        # the menu of the page has no room for the name of the module
        yield f'### {name} {{ #{anchor} data-toc-label="{definition.name}" }}'
        yield from format_definition(definition, name, anchors)


def format_definition(definition: Definition, name: str, anchors: dict[str, str]) -> Iterator[str]:
    """Signature, description, returned classes and members."""
    is_result = "." not in name
    if is_result:
        yield f"`from {definition.module} import {definition.name}`"
    elif definition.signature:
        yield fence(name + definition.signature, "python")
    yield format_doc(definition.doc)
    returned = [
        f"[`{returned.name}`](#{anchors[returned.name]})"
        for returned in definition.returned_classes()
        if returned.name in anchors
    ]
    if returned:
        yield f"Returns {' or '.join(dict.fromkeys(returned))}."
    if not is_result and name.count(".") == 1 and (guide := GUIDES.get(definition.name)):
        yield f"Guide: [{guide.partition('.')[0].replace('-', ' ')}](../{guide})."
    for member in definition.members():
        call = re.sub(r"\s+", " ", member.signature).replace("( ", "(").replace(", )", ")")
        summary = " ".join(member.doc.partition("\n\n")[0].split())
        yield f"- `{member.name}{call}`: {summary}"


def format_doc(doc: str) -> str:
    """A docstring as Markdown: code in fences, an item per described parameter."""
    blocks: list[str] = []
    for block in re.split(r"\n\n+", doc):
        if block.startswith("    "):
            code = textwrap.dedent(block)
            is_continued = blocks and blocks[-1].startswith("```python")
            blocks[-1:] = (
                [fence(blocks[-1].strip("`").removeprefix("python\n") + "\n" + code, "python")]
                if is_continued
                else [*blocks[-1:], fence(code, "python")]
            )
        elif "----------" in block:  # a section of numpydoc: its layout is kept
            blocks.append(fence(block))
        elif PARAMETER_LINE.match(block):
            blocks.append(format_parameters(block))
        else:
            blocks.append(block)
    return "\n\n".join(blocks)


def format_parameters(block: str) -> str:
    """A list with an item for each line that begins with the name of a parameter."""
    items: list[str] = []
    for line in block.splitlines():
        if PARAMETER_LINE.match(line):
            items.append(f"- {line}")
        else:
            items[-1] += f" {line}"
    return "\n".join(items)


def summarize(doc: str) -> str:
    """The first sentence or line of a docstring."""
    return " ".join(doc.partition("\n\n")[0].split())
