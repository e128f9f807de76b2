"""A Hugging Face folder for `from_pretrained`: config, safetensors weights, source code.

An ExportBundle (neural.workflows.export_bundle) is a trained model with its inputs and metadata.
The model is a NetworkModule, built from a `.neural` program, or a Segmenter
(neural.tasks.segmentation). The folder contains network.py, the network's source code, which needs
torch alone, and modeling.py, a `PreTrainedModel` around it. The factory is the class or function of
network.py that creates the network.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neural.core.names import to_snake_case
from neural.exports._tracing import suppress_export_logs
from neural.nn.build import NetworkModule
from neural.nn.lazy_torch import lazy_import, torch
from neural.nn.multi_head_attention import MultiHeadAttentionModule
from neural.nn.source_export.bundle import SourceBundle
from neural.nn.source_export.standalone_file import ModuleSource, write_module, write_network
from neural.nn.source_export.symbols import SourceExportError
from neural.tasks.segmentation.model import Segmenter
from neural.workflows.export import Exporter
from neural.workflows.export_bundle import ExportBundle, ExportError, add_masks

if TYPE_CHECKING:
    from torch import Tensor

safetensors = lazy_import("safetensors.torch")
PACKAGE = "neural_exported_folder"
"""Package name under which `read` imports an exported folder, to compare its outputs with ours."""
MASK_NAMES = {"mask": "attention_mask", "target_mask": "decoder_attention_mask"}
"""Hugging Face's names of our masks."""
OUTPUT_CLASSES = {
    "causal_lm": "CausalLMOutput",
    "seq2seq": "Seq2SeqLMOutput",
    "tokens": "TokenClassifierOutput",
    "sequence": "SequenceClassifierOutput",
}
"""Output class of transformers, by `output_kind`."""
AUTO_CLASSES = {
    "causal_lm": "AutoModelForCausalLM",
    "tokens": "AutoModelForTokenClassification",
    "sequence": "AutoModelForSequenceClassification",
}
"""Class of transformers that loads the folder, besides `AutoModel`, by `output_kind`."""
PROBLEM_TYPES = {
    "mse": "regression",
    "mae": "regression",
    "binary_crossentropy": "multi_label_classification",
}
"""`problem_type` of config.json, by the name of the loss in the program."""


class Huggingface(Exporter):
    """A folder for `from_pretrained`: the network's source, weights, and a tokenizer."""

    aliases: ClassVar[tuple[str, ...]] = ("hf", "hugging_face", "transformers")
    max_output_difference: ClassVar[float] = 1e-5

    def adapt(self, bundle: ExportBundle) -> ExportBundle:
        """The bundle with logits as output and masks as inputs, as in models of transformers."""
        return replace(add_masks(bundle), return_logits=True)

    def input_names(self, bundle: ExportBundle) -> list[str]:
        """Hugging Face's names of the inputs."""
        return [huggingface_name(bundle, spec.name) for spec in bundle.inputs]

    def output_name(self, bundle: ExportBundle) -> str:
        """`logits`, before the last activation."""
        return "logits"

    def __init__(self) -> None:
        self._network_file: tuple[ExportBundle, ModuleSource] | None = None
        """The last bundle and its network.py, which `check`, `write` and `read` need."""

    def _write_network(self, bundle: ExportBundle) -> ModuleSource:
        """Source of network.py; written once per bundle."""
        if self._network_file is None or self._network_file[0] is not bundle:
            self._network_file = bundle, network_file(bundle)
        return self._network_file[1]

    def check(self, bundle: ExportBundle) -> None:
        """Refuse a network if the source of one of its layers is not available."""
        try:
            self._write_network(bundle)
        except SourceExportError as error:
            raise ExportError(f"{bundle.name} cannot be written as Python: {error}") from error

    def write(self, bundle: ExportBundle, path: Path) -> None:
        """Write the folder, with a tokenizer if the network was trained on characters."""
        path.mkdir()
        source, factory = self._write_network(bundle)
        kind = output_kind(bundle)
        classes = ["AutoModel", *([AUTO_CLASSES[kind]] if kind in AUTO_CLASSES else [])]
        vocab_size = bundle.inputs[0].vocab_size
        config = {
            "model_type": "neural",
            "architectures": ["NeuralModel"],
            "torch_dtype": "float32",
            "auto_map": {
                "AutoConfig": "modeling.NeuralConfig",
                **dict.fromkeys(classes, "modeling.NeuralModel"),
            },
            **({"vocab_size": vocab_size} if vocab_size else {}),
            **({"is_decoder": True, "use_cache": False} if is_causal_lm(bundle) else {}),
            **label_config(bundle),
            **bundle.metadata,
        }
        documents = {"config.json": config, **tokenizer_files(bundle)}
        if is_causal_lm(bundle):
            documents["generation_config.json"] = {"use_cache": False, "do_sample": True}
        for name, document in documents.items():
            (path / name).write_text(
                json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
            )
        (path / "network.py").write_text(source, encoding="utf-8")
        (path / "modeling.py").write_text(modeling_file(bundle, factory), encoding="utf-8")
        weights = {
            f"network.{name}": tensor.contiguous()
            for name, tensor in bundle.model.state_dict().items()
        }
        safetensors.save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
        (path / "README.md").write_text(
            f"# {bundle.name}\n\n```python\n{self.describe_usage(bundle, path)}\n```\n", "utf-8"
        )

    def read(self, bundle: ExportBundle, path: Path) -> Callable[..., Tensor]:
        """Load the folder with transformers or, if that is not installed, with torch alone."""
        with suppress_export_logs(), _import_folder(path):
            if find_spec("transformers") is not None:
                lazy_import("transformers.utils.logging").disable_progress_bar()
                modeling = importlib.import_module(f"{PACKAGE}.modeling")
                model: Any = modeling.NeuralModel.from_pretrained(path).eval()
                compute_logits = self._pass_by_name(bundle, model)
            else:
                network_source = importlib.import_module(f"{PACKAGE}.network")
                factory_name = self._write_network(bundle)[1]
                network: Any = getattr(network_source, factory_name)()
                weights = safetensors.load_file(path / "model.safetensors")
                network.load_state_dict(
                    {name.removeprefix("network."): tensor for name, tensor in weights.items()}
                )
                compute_logits = network.eval().logits

        def run(*inputs: Tensor) -> Tensor:
            with torch.no_grad():
                logits: Tensor = compute_logits(*inputs)
                return logits

        return run

    def _pass_by_name(self, bundle: ExportBundle, model: Any) -> Callable[..., Tensor]:
        """A function from positional inputs to logits; the model gets them as keyword arguments."""
        names = self.input_names(bundle)
        return lambda *inputs: model(**dict(zip(names, inputs, strict=True))).logits

    def describe_usage(self, bundle: ExportBundle, path: Path) -> str:
        """A line of Python that loads the folder."""
        auto_class = AUTO_CLASSES.get(output_kind(bundle), "AutoModel")
        return f'transformers.{auto_class}.from_pretrained("{path.name}", trust_remote_code=True)'


