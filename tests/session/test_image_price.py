"""A session counts pictures by the rule of its model's provider (W1), unless it was given a counter of the application's own."""

from __future__ import annotations

import pytest

from realtime import (
    Agent,
    AzureRealtime,
    ContextWindow,
    GeminiLive,
    ImageContent,
    ModelCapabilities,
    OpenAIRealtime,
    RealtimeSession,
    WordCounter,
    image_price,
)
from realtime.chat.image_prices import IMAGE_PRICES
from realtime.chat.messages import ChatMessage, ChatRole
from realtime.chat.tokens import O200kCounter, as_counter
from realtime.errors import ArgumentError
from realtime.events import MessagesRemoved, Reconnected

PICTURE = ChatMessage(
    ChatRole.USER, "", "m1", images=(ImageContent.from_bytes(b"GIF89a\x00\x08\x00\x10\x00\x00\x00;", "image/gif"),)
)
"""2048×4096 pixels."""


def counted(model: object, window: ContextWindow | None = None) -> int:
    session = RealtimeSession(model, window=window)  # type: ignore[arg-type]
    return session._settings.window.count_message(PICTURE)


@pytest.mark.parametrize(
    ("model", "rule", "tokens"),
    [
        (OpenAIRealtime("gpt-realtime", url="ws://127.0.0.1:1"), "openai-tiles", 1105),
        (AzureRealtime("gpt-realtime", url="ws://127.0.0.1:1", api_key="k"), "openai-tiles", 1105),
        (GeminiLive("gemini-3.8-live", url="ws://127.0.0.1:1"), "gemini-3", 1120),
        (GeminiLive("gemini-2.5-flash-native-audio", url="ws://127.0.0.1:1"), "gemini-tiles", 258 * 8),
    ],
)
def test_a_picture_costs_what_the_provider_says(model: object, rule: str, tokens: int):
    assert counted(model) == tokens == image_price(rule).tokens((2048, 4096), "auto")
    assert counted(model, ContextWindow(max_tokens=100)) == tokens


@pytest.mark.parametrize("counter", ["words", "estimate", "o200k", len])
def test_a_counter_that_says_nothing_of_pictures_leaves_them_to_the_provider(counter: object):
    model = GeminiLive("gemini-3.8-live", url="ws://127.0.0.1:1")
    window = ContextWindow(counter=counter)  # type: ignore[arg-type]
    assert counted(model, window) == 1120
    assert window.count_message(PICTURE) == 1105  # outside of a session nothing has changed


def test_a_counter_of_the_application_s_own_is_used_as_it_is():
    model = GeminiLive("gemini-3.8-live", url="ws://127.0.0.1:1")
    assert counted(model, ContextWindow(counter=WordCounter())) == 1105
    assert counted(model, ContextWindow(counter=WordCounter(images=image_price("anthropic-area")))) == 1600
    assert counted(model, ContextWindow(counter=O200kCounter())) == 1105
    assert as_counter("o200k") is as_counter("o200k")


def test_every_rule_that_a_model_names_is_one_and_another_is_refused():
    for rule in IMAGE_PRICES:
        assert ContextWindow().priced(rule).count_message(PICTURE) >= 1
    model = OpenAIRealtime("gpt-realtime", url="ws://127.0.0.1:1", capabilities=ModelCapabilities(image_price="guess"))
    with pytest.raises(ArgumentError, match="guess"):
        RealtimeSession(model)


def test_trimming_in_a_session_goes_by_the_provider_s_price():
    """Three pictures of 258 tokens each fit where three of 1105 do not."""
    model = GeminiLive("gemini-2.5-flash-native-audio", url="ws://127.0.0.1:1")
    session = RealtimeSession(model, window=ContextWindow(max_tokens=900))
    small = ImageContent.from_bytes(b"GIF89a\x00\x01\x00\x01\x00\x00\x00;", "image/gif")
    for _ in range(3):
        session.context.add_message("user", "", images=[small])
    assert session._settings.window.count(session.context) == 3 * 258
    assert ContextWindow(max_tokens=900).count(session.context) == 3 * 255


SMALL = ImageContent.from_bytes(b"GIF89a\x00\x01\x00\x01\x00\x00\x00;", "image/gif")
"""256×256 pixels: 255 tokens by OpenAI's tiles, 1120 by Gemini 3's rule."""


@pytest.mark.parametrize("counter", [None, "estimate", len, WordCounter()])
async def test_the_price_follows_a_hand_off_to_another_model(obliging, counter):
    """W1, W5: what fitted before may be too much for the one that takes over, and fits again at the one before it."""
    first, second = obliging(), obliging(capabilities=ModelCapabilities(image_price="gemini-3"))
    window = ContextWindow(max_tokens=2_500, keep_recent_turns=1, counter=counter)
    async with RealtimeSession(first, window=window) as session:
        events = aiter(session)
        for name in ("a", "b", "c"):
            await session.send([name, SMALL])
            await session.wait_for_reply()
        await session.hand_off(Agent(id="other", model=second))
        removed = []
        while not isinstance(event := await anext(events), Reconnected):
            removed += event.message_ids if isinstance(event, MessagesRemoved) else ()
        is_own = isinstance(counter, WordCounter)
        assert session.settings.window.count_message(PICTURE) == (1105 if is_own else 1120)
        pictures = sum(len(message.images) for message in session.context.messages())
        assert pictures == (3 if is_own else 2)
        assert bool(removed) is not is_own
        await session.hand_off("agent")
        while not isinstance(await anext(events), Reconnected):
            pass
        assert session.settings.window.count_message(PICTURE) == 1105


async def test_a_model_that_names_no_rule_there_is_does_not_take_over(obliging):
    second = obliging(capabilities=ModelCapabilities(image_price="guess"))
    async with RealtimeSession(obliging()) as session:
        with pytest.raises(ArgumentError, match="guess"):
            await session.hand_off(Agent(id="other", model=second))
