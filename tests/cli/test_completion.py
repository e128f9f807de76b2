"""What the shell completes: verbs, options, programs, runs, layers, codes."""

import subprocess
import sys

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from neural.cli._arguments import CODE, ENTRY, PROGRAM, RUN
from neural.cli._catalogue import GROUPS
from neural.cli.main import main
from neural.language import codes

RUNS = ["2026-11-15_10-00-00_words", "2026-11-16_10-00-00_digits"]
VERBS = main.list_commands(click.Context(main))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Two runs, two programs and something else."""
    for name in RUNS:
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "status.json").touch()
    (tmp_path / "runs" / "no_run").mkdir()
    (tmp_path / "nets" / "old").mkdir(parents=True)
    for name in ("net.neural", "net.txt", "nets/small.yaml", "nets/large.neural", "nets/old/first.neural"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def completed(monkeypatch, line):
    """What bash would be told, by its own protocol."""
    words = line.split(" ")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    said = BashComplete(main, {}, "neural", "_NEURAL_COMPLETE").complete().splitlines()
    return [one.removeprefix("plain,") for one in said]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("neural ch", [verb for verb in VERBS if verb.startswith("ch")]),
        ("neural check --fr", ["--fragment"]),
        ("neural check --format ", ["text", "json"]),
        ("neural show ", RUNS[::-1]),
        ("neural show 2026-11-15", RUNS[:1]),
        ("neural show dig", RUNS[1:]),
        ("neural show runs/2026-11-15", [f"runs/{RUNS[0]}"]),
        ("neural show elsewhere/", ["dir,elsewhere/"]),
        ("neural show --runs nets ", ["dir,"]),
        ("neural compare one ", RUNS[::-1]),
        ("neural train --resume ", RUNS[::-1]),
        ("neural train n", ["net.neural", "nets/"]),
        ("neural train nets", ["nets/large.neural", "nets/old/", "nets/small.yaml"]),
        ("neural train nets/o", ["nets/old/first.neural"]),
        ("neural train nowhere/", ["file,nowhere/"]),
        ("neural segment n", ["file,n"]),
        ("neural layers GlobalAv", [one for one in GROUPS["layers"].names() if one.startswith("GlobalAv")]),
        ("neural explain E080", [code for code in codes.names() if code.startswith("E080")]),
        ("neural completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_bash_is_told_what_fits(project, monkeypatch, line, expected):
    assert completed(monkeypatch, line) == expected


def test_everything_that_can_be_described_is_completed():
    ctx = click.Context(main)
    names = [name for registry in GROUPS.values() for name in registry.names()]
    assert sorted(one.value for one in ENTRY.shell_complete(ctx, click.Argument(["name"]), "")) == sorted(names)
    assert [one.value for one in CODE.shell_complete(ctx, click.Argument(["code"]), "")] == codes.names()


@pytest.mark.parametrize("verb", VERBS)
def test_whatever_is_called_a_run_or_a_file_can_be_completed(verb):
    command = main.get_command(click.Context(main), verb)
    plain = [one.name for one in command.params if isinstance(one, click.Argument) and one.type is click.STRING]
    assert not {"run", "runs", "file", "files"} & set(plain), "give it a type of cli/_arguments.py"
    assert RUN.name == PROGRAM.name == "text"   # so that help looks as ever


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_says_where_it_goes(shell):
    said = CliRunner().invoke(main, ["completion", shell])
    assert said.exit_code == 0
    assert "# goes into ~/" in said.output
    assert "_NEURAL_COMPLETE" in said.output
    assert said.output.startswith("#compdef neural\n") == (shell == "zsh")


def test_a_real_bash_completes_a_real_command(project):
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    ours = project / "neural"   # as pip installs it
    ours.write_text(f"#!{sys.executable}\nfrom neural.cli.main import main\nmain(prog_name='neural')\n")
    ours.chmod(0o755)
    ask = 'COMP_WORDS=(./neural show 2026-11-16); COMP_CWORD=2; _neural_completion ./neural; echo "${COMPREPLY[@]}"'
    said = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=False, timeout=60)
    assert said.stdout.strip() == RUNS[1], said.stderr


def test_completing_does_not_import_what_is_slow(project):
    code = (
        "import os, sys; os.environ.update(COMP_WORDS='neural layers Tr', COMP_CWORD='2');"
        "from neural.cli.main import main; from click.shell_completion import BashComplete;"
        "print(BashComplete(main, {}, 'neural', '_NEURAL_COMPLETE').complete());"
        "print([name for name in ('torch', 'numpy', 'pydantic', 'neural.language.declaration') if name in sys.modules])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout.split("\n")[-2] == "[]"
