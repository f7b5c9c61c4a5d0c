"""Which frames matter: behaviour.md I4, field case B44."""

from __future__ import annotations

import itertools
import random

import pytest

from realtime.core import commands as do
from realtime.core import events as seen
from realtime.core import model_events as said
from realtime.core.sampling import FrameFacts, FrameSampler, thumb_difference
from realtime.core.settings import FrameSampling
from realtime.errors import ArgumentError

from .conftest import make_picture


class Camera:
    """Frames with media time, arriving as they are captured."""

    def __init__(self, sampler: FrameSampler, *, fps: float = 30.0, source: str = "camera") -> None:
        self.sampler = sampler
        self.step = 1.0 / fps
        self.source = source
        self.at = 10.0
        self.count = 0
        self.kept: list[tuple[float, str]] = []

    def shoot(self, *, thumb: int | None = None, late: float = 0.0, jitter: float = 0.0) -> str:
        self.count += 1
        shade = self.count * 37 % 256 if thumb is None else thumb
        facts = FrameFacts(
            frame_id=self.count,
            source=self.source,
            captured_at=self.at,
            pts_ms=round((self.at + jitter) * 1000),
            width=640,
            height=480,
            thumbprint=bytes([shade]) * 1024,
        )
        verdict = self.sampler.receive(facts, now=self.at + late)
        if verdict.action == "keep":
            self.kept.append((round(self.at, 2), verdict.keep_reason))
        self.at += self.step
        return verdict.action

    def film(self, seconds: float, **more) -> None:
        for _ in range(round(seconds / self.step)):
            self.shoot(**more)


def test_idle_and_speaking_have_their_own_rates():
    sampler = FrameSampler(FrameSampling(fps_speaking=2.0, fps_idle=0.5))
    camera = Camera(sampler)
    camera.film(10)
    idle = len(camera.kept)
    sampler.speech_began()
    camera.film(10)
    assert (idle, len(camera.kept) - idle) == (5, 20)


def test_speech_begins_with_a_fresh_frame():
    """A faster schedule does not wait for the slower one's time."""
    sampler = FrameSampler(FrameSampling())
    camera = Camera(sampler)
    camera.film(2)
    sampler.speech_began()
    camera.shoot()
    assert [reason for _, reason in camera.kept] == ["first", "schedule"]


def test_jitter_does_not_move_the_schedule():
    sampler = FrameSampler(FrameSampling(fps_idle=1.0))
    camera = Camera(sampler)
    for index in range(300):
        camera.shoot(jitter=0.015 * (-1) ** index)
    times = [at for at, _ in camera.kept]
    assert len(times) == 10
    assert all(abs((later - earlier) - 1.0) < 0.15 for earlier, later in itertools.pairwise(times))


def test_schedule_restarts_after_a_stall_without_a_burst():
    sampler = FrameSampler(FrameSampling(fps_idle=1.0))
    camera = Camera(sampler)
    camera.film(3)
    camera.at += 20
    before = len(camera.kept)
    camera.film(3)
    assert len(camera.kept) - before == 3


def test_unchanged_frames_are_skipped_with_a_ceiling_on_the_gap():
    sampler = FrameSampler(FrameSampling(fps_idle=1.0, max_gap_seconds=5.0))
    camera = Camera(sampler)
    camera.film(12, thumb=80)
    assert [reason for _, reason in camera.kept] == ["first", "max_gap", "max_gap"]
    assert sampler.skipped["unchanged"] > 5


def test_stale_frames_are_dropped():
    sampler = FrameSampler(FrameSampling(max_age_seconds=1.0))
    camera = Camera(sampler)
    assert camera.shoot(late=1.5) == "drop"
    assert sampler.skipped["stale"] == 1
    assert camera.shoot() == "keep"


def test_look_is_served_by_the_next_frame_whatever_the_schedule():
    sampler = FrameSampler(FrameSampling(fps_idle=0))
    camera = Camera(sampler)
    assert camera.shoot() == "drop"
    sampler.look("camera")
    assert camera.shoot() == "keep"
    sampler.look(None)
    assert camera.shoot() == "keep"
    assert camera.shoot() == "drop"
    assert [reason for _, reason in camera.kept] == ["look", "look"]


