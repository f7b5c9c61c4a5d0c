"""Speech or not by level: the fallback (architecture.md section 2, media)."""

import numpy as np
import pytest

from realtime.errors import ArgumentError
from realtime.media.audio import PcmConverter
from realtime.media.vad import VoiceChange, VoiceDetector
from realtime.pcm import read_wav

RATE = 16_000


def noise(seconds: float, level: float, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, level, round(seconds * RATE))


def voiced(seconds: float, level: float = 4000) -> np.ndarray:
    """Syllables: a buzz with harmonics, four times a second."""
    t = np.arange(round(seconds * RATE)) / RATE
    buzz = sum(np.sin(2 * np.pi * 140 * harmonic * t) / harmonic for harmonic in range(1, 25))
    return level * buzz * (0.55 + 0.45 * np.sin(2 * np.pi * 4 * t))


def pcm(*parts: np.ndarray) -> bytes:
    return np.clip(np.concatenate(parts), -32_768, 32_767).astype("<i2").tobytes()


def changes(data: bytes, chunk: int = 640, **options: float) -> list[VoiceChange]:
    detector = VoiceDetector(RATE, **options)
    return [change for at in range(0, len(data), chunk) for change in detector.push(data[at : at + chunk])]


def times(found: list[VoiceChange]) -> list[tuple[bool, int]]:
    return [(change.speaking, change.at_ms) for change in found]


@pytest.mark.parametrize("level", [0, 3, 30])
def test_silence_and_a_steady_background_are_no_speech(level):
    assert changes(pcm(noise(10, level))) == []


@pytest.mark.parametrize("background", [0, 3, 30, 100])
@pytest.mark.parametrize("loud", [1500, 8000])
def test_speech_begins_and_ends_where_it_does(background, loud):
    data = pcm(noise(2, background), voiced(1.5, loud) + noise(1.5, background, 1), noise(2, background, 2))
    (began, start), (ended, end) = times(changes(data))
    assert (began, ended) == (True, False)
    assert abs(start - 2000) <= 100
    assert abs(end - 3500) <= 160


def test_a_stream_may_begin_with_speech():
    (began, start), (ended, _) = times(changes(pcm(voiced(1), noise(1, 3))))
    assert (began, start, ended) == (True, 0, False)


def test_a_short_pause_ends_nothing_and_a_long_one_does():
    sentence = [voiced(0.8), noise(0.3, 3), voiced(0.8, 5000)]
    assert len(changes(pcm(noise(1, 3), *sentence, noise(1, 3)))) == 2
    sentence[1] = noise(0.9, 3)
    assert len(changes(pcm(noise(1, 3), *sentence, noise(1, 3)))) == 4
    assert len(changes(pcm(noise(1, 3), *sentence, noise(2, 3)), stop_ms=1200)) == 2


def test_a_click_is_no_speech():
    click = np.zeros(RATE // 50)
    click[:60] = 20_000
    assert changes(pcm(noise(1, 3), click, noise(1, 3))) == []


def test_a_slow_rumble_and_an_offset_are_no_speech():
    rumble = 600 * np.sin(2 * np.pi * 8 * np.arange(3 * RATE) / RATE) + 500
    assert changes(pcm(noise(3, 30), rumble + noise(3, 30))) == []


def test_a_background_that_stays_becomes_background():
    """A fan is switched on: taken for speech at first, and for the room within five seconds."""
    found = changes(pcm(noise(2, 3), noise(8, 120), voiced(1, 6000) + noise(1, 120, 1), noise(1, 120, 2)))
    assert [change.speaking for change in found] == [True, False, True, False]
    assert found[1].at_ms < 7000
    assert abs(found[2].at_ms - 10_000) <= 100


def test_the_size_of_chunks_changes_nothing():
    data = pcm(noise(1, 20), voiced(1), noise(1, 20))
    whole = changes(data, len(data))
    assert len(whole) == 2
    for chunk in (1, 333, 641, 5000):
        assert changes(data, chunk) == whole


def test_a_spoken_sentence_is_found(speech):
    data, rate, _ = read_wav(speech("The quick brown fox jumps over the lazy dog.").read_bytes())
    converter = PcmConverter(rate, RATE)
    spoken = np.frombuffer(converter.convert(data) + converter.flush(), "<i2").astype(float)
    found = changes(pcm(noise(1, 15), spoken + noise(len(spoken) / RATE, 15, 1)[: len(spoken)], noise(2, 15, 2)))
    assert [change.speaking for change in found] == [True, False]
    assert 900 <= found[0].at_ms <= 1400
    assert abs(found[1].at_ms - (1000 + len(spoken) / RATE * 1000)) < 500


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("above_db", 0),
        ("above_db", "9"),
        ("start_ms", 0),
        ("stop_ms", 10**6),
        ("stop_ms", True),
        ("above_db", float("nan")),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(name, value):
    with pytest.raises(ArgumentError, match=f"{name} must be a number of"):
        VoiceDetector(RATE, **{name: value})
