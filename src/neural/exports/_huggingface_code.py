"""Files of a Hugging Face folder that say what the network is: its source, and the class that transformers loads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neural.core.names import snake
from neural.export_inputs import Leaving
from neural.modules.build import Built
from neural.modules.export import WrittenModule, write_module, write_network
from neural.modules.heads import Heads
from neural.modules.segmenter import Segmenter
from neural.modules.source.bundle import Bundle

MODELING = '''"""{name} for transformers of Hugging Face; the network is in network.py. Written by `neural export`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn{functional}
from transformers import {imports}
from transformers.modeling_outputs import {output}

from .network import {maker}
{encoder_layers}

class NeuralConfig(PretrainedConfig):
    """What config.json says."""

    model_type = "neural"


class NeuralModel({bases}):
    """{about}"""

    config_class = NeuralConfig
    main_input_name = "{first}"

    def __init__(self, config: NeuralConfig) -> None:
        super().__init__(config)
        self.network = {maker}()
        self.post_init()

    def _init_weights(self, module: object) -> None:
        """Weights begin as the network says, and are loaded."""
{no_cache}
    def forward(
        self,
{arguments}
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,{cache_argument}
    ) -> {output} | tuple[Tensor, ...]:
        """`logits` are the scores before the last activation; a mask is 1 where a sequence is real.

        {labels_doc}
        `output_attentions=True` gives the weights (batch, heads, queries, keys) of every attention.
        """{cache_check}
        if output_attentions is None:
            output_attentions = self.config.output_attentions
        weights: dict[str, Tensor] = {{}}
        if output_attentions:
            with recorded_attention(self.network, weights):
                logits = self.network.scores({passed})
        else:
            logits = self.network.scores({passed})
        loss = None if labels is None else self.judge(logits, labels)
        output = {output}(
            loss=loss,
            logits=logits,
{attentions}
        )
        keep = self.config.return_dict if return_dict is None else return_dict
        return output if keep else output.to_tuple()

    def judge(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss that the network was trained with."""
{judge}


class AttentionRecorder:
    """A mechanism of attention that also keeps its weights."""

    def __init__(self, mechanism: object, path: str, weights: dict[str, Tensor]) -> None:
        self.mechanism, self.path, self.weights = mechanism, path, weights

    def mix(self, q, k, v, mask, dropout=0.0, extra=None):
        self.weights[self.path] = self.mechanism.weights(q, k, mask, extra)
        return self.mechanism.mix(q, k, v, mask, dropout, extra)


@contextmanager
def recorded_attention(network: nn.Module, weights: dict[str, Tensor]) -> Iterator[None]:
    """Put the weights of every attention into `weights`, by the path of its module."""
    modules = {{path: one for path, one in network.named_modules() if hasattr(one, "mechanism")}}
    for path, module in modules.items():
        module.mechanism = AttentionRecorder(module.mechanism, path, weights)
    try:
        yield
    finally:
        for module in modules.values():
            module.mechanism = module.mechanism.mechanism
{attentions_of}'''
NAMES = {"mask": "attention_mask", "target_mask": "decoder_attention_mask"}
"""What Hugging Face calls our masks."""


def network_file(leaving: Leaving) -> WrittenModule:
    """The network's source, which needs torch alone, and the name of what makes it."""
    if isinstance(leaving.model, Built):
        return write_network(leaving.model.network)
    about = f"{leaving.name}. Written by `neural export`; needs torch alone."
    model: Segmenter = leaving.model
    return write_module(model, "segmenter", about, lambda bundle: _segmenter(model, bundle))


def _segmenter(model: Segmenter, bundle: Bundle) -> Iterator[str]:
    """The lines that make one. Its positions are put in as they were built: their declaration is no part of a file."""
    call = bundle.expression(model)
    look: Any = model.attention
    position = None if look is None else look.made_with[1].get("position")
    yield f"model = {call.replace(f', position={bundle.expression(position)}', '')}" if position else f"model = {call}"
    if position is not None:
        where = "position" if position.adds else "heads.position"
        built = look.position if position.adds else look.heads.position
        yield f"model.attention.{where} = {bundle.expression(built)}"
    yield "return model"


OUTPUTS = {
    "causal_lm": "CausalLMOutput",
    "seq2seq": "Seq2SeqLMOutput",
    "tokens": "TokenClassifierOutput",
    "sequence": "SequenceClassifierOutput",
}
"""The class of transformers for what a network gives: by the kind of its head."""
AUTO_CLASSES = {
    "causal_lm": "AutoModelForCausalLM",
    "tokens": "AutoModelForTokenClassification",
    "sequence": "AutoModelForSequenceClassification",
}
"""The class of transformers that loads it, beside `AutoModel`."""


def head_kind(leaving: Leaving) -> str:
    """What the network predicts: the next token, another sequence, something per position, or once."""
    if writes_text(leaving):
        return "causal_lm"
    if leaving.has_target:
        return "seq2seq"
    model = leaving.model
    per_position = not isinstance(model, Built) or len(model.network.output) > 1
    return "tokens" if per_position else "sequence"


def modeling_file(leaving: Leaving, maker: str) -> str:
    """The class that `from_pretrained` makes."""
    kind = head_kind(leaving)
    inputs = [given_name(leaving, name) for name in (("source", "target") if leaving.has_target else ("x",))]
    masks = [given_name(leaving, one.name) for one in leaving.inputs if one.mask]
    judge, own_loss = _judge(leaving, kind)
    arguments = [*(f"{name}: Tensor" for name in inputs), *(f"{name}: Tensor | None = None" for name in masks)]
    writes = kind == "causal_lm"
    return MODELING.format(
        name=leaving.name,
        maker=maker,
        first=inputs[0],
        functional="" if own_loss else "\nfrom torch.nn import functional",
        imports="GenerationMixin, PretrainedConfig, PreTrainedModel" if writes else "PretrainedConfig, PreTrainedModel",
        bases="PreTrainedModel, GenerationMixin" if writes else "PreTrainedModel",
        output=OUTPUTS[kind],
        about="A network that says what comes next." if writes else "A trained network.",
        arguments="\n".join(f"        {one}," for one in arguments),
        passed=", ".join([*inputs, *masks]),
        labels_doc="`labels` are the input's own ids: they are shifted here, and -100 does not count."
        if writes
        else "`labels` are what the network should predict.",
        attentions="\n".join(f"            {line}," for line in _attentions(kind)),
        attentions_of=ATTENTIONS_OF if kind == "seq2seq" else "",
        encoder_layers=_encoder_layers(leaving) if kind == "seq2seq" else "",
        judge="\n".join(f"        {line}" for line in judge),
        no_cache=NO_CACHE if writes else "",
        cache_argument="\n        use_cache: bool | None = None," if writes else "",
        cache_check=CACHE_CHECK if writes else "",
    )


def label_config(leaving: Leaving) -> dict[str, Any]:
    """What config.json says about the labels of a classifier or of a regression."""
    if head_kind(leaving) not in ("tokens", "sequence"):
        return {}
    labels, model = leaving.facts.get("labels"), leaving.model
    if isinstance(labels, list):
        names = {str(number): str(label) for number, label in enumerate(labels)}
        return {"id2label": names, "label2id": {label: int(number) for number, label in names.items()}}
    loss = snake(type(model.network.loss).__name__) if isinstance(model, Built) else ""
    problem = PROBLEMS.get(loss, "single_label_classification" if "crossentropy" in loss else None)
    size = model.network.output[-1] if isinstance(model, Built) else None
    if not isinstance(size, int) or (size < 2 and problem == "single_label_classification"):
        return {}   # an open size is a name; transformers refuses a choice among one
    return {"num_labels": size, **({"problem_type": problem} if problem else {})}


PROBLEMS = {
    "mse": "regression",
    "mae": "regression",
    "binary_crossentropy": "multi_label_classification",
}
NO_CACHE = '''
    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False
'''
CACHE_CHECK = '''
        if use_cache:
            raise ValueError("this network keeps no cache of keys and values: use_cache=False")'''
"""With it, `generate` would pass the newest token alone."""


def _judge(leaving: Leaving, kind: str) -> tuple[list[str], bool]:
    """The lines that compute the loss, and whether it is the program's own."""
    model = leaving.model
    shift = ["logits, labels = logits[:, :-1], labels[:, 1:]"] if kind == "causal_lm" else []
    if isinstance(model, Built) and model.network.loss is None:
        message = f"{leaving.name} has no loss: its program names none, so labels cannot be judged"
        return [f'raise ValueError("{message}")'], True
    if isinstance(model, Built):
        return [*shift, "return self.network.loss(logits, labels)"], True
    flat = "logits.flatten(0, -2), labels.flatten().long()"
    return [f"return functional.cross_entropy({flat})"], False


def _attentions(kind: str) -> list[str]:
    """The fields of the output that hold attention."""
    if kind != "seq2seq":
        return ["attentions=tuple(weights.values()) if output_attentions else None"]
    kinds = ("encoder", "decoder", "cross")
    return [f'{one}_attentions=attentions_of("{one}", weights) if output_attentions else None' for one in kinds]


def _encoder_layers(leaving: Leaving) -> str:
    """A line that names the layers of the encoder that have attention."""
    model = leaving.model
    layers = [placed.name for placed in model.network.layers if placed.stream == "source"]
    names = [name for name in layers if any(isinstance(one, Heads) for one in getattr(model, name).modules())]
    return f"\nENCODER_LAYERS = {tuple(names)!r}\n"


ATTENTIONS_OF = '''

def attentions_of(kind: str, weights: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """The weights of the encoder, of the decoder's own attention, or of its cross-attention."""

    def kind_of(path: str) -> str:
        if path.partition(".")[0] in ENCODER_LAYERS:
            return "encoder"
        return "cross" if path.endswith(".cross.part") else "decoder"

    return tuple(one for path, one in weights.items() if kind_of(path) == kind)
'''


def given_name(leaving: Leaving, name: str) -> str:
    """What Hugging Face calls an input of ours."""
    if name in NAMES:
        return NAMES[name]
    own = "input_ids" if leaving.inputs[0].ids else "inputs"
    return f"decoder_{own}" if name == "target" else own


def writes_text(leaving: Leaving) -> bool:
    """Whether it gives scores of the next token at every place."""
    model = leaving.model
    if not isinstance(model, Built) or model.network.two_streams or not model.network.ids:
        return False
    return len(model.network.output) == 2 and model.network.output[-1] == leaving.inputs[0].ids


def tokenizer_files(leaving: Leaving) -> dict[str, Any]:
    """A tokenizer of single characters, where the network was trained on those."""
    known = leaving.facts.get("vocabulary")
    if not isinstance(known, list) or any(len(one) != 1 for one in known):
        return {}
    split = {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": False}
    return {
        "tokenizer.json": {
            "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
            "pre_tokenizer": split, "post_processor": None, "decoder": {"type": "Fuse"},
            "model": {"type": "WordLevel", "vocab": {one: at for at, one in enumerate(known)}, "unk_token": "<unk>"},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
        },
    }  # fmt: skip
