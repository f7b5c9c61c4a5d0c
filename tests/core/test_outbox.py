"""What waits for the socket: control before audio before pictures (architecture section 5)."""

from __future__ import annotations

import itertools

from realtime.chat.messages import ChatMessage, ChatRole
from realtime.core import commands as do
from realtime.core.input_audio import InputAudio
from realtime.core.outbox import Outbox


def make() -> tuple[Outbox, InputAudio]:
    audio = InputAudio(rate_hz=1_000, lane_seconds=10, replay_seconds=1, records=False)
    ids = itertools.count()
    return Outbox(audio, make_id=lambda: f"a{next(ids)}"), audio


def item(name: str, *, source: str = "") -> do.CreateItem:
    return do.CreateItem(
        command_id=name,
        message=ChatMessage(ChatRole.USER, name, name),
        item_ids=(name,),
        lane="picture" if source else "control",
        source=source,
    )


def test_nothing_leaves_before_a_connection_is_up():
    outbox, audio = make()
    audio.push(b"\x00\x00")
    outbox.put(do.CreateResponse(command_id="c"))
    assert outbox.take() is None
    assert outbox.has_waiting() is False


def test_control_before_audio_before_pictures():
    outbox, audio = make()
    outbox.open([], discard_waiting=True)
    outbox.put_picture(item("p1", source="camera"))
    audio.push(b"\x00\x00")
    outbox.put(do.CreateResponse(command_id="c"))
    assert [outbox.take().command_id for _ in range(3)] == ["c", "a0", "p1"]
    assert outbox.take() is None


def test_newest_picture_of_each_source():
    outbox, _ = make()
    outbox.open([], discard_waiting=True)
    assert outbox.put_picture(item("p1", source="camera")) is None
    outbox.put_picture(item("p2", source="screen"))
    assert outbox.put_picture(item("p3", source="camera")).command_id == "p1"
    assert outbox.picture_depth == 2
    assert [outbox.take().command_id for _ in range(2)] == ["p2", "p3"]


def test_error_finds_the_command_that_caused_it():
    """L6."""
    outbox, _ = make()
    outbox.open([], discard_waiting=True)
    outbox.put(do.CreateResponse(command_id="c1"))
    command = outbox.take()
    assert outbox.done("c1") is command
    assert outbox.failed("c1") is command
    assert outbox.failed("c1") is None


def test_commands_are_remembered_in_bounds():
    outbox, _ = make()
    outbox.open([], discard_waiting=True)
    for index in range(1_000):
        outbox.put(do.CreateResponse(command_id=str(index)))
        outbox.done(outbox.take().command_id)
    assert outbox.failed("0") is None
    assert outbox.failed("999") is not None


def test_closing_gives_back_what_had_not_arrived():
    outbox, audio = make()
    outbox.open([], discard_waiting=True)
    for name in ("c1", "c2", "c3"):
        outbox.put(do.CreateResponse(command_id=name))
    outbox.done(outbox.take().command_id)
    outbox.take()
    outbox.put_picture(item("p1", source="camera"))
    audio.push(b"\x00\x00")
    assert [command.command_id for command in outbox.close()] == ["c2", "c3", "p1"]
    assert outbox.take() is None
