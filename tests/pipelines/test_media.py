"""`realtime.pipelines.media`: tracks that the session receives itself, as they come and go (A1, B43)."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from realtime.core.events import ErrorReported
from realtime.pipelines import direct
from realtime.pipelines.audio import AudioInput
from realtime.pipelines.direct import JobRunner, track_jobs
from realtime.pipelines.media import MediaSources
from realtime.pipelines.worker import WorkerPool
from realtime.testing import FakeTrack
from realtime.tracks.rtp_receiver import TrackIntake

RATE = 24_000
GUARD = 60.0


class Events(list[Any]):
    """Stands where the machine's driver would."""

    closed = False

    def publish(self, event: Any) -> None:
        self.append(event)

    def feed(self, change: Any, where: str = "") -> None: ...


class NoVideo:
    def remove(self, source: str) -> None: ...


class Call:
    """A microphone that comes over RTP in G.711, which holds some samples back for the change of rate."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.events = Events()
        driver: Any = self.events
        video: Any = NoVideo()
        self.media = MediaSources(driver, AudioInput(RATE, self.sent.append), video)
        self.track: Any = FakeTrack("audio")
        run: Any = None
        self.intake = TrackIntake("audio", run)
        self.track.__dict__["_realtime_intake"] = self.intake
        codec = SimpleNamespace(payloadType=0, name="PCMU", clockRate=8_000, parameters={})
        self.intake.start(SimpleNamespace(codecs=[codec], encodings=[]))

    def speak(self, *numbers: int) -> None:
        for number in numbers:
            payload = b"\x55" * 160
            self.intake.receive_rtp(0, 7, number, number * 160, False, payload, len(payload), None, number * 0.02)

    @property
    def sent_ms(self) -> float:
        return sum(map(len, self.sent)) / 2 * 1000 / RATE


@pytest.mark.parametrize("how", ["removed", "detached"])
async def test_what_a_track_holds_back_is_heard_when_it_leaves_and_is_no_error(how: str) -> None:
    """Its last samples and what waits behind a gap; the next track of the name begins without a fault."""
    call = Call()
    call.media.add(call.track, None)
    call.speak(0, 1, 2, 4)
    if how == "removed":
        await call.media.remove(call.track)
    else:
        peer: Any = SimpleNamespace(peer=call, tracks=[call.track], detach=lambda: None, take_back_reply=lambda: None)
        call.media._peers.append(peer)
        await call.media.detach(call)
    assert not [event for event in call.events if isinstance(event, ErrorReported)]
    assert call.sent_ms == pytest.approx(100, abs=0.1)
    assert call.media.statistics() == {}
    assert call.media.add(call.track, None) == "microphone"
    assert call.media.statistics()["microphone"].faults == 0
    await call.media.aclose()
    call.intake.end()


async def test_who_reads_a_track_itself_is_served_on_when_the_session_that_received_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its jobs are the track's: they are neither cancelled nor without an answer, and leave no thread behind."""
    asked: list[Any] = []

    def attach(*_: Any, run: Any, **__: Any) -> Any:
        asked.append(run)
        return SimpleNamespace(detach=lambda: None)

    monkeypatch.setattr("realtime.pipelines.media.attach_peer", attach)
    call = Call()
    call.media.attach(SimpleNamespace(), None)
    [run] = asked
    assert run is track_jobs
    begun, go_on = asyncio.Event(), threading.Event()
    answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    loop = asyncio.get_running_loop()

    def job() -> int:
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(GUARD)
        return 7

    run(job, lambda result, error: answer.set_result((result, error)))
    async with asyncio.timeout(GUARD):
        await begun.wait()
        await call.media.aclose()
        go_on.set()
        assert await answer == (7, None)
        while track_jobs._tasks:
            await asyncio.gather(*track_jobs._tasks)
    call.intake.end()


async def test_jobs_of_a_track_are_a_member_of_their_pool_while_they_last() -> None:
    pool = WorkerPool("test", max_threads=1, max_waiting=4, short_jobs=True)
    jobs = direct._TrackJobs(pool)
    answers: list[Any] = []
    jobs(lambda: pool.statistics().members, lambda *answer: answers.append(answer))
    jobs(lambda: 1 // 0, lambda *answer: answers.append(answer))
    assert isinstance(jobs, JobRunner)
    async with asyncio.timeout(GUARD):
        await asyncio.gather(*jobs._tasks)
    members, error = answers[0]
    assert members >= 1
    assert error is None
    assert isinstance(answers[1][1], ZeroDivisionError)
    assert pool.statistics().members == 0
