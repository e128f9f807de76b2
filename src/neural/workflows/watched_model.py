"""Models of others for `neural watch`: load them with their tokenizer, from any of these targets.

    gpt2-folder/                 config.json, weights and tokenizer of Hugging Face
    openai-community/gpt2        the same on the hub, if the network allows it
    package.module:function      a function that returns a model, or (model, tokenizer)
    model.pt2                    a program of torch.export
    model.pt, model.safetensors  a state dict, with `build`: a function that returns the model

Nothing of a target is executed except a function that the user names: weights are read without
pickle, and remote code of the hub stays off.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.errors import TaskError
from neural.core.names import find_closest
from neural.nn.lazy_torch import torch

if TYPE_CHECKING:
    from torch import nn

FUNCTION_TARGET = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
HUB_NAME = re.compile(r"^[\w.-]+(/[\w.-]+)?$")
STATE_SUFFIXES = (".pt", ".pth", ".bin", ".safetensors")
STATE_KEYS = ("model", "state_dict", "model_state_dict", "module")
"""Keys under which checkpoints of other programs hold the state dict."""
STEP_IN_NAME = re.compile(r"(\d+)(?!.*\d)")
"""The last number of a name: `checkpoint-500` → 500."""

TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
)
IMAGE_FILES = ("preprocessor_config.json",)


class TargetError(TaskError):
    """A target of `neural watch` cannot be loaded; the message says why and what to do."""


@dataclass(frozen=True)
class WatchedModel:
    """A model in evaluation mode, with what its inputs need."""

    name: str
    model: nn.Module
    tokenizer: Any = None
    """A tokenizer of Hugging Face, or None."""
    image_processor: Any = None
    """An image processor of Hugging Face, or None."""
    source: str = ""
    """Where the weights come from, for people."""

    @property
    def config(self) -> Any:
        """The configuration of a Hugging Face model, or None."""
        return getattr(self.model, "config", None)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the model reads two sequences."""
        return bool(getattr(self.config, "is_encoder_decoder", False))


def load_watched_model(
    target: str, *, build: str | None = None, implementation: str | None = None
) -> WatchedModel:
    """Load a target; TargetError if it cannot be loaded.

    `build` names a function that returns the model of a state dict. `implementation` is the
    `attn_implementation` of Hugging Face.
    """
    path = Path(target)
    if path.suffix.lower() in STATE_SUFFIXES and (path.is_file() or build):
        return _load_state_dict(path, build)
    if build is not None:
        raise TargetError(f"--build is for state dicts ({', '.join(STATE_SUFFIXES)}), not {target}")
    if path.suffix == ".pt2":
        return _load_exported(path)
    if path.is_dir() or (HUB_NAME.match(target) and not path.exists() and ":" not in target):
        return _load_hugging_face(target, implementation)
    if FUNCTION_TARGET.match(target):
        return _call_builder(target)
    raise TargetError(
        f"{target}: there is no such file or folder. A target is a folder of Hugging Face, a name "
        "on its hub, package.module:function, a .pt2 file, or a run"
    )


def find_step(target: str, position: int) -> int:
    """The training step in the name of a checkpoint, `checkpoint-500`; else its position."""
    match = STEP_IN_NAME.search(Path(target).stem if Path(target).is_file() else Path(target).name)
    return int(match.group(1)) if match else position


def call_function(name: str) -> Any:
    """Call `package.module:function`; modules of the current folder can be imported, too."""
    module_name, _, function_name = name.partition(":")
    if not FUNCTION_TARGET.match(name):
        raise TargetError(f"`{name}` is not of the form package.module:function")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise TargetError(
            f"{name}: {error}; run the command where `{module_name}` can be imported"
        ) from None
    function = getattr(module, function_name, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        guess = find_closest(function_name, names)
        hint = f"; did you mean `{guess}`?" if guess else ""
        raise TargetError(f"{name}: {module_name} has no function `{function_name}`{hint}")
    return function()


def _call_builder(name: str) -> WatchedModel:
    result = call_function(name)
    model, tokenizer = result if isinstance(result, tuple) else (result, None)
    return WatchedModel(
        type(model).__name__, _check_module(name, model).eval(), tokenizer, source=name
    )


def _check_module(name: str, model: Any) -> nn.Module:
    if not isinstance(model, torch.nn.Module):
        raise TargetError(f"{name} returned {type(model).__name__}, not a torch.nn.Module")
    return model


def _load_state_dict(path: Path, build: str | None) -> WatchedModel:
    if build is None:
        raise TargetError(
            f"{path} has weights but no model: name the function that builds it, "
            "--build package.module:function"
        )
    if not path.is_file():
        raise TargetError(f"{path}: there is no such file")
    result = call_function(build)
    model, tokenizer = result if isinstance(result, tuple) else (result, None)
    model = _check_module(build, model)
    try:
        if path.suffix == ".safetensors":
            from safetensors.torch import load_file

            state = load_file(path)
        else:
            state = torch.load(path, map_location="cpu", weights_only=True)
        for key in STATE_KEYS:
            inner = state.get(key)
            if isinstance(inner, dict):
                state = inner
                break
        model.load_state_dict(state)
    except Exception as error:  # torch, safetensors and pickle raise many kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise TargetError(
            f"{path} cannot be loaded into {type(model).__name__}: {reason}"
        ) from None
    return WatchedModel(type(model).__name__, model.eval(), tokenizer, source=str(path.name))


