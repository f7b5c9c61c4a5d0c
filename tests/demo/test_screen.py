"""What is shown: lines in a pipe, a drawn screen on a terminal."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall
from realtime.core import events as ev
from realtime.demo.live import LiveScreen
from realtime.demo.log import Budget, CallLog
from realtime.demo.screen import PlainScreen, context_lines, make_screen

SPEECH = ev.TranscriptUpdated(message_id="m", role=ChatRole.USER, delta="", text="what is this", final=True)
BUDGETS = (Budget(name="pictures", used=2, bound=2), Budget(name="tokens", used=150, bound=None))


def test_lines_name_the_time_and_who(capsys: pytest.CaptureFixture[str]) -> None:
    screen, log = PlainScreen(), CallLog(10.0)
    screen.open(log, "a call")
    screen.show(log.take(SPEECH, 11.5), BUDGETS)
    screen.close()
    assert capsys.readouterr().out.splitlines() == ["a call", "  1.50 s  user   “what is this”"]


def test_a_pipe_gets_lines() -> None:
    assert isinstance(make_screen(plain=False), PlainScreen)


def test_the_live_screen_shows_talk_frames_budgets_and_latencies() -> None:
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=130, height=40, color_system=None)
    screen, log = LiveScreen(console), CallLog(0.0)
    screen.open(log, "a call")
    try:
        for event in (
            ev.SpeechStarted(message_id="m", at_ms=0),
            SPEECH,
            ev.FrameKept(
                message_id="f", source="camera", reason="end_of_turn", captured_at=1.25, age_ms=44, width=1024,
                height=1024, byte_length=1,
            ),
            ev.TranscriptUpdated(message_id="r", role=ChatRole.ASSISTANT, delta="", text="a street", final=False),
            ev.MessagesRemoved(message_ids=("f",), reason="image_budget"),
            ev.TurnCompleted(
                reply_id="r", messages=(), interrupted=False, usage=None, latency=ev.TurnLatency(first_audio_ms=412)
            ),
        ):  # fmt: skip
            screen.show(log.take(event, 2.0), BUDGETS)
    finally:
        screen.close()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    last = shown[shown.rindex("a call") :]
    for words in (
        "user speaks", "model listens", "“what is this”", "a street", "end_of_turn → image_budget", "44 ms",
        "2 of 2", "150 of any", "evicted 1", "412 ms",
    ):  # fmt: skip
        assert words in last, f"{words!r} is not shown"


def test_a_context_is_told_in_one_line_a_message() -> None:
    messages = [
        ChatMessage(ChatRole.USER, "x\n" * 200, "1"),
        ChatMessage(ChatRole.ASSISTANT, "", "2", tool_calls=(FunctionCall("clock", "{}", "c"),)),
        ChatMessage(ChatRole.ASSISTANT, "Well", "3", interrupted=True, heard_ms=700, unheard="then."),
        ChatMessage(ChatRole.USER, "", "4"),
    ]
    lines = context_lines(messages)
    assert len(lines) == 4
    assert all("\n" not in line and len(line) < 160 for line in lines)
    assert "…" in lines[0]
    assert "calls clock({})" in lines[1]
    assert "interrupted after 700 ms, unheard “then.”" in lines[2]
    assert "(no words)" in lines[3]
