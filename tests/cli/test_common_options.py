"""All verbs agree: a run is named in the same way, and `--runs`, `--json`, `-o`, `-` mean the same."""

import json

import click
import pytest
import torch
from click.testing import CliRunner

from neural.cli import _run_selection
from neural.cli._arguments import PROGRAM_OR_RUN, RUN, SWEEP
from neural.cli._options import out_option, runs_option
from neural.cli.main import main
from neural.core.settings import Settings
from neural.optim.catalogue import CATALOGUE
from neural.runs.errors import RunError
from neural.runs.run import Run
from neural.tasks.captions.task import Captions
from neural.workflows.sweep import create_sweep
from neural.workflows.sweep_trials import Trial
from neural.workflows.train import create_run
from tests.cli.finished_runs import PROGRAM, write_run
from tests.segmentation_runs import write_run as write_segmenter
from tests.studies import write_study
from tests.sweeps import write_sweep
from tests.task_runs import write_task_run
from tests.written_runs import CHARACTERS
from tests.written_runs import write_run as write_language_model

CONTEXT = click.Context(main)
COMMANDS = {name: main.get_command(CONTEXT, name) for name in main.list_commands(CONTEXT)}
RUN_VERBS = [
    name
    for name, command in COMMANDS.items()
    if any(parameter.type in (RUN, PROGRAM_OR_RUN) for parameter in command.params)
]
OTHER_WORDS = {
    "compare": ["Other"],
    "export": ["--to", "torch"],
    "predict": ["rows.csv"],
    "segment": ["notes.txt"],
}
"""What a verb needs besides the name of a run."""


def invoke(*words, text=None):
    return CliRunner().invoke(main, [str(word) for word in words], input=text)


def get_option(command, flag):
    return next((option for option in command.params if flag in option.opts), None)


def words_for(verb, name):
    """Command line that gives `name` to the verb as its run, by argument or by option."""
    (parameter,) = [
        parameter
        for parameter in COMMANDS[verb].params
        if parameter.type in (RUN, PROGRAM_OR_RUN)
        and (isinstance(parameter, click.Argument) or verb in ("segment", "train"))
    ]
    words = [name] if isinstance(parameter, click.Argument) else [parameter.opts[0], name]
    # the file of `segment` comes first, that of `predict` after the run
    return [verb, *words, *OTHER_WORDS.get(verb, ())]


class OpenedError(Exception):
    """Raised instead of opening a run."""


@pytest.fixture
def opened(monkeypatch):
    """Paths of the runs that a verb opens; it ends there."""
    paths = []

    def open_run(path, **_):
        paths.append(path)
        raise OpenedError

    monkeypatch.setattr(Run, "open", open_run)
    return paths


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of runs, and files that are no runs; the tests work beside it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("1,2\n")
    (tmp_path / "notes.txt").write_text("One. Two.\n")
    root = tmp_path / "experiments"
    for name in (
        "2026-01-01_00-00-00_Novel",
        "2026-01-02_00-00-00_Novel-large",
        "2026-01-03_00-00-00_Clients-a",
        "2026-01-04_00-00-00_Clients-b",
        "2026-01-05_00-00-00_Other",
    ):
        (root / name).mkdir(parents=True)
        (root / name / "status.json").write_text("{}")
    return root


def test_every_verb_that_takes_a_run_is_covered():
    assert set(RUN_VERBS) == {
        *("analyze", "calibrate", "caption", "compare", "debug", "evaluate", "export", "figure"),
        *("generate", "predict", "report", "segment", "show", "top", "train"),
    }


@pytest.mark.parametrize("verb", RUN_VERBS)
def test_a_run_is_found_by_part_of_its_name_in_any_case(verb, runs, opened):
    result = invoke(*words_for(verb, "NOVEL-l"), "--runs", runs)
    assert isinstance(result.exception, OpenedError), result.output
    assert opened[0] == runs / "2026-01-02_00-00-00_Novel-large"


@pytest.mark.parametrize("verb", RUN_VERBS)
def test_a_run_whose_name_is_equal_wins_over_those_that_contain_it(verb, runs, opened):
    result = invoke(*words_for(verb, "novel"), "--runs", runs)
    assert isinstance(result.exception, OpenedError), result.output
    assert opened[0] == runs / "2026-01-01_00-00-00_Novel"


@pytest.mark.parametrize("verb", RUN_VERBS)
def test_several_matches_are_listed_in_the_same_words(verb, runs, opened):
    result = invoke(*words_for(verb, "clients"), "--runs", runs)
    assert (result.exit_code, opened) == (2, [])
    assert result.stderr == (
        "error: `clients` matches several runs: 2026-01-03_00-00-00_Clients-a, "
        "2026-01-04_00-00-00_Clients-b; write more of its name\n"
    )


