"""The training text is deleted or changed during the training."""

from __future__ import annotations

from tests.faults.survival._bench import ROOT, Bench, SurvivalResult, wait_until


def survive(bench: Bench) -> SurvivalResult:
    """Change it under a running training, then resume."""
    messages, text = set[str](), (ROOT / "docs" / "language.md").read_text(encoding="utf-8") * 3
    for round_index in range(bench.rounds):
        folder = bench.create_folder("data")
        file, runs = folder / "text.txt", folder / "runs"
        file.write_text(text, encoding="utf-8")
        attempt, step = bench.train(runs, data=file), bench.rng.randrange(1, 20)
        wait_until(lambda: attempt.last_step >= step or attempt.poll() is not None, "a step")  # noqa: B023 (called here)
        is_deleted = round_index % 2 == 0
        file.unlink() if is_deleted else file.write_text(text[::-1], encoding="utf-8")
        result = attempt.wait_for_end()
        run = bench.find_only_run(runs)
        bench.expect(
            result.code == 0, f"the text was changed during training: {result.text[-1500:]}"
        )
        code, output = bench.resume(run).wait_for_end()
        bench.expect(code == 2, f"resumed without its text: exit code {code}")
        bench.expect_message(output, "text.txt", "missing" if is_deleted else "changed")
        messages.add(bench.extract_message(output, run).replace(str(file), "text.txt"))
        file.write_text(text, encoding="utf-8")
        result = bench.resume(run).wait_for_end()
        bench.expect(result.code == 0, f"with its text again: {result.text[-1500:]}")
    return SurvivalResult(
        rounds=bench.rounds,
        checked="a running training has read it and ends well; `--resume` with another text is refused with exit "
        "code 2, and works when the old one is back",
        lost="nothing",
        message="; ".join(sorted(messages)),
    )
