"""Estimates of tokens, for `usage` and `max_output_tokens`.

Owns: the sums. Driven by a running response. They are estimates, since no provider's tokenizer is at work here: text by
`realtime.chat.tokens.ScriptCounter`, pictures by OpenAI's tiles, audio at OpenAI's published rates: 10 tokens a second of
the user's, 20 of the model's (https://platform.openai.com/docs/guides/realtime-costs). Never acts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from realtime.chat.image_prices import image_price
from realtime.chat.tokens import ScriptCounter
from realtime.local.alignment import split_words
from realtime.local.items import StoredItem, TokenCounts
from realtime.wire.openai_messages import Usage, UsageDetails

__all__ = ["count_text", "cut_text", "usage_of"]

INPUT_TOKENS_PER_SECOND = 10
OUTPUT_TOKENS_PER_SECOND = 20
ITEM_TOKENS = 4
"""What an item costs besides its content."""

_COUNTER = ScriptCounter()
_PICTURES = image_price("openai-tiles")


def count_text(text: str) -> int:
    """Tokens of a text."""
    return _COUNTER.count_text(text)


def cut_text(text: str, tokens: int) -> str:
    """As many whole words of a text, from its beginning, as so many tokens hold; the text itself if it fits."""
    if count_text(text) <= tokens:
        return text
    kept = ""
    for word in split_words(text):
        if count_text(kept + word) > tokens:
            break
        kept += word
    return kept


def usage_of(context: Iterable[StoredItem], instructions: str, output: Iterable[StoredItem]) -> Usage:
    """The `usage` of a response.

    Args:
        context: The items that it answered.
        instructions: What the responder was told.
        output: The items that it made.
    """
    text = count_text(instructions)
    audio = image = 0
    for item in context:
        counts = tokens_of(item)
        text, audio, image = text + counts.text + ITEM_TOKENS, audio + counts.audio, image + counts.image
    made = [tokens_of(item) for item in output]
    out_text, out_audio = sum(counts.text for counts in made), sum(counts.audio for counts in made)
    return Usage(
        total_tokens=text + audio + image + out_text + out_audio,
        input_tokens=text + audio + image,
        output_tokens=out_text + out_audio,
        input_token_details=UsageDetails(text_tokens=text, audio_tokens=audio, image_tokens=image, cached_tokens=0),
        output_token_details=UsageDetails(text_tokens=out_text, audio_tokens=out_audio),
    )


def tokens_of(item: StoredItem) -> TokenCounts:
    """Tokens of an item; counted once and kept with it."""
    if item.tokens is None:
        item.tokens = _count(item)
    return item.tokens


def _count(item: StoredItem) -> TokenCounts:
    rate = OUTPUT_TOKENS_PER_SECOND if item.role == "assistant" else INPUT_TOKENS_PER_SECOND
    text = sum(count_text(said) for said in (item.name, item.arguments, item.output))
    audio = image = 0
    for part in item.parts:
        audio += math.ceil(part.audio_ms * rate / 1000)
        if part.image is not None:
            image += _PICTURES.tokens(part.image.size, part.image.detail)
        elif part.type != "input_audio":
            text += count_text(part.text)
    return TokenCounts(text=text, audio=audio, image=image)
