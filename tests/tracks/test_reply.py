"""The reply as a track: pace, silence, interruption, and what was heard (behaviour.md P1, P3, P4, A2, A3)."""

import asyncio
import logging
from itertools import pairwise

import numpy as np
import pytest
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame
from hypothesis import given, settings
from hypothesis import strategies as st

from realtime.errors import ArgumentError
from realtime.testing import ManualClock
from realtime.tracks.reply import ReplyTrack

GUARD = 10.0
Report = tuple[str, int, bool]


def speech(ms: float, rate: int = 24_000, level: int = 8000) -> bytes:
    return np.full(round(ms * rate / 1000), level, "<i2").tobytes()


def loud(frame: AudioFrame) -> np.ndarray:
    return np.frombuffer(bytes(frame.planes[0]), "<i2")[: frame.samples]


class Listening:
    """A track under a clock by hand, and what it reported."""

    def __init__(self, rate: int = 24_000, **options: float) -> None:
        self.clock = ManualClock()
        self.reports: list[Report] = []
        self.track = ReplyTrack(rate, lambda *report: self.reports.append(report), self.clock, **options)

    async def take(self, count: int) -> list[AudioFrame]:
        """The next frames, each when it is due."""
        frames = []
        for _ in range(count):
            pending = asyncio.create_task(self.track.recv())
            await asyncio.sleep(0)
            while not pending.done():
                wake = self.clock.next_wake
                assert wake is not None
                self.clock.advance(wake - self.clock.now())
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            frames.append(pending.result())
        return frames


# -- P4: frames and pace -----------------------------------------------------------------------------------------------


async def test_frames_are_20_ms_at_48_khz_and_their_stamps_rise_by_960():
    """P4."""
    listening = Listening()
    listening.track.push("one", speech(55))
    frames = await listening.take(10)
    assert [frame.pts for frame in frames] == [index * 960 for index in range(10)]
    for frame in frames:
        assert (frame.samples, frame.sample_rate, frame.format.name, frame.layout.name) == (960, 48_000, "s16", "mono")
        assert (frame.time_base.numerator, frame.time_base.denominator) == (1, 48_000)


async def test_an_idle_track_is_silent():
    """P4."""
    listening = Listening()
    assert not any(loud(frame).any() for frame in await listening.take(5))
    assert listening.reports == []


async def test_a_frame_comes_every_20_ms_and_never_before_it_is_due():
    """P4: does not run ahead."""
    listening = Listening()
    listening.track.push("one", speech(1000))
    times = []
    for _ in range(5):
        await listening.take(1)
        times.append(round(listening.clock.now(), 6))
    assert times == [0.0, 0.02, 0.04, 0.06, 0.08]
    pending = asyncio.create_task(listening.track.recv())
    await listening.clock.run(0.0199)
    assert not pending.done()
    await listening.clock.run(0.0002)
    assert pending.done()
    await pending


@pytest.mark.parametrize("stall", [0.02, 0.5, 3600.0])
async def test_after_a_stall_nothing_comes_in_a_burst(stall):
    """P4: the clock starts anew; stamps go on by 960."""
    listening = Listening()
    listening.track.push("one", speech(2000))
    before = await listening.take(3)
    listening.clock.advance(0.02 + stall)
    late = listening.clock.now()
    times = []
    for _ in range(4):
        after = await listening.take(1)
        times.append(round(listening.clock.now() - late, 6))
    assert times == [0.0, 0.02, 0.04, 0.06]
    assert after[0].pts == before[-1].pts + 4 * 960


async def test_a_caller_that_is_a_little_late_is_not_slowed_down():
    """P4: five milliseconds late each time is still fifty frames a second."""
    listening = Listening()
    await listening.take(1)
    for _ in range(100):
        listening.clock.advance(0.005)
        await listening.take(1)
    assert listening.clock.now() == pytest.approx(100 * 0.02)


async def test_the_clock_starts_at_the_first_frame_taken():
    """P0, P4: what is pushed before waits, whole."""
    listening = Listening()
    listening.track.push("one", speech(40))
    listening.clock.advance(30)
    assert not listening.track.is_read
    assert listening.track.played_ms("one") == 0
    await listening.take(1)
    assert listening.track.is_read
    assert listening.track.played_ms("one") == 20


