"""Models of others: load them with their tokenizer, from any of these targets.

    gpt2-folder/                 config.json, weights and tokenizer of Hugging Face
    openai-community/gpt2        the same on the hub, if the network allows it
    llama.gguf                   weights of llama.cpp; transformers reads them, with the package gguf
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
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neural.core.errors import TaskError
from neural.core.files import format_missing_file, is_device, suggest_file
from neural.core.names import find_closest
from neural.nn.lazy_torch import suppress_export_logs, torch

if TYPE_CHECKING:
    from torch import nn

FUNCTION_TARGET = re.compile(r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
HUB_NAME = re.compile(r"^[\w.-]+(/[\w.-]+)?$")
HUB_TIMEOUT_SECONDS = 10
STATE_SUFFIXES = (".pt", ".pth", ".bin", ".safetensors")
STATE_KEYS = ("model", "state_dict", "model_state_dict", "module")
"""Keys under which checkpoints of other programs hold the state dict."""
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
)
HEAD_WEIGHT = re.compile(
    r"(\w*pooler|lm_head|\w*classifier|cls|score|qa_outputs|\w*_head|predictions|final_logits_bias)\b"
)
"""Weights after the last layer, which checkpoints of other tasks do not have."""
EMPTY_FOLDER_NAME = re.compile(
    r"(model|checkpoint|ckpt|output|outputs|final|best|last|weights|saved)?([-_]?\d+)?",
    re.IGNORECASE,
)
"""Names of folders that do not say which model they hold."""
IMAGE_FILES = ("preprocessor_config.json",)


class TargetError(TaskError):
    """A target of `neural watch` cannot be loaded; the message says why and what to do."""


def load_foreign_model(
    target: str, *, build: str | None = None, implementation: str | None = None
) -> dict[str, Any]:
    """Load a target: the fields of a Subject. TargetError if it cannot be loaded.

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
    if path.suffix.lower() == ".gguf":
        return _load_gguf(path, implementation)
    # `./model` and `../model` are folders, never names on the hub
    is_hub_name = HUB_NAME.match(target) and not target.startswith((".", "/"))
    if path.is_dir() or (is_hub_name and not path.exists() and ":" not in target):
        return _load_hugging_face(target, implementation)
    if FUNCTION_TARGET.match(target):
        return _build_model(target)
    raise TargetError(
        f"{target}: there is no such file or folder{_suggest_file(target)}. A target is a folder of "
        "Hugging Face, a name on its hub, package.module:function, a .pt2 file, a .gguf file, or a run"
    )


def _suggest_file(target: str) -> str:
    """` (did you mean …?)` if a file or folder has a similar name, else nothing."""
    suggestion = None if Path(target).exists() else suggest_file(Path(target))
    return f" ({suggestion})" if suggestion else ""


def find_first_line(error: BaseException) -> str:
    """The first line of an error that says something."""
    lines = (line.strip() for line in str(error).splitlines())
    return next((line for line in lines if line), type(error).__name__)


def import_function(name: str) -> Any:
    """`package.module:function`; modules of the current folder can be imported, too."""
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
    except Exception as error:  # the module runs code of its own
        raise TargetError(
            f"{name}: importing {module_name} failed: {type(error).__name__}: "
            f"{find_first_line(error)}"
        ) from error
    function = getattr(module, function_name, None)
    if not callable(function):
        names = [key for key, value in vars(module).items() if callable(value) and key[0] != "_"]
        guess = find_closest(function_name, names)
        hint = f"; did you mean `{guess}`?" if guess else ""
        raise TargetError(f"{name}: {module_name} has no function `{function_name}`{hint}")
    return function


def call_function(name: str) -> Any:
    """Call `package.module:function`."""
    function = import_function(name)
    try:
        return function()
    except Exception as error:
        raise TargetError(
            f"{name} failed: {type(error).__name__}: {find_first_line(error)}"
        ) from error


def _build_model(name: str) -> dict[str, Any]:
    """What a function of the user returns: a model, or (model, tokenizer)."""
    result = call_function(name)
    model, tokenizer = result if isinstance(result, tuple) else (result, None)
    if not isinstance(model, torch.nn.Module):
        raise TargetError(f"{name} returned {type(model).__name__}, not a torch.nn.Module")
    return {
        "name": type(model).__name__,
        "model": model.eval(),
        "tokenizer": tokenizer,
        "source": name,
    }