def _load_exported(path: Path) -> WatchedModel:
    if not path.is_file():
        raise TargetError(f"{path}: there is no such file")
    try:
        module = torch.export.load(path).module()
    except Exception as error:
        raise TargetError(f"{path} is no program of torch.export: {error}") from None
    return WatchedModel(path.stem, module, source=path.name)


def _load_hugging_face(target: str, implementation: str | None) -> WatchedModel:
    try:
        import transformers
    except ImportError:
        raise TargetError("models of Hugging Face need: pip install transformers") from None
    folder = Path(target)
    is_folder = folder.is_dir()
    if is_folder and not (folder / "config.json").is_file():
        adapters = (
            " (an adapter: merge it into its base model first)"
            * (folder / "adapter_config.json").is_file()
        )
        raise TargetError(f"{target} has no config.json: it is no model of Hugging Face{adapters}")
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(target, local_files_only=is_folder)
        options = {} if implementation is None else {"attn_implementation": implementation}
        model = _find_model_class(config).from_pretrained(
            target, config=config, local_files_only=is_folder, dtype="auto", **options
        )
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        raise TargetError(_explain_loading_error(target, is_folder, error)) from None
    finally:
        transformers.logging.set_verbosity(verbosity)
        transformers.logging.enable_progress_bar()
    return WatchedModel(
        folder.resolve().name if is_folder else target,
        model.eval(),
        _load_optional(transformers.AutoTokenizer, target, is_folder, TOKENIZER_FILES),
        _load_optional(transformers.AutoImageProcessor, target, is_folder, IMAGE_FILES),
        source=f"{type(model).__name__} of {folder.name if is_folder else target}",
    )


def _find_model_class(config: Any) -> Any:
    """The class that wrote the checkpoint, such as GPT2LMHeadModel; else the bare model."""
    import transformers

    for name in config.architectures or ():
        if hasattr(transformers, name):
            return getattr(transformers, name)
    return transformers.AutoModel


def _load_optional(
    auto_class: Any, target: str, is_folder: bool, files: tuple[str, ...]
) -> Any | None:
    """Tokenizer or image processor of a model; None if it has none."""
    if is_folder and not any((Path(target) / file).exists() for file in files):
        return None
    try:
        return auto_class.from_pretrained(target, local_files_only=is_folder)
    except Exception:  # an incomplete tokenizer is as good as none: the input says what is missing
        return None


def _explain_loading_error(target: str, is_folder: bool, error: Exception) -> str:
    """A message with a way out for the usual causes."""
    text = str(error)
    first_line = next(iter(text.splitlines()), type(error).__name__)
    if is_folder:
        try:
            json.loads((Path(target) / "config.json").read_text(encoding="utf-8"))
        except ValueError:
            return f"{target}/config.json is not JSON"
        return f"{target} cannot be loaded: {first_line}"
    if re.search(r"gated|401|403|authoriz|private", text, re.IGNORECASE):
        return f"{target}: the model is gated or private; log in with `hf auth login` first"
    if re.search(
        r"connect|offline|resolve|network|timed? ?out|couldn't reach|cached files",
        text,
        re.IGNORECASE,
    ):
        return (
            f"{target}: there is no such folder, and the hub of Hugging Face cannot be reached; "
            "download the model elsewhere (`hf download`) and give its folder"
        )
    if re.search(
        r"404|not a valid model identifier|not found|is not a local folder", text, re.IGNORECASE
    ):
        return f"{target}: there is no such folder, and no such model on the hub of Hugging Face"
    return f"{target} cannot be loaded: {first_line}"
