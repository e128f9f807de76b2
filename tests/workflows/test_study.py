"""A study from its file to its report, in this process: trials, errors, resuming, findings."""

import json
import re

import pytest

from neural.core.errors import TaskError
from neural.core.settings import SettingsError
from neural.findings.checks import registry
from neural.runs.run import Run
from neural.workflows.study import open_or_create_study, read_study
from neural.workflows.study_report import study_as_dict, write_study_report
from neural.workflows.sweep import run_sweep
from tests.studies import STUDY, InProcessRunner, write_study

COMMAND = "neural study evolve.yaml"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished study of two seeds, and its report."""
    folder = tmp_path_factory.mktemp("study")
    study = read_study(write_study(folder))
    sweep, _ = open_or_create_study(study, folder / "runs", COMMAND)
    run_sweep(sweep, InProcessRunner())
    assert not sweep.unfinished, [row.reason for row in sweep.rows]
    return study, sweep, write_study_report(sweep)


NETWORK_LAYERS = 2
"""Attention layers of the study's network; claims about more layers are left out."""


def claim_codes():
    checks = map(registry.get, registry.names())
    return sorted(
        check.code
        for check in checks
        if check.kind == "claim" and check.min_layers <= NETWORK_LAYERS
    )


def test_trials_are_all_pairs_of_text_and_seed_with_the_overrides_of_the_text(tmp_path):
    path = write_study(
        tmp_path,
        STUDY.replace("[numbers.txt]", "[numbers.txt, more.txt]")
        + """
set: [training.steps=8]
own: {more.txt: [training.batch_size=2]}
""",
    )
    (tmp_path / "more.txt").write_text((tmp_path / "numbers.txt").read_text()[::-1])
    trials = read_study(path).trials
    assert [trial.name for trial in trials] == [
        "numbers_seed-0",
        "numbers_seed-1",
        "more_seed-0",
        "more_seed-1",
    ]
    intervals = ("training.validate_every=2", "tracking.track_every=2")
    assert trials[0].overrides == (
        "training.steps=8",
        'data="numbers.txt"',
        *intervals,
        "training.seed=0",
    )
    assert trials[2].overrides == (
        "training.steps=8",
        "training.batch_size=2",
        'data="more.txt"',
        *intervals,
        "training.seed=0",
    )


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (STUDY + "sed: [1]\n", ["evolve.yaml:7:1", "did you mean `seeds`?"]),
        (STUDY.replace("length", "lenght"), ["evolve.yaml:5:25", "did you mean `length`?"]),
        (STUDY.replace("[0, 1]", "[0, 0]"), ["a seed is listed twice"]),
        (STUDY.replace("[numbers.txt]", "[]"), ["`data` must be a list of texts, one or more"]),
        (STUDY.replace("[numbers.txt]", "[numbers.txt, numbers.txt]"), ["a text is listed twice"]),
        (STUDY + "own: {number.txt: []}\n", ["not among the texts", "did you mean `numbers.txt`?"]),
        (
            STUDY + "set: [tracking.track_every=5]\n",
            ["is set by the study", "write `every: …`"],
        ),
        (
            STUDY + "own: {numbers.txt: [training.seed=5]}\n",
            ["is set by the study", "write `seeds: …`"],
        ),
        (STUDY + "set: [training.stps=5]\n", ["evolve.yaml:7:7", "did you mean `steps`?"]),
        (
            STUDY + "own: {numbers.txt: [training.steps=many]}\n",
            ["evolve.yaml:7:21", "must be a whole number"],
        ),
    ],
)
def test_an_error_is_shown_once_at_its_line(tmp_path, text, messages):
    with pytest.raises(SettingsError) as caught:
        read_study(write_study(tmp_path, text))
    assert str(caught.value).count("error[") == 1, "once, not once per trial"
    assert all(message in str(caught.value) for message in messages), str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (STUDY.replace("small.yaml", "nowhere.yaml"), r"there is no experiment .*nowhere\.yaml"),
        (STUDY.replace("numbers.txt", "nothing.txt"), r"nothing\.txt"),
        (
            STUDY.replace("length: 60", "length: 60, prompt: Q"),
            r"numbers\.txt: character 1 of the prompt, 'Q'",
        ),
        (STUDY.replace("small.yaml", "small.neural"), "takes an experiment in YAML"),
    ],
)
def test_an_impossible_study_is_refused_before_the_first_trial(tmp_path, text, message):
    with pytest.raises(TaskError, match=message):
        read_study(write_study(tmp_path, text))


def test_notes_name_limits_of_the_findings(tmp_path):
    study = read_study(write_study(tmp_path), ["every=5"])
    assert study.notes[0] == "fewer than 5 seeds decide nothing: every finding will be undecided"
    assert study.notes[1].startswith(
        "numbers.txt: 3 validations are too few for a correlation (at least 6)"
    )
    (note,) = read_study(tmp_path / "evolve.yaml", ["seeds=[1,2,3,4,5]"]).notes
    assert note.startswith(
        "numbers.txt: 100% of the validation text also occurs in the training text"
    )


