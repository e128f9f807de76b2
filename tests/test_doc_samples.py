"""Every file, command and Python block of the documentation runs, in the order of its page."""

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import neural
from neural.cli.main import main
from neural.findings.head_roles import ROLE_THRESHOLDS
from tests.segmentation_runs import write_songs

ROOT = Path(__file__).parents[1]
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
EXECUTED_LANGUAGES = {"python", "console"}
TESTED_ELSEWHERE = {
    "data": "tests/data/test_documented_table.py",
    "export": "tests/exports/test_documented_script.py",
    "gallery": "tests/test_gallery.py",
    "your-own-attention": "tests/test_new_project.py",
}
"""Pages whose samples another test runs."""
PAGES = sorted(
    path.stem
    for path in (ROOT / "docs").glob("*.md")
    if EXECUTED_LANGUAGES & {language for language, _, _ in FENCE.findall(path.read_text())}
    and path.stem not in TESTED_ELSEWHERE
)
FEWER_STEPS = [
    "training.steps=4",
    "training.warmup_steps=0",
    "training.validate_every=2",
    "tracking.track_every=2",
]
"""Overrides that shorten the trainings of these pages."""
SMALLER_DATA = {
    "tutorial-segmentation": ("data: handbook", "data: few.jsonl"),
    "walkthrough-text": ("sorted(topics)", "sorted(topics)[:12]"),
    "walkthrough-own-model": ("range(400)", "range(3)"),
    "training": ("steps=200", "steps=4"),
}
"""Replacements that reduce the number of documents, or of steps: page → (old, new)."""
ARRAYS = """
import numpy as np
random = np.random.default_rng(0)
"""
PREPARED_NAMES = {
    "analysis": """
import neural
from neural.runs.run import Run
paths = [neural.open_run("novel").path]
text = "the cat sat on the mat and the dog ran to the house. " * 200
split, step, samples = 8000, 4, [text[:500], text[7:507]]
run = Run.create(Path("runs"), "samples", settings={}, program=None)
""",
    "attention": """
import torch
q, k, v = torch.randn(3, 2, 4, 10, 8)
padding = torch.ones(2, 10, dtype=torch.bool)
""",
    "calibration": ARRAYS
    + """
margins = [random.normal(size=30) for _ in range(6)]
boundaries = [random.random(30) < 1 / (1 + np.exp(-values)) for values in margins]
other_margins, folder = margins[0], Path(".")
""",
    "experiments": 'text = "steps: 10\\n"',
    "language": """
import torch
x, mask = torch.randn(2, 100, 64), torch.ones(2, 100, dtype=torch.bool)
target = torch.tensor([1, 2])
""",
    "patching": """
import neural
model = neural.parse('''network Letters {
  input: (None,)
  layers:
    Embedding(input_dim=27, output_dim=8)
    TransformerDecoder(num_heads=2)
    Output(27)
}''').build().eval()
""",
    "report": """
from tests.hugging_face_folders import build_gpt2, train_tokenizer
tokenizer, text = train_tokenizer(), "the cat sat on the mat"
model = build_gpt2(tokenizer)
""",
    "run-folder": """
import neural
path = neural.open_run("novel").path
settings, text = {}, None
""",
    "segmentation": """
text = "The cat slept. It was an old cat. Prices rose in May. Rates will follow."
texts, chunks = [text, text], [text[:20], text[20:]]
""",
    "segmentation-measures": """
from neural.tasks.segmentation.document import SegmentationDocument
text = "The cat slept.\\nIt was old.\\nPrices rose.\\nRates follow."
documents = [SegmentationDocument.from_text(text, unit="lines") for _ in range(3)]
truths = predictions = training_truths = [[False, False, True, False]] * 3
""",
    "study": """
import neural
from neural.training.load_task import load_task
from neural.workflows.train import create_run
task = load_task(Path("small.yaml"), [])
run = create_run(task, Path("runs"))
""",
}
"""What a block of a reference page takes for granted, such as the reader's model or arrays."""
PREPARED_FILES = {
    "net.neural": (ROOT / "examples/tiny.neural").read_text(),
    "examples/digits.neural": (ROOT / "examples/digits.neural").read_text(),
    "pairs.yaml": """pairs:
  - {clean: "the cat sat", corrupted: "the dog sat", answer: " ", wrong: "t"}
  - {clean: "the mat is", corrupted: "the mug is", answer: "o", wrong: "a"}
""",
    "small.yaml": """task: language_model
data: novel.txt
network: letters.neural
training: {steps: 4, batch_size: 2, validate_every: 2}
tracking: {track_every: 2}
""",
    "novel.txt": "the cat sat on the mat and the dog ran to the house. a mug is not a hat.\n" * 40,
    "letters.neural": """network Letters {
  input: (32,)
  layers:
    Embedding(input_dim=40, output_dim=8)
    TransformerDecoder(num_heads=4, d_model=8, dff=8, positional="rotary") * 2
    Output(40, activation="softmax")

  loss: "sparse_categorical_crossentropy"
}
""",
}
"""Files of the reader that the pages mention."""
VARIABLE_OUTPUT = re.compile(
    rf"\d[\d.,]*|'(?:{'|'.join([*ROLE_THRESHOLDS, 'mixed'])})'|\b(?:yes|no)\b"
)
"""Printed words that depend on a training: numbers, roles of heads, predicted classes."""
EXACT_OUTPUT_COMMANDS = {
    "neural check tiny.neural",
    "neural check rows.neural",
    "neural check writer.neural --network Writer",
    "neural segment notes.txt",
    "neural train own.yaml --dry-run",
}
"""Commands whose output depends neither on a training nor on the version of Python."""
MEASURED_LINE = re.compile(r"^  time  +.*\n", re.M)
"""The line of a plan that depends on the machine."""

