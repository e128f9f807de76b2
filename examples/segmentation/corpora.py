"""Collect openly licensed English prose with sections: documents to train and test segmenters on.

    python examples/segmentation/corpora.py --out FOLDER [--sources NAME …] [--mirror FOLDER]
                                            [--held-out FILE …]

`sources/corpora.yaml` lists the sources: public Git repositories, each at a fixed commit, and packages of
Debian, with their licences. Repositories are fetched from GitHub into the mirror folder unless it
has them (as `OWNER+NAME`); packages are fetched with `apt-get download`.

    FOLDER/DOMAIN/SOURCE.jsonl   one document per line, at most `max_documents` of a source:
                                 {"title", "source", "parts": [{"title", "level", "paragraphs"}]}
    FOLDER/plain/DOMAIN.txt      all prose of the domain, one paragraph per line, for word vectors
    FOLDER/plain.txt             the same for all domains
    FOLDER/SOURCES.md            licence and size of every source
    FOLDER/raw/SPLIT/LAYOUT/     files with their original layout, to test the detection of
                                 headings; NAME.json lists the level and text of each heading

Documents are prose only: no code, tables, figures, formulas, exercises or references. A paragraph
is kept once, in the first source that has it; paragraphs of held-out documents (files in the same
format) are never kept.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tarfile
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from fnmatch import fnmatch
from hashlib import blake2b
from pathlib import Path

import yaml
from corpus_formats import PARSERS, Block, read_words

MAX_DOCUMENTS = 400
"""Documents of one source, evenly spread over its files."""
MAX_SENTENCES = 5000
MIN_PARTS = 3
MIN_SENTENCES = 15
MAX_SHORT_SHARE = 0.4
"""Maximum share of a document's parts that have only one sentence."""
MAX_CHAPTERS = 8
"""Books with more chapters become several documents."""
MIN_WORDS = 5
"""Words of the shortest paragraph."""
MIN_LETTER_SHARE = 0.75
"""Letters among the characters of a paragraph that are no spaces."""
MIN_FUNCTION_WORD_SHARE = 0.2
"""Function words among the words of an English text: prose has 0.3 to 0.5."""
MAX_REPEATED_SHARE = 0.1
"""Maximum share of a document's paragraphs that other documents have."""
FUNCTION_WORDS = read_words(
    "the of and to a in is that it for as was with be by on not he his are this or from at which "
    "you have an had they their but we can if will there one all were has i its when your who so "
    "her she him my no would been our what them do more may these should any than other"
)
EXCLUDED_TITLE = re.compile(
    r"(references?|bibliograph|works cited|citations?$|further (reading|resources|information)"
    r"|(related|additional|more|other|external|useful|helpful) (reading|resources|information|links"
    r"|topics|articles|content|documentation)|resources$|see also|external links|links$|credits?$"
    r"|(key|important) (terms|equations|concepts)|glossary|(foot|end)?notes$|index$|contents$"
    r"|table of contents|on this page|exercises?|problems?$|(review|discussion|practice|check|quiz|"
    r"critical|multiple|short|free|self|test|chapter) .*(questions?|review|check|quiz|problems"
    r"|exercises|thinking|choice|answer|response|understanding|test|prep)|questions?$|quiz"
    r"|acknowledge?ments?|licen[sc]e|copyright|change ?log|version history|release notes|authors?$"
    r"|contributors?$|what'?s next|next steps?$|feedback|browser compatibility|specifications?$"
    r"|syntax$|parameters?$|return values?$|attributions?$|illustrations?$|preface$|objectives"
    r"|knowledge check|learning (objectives|outcomes|goals)|(key )?summary$|key points$|solutions?$|footnotes)",
    re.IGNORECASE,
)
"""Titles of parts that are no prose about a topic of their own."""


