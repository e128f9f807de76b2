"""Tokens as labels."""

from __future__ import annotations

from neural.data.text_encoding import VISIBLE_WHITESPACE


def format_token(text: str, max_characters: int = 16) -> str:
    """A token with visible white space, shortened with "…"."""
    if text == "":
        return "∅"
    shown = "".join(VISIBLE_WHITESPACE.get(character, character) for character in text)
    shown = shown.replace("\t", "⇥").replace("\r", "␍")
    return shown if len(shown) <= max_characters else f"{shown[: max_characters - 1]}…"
