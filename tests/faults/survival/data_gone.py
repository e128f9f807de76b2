"""The text that is learned vanishes or changes in the middle."""

from __future__ import annotations

from tests.faults.survival._bench import ROOT, Bench, Survived, wait_until


def survive(bench: Bench) -> Survived:
    """Take it away under a running training; then under one that is to go on."""
    said, text = set[str](), (ROOT / "docs" / "language.md").read_text(encoding="utf-8") * 3
    for turn in range(bench.rounds):
        folder = bench.fresh("data")
        file, runs = folder / "text.txt", folder / "runs"
        file.write_text(text, encoding="utf-8")
        attempt, step = bench.train(runs, data=file), bench.chance.randrange(1, 20)
        wait_until(lambda: attempt.made >= step or attempt.poll() is not None, "a step")   # noqa: B023 (called here)
        gone = turn % 2 == 0
        file.unlink() if gone else file.write_text(text[::-1], encoding="utf-8")
        ended = attempt.ended()
        run = bench.run_in(runs)
        bench.expect(ended.code == 0, f"the text went away while it was learned: {ended.text[-1500:]}")
        code, answer = bench.resume(run).ended()
        bench.expect(code == 2, f"resumed without its text: exit code {code}")
        bench.clear(answer, "text.txt", "gone" if gone else "changed")
        said.add(bench.message(answer, run).replace(str(file), "text.txt"))
        file.write_text(text, encoding="utf-8")
        ended = bench.resume(run).ended()
        bench.expect(ended.code == 0, f"with its text again: {ended.text[-1500:]}")
    return Survived(
        rounds=bench.rounds,
        checked="a running training has read it and ends well; `--resume` with another text is refused with exit "
        "code 2, and goes on when the old one is back",
        lost="nothing", said="; ".join(sorted(said)),
    )  # fmt: skip
