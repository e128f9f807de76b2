"""A Hugging Face folder: config.json, model.safetensors, and the code of the network, for `from_pretrained`."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from neural.export import Export
from neural.export_inputs import Leaving
from neural.exports._huggingface_code import given_name, modeling_file, network_file, tokenizer_files, writes_text
from neural.exports._traced import quiet
from neural.modules.late import late, torch

if TYPE_CHECKING:
    from torch import Tensor

safetensors = late("safetensors.torch")
PACKAGE = "neural_exported_folder"


class Huggingface(Export):
    """The network's own source and weights; transformers is needed to load it, not to write it."""

    tolerance: ClassVar[float] = 1e-5

    def write(self, leaving: Leaving, path: Path) -> None:
        """The files; for a network of characters, a tokenizer too."""
        path.mkdir()
        source, maker = network_file(leaving)
        classes = ["AutoModel", *(["AutoModelForCausalLM"] if writes_text(leaving) else [])]
        config = {
            "model_type": "neural", "architectures": ["NeuralModel"], "torch_dtype": "float32",
            "auto_map": {"AutoConfig": "modeling.NeuralConfig", **dict.fromkeys(classes, "modeling.NeuralModel")},
            **({"vocab_size": leaving.inputs[0].ids} if leaving.inputs[0].ids else {}),
            **({"is_decoder": True, "use_cache": False} if writes_text(leaving) else {}),
            **leaving.facts,
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
                found: Tensor = scores(*inputs)
                head = getattr(leaving.model, "head", None) or torch.nn.Softmax(dim=-1)
                return found if leaving.scores else head(found)

        return called

    def _asked(self, leaving: Leaving, model: Any) -> Callable[..., Tensor]:
        names = [given_name(leaving, one.name) for one in leaving.inputs]
        return lambda *inputs: model(**dict(zip(names, inputs, strict=True))).logits

    def use(self, leaving: Leaving, path: Path) -> str:
        """A line of Python."""
        kind = "AutoModelForCausalLM" if writes_text(leaving) else "AutoModel"
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