@pytest.mark.filterwarnings("default::neural.runs.errors.RunWarning")
@pytest.mark.parametrize("verb", [verb for verb in RUN_VERBS if verb != "train"])
def test_of_runs_that_differ_only_in_their_date_the_newest_is_read(verb, runs, opened):
    (runs / "2026-01-06_00-00-00_Novel").mkdir()
    (runs / "2026-01-06_00-00-00_Novel" / "status.json").write_text("{}")
    result = invoke(*words_for(verb, "novel"), "--runs", runs)
    assert isinstance(result.exception, OpenedError), result.output
    assert opened[0] == runs / "2026-01-06_00-00-00_Novel"
    assert result.stderr == (
        "warning: `novel` matches 2 runs that differ only in their date; this is the newest: "
        "2026-01-06_00-00-00_Novel\n"
    )


@pytest.mark.parametrize("words", [("train", "--resume"), ("runs", "copy"), ("runs", "upgrade")])
def test_commands_that_write_runs_need_the_exact_name(words, runs, opened):
    (runs / "2026-01-06_00-00-00_Novel").mkdir()
    (runs / "2026-01-06_00-00-00_Novel" / "status.json").write_text("{}")
    target = [runs.parent / "copies"] if "copy" in words else []
    result = invoke(*words, "novel", *target, "--runs", runs)
    assert (result.exit_code, opened) == (2, [])
    assert "`novel` matches several runs: 2026-01-01_00-00-00_Novel, 2026" in result.stderr


@pytest.mark.parametrize("verb", RUN_VERBS)
def test_on_a_terminal_several_matches_are_a_question(verb, runs, opened, monkeypatch):
    monkeypatch.setattr(_run_selection, "_can_ask", lambda: True)
    result = CliRunner().invoke(main, [*words_for(verb, "clients"), "--runs", runs], input="2\n")
    assert isinstance(result.exception, OpenedError), result.output
    assert opened[0] == runs / "2026-01-03_00-00-00_Clients-a"
    assert "   1  2026-01-04_00-00-00_Clients-b\n" in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("verb", RUN_VERBS)
def test_an_unknown_run_is_answered_with_the_newest_ones(verb, runs, opened):
    result = invoke(*words_for(verb, "nothing"), "--runs", runs)
    assert (result.exit_code, opened) == (2, [])
    assert "there is no run `nothing` in " in result.stderr
    assert "2026-01-05_00-00-00_Other" in result.stderr


@pytest.mark.parametrize("verb", [verb for verb in RUN_VERBS if verb not in ("compare", "segment")])
def test_the_newest_run_is_the_default(verb, runs, opened):
    words = ["train", "--resume"] if verb == "train" else [verb, *OTHER_WORDS.get(verb, ())]
    result = invoke(*words, "--runs", runs)
    assert isinstance(result.exception, OpenedError), result.output
    assert opened[0] == runs / "2026-01-05_00-00-00_Other"


def test_a_folder_that_is_no_run_does_not_hide_a_run_of_that_name(runs, opened):
    (runs.parent / "other").mkdir()
    result = invoke("show", "other", "--runs", runs)
    assert isinstance(result.exception, OpenedError)
    assert opened == [runs / "2026-01-05_00-00-00_Other"]


@pytest.mark.parametrize("verb", COMMANDS)
def test_the_common_options_are_declared_alike(verb):
    command = COMMANDS[verb]
    if option := get_option(command, "--runs"):
        assert (option.opts, option.name, str(option.default)) == (["--runs"], "root", "runs")
        assert option.help == "Folder of the runs."
    if option := get_option(command, "--json"):
        assert option.opts == ["--json"] and option.is_flag
        assert option.name == "as_json" or (option.name, option.flag_value) == ("form", "json")
    assert bool(get_option(command, "-o")) == bool(get_option(command, "--out"))
    if option := get_option(command, "-o"):
        assert (option.opts, option.name) == (["-o", "--out"], "out")
    if any(parameter.type in (RUN, SWEEP, PROGRAM_OR_RUN) for parameter in command.params):
        assert get_option(command, "--runs"), "a run is found in --runs"
    other_names = {"--output", "--out-file", "-j", "--runs-dir", "--run-folder", "--root"}
    assert not other_names & {flag for option in command.params for flag in option.opts}


