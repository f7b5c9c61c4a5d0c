"""The reply on its way to one peer, at the least cost: ready Opus packets, and nothing while there is nothing to say.

Owns: `ReplyPackets`, the one encoder of a reply track, and `SendingTrack`, what a peer connection is given instead of the
reply track. Driven by aiortc's RTCRtpSender, which sends a packet as it is. Internal to this room: whoever calls `recv()` of
the reply track itself always gets frames. It never plays faster than the pace says, and encodes nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from aiortc.mediastreams import MediaStreamError, MediaStreamTrack
from av import AudioFrame
from av.packet import Packet

from realtime.media.opus_encoder import OPUS_INPUT_RATES, OpusEncoder
from realtime.tracks.reply_frames import FRAME_RATE_HZ, FRAME_SAMPLES, FRAME_TIME_BASE, FrameMaker, make_frame
from realtime.tracks.reply_pace import PlayoutClock, ReplyPace, Slot

__all__ = ["ReplyPackets", "SendingTrack"]

_Packet: TypeAlias = "Packet[Any]"

_QUIET_PACKETS = 10
"""So much silence is sent before nothing is: it pushes the last words out of any receiver's buffer, where a decoder would
make something up in their place."""
_MOST_QUIET_PACKETS = 25
_REMINDER_SECONDS = 0.4
"""While there is nothing to say, a packet of silence comes so often, as with Opus's own DTX."""


class ReplyPackets:
    """Slots as Opus packets, each encoded once however many peers it goes to.

    A rate that Opus does not know is brought to 48 kHz first.
    """

    def __init__(self, rate_hz: int) -> None:
        """Say at which rate the pieces are; the encoder is made when the first packet is wanted."""
        self._maker = None if rate_hz in OPUS_INPUT_RATES else FrameMaker(rate_hz)
        self._rate_hz = rate_hz if self._maker is None else FRAME_RATE_HZ
        self._made: OpusEncoder | None = None

    @property
    def _encoder(self) -> OpusEncoder:
        if self._made is None:
            self._made = OpusEncoder(self._rate_hz)
        return self._made

    @property
    def is_quiet(self) -> bool:
        """Whether nothing but silence would follow."""
        return self._encoder.is_quiet

    def packet(self, slot: Slot) -> bytes:  # hot path: every 20 ms of speech
        """A slot's packet."""
        if slot.packet is None:
            if self._maker is not None:
                pcm = self._maker.make(slot)
                slot.packet = self._encoder.encode(pcm if slot.piece is not None or any(pcm) else b"")
            else:
                slot.packet = self._encoder.encode(b"" if slot.piece is None else slot.piece.pcm)
        return slot.packet


class SendingTrack(MediaStreamTrack):
    """What one peer is sent: `recv()` gives an `av.Packet` if Opus was negotiated, else a frame.

    Time stamps follow the clock: they pass over what was not sent, so that nothing is heard later than it was played. When
    aiortc stops it, which is when its peer connection closes, the reply track is told; `release` parts from it first.

    Attributes:
        reply: The reply track that it stands for.
    """

    kind = "audio"

    def __init__(
        self,
        pace: ReplyPace,
        packets: ReplyPackets,
        clock: PlayoutClock,
        *,
        rate_hz: int,
        takes_opus: Callable[[], bool],
        reply: MediaStreamTrack,
        on_stop: Callable[[SendingTrack], None],
    ) -> None:
        """Prepare for one peer.

        Args:
            pace: When each slot is due.
            packets: The encoder, shared by all peers.
            clock: What the pace goes by.
            rate_hz: Of the pieces, for frames.
            takes_opus: Whether the codec that was negotiated is Opus; asked once, at the first `recv()`.
            reply: The track that it stands for.
            on_stop: Told once when it was stopped and had not been released.
        """
        super().__init__()
        self.reply = reply
        self._pace = pace
        self._packets = packets
        self._clock = clock
        self._takes_opus = takes_opus
        self._on_stop = on_stop
        self._maker = FrameMaker(rate_hz)
        self._is_opus: bool | None = None
        self._next = 0
        self._quiet = 0
        """How many silent slots in a row were sent."""
        self._first_due: float | None = None
        self._pts = -FRAME_SAMPLES
        self._released = False

    def release(self) -> None:
        """Send no more of the reply; it goes on elsewhere."""
        self._released = True
        self._pace.wake()

    def stop(self) -> None:
        """End the track."""
        was_live = self.readyState == "live"
        super().stop()
        self._pace.wake()
        if was_live and not self._released:
            self._on_stop(self)

    async def recv(self) -> AudioFrame | _Packet:
        """What is to be sent next, when it is due.

        Raises:
            MediaStreamError: The track was stopped.
        """
        self._check_live()
        if self._is_opus is None:
            self._is_opus = self._takes_opus()
            self._next = self._pace.next_index  # what was played before is over
        if self._is_opus and self._is_idle():
            await self._pace.wait_for_audio(self._clock.now() + _REMINDER_SECONDS)
            self._next = self._pace.resume(self._next)
        slot = await self._next_slot()
        self._check_live()
        self._quiet = self._quiet + 1 if slot.piece is None else 0
        self._pts = max(self._pts + FRAME_SAMPLES, self._pts_of(slot))
        if not self._is_opus:
            return make_frame(self._maker.make(slot), self._pts)
        packet = Packet(self._packets.packet(slot))
        packet.pts, packet.time_base = self._pts, FRAME_TIME_BASE
        return packet

    def _is_idle(self) -> bool:
        enough = self._quiet >= _QUIET_PACKETS and self._packets.is_quiet
        return enough or self._quiet >= _MOST_QUIET_PACKETS

    async def _next_slot(self) -> Slot:
        if self._released:  # nothing is played for it any more
            await self._clock.sleep_until(self._clock.now() + _REMINDER_SECONDS)
            return Slot(self._next, self._clock.now(), None, 0)
        index = self._pace.catch_up(self._next)
        self._next = index + 1  # before the wait: a second caller meanwhile gets the next one
        slot = await self._pace.slot(index)
        self._next = max(self._next, slot.index + 1)
        return slot

    def _pts_of(self, slot: Slot) -> int:
        if self._first_due is None:
            self._first_due = slot.due
        return round((slot.due - self._first_due) * FRAME_RATE_HZ)

    def _check_live(self) -> None:
        if self.readyState != "live":
            raise MediaStreamError
