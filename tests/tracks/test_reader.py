"""Tracks are drained until they end, whatever their consumer does (field cases B43, B44, B45, B72)."""

import asyncio
import gc
import logging
import weakref

import pytest
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from aiortc.rtcrtpreceiver import RemoteStreamTrack

from realtime.errors import ArgumentError, UserError
from realtime.tracks import reader as reader_module
from realtime.tracks.reader import TrackReader, is_track

GUARD = 10.0
"""Seconds after which a test that hangs is given up."""


class Frame:
    """Stands for an av frame: the reader never looks into one."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __repr__(self) -> str:
        return f"Frame({self.number})"


class ListTrack(MediaStreamTrack):
    """Gives its frames without ever waiting, then what `end` says: an exception, or for ever nothing."""

    def __init__(self, kind: str, count: int, end: BaseException | None = None) -> None:
        super().__init__()
        self.kind = kind
        self.left = list(range(count))
        self.end = end

    async def recv(self) -> Frame:
        if self.left:
            return Frame(self.left.pop(0))
        if self.end is not None:
            raise self.end
        await asyncio.Event().wait()
        raise AssertionError


class Listener:
    """Takes what a reader hands on."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.ends: list[BaseException | None] = []
        self.ended = asyncio.Event()
        self.changed = asyncio.Event()

    def on_frame(self, frame: Frame) -> None:
        self.numbers.append(frame.number)
        self.changed.set()

    def on_end(self, error: BaseException | None) -> None:
        self.ends.append(error)
        self.ended.set()


def remote(kind: str) -> RemoteStreamTrack:
    """A track as aiortc's receiver makes it."""
    return RemoteStreamTrack(kind=kind)


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# -- frames ------------------------------------------------------------------------------------------------------------


async def test_every_audio_frame_is_handed_on_in_order():
    listener, track = Listener(), ListTrack("audio", 100, MediaStreamError())
    reader = TrackReader(track, listener.on_frame, listener.on_end)
    reader.start()
    async with asyncio.timeout(GUARD):
        await listener.ended.wait()
    assert listener.numbers == list(range(100))
    assert listener.ends == [None]
    assert (reader.frames, reader.skipped, reader.faults) == (100, 0, 0)


async def test_of_video_that_piled_up_only_the_newest_is_handed_on():
    """B44: latest wins."""
    listener, track = Listener(), remote("video")
    for number in range(40):
        track._queue.put_nowait(Frame(number))
    reader = TrackReader(track, listener.on_frame, listener.on_end)
    reader.start()
    await turns()
    assert listener.numbers == [39]
    assert (reader.frames, reader.skipped) == (40, 39)
    for number in (40, 41):
        track._queue.put_nowait(Frame(number))
        await turns()
    assert listener.numbers == [39, 40, 41]
    await reader.aclose()


async def test_the_policy_can_be_chosen_for_either_kind():
    all_video, newest_audio = Listener(), Listener()
    first = TrackReader(
        ListTrack("video", 20, MediaStreamError()), all_video.on_frame, all_video.on_end, newest_only=False
    )
    second = TrackReader(
        ListTrack("audio", 20, MediaStreamError()), newest_audio.on_frame, newest_audio.on_end, newest_only=True
    )
    first.start()
    second.start()
    async with asyncio.timeout(GUARD):
        await all_video.ended.wait()
        await newest_audio.ended.wait()
    assert all_video.numbers == list(range(20))
    assert newest_audio.numbers == [19]


@pytest.mark.parametrize("kind", ["audio", "video"])
async def test_a_track_that_nobody_wants_is_drained(kind):
    """B43: nothing is kept of it."""
    track = remote(kind)
    reader = TrackReader(track, None)
    reader.start()
    kept = []
    for number in range(300):
        frame = Frame(number)
        kept.append(weakref.ref(frame))
        track._queue.put_nowait(frame)
        del frame
        await turns(3)
        assert track._queue.qsize() == 0
    gc.collect()
    assert sum(ref() is not None for ref in kept) <= 1
    assert reader.frames == 300
    await reader.aclose()


@pytest.mark.parametrize("kind", ["audio", "video"])
async def test_a_callback_that_raises_is_counted_and_the_next_frame_is_read(kind, caplog):
    """B43: a consumer's fault stops nothing."""
    listener, track = Listener(), remote(kind)

    def on_frame(frame: Frame) -> None:
        if frame.number % 2:
            raise ValueError("bad frame")
        listener.on_frame(frame)

    reader = TrackReader(track, on_frame, listener.on_end)
    reader.start()
    with caplog.at_level(logging.ERROR, "realtime.tracks.reader"):
        for number in range(6):
            track._queue.put_nowait(Frame(number))
            await turns()
    assert listener.numbers == [0, 2, 4]
    assert reader.faults == 3
    assert reader.running
    assert len(caplog.records) == 3
    await reader.aclose()


