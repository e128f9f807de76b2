"""Parsers of markup: a file's title, headings and paragraphs as plain text.

Every parser takes the text of a file and returns `(title, blocks)`. Code, tables, figures, formulas
and navigation are left out; items of lists are paragraphs. The parsers read what their sources
contain. They do not validate: unknown markup is dropped or becomes text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import NamedTuple
from xml.etree import ElementTree


class Block(NamedTuple):
    """A heading (level 1 to 6) or a paragraph (level 0)."""

    level: int
    text: str


Parsed = tuple[str, list[Block]]


def read_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def split_title(blocks: list[Block], title: str = "") -> Parsed:
    """Take the title from the first heading, where that is the only one of its level."""
    headings = [block for block in blocks if block.level]
    if headings and blocks[0] == headings[0]:
        top_level = min(heading.level for heading in headings)
        if headings[0].level == top_level and sum(h.level == top_level for h in headings) == 1:
            return title or headings[0].text, blocks[1:]
    return title, blocks


# Lightweight markup: blocks are separated by blank lines

ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]|[a-z][.)]|#\.)\s+")


def join_lines(lines: list[str]) -> list[Block]:
    """Paragraphs of consecutive lines; every list item begins one."""
    paragraphs: list[list[str]] = []
    is_open = False
    for line in lines:
        item = ITEM.match(line)
        if not line.strip():
            is_open = False
        elif item or not is_open:
            paragraphs.append([line[item.end() :] if item else line])
            is_open = True
        else:
            paragraphs[-1].append(line)
    return [Block(0, " ".join(paragraph)) for paragraph in paragraphs]


def strip_markdown(text: str) -> str:
    """Plain text of inline Markdown, with the templates of Hugo, Jekyll and MyST."""
    text = re.sub(r'\{\{[<%] *heading "(\w+)" *[%>]\}\}', r"\1", text)
    text = re.sub(r"\{\{[<%].*?[%>]\}\}|\{%.*?%\}|\{\{.*?\}\}|\{:.*?\}", "", text)
    text = re.sub(r":(?:num|eq)?ref:`[^`]*`|:cite\w*:`[^`]*`", "", text)
    text = re.sub(r"\{[\w:-]+\}`([^`<]*)(?:<[^`]*)?`", r"\1", text)
    text = re.sub(r"!\[[^\]]*\](?:\([^)]*\)|\[[^\]]*\])?", "", text)
    text = re.sub(r"\[\^[^\]]*\]|\[@[^\]]*\]", "", text)
    text = re.sub(
        r"\[((?:[^\[\]]|\[[^\]]*\])*)\](?:\([^()]*(?:\([^()]*\)[^()]*)*\)|\[[^\]]*\])", r"\1", text
    )
    text = re.sub(r"<(https?://[^>]*)>", "", text)
    text = re.sub(r"</?[a-zA-Z][^>]*>", "", text)
    text = re.sub(r"\$\$.*?\$\$|\$[^$\n]{1,80}\$", "", text)
    text = re.sub(r"`+([^`]*)`+", r"\1", text)
    text = re.sub(r"(?<![\w*])(\*{1,3})(?=\S)(.+?)(?<=\S)\1(?![\w*])", r"\2", text)
    text = re.sub(r"(?<![\w_])(_{1,3})(?=\S)(.+?)(?<=\S)\1(?![\w_])", r"\2", text)
    text = re.sub(r"\[([^\]]+)\]", r"\1", text)
    return html.unescape(re.sub(r"\\([\\`*_{}\[\]()#+.!<>-])", r"\1", text))


def parse_markdown(text: str) -> Parsed:
    """Markdown with front matter, fences, indented code, tables and directives."""
    title = ""
    text = text.lstrip("\ufeff")
    front = re.match(r"(---|\+\+\+)\s*\n(.*?)\n\1\s*\n", text, re.DOTALL)
    if front:
        text = text[front.end() :]
        entry = re.search(r"^title\s*[:=]\s*(.+)$", front[2], re.MULTILINE | re.IGNORECASE)
        title = entry[1].strip("'\" ") if entry else ""
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^(\s*)(`{3,}|~{3,})[^\n]*\n.*?^\s*\2`*\s*$", "", text, flags=re.DOTALL | re.M)
    text = re.sub(
        r"<(table|script|style|pre|figure|details|iframe|svg)\b.*?</\1>",
        "",
        text,
        flags=re.DOTALL | re.IGNORECASE,
    )
    text = re.sub(r"\$\$.*?\$\$", "", text, flags=re.DOTALL)
    text = re.sub(r"\[\^?[^\]\n]+\]:[^\n]*", "", text)
    blocks: list[Block] = []
    lines: list[str] = []
    was_blank = True
    for line in text.split("\n"):
        line = re.sub(r"^\s{0,3}(?:> ?)+(?:\[!\w+\])?", "", line.rstrip())
        heading = re.match(r"\s{0,3}(#{1,6})\s+(.*?)\s*#*\s*(?:\{[^}]*\})?$", line)
        underline = re.fullmatch(r"\s{0,3}(=+|-+)", line)
        if heading:
            blocks += join_lines(lines)
            blocks.append(Block(len(heading[1]), heading[2]))
            lines = []
        elif underline and lines and lines[-1].strip() and len(line.strip()) > 2:
            heading_text = lines.pop()
            blocks += join_lines(lines)
            blocks.append(Block(1 if underline[1][0] == "=" else 2, heading_text))
            lines = []
        elif re.match(r"\s*(\||:::|!!!|\?\?\?|\[\[|<[/a-zA-Z!]|\{[%{<#])", line) or underline:
            lines.append(
                re.sub(r"^\s*</?(p|div|li|ul|ol|span|section)\b[^>]*>", "", line)
                if re.match(r"\s*<(p|li|span|a|em|b|strong|code|i)\b", line)
                else ""
            )
        elif was_blank and re.match(r"( {4,}|\t)\S", line) and not ITEM.match(line):
            # Indented after a blank line: code, or the rest of a list item.
            lines.append(line if re.match(r"\s+[A-Z][\w' ]+ ", line) else "")
        else:
            lines.append(line)
        was_blank = not line.strip()
    blocks += join_lines(lines)
    return split_title([Block(level, strip_markdown(text)) for level, text in blocks], title)


def strip_rest(text: str) -> str:
    """Plain text of inline reStructuredText."""
    text = re.sub(r":[\w+:-]+:`~?!?([^`<]*?)\s*(?:<[^`]*)?`", r"\1", text)
    text = re.sub(r"`([^`<]*?)\s*<[^`]*>`_{0,2}", r"\1", text)
    text = re.sub(r"``(.+?)``", r"\1", text)
    text = re.sub(r"`([^`]+)`_{0,2}", r"\1", text)
    text = re.sub(r"\[[\w#*-]+\]_", "", text)
    text = re.sub(r"(?<!\w)(\*{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    text = re.sub(r"\|([^|]+)\|", r"\1", text)
    return re.sub(r"\\(.)", r"\1", re.sub(r"(\w)__?(?!\w)", r"\1", text))


def parse_rest(text: str) -> Parsed:
    """reStructuredText: levels follow the order in which the adornments appear."""
    blocks: list[Block] = []
    lines: list[str] = []
    styles: list[str] = []
    source = [*text.replace("\t", "    ").split("\n"), ""]
    skipped_indent = -1
    index = 0
    while index < len(source):
        line = source[index].rstrip()
        indent = len(line) - len(line.lstrip())
        following = source[index + 1].rstrip() if index + 1 < len(source) else ""
        if skipped_indent >= 0 and (not line or indent > skipped_indent):
            index += 1
            continue
        skipped_indent = -1
        is_adornment = (
            re.fullmatch(r"([^\w\s])\1{2,}", following) and len(following) >= len(line) - 2
        )
        overline = re.fullmatch(r"([^\w\s])\1{2,}", line)
        if line and not indent and not overline and is_adornment:
            has_overline = bool(lines) and re.fullmatch(r"([^\w\s])\1{2,}", lines[-1])
            if has_overline:
                lines.pop()
            style = following[0] + ("overline" if has_overline else "")
            if style not in styles:
                styles.append(style)
            blocks += join_lines(lines)
            blocks.append(Block(min(styles.index(style) + 1, 6), line))
            lines = []
            index += 2
            continue
        if overline and following.strip() and index + 2 < len(source):
            closing = source[index + 2].rstrip()
            lines.append(line if closing == line else "")
            if closing == line:
                source[index + 1] = following.strip()
        elif re.match(r"\s*(\.\.(\s|$)|:[\w ]+:(\s|$)|>>>|\||\+[-=]|=+ +=|__ )", line):
            skipped_indent = indent if re.match(r"\s*(\.\.|:)", line) else -1
            lines.append("")
        elif line.endswith("::"):
            skipped_indent = indent
            lines += [line[:-1], ""]
        else:
            lines.append(line)
        index += 1
    blocks += join_lines(lines)
    return split_title([Block(level, strip_rest(text)) for level, text in blocks])


def strip_asciidoc(text: str) -> str:
    """Plain text of inline AsciiDoc."""
    text = re.sub(r"\(\(\((.*?)\)\)\)", "", text)
    text = re.sub(r"\(\((.*?)\)\)", r"\1", text)
    text = re.sub(r"<<[^,>]*,\s*(?:xref=)?([^>]*)>>", r"\1", text)
    text = re.sub(
        r"<<[^>]*>>|(footnote|image|indexterm2?|icon):[^\[\s]*\[[^\]]*\]|\[\[.*?\]\]", "", text
    )
    text = re.sub(r"(?:link:|xref:|https?://|mailto:)[^\s\[]*\[([^\],]*)[^\]]*\]", r"\1", text)
    text = re.sub(r"\[[.#\w-]+\](?=[#_*`])", "", text)
    text = re.sub(r"(?<!\w)([*_`#+]{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    text = re.sub(r"(?<!\w)([*_`#+]{1,2})(?=\S)(.+?)(?<=\S)\1(?!\w)", r"\2", text)
    return html.unescape(re.sub(r"\{([\w-]+)\}", r"\1", text))


def parse_asciidoc(text: str) -> Parsed:
    """AsciiDoc: delimited blocks are left out, except quotes, sidebars and examples."""
    text = re.sub(
        r"^(-{4,}|\.{4,}|\+{4,}|/{4,}|\|={3,}|```+)[^\n]*\n.*?^\1\s*$",
        "",
        text,
        flags=re.DOTALL | re.MULTILINE,
    )
    blocks: list[Block] = []
    lines: list[str] = []
    for line in text.split("\n"):
        heading = re.match(r"(={1,6})\s+(\S.*)", line)
        if heading:
            blocks += join_lines(lines)
            blocks.append(Block(len(heading[1]), heading[2]))
            lines = []
        elif re.match(r"(\[.*\]\s*$|:[\w!-]+:|//|\w+::|[=*_-]{4,}$|--$|\||\+$|\.\w)", line):
            lines.append("")
        else:
            lines.append(
                re.sub(
                    r"^(NOTE|TIP|WARNING|IMPORTANT|CAUTION): ",
                    "",
                    re.sub(r"^[*.-]{1,5} ", "- ", line),
                )
            )
    blocks += join_lines(lines)
    return split_title([Block(level, strip_asciidoc(text)) for level, text in blocks])


# HTML

SKIPPED_TAGS = read_words(
    "script style pre table figure nav footer aside math svg form button select textarea "
    "noscript iframe sup template head"
)
BLOCK_TAGS = read_words(
    "p li dd dt div blockquote section article ul ol dl body main hr center tr td th"
)
VOID_TAGS = read_words("br hr img input meta link col area base wbr source")
SKIPPED_CLASS = re.compile(
    r"(?<![\w-])(toc|nav|navbar|navheader|navfooter|navigation|footnotes?|footer|sidebar"
    r"|breadcrumbs?|bibliography|references|noteref|pagenum\w*|bridgehead|epigraph|examples?"
    r"|caption|copyright|editsection|menu|indexdiv|backlink|headerlink|pg-boilerplate"
    r"|sphinxsidebar|related|wy-nav-side)(?![\w-])"
)


class HtmlBlocks(HTMLParser):
    """Collects the headings and paragraphs of a page."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self.title = ""
        self.text: list[str] = []
        self.level = 0
        self.skipped_tag = ""
        self.skipped_depth = 0
        self.in_title = False
        self.in_group = False

    def flush(self) -> None:
        text = " ".join("".join(self.text).split())
        if text:
            self.blocks.append(Block(self.level, text))
        self.text = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_title = tag == "title"
        if self.skipped_tag:
            self.skipped_depth += tag == self.skipped_tag
            return
        values = dict(attrs)
        names = " ".join(values.get(key) or "" for key in ("class", "id", "epub:type", "role"))
        is_skipped = tag in SKIPPED_TAGS or (tag != "body" and SKIPPED_CLASS.search(names))
        if tag == "hgroup":  # a number and a title, one heading
            self.flush()
            self.level, self.in_group = 2, True
        elif is_skipped and tag not in VOID_TAGS:
            self.skipped_tag, self.skipped_depth = tag, 1
        elif re.fullmatch("h[1-6]", tag) and not self.in_group:
            self.flush()
            self.level = int(tag[1])
        elif tag in BLOCK_TAGS and not self.level:
            self.flush()
        elif tag == "br" or tag in BLOCK_TAGS:
            self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self.in_title = False
        if self.skipped_tag:
            self.skipped_depth -= tag == self.skipped_tag
            if not self.skipped_depth:
                self.skipped_tag = ""
        elif tag == "hgroup" or (re.fullmatch("h[1-6]", tag) and not self.in_group):
            self.flush()
            self.level, self.in_group = 0, False
        elif tag in BLOCK_TAGS and not self.level:
            self.flush()

    def handle_data(self, data: str) -> None:
        if self.in_title:
            self.title += data
        elif not self.skipped_tag:
            self.text.append(data)


