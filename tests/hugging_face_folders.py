"""Folders of small Hugging Face models with a tokenizer that is trained here, without a network."""

import math

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers.processors import TemplateProcessing

TEXTS = [
    "the cat sat on the mat and the dog sat on the rug",
    "the dog saw the cat and the cat saw the dog",
    "a cat and a dog sat on a mat",
]
HEADS, WIDTH, POSITIONS = 2, 64, 64


def train_tokenizer(*, pair_template=False):
    """A word-level tokenizer of the texts."""
    tokenizer = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(TEXTS, trainers.WordLevelTrainer(special_tokens=special))
    if pair_template:
        tokenizer.post_processor = TemplateProcessing(
            single="[CLS] $A [SEP]",
            pair="[CLS] $A [SEP] $B:1 [SEP]:1",
            special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
        )
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
    )


def build_sentence_pieces(*pieces):
    """A tokenizer of letters and pieces as of Llama 2: `▁` before every text, bytes for the rest."""
    letters = sorted({letter for text in [*TEXTS, *pieces] for letter in text} | {"▁", "."})
    single = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys([*single, *pieces]))}
    merges = [
        (piece[:cut], piece[cut:])
        for piece in pieces
        for cut in range(1, len(piece))
        if piece[:cut] in vocabulary and piece[cut:] in vocabulary
    ]
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, unk_token="<unk>", byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("▁", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    tokenizer.post_processor = TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


def build_gpt2(tokenizer, *, layers=2):
    """GPT-2 with random weights."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer),
        n_positions=POSITIONS,
        n_embd=WIDTH,
        n_layer=layers,
        n_head=HEADS,
        bos_token_id=2,
        eos_token_id=3,
    )
    return transformers.GPT2LMHeadModel(config).eval()


def build_t5(tokenizer):
    """T5 with random weights: encoder, decoder, and attention between them."""
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(tokenizer),
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        decoder_start_token_id=0,
    )
    return transformers.T5ForConditionalGeneration(config).eval()


def build_encoder(tokenizer):
    """BERT with random weights and without a head."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=24,
    )
    return transformers.BertModel(config).eval()


def plant_previous_token_head(model, layer=1, head=0, sharpness=12.0):
    """Set the weights so that a head attends to the token before each one.

    Positions are coded as points on circles, in coordinates that only this head reads: the query
    is the code of the position before, a rotation of its own.
    """
    config = model.config
    width = config.n_embd // config.n_head
    frequencies = torch.exp(-torch.arange(width // 2) * math.log(100.0) / (width // 2)) * 1.5
    angles = torch.arange(config.n_positions)[:, None] * frequencies
    code = torch.stack((angles.cos(), angles.sin()), -1).flatten(1)
    with torch.no_grad():
        # the norms before attention must not mix the code with the token: the token part is small
        model.transformer.wte.weight.mul_(0.1)
        model.transformer.wpe.weight.zero_()
        model.transformer.wpe.weight[:, :width] = code
        for block in model.transformer.h:
            for param in (block.attn.c_proj, block.mlp.c_proj):
                param.weight.zero_()
                param.bias.zero_()
        block = model.transformer.h[layer]
        block.ln_1.weight.fill_(1.0)
        block.ln_1.bias.zero_()
        rotation = torch.zeros(width, width)
        for index, frequency in enumerate(frequencies):
            cos, sin = math.cos(-frequency), math.sin(-frequency)
            rotation[2 * index : 2 * index + 2, 2 * index : 2 * index + 2] = torch.tensor(
                [[cos, sin], [-sin, cos]]
            )
        start = head * width
        weight = block.attn.c_attn.weight  # (E, 3 · E): queries, keys, values
        weight[:, start : start + width] = 0
        weight[:width, start : start + width] = rotation * sharpness
        keys = config.n_embd + start
        weight[:, keys : keys + width] = 0
        weight[:width, keys : keys + width] = torch.eye(width)
        block.attn.c_attn.bias.zero_()
    return model


def save_folder(path, model, tokenizer):
    """Write a folder as `save_pretrained` does."""
    model.save_pretrained(path)
    if tokenizer is not None:
        tokenizer.save_pretrained(path)
    return path
