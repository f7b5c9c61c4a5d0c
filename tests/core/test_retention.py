"""What the session keeps: behaviour.md R1–R5, field case B18."""

from __future__ import annotations

import gc
import io
import itertools
import random
import wave
import weakref

import pytest

from realtime.chat.context import ChatContext
from realtime.chat.messages import AudioContent, ChatRole
from realtime.chat.window import ContextWindow
from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.keeping import PICTURE_MARKER
from realtime.core.settings import FrameSampling, Retention
from realtime.errors import ArgumentError

RATE = 24_000
EVERY_FRAME = FrameSampling(fps_idle=1.0, min_change=0)


def film(rig, count: int, *, first: int = 0, source: str = "camera") -> None:
    for index in range(first, first + count):
        rig.frame(index, source=source)
        rig.pull()
        rig.wait(1.0)


def kept(rig) -> list[int]:
    return [int.from_bytes(m.images[0].data[-4:], "big") for m in rig.machine.messages() if m.images]


@pytest.mark.parametrize("most", [0, 1, 2, 5])
def test_never_more_pictures_than_the_maximum(make_rig, most):
    """R1: at no moment, in the history or in the context."""
    rig = make_rig(sampling=EVERY_FRAME, retention=Retention(images_max=most))

    def check() -> None:
        for messages in (rig.machine.messages(), rig.context.messages()):
            assert sum(len(message.images) for message in messages) <= most

    rig.at_every_step.append(check)
    film(rig, 12)
    assert kept(rig) == list(range(12 - most, 12))
    assert len(rig.of(seen.FrameKept)) == 12
    assert rig.machine.statistics().images_sent == 12


def test_no_maximum_keeps_all(make_rig):
    """R1."""
    rig = make_rig(sampling=EVERY_FRAME, retention=Retention(images_max=None))
    film(rig, 120)
    assert len(kept(rig)) == 120


def test_first_and_then_one_of_every_n(make_rig):
    """R1: counted over images that were really sent."""
    rig = make_rig(sampling=EVERY_FRAME, retention=Retention(images_every_n=3))
    film(rig, 10)
    assert kept(rig) == [0, 3, 6, 9]
    assert len(rig.sent_of(do.CreateItem)) == 10


@pytest.mark.parametrize(
    ("argument", "settings"),
    [
        ("retain_images_max", {"images_max": -1}),
        ("retain_images_max", {"images_max": True}),
        ("retain_images_max", {"images_max": float("nan")}),
        ("retain_images_every_n", {"images_every_n": 0}),
        ("retain_images_every_n", {"images_every_n": False}),
        ("retain_audio_max_seconds", {"audio_max_seconds": float("nan")}),
        ("audio_retention", {"audio": "everything"}),
    ],
)
def test_impossible_budgets_are_refused_by_name(argument, settings):
    """R1."""
    with pytest.raises(ValueError, match=argument) as caught:
        Retention(**settings)
    assert isinstance(caught.value, ArgumentError)


def test_message_with_text_keeps_its_text_and_gets_a_marker(make_rig, picture):
    """R1."""
    rig = make_rig(retention=Retention(images_max=1))
    rig.machine.send(["my cat", picture(1), "my dog", picture(2)], respond=False, now=rig.now)
    rig.pull()
    first, second = rig.machine.messages()
    assert first.content == f"my cat\n{PICTURE_MARKER}"
    assert first.images == ()
    assert second.content == "my dog"
    assert len(second.images) == 1
    assert [message.content for message in rig.context.messages()] == [first.content, second.content]
    assert rig.of(seen.MessageChanged)[0].reason == "image_budget"


def test_evicted_bytes_are_free_and_earlier_snapshots_keep_what_they_had(make_rig):
    """R3, B18."""
    rig = make_rig(sampling=EVERY_FRAME, retention=Retention(images_max=1))
    film(rig, 1)
    snapshot = rig.machine.messages()
    image = weakref.ref(snapshot[0].images[0])
    film(rig, 2, first=1)
    assert image() is not None
    rig.events.clear()
    rig.sent.clear()
    rig.local.clear()
    assert len(snapshot[0].images) == 1
    del snapshot
    gc.collect()
    assert image() is None