ADMONITION = re.compile(r"(note|tip|warning|caution|important|hint|danger)s?:?", re.IGNORECASE)
"""Headings of boxes beside the text; they begin no part."""
TABLE_HEADER = (
    "| domain | source | origin | commit or version | licence | documents | parts | sentences "
    "| words | sentences per part | words of plain text |"
)
EXCLUDED_FILE = re.compile(
    r"(^|/)(\.github|node_modules|_?includes?|templates?|_?drafts?|snippets|vendor|i18n|locales?)/"
    r"|(^|/)(readme|contributing|contributors|changelog|changes|license|licence|copying|authors"
    r"|code[_-]of[_-]conduct|security|maintainers|toc|summary|glossary|titlepage|imprint"
    r"|colophon|uncopyright|halftitlepage|endnotes|loi|dedication|epigraph|frontispiece)"
    r"(\.\w+)?\.(md|markdown|rst|txt|adoc|xhtml)$",
    re.IGNORECASE,
)
"""Files of a project that are about the project or have no prose of their own."""


@dataclass(frozen=True)
class Source:
    """A repository or package, and which of its files are documents."""

    name: str
    domain: str
    licence: str
    format: str
    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    repository: str = ""
    package: str = ""
    commit: str = ""
    """Commit of the repository or version of the package."""
    chapters: str = ""
    """"files" if the files of a folder are the chapters of a book, "headings" if a file is one."""
    plain_only: bool = False
    """Whether the source has prose for word vectors, but no sections worth learning."""
    max_documents: int = MAX_DOCUMENTS
    max_sentences: int = MAX_SENTENCES
    """Longer documents are left out."""


@dataclass
class Part:
    """Paragraphs below one heading; the introduction has no title."""

    title: str
    level: int
    paragraphs: list[str] = field(default_factory=list)


@dataclass
class Document:
    title: str
    source: str
    parts: list[Part]


def load_sources(path: Path) -> list[Source]:
    """Sources of a YAML list of groups; a group's settings hold for all its repositories."""
    sources = []
    for group in yaml.safe_load(path.read_text()):
        settings = {key: group[key] for key in group if key not in ("repositories", "packages")}
        for key in ("include", "exclude"):
            settings[key] = tuple(settings.get(key, ()))
        kinds = {"repository": group.get("repositories"), "package": group.get("packages")}
        for kind, entries in kinds.items():
            for origin, commit in (entries or {}).items():
                name = re.sub(r"[^\w.-]", "-", origin.replace("/", "-"))[:80].rstrip("-")
                entry = {"name": name, "commit": str(commit), kind: origin}
                sources.append(Source(**(entry | settings)))
    return sources


# Files of a source


def natural_key(path: str) -> list[tuple[int, int | str]]:
    """Sort key that orders chapter-2 before chapter-10."""
    return [
        (0, int(token)) if token.isdigit() else (1, token) for token in re.split(r"(\d+)", path)
    ]


def is_selected(path: str, source: Source) -> bool:
    """Whether the patterns select the file. A pattern that names one file wins over all others."""
    if path in source.include:
        return True
    return any(fnmatch(path, pattern) for pattern in source.include) and not (
        EXCLUDED_FILE.search(path) or any(fnmatch(path, pattern) for pattern in source.exclude)
    )


def find_git_directory(mirror: Path, source: Source) -> Path:
    """Git directory of the repository; fetches the listed commit unless the mirror has it."""
    folder = mirror / source.repository.replace("/", "+")
    for candidate in (folder, folder / "repo", folder / "repo/.git", folder / ".git"):
        if (candidate / "HEAD").exists():
            return candidate
    url = f"https://github.com/{source.repository}"
    subprocess.run(["git", "init", "--quiet", "--bare", folder], check=True)
    command = ["git", f"--git-dir={folder}", "fetch", "--quiet", "--depth=1", url, source.commit]
    subprocess.run(command, check=True)
    return folder


