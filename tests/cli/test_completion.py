"""Shell completion of verbs, options, programs, runs, layers and codes."""

import subprocess
import sys

import click
import pytest
from click.shell_completion import BashComplete
from click.testing import CliRunner

from neural.capture.measures import registry as measures
from neural.cli._arguments import CODE, ENTRY, PROGRAM, RUN
from neural.cli._catalogue import REGISTRIES
from neural.cli.main import main
from neural.findings.checks import registry as checks
from neural.language import diagnostic_codes

RUNS = ["2026-11-15_10-00-00_words", "2026-11-16_10-00-00_digits"]
VERBS = main.list_commands(click.Context(main))


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with two runs, some programs and other files."""
    for name in RUNS:
        (tmp_path / "runs" / name).mkdir(parents=True)
        (tmp_path / "runs" / name / "status.json").touch()
    (tmp_path / "runs" / "no_run").mkdir()
    (tmp_path / "nets" / "old").mkdir(parents=True)
    for name in (
        "net.neural",
        "net.txt",
        "nets/small.yaml",
        "nets/large.neural",
        "nets/old/first.neural",
    ):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def complete_in_bash(monkeypatch, line):
    """Candidates that bash gets, by click's protocol."""
    words = line.split(" ")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
    lines = BashComplete(main, {}, "neural", "_NEURAL_COMPLETE").complete().splitlines()
    return [line.removeprefix("plain,") for line in lines]


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
        (
            "neural layers GlobalAv",
            [name for name in REGISTRIES["layers"].names() if name.startswith("GlobalAv")],
        ),
        (
            "neural explain E080",
            [code for code in diagnostic_codes.list_codes() if code.startswith("E080")],
        ),
        (
            "neural explain TRN",
            sorted(
                code for name in checks.names() if (code := checks.get(name).code).startswith("TRN")
            ),
        ),
        ("neural explain relative_e", ["relative_entropy"]),
        ("neural completion ", ["bash", "zsh", "fish"]),
    ],
)
def test_bash_gets_the_matching_candidates(project, monkeypatch, line, expected):
    assert complete_in_bash(monkeypatch, line) == expected


def test_everything_that_can_be_described_is_completed():
    ctx = click.Context(main)
    names = [name for registry in REGISTRIES.values() for name in registry.names()]
    assert sorted(
        item.value for item in ENTRY.shell_complete(ctx, click.Argument(["name"]), "")
    ) == sorted(names)
    finding_codes = sorted(checks.get(name).code for name in checks.names())
    assert [item.value for item in CODE.shell_complete(ctx, click.Argument(["code"]), "")] == [
        *diagnostic_codes.list_codes(),
        *finding_codes,
        *measures.names(),
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_every_run_and_file_argument_has_completion(verb):
    command = main.get_command(click.Context(main), verb)
    plain = [
        param.name
        for param in command.params
        if isinstance(param, click.Argument) and param.type is click.STRING
    ]
    assert not {"run", "runs", "file", "files"} & set(plain), "use a type of cli/_arguments.py"
    assert RUN.name == PROGRAM.name == "text"  # the name that click shows in help


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_names_its_install_path(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == 0
    assert "# install as ~/" in result.output
    assert "_NEURAL_COMPLETE" in result.output
    assert result.output.startswith("#compdef neural\n") == (shell == "zsh")


def test_a_real_bash_completes_a_real_command(project):
    script = CliRunner().invoke(main, ["completion", "bash"]).output
    executable = project / "neural"  # as pip installs it
    executable.write_text(
        f"#!{sys.executable}\nfrom neural.cli.main import main\nmain(prog_name='neural')\n"
    )
    executable.chmod(0o755)
    query = (
        "COMP_WORDS=(./neural show 2026-11-16); COMP_CWORD=2; "
        '_neural_completion ./neural; echo "${COMPREPLY[@]}"'
    )
    result = subprocess.run(
        ["bash", "-c", f"{script}\n{query}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.stdout.strip() == RUNS[1], result.stderr


def test_completion_does_not_import_slow_modules(project):
    code = (
        "import os, sys; os.environ.update(COMP_WORDS='neural layers Tr', COMP_CWORD='2');"
        "from neural.cli.main import main; from click.shell_completion import BashComplete;"
        "print(BashComplete(main, {}, 'neural', '_NEURAL_COMPLETE').complete());"
        "slow = ('torch', 'numpy', 'pydantic', 'rich', 'neural.language.declaration');"
        "print([name for name in slow if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.split("\n")[-2] == "[]"
