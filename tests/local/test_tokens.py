"""Estimates of tokens."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from realtime.chat.messages import ImageContent
from realtime.local.items import StoredItem, StoredPart
from realtime.local.tokens import count_text, cut_text, usage_of


def test_text_is_cut_behind_the_last_word_that_fits() -> None:
    text = "One two three four five."
    assert cut_text(text, count_text(text)) == text
    cut = cut_text(text, 3)
    assert text.startswith(cut)
    assert 0 < count_text(cut) <= 3
    assert cut_text(text, 0) == ""
    assert cut_text("", 0) == ""


def test_usage_counts_each_kind_and_sums() -> None:
    file = io.BytesIO()
    Image.new("RGB", (512, 512)).save(file, "PNG")
    image = ImageContent.from_bytes(file.getvalue(), "image/png")
    spoken = StoredItem(id="a", kind="message", role="user", parts=[StoredPart(type="input_audio", audio_ms=2000)])
    shown = StoredItem(id="b", kind="message", role="user", parts=[StoredPart(type="input_image", image=image)])
    typed = StoredItem(id="c", kind="message", role="user", parts=[StoredPart(type="input_text", text="one two three")])
    part = StoredPart(type="output_audio", text="four five", audio_ms=1000)
    said = StoredItem(id="d", kind="message", role="assistant", parts=[part])
    usage = usage_of([spoken, shown, typed], "Be brief.", [said])
    details = usage["input_token_details"]
    assert details["text_tokens"] == count_text("Be brief.") + count_text("one two three") + 3 * 4
    assert (details["audio_tokens"], details["image_tokens"]) == (20, 85 + 170)
    assert usage["output_token_details"] == {"text_tokens": count_text("four five"), "audio_tokens": 20}
    assert usage["input_tokens"] == pytest.approx(sum(details.values()))
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
