"""The commands as a user types them: what they print, and their exit codes."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from neural.cli.main import main
from tests.programs import CLASSIFIER, LANGUAGE_MODEL, TRANSLATOR

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("**/*.neural"))


def run(*words, text=None):
    return CliRunner().invoke(main, [str(word) for word in words], input=text)


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text(CLASSIFIER)
    return path


def test_help_lists_every_file_of_the_folder_as_a_verb():
    verbs = {path.stem for path in (ROOT / "src/neural/cli").glob("*.py")} - {"main", "__init__"}
    shown = run("--help")
    assert shown.exit_code == 0
    for verb in verbs:
        assert (f"\n  {verb} " in shown.output) == (not verb.startswith("_"))


def test_a_misspelt_verb_is_guessed():
    shown = run("chekc", "x")
    assert shown.exit_code == 2
    assert "Did you mean `check`?" in shown.output


@pytest.mark.parametrize("words", [["--help"], ["check", *map(str, EXAMPLES)], ["layers"], ["explain", "E0203"]])
def test_what_needs_no_torch_does_not_import_it(words):
    code = "import sys, neural.cli.main as cli\ntry: cli.main(sys.argv[1:])\nfinally: print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_checks_without_a_warning_and_says_how_to_run_it(path):
    shown = run("check", path, "--strict")
    assert shown.exit_code == 0, shown.output
    first, *_ = path.read_text().splitlines()
    assert first in (f"# neural {verb} {path.relative_to(ROOT)}" for verb in ("check", "train"))


def test_check_prints_shapes_counts_totals_and_what_was_added(program):
    shown = run("check", program).output
    assert "Classifier: (B, 13, 12) → (B, 5)" in shown
    assert 'added automatically: PositionalEncoding(encoding_type="sinusoidal")' in shown
    per_block = 4 * (12 * 12 + 12) + 12 * 17 + 17 + 17 * 12 + 12 + 4 * 12
    assert f"{2 * per_block + 12 * 5 + 5:,}" in shown


def test_check_shows_what_an_experiment_would_train(tmp_path):
    (tmp_path / "few.jsonl").write_text('{"lines": ["a b", "c d", "e f"], "boundaries": [1]}\n' * 3)
    (tmp_path / "own.yaml").write_text("task: segmentation\npreset: document_small\ndata: few.jsonl\n")
    lines = run("check", tmp_path / "own.yaml").output.splitlines()
    assert ["total", "87,939"] in [line.split() for line in lines]
    assert any(line.split()[:2] == ["LSTM", "52,224"] and line.endswith("%") for line in lines)
    (tmp_path / "own.yaml").write_text("task: segmentation\ndata: few.jsonl\nlern: labels\n")
    wrong = run("check", tmp_path / "own.yaml")
    assert wrong.exit_code == 2 and "lern" in wrong.output


def test_check_prints_every_mistake_and_exits_with_two(tmp_path):
    path = tmp_path / "bad.neural"
    path.write_text(CLASSIFIER.replace("num_heads=3", "num_heads=5").replace("GlobalAverage", "GlobalAvrage"))
    shown = run("check", path)
    assert shown.exit_code == 2
    assert "error[E0203]" in shown.output
    assert "did you mean `GlobalAveragePooling1D`?" in shown.output
    assert "2 mistakes" in shown.output


def test_warnings_are_exit_code_one_only_when_strict(tmp_path):
    path = tmp_path / "warm.neural"
    path.write_text(CLASSIFIER.replace('"softmax"', '"relu"'))
    assert run("check", path).exit_code == 0
    strict = run("check", path, "--strict")
    assert strict.exit_code == 1
    assert "warning[W0601]" in strict.output


def test_check_as_json_is_complete(program):
    data = json.loads(run("check", program, "--format", "json").stdout)
    assert data["good"]
    (network,) = data["networks"]
    assert network["output"] == [5]
    assert [layer["automatic"] for layer in network["layers"]] == [True, False, False, False]
    assert network["parameters"] == sum(layer["parameters"] for layer in network["layers"])


def test_mistakes_as_json_have_places(tmp_path):
    path = tmp_path / "bad.neural"
    path.write_text("network A {\n  input: (5,)\n  layers:\n    Dens(3)\n}\n")
    shown = run("check", path, "--format", "json")
    assert shown.exit_code == 2
    (mistake,) = json.loads(shown.stdout)["diagnostics"]
    place = [mistake[key] for key in ("code", "line", "column", "end_line", "end_column")]
    assert place == ["E0201", 4, 5, 4, 9]


def test_one_of_several_networks_is_chosen_by_name(tmp_path):
    path = tmp_path / "two.neural"
    path.write_text(CLASSIFIER + LANGUAGE_MODEL)
    assert "E0408" in run("check", path).output
    chosen = run("check", path, "--network", "LanguageModel")
    assert chosen.exit_code == 0
    assert "Classifier" not in chosen.output


def test_a_fragment_is_checked_from_standard_input():
    assert run("check", "--fragment", "-", text="Dense(10)\n").exit_code == 0
    assert "E0112" in run("check", "-", text="Dense(10)\n").output


def test_costs_follow_the_size_that_is_asked_for(tmp_path):
    path = tmp_path / "open.neural"
    path.write_text("network A {\n  input: (None, 8)\n  layers:\n    Dense(3)\n}\n")
    data = json.loads(run("check", path, "--size", "T=50", "--format", "json").stdout)
    assert data["networks"][0]["multiply_adds"] == 50 * 8 * 3
    assert run("check", path, "--size", "T=none").exit_code == 2


@pytest.mark.parametrize("verb", ["check", "fmt", "compile"])
def test_a_missing_file_is_a_message(verb, tmp_path):
    shown = run(verb, tmp_path / "nowhere.neural")
    assert shown.exit_code == 2
    assert "no such file" in shown.output
    assert "Traceback" not in shown.output


@pytest.mark.parametrize("verb", ["check", "fmt", "compile"])
def test_a_folder_or_binary_junk_is_a_message(verb, tmp_path):
    junk = tmp_path / "junk.neural"
    junk.write_bytes(bytes(range(256)) * 40)
    for path in (tmp_path, junk):
        shown = run(verb, path)
        assert shown.exit_code == 2
        assert shown.exception is None or isinstance(shown.exception, SystemExit)


def test_fmt_rewrites_checks_and_shows_differences(tmp_path):
    path = tmp_path / "net.neural"
    untidy = "network A {   # why\n input: ( 5, )\n layers:\n  Dense( 3 )\n}"
    tidy = "network A {  # why\n  input: (5,)\n  layers:\n    Dense(3)\n}\n"
    path.write_text(untidy)
    assert run("fmt", "--check", path).exit_code == 1
    shown = run("fmt", "--diff", path)
    assert "+  input: (5,)" in shown.output
    assert path.read_text() == untidy
    assert run("fmt", path).exit_code == 0
    assert path.read_text() == tidy
    assert run("fmt", "--check", path).exit_code == 0
    assert run("fmt", "-", text=untidy).stdout == tidy


def test_fmt_changes_what_a_link_leads_to_and_leaves_the_link(tmp_path):
    (tmp_path / "net.neural").write_text("network A { input: (5,)\n layers:\n  Dense( 3 )\n}")
    (tmp_path / "link.neural").symlink_to("net.neural")
    assert run("fmt", tmp_path / "link.neural").exit_code == 0
    assert (tmp_path / "link.neural").is_symlink()
    assert "Dense(3)" in (tmp_path / "net.neural").read_text()


def test_fmt_leaves_a_file_with_syntax_mistakes_alone(tmp_path):
    path = tmp_path / "net.neural"
    path.write_text("network A { input: (5, }")
    assert run("fmt", path).exit_code == 2
    assert path.read_text() == "network A { input: (5, }"


def test_compile_writes_a_file_that_runs_alone(tmp_path):
    path, out = tmp_path / "net.neural", tmp_path / "net.py"
    path.write_text(TRANSLATOR)
    assert run("compile", path, "-o", out).exit_code == 0
    done = subprocess.run([sys.executable, "-I", str(out)], capture_output=True, text=True, check=True)
    assert done.stdout == "(2, 11, 19)\n"
    assert "import neural" not in out.read_text()
    assert "from neural" not in out.read_text()


def test_compile_to_json_gives_the_program_back(program):
    from neural.language.interchange import from_json
    from neural.language.printer import print_program
    from tests.programs import network

    data = json.loads(run("compile", program, "--to", "json").stdout)
    again = network(print_program(from_json(data)))
    assert again.cost == network(CLASSIFIER).cost


def test_compile_refuses_a_program_with_mistakes(tmp_path):
    path = tmp_path / "bad.neural"
    path.write_text("network A {\n  input: (5,)\n  layers:\n    Dens(3)\n}\n")
    out = tmp_path / "net.py"
    assert run("compile", path, "-o", out).exit_code == 2
    assert not out.exists()


def test_explain_shows_the_mistake_and_the_way_out():
    shown = run("explain", "e0203").output
    assert "error[E0203]: `num_heads` must divide `d_model`" in shown
    assert "better:" in shown
    assert run("explain", "E9999").exit_code == 2
    assert "E0203" in run("explain").output


def test_layers_lists_and_describes_entries():
    assert "TransformerEncoder" in run("layers").output
    one = run("layers", "Dense").output
    assert "units" in one
    assert "(B, 7, 3) → (B, 7, 5), 20 parameters" in one
    guess = run("layers", "Densee")
    assert guess.exit_code == 2
    assert "did you mean `Dense`?" in guess.output