def test_look_at_one_source_is_not_served_by_another():
    sampler = FrameSampler(FrameSampling(fps_idle=0))
    camera, screen = Camera(sampler), Camera(sampler, source="screen")
    sampler.look("screen")
    assert camera.shoot() == "drop"
    assert screen.shoot() == "keep"


def test_end_of_turn_frame_is_from_within_the_speech():
    """The provider notices the end after its silence; what was captured since is not what the user showed."""
    sampler = FrameSampler(FrameSampling(fps_speaking=0.1), hold_seconds=0.5)
    camera = Camera(sampler)
    camera.film(1)
    sampler.speech_began()
    camera.film(2.2)
    ended_at = camera.at
    camera.film(0.5)
    decided = sampler.speech_ended(at=ended_at)
    (chosen,) = [facts for facts, is_kept in decided if is_kept]
    assert ended_at - 1.0 <= chosen.captured_at <= ended_at
    assert sampler.kept["end_of_turn"] == 1


def test_at_most_two_frames_are_held_per_source():
    sampler = FrameSampler(FrameSampling(fps_speaking=0))
    sampler.speech_began()
    held: set[int] = set()
    for index in range(600):
        facts = FrameFacts(
            frame_id=index, source="camera", captured_at=index / 30, pts_ms=index * 33, width=1, height=1
        )
        verdict = sampler.receive(facts, now=index / 30)
        held -= set(verdict.released)
        if verdict.action == "hold":
            held.add(index)
        assert len(held) <= 2


def test_end_of_turn_adds_nothing_to_an_unchanged_picture():
    sampler = FrameSampler(FrameSampling())
    camera = Camera(sampler)
    camera.film(1, thumb=9)
    sampler.speech_began()
    camera.film(0.9, thumb=9)
    assert [is_kept for _, is_kept in sampler.speech_ended(at=camera.at)].count(True) == 0


def test_source_that_begins_anew_is_looked_at_at_once():
    """I5: media time may start again."""
    sampler = FrameSampler(FrameSampling(fps_idle=1.0))
    camera = Camera(sampler)
    camera.film(3)
    camera.at = 0.5
    assert camera.shoot() == "keep"


@pytest.mark.parametrize("seed", range(20))
def test_only_frames_that_are_looked_at_can_be_kept_or_held(seed):
    """What `looks_at` denies is a frame that is not due, what `holds` affirms is held if it is not, and asking changes nothing."""
    chance = random.Random(seed)
    asked, plain = (FrameSampler(FrameSampling(fps_speaking=2.0, min_change=0)) for _ in range(2))
    spared, at = 0, 5.0
    for index in range(600):
        at = max(0.0, at + chance.choice([0.033, 0.033, 0.033, 0.4, -3.0 if index % 50 == 49 else 0.033]))
        facts = FrameFacts(
            frame_id=index, source=chance.choice("ab"), captured_at=at, pts_ms=round(at * 1000), width=1, height=1
        )
        if chance.random() < 0.05:
            for sampler in (asked, plain):
                sampler.speech_began()
        if chance.random() < 0.05:
            assert asked.speech_ended(at=at) == plain.speech_ended(at=at)
        if chance.random() < 0.02:
            for sampler in (asked, plain):
                sampler.look(None)
        looks = asked.looks_at(facts.source, pts_ms=facts.pts_ms, captured_at=at)
        is_due = asked.is_due(facts.source, pts_ms=facts.pts_ms)
        holds = asked.holds(facts.source, captured_at=at)
        verdict = asked.receive(facts, now=at)
        assert verdict == plain.receive(facts, now=at)
        assert verdict.action == ("keep" if is_due else "hold" if holds else "drop")
        if not looks:
            spared += 1
            assert (verdict.action, verdict.skip_reason) == ("drop", "not_due")
    assert spared > 200


