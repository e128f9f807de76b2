"""The segmenter that comes with the package: files, topic changes, comparison with baselines."""

import json

import numpy as np
import pytest

import neural
from neural.tasks.segmentation.collection import compose_documents, load_handbook
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.pipeline import SHIPPED_SEGMENTER, load_shipped_pipeline
from neural.tasks.segmentation.rendering import render_document
from neural.tasks.segmentation.score_table import compute_scores, run_baselines
from neural.tasks.segmentation.text_splitting import find_elements

WINE = """
Wine is made from grapes that are pressed soon after the harvest. The juice ferments in vats for
some weeks. Yeast turns the sugar of the grapes into alcohol. Red wine ferments with the skins of
the grapes, white wine without. Old vats of oak give the wine tannin. Cellars keep the wine cool
while it ripens in its vats.
"""
TRAINS = """
A steam locomotive burns coal to boil water. The steam drives pistons, which turn the locomotive's
wheels. Railways of the time laid iron rails on wooden sleepers. A locomotive pulled forty wagons
over these rails. Signals beside the rails told the driver to stop. Later railways replaced the
locomotive's boiler by motors.
"""


@pytest.fixture(scope="module")
def pipeline():
    return load_shipped_pipeline()


def test_the_files_are_small_and_record_their_origin():
    size = sum(file.stat().st_size for file in SHIPPED_SEGMENTER.parent.glob("segmenter.*"))
    assert size < 3_000_000
    metadata = json.loads(SHIPPED_SEGMENTER.read_text(encoding="utf-8"))["metadata"]
    assert {"made_by", "texts"} <= set(metadata)


def test_it_needs_no_optional_package(pipeline):
    assert not {"embedded", "rhyme"} & set(pipeline.features)


def test_a_change_of_topic_is_found(pipeline):
    document = SegmentationDocument.from_text(" ".join((WINE + TRAINS).split()))
    (start,) = np.flatnonzero([element.startswith("A steam") for element in document.elements])
    assert pipeline.probabilities(document).argmax() == start


def test_a_text_about_one_topic_is_one_segment(pipeline):
    assert not pipeline.segment(SegmentationDocument.from_text(" ".join(WINE.split()))).any()


def test_most_changes_between_passages_of_one_handbook_are_found(pipeline):
    """Passages about one programming language are hard to tell apart: half of the error is left."""
    sentences = [
        [element for element in elements if len(element.split()) > 4 and element[-1] == "."]
        for _, elements in load_handbook()
    ]
    documents = compose_documents(sentences, 20, seed=11)
    truths = [document.boundaries for document in documents]
    predictions = [pipeline.segment(document) for document in documents]
    baselines = run_baselines([document.elements for document in documents], truths)
    score = compute_scores(truths, predictions)["pk"]
    for name in ("nothing", "every_k", "repetition"):
        assert score < 0.6 * compute_scores(truths, baselines[name])["pk"]


def test_texts_of_one_sentence_or_without_words_are_segmented(pipeline):
    for text in ("One.", "1 2 3.\n\n4 5 6."):
        document = SegmentationDocument.from_text(text)
        assert len(pipeline.segment(document)) == len(document)


PARAGRAPHS = (
    "The river floods its valley every spring. Farmers wait until the water has gone down. "
    "Then they plant rice in the wet soil. The harvest begins in autumn.",
    "The orchestra rehearsed a new symphony on Monday. Two of the violins had to be replaced. "
    "The conductor was pleased with the slow movement. The concert is sold out.",
    "A compiler translates source code into instructions. It first builds a syntax tree. "
    "Registers are assigned in a later pass. Errors are reported with line numbers.",
    "Penguins breed on the ice in large colonies. Both parents keep the egg warm. "
    "The chicks grow their feathers within weeks. Seals are their main enemy.",
    "The bank raised its interest rate last week. Mortgages have become more expensive. "
    "Investors moved money into bonds. The currency gained two percent.",
    "Bread dough needs flour, water, salt and yeast. It should be kneaded for ten minutes. "
    "Let it rise in a warm place. Bake it until the crust is brown.",
)
"""Six paragraphs of four sentences about unrelated subjects."""
MARKDOWN = """# Tea

Tea is a drink made from leaves. It comes from China.

## Growing

Tea bushes grow on hills. They are cut back every year. Rain is needed in summer.

```python
# Not a heading
def water(bushes):
    return [bush.water() for bush in bushes]
```

The fence above belongs to this part.

## Trade

| country | tonnes |
|---------|-------:|
| India   | 1,400 |
| Kenya   | 500 |

Ships carried tea to Europe. Merchants grew rich.

## Brewing

Boil the water first. Pour it over the leaves. Wait for three minutes.
"""


def segment_texts(text, **options):
    return [segment.text.strip() for segment in neural.segment(text, **options)]


@pytest.mark.parametrize("separator", ["\n\n", "\n\n\n", "\r\n\r\n"])
def test_paragraphs_about_unrelated_subjects_are_segments(separator):
    assert segment_texts(separator.join(PARAGRAPHS)) == list(PARAGRAPHS)


