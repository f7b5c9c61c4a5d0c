"""Made-up sound for what was lost, for codecs that have no way of their own.

Owns: `Concealer`. Driven by the audio pipeline of a peer connection. It repeats the last pitch period of the voice and fades
out, which the ear, and a recognizer, take for the same sound going on; a hole is a click and two word ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from realtime.media.resample import check_rate

__all__ = ["Concealer"]

_HISTORY_SECONDS = 0.040
_LONGEST_PERIOD_SECONDS = 0.0125
_SHORTEST_PERIOD_SECONDS = 0.0025
_FADE_SECONDS = 0.060
"""After so much made-up sound there is silence."""


class Concealer:
    """Remembers the last 40 ms of a stream of mono PCM16, and goes on from them.

    Attributes:
        rate_hz: Its samples a second.
    """

    __slots__ = ("_faded", "_history", "_period", "rate_hz")

    def __init__(self, rate_hz: int) -> None:
        """Begin with silence.

        Raises:
            ArgumentError: The rate is out of range.
        """
        self.rate_hz = check_rate("rate_hz", rate_hz)
        self._history = b""
        self._period: NDArray[np.float32] | None = None
        self._faded = 0

    def heard(self, pcm: bytes) -> None:
        """Real sound came."""
        # hot path: every packet
        wanted = int(self.rate_hz * _HISTORY_SECONDS) * 2
        self._history = pcm[-wanted:] if len(pcm) >= wanted else (self._history + pcm)[-wanted:]
        self._period = None
        self._faded = 0

    def conceal(self, samples: int) -> bytes:
        """So many samples that go on from what was heard, fading to silence within 60 ms of loss."""
        if self._period is None:
            self._period = self._find_period()
        fade = int(self.rate_hz * _FADE_SECONDS)
        places = np.arange(self._faded, self._faded + samples)
        gain = np.maximum(0.0, 1.0 - places / fade).astype(np.float32)
        self._faded += samples
        if not len(self._period):
            return bytes(samples * 2)
        made = self._period[places % len(self._period)] * gain
        pcm: bytes = np.rint(made).astype("<i2").tobytes()
        return pcm

    def _find_period(self) -> NDArray[np.float32]:
        """The last pitch period, by the lag at which the end of the history is most like what went before it."""
        past = np.frombuffer(self._history, "<i2").astype(np.float32)
        shortest = int(self.rate_hz * _SHORTEST_PERIOD_SECONDS)
        longest = min(int(self.rate_hz * _LONGEST_PERIOD_SECONDS), len(past) // 2)
        if longest <= shortest:
            return past
        window = past[-longest:]
        before = np.lib.stride_tricks.sliding_window_view(past, longest)
        lags = np.arange(shortest, longest + 1)
        candidates = before[len(past) - longest - lags]
        energy = np.sqrt((candidates * candidates).sum(axis=1)) + 1.0
        lag = int(lags[int(np.argmax(candidates @ window / energy))])
        return past[-lag:]
