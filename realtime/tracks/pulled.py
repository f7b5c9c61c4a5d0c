"""Sound that somebody else receives, as an aiortc track.

Owns: `PulledAudioTrack`. Driven by whoever calls `recv()`, which asks for the next sound and waits for it: nothing is read
ahead, so nothing is buffered here. It knows nothing of where the sound comes from.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from fractions import Fraction

from aiortc import MediaStreamError, MediaStreamTrack
from av import AudioFrame

__all__ = ["PulledAudioTrack"]


class PulledAudioTrack(MediaStreamTrack):
    """An audio track, mono 16 bit, of sound that is pulled piece by piece.

    Attributes:
        rate_hz: Samples a second.
    """

    kind = "audio"

    def __init__(self, rate_hz: int, pull: Callable[[], Awaitable[tuple[bytes, int] | None]]) -> None:
        """Make a track; nothing is pulled before the first `recv()`.

        Args:
            rate_hz: Samples a second of what is pulled.
            pull: Gives the next sound, PCM16 mono of whole samples and at least one, and the number of its first sample;
                None: there is no more. Called by one `recv()` at a time.
        """
        super().__init__()
        self.rate_hz = rate_hz
        self._pull = pull
        self._time_base = Fraction(1, rate_hz)

    async def recv(self) -> AudioFrame:
        """The next sound, as soon as it is there.

        Raises:
            MediaStreamError: There is no more, or the track was stopped.
        """
        # hot path: 50 times a second per call
        pulled = await self._pull() if self.readyState == "live" else None
        if pulled is None or self.readyState != "live":
            self.stop()
            raise MediaStreamError
        pcm, position = pulled
        frame = AudioFrame(format="s16", layout="mono", samples=len(pcm) // 2)
        frame.planes[0].update(pcm.ljust(frame.planes[0].buffer_size, b"\0"))
        frame.sample_rate = self.rate_hz
        frame.time_base = self._time_base
        frame.pts = position
        return frame
