"""Words compared: how many are wrong, and what the embedded recognizer hears in a file."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import soxr

from realtime.local.recognizer import WhisperRecognizer
from realtime.local.workers import FairPool
from realtime.pcm import read_wav


def words_of(text: str) -> list[str]:
    """The words of a text as they are spoken: no case, no punctuation."""
    return re.findall(r"[a-z0-9']+", text.lower().replace("’", "'"))


def wrong_words(said: str, heard: str) -> int:
    """How many words must be changed, left out or put in to make `heard` of `said`."""
    left, right = words_of(said), words_of(heard)
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(right, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (one != other))
    return row[-1]


@cache
def _recognizer() -> WhisperRecognizer:
    return WhisperRecognizer(FairPool(1), threads=2)


def transcribe(path: Path) -> str:
    """What the recognizer that hears the user hears in a WAV file."""
    pcm, rate_hz, channels = read_wav(path.read_bytes())
    samples = np.frombuffer(pcm, "<i2").reshape(-1, channels).mean(axis=1).astype(np.float32) / 32768
    recognizer = _recognizer()
    heard = soxr.resample(samples, rate_hz, recognizer.rate_hz)
    return recognizer.transcribe(np.ascontiguousarray(heard, dtype=np.float32)).text
