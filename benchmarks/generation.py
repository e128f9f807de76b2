"""Tokens per second of a language model of 10.65 million weights, against nanoGPT, and what 8-bit weights cost.

    python benchmarks/generation.py [--peer PATH] [--json] [--quick]

PATH is a checkout of nanoGPT; its weights are loaded into our network, so both write with the same ones. All ways take
turns in one process: each goes on from one character for as many tokens, and the figure is its best round. Memory: what
a fresh process holds at most beyond what it held before the network was made. Quality: a small network is trained for a
minute, and the mean loss of the text held out is measured token by token, by the decoding itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from measures import peak_so_far
from torch import nn
from torch.nn import functional

import neural
from neural.modules.continuation import continued, decoding_of
from neural.modules.nanogpt import load_nanogpt
from neural.modules.sampling import Sampler
from neural.tasks.data.sources.handbook import handbook_text

VOCABULARY, CONTEXT, WIDTH, LAYERS, HEADS = 65, 256, 384, 6, 6
GOALS = {"ours / nanoGPT, one text": 40.0, "ours, tokens/s": 420.0, "int8: perplexity change, %": 0.5}
PROGRAM = """network GPT {{
  input: ({context},)
  layers:
    Embedding(input_dim={vocabulary}, output_dim={width}, init="gpt2")
    PositionalEncoding(encoding_type="learned")
    TransformerDecoder(
      num_heads={heads}, d_model={width}, dff={inner}, activation="gelu", bias=false, final_norm=true, init="gpt2"
    ) * {layers}
    Output({vocabulary}, activation="softmax", tied=true, bias=false)
  loss: "sparse_categorical_crossentropy"
}}
"""
OURS = {
    "default": {"precision": "auto"}, "float32": {"way": "compiled"},
    "cached, float32": {"way": "cached"}, "recomputed, float32": {"way": "recomputed"},
}  # fmt: skip


def network(vocabulary=VOCABULARY, context=CONTEXT, width=WIDTH, layers=LAYERS, heads=HEADS):
    """The classic one."""
    torch.manual_seed(0)
    sizes = {"vocabulary": vocabulary, "context": context, "width": width, "layers": layers, "heads": heads}
    return neural.parse(PROGRAM.format(**sizes, inner=4 * width)).build().eval()


def nanogpt_module(path: Path):
    """model.py of a checkout."""
    spec = importlib.util.spec_from_file_location("nanogpt_model", path / "model.py")
    if spec is None or spec.loader is None or not (path / "model.py").exists():
        sys.exit(f"{path} is no checkout of nanoGPT: it has no model.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def nanogpt(path: Path) -> nn.Module:
    """Theirs, of the same size."""
    module = nanogpt_module(path)
    torch.manual_seed(0)
    sizes = {"block_size": CONTEXT, "vocab_size": VOCABULARY, "n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH}
    return module.GPT(module.GPTConfig(**sizes, dropout=0.2, bias=False)).eval()


def ways(model, peer, names):
    """A call per way: writes so many tokens in so many texts."""
    made = {name: decoding_of(model, **OURS[name]) for name in names if name in OURS}

    def ours(decoding):
        def run(tokens, samples):
            prompt = torch.zeros(samples, 1, dtype=torch.long)
            for _ in continued(decoding, prompt, tokens, Sampler(samples, temperature=0.8, top_k=200)):
                pass

        return run

    def theirs(tokens, samples):
        peer.generate(torch.zeros(samples, 1, dtype=torch.long), tokens, temperature=0.8, top_k=200)

    return {name: ours(made[name]) if name in made else theirs for name in names}


def speeds(model, peer, samples, tokens, rounds):
    """Tokens per second of each, all taking turns."""
    names = [*(["nanoGPT"] if peer else []), *OURS]
    calls, best = ways(model, peer, names), {}
    for run in calls.values():
        run(3, samples)   # compiles
    for done in range(rounds):
        for name, run in calls.items():
            if done > 1 and name in ("nanoGPT", "recomputed, float32"):   # slow, and steady
                continue
            started = time.perf_counter()
            run(tokens, samples)
            best[name] = max(best.get(name, 0.0), samples * tokens / (time.perf_counter() - started))
    return best


def peak(name: str, samples: int, peer: Path | None) -> float:
    """Megabytes, in a fresh process."""
    command = [sys.executable, __file__, "--peak", name, "--samples", str(samples)]
    command += ["--peer", str(peer)] if peer else []
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def peak_here(name: str, samples: int, peer: Path | None) -> float:
    """Megabytes beyond what torch and the compiled code hold by themselves."""
    small = network(width=WIDTH // 6, layers=1, heads=1)
    if name in OURS:
        ways(small, None, [name])[name](3, samples)
    before = peak_so_far(forget=True)
    model = network() if name in OURS else None
    theirs = nanogpt(peer) if peer and name == "nanoGPT" else None
    ways(model, theirs, [name])[name](CONTEXT if name in ("default", "float32", "cached, float32") else 20, samples)
    return peak_so_far() - before


def quality(quick: bool) -> dict:
    """The mean loss of held-out text under both precisions, measured by the steps that write."""
    text = handbook_text()
    characters = sorted(set(text))
    known = {one: number for number, one in enumerate(characters)}
    ids = torch.tensor([known[one] for one in text])
    learned, held = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
    context, windows = 64, 16
    model = network(len(characters), context, 128, 4, 4).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99))
    random = np.random.default_rng(0)
    for _ in range(60 if quick else 600):
        at = random.integers(0, len(learned) - context - 1, size=24)
        batch = torch.stack([learned[one : one + context + 1] for one in at])
        loss = model.loss(model.scores(batch[:, :-1]), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    places = np.linspace(0, len(held) - context - 1, windows * (2 if quick else 12)).astype(int)
    texts = torch.stack([held[one : one + context + 1] for one in places]).split(windows)
    losses = {}
    for precision in ("float32", "int8"):
        decoding, each = decoding_of(model.eval(), way="compiled", precision=precision), []
        for some in texts:
            scores = [decoding.start(some[:, :1])] + [decoding.step(some[:, at]) for at in range(1, context)]
            each.append(functional.cross_entropy(torch.stack(scores, 2).detach(), some[:, 1:], reduction="none"))
        losses[precision] = torch.cat(each).double().mean().item()
    change = 100 * (math.exp(losses["int8"] - losses["float32"]) - 1)
    return {"loss, nats": losses, "characters": len(places) * context, "perplexity change, %": change}


def agreement(model, peer) -> float:
    """The largest difference between nanoGPT's logits and ours, from the same weights."""
    model.load_state_dict(load_nanogpt(peer.state_dict()))
    text = torch.randint(VOCABULARY, (1, CONTEXT), generator=torch.Generator().manual_seed(0))
    decoding = decoding_of(model, way="compiled")
    decoding.start(text[:, :7])
    for at in range(7, CONTEXT):
        ours = decoding.step(text[:, at])
    with torch.no_grad():
        theirs = peer(text)[0][:, -1]
    return (ours - theirs).abs().max().item()