def test_mirrored_evictions_are_deleted_at_the_provider(make_rig):
    """R4."""
    rig = make_rig(sampling=EVERY_FRAME, retention=Retention(images_max=2, mirror_evictions=True))
    film(rig, 4)
    frames = [command.item_ids[0] for command in rig.sent_of(do.CreateItem)]
    assert [command.item_id for command in rig.sent_of(do.DeleteItem)] == frames[:2]
    assert rig.machine.statistics().provider_items == 2


def test_evictions_are_not_mirrored_by_default(make_rig):
    """R4, W5: the ledger knows what the provider still holds."""
    rig = make_rig(sampling=EVERY_FRAME, retention=Retention(images_max=2))
    film(rig, 4)
    assert rig.sent_of(do.DeleteItem) == []
    statistics = rig.machine.statistics()
    assert statistics.provider_items == 4
    assert statistics.tokens.gone > 0


def test_seeded_pictures_do_not_count(make_rig, picture):
    context = ChatContext.empty()
    context.add_message(ChatRole.USER, "old", images=[picture(99)])
    rig = make_rig(context=context, sampling=EVERY_FRAME, retention=Retention(images_max=2))
    film(rig, 3)
    assert kept(rig) == [99, 1, 2]


# -- audio ----------------------------------------------------------------------------------------------------------------


def seconds_kept(rig) -> float:
    return sum(message.audio.duration_ms for message in rig.machine.messages() if message.audio) / 1000


def test_oldest_finished_audio_goes_first_and_its_transcript_stays(make_rig):
    """R2: both speakers in one budget."""
    rig = make_rig(retention=Retention(audio="all", audio_max_seconds=1.0))
    rig.say("u1", "one", ms=400)
    rig.reply("r1", "a1", "two", ms=400)
    rig.say("u2", "three", ms=400)
    assert [bool(message.audio) for message in rig.machine.messages()] == [False, True, True]
    assert rig.texts() == ["one", "two", "three"]
    assert [event.reason for event in rig.of(seen.MessageChanged)] == ["audio_budget"]
    assert rig.machine.statistics().memory.audio == 800 * 48


def test_turn_longer_than_the_budget_keeps_its_newest_seconds(make_rig):
    """R2: evicted from the front of the live buffer."""
    rig = make_rig(retention=Retention(audio="input_audio", audio_max_seconds=0.5))
    rig.begin_speech("u1")
    bounds = []
    rig.at_every_step.append(lambda: bounds.append(rig.machine.statistics().memory.audio))
    rig.hear(2_000)
    rig.end_speech("u1")
    rig.transcribe("u1", "long")
    assert rig.machine.messages()[0].audio.duration_ms == 500
    assert max(bounds) <= 500 * 48


def test_audio_between_speech_and_transcript_counts(make_rig):
    """R2: turns in progress included."""
    rig = make_rig(retention=Retention(audio="input_audio", audio_max_seconds=0.5))
    rig.say("u1", None, ms=400)
    rig.say("u2", None, ms=400)
    assert rig.machine.statistics().memory.audio <= 500 * 48
    rig.transcribe("u1", "one")
    rig.transcribe("u2", "two")
    assert seconds_kept(rig) <= 0.5


@pytest.mark.parametrize(
    ("audio", "user", "assistant"),
    [
        ("transcript_only", False, False),
        ("input_audio", True, False),
        ("output_audio", False, True),
        ("all", True, True),
    ],
)
def test_whose_audio_is_kept(make_rig, audio, user, assistant):
    """Seed: history and handoff, Retaining audio."""
    rig = make_rig(retention=Retention(audio=audio))
    rig.say("u1", "one")
    rig.reply("r1", "a1", "two")
    assert [bool(message.audio) for message in rig.machine.messages()] == [user, assistant]


@pytest.mark.parametrize(("seconds", "expected"), [(0, 0.0), (None, 4.0)])
def test_zero_keeps_none_and_none_keeps_all(make_rig, seconds, expected):
    rig = make_rig(retention=Retention(audio="input_audio", audio_max_seconds=seconds))
    for index in range(10):
        rig.say(f"u{index}", "x", ms=400)
    assert seconds_kept(rig) == expected