@contextmanager
def _import_folder(path: Path) -> Iterator[None]:
    """Make a folder importable as PACKAGE inside the block; leaves no bytecode and no modules."""
    spec = ModuleSpec(PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [str(path)]
    saved_flag, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.modules[PACKAGE] = module_from_spec(spec)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = saved_flag
        for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
            del sys.modules[name]


def huggingface_name(bundle: ExportBundle, name: str) -> str:
    """Hugging Face's name of an input of ours."""
    if name in MASK_NAMES:
        return MASK_NAMES[name]
    base = "input_ids" if bundle.inputs[0].vocab_size else "inputs"
    return f"decoder_{base}" if name == "target" else base


def output_kind(bundle: ExportBundle) -> str:
    """What the output layer predicts: `causal_lm`, `seq2seq`, `tokens` or `sequence`.

    `tokens` is one prediction per position, `sequence` one per example.
    """
    if is_causal_lm(bundle):
        return "causal_lm"
    if bundle.has_target:
        return "seq2seq"
    model = bundle.model
    per_position = not isinstance(model, NetworkModule) or len(model.network.output) > 1
    return "tokens" if per_position else "sequence"


def is_causal_lm(bundle: ExportBundle) -> bool:
    """Whether the network predicts the next token at every position."""
    model = bundle.model
    if (
        not isinstance(model, NetworkModule)
        or model.network.is_encoder_decoder
        or not model.network.takes_token_ids
    ):
        return False
    output = model.network.output
    return len(output) == 2 and output[-1] == bundle.inputs[0].vocab_size


def label_config(bundle: ExportBundle) -> dict[str, Any]:
    """Entries of config.json about the labels of a classifier or a regression."""
    if output_kind(bundle) not in ("tokens", "sequence"):
        return {}
    labels, model = bundle.metadata.get("labels"), bundle.model
    if isinstance(labels, list):
        names = {str(number): str(label) for number, label in enumerate(labels)}
        return {
            "id2label": names,
            "label2id": {label: int(number) for number, label in names.items()},
        }
    if not isinstance(model, NetworkModule):
        return {}
    loss = to_snake_case(type(model.network.loss).__name__)
    default = "single_label_classification" if "crossentropy" in loss else None
    problem_type = PROBLEM_TYPES.get(loss, default)
    num_labels = model.network.output[-1]
    # A size that the program leaves open is a string, its name. transformers refuses a
    # classification with one class.
    if not isinstance(num_labels, int) or (
        num_labels < 2 and problem_type == "single_label_classification"
    ):
        return {}
    return {"num_labels": num_labels, **({"problem_type": problem_type} if problem_type else {})}


def tokenizer_files(bundle: ExportBundle) -> dict[str, Any]:
    """Files of a tokenizer of single characters, if the network was trained on characters."""
    vocabulary = bundle.metadata.get("vocabulary")
    if not isinstance(vocabulary, list) or any(len(token) != 1 for token in vocabulary):
        return {}
    split = {
        "type": "Split",
        "pattern": {"Regex": "[\\s\\S]"},
        "behavior": "Isolated",
        "invert": False,
    }
    return {
        "tokenizer.json": {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": split,
            "post_processor": None,
            "decoder": {"type": "Fuse"},
            "model": {
                "type": "WordLevel",
                "vocab": {token: token_id for token_id, token in enumerate(vocabulary)},
                "unk_token": "<unk>",
            },
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": False,
            "model_input_names": ["input_ids", "attention_mask"],
        },
    }


def network_file(bundle: ExportBundle) -> ModuleSource:
    """Source of network.py, which needs torch alone, and the name of its factory function."""
    if isinstance(bundle.model, NetworkModule):
        return write_network(bundle.model.network)
    docstring = f"{bundle.name}. Written by `neural export`; needs torch alone."
    model: Segmenter = bundle.model
    return write_module(
        model, "segmenter", docstring, lambda source: _segmenter_lines(model, source)
    )


def _segmenter_lines(model: Segmenter, source: SourceBundle) -> Iterator[str]:
    """Body of the factory function of a segmenter; `source` formats objects as Python expressions.

    The positional encoding is left out of the constructor call and assigned as a module: the call
    would need the class that declares it, which is not part of the file.
    """
    call = source.format_expression(model)
    attention: Any = model.attention
    position = None if attention is None else attention.init_args[1].get("position")
    if position is None:
        yield f"model = {call}"
    else:
        yield f"model = {call.replace(f', position={source.format_expression(position)}', '')}"
        # `attention.heads` is the MultiHeadAttentionModule; the name is part of saved weights.
        attribute = "position" if position.is_additive else "heads.position"
        module = attention.position if position.is_additive else attention.heads.position
        yield f"model.attention.{attribute} = {source.format_expression(module)}"
    yield "return model"


MODELING_TEMPLATE = '''"""{name} for Hugging Face transformers. Written by `neural export`.

The network is in network.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import Tensor, nn{functional}
from transformers import {imports}
from transformers.modeling_outputs import {output}

from .network import {factory}
{encoder_layers}

class NeuralConfig(PretrainedConfig):
    """The contents of config.json."""

    model_type = "neural"


class NeuralModel({bases}):
    """{about}"""

    config_class = NeuralConfig
    main_input_name = "{first}"

    def __init__(self, config: NeuralConfig) -> None:
        super().__init__(config)
        self.network = {factory}()
        self.post_init()

    def _init_weights(self, module: object) -> None:
        """The network initializes its own weights."""
{no_cache}
    def forward(
        self,
{arguments}
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        return_dict: bool | None = None,{cache_argument}
    ) -> {output} | tuple[Tensor, ...]:
        """`logits` are the outputs before the last activation; a mask is 1 except at padding.

        {labels_doc}
        `output_attentions=True` gives the weights (batch, heads, queries, keys) of every attention.
        """{cache_check}
        if output_attentions is None:
            output_attentions = self.config.output_attentions
        weights: dict[str, Tensor] = {{}}
        if output_attentions:
            with record_attention(self.network, weights):
                logits = self.network.logits({passed})
        else:
            logits = self.network.logits({passed})
        loss = None if labels is None else self.compute_loss(logits, labels)
        output = {output}(
            loss=loss,
            logits=logits,
{attentions}
        )
        as_dict = self.config.return_dict if return_dict is None else return_dict
        return output if as_dict else output.to_tuple()

    def compute_loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The loss that the network was trained with."""
{loss}


class AttentionRecorder:
    """An attention mechanism that also stores its weights."""

    def __init__(self, mechanism: object, path: str, weights: dict[str, Tensor]) -> None:
        self.mechanism, self.path, self.weights = mechanism, path, weights

    def attend(self, q, k, v, mask, dropout=0.0, extra=None):
        self.weights[self.path] = self.mechanism.weights(q, k, mask, extra)
        return self.mechanism.attend(q, k, v, mask, dropout, extra)


@contextmanager
def record_attention(network: nn.Module, weights: dict[str, Tensor]) -> Iterator[None]:
    """Store the weights of every attention in `weights`, by the path of its module."""
    modules = {{
        path: module for path, module in network.named_modules() if hasattr(module, "mechanism")
    }}
    for path, module in modules.items():
        module.mechanism = AttentionRecorder(module.mechanism, path, weights)
    try:
        yield
    finally:
        for module in modules.values():
            module.mechanism = module.mechanism.mechanism
{select_attentions}'''
SELECT_ATTENTIONS = '''

def select_attentions(kind: str, weights: dict[str, Tensor]) -> tuple[Tensor, ...]:
    """The weights of the encoder, of the decoder's self-attention, or of its cross-attention."""

    def attention_kind(path: str) -> str:
        if path.partition(".")[0] in ENCODER_LAYERS:
            return "encoder"
        return "cross" if path.endswith(".cross.sublayer") else "decoder"

    return tuple(tensor for path, tensor in weights.items() if attention_kind(path) == kind)
'''
"""Only in the file of an encoder-decoder."""
NO_CACHE = """
    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False
"""
"""Tells `generate` not to create a key/value cache."""
CACHE_CHECK = """
        if use_cache:
            raise ValueError("this network has no key/value cache: use_cache=False")"""
"""Refuses a cache: with one, `generate` would pass only the newest token, but the exported network
needs all tokens at every step.
"""


def modeling_file(bundle: ExportBundle, factory: str) -> str:
    """Source of the class that `from_pretrained` loads; `factory` creates the network."""
    kind = output_kind(bundle)
    inputs = [
        huggingface_name(bundle, name)
        for name in (("source", "target") if bundle.has_target else ("x",))
    ]
    masks = [huggingface_name(bundle, spec.name) for spec in bundle.inputs if spec.is_mask]
    loss_lines, is_functional_unused = _loss_lines(bundle, kind)
    arguments = [
        *(f"{name}: Tensor" for name in inputs),
        *(f"{name}: Tensor | None = None" for name in masks),
    ]
    generates = kind == "causal_lm"
    return MODELING_TEMPLATE.format(
        name=bundle.name,
        factory=factory,
        first=inputs[0],
        functional="" if is_functional_unused else "\nfrom torch.nn import functional",
        imports="GenerationMixin, PretrainedConfig, PreTrainedModel"
        if generates
        else "PretrainedConfig, PreTrainedModel",
        bases="PreTrainedModel, GenerationMixin" if generates else "PreTrainedModel",
        output=OUTPUT_CLASSES[kind],
        about="A network that predicts the next token." if generates else "A trained network.",
        arguments="\n".join(f"        {argument}," for argument in arguments),
        passed=", ".join([*inputs, *masks]),
        labels_doc="`labels` are the input ids: they are shifted here, and -100 is ignored."
        if generates
        else "`labels` are the targets of the network.",
        attentions="\n".join(f"            {line}," for line in _attention_lines(kind)),
        select_attentions=SELECT_ATTENTIONS if kind == "seq2seq" else "",
        encoder_layers=_encoder_layers_line(bundle) if kind == "seq2seq" else "",
        loss="\n".join(f"        {line}" for line in loss_lines),
        no_cache=NO_CACHE if generates else "",
        cache_argument="\n        use_cache: bool | None = None," if generates else "",
        cache_check=CACHE_CHECK if generates else "",
    )


def _loss_lines(bundle: ExportBundle, kind: str) -> tuple[list[str], bool]:
    """Body of `compute_loss`, and whether it works without `torch.nn.functional`.

    A Segmenter has no program that names a loss, so its lines call cross-entropy.
    """
    model = bundle.model
    shift = ["logits, labels = logits[:, :-1], labels[:, 1:]"] if kind == "causal_lm" else []
    if isinstance(model, NetworkModule) and model.network.loss is None:
        message = f"{bundle.name} has no loss: its program names none, so it takes no labels"
        return [f'raise ValueError("{message}")'], True
    if isinstance(model, NetworkModule):
        return [*shift, "return self.network.loss(logits, labels)"], True
    arguments = "logits.flatten(0, -2), labels.flatten().long()"
    return [f"return functional.cross_entropy({arguments})"], False


def _attention_lines(kind: str) -> list[str]:
    """Arguments of the output class that hold attention weights."""
    if kind != "seq2seq":
        return ["attentions=tuple(weights.values()) if output_attentions else None"]
    return [
        f'{name}_attentions=select_attentions("{name}", weights) if output_attentions else None'
        for name in ("encoder", "decoder", "cross")
    ]


def _encoder_layers_line(bundle: ExportBundle) -> str:
    """The line `ENCODER_LAYERS = …` of modeling.py: encoder layers that contain attention."""
    model = bundle.model
    layers = [
        placed_layer.name
        for placed_layer in model.network.layers
        if placed_layer.stream == "source"
    ]
    names = [
        name
        for name in layers
        if any(
            isinstance(module, MultiHeadAttentionModule)
            for module in getattr(model, name).modules()
        )
    ]
    return f"\nENCODER_LAYERS = {tuple(names)!r}\n"
