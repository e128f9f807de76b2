"""Every file of a run folder in turn: cut in half, one bit flipped, emptied, a folder in its place, or gone."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neural.tracking.trouble import RunError
from neural.views.board.listing import Listing
from tests.faults.survival._bench import Bench, Survived

Damage = Callable[[Path, Any], object]


def _cut(file: Path, chance: Any) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _flip(file: Path, chance: Any) -> None:
    data = bytearray(file.read_bytes())
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    file.write_bytes(data)


def _empty(file: Path, chance: Any) -> None:
    file.write_bytes(b"")


def _folder(file: Path, chance: Any) -> None:
    file.unlink()
    file.mkdir()


def _gone(file: Path, chance: Any) -> None:
    file.unlink()


DAMAGES: dict[str, Damage] = {"cut": _cut, "flipped": _flip, "emptied": _empty, "a folder": _folder, "gone": _gone}
READS: dict[str, Callable[[Path], list[object]]] = {
    "show": lambda run: [run],
    "runs": lambda run: ["--runs", run.parent],
    "analyze": lambda run: [run],
    "report": lambda run: [run, "-o", run.parent.parent / "report.html"],
    "generate": lambda run: [run, "--tokens", 5],
    "train": lambda run: ["--resume", run],
}


def survive(bench: Bench) -> Survived:
    """Damage, read with everything that reads, and go on."""
    ends, fell_back = Counter[int](), ""
    source = bench.straight
    files = sorted(one.relative_to(source) for one in source.rglob("*") if one.is_file())
    tries = [(file, damage) for file in files for damage in DAMAGES] * max(1, bench.rounds // 10)
    if bench.rounds < 10:
        tries = bench.chance.sample(tries, min(len(tries), 2 * bench.rounds))
    for file, damage in tries:
        for verb, words in READS.items():
            runs = bench.fresh("damaged")
            run = runs / source.name
            shutil.copytree(source, run)
            DAMAGES[damage](run / file, bench.chance)
            what = f"neural {verb} with {file} {damage}"
            code, text = bench.neural(verb, *words(run)).ended()
            ends[code] += 1
            bench.expect(code in (0, 2), f"{what}: exit code {code}")
            bench.expect("Traceback" not in text, f"{what}: {text[-700:]}")
            if code == 2:
                bench.expect(file.name in text or run.name in text, f"{what} does not say where: {text}")
            if verb == "train" and code == 0:
                _resumed(bench, run, what, broken=file)
                fell_back = fell_back or _passed_over(text)
        bench.expect(_listed(run), f"the board's list with {file} {damage}")
    return Survived(
        rounds=ends.total(),
        checked=f"{len(tries)} damages of {len(files)} files, read by {', '.join(READS)} and the board's list: "
        f"{ends[0]} worked, {ends[2]} said what is wrong where, with exit code 2; no traceback",
        lost="back to the checkpoint before, where the newest is damaged", said=fell_back or "RUN/… is damaged: …",
    )  # fmt: skip


def _resumed(bench: Bench, run: Path, what: str, *, broken: Path) -> None:
    """A run that goes on in spite of it ends as it would have; an older checkpoint that is damaged goes."""
    if broken.name == "rows.sqlite":   # a bit of a measured number makes another number
        return
    try:
        bench.same(run, what, but="checkpoints")
    except RunError as wrong:
        bench.expect(False, f"{what}: went on, and then {wrong}")


def _passed_over(text: str) -> str:
    found = re.search(r"note: (.* is damaged: .*)", text)
    return "" if found is None else re.sub(r"\S*/(step-\d+)", r"RUN/checkpoints/\1", found[1])


def _listed(run: Path) -> bool:
    """Whether the board's list has the run, whole or with what is wrong."""
    return len(Listing(run.parent).briefs()) == 1
