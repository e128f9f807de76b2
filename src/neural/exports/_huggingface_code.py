"""Files of a Hugging Face folder that say what the network is: its source, and the class that transformers loads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from neural.export_inputs import Leaving
from neural.modules.build import Built
from neural.modules.export import WrittenModule, write_module, write_network
from neural.modules.segmenter import Segmenter
from neural.modules.source.bundle import Bundle

MODELING = '''"""{name} for transformers of Hugging Face; the network is in network.py. Written by `neural export`."""

from __future__ import annotations

from transformers import {imports}
from transformers.modeling_outputs import {output}

from .network import {maker}


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

    def forward(self, {arguments}, **_: object) -> {output}:
        """`logits` are the scores before the last activation; a mask is 1 where a sequence is real."""
        return {output}(logits=self.network.scores({passed}))
'''
NAMES = {"mask": "attention_mask", "source": "input_ids", "target": "decoder_input_ids",
         "target_mask": "decoder_attention_mask"}  # fmt: skip
"""What Hugging Face calls our inputs."""


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


def modeling_file(leaving: Leaving, maker: str) -> str:
    """The class that `from_pretrained` makes."""
    writes, two = writes_text(leaving), any(one.name == "target" for one in leaving.inputs)
    inputs = [given_name(leaving, name) for name in (("source", "target") if two else ("x",))]
    masks = [NAMES[name] for name in (("mask", "target_mask") if two else ("mask",))]
    return MODELING.format(
        name=leaving.name, maker=maker, first=inputs[0],
        imports="GenerationMixin, PretrainedConfig, PreTrainedModel" if writes else "PretrainedConfig, PreTrainedModel",
        bases="PreTrainedModel, GenerationMixin" if writes else "PreTrainedModel",
        output="CausalLMOutput" if writes else "SequenceClassifierOutput",
        about="A network that says what comes next." if writes else "A trained network.",
        arguments=", ".join([*(f"{one}: object" for one in inputs), *(f"{one}: object = None" for one in masks)]),
        passed=", ".join([*inputs, *masks]),
    )  # fmt: skip


def given_name(leaving: Leaving, name: str) -> str:
    """What Hugging Face calls an input of ours."""
    return NAMES.get(name) or ("input_ids" if leaving.inputs[0].ids else "inputs")


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
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False},
    }  # fmt: skip
