"""Transformers with hand-set weights: which heads matter, for what, is known by construction.

Two layers of four heads without MLPs, as a network of this project ("own") and as a Hugging Face
GPT-2 ("gpt2"). Both have the same weights and compute the same function. `build_zoo` has all
circuits:

    L0 h0  decoy           attends to the previous token; nothing reads what the head writes
    L0 h1  previous token  writes the previous token where only the induction head reads it
    L0 h2  redundant       after ASK_PREVIOUS copies the token before to the logits; else a sink
    L0 h3  idle            attends to everything equally, writes zeros
    L1 h0  induction       attends to the token after an earlier occurrence of its own, copies it
    L1 h1  redundant       computes the same as L0 h2
    L1 h2  copy            after ASK_FIRST copies the token after START; else a sink
    L1 h3  decoy           attends to the previous token, but its output projection is zero

A sequence is START, a token f and a text, then blocks in random order: the text again (induction),
`r ASK_PREVIOUS r` with other tokens r (redundant heads), `ASK_FIRST f` (copy head). Targets are next
tokens, but only those that a circuit decides. Without its circuit, a target has a loss of about
ln(VOCABULARY) = 3.0.

How exact weights survive LayerNorm: two coordinates hold ±LEVEL, much larger than everything else,
so that the variance is constant up to 1e-5, and a gain makes the norm the identity; another
coordinate holds minus the sum of the others, so that the mean is 0.

Redundant heads: either alone gives the answer a margin of STRENGTH, which is enough. That is so if
the output is replaced by zeros, a mean, or an average of many tokens. Resampling one of them writes
a wrong token with the same strength instead: it costs about ln 2 per target, by construction.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers
from torch.distributions import Categorical
from torch.nn.functional import cross_entropy

import neural

LAYERS, HEADS, HEAD_WIDTH = 2, 4, 32
WIDTH = HEADS * HEAD_WIDTH
START, ASK_PREVIOUS, ASK_FIRST = range(3)
FIRST_WORD, VOCABULARY, LENGTH = 3, 20, 30
WORDS = ["<start>", "previous?", "first?", *"abcdefghijklmnopq"]
NO_TARGET = -100
"""Target of a position that no circuit decides; `cross_entropy` ignores it."""
QUESTIONS = 3
"""Number of targets of the redundant heads, and of the copy head, in a sequence."""
TEXT_LENGTH = 6

# Coordinates of the residual stream, one-hot codes.
TOKEN = slice(0, 20)
PREVIOUS = slice(20, 40)
ANSWER = slice(40, 60)
UNREAD = slice(60, 80)
POSITION = slice(80, 110)
LEVELS = slice(110, 112)
BALANCE = 127
LEVEL = 1000.0
SHARPNESS = 30.0
"""Score of the key that a head attends to; others have 0, the sink of a gated head half of it."""
STRENGTH = 12.0
"""Logit that one redundant head gives to its answer. Induction and copy head give twice as much, so
that a head that copies a wrong token there changes nothing."""

Head = tuple[int, int]
DECOY, PREVIOUS_HEAD, REDUNDANT, IDLE = (0, 0), (0, 1), (0, 2), (0, 3)
INDUCTION, SECOND_REDUNDANT, COPY, SECOND_DECOY = (1, 0), (1, 1), (1, 2), (1, 3)
ALL_HEADS = frozenset((layer, head) for layer in range(LAYERS) for head in range(HEADS))
PARTS = ("induction", "redundant", "copy", "decoy")
HEADS_OF_PARTS = {
    "induction": (PREVIOUS_HEAD, INDUCTION),
    "redundant": (REDUNDANT, SECOND_REDUNDANT),
    "copy": (COPY,),
    "decoy": (DECOY, SECOND_DECOY),
}


@dataclass(frozen=True)
class Batch:
    """Token ids and targets (B, T); NO_TARGET where there is none."""

    tokens: torch.Tensor
    targets: torch.Tensor

    @property
    def has_target(self) -> torch.Tensor:
        return self.targets != NO_TARGET

    @property
    def chance_loss(self) -> float:
        """Loss of guessing by the frequencies of the targets, in nats."""
        counts = self.targets[self.has_target].bincount().double()
        return Categorical(counts).entropy().item()

    def to_mapping(self) -> dict[str, torch.Tensor]:
        """The tensors by name."""
        return {"tokens": self.tokens, "targets": self.targets}


@dataclass(frozen=True)
class Pairs:
    """Inputs (B, T) that differ in one token; the answer is predicted at the last position.

    `answer` is right for `clean`. `foil` is another token of the text: right for `corrupted` if
    the query changed, and as improbable as others if the key changed.
    """

    clean: torch.Tensor
    corrupted: torch.Tensor
    answer: torch.Tensor
    foil: torch.Tensor
    changed_position: int
    important: dict[Head, int]
    """The heads that decide the answer, and the positions where they do."""


@dataclass(frozen=True)
class Circuit:
    """A model with the truth about its heads."""

    model: torch.nn.Module
    parts: tuple[str, ...]
    necessary: frozenset[Head]
    redundant_pairs: frozenset[tuple[Head, Head]]
    decoys: frozenset[Head]
    path_edges: frozenset[tuple[Head, Head]]
    previous_token_heads: frozenset[Head]
    """Heads with the role: weight 1 on the token before, at every position but the first."""

    @property
    def necessary_if_resampled(self) -> frozenset[Head]:
        """A resampled redundant head is not merely absent: it writes wrong tokens."""
        return self.necessary | {head for pair in self.redundant_pairs for head in pair}

    @property
    def harmless(self) -> frozenset[Head]:
        """Heads that can be removed alone."""
        return ALL_HEADS - self.necessary

    def draw(self, count: int, seed: int) -> Batch:
        """Sequences in which every part of the circuit has targets."""
        return draw_batch(self.parts, count, seed)


def build_zoo(family="own", **options) -> Circuit:
    """All circuits in one model."""
    return build_circuit(PARTS, family, **options)


def build_induction(family="own", **options) -> Circuit:
    """A previous-token head and an induction head that reads its output as keys."""
    return build_circuit(("induction",), family, **options)


def build_copy(family="own", **options) -> Circuit:
    """One head alone decides the logits."""
    return build_circuit(("copy",), family, **options)


def build_redundant(family="own", **options) -> Circuit:
    """Two heads, either of which suffices."""
    return build_circuit(("redundant",), family, **options)


def build_decoy(family="own", **options) -> Circuit:
    """Two previous-token heads without effect, beside a copy head."""
    return build_circuit(("copy", "decoy"), family, **options)


def build_successor(family="own", strength=3.0, noise=0.02, seed=0) -> Circuit:
    """A control that is better than chance: the next token follows from the present one alone.

    The path from embedding to logits knows it; all heads are random and know nothing.
    """
    circuit = build_circuit((), family, strength, noise, seed)
    unembedding = WEIGHTS[family](circuit.model).unembedding
    with torch.no_grad():
        for word in range(FIRST_WORD, VOCABULARY):
            unembedding[find_successor(word), TOKEN.start + word] = strength
    return replace(circuit, parts=("successor",))


def find_successor(word: int) -> int:
    """The word after another in the vocabulary; the first after the last."""
    return FIRST_WORD + (word - FIRST_WORD + 1) % (VOCABULARY - FIRST_WORD)


def build_circuit(
    parts: Iterable[str], family="own", strength=STRENGTH, noise=0.0, seed=0
) -> Circuit:
    """The heads of some parts; all other heads attend equally and write zeros.

    `noise`: standard deviation of random numbers added to all attention weights, so that no effect
    is exactly 0 and examples differ; up to 0.02 the truth stays.
    """
    parts = tuple(part for part in PARTS if part in set(parts))
    heads = {head for part in parts for head in HEADS_OF_PARTS[part]}
    model = build_random(family, seed=0)
    weights = WEIGHTS[family](model)
    with torch.no_grad():
        for param in model.parameters():
            param.zero_()
        weights.set_norms(LEVEL * (2 / WIDTH) ** 0.5)
        weights.tokens[:, TOKEN] = torch.eye(VOCABULARY)
        weights.tokens[:, LEVELS] = torch.tensor([LEVEL, -LEVEL])
        weights.tokens[:, BALANCE] = -1
        weights.positions[:, POSITION] = torch.eye(LENGTH)
        weights.positions[:, BALANCE] = -1
        weights.unembedding[:, ANSWER] = strength * torch.eye(VOCABULARY)
        for head in sorted(heads):
            set_head(weights, head)
        if noise:
            add_noise(weights, noise, seed)
    is_redundant = "redundant" in parts
    return Circuit(
        model=model,
        parts=parts,
        necessary=frozenset(heads & {PREVIOUS_HEAD, INDUCTION, COPY}),
        redundant_pairs=frozenset({(REDUNDANT, SECOND_REDUNDANT)} if is_redundant else ()),
        decoys=frozenset(heads & {DECOY, SECOND_DECOY}),
        path_edges=frozenset({(PREVIOUS_HEAD, INDUCTION)} if "induction" in parts else ()),
        previous_token_heads=frozenset(heads & {DECOY, PREVIOUS_HEAD, SECOND_DECOY}),
    )


def build_random(family="own", seed=0, scale=1.0) -> torch.nn.Module:
    """The control: the same architecture with random weights.

    `scale` multiplies the attention weights; with 3 heads attend sharply and change the logits
    much, without knowing anything.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if family == "own":
            model = neural.parse(OWN_PROGRAM).build()
        else:
            model = transformers.GPT2LMHeadModel(
                transformers.GPT2Config(
                    vocab_size=VOCABULARY,
                    n_positions=LENGTH,
                    n_embd=WIDTH,
                    n_layer=LAYERS,
                    n_head=HEADS,
                    n_inner=1,
                    tie_word_embeddings=False,
                    bos_token_id=START,
                    eos_token_id=START,
                )
            )
    with torch.no_grad():
        for attention in find_attention(model):
            for name, param in attention.named_parameters():
                if name.endswith("weight"):
                    param.mul_(scale)
    return model.eval()


