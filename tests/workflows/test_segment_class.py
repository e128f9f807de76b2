"""`neural.Segmenter`: loaded once, used for many texts, by threads, and for streams."""

from concurrent.futures import ThreadPoolExecutor

import pytest

import neural
from neural.core.errors import TaskError
from neural.runs.run import Run
from neural.tasks.segmentation.calibration.none import None_
from neural.tasks.segmentation.pipeline import save_pipeline
from neural.training.load_model import load_best_model
from neural.training.load_task import restore_experiment
from tests.segmentation_runs import write_run


def write_text(number):
    subjects = ("ship anchor sail", "engine piston valve", "bread flour oven")
    return "\n\n".join(
        f"The {word} of part {part} is number {number}. It is near. All know it."
        for part in range(12)
        for word in subjects[(part + number) % 3].split()
    )


TEXTS = [write_text(number) for number in range(12)]


@pytest.fixture(scope="module")
def segmenter():
    return neural.Segmenter.load(max_tokens=60, overlap=6)


def list_spans(result):
    return [
        (part.start, part.end, part.overlap_start, part.tokens, part.probability) for part in result
    ]


def test_a_segmenter_gives_what_the_function_gives(segmenter):
    result = segmenter(TEXTS[0])
    assert list_spans(result) == list_spans(neural.segment(TEXTS[0], max_tokens=60, overlap=6))
    assert list_spans(segmenter(TEXTS[0], overlap=0)) == list_spans(
        neural.segment(TEXTS[0], max_tokens=60)
    )


def test_a_batch_keeps_the_order_and_reads_on_demand(segmenter):
    read = []

    def texts():
        for number, text in enumerate(TEXTS):
            read.append(number)
            yield text

    results = segmenter.batch(texts())
    assert read == []
    first = next(results)
    assert read == [0]
    assert [result.raw.text for result in (first, *results)] == TEXTS


def test_threads_share_a_segmenter(segmenter):
    expected = [list_spans(segmenter(text)) for text in TEXTS]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert [list_spans(result) for result in pool.map(segmenter, TEXTS)] == expected
    assert len({tuple(spans) for spans in expected}) > 1


@pytest.mark.parametrize("size", [1, 13, 10_000])
def test_a_stream_gives_the_segments_of_the_text(segmenter, size):
    text = TEXTS[0]
    chunks = (text[start : start + size] for start in range(0, len(text), size))
    assert list(segmenter.stream(chunks)) == segmenter(text).segments


def test_a_stream_reads_strings_and_files(segmenter, tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text(TEXTS[1])
    expected = segmenter(TEXTS[1]).segments
    assert list(segmenter.stream(TEXTS[1])) == expected
    assert list(segmenter.stream(path)) == expected
    assert segmenter(path).segments == expected
    with path.open() as file:
        assert list(segmenter.stream(file)) == expected
    with path.open("rb") as file, pytest.raises(TaskError, match="open files in text mode"):
        list(segmenter.stream(file))


def test_a_run_and_a_saved_file_are_loaded(tmp_path):
    path = write_run(tmp_path / "runs")
    run = Run.open(path)
    by_path = neural.Segmenter.load(path)
    by_name = neural.Segmenter.load("songs", runs=tmp_path / "runs")
    assert by_path.pipeline.name == by_name.pipeline.name == path.name
    saved = save_pipeline(
        tmp_path / "files", restore_experiment(run), load_best_model(path), None_(), 0.3
    )
    assert neural.Segmenter.load(saved).pipeline.threshold == 0.3
    assert neural.Segmenter.load(str(saved), unit="lines").options.unit == "lines"


def test_wrong_arguments_are_errors(segmenter):
    with pytest.raises(TypeError, match="there is no option 'max_token'"):
        neural.Segmenter.load(max_token=5)
    with pytest.raises(TaskError, match="overlap 70 leaves no tokens"):
        segmenter("A text.", overlap=70)
    with pytest.raises(TaskError, match="got int"):
        segmenter(5)
    with pytest.raises(TaskError, match="the text is empty"):
        list(segmenter.stream([]))
