"""`realtime.pipelines.video`: kept frames become pictures off the loop, newest wins (I3, I4, L5, B44)."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Coroutine
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from aiortc.codecs.vpx import Vp8Encoder
from av import VideoFrame

from realtime.chat.messages import ImageContent
from realtime.core.commands import DropHeldFrame, EncodeHeldFrame
from realtime.core.events import FrameKept
from realtime.core.sampling import FrameFacts, FrameVerdict
from realtime.errors import ImageError, SessionClosed
from realtime.media.frame import thumbprint
from realtime.media.image import encode
from realtime.media.options import EncodeOptions, ResizeOptions
from realtime.pipelines.video import DevelopedFrame, PictureEncoder, VideoInput
from realtime.pipelines.worker import WorkerPool
from realtime.tracks.encoded_video import EncodedFrame
from realtime.tracks.picture_decoder import PIECE_FRAMES, ChainedFrame, FrameChain, PictureDecoder, UndecodedFrame

OPTIONS = EncodeOptions(format="JPEG", resize_options=ResizeOptions(64, 48), quality=75)


def frame(number: int = 0, size: tuple[int, int] = (64, 48)) -> VideoFrame:
    pixels = np.full((size[1], size[0], 3), number * 10 % 256, dtype=np.uint8)
    made = VideoFrame.from_ndarray(pixels, format="rgb24").reformat(format="yuv420p")
    made.pts = number * 3000
    made.time_base = Fraction(1, 90_000)
    return made


class Token:
    """Lives as long as the frame that carries it (frames themselves cannot be weakly referenced)."""


def ghost_of(made: VideoFrame) -> weakref.ref[Token]:
    token = Token()
    made.opaque = token
    return weakref.ref(token)


class Gated(PictureEncoder):
    """Encodes when it is let."""

    def __init__(self) -> None:
        super().__init__(OPTIONS, detail="auto", max_image_bytes=None)
        self.open = threading.Event()
        self.open.set()
        self.threads: set[int] = set()
        self.count = 0

    def __call__(self, picture: Any) -> ImageContent:
        self.open.wait()
        self.threads.add(threading.get_ident())
        self.count += 1
        return super().__call__(picture)


class Bench:
    """A video input whose verdicts a test gives."""

    def __init__(self) -> None:
        self.now = 0.0
        self.verdict = FrameVerdict(action="keep", keep_reason="first")
        self.facts: list[FrameFacts] = []
        self.looks = True
        self.reports: list[tuple[str, int, ImageContent | None, BaseException | None]] = []
        self.outcomes: list[dict[str, Any]] = []
        self.encoder = Gated()
        self.pool = WorkerPool("test-video", max_threads=2, max_waiting=8)
        self.member = self.pool.join()
        self.tasks: set[asyncio.Task[None]] = set()
        self.video = self.make_video()

    def make_video(self, *, min_change: float = 0.0) -> VideoInput:
        return VideoInput(
            judge=self.judge,
            looks_at=lambda _source, **_moment: self.looks,
            report=self.report,
            encoder=self.encoder,
            pool=self.pool,
            now=lambda: self.now,
            max_age_seconds=2.0,
            min_change=min_change,
            spawn=self.spawn,
        )

    def judge(self, facts: FrameFacts) -> FrameVerdict:
        self.facts.append(facts)
        return self.verdict

    def report(
        self, *, source: str, frame_id: int, image: ImageContent | None, error: Any = None, **outcome: Any
    ) -> None:
        self.reports.append((source, frame_id, image, error))
        self.outcomes.append(outcome)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def settle(self) -> None:
        while self.tasks:
            await asyncio.wait(self.tasks)

    async def aclose(self) -> None:
        self.encoder.open.set()
        await self.settle()
        await self.pool.leave(self.member)


@pytest.fixture
async def bench():
    made = Bench()
    yield made
    await made.aclose()


async def test_a_kept_frame_becomes_a_picture_on_another_thread(bench):
    bench.video.add("camera")
    bench.video.receive("camera", frame(3))
    await bench.settle()
    [(source, frame_id, image, error)] = bench.reports
    assert (source, frame_id, error) == ("camera", bench.facts[0].frame_id, None)
    assert image is not None
    assert image.size == (64, 48)
    assert bench.encoder.threads.isdisjoint({threading.get_ident()})


async def test_what_the_sampler_is_told_of_a_frame(bench):
    bench.video = bench.make_video(min_change=2.0)
    bench.video.add("camera")
    bench.now = 7.5
    bench.verdict = FrameVerdict(action="drop", skip_reason="not_due")
    bench.video.receive("camera", frame(3, (80, 40)))
    facts = bench.facts[0]
    assert (facts.source, facts.captured_at, facts.pts_ms, facts.width, facts.height) == ("camera", 7.5, 100, 80, 40)
    assert len(facts.thumbprint) == 1024
    assert bench.reports == []


@pytest.mark.parametrize(("looks", "min_change"), [(False, 2.0), (True, 0.0)])
async def test_a_frame_that_nobody_will_look_at_is_not_even_read(bench, looks, min_change):
    """Nor one that is compared with nothing."""
    bench.video = bench.make_video(min_change=min_change)
    bench.video.add("camera")
    bench.looks = looks
    bench.verdict = FrameVerdict(action="drop", skip_reason="not_due")
    bench.video.receive("camera", frame(3, (80, 40)))
    assert bench.facts[0].thumbprint == b""
    assert bench.encoder.count == 0


async def test_a_frame_is_developed_where_it_was_decoded_and_needs_no_second_job(bench):
    bench.video = bench.make_video(min_change=2.0)
    bench.video.add("camera")
    developed = await bench.pool.run(bench.video.develop, "camera", frame(3))
    assert developed.thumb == thumbprint(frame(3))
    bench.video.receive("camera", developed, 4.5)
    facts = bench.facts[0]
    assert (facts.captured_at, facts.pts_ms, facts.width, facts.height) == (4.5, 100, 64, 48)
    assert facts.thumbprint == developed.thumb
    ((source, frame_id, image, error),) = bench.reports
    assert (source, frame_id, error) == ("camera", facts.frame_id, None)
    assert image is developed.image is not None
    assert not bench.tasks
    assert bench.encoder.count == 1


async def test_a_developed_frame_that_the_sampler_drops_is_no_picture(bench):
    bench.video.add("camera")
    bench.verdict = FrameVerdict(action="drop", skip_reason="image_limit")
    bench.video.receive("camera", bench.video.develop("camera", frame(3)), 4.5)
    assert bench.reports == []


async def test_a_frame_that_seems_to_show_nothing_new_is_encoded_only_if_the_sampler_keeps_it(bench):
    """A picture that did not change is shown again after a while (`max_gap_seconds`)."""
    bench.video = bench.make_video(min_change=2.0)
    bench.video.add("camera")
    bench.video.receive("camera", bench.video.develop("camera", frame(3)), 4.5)
    again = bench.video.develop("camera", frame(3))
    assert again.image is None
    assert bench.encoder.count == 1
    bench.verdict = FrameVerdict(action="keep", keep_reason="max_gap")
    bench.video.receive("camera", again, 5.5)
    await bench.settle()
    assert [image is not None for _, _, image, _ in bench.reports] == [True, True]
    other = bench.video.develop("camera", frame(9))
    assert other.image is not None


async def test_a_developed_frame_that_cannot_be_encoded_is_told_once_it_is_kept(bench, monkeypatch):
    bench.video.add("camera")
    monkeypatch.setattr(Gated, "__call__", _fail_on_bad)
    developed = bench.video.develop("camera", _named(frame(3), "bad"))
    assert developed.image is None
    bench.video.receive("camera", developed, 4.5)
    await bench.settle()
    ((_, _, image, error),) = bench.reports
    assert image is None
    assert isinstance(error, ImageError)


async def test_pictures_of_a_source_are_told_in_order(bench):
    """A frame that was held is being encoded when the next one comes ready made."""
    bench.video.add("camera")
    bench.encoder.open.clear()
    bench.video.receive("camera", frame(1), 1.0)
    await asyncio.sleep(0)
    ready = DevelopedFrame(frame(2), b"", ImageContent.from_bytes(encode(frame(2), OPTIONS), "image/jpeg"))
    bench.video.receive("camera", ready, 2.0)
    assert bench.reports == []
    bench.encoder.open.set()
    await bench.settle()
    assert [frame_id for _, frame_id, _, _ in bench.reports] == [facts.frame_id for facts in bench.facts]
    assert bench.reports[1][2] is ready.image


async def test_a_frame_that_is_developed_after_its_source_ended_is_let_go(bench):
    bench.video.add("camera")
    bench.video.remove("camera")
    assert bench.video.develop("camera", frame(3)).image is None


def undecoded(number: int) -> UndecodedFrame:
    """A frame as it came over the wire: a key frame and no more."""
    encoder: Any = Vp8Encoder()
    payloads, _ = encoder.encode(frame(number), force_keyframe=True)
    encoded = EncodedFrame(timestamp=0, payloads=tuple(payloads), is_key=True)
    return UndecodedFrame(FrameChain("vp8", [ChainedFrame(encoded, number * 3000, 0.0)]), (64, 48))


async def test_a_frame_that_was_not_decoded_is_decoded_when_it_is_shown(bench):
    """The end of a turn shows what was held; until then it cost its encoded bytes."""
    bench.video.add("camera")
    bench.verdict = FrameVerdict(action="hold")
    bench.video.receive("camera", undecoded(3), 4.5)
    facts = bench.facts[0]
    assert (facts.captured_at, facts.pts_ms, facts.width, facts.height) == (4.5, 100, 64, 48)
    assert facts.thumbprint == b""
    assert bench.encoder.count == 0
    bench.now = 5.0
    bench.video.execute(EncodeHeldFrame(command_id="c", source="camera", frame_id=facts.frame_id))
    await bench.settle()
    assert bench.reports[0][2].size == (64, 48)
    assert bench.encoder.threads.isdisjoint({threading.get_ident()})


async def test_a_held_frame_of_a_long_chain_is_decoded_in_pieces(bench, monkeypatch):
    """A sender that never answers: 360 frames, half a second of a thread that all sessions share."""
    pieces: list[int] = []
    decode = PictureDecoder.decode

    def count(self: PictureDecoder, frames: Any, **others: Any) -> Any:
        pieces.append(len(frames))
        return decode(self, frames, **others)

    monkeypatch.setattr(PictureDecoder, "decode", count)
    run, jobs = bench.video._pool.run, []
    monkeypatch.setattr(bench.video._pool, "run", lambda job, *given: jobs.append(job) or run(job, *given))
    encoder: Any = Vp8Encoder()
    chain: list[ChainedFrame] = []
    for number in range(PIECE_FRAMES * 2 + 7):
        payloads, _ = encoder.encode(frame(number % 20), force_keyframe=number == 0)
        encoded = EncodedFrame(timestamp=0, payloads=tuple(payloads), is_key=number == 0)
        chain.append(ChainedFrame(encoded, number * 3000, 0.0))
    bench.video.add("camera")
    bench.verdict = FrameVerdict(action="hold")
    bench.video.receive("camera", UndecodedFrame(FrameChain("vp8", chain), (64, 48)), 0.0)
    bench.video.execute(EncodeHeldFrame(command_id="c", source="camera", frame_id=bench.facts[0].frame_id))
    await bench.settle()
    assert bench.reports[0][2].size == (64, 48)
    assert pieces == [PIECE_FRAMES, PIECE_FRAMES, 7]
    assert len(jobs) == 3
    assert bench.encoder.count == 1


async def test_a_held_frame_that_turns_out_to_show_nothing_new_is_not_sent(bench):
    """`FrameSampling.min_change` for what could not be compared before."""
    bench.video = bench.make_video(min_change=1.5)
    bench.video.add("camera")
    bench.video.receive("camera", frame(3))
    await bench.settle()
    for number, is_shown in ((3, False), (12, True), (12, False), (3, True)):
        bench.verdict = FrameVerdict(action="hold")
        bench.video.receive("camera", undecoded(number), 0.0)
        command = EncodeHeldFrame(command_id="c", source="camera", frame_id=bench.facts[-1].frame_id)
        bench.video.execute(command)
        await bench.settle()
        assert (bench.reports[-1][2] is not None) == is_shown
        assert bench.reports[-1][3] is None
        assert bench.outcomes[-1].get("is_unchanged", False) != is_shown
        if is_shown:  # what it showed is told with it, so that the sampler compares with it
            assert set(bench.outcomes[-1]["thumbprint"]) == {thumbprint(frame(number))[0]}


@pytest.mark.parametrize(("reason", "is_shown"), [("schedule", False), ("look", True), ("max_gap", True)])
async def test_a_kept_frame_that_is_decoded_only_now_is_shown_if_it_was_not_kept_for_being_new(bench, reason, is_shown):
    bench.video = bench.make_video(min_change=1.5)
    bench.video.add("camera")
    bench.video.receive("camera", frame(3))
    await bench.settle()
    bench.verdict = FrameVerdict(action="keep", keep_reason=reason)
    bench.video.receive("camera", undecoded(3), 0.0)
    await bench.settle()
    assert (bench.reports[-1][2] is not None) == is_shown


async def test_a_held_frame_that_cannot_be_decoded_is_an_error_and_no_more(bench):
    bench.video.add("camera")
    bench.verdict = FrameVerdict(action="hold")
    broken = EncodedFrame(timestamp=0, payloads=(bytes.fromhex("10ffffff"),), is_key=True)
    bench.video.receive("camera", UndecodedFrame(FrameChain("vp8", [ChainedFrame(broken, 0, 0.0)]), (64, 48)), 0.0)
    bench.video.execute(EncodeHeldFrame(command_id="c", source="camera", frame_id=bench.facts[0].frame_id))
    await bench.settle()
    assert isinstance(bench.reports[0][3], ImageError)


async def test_one_frame_in_flight_and_the_newest_wins(bench):
    """B44: a slow encoder never works through a backlog."""
    bench.encoder.open.clear()
    bench.video.add("camera")
    for number in range(6):
        bench.video.receive("camera", frame(number))
        await asyncio.sleep(0)
    assert bench.video.replaced == 4
    replaced = [frame_id for _, frame_id, image, error in bench.reports if image is None and error is None]
    assert replaced == [facts.frame_id for facts in bench.facts[1:5]]
    bench.encoder.open.set()
    await bench.settle()
    made = [frame_id for _, frame_id, image, _ in bench.reports if image is not None]
    assert made == [bench.facts[0].frame_id, bench.facts[5].frame_id]
    assert bench.encoder.count == 2


async def test_a_frame_that_waited_too_long_is_not_encoded(bench):
    bench.encoder.open.clear()
    bench.video.add("camera")
    bench.video.receive("camera", frame(0))
    await asyncio.sleep(0)
    bench.video.receive("camera", frame(1))
    bench.now = 2.5
    bench.encoder.open.set()
    await bench.settle()
    assert bench.encoder.count == 1
    assert bench.reports[-1][2:] == (None, None)


async def test_sources_do_not_wait_for_each_other(bench):
    bench.video.add("camera")
    bench.video.add("screen")
    bench.video.receive("camera", frame(0))
    bench.video.receive("screen", frame(1))
    await bench.settle()
    assert {source for source, _, image, _ in bench.reports if image} == {"camera", "screen"}
    assert bench.video.replaced == 0


async def test_held_frames_are_encoded_or_let_go_when_told(bench):
    bench.verdict = FrameVerdict(action="hold")
    bench.video.add("camera")
    ghosts = []
    for number in range(2):
        held = frame(number)
        ghosts.append(ghost_of(held))
        bench.video.receive("camera", held)
        del held
    assert bench.video.held_bytes == 2 * 64 * 48 * 3 // 2
    one, two = (facts.frame_id for facts in bench.facts)
    bench.video.execute(DropHeldFrame(command_id="c", source="camera", frame_id=one))
    gc.collect()
    assert ghosts[0]() is None
    bench.video.execute(EncodeHeldFrame(command_id="c", source="camera", frame_id=two))
    await bench.settle()
    assert bench.reports[0][1] == two
    assert bench.reports[0][2] is not None
    assert bench.video.held_bytes == 0


async def test_held_frames_that_the_sampler_releases_are_let_go(bench):
    bench.verdict = FrameVerdict(action="hold")
    bench.video.add("camera")
    bench.video.receive("camera", frame(0))
    bench.verdict = FrameVerdict(action="hold", released=(bench.facts[0].frame_id,))
    bench.video.receive("camera", frame(1))
    assert bench.video.held_bytes == 64 * 48 * 3 // 2


async def test_a_held_frame_that_is_gone_is_reported_and_no_crash(bench):
    bench.video.execute(EncodeHeldFrame(command_id="c", source="gone", frame_id=9))
    bench.video.execute(DropHeldFrame(command_id="c", source="gone", frame_id=9))
    assert bench.reports == [("gone", 9, None, None)]


async def test_a_frame_that_cannot_be_encoded_is_reported_and_the_next_one_works(bench):
    """I3: one bad frame never stops a sampler."""
    bench.encoder.__class__ = type("Failing", (Gated,), {"__call__": _fail_on_bad})
    bench.video.add("camera")
    bench.video.receive("camera", frame(0))
    await bench.settle()
    bench.video.receive("camera", _named(frame(1), "bad"))
    await bench.settle()
    bench.video.receive("camera", frame(2))
    await bench.settle()
    outcomes = [(image is not None, type(error).__name__) for _, _, image, error in bench.reports]
    assert outcomes == [(True, "NoneType"), (False, "ImageError"), (True, "NoneType")]


def _named(made: VideoFrame, name: str) -> VideoFrame:
    made.opaque = name
    return made


def _fail_on_bad(self: Gated, picture: Any) -> ImageContent:
    if getattr(picture, "opaque", None) == "bad":
        raise ImageError("frame", "VideoFrame", "one that can be read")
    return PictureEncoder.__call__(self, picture)


async def test_removing_a_source_lets_its_frames_go(bench):
    bench.verdict = FrameVerdict(action="hold")
    bench.video.add("camera")
    held = frame(0)
    ghost = ghost_of(held)
    bench.video.receive("camera", held)
    del held
    bench.video.remove("camera")
    bench.video.remove("camera")
    gc.collect()
    assert ghost() is None


# -- looking -----------------------------------------------------------------------------------------------------------


def kept(bench: Bench, at: float, source: str = "camera") -> None:
    bench.video.observe(
        FrameKept(
            message_id="m", source=source, reason="look", captured_at=at, age_ms=0, width=64, height=48, byte_length=1
        )
    )


async def test_looking_gives_the_picture_that_was_really_sent(bench):
    bench.video.add("camera")
    bench.now = 1.0
    looking = bench.video.look("camera")
    bench.video.receive("camera", frame(1))
    await bench.settle()
    assert not looking.done()
    kept(bench, 1.0)
    assert (await looking) is bench.reports[0][2]


async def test_looking_is_not_served_by_an_older_picture_or_another_source(bench):
    bench.video.add("camera")
    bench.video.add("screen")
    bench.now = 1.0
    any_source, screen = bench.video.look(None), bench.video.look("screen")
    bench.now = 2.0
    bench.video.receive("camera", frame(1))
    await bench.settle()
    kept(bench, 0.5)
    assert not any_source.done()
    kept(bench, 2.0)
    assert any_source.done()
    assert not screen.done()
    bench.video.close(SessionClosed("over"))
    with pytest.raises(SessionClosed):
        await screen


# -- size (L5) ---------------------------------------------------------------------------------------------------------


def noisy(size: tuple[int, int]) -> Any:
    return np.random.default_rng(1).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)


@pytest.mark.parametrize("limit", [200_000, 60_000, 20_000])
def test_a_picture_over_the_providers_limit_is_encoded_smaller(limit):
    options = EncodeOptions(format="JPEG", resize_options=ResizeOptions(512, 512), quality=90)
    image = PictureEncoder(options, detail="low", max_image_bytes=limit)(noisy((512, 512)))
    assert image.byte_length <= limit
    assert image.detail == "low"


def test_a_png_over_the_limit_is_made_smaller_in_size():
    options = EncodeOptions(format="PNG", resize_options=None)
    image = PictureEncoder(options, detail="auto", max_image_bytes=100_000)(noisy((400, 400)))
    assert image.byte_length <= 100_000
    assert image.mime_type == "image/png"


def test_a_picture_that_cannot_be_made_small_enough_is_refused():
    with pytest.raises(ImageError, match="fits 100 bytes"):
        PictureEncoder(OPTIONS, detail="auto", max_image_bytes=100)(noisy((64, 48)))


def test_an_encoded_picture_is_shrunk_for_the_wire():
    encoder = PictureEncoder(EncodeOptions(quality=95, resize_options=None), detail="auto", max_image_bytes=None)
    image = encoder(noisy((512, 512)))
    assert encoder.shrink(image, image.byte_length) is image
    assert encoder.shrink(image, 40_000).byte_length <= 40_000