async def test_the_running_loops_clock_is_used_when_none_is_given():
    track = ReplyTrack(48_000)
    track.push("one", speech(20, 48_000))
    async with asyncio.timeout(GUARD):
        frames = [await track.recv() for _ in range(3)]
    assert [frame.pts for frame in frames] == [0, 960, 1920]
    assert loud(frames[0]).all()


# -- what is heard -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [8_000, 16_000, 22_050, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("ms", [20, 25, 1000, 1013])
async def test_every_sample_is_played_once_and_the_tail_is_padded(rate, ms):
    """A2, P1."""
    listening = Listening(rate)
    listening.track.push("one", speech(ms, rate))
    listening.track.end("one")
    frames = await listening.take(-(-ms // 20) + 2)
    samples = np.concatenate([loud(frame) for frame in frames])
    length = ms * 48
    assert np.abs(samples[96 : length - 96].astype(int) - 8000).max() < 40
    assert not samples[length + 1 :].any()
    assert listening.reports[-1] == ("one", ms, True)
    assert [report[2] for report in listening.reports].count(True) == 1
    assert listening.track.queued_ms() == 0


async def test_a_tone_keeps_its_pitch_and_has_no_seams():
    """A1 on the way out: frames of a tone join without a click."""
    listening = Listening(24_000)
    tone = (9000 * np.sin(2 * np.pi * 440 * np.arange(24_000) / 24_000)).astype("<i2")
    for at in range(0, 24_000, 777):
        listening.track.push("one", tone[at : at + 777].tobytes())
    listening.track.end("one")
    samples = np.concatenate([loud(frame) for frame in await listening.take(50)]).astype(float)
    wanted = 9000 * np.sin(2 * np.pi * 440 * np.arange(48_000) / 48_000)
    assert np.abs(samples[200:-200] - wanted[200:-200]).max() < 20


async def test_heard_is_exact_to_the_frame_taken():
    """P1: pushed less what is still queued."""
    listening = Listening()
    listening.track.push("one", speech(100))
    for taken in range(1, 5):
        await listening.take(1)
        assert listening.track.played_ms("one") == 20 * taken
        assert listening.track.played_samples("one") == 480 * taken
        assert listening.track.queued_ms() == 100 - 20 * taken
    assert listening.reports == [("one", 20 * taken, False) for taken in range(1, 5)]


async def test_the_report_comes_within_the_recv_that_took_the_audio():
    listening = Listening()
    listening.track.push("one", speech(60))
    [frame] = await listening.take(1)
    assert listening.reports == [("one", 20, False)]
    assert loud(frame).any()


async def test_the_end_is_reported_with_the_last_audio_or_by_the_next_frame():
    """P1."""
    listening = Listening(48_000)
    listening.track.push("one", speech(40, 48_000))
    listening.track.end("one")
    await listening.take(2)
    assert listening.reports == [("one", 20, False), ("one", 40, True)]
    listening.track.push("two", speech(20, 48_000))
    await listening.take(1)
    listening.track.end("two")
    assert listening.reports[-1] == ("two", 20, False)
    await listening.take(1)
    assert listening.reports[-1] == ("two", 20, True)
    await listening.take(3)
    assert len(listening.reports) == 4


async def test_a_reply_without_audio_ends_at_the_next_frame():
    listening = Listening()
    listening.track.end("mute")
    await listening.take(2)
    assert listening.reports == [("mute", 0, True)]


async def test_replies_follow_one_another_in_the_order_they_began():
    listening = Listening()
    listening.track.push("one", speech(30, level=1000))
    listening.track.end("one")
    listening.track.push("two", speech(40, level=5000))
    listening.track.end("two")
    frames = await listening.take(5)
    assert [round(int(loud(frame)[300]), -2) for frame in frames] == [1000, 1000, 5000, 5000, 0]
    assert listening.reports == [("one", 20, False), ("one", 30, True), ("two", 20, False), ("two", 40, True)]


async def test_a_new_reply_ends_one_that_was_never_ended():
    """A provider that forgets to say that a reply is done makes no silence for good."""
    listening = Listening()
    listening.track.push("one", speech(20))
    listening.track.push("two", speech(20))
    await listening.take(4)
    assert ("one", 20, True) in listening.reports
    assert ("two", 0, False) not in listening.reports
    assert listening.track.push("one", speech(20)) == 0


async def test_audio_that_is_late_makes_silence_and_is_not_lost():
    """P4: an underrun in mid-reply."""
    listening = Listening(48_000)
    listening.track.push("one", speech(30, 48_000))
    first, second = await listening.take(2)
    assert loud(first).all()
    assert not loud(second).any()
    assert listening.track.played_ms("one") == 20
    listening.track.push("one", speech(10, 48_000))
    [third] = await listening.take(1)
    assert loud(third).all()
    assert listening.track.played_ms("one") == 40


async def test_odd_bytes_are_carried_to_the_next_push_of_the_same_reply():
    """A2, B55."""
    listening = Listening(48_000)
    data = np.arange(1, 961, dtype="<i2").tobytes()
    cuts = [0, 3, 8, 9, 1000, 1919, 1920]
    queued = [listening.track.push("one", data[start:end]) for start, end in pairwise(cuts)]
    assert sum(queued) == 960
    [frame] = await listening.take(1)
    assert bytes(frame.planes[0])[:1920] == data


# -- P3: interruption --------------------------------------------------------------------------------------------------


async def test_the_frame_after_a_stop_is_silence():
    """P3, B58: ten seconds queued, stopped after one."""
    listening = Listening()
    listening.track.push("one", speech(10_000))
    await listening.take(50)
    assert listening.track.stop_reply("one") == 1000
    assert not any(loud(frame).any() for frame in await listening.take(20))
    assert listening.track.played_ms("one") == 1000
    assert listening.track.queued_ms() == 0
    assert listening.reports[-1] == ("one", 1000, False)


async def test_late_audio_of_a_stopped_reply_is_dropped():
    """P3, B58."""
    listening = Listening()
    listening.track.push("one", speech(100))
    await listening.take(1)
    listening.track.stop_reply("one")
    assert listening.track.push("one", speech(500)) == 0
    listening.track.end("one")
    listening.track.push("two", speech(20))
    listening.track.end("two")
    frames = await listening.take(3)
    assert loud(frames[0]).any()
    assert not loud(frames[1]).any()
    assert listening.track.late_bytes == len(speech(500))
    assert listening.reports[-1] == ("two", 20, True)


async def test_a_reply_can_be_stopped_before_it_began():
    listening = Listening()
    assert listening.track.stop_reply("one") == 0
    assert listening.track.push("one", speech(20)) == 0
    assert listening.track.stop_reply() == 0


async def test_only_the_named_reply_is_stopped_and_none_means_all():
    listening = Listening()
    for name in ("one", "two", "three"):
        listening.track.push(name, speech(40))
        listening.track.end(name)
    await listening.take(1)
    assert listening.track.stop_reply("two") == 0
    assert listening.track.queued_ms() == 60
    assert listening.track.stop_reply() == 20
    assert listening.track.queued_ms() == 0
    assert not any(loud(frame).any() for frame in await listening.take(3))


async def test_a_stop_between_the_wait_and_the_frame_is_obeyed():
    """P3: whoever waits in recv() gets silence too."""
    listening = Listening()
    listening.track.push("one", speech(1000))
    await listening.take(1)
    pending = asyncio.create_task(listening.track.recv())
    await listening.clock.settle()
    listening.track.stop_reply("one")
    await listening.clock.run(0.02)
    assert not loud(pending.result()).any()


async def test_a_stopped_reply_goes_on_from_where_it_was_heard():
    """A false interruption: ResumeReply."""
    listening = Listening()
    listening.track.push("one", speech(100))
    await listening.take(2)
    assert listening.track.stop_reply("one") == 40
    await listening.take(1)
    assert listening.track.resume("one", speech(60)) == 1440
    assert listening.track.played_ms("one") == 40
    listening.track.push("one", speech(20))
    listening.track.end("one")
    frames = await listening.take(5)
    assert [bool(loud(frame).any()) for frame in frames] == [True, True, True, True, False]
    assert listening.reports[-1] == ("one", 120, True)


async def test_a_resumed_reply_comes_before_those_that_wait():
    listening = Listening()
    listening.track.push("one", speech(40))
    await listening.take(1)
    listening.track.stop_reply("one")
    listening.track.push("two", speech(20))
    listening.track.end("two")
    listening.track.resume("one", speech(20))
    listening.track.end("one")
    await listening.take(2)
    assert [report[0] for report in listening.reports] == ["one", "one", "two"]


# -- bounds, ends, errors ----------------------------------------------------------------------------------------------


async def test_the_queue_is_bounded_and_the_newest_is_left_out():
    listening = Listening(max_queued_seconds=1.0)
    assert listening.track.push("one", speech(900)) == 21_600
    assert listening.track.push("one", speech(300)) == 2_400
    assert listening.track.push("one", speech(100)) == 0
    assert listening.track.queued_ms() == 1000
    assert listening.track.dropped_ms == 300
    await listening.take(10)
    assert listening.track.push("one", speech(300)) == 4800


async def test_a_stopped_track_ends_and_holds_nothing():
    """B47: our track ends with MediaStreamError only."""
    listening = Listening()
    listening.track.push("one", speech(100))
    await listening.take(1)
    pending = asyncio.create_task(listening.track.recv())
    await listening.clock.settle()
    listening.track.stop()
    listening.track.stop()
    await listening.clock.run(0.02)
    with pytest.raises(MediaStreamError):
        pending.result()
    with pytest.raises(MediaStreamError):
        await listening.track.recv()
    assert listening.track.queued_ms() == 0
    assert listening.track.played_ms("one") == 20
    assert listening.track.push("one", speech(20)) == 0
    assert listening.track.push("two", speech(20)) == 0


async def test_a_fault_in_the_report_does_not_end_the_track(caplog):
    """B47: aiortc's sender ends a track whose recv() raises."""
    clock = ManualClock()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    track = ReplyTrack(24_000, broken, clock)
    track.push("one", speech(40))
    with caplog.at_level(logging.ERROR, "realtime.tracks.reply"):
        frame = await track.recv()
    assert loud(frame).any()
    assert "failed" in caplog.text


async def test_a_cancelled_wait_loses_no_audio():
    listening = Listening()
    listening.track.push("one", speech(60))
    await listening.take(1)
    pending = asyncio.create_task(listening.track.recv())
    await listening.clock.settle()
    pending.cancel()
    await asyncio.gather(pending, return_exceptions=True)
    listening.track.end("one")
    frames = await listening.take(3)
    assert [frame.pts for frame in frames] == [960, 1920, 2880]
    assert [bool(loud(frame).any()) for frame in frames] == [True, True, False]


async def test_only_the_last_replies_are_remembered():
    """Bounded: a call of any length."""
    listening = Listening()
    for index in range(200):
        listening.track.push(f"reply-{index}", speech(20))
        listening.track.end(f"reply-{index}")
        await listening.take(1)
    assert listening.track.played_ms("reply-199") == 20
    assert listening.track.played_ms("reply-0") == 0
    assert len(listening.track._queue._heard) == 64


@pytest.mark.parametrize("rate", [0, None, 24_000.0])
def test_a_rate_that_is_none_is_refused(rate):
    with pytest.raises(ArgumentError, match="rate_hz must be a sample rate"):
        ReplyTrack(rate)


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), "long", True])
def test_a_bound_that_cannot_be_is_refused(seconds):
    with pytest.raises(ArgumentError, match="max_queued_seconds must be a number above 0"):
        ReplyTrack(24_000, max_queued_seconds=seconds)


