"""Tracks in a session (A1, H8, I4, P0–P3, R1; B43–B45), with fake tracks."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from realtime import FrameSampling, ModelCapabilities, RealtimeSession, UsageLimits
from realtime.errors import ArgumentError, EndOfTrack, SessionClosed, UsageLimitExceeded, UserError
from realtime.events import ErrorReported, FrameKept, ReplyInterrupted, SpeechStarted, TrackEnded, TurnCompleted
from realtime.pipelines.worker import encode_pool
from realtime.testing import FakeTrack, ManualClock, openai_script


async def until(events: Any, kind: type[Any]) -> Any:
    while not isinstance(event := await anext(events), kind):
        pass
    return event


async def test_a_microphone_reaches_the_model_at_its_rate(obliging):
    model = obliging()
    async with RealtimeSession(model) as session:
        events = aiter(session)
        assert session.add_track(FakeTrack.audio(b"\1\2" * 48_000)) == "microphone"
        ended = await until(events, TrackEnded)
        await model.hears_audio(47_900)
    assert (ended.source, ended.kind, ended.error) == ("microphone", "audio", None)
    assert model.audio_bytes == pytest.approx(48_000, abs=200)


async def test_frames_of_a_camera_are_messages_in_time_order_with_the_speech(obliging):
    """H8, I4: kept frames are said with their reason."""
    model = obliging()
    clock = ManualClock()
    sampling = FrameSampling(fps_idle=1.0, min_change=0)
    async with RealtimeSession(model, sampling=sampling, clock=clock) as session:
        events = aiter(session)
        session.add_track(FakeTrack.video(seconds=3, fps=10, clock=clock), source="camera")
        for _ in range(40):
            await clock.run(0.1)
            await settle_encoder(session)
        await model.hears("conversation.item.create", 3)
        frames = [message for message in session.context.messages() if message.is_frame]
    assert len(frames) == 3
    assert {message.source for message in frames} == {"camera"}
    assert [image.size for message in frames for image in message.images] == [(1024, 1024)] * 3
    kept = [event async for event in events if isinstance(event, FrameKept)]
    assert [event.reason for event in kept] == ["first", "schedule", "schedule"]
    assert [round(event.captured_at) for event in kept] == [0, 1, 2]


async def settle_encoder(session: RealtimeSession) -> None:
    """Let pictures that are being encoded arrive: the pool takes jobs in order."""
    for _ in range(3):
        await encode_pool.run(int)
        for _turn in range(20):
            await asyncio.sleep(0)


async def test_the_picture_budget_holds_at_every_event(obliging):
    """R1: never more pictures than `retain_images_max`."""
    model = obliging()
    sampling = FrameSampling(fps_idle=30, min_change=0)
    async with RealtimeSession(model, sampling=sampling, retain_images_max=2) as session:
        events = aiter(session)
        session.add_track(FakeTrack.video(seconds=1))
        while not isinstance(await anext(events), TrackEnded):
            assert sum(bool(message.images) for message in session.context.messages()) <= 2
        await settle_encoder(session)
    assert sum(bool(message.images) for message in session.all_messages()) <= 2


async def test_several_sources_have_names_of_their_own(obliging):
    async with RealtimeSession(obliging()) as session:
        tracks = [FakeTrack(kind) for kind in ("video", "video", "audio", "audio")]
        names = [session.add_track(track) for track in tracks]
        assert names == ["camera", "camera-2", "microphone", "microphone-2"]
        assert session.add_track(FakeTrack("video"), source="screen") == "screen"
        with pytest.raises(ArgumentError, match="source"):
            session.add_track(FakeTrack("video"), source="screen")
        with pytest.raises(ArgumentError, match="already"):
            session.add_track(tracks[0])
        with pytest.raises(ArgumentError, match="source"):
            session.add_track(FakeTrack("video"), source="")
        with pytest.raises(ArgumentError, match="track"):
            session.add_track(object())
        assert set(session.statistics().tracks) == {*names, "screen"}


async def test_removing_a_track_stops_reading_it_and_frees_its_name(obliging):
    async with RealtimeSession(obliging()) as session:
        events = aiter(session)
        track = FakeTrack("video")
        session.add_track(track)
        await session.remove_track(track)
        assert (await until(events, TrackEnded)).source == "camera"
        with pytest.raises(ArgumentError, match="track"):
            await session.remove_track("camera")
        assert session.add_track(FakeTrack("video")) == "camera"
        await session.remove_track("camera")
        assert track.readyState == "live"


async def test_a_track_that_fails_is_an_event_and_the_others_go_on(obliging):
    """B45."""
    model = obliging()
    async with RealtimeSession(model) as session:
        events = aiter(session)
        bad = FakeTrack("video")
        session.add_track(bad)
        bad.push(ValueError("broken camera"))
        ended = await until(events, TrackEnded)
        assert isinstance(ended.error, ValueError)
        session.add_track(FakeTrack.audio(seconds=0.1))
        assert (await until(events, TrackEnded)).source == "microphone"


async def test_a_track_that_nobody_wants_is_drained(obliging):
    """B43: the model takes no pictures."""
    model = obliging(capabilities=ModelCapabilities(supports_image_input=False))
    async with RealtimeSession(model) as session:
        events = aiter(session)
        session.add_track(FakeTrack.video(seconds=3))
        await until(events, TrackEnded)
    assert model.all("conversation.item.create") == []


async def test_a_microphone_that_a_model_cannot_hear_is_drained(obliging):
    model = obliging(capabilities=ModelCapabilities(supports_audio_input=False))
    async with RealtimeSession(model) as session:
        events = aiter(session)
        session.add_track(FakeTrack.audio(seconds=1))
        await until(events, TrackEnded)
    assert model.audio_bytes == 0


async def test_looking_gives_the_next_frame(obliging):
    model = obliging()
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=0, fps_speaking=0)) as session:
        with pytest.raises(UserError, match="no video track"):
            await session.look()
        frames = [frame async for frame in _frames()]
        camera = FakeTrack("video", frames[:2], ends=False)
        session.add_track(camera)
        with pytest.raises(UserError, match="'camera'"):
            await session.look("screen")
        looking = asyncio.create_task(session.look("camera"))
        await asyncio.sleep(0)
        camera.push(frames[2])
        image = await looking
        assert image.size == (1024, 1024)
        [message] = [message for message in session.context.messages() if message.is_frame]
        assert message.images[0] is image


async def _frames() -> Any:
    track = FakeTrack.video(seconds=0.5)
    for _ in range(4):
        yield await track.recv()


async def test_whoever_looks_when_the_session_ends_is_told(obliging):
    async with RealtimeSession(obliging()) as session:
        session.add_track(FakeTrack("video"))
        looking = asyncio.create_task(session.look())
        await asyncio.sleep(0)
    with pytest.raises((SessionClosed, EndOfTrack)):
        await looking


async def test_one_picture_too_many_is_not_sent_and_ends_the_session(obliging):
    model = obliging()
    sampling = FrameSampling(fps_idle=30, min_change=0)
    async with RealtimeSession(model, sampling=sampling, usage_limits=UsageLimits(max_images=1)) as session:
        events = aiter(session)
        session.add_track(FakeTrack.video(seconds=60))  # unpaced: two pictures must be encoded meanwhile
        with pytest.raises(UsageLimitExceeded, match="max_images"):
            await until(events, TrackEnded)
        assert session.statistics().machine.images_sent == 1


async def test_barge_in_stops_the_reply_at_once_and_keeps_what_was_heard(obliging):
    """P1–P3, B58: on the reply track at most three more frames carry sound after the event."""
    clock = ManualClock()
    model = obliging("one two three four five six seven eight nine ten")
    async with RealtimeSession(model, clock=clock) as session:
        events = aiter(session)
        track = session.reply_track
        await track.recv()
        await session.send("Count.")
        await model.hears("response.create")
        await clock.settle()
        loud = [await loudness(track, clock) for _ in range(20)]
        assert sum(loud) >= 18
        await model.say(openai_script.user_speech("barge", start_ms=400)[:1])
        await clock.settle()
        while not isinstance(await anext(events), SpeechStarted):
            pass
        after = [await loudness(track, clock) for _ in range(30)]
        assert sum(after) <= 3
        interrupted = await until(events, ReplyInterrupted)
        turn = await until(events, TurnCompleted)
    assert interrupted.cause == "barge_in"
    [message] = turn.messages
    assert message.interrupted
    assert 300 <= message.heard_ms <= 440
    assert message.content == "one two three four"[: len(message.content)]
    [truncated] = model.all("conversation.item.truncate")
    assert truncated["audio_end_ms"] == message.heard_ms


@pytest.mark.parametrize("cut", ["barge_in", "interrupt", "close"])
@pytest.mark.parametrize("frames", [1, 2, 7, 33, 60])
async def test_a_reply_is_cut_at_the_frame_that_was_taken_last(obliging, cut, frames):
    """P1: what was heard is exact however it is cut, though the machine is not told of each 20 ms."""
    clock = ManualClock()
    model = obliging("one two three four five six seven eight nine ten eleven twelve thirteen fourteen")
    async with RealtimeSession(model, clock=clock) as session:
        events = aiter(session)
        track = session.reply_track
        await track.recv()
        await session.send("Count.")
        await model.hears("response.create")
        await clock.settle()
        taken = 0
        while taken < frames:
            taken += await loudness(track, clock)
        if cut == "barge_in":
            await model.say(openai_script.user_speech("barge", start_ms=400)[:1])
        elif cut == "interrupt":
            await session.interrupt()
        else:
            await session.aclose()
        interrupted = await until(events, ReplyInterrupted)
    assert interrupted.cause == cut
    assert interrupted.heard_ms == track.played_ms(interrupted.reply_id)
    assert 20 * frames <= interrupted.heard_ms <= 20 * frames + 40


async def test_what_has_been_heard_so_far_is_told_to_the_frame(obliging):
    """P1: ten words of 100 ms, though the machine is told of each second only."""
    clock = ManualClock()
    model = obliging("one two three four five six seven eight nine ten")
    async with RealtimeSession(model, clock=clock) as session:
        track = session.reply_track
        await track.recv()
        await session.send("Count.")
        await model.hears("response.create")
        await clock.settle()
        taken = 0
        while taken < 33:
            taken += await loudness(track, clock)
        [heard] = session.heard_so_far().values()
        assert heard.startswith("one two three four five")
        assert "eight" not in heard


async def loudness(track: Any, clock: ManualClock) -> bool:
    """Whether the next frame carries sound."""
    taking = asyncio.create_task(track.recv())
    await clock.run(0.02)
    return any(bytes((await taking).planes[0])[:1920])


async def test_the_reply_track_ends_with_the_session(obliging):
    """B47."""
    async with RealtimeSession(obliging()) as session:
        track = session.reply_track
        assert session.reply_track is track
    assert track.readyState == "ended"


class Nonsense:
    """Looks like a frame and is none."""

    pts, time_base, rotation, width, height = None, None, 0, 64, 48

    class format:
        name = "nonsense"


async def test_a_bad_frame_is_told_once_and_does_not_stop_the_camera(obliging):
    """I3."""
    model = obliging()
    async with RealtimeSession(model, sampling=FrameSampling(fps_idle=30, min_change=0)) as session:
        events = aiter(session)
        camera = FakeTrack("video")
        session.add_track(camera)
        frames = [frame async for frame in _frames()]
        told = []
        for _ in range(3):
            camera.push(Nonsense())  # type: ignore[arg-type]
            await settle_encoder(session)
        camera.push(frames[1])
        while not isinstance(event := await anext(events), FrameKept):
            told += [event.where] if isinstance(event, ErrorReported) else []
        assert session.statistics().tracks["camera"].faults == 3
        camera.end()
    assert told == ["track camera"]
    assert len(model.all("conversation.item.create")) == 1


async def test_a_bad_sound_is_told_and_does_not_stop_the_microphone(obliging):
    model = obliging()
    async with RealtimeSession(model) as session:
        events = aiter(session)
        microphone = FakeTrack("audio")
        session.add_track(microphone)
        microphone.push(Nonsense())  # type: ignore[arg-type]
        assert (await until(events, ErrorReported)).where == "track microphone"
        good = FakeTrack.audio(seconds=0.1)
        for _ in range(5):
            microphone.push(await good.recv())
        await model.hears_audio(4000)
        microphone.end()
