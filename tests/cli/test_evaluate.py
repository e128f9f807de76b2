"""`neural evaluate`, as a user types it."""

import json
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

import neural
from neural.cli.main import main
from neural.core.settings import dump_settings
from neural.optim.catalogue import CATALOGUE
from neural.runs.run import Run
from neural.tasks import registry as tasks
from neural.tasks.segmentation.baselines import registry as baselines
from neural.tasks.segmentation.collection import load_documents
from neural.tasks.segmentation.decoding import decode_expected_pk
from neural.tasks.segmentation.metrics.label_f1 import LabelF1
from neural.tasks.segmentation.metrics.pk import Pk
from neural.tasks.segmentation.pipeline import load_shipped_pipeline
from neural.training.engine import fit
from tests.cli.finished_runs import PROGRAM
from tests.contract.test_results import check_result
from tests.segmentation_runs import write_run, write_songs


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A run trained on boundaries, and one trained on labels without test documents."""
    root = tmp_path_factory.mktemp("evaluate")
    for name, settings in {"plain": {}, "labelled": {"test_split": 0.0}}.items():
        write_run(root / name / "runs", labels=name == "labelled", name=name, **settings)
    return root


def invoke(*words):
    return CliRunner().invoke(main, ["evaluate", *map(str, words)])


def test_every_baseline_is_listed_beside_the_run(root):
    result = invoke("--runs", root / "plain/runs")
    assert result.exit_code == 0, result.output
    assert "on 2 documents of the test split of songs.jsonl" in result.stdout
    assert "threshold 0.41, not calibrated" in result.stdout
    for name in baselines.names():
        assert f"\n  {name.replace('_', ' ')} " in result.stdout
    for score in ("F1", "±1", "±2", "Pk", "WindowDiff", "B"):
        assert f"\n  {score} " in result.stdout, score
    assert max(map(len, result.stdout.splitlines())) <= 100


def test_only_held_out_documents_of_the_training_file_are_scored(root):
    result = invoke("--runs", root / "plain/runs", "--data", root / "plain/songs.jsonl")
    assert "on 2 documents of the test split of songs.jsonl" in result.stdout


def test_other_data_may_follow_the_run_without_an_option(root, tmp_path):
    write_songs(tmp_path / "new.jsonl", count=3, seed=1)
    songs = tmp_path / "new.jsonl"
    runs = root / "plain/runs"
    result = invoke("plain", songs, "--runs", runs)
    assert result.exit_code == 0, result.output
    assert "on 3 documents of new.jsonl" in result.stdout
    both = invoke("plain", songs, "--data", songs, "--runs", runs)
    assert both.exit_code == 2
    assert "are both data: name one of them" in both.output
    alone = invoke(songs, "--runs", runs)
    assert alone.exit_code == 2
    assert f"is a file, not a run: name it with --data {songs}" in alone.output


def test_the_json_has_intervals_and_the_lift_over_the_best(root):
    evaluation = json.loads(invoke("--runs", root / "plain/runs", "--json").stdout)
    pk, lift = evaluation["rows"]["this run"]["pk"], evaluation["lifts"]["pk"]
    assert list(pk) == ["value", "low", "high"]
    assert pk["low"] is pk["high"] is None, "two documents"
    best = min(row["pk"]["value"] for name, row in evaluation["rows"].items() if name != "this run")
    assert evaluation["rows"][lift["baseline"]]["pk"]["value"] == best
    assert lift["difference"]["value"] == pytest.approx(best - pk["value"])


def test_without_test_documents_the_validation_documents_are_used(root):
    result = invoke("--runs", root / "labelled/runs")
    assert "of the validation split of songs.jsonl" in result.stdout
    assert "these documents selected the checkpoint" in result.stdout
    assert "label F1" in result.stdout


def test_all_of_other_documents_are_used_and_labels_match_by_name(root, tmp_path):
    write_songs(tmp_path / "new.jsonl", count=5, seed=1)
    rows = [json.loads(line) for line in (tmp_path / "new.jsonl").read_text().splitlines()]
    # The first label is another one than in training, so that classes are numbered differently.
    rows[0]["labels"] = ["chorus", *rows[0]["labels"][1:]]
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    evaluation = json.loads(
        invoke("--runs", root / "labelled/runs", "--data", tmp_path / "new.jsonl", "--json").stdout
    )
    assert evaluation["data"] == "5 documents of new.jsonl"
    predicted = (
        CliRunner()
        .invoke(
            main,
            [
                "predict",
                "labelled",
                str(tmp_path / "new.jsonl"),
                "--json",
                "--runs",
                str(root / "labelled/runs"),
            ],
        )
        .stdout.splitlines()
    )
    labels = [[row["labels"] for row in rows], [json.loads(line)["labels"] for line in predicted]]
    numbers = [
        [[("verse", "chorus").index(label) for label in song] for song in songs] for songs in labels
    ]
    expected = LabelF1().scores(LabelF1().count_documents(*numbers).sum(axis=0))["label_f1"]
    assert evaluation["rows"]["this run"]["label_f1"]["value"] == pytest.approx(float(expected))

    renamed = [
        row | {"labels": ["a" if label == "chorus" else "b" for label in row["labels"]]}
        for row in rows
    ]
    (tmp_path / "renamed.jsonl").write_text("\n".join(map(json.dumps, renamed)))
    result = invoke("--runs", root / "labelled/runs", "--data", tmp_path / "renamed.jsonl")
    assert result.exit_code == 2
    assert "song 0: the label `a` is not in the training data; " in result.stderr
    assert "chorus" in result.stderr and "verse" in result.stderr


def test_documents_without_labels_are_scored_by_their_boundaries(root, tmp_path):
    write_songs(tmp_path / "plain.jsonl", count=3, labels=False, seed=1)
    result = invoke("--runs", root / "labelled/runs", "--data", tmp_path / "plain.jsonl")
    assert result.exit_code == 0, result.output
    assert "these documents have no labels" in result.stdout
    assert "label F1" not in result.stdout


def test_training_documents_are_refused(root, tmp_path):
    copy = write_songs(tmp_path / "copy.jsonl", labels=False)
    result = invoke("--runs", root / "plain/runs", "--data", copy)
    assert result.exit_code == 2
    assert "16 of 20 documents are training documents of" in result.stderr
    assert (
        ": song 0, song 3, song 4 and 13 more; " in result.stderr
        and "--allow-duplicates" in result.stderr
    )
    result = invoke("--runs", root / "plain/runs", "--data", copy, "--allow-duplicates")
    assert result.exit_code == 0, result.output
    assert "note: 16 of 20 documents are training documents" in result.stdout
    assert "note: 2 of 20 documents selected the checkpoint" in result.stdout


def test_a_run_recognizes_training_documents_after_their_file_is_gone(tmp_path):
    write_run(tmp_path / "runs")
    (tmp_path / "songs.jsonl").rename(tmp_path / "copy.jsonl")
    result = invoke("--runs", tmp_path / "runs", "--data", tmp_path / "copy.jsonl")
    assert result.exit_code == 2
    assert "16 of 20 documents are training documents of" in result.stderr


def test_sources_of_composed_training_documents_are_refused(tmp_path):
    lines = [[f"Line {line} of text {text}." for line in range(8)] for text in range(30)]
    rows = [
        {"title": f"text {text}", "lines": text_lines, "boundaries": [4]}
        for text, text_lines in enumerate(lines)
    ]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_run(tmp_path / "runs", data=str(tmp_path / "texts.jsonl"), compose=30)
    (tmp_path / "texts.jsonl").rename(tmp_path / "copy.jsonl")
    result = invoke("--runs", tmp_path / "runs", "--data", tmp_path / "copy.jsonl")
    assert result.exit_code == 2
    assert "24 of 30 documents are training documents of" in result.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"lines": ["a", "b"], "boundaries": [1]', "bad.jsonl, line 2 is not valid JSON"),
        (
            '{"lines": ["a", "b"], "labels": ["verse"]}',
            "bad.jsonl, line 2 has 2 lines and 1 labels",
        ),
        ('{"lines": [], "labels": []}', "bad.jsonl, line 2: `lines` is empty"),
    ],
)
def test_a_broken_line_is_named_by_its_number(root, tmp_path, line, message):
    (tmp_path / "bad.jsonl").write_text(
        '{"lines": ["a", "b"], "labels": ["verse", "chorus"]}\n' + line
    )
    result = invoke("--runs", root / "labelled/runs", "--data", tmp_path / "bad.jsonl")
    assert result.exit_code == 2
    assert message in result.stderr


def test_documents_that_changed_are_refused(tmp_path):
    write_run(tmp_path / "runs")
    write_songs(tmp_path / "songs.jsonl", labels=False, seed=7)
    result = invoke("--runs", tmp_path / "runs")
    assert result.exit_code == 2
    assert "its documents changed" in result.stderr
    (tmp_path / "songs.jsonl").rename(tmp_path / "others.jsonl")
    assert "are missing" in invoke("--runs", tmp_path / "runs").stderr
    # These documents were written with another seed.
    result = invoke("--runs", tmp_path / "runs", "--data", tmp_path / "others.jsonl")
    assert result.exit_code == 0, "the network needs no documents of its own"
    assert "takes its k from the evaluated documents" in result.stdout


def test_tables_are_scored_beside_baselines(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(90, 5, 6)).astype(np.float32), random.integers(0, 3, 90)
    np.savez(tmp_path / "data.npz", x=x[:60], y=y[:60])
    np.savez(tmp_path / "test.npz", x=x[60:], y=y[60:])
    fitted = neural.fit(
        PROGRAM, tmp_path / "data.npz", settings={"training": {"steps": 2}}, runs=tmp_path / "runs"
    )
    held_out = json.loads(invoke(fitted.run.path, "--json").stdout)
    assert held_out["rows"]["this run"]["log_loss"]["value"] == pytest.approx(
        fitted.result.scores["valid/loss"], rel=1e-5
    )
    output = invoke(fitted.run.path, "--data", tmp_path / "test.npz").stdout
    assert "on 30 examples of test.npz" in output
    for words in ("linear", "majority", "balanced accuracy", "95 % interval", "over linear"):
        assert words in output
    assert max(map(len, output.splitlines())) <= 80
    refused = invoke(fitted.run.path, "--threshold", 0.5)
    assert refused.exit_code == 2
    assert "--threshold does not apply to runs of `supervised`" in refused.stderr
    refused = invoke(fitted.run.path, "--data", tmp_path / "nothing.npz")
    assert refused.exit_code == 2
    assert "there is no data" in refused.stderr


def test_tasks_without_an_evaluation_of_their_own_print_their_scores(tmp_path):
    task = tasks.get("focus").example(tmp_path, CATALOGUE)
    settings = dump_settings(task.experiment)
    run = Run.create(tmp_path / "runs", "focus", settings=settings, program=None)
    fit(task, run)
    assert "accuracy" in invoke(run.path).stdout
    refused = invoke(run.path, "--data", tmp_path)
    assert refused.exit_code == 2
    assert "--data does not apply to runs of `focus`" in refused.stderr


def test_held_out_examples_that_occur_in_training_are_noted(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(15, 5, 6)).astype(np.float32), random.integers(0, 3, 15)
    np.savez(tmp_path / "data.npz", x=np.tile(x, (8, 1, 1)), y=np.tile(y, 8))
    fitted = neural.fit(
        PROGRAM, tmp_path / "data.npz", {"training": {"steps": 2}}, runs=tmp_path / "runs"
    )
    assert fitted.run.metadata("data/duplicate_examples") == 12
    note = "note: data.npz: 12 of 12 validation examples have the same inputs as a training example"
    assert note in invoke(fitted.run.path).stdout

    (tmp_path / "text.txt").write_text("".join(random.choice(list("abcdefgh \n"), 700)) * 12)
    settings = {
        "task": "language_model",
        "data": str(tmp_path / "text.txt"),
        "context": 16,
        "training": {"steps": 2},
    }
    (tmp_path / "text.yaml").write_text(json.dumps(settings))
    trained = CliRunner().invoke(
        main, ["train", str(tmp_path / "text.yaml"), "--runs", str(tmp_path / "texts")]
    )
    assert "100% of the validation text also occurs in the training text" in trained.output
    assert (
        "100% of the validation text also occurs in the training text"
        in invoke("--runs", tmp_path / "texts").stdout
    )


def write_articles(folder, *, count=4):
    """Write .ref documents of three topics each."""
    topics = ("river water fish boat bank", "bread oven flour salt bake", "law court judge trial")
    rng = np.random.default_rng(0)
    folder.mkdir()
    for number in range(count):
        segments = [
            "\n".join(" ".join(rng.permutation(words.split())) + " ." for _ in range(6))
            for words in topics
        ]
        (folder / f"{number}.ref").write_text("\n==========\n".join(segments))
    return folder


def test_the_shipped_segmenter_is_scored_beside_every_baseline(tmp_path):
    articles = write_articles(tmp_path / "articles")
    result = invoke("shipped", "--data", articles)
    assert result.exit_code == 0, result.output
    assert "the shipped segmenter  on 4 documents of articles" in result.stdout
    for name in ("shipped", *baselines.names()):
        assert f"\n  {name.replace('_', ' ')} " in result.stdout, name
    assert "smooth calibration error" in result.stdout
    assert not (tmp_path / "runs").exists()
    check_result(neural.evaluate("shipped", articles), tmp_path)
    also = invoke("shipped", articles)
    assert also.stdout == result.stdout


def test_scores_of_the_shipped_segmenter_are_those_of_its_boundaries(tmp_path):
    articles = write_articles(tmp_path / "articles")
    evaluation = json.loads(invoke("shipped", articles, "--json").stdout)
    pipeline, pk = load_shipped_pipeline(), Pk()
    documents = load_documents(articles)
    errors = [
        pk.score_document(document.boundaries, pipeline.segment(document)) for document in documents
    ]
    assert evaluation["rows"]["shipped"]["pk"]["value"] == pytest.approx(np.mean(errors))
    error = evaluation["smooth_calibration_error"]
    assert 0 <= error["value"] <= 1
    null = error["perfect_model"]
    assert 0 < null["low"] < null["value"] < null["high"]


def test_the_shipped_segmenter_needs_no_torch(tmp_path):
    articles = write_articles(tmp_path / "articles")
    code = (
        "import sys; from neural.workflows.evaluate import evaluate; "
        f"evaluate('shipped', {str(articles)!r}); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_shipped_segmenter_needs_documents():
    result = invoke("shipped")
    assert result.exit_code == 2
    assert "name a file or folder" in result.stderr


def test_decoding_for_expected_pk_replaces_the_threshold(root, tmp_path):
    articles = write_articles(tmp_path / "articles")
    evaluation = json.loads(invoke("shipped", articles, "--decode", "expected_pk", "--json").stdout)
    pipeline, pk = load_shipped_pipeline(), Pk()
    errors = [
        pk.score_document(document.boundaries, decode_expected_pk(pipeline.probabilities(document)))
        for document in load_documents(articles)
    ]
    assert evaluation["rows"]["shipped"]["pk"]["value"] == pytest.approx(np.mean(errors))
    run = invoke("--runs", root / "plain/runs", "--decode", "expected_pk")
    assert "decoded for the smallest expected Pk, not calibrated" in run.stdout
    both = invoke("shipped", articles, "--decode", "expected_pk", "--threshold", 0.2)
    assert both.exit_code == 2
    assert "a threshold has no effect on `expected_pk`" in both.stderr


def test_titled_parts_keep_their_headings_if_told_to(tmp_path):
    parts = [
        {"title": f"Topic {i}", "paragraphs": ["One is here. Two is there."]} for i in range(4)
    ]
    book = tmp_path / "book.jsonl"
    book.write_text(json.dumps({"title": "Book", "parts": parts}))
    counts = {}
    for layout in ("remove", "keep"):
        result = invoke("shipped", book, "--layout", layout, "--json")
        assert result.exit_code == 0, result.output
        counts[layout] = json.loads(result.stdout)["rows"]["nothing"]["pk"]["value"]
    assert counts["remove"] != counts["keep"]  # headings are elements


def test_documents_of_a_run_keep_the_layout_they_were_trained_with(root):
    result = invoke("--runs", root / "plain/runs", "--layout", "keep")
    assert result.exit_code == 2
    assert "was trained with `layout: remove`" in result.stderr
