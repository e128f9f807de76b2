"""`neural segment`, as a user types it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click import unstyle
from click.testing import CliRunner

from neural.cli import segment
from neural.cli._formatting import format_table
from neural.cli.main import main
from neural.cli.segment import _format_rows
from neural.runs.run import Run
from neural.tasks.segmentation import pipeline
from neural.tasks.segmentation.calibration.platt import Platt
from neural.tasks.segmentation.pipeline import save_pipeline
from neural.training.load_model import load_best_model
from neural.training.load_task import restore_experiment
from neural.workflows.segment_files import InputFile
from tests.segmentation_runs import write_run

LINES = ["A river finds its road by night"] * 5 + ["Carry me home, carry me home"] * 4
TEXT = "# Rivers\n\n" + "\n".join(f"{LINES[line % 9]} {line}." for line in range(30))


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shipped")
    run = Run.open(write_run(folder / "runs", elements="sentences"))
    return save_pipeline(
        folder / "files",
        restore_experiment(run),
        load_best_model(run.path),
        Platt(scale=1.0, shift=0.0),
        0.45,
    )


@pytest.fixture(autouse=True)
def folder(shipped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pipeline, "SHIPPED_SEGMENTER", shipped)
    (tmp_path / "notes.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def invoke(*words, text=None):
    return CliRunner().invoke(main, ["segment", *map(str, words)], input=text)


def segment_to_json(*words, text=None):
    result = invoke(*words, "--format", "json", text=text)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_the_shipped_segmenter_needs_no_torch(tmp_path):
    heavy = ["torch", "scipy", "numba", "sklearn", "pandas", "matplotlib", "transformers", "rich"]
    code = (
        "import sys, neural.cli.main as cli\n"
        "try: cli.main(['segment', sys.argv[1]])\n"
        f"finally: print([name for name in {heavy} if name in sys.modules])"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "notes.txt")],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = process.stdout.splitlines()
    assert lines[0].startswith("notes.txt  ") and lines[-1] == "[]"


@pytest.mark.parametrize(
    "title", ["Plain title", "Ünïcode 世界 …", "bell \x07", "\x1b[31mred\x1b[0m"]
)
def test_the_table_equals_that_of_the_other_commands(title):
    rows = [("", "start", "end", "sentences", "P", "inside", "")]
    rows += [
        ("1", "0", "1,200", "3", "", "0.25", title),
        ("12", "1,200", "9", "40", "0.51", "", "x"),
    ]
    expected = format_table(rows, right_aligned=(0, 1, 2, 3, 4, 5))
    assert [unstyle(line) for line in _format_rows(rows)] == [unstyle(line) for line in expected]


def test_every_segment_has_a_line_with_its_position_and_title():
    result = invoke("notes.txt", "--threshold", "0.4")
    assert result.exit_code == 0, result.output
    data = segment_to_json("notes.txt", "--threshold", "0.4")
    assert len(data["segments"]) > 2
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        f"notes.txt  {len(data['segments'])} segments, {len(data['elements']['start'])} sentences"
    )
    assert "the shipped segmenter, threshold 0.4" in lines[0]
    assert lines[3].endswith("Rivers")
    assert len(lines) == 3 + len(data["segments"])
    for line, part in zip(lines[3:], data["segments"], strict=True):
        assert f"{part['start']:,}" in line
        assert line.endswith(part["title"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_segments_joined_are_the_file_byte_for_byte(folder, encoding, end):
    content = (TEXT.replace("home", "hôme") + "\n\n").replace("\n", end).encode(encoding)
    (folder / "other.txt").write_bytes(content)
    data = segment_to_json("other.txt", "--threshold", "0.4")
    assert len(data["segments"]) > 2
    assert b"".join(part["text"].encode(data["encoding"]) for part in data["segments"]) == content
    assert b"".join(content[slice(*part["bytes"])] for part in data["segments"]) == content
    text = "".join(part["text"] for part in data["segments"])
    assert all(text[part["start"] : part["end"]] == part["text"] for part in data["segments"])


def test_lengths_and_threshold_are_respected():
    unlimited = segment_to_json("notes.txt", "--threshold", "0.3")["segments"]
    limited = segment_to_json("notes.txt", "--threshold", "0.3", "--min", 3, "--max", 5)["segments"]
    few = segment_to_json("notes.txt", "--threshold", "0.999")["segments"]
    assert len(few) < len(limited) < len(unlimited)
    lengths = [last - first for first, last in (part["elements"] for part in limited)]
    assert min(lengths) >= 3
    assert max(lengths) <= 5


def test_standard_input_and_a_single_line_are_texts_too():
    data = segment_to_json("-", text="Only one line, and no line end")
    assert data["file"] == "standard input"
    assert [part["text"] for part in data["segments"]] == ["Only one line, and no line end"]
    assert invoke("-", text="Only one line").exit_code == 0


def test_elements_can_be_lines():
    assert segment_to_json("notes.txt", "--unit", "lines")["unit"] == "lines"


def test_several_files_go_into_a_folder(folder):
    (folder / "more.txt").write_text("Another. Text.")
    result = invoke("notes.txt", "more.txt", "--format", "html", "--out", "cut")
    assert result.exit_code == 0, result.output
    assert sorted(file.name for file in (folder / "cut").iterdir()) == [
        "more.txt.parts.html",
        "notes.txt.parts.html",
    ]
    lines = invoke("notes.txt", "more.txt", "--format", "json").stdout.splitlines()
    assert [json.loads(line)["file"] for line in lines] == ["notes.txt", "more.txt"]


def test_the_page_needs_no_other_file_and_has_the_whole_text(folder):
    assert (
        invoke(
            "notes.txt", "--format", "html", "--out", "notes.html", "--threshold", "0.4"
        ).exit_code
        == 0
    )
    page = (folder / "notes.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|<link|https?://|src=", page)
    data = segment_to_json("notes.txt", "--threshold", "0.4")
    elements = re.findall(r'--p:(\d+);--q:(\d+)">([^<]*)</p>', page)
    assert [element[2] for element in elements] == [
        TEXT[a:b] for a, b in zip(data["elements"]["start"], data["elements"]["end"], strict=True)
    ]
    assert [int(element[0]) for element in elements] == [
        round(100 * p) for p in data["elements"]["probability"]
    ]
    assert [element[1] for element in elements[:-1]] == [element[0] for element in elements[1:]], (
        "the curve is continuous"
    )
    assert page.count("<section") == len(data["segments"])


def test_a_run_can_be_named_and_its_calibration_is_used(folder):
    path = write_run(folder / "runs")
    assert segment_to_json("notes.txt", "--run", "songs")["segmenter"] == path.name
    (path / "calibration.json").write_text("{")
    result = invoke("notes.txt", "--run", "songs")
    assert result.exit_code == 2
    assert "calibrate again" in result.stderr


def read_files(folder):
    return {file: file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.txt"], "gone.txt cannot be read: no such file"),
        (["note.txt"], "no such file or directory; did you mean `notes.txt`?"),
        (["empty.txt"], "empty.txt is empty"),
        (["blank.txt"], "blank.txt is empty"),
        (["binary.bin", "--out", "cut.json", "--format", "json"], "binary.bin is not a text file"),
        (["broken.txt"], "begins as utf-16-le but is invalid"),
        (["nothing"], "the folder nothing has no texts"),
        (["notes.txt", "--tokenizer", "gone.json"], "there is no tokenizer `gone.json`"),
        (["notes.txt", "--max-tokens", "5", "--min-tokens", "6"], "min_tokens 6 is larger"),
        (["notes.txt", "--max-tokens", "5", "--overlap", "5"], "overlap 5 leaves no tokens"),
        (["notes.txt", "--overlap", "0.5"], "is a share of max_tokens"),
        (["rows.jsonl", "--format", "html", "--out", "rows.html"], "not for rows of .jsonl files"),
        (["notes.txt", "rows.jsonl", "--format", "jsonl", "--out", "rows.jsonl"], "an input file"),
        (["notes.txt", "--min", "5", "--max", "3"], "--min 5 must not be larger than --max 3"),
        (["notes.txt", "--threshold", "1"], "--threshold"),
        (["notes.txt", "notes.txt", "--format", "html"], "name a folder with --out"),
        (["notes.txt", "notes.txt", "--out", "cut"], "two of the files are called notes.txt"),
        (["notes.txt", "--out", "notes.txt"], "is an input file"),
        (["notes.txt", "--out", "nowhere/x.txt"], "there is no folder nowhere"),
        (["notes.txt", "blank.txt", "--out", "notes.txt"], "is a file"),
        (["notes.txt", "--run", "none"], "there is no run `none`"),
        ([], "FILE"),
    ],
)
def test_errors_are_messages_and_leave_nothing_behind(folder, words, message):
    (folder / "empty.txt").write_bytes(b"")
    (folder / "blank.txt").write_bytes(b"\xef\xbb\xbf \n\n")
    (folder / "binary.bin").write_bytes(b"\x7fELF\0\0")
    (folder / "broken.txt").write_bytes(b"\xff\xfea")
    (folder / "rows.jsonl").write_text('{"text": "A text."}\n')
    (folder / "nothing").mkdir()
    (folder / "nothing" / "image.png").write_bytes(b"\x89PNG")
    before = read_files(folder)
    result = invoke(*words)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert result.stdout == ""
    assert read_files(folder) == before


def test_another_encoding_is_read_with_a_note(folder):
    (folder / "old.txt").write_bytes("Café. Thé.".encode("latin-1"))
    result = invoke("old.txt")
    assert result.exit_code == 0
    assert "old.txt is not UTF-8 (byte 3): read as Latin-1" in result.stderr


BUDGET = ("--max-tokens", 30, "--overlap", 5, "--min-tokens", 10)


def test_a_token_budget_is_never_exceeded():
    data = segment_to_json("notes.txt", *BUDGET)
    text = TEXT
    assert "".join(text[part["start"] : part["end"]] for part in data["segments"]) == text
    assert all(part["tokens"] == len(part["text"].split()) <= 30 for part in data["segments"])
    lines = invoke("notes.txt", *BUDGET).stdout.splitlines()
    assert "at most 30 tokens (words)" in lines[0]
    assert lines[2].split() == ["start", "end", "sentences", "tokens", "P", "inside"]
    characters = segment_to_json("notes.txt", "--max-tokens", 100, "--tokenizer", "chars")
    assert max(len(part["text"]) for part in characters["segments"]) <= 100


def test_json_lines_have_a_segment_each():
    result = invoke("notes.txt", *BUDGET, "--format", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert rows[0].keys() == {"source", "start", "end", "tokens", "probability", "title", "text"}
    assert rows[1].keys() == rows[0].keys() | {"overlap_start"}
    assert {row["source"] for row in rows} == {"notes.txt"}
    assert "".join(TEXT[row["start"] : row["end"]] for row in rows) == TEXT
    assert all(
        row["text"] == TEXT[row.get("overlap_start", row["start"]) : row["end"]] for row in rows
    )


def test_a_folder_stands_for_its_texts(folder):
    (folder / "books" / "old").mkdir(parents=True)
    (folder / "books" / "one.md").write_text("# One\n\nA sentence.")
    (folder / "books" / "old" / "two.txt").write_text("Two sentences. Here.")
    (folder / "books" / "image.png").write_bytes(b"\x89PNG")
    (folder / "books" / ".hidden.txt").write_text("Hidden.")
    lines = invoke("books", "--format", "jsonl").stdout.splitlines()
    sources = dict.fromkeys(json.loads(line)["source"] for line in lines)
    assert list(sources) == ["old/two.txt", "one.md"]
    assert invoke("books", "--format", "jsonl", "--out", "cut").exit_code == 0
    assert sorted(
        path.relative_to(folder / "cut").as_posix() for path in read_files(folder / "cut")
    ) == [
        "old/two.txt.parts.jsonl",
        "one.md.parts.jsonl",
    ]


def test_files_of_the_same_name_are_told_apart_by_their_paths(folder):
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "README.md").write_text(f"A sentence about {name}.")
    lines = invoke(
        "a/README.md", "b/README.md", "notes.txt", "--format", "jsonl"
    ).stdout.splitlines()
    sources = dict.fromkeys(json.loads(line)["source"] for line in lines)
    assert list(sources) == ["a/README.md", "b/README.md", "notes.txt"]


def test_the_rows_of_a_file_are_texts(folder):
    rows = [{"id": number, "body": f"{TEXT} {number}"} for number in range(3)]
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    result = invoke("rows.jsonl", "--field", "body", "--format", "jsonl", "--out", "parts.jsonl")
    assert result.exit_code == 0, result.output
    assert "3 texts; parts.jsonl" in result.stderr
    parts = [json.loads(line) for line in (folder / "parts.jsonl").read_text().splitlines()]
    for number, row in enumerate(rows, start=1):
        texts = [part["text"] for part in parts if part["source"] == f"rows.jsonl:{number}"]
        assert "".join(texts) == row["body"]


def test_bad_texts_among_others_are_reported_and_the_others_are_written(folder):
    (folder / "binary.bin").write_bytes(b"\x7fELF\0\0")
    (folder / "rows.jsonl").write_bytes(
        b'{"text": "A first text."}\n{"text": \n["text"]\n{"body": "b"}\n{"text": 5}\n'
        b'{"text": "caf\xe9"}\n{"text": " "}\n{"text": "The last one."}\n'
    )
    result = invoke("gone.txt", "rows.jsonl", "binary.bin", "notes.txt", "--format", "jsonl")
    assert result.exit_code == 1
    sources = {json.loads(line)["source"] for line in result.stdout.splitlines()}
    assert sources == {"rows.jsonl:1", "rows.jsonl:8", "notes.txt"}
    for message in (
        "gone.txt cannot be read: no such file",
        "rows.jsonl, line 2: it is not JSON",
        "rows.jsonl, line 3: it is not an object with the key `text`",
        "rows.jsonl, line 4: there is no key `text`, only `body`; name one with --field",
        "rows.jsonl, line 5: `text` is not a text but a int",
        "rows.jsonl, line 6: it is not UTF-8 (byte 13)",
        "rows.jsonl:7 is empty",
        "binary.bin is not a text file",
        "8 of 11 texts could not be segmented; see above",
    ):
        assert message in result.stderr
    result = invoke("rws.jsonl")
    assert result.exit_code == 1
    assert "rws.jsonl cannot be read" in result.stderr and "`rows.jsonl`?" in result.stderr
    assert "1 of 1 texts could not be segmented" in result.stderr
    result = invoke("gone.txt", "notes.txt", "--format", "json", "--out", "cut")
    assert result.exit_code == 1
    assert [path.name for path in (folder / "cut").iterdir()] == ["notes.txt.parts.json"]


def test_several_texts_go_into_one_file_of_json(folder):
    (folder / "more.txt").write_text("Another. Text.")
    assert invoke("notes.txt", "more.txt", "--json", "--out", "all.json").exit_code == 0
    lines = (folder / "all.json").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["file"] for line in lines] == ["notes.txt", "more.txt"]


def test_a_budget_that_no_character_fits_is_an_error_and_writes_nothing(folder):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({"[UNK]": 0, "a": 1}, "[UNK]"))
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="a a $A", special_tokens=[("a", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    words = ("--max-tokens", 2, "--tokenizer", "tokenizer.json")
    result = invoke("notes.txt", *words, "--json", "--out", "notes.json")
    assert result.exit_code == 2
    assert "max_tokens 2 is too small: the character" in result.stderr
    assert not (folder / "notes.json").exists()


def test_the_default_minimum_is_in_the_help_text():
    assert "1 for the shipped segmenter" in " ".join(invoke("--help").stdout.split())


def test_a_single_long_line_has_segments(folder):
    (folder / "line.txt").write_text("word " * 40_000)
    result = invoke("line.txt", "--max-tokens", 500, "--format", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert "".join(row["text"] for row in rows) == "word " * 40_000
    assert max(row["tokens"] for row in rows) <= 500


def test_progress_is_shown_on_a_terminal(folder, monkeypatch):
    monkeypatch.setattr(segment, "MIN_PROGRESS_BYTES", 100)
    monkeypatch.setattr(segment, "PROGRESS_SECONDS", -1.0)
    progress = segment._Progress([InputFile(folder / "notes.txt", "notes.txt")])
    assert not progress._is_shown, "standard error is not a terminal"
    progress._is_shown = True
    size = (folder / "notes.txt").stat().st_size
    assert progress._format(1.0).startswith("░")
    progress._done = size
    assert "100% of 0.0 MB" in progress._format(0.001)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_memory_hardly_grows_with_the_file(folder):
    """The positions of elements are kept, for the end of the JSON object, but not their texts."""
    paragraph = " ".join(f"Sentence {number} of a long book is here." for number in range(20))
    code = (
        "import pathlib, sys, neural.cli.main as cli\n"
        "try: cli.main(['segment', sys.argv[1], '--max-tokens', '200', '--json', '--out', "
        "sys.argv[1] + '.json'])\n"
        "finally: print(pathlib.Path('/proc/self/status').read_text())"
    )
    peaks = []
    for size in (1_000_000, 5_000_000):
        path = folder / f"{size}.txt"
        path.write_text(f"{paragraph}\n\n" * (size // len(paragraph)))
        process = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
        )
        peaks.append(int(re.search(r"VmHWM:\s*(\d+) kB", process.stdout)[1]) / 1000)
        data = json.loads((folder / f"{size}.txt.json").read_text())
        assert data["characters"] == data["segments"][-1]["end"] == path.stat().st_size
    assert peaks[1] - peaks[0] < 12, peaks