def parse_html(text: str) -> Parsed:
    """HTML or XHTML page."""
    parser = HtmlBlocks()
    parser.feed(re.sub(r"^\s*<\?xml.*?\?>", "", text))
    parser.flush()
    title, blocks = split_title(parser.blocks)
    return title or " ".join(parser.title.split()), blocks


# XML: CNXML, DocBook and PreTeXt

SECTION_TAGS = read_words(
    "document content book part chapter article appendix section subsection subsubsection sect1 "
    "sect2 sect3 sect4 sect5 simplesect refsect1 refsect2 preface introduction conclusion "
    "paragraphs div div0 div1 div2 div3 div4 text body mathbook pretext"
)
PARAGRAPH_TAGS = read_words("para simpara p item")
SKIPPED_XML = read_words(
    "math m me men md mdn figure mediaobject inlinemediaobject informalfigure table informaltable "
    "equation informalequation exercise exercises worksheet programlisting screen literallayout "
    "synopsis code-block example sidebyside image media metadata glossary indexterm index idx "
    "footnote fn note-feature references bibliography solution problem objectives outcomes "
    "teiheader reading-questions program console listing tabular info articleinfo bookinfo "
    "toc"
)
SKIPPED_XML_CLASS = re.compile(
    r"summary|review|exercise|question|problem|glossary|reference|key-|objectives|critical|"
    r"personal|test|assess|further|suggest|homework|practice|try|project|free-|multiple"
)


