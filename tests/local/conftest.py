"""The models, loaded once for all tests, and speech to try them on."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from realtime.local.recognizer import WhisperRecognizer
from realtime.local.synthesizer import HibariSynthesizer
from realtime.local.vad import SileroDetector
from realtime.local.weights import whisper_tiny
from realtime.local.workers import FairPool
from realtime.media.resample import Resampler

HUMAN = {
    "librivox-0870": "and mister john dashwood had then leisure to consider how much there might be prudently in his power to do for them",
    "librivox-0880": "he was not an ill disposed young man",
    "librivox-0920": "had he married a more amiable woman he might have been made still more respectable than he was",
    "cards-005": "eight of spades four of clubs seven of hearts",
}


@pytest.fixture(scope="session")
def model_pool() -> FairPool:
    return FairPool(2)


@pytest.fixture(scope="session")
def recognizer(model_pool: FairPool) -> WhisperRecognizer:
    return WhisperRecognizer(model_pool, whisper_tiny())


@pytest.fixture(scope="session")
def synthesizer(model_pool: FairPool) -> HibariSynthesizer:
    return HibariSynthesizer(model_pool)


@pytest.fixture(scope="session")
def detector() -> SileroDetector:
    return SileroDetector()


@pytest.fixture(scope="session")
def say(synthesizer: HibariSynthesizer) -> Callable[[str], np.ndarray]:
    """A sentence in the embedded voice, 16 kHz, float32."""
    made: dict[str, np.ndarray] = {}

    def speak(text: str) -> np.ndarray:
        if text not in made:
            pcm = np.frombuffer(synthesizer.speak(text).pcm, "<i2").astype(np.float32) / 32768
            resampler = Resampler(synthesizer.rate_hz, 16_000)
            made[text] = np.concatenate([resampler.push(pcm), resampler.flush()])
        return made[text]

    return speak


@pytest.fixture(scope="session")
def utterances(shared: Path | None, say: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """Sentences by what is said in them, 16 kHz: humans where the recordings are there, the embedded voice otherwise."""
    spoken: dict[str, np.ndarray] = {}
    for name, text in HUMAN.items():
        path = shared / "media" / "speech" / f"{name}.wav" if shared else None
        if path is not None and path.is_file():
            with wave.open(str(path)) as file:
                spoken[text] = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768
        else:
            spoken[text] = say(text)
    return spoken