def _load_state_dict(path: Path, build: str | None) -> dict[str, Any]:
    if build is None:
        raise TargetError(
            f"{path} has weights but no model: name the function that builds it, "
            "--build package.module:function"
        )
    if not path.is_file():
        raise TargetError(format_missing_file(path))
    built = _build_model(build)
    model = built["model"]
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
        raise TargetError(
            f"{path} cannot be loaded into {type(model).__name__}: {find_first_line(error)}"
        ) from None
    return {**built, "source": path.name}


def _load_exported(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise TargetError(format_missing_file(path))
    try:
        load = torch.export.load  # the import of torch.export sets the levels of its logs
        # torch logs the traceback of a damaged file, and refers to it in its error
        with suppress_export_logs():
            module = load(path).module()
    except Exception as error:
        reason, _, _ = find_first_line(error).partition(". Please check the warnings above")
        raise TargetError(
            f"{path} is no program of torch.export: {reason}; write it with torch.export.save"
        ) from None
    return {"name": path.stem, "model": module, "source": path.name}


def _load_hugging_face(target: str, implementation: str | None) -> dict[str, Any]:
    transformers = _import_transformers()
    folder = Path(target)
    is_folder = folder.is_dir()
    if is_folder and not (folder / "config.json").is_file():
        raise TargetError(_explain_missing_config(folder, target))
    if is_folder and (pipe := next(filter(is_device, folder.iterdir()), None)):
        raise TargetError(f"{pipe} is a pipe or a device; transformers would wait for it")
    is_local = is_folder or not _is_hub_reachable()
    options: dict[str, Any] = {"local_files_only": is_local, "trust_remote_code": False}
    try:
        model, loading_info = _read_model(target, implementation, transformers.AutoModel, options)
    except Exception as error:  # torch, safetensors, pickle and the hub raise many kinds
        raise TargetError(_explain_loading_error(target, is_folder, error)) from None
    tokenizer, tokenizer_error = _load_optional(
        transformers.AutoTokenizer, target, TOKENIZER_FILES, options
    )
    image_processor, _ = _load_optional(
        transformers.AutoImageProcessor, target, IMAGE_FILES, options
    )
    # a link keeps the name that the user gave it; `.` and `..` have none
    named = folder if folder.name not in ("", "..") else folder.resolve()
    return {
        "name": named.name if is_folder else target,
        "model": model.eval(),
        "tokenizer": tokenizer,
        "image_processor": image_processor,
        "source": f"{type(model).__name__} of {folder.name if is_folder else target}",
        "notes": _check_missing_weights(target, model, loading_info),
        "title": _make_title(named) if is_folder else "",
        "tokenizer_error": tokenizer_error,
    }


def _load_gguf(path: Path, implementation: str | None) -> dict[str, Any]:
    """A language model of llama.cpp; its quantized weights become 32-bit numbers."""
    if not path.is_file():
        raise TargetError(format_missing_file(path))
    transformers = _import_transformers()
    folder = str(path.parent)
    options = {"gguf_file": path.name, "local_files_only": True, "trust_remote_code": False}
    try:
        model, loading_info = _read_model(
            folder, implementation, transformers.AutoModelForCausalLM, options
        )
    except Exception as error:  # gguf, torch and transformers raise many kinds
        reason = find_first_line(error)
        missing = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
        # transformers reads some architectures without the package gguf
        if missing and (isinstance(error, ImportError) or "pip install" in str(error)):
            raise TargetError(f"{path}: it needs: pip install {' '.join(missing)}") from None
        raise TargetError(f"{path} cannot be loaded by transformers: {reason}") from None
    tokenizer, tokenizer_error = _load_optional(transformers.AutoTokenizer, folder, (), options)
    return {
        "name": path.stem,
        "model": model.eval(),
        "tokenizer": tokenizer,
        "source": f"{type(model).__name__} of {path.name}",
        "notes": _check_missing_weights(str(path), model, loading_info),
        "tokenizer_error": tokenizer_error,
    }


def _read_model(
    target: str, implementation: str | None, default: Any, options: dict[str, Any]
) -> tuple[nn.Module, Any]:
    """A model without a word of transformers, and what it says about missing weights.

    `default` is the class of a model whose configuration names none.
    """
    transformers = _import_transformers()
    chosen = {} if implementation is None else {"attn_implementation": implementation}
    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.logging.disable_progress_bar()
    try:
        config = transformers.AutoConfig.from_pretrained(target, **options)
        return _find_model_class(config, default).from_pretrained(
            target, config=config, dtype="auto", output_loading_info=True, **options, **chosen
        )
    finally:
        transformers.logging.set_verbosity(verbosity)
        transformers.logging.enable_progress_bar()


def _is_hub_reachable() -> bool:
    """Whether the hub of Hugging Face answers one request.

    Its library repeats every request five times, over 23 seconds, before it reports that there is
    no network or reads its cache. Only the cache is read if this request fails.
    """
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    try:
        # the session has the proxy and the offline mode of the library; any status is an answer
        get_session().head(constants.ENDPOINT, timeout=HUB_TIMEOUT_SECONDS)
    except Exception:  # httpx and requests, which older versions use, have their own kinds
        return False
    return True


def _make_title(folder: Path) -> str:
    """The name of a folder; `gpt2, checkpoint-600` if the name alone does not say which model.

    The model is that of config.json: where its weights come from, else its type.
    """
    if not EMPTY_FOLDER_NAME.fullmatch(folder.name):
        return folder.name
    # the file itself: transformers replaces `_name_or_path` by the folder
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    source = re.split(r"[/\\]", str(config.get("_name_or_path") or "").rstrip("/\\"))[-1]
    model = config.get("model_type") if EMPTY_FOLDER_NAME.fullmatch(source) else source
    return f"{model}, {folder.name}" if model else folder.name


def _explain_missing_config(folder: Path, target: str) -> str:
    """Message for a folder without config.json."""
    try:
        adapter = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return (
            f"{target} has no config.json: it is no model of Hugging Face; write one with "
            "model.save_pretrained(folder)"
        )
    base = adapter.get("base_model_name_or_path") if isinstance(adapter, dict) else None
    return (
        f"{target} has no config.json, but an adapter{f' of {base}' if base else ''}: merge it into "
        "its base model (model.merge_and_unload().save_pretrained(folder)) and give that folder, "
        "or return the model with its adapter from package.module:function"
    )


def _check_missing_weights(target: str, model: nn.Module, loading_info: Any) -> tuple[str, ...]:
    """Notes about weights that the checkpoint does not have: transformers draws them at random.

    TargetError if weights of the body are among them: its attention would not be the model's.
    """
    missing = sorted(loading_info.get("missing_keys", ()))
    if not missing:
        return ()
    prefix = f"{getattr(model, 'base_model_prefix', '')}."
    in_body = [name for name in missing if not HEAD_WEIGHT.match(name.removeprefix(prefix))]
    if in_body:
        raise TargetError(
            f"{target}: {len(missing)} weights are missing in the checkpoint, such as "
            f"`{in_body[0]}`: the attention would be that of random weights. Do the weights belong "
            f"to {type(model).__name__}, the class that config.json names?"
        )
    return (
        f"{len(missing)} weights after the last layer are missing in the checkpoint and are "
        f"random, such as `{missing[0]}`; attention does not depend on them",
    )


def _import_transformers() -> Any:
    try:
        import transformers
    except ImportError:
        raise TargetError("models of Hugging Face need: pip install transformers") from None
    return transformers


def _find_model_class(config: Any, default: Any) -> Any:
    """The class that wrote the checkpoint, such as GPT2LMHeadModel; else the default."""
    transformers = _import_transformers()
    for name in config.architectures or ():
        found = getattr(transformers, str(name), None)
        if isinstance(found, type) and issubclass(found, transformers.PreTrainedModel):
            return found
    return default


def _load_optional(
    auto_class: Any, target: str, files: tuple[str, ...], options: dict[str, Any]
) -> tuple[Any | None, str]:
    """Tokenizer or image processor of a model, and why it cannot be read; None if it has none."""
    folder = Path(target)
    if files and folder.is_dir() and not any((folder / file).exists() for file in files):
        return None, ""
    try:
        return auto_class.from_pretrained(target, **options), ""
    except Exception as error:  # the model may still be studied with token ids
        return None, find_first_line(error)


def _explain_loading_error(target: str, is_folder: bool, error: Exception) -> str:
    """A message with a way out for the usual causes."""
    text, first_line = str(error), find_first_line(error)
    if re.search(r"trust_remote_code|custom code", text):
        return (
            f"{target} needs code of its own, which is not executed here; if you trust it, write a "
            "function that returns from_pretrained(…, trust_remote_code=True) and its tokenizer, "
            "and watch package.module:function"
        )
    if re.search(r"model type `.*` but Transformers does not recognize", text):
        found = re.search(r"model type `(.*?)`", text)
        return (
            f"{target}: the installed transformers has no model type `{found and found[1]}`; "
            "update it (pip install -U transformers), or watch package.module:function that builds "
            "the model"
        )
    if re.search(r"attn_implementation|FlashAttention|flash_attn", text):
        return f"{target}: {first_line} Try --attention sdpa or --attention eager"
    if re.search(r"ignore_mismatched_sizes|size mismatch", text):
        return (
            f"{target}: the weights have other sizes than config.json says: they belong to another "
            "model"
        )
    if is_folder:
        return _explain_folder_error(target, error, first_line)
    return _explain_hub_error(target, error, first_line)


def _explain_folder_error(target: str, error: Exception, first_line: str) -> str:
    """Message for a folder that cannot be loaded."""
    try:
        config = json.loads((Path(target) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return (
            f"{target}/config.json is not JSON; write it again with model.save_pretrained(folder)"
        )
    if not isinstance(config, dict) or "model_type" not in config:
        return (
            f"{target}/config.json has no `model_type`: it is no model of Hugging Face, or "
            "config.json is of another program"
        )
    if type(error).__name__ == "UnpicklingError":
        return (
            f"{target}: the pickle of its weights wants to execute code, and is not read; convert "
            "it where you trust it: model.save_pretrained(folder) writes safetensors"
        )
    if type(error).__name__ == "SafetensorError":
        return f"{target}: a file of its weights is damaged or incomplete ({first_line}); copy it again"
    if isinstance(error, FileNotFoundError) or "o such file" in first_line:
        missing = re.search(r"[\w.-]+\.(safetensors|bin)", first_line)
        return f"{target}: the file {missing[0] if missing else 'of its weights'} is missing"
    if "no file named" in first_line:
        return f"{target} has config.json but no weights (model.safetensors or pytorch_model.bin)"
    return f"{target} cannot be loaded: {first_line}"


def _explain_hub_error(target: str, error: Exception, first_line: str) -> str:
    """Message for a name on the hub that cannot be loaded."""
    # transformers wraps the errors of the hub, whose classes say more than their texts
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    text = "\n".join(f"{type(cause).__name__}: {cause}" for cause in causes)
    if re.search(r"GatedRepoError|access a gated repo|\b403 Client", text):
        return (
            f"{target}: the model is gated; ask for access on its page on the hub, then log in "
            "with `hf auth login`"
        )
    if re.search(r"RepositoryNotFound|not a valid model identifier|HFValidationError", text):
        return (
            f"{target}: there is no such folder{_suggest_file(target)}, and no such model on the "
            "hub of Hugging Face; if it is private, log in with `hf auth login`"
        )
    if re.search(r"\bEntryNotFoundError|does not appear to have a file", text):
        return f"{target} has no config.json on the hub: it is no model of transformers"
    if re.search(
        r"connect|offline|network|timed? ?out|couldn't reach|cached files|(50\d|429) (client|server)",
        text,
        re.IGNORECASE,
    ):
        return (
            f"{target}: there is no such folder{_suggest_file(target)}, and the hub of Hugging Face "
            "cannot be reached; download the model elsewhere (`hf download`) and give its folder"
        )
    return f"{target} cannot be loaded: {first_line}"
