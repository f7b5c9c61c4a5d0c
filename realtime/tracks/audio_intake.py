"""One remote voice: from its RTP packets to PCM16 at the model's rate, at once.

Owns: `AudioIntake`. Driven by the receiver, packet by packet, and by two timers. An agent has no loudspeaker to keep fed, so
nothing is buffered but what must be put in order: a packet in order is decoded and delivered when it comes, what follows a
gap waits for two packets or 60 ms. What was lost is made up, where the sender was silent there is silence, both as long as
the time stamps say (behaviour.md A3): positions are sample counts and time stamps, never arrival times. Only how much silence
may be made at all goes by the clock: a sender whose time stamps outrun it is not followed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from realtime.media.audio import PcmConverter
from realtime.media.voice import VoiceDecoder, make_voice_decoder
from realtime.tracks.packet_order import PacketOrder

__all__ = ["AudioIntake", "AudioIntakeStatistics", "Timers"]

logger = logging.getLogger("realtime.tracks.audio_intake")

GAP_PACKETS = 2
"""A gap waits for so many later packets …"""
GAP_SECONDS = 0.060
"""… and for so long."""
MAX_GAP_SECONDS = 5.0
"""A longer jump of the time stamps is a pause of the sender; it does not become silence, which would all come at once."""
_SLACK_SECONDS = 1.0
"""No more silence is made than time has passed since the last packet, and this much: no sender can make hours of it in minutes."""
_CONVERTED_SECONDS = 0.1
"""So much silence goes through a change of rate, so that nothing else is left in it; the rest is silence at either rate."""
_CONCEAL_SECONDS = 0.120
_SILENCE_SECONDS = 0.060
"""While the sender says that it is silent, silence is delivered in pieces of this much, and as much behind."""
_SILENCE_LIMIT_SECONDS = 2.0
"""A sender in silence still sends now and then; one that does not is gone."""
_DTX_BYTES = 2
"""An Opus packet without content: from here on the speaker is silent until the next packet."""


class Timers(Protocol):
    """What tells the time and calls back later: an event loop."""

    def time(self) -> float:
        """Monotonic seconds."""
        ...

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Any:
        """Call once, in `delay` seconds; the result has `cancel()`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioIntakeStatistics:
    """What came of a voice."""

    packets: int = 0
    """Packets that were decoded."""
    late: int = 0
    """Packets that came again, or after their place had been filled."""
    faults: int = 0
    """Packets that could not be decoded; their place was filled."""
    concealed_ms: int = 0
    """Sound that was made up for lost packets."""
    silence_ms: int = 0
    """Silence that the time stamps showed."""
    skipped_ms: int = 0
    """Time that the time stamps passed over and that became no silence: a long pause, or more than has passed."""


class _Voice(NamedTuple):
    """One packet."""

    number: int
    timestamp: int
    payload: bytes