@pytest.mark.parametrize("kind", ["audio", "video"])
async def test_a_backlog_leaves_turns_to_others(kind):
    """B72: five hundred frames that are there at once do not hold the loop."""
    listener, track = Listener(), ListTrack(kind, 500, MediaStreamError())
    reader = TrackReader(track, listener.on_frame, listener.on_end)
    reader.start()
    others = 0
    while not listener.ended.is_set():
        await asyncio.sleep(0)
        others += 1
    assert others >= 500 // 64
    assert listener.numbers[-1] == 499


# -- the end -----------------------------------------------------------------------------------------------------------


async def test_the_last_picture_comes_before_the_end():
    order: list[object] = []
    track = remote("video")
    for number in (1, 2):
        track._queue.put_nowait(Frame(number))
    track._queue.put_nowait(None)
    done = asyncio.Event()
    reader = TrackReader(
        track, lambda frame: order.append(frame.number), lambda error: (order.append(error), done.set())
    )
    reader.start()
    async with asyncio.timeout(GUARD):
        await done.wait()
    assert order == [2, None]
    assert track.readyState == "ended"
    assert not reader.running


@pytest.mark.parametrize("kind", ["audio", "video"])
async def test_a_local_stop_ends_a_reader_that_waits(kind):
    """B45: `stop()` does not wake a pending `recv()`."""
    listener, track = Listener(), remote(kind)
    reader = TrackReader(track, listener.on_frame, listener.on_end)
    reader.start()
    await turns()
    track.stop()
    async with asyncio.timeout(GUARD):
        await listener.ended.wait()
    assert listener.ends == [None]
    assert not reader.running


async def test_a_track_that_has_ended_ends_at_once():
    listener, track = Listener(), remote("audio")
    track.stop()
    TrackReader(track, listener.on_frame, listener.on_end).start()
    async with asyncio.timeout(GUARD):
        await listener.ended.wait()
    assert listener.ends == [None]


async def test_another_exception_is_logged_and_given_with_the_end(caplog):
    """B45: it ends this track and nothing else."""
    fault = ValueError("the driver is gone")
    listener, other = Listener(), Listener()
    broken = TrackReader(ListTrack("video", 3, fault), listener.on_frame, listener.on_end)
    healthy_track = remote("audio")
    healthy = TrackReader(healthy_track, other.on_frame, other.on_end)
    with caplog.at_level(logging.WARNING, "realtime.tracks.reader"):
        broken.start()
        healthy.start()
        async with asyncio.timeout(GUARD):
            await listener.ended.wait()
    assert listener.ends == [fault]
    assert listener.numbers == [2]
    assert "video track ended with ValueError" in caplog.text
    healthy_track._queue.put_nowait(Frame(7))
    await turns()
    assert other.numbers == [7]
    await healthy.aclose()


async def test_a_track_whose_own_work_was_cancelled_has_ended():
    """B45: nobody cancelled the reader, so whoever listens is told."""
    listener = Listener()
    reader = TrackReader(
        ListTrack("audio", 2, asyncio.CancelledError("a player's task")), listener.on_frame, listener.on_end
    )
    reader.start()
    async with asyncio.timeout(GUARD):
        await listener.ended.wait()
    assert listener.numbers == [0, 1]
    assert [type(error) for error in listener.ends] == [asyncio.CancelledError]
    await turns()
    assert not reader.running


async def test_a_reader_that_somebody_else_cancels_tells_of_no_end():
    listener = Listener()
    reader = TrackReader(ListTrack("audio", 1), listener.on_frame, listener.on_end)
    reader.start()
    async with asyncio.timeout(GUARD):
        await listener.changed.wait()
    (task,) = (task for task in asyncio.all_tasks() if task.get_name() == "realtime track audio")
    task.cancel()
    await turns()
    assert task.cancelled()
    assert listener.ends == []


async def test_silence_is_no_end():
    """B45: a track that gives nothing is waited for."""
    listener, track = Listener(), remote("audio")
    reader = TrackReader(track, listener.on_frame, listener.on_end)
    reader.start()
    await turns(50)
    assert reader.running
    assert listener.ends == []
    await reader.aclose()
    assert listener.ends == []


