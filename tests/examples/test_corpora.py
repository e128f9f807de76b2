"""The parsers of examples/segmentation read prose and headings, and leave everything else out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples/segmentation"


@pytest.fixture(scope="module")
def formats():
    sys.path.insert(0, str(EXAMPLES))
    import corpus_formats

    yield corpus_formats
    sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def corpora(formats):
    import corpora

    return corpora


def show(parsed):
    """Title and blocks in short: headings as `2 Title`, paragraphs as their text."""
    title, blocks = parsed
    return title, [f"{level} {text}" if level else text for level, text in blocks]


def test_markdown_keeps_prose_and_drops_code_tables_and_templates(formats):
    text = """---
title: "Bees"
---
{{< toc >}}
A hive has *one* queen, see [the guide](bees.md#queen).

## Food ##

```python
# not a heading
```

| plant | month |
|---|---|

- Bees eat `nectar`.
- They store it
  for the winter.

Winter
------

> [!NOTE]
> They stay warm.
"""
    title, blocks = show(formats.parse_markdown(text))
    assert title == "Bees"
    assert [" ".join(block.split()) for block in blocks] == [
        "A hive has one queen, see the guide.",
        "2 Food",
        "Bees eat nectar.",
        "They store it for the winter.",
        "2 Winter",
        "They stay warm.",
    ]


def test_rest_takes_levels_from_the_order_of_adornments(formats):
    text = """=====
Clocks
=====

A clock shows the :ref:`time <time>`. For example::

    tick()

Parts
-----

.. note::
   Left out.

The ``hand`` turns.

Wheels
~~~~~~

They are round.

Face
----

It has numbers.
"""
    assert show(formats.parse_rest(text)) == (
        "Clocks",
        [
            "A clock shows the time. For example:",
            "2 Parts",
            "The hand turns.",
            "3 Wheels",
            "They are round.",
            "2 Face",
            "It has numbers.",
        ],
    )


def test_asciidoc_drops_listings_and_attributes(formats):
    text = """= Boats
:toc:

A boat floats (((floating))) on *water*.

== Sails

[source,c]
----
int main;
----

A sail catches link:wind.html[the wind].
"""
    assert show(formats.parse_asciidoc(text)) == (
        "Boats",
        ["A boat floats  on water.", "2 Sails", "A sail catches the wind."],
    )


def test_html_joins_number_and_title_and_skips_navigation(formats):
    text = """<html><head><title>Book</title></head><body>
<div class="toc"><p>Contents.</p></div>
<section class="wy-nav-content"><hgroup><h2>II</h2><p>The Road</p></hgroup>
<p>We left at <b>dawn</b>.<a class="noteref">3</a></p><pre>x = 1</pre>
<ul><li>The dog came too.</li></ul></section>
<h2>III</h2><p>It rained &amp; we stayed.</body></html>"""
    assert show(formats.parse_html(text)) == (
        "Book",
        [
            "2 II The Road",
            "We left at dawn.",
            "The dog came too.",
            "2 III",
            "It rained & we stayed.",
        ],
    )


def test_xml_reads_sections_without_exercises_and_formulas(formats):
    text = """<document xmlns="http://cnx.rice.edu/cnxml"><title>Heat</title>
<metadata><p>About.</p></metadata><content><para>Heat &eacute;nergie flows.</para>
<section><title>Units</title><para>The joule <m:math xmlns:m="m"><m:mi>J</m:mi></m:math> is one.
</para><section><title>Old units</title><para>The calorie is old.</para></section></section>
<section class="review-questions"><title>Questions</title><para>What is heat?</para></section>
</content></document>"""
    title, blocks = show(formats.parse_xml(text))
    assert title == "Heat"
    assert [" ".join(block.split()) for block in blocks] == [
        "Heat énergie flows.",
        "1 Units",
        "The joule is one.",
        "2 Old units",
        "The calorie is old.",
    ]
    assert formats.parse_xml("<document><title>") == ("", [])


def test_tei_finds_headings_that_are_marked_by_type_only(formats):
    text = """<TEI><teiHeader><title>WALES</title></teiHeader><text><body><div>
<p>WALES is a country.</p><p><hi rend="smallcaps">History.</hi></p><p>It is old.</p>
<p><hi rend="italic">Rivers.—</hi> There are many <hi rend="italic">rivers</hi> in it.</p>
<p><hi rend="italic">Wales</hi> is also a name.</p></div></body></text></TEI>"""
    assert show(formats.parse_tei(text)) == (
        "Wales",
        [
            "WALES is a country.",
            "1 History",
            "It is old.",
            "2 Rivers",
            "There are many rivers in it.",
            "Wales is also a name.",
        ],
    )


def test_gutenberg_strips_the_licence_and_joins_chapter_and_title(formats):
    text = """Title: A Walk

*** START OF THIS PROJECT GUTENBERG EBOOK ***

CHAPTER I

THE HILL

We climbed the
_long_ hill.

[Illustration: a hill]

CHAPTER II.

We came down.

NO HEADING

III

We slept.

*** END OF THIS PROJECT GUTENBERG EBOOK ***
Licence text."""
    assert show(formats.parse_gutenberg(text)) == (
        "A Walk",
        [
            "1 CHAPTER I THE HILL",
            "We climbed the long hill.",
            "1 CHAPTER II.",
            "We came down.",
            "NO HEADING",
            "1 III",
            "We slept.",
        ],
    )


def test_gutenberg_without_chapter_numbers_has_headings_in_capitals(formats):
    text = "OF GARDENS\n\nA garden is green.\n\n--A POET\n\nOF TRUTH\n\nTruth is rare."
    assert show(formats.parse_gutenberg(text)) == (
        "",
        ["1 OF GARDENS", "A garden is green.", "--A POET", "1 OF TRUTH", "Truth is rare."],
    )


def test_only_english_sentences_are_prose(corpora):
    assert corpora.is_prose("The river flows to the sea.")
    assert not corpora.is_prose("The river flows to the sea")
    assert not corpora.is_prose("for (i = 0; i < n; i++) { a[i] += 1; }")
    assert corpora.is_english("The river flows to the sea, and it is long.")
    assert not corpora.is_english("Der Fluss fließt ins Meer, und er ist lang.")


def write_article(topic, sections=3, sentences=6):
    """Markdown article with sections of distinct sentences."""
    parts = [f"# {topic}\n"]
    for section in range(sections):
        lines = [f"The {topic} of kind {section} has the use {n}." for n in range(sentences)]
        parts.append(f"## Section {section}\n\n" + "\n\n".join(lines) + "\n")
    return "\n".join([*parts, f"## References\n\nThe book about the {topic} is a good one.\n"])


def test_a_source_becomes_documents_prose_and_a_table(corpora, tmp_path, monkeypatch):
    """End to end with a repository made here: selection, filters, deduplication and output."""
    repository = tmp_path / "work"
    (repository / "docs").mkdir(parents=True)
    (repository / "docs/iron.md").write_text(write_article("iron"))
    (repository / "docs/iron-copy.md").write_text(write_article("iron"))
    (repository / "docs/short.md").write_text(write_article("tin", sections=2))
    (repository / "docs/README.md").write_text(write_article("readme"))
    git = ["git", "-C", str(repository), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "articles"]):
        subprocess.run([*git, *command], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (repository / ".git").rename(mirror / "owner+metals")
    listing = tmp_path / "corpora.yaml"
    listing.write_text(
        "- domain: documentation\n  licence: CC0\n  format: markdown\n  include: ['docs/*.md']\n"
        f"  repositories:\n    owner/metals: {commit.strip()}\n"
    )
    (source,) = corpora.load_sources(listing)
    row = corpora.collect(source, mirror, tmp_path / "out", set())
    lines = (tmp_path / "out/documentation/owner-metals.jsonl").read_text().splitlines()
    (document,) = map(json.loads, lines)
    assert document["title"] == "iron" and document["source"].startswith("owner-metals/docs/iron")
    assert [part["title"] for part in document["parts"]] == ["Section 0", "Section 1", "Section 2"]
    assert [part["level"] for part in document["parts"]] == [1, 1, 1]
    assert [len(part["paragraphs"]) for part in document["parts"]] == [6, 6, 6]
    plain = (tmp_path / "out/plain/documentation/owner-metals.txt").read_text().splitlines()
    assert len(plain) == len(set(plain)) == 18 + 12
    assert "| CC0 | 1 | 3 | 18 |" in row
    held_out = corpora.read_hashes([tmp_path / "out/documentation/owner-metals.jsonl"])
    row = corpora.collect(source, mirror, tmp_path / "again", held_out)
    assert "| CC0 | 0 | 0 | 0 |" in row
    assert "iron" not in (tmp_path / "again/plain/documentation/owner-metals.txt").read_text()


def test_long_books_are_split_where_chapters_end(corpora):
    parts = [corpora.Part(f"Chapter {number}", 1, ["Text."]) for number in range(20)]
    parts.insert(8, corpora.Part("A section", 2, ["Text."]))
    documents = list(corpora.split_book(corpora.Document("Book", "book", parts)))
    assert [part for document in documents for part in document.parts] == parts
    assert all(document.parts[0].level == 1 for document in documents)
    chapters = [sum(part.level == 1 for part in document.parts) for document in documents]
    assert sum(chapters) == 20 and max(chapters) <= corpora.MAX_CHAPTERS
    assert list(corpora.split_book(corpora.Document("Empty", "book", []))) == []


def test_every_listed_source_has_a_licence_a_parser_and_a_full_commit(corpora, formats):
    sources = corpora.load_sources(EXAMPLES / "sources" / "corpora.yaml")
    assert len({source.name for source in sources}) == len(sources)
    for source in sources:
        assert source.format in formats.PARSERS and source.include, source.name
        assert not source.repository or len(source.commit) == 40, source.name
        licence = source.licence.upper()
        assert licence and "-NC" not in licence and "-ND" not in licence, source.name
