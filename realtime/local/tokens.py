"""Estimates of tokens, for `usage` and `max_output_tokens`.

Owns: the rules. Driven by a running response. They are estimates by OpenAI's published rates, since no provider's
tokenizer is at work here: a text token is about 4 characters of English, input audio makes 10 tokens a second and
output audio 20 (https://platform.openai.com/docs/guides/realtime-costs). Never acts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from realtime.local.items import StoredItem
from realtime.wire.openai_messages import Usage, UsageDetails

__all__ = ["CHARS_PER_TOKEN", "count_text", "usage_of"]

CHARS_PER_TOKEN = 4
"""Characters of English text in a token."""
INPUT_TOKENS_PER_SECOND = 10
OUTPUT_TOKENS_PER_SECOND = 20
ITEM_TOKENS = 4
"""What an item costs besides its content."""
TILE_SIDE = 512
TILE_TOKENS = 170
IMAGE_TOKENS = 85
"""A picture costs this and `TILE_TOKENS` for every tile of its scaled self (OpenAI's rule for tiles)."""


def count_text(text: str) -> int:
    """Tokens of a text."""
    return math.ceil(len(text) / CHARS_PER_TOKEN)


def count_image(size: tuple[int, int] | None, detail: str) -> int:
    """Tokens of a picture: scaled into 2048×2048, then to a shorter side of 768, in tiles of 512."""
    if detail == "low" or size is None:
        return IMAGE_TOKENS
    width, height = size
    scale = min(1.0, 2048 / max(width, height))
    scale *= min(1.0, 768 / (min(width, height) * scale))
    tiles = math.ceil(width * scale / TILE_SIDE) * math.ceil(height * scale / TILE_SIDE)
    return IMAGE_TOKENS + TILE_TOKENS * tiles


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
        text += ITEM_TOKENS + count_text(item.arguments + item.output)
        for part in item.parts:
            if part.type == "input_audio":
                audio += math.ceil(part.audio_ms * INPUT_TOKENS_PER_SECOND / 1000)
            elif part.image is not None:
                image += count_image(part.image.size, part.image.detail)
            else:
                text += count_text(part.text)
    out_text = out_audio = 0
    for item in output:
        out_text += count_text(item.name + item.arguments)
        out_text += sum(count_text(part.text) for part in item.parts)
        out_audio += sum(math.ceil(part.audio_ms * OUTPUT_TOKENS_PER_SECOND / 1000) for part in item.parts)
    return Usage(
        total_tokens=text + audio + image + out_text + out_audio,
        input_tokens=text + audio + image,
        output_tokens=out_text + out_audio,
        input_token_details=UsageDetails(text_tokens=text, audio_tokens=audio, image_tokens=image, cached_tokens=0),
        output_token_details=UsageDetails(text_tokens=out_text, audio_tokens=out_audio),
    )