def measure(peer_path: Path | None, quick: bool) -> dict:
    """Everything, and the ratios that goals are set for."""
    model, peer = network(), nanogpt(peer_path) if peer_path else None
    found: dict = {"threads": torch.get_num_threads()}
    if peer:
        found["largest difference of logits"] = agreement(model, peer)
    one, many = (40, 20) if quick else (500, 100)
    found["one text, tokens/s"] = speeds(model, peer, 1, one, 2 if quick else 4)
    found["16 texts, tokens/s"] = speeds(model, peer, 16, many, 2 if quick else 4)
    names = [*(["nanoGPT"] if peer else []), *OURS]
    found["peak of one text, MB"] = {name: peak(name, 1, peer_path) for name in names}
    found["quality"] = quality(quick)
    single, several = found["one text, tokens/s"], found["16 texts, tokens/s"]
    found["ratios"] = {"ours, tokens/s": single["default"]}
    if peer:
        found["ratios"] |= {
            "ours / nanoGPT, one text": single["default"] / single["nanoGPT"],
            "ours, float32 / nanoGPT, one text": single["float32"] / single["nanoGPT"],
            "ours / nanoGPT, 16 texts": several["default"] / several["nanoGPT"],
        }
    found["ratios"]["int8: perplexity change, %"] = found["quality"]["perplexity change, %"]
    return found


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", type=Path, help="a checkout of nanoGPT")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few tokens, two rounds")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--samples", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak_here(options.peak, options.samples, options.peer))
        return
    found = measure(options.peer, options.quick)
    if options.json:
        print(json.dumps(found | {"goals": GOALS}, indent=2))
        return
    print(f"{LAYERS} layers, {HEADS} heads, width {WIDTH}, context {CONTEXT}; {found['threads']} threads")
    if "largest difference of logits" in found:
        print(f"largest difference of logits from nanoGPT's weights: {found['largest difference of logits']:.1e}")
    for title in ("one text, tokens/s", "16 texts, tokens/s", "peak of one text, MB"):
        print(f"\n{title}")
        for name, value in found[title].items():
            print(f"  {name:28} {value:9,.1f}")
    losses, count = found["quality"]["loss, nats"], found["quality"]["characters"]
    print(f"\nheld-out loss, {count:,} characters: {losses['float32']:.4f}, int8 {losses['int8']:.4f}\n")
    for name, value in found["ratios"].items():
        print(f"  {name:42} {value:9.2f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


if __name__ == "__main__":
    main()
