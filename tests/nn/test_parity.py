"""Our blocks give the same values as torch's with the same weights."""

import pytest
import torch
from torch import nn

from neural.nn.build import build
from neural.nn.layers.transformer_decoder import TransformerDecoder
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from tests.programs import load_network

B, T, K, E, H, INNER = 2, 7, 5, 12, 3, 17
pre_and_post = pytest.mark.parametrize("norm", ["pre", "post"])
exactly = {"rtol": 1e-10, "atol": 1e-12}


def build_block(kind: str, norm: str, activation: str) -> nn.Module:
    torch.manual_seed(0)
    options = f'norm="{norm}", activation="{activation}", positional="none"'
    line = f"{kind}(num_heads={H}, d_model={E}, dff={INNER}, {options})"
    return (
        build(load_network(f"network Trial {{\n input: ({T}, {E})\n layers:\n{line}\n}}"))
        .double()
        .eval()
    )


def add_noise(module: nn.Module) -> None:
    """Norms and biases start at 1 and 0, which would hide an exchange of two of them."""
    with torch.no_grad():
        for param in module.parameters():
            param.add_(0.3 * torch.randn_like(param))


def copy_attention(ours: MultiHeadAttentionModule, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(
            torch.cat((ours.query.weight, ours.key.weight, ours.value.weight))
        )
        theirs.in_proj_bias.copy_(torch.cat((ours.query.bias, ours.key.bias, ours.value.bias)))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def copy_norms_and_feed_forward(ours: nn.Module, theirs: nn.Module, last_norm: str) -> None:
    theirs.norm1.load_state_dict(ours.attention.norm.state_dict())
    theirs.linear1.load_state_dict(ours.feed_forward.sublayer.up.state_dict())
    theirs.linear2.load_state_dict(ours.feed_forward.sublayer.down.state_dict())
    getattr(theirs, last_norm).load_state_dict(ours.feed_forward.norm.state_dict())


# torch's own encoder uses nested tensors.
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pre_and_post
def test_the_encoder_equals_torchs_encoder(norm, activation):
    net = build_block("TransformerEncoder", norm, activation)
    ours = net.transformer_encoder
    add_noise(ours)
    theirs = nn.TransformerEncoderLayer(
        E,
        H,
        INNER,
        dropout=0.0,
        activation=activation,
        batch_first=True,
        norm_first=norm == "pre",
        dtype=torch.float64,
    )
    copy_attention(ours.attention.sublayer, theirs.self_attn)
    copy_norms_and_feed_forward(ours, theirs, "norm2")
    x = torch.randn(B, T, E, dtype=torch.float64)
    torch.testing.assert_close(net(x), theirs(x), **exactly)
    torch.testing.assert_close(net(x), theirs.eval()(x), **exactly)
    mask = torch.arange(T) < torch.tensor([[4], [T]])
    torch.testing.assert_close(
        net(x, mask)[mask], theirs.train()(x, src_key_padding_mask=~mask)[mask], **exactly
    )


@pre_and_post
def test_the_decoder_with_memory_equals_torchs_decoder(norm):
    torch.manual_seed(0)
    layer = TransformerDecoder(num_heads=H, d_model=E, dff=INNER, norm=norm).with_memory((K, E))
    ours = layer.build((T, E)).double().eval()
    add_noise(ours)
    theirs = nn.TransformerDecoderLayer(
        E, H, INNER, dropout=0.0, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
    )
    copy_attention(ours.attention.sublayer, theirs.self_attn)
    copy_attention(ours.cross.sublayer, theirs.multihead_attn)
    theirs.norm2.load_state_dict(ours.cross.norm.state_dict())
    copy_norms_and_feed_forward(ours, theirs, "norm3")
    x, memory = torch.randn(B, T, E, dtype=torch.float64), torch.randn(B, K, E, dtype=torch.float64)
    ahead = torch.ones(T, T, dtype=torch.bool).triu(1)
    torch.testing.assert_close(ours(x, None, memory), theirs(x, memory, tgt_mask=ahead), **exactly)
    mask = torch.arange(K) < torch.tensor([[3], [K]])
    torch.testing.assert_close(
        ours(x, None, memory, mask),
        theirs(x, memory, tgt_mask=ahead, memory_key_padding_mask=~mask),
        **exactly,
    )


@pre_and_post
def test_the_decoder_alone_equals_torchs_encoder_with_a_causal_mask(norm):
    net = build_block("TransformerDecoder", norm, "relu")
    ours = net.transformer_decoder
    add_noise(ours)
    theirs = nn.TransformerEncoderLayer(
        E, H, INNER, dropout=0.0, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
    )
    copy_attention(ours.attention.sublayer, theirs.self_attn)
    copy_norms_and_feed_forward(ours, theirs, "norm2")
    x = torch.randn(B, T, E, dtype=torch.float64)
    ahead = torch.ones(T, T, dtype=torch.bool).triu(1)
    torch.testing.assert_close(net(x), theirs(x, src_mask=ahead), **exactly)