def read_xml_text(element: ElementTree.Element) -> str:
    """Text of an element without that of formulas, footnotes and index terms."""
    text = element.text or ""
    for child in element:
        if local_name(child) not in SKIPPED_XML | {"list", "ol", "ul", "note"}:
            text += read_xml_text(child)
        text += child.tail or ""
    return text


def local_name(element: ElementTree.Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()


def walk_xml(element: ElementTree.Element, level: int, blocks: list[Block]) -> None:
    for child in element:
        tag = local_name(child)
        if tag in SKIPPED_XML or tag == "title":
            continue
        if tag in PARAGRAPH_TAGS:
            blocks.append(Block(0, read_xml_text(child)))
            for nested in child:
                if local_name(nested) in ("list", "ol", "ul", "itemizedlist", "orderedlist"):
                    walk_xml(nested, level, blocks)
        elif tag == "note" and child.get("class"):  # a box beside the text
            continue
        elif tag in SECTION_TAGS:
            if SKIPPED_XML_CLASS.search(child.get("class") or ""):
                continue
            titles = [nested for nested in child if local_name(nested) in ("title", "head")]
            if titles:
                blocks.append(Block(min(level, 6), read_xml_text(titles[0])))
            walk_xml(child, level + 1 if titles else level, blocks)
        else:
            walk_xml(child, level, blocks)


def parse_xml(text: str) -> Parsed:
    """CNXML, DocBook or PreTeXt; a file that is not well-formed has no blocks."""
    text = re.sub(r"<!DOCTYPE[^>\[]*(\[.*?\])?\s*>", "", text, flags=re.DOTALL)
    text = re.sub(r"&(?!(?:amp|lt|gt|quot|apos|#\w+);)(\w+);", _resolve_entity, text)
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError:
        return "", []
    titles = [child for child in root if local_name(child) == "title"]
    blocks: list[Block] = []
    walk_xml(root, 1, blocks)
    return split_title(blocks, " ".join(read_xml_text(titles[0]).split()) if titles else "")


def parse_tei(text: str) -> Parsed:
    """Encyclopaedia entry in TEI whose headings are marked by type only.

    A heading is a short paragraph in small capitals, bold or italics, or the italic words, up to a
    dash, that begin a paragraph.
    """
    try:
        root = ElementTree.fromstring(text.encode())
    except ElementTree.ParseError:
        return "", []
    title = next((e.text or "" for e in root.iter() if local_name(e) == "title"), "")
    blocks: list[Block] = []
    for body in (element for element in root.iter() if local_name(element) == "body"):
        for division in body:
            for paragraph in (child for child in division if local_name(child) == "p"):
                blocks += split_tei_paragraph(paragraph)
    return title.capitalize(), blocks


def split_tei_paragraph(paragraph: ElementTree.Element) -> list[Block]:
    """Heading and text of a paragraph."""
    text = " ".join(read_xml_text(paragraph).split())
    highlights = [child for child in paragraph if local_name(child) == "hi"]
    if not highlights or (paragraph.text or "").strip():
        return [Block(0, text)]
    style = highlights[0].get("rend") or ""
    lead = ""
    for child in paragraph:
        if local_name(child) != "hi" or child.get("rend") != style:
            break
        lead = f"{lead} {' '.join(read_xml_text(child).split())}".strip()
        if (child.tail or "").strip():
            break
    level = 2 if style == "italic" else 1
    if lead and len(lead) < 80 and len(text) <= len(lead) + 2:
        return [Block(level, text.rstrip(".—- "))]
    if style == "italic" and re.search(r"[.,:;]? ?—$", lead) and len(lead) < 80:
        return [Block(2, lead.rstrip(".,:;— ")), Block(0, text[len(lead) :].lstrip("—. "))]
    return [Block(0, text)]


def _resolve_entity(match: re.Match[str]) -> str:
    """Character of an HTML entity; the name of a project's own entity."""
    character = html.unescape(match[0])
    return character if character != match[0] else match[1]


# Plain text of Project Gutenberg

CHAPTER = re.compile(
    r"(?:chapter|book|part|section|lecture|essay|letter|volume|article)\s+"
    r"(?:[ivxlcdm]+|\d+|[a-z]+)\b.{0,80}|[IVXLC]{1,7}\.?",
    re.IGNORECASE,
)
MAX_HEADING_LENGTH = 90
MIN_CHAPTERS = 3


def parse_gutenberg(text: str) -> Parsed:
    """Plain text of a book: headings are short paragraphs.

    Where chapters are numbered, a number and a line in capitals after it are a heading; else every
    line in capitals is one.
    """
    text = text.replace("\r", "")
    begin = re.search(r"\*\*\* ?START OF.*?\*\*\*", text, re.DOTALL)
    end = re.search(r"\*\*\* ?END OF|End of (the )?Project Gutenberg", text)
    title = re.search(r"^Title: (.+)$", text, re.MULTILINE)
    text = text[begin.end() if begin else 0 : end.start() if end else len(text)]
    text = re.sub(r"\[(Illustration|Footnote|Transcriber)[^\]]*\]", "", text)
    paragraphs = [" ".join(lines.split()) for lines in re.split(r"\n\s*\n", text)]
    paragraphs = [re.sub(r"_([^_]+)_", r"\1", paragraph) for paragraph in paragraphs if paragraph]
    is_short = [len(paragraph) < MAX_HEADING_LENGTH for paragraph in paragraphs]
    is_number = [
        short and bool(CHAPTER.fullmatch(paragraph))
        for paragraph, short in zip(paragraphs, is_short, strict=True)
    ]
    is_numbered = sum(is_number) >= MIN_CHAPTERS
    blocks: list[Block] = []
    follows_number = False
    for index, paragraph in enumerate(paragraphs):
        is_capitals = is_short[index] and paragraph.isupper() and paragraph[0].isalnum()
        if is_number[index] and is_numbered:
            blocks.append(Block(1, paragraph))
        elif is_capitals and follows_number:
            blocks[-1] = Block(1, f"{blocks[-1].text} {paragraph}")
        else:
            is_heading = is_capitals and not is_numbered and len(paragraph) > 5
            blocks.append(Block(int(is_heading), paragraph))
        follows_number = is_number[index] and is_numbered
    return title[1] if title else "", blocks


PARSERS: dict[str, Callable[[str], Parsed]] = {
    "markdown": parse_markdown,
    "rest": parse_rest,
    "asciidoc": parse_asciidoc,
    "html": parse_html,
    "xml": parse_xml,
    "tei": parse_tei,
    "gutenberg": parse_gutenberg,
}
