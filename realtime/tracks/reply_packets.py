"""What of the reply one peer is sent: ready Opus packets, and nothing while there is nothing to say.

Owns: `ReplyPackets`, the one encoder of a reply track, and `SlotReader`, the place of one peer in it. Driven by the track that
aiortc reads (`sending`) or by the timer that sends without it (`reply_feed`). It waits for nothing and encodes nothing twice.
"""

from __future__ import annotations

from realtime.media.opus_encoder import OPUS_INPUT_RATES, OpusEncoder
from realtime.tracks.reply_frames import FRAME_RATE_HZ, FRAME_SAMPLES, FrameMaker
from realtime.tracks.reply_pace import ReplyPace, Slot

__all__ = ["REMINDER_SECONDS", "ReplyPackets", "SlotReader"]

_QUIET_PACKETS = 10
"""So much silence is sent before nothing is: it pushes the last words out of any receiver's buffer, where a decoder would
make something up in their place."""
_MOST_QUIET_PACKETS = 25
REMINDER_SECONDS = 0.4
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
        packet = slot.packet
        if packet is None:
            encoder, piece = self._made or self._encoder, slot.piece
            if self._maker is None:
                packet = encoder.encode(b"" if piece is None else piece.pcm)
            else:
                pcm = self._maker.make(slot)
                packet = encoder.encode(pcm if piece is not None or any(pcm) else b"")
            slot.packet = packet
        return packet


class SlotReader:
    """Where one peer is in the reply: which slot is next, whether it is to be sent at all, and its time stamp.

    Time stamps follow the clock: they pass over what was not sent, so that nothing is heard later than it was played.

    Attributes:
        next: The slot that is wanted next.
        quiet: How many silent slots in a row were sent.
        begins_speech: The slot that was stamped last is the first with sound after a pause in which hardly anything was sent
            (the marker of RFC 3551).
    """

    __slots__ = ("_first_due", "_pace", "_packets", "_pts", "_was_quiet", "begins_speech", "next", "quiet")

    def __init__(self, pace: ReplyPace, packets: ReplyPackets) -> None:
        """Prepare for one peer."""
        self.next = 0
        self.begins_speech = False
        self._pace = pace
        self._packets = packets
        self.quiet = 0
        self._was_quiet = True
        self._first_due: float | None = None
        self._pts = -FRAME_SAMPLES

    def begin(self) -> None:
        """Go on with what is played now: what was played before is over."""
        self.next = self._pace.next_index

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to say, so that hardly anything is to be sent."""
        quiet = self.quiet
        return quiet >= _QUIET_PACKETS and (self._packets.is_quiet or quiet >= _MOST_QUIET_PACKETS)

    def resume(self) -> None:
        """Go on after a wait for audio."""
        self._was_quiet = True
        self.next = self._pace.resume(self.next)

    def stamp(self, slot: Slot) -> int:
        """A slot is sent: its time stamp."""
        # hot path: every 20 ms
        if slot.index >= self.next:
            self.next = slot.index + 1
        if slot.piece is None:
            self.quiet += 1
            self.begins_speech = False
        else:
            self.quiet = 0
            self.begins_speech = self._was_quiet
            self._was_quiet = False
        if self._first_due is None:
            self._first_due = slot.due
        self._pts = max(self._pts + FRAME_SAMPLES, round((slot.due - self._first_due) * FRAME_RATE_HZ))
        return self._pts
