"""`realtime.pipelines.voice`: speech heard here where the model does not report it (I4)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from realtime import ModelCapabilities
from realtime.pipelines.voice import VoiceWatch

RATE = 24_000
REPORTS = ModelCapabilities(model="reports")
MUTE = replace(REPORTS, reports_speech_boundaries=False)


class Heard:
    """A driver that writes down what the machine is told."""

    def __init__(self, capabilities: ModelCapabilities) -> None:
        self.capabilities = capabilities
        self.told: list[tuple[bool, int]] = []
        self.machine = self
        self.heard_ms = 0

    def feed(self, action, *, where):
        assert where == "audio"
        action(self, 0.0)

    def receive_voice_activity(self, *, speaking, ago_ms, now):
        self.told.append((speaking, self.heard_ms - ago_ms))


def silence(ms: int) -> bytes:
    return np.random.default_rng(1).normal(0, 3, ms * RATE // 1000).astype("<i2").tobytes()


def speech(ms: int) -> bytes:
    t = np.arange(ms * RATE // 1000) / RATE
    buzz = sum(np.sin(2 * np.pi * 140 * harmonic * t) / harmonic for harmonic in range(1, 20))
    return (3000 * buzz * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * t))).astype("<i2").tobytes()


def say(watch: VoiceWatch, *parts: bytes, chunk_ms: int = 20) -> None:
    data, step = b"".join(parts), chunk_ms * RATE // 1000 * 2
    for at in range(0, len(data), step):
        watch._driver.heard_ms += chunk_ms
        watch.receive(data[at : at + step])


@pytest.mark.parametrize("chunk_ms", [10, 20, 100])
@pytest.mark.parametrize(("capabilities", "is_manual"), [(MUTE, False), (REPORTS, True)])
def test_speech_is_told_where_the_model_tells_none(capabilities, is_manual, chunk_ms):
    driver = Heard(capabilities)
    watch = VoiceWatch(driver, RATE, is_manual=is_manual)
    say(watch, silence(1000), speech(1200), silence(1200), chunk_ms=chunk_ms)
    assert [speaking for speaking, _ in driver.told] == [True, False]
    assert driver.told[0][1] == pytest.approx(1000, abs=60)
    assert driver.told[1][1] == pytest.approx(2200, abs=80)


def test_a_model_that_reports_speech_is_believed_and_nothing_is_looked_at():
    driver = Heard(REPORTS)
    watch = VoiceWatch(driver, RATE, is_manual=False)
    say(watch, silence(500), speech(1000), silence(1000))
    assert driver.told == []
    assert watch._detector is None


def test_after_a_change_of_model_speech_is_told_with_how_long_ago_it_was():
    """An agent whose model reports no speech takes over; A3: by samples."""
    driver = Heard(REPORTS)
    watch = VoiceWatch(driver, RATE, is_manual=False)
    say(watch, silence(3000))
    driver.capabilities = MUTE
    say(watch, silence(1000), speech(1000), silence(1000))
    assert [speaking for speaking, _ in driver.told] == [True, False]
    assert driver.told[0][1] == pytest.approx(4000, abs=60)
    driver.capabilities = REPORTS
    say(watch, speech(1000), silence(1000))
    assert len(driver.told) == 2