def test_every_snapshot_after_step_0_has_a_validation_and_measured_texts(finished):
    _, sweep, _ = finished
    for row in sweep.rows:
        run = Run.open(sweep.path / row.run)
        snapshot_steps, _ = run.measure("entropy")
        assert list(snapshot_steps) == [0, 2, 4, 6, 8, 10, 12]
        assert (
            list(run.scalars("valid/loss")[0])
            == list(run.scalars("generation/bits")[0])
            == [2, 4, 6, 8, 10, 12]
        )


def test_the_report_is_one_page_with_all_findings_plots_and_the_command(finished):
    _, sweep, report = finished
    text = report.html_path.read_text(encoding="utf-8")
    for code in claim_codes():
        assert text.count(f"<td>{code}</td>") == 1
    drawn = re.findall(r'<img alt="(\w+)" src="data:image/svg\+xml;base64,', text)
    assert drawn == [
        f"{name}_numbers"
        for name in ("train_loss", "val_loss", "attention_metrics", "layer_similarity")
    ]
    assert not re.search(r'(src|href)="(?!data:)', text), "the page loads no other files"
    assert "<link" not in text and "<script" not in text and "@import" not in text
    assert f"<pre>{COMMAND}</pre>" in text
    assert all(
        part in text
        for part in ("seeds: [0, 1]", "task: language_model", "numbers_seed-1", "after step 12")
    )
    assert text.count("<h1>") == 1 and text.rstrip().endswith("</html>")
    assert sorted(
        path.name for path in (sweep.path / "plots").iterdir() if path.suffix == ".png"
    ) == sorted(f"{name}.png" for name in drawn)


def test_findings_are_written_as_markdown_and_as_json(finished):
    _, sweep, report = finished
    data = json.loads((sweep.path / "findings.json").read_text())
    assert data == json.loads(json.dumps(study_as_dict(sweep, report)))
    (group,) = data["groups"]
    assert [finding["code"] for finding in group["findings"]] == claim_codes()
    assert {finding["supported"] for finding in group["findings"]} == {"undecided"}, (
        "two seeds are too few"
    )
    assert group["seeds"] == [0, 1]
    assert group["best_validation_loss"]["value"] == pytest.approx(
        sum(row.score for row in sweep.rows) / 2
    )
    table = (sweep.path / "findings.md").read_text()
    assert all(f"| {code} | " in table for code in claim_codes())


def test_a_restarted_study_skips_finished_trials(finished):
    study, sweep, _ = finished
    again, was_found = open_or_create_study(study, sweep.path.parent, COMMAND)
    assert was_found and again.path == sweep.path
    runner = InProcessRunner()
    run_sweep(again, runner)
    assert runner.started == []


def test_changed_settings_or_experiments_are_another_study(tmp_path):
    path, root = write_study(tmp_path), tmp_path / "runs"
    first, was_found = open_or_create_study(read_study(path), root, COMMAND)
    assert not was_found
    assert open_or_create_study(read_study(path), root, COMMAND)[0].path == first.path
    assert open_or_create_study(read_study(path, ["seeds=[7]"]), root, COMMAND)[1] is False
    assert open_or_create_study(read_study(path), root, COMMAND, force_new=True)[1] is False
    (tmp_path / "small.yaml").write_text(
        (tmp_path / "small.yaml").read_text() + "validation_windows: 3\n"
    )
    assert open_or_create_study(read_study(path), root, COMMAND)[1] is False


def test_an_interrupted_study_resumes_and_names_failed_trials(tmp_path):
    study = read_study(write_study(tmp_path), ["seeds=[0, 1]", "every=6"])
    sweep, _ = open_or_create_study(study, tmp_path / "runs", COMMAND)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, InProcessRunner(max_trials=1))
    again, was_found = open_or_create_study(study, tmp_path / "runs", COMMAND)
    assert was_found
    assert [row.trial.name for row in again.unfinished] == ["numbers_seed-1"]
    run_sweep(again, InProcessRunner(failing=("numbers_seed-1",)))
    report = write_study_report(again)
    assert [len(group.runs) for group in report.groups] == [1]
    assert (
        "Trial numbers_seed-1 failed and is not included: killed by SIGKILL"
        in (again.path / "findings.md").read_text()
    )
    assert study_as_dict(again, report)["unfinished"] == {"numbers_seed-1": "killed by SIGKILL"}


def test_without_a_finished_trial_there_is_no_report(tmp_path):
    sweep, _ = open_or_create_study(read_study(write_study(tmp_path)), tmp_path / "runs", COMMAND)
    assert write_study_report(sweep) is None
    assert not (sweep.path / "report.html").exists()
    assert study_as_dict(sweep, None)["groups"] == []
