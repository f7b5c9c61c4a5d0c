"""Every event becomes words or figures; none is lost and none is unknown."""

from __future__ import annotations

from typing import get_args

import pytest

from realtime.chat.messages import AgentHandoff, ChatMessage, ChatRole
from realtime.core import events as ev
from realtime.demo.log import CallLog

MESSAGE = ChatMessage(ChatRole.ASSISTANT, "Hello there.", "m9")
EXAMPLES: dict[type, ev.SessionEvent] = {
    type(event): event
    for event in (
        ev.SpeechStarted(message_id="m1", at_ms=0),
        ev.SpeechStopped(message_id="m1", at_ms=900),
        ev.TranscriptUpdated(message_id="m1", role=ChatRole.USER, delta="hi", text="hi", final=True),
        ev.MessageCommitted(message=MESSAGE),
        ev.MessageChanged(message=MESSAGE, reason="audio_budget"),
        ev.MessagesRemoved(message_ids=("f1",), reason="image_budget"),
        ev.FrameKept(
            message_id="f1", source="camera", reason="schedule", captured_at=11.0, age_ms=40, width=1024, height=1024,
            byte_length=90_000,
        ),
        ev.FrameSkipped(source="camera", reason="unchanged", captured_at=12.0),
        ev.ReplyStarted(reply_id="r1"),
        ev.AudioReceived(reply_id="r1", pcm=b"\0\0", rate_hz=24_000),
        ev.ReplyInterrupted(reply_id="r1", cause="barge_in", heard_ms=500, heard="Hello", unheard="there."),
        ev.TurnCompleted(
            reply_id="r1", messages=(MESSAGE,), interrupted=False, usage=None,
            latency=ev.TurnLatency(transcript_ms=200, first_audio_ms=400),
        ),
        ev.ToolCalled(message_id="m1", call_id="c", name="clock", arguments="{}"),
        ev.ToolFinished(message_id="m2", call_id="c", name="clock", output="noon", is_error=False, seconds=0.01),
        ev.ApprovalRequested(call_id="c", name="clock", arguments="{}"),
        ev.InputRejected(message_id="m2", reason="too large"),
        ev.TranscriptionFailed(message_id="m3", code="x", detail="noise"),
        ev.ContextSummarized(message=MESSAGE, digested=("m1", "m2")),
        ev.HandedOff(handoff=AgentHandoff("b", "a", "asked for")),
        ev.TrackEnded(source="camera", kind="video", error=None),
        ev.DtmfReceived(source="phone", digit="5"),
        ev.ConnectionDropped(reason="gone", will_retry=True),
        ev.Reconnected(state_restored=True, gap_ms=300),
        ev.ErrorReported(error=ValueError("odd"), where="track camera"),
        ev.SessionEnded(reason="closed", error=None),
    )
}  # fmt: skip
SILENT = {ev.AudioReceived, ev.ReplyStarted, ev.FrameSkipped}


def test_examples_cover_the_whole_union() -> None:
    assert set(EXAMPLES) == set(get_args(ev.SessionEvent))


@pytest.mark.parametrize("kind", list(EXAMPLES), ids=lambda kind: kind.__name__)
def test_every_event_is_told_in_one_line_or_counted(kind: type) -> None:
    log = CallLog(10.0)
    lines = log.take(EXAMPLES[kind], 12.5)
    assert len(lines) == (0 if kind in SILENT else 1)
    for line in lines:
        assert line.at == 2.5
        assert line.text
        assert "\n" not in line.text
    assert list(log.lines) == lines


def test_a_growing_transcript_is_shown_whole_and_told_once_in_a_while() -> None:
    log = CallLog(0.0)
    told = []
    for tenth in range(30):
        event = ev.TranscriptUpdated(message_id="m", role=ChatRole.USER, delta=" w", text="w " * tenth, final=False)
        told += log.take(event, tenth / 10)
        assert log.growing["m"] == (ChatRole.USER, event.text)
    assert 2 <= len(told) <= 4
    final = ev.TranscriptUpdated(message_id="m", role=ChatRole.USER, delta="", text="all of it", final=True)
    assert [line.text for line in log.take(final, 3.0)] == ["“all of it”"]
    assert not log.growing


def test_evictions_and_trims_are_told_apart_and_pictures_counted() -> None:
    log = CallLog(10.0)
    kept = EXAMPLES[ev.FrameKept]
    log.take(kept, 11.1)
    assert log.pictures == 1
    log.take(ev.MessagesRemoved(message_ids=("f1",), reason="image_budget"), 11.2)
    assert (log.pictures, log.evicted, log.trimmed) == (0, 1, 0)
    assert log.frames["f1"].left == "image_budget"
    log.take(ev.MessagesRemoved(message_ids=("m1", "m2"), reason="window"), 11.3)
    assert (log.evicted, log.trimmed) == (1, 2)


def test_who_speaks_follows_speech_reply_and_interruption() -> None:
    log = CallLog(0.0)
    seen = []
    for event in (
        EXAMPLES[ev.SpeechStarted], EXAMPLES[ev.SpeechStopped], EXAMPLES[ev.ReplyStarted], EXAMPLES[ev.AudioReceived],
        ev.SpeechStarted(message_id="m2", at_ms=3000), EXAMPLES[ev.ReplyInterrupted], EXAMPLES[ev.TurnCompleted],
    ):  # fmt: skip
        log.take(event, 0.0)
        seen.append((set(log.speaking), log.open_turns))
    assert seen == [
        ({"user"}, 1), (set(), 1), (set(), 1), ({"model"}, 1), ({"model", "user"}, 2), ({"user"}, 2), ({"user"}, 1),
    ]  # fmt: skip


def test_a_long_call_holds_a_bounded_log() -> None:
    log = CallLog(0.0)
    for number in range(3_000):
        frame = ev.FrameKept(
            message_id=f"f{number}", source="camera", reason="change", captured_at=number, age_ms=1, width=1, height=1,
            byte_length=1,
        )  # fmt: skip
        log.take(frame, number)
    assert len(log.lines) == len(log.frames) == 500
    assert list(log.frames)[-1] == "f2999"
