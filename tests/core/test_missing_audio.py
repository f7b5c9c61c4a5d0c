"""Sound that stops coming while the user is listened to: the provider hears silence, as from an open microphone."""

from __future__ import annotations

import random

import pytest

from realtime.core import commands as do
from realtime.core import model_events as said
from realtime.core.settings import FrameSampling, TurnDetection

TONE = b"\x10\x20" * 2_400
"""100 ms at 24 kHz."""


def speak(rig):
    rig.machine.receive_audio(TONE, now=rig.now)
    rig.feed(said.SpeechBegan(item_id="u1", at_ms=0))
    rig.pull()


def silence_ms(rig):
    """How much silence was sent since the last look."""
    chunks = [command.pcm for command in rig.pull() if isinstance(command, do.AppendAudio)]
    assert not any(any(chunk) for chunk in chunks)
    return sum(map(len, chunks)) // 48


def test_silence_goes_on_as_time_does_until_the_turn_is_over(make_rig):
    rig = make_rig()
    speak(rig)
    rig.wait(0.9)
    assert silence_ms(rig) == 0
    rig.wait(1.0)
    assert silence_ms(rig) == pytest.approx(900, abs=101)
    rig.feed(said.SpeechEnded(item_id="u1", at_ms=800))
    rig.wait(5.0)
    assert silence_ms(rig) == 0


@pytest.mark.parametrize("at_once_seconds", [1.0, 3.0])
def test_sound_that_comes_in_large_pieces_is_not_missed_before_it_is_over(make_rig, at_once_seconds):
    """No more silence than time has passed: what a dropped line loses is told again by time (L2)."""
    rig = make_rig()
    speak(rig)
    for _ in range(5):
        rig.machine.receive_audio(bytes(round(48_000 * at_once_seconds)), now=rig.now)
        rig.wait(at_once_seconds)
    assert silence_ms(rig) == 5_000 * at_once_seconds
    rig.wait(3.0)
    assert silence_ms(rig) == pytest.approx(2_000, abs=201)


def test_sound_that_comes_again_takes_its_place(make_rig):
    rig = make_rig()
    speak(rig)
    rig.wait(1.5)
    assert silence_ms(rig) > 0
    rig.machine.receive_audio(TONE, now=rig.now)
    rig.pull()
    rig.wait(0.9)
    assert silence_ms(rig) == 0


def sent_ms(rig):
    """How much sound of any kind was sent since the last look."""
    return sum(len(command.pcm) for command in rig.pull() if isinstance(command, do.AppendAudio)) // 48


@pytest.mark.parametrize("pieces", [[2_200], [40] * 55, [1_100, 1_100]])
def test_silence_that_stood_in_is_not_told_again(make_rig, pieces):
    """A3: an outage is as long in the model's ears as it was; the time stamps bring its silence with the next packets."""
    rig = make_rig()
    speak(rig)
    rig.wait(2.5)  # 0.1 s of it is the sound itself
    stood_in = silence_ms(rig)
    assert 1_000 < stood_in < 2_000
    rig.machine.receive_audio(
        b"\x01\x00" * 120 + bytes(48 * 200 - 240), now=rig.now
    )  # a resampler's tail, and the rest
    for piece_ms in pieces:
        rig.machine.receive_audio(bytes(48 * piece_ms), now=rig.now)
    rig.machine.receive_audio(TONE, now=rig.now)
    assert sent_ms(rig) + stood_in == pytest.approx(2_400 + 100, abs=1)


def test_sound_that_an_outage_held_back_is_told_whole(make_rig):
    """L2: only silence is told already; what was said meanwhile was not."""
    rig = make_rig()
    speak(rig)
    rig.wait(2.5)
    silence_ms(rig)
    for _ in range(24):
        rig.machine.receive_audio(TONE, now=rig.now)
    assert sent_ms(rig) == 2_400


def test_of_sound_that_an_outage_held_back_the_pauses_make_room(make_rig):
    """Also where one begins within a piece: else all later sound would come late for good."""
    rig = make_rig()
    speak(rig)
    rig.wait(2.5)
    silence_ms(rig)
    for _ in range(10):
        rig.machine.receive_audio(TONE, now=rig.now)
    assert sent_ms(rig) == 1_000
    for _ in range(4):
        rig.machine.receive_audio(TONE[:2_400] + bytes(2_400), now=rig.now)
    assert sent_ms(rig) == 200


def test_a_pause_after_an_outage_that_brought_nothing_is_told(make_rig):
    """A sender that leaves the time out, or a new one, is heard as it comes: nothing of it was told."""
    rig = make_rig()
    speak(rig)
    rig.wait(2.5)
    silence_ms(rig)
    for _ in range(10):
        rig.machine.receive_audio(bytes(4_800), now=rig.now)
        rig.wait(0.1)
    assert sent_ms(rig) == 1_000