def test_only_frames_that_are_due_need_be_decoded_what_is_held_can_wait():
    """Every frame that is kept was due, so that the others may stay undecoded; asking changes nothing."""
    for fps_idle in (0.0, 0.3, 1.0):
        sampler = FrameSampler(FrameSampling(fps_speaking=1.0, fps_idle=fps_idle, min_change=0))
        camera = Camera(sampler)
        for index in range(400):
            if index == 120:
                sampler.speech_began()
            if index == 260:
                sampler.speech_ended(at=camera.at)
            if index in (5, 90, 333):
                sampler.look("camera" if index == 90 else None)
            media_ms = round(camera.at * 1000)
            was_due = sampler.is_due("camera", pts_ms=media_ms)
            assert was_due == sampler.is_due("camera", pts_ms=media_ms)
            assert not was_due or sampler.looks_at("camera", pts_ms=media_ms, captured_at=camera.at)
            assert (camera.shoot() == "keep") == was_due


def test_a_held_frame_that_was_never_looked_at_does_not_make_the_next_one_new():
    sampler = FrameSampler(FrameSampling(fps_speaking=1.0, fps_idle=1.0))
    camera = Camera(sampler, fps=10)
    camera.film(0.8, thumb=50)
    sampler.speech_began()
    held = FrameFacts(
        frame_id=99, source="camera", captured_at=camera.at, pts_ms=round(camera.at * 1000), width=640, height=480
    )
    assert sampler.receive(held, now=camera.at).action == "hold"
    assert any(kept for _, kept in sampler.speech_ended(at=camera.at + 0.1))
    camera.film(2.5, thumb=50)
    assert [reason for _, reason in camera.kept] == ["first"]


def test_thumbprints_differ_by_mean_luma():
    assert thumb_difference(b"\x00" * 1024, b"\x04" * 1024) == 4
    assert thumb_difference(b"", b"\x04" * 1024) == 255


