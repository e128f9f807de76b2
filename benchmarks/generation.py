"""Tokens per second of a language model of 10.65 million weights, against nanoGPT; cost of int8.

    python benchmarks/generation.py [--peer PATH] [--json] [--quick]

PATH is a checkout of nanoGPT; its weights are loaded into our network, so both have the same ones.
All decoders alternate in one process: each generates as many tokens from a prompt of one
character, and the figure is the median of its rounds. GB/s of weights: tokens per second of one
text times the bytes of the weights that a token reads. First use: time to create the decoder and to
generate the first token. Memory: peak of a fresh process beyond that before the network was
created. Quality: a small network is trained for a minute, and the mean loss on held-out text is
measured token by token, by the decoder itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measures import read_peak_memory
from torch import nn
from torch.nn import functional

import neural
from neural.data.sources.handbook import read_handbook
from neural.nn.generation import create_decoder, generate_tokens
from neural.nn.nanogpt import convert_nanogpt_state
from neural.nn.sampling import Sampler

VOCABULARY, CONTEXT, WIDTH, LAYERS, HEADS = 65, 256, 384, 6, 6
GOALS = {
    "ours / nanoGPT, one text": 100.0,
    "ours, float32 / nanoGPT, one text": 45.0,
    "ours / nanoGPT, 16 texts": 60.0,
    "int8: perplexity change, %": 0.5,
    "first token, s": 0.2,
}
"""At least, except for the change of perplexity and the first token: at most."""
PROGRAM = """network GPT {{
  input: ({context},)
  layers:
    Embedding(input_dim={vocabulary}, output_dim={width}, init="gpt2")
    PositionalEncoding(encoding_type="learned")
    TransformerDecoder(
      num_heads={heads}, d_model={width}, dff={inner}, activation="gelu", bias=false,
      final_norm=true, init="gpt2"
    ) * {layers}
    Output({vocabulary}, activation="softmax", tied=true, bias=false)
  loss: "sparse_categorical_crossentropy"
}}
"""
DECODERS: dict[str, dict[str, Any]] = {
    "default": {"precision": "auto"},
    "float32": {"decoder": "compiled"},
    "cached, float32": {"decoder": "cached"},
    "recomputed, float32": {"decoder": "recomputed"},
}
"""Arguments of `create_decoder` by the name of the figure."""


def build_network(vocabulary=VOCABULARY, context=CONTEXT, width=WIDTH, layers=LAYERS, heads=HEADS):
    """nanoGPT's network as a program."""
    torch.manual_seed(0)
    sizes = {
        "vocabulary": vocabulary,
        "context": context,
        "width": width,
        "layers": layers,
        "heads": heads,
    }
    return neural.parse(PROGRAM.format(**sizes, inner=4 * width)).build().eval()