async def test_a_fault_in_on_end_stays_in_the_log(caplog):
    done = asyncio.Event()

    def on_end(error: BaseException | None) -> None:
        done.set()
        raise RuntimeError("cannot cope")

    TrackReader(ListTrack("audio", 0, MediaStreamError()), None, on_end).start()
    with caplog.at_level(logging.ERROR, "realtime.tracks.reader"):
        async with asyncio.timeout(GUARD):
            await done.wait()
        await turns()
    assert "cannot cope" in caplog.text


# -- closing -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", range(4))
async def test_closing_at_any_moment_leaves_no_task_and_no_listener(wait):
    listener, track = Listener(), remote("video")
    reader = TrackReader(track, listener.on_frame, listener.on_end)
    reader.start()
    for number in range(3):
        track._queue.put_nowait(Frame(number))
    await turns(wait)
    await reader.aclose()
    await reader.aclose()
    assert not reader.running
    assert listener.ends == []
    assert track.readyState == "live"
    assert not track.listeners("ended")
    await turns()


async def test_closing_before_the_start_and_after_the_end_does_nothing():
    listener, track = Listener(), ListTrack("audio", 1, MediaStreamError())
    await TrackReader(track, None).aclose()
    reader = TrackReader(track, listener.on_frame, listener.on_end)
    reader.start()
    async with asyncio.timeout(GUARD):
        await listener.ended.wait()
    await reader.aclose()
    assert listener.ends == [None]


async def test_a_cancelled_close_passes_the_cancellation_on():
    track = remote("audio")
    reader = TrackReader(track, None)
    reader.start()
    await turns()
    closing = asyncio.create_task(reader.aclose())
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    await reader.aclose()
    assert not reader.running


async def test_closing_is_bounded_though_the_track_ignores_cancellation(monkeypatch, caplog):
    """B45, B68: robust against a `recv()` that swallows it."""
    monkeypatch.setattr(reader_module, "_CLOSE_SECONDS", 0.01)
    release = asyncio.Event()

    class Stubborn(ListTrack):
        async def recv(self) -> Frame:
            while not release.is_set():
                try:
                    await release.wait()
                except asyncio.CancelledError:
                    continue
            raise MediaStreamError

    reader = TrackReader(Stubborn("audio", 0), None)
    reader.start()
    await turns()
    with caplog.at_level(logging.WARNING, "realtime.tracks.reader"):
        async with asyncio.timeout(GUARD):
            await reader.aclose()
    assert "ignores cancellation" in caplog.text
    assert reader.running
    release.set()
    await turns()
    assert not reader.running


async def test_a_track_that_swallows_one_cancellation_is_read_no_further():
    calls = 0

    class Swallowing(ListTrack):
        async def recv(self) -> Frame:
            nonlocal calls
            calls += 1
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return Frame(0)
            raise AssertionError

    listener = Listener()
    reader = TrackReader(Swallowing("audio", 0), listener.on_frame, listener.on_end)
    reader.start()
    await turns()
    async with asyncio.timeout(GUARD):
        await reader.aclose()
    assert calls == 1
    assert not reader.running


async def test_two_hundred_readers_leave_nothing_behind():
    """B71."""
    before = asyncio.all_tasks()
    refs = []
    for index in range(200):
        track = remote("video" if index % 2 else "audio")
        reader = TrackReader(track, print)
        reader.start()
        track._queue.put_nowait(Frame(index))
        await turns(2)
        await reader.aclose()
        refs += [weakref.ref(track), weakref.ref(reader)]
        del track, reader
    gc.collect()
    assert asyncio.all_tasks() == before
    assert not [ref for ref in refs if ref() is not None]


# -- what is a track ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidate", [None, "track", object(), lambda: None, type("NoKind", (), {"recv": print})()])
async def test_what_is_no_track_is_refused(candidate):
    assert not is_track(candidate)
    with pytest.raises(ArgumentError, match="track must be a track"):
        TrackReader(candidate, None)


async def test_anything_with_recv_and_a_kind_is_a_track():
    """Not only aiortc's: it needs neither events nor a state."""

    class Plain:
        kind = "video"

        def __init__(self) -> None:
            self.given = False

        async def recv(self) -> Frame:
            if self.given:
                raise MediaStreamError
            self.given = True
            return Frame(5)

    listener, track = Listener(), Plain()
    assert is_track(track)
    TrackReader(track, listener.on_frame, listener.on_end).start()
    async with asyncio.timeout(GUARD):
        await listener.ended.wait()
    assert listener.numbers == [5]


async def test_a_reader_is_started_once():
    reader = TrackReader(remote("audio"), None)
    reader.start()
    with pytest.raises(UserError, match="started once"):
        reader.start()
    await reader.aclose()
