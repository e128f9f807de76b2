"""Response time for editors and shells: language server and shell completion.

    python benchmarks/editors.py [--json] [--quick]

Every round starts a fresh `neural lsp`, opens a program with an error and sends requests as an
editor does; beside it a fresh `neural check` of the same program and an import of torch. All
alternate; the figures are medians over rounds.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from language import IMPORT_TORCH, ROOT, run_and_print
from lsprotocol import types
from pygls.lsp.client import LanguageClient

PROGRAM = (
    (ROOT / "examples" / "characters.neural")
    .read_text(encoding="utf-8")
    .replace("Embedding(", "Embeding(")
)
URI = "file:///characters.neural"
GOALS = {"neural lsp, first diagnostics": 1.5, "completing a run": 0.3, "completing a layer": 0.3}


async def measure_server() -> dict[str, float]:
    """Seconds until a fresh server has sent diagnostics, and for the requests that follow."""
    client, published = LanguageClient("benchmark", "1"), asyncio.Queue()
    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published.put_nowait)
    start = time.perf_counter()
    await client.start_io(sys.executable, "-m", "neural", "lsp")
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, "neural", 1, PROGRAM))
    )
    params = await published.get()
    seconds = {"neural lsp, first diagnostics": time.perf_counter() - start}
    assert [diagnostic.code for diagnostic in params.diagnostics] == ["E0201"]

    document = types.TextDocumentIdentifier(URI)
    line = PROGRAM[: PROGRAM.index("TransformerDecoder")].count("\n")
    position = types.Position(line, 6)
    requests: dict[str, Callable[[], Awaitable[object]]] = {
        "completion, the first": lambda: client.text_document_completion_async(
            types.CompletionParams(document, position)
        ),
        "completion, again": lambda: client.text_document_completion_async(
            types.CompletionParams(document, position)
        ),
        "hover": lambda: client.text_document_hover_async(types.HoverParams(document, position)),
        "formatting": lambda: client.text_document_formatting_async(
            types.DocumentFormattingParams(document, types.FormattingOptions(2, True))
        ),
    }
    for name, send in requests.items():
        start = time.perf_counter()
        await send()
        seconds[name] = time.perf_counter() - start
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return seconds


def time_process(command: list[str], **environment: str) -> float:
    """Seconds of a process."""
    start = time.perf_counter()
    subprocess.run(
        command, check=False, capture_output=True, cwd=ROOT, env={**os.environ, **environment}
    )
    return time.perf_counter() - start


def measure(rounds: int) -> dict[str, float]:
    """Median seconds of all figures."""
    neural = [sys.executable, "-c", "from neural.cli.main import main; main(prog_name='neural')"]
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "wrong.neural"
        program.write_text(PROGRAM, encoding="utf-8")
        for _ in range(rounds):
            figures = asyncio.run(measure_server())
            for name, line in {
                "completing a run": "neural show ",
                "completing a layer": "neural layers Tr",
            }.items():
                figures[name] = time_process(
                    neural, COMP_WORDS=line, COMP_CWORD="2", _NEURAL_COMPLETE="bash_complete"
                )
            figures["neural check"] = time_process([*neural, "check", str(program)])
            figures[IMPORT_TORCH] = time_process([sys.executable, "-c", "import torch"])
            for name, value in figures.items():
                seconds.setdefault(name, []).append(value)
    return {name: statistics.median(values) for name, values in seconds.items()}


if __name__ == "__main__":
    run_and_print(__doc__, measure, GOALS)
