"""Every relative link of the repository's Markdown leads to a file and a heading in a checkout."""

import re
from pathlib import Path

import pytest

from docs._reference import pages
from docs._repository_links import adapt_links

ROOT = Path(__file__).parents[1]
FOLDERS = ("docs", ".github", "examples", "editors", "benchmarks", "release")
"""Folders whose pages are checked, beside those at the root."""
FILES = sorted(
    path
    for path in [
        *ROOT.glob("*.md"),
        *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.md")),
    ]
    if "node_modules" not in path.parts
)
FENCE = re.compile(r"^(```+|~~~+).*?^\1\s*$", re.M | re.S)
LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HEADING = re.compile(r"^#{1,6} +(.*?)\s*#*$", re.M)
WITH_SCHEME = re.compile(r"[a-z][a-z+.-]*:")
"""The beginning of an address outside of the repository: `https:`, `mailto:`."""


def remove_code(text: str) -> str:
    """The text without code, in which brackets are no links."""
    return re.sub(r"`[^`\n]*`", "code", FENCE.sub("", text))


def find_links(text: str) -> list[str]:
    """Targets of all relative links of a page."""
    return [target for target in LINK.findall(remove_code(text)) if not WITH_SCHEME.match(target)]


def find_anchors(text: str) -> set[str]:
    """Anchors of a page: its headings as GitHub and mkdocs write them, and those set by hand."""
    anchors: set[str] = set()
    for heading in HEADING.findall(FENCE.sub("", text)):
        title, _, by_hand = heading.partition("{")
        name = re.search(r"#([\w-]+)", by_hand)
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        words = re.sub(r"[^\w\- ]", "", title)
        anchors |= {words.replace(" ", "-"), re.sub(r"[ -]+", "-", words)}
        anchors |= {name[1]} if name else set()
    return anchors | set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


def find_broken_links(file: Path, text: str, generated: dict[Path, str]) -> list[str]:
    """Relative links of a page that lead nowhere. `generated` has pages whose headings are known."""
    broken = []
    for target in find_links(text):
        path, _, anchor = target.partition("#")
        other = (file.parent / path).resolve() if path else file
        if not other.exists():
            broken.append(target)
        elif anchor and other.suffix == ".md":
            content = generated.get(other) or (text if other == file else other.read_text())
            broken += [] if anchor in find_anchors(content) else [target]
    return broken


@pytest.fixture(scope="module")
def generated():
    """The pages of the reference, which a build writes in place of those of the checkout."""
    return {ROOT / "docs" / path: text for path, text in pages().items()}


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(file, generated):
    assert find_broken_links(file, file.read_text(), generated) == []


def test_every_generated_page_has_a_page_in_the_checkout(generated):
    checked_in = set((ROOT / "docs/reference").rglob("*.md"))
    assert checked_in == set(generated)


def test_links_to_missing_files_and_headings_are_found(tmp_path):
    (tmp_path / "other.md").write_text("# A title\n\n## Two `words` here { #by-hand }\n")
    text = """# Page
[good](other.md#a-title) [good](other.md#two-words-here) [good](other.md#by-hand) [good](#page)
[bad](missing.md) [bad](other.md#no-such-title) ![bad](missing.png) [bad](#elsewhere)
[bad [nested]](missing/) [outside](https://example.org/missing) `[code](missing.py)`
```text
[code](missing.py)
# not a heading
```
"""
    page = tmp_path / "page.md"
    page.write_text(text)
    assert find_broken_links(page, text, {}) == [
        "missing.md",
        "other.md#no-such-title",
        "missing.png",
        "#elsewhere",
        "missing/",
    ]


@pytest.mark.parametrize(
    ("page", "target", "expected"),
    [
        ("training.md", "data.md#tables", "data.md#tables"),
        ("training.md", "../src/neural/cli/", "https://example.org/r/tree/main/src/neural/cli"),
        ("training.md", "../pyproject.toml", "https://example.org/r/blob/main/pyproject.toml"),
        ("decisions/0001-lazy-torch.md", "../log.md", "../log.md"),
        ("decisions/0001-lazy-torch.md", "../../CHANGELOG.md", "../changelog.md"),
        ("changelog.md", "docs/claims.md#focus-models", "claims.md#focus-models"),
        (
            "changelog.md",
            "examples/tiny.neural",
            "https://example.org/r/blob/main/examples/tiny.neural",
        ),
        ("training.md", "https://anywidget.dev", "https://anywidget.dev"),
        ("training.md", "#below", "#below"),
    ],
)
def test_links_are_adapted_to_the_site(page, target, expected):
    text = f"[link]({target}) `[code]({target})`\n\n```text\n[code]({target})\n```\n"
    adapted = adapt_links(text, page, "https://example.org/r")
    assert adapted == text.replace(f"[link]({target})", f"[link]({expected})")
