"""What the embedded recognizer hears in a file."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import soxr

from realtime.local.recognizer import WhisperRecognizer
from realtime.local.weights import whisper_tiny
from realtime.local.workers import FairPool
from realtime.pcm import read_wav


@cache
def _recognizer() -> WhisperRecognizer:
    return WhisperRecognizer(FairPool(1), whisper_tiny(), threads=2)


def transcribe(path: Path) -> str:
    """What the recognizer that hears the user hears in a WAV file."""
    pcm, rate_hz, channels = read_wav(path.read_bytes())
    samples = np.frombuffer(pcm, "<i2").reshape(-1, channels).mean(axis=1).astype(np.float32) / 32768
    recognizer = _recognizer()
    heard = soxr.resample(samples, rate_hz, recognizer.rate_hz)
    return recognizer.transcribe(np.ascontiguousarray(heard, dtype=np.float32)).text