def test_budget_holds_at_every_moment_of_a_random_call(make_rig):
    """R2, R3: beside a naive model that adds everything up."""
    chance = random.Random(4)
    rig = make_rig(
        sampling=EVERY_FRAME,
        retention=Retention(audio="all", audio_max_seconds=2.0, images_max=3),
    )

    def check() -> None:
        audio = sum(len(m.audio.data) - 44 for m in rig.machine.messages() if m.audio)
        images = sum(len(m.images) for m in rig.machine.messages())
        assert audio <= 2 * 48_000
        assert images <= 3
        memory = rig.machine.statistics().memory
        assert memory.audio <= 2 * 48_000
        assert memory.images == sum(image.byte_length for m in rig.machine.messages() for image in m.images)

    rig.at_every_step.append(check)
    for index in range(40):
        what = chance.random()
        if what < 0.4:
            rig.say(f"u{index}", "word", ms=chance.choice([100, 400, 900]))
        elif what < 0.7:
            rig.reply(f"r{index}", f"a{index}", "word word", ms=chance.choice([200, 700]))
        else:
            film(rig, 2, first=index * 10)
    assert seconds_kept(rig) > 1.0


# -- bytes ----------------------------------------------------------------------------------------------------------------


def test_memory_cap_takes_audio_first_then_pictures_but_the_newest_of_each_source(make_rig):
    """R5: words never."""
    rig = make_rig(
        sampling=EVERY_FRAME,
        retention=Retention(audio="all"),
        memory_limit_bytes=50_000,
    )
    rig.say("u1", "one", ms=600)
    rig.reply("r1", "a1", "two", ms=600)
    assert [bool(message.audio) for message in rig.machine.messages()] == [False, True]
    film(rig, 3, source="camera")
    film(rig, 1, first=3, source="screen")
    for index in range(4, 9):
        rig.say(f"u{index}", "more", ms=600)
    assert "one" in rig.texts()
    assert "two" in rig.texts()
    assert {message.source for message in rig.machine.messages() if message.images} == {"camera", "screen"}
    assert rig.machine.statistics().memory.total <= 50_000 + 48_000


def test_memory_cap_refuses_new_pictures_with_an_event(make_rig):
    """R5: last of all."""
    rig = make_rig(sampling=EVERY_FRAME, memory_limit_bytes=50)
    rig.frame(1)
    rig.pull()
    assert kept(rig) == []
    assert rig.of(seen.FrameSkipped)[0].reason == "image_limit"


def held(rig) -> int:
    return rig.machine.statistics().memory.held_frames


def test_cap_lets_go_in_its_order(make_rig, picture):
    """R5: oldest audio, finished before live; pictures but the newest of each source; video that waits; new pictures."""
    rig = make_rig(sampling=EVERY_FRAME, retention=Retention(audio="input_audio"), memory_limit_bytes=2_000_000)
    rig.say("u1", "one", ms=2_000)
    film(rig, 3)
    rig.begin_speech("u2")
    rig.hear(1_000)
    rig.frame(10)
    rig.wait(0.3)
    assert rig.frame(11).action == "hold"
    rig.now += 0.6
    assert held(rig) > 1_300_000
    memory = rig.machine._parts.memory
    columns: list[list[int]] = [[], [], [], []]
    for limit in (*range(memory.used_bytes, 2_000, -5_000), 1):
        memory._limit = limit
        memory.bound()
        rig.drain()
        figures = rig.machine.statistics().memory
        messages = rig.machine.messages()
        now = (
            sum(bool(message.audio) for message in messages),
            figures.audio,
            sum(len(message.images) for message in messages),
            figures.held_frames + figures.queued_pictures,
        )
        for column, value in zip(columns, now, strict=True):
            column.append(value)
    begins = [next(index for index, value in enumerate(column) if value < column[0]) for column in columns]
    ends = [next(index for index, value in enumerate(column) if value == column[-1]) for column in columns]
    assert begins == sorted(begins)
    assert all(over <= follower for over, follower in itertools.pairwise(ends))
    assert [column[-1] for column in columns] == [0, 0, 1, 0]
    assert rig.texts()[0] == "one"
    assert kept(rig) == [2]
    assert [event.reason for event in rig.of(seen.MessageChanged)][:1] == ["memory_limit"]
    assert {event.reason for event in rig.of(seen.FrameSkipped)} == {"image_limit"}
    (refused,) = rig.machine.send(["look", picture(9)], respond=False, now=rig.now)
    (command,) = [command for command in rig.pull() if isinstance(command, do.CreateItem)]
    assert (command.message.content, command.message.images) == ("look", ())
    assert rig.of(seen.InputRejected)[-1].message_id == refused


def test_newer_picture_of_a_source_takes_the_place_of_its_last(make_rig, picture):
    """R5, B18: a model under a tight cap does not go blind with an old picture."""
    rig = make_rig(sampling=EVERY_FRAME, memory_limit_bytes=picture().byte_length + 10)
    film(rig, 5)
    assert kept(rig) == [4]
    assert rig.of(seen.FrameSkipped) == []