OPTIONAL_PACKAGES = {
    "neural-lab[export]": r"--to (?:onnx|keras)",
}
"""What a sample may need beside the package itself: package → what is written in such a sample."""


@pytest.fixture(scope="module")
def novel_run(tmp_path_factory):
    """A folder with the small language model `novel`, which reference pages name."""
    folder = tmp_path_factory.mktemp("novel")
    for name in ("novel.txt", "letters.neural", "small.yaml"):
        (folder / name).write_text(PREPARED_FILES[name])
    neural.fit(folder / "small.yaml", name="novel", runs=folder / "runs", quiet=True)
    return folder / "runs"


@pytest.mark.parametrize("page", PAGES)
def test_all_samples_of_a_page_run(page, tmp_path, monkeypatch, capsys, request):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page}
    if page not in names_of_tutorials():
        prepare_folder(page, tmp_path, request.getfixturevalue("novel_run"), names)
    write_songs(tmp_path / "few.jsonl", labels=False)
    printed = ""
    for language, title, text in FENCE.findall((ROOT / f"docs/{page}.md").read_text()):
        text = text if language == "output" else text.replace(*SMALLER_DATA.get(page, ("", "")))
        if title:
            (tmp_path / title).write_text(text)
        if language == "python":
            capsys.readouterr()
            exec(compile(text, f"{page}.md", "exec"), names)
            printed = capsys.readouterr().out
        if language == "output":  # of the Python block before it
            shown, printed = (normalise_output(output) for output in (text, printed))
            assert printed == shown
        if language == "console":
            for command, shown in re.findall(r"^\$ (.+)\n((?:(?!\$ ).*\n)*)", text, re.M):
                run_command(command, shown)


def names_of_tutorials() -> set[str]:
    """Pages that are complete: nothing is prepared for them."""
    prefixes = ("tutorial-", "walkthrough-")
    complete = {"index", "coming-from", "watching", "interventions", "python", "evaluation"}
    return complete | {page for page in PAGES if page.startswith(prefixes)}


def prepare_folder(page: str, folder: Path, runs: Path, names: dict[str, object]) -> None:
    """Write the files of the reader, the run `novel`, and the names that blocks take for granted."""
    for path, text in PREPARED_FILES.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    shutil.copytree(runs, folder / "runs")
    names["Path"] = Path
    exec(PREPARED_NAMES.get(page, ""), names)


def normalise_output(text: str) -> str:
    """Printed text without its white space; numbers, roles of heads and classes become `#`."""
    return re.sub(r"\s", "", VARIABLE_OUTPUT.sub("#", text))


def run_command(command: str, shown: str) -> None:
    """Run a command and compare its output with the page: exactly, or headings and row titles."""
    words = re.findall(r'"[^"]*"|\S+', command)
    verb, arguments = words[1], [word.strip('"') for word in words[2:]]
    if verb == "train" and "--dry-run" not in arguments:
        arguments += [word for override in FEWER_STEPS for word in ("--set", override)]
    if verb == "sweep":  # its trials are processes, which take seconds each
        arguments.append("--dry-run")
        shown = ""
    done = CliRunner().invoke(main, [verb, *arguments])
    assert done.exit_code == 0, f"{command}\n{done.output}"
    if command in EXACT_OUTPUT_COMMANDS:
        printed, shown = (MEASURED_LINE.sub("  time\n", text) for text in (done.stdout, shown))
        assert printed.strip() == shown.strip(), command
    else:
        for heading in re.findall(r"^([a-z][^\d…\n]*)\n ", shown, re.M):
            assert f"{heading}\n" in done.output, f"{command}: {heading}"
    if verb == "evaluate":
        titles = re.findall(r"^  ([^\W\d][^:\n]*?)  +[+−\d]", shown, re.M)
        assert titles and [title for title in titles if f"  {title}  " not in done.output] == []


def list_missing_hints(text: str) -> list[str]:
    """Optional packages that the samples of a page need and that it does not tell to install."""
    samples = "".join(
        body for language, _, body in FENCE.findall(text) if language in EXECUTED_LANGUAGES
    )
    installed = " ".join(re.findall(r"pip install ([^`\n]+)", text))
    for extras in re.findall(r"neural-lab\[([\w,-]+)\]", installed):
        installed += "".join(f" neural-lab[{extra}]" for extra in extras.split(","))
    return [
        package
        for package, pattern in OPTIONAL_PACKAGES.items()
        if re.search(pattern, samples) and package not in installed
    ]


@pytest.mark.parametrize("page", [*PAGES, *TESTED_ELSEWHERE])
def test_a_page_says_how_to_install_what_its_samples_need(page):
    assert list_missing_hints((ROOT / f"docs/{page}.md").read_text()) == []


def test_a_missing_hint_is_found():
    sample = "```console\n$ neural export iris --to onnx\n```\n"
    assert list_missing_hints(sample) == ["neural-lab[export]"]
    assert list_missing_hints('`pip install "neural-lab[export]"`\n\n' + sample) == []


def test_commands_with_exact_output_are_in_the_pages():
    text = "".join((ROOT / f"docs/{page}.md").read_text() for page in PAGES)
    assert all(f"$ {command}\n" in text for command in EXACT_OUTPUT_COMMANDS)


def test_tests_that_run_other_pages_exist():
    assert [path for path in TESTED_ELSEWHERE.values() if not (ROOT / path).is_file()] == []
