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
from realtime.local.items import StoredItem
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
        text += ITEM_TOKENS + count_text(item.arguments) + count_text(item.output)
        for part in item.parts:
            if part.type == "input_audio":
                audio += math.ceil(part.audio_ms * INPUT_TOKENS_PER_SECOND / 1000)
            elif part.image is not None:
                image += _PICTURES.tokens(part.image.size, part.image.detail)
            else:
                text += count_text(part.text)
    out_text = out_audio = 0
    for item in output:
        out_text += count_text(item.name) + count_text(item.arguments)
        out_text += sum(count_text(part.text) for part in item.parts)
        out_audio += sum(math.ceil(part.audio_ms * OUTPUT_TOKENS_PER_SECOND / 1000) for part in item.parts)
    return Usage(
        total_tokens=text + audio + image + out_text + out_audio,
        input_tokens=text + audio + image,
        output_tokens=out_text + out_audio,
        input_token_details=UsageDetails(text_tokens=text, audio_tokens=audio, image_tokens=image, cached_tokens=0),
        output_token_details=UsageDetails(text_tokens=out_text, audio_tokens=out_audio),
    )