def read_repository(mirror: Path, source: Source) -> Iterator[tuple[str, bytes]]:
    """Path and content of the selected files at the listed commit."""
    git = ["git", f"--git-dir={find_git_directory(mirror, source)}"]
    listing = subprocess.run(
        [*git, "ls-tree", "-r", "-z", source.commit], check=True, capture_output=True
    )
    blobs = {}
    for entry in listing.stdout.decode("utf-8", "replace").split("\0"):
        attributes, _, path = entry.partition("\t")
        if path and attributes.split()[1] == "blob" and is_selected(path, source):
            blobs[path] = attributes.split()[2]
    paths = sorted(blobs, key=natural_key)
    reader = subprocess.Popen(
        [*git, "cat-file", "--batch"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert reader.stdin is not None and reader.stdout is not None
    with reader:
        for path in paths:
            reader.stdin.write(blobs[path].encode() + b"\n")
            reader.stdin.flush()
            header = reader.stdout.readline().split()
            if header[-1] == b"missing":  # partial clones leave out large files
                continue
            content = reader.stdout.read(int(header[2]))
            reader.stdout.read(1)
            yield path, content


def read_package(mirror: Path, source: Source) -> Iterator[tuple[str, bytes]]:
    """Path and content of the selected files of a Debian package."""
    folder = mirror / "packages"
    folder.mkdir(parents=True, exist_ok=True)
    archives = sorted(folder.glob(f"{source.package}_*.deb"))
    if not archives:
        command = ["apt-get", "download", "-qq", f"{source.package}={source.commit}"]
        subprocess.run(command, check=True, cwd=folder)
        archives = sorted(folder.glob(f"{source.package}_*.deb"))
    command = ["dpkg-deb", "--fsys-tarfile", str(archives[-1])]
    files = {}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE) as process,
        tarfile.open(fileobj=process.stdout, mode="r|") as archive,
    ):
        for member in archive:
            path = member.name.removeprefix("./")
            if member.isfile() and is_selected(path, source):
                files[path] = archive.extractfile(member).read()
    for path in sorted(files, key=natural_key):
        yield path, files[path]


def read_files(source: Source, mirror: Path) -> Iterator[tuple[str, bytes]]:
    read = read_repository if source.repository else read_package
    return read(mirror, source)


# Prose


def clean_text(text: str) -> str:
    """Text in one line: normal characters, single spaces, no space before punctuation."""
    text = unicodedata.normalize("NFC", text).replace("\u00ad", "").replace("\ufeff", "")
    text = re.sub(r"[\u200b-\u200f\u2060¶⇫]", "", text)
    text = re.sub(r"\(\s*[,;]?\s*\)|\[\s*\]", "", text)  # what an inline formula or link left
    return re.sub(r"\s+([,.;:!?)])(?=\s|$)", r"\1", re.sub(r"\s+", " ", text)).strip()


def is_prose(text: str) -> bool:
    """Whether a paragraph is one sentence or more, not a label, a formula or code."""
    words = text.split()
    if len(words) < MIN_WORDS or not re.search(r"[.!?:;][\"'”’)\]*_]*$", text):
        return False
    if not re.match(r"[\"'“‘(\[—_¿]*[A-Z0-9a-z]", text) or "�" in text:
        return False
    letters = sum(map(str.isalpha, text))
    if letters < MIN_LETTER_SHARE * sum(map(len, words)) or max(map(len, words)) > 60:
        return False
    return bool(FUNCTION_WORDS.intersection(re.findall(r"[a-z]+", text.lower())))


def is_english(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.lower())
    return sum(word in FUNCTION_WORDS for word in words) >= MIN_FUNCTION_WORD_SHARE * len(words)


def count_sentences(text: str) -> int:
    """Approximate number of sentences of a paragraph."""
    text = re.sub(r"\b(?:[A-Z]|Mr|Mrs|Ms|Dr|St|Prof|vs|etc|e\.g|i\.e|No|Fig|ca)\.", "", text)
    return 1 + len(re.findall(r"[.!?][\"'”’)\]]*\s+(?=[\"'“‘(\[]?[A-Z0-9])", text))


def hash_paragraph(text: str) -> bytes:
    words = re.findall(r"\w+", text.lower())
    return blake2b(" ".join(words).encode(), digest_size=10).digest()


# Documents


def build_document(title: str, source: str, blocks: Sequence[Block]) -> Document:
    """Document of a file's headings and paragraphs; parts without prose are left out."""
    parts = [Part("", 1)]
    skipped_level = 7  # headings below an excluded one belong to it
    if re.fullmatch("preface|foreword|about this .*", title.strip(), re.IGNORECASE):
        blocks = ()
    for block in blocks:
        text = clean_text(block.text)
        if block.level:
            if block.level > skipped_level or ADMONITION.fullmatch(text):
                continue
            is_excluded = bool(EXCLUDED_TITLE.match(text.lstrip("0123456789. ")))
            skipped_level = block.level if is_excluded else 7
            parts.append(Part(text, block.level))
        elif skipped_level == 7 and is_prose(text):
            parts[-1].paragraphs.append(text)
    parts = [part for part in parts if part.paragraphs]
    top_level = min((part.level for part in parts if part.title), default=1)
    for part in parts:
        part.level = part.level - top_level + 1 if part.title else 1
    return Document(title, source, parts)