OWN_PROGRAM = f"""
network Zoo {{
  input: ("T",)
  layers:
    Embedding(input_dim={VOCABULARY}, output_dim={WIDTH})
    PositionalEncoding("learned", max_len={LENGTH})
    TransformerDecoder(num_heads={HEADS}, d_model={WIDTH}, dff=1, final_norm=true) * {LAYERS}
    Dense({VOCABULARY}, activation="softmax")
  loss: "sparse_categorical_crossentropy"
}}
"""


def find_attention(model) -> list[torch.nn.Module]:
    """The attention modules of both families, in order."""
    if isinstance(model, transformers.GPT2LMHeadModel):
        return [block.attn for block in model.transformer.h]
    return [block.attention.sublayer for block in model.transformer_decoder]


class OwnWeights:
    """The weights of a network of this project, as views of the shape (input, output)."""

    def __init__(self, model):
        self.model = model
        self.tokens = model.embedding.table.weight
        self.positions = model.positional_encoding.table
        self.unembedding = model.dense.linear.weight

    def set_norms(self, gain):
        for block in self.model.transformer_decoder:
            block.attention.norm.weight.fill_(gain)
            block.feed_forward.norm.weight.fill_(gain)
        self.model.layer_normalization.weight.fill_(gain)

    def view_projections(self, head: Head):
        attention = find_attention(self.model)[head[0]]
        columns = slice(head[1] * HEAD_WIDTH, (head[1] + 1) * HEAD_WIDTH)
        inputs = (attention.query, attention.key, attention.value)
        return *(linear.weight[columns].T for linear in inputs), attention.output.weight[
            :, columns
        ].T


