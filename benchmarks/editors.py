"""How long an editor and a shell wait: the language server's first diagnostics, its answers, and shell completion.

    python benchmarks/editors.py [--json] [--quick]

Every round is a fresh `neural lsp` that is sent a program with a mistake, then asked as an editor asks; next to it a
fresh `neural check` of the same program and importing torch. Medians over rounds in which all take turns.
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

from language import ROOT, TORCH, show
from lsprotocol import types
from pygls.lsp.client import LanguageClient

PROGRAM = (ROOT / "examples" / "characters.neural").read_text(encoding="utf-8").replace("Embedding(", "Embeding(")
URI = "file:///characters.neural"
GOALS = {"neural lsp, first diagnostics": 1.5, "completing a run": 0.3, "completing a layer": 0.3}


async def conversation() -> dict[str, float]:
    """Seconds until a fresh server has said what is wrong, and for the questions that follow."""
    client, told = LanguageClient("benchmark", "1"), asyncio.Queue()
    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda said: told.put_nowait(said))
    started = time.perf_counter()
    await client.start_io(sys.executable, "-m", "neural", "lsp")
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities()))
    client.initialized(types.InitializedParams())
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(URI, "neural", 1, PROGRAM))
    )
    said = await told.get()
    found = {"neural lsp, first diagnostics": time.perf_counter() - started}
    assert [one.code for one in said.diagnostics] == ["E0201"]

    where = types.TextDocumentIdentifier(URI)
    line = PROGRAM[: PROGRAM.index("TransformerDecoder")].count("\n")
    place = types.Position(line, 6)
    questions: dict[str, Callable[[], Awaitable[object]]] = {
        "completion, the first": lambda: client.text_document_completion_async(types.CompletionParams(where, place)),
        "completion, again": lambda: client.text_document_completion_async(types.CompletionParams(where, place)),
        "hover": lambda: client.text_document_hover_async(types.HoverParams(where, place)),
        "formatting": lambda: client.text_document_formatting_async(
            types.DocumentFormattingParams(where, types.FormattingOptions(2, True))
        ),
    }
    for name, ask in questions.items():
        started = time.perf_counter()
        await ask()
        found[name] = time.perf_counter() - started
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return found


def timed(command: list[str], **environment: str) -> float:
    """Seconds of a process."""
    started = time.perf_counter()
    subprocess.run(command, check=False, capture_output=True, cwd=ROOT, env={**os.environ, **environment})
    return time.perf_counter() - started


def measure(rounds: int) -> dict[str, float]:
    """Median seconds of everything."""
    neural = [sys.executable, "-c", "from neural.cli.main import main; main(prog_name='neural')"]
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "wrong.neural"
        program.write_text(PROGRAM, encoding="utf-8")
        for _ in range(rounds):
            found = asyncio.run(conversation())
            for name, line in {"completing a run": "neural show ", "completing a layer": "neural layers Tr"}.items():
                found[name] = timed(neural, COMP_WORDS=line, COMP_CWORD="2", _NEURAL_COMPLETE="bash_complete")
            found["neural check"] = timed([*neural, "check", str(program)])
            found[TORCH] = timed([sys.executable, "-c", "import torch"])
            for name, value in found.items():
                seconds.setdefault(name, []).append(value)
    return {name: statistics.median(each) for name, each in seconds.items()}


if __name__ == "__main__":
    show(__doc__, measure, GOALS)