def test_recording_is_a_wav_file_that_plays(make_rig):
    """R2: mono, 16 bit, the model's rate."""
    rig = make_rig(retention=Retention(audio="all"))
    rig.say("u1", "one", ms=400)
    rig.reply("r1", "a1", "two", ms=600)
    for message, milliseconds in zip(rig.machine.messages(), (400, 600), strict=True):
        with wave.open(io.BytesIO(message.audio.data)) as file:
            assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, RATE)
            assert file.getnframes() == milliseconds * RATE // 1000
            assert file.readframes(file.getnframes()) == b"\x01\x00" * file.getnframes()


def test_evicted_audio_is_free_and_earlier_snapshots_keep_what_they_had(make_rig):
    """R3."""
    rig = make_rig(retention=Retention(audio="input_audio", audio_max_seconds=0.5))
    rig.say("u1", "one", ms=400)
    snapshot = rig.machine.messages()
    audio = weakref.ref(snapshot[0].audio)
    rig.say("u2", "two", ms=400)
    assert [bool(message.audio) for message in rig.machine.messages()] == [False, True]
    rig.events.clear()
    rig.sent.clear()
    assert snapshot[0].audio is audio()
    del snapshot
    gc.collect()
    assert audio() is None


def test_event_keeps_its_own_part_until_it_is_consumed(make_rig):
    """R3: an event not yet delivered."""
    rig = make_rig(retention=Retention(audio="input_audio", audio_max_seconds=0.5))
    rig.say("u1", "one", ms=400)
    rig.say("u2", "two", ms=400)
    committed = [event.message for event in rig.of(seen.MessageCommitted)]
    assert [message.audio.duration_ms for message in committed] == [400, 400]


def test_recording_that_the_application_sent_counts_as_any_other(make_rig):
    """R2: at its own rate."""
    rig = make_rig(retention=Retention(audio_max_seconds=1.0))
    recording = AudioContent.from_pcm(b"\x01\x00" * 8_000, 16_000, transcript="hello")
    for _ in range(3):
        rig.machine.send([recording], respond=False, now=rig.now)
        rig.pull()
    assert [bool(message.audio) for message in rig.machine.messages()] == [False, True, True]
    assert rig.texts() == ["hello"] * 3
    assert rig.machine.statistics().memory.audio == 2 * recording.byte_length


def test_picture_that_left_its_words_counts_until_they_leave(make_rig, picture):
    """W5: the provider still has it; it cannot be deleted without the words."""
    rig = make_rig(retention=Retention(images_max=1), window=ContextWindow(max_tokens=300, keep_recent_turns=1))
    rig.machine.send(["my cat", picture(1)], respond=False, now=rig.now)
    rig.pull()
    rig.machine.send(["my dog", picture(2)], respond=False, now=rig.now)
    rig.pull()
    assert rig.machine.statistics().tokens.gone > 0
    for index in range(3):
        rig.say(f"u{index}", "word " * 12)
        rig.reply(f"r{index}", f"a{index}", "word " * 12)
        rig.pull()
    figures = rig.machine.statistics().tokens
    assert figures.own + figures.gone <= 300
    assert figures.gone == 0


def test_refused_picture_that_waits_behind_a_transcript_never_shows(make_rig, picture):
    """H6."""
    rig = make_rig()
    rig.say("u1", None)
    rig.machine.send([picture(1)], respond=False, now=rig.now)
    (command,) = [c for c in rig.pull() if isinstance(c, do.CreateItem)]
    rig.feed(said.ModelFault(message="too large", code="invalid_value", command_id=command.command_id))
    rig.transcribe("u1", "look")
    assert rig.names() == ["u:look"]
    assert rig.of(seen.MessagesRemoved) == []
    assert len(rig.of(seen.InputRejected)) == 1
    assert rig.machine.statistics().memory.images == 0


def test_frames_that_the_provider_never_places_stand_at_the_end(make_rig):
    """R3: none is kept beyond the budget for a report that does not come."""
    rig = make_rig(sampling=EVERY_FRAME, retention=Retention(images_max=3))
    rig.acknowledges = False
    film(rig, 60)
    assert len(kept(rig)) == 3
    assert rig.machine.statistics().memory.queued_pictures <= 33 * 200
