"""A study from its file to its report, without processes: which trials, what is refused, what goes on, what is said."""

import json
import re

import pytest

from neural.core.settings import SettingsError
from neural.study import begun, read_study
from neural.study_report import as_json, report
from neural.sweeping import go
from neural.tasks.task import TaskError
from neural.tracking.run import Run
from neural.views.analysis import registry
from tests.studies import STUDY, Inside, write_study

COMMAND = "neural study evolve.yaml"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A study of two seeds that is done, and its report."""
    folder = tmp_path_factory.mktemp("study")
    study = read_study(write_study(folder))
    sweep, _ = begun(study, folder / "runs", COMMAND)
    go(sweep, Inside())
    assert not sweep.unfinished, [row.reason for row in sweep.rows]
    return study, sweep, report(sweep)


def codes():
    return sorted(one.code for one in map(registry.get, registry.names()) if one.kind == "claim")


def test_trials_are_every_text_with_every_seed_and_its_own_changes(tmp_path):
    path = write_study(tmp_path, STUDY.replace("[numbers.txt]", "[numbers.txt, more.txt]") + """
set: [training.steps=8]
own: {more.txt: [training.batch_size=2]}
""")  # fmt: skip
    (tmp_path / "more.txt").write_text((tmp_path / "numbers.txt").read_text()[::-1])
    trials = read_study(path).trials
    assert [one.name for one in trials] == ["numbers_seed-0", "numbers_seed-1", "more_seed-0", "more_seed-1"]
    watching = ("training.validate_every=2", "tracking.track_every=2")
    assert trials[0].changes == ("training.steps=8", 'data="numbers.txt"', *watching, "training.seed=0")
    assert trials[2].changes == (
        "training.steps=8", "training.batch_size=2", 'data="more.txt"', *watching, "training.seed=0"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STUDY + "sed: [1]\n", ["evolve.yaml:7:1", "did you mean `seeds`?"]),
        (STUDY.replace("length", "lenght"), ["evolve.yaml:5:25", "did you mean `length`?"]),
        (STUDY.replace("[0, 1]", "[0, 0]"), ["a seed stands twice"]),
        (STUDY.replace("[numbers.txt]", "[]"), ["`data` must be a list of texts, one or more"]),
        (STUDY.replace("[numbers.txt]", "[numbers.txt, numbers.txt]"), ["a text stands twice"]),
        (STUDY + "own: {number.txt: []}\n", ["not among the texts", "did you mean `numbers.txt`?"]),
        (STUDY + "set: [tracking.track_every=5]\n", ["is set by the study", "say it as `every: …`"]),
        (STUDY + "own: {numbers.txt: [training.seed=5]}\n", ["is set by the study", "say it as `seeds: …`"]),
        (STUDY + "set: [training.stps=5]\n", ["evolve.yaml:7:7", "did you mean `steps`?"]),
        (STUDY + "own: {numbers.txt: [training.steps=many]}\n", ["evolve.yaml:7:21", "must be a whole number"]),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_at_its_line(tmp_path, text, said):
    with pytest.raises(SettingsError) as wrong:
        read_study(write_study(tmp_path, text))
    assert str(wrong.value).count("error[") == 1, "once, not once a trial"
    assert all(one in str(wrong.value) for one in said), str(wrong.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STUDY.replace("small.yaml", "nowhere.yaml"), r"there is no experiment .*nowhere\.yaml"),
        (STUDY.replace("numbers.txt", "nothing.txt"), r"nothing\.txt"),
        (STUDY.replace("length: 60", "length: 60, prompt: Q"), r"numbers\.txt: character 1 of the prompt, 'Q'"),
        (STUDY.replace("small.yaml", "small.neural"), "takes an experiment in YAML"),
    ],
)
def test_what_cannot_be_studied_is_refused_before_the_first_trial(tmp_path, text, said):
    with pytest.raises(TaskError, match=said):
        read_study(write_study(tmp_path, text))


def test_what_makes_the_findings_worth_less_is_noted(tmp_path):
    study = read_study(write_study(tmp_path), ["every=5"])
    assert study.notes[0] == "fewer than 5 seeds decide nothing: every finding will be undecided"
    assert study.notes[1].startswith("numbers.txt: 3 validations are too few for a correlation (at least 6)")
    (note,) = read_study(tmp_path / "evolve.yaml", ["seeds=[1,2,3,4,5]"]).notes
    assert note.startswith("numbers.txt: 100% of the text held out stands in the training text")


def test_every_look_has_a_validation_and_judged_texts(finished):
    _, sweep, _ = finished
    for row in sweep.rows:
        run = Run.open(sweep.path / row.run)
        looks, _ = run.measure("entropy")
        assert list(looks) == [0, 2, 4, 6, 8, 10, 12]
        assert list(run.scalars("valid/loss")[0]) == list(run.scalars("generation/bits")[0]) == [2, 4, 6, 8, 10, 12]


def test_the_report_is_one_page_with_every_finding_every_plot_and_how_it_was_made(finished):
    _, sweep, made = finished
    text = made.page.read_text(encoding="utf-8")
    for code in codes():
        assert text.count(f"<td>{code}</td>") == 1
    drawn = re.findall(r'<img alt="(\w+)" src="data:image/svg\+xml;base64,', text)
    assert drawn == [f"{name}_numbers" for name in ("train_loss", "val_loss", "attention_metrics", "layer_similarity")]
    assert not re.search(r'(src|href)="(?!data:)', text), "nothing outside the page"
    assert "<link" not in text and "<script" not in text and "@import" not in text
    assert f"<pre>{COMMAND}</pre>" in text
    assert all(said in text for said in ("seeds: [0, 1]", "task: language_model", "numbers_seed-1", "after step 12"))
    assert text.count("<h1>") == 1 and text.rstrip().endswith("</html>")
    assert sorted(one.name for one in (sweep.path / "plots").iterdir() if one.suffix == ".png") == sorted(
        f"{name}.png" for name in drawn
    )


def test_findings_are_there_for_readers_and_for_machines(finished):
    _, sweep, made = finished
    said = json.loads((sweep.path / "findings.json").read_text())
    assert said == json.loads(json.dumps(as_json(sweep, made)))
    (group,) = said["groups"]
    assert [one["code"] for one in group["findings"]] == codes()
    assert {one["supported"] for one in group["findings"]} == {"undecided"}, "two seeds decide nothing"
    assert group["seeds"] == [0, 1]
    assert group["best_validation_loss"]["value"] == pytest.approx(sum(row.score for row in sweep.rows) / 2)
    table = (sweep.path / "findings.md").read_text()
    assert all(f"| {code} | " in table for code in codes())


def test_started_again_it_trains_nothing_that_is_finished(finished):
    study, sweep, _ = finished
    again, there = begun(study, sweep.path.parent, COMMAND)
    assert there and again.path == sweep.path
    runner = Inside()
    go(again, runner)
    assert runner.started == []


def test_another_experiment_is_another_study(tmp_path):
    path, root = write_study(tmp_path), tmp_path / "runs"
    first, there = begun(read_study(path), root, COMMAND)
    assert not there
    assert begun(read_study(path), root, COMMAND)[0].path == first.path
    assert begun(read_study(path, ["seeds=[7]"]), root, COMMAND)[1] is False
    assert begun(read_study(path), root, COMMAND, new=True)[1] is False
    (tmp_path / "small.yaml").write_text((tmp_path / "small.yaml").read_text() + "validation_windows: 3\n")
    assert begun(read_study(path), root, COMMAND)[1] is False


def test_what_was_interrupted_goes_on_and_what_failed_is_named(tmp_path):
    study = read_study(write_study(tmp_path), ["seeds=[0, 1]", "every=6"])
    sweep, _ = begun(study, tmp_path / "runs", COMMAND)
    with pytest.raises(KeyboardInterrupt):
        go(sweep, Inside(until=1))
    again, there = begun(study, tmp_path / "runs", COMMAND)
    assert there
    assert [row.trial.name for row in again.unfinished] == ["numbers_seed-1"]
    go(again, Inside(failing=("numbers_seed-1",)))
    made = report(again)
    assert [len(group.runs) for group in made.groups] == [1]
    assert "Trial numbers_seed-1 failed and is not among them: killed by SIGKILL" in (
        again.path / "findings.md"
    ).read_text()
    assert as_json(again, made)["not_finished"] == {"numbers_seed-1": "killed by SIGKILL"}


def test_without_a_finished_trial_there_is_no_report(tmp_path):
    sweep, _ = begun(read_study(write_study(tmp_path)), tmp_path / "runs", COMMAND)
    assert report(sweep) is None
    assert not (sweep.path / "report.html").exists()
    assert as_json(sweep, None)["groups"] == []