class GPT2Weights:
    """The weights of a GPT-2, as views of the shape (input, output)."""

    def __init__(self, model):
        self.model = model
        self.tokens = model.transformer.wte.weight
        self.positions = model.transformer.wpe.weight
        self.unembedding = model.lm_head.weight

    def set_norms(self, gain):
        for block in self.model.transformer.h:
            block.ln_1.weight.fill_(gain)
            block.ln_2.weight.fill_(gain)
        self.model.transformer.ln_f.weight.fill_(gain)

    def view_projections(self, head: Head):
        attention = find_attention(self.model)[head[0]]
        columns = slice(head[1] * HEAD_WIDTH, (head[1] + 1) * HEAD_WIDTH)
        inputs = attention.c_attn.weight.unflatten(1, (3, WIDTH))[:, :, columns]
        return *inputs.unbind(1), attention.c_proj.weight[columns]


WEIGHTS = {"own": OwnWeights, "gpt2": GPT2Weights}


def set_head(weights, head: Head) -> None:
    """Set the four projections of one head."""
    words = torch.zeros(WIDTH, VOCABULARY)  # the token, unless it is START or a question
    words[TOKEN.start + FIRST_WORD : TOKEN.stop, FIRST_WORD:] = torch.eye(VOCABULARY - FIRST_WORD)
    previous = torch.zeros(WIDTH, LENGTH)  # code of the position before
    previous[POSITION.start + 1 : POSITION.stop, : LENGTH - 1] = torch.eye(LENGTH - 1)
    query, key, value, output = weights.view_projections(head)
    sink = -1  # the last feature of queries and keys of a gated head: START, unless it is asked
    if head in (DECOY, PREVIOUS_HEAD, SECOND_DECOY, REDUNDANT, SECOND_REDUNDANT):
        query[:, :LENGTH] = SHARPNESS * previous
        key[POSITION, :LENGTH] = torch.eye(LENGTH)
        if head in (REDUNDANT, SECOND_REDUNDANT):
            query[TOKEN, sink] = 2 * SHARPNESS
            query[TOKEN.start + ASK_PREVIOUS, sink] = 0
    elif head == COPY:
        query[TOKEN.start + ASK_FIRST, 0] = SHARPNESS
        key[POSITION.start + 1, 0] = 1
        query[TOKEN, sink] = SHARPNESS / 2
    elif head == INDUCTION:
        query[:, :VOCABULARY] = SHARPNESS * words
        key[PREVIOUS, :VOCABULARY] = torch.eye(VOCABULARY)
        query[TOKEN, sink] = SHARPNESS / 2
    query.mul_(HEAD_WIDTH**0.5)
    if head not in HEADS_OF_PARTS["decoy"] and head != PREVIOUS_HEAD:
        key[TOKEN.start + START, sink] = 1
    value[:, :VOCABULARY] = words
    target = {DECOY: UNREAD, PREVIOUS_HEAD: PREVIOUS}.get(head, ANSWER)
    size = {SECOND_DECOY: 0.0, INDUCTION: 2.0, COPY: 2.0}.get(head, 1.0)
    output[:VOCABULARY, target] = size * torch.eye(VOCABULARY)
    output[:VOCABULARY, BALANCE] = -size


