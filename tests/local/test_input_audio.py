"""The input audio buffer: positions, turns cut out, and bounds."""

from __future__ import annotations

import numpy as np
import pytest

from realtime.local.endpointing import EndpointingSettings, Heard, SpeechEnd, SpeechStart
from realtime.local.input_audio import MAX_TURN_MS, InputAudio

from .kit import RATE, LoudnessDetector, loud, quiet


def make(endpointing: EndpointingSettings | None = None) -> InputAudio:
    audio = InputAudio(LoudnessDetector())
    audio.set_endpointing(endpointing)
    return audio


def feed(audio: InputAudio, *pieces: bytes, chunk: int = 960) -> list[Heard]:
    heard: list[Heard] = []
    data = b"".join(pieces)
    for start in range(0, len(data), chunk):
        audio.append(data[start : start + chunk])
        while audio.waiting:
            heard += audio.hear(4)
    return heard


def test_positions_come_from_samples() -> None:
    """A3."""
    audio = make()
    feed(audio, loud(1000), chunk=101)
    assert abs(audio.position_ms - 1000) <= 3  # the filter waits for what follows
    assert audio.commit().end_ms == 1000


def test_push_to_talk_commits_everything_since_the_last_commit() -> None:
    audio = make()
    feed(audio, loud(300))
    first = audio.commit()
    feed(audio, loud(200))
    second = audio.commit()
    assert (first.start_ms, first.end_ms) == (0, 300)
    assert (second.start_ms, second.end_ms) == (300, 500)
    assert len(second.pcm) == 200 * 16
    assert audio.uncommitted_ms == 0


def test_a_turn_is_cut_out_with_its_padding() -> None:
    audio = make(EndpointingSettings())
    start, *_pause, end = feed(audio, quiet(1000), loud(600), quiet(220))
    assert isinstance(start, SpeechStart)
    assert isinstance(end, SpeechEnd)
    assert 640 <= start.at_ms <= 740
    assert 1600 <= end.speech_end_ms <= 1664
    utterance = audio.commit(start.at_ms, end.at_ms)
    assert utterance.duration_ms == end.at_ms - start.at_ms
    voiced = np.abs(utterance.samples) > 0.05
    assert voiced.sum() > 0.7 * 600 * 16


def test_before_speech_only_the_padding_is_held() -> None:
    audio = make(EndpointingSettings(prefix_padding_ms=300))
    feed(audio, quiet(20_000))
    assert audio.uncommitted_ms <= 700
    assert len(audio._held) <= 2 * 16 * 700


def test_a_turn_beyond_the_bound_keeps_its_newest_audio_and_counts_the_rest() -> None:
    audio = make()
    for _ in range(MAX_TURN_MS // 10_000 + 1):
        audio.append(loud(10_000))
    assert audio.uncommitted_ms == pytest.approx(MAX_TURN_MS, abs=5)
    assert audio.dropped_ms == pytest.approx(10_000, abs=5)
    assert audio.commit().end_ms == MAX_TURN_MS + 10_000


def test_clearing_forgets_a_turn_under_way_and_keeps_the_position() -> None:
    audio = make(EndpointingSettings())
    feed(audio, loud(500))
    assert audio.speaking
    audio.clear()
    assert not audio.speaking
    assert audio.uncommitted_ms == 0
    heard = feed(audio, quiet(400), loud(300))
    assert isinstance(heard[0], SpeechStart)
    assert heard[0].at_ms >= 490


def test_the_format_can_change_in_mid_stream() -> None:
    audio = make()
    audio.append(loud(200))
    audio.set_format("audio/pcmu")
    audio.append(bytes([0xFF]) * 8 * 100)
    assert audio.commit().end_ms == 300


def test_listening_for_turns_begins_where_it_is_turned_on() -> None:
    audio = make()
    feed(audio, loud(500))
    audio.set_endpointing(EndpointingSettings())
    assert feed(audio, quiet(500)) == []
    assert audio.endpointing is not None
    audio.set_endpointing(None)
    assert audio.endpointing is None


def test_an_utterance_at_the_rate_of_the_recognizer_is_the_clients_audio() -> None:
    audio = make()
    pcm = (8000 * np.sin(2 * np.pi * 300 * np.arange(RATE) / RATE)).astype("<i2")
    feed(audio, pcm.tobytes(), chunk=777)
    samples = audio.commit().samples
    wanted = 8000 / 32768 * np.sin(2 * np.pi * 300 * np.arange(16_000) / 16_000)
    assert np.abs(samples - wanted)[200:-200].max() < 0.01
