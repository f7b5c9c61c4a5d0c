"""How many tokens a text, a picture and a message are (behaviour.md W1; field case B16).

Owns: `TokenCounter`, its kinds (`WordCounter`), and `message_tokens`. Driven by `window`. Pictures are priced by the rules of
`image_prices`: by size and detail, wherever they sit, never by their base64.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast, runtime_checkable

from realtime.chat.image_prices import IMAGE_PRICES, ImagePrice
from realtime.chat.messages import ChatMessage, ImageContent
from realtime.errors import ArgumentError

__all__ = ["DEFAULT_COUNTER", "TokenCounter", "WordCounter", "as_counter", "message_tokens"]


@runtime_checkable
class TokenCounter(Protocol):
    """Counts tokens. Must give the same for the same."""

    def count_text(self, text: str) -> int:
        """Tokens of a text; 0 for an empty one."""
        ...

    def count_image(self, image: ImageContent) -> int:
        """Tokens of a picture; at least 1."""
        ...


def message_tokens(counter: TokenCounter, message: ChatMessage) -> int:
    """What a message counts: all of it that can be sent to a model.

    That is its text (a recording counts by its transcript, where there is no text), its pictures, its calls' names and
    arguments, and its thinking; not what was unheard.
    """
    text = message.content
    if not text and message.audio is not None:
        text = message.audio.transcript
    tokens = counter.count_text(text) if text else 0
    for image in message.images:
        tokens += counter.count_image(image)
    for call in message.tool_calls:
        tokens += counter.count_text(call.name) + counter.count_text(call.arguments)
    if message.thinking:
        tokens += counter.count_text(message.thinking)
    return tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCounter:
    """The seeds' rule for text: two tokens for each word between white space.

    Rough, and wrong where words are not parted by spaces or text is code; `ScriptCounter` is near there.
    """

    images: ImagePrice = IMAGE_PRICES["openai-tiles"]
    """What pictures cost."""

    def count_text(self, text: str) -> int:
        """Two for each word."""
        return 2 * len(text.split())

    def count_image(self, image: ImageContent) -> int:
        """By size and detail."""
        return self.images.tokens(image.size, image.detail)


DEFAULT_COUNTER: Final = WordCounter()
"""What a window counts with if nothing else is given."""


@dataclass(frozen=True, slots=True)
class _FunctionCounter:
    """A function of a text, with pictures priced by OpenAI's tiles."""

    function: Callable[[str], int]

    def count_text(self, text: str) -> int:
        return self.function(text)

    def count_image(self, image: ImageContent) -> int:
        return DEFAULT_COUNTER.count_image(image)


def as_counter(counter: Any) -> TokenCounter:
    """A counter, given as itself, by its name, or as a function of a text.

    Raises:
        ArgumentError: It is none of these.
    """
    if isinstance(counter, str) and counter == "words":
        return DEFAULT_COUNTER
    if isinstance(counter, TokenCounter) and not isinstance(counter, type):
        return counter
    if callable(counter):
        return _FunctionCounter(cast("Callable[[str], int]", counter))
    raise ArgumentError("counter", counter, "a TokenCounter, a function of a text, or one of the names words")
