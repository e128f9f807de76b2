"""Every file of a run folder: truncated, one bit flipped, emptied, replaced by a folder, deleted."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neural.board.run_index import RunIndex
from neural.runs.errors import RunError
from tests.faults.survival._bench import Bench, SurvivalResult

Damage = Callable[[Path, Any], object]


def _truncate(file: Path, rng: Any) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _flip(file: Path, rng: Any) -> None:
    data = bytearray(file.read_bytes())
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    file.write_bytes(data)


def _empty(file: Path, rng: Any) -> None:
    file.write_bytes(b"")


def _replace_by_folder(file: Path, rng: Any) -> None:
    file.unlink()
    file.mkdir()


def _delete(file: Path, rng: Any) -> None:
    file.unlink()


DAMAGES: dict[str, Damage] = {
    "truncated": _truncate,
    "flipped": _flip,
    "emptied": _empty,
    "a folder": _replace_by_folder,
    "gone": _delete,
}
READS: dict[str, Callable[[Path], list[object]]] = {
    "show": lambda run: [run],
    "runs": lambda run: ["--runs", run.parent],
    "analyze": lambda run: [run],
    "report": lambda run: [run, "-o", run.parent.parent / "report.html"],
    "generate": lambda run: [run, "--tokens", 5],
    "train": lambda run: ["--resume", run],
}

DERIVING_COMMANDS = {"evaluate": [], "ablate": ["--examples", "2", "--no-pairs"]}
"""Commands that add a file to a run, with their options."""


def survive(bench: Bench) -> SurvivalResult:
    """Damage a file, read the run with every command, and resume it."""
    exit_codes, fell_back = Counter[int](), ""
    source = _add_derived_files(bench)
    files = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file())
    tries = [(file, damage) for file in files for damage in DAMAGES] * max(1, bench.rounds // 10)
    if bench.rounds < 10:
        tries = bench.rng.sample(tries, min(len(tries), 2 * bench.rounds))
    for file, damage in tries:
        for verb, words in READS.items():
            runs = bench.create_folder("damaged")
            run = runs / source.name
            shutil.copytree(source, run)
            DAMAGES[damage](run / file, bench.rng)
            what = f"neural {verb} with {file} {damage}"
            code, text = bench.run_neural(verb, *words(run)).wait_for_end()
            exit_codes[code] += 1
            bench.expect(code in (0, 2), f"{what}: exit code {code}")
            bench.expect("Traceback" not in text, f"{what}: {text[-700:]}")
            if code == 2:
                bench.expect(
                    file.name in text or run.name in text, f"{what} does not name the file: {text}"
                )
            if verb == "train" and code == 0:
                _check_resumed(bench, run, what, broken=file)
                fell_back = fell_back or _find_skip_message(text)
        bench.expect(_is_listed(run), f"the board's list with {file} {damage}")
    return SurvivalResult(
        rounds=exit_codes.total(),
        checked=f"{len(tries)} damages of {len(files)} files, read by {', '.join(READS)} and the board's list: "
        f"{exit_codes[0]} worked, {exit_codes[2]} reported the damaged file, with exit code 2; no traceback",
        lost="back to the checkpoint before, where the newest is damaged",
        message=fell_back or "RUN/… is damaged: …",
    )


def _add_derived_files(bench: Bench) -> Path:
    """A copy of the undisturbed run with the files that other commands add: evaluation, importance."""
    run = bench.create_folder("derived") / bench.reference_run.name
    shutil.copytree(bench.reference_run, run)
    for verb, options in DERIVING_COMMANDS.items():
        code, text = bench.run_neural(verb, run, *options).wait_for_end()
        bench.expect(code == 0, f"neural {verb}: {text[-700:]}")
    return run


def _check_resumed(bench: Bench, run: Path, what: str, *, broken: Path) -> None:
    """A run that resumes nevertheless must end as an undisturbed one, except old checkpoints."""
    if broken.name == "rows.sqlite":  # a flipped bit may change a measured value
        return
    try:
        bench.expect_same(run, what, ignore="checkpoints")
    except RunError as error:
        bench.expect(False, f"{what}: resumed, and then {error}")


def _find_skip_message(text: str) -> str:
    match = re.search(r"note: (.* is damaged: .*)", text)
    return "" if match is None else re.sub(r"\S*/(step-\d+)", r"RUN/checkpoints/\1", match[1])


def _is_listed(run: Path) -> bool:
    """Whether the board lists the run, readable or with its error."""
    return len(RunIndex(run.parent).summarize_runs()) == 1
