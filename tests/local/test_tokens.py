"""Estimates of tokens."""

from __future__ import annotations

import io

from PIL import Image

from realtime.chat.messages import ImageContent
from realtime.local.items import StoredItem, StoredPart
from realtime.local.tokens import count_image, count_text, usage_of


def test_text_has_a_token_in_four_characters() -> None:
    assert [count_text(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


def test_pictures_cost_by_their_tiles() -> None:
    assert count_image((1024, 1024), "auto") == 85 + 4 * 170
    assert count_image((512, 512), "high") == 85 + 170
    assert count_image((4000, 3000), "high") == 85 + 4 * 170
    assert count_image((4000, 3000), "low") == 85
    assert count_image(None, "auto") == 85


def test_usage_counts_each_kind_and_sums() -> None:
    file = io.BytesIO()
    Image.new("RGB", (512, 512)).save(file, "PNG")
    image = ImageContent.from_bytes(file.getvalue(), "image/png")
    spoken = StoredItem(id="a", kind="message", role="user", parts=[StoredPart(type="input_audio", audio_ms=2000)])
    shown = StoredItem(id="b", kind="message", role="user", parts=[StoredPart(type="input_image", image=image)])
    typed = StoredItem(id="c", kind="message", role="user", parts=[StoredPart(type="input_text", text="x" * 40)])
    said = StoredItem(
        id="d", kind="message", role="assistant", parts=[StoredPart(type="output_audio", text="y" * 8, audio_ms=1000)]
    )
    usage = usage_of([spoken, shown, typed], "z" * 16, [said])
    assert usage["input_token_details"] == {
        "text_tokens": 4 + 10 + 12,
        "audio_tokens": 20,
        "image_tokens": 255,
        "cached_tokens": 0,
    }
    assert usage["output_token_details"] == {"text_tokens": 2, "audio_tokens": 20}
    assert usage["input_tokens"] == 26 + 20 + 255
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
