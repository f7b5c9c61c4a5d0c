"""`RealtimeSession`: what is said and shown, and what comes back (architecture section 7)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from PIL import Image

from realtime import (
    AudioContent,
    ChatContext,
    ChatMessage,
    ChatRole,
    ContextWindow,
    Conversation,
    EncodeOptions,
    ModelCapabilities,
    RealtimeSession,
    ResizeOptions,
    TurnDetection,
    UsageLimits,
)
from realtime.errors import ArgumentError, SessionClosed, UsageLimitExceeded, UserError
from realtime.events import (
    AudioReceived,
    ContextSummarized,
    ErrorReported,
    MessageCommitted,
    MessagesRemoved,
    ReplyInterrupted,
    SessionEnded,
    TranscriptUpdated,
    TurnCompleted,
)
from realtime.pcm import wav_bytes
from realtime.testing import openai_script

SMALL = EncodeOptions(resize_options=ResizeOptions(32, 32))


def texts(messages: Any) -> list[tuple[str, str]]:
    return [(str(message.role), message.content) for message in messages]


async def test_a_typed_turn_is_answered_and_recorded(obliging):
    model = obliging("Hello there.")
    async with RealtimeSession(model, instructions="Be brief.") as session:
        ids = await session.send("Hi")
        turn = await session.wait_for_reply()
    assert texts(turn.messages) == [("assistant", "Hello there.")]
    assert texts(session.all_messages()) == [("user", "Hi"), ("assistant", "Hello there.")]
    assert session.all_messages()[0].message_id == ids[0]
    assert texts(session.context.messages()) == texts(session.new_messages()) == texts(session.all_messages())
    assert model.all("session.update")[0]["session"]["instructions"] == "Be brief."


async def test_media_asks_for_no_reply_and_text_does_unless_told(obliging):
    model = obliging()
    async with RealtimeSession(model, encode_options=SMALL) as session:
        await session.send_image(Image.new("RGB", (8, 8), "red"))
        await session.send("Just so you know.", respond=False)
        await session.send(AudioContent.from_wav(wav_bytes(bytes(4800), 24_000, 1), transcript="hm"))
        await model.hears("conversation.item.create", 3)
        assert model.all("response.create") == []
        await session.create_response()
        await session.wait_for_reply()
    assert len(model.all("response.create")) == 1


async def test_a_picture_is_encoded_as_chosen(obliging):
    model = obliging()
    async with RealtimeSession(model, encode_options=SMALL, image_detail="low") as session:
        await session.send(["What is this?", Image.new("RGB", (80, 80), "red")])
        await session.wait_for_reply()
        [message, _] = session.all_messages()
    assert message.content == "What is this?"
    assert [image.size for image in message.images] == [(32, 32)]
    content = model.all("conversation.item.create")[0]["item"]["content"]
    assert [part["type"] for part in content] == ["input_text", "input_image"]


async def test_pictures_shown_by_hand_are_frames_of_their_source(obliging):
    """H8, W2: the window keeps the newest of each source, the rest go first."""
    model = obliging()
    window = ContextWindow(max_tokens=200, keep_recent_frames=2)
    async with RealtimeSession(model, encode_options=SMALL, window=window) as session:
        ids = [await session.send_image(Image.new("RGB", (8, 8), "red")) for _ in range(6)]
        await session.send_image(Image.new("RGB", (8, 8), "red"), source="screen")
        await session.send("What do you see?")
        await session.wait_for_reply()
        frames = [message for message in session.context.messages() if message.is_frame]
        with pytest.raises(ArgumentError, match="source"):
            await session.send_image(Image.new("RGB", (8, 8)), source="")
        with pytest.raises(ArgumentError):
            await session.send_image("no picture")
    assert [message.source for message in frames] == ["camera", "camera", "screen"]
    assert [message.message_id for message in frames][:2] == ids[-2:]
    assert len([message for message in session.all_messages() if message.is_frame]) == 7


async def test_whoever_reacts_to_an_event_sees_history_at_least_that_far(obliging):
    async with RealtimeSession(obliging("One.", "Two.")) as session:
        events = aiter(session)
        await session.send("a")
        await session.wait_for_reply()
        await session.send("b")
        await session.wait_for_reply()
        seen = 0
        while seen < 4:
            event = await anext(events)
            if isinstance(event, MessageCommitted):
                seen += 1
                assert event.message in session.all_messages()


async def test_iterators_begin_when_they_are_made_and_end_after_the_last_event(obliging):
    async with RealtimeSession(obliging("One.")) as session:
        early = aiter(session)
        await session.send("a")
        await session.wait_for_reply()
        late = aiter(session)
    kinds = [type(event) for event in [event async for event in early]]
    assert kinds[-1] is SessionEnded
    assert kinds.count(SessionEnded) == 1
    assert kinds.count(TurnCompleted) == 1
    assert [type(event) for event in [event async for event in late]] == [SessionEnded]
    assert [event async for event in session] == []


async def test_replies_are_streamed_as_audio_and_as_transcripts(obliging):
    async with RealtimeSession(obliging("One two three.")) as session:
        audio, growing = session.stream_audio(), session.stream_transcripts(delta=True)
        finished = session.stream_transcripts()
        await session.send("a")
        pcm = b""
        while len(pcm) < 14_400:
            pcm += await anext(audio)
        waiting = asyncio.create_task(anext(audio))  # comes back: the last chunk counts as heard
        await session.wait_for_reply()
        message: ChatMessage = await anext(finished)
        words = [await anext(growing)]
        while not words[-1].final:
            words.append(await anext(growing))
    assert len(pcm) == 14_400
    assert (message.role, message.content) == (ChatRole.ASSISTANT, "One two three.")
    assert all(isinstance(word, TranscriptUpdated) for word in words)
    assert words[-1].text == "One two three."
    with pytest.raises(StopAsyncIteration):
        await waiting
    assert [chunk async for chunk in audio] == []


async def test_waiting_for_replies_first_to_first(obliging):
    model = obliging("One.", "Two.", "Three.")
    async with RealtimeSession(model) as session:
        await session.send("a")
        first = await session.wait_for_reply()
        await session.send("b")
        await model.hears("response.create", 2)
        await session.send("c")
        second, third = await session.wait_for_reply(), await session.wait_for_reply()
    assert [texts(turn.messages)[0][1] for turn in (first, second, third)] == ["One.", "Two.", "Three."]


async def test_waiting_after_a_reply_that_is_over_already_gives_it(obliging):
    async with RealtimeSession(obliging("One.")) as session:
        events = aiter(session)
        await session.send("a")
        while not isinstance(await anext(events), TurnCompleted):
            pass
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "One.")]


async def test_a_reply_that_nobody_waited_for_is_not_the_next_one(obliging):
    async with RealtimeSession(obliging("One.", "Two.")) as session:
        events = aiter(session)
        await session.send("a")
        while not isinstance(await anext(events), TurnCompleted):
            pass
        await session.send("b")
        assert texts((await session.wait_for_reply()).messages) == [("assistant", "Two.")]


async def test_waiting_ends_with_the_session(obliging):
    model = obliging()
    model.hold()
    async with RealtimeSession(model) as session:
        await session.send("a")
        waiting = asyncio.create_task(session.wait_for_reply())
        await model.hears("response.create")
        await session.aclose()
        with pytest.raises(SessionClosed):
            await waiting


async def test_what_is_interrupted_keeps_what_was_heard(obliging):
    """P1: with a reader, a chunk counts when it comes back for the next."""
    async with RealtimeSession(obliging("one two three four five six")) as session:
        events, audio = aiter(session), session.stream_audio()
        await session.send("a")
        heard = b""
        while len(heard) < 24_000:
            heard += await anext(audio)
        await session.interrupt()
        while not isinstance(event := await anext(events), TurnCompleted):
            if isinstance(event, ReplyInterrupted):
                interrupted = event
        [_, message] = session.all_messages()
    assert interrupted.cause == "interrupt"
    assert message.interrupted
    assert message.heard_ms == interrupted.heard_ms
    assert 0 < message.heard_ms < 600
    assert f"{message.content} {message.unheard}" == "one two three four five six"
    assert event.interrupted


async def test_the_listener_s_own_report_overrides(obliging):
    """P0."""
    async with RealtimeSession(obliging("one two three four")) as session:
        audio = session.stream_audio()
        await session.send("a")
        await anext(audio)
        await session.interrupt(played_ms=200)
        turn = await session.wait_for_reply()
    assert turn.messages[0].heard_ms == 200


@pytest.mark.parametrize("played_ms", [-1, True, 1.5, "200"])
async def test_a_position_that_cannot_be_is_refused(obliging, played_ms):
    async with RealtimeSession(obliging()) as session:
        with pytest.raises(ArgumentError, match="played_ms"):
            await session.interrupt(played_ms=played_ms)


async def test_interrupting_when_nothing_is_said_does_nothing(obliging):
    async with RealtimeSession(obliging()) as session:
        await session.interrupt()
    assert session.all_messages() == []


# -- push-to-talk --------------------------------------------------------------------------------------------------------


async def test_push_to_talk_is_a_turn_a_commit(obliging):
    model = obliging("I heard you.")
    async with RealtimeSession(model, turn_detection=TurnDetection(mode="manual")) as session:
        await session.commit_audio()  # T6: nothing was said
        await session.send_audio(bytes(4801))
        await session.send_audio(bytes(4799))
        await session.commit_audio()
        await session.create_response()
        await session.wait_for_reply()
    assert model.audio_bytes == pytest.approx(9600, abs=4)
    assert len(model.all("input_audio_buffer.commit")) == 1
    assert texts(session.all_messages()) == [("user", "What was said."), ("assistant", "I heard you.")]


async def test_what_was_said_can_be_taken_back(obliging):
    model = obliging()
    async with RealtimeSession(model, turn_detection=TurnDetection(mode="manual")) as session:
        await session.send_audio(bytes(4800))
        await session.clear_audio()
        await model.hears("input_audio_buffer.clear")


async def test_audio_at_another_rate_is_converted(obliging):
    model = obliging()
    async with RealtimeSession(model, turn_detection=TurnDetection(mode="manual")) as session:
        await session.send_audio(bytes(16_000 * 2), rate_hz=16_000)
        await session.commit_audio()
        await model.hears("input_audio_buffer.commit")
    assert model.audio_bytes == pytest.approx(48_000, abs=300)


# -- the context -----------------------------------------------------------------------------------------------------------


async def test_while_it_runs_only_the_session_changes_its_context(obliging):
    context = ChatContext.empty()
    context.add_message(ChatRole.USER, "Earlier.")
    async with RealtimeSession(obliging(), context=context) as session:
        with pytest.raises(UserError, match=r"session\.send"):
            context.add_message(ChatRole.USER, "Sneaked in.")
        await session.send("Hi")
        await session.wait_for_reply()
        assert session.context is context
    context.add_message(ChatRole.USER, "Afterwards.")
    assert texts(context.messages())[0] == ("user", "Earlier.")
    assert texts(session.new_messages()) == [("user", "Hi"), ("assistant", "Yes.")]


async def test_one_context_in_two_sessions_is_an_error(obliging):
    context = ChatContext.empty()
    async with RealtimeSession(obliging(), context=context):
        with pytest.raises(UserError):
            async with RealtimeSession(obliging(), context=context):
                pass
    async with RealtimeSession(obliging(), context=context):
        pass


async def test_message_history_is_copied_and_seeded(obliging):
    history = [ChatMessage(ChatRole.SYSTEM, "You are kind."), ChatMessage(ChatRole.USER, "Earlier.", "m1")]
    model = obliging()
    async with RealtimeSession(model, instructions="Be brief.", message_history=history) as session:
        await model.hears("conversation.item.create")
        assert session.new_messages() == []
        assert len(session.all_messages()) == 2
    instructions = model.all("session.update")[0]["session"]["instructions"]
    assert "Be brief." in instructions
    assert "You are kind." in instructions
    assert len(history) == 2


async def test_a_conversation_goes_on_in_the_next_session(obliging):
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}

    def reply(response_id: str, item_id: str, previous: str | None) -> Any:
        return openai_script.written_reply(response_id, item_id, "One.", previous_item_id=previous, usage=usage)

    async with RealtimeSession(obliging(reply)) as first:
        await first.send("a")
        await first.wait_for_reply()
    bundle = first.conversation
    assert bundle.usage.total_tokens == 15
    model = obliging(reply)
    async with RealtimeSession(model, conversation=bundle) as second:
        assert texts(second.all_messages()) == [("user", "a"), ("assistant", "One.")]
        await second.send("b")
        await second.wait_for_reply()
        assert second.usage.total_tokens == 30
    limited = RealtimeSession(obliging(reply), conversation=bundle, usage_limits=UsageLimits(max_tokens=25))
    async with limited:
        events = aiter(limited)
        await limited.send("b")
        with pytest.raises(UsageLimitExceeded):
            await _drain(events)
    after = second.conversation
    assert after.id == bundle.id
    assert after.revision > bundle.revision
    assert texts(after.messages) == [("user", "a"), ("assistant", "One."), ("user", "b"), ("assistant", "One.")]
    assert texts(second.new_messages()) == [("user", "b"), ("assistant", "One.")]


async def test_earlier_pictures_that_the_model_cannot_take_are_refused_before_connecting(obliging):
    history = [ChatMessage(ChatRole.USER, "Look.", "m1", images=(_picture(),))]
    model = obliging(capabilities=ModelCapabilities(supports_seeding_images=False))
    with pytest.raises(UserError, match="picture"):
        RealtimeSession(model, message_history=history)
    assert model.connections == 0


async def _drain(events: Any) -> None:
    async for _event in events:
        pass


def _picture() -> Any:
    from realtime import ImageContent

    return ImageContent.from_frame(Image.new("RGB", (4, 4)))


async def test_the_window_trims_while_the_talk_goes_on_and_the_provider_is_told(obliging):
    """W5."""
    model = obliging(*["word " * 20 for _ in range(8)])
    window = ContextWindow(max_tokens=120, keep_recent_turns=1)
    async with RealtimeSession(model, window=window) as session:
        events = aiter(session)
        for number in range(6):
            await session.send(f"question {number}")
            await session.wait_for_reply()
        removed = session.statistics().machine.messages_trimmed
        assert removed > 0
        assert len(session.context) < len(session.all_messages())
        await model.hears("conversation.item.delete", removed)
    assert any([isinstance(event, MessagesRemoved) async for event in events])


async def test_older_messages_are_summarized_in_the_background(obliging):
    """W4: the digest stands where they stood, a reply never waits for it."""

    class Digest:
        def __init__(self) -> None:
            self.seen: list[int] = []

        async def summarize(self, messages: Any) -> str:
            self.seen.append(len(messages))
            return "They counted."

    digest = Digest()
    window = ContextWindow(max_tokens=160, keep_recent_turns=1, summary_llm=digest)
    async with RealtimeSession(obliging(*["word " * 20] * 8), window=window) as session:
        events = aiter(session)
        for number in range(5):
            await session.send(f"question {number}")
            await session.wait_for_reply()
        while not isinstance(event := await anext(events), ContextSummarized):
            pass
        assert event.message.summary
        assert event.message.content == "They counted."
        assert any(message.summary for message in session.context.messages())
        assert not any(message.summary for message in session.all_messages())
    assert digest.seen


async def test_a_summarizer_that_fails_is_told_and_the_window_trims(obliging):
    class Broken:
        async def summarize(self, messages: Any) -> str:
            raise ConnectionError("the summarizer is away")

    window = ContextWindow(max_tokens=160, keep_recent_turns=1, summary_llm=Broken())
    async with RealtimeSession(obliging(*["word " * 20] * 8), window=window) as session:
        events = aiter(session)
        for number in range(5):
            await session.send(f"question {number}")
            await session.wait_for_reply()
        while not isinstance(event := await anext(events), ErrorReported):
            pass
        assert (event.where, type(event.error)) == ("summary", ConnectionError)
        assert session.statistics().machine.messages_trimmed > 0


async def test_pending_shows_what_is_still_being_said(obliging):
    model = obliging("One.")
    async with RealtimeSession(model) as session:
        audio = session.stream_audio()
        await session.send("a")
        await anext(audio)
        assert ("assistant", "One.") in texts(session.pending)
        assert texts(session.all_messages()) == [("user", "a")]
        waiting = asyncio.create_task(anext(audio))
        await session.wait_for_reply()
        assert session.pending == ()
    with pytest.raises(StopAsyncIteration):
        await waiting


# -- figures ------------------------------------------------------------------------------------------------------------------


async def test_figures_can_be_read_before_while_and_after(obliging):
    session = RealtimeSession(obliging("One."), message_history=[ChatMessage(ChatRole.USER, "x", "m")])
    assert session.statistics().machine.context_messages == 1
    assert session.statistics().connected is False
    assert session.capabilities.model == "obliging"
    assert session.profile == session.capabilities
    assert session.context_window_used is None
    assert len(session.all_messages()) == 1
    async with session:
        events = aiter(session)
        await session.send("a")
        await session.wait_for_reply()
        figures = session.statistics()
        assert figures.connected
        assert figures.machine.responses == 1
        assert figures.memory.total == 0
        assert figures.events_waiting == _waiting(events)
    assert session.statistics().connected is False
    assert session.statistics().machine.responses == 1


def _waiting(events: Any) -> int:
    return events.waiting


async def test_audio_events_carry_the_reply(obliging):
    async with RealtimeSession(obliging("One.")) as session:
        events = aiter(session)
        await session.send("a")
        await session.wait_for_reply()
    chunks = [event.pcm async for event in events if isinstance(event, AudioReceived)]
    assert len(b"".join(chunks)) == 4800


async def test_conversation_of_an_empty_session_is_empty(obliging):
    session = RealtimeSession(obliging())
    assert session.conversation.messages == ()
    assert isinstance(session.conversation, Conversation)
