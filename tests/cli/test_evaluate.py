"""`neural evaluate`, as a user types it."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import neural
from neural.cli.main import main
from neural.tasks.cutting.baselines import registry as baselines
from neural.tasks.cutting.metrics.label_f1 import LabelF1
from tests.cli.finished_runs import PROGRAM
from tests.segmentation_runs import write_run, write_songs


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """A run that learned boundaries, and one that learned labels and has no test part."""
    root = tmp_path_factory.mktemp("evaluate")
    for name, more in {"plain": {}, "labelled": {"test_split": 0.0}}.items():
        write_run(root / name / "runs", labels=name == "labelled", name=name, **more)
    return root


def typed(*words):
    return CliRunner().invoke(main, ["evaluate", *map(str, words)])


def test_every_baseline_stands_beside_the_run(root):
    shown = typed("--runs", root / "plain/runs")
    assert shown.exit_code == 0, shown.output
    assert "on 2 documents of the test part of songs.jsonl" in shown.stdout
    assert "threshold 0.41, not calibrated" in shown.stdout
    for name in baselines.names():
        assert f"\n  {name.replace('_', ' ')} " in shown.stdout
    for score in ("F1", "±1", "±2", "Pk", "WindowDiff", "B"):
        assert f"\n  {score} " in shown.stdout, score
    assert max(map(len, shown.stdout.splitlines())) <= 100


def test_of_the_documents_it_was_trained_with_only_those_held_out_judge(root):
    shown = typed("--runs", root / "plain/runs", "--data", root / "plain/songs.jsonl")
    assert "on 2 documents of the test part of songs.jsonl" in shown.stdout


def test_the_json_has_intervals_and_the_lift_over_the_best(root):
    said = json.loads(typed("--runs", root / "plain/runs", "--json").stdout)
    pk, lift = said["rows"]["this run"]["pk"], said["lifts"]["pk"]
    assert pk["low"] <= pk["value"] <= pk["high"]
    best = min(row["pk"]["value"] for name, row in said["rows"].items() if name != "this run")
    assert said["rows"][lift["over"]]["pk"]["value"] == best
    assert lift["difference"]["value"] == pytest.approx(best - pk["value"])


def test_without_a_test_part_the_validation_part_is_named(root):
    shown = typed("--runs", root / "labelled/runs")
    assert "of the validation part of songs.jsonl" in shown.stdout
    assert "these documents chose the checkpoint" in shown.stdout
    assert "label F1" in shown.stdout


def test_other_documents_are_all_used_and_their_labels_go_by_name(root, tmp_path):
    write_songs(tmp_path / "new.jsonl", count=5, seed=1)
    rows = [json.loads(one) for one in (tmp_path / "new.jsonl").read_text().splitlines()]
    rows[0]["labels"] = ["chorus", *rows[0]["labels"][1:]]   # the words come in another order than in training
    (tmp_path / "new.jsonl").write_text("\n".join(map(json.dumps, rows)))
    said = json.loads(typed("--runs", root / "labelled/runs", "--data", tmp_path / "new.jsonl", "--json").stdout)
    assert said["data"] == "5 documents of new.jsonl"
    predicted = CliRunner().invoke(main, ["predict", "labelled", str(tmp_path / "new.jsonl"), "--json",
                                          "--runs", str(root / "labelled/runs")]).stdout.splitlines()  # fmt: skip
    words = [[row["labels"] for row in rows], [json.loads(one)["labels"] for one in predicted]]
    numbers = [[[("verse", "chorus").index(one) for one in song] for song in songs] for songs in words]
    expected = LabelF1().scores(LabelF1().counts(*numbers).sum(axis=0))["label_f1"]
    assert said["rows"]["this run"]["label_f1"]["value"] == pytest.approx(float(expected))

    renamed = [row | {"labels": ["a" if one == "chorus" else "b" for one in row["labels"]]} for row in rows]
    (tmp_path / "renamed.jsonl").write_text("\n".join(map(json.dumps, renamed)))
    shown = typed("--runs", root / "labelled/runs", "--data", tmp_path / "renamed.jsonl")
    assert shown.exit_code == 2
    assert "song 0: the label `a` was never learned; " in shown.stderr
    assert "knows chorus, verse" in shown.stderr or "knows verse, chorus" in shown.stderr


def test_documents_without_labels_are_judged_by_their_boundaries(root, tmp_path):
    write_songs(tmp_path / "plain.jsonl", count=3, labels=False, seed=1)
    shown = typed("--runs", root / "labelled/runs", "--data", tmp_path / "plain.jsonl")
    assert shown.exit_code == 0, shown.output
    assert "these documents have no labels" in shown.stdout
    assert "label F1" not in shown.stdout


def test_documents_that_were_learned_from_are_refused(root, tmp_path):
    copy = write_songs(tmp_path / "copy.jsonl", labels=False)
    shown = typed("--runs", root / "plain/runs", "--data", copy)
    assert shown.exit_code == 2
    assert "16 of 20 documents were learned from by" in shown.stderr
    assert ": song 0, song 3, song 4 and 13 more; " in shown.stderr and "--allow-duplicates" in shown.stderr
    shown = typed("--runs", root / "plain/runs", "--data", copy, "--allow-duplicates")
    assert shown.exit_code == 0, shown.output
    assert "note: 16 of 20 documents were learned from" in shown.stdout
    assert "note: 2 of 20 documents chose the checkpoint" in shown.stdout


def test_a_run_knows_what_it_learned_from_when_that_is_gone(tmp_path):
    write_run(tmp_path / "runs")
    (tmp_path / "songs.jsonl").rename(tmp_path / "copy.jsonl")
    shown = typed("--runs", tmp_path / "runs", "--data", tmp_path / "copy.jsonl")
    assert shown.exit_code == 2
    assert "16 of 20 documents were learned from by" in shown.stderr


def test_sources_of_composed_training_documents_are_refused(tmp_path):
    lines = [[f"Line {at} of text {text}." for at in range(8)] for text in range(30)]
    rows = [{"title": f"text {text}", "lines": own, "boundaries": [4]} for text, own in enumerate(lines)]
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, rows)))
    write_run(tmp_path / "runs", data=str(tmp_path / "texts.jsonl"), compose=30)
    (tmp_path / "texts.jsonl").rename(tmp_path / "copy.jsonl")
    shown = typed("--runs", tmp_path / "runs", "--data", tmp_path / "copy.jsonl")
    assert shown.exit_code == 2
    assert "24 of 30 documents were learned from by" in shown.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"lines": ["a", "b"], "boundaries": [1]', "bad.jsonl, line 2 is no JSON"),
        ('{"lines": ["a", "b"], "labels": ["verse"]}', "bad.jsonl, line 2 has 2 lines and 1 labels"),
        ('{"lines": [], "labels": []}', "bad.jsonl, line 2: `lines` is empty"),
    ],
)
def test_a_broken_line_is_named_by_its_number(root, tmp_path, line, says):
    (tmp_path / "bad.jsonl").write_text('{"lines": ["a", "b"], "labels": ["verse", "chorus"]}\n' + line)
    shown = typed("--runs", root / "labelled/runs", "--data", tmp_path / "bad.jsonl")
    assert shown.exit_code == 2
    assert says in shown.stderr


def test_documents_that_changed_are_refused(tmp_path):
    write_run(tmp_path / "runs")
    write_songs(tmp_path / "songs.jsonl", labels=False, seed=7)
    shown = typed("--runs", tmp_path / "runs")
    assert shown.exit_code == 2
    assert "its documents changed" in shown.stderr
    (tmp_path / "songs.jsonl").rename(tmp_path / "others.jsonl")
    assert "are gone" in typed("--runs", tmp_path / "runs").stderr
    shown = typed("--runs", tmp_path / "runs", "--data", tmp_path / "others.jsonl")   # of another seed
    assert shown.exit_code == 0, "the network needs no documents of its own"
    assert "takes its k from the documents that judge" in shown.stdout


def test_other_tasks_show_their_own_scores(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(30, 5, 6)).astype(np.float32), random.integers(0, 3, 30)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    fitted = neural.fit(PROGRAM, tmp_path / "data.npz", {"training": {"steps": 2}}, runs=tmp_path / "runs")
    said = json.loads(typed(fitted.run.path, "--json").stdout)
    assert said["scores"]["valid/loss"] == pytest.approx(fitted.outcome.scores["valid/loss"], rel=1e-5)
    assert said["remarks"] == []
    shown = typed(fitted.run.path).stdout
    assert "accuracy" in shown
    assert "note" not in shown
    for option, value in (("--data", tmp_path), ("--threshold", 0.5)):
        refused = typed(fitted.run.path, option, value)
        assert refused.exit_code == 2
        assert f"{option} is for runs of `segmentation`" in refused.stderr


def test_held_out_examples_and_text_that_were_learned_are_noted(tmp_path):
    random = np.random.default_rng(0)
    x, y = random.normal(size=(15, 5, 6)).astype(np.float32), random.integers(0, 3, 15)
    np.savez(tmp_path / "data.npz", x=np.tile(x, (8, 1, 1)), y=np.tile(y, 8))
    fitted = neural.fit(PROGRAM, tmp_path / "data.npz", {"training": {"steps": 2}}, runs=tmp_path / "runs")
    assert fitted.run.described("data/duplicate_examples") == 12
    note = "note: data.npz: 12 of 12 examples held out have the inputs of a training example; they test memory"
    assert note in typed(fitted.run.path).stdout

    (tmp_path / "text.txt").write_text("".join(random.choice(list("abcdefgh \n"), 700)) * 12)
    settings = {"task": "language_model", "data": str(tmp_path / "text.txt"), "context": 16, "training": {"steps": 2}}
    (tmp_path / "text.yaml").write_text(json.dumps(settings))
    typed_train = CliRunner().invoke(main, ["train", str(tmp_path / "text.yaml"), "--runs", str(tmp_path / "texts")])
    assert "100% of the text held out stands in the training text as well" in typed_train.output
    assert "100% of the text held out stands in the training text as well" in typed("--runs", tmp_path / "texts").stdout
