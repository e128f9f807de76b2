"""The converted nanoGPT network gives the same scores as nanoGPT."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

import neural
from neural.nn.nanogpt import convert_nanogpt_state, write_nanogpt_program

IDS, CONTEXT, WIDTH, HEADS = 19, 11, 12, 3


class Attention(nn.Module):
    """Causal attention with one matrix for queries, keys and values."""

    def __init__(self, bias):
        super().__init__()
        self.c_attn, self.c_proj = (
            nn.Linear(WIDTH, 3 * WIDTH, bias=bias),
            nn.Linear(WIDTH, WIDTH, bias=bias),
        )

    def forward(self, x):
        q, k, v = (
            projected.unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for projected in self.c_attn(x).split(WIDTH, dim=-1)
        )
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        ahead = torch.ones(scores.shape[-2:]).triu(1).bool()
        weights = scores.masked_fill(ahead, -torch.inf).softmax(dim=-1)
        return self.c_proj((weights @ v).transpose(1, 2).flatten(2))


class Block(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH, bias=bias), nn.LayerNorm(WIDTH, bias=bias)
        self.attn = Attention(bias)
        linears = {
            "c_fc": nn.Linear(WIDTH, 4 * WIDTH, bias=bias),
            "c_proj": nn.Linear(4 * WIDTH, WIDTH, bias=bias),
        }
        self.mlp = nn.ModuleDict(linears)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp["c_proj"](functional.gelu(self.mlp["c_fc"](self.ln_2(x))))


class Reference(nn.Module):
    """GPT-2 with the module names of nanoGPT."""

    def __init__(self, layers, bias):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(IDS, WIDTH),
                "wpe": nn.Embedding(CONTEXT, WIDTH),
                "h": nn.ModuleList(Block(bias) for _ in range(layers)),
                "ln_f": nn.LayerNorm(WIDTH, bias=bias),
            }
        )
        self.lm_head = nn.Linear(WIDTH, IDS, bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, ids):
        x = self.transformer["wte"](ids) + self.transformer["wpe"](torch.arange(ids.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))


def build_reference(layers=3, bias=False):
    torch.manual_seed(0)
    model = Reference(layers, bias)
    with torch.no_grad():
        # Norms and biases too: their initial values 1 and 0 would hide errors.
        for name, param in model.named_parameters():
            offset = 1 if "ln_" in name and name.endswith("weight") else 0
            param.copy_(torch.randn_like(param) * 0.3 + offset)
    return model.eval()


def convert(state, dropout=0.0):
    model = neural.parse(write_nanogpt_program(state, HEADS, dropout)).build().eval()
    model.load_state_dict(convert_nanogpt_state(state))
    return model


@pytest.mark.parametrize("bias", [False, True], ids=["without biases", "with biases"])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_same_weights_give_the_same_scores(layers, bias):
    gpt = build_reference(layers, bias)
    ours = convert(gpt.state_dict())
    for time in (CONTEXT, 5):
        ids = torch.randint(0, IDS, (2, time))
        torch.testing.assert_close(ours.logits(ids), gpt(ids), rtol=0, atol=1e-4)


def test_both_have_the_same_number_of_parameters():
    gpt = build_reference()
    blueprint = neural.parse(write_nanogpt_program(gpt.state_dict(), HEADS))
    assert blueprint.parameters == sum(param.numel() for param in gpt.parameters())


def test_prefixes_of_torch_compile_and_masks_of_old_versions_are_removed():
    gpt = build_reference()
    state = {f"_orig_mod.{name}": tensor for name, tensor in gpt.state_dict().items()}
    state["_orig_mod.transformer.h.0.attn.bias"] = torch.ones(1, 1, CONTEXT, CONTEXT).tril()
    ids = torch.randint(0, IDS, (2, CONTEXT))
    torch.testing.assert_close(convert(state).logits(ids), gpt(ids), rtol=0, atol=1e-4)


def test_dropout_is_where_nanogpt_has_it_and_not_in_predictions():
    gpt = build_reference()
    ours = convert(gpt.state_dict(), dropout=0.25)
    ids = torch.randint(0, IDS, (2, CONTEXT))
    torch.testing.assert_close(ours.logits(ids), gpt(ids), rtol=0, atol=1e-4)
    probabilities = {
        name: module.p
        for name, module in ours.named_modules()
        if isinstance(module, nn.Dropout) and module.p
    }
    per_block = [
        f"transformer_decoder.{i}.{sublayer}.dropout"
        for i in range(3)
        for sublayer in ("attention", "feed_forward")
    ]
    assert probabilities == dict.fromkeys(["dropout", *per_block], 0.25)
    assert all(block.attention.sublayer.dropout == 0.25 for block in ours.transformer_decoder)


def change_state(**changes):
    state = build_reference().state_dict()
    for name, value in changes.items():
        name = name.replace("__", ".")
        state = {key: tensor for key, tensor in state.items() if key != name}
        if value is not None:
            state[name] = value
    return state


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({}, "not a nanoGPT checkpoint: transformer.wte.weight is missing"),
        (
            change_state(transformer__wpe__weight=None),
            "not a nanoGPT checkpoint: transformer.wpe.weight is missing",
        ),
        (
            change_state(transformer__h__0__moe__weight=torch.ones(2)),
            "not a nanoGPT checkpoint: transformer.h.0.moe.weight is none of its names",
        ),
        (
            change_state(transformer__h__7__ln_1__weight=torch.ones(2)),
            "not a nanoGPT checkpoint: its blocks are not transformer.h.0, transformer.h.1, …",
        ),
        (
            change_state(lm_head__weight=torch.ones(IDS, WIDTH)),
            "lm_head.weight differs from transformer.wte.weight; nanoGPT ties them",
        ),
    ],
)
def test_other_checkpoints_are_refused_with_a_reason(state, message):
    with pytest.raises(ValueError, match=message):
        convert_nanogpt_state(state)


def test_the_classic_example_is_the_same_network():
    example = neural.load(Path(__file__).parents[2] / "examples/language_model/classic.neural")
    shapes = {"transformer.wte.weight": (65, 128), "transformer.wpe.weight": (64, 128)}
    state = {name: torch.empty(shape) for name, shape in shapes.items()}
    state |= {f"transformer.h.{i}.ln_1.weight": torch.empty(128) for i in range(4)}
    program = neural.parse(write_nanogpt_program(state, 4))
    assert [placed.layer for placed in example.network.layers] == [
        placed.layer for placed in program.network.layers
    ]