def import_nanogpt(path: Path):
    """The module model.py of a checkout."""
    spec = importlib.util.spec_from_file_location("nanogpt_model", path / "model.py")
    if spec is None or spec.loader is None or not (path / "model.py").exists():
        sys.exit(f"{path} is not a checkout of nanoGPT: it has no model.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def build_nanogpt(path: Path) -> nn.Module:
    """nanoGPT's model of the same size."""
    module = import_nanogpt(path)
    torch.manual_seed(0)
    sizes = {
        "block_size": CONTEXT,
        "vocab_size": VOCABULARY,
        "n_layer": LAYERS,
        "n_head": HEADS,
        "n_embd": WIDTH,
    }
    return module.GPT(module.GPTConfig(**sizes, dropout=0.2, bias=False)).eval()


def create_generators(model, peer, names):
    """Functions that generate a number of tokens for a number of texts, by name."""

    def generate_ours(decoder):
        def generate(tokens, samples):
            prompt = torch.zeros(samples, 1, dtype=torch.long)
            sampler = Sampler(samples, temperature=0.8, top_k=200)
            for _ in generate_tokens(decoder, prompt, tokens, sampler):
                pass

        return generate

    def generate_nanogpt(tokens, samples):
        prompt = torch.zeros(samples, 1, dtype=torch.long)
        peer.generate(prompt, tokens, temperature=0.8, top_k=200)

    return {
        name: generate_ours(create_decoder(model, **DECODERS[name]))
        if name in DECODERS
        else generate_nanogpt
        for name in names
    }


def measure_speeds(model, peer, samples, tokens, rounds):
    """Tokens per second of each decoder, the median of rounds; all alternate."""
    names = [*(["nanoGPT"] if peer else []), *DECODERS]
    generators, speeds = create_generators(model, peer, names), {name: [] for name in names}
    for generate in generators.values():
        generate(3, samples)  # allocates memory, starts threads
    for number in range(rounds):
        for name, generate in generators.items():
            # these take most of the time, and vary little
            if number > 2 and name in ("nanoGPT", "recomputed, float32"):
                continue
            start = time.perf_counter()
            generate(tokens, samples)
            speeds[name].append(samples * tokens / (time.perf_counter() - start))
    return {name: statistics.median(values) for name, values in speeds.items()}


def measure_first_token(model) -> float:
    """Seconds to create a decoder and to generate the first token."""
    start = time.perf_counter()
    create_generators(model, None, ["default"])["default"](1, 1)
    return time.perf_counter() - start


def compute_bandwidth(model, speeds) -> dict[str, float]:
    """GB of weights that the compiled decoder reads per second for one text, by precision."""
    count = create_decoder(model, decoder="compiled").num_weights
    return {
        "int8": speeds["default"] * count / 1e9,
        "float32": speeds["float32"] * count * 4 / 1e9,
    }


def peak(name: str, samples: int, peer: Path | None) -> float:
    """Peak memory in MB, in a fresh process."""
    command = [sys.executable, __file__, "--peak", name, "--samples", str(samples)]
    command += ["--peer", str(peer)] if peer else []
    return float(
        subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
    )


def peak_here(name: str, samples: int, peer: Path | None) -> float:
    """Peak memory in MB beyond that of torch and the compiled code."""
    small = build_network(width=WIDTH // 6, layers=1, heads=1)
    if name in DECODERS:
        create_generators(small, None, [name])[name](3, samples)
    before = read_peak_memory(reset=True)
    model = build_network() if name in DECODERS else None
    nanogpt = build_nanogpt(peer) if peer and name == "nanoGPT" else None
    tokens = CONTEXT if name in ("default", "float32", "cached, float32") else 20
    create_generators(model, nanogpt, [name])[name](tokens, samples)
    return read_peak_memory() - before


def measure_quality(quick: bool) -> dict:
    """Mean loss on held-out text of float32 and int8, measured by decoding step by step."""
    text = read_handbook()
    characters = sorted(set(text))
    character_ids = {character: number for number, character in enumerate(characters)}
    ids = torch.tensor([character_ids[character] for character in text])
    train_ids, valid_ids = ids[: len(ids) * 9 // 10], ids[len(ids) * 9 // 10 :]
    context, batch_size = 64, 16
    model = build_network(len(characters), context, 128, 4, 4).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.99))
    random = np.random.default_rng(0)
    for _ in range(60 if quick else 600):
        starts = random.integers(0, len(train_ids) - context - 1, size=24)
        batch = torch.stack([train_ids[start : start + context + 1] for start in starts])
        loss = model.loss(model.logits(batch[:, :-1]), batch[:, 1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    count = batch_size * (2 if quick else 12)
    starts = np.linspace(0, len(valid_ids) - context - 1, count).astype(int)
    windows = torch.stack([valid_ids[start : start + context + 1] for start in starts])
    losses = {}
    for precision in ("float32", "int8"):
        decoder = create_decoder(model.eval(), decoder="compiled", precision=precision)
        batch_losses = []
        for batch in windows.split(batch_size):
            logits = [decoder.start(batch[:, :1])]
            logits += [decoder.step(batch[:, position]) for position in range(1, context)]
            batch_losses.append(
                functional.cross_entropy(
                    torch.stack(logits, 2).detach(), batch[:, 1:], reduction="none"
                )
            )
        losses[precision] = torch.cat(batch_losses).double().mean().item()
    change = 100 * (math.exp(losses["int8"] - losses["float32"]) - 1)
    return {
        "loss, nats": losses,
        "characters": len(starts) * context,
        "perplexity change, %": change,
    }


def compare_logits(model, peer) -> float:
    """Largest difference between nanoGPT's logits and ours, with the same weights."""
    model.load_state_dict(convert_nanogpt_state(peer.state_dict()))
    text = torch.randint(VOCABULARY, (1, CONTEXT), generator=torch.Generator().manual_seed(0))
    decoder = create_decoder(model, decoder="compiled")
    logits = decoder.start(text[:, :7])
    for position in range(7, CONTEXT):
        logits = decoder.step(text[:, position])
    with torch.no_grad():
        nanogpt_logits = peer(text)[0][:, -1]
    return (logits - nanogpt_logits).abs().max().item()


def measure(peer_path: Path | None, quick: bool) -> dict:
    """All figures, and the ratios that have goals."""
    model, peer = build_network(), build_nanogpt(peer_path) if peer_path else None
    results: dict = {
        "threads": torch.get_num_threads(),
        "first token, s": measure_first_token(model),
    }
    if peer:
        results["largest difference of logits"] = compare_logits(model, peer)
    single_tokens, batch_tokens = (40, 20) if quick else (500, 100)
    rounds = 3 if quick else 9
    results["one text, tokens/s"] = measure_speeds(model, peer, 1, single_tokens, rounds)
    results["weights read for one text, GB/s"] = compute_bandwidth(
        model, results["one text, tokens/s"]
    )
    results["16 texts, tokens/s"] = measure_speeds(model, peer, 16, batch_tokens, rounds)
    names = [*(["nanoGPT"] if peer else []), *DECODERS]
    results["peak of one text, MB"] = {name: peak(name, 1, peer_path) for name in names}
    results["quality"] = measure_quality(quick)
    single, several = results["one text, tokens/s"], results["16 texts, tokens/s"]
    results["ratios"] = {"ours, tokens/s": single["default"]}
    if peer:
        results["ratios"] |= {
            "ours / nanoGPT, one text": single["default"] / single["nanoGPT"],
            "ours, float32 / nanoGPT, one text": single["float32"] / single["nanoGPT"],
            "ours / nanoGPT, 16 texts": several["default"] / several["nanoGPT"],
        }
    results["ratios"]["int8: perplexity change, %"] = results["quality"]["perplexity change, %"]
    results["ratios"]["first token, s"] = results["first token, s"]
    return results


def main() -> None:
    """Print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peer", type=Path, help="a checkout of nanoGPT")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="few tokens, three rounds")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--samples", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak:
        print(peak_here(options.peak, options.samples, options.peer))
        return
    results = measure(options.peer, options.quick)
    if options.json:
        print(json.dumps(results | {"goals": GOALS}, indent=2))
        return
    print(
        f"{LAYERS} layers, {HEADS} heads, width {WIDTH}, context {CONTEXT}; "
        f"{results['threads']} threads"
    )
    if "largest difference of logits" in results:
        difference = results["largest difference of logits"]
        print(f"largest difference of logits from nanoGPT's weights: {difference:.1e}")
    titles = (
        "one text, tokens/s",
        "weights read for one text, GB/s",
        "16 texts, tokens/s",
        "peak of one text, MB",
    )
    for title in titles:
        print(f"\n{title}")
        for name, value in results[title].items():
            print(f"  {name:28} {value:9,.1f}")
    losses, count = results["quality"]["loss, nats"], results["quality"]["characters"]
    precisions = f"{losses['float32']:.4f}, int8 {losses['int8']:.4f}"
    print(f"\nheld-out loss, {count:,} characters: {precisions}\n")
    for name, value in results["ratios"].items():
        print(f"  {name:42} {value:9.2f}" + (f"   goal {GOALS[name]:g}" if name in GOALS else ""))


if __name__ == "__main__":
    main()
