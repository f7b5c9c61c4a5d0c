"""The file of a recording: what is noted, what values survive, and that nothing else is changed by it."""

from __future__ import annotations

import inspect

import pytest

from realtime.chat.conversation import TokenUsage
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.chat.window import ContextWindow
from realtime.core.acts import MachineActs
from realtime.core.events import ErrorReported, TurnCompleted, TurnLatency
from realtime.core.machine import SessionMachine
from realtime.core.sampling import FrameFacts
from realtime.core.settings import Agent, Prices, SessionSettings, ToolSpec, UsageLimits
from realtime.errors import LinkLost, ModelError, UsageLimitExceeded, UserError
from realtime.pipelines.record import ENTRANCES, SessionIds
from realtime.pipelines.record_values import RecordedError, ValueReader, ValueWriter, describe

JPEG = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffc0000b080010001001011100ffc4001400010000000000000000000000000000000000ffda"
    "0008010100003f00d2cf20ffd9"
)
READS = {
    *("next_event", "next_command", "get_deadline", "messages", "new_messages", "statistics", "configuration"),
    *("revision", "pending", "usage", "context_window_used", "agent", "is_closed", "is_connected"),
    *("is_busy", "control_waiting", "has_link_command", "context", "looks_at_frame", "published", "is_frame_due"),
    *("heard_so_far", "has_output", "would_hold_frame", "frame_lull"),
}


def again(value, **options):
    blobs: list[bytes] = []
    return ValueReader(**options).decode(ValueWriter().encode(value, blobs), blobs)


def test_every_call_of_the_machine_is_an_entrance_or_only_reads():
    """One that is added and forgotten here would make recordings that cannot be played."""
    public = {name for name, _ in inspect.getmembers(SessionMachine) if not name.startswith("_")}
    assert public - READS == ENTRANCES
    assert issubclass(SessionMachine, MachineActs)


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -1.5,
        "Grüße 你好 \ud800",
        b"\x00\xff",
        (1, [2, (3,)], {"a": [b"x"], 7: None}),
        {"$": "not a class", "$bytes": 3},
        ChatRole.TOOL,
        ImageContent.from_bytes(JPEG, "image/jpeg", "low"),
        ImageContent(url="https://example.com/a.png", detail="high"),
        AudioContent.from_pcm(b"\x01\x00" * 100, 16_000, transcript="hi"),
        ChatMessage(
            ChatRole.ASSISTANT,
            "text",
            "m1",
            (FunctionCall("f", "{}", "c1", provider_data={"signature": ["x", {"y": 1}]}),),
            images=(ImageContent.from_bytes(JPEG, "image/jpeg"),),
            created_at=1.25,
            thinking="hm",
            interrupted=True,
            heard_ms=5,
            unheard="more",
            provider_data={"phase": "final"},
        ),
        FrameFacts(frame_id=1, source="c", captured_at=0.1, pts_ms=2, width=3, height=4, thumbprint=b"\x07" * 1024),
        ToolSpec(name="f", parameters={"type": "object", "required": ["a"], "properties": {"a": {"enum": [1, "x"]}}}),
        UsageLimits(max_cost=1.0, prices=Prices(input_text=2.0)),
        TurnCompleted(reply_id="r", messages=(), interrupted=False, usage=TokenUsage(), latency=TurnLatency()),
    ],
)
def test_values_survive(value):
    assert again(value) == value
    assert type(again(value)) is type(value)
    assert describe(again(value)) == describe(value)


def test_settings_survive_without_what_only_the_shells_use():
    settings = SessionSettings(
        agent=Agent(id="a", instructions="Be kind.", tools=(print,)),
        window=ContextWindow(max_tokens=9, counter="o200k"),
    )
    read = again(settings)
    assert read.agent == Agent(id="a", instructions="Be kind.")
    assert (read.window.max_tokens, type(read.window.counter)) == (9, type(settings.window.counter))
    assert read.retention == settings.retention


def test_models_of_hand_offs_are_told_apart_by_identity():
    class Model:
        name = "same"

    one, other = Model(), Model()
    writer, reader = ValueWriter(), ValueReader()
    agents = [reader.decode(writer.encode(Agent(id="x", model=model), []), []) for model in (one, other, one, None)]
    assert agents[0].model is agents[2].model
    assert agents[0].model is not agents[1].model
    assert agents[3].model is None


@pytest.mark.parametrize(
    "error",
    [
        ModelError("no", code="bad", param="x", fatal=True),
        LinkLost("gone", code=1006),
        UsageLimitExceeded("max_tokens", used=5, allowed=4),
        UserError("you"),
    ],
)
def test_our_errors_survive_with_their_fields(error):
    read = again(error)
    assert type(read) is type(error)
    assert (str(read), vars(read)) == (str(error), vars(error))


def test_errors_of_others_survive_by_name_and_words():
    read = again(ZeroDivisionError("division by zero"))
    assert isinstance(read, RecordedError)
    assert (read.recorded_name, str(read)) == ("ZeroDivisionError", "division by zero")
    event = ErrorReported(error=ZeroDivisionError("division by zero"), where="tool x")
    assert describe(again(event)) == describe(event)


def test_what_a_recording_cannot_hold_is_refused():
    with pytest.raises(UserError, match="object"):
        ValueWriter().encode(object(), [])


def test_ids_are_made_again_from_their_beginning():
    ids = SessionIds()
    made = [ids.make() for _ in range(1_000)]
    assert len(set(made)) == 1_000
    assert {len(one) for one in made} == {32}
    same = SessionIds(ids.prefix)
    assert [same.make() for _ in range(1_000)] == made
    assert SessionIds().prefix != ids.prefix
