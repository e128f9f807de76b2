"""`neural segment`, as a user types it."""

import json
import re

import pytest
from click.testing import CliRunner

from neural import segmenting
from neural.cli.main import main
from neural.experiments import best_model, experiment_of
from neural.segmenting import save_cutter
from neural.tasks.cutting.calibration.platt import Platt
from neural.tracking.run import Run
from tests.segmentation_runs import write_run

LINES = ["A river finds its road by night"] * 5 + ["Carry me home, carry me home"] * 4
TEXT = "# Rivers\n\n" + "\n".join(f"{LINES[line % 9]} {line}." for line in range(30))


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shipped")
    run = Run.open(write_run(folder / "runs", elements="sentences"))
    return save_cutter(folder / "files", experiment_of(run), best_model(run.path), Platt(scale=1.0, shift=0.0), 0.45)


@pytest.fixture(autouse=True)
def here(shipped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(segmenting, "SHIPPED", shipped)
    (tmp_path / "notes.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path


def typed(*words, text=None):
    return CliRunner().invoke(main, ["segment", *map(str, words)], input=text)


def parts(*words, text=None):
    shown = typed(*words, "--format", "json", text=text)
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.stdout)


def test_every_part_has_a_line_with_its_place_and_its_title():
    shown = typed("notes.txt", "--threshold", "0.4")
    assert shown.exit_code == 0, shown.output
    found = parts("notes.txt", "--threshold", "0.4")
    assert len(found["parts"]) > 2, "there is something to see"
    lines = shown.stdout.splitlines()
    assert lines[0].startswith(f"notes.txt  {len(found['parts'])} parts, {len(found['elements']['start'])} sentences")
    assert "the shipped segmenter, threshold 0.4" in lines[0]
    assert lines[3].endswith("Rivers")
    assert len(lines) == 3 + len(found["parts"])
    for line, one in zip(lines[3:], found["parts"], strict=True):
        assert f"{one['start']:,}" in line
        assert line.endswith(one["title"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_parts_joined_are_the_file_byte_for_byte(here, encoding, end):
    data = (TEXT.replace("home", "hôme") + "\n\n").replace("\n", end).encode(encoding)
    (here / "other.txt").write_bytes(data)
    found = parts("other.txt", "--threshold", "0.4")
    assert len(found["parts"]) > 2
    assert b"".join(one["text"].encode(found["encoding"]) for one in found["parts"]) == data
    assert b"".join(data[slice(*one["bytes"])] for one in found["parts"]) == data
    whole = "".join(one["text"] for one in found["parts"])
    assert all(whole[one["start"] : one["end"]] == one["text"] for one in found["parts"])


def test_lengths_and_threshold_are_kept():
    free = parts("notes.txt", "--threshold", "0.3")["parts"]
    kept = parts("notes.txt", "--threshold", "0.3", "--min", 3, "--max", 5)["parts"]
    few = parts("notes.txt", "--threshold", "0.999")["parts"]
    assert len(few) < len(kept) < len(free)
    lengths = [last - first for first, last in (one["elements"] for one in kept)]
    assert min(lengths) >= 3
    assert max(lengths) <= 5


def test_standard_input_and_a_single_line_are_texts_too():
    found = parts("-", text="Only one line, and no line end")
    assert found["file"] == "standard input"
    assert [one["text"] for one in found["parts"]] == ["Only one line, and no line end"]
    assert typed("-", text="Only one line").exit_code == 0


def test_lines_in_place_of_sentences():
    assert parts("notes.txt", "--unit", "lines")["unit"] == "lines"


def test_several_files_go_into_a_folder(here):
    (here / "more.txt").write_text("Another. Text.")
    shown = typed("notes.txt", "more.txt", "--format", "html", "--out", "cut")
    assert shown.exit_code == 0, shown.output
    assert sorted(one.name for one in (here / "cut").iterdir()) == ["more.txt.parts.html", "notes.txt.parts.html"]
    lines = typed("notes.txt", "more.txt", "--format", "json").stdout.splitlines()
    assert [json.loads(one)["file"] for one in lines] == ["notes.txt", "more.txt"]


def test_the_page_needs_no_other_file_and_has_the_whole_text(here):
    assert typed("notes.txt", "--format", "html", "--out", "notes.html", "--threshold", "0.4").exit_code == 0
    page = (here / "notes.html").read_text(encoding="utf-8")
    assert not re.search(r"<script|<link|https?://|src=", page)
    found = parts("notes.txt", "--threshold", "0.4")
    shown = re.findall(r'--p:(\d+);--q:(\d+)">([^<]*)</p>', page)
    assert [one[2] for one in shown] == [TEXT[a:b] for a, b in zip(found["elements"]["start"], found["elements"]["end"],
                                                                  strict=True)]  # fmt: skip
    assert [int(one[0]) for one in shown] == [round(100 * p) for p in found["elements"]["probability"]]
    assert [one[1] for one in shown[:-1]] == [one[0] for one in shown[1:]], "the curve has no steps"
    assert page.count("<section") == len(found["parts"])


def test_a_run_can_be_named_and_its_calibration_counts(here):
    path = write_run(here / "runs")
    assert parts("notes.txt", "--run", "songs")["segmenter"] == path.name
    (path / "calibration.json").write_text("{")
    shown = typed("notes.txt", "--run", "songs")
    assert shown.exit_code == 2
    assert "calibrate again" in shown.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["gone.txt"], "gone.txt cannot be read: no such file"),
        (["empty.txt"], "empty.txt is empty"),
        (["blank.txt"], "blank.txt is empty"),
        (["notes.txt", "binary.bin", "--out", "cut", "--format", "json"], "binary.bin is no text"),
        (["broken.txt"], "begins as utf-16-le and is broken"),
        (["."], "is a directory"),
        (["notes.txt", "--min", "5", "--max", "3"], "--min 5 and --max 3"),
        (["notes.txt", "--threshold", "1"], "--threshold"),
        (["notes.txt", "notes.txt", "--format", "html"], "name a folder with --out"),
        (["notes.txt", "notes.txt", "--out", "cut"], "two of the files are called notes.txt"),
        (["notes.txt", "--out", "notes.txt"], "is the text itself"),
        (["notes.txt", "--out", "nowhere/x.txt"], "there is no folder nowhere"),
        (["notes.txt", "blank.txt", "--out", "notes.txt"], "is a file"),
        (["notes.txt", "--run", "none"], "there is no run `none`"),
        ([], "FILE"),
    ],
)
def test_mistakes_are_messages_and_leave_nothing_behind(here, words, says):
    (here / "empty.txt").write_bytes(b"")
    (here / "blank.txt").write_bytes(b"\xef\xbb\xbf \n\n")
    (here / "binary.bin").write_bytes(b"\x7fELF\0\0")
    (here / "broken.txt").write_bytes(b"\xff\xfea")
    before = {one: one.read_bytes() for one in here.iterdir()}
    shown = typed(*words)
    assert shown.exit_code == 2, shown.output
    assert says in shown.stderr
    assert shown.stdout == ""
    assert {one: one.read_bytes() for one in here.iterdir()} == before


def test_bytes_in_another_encoding_are_read_and_said(here):
    (here / "old.txt").write_bytes("Café. Thé.".encode("latin-1"))
    shown = typed("old.txt")
    assert shown.exit_code == 0
    assert "old.txt is not UTF-8 (byte 3): read as Latin-1" in shown.stderr