STEPS = st.one_of(
    st.tuples(st.just("push"), st.integers(0, 3), st.integers(0, 5000)),
    st.tuples(st.just("end"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("stop"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("recv"), st.just(0), st.integers(1, 8)),
)


@given(st.sampled_from([24_000, 16_000, 48_000]), st.lists(STEPS, max_size=30))
@settings(max_examples=60)
def test_heard_and_queued_always_make_up_what_was_pushed(rate, steps):
    """P1: for any run of pushes, ends, stops and frames taken."""

    async def run() -> None:
        listening = Listening(rate)
        pushed = dict.fromkeys(range(4), 0)
        stopped: set[int] = set()
        for step, reply, amount in steps:
            name = f"reply-{reply}"
            if step == "push":
                pushed[reply] += listening.track.push(name, bytes(2 * amount))
            elif step == "end":
                listening.track.end(name)
            elif step == "stop":
                listening.track.stop_reply(name)
                stopped.add(reply)
            else:
                await listening.take(amount)
            heard = {each: listening.track.played_samples(f"reply-{each}") for each in range(4)}
            assert all(heard[each] <= pushed[each] for each in range(4))
            waiting = sum(pushed[each] - heard[each] for each in range(4) if each not in stopped)
            assert listening.track._queue.waiting == waiting
        for name, played, _ in listening.reports:
            assert played <= round(pushed[int(name[-1])] * 1000 / rate) + 1

    asyncio.run(run())
