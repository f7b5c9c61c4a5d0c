"""Sound that stops coming while the user is listened to: the provider hears silence, as from an open microphone."""

from __future__ import annotations

import pytest

from realtime.core import commands as do
from realtime.core import model_events as said
from realtime.core.settings import TurnDetection

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


def test_sound_that_comes_again_takes_its_place(make_rig):
    rig = make_rig()
    speak(rig)
    rig.wait(1.5)
    assert silence_ms(rig) > 0
    rig.machine.receive_audio(TONE, now=rig.now)
    rig.pull()
    rig.wait(0.9)
    assert silence_ms(rig) == 0


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
