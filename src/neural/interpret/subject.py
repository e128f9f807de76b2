"""A model under study: `Subject`, and `load_subject` for any target.

    load_subject("novel")                        a run, its best checkpoint; or one of its steps
    load_subject("./gpt2")                       a folder of Hugging Face, or a name on its hub
    load_subject("llama.gguf")                   weights of llama.cpp, which transformers reads
    load_subject("package.module:function")      a function that returns a model, or (model, tokenizer)
    load_subject("model.pt2")                    a program of torch.export
    load_subject("model.safetensors", build="package.module:function")     a state dict
    load_subject(model, tokenizer=tokenizer)     a torch module

    subject.run(ids)                             logits (B, C) after the last position
    for subject in load_series(["checkpoint-100", "checkpoint-200"]): …    one at a time

Its inputs are in inputs.py, images.py and network_inputs.py, its losses in losses.py.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from neural.capture.capture_result import Capture
from neural.capture.residual_stream import AttributionError, find_logits
from neural.capture.tracker import preserve_model_state
from neural.capture.watch import capture_calls, run_model
from neural.core.errors import TaskError
from neural.core.registry import UnknownNameError
from neural.interpret.foreign_models import TargetError, find_first_line, load_foreign_model
from neural.interpret.objectives import ScoredModel
from neural.interpret.tokens import encode_answer, encode_text, label_ids
from neural.nn.build import NetworkModule, accepts_any_length
from neural.nn.lazy_torch import torch
from neural.runs.errors import RunError
from neural.runs.find import DEFAULT_RUNS_DIR, find_run_target
from neural.runs.run import Run
from neural.tasks._text_generator import load_tokenizer
from neural.training.load_model import load_model, load_weights
from neural.training.trained_run import TrainedRunFolder

if TYPE_CHECKING:
    from jaxtyping import Float, Int
    from torch import Tensor, nn

    from neural.interpret.inputs import Inputs
    from neural.tasks.task import Task

LENGTH_KEYS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
"""Names of the longest input in configurations."""
STEP_IN_NAME = re.compile(r"(\d+)(?!.*\d)")
"""The last number of a name: `checkpoint-500` → 500."""
MODEL_ERRORS = (RuntimeError, TypeError, ValueError, IndexError, AttributeError, KeyError)
"""What a model may raise for an input that it cannot read."""
CaptureType = TypeVar("CaptureType", bound=Capture)


@dataclass(frozen=True)
class Subject:
    """A model in evaluation mode, with what its inputs need."""

    name: str
    model: nn.Module
    tokenizer: Any = None
    """A tokenizer of Hugging Face or of `neural`, one with `encode` and `decode`, or None."""
    image_processor: Any = None
    """An image processor of Hugging Face, or None."""
    source: str = ""
    """Where the weights come from, for people."""
    notes: tuple[str, ...] = ()
    """What a reader of the results should know about the weights."""
    title: str = ""
    """Title of pages; `name` if it is empty."""
    tokenizer_error: str = ""
    """Why there is no tokenizer although there should be one."""
    step: int = 0
    """Training step of a checkpoint; 0 for a single model."""
    trained_run: Run | None = None
    """The run whose checkpoint it is."""

    # what the model is

    @property
    def weights(self) -> str:
        """Where the weights come from, with the name of a run."""
        run = self.trained_run
        return self.source if run is None else f"weights of {run.name}, {self.source}"

    @property
    def config(self) -> Any:
        """The configuration of a Hugging Face model, or None."""
        return getattr(self.model, "config", None)

    @property
    def device(self) -> Any:
        """The device of the weights."""
        return next((param.device for param in self.model.parameters()), "cpu")

    @property
    def dtype(self) -> Any:
        """The floating-point type of the weights, the first if there are several; or None."""
        return next((p.dtype for p in self.model.parameters() if p.is_floating_point()), None)

    @property
    def is_score(self) -> bool:
        """Whether the logits are scores (B, 1) and not those of a distribution."""
        return isinstance(self.model, ScoredModel)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether the model reads two sequences."""
        if isinstance(self.model, NetworkModule):
            return self.model.network.is_encoder_decoder
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def input_parameters(self) -> Mapping[str, inspect.Parameter]:
        """The arguments of the model's `forward`."""
        return inspect.signature(self.model.forward).parameters

    @property
    def max_positions(self) -> int | None:
        """Tokens of the longest input; None if the model does not say."""
        if isinstance(self.model, NetworkModule):
            network = self.model.network
            size = None if accepts_any_length(network, "source") else network.input[0]
            return size if isinstance(size, int) else None
        for name in LENGTH_KEYS:
            size = getattr(self.config, name, None)
            if isinstance(size, int) and size > 0:
                return size - self._count_reserved_positions(size)
        return None

    def _count_reserved_positions(self, size: int) -> int:
        """Rows of the position table that no input reaches.

        RoBERTa, CamemBERT, Longformer and others count positions from the index of padding + 1.
        """
        for path, module in self.model.named_modules():
            if path.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
                is_offset = module.num_embeddings == size and module.padding_idx is not None
                return int(module.padding_idx or 0) + 1 if is_offset else 0
        return 0

    @property
    def vocabulary_size(self) -> int | None:
        """Number of token embeddings; None if it is not known."""
        if isinstance(self.model, NetworkModule):
            tables = (m for m in self.model.modules() if isinstance(m, torch.nn.Embedding))
            return max((table.num_embeddings for table in tables), default=None)
        get_embeddings = getattr(self.model, "get_input_embeddings", None)
        try:
            embeddings = get_embeddings() if get_embeddings is not None else None
        except (NotImplementedError, AttributeError, TypeError):  # models without token embeddings
            embeddings = None
        size = getattr(embeddings, "num_embeddings", None)
        size = getattr(self.config, "vocab_size", None) if size is None else size
        return size if isinstance(size, int) else None

    @property
    def class_count(self) -> int | None:
        """Number of logits; None if unknown."""
        if isinstance(self.model, NetworkModule):
            size = self.model.network.output[-1]
        else:
            size = getattr(self.config, "vocab_size", None)
        return size if isinstance(size, int) else None

    @property
    def gives_last_logits(self) -> bool:
        """Whether the model computes logits of the last position only, if it is asked to."""
        return {"input_ids", "logits_to_keep"} <= self.input_parameters.keys()

    def list_non_finite_weights(self) -> list[str]:
        """Names of the weights with values that are NaN or infinite."""
        return [
            name
            for name, param in self.model.named_parameters()
            if param.is_floating_point() and not bool(param.isfinite().all())
        ]

    def is_causal(self, ids: Int[Tensor, "B T"]) -> bool:
        """Whether logits of the first half of an input stay the same if later tokens change."""
        half = ids.shape[1] // 2
        known, place = ids.unique(return_inverse=True)
        if len(known) == 1:
            known = torch.stack((known[0], known[0] + (1 if known[0] == 0 else -1)))
        others = known[(place + 1) % len(known)]  # every token becomes another one of the input
        changed = torch.cat((ids[:, :half], others[:, half:]), dim=1)
        with preserve_model_state(self.model):
            logits, changed_logits = (
                self.compute_logits(each)[:, :half].float() for each in (ids, changed)
            )
        epsilon = torch.finfo(self.dtype or torch.float32).eps
        largest = float(logits.nan_to_num(0, 0, 0).abs().max()) if half else 0.0
        tolerance = max(4 * epsilon, 1e-5) * largest
        return torch.allclose(logits, changed_logits, rtol=0, atol=tolerance, equal_nan=True)

    # its tokens

    def check_reads_tokens(self) -> None:
        """TaskError if the model does not read one sequence of tokens."""
        reads_tokens = self.trained_run is None
        if isinstance(self.model, NetworkModule):
            reads_tokens = self.model.network.takes_token_ids
        if not reads_tokens:
            raise TaskError(f"{self.name} does not read token ids: this needs a language model")
        if self.is_encoder_decoder:
            raise TargetError(f"{self.name} reads two sequences; this needs a model that reads one")

    @property
    def token_notes(self) -> list[str]:
        """The notes, and why tokens have no texts."""
        if self.tokenizer is not None or not self.tokenizer_error:
            return [*self.notes]
        kind = (
            "the tokenizer cannot be read" if self.trained_run is None else "there is no tokenizer"
        )
        return [*self.notes, f"{kind}: {self.tokenizer_error}"]

    def encode(self, text: str) -> list[int]:
        """Token ids of a text, with the special tokens that the tokenizer adds."""
        return encode_text(self._need_tokenizer(), text)

    def encode_next(self, context: str | Sequence[int], text: str) -> list[int]:
        """Token ids of a text that follows a context."""
        tokenizer = self._need_tokenizer()
        ids = encode_answer(tokenizer, context, text)
        unknown = getattr(tokenizer, "unk_token_id", None)
        if unknown is not None and unknown in ids:
            raise TaskError(f"`{text}` is not in the vocabulary of {self.name}")
        return ids

    def label(self, ids: Sequence[int]) -> list[str]:
        """Text of every token."""
        return label_ids(self.tokenizer, torch.tensor([list(ids)], dtype=torch.long))[0]

    def check_ids(self, ids: Sequence[int]) -> str | None:
        """What is wrong with the ids of an input; None if nothing."""
        if not ids:
            return "there are no tokens"
        size = self.vocabulary_size
        if size is not None and max(ids) >= size:
            return f"the id {max(ids):,} is not one of the {size:,} of the model"
        return None

    def check_class(self, token: int) -> str | None:
        """What is wrong with the id of a target; None if nothing."""
        count = self.class_count
        if count is not None and token >= count:
            return f"the id {token:,} is not one of the {count:,} that the model predicts"
        return None

    def _need_tokenizer(self) -> Any:
        if self.tokenizer is None:
            raise TaskError(f"{self.name} has no tokenizer: write token ids, such as [5, 3, 9]")
        return self.tokenizer

    # its outputs

    def build_probe(
        self, ids: Int[Tensor, "B T"], *, last: bool = True
    ) -> dict[str, Any] | tuple[Any, ...]:
        """The arguments of the model for a batch; `last`: logits of the last position will do."""
        names, ids = self.input_parameters, ids.to(self.device)
        if "input_ids" not in names:
            return (ids,)
        probe: dict[str, Any] = {"input_ids": ids}
        # logits of one position and no cache: the memory of a batch stays small
        if last and "logits_to_keep" in names:
            probe["logits_to_keep"] = 1
        if "use_cache" in names:
            probe["use_cache"] = False
        return probe

    def compute_logits(
        self, ids: Int[Tensor, "B T"], *, last: bool = False
    ) -> Float[Tensor, "B *T V"]:
        """Logits (B, T, V), or (B, C) of a classifier; `last`: at least the last position."""
        probe = self.build_probe(ids, last=last)
        if not isinstance(self.model, NetworkModule):
            return find_logits(run_model(self.model, probe))
        activation = self.model.network.output_activation
        if activation not in ("softmax", "linear"):
            raise AttributionError(
                f"the output layer of {self.model.network.name} has the activation "
                f"{activation}; answers need softmax or logits"
            )
        compute: Any = self.model.logits
        return find_logits(compute(*probe))

    def run(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """Logits after the last position, without gradients."""
        with torch.no_grad():
            logits = self.compute_logits(ids, last=True)
        return (logits[:, -1] if logits.ndim == 3 else logits).float().cpu()

    def check_run(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B C"]:
        """As `run`; TaskError with a message if the model cannot read the ids."""
        try:
            return self.run(ids)
        except MODEL_ERRORS as error:
            if isinstance(error, TaskError):
                raise
            raise TaskError(
                f"{self.name} failed on an input of {ids.shape[1]} tokens: {find_first_line(error)}"
            ) from error

    def forward(self, inputs: Inputs) -> Any:
        """The output for an input that was prepared."""
        if inputs.task is not None:
            return inputs.task.forward(self.model, inputs.batch)
        return run_model(self.model, inputs.batch)

    def capture_attention(self, inputs: Inputs, capture: CaptureType) -> CaptureType:
        """Fill a capture with all attention calls of one forward pass."""
        # no warning for networks without attention: commands print their own message
        block = capture_calls(self.model, capture, tokens=inputs.tokens, on_warning=lambda _: None)
        with preserve_model_state(self.model), block:
            self.forward(inputs)
        capture.labels, capture.decoder_labels = inputs.labels, inputs.decoder_labels
        return capture


def load_subject(
    target: str | Path | Run | nn.Module,
    *,
    tokenizer: Any = None,
    step: int | None = None,
    build: str | None = None,
    implementation: str | None = None,
    runs: Path = DEFAULT_RUNS_DIR,
) -> Subject:
    """Load a run by its folder or name in `runs`, a model of others, or take a torch module.

    `step` selects a checkpoint of a run; by default the best, else the newest. `build` names the
    function that returns the model of a state dict. `implementation` is the `attn_implementation` of
    Hugging Face. TaskError or RunError if it cannot be loaded.
    """
    if isinstance(target, torch.nn.Module):
        return Subject(type(target).__name__, target.eval(), tokenizer)
    if isinstance(target, Run):
        return load_checkpoint(target, step)
    if not isinstance(target, str | Path):
        raise TaskError(
            f"{type(target).__name__} is no model: give a torch module, a run, or a target of "
            "`neural watch`"
        )
    run_path = find_run_target(str(target), runs)
    if run_path is not None:
        return load_checkpoint(Run.open(run_path), step)
    if step is not None:
        raise TaskError(f"--step selects a checkpoint of a run, and {target} is none")
    fields = load_foreign_model(str(target), build=build, implementation=implementation)
    if tokenizer is not None:
        fields["tokenizer"] = tokenizer
    return Subject(**fields)


def load_checkpoint(
    run: Run,
    step: int | None = None,
    *,
    task: Task | None = None,
    model: nn.Module | None = None,
) -> Subject:
    """A run at a step; at its best checkpoint, else the newest, if none is given.

    `task` is that of the run, if the caller has loaded it: then it builds the model. `model` gets the
    weights instead of the run's own; RuntimeError if they do not fit.
    """
    checkpoint = (
        run.load_checkpoint(step)
        if step is not None
        else run.load_checkpoint("best") or run.load_checkpoint()
    )
    if checkpoint is None:
        raise RunError(f"{run.path} has no checkpoint yet")
    if model is None:
        model = load_model(run, checkpoint, task)
    else:
        load_weights(model.eval(), checkpoint)
    tokenizer, tokenizer_error = None, ""
    if isinstance(model, NetworkModule) and model.network.takes_token_ids:
        try:
            tokenizer = load_tokenizer(TrainedRunFolder(run), model)
        except (TaskError, UnknownNameError) as error:
            tokenizer_error = str(error)
    is_best = checkpoint.is_best and step is None
    return Subject(
        run.name,
        model,
        tokenizer,
        source=f"{'best checkpoint, ' * is_best}step {checkpoint.step:,}",
        tokenizer_error=tokenizer_error,
        step=checkpoint.step,
        trained_run=run,
    )


def load_series(
    targets: Sequence[str],
    *,
    build: str | None = None,
    implementation: str | None = None,
    runs: Path = DEFAULT_RUNS_DIR,
    on_progress: Callable[[str], None] = lambda target: None,
) -> Iterator[tuple[str, Subject]]:
    """Each target with its model, one after the other, in the order of their steps.

    Several targets are checkpoints of one model.
    """
    for target, step in order_by_step(targets).items():
        on_progress(target)
        subject = load_subject(target, build=build, implementation=implementation, runs=runs)
        yield target, replace(subject, step=step)


def order_by_step(targets: Sequence[str]) -> dict[str, int]:
    """Targets with their steps, in this order: the numbers in their names, else their positions."""
    if len(targets) == 1:
        return {targets[0]: 0}
    steps = {target: find_step(target, index) for index, target in enumerate(targets)}
    if len(set(steps.values())) < len(targets):  # names without different numbers
        steps = {target: index for index, target in enumerate(targets)}
    return dict(sorted(steps.items(), key=lambda item: item[1]))


def find_step(target: str, position: int) -> int:
    """The training step in the name of a checkpoint, `checkpoint-500`; else its position."""
    match = STEP_IN_NAME.search(Path(target).stem if Path(target).is_file() else Path(target).name)
    return int(match.group(1)) if match else position
