"""`realtime.pipelines.audio`: tracks to one stream at the model's rate, in small chunks (A1–A3)."""

from __future__ import annotations

from array import array
from fractions import Fraction

import pytest
from av import AudioFrame

from realtime.pipelines.audio import MAX_CHUNK_MS, AudioInput

RATE = 24_000


def frame(number: int, value: int = 1000, *, rate: int = 48_000, ms: int = 20, layout: str = "mono") -> AudioFrame:
    samples = rate * ms // 1000
    made = AudioFrame(format="s16", layout=layout, samples=samples)
    made.planes[0].update(array("h", [value] * samples * (2 if layout == "stereo" else 1)).tobytes())
    made.sample_rate = rate
    made.pts = number * samples
    made.time_base = Fraction(1, rate)
    return made


class Out(list[bytes]):
    @property
    def ms(self) -> float:
        return sum(map(len, self)) / 2 * 1000 / RATE

    @property
    def values(self) -> list[int]:
        return array("h", b"".join(self)).tolist()


@pytest.fixture
def out() -> Out:
    return Out()


@pytest.fixture
def audio(out: Out) -> AudioInput:
    return AudioInput(RATE, out.append)


def test_one_track_comes_out_at_the_models_rate_in_small_whole_sample_chunks(audio, out):
    audio.add("mic")
    for number in range(50):
        audio.receive("mic", frame(number))
    audio.remove("mic")
    assert out.ms == pytest.approx(1000, abs=1)
    assert all(0 < len(chunk) <= MAX_CHUNK_MS * RATE // 1000 * 2 and len(chunk) % 2 == 0 for chunk in out)
    assert len(out) >= 25  # no more than 40 ms are ever held back
    assert out.values[RATE // 2] == pytest.approx(1000, abs=2)


def test_a_frame_is_on_its_way_as_soon_as_it_is_there(audio, out):
    """Latency: nothing waits for a second frame once the converter has begun."""
    audio.add("mic")
    for number in range(10):
        audio.receive("mic", frame(number))
        assert out.ms >= (number + 1) * 20 - 25


def test_a_hole_in_pts_keeps_the_time(audio, out):
    audio.add("mic")
    audio.receive("mic", frame(0))
    audio.receive("mic", frame(5))
    audio.remove("mic")
    assert out.ms == pytest.approx(120, abs=2)


def test_a_long_pause_does_not_become_silence(audio, out):
    audio.add("mic")
    audio.receive("mic", frame(0))
    audio.receive("mic", frame(60 * 50))
    audio.remove("mic")
    assert out.ms == pytest.approx(40, abs=2)


def test_a_long_hole_comes_out_in_small_chunks(audio, out):
    audio.add("mic")
    audio.receive("mic", frame(0))
    audio.receive("mic", frame(100))
    assert max(map(len, out)) <= MAX_CHUNK_MS * RATE // 1000 * 2


def test_two_microphones_are_one_stream(audio, out):
    audio.add("mic")
    audio.add("guitar")
    for number in range(50):
        audio.receive("mic", frame(number, 1000))
        audio.receive("guitar", frame(number, 2000, rate=16_000, layout="stereo"))
    audio.remove("guitar")
    audio.remove("mic")
    assert out.ms == pytest.approx(1000, abs=30)
    assert out.values[RATE // 2] == pytest.approx(3000, abs=20)


def test_removing_one_lets_the_other_go_on(audio, out):
    audio.add("mic")
    audio.add("guitar")
    audio.receive("guitar", frame(0))
    audio.remove("guitar")
    audio.remove("guitar")
    for number in range(50):
        audio.receive("mic", frame(number))
    assert out.ms >= 975


def test_a_source_makes_no_more_silence_than_time_passes(out):
    """A3: by the session's clock; a jump of the time stamps alone is no pause."""
    now = [0.0]
    audio = AudioInput(RATE, out.append, now=lambda: now[0])
    audio.add("mic")
    audio.receive("mic", frame(0))
    audio.receive("mic", frame(200))
    now[0] += 3.0
    audio.receive("mic", frame(400))
    audio.remove("mic")
    assert out.ms == pytest.approx(60 + 1_000 + 3_000, abs=2)