def test_a_markdown_file_is_cut_at_its_headings_and_nowhere_else():
    segments = segment_texts(MARKDOWN)
    assert [segment.split("\n")[0] for segment in segments] == [
        "# Tea",
        "## Growing",
        "## Trade",
        "## Brewing",
    ]


def test_no_segment_begins_inside_a_fence_or_a_table_even_without_layout():
    for segment in segment_texts(MARKDOWN, ignore_layout=True, threshold=0.001):
        assert segment.count("```") % 2 == 0
        assert not segment.startswith(("|", "def", "return"))


@pytest.mark.parametrize("style", ["html", "underlined", "numbered", "capitals", "titled"])
def test_headings_of_other_kinds_are_found(style):
    titles = ("Rivers", "Music", "Compilers", "Penguins", "Money", "Bread")
    parts = [
        {"title": title, "level": 1, "paragraphs": [text]}
        for title, text in zip(titles, PARAGRAPHS, strict=True)
    ]
    rendered = render_document("A reader", parts, style, np.random.default_rng(0))
    starts = [segment.start for segment in neural.segment(rendered.text)]
    assert set(rendered.boundaries) <= set(starts)
    assert len(starts) <= len(parts) + 1  # the title of the document may stand alone


def test_a_transcript_without_punctuation_is_cut_near_its_changes_of_subject():
    talks = [
        " ".join(
            f"{text.replace('.', '').lower()}" for text in (WINE, WINE.replace("wine", "grape"))
        ),
        " ".join(f"{text.replace('.', '').lower()}" for text in (TRAINS, TRAINS)),
    ]
    talks = [" ".join(talk.replace(",", "").split()) for talk in talks]
    segments = neural.segment(" ".join(talks))
    assert len(segments) >= 2
    change = len(talks[0]) + 1
    assert min(abs(segment.start - change) for segment in segments) < 200


def test_without_layout_the_changes_of_subject_are_still_found():
    flat = " ".join(PARAGRAPHS)
    changes = {flat.index(paragraph) for paragraph in PARAGRAPHS}
    starts = {segment.start for segment in neural.segment(flat)}
    assert changes <= starts
    assert len(starts) <= 9


def test_blank_lines_at_the_wrong_places_are_not_all_believed():
    sentences = [text[start:end] for text in PARAGRAPHS for start, end in find_elements(text)]
    pairs = [" ".join(sentences[index : index + 2]) for index in range(1, len(sentences) - 1, 2)]
    text = "\n\n".join([sentences[0], *pairs, sentences[-1]])
    # every blank line is in the middle of a subject or splits it after one or three sentences
    probabilities = [segment.probability for segment in neural.segment(text)[1:]]
    changes = [text.index(paragraph.split(".")[0]) for paragraph in PARAGRAPHS[1:]]
    starts = [segment.start for segment in neural.segment(text)[1:]]
    assert len(set(changes) & set(starts)) >= 3
    assert len(probabilities) < 10


GERMAN = (
    "Der Hafen öffnet um sechs Uhr. Die Fischer bringen ihre Boote an den Kai.",
    "Brot besteht aus Mehl, Wasser, Salz und Hefe. Der Teig ruht eine Stunde.",
    "Die Bücherei verleiht Bücher für vier Wochen. Im Lesesaal bleibt es still.",
)
CHINESE = (
    "港口六点开放。渔船返回码头。",
    "面包由面粉、水、盐和酵母制成。",
    "图书馆借书的期限是四周。",
)


@pytest.mark.parametrize("paragraphs", [GERMAN, CHINESE])
def test_a_text_in_another_language_is_divided_at_its_paragraphs_with_a_note(paragraphs):
    result = neural.segment("\n\n".join(paragraphs))
    assert [part.text.strip() for part in result] == list(paragraphs)
    assert "does not look like English" in result.raw.notes[0] and "note: " in str(result)


def test_headings_of_another_language_come_before_paragraphs():
    text = f"# Hafen\n\n{GERMAN[0]}\n\n{GERMAN[2]}\n\n# Brot\n\n{GERMAN[1]}\n"
    assert [part.title for part in neural.segment(text, markup="markdown")] == ["Hafen", "Brot"]


def test_another_language_without_layout_is_divided_by_budgets_between_sentences():
    text = " ".join(GERMAN)
    assert len(neural.segment(text)) == 1
    parts = neural.segment(text, max_tokens=16)
    assert "".join(part.text for part in parts) == text
    assert len(parts) > 1 and all(part.text.rstrip().endswith(".") for part in parts)


def test_english_lists_of_names_and_tables_are_read_as_english():
    pipeline = load_shipped_pipeline()
    names = "Smith and Jones played for the club with Müller, Kowalski and Nguyen in the final."
    table = "| run | loss | accuracy |\n| first | 0.31 | 0.92 |\n" * 20
    for text in (names * 4, table):
        document = SegmentationDocument.from_text(text)
        assert pipeline.describe_unknown_language(document) is None
