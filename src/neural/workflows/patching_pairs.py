"""Pairs of inputs for patching experiments: the YAML file, and its texts as token ids.

    metric: logit_difference
    pairs:
      - clean: "the cat sat on the mat the cat"
        corrupted: "the dog sat on the mat the cat"
        answer: " sat"
        wrong: " saw"

`clean` and `corrupted` are texts or lists of token ids, of the same number of tokens. The metric is
computed at the last position. All errors of the pairs are reported at once, with their lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from neural.core.diagnostics import DiagnosticCollector, SourceSpan, SourceText
from neural.core.errors import TaskError
from neural.core.settings import Settings, SettingsError, read_settings
from neural.core.settings_fields import ValueDescription
from neural.core.yaml_positions import YamlNode, parse_yaml
from neural.interpret.subject import Subject
from neural.training.load_task import read_source

MAX_PAIRS = 10_000
TokenIds = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
TokenText = Annotated[str, Field(min_length=1)]
Metric = Literal["logit_difference", "loss", "probability"]
INPUT_KEYS, TARGET_KEYS = ("clean", "corrupted"), ("answer", "wrong")
METRIC_UNITS = {"logit_difference": "logits", "loss": "nats", "probability": "probability"}


class PatchingPair(Settings):
    """A clean and a corrupted input that differ in one thing."""

    clean: Annotated[TokenText | TokenIds, ValueDescription("a text or a list of token ids")] = (
        Field(description="Input on which the model gives the answer: a text or token ids.")
    )
    corrupted: Annotated[
        TokenText | TokenIds, ValueDescription("a text or a list of token ids")
    ] = Field(description="Input that differs in one thing; of the same number of tokens.")
    answer: (
        Annotated[
            TokenText | Annotated[int, Field(ge=0)], ValueDescription("a text or one token id")
        ]
        | None
    ) = Field(None, description="The right token after the clean input: a text or an id.")
    wrong: (
        Annotated[
            TokenText | Annotated[int, Field(ge=0)], ValueDescription("a text or one token id")
        ]
        | None
    ) = Field(None, description="The wrong token, for the metric logit_difference.")


class PatchingFile(Settings):
    """Pairs of inputs for `neural patch`."""

    metric: Metric = Field(
        "logit_difference",
        description="logit_difference (answer − wrong), loss of the answer, or its probability.",
    )
    pairs: Annotated[
        list[PatchingPair],
        Field(min_length=1, max_length=MAX_PAIRS),
        ValueDescription("a list of pairs, at least one"),
    ] = Field(description="The pairs.")


@dataclass(frozen=True)
class PairSource:
    """A checked file of pairs, with the positions of its keys."""

    settings: PatchingFile
    source: SourceText
    nodes: list[YamlNode]
    """The pairs as they are written."""

    def find_span(self, pair: int, key: str) -> SourceSpan:
        """Where a pair has a key; else where the pair begins."""
        node = self.nodes[pair]
        entry = node.value.get(key)
        if entry is not None:
            return entry.error_node.span
        first = next(iter(node.value.values()), None)
        return node.span if first is None else first.key.span

    def get_line(self, pair: int, key: str = "clean") -> int:
        """Line of a pair, from 1."""
        return self.source.line_and_column(self.find_span(pair, key).start)[0]

    def describe(self, pair: int) -> str:
        """`pair 3 (pairs.yaml, line 12)`; pairs are counted from 1."""
        return f"pair {pair + 1} ({Path(self.source.name).name}, line {self.get_line(pair)})"


@dataclass(frozen=True)
class TokenPair:
    """A pair as token ids."""

    clean: tuple[int, ...]
    corrupted: tuple[int, ...]
    answer: int
    wrong: int | None
    clean_labels: tuple[str, ...]
    """Texts of the tokens of the clean input."""
    corrupted_labels: tuple[str, ...]
    place: str
    """Where the pair is written, for messages."""

    @property
    def length(self) -> int:
        """Number of tokens."""
        return len(self.clean)


def read_pairs(
    pairs: str | Path | Mapping[str, Any] | Sequence[Mapping[str, Any]],
    *,
    metric: str | None = None,
    needs_targets: bool = True,
) -> PairSource:
    """Read a YAML file of pairs, or take the same data as Python objects.

    `metric` replaces that of the file. `needs_targets`: whether pairs have answers.
    SettingsError with the lines of all errors.
    """
    if isinstance(pairs, str | Path):
        source = read_source(Path(pairs))
    else:
        data = {"pairs": list(pairs)} if not isinstance(pairs, Mapping) else pairs
        try:
            source = SourceText("pairs", json.dumps(data, indent=1, ensure_ascii=False))
        except TypeError:
            raise TaskError(
                "pairs are a file, or a list of dictionaries with the keys clean, corrupted, "
                "answer and wrong, which are texts or lists of token ids"
            ) from None
    overrides = [] if metric is None else [f"metric={metric}"]
    settings = read_settings(PatchingFile, source, overrides)
    tree = parse_yaml(source, DiagnosticCollector())
    assert tree is not None  # `read_settings` has parsed it
    result = PairSource(settings, source, tree.value["pairs"].node.value)
    _check_targets(result, needs_targets)
    return result


def _check_targets(pairs: PairSource, needs_targets: bool) -> None:
    """Raise SettingsError for targets that the metric needs, and for pairs without a difference."""
    diagnostics = DiagnosticCollector()
    metric = pairs.settings.metric
    for index, pair in enumerate(pairs.settings.pairs):
        if pair.clean == pair.corrupted:
            diagnostics.add(
                "E0807",
                f"pair {index + 1}: `clean` and `corrupted` are identical, so there is nothing to "
                "restore",
                pairs.find_span(index, "corrupted"),
            )
        needed = TARGET_KEYS if metric == "logit_difference" else TARGET_KEYS[:1]
        missing = [key for key in needed if getattr(pair, key) is None]
        if missing and needs_targets:
            helps = ["`answer`: the token that is right after the clean input"]
            if missing == ["wrong"]:
                helps = ["write the wrong token, or choose `metric: probability`"]
            diagnostics.add(
                "E0804",
                f"pair {index + 1}: the metric {metric} needs `{'` and `'.join(missing)}`",
                pairs.find_span(index, missing[0]),
                helps=helps,
            )
    _raise_errors(pairs, diagnostics)


def tokenize_pairs(
    pairs: PairSource, model: Subject, *, needs_targets: bool = True
) -> list[TokenPair]:
    """The pairs as token ids of a model; SettingsError with the lines of all errors."""
    diagnostics = DiagnosticCollector()
    tokenized = []
    for index, pair in enumerate(pairs.settings.pairs):

        def report(key: str, code: str, message: str, *helps: str, pair: int = index) -> None:
            diagnostics.add(
                code, f"pair {pair + 1}: {message}", pairs.find_span(pair, key), helps=helps
            )

        token_pair = _tokenize_pair(pair, model, pairs.describe(index), report, needs_targets)
        if token_pair is not None:
            tokenized.append(token_pair)
    _raise_errors(pairs, diagnostics)
    return tokenized


def _tokenize_pair(
    pair: PatchingPair,
    model: Subject,
    place: str,
    report: Callable[..., None],
    needs_targets: bool,
) -> TokenPair | None:
    inputs: dict[str, list[int]] = {}
    for key in INPUT_KEYS:
        value = getattr(pair, key)
        try:
            ids = model.encode(value) if isinstance(value, str) else list(value)
        except TaskError as error:
            report(key, "E0803", f"`{key}`: {error}")
            continue
        if problem := model.check_ids(ids):
            report(key, "E0803", f"`{key}`: {problem}")
            continue
        inputs[key] = ids
    targets: dict[str, int] = {} if needs_targets else {"answer": 0}  # the only score
    for key in TARGET_KEYS if needs_targets else ():
        value = getattr(pair, key)
        if value is None:
            continue
        try:
            ids = model.encode_next(pair.clean, value) if isinstance(value, str) else [value]
        except TaskError as error:
            report(key, "E0803", f"`{key}`: {error}")
            continue
        if len(ids) != 1:
            texts = " ".join(f"`{text}`" for text in model.label(ids))
            report(
                key,
                "E0803",
                f"`{key}` is {len(ids)} tokens ({texts}), but the metric is computed at one "
                "position",
                "write its first token, or move the others to the end of `clean` and `corrupted`",
            )
        elif problem := model.check_class(ids[0]):
            report(key, "E0803", f"`{key}`: {problem}")
        else:
            targets[key] = ids[0]
    if "answer" in targets and targets["answer"] == targets.get("wrong"):
        report("wrong", "E0807", "`answer` and `wrong` are the same token")
        return None
    if len(inputs) < 2 or "answer" not in targets:
        return None
    lengths = [len(inputs[key]) for key in INPUT_KEYS]
    if lengths[0] != lengths[1]:
        report(
            "corrupted",
            "E0807",
            f"`clean` has {lengths[0]} tokens and `corrupted` {lengths[1]}: positions would not "
            "match",
            "use words of as many tokens: "
            + "; ".join(
                " ".join(f"`{text}`" for text in model.label(inputs[key])) for key in inputs
            ),
        )
        return None
    if inputs["clean"] == inputs["corrupted"]:
        report(
            "corrupted",
            "E0807",
            "`clean` and `corrupted` have the same tokens, so there is nothing to restore",
        )
        return None
    return TokenPair(
        tuple(inputs["clean"]),
        tuple(inputs["corrupted"]),
        targets["answer"],
        targets.get("wrong"),
        tuple(model.label(inputs["clean"])),
        tuple(model.label(inputs["corrupted"])),
        place,
    )


def _raise_errors(pairs: PairSource, diagnostics: DiagnosticCollector) -> None:
    if diagnostics.items:
        raise SettingsError((pairs.source, tuple(diagnostics.items)))