@pytest.mark.parametrize("verb", [verb for verb in COMMANDS if get_option(COMMANDS[verb], "-o")])
def test_standard_output_is_written_to_or_refused_but_no_file_is_called_dash(
    verb, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words, text = [], ""
    if verb in ("compile", "segment"):
        (tmp_path / "net.neural").write_text(PROGRAM)
        (tmp_path / "notes.txt").write_text("Apples are red. Pears are green.\n")
        words = ["net.neural" if verb == "compile" else "notes.txt"]
    elif verb == "report":
        words = [write_run(tmp_path / "runs")]
    elif verb == "predict":
        (tmp_path / "notes.txt").write_text("river road\ncarry home\n")
        words = [write_segmenter(tmp_path / "runs"), "notes.txt"]
    elif verb == "export":
        words = ["--to", "torch"]
    elif verb == "import":
        words = ["net.pt", "--as", "nanogpt"]
    result = invoke(verb, *words, "-o", "-", text=text)
    assert not (tmp_path / "-").exists()
    if get_option(COMMANDS[verb], "-o").type.allow_dash:
        assert result.exit_code == 0, result.output
        assert invoke(verb, *words, "-o", "written.jsonl").exit_code == 0
        assert result.stdout.strip() == (tmp_path / "written.jsonl").read_text().strip() != ""
    else:
        assert result.exit_code == 2
        assert "this command cannot write to standard output; name a path" in result.stderr


@pytest.mark.parametrize("verb", ["debug", "dynamics", "study", "sweep", "train"])
def test_a_dash_is_never_the_name_of_an_input_file(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke(verb, "-", text=PROGRAM)
    assert result.exit_code == 2
    assert "this command does not read standard input (`-`); name a file" in result.stderr


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        ("check", PROGRAM),
        ("compile", PROGRAM),
        ("fmt", PROGRAM),
        ("segment", "Apples are red. Pears are green.\n"),
    ],
)
def test_a_dash_is_standard_input(verb, text):
    result = invoke(verb, "-", text=text)
    assert result.exit_code == 0, result.output
    assert result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One run of every kind, and the files of the verbs with `--json`."""
    folder = tmp_path_factory.mktemp("verbs")
    write_run(folder / "runs", "small-a", seed=0)
    write_run(folder / "runs", "small-b", seed=1)
    write_segmenter(folder / "segmentation" / "runs")
    write_language_model(folder / "runs", "writer", vocabulary=list(CHARACTERS))
    pair = "{clean: abcab, corrupted: adcab, answer: c, wrong: d}"
    (folder / "pairs.yaml").write_text(f"metric: logit_difference\npairs: [{pair}]\n")
    captions = Captions.example(folder, CATALOGUE)
    run = create_run(captions, folder / "runs")
    for key, value in captions.metadata().items():
        run.set_metadata(key, value)
    weights = captions.build().state_dict()
    run.save(1, {f"model.{name}": tensor for name, tensor in weights.items()}, {}, best=True)
    run.finish("finished")
    write_task_run(folder / "written", "language_model").rename(folder / "runs" / "numbers")
    write_sweep(folder, "experiment: tiny.neural\nseeds: [0, 1]\n")
    write_study(folder)
    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(8, 2, 11, batch_first=True), 1
    )
    torch.save(encoder.state_dict(), folder / "encoder.pt")
    (folder / "notes.txt").write_text("Apples are red. Pears are green.\n")
    return folder


SEGMENTER = ["songs", "--runs", "segmentation/runs"]
JSON_WORDS = {
    "ablate": ["numbers", "--examples", "3"],
    "analyze": ["small-a", "small-b"],
    "attribute": ["writer", "--input", "abba", "--method", "rollout"],
    "calibrate": SEGMENTER,
    "caption": ["captions", "--pictures", "2"],
    "check": ["tiny.neural"],
    "compare": ["small-a", "small-b"],
    "doctor": [],
    "dynamics": ["--theory", "C=3", "m=4", "--alpha", "0.5"],
    "evaluate": SEGMENTER,
    "export": ["writer", "--to", "torch", "-o", "writer.pt2"],
    "figure": ["small-a", "--kind", "curves", "-o", "small.svg"],
    "generate": ["writer", "--tokens", "3"],
    "import": ["encoder.pt", "--as", "nn.TransformerEncoder", "--set", "num_heads=2"],
    "patch": ["writer", "pairs.yaml", "--no-null"],
    "predict": ["songs", "notes.txt", "--runs", "segmentation/runs"],
    "runs": [],
    "segment": ["notes.txt"],
    "show": ["small-a"],
    "study": ["evolve.yaml", "--dry-run"],
    "sweep": ["rates.yaml", "--dry-run"],
    "train": ["tiny.neural", "--dry-run"],
    "watch": ["writer", "--input", "ab"],
}
"""A command line for every verb with `--json`."""


def test_every_verb_with_json_is_covered():
    assert set(JSON_WORDS) == {
        verb for verb in COMMANDS if get_option(COMMANDS[verb], "--json") is not None
    }


@pytest.mark.parametrize("verb", JSON_WORDS)
def test_json_is_all_that_is_printed_on_standard_output(verb, folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = invoke(verb, *JSON_WORDS[verb], "--json")
    assert result.exit_code == 0 or (verb == "doctor" and result.exit_code == 1), result.output
    try:
        json.loads(result.stdout)
    except ValueError:  # a line of JSON per document
        assert [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("verb", ["analyze", "compare", "report"])
def test_the_name_of_a_sweep_stands_for_its_runs(verb, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trials = [Trial(name, seed, {}, ()) for seed, name in enumerate("ab")]
    sweep = create_sweep(tmp_path / "runs", "Rates", SweepSettings(), tmp_path, trials)
    for row in sweep.rows:
        run_path = write_run(sweep.path, row.trial.name, seed=row.trial.seed)
        row.state, row.run = "finished", run_path.name
    sweep.write()
    write_run(tmp_path / "runs", "rated")
    result = invoke(verb, "rates", *(["-o", "-"] if verb == "report" else ["--json"]))
    assert result.exit_code == 0, result.output
    assert all(row.run in result.stdout for row in sweep.rows)
    assert "_rated" not in result.stdout


class SweepSettings(Settings):
    """Settings of the sweep above."""

    retries: int = 0


@pytest.mark.parametrize("option", [out_option("Output."), runs_option()])
def test_a_folder_that_did_not_exist_is_named(option, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @click.command()
    @option
    def write(out=None, root=None):
        (out or root).parent.mkdir(parents=True, exist_ok=True)

    flag = "-o" if write.params[0].name == "out" else "--runs"
    first, second = (CliRunner().invoke(write, [flag, "typing/eror/x"]) for _ in range(2))
    assert first.stderr == "note: the folder typing/eror did not exist, it was created\n"
    assert second.stderr == ""


def test_a_misspelt_task_is_named_with_all_other_unknown_keys(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(
        'taks: supervised\nstep: 5\nnetwork: net.neural\ntraining: {batch_size: "many"}\n'
    )
    result = CliRunner().invoke(main, ["train", "a.yaml"])
    assert result.exit_code == 2
    assert "did you mean `task`?" in result.stderr
    for message in ("`taks` is not known", "`step` is not known", "`batch_size` must be"):
        assert message in result.stderr
    assert "is missing" not in result.stderr


def test_every_seed_has_bounds():
    seeds = {
        name: parameter.type
        for name, command in COMMANDS.items()
        for parameter in command.params
        if "--seed" in parameter.opts
    }
    assert len(seeds) >= 5
    for name, kind in seeds.items():
        with pytest.raises(click.BadParameter):
            kind.convert("-1", None, CONTEXT)
        with pytest.raises(click.BadParameter):
            kind.convert("9" * 20, None, CONTEXT)
        assert kind.convert("7", None, CONTEXT) == 7, name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["generate", "RUN", "--attention", ""], "the name of an .npz file"),
        (["export", "RUN", "--to", "torch", "--length", "9" * 20], "is not in the range"),
        (["train", "PROGRAM", "--dry-run", "--set", "training.learning_rate=1e308"], "1,000,000"),
    ],
)
def test_values_out_of_range_are_refused_with_a_message(words, message, tmp_path):
    (tmp_path / "net.neural").write_text(PROGRAM, encoding="utf-8")
    paths = {"RUN": write_language_model(tmp_path / "runs"), "PROGRAM": tmp_path / "net.neural"}
    result = CliRunner().invoke(main, [str(paths.get(word, word)) for word in words])
    assert result.exit_code == 2, result.output
    assert message in result.output


def test_a_panic_of_a_library_is_a_message(monkeypatch, tmp_path):
    class PanicException(BaseException):
        """As pyo3 raises it."""

    def panic(*_, **__):
        raise PanicException("the pattern is too large")

    monkeypatch.setattr("neural.runs.run.Run.open", panic)
    path = write_language_model(tmp_path)
    result = CliRunner().invoke(main, ["show", str(path)])
    assert (result.exit_code, "the pattern is too large" in result.output) == (2, True)


def test_a_full_disk_during_training_is_a_failure(monkeypatch, tmp_path):
    def fail(prepared, *, on_start, on_step, **_):
        with Run.open(write_language_model(tmp_path)) as run:
            run_task = type("Task", (), {"notes": ()})()
            on_start(run, run_task, False)
        on_step(None)
        raise RunError("the disk is full")

    monkeypatch.setattr("neural.workflows.train.train", fail)
    (tmp_path / "net.neural").write_text(PROGRAM, encoding="utf-8")
    result = CliRunner().invoke(
        main, ["train", "examples/digits.neural", "--quiet", "--runs", str(tmp_path)]
    )
    assert (result.exit_code, "the disk is full" in result.output) == (1, True)
