"""The classic network is nanoGPT's: with the same weights it gives the same scores."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import neural
from neural.modules.nanogpt import load_nanogpt, nanogpt_program

IDS, CONTEXT, WIDTH, HEADS = 19, 11, 12, 3


class Attention(nn.Module):
    """One matrix for queries, keys and values; nobody looks ahead."""

    def __init__(self, bias):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH, bias=bias), nn.Linear(WIDTH, WIDTH, bias=bias)

    def forward(self, x):
        q, k, v = (one.unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in self.c_attn(x).split(WIDTH, dim=-1))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        ahead = torch.ones(scores.shape[-2:]).triu(1).bool()
        weights = scores.masked_fill(ahead, -torch.inf).softmax(dim=-1)
        return self.c_proj((weights @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, bias=bias), nn.LayerNorm(WIDTH, bias=bias)
        self.attn = Attention(bias)
        maps = {"c_fc": nn.Linear(WIDTH, 4 * WIDTH, bias=bias), "c_proj": nn.Linear(4 * WIDTH, WIDTH, bias=bias)}
        self.mlp = nn.ModuleDict(maps)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](functional.gelu(self.mlp["c_fc"](self.ln_2(x))))


class Reference(nn.Module):
    """GPT-2 as nanoGPT writes it, with its names."""

    def __init__(self, layers, bias):
        super().__init__()
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(IDS, WIDTH), "wpe": nn.Embedding(CONTEXT, WIDTH),
            "h": nn.ModuleList(Block(bias) for _ in range(layers)), "ln_f": nn.LayerNorm(WIDTH, bias=bias),
        })  # fmt: skip
        self.lm_head = nn.Linear(WIDTH, IDS, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, ids):
        x = self.transformer["wte"](ids) + self.transformer["wpe"](torch.arange(ids.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


def reference(layers=3, bias=False):
    torch.manual_seed(0)
    made = Reference(layers, bias)
    with torch.no_grad():
        for name, one in made.named_parameters():   # norms and biases too: what is 1 or 0 shows no mistake
            one.copy_(torch.randn_like(one) * 0.3 + (1 if "ln_" in name and name.endswith("weight") else 0))
    return made.eval()


def network_of(state, dropout=0.0):
    made = neural.parse(nanogpt_program(state, HEADS, dropout)).build().eval()
    made.load_state_dict(load_nanogpt(state))
    return made


@pytest.mark.parametrize("bias", [False, True], ids=["without biases", "with biases"])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_same_weights_give_the_same_scores(layers, bias):
    gpt = reference(layers, bias)
    ours = network_of(gpt.state_dict())
    for time in (CONTEXT, 5):
        ids = torch.randint(0, IDS, (2, time))
        torch.testing.assert_close(ours.scores(ids), gpt(ids), rtol=0, atol=1e-4)


def test_both_have_the_same_number_of_parameters():
    gpt = reference()
    blueprint = neural.parse(nanogpt_program(gpt.state_dict(), HEADS))
    assert blueprint.parameters == sum(one.numel() for one in gpt.parameters())


def test_what_torch_compile_and_old_versions_add_is_left_out():
    gpt = reference()
    state = {f"_orig_mod.{name}": one for name, one in gpt.state_dict().items()}
    state["_orig_mod.transformer.h.0.attn.bias"] = torch.ones(1, 1, CONTEXT, CONTEXT).tril()
    ids = torch.randint(0, IDS, (2, CONTEXT))
    torch.testing.assert_close(network_of(state).scores(ids), gpt(ids), rtol=0, atol=1e-4)


def test_dropout_stands_in_nanogpts_places_and_not_in_predictions():
    gpt = reference()
    ours = network_of(gpt.state_dict(), dropout=0.25)
    ids = torch.randint(0, IDS, (2, CONTEXT))
    torch.testing.assert_close(ours.scores(ids), gpt(ids), rtol=0, atol=1e-4)
    places = {name: one.p for name, one in ours.named_modules() if isinstance(one, nn.Dropout) and one.p}
    per_block = [f"transformer_decoder.{i}.{part}.dropout" for i in range(3) for part in ("attention", "feed_forward")]
    assert places == dict.fromkeys(["dropout", *per_block], 0.25)
    assert all(block.attention.part.dropout == 0.25 for block in ours.transformer_decoder)


def changed(**changes):
    state = reference().state_dict()
    for name, value in changes.items():
        name = name.replace("__", ".")
        state = {key: one for key, one in state.items() if key != name}
        if value is not None:
            state[name] = value
    return state


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "no nanoGPT checkpoint: there is no transformer.wte.weight"),
        (changed(transformer__wpe__weight=None), "no nanoGPT checkpoint: there is no transformer.wpe.weight"),
        (changed(transformer__h__0__moe__weight=torch.ones(2)),
         "no nanoGPT checkpoint: transformer.h.0.moe.weight is none of its names"),
        (changed(transformer__h__7__ln_1__weight=torch.ones(2)),
         "no nanoGPT checkpoint: its blocks are not transformer.h.0, transformer.h.1, …"),
        (changed(lm_head__weight=torch.ones(IDS, WIDTH)),
         "lm_head.weight differs from transformer.wte.weight; nanoGPT ties them"),
    ],
)  # fmt: skip
def test_what_is_no_checkpoint_of_nanogpt_is_refused_by_name(state, message):
    with pytest.raises(ValueError, match=message):
        load_nanogpt(state)


def test_the_classic_example_is_the_same_network():
    example = neural.load(Path(__file__).parents[2] / "examples/language_model/classic.neural")
    shapes = {"transformer.wte.weight": (65, 128), "transformer.wpe.weight": (64, 128)}
    state = {name: torch.empty(shape) for name, shape in shapes.items()}
    state |= {f"transformer.h.{i}.ln_1.weight": torch.empty(128) for i in range(4)}
    program = neural.parse(nanogpt_program(state, 4))
    assert [one.layer for one in example.network.layers] == [one.layer for one in program.network.layers]
