"""Whisper's vocabulary: token ids to text, and the ids of its special tokens.

Owns: `Vocabulary`. Driven by the recognizer. Whisper's tokens are byte sequences written with one printable character
per byte (GPT-2's alphabet); a vocabulary file lists them, one a line or as a JSON array. Encoding text to tokens is
not needed and not here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from realtime.errors import UserError

__all__ = ["Vocabulary"]


class Vocabulary:
    """The tokens of one model."""

    def __init__(self, tokens: list[str]) -> None:
        """Take the tokens, in the order of their ids.

        Raises:
            UserError: It is no vocabulary of Whisper's.
        """
        self._bytes = _bytes_of_characters()
        self._tokens = tokens
        self._ids = {token: number for number, token in enumerate(tokens)}
        try:
            self.end = self._ids["<|endoftext|>"]
            """Ends an utterance; every id from here on is special."""
            self._start = self._ids["<|startoftranscript|>"]
            self._no_timestamps = self._ids["<|notimestamps|>"]
        except KeyError as missing:
            raise UserError(f"this is no vocabulary of Whisper's: it lacks {missing}") from None

    @classmethod
    def parse(cls, data: bytes) -> Vocabulary:
        """Read a vocabulary's file: tokens one a line, or a JSON array of them.

        Raises:
            UserError: It is none of Whisper's.
        """
        text = data.decode("utf-8", "replace")
        if text.lstrip().startswith("["):
            tokens: list[str] = json.loads(text)
            return cls(tokens)
        return cls(text.removesuffix("\n").split("\n"))

    def prompt(self, *, multilingual: bool, language: str = "en") -> list[int]:
        """The ids that ask for a transcript without timestamps.

        Args:
            multilingual: Whether the model knows more than English and must be told which language.
            language: ISO 639-1.

        Raises:
            UserError: The model does not know the language.
        """
        if not multilingual:
            return [self._start, self._no_timestamps]
        code = self._ids.get(f"<|{language}|>")
        if code is None:
            raise UserError(f"language {language!r} is none that the recognizer knows")
        return [self._start, code, self._ids["<|transcribe|>"], self._no_timestamps]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of tokens. Special ones are left out; bytes that are no UTF-8 become U+FFFD."""
        table = self._bytes
        data = b"".join(bytes(table[char] for char in self._tokens[number]) for number in ids if number < self.end)
        return data.decode("utf-8", "replace")


def _bytes_of_characters() -> dict[str, int]:
    """GPT-2's alphabet: printable Latin-1 stands for itself, every other byte for a character from U+0100 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    table = {chr(byte): byte for byte in printable}
    others = (byte for byte in range(256) if byte not in printable)
    table.update({chr(0x100 + place): byte for place, byte in enumerate(others)})
    return table
