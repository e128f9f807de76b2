"""Error rates of findings, claims and intervals on data whose truth is known, as one table.

python -m tests.validity                                             print the table
python -m tests.validity --repeats 200 --write docs/analysis.md      update it in that page
"""

from __future__ import annotations

import argparse
import importlib
import math
import re
import sys
import time
from pathlib import Path

START, END = "<!-- validity: start -->", "<!-- validity: end -->"


def collect_rows(repeats: int, only: str | None) -> list[dict]:
    """The rows of all files of this folder with a function `rates`."""
    rows = []
    for file in sorted(Path(__file__).parent.glob("test_*.py")):
        if only and only not in file.stem:
            continue
        module = importlib.import_module(f"tests.validity.{file.stem}")
        if hasattr(module, "rates"):
            started = time.perf_counter()
            rows += module.rates(repeats)
            print(f"{file.stem}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return rows


def format_rate(share: float | None, repeats: int) -> str:
    """A share in percent with its Monte Carlo error."""
    if share is None:
        return "–"
    error = math.sqrt(max(share * (1 - share), 1 / repeats) / repeats)
    return f"{100 * share:.1f} ± {100 * error:.1f}"


def render_markdown(rows: list[dict]) -> str:
    """A table of findings and claims, then one of intervals."""
    intervals = [row for row in rows if "coverage" in row]
    findings = [row for row in rows if "power" in row or "coverage" not in row]
    lines = ["| | null | false positives, % | truth | found, % |", "|---|---|--:|---|--:|"]
    for row in findings:
        name = row.get("code") or row["what"]
        false_positives, power = (
            format_rate(row.get(key), row["repeats"]) for key in ("false_positive_rate", "power")
        )
        cells = (name, row.get("null", ""), false_positives, row.get("truth", ""), power)
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| 95 % interval | of what | holds the truth, % |", "|---|---|--:|"]
    for row in intervals:
        coverage = format_rate(row["coverage"], row["repeats"])
        lines.append(f"| {row.get('what') or row['code']} | {row.get('truth', '')} | {coverage} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--only", help="files with this in their name")
    parser.add_argument("--write", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    table = render_markdown(collect_rows(arguments.repeats, arguments.only))
    if arguments.write is None:
        print(table)
        return
    page = arguments.write.read_text(encoding="utf-8")
    section = f"{START}\n{table}{END}"
    arguments.write.write_text(
        re.sub(f"{START}.*?{END}", lambda _: section, page, flags=re.DOTALL), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