def test_what_comes_at_once_long_after_an_outage_is_told(make_rig):
    rig = make_rig()
    speak(rig)
    rig.wait(2.5)
    silence_ms(rig)
    rig.machine.receive_audio(TONE, now=rig.now)
    for _ in range(12):
        rig.wait(0.1)
        rig.machine.receive_audio(TONE, now=rig.now)
    sent_ms(rig)
    rig.machine.receive_audio(bytes(48_000 * 3), now=rig.now)
    assert sent_ms(rig) == 3_000


def test_the_first_sound_after_silence_that_stood_in_goes_by_the_writer(make_rig):
    """It brings a deadline: the silence had an end, and what follows may stop coming too."""
    rig = make_rig()
    speak(rig)
    rig.wait(20.0)
    silence_ms(rig)
    deadline = rig.machine.get_deadline()
    assert rig.machine.receive_audio(TONE, at_once=True, now=rig.now) is None
    assert rig.machine.get_deadline() != deadline
    rig.pull()
    assert rig.machine.receive_audio(TONE, at_once=True, now=rig.now) is not None


def test_a_provider_that_ends_no_turn_is_not_sent_silence_for_ever(make_rig):
    rig = make_rig()
    speak(rig)
    rig.wait(60.0)
    assert silence_ms(rig) == pytest.approx(12_000, abs=101)
    assert rig.machine.get_deadline() is None or rig.machine.get_deadline() > rig.now


def test_where_speech_is_not_reported_every_sound_may_be_speech(make_rig):
    rig = make_rig(capabilities={"reports_speech_boundaries": False})
    rig.machine.receive_audio(TONE, now=rig.now)
    rig.pull()
    rig.wait(20.0)
    assert silence_ms(rig) == pytest.approx(2_000, abs=101)


@pytest.mark.parametrize("case", ["nobody spoke", "push to talk", "no audio"])
def test_nothing_is_made_up_where_nobody_waits_for_silence(make_rig, case):
    rig = make_rig(turn_detection=TurnDetection(mode="manual")) if case == "push to talk" else make_rig()
    if case != "no audio":
        rig.machine.receive_audio(TONE, now=rig.now)
        rig.pull()
    rig.wait(20.0)
    assert silence_ms(rig) == 0


@pytest.mark.parametrize("mode", ["server", "manual"])
def test_a_voice_that_breaks_off_with_its_sound_ends_the_speaking_schedule(make_rig, mode):
    """I4: where our own ears hear the user, the camera does not stay at its speaking rate."""
    rig = make_rig(
        capabilities={"reports_speech_boundaries": False},
        turn_detection=TurnDetection(mode=mode),
        sampling=FrameSampling(fps_idle=0.1, fps_speaking=1.0, min_change=0),
    )
    rig.machine.receive_audio(TONE, now=rig.now)
    rig.machine.receive_voice_activity(speaking=True, ago_ms=0, now=rig.now)
    assert rig.frame(1).action == "keep"
    rig.wait(1.5)
    assert rig.frame(2).action != "keep"


def test_silence_that_stood_in_moves_no_end_of_speech(make_rig):
    """I4, A3: how long ago speech ended is counted in sound that came."""
    rig = make_rig(
        capabilities={"reports_speech_boundaries": False},
        sampling=FrameSampling(fps_idle=0.1, fps_speaking=0.1, min_change=0),
    )
    for _ in range(3):
        rig.machine.receive_audio(TONE, now=rig.now)
        rig.pull()
        rig.wait(10.0)
    rig.machine.receive_audio(TONE, now=rig.now)
    rig.machine.receive_voice_activity(speaking=True, ago_ms=0, now=rig.now)
    rig.frame(1)
    rig.wait(0.4)
    assert rig.frame(2).action == "hold"
    rig.wait(0.2)
    rig.machine.receive_audio(TONE, now=rig.now)
    rig.machine.receive_voice_activity(speaking=False, ago_ms=100, now=rig.now)
    rig.drain()
    assert [command.frame_id for command in rig.local_of(do.EncodeHeldFrame)] == [2]


@pytest.mark.parametrize("seed", range(8))
def test_sound_that_goes_on_is_noted_in_short_as_it_is_at_length(make_rig, seed):
    chance = random.Random(seed)
    short, long = make_rig(), make_rig()
    for rig in (short, long):
        rig.sends_at_once = True
        rig.begin_speech("u1")
    for _ in range(200):
        passed = chance.choices([0.0, 0.02, 0.02, 0.5, 1.3], [2, 9, 9, 1, 1])[0]
        sound = chance.choice([TONE, TONE[:960], bytes(960), TONE[:400] + bytes(560)])
        for rig in (short, long):
            rig.wait(passed)
        told = short.machine.receive_audio(sound, at_once=True, now=short.now)
        as_told = long.machine._missing_audio.heard(sound, now=long.now)
        assert told is None or told.pcm == as_told
        short.pull()
        long.pull()
        for name in ("lasts_until", "goes_on", "repeatable", "due_at", "_made_seconds", "_told_until"):
            assert getattr(short.machine._missing_audio, name) == getattr(long.machine._missing_audio, name)