def add_noise(weights, noise: float, seed: int) -> None:
    """Add random numbers to all projections, but none that read or write the large coordinates."""
    generator = torch.Generator().manual_seed(seed)
    for head in sorted(ALL_HEADS):
        *inputs, output = weights.view_projections(head)
        size = (LEVELS.start, HEAD_WIDTH)
        for projection in inputs:
            projection[: LEVELS.start] += noise * torch.randn(size, generator=generator)
        output[:, : LEVELS.start] += noise * torch.randn(size[::-1], generator=generator)


def make_repeated_sequences(
    vocabulary: int, length: int, count: int, seed: int, first_id: int = 0
) -> torch.Tensor:
    """Sequences (count, 2 · length): `length` different random tokens, then the same again.

    Ids are `first_id` to `vocabulary` - 1.
    """
    half = draw_distinct_tokens(vocabulary, length, count, seed, first_id)
    return torch.cat((half, half), dim=1)


def draw_distinct_tokens(vocabulary, length, count, seed, first_id=0) -> torch.Tensor:
    """Random tokens (count, length); no token occurs twice in a sequence."""
    if length > vocabulary - first_id:
        raise ValueError(f"{length} different tokens need a vocabulary of {first_id + length}")
    generator = torch.Generator().manual_seed(seed)
    order = torch.rand(count, vocabulary - first_id, generator=generator).argsort(dim=1)
    return order[:, :length] + first_id


def draw_batch(parts: Iterable[str], count: int, seed: int) -> Batch:
    """Sequences with the questions of some parts, and their targets."""
    parts = set(parts)
    text_length = 2 * TEXT_LENGTH if parts == {"induction"} else TEXT_LENGTH
    words = draw_distinct_tokens(
        VOCABULARY, 1 + text_length + QUESTIONS, count, seed, FIRST_WORD
    ).tolist()
    shuffler = random.Random(seed)
    tokens, targets = [], []
    for first, *others in words:
        text, askers = others[:text_length], others[text_length:]
        # tokens of a block, and how many of the last ones are targets
        blocks: list[tuple[list[int], int]] = []
        if "induction" in parts:
            blocks.append((text, text_length - 1))
        if "redundant" in parts:
            blocks += [([token, ASK_PREVIOUS, token], 1) for token in askers]
        if "copy" in parts:
            blocks += [([ASK_FIRST, first], 1)] * QUESTIONS
        if "successor" in parts:
            blocks += [([token, find_successor(token)], 1) for token in askers]
        # the positions must not tell what a head attends to
        shuffler.shuffle(blocks)
        sequence, is_target = [START, first, *text], [False] * (2 + text_length)
        for block, num_targets in blocks:
            sequence += block
            is_target += [False] * (len(block) - num_targets) + [True] * num_targets
        tokens.append(sequence)
        targets.append(
            [
                following if is_decided else NO_TARGET
                for following, is_decided in zip(sequence[1:], is_target[1:], strict=True)
            ]
            + [NO_TARGET]
        )
    return Batch(torch.tensor(tokens), torch.tensor(targets))


