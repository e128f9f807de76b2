"""Workflows, hooks and the container call commands that exist, with minimal rights and pinned actions.

`make lint-release` checks their schemas and looks for known weaknesses; it needs tools of its own.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import neural

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.M)[1].split())
GOOD_PROGRAM = (ROOT / "examples/tiny.neural").read_text(encoding="utf-8")
BROKEN_PROGRAM = GOOD_PROGRAM.replace("num_heads=4", "num_heads=7")


def load_yaml(path):
    return YAML(typ="safe").load((ROOT / path).read_text(encoding="utf-8"))


WORKFLOWS = {path.stem: load_yaml(path) for path in sorted((ROOT / ".github/workflows").glob("*"))}
JOBS = [(name, job) for name, workflow in WORKFLOWS.items() for job in workflow["jobs"]]
every_job = pytest.mark.parametrize(("workflow", "job"), JOBS)


def find_make_targets(command):
    """Targets of a `make` command, without its variables: `make pytest PYTHON=python`."""
    words = shlex.split(command)
    return [word for word in words[1:] if "=" not in word] if words[0] == "make" else []


@every_job
def test_every_command_is_a_target_of_the_makefile(workflow, job):
    for step in WORKFLOWS[workflow]["jobs"][job]["steps"]:
        if "run" in step:
            targets = find_make_targets(step["run"])
            assert targets and set(targets) <= TARGETS, step["run"]


def test_every_phony_target_has_a_rule_and_a_line_of_help():
    rules = set(re.findall(r"^([\w-]+):(?!=)", MAKEFILE, re.M))
    assert rules == TARGETS
    help_text = "".join(line for line in MAKEFILE.splitlines(keepends=True) if line[0] == "#")
    assert {target for target in TARGETS - {"clean"} if f"make {target}" not in help_text} == set()


def test_targets_named_in_the_guide_for_contributors_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for code in re.findall(r"`make ([^`]+)`", text) + re.findall(r"^make ([^#\n]+)", text, re.M):
        assert set(find_make_targets(f"make {code}")) <= TARGETS, code


@every_job
def test_actions_are_pinned_to_commits(workflow, job):
    for step in WORKFLOWS[workflow]["jobs"][job]["steps"]:
        if "uses" in step:
            assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])


@every_job
def test_jobs_have_the_rights_they_need_and_a_time_limit(workflow, job):
    assert WORKFLOWS[workflow]["permissions"] == {}
    settings = WORKFLOWS[workflow]["jobs"][job]
    assert settings["timeout-minutes"] <= 120
    rights = settings["permissions"]
    if "write" in rights.values():  # proofs of identity, never the repository itself
        assert workflow == "release" and settings["if"] == "github.ref_type == 'tag'"
        assert "environment" in settings
    assert rights.get("contents", "read") == "read"
    for step in settings["steps"]:
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False


def test_tests_run_on_every_supported_version_and_system():
    matrix = WORKFLOWS["ci"]["jobs"]["test"]["strategy"]["matrix"]
    classifiers = " ".join(PROJECT["classifiers"])
    assert matrix["python"] == re.findall(r"Python :: (3\.\d+)", classifiers)
    assert {system.partition("-")[0] for system in matrix["system"]} == {
        "ubuntu",
        "macos",
        "windows",
    }


def test_only_a_tag_publishes():
    jobs = WORKFLOWS["release"]["jobs"]
    assert WORKFLOWS["release"]["on"]["push"] == {"tags": ["v*"]}
    assert {"source", "wheels", "site"} == set(jobs["publish"]["needs"])
    assert "check-release" in str(jobs["source"]["steps"])


# --- hooks for pre-commit ---


def run_hook(hook, folder, *files):
    """Run a hook as pre-commit does: its entry, its arguments and the files."""
    words = [*shlex.split(hook["entry"]), *hook.get("args", ()), *files]
    assert words[0] == "neural"
    environment = {**os.environ, "COLUMNS": "120"}
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
    )


@pytest.fixture
def hooks():
    return {hook["id"]: hook for hook in load_yaml(".pre-commit-hooks.yaml")}


def test_the_check_hook_reports_every_broken_file(hooks, tmp_path):
    (tmp_path / "good.neural").write_text(GOOD_PROGRAM)
    for name in ("broken.neural", "also broken.neural"):
        (tmp_path / name).write_text(BROKEN_PROGRAM)
    hook = hooks["neural-check"]
    assert run_hook(hook, tmp_path, "good.neural").returncode == 0
    done = run_hook(hook, tmp_path, "broken.neural", "good.neural", "also broken.neural")
    assert done.returncode == 2
    assert "broken.neural:" in done.stderr and "also broken.neural:" in done.stderr


def test_the_format_hook_changes_files_and_then_leaves_them(hooks, tmp_path):
    hook, files = hooks["neural-fmt"], ("one.neural", "two.neural")
    for name in files:
        (tmp_path / name).write_text(GOOD_PROGRAM.replace("  layers:", "      layers:"))
    assert run_hook(hook, tmp_path, *files).returncode == 0
    assert [(tmp_path / name).read_text() for name in files] == [GOOD_PROGRAM] * 2
    assert run_hook(hook, tmp_path, *files).stderr == ""


def test_hooks_take_programs_only(hooks):
    for hook in hooks.values():
        assert re.search(hook["files"], "models/net.neural")
        assert not re.search(hook["files"], "net.neural.bak") and not re.search(
            hook["files"], "a.py"
        )


def test_the_hooks_of_the_documentation_exist_in_this_version(hooks):
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    (entry,) = YAML(typ="safe").load(re.search(r"```yaml\n(.+?)```", page, re.S)[1])["repos"]
    assert entry["repo"] == PROJECT["urls"]["Repository"]
    assert entry["rev"] == f"v{neural.__version__}"
    assert {hook["id"] for hook in entry["hooks"]} == set(hooks)


def test_own_hooks_use_tools_that_the_tests_install():
    dev = " ".join(PROJECT["optional-dependencies"]["dev"])
    for repository in load_yaml(".pre-commit-config.yaml")["repos"]:
        for hook in repository["hooks"]:
            program = Path(hook["entry"].split()[0]).name
            assert program in ("python", "neural") or f"{program}>=" in dev


# --- container ---


def test_the_container_runs_the_command_as_a_user_without_rights():
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if re.match(r"[A-Z]+ ", line)]
    last = dict(instructions)
    assert last["USER"] == "1000" and last["ENTRYPOINT"] == '["neural"]'
    packages = (ROOT / "release/locks/image.txt").read_text(encoding="utf-8")
    assert (
        "starlette==" in packages and "torch==" not in packages
    )  # the board; torch has its own index


def test_files_of_the_container_are_in_its_context():
    """The build copies what .dockerignore lets through: what the wheel is made of."""
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    kept = {line[1:] for line in ignore if line.startswith("!")}
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = pyproject["tool"]["scikit-build"]["wheel"]["force-include"]
    needed = {"pyproject.toml", "constraints.txt", "src", "README.md", "release/locks", *included}
    assert "*" in ignore and needed | set(PROJECT["license-files"]) == kept
    assert all((ROOT / name).exists() for name in kept)
