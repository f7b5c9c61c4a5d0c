"""A frame that surely nobody wants is not asked about, and nothing is different for it (behaviour.md I4): random scenarios, twice."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from realtime.core.sampling import FrameFacts, FrameSampler, Lull
from realtime.core.settings import FrameSampling
from realtime.tracks import chain_worker, picture_decoder
from realtime.tracks.picture_decoder import UndecodedFrame
from realtime.tracks.sampled_decode import VideoIntake

KEYS = {"vp8": b"\x10\x00" + bytes(30), "h264": b"\x67\x42\xc0\x1f" + bytes(30)}
DELTAS = {"vp8": b"\x10\x01" + bytes(30), "h264": b"\x41" + bytes(31)}
MIDDLES = {"vp8": b"\x00\x01" + bytes(30), "h264": b"\x41\x01" + bytes(30)}


class Picture(NamedTuple):
    """What a decoder gives, as far as anybody looks at it here."""

    pts: int
    width: int = 64
    height: int = 48


class Decoder:
    """Decodes nothing."""

    codec = ""

    def __init__(self, codec: str) -> None:
        self.codec = codec

    def decode(self, frames: Any, *, only_newest: bool = False) -> list[Picture]:
        pictures = [Picture(chained.pts) for chained in frames]
        return pictures[-1:] if only_newest else pictures

    def drain(self) -> list[Picture]:
        return []

    def decode_some(self, frames: Any) -> tuple[list[Picture], int]:
        return self.decode(frames[:3]), max(len(frames) - 3, 0)


class Viewer:
    """The sampler, as a session looks through it; and what it was told and given."""

    def __init__(self, sampler: FrameSampler, *, asks_of_each: bool) -> None:
        self.sampler = sampler
        self.asks_of_each = asks_of_each
        self.time = 100.0
        self.seen: list[Any] = []
        self.held: dict[int, FrameFacts] = {}
        self.jobs: list[Any] = []
        self.questions = 0
        self.count = 0

    def now(self) -> float:
        return self.time

    def is_due(self, pts_ms: int) -> bool:
        self.questions += 1
        return self.sampler.is_due("camera", pts_ms=pts_ms)

    def may_hold(self, pts_ms: int) -> bool:
        del pts_ms
        return self.sampler.holds("camera", captured_at=self.time)

    def lull(self) -> Lull | None:
        return None if self.asks_of_each else self.sampler.lull("camera")

    def develop(self, frame: Any, /) -> Any:
        return frame

    def receive(self, frame: Any, arrived_at: float, /) -> None:
        self.count += 1
        facts = FrameFacts(
            frame_id=self.count,
            source="camera",
            captured_at=arrived_at,
            pts_ms=round(frame.pts / 90),
            width=64,
            height=48,
            thumbprint=b"" if isinstance(frame, UndecodedFrame) else bytes([self.count % 3]) * 1024,
        )
        verdict = self.sampler.receive(facts, now=self.time)
        self.seen.append((type(frame).__name__, frame.pts, arrived_at, verdict))
        if verdict.action == "hold":
            self.held[facts.frame_id] = facts
        for frame_id in verdict.released:
            self.held.pop(frame_id, None)
        if verdict.action == "keep" and self.count % 5 == 0:
            assert verdict.keep_reason is not None
            self.sampler.take_back(facts, verdict.keep_reason)

    def run(self, job: Callable[[], Any], done: Callable[[Any, BaseException | None], None], /) -> None:
        self.jobs.append((job, done))

    def work(self) -> None:
        while self.jobs:
            job, done = self.jobs.pop(0)
            done(job(), None)


class Sender:
    """What it is told."""

    def __init__(self) -> None:
        self.told: list[Any] = []

    def request_key_frame(self) -> None:
        self.told.append("key")

    def report_missing(self, numbers: list[int]) -> None:
        self.told.append(numbers)


class Way:
    """An intake with its viewer and its sender."""

    def __init__(self, codec: str, sampling: FrameSampling, *, asks_of_each: bool) -> None:
        self.codec = codec
        self.viewer = Viewer(FrameSampler(sampling, hold_seconds=0.5), asks_of_each=asks_of_each)
        self.sender = Sender()
        self.intake = VideoIntake(self.sender)
        self.intake.use(self.viewer)
        self.others: list[Any] = []

    def put(self, packet: tuple[int, int, bytes, bool], source: int) -> None:
        number, timestamp, payload, marker = packet
        self.intake.receive(self.codec, source, number, timestamp, payload, marker)

    def state(self) -> Any:
        """All that anybody can notice, and what it leads to."""
        intake = self.intake
        chain = intake._chain
        frames = None if chain is None else ([(at.pts, at.arrived_at) for at in chain.frames], chain.size)
        counts = (intake.frames, intake.undecoded, intake.faults, intake.key_requests, intake._step, intake._pts)
        return (
            *counts,
            frames,
            intake._worker.decoder is None,
            self.sender.told,
            self.viewer.seen,
            len(self.others),
            self.viewer.sampler.skipped,
        )


SAMPLINGS = [
    FrameSampling(fps_speaking=1.0, fps_idle=1.0, min_change=0.0),
    FrameSampling(fps_speaking=2.0, fps_idle=0.2),
    FrameSampling(fps_speaking=0.0, fps_idle=0.0),
    FrameSampling(fps_speaking=5.0, fps_idle=0.0, end_of_turn=False),
    FrameSampling(fps_speaking=0.0, fps_idle=3.0),
]


def _act(name: str, way: Way) -> None:
    """Something changes what is wanted."""
    sampler, viewer = way.viewer.sampler, way.viewer
    match name:
        case "speak":
            sampler.speech_began()
        case "stop":
            sampler.speech_ended(at=viewer.time - 0.2)
        case "look":
            sampler.look("camera")
        case "look at any":
            sampler.look(None)
        case "forget":
            sampler.forget("camera")
        case "memory":
            sampler.drop_oldest_held()
        case "nobody":
            way.intake.use(None)
        case "somebody":
            way.intake.use(viewer)
        case "read":
            way.intake.decode_all(way.others.append)
        case "read no more":
            way.intake.decode_wanted()
        case _:
            way.intake.tick()


ACTS = [
    "speak",
    "stop",
    "look",
    "look at any",
    "forget",
    "memory",
    "nobody",
    "somebody",
    "somebody",
    "read",
    "read no more",
]


@pytest.mark.parametrize("codec", ["vp8", "h264"])
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("seed", range(4))
def test_it_is_as_if_each_frame_were_asked_about(codec, sampling, seed, monkeypatch):
    monkeypatch.setattr(chain_worker, "PictureDecoder", Decoder)
    monkeypatch.setattr(picture_decoder, "PictureDecoder", Decoder)
    monkeypatch.setattr(
        picture_decoder, "decode_alone", lambda codec, *args, **more: Decoder(codec).decode(*args, **more)
    )
    rng = random.Random(seed)
    ways = [Way(codec, sampling, asks_of_each=asks) for asks in (False, True)]
    number, timestamp, source, wants_key, answers = 65_000, 0xFFF0_0000, 1, True, True
    for index in range(1_500):
        if rng.random() < 0.01:
            act = rng.choice(ACTS)
            for way in ways:
                _act(act, way)
        if rng.random() < 0.002:
            answers = not answers
        asked = len(ways[0].sender.told)
        parts = rng.choice([1, 1, 2, 4])
        is_key = (wants_key and answers) or rng.random() < 0.003
        wants_key = wants_key and not is_key
        step = 3_000 if rng.random() < 0.9 else rng.choice([90, 2_900, 6_000, 90_000, -3_000, 0])
        timestamp = (timestamp + step) & 0xFFFFFFFF
        if rng.random() < 0.002:
            source += 1
        lost = rng.random() < 0.01
        for part in range(parts):
            first = (KEYS if is_key else DELTAS)[codec]
            packet = (number & 0xFFFF, timestamp, first if part == 0 else MIDDLES[codec], part == parts - 1)
            number += 1
            for way in () if lost and part == parts // 2 else ways:
                way.put(packet, source)
        works = rng.random() < 0.7
        for way in ways:
            if works:
                way.viewer.work()
            way.viewer.time += abs(step) / 90_000
            if index % 8 == 0:
                way.intake.tick()
        wants_key = wants_key or len(ways[0].sender.told) > asked
        assert ways[0].state() == ways[1].state()
    assert ways[0].viewer.questions <= ways[1].viewer.questions


def test_while_nobody_wants_a_frame_the_sampler_is_asked_about_none():
    way = Way("vp8", SAMPLINGS[0], asks_of_each=False)
    way.viewer.receive(Picture(0), 100.0)
    way.put((0, 3_000, KEYS["vp8"], True), 1)
    asked = way.viewer.questions
    for index in range(1, 20):
        way.put((index, 3_000 + index * 3_000, DELTAS["vp8"], True), 1)
    assert way.viewer.questions == asked
    assert way.intake.frames == way.intake.undecoded == 20
    assert way.intake._chain is not None
    assert len(way.intake._chain.frames) == 20
    way.viewer.sampler.look("camera")
    way.put((20, 3_000 + 20 * 3_000, DELTAS["vp8"], True), 1)
    assert way.viewer.questions > asked