def draw_pairs(count: int, seed: int, changed="key", text_length=TEXT_LENGTH, index=3) -> Pairs:
    """Pairs whose answer the induction circuit decides: a text, then its first `index` tokens.

    changed="key": the first occurrence of the last token becomes a token that occurs nowhere else.
    Previous-token head and induction head decide. changed="query": the last token becomes another
    token of the text; only the induction head decides, because keys stay.
    """
    words = draw_distinct_tokens(VOCABULARY, text_length + 2, count, seed, FIRST_WORD)
    first, text, other = words[:, :1], words[:, 1:-1], words[:, -1]
    clean = torch.cat((torch.full((count, 1), START), first, text, text[:, :index]), dim=1)
    corrupted = clean.clone()
    last = clean.shape[1] - 1
    important = {INDUCTION: last}
    if changed == "key":
        position = 1 + index  # START, first, text[0], …, text[index - 1]
        corrupted[:, position] = other
        important[PREVIOUS_HEAD] = position + 1
    elif changed == "query":
        position = last
        corrupted[:, position] = text[:, index]
    else:
        raise ValueError(f'"key" or "query", not "{changed}"')
    return Pairs(clean, corrupted, text[:, index], text[:, index + 1], position, important)


def compute_logits(model, tokens: torch.Tensor) -> torch.Tensor:
    """Logits (B, T, VOCABULARY) of both families."""
    if isinstance(model, transformers.PreTrainedModel):
        return model(input_ids=tokens).logits
    return model.logits(tokens)


def compute_losses(model, batch: Batch) -> torch.Tensor:
    """Losses per token (B, T) in nats; NaN where there is no target."""
    logits = compute_logits(model, batch.tokens)
    losses = cross_entropy(
        logits.transpose(1, 2), batch.targets, reduction="none", ignore_index=NO_TARGET
    )
    return losses.masked_fill(~batch.has_target, torch.nan)


def compute_named_losses(model, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """The same for a mapping: the objective of `measure_head_importance`."""
    return compute_losses(model, Batch(**batch))


def find_output_projection(model, layer: int) -> torch.nn.Module:
    """The linear map after the heads of a layer."""
    attention = find_attention(model)[layer]
    return attention.c_proj if hasattr(attention, "c_proj") else attention.output


def zero_columns(model, heads: Iterable[Head]) -> torch.nn.Module:
    """A copy in which the output projection ignores some heads: the definition of zeroing them."""
    changed = copy.deepcopy(model)
    with torch.no_grad():
        for layer, head in heads:
            projection = find_output_projection(changed, layer)
            columns = slice(head * HEAD_WIDTH, (head + 1) * HEAD_WIDTH)
            if isinstance(projection, torch.nn.Linear):
                projection.weight[:, columns] = 0
            else:  # Conv1D of GPT-2 has the shape (input, output)
                projection.weight[columns] = 0
    return changed


@contextmanager
def change_head_outputs(model, changes):
    """Change what heads write, by hooks on the output projections; for comparison with the API.

    `changes`: head → function of the head output (B, T, D).
    """
    handles = []
    for layer in range(LAYERS):

        def change(_, inputs, layer=layer):
            outputs = inputs[0].unflatten(-1, (HEADS, HEAD_WIDTH)).clone()
            for (changed_layer, head), function in changes.items():
                if changed_layer == layer:
                    outputs[:, :, head] = function(outputs[:, :, head])
            return (outputs.flatten(2), *inputs[1:])

        handles.append(find_output_projection(model, layer).register_forward_pre_hook(change))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def build_tokenizer() -> transformers.PreTrainedTokenizerFast:
    """The tokenizer of the vocabulary: words between spaces, e.g. "<start> a b c a b"."""
    vocabulary = {word: index for index, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<start>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<start>", bos_token="<start>"
    )


def format_tokens(tokens: torch.Tensor) -> str:
    """The text of a sequence for `build_tokenizer`."""
    return " ".join(WORDS[token] for token in tokens.tolist())
