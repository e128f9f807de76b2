"""Secrets are removed from what a run stores; words of language models are not taken for secrets."""

import pytest

from neural.core.redaction import is_secret_name, redact_arguments, redact_settings, redact_text


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "api_key",
        "API-KEY",
        "apikey",
        "tracker.secret",
        "wandb_token",
        "HF_TOKEN",
        "aws_secret_access_key",
        "client_key",
        "db-password",
        "credentials",
    ],
)
def test_names_of_secrets_are_known(name):
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    ["token", "tokens", "tokenizer", "max_tokens", "key_dim", "key", "keys", "bypass", "compass"],
)
def test_words_of_language_models_are_no_secrets(name):
    assert not is_secret_name(name)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("https://user:pass@host/x", "https://***@host/x"),
        ("git+https://ghp_0123456789abcdefghij@host", "git+https://***@host"),
        ("cannot reach http://me:p%40ss@mlflow:5000: timed out", None),
        ("https://host/x?token=abc&step=3", "https://host/x?token=***&step=3"),
        ("key hf_abcdefghijklmnopqrstuvwxyz is invalid", "key *** is invalid"),
        ("user@host: 3 tokens; https://host/@name", "user@host: 3 tokens; https://host/@name"),
        ("the ratio a:b@c", "the ratio a:b@c"),
    ],
)
def test_credentials_in_texts_are_replaced(text, expected):
    redacted = redact_text(text)
    assert redacted == expected if expected else "p%40ss" not in redacted


def test_secrets_in_settings_are_replaced_at_any_depth():
    settings = {
        "name": "x",
        "tracker": {"api_key": "abc", "url": "https://me:pw@host", "steps": 3},
        "list": [{"password": "abc"}, "https://me:pw@host"],
        "tokens": "abc",
        "password": None,
    }
    assert redact_settings(settings) == {
        "name": "x",
        "tracker": {"api_key": "***", "url": "https://***@host", "steps": 3},
        "list": [{"password": "***"}, "https://***@host"],
        "tokens": "abc",
        "password": None,
    }


def test_secrets_in_command_lines_are_replaced():
    command = ["train.py", "--api-key", "abc", "--password=abc", "--token", "abc", "--set"]
    command += ["tracker.secret=abc", "--tokens", "300", "https://a:b@host", "--secret", "--quick"]
    assert redact_arguments(command) == [
        "train.py",
        "--api-key",
        "***",
        "--password=***",
        "--token",
        "***",
        "--set",
        "tracker.secret=***",
        "--tokens",
        "300",
        "https://***@host",
        "--secret",
        "--quick",
    ]
