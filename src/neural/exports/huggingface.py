"""A Hugging Face folder: config.json, model.safetensors, and the code of the network, for `from_pretrained`."""

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

from neural.export import Export
from neural.export_inputs import CannotExport, Leaving, with_masks
from neural.exports._huggingface_code import (
    AUTO_CLASSES,
    given_name,
    head_kind,
    label_config,
    modeling_file,
    network_file,
    tokenizer_files,
    writes_text,
)
from neural.exports._traced import quiet
from neural.modules.late import late, torch
from neural.modules.source.symbols import CannotCompile

if TYPE_CHECKING:
    from torch import Tensor

safetensors = late("safetensors.torch")
PACKAGE = "neural_exported_folder"


class Huggingface(Export):
    """The network's own source and weights; transformers is needed to load it, not to write it."""

    tolerance: ClassVar[float] = 1e-5

    def adapt(self, leaving: Leaving) -> Leaving:
        """Scores go out, and masks come in, whatever was asked for."""
        return replace(with_masks(leaving), scores=True)

    def input_names(self, leaving: Leaving) -> list[str]:
        """As Hugging Face calls them."""
        return [given_name(leaving, one.name) for one in leaving.inputs]

    def output_name(self, leaving: Leaving) -> str:
        """Scores before the last activation."""
        return "logits"

    def check(self, leaving: Leaving) -> None:
        """The source of every layer must be there to be written."""
        try:
            network_file(leaving)
        except CannotCompile as problem:
            raise CannotExport(f"{leaving.name} cannot be written as Python: {problem}") from problem

    def write(self, leaving: Leaving, path: Path) -> None:
        """The files; for a network of characters, a tokenizer too."""
        path.mkdir()
        source, maker = network_file(leaving)
        kind = head_kind(leaving)
        classes = ["AutoModel", *([AUTO_CLASSES[kind]] if kind in AUTO_CLASSES else [])]
        config = {
            "model_type": "neural", "architectures": ["NeuralModel"], "torch_dtype": "float32",
            "auto_map": {"AutoConfig": "modeling.NeuralConfig", **dict.fromkeys(classes, "modeling.NeuralModel")},
            **({"vocab_size": leaving.inputs[0].ids} if leaving.inputs[0].ids else {}),
            **({"is_decoder": True, "use_cache": False} if writes_text(leaving) else {}),
            **label_config(leaving), **leaving.facts,
        }  # fmt: skip
        documents = {"config.json": config, **tokenizer_files(leaving)}
        if writes_text(leaving):
            documents["generation_config.json"] = {"use_cache": False, "do_sample": True}
        for name, document in documents.items():
            (path / name).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        (path / "network.py").write_text(source, encoding="utf-8")
        (path / "modeling.py").write_text(modeling_file(leaving, maker), encoding="utf-8")
        weights = {f"network.{name}": one.contiguous() for name, one in leaving.model.state_dict().items()}
        safetensors.save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
        (path / "README.md").write_text(f"# {leaving.name}\n\n```python\n{self.use(leaving, path)}\n```\n", "utf-8")

    def read(self, leaving: Leaving, path: Path) -> Callable[..., Tensor]:
        """By the class in the folder; without transformers, by the network's source and the weights alone."""
        with quiet(), _package(path):
            if find_spec("transformers") is not None:
                late("transformers.utils.logging").disable_progress_bar()
                model: Any = importlib.import_module(f"{PACKAGE}.modeling").NeuralModel.from_pretrained(path).eval()
                scores = self._asked(leaving, model)
            else:
                network: Any = getattr(importlib.import_module(f"{PACKAGE}.network"), network_file(leaving)[1])()
                weights = safetensors.load_file(path / "model.safetensors")
                network.load_state_dict({name.removeprefix("network."): one for name, one in weights.items()})
                scores = network.eval().scores

        def called(*inputs: Tensor) -> Tensor:
            with torch.no_grad():
                logits: Tensor = scores(*inputs)
                return logits

        return called

    def _asked(self, leaving: Leaving, model: Any) -> Callable[..., Tensor]:
        names = self.input_names(leaving)
        return lambda *inputs: model(**dict(zip(names, inputs, strict=True))).logits

    def use(self, leaving: Leaving, path: Path) -> str:
        """A line of Python."""
        kind = AUTO_CLASSES.get(head_kind(leaving), "AutoModel")
        return f'transformers.{kind}.from_pretrained("{path.name}", trust_remote_code=True)'


@contextmanager
def _package(path: Path) -> Iterator[None]:
    """The folder as a package to import from; it leaves no trace, in it or here."""
    spec = ModuleSpec(PACKAGE, None, is_package=True)
    spec.submodule_search_locations = [str(path)]
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    sys.modules[PACKAGE] = module_from_spec(spec)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        for name in [one for one in sys.modules if one.partition(".")[0] == PACKAGE]:
            del sys.modules[name]
