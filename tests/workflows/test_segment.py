"""Segmentation pipelines from files and from runs, and the segmentation of texts."""

import json

import numpy as np
import pytest

import neural
from neural.core.errors import TaskError
from neural.core.settings import load_settings
from neural.runs.run import Run
from neural.tasks.segmentation.boundary_encoding import boundaries_to_lengths
from neural.tasks.segmentation.calibration.none import None_
from neural.tasks.segmentation.calibration.platt import Platt
from neural.tasks.segmentation.document import SegmentationDocument
from neural.tasks.segmentation.pipeline import load_pipeline, save_pipeline
from neural.tasks.segmentation.reader import decode_text
from neural.tasks.segmentation.segment_stream import SegmentOptions
from neural.training.load_model import load_best_model
from neural.training.load_task import restore_experiment
from neural.training.trained_run import TrainedRunFolder
from neural.workflows.calibrate import calibrate
from neural.workflows.segment import load_run_pipeline, segment_text, segment_to_dict
from tests.segmentation_runs import write_run
from tests.written_runs import CHARACTERS
from tests.written_runs import write_run as write_language_model

TEXT = "\n".join(
    f"{'river road night' if line % 7 < 4 else 'carry me home'} {line}" for line in range(40)
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return Run.open(write_run(tmp_path_factory.mktemp("boundaries") / "runs"))


@pytest.fixture
def document():
    return SegmentationDocument.from_text(TEXT, unit="lines")


def save(run, folder, **options):
    return save_pipeline(
        folder,
        restore_experiment(run),
        load_best_model(run.path),
        Platt(scale=1.5, shift=-0.5),
        0.3,
        **options,
    )


def test_a_saved_pipeline_predicts_as_before(run, document, tmp_path):
    path = save(
        run, tmp_path / "new", name="songs", min_elements=2, metadata={"made": "for a test"}
    )
    assert sorted(file.name for file in path.parent.iterdir()) == [
        "songs.json",
        "songs.safetensors",
    ]
    pipeline, uncalibrated = load_pipeline(path), load_run_pipeline(run)
    assert (pipeline.unit, pipeline.target_kind) == ("lines", "boundaries")
    assert (pipeline.threshold, pipeline.min_elements) == (0.3, 2)
    margins = uncalibrated.margins(uncalibrated.logits(document))
    expected = Platt(scale=1.5, shift=-0.5)(margins)
    probabilities = pipeline.probabilities(document)
    assert probabilities[0] == 0
    # the saved pipeline runs without torch: other rounding errors
    assert probabilities[1:] == pytest.approx(expected[1:], abs=1e-5)
    assert probabilities[1:].std() > 0.01, "the probabilities differ"


def test_arguments_override_the_shortest_segment_of_the_pipeline(run, document, tmp_path):
    pipeline = load_pipeline(save(run, tmp_path, min_elements=3))

    def segment_lengths(**options):
        return boundaries_to_lengths(pipeline.segment(document, **options))

    assert min(segment_lengths(threshold=0.01)) == 3
    assert min(segment_lengths(min_elements=1, threshold=0.01)) == 1
    assert max(segment_lengths(max_elements=2, threshold=0.99)) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, "its version is 1"),
        ({"calibration": {"method": "platt", "scale": "x", "shift": 0}}, "must be numbers"),
        ({"tensors": {"file": "gone.safetensors", "sha256": ""}}, "gone.safetensors: no such file"),
        (
            {"tensors": {"file": "segmenter.json", "sha256": ""}},
            "not the file that was saved with it",
        ),
        ({"settings": None}, "E0809"),
    ],
)
def test_broken_files_are_refused(run, tmp_path, change, message):
    path = save(run, tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        load_pipeline(path)


def test_an_uncalibrated_run_has_the_threshold_of_its_best_validation(run):
    pipeline = load_run_pipeline(run)
    assert pipeline.threshold == pytest.approx(0.41)
    assert pipeline.calibration == None_()
    assert pipeline.notes == ()


def test_the_threshold_of_the_settings_counts(tmp_path):
    assert load_run_pipeline(Run.open(write_run(tmp_path / "runs", threshold=0.2))).threshold == 0.2


def test_a_calibration_is_used_until_the_run_is_trained_further(document, tmp_path):
    path = write_run(tmp_path / "runs")
    before = load_run_pipeline(Run.open(path))
    calibration = calibrate(Run.open(path)).calibration
    after = load_run_pipeline(Run.open(path))
    assert after.threshold == calibration.threshold
    margins = before.margins(before.logits(document))
    assert after.probabilities(document)[1:] == pytest.approx(
        calibration.boundary.calibrator(margins)[1:], abs=1e-7
    )

    run = Run.reopen(path)
    run.save(9, run.load_checkpoint().tensors, {}, best=True)
    run.finish("finished")
    stale = load_run_pipeline(Run.open(path))
    assert TrainedRunFolder(Run.open(path)).best_checkpoint() == "step 9" != calibration.weights
    assert stale.calibration == None_()
    assert "was trained further after its calibration" in stale.notes[0]


def test_a_changed_dependency_of_a_feature_is_noted(tmp_path):
    path = write_run(tmp_path / "runs", features=("rhyme",))
    run = Run.reopen(path)
    run.set_metadata("segmentation", {"feature_dependencies": {"rhyme": "a dictionary of 1883"}})
    run.finish("finished")
    assert "a dictionary of 1883 in training" in load_run_pipeline(Run.open(path)).notes[0]


def test_a_run_of_another_task_is_refused(tmp_path):
    run = Run.open(write_language_model(tmp_path, vocabulary=list(CHARACTERS)))
    with pytest.raises(TaskError, match="name a run of `segmentation`"):
        load_run_pipeline(run)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(TaskError, match=r"nothing\.json: no such file"):
        load_pipeline(tmp_path / "nothing.json")


@pytest.mark.parametrize(
    "text", [TEXT, "one line", "\ufeff  a\r\n\r\n\tb c\r\n", "x\n" * 4200, "é\u2028ü\n\n\n"]
)
def test_the_segments_join_to_the_text(run, text):
    result = segment_text(
        decode_text(text.encode(), "text"),
        load_run_pipeline(run),
        SegmentOptions(threshold=0.4, unit="lines"),
    )
    assert "".join(text[segment.start : segment.end] for segment in result.segments) == text
    data = result.to_dict()
    assert "".join(segment["text"] for segment in data["segments"]) == text
    assert data["bytes"] == len(text.encode()) == data["segments"][-1]["bytes"][1]
    assert len(data["elements"]["probability"]) == len(result.document)
    starts = [segment["elements"][0] for segment in data["segments"]]
    assert starts == [0, *np.flatnonzero(result.boundaries)]


def test_the_settings_of_a_saved_pipeline_are_complete(run, tmp_path):
    settings = json.loads(save(run, tmp_path).read_text())["settings"]
    experiment = restore_experiment(run)
    assert load_settings(type(experiment), settings).model == experiment.model


def test_a_text_is_segmented_from_python(tmp_path):
    result = neural.segment(TEXT, unit="lines", threshold=0.05)
    assert "".join(part.text for part in result) == TEXT
    assert [TEXT[part.start : part.end] for part in result] == [part.text for part in result]
    assert len(result) == len(result.segments)
    assert result[0].probability is None
    assert all(0.05 <= part.probability <= 1 for part in result[1:])
    lines = repr(result).splitlines()
    assert lines[0].startswith(f"the text  {len(result)} segment")
    assert result[0].title in result._repr_html_()
    path = tmp_path / "notes.txt"
    path.write_text(TEXT)
    (from_file, other) = neural.segment([path, "One sentence. Two."], unit="lines", threshold=0.05)
    np.testing.assert_array_equal(from_file.probabilities, result.probabilities)
    assert len(other) == 1


def test_a_run_segments_from_python(run):
    by_name = neural.segment(TEXT, run=run.name, runs=run.path.parent, max_elements=5)
    assert max(part.last - part.first for part in by_name) <= 5
    assert run.name in by_name.summary


def test_a_text_that_cannot_be_segmented_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text(TEXT)
    with pytest.raises(TaskError, match=r'pass `Path\("notes.txt"\)`'):
        neural.segment("notes.txt")
    with pytest.raises(TaskError, match="the text is empty"):
        neural.segment(" ")
    with pytest.raises(TaskError, match="min_elements 3 is larger"):
        neural.segment(TEXT, min_elements=3, max_elements=2)
    with pytest.raises(TaskError, match="the text is not a text file: it has zero bytes"):
        neural.segment("\0\1\2")


@pytest.mark.parametrize(
    ("tokenizer", "message"),
    [
        (lambda text: None, "returned None for a text of"),
        (lambda text: -1, "returned -1 for a text of"),
        (lambda text: 1 / 0, "ZeroDivisionError"),
        ("gone.json", "there is no tokenizer `gone.json`"),
        (lambda text: 9, "max_tokens 5 is too small: the character 'r' alone has more tokens"),
    ],
)
def test_a_broken_tokenizer_is_a_message(tokenizer, message):
    with pytest.raises(TaskError, match=message):
        neural.segment(TEXT, max_tokens=5, tokenizer=tokenizer)


def test_one_word_and_a_budget_below_one_word_have_segments():
    assert [part.text for part in neural.segment("word")] == ["word"]
    parts = neural.segment("unbelievable words", max_tokens=5, tokenizer="chars")
    assert "".join(part.text for part in parts) == "unbelievable words"
    assert max(part.tokens for part in parts) <= 5


def test_token_budgets_from_python():
    text = " ".join(f"Sentence number {number} is here." for number in range(60))
    result = neural.segment(text, max_tokens=40, overlap=8, min_tokens=10)
    assert "".join(text[part.start : part.end] for part in result) == text
    assert max(part.tokens for part in result) <= 40
    assert any(part.overlap_start < part.start for part in result)
    assert "at most 40 tokens (words)" in result.summary
    data = result.to_dict()
    assert [part["tokens"] for part in data["segments"]] == [part.tokens for part in result]
    assert result[-1].title in result.render_page()


def test_a_token_budget_holds_for_a_script_without_spaces():
    text = "港口六点开放，渔船返回码头。面包由面粉、水、盐和酵母制成。" * 5
    parts = neural.segment(text, max_tokens=20)
    assert "".join(part.text for part in parts) == text
    assert all(len(part.text) <= 20 for part in parts)


PAGE = """<!doctype html><html><head><title>T</title><style>p { color: red }</style></head><body>
<h1>Harbour</h1><p>The harbour opens at <b>six</b> &amp; closes at ten.</p>
<script>var hidden = "one two three four five six seven eight nine ten eleven twelve";</script>
<svg><path d="M0 0 L1 1"/></svg><h1>Bread</h1><p>Bread is made of flour, water and salt.</p></body></html>
"""


@pytest.mark.parametrize("max_tokens", [None, 5, 12])
def test_segments_of_html_have_the_text_that_a_reader_sees(max_tokens):
    parts = neural.segment(PAGE, markup="html", max_tokens=max_tokens)
    assert "".join(part.text for part in parts) == PAGE
    seen = " ".join(" ".join(part.plain_text for part in parts).split())
    assert seen == (
        "Harbour The harbour opens at six & closes at ten. "
        "Bread Bread is made of flour, water and salt."
    )
    assert neural.segment("A text.")[0].plain_text is None


def test_parts_of_a_divided_table_have_its_header():
    rows = [f"| run {number} | 0.{number} | yes |" for number in range(10, 40)]
    text = "\n".join(["Runs follow.", "", "| name | loss | done |", "|---|---|---|", *rows]) + "\n"
    parts = neural.segment(text, markup="markdown", max_tokens=60)
    assert len(parts) > 2 and "".join(part.text for part in parts) == text
    for part in parts:
        is_inside = part.text.startswith("| run")
        assert part.table_header == ("| name | loss | done |" if is_inside else None)
        assert not is_inside or part.title == "| name | loss | done |"
    assert segment_to_dict(parts[-1])["table_header"] == "| name | loss | done |"


def test_the_page_of_divided_elements_has_every_part_of_them_once():
    text = "```\n" + "".join(f"value_{number} = {number}\n" for number in range(50)) + "```\n"
    page = neural.segment(text, max_tokens=30, markup="markdown").render_page()
    assert page.count("<section") > 3
    for number in range(50):
        assert page.count(f"value_{number} = ") >= 1
    assert page.count("value_30 = 30\n") == 1


def test_an_element_is_a_paragraph_if_asked_for():
    text = "One. Two.\n\nThree.\n\nFour. Five.\n"
    assert len(neural.segment(text, unit="paragraphs").document) == 3


def test_layout_can_be_ignored():
    sentences = [f"The ship of line {number} sails on." for number in range(12)]
    text = "\n\n".join(sentences)
    assert len(neural.segment(text, ignore_layout=True).document) == 12
    np.testing.assert_array_equal(
        neural.segment(text, ignore_layout=True).probabilities,
        neural.segment(" ".join(sentences), ignore_layout=True).probabilities,
    )