def drop_repeated(document: Document, seen: set[bytes]) -> tuple[list[str], float]:
    """Paragraphs that no earlier document has, and the share of the others. Updates `seen`."""
    paragraphs = [text for part in document.parts for text in part.paragraphs]
    hashes = [hash_paragraph(text) for text in paragraphs]
    fresh = [text for text, digest in zip(paragraphs, hashes, strict=True) if digest not in seen]
    seen.update(hashes)
    return list(dict.fromkeys(fresh)), 1 - len(fresh) / max(len(paragraphs), 1)


def read_hashes(paths: Sequence[Path]) -> set[bytes]:
    """Hashes of all paragraphs of documents in JSON lines."""
    hashes = set()
    for path in paths:
        with path.open() as lines:
            for document in map(json.loads, lines):
                texts = (text for part in document["parts"] for text in part["paragraphs"])
                hashes.update(map(hash_paragraph, texts))
    return hashes


def is_segmented(document: Document, max_sentences: int = MAX_SENTENCES) -> bool:
    """Whether the document has enough parts and sentences to learn boundaries from."""
    sizes = [sum(map(count_sentences, part.paragraphs)) for part in document.parts]
    short_share = sum(size < 2 for size in sizes) / max(len(sizes), 1)
    return (
        len(sizes) >= MIN_PARTS
        and MIN_SENTENCES <= sum(sizes) <= max_sentences
        and short_share <= MAX_SHORT_SHARE
    )


