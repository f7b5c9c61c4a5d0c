"""How many tokens a text, a picture and a message are (behaviour.md W1; field case B16).

Owns: `TokenCounter`, its kinds, and `message_tokens`. Driven by `window`. Pictures are priced by the rules of
`image_prices`: by size and detail, wherever they sit, never by their base64.

==============  ==============  ===========================================================================================
Name            Class           Text
==============  ==============  ===========================================================================================
``words``       `WordCounter`   the seeds' rule, two tokens for each word between white space; the default
``estimate``    `ScriptCounter` by script, without a vocabulary: within a quarter of ``o200k`` for a sentence or more
``o200k``       `O200kCounter`  exact for OpenAI's models, offline; needs the extra ``tokens``
==============  ==============  ===========================================================================================
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Final, Protocol, cast, runtime_checkable

from realtime.chat.image_prices import IMAGE_PRICES, ImagePrice
from realtime.chat.messages import ChatMessage, ImageContent
from realtime.chat.script_estimate import estimate_tokens
from realtime.errors import ArgumentError, MissingExtraError

__all__ = [
    "DEFAULT_COUNTER",
    "O200kCounter",
    "ScriptCounter",
    "TokenCounter",
    "WordCounter",
    "as_counter",
    "message_tokens",
    "priced",
]


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
class _PricedImages:
    """The pictures' half of every counter."""

    images: ImagePrice = IMAGE_PRICES["openai-tiles"]
    """What pictures cost; `image_price` has each provider's rule."""
    follows_model: bool = field(default=False, compare=False, repr=False)
    """`images` is the rule of the model that answers, and changes with it; set by the session."""

    def count_image(self, image: ImageContent) -> int:
        """By size and detail."""
        return self.images.tokens(image.size, image.detail)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordCounter(_PricedImages):
    """The seeds' rule: two tokens for each word between white space.

    Rough, and wrong where words are not parted by spaces or text is code.
    """

    def count_text(self, text: str) -> int:
        """Two for each word."""
        return 2 * len(text.split())


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptCounter(_PricedImages):
    """An estimate that knows scripts: see `script_estimate`."""

    def count_text(self, text: str) -> int:
        """By script."""
        return estimate_tokens(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class O200kCounter(_PricedImages):
    """The vocabulary of OpenAI's models since GPT-4o, offline.

    Source: the `bpe-openai` package, which brings the vocabulary o200k_base with it.
    """

    def __post_init__(self) -> None:
        """Load the vocabulary now rather than in the first turn.

        Raises:
            MissingExtraError: `bpe-openai` is not installed.
        """
        _o200k()

    def count_text(self, text: str) -> int:
        """By the vocabulary; text that looks like a control token is text, and long text is counted piece by piece."""
        return sum(len(_o200k()(piece)) for piece in _pieces(text))


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces that the package takes, parted where a word begins with the space before it."""
    at = 0
    while at < len(text):
        end = at + _LONGEST_PIECE
        if end < len(text):
            border = text.rfind(" ", at + 1, end)
            end = end if border < 0 else border
        yield text[at:end]
        at = end


@lru_cache(maxsize=1)
def _o200k() -> Callable[[str], list[int]]:
    try:
        with warnings.catch_warnings():  # it opens its own files in a way that is going out of use
            warnings.simplefilter("ignore", DeprecationWarning)
            import bpe_openai  # noqa: PLC0415  # pyright: ignore[reportMissingTypeStubs]  # an extra, when it is asked for

            encoding = bpe_openai.get_encoding("o200k_base")
    except ImportError as error:
        raise MissingExtraError("the o200k token counter", extra="tokens", package="bpe-openai") from error
    return cast("Callable[[str], list[int]]", encoding.encode_ordinary)


_LONGEST_PIECE: Final = 40_000
"""Characters; the package refuses what may have more than 200,000 tokens, and each can have four."""
DEFAULT_COUNTER: Final = WordCounter()
"""What a window counts with if nothing else is given."""
_ESTIMATE: Final = ScriptCounter()


@dataclass(frozen=True, slots=True, kw_only=True)
class _FunctionCounter(_PricedImages):
    """A function of a text."""

    function: Callable[[str], int]

    def count_text(self, text: str) -> int:
        count = self.function(text)
        if not isinstance(count, int) or count < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("counter", type(count).__name__, "a function that gives the number of tokens")
        return count


def priced(counter: TokenCounter, price: ImagePrice) -> TokenCounter:
    """The counter with its pictures priced by a provider's rule, unless it is one of the application's own.

    One that was given by name, as a function of a text, or not at all says nothing of pictures. One that was given as itself
    does. One that was priced here may be priced again, for another model.
    """
    if not isinstance(counter, _PricedImages):
        return counter
    named: list[object] = [DEFAULT_COUNTER, _ESTIMATE]
    if _named_o200k.cache_info().currsize:
        named.append(_named_o200k())
    if counter.follows_model or isinstance(counter, _FunctionCounter) or any(counter is one for one in named):
        return replace(counter, images=price, follows_model=True)
    return counter


@lru_cache(maxsize=1)
def _named_o200k() -> O200kCounter:
    """The counter that the name gives."""
    return O200kCounter()


def as_counter(counter: Any) -> TokenCounter:
    """A counter, given as itself, by its name (`words`, `estimate`, `o200k`), or as a function of a text.

    Raises:
        ArgumentError: It is none of these.
        MissingExtraError: Its package is not installed.
    """
    if counter == "words":
        return DEFAULT_COUNTER
    if counter == "estimate":
        return _ESTIMATE
    if counter == "o200k":
        return _named_o200k()
    if isinstance(counter, type):
        raise ArgumentError("counter", counter, f"an object, such as {counter.__name__}()")
    if isinstance(counter, TokenCounter):
        return counter
    if callable(counter):
        return _FunctionCounter(function=cast("Callable[[str], int]", counter))
    raise ArgumentError("counter", counter, "'words', 'estimate', 'o200k', a TokenCounter, or a function of a text")
