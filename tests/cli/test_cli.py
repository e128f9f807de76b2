"""The commands as a user types them: printed text and exit codes."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from neural.capture.measures import registry as measures
from neural.cli.main import main
from neural.findings.checks import registry as checks
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("**/*.neural"))


def invoke(*words, text=None):
    return CliRunner().invoke(main, [str(word) for word in words], input=text)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text(CLASSIFIER)
    return path


def test_help_lists_every_file_of_the_folder_as_a_verb():
    verbs = {path.stem for path in (ROOT / "src/neural/cli").glob("*.py")} - {"main", "__init__"}
    result = invoke("--help")
    assert result.exit_code == 0
    for verb in verbs:
        assert (f"\n  {verb} " in result.output) == (not verb.startswith("_"))


def interrupt_inside_a_library(**options):
    """As pydantic, which replaces KeyboardInterrupt by an error of its own."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ValueError("cannot build the class") from None


def test_ctrl_c_inside_a_library_is_no_traceback(monkeypatch):
    monkeypatch.setattr("neural.cli.layers.command.callback", interrupt_inside_a_library)
    with pytest.raises(SystemExit) as error:
        main(["layers"])
    assert error.value.code == 130
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_any_command_is_exit_code_130(monkeypatch, capsys):
    monkeypatch.setattr(
        "neural.cli.layers.command.callback", lambda **options: signal.raise_signal(signal.SIGINT)
    )
    with pytest.raises(SystemExit) as error:
        main(["layers"])
    assert error.value.code == 130
    assert "Aborted" not in capsys.readouterr().err


def test_an_error_without_ctrl_c_is_shown(monkeypatch):
    def fail(**options):
        raise ValueError("a defect")

    monkeypatch.setattr("neural.cli.layers.command.callback", fail)
    with pytest.raises(ValueError, match="a defect"):
        main(["layers"])


def test_a_misspelt_verb_is_guessed():
    result = invoke("chekc", "x")
    assert result.exit_code == 2
    assert "Did you mean `check`? There are ablate, analyze, " in result.output


@pytest.mark.parametrize("alias", ["fit", "eval", "test", "ls", "list", "format", "sample"])
def test_a_synonym_of_a_verb_is_that_verb(alias):
    verbs = {"fit": "train", "eval": "evaluate", "test": "evaluate", "ls": "runs", "list": "runs"}
    verb = {**verbs, "format": "fmt", "sample": "generate"}[alias]
    assert invoke(alias, "--help").output == invoke(verb, "--help").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["export", "--to", "xyz"], "there are huggingface, keras, onnx, torch"),
        (["schema", "xyz"], "there are captions, focus, language_model, segmentation, supervised"),
        (["import", "x.pt", "--as", "xyz"], "there are nanogpt, nn_transformer_encoder"),
        (["sweep", "--resume", "--runner", "xyz"], "there are "),
    ],
)
def test_an_unknown_name_is_answered_with_all_choices(words, message):
    result = invoke(*words)
    assert result.exit_code == 2
    assert message in result.output


@pytest.mark.parametrize(
    ("alias", "task"),
    [("classification", "supervised"), ("regression", "supervised"), ("lm", "language_model")],
)
def test_a_synonym_of_a_task_is_that_task(alias, task, tmp_path):
    arrays = {"x": np.zeros((41, 13, 12), np.float32), "y": np.arange(41) % 5}
    np.savez(tmp_path / "data.npz", **arrays)
    (tmp_path / "net.neural").write_text(CLASSIFIER)
    (tmp_path / "words.txt").write_text("one two three four five six seven eight\n" * 40)
    supervised = "data: data.npz\nnetwork: net.neural\n"
    (tmp_path / "e.yaml").write_text(
        f"task: {alias}\n" + ("data: words.txt\n" if alias == "lm" else supervised)
    )
    data = json.loads(invoke("check", tmp_path / "e.yaml", "--json").output)
    assert data["settings"]["task"] == task
    assert invoke("schema", alias).output == invoke("schema", task).output


