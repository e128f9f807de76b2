"""Find and remove passwords and access keys in what a run stores: command line, settings, messages.

Run folders are copied, shown and sent to others. A secret is recognized by the name before it
(`--api-key …`, `password: …`), by its place in a URL (`https://user:password@host`) or by the form
of well-known access keys. Other secrets cannot be recognized.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

REDACTED = "***"
# not `token` alone or `key`: settings of language models have many of these
SECRET_NAME = re.compile(
    r"(^|[._-])("
    r"pass(word|wd|phrase)?|secrets?|credentials?|authorization|"
    r"(api|access|private|secret|auth|client|signing)[_-]?keys?|"
    r"(api|access|auth|bearer|refresh|secret|hf|hub|wandb|github|board)[_-]?tokens?"
    r")$",
    re.IGNORECASE,
)
"""Names of settings and options whose values are secret."""
URL_CREDENTIALS = re.compile(r"(?<=://)[^/?#\s@'\"]+(?=@)")
"""User and password in a URL."""
ACCESS_KEY = re.compile(
    r"\b(?:(?:hf|ghp|gho|ghs|glpat|sk|pypi|xox[abp])[-_]|github_pat_|AKIA)[A-Za-z0-9_-]{16,}"
)
"""Access keys of common services, by their first letters."""
URL_PARAMETER = re.compile(
    r"(?<=[?&])((?:access_|api_|auth_)?(?:token|key|password|secret|signature|sig))=[^&\s'\"#]+",
    re.IGNORECASE,
)
"""Parameters of a URL that are secret."""


def redact_text(text: str) -> str:
    """Replace credentials in URLs and access keys of common services by `***`."""
    text = URL_CREDENTIALS.sub(REDACTED, text)
    text = URL_PARAMETER.sub(rf"\1={REDACTED}", text)
    return ACCESS_KEY.sub(REDACTED, text)


def redact_settings(value: Any) -> Any:
    """Replace secrets in nested settings: values of secret names, and those in texts."""
    if isinstance(value, Mapping):
        return {
            name: REDACTED
            if isinstance(name, str) and isinstance(item, str) and item and is_secret_name(name)
            else redact_settings(item)
            for name, item in value.items()
        }
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, list | tuple):
        return [redact_settings(item) for item in value]
    return value


def redact_arguments(arguments: Sequence[str]) -> list[str]:
    """Replace secrets in a command line: `--password X`, `--api-key=X`, `--set x.secret=X`."""
    redacted, is_value = [], False
    for argument in arguments:
        name, separator, _ = argument.partition("=")
        is_option = name.startswith("-")
        has_secret_name = is_secret_name(name.lstrip("-")) or (
            is_option and name.lstrip("-").lower() == "token"
        )
        if is_value and not is_option:
            redacted.append(REDACTED)
        elif separator and has_secret_name:
            redacted.append(f"{name}={REDACTED}")
        else:
            redacted.append(redact_text(argument))
        is_value = is_option and not separator and has_secret_name
    return redacted


def has_secrets(settings: Any, arguments: Sequence[str] = ()) -> bool:
    """Whether nested settings or a command line contain something that is redacted."""
    # as JSON, because redaction turns tuples into lists
    return json.dumps(settings) != json.dumps(redact_settings(settings)) or (
        list(arguments) != redact_arguments(arguments)
    )


def is_secret_name(name: str) -> bool:
    """Whether a setting or option of this name usually holds a secret."""
    return SECRET_NAME.search(name) is not None