def split_book(document: Document) -> Iterator[Document]:
    """Documents of consecutive chapters; a document ends where a chapter ends."""
    top_level = min((part.level for part in document.parts), default=1)
    starts = [index for index, part in enumerate(document.parts) if part.level == top_level]
    count = -(-len(starts) // MAX_CHAPTERS)
    cuts = [starts[len(starts) * index // count] for index in range(count)]
    if not cuts:
        return
    for begin, end in zip(cuts, [*cuts[1:], len(document.parts)], strict=True):
        yield Document(document.title, document.source, document.parts[begin:end])


def read_documents(source: Source, mirror: Path) -> Iterator[Document]:
    """Documents of all selected files, in the order of their paths."""
    parse = PARSERS[source.format]
    books: dict[str, list[Block]] = {}
    for path, content in read_files(source, mirror):
        title, blocks = parse(content.decode("utf-8", "replace"))
        if source.chapters == "files":
            # A chapter without a heading is a part of its own all the same.
            if not any(block.level for block in blocks):
                blocks = [Block(1, title or Path(path).stem), *blocks]
            books.setdefault(str(Path(path).parent), []).extend(blocks)
            continue
        document = build_document(title or Path(path).stem, f"{source.name}/{path}", blocks)
        if source.chapters == "headings":
            yield from split_book(document)
        else:
            yield document
    for folder, blocks in books.items():
        yield from split_book(build_document(source.name, f"{source.name}/{folder}", blocks))


def collect(source: Source, mirror: Path, out: Path, seen: set[bytes]) -> str:
    """Write the source's documents and prose; returns its row of the table of sources."""
    documents = []
    plain_words = 0
    plain_path = out / "plain" / source.domain / f"{source.name}.txt"
    plain_path.parent.mkdir(parents=True, exist_ok=True)
    with plain_path.open("w") as plain:
        for document in read_documents(source, mirror):
            text = "\n".join(text for part in document.parts for text in part.paragraphs)
            if not is_english(text):
                continue
            fresh, repeated_share = drop_repeated(document, seen)
            plain.writelines(f"{text}\n" for text in fresh)
            plain_words += sum(len(text.split()) for text in fresh)
            if repeated_share <= MAX_REPEATED_SHARE and is_segmented(
                document, source.max_sentences
            ):
                documents.append(document)
    step = max(len(documents) / source.max_documents, 1)
    if source.plain_only:
        documents = []
    documents = [documents[int(step * index)] for index in range(int(len(documents) / step))]
    if documents:
        path = out / source.domain / f"{source.name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{json.dumps(asdict(document))}\n" for document in documents))
    parts = [part for document in documents for part in document.parts]
    sentences = sum(count_sentences(text) for part in parts for text in part.paragraphs)
    words = sum(len(text.split()) for part in parts for text in part.paragraphs)
    mean = f"{sentences / len(parts):.1f}" if parts else "–"
    counts = f"{len(documents):,} | {len(parts):,} | {sentences:,} | {words:,} | {mean}"
    origin = source.repository or f"Debian package {source.package}"
    return (
        f"| {source.domain} | {source.name} | {origin} | {source.commit[:12]} | {source.licence} "
        f"| {counts} | {plain_words:,} |"
    )


def copy_layout(source: Source, mirror: Path, out: Path) -> str:
    """Copy files with headings as they are; returns the source's row of the table of sources."""
    layout = source.format if source.format in ("markdown", "html") else "plain"
    folder = out / source.domain / layout
    folder.mkdir(parents=True, exist_ok=True)
    candidates = []
    for path, content in read_files(source, mirror):
        text = content.decode("utf-8", "replace")
        title, blocks = PARSERS[source.format](text)
        headings = [[block.level, clean_text(block.text)] for block in blocks if block.level]
        paragraphs = [clean_text(block.text) for block in blocks if not block.level]
        has_prose = sum(map(is_prose, paragraphs)) >= MIN_SENTENCES
        if len(headings) >= MIN_PARTS and has_prose and is_english(" ".join(paragraphs)):
            candidates.append((path, text, {"title": title, "headings": headings}))
    step = max(len(candidates) / source.max_documents, 1)
    count = int(len(candidates) / step)
    for path, text, headings in (candidates[int(step * index)] for index in range(count)):
        name = f"{source.name}-{path.replace('/', '-')}"[-120:]
        (folder / name).write_text(text)
        (folder / f"{name}.json").write_text(json.dumps(headings))
    origin = source.repository or f"Debian package {source.package}"
    cells = [source.domain, source.name, origin, source.commit[:12], source.licence, str(count)]
    return f"| {' | '.join(cells)} | | | | | |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sources", nargs="*", help="names or domains; all by default")
    parser.add_argument("--mirror", type=Path, help="folder of git directories OWNER+NAME")
    parser.add_argument("--held-out", type=Path, nargs="*", default=[], help="documents to avoid")
    options = parser.parse_args()
    sources = load_sources(Path(__file__).parent / "sources" / "corpora.yaml")
    if options.sources:
        unknown = set(options.sources).difference(
            *({source.name, source.domain} for source in sources)
        )
        if unknown:
            sys.exit(
                f"Unknown sources: {', '.join(sorted(unknown))}. sources/corpora.yaml lists them."
            )
        wanted = set(options.sources)
        sources = [source for source in sources if wanted & {source.name, source.domain}]
    mirror = options.mirror or options.out / "mirror"
    seen = read_hashes(options.held_out)
    rows = []
    for source in sources:
        try:
            if source.domain.startswith("raw/"):
                rows.append(copy_layout(source, mirror, options.out))
            else:
                rows.append(collect(source, mirror, options.out, seen))
        except subprocess.CalledProcessError as error:
            sys.exit(f"{source.name}: {error}. Check the network, or leave it out with --sources.")
        print(rows[-1], flush=True)
    table = [TABLE_HEADER, "|---" * 5 + "|--:" * 6 + "|", *rows]
    (options.out / "SOURCES.md").write_text("\n".join(table) + "\n")
    with (options.out / "plain.txt").open("w") as everything:
        for domain in sorted({source.domain for source in sources if "/" not in source.domain}):
            with (options.out / f"plain/{domain}.txt").open("w") as joined:
                for path in sorted((options.out / "plain" / domain).glob("*.txt")):
                    joined.write(path.read_text())
            everything.write((options.out / f"plain/{domain}.txt").read_text())


if __name__ == "__main__":
    main()