@pytest.mark.parametrize(
    "words", [["--help"], ["check", *map(str, EXAMPLES)], ["layers"], ["explain", "E0203"]]
)
def test_verbs_that_do_not_need_torch_do_not_import_it(words):
    code = (
        "import sys, neural.cli.main as cli\n"
        "try: cli.main(sys.argv[1:])\n"
        "finally: print('torch' in sys.modules)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    assert process.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_passes_check_and_names_its_command(path):
    result = invoke("check", path, "--strict")
    assert result.exit_code == 0, result.output
    first, *_ = path.read_text().splitlines()
    assert first in (f"# neural {verb} {path.relative_to(ROOT)}" for verb in ("check", "train"))


def test_check_prints_shapes_parameters_totals_and_automatic_layers(program):
    output = invoke("check", program).output
    assert "Classifier: (B, 13, 12) → (B, 5)" in output
    assert 'added automatically: PositionalEncoding(encoding_type="sinusoidal")' in output
    per_block = 4 * (12 * 12 + 12) + 12 * 17 + 17 + 17 * 12 + 12 + 4 * 12
    assert f"{2 * per_block + 12 * 5 + 5:,}" in output


def test_check_summarizes_the_model_of_an_experiment(tmp_path):
    (tmp_path / "few.jsonl").write_text('{"lines": ["a b", "c d", "e f"], "boundaries": [1]}\n' * 3)
    (tmp_path / "own.yaml").write_text(
        "task: segmentation\npreset: document_small\ndata: few.jsonl\n"
    )
    lines = invoke("check", tmp_path / "own.yaml").output.splitlines()
    assert ["total", "87,939"] in [line.split() for line in lines]
    assert any(line.split()[:2] == ["LSTM", "52,224"] and line.endswith("%") for line in lines)
    (tmp_path / "own.yaml").write_text("task: segmentation\ndata: few.jsonl\nlern: labels\n")
    result = invoke("check", tmp_path / "own.yaml")
    assert result.exit_code == 2 and "lern" in result.output


def test_check_prints_every_error_and_exits_with_two(tmp_path):
    path = tmp_path / "bad.neural"
    path.write_text(
        CLASSIFIER.replace("num_heads=3", "num_heads=5").replace("GlobalAverage", "GlobalAvrage")
    )
    result = invoke("check", path)
    assert result.exit_code == 2
    assert "error[E0203]" in result.output
    assert "did you mean `GlobalAveragePooling1D`?" in result.output
    assert "2 errors" in result.output


def test_check_fix_writes_the_hints_into_the_file_and_says_what_it_changed(tmp_path):
    path = tmp_path / "foreign.neural"
    path.write_text(CLASSIFIER.replace("Output(5", "nn.Linear(12, 5)\n    Output(5"))
    result = invoke("check", path, "--fix")
    assert result.exit_code == 0
    assert "foreign.neural:8:5: no layer is called `nn.Linear`" in result.output
    assert "`nn.Linear(12, 5)` is `Dense(5)` here" in result.output
    assert path.read_text() == CLASSIFIER.replace("Output(5", "Dense(5)\n    Output(5")


def test_check_fix_leaves_what_it_does_not_understand(tmp_path):
    path = tmp_path / "unknown.neural"
    text = CLASSIFIER.replace("Output(5", "Mystery(5)\n    Output(5")
    path.write_text(text)
    result = invoke("check", path, "--fix")
    assert result.exit_code == 2
    assert "nothing to fix" in result.output
    assert "no layer is called `Mystery`" in result.output
    assert path.read_text() == text


def test_check_fix_needs_a_file():
    result = invoke("check", "-", "--fix")
    assert result.exit_code == 2
    assert "--fix changes a file" in result.output


def test_warnings_are_exit_code_one_only_when_strict(tmp_path):
    path = tmp_path / "warm.neural"
    path.write_text(CLASSIFIER.replace('"softmax"', '"relu"'))
    assert invoke("check", path).exit_code == 0
    strict = invoke("check", path, "--strict")
    assert strict.exit_code == 1
    assert "warning[W0601]" in strict.output


def test_check_as_json_is_complete(program):
    data = json.loads(invoke("check", program, "--format", "json").stdout)
    assert data["ok"]
    (network,) = data["networks"]
    assert network["output"] == [5]
    assert [layer["automatic"] for layer in network["layers"]] == [True, False, False, False]
    assert network["parameters"] == sum(layer["parameters"] for layer in network["layers"])


def test_errors_as_json_have_positions(tmp_path):
    path = tmp_path / "bad.neural"
    path.write_text("network A {\n  input: (5,)\n  layers:\n    Dens(3)\n}\n")
    result = invoke("check", path, "--format", "json")
    assert result.exit_code == 2
    (diagnostic,) = json.loads(result.stdout)["diagnostics"]
    position = [diagnostic[key] for key in ("code", "line", "column", "end_line", "end_column")]
    assert position == ["E0201", 4, 5, 4, 9]


def test_one_of_several_networks_is_chosen_by_name(tmp_path):
    path = tmp_path / "two.neural"
    path.write_text(CLASSIFIER + LANGUAGE_MODEL)
    assert "E0408" in invoke("check", path).output
    chosen = invoke("check", path, "--network", "LanguageModel")
    assert chosen.exit_code == 0
    assert "Classifier" not in chosen.output


def test_a_fragment_is_checked_from_standard_input():
    assert invoke("check", "--fragment", "-", text="Dense(10)\n").exit_code == 0
    assert "E0112" in invoke("check", "-", text="Dense(10)\n").output


def test_costs_follow_the_size_option(tmp_path):
    path = tmp_path / "open.neural"
    path.write_text("network A {\n  input: (None, 8)\n  layers:\n    Dense(3)\n}\n")
    data = json.loads(invoke("check", path, "--size", "T=50", "--format", "json").stdout)
    assert data["networks"][0]["multiply_adds"] == 50 * 8 * 3
    assert invoke("check", path, "--size", "T=none").exit_code == 2


@pytest.mark.parametrize("verb", ["check", "fmt", "compile"])
def test_a_missing_file_is_a_message(verb, tmp_path):
    result = invoke(verb, tmp_path / "nowhere.neural")
    assert result.exit_code == 2
    assert "no such file" in result.output
    assert "Traceback" not in result.output


@pytest.mark.parametrize("verb", ["check", "fmt", "compile"])
def test_a_folder_or_binary_junk_is_a_message(verb, tmp_path):
    junk = tmp_path / "junk.neural"
    junk.write_bytes(bytes(range(256)) * 40)
    for path in (tmp_path, junk):
        result = invoke(verb, path)
        assert result.exit_code == 2
        assert result.exception is None or isinstance(result.exception, SystemExit)


def test_fmt_rewrites_checks_and_shows_differences(tmp_path):
    path = tmp_path / "net.neural"
    untidy = "network A {   # why\n input: ( 5, )\n layers:\n  Dense( 3 )\n}"
    tidy = "network A {  # why\n  input: (5,)\n  layers:\n    Dense(3)\n}\n"
    path.write_text(untidy)
    assert invoke("fmt", "--check", path).exit_code == 1
    result = invoke("fmt", "--diff", path)
    assert "+  input: (5,)" in result.output
    assert path.read_text() == untidy
    assert invoke("fmt", path).exit_code == 0
    assert path.read_text() == tidy
    assert invoke("fmt", "--check", path).exit_code == 0
    assert invoke("fmt", "-", text=untidy).stdout == tidy


def test_fmt_changes_the_target_of_a_symlink_and_keeps_the_symlink(tmp_path):
    (tmp_path / "net.neural").write_text("network A { input: (5,)\n layers:\n  Dense( 3 )\n}")
    (tmp_path / "link.neural").symlink_to("net.neural")
    assert invoke("fmt", tmp_path / "link.neural").exit_code == 0
    assert (tmp_path / "link.neural").is_symlink()
    assert "Dense(3)" in (tmp_path / "net.neural").read_text()


def test_fmt_leaves_a_file_with_syntax_errors_unchanged(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text("network A { input: (5, }")
    assert invoke("fmt", path).exit_code == 2
    assert path.read_text() == "network A { input: (5, }"


def test_compile_writes_a_file_that_runs_alone(tmp_path):
    path, out = tmp_path / "net.neural", tmp_path / "net.py"
    path.write_text(TRANSLATOR)
    assert invoke("compile", path, "-o", out).exit_code == 0
    process = subprocess.run(
        [sys.executable, "-I", str(out)], capture_output=True, text=True, check=True
    )
    assert process.stdout == "(2, 11, 19)\n"
    assert "import neural" not in out.read_text()
    assert "from neural" not in out.read_text()


def test_compile_to_json_writes_the_syntax_tree(program):
    from neural.language.program_json import program_to_json
    from tests.language.strategies import read

    data = json.loads(invoke("compile", program, "--to", "json").stdout)
    assert data == program_to_json(read(CLASSIFIER))


def test_compile_refuses_a_program_with_errors(tmp_path):
    path = tmp_path / "bad.neural"
    path.write_text("network A {\n  input: (5,)\n  layers:\n    Dens(3)\n}\n")
    out = tmp_path / "net.py"
    assert invoke("compile", path, "-o", out).exit_code == 2
    assert not out.exists()


def test_explain_shows_the_error_and_the_correction():
    output = invoke("explain", "e0203").output
    assert "error[E0203]: `num_heads` must divide `d_model`" in output
    assert "correct:" in output
    assert invoke("explain", "E9999").exit_code == 2
    assert "E0203" in invoke("explain").output


def test_explain_says_what_a_finding_measures_and_what_to_do():
    output = invoke("explain", "trn007").output
    assert output.startswith("TRN007: validation loss still falls at the end\n")
    assert "The number is the share of the fall since the first validation" in output
    assert "unit: % of the fall since the first validation" in output
    assert "what to do: train longer: set `training.steps`" in output
    assert "ATT008: heads have roles" in invoke("explain", "ATT008").output
    unknown = invoke("explain", "TRN07")
    assert unknown.exit_code == 2
    assert "did you mean `TRN007`?" in unknown.output


def test_explain_gives_formula_unit_and_bounds_of_a_measure():
    output = invoke("explain", "entropy").output
    assert output.startswith("entropy\n\nEntropy of the weights, in nats: 0 is a single key")
    assert "formula: −Σ w log w.\nunit: nats\nbounds: 0 to log K" in output
    assert "did you mean `entropy`?" in invoke("explain", "entropie").output


@pytest.mark.parametrize(
    "role",
    ["delimiter", "sink", "previous token", "positional", "local", "induction", "uniform", "mixed"],
)
def test_explain_defines_every_role(role):
    assert invoke("explain", role).output.startswith(role)
    assert f"\n{role}\n" in "\n" + invoke("explain", "role").output


def test_explain_of_an_unknown_word_is_one_sentence():
    unknown = invoke("explain", "sinkk")
    assert unknown.exit_code == 2 and "?;" not in unknown.output
    assert "did you mean `sink`? `neural explain` lists all" in unknown.output


def test_explain_lists_every_finding_after_the_diagnostics():
    _, _, findings = invoke("explain").output.partition("\nfindings of `neural analyze`:\n\n")
    findings, _, listed_measures = findings.partition("\n\nmeasures of attention:\n\n")
    assert [line.split("  ")[0] for line in listed_measures.splitlines()] == measures.names()
    codes = [line.split("  ")[0] for line in findings.splitlines()]
    assert codes == sorted(checks.get(name).code for name in checks.names())


def test_layers_lists_and_describes_entries():
    assert "TransformerEncoder" in invoke("layers").output
    description = invoke("layers", "Dense").output
    assert "units" in description
    assert "(B, 7, 3) → (B, 7, 5), 20 parameters" in description
    guess = invoke("layers", "Densee")
    assert guess.exit_code == 2
    assert "did you mean `Dense`?" in guess.output