class AudioIntake:
    """Decodes one stream as it comes."""

    def __init__(self, rate_hz: int, deliver: Callable[[bytes], None], timers: Timers) -> None:
        """Prepare.

        Args:
            rate_hz: Samples a second of what is delivered.
            deliver: Takes PCM16 mono, whole samples, in order.
            timers: The running loop.
        """
        self._rate_hz = rate_hz
        self.deliver = deliver
        """Takes the sound; it may be changed."""
        self.delivered = 0
        """Samples that it was given, those that it is being given included."""
        self._timers = timers
        self._order: PacketOrder[_Voice] = PacketOrder(GAP_PACKETS)
        self._codec = ""
        self._clock_hz = 0
        self._source: int | None = None
        self._decoder: VoiceDecoder | None = None
        self._decode: Callable[[bytes], bytes]
        self._converter: PcmConverter | None = None
        self._expected: int | None = None
        """The time stamp at which the next sound is due."""
        self._number = 0
        self._duration = 0
        """Of the last packet, in ticks of its clock …"""
        self._sound_bytes = 0
        """… and of its sound."""
        self._is_silent = False
        self._ahead = 0
        """Ticks of silence that were delivered and then not there; later silence is shorter by them."""
        self._allowance: float = _SLACK_SECONDS
        """Silence that might be made when it was last counted, in seconds."""
        self._counted_at: float = timers.time()
        self._played_at = self._counted_at
        """When the last packet was played."""
        self._gap_timer: Any = None
        self._silence_timer: Any = None
        self._silence_left = 0
        self._packets = 0
        self._faults = 0
        self._concealed_ms = 0.0
        self._silence_ms = 0.0
        self._skipped_ms = 0.0

    def receive(  # noqa: PLR0917  (hot path: names cost)
        self, codec: str, clock_hz: int, source: int, number: int, timestamp: int, payload: bytes, arrived_at: float, /
    ) -> None:
        """Take a packet.

        Args:
            codec: Its codec, in small letters (`realtime.media.voice.VOICE_CODECS`).
            clock_hz: Ticks a second of its time stamp.
            source: Which stream it is of (SSRC).
            number: Its sequence number.
            timestamp: When its sound begins, in ticks.
            payload: Its content; an empty one only fills its number.
            arrived_at: When it came, in seconds of the timers' clock.
        """
        # hot path: every packet
        order = self._order
        if (
            number == order.due
            and timestamp == self._expected
            and source == self._source
            and codec == self._codec
            and not self._is_silent
            and len(payload) > _DTX_BYTES
        ):  # sound that follows on sound: what `_play` comes to then
            order.due = (number + 1) & 0xFFFF
            self._number = number
            self._played_at = arrived_at
            self._packets += 1
            decode = self._decode
            try:
                sound = decode(payload)
            except Exception as error:
                sound = self._stand_in(error)
            if len(sound) != self._sound_bytes:
                self._measure(sound)
            self._expected = (timestamp + self._duration) & 0xFFFFFFFF
            if self._converter is not None:
                sound = self._converter.convert(sound)
            if sound:
                self.delivered += len(sound) // 2
                deliver = self.deliver
                deliver(sound)
        else:
            self._put_in_order(codec, clock_hz, source, _Voice(number, timestamp, payload))

    def _put_in_order(self, codec: str, clock_hz: int, source: int, packet: _Voice) -> None:
        """Play a packet and what waited for it, if its turn has come; else let it wait."""
        if source != self._source or codec != self._codec:
            self._begin(codec, clock_hz, source)
        for due in self._order.push(packet.number, packet):
            self._play(*due)
        if self._order.waits:
            if self._gap_timer is None:
                self._gap_timer = self._timers.call_later(GAP_SECONDS, self._give_up)
        elif self._gap_timer is not None:
            self._gap_timer.cancel()
            self._gap_timer = None

    def close(self) -> None:
        """The stream ends: deliver what waits."""
        self._end_stream()
        self._source = None

    def statistics(self) -> AudioIntakeStatistics:
        """What came so far."""
        return AudioIntakeStatistics(
            packets=self._packets,
            late=self._order.late + self._order.duplicates,
            faults=self._faults,
            concealed_ms=round(self._concealed_ms),
            silence_ms=round(self._silence_ms),
            skipped_ms=round(self._skipped_ms),
        )

    # -- streams --------------------------------------------------------------------------------------------------------

    def _begin(self, codec: str, clock_hz: int, source: int) -> None:
        """Another sender, or another codec: what is held of the one before is delivered."""
        self._end_stream()
        self._decoder = make_voice_decoder(codec, self._rate_hz)
        self._decode = self._decoder.decode
        self._source, self._codec, self._clock_hz = source, codec, clock_hz
        rate = self._decoder.rate_hz
        self._converter = None if rate == self._rate_hz else PcmConverter(rate, self._rate_hz)
        self._duration = clock_hz // 50
        self._sound_bytes = self._samples(self._duration) * 2

    def _end_stream(self) -> None:
        self._stop_silence()
        if self._gap_timer is not None:
            self._gap_timer.cancel()
            self._gap_timer = None
        for packet in self._order.restart():
            self._play(*packet)
        if self._converter is not None:
            self._give(self._converter.flush())
        self._expected = None
        self._is_silent = False
        self._ahead = 0

    def _give_up(self) -> None:
        self._gap_timer = None
        for packet in self._order.give_up():
            self._play(*packet)
        if self._order.waits:
            self._gap_timer = self._timers.call_later(GAP_SECONDS, self._give_up)

    # -- sound ----------------------------------------------------------------------------------------------------------

    def _play(self, number: int, timestamp: int, payload: bytes) -> None:
        """Deliver a packet whose turn has come, after what is missing before it."""
        if not payload:
            self._number = number
            return
        self._stop_silence()
        self._let_time_pass()
        if self._expected is not None and timestamp != self._expected:
            lost = (number - self._number - 1) & 0xFFFF
            self._bridge(_signed(timestamp - self._expected), lost, payload)
        self._number = number
        self._packets += 1
        try:
            sound = self._decode(payload)
        except Exception as error:
            sound = self._stand_in(error)
        if len(sound) != self._sound_bytes:
            self._measure(sound)
        self._expected = (timestamp + self._duration) & 0xFFFFFFFF
        self._convert(sound)
        self._is_silent = self._codec == "opus" and len(payload) <= _DTX_BYTES
        if self._is_silent:
            self._silence_left = round(_SILENCE_LIMIT_SECONDS / _SILENCE_SECONDS)
            self._silence_timer = self._timers.call_later(2 * _SILENCE_SECONDS, self._add_silence)

    def _stand_in(self, error: Exception) -> bytes:
        """What is heard in the place of a packet that could not be decoded."""
        self._faults += 1
        logger.debug("a %s packet could not be decoded: %s", self._codec, error)
        return self._conceal(self._duration, None)

    def _measure(self, sound: bytes) -> None:
        """Packets are as long as this one from now on."""
        assert self._decoder is not None
        self._sound_bytes = len(sound)
        self._duration = len(sound) // 2 * self._clock_hz // self._decoder.rate_hz

    def _bridge(self, gap: int, lost: int, following: bytes) -> None:
        """Deliver what stands between the last packet and this one, which is `gap` ticks after where it was due."""
        if gap < 0:
            if self._is_silent and -gap <= self._clock_hz * _SILENCE_LIMIT_SECONDS:
                self._ahead += -gap
            return
        if gap > self._clock_hz * MAX_GAP_SECONDS:
            self._skipped_ms += 1000 * gap / self._clock_hz
            return
        if lost and not self._is_silent:
            ticks = min(gap, lost * self._duration, round(self._clock_hz * _CONCEAL_SECONDS))
            self._convert(self._conceal(ticks, following if ticks == gap else None))
            gap -= ticks
        if gap:
            self._give_silence(gap)

    def _conceal(self, ticks: int, following: bytes | None) -> bytes:
        assert self._decoder is not None
        samples = self._samples(ticks)
        try:
            made = self._decoder.conceal(samples, following)
        except Exception as error:
            logger.debug("concealing a lost %s packet failed: %s", self._codec, error)
            made = b""
        self._concealed_ms += 1000 * ticks / self._clock_hz
        return made.ljust(samples * 2, b"\0")

    def _let_time_pass(self) -> None:
        """Allow as much more silence as time has passed. What was not used of it by the last packet is not kept for long."""
        now = self._timers.time()
        self._allowance = min(self._allowance + now - self._counted_at, _SLACK_SECONDS + now - self._played_at)
        self._counted_at = self._played_at = now

    def _give_silence(self, ticks: int) -> None:
        """Deliver silence, less what was delivered ahead, and not more than is allowed."""
        assert self._decoder is not None
        paid = min(ticks, self._ahead)
        self._ahead -= paid
        wanted = ticks - paid
        ticks = min(wanted, round(self._allowance * self._clock_hz))
        self._allowance -= ticks / self._clock_hz
        self._silence_ms += 1000 * ticks / self._clock_hz
        self._skipped_ms += 1000 * (wanted - ticks) / self._clock_hz
        samples = self._samples(ticks)
        rate_hz = self._decoder.rate_hz
        seconds = max(0, samples - round(rate_hz * _CONVERTED_SECONDS)) // rate_hz
        self._convert(bytes((samples - seconds * rate_hz) * 2))
        self._give(bytes(seconds * self._rate_hz * 2))

    def _samples(self, ticks: int) -> int:
        assert self._decoder is not None
        return (ticks * self._decoder.rate_hz + self._clock_hz // 2) // self._clock_hz

    def _add_silence(self) -> None:
        """The speaker is silent and says nothing of it: the silence goes on as time does."""
        self._silence_timer = None
        if self._expected is None or not self._silence_left:
            return
        self._silence_left -= 1
        ticks = round(self._clock_hz * _SILENCE_SECONDS)
        self._expected = (self._expected + ticks) & 0xFFFFFFFF
        self._let_time_pass()
        self._give_silence(ticks)
        self._silence_timer = self._timers.call_later(_SILENCE_SECONDS, self._add_silence)

    def _stop_silence(self) -> None:
        if self._silence_timer is not None:
            self._silence_timer.cancel()
            self._silence_timer = None

    def _convert(self, sound: bytes) -> None:
        self._give(sound if self._converter is None else self._converter.convert(sound))

    def _give(self, pcm: bytes) -> None:
        if pcm:
            self.delivered += len(pcm) // 2
            self.deliver(pcm)


def _signed(ticks: int) -> int:
    """A difference of 32-bit time stamps, nearest to 0."""
    ticks &= 0xFFFFFFFF
    return ticks - 0x100000000 if ticks >= 0x80000000 else ticks