@pytest.mark.parametrize(
    "settings", [{"fps_idle": -1}, {"fps_speaking": float("inf")}, {"max_age_seconds": 0}, {"decode": "none"}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ArgumentError, match=next(iter(settings))):
        FrameSampling(**settings)


# -- through the machine ------------------------------------------------------------------------------------------------


def test_kept_frame_says_why_when_and_how_old(make_rig):
    rig = make_rig()
    rig.frame(1)
    captured_at = rig.now
    rig.wait(0.25)
    rig.pull()
    (event,) = rig.of(seen.FrameKept)
    assert (event.reason, event.captured_at, event.age_ms) == ("first", captured_at, 250)
    assert (event.width, event.height) == (16, 16)


def test_waiting_frame_makes_way_for_a_newer_one_and_becomes_stale(make_rig):
    """I4, architecture section 5: newest of each source only; what waited too long is not sent."""
    rig = make_rig(sampling=FrameSampling(fps_idle=1.0))
    rig.frame(1)
    rig.wait(1.1)
    rig.frame(2)
    assert [event.reason for event in rig.of(seen.FrameSkipped)] == ["replaced"]
    rig.wait(2.5)
    assert rig.pull() == []
    assert [event.reason for event in rig.of(seen.FrameSkipped)] == ["replaced", "stale"]
    assert rig.names() == []


def test_end_of_turn_frame_is_encoded_on_command(make_rig):
    rig = make_rig(sampling=FrameSampling(fps_speaking=0.01, fps_idle=0.01))
    rig.frame(1)
    rig.pull()
    rig.begin_speech("u1")
    rig.hear(600)
    assert rig.frame(2).action == "hold"
    rig.hear(600)
    rig.feed(said.SpeechEnded(item_id="u1", at_ms=rig.audio_ms))
    (command,) = rig.local_of(do.EncodeHeldFrame)
    assert command.frame_id == 2
    rig.encoded(2)
    rig.pull()
    assert rig.of(seen.FrameKept)[-1].reason == "end_of_turn"


def unseen(rig, frame_id: int) -> str:
    """A frame that was not decoded comes: nobody knows yet what it shows."""
    facts = FrameFacts(
        frame_id=frame_id, source="camera", captured_at=rig.now, pts_ms=round(rig.now * 1000), width=4, height=4
    )
    action = rig.machine.receive_frame(facts, now=rig.now).action
    rig.drain()
    return action


def a_turn_with_a_held_frame(rig, frame_id: int) -> None:
    rig.begin_speech(f"u{frame_id}")
    rig.hear(600)
    assert unseen(rig, frame_id) == "hold"
    rig.hear(100)
    rig.feed(said.SpeechEnded(item_id=f"u{frame_id}", at_ms=rig.audio_ms))
    assert rig.local_of(do.EncodeHeldFrame)[-1].frame_id == frame_id


def test_a_held_frame_that_shows_nothing_new_was_never_kept(make_rig):
    """I4: it says so, it is not counted, and the longest gap is counted from the last picture that was sent."""
    rig = make_rig(sampling=FrameSampling(fps_speaking=0.5, fps_idle=0.5, max_gap_seconds=3.0))
    rig.frame(1, thumb=100)
    rig.pull()
    a_turn_with_a_held_frame(rig, 2)
    rig.machine.receive_image(source="camera", frame_id=2, image=None, is_unchanged=True, now=rig.now)
    rig.drain()
    (event,) = rig.of(seen.FrameSkipped)
    assert event.reason == "unchanged"
    figures = rig.machine.statistics()
    assert figures.frames_kept == {"first": 1}
    assert figures.frames_skipped["unchanged"] == 1
    assert unseen(rig, 3) == "drop"  # as after every unchanged frame, the next is looked at a period later
    rig.wait(2.5)  # 3.2 s after the picture that was sent, 2.6 s after the one that was not
    assert rig.frame(4, thumb=100).keep_reason == "max_gap"


def test_what_a_held_frame_showed_is_what_later_frames_are_compared_with(make_rig):
    rig = make_rig(sampling=FrameSampling(fps_speaking=0.5, fps_idle=0.5, max_gap_seconds=60.0))
    rig.frame(1, thumb=100)
    rig.pull()
    a_turn_with_a_held_frame(rig, 2)
    shown = bytes([200]) * 1024
    rig.machine.receive_image(source="camera", frame_id=2, image=make_picture(2), thumbprint=shown, now=rig.now)
    rig.wait(2.5)
    assert rig.frame(3, thumb=200).skip_reason == "unchanged"
    rig.wait(2.5)
    assert rig.frame(4, thumb=100).keep_reason == "schedule"
    assert rig.machine.statistics().frames_kept == {"first": 1, "end_of_turn": 1, "schedule": 1}


@pytest.mark.parametrize("outcome", [{"is_unchanged": True}, {"thumbprint": bytes([200]) * 1024}])
def test_what_became_of_a_held_frame_changes_nothing_once_a_newer_one_was_kept(make_rig, outcome):
    rig = make_rig(sampling=FrameSampling(fps_speaking=0.5, fps_idle=0.5, max_gap_seconds=60.0))
    rig.frame(1, thumb=100)
    rig.pull()
    a_turn_with_a_held_frame(rig, 2)
    rig.wait(2.5)
    assert rig.frame(3, thumb=50).keep_reason == "schedule"
    image = None if "is_unchanged" in outcome else make_picture(2)
    rig.machine.receive_image(source="camera", frame_id=2, image=image, **outcome, now=rig.now)
    rig.wait(2.5)
    assert rig.frame(4, thumb=50).skip_reason == "unchanged"


def test_what_became_of_a_held_frame_of_a_camera_that_is_gone_is_told_all_the_same(make_rig):
    rig = make_rig(sampling=FrameSampling(fps_speaking=0.5, fps_idle=0.5))
    rig.frame(1, thumb=100)
    rig.pull()
    a_turn_with_a_held_frame(rig, 2)
    rig.machine.receive_track_ended("camera", "video", now=rig.now)
    rig.machine.receive_image(source="camera", frame_id=2, image=None, is_unchanged=True, now=rig.now)
    rig.drain()
    assert [event.reason for event in rig.of(seen.FrameSkipped)] == ["unchanged"]


def test_frame_that_cannot_be_encoded_stops_nothing(make_rig):
    """I3: one bad frame never stops a sampler."""
    rig = make_rig(sampling=FrameSampling(fps_idle=1.0))
    facts = FrameFacts(frame_id=1, source="camera", captured_at=rig.now, pts_ms=0, width=1, height=1)
    assert rig.machine.receive_frame(facts, now=rig.now).action == "keep"
    rig.machine.receive_image(source="camera", frame_id=1, image=None, error=ValueError("bad"), now=rig.now)
    rig.drain()
    assert rig.of(seen.FrameSkipped)[0].reason == "encode_failed"
    assert rig.of(seen.ErrorReported)[0].where == "track camera"
    rig.wait(1)
    rig.frame(2)
    rig.pull()
    assert rig.names() == ["frame"]


def test_sources_have_their_own_schedules_and_end_alone(make_rig):
    rig = make_rig()
    rig.frame(1, source="camera")
    rig.frame(2, source="screen")
    rig.pull()
    assert [message.source for message in rig.machine.messages()] == ["camera", "screen"]
    rig.machine.receive_track_ended("camera", "video", now=rig.now)
    rig.drain()
    assert rig.of(seen.TrackEnded)[0].source == "camera"


def test_model_without_eyes_gets_no_frames(make_rig):
    rig = make_rig(capabilities={"supports_image_input": False})
    assert rig.frame(1).action == "drop"


@pytest.mark.parametrize("seed", range(20))
def test_in_a_lull_no_frame_is_due_or_held(seed):
    """Whatever happens: it is over with the first change, and until then holds for every frame."""
    rng = random.Random(seed)
    rates = [0.0, 0.5, 1.0, 2.0, 10.0]
    sampling = FrameSampling(fps_speaking=rng.choice(rates), fps_idle=rng.choice(rates), end_of_turn=rng.random() < 0.7)
    sampler = FrameSampler(sampling)
    at, lull, quiet = 10.0, None, 0
    kept: list[tuple[FrameFacts, str]] = []
    for frame_id in range(2_000):
        at += rng.choice([0.02, 0.033, 0.033, 0.5])
        media_ms = round(at * 1000)
        is_wanted = sampler.is_due("camera", pts_ms=media_ms) or sampler.holds("camera", captured_at=at)
        if lull is not None and not lull.is_over and media_ms < lull.until_ms and at < lull.until:
            assert not is_wanted
            quiet += 1
        else:
            thumb = b"" if rng.random() < 0.3 else bytes([rng.randrange(2) * 99]) * 1024
            facts = FrameFacts(
                frame_id=frame_id,
                source="camera",
                captured_at=at,
                pts_ms=media_ms,
                width=64,
                height=48,
                thumbprint=thumb,
            )
            verdict = sampler.receive(facts, now=at)
            if verdict.keep_reason is not None:
                kept.append((facts, verdict.keep_reason))
            elif verdict.action == "hold" and rng.random() < 0.1:
                sampler.let_go(facts)
            lull = sampler.lull("camera")
        match rng.randrange(60):
            case 0 | 1:
                sampler.speech_began()
            case 2 | 3:
                sampler.speech_ended(at=at - rng.random())
            case 4:
                sampler.look(rng.choice([None, "camera"]))
            case 5:
                sampler.forget("camera")
            case 6:
                sampler.drop_oldest_held()
            case 7 | 8 if kept:
                sampler.take_back(*kept.pop())
            case _:
                pass
    assert quiet > 100 or sampling.fps_idle == 10.0 or sampling.fps_speaking == 10.0


def test_a_frame_of_one_source_ends_no_lull_of_another():
    sampler = FrameSampler(FrameSampling())
    cameras = [Camera(sampler), Camera(sampler, source="screen")]
    for camera in cameras:
        camera.shoot()
    lull = sampler.lull("camera")
    assert lull is sampler.lull("camera")
    cameras[1].shoot()
    assert lull is not None
    assert not lull.is_over
    cameras[0].shoot()
    assert lull.is_over
