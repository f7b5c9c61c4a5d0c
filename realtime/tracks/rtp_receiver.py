"""What comes over RTP for one remote track, received by ourselves.

Owns: `TrackIntake` — codecs and retransmissions, when the sender is told something, and the end of the track — and the table of
tracks that are received so. Driven by aiortc's transport through `ReceiverPort`, packet by packet. It needs no thread and waits
for nothing; a track that nobody wants is counted, reported on and let go. What sound and pictures become is `audio_intake`'s and
`sampled_decode`'s; what the sender is told is `sender_feedback`'s.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import av

from realtime.errors import UserError
from realtime.media.voice import VOICE_CODECS
from realtime.tracks.aiortc_internals import ReceiverPort, take_over
from realtime.tracks.aiortc_names import RtcpByePacket, RtcpSrPacket, is_rtx
from realtime.tracks.audio_intake import AudioIntake, AudioIntakeStatistics
from realtime.tracks.encoded_video import VIDEO_CODECS
from realtime.tracks.picture_sink import EveryPicture, RunJob
from realtime.tracks.rtp_streams import RtpStream, RtpStreams
from realtime.tracks.sampled_decode import PictureSink, VideoIntake
from realtime.tracks.sender_feedback import SenderFeedback

__all__ = ["RunJob", "TrackIntake", "intake_of", "receive_directly"]

_TICK_SECONDS = 0.25
_OWN_RATE_HZ = 48_000
"""For whoever reads the track itself while the session does not listen."""
_KEPT_AS = "_realtime_intake"
"""On the track itself: a table of ours would hold the intake, the intake its connection, and so the track, for ever."""


def intake_of(track: Any) -> TrackIntake | None:
    """Who receives a track directly; None: aiortc does, or it is no remote track."""
    attributes: dict[str, Any] = getattr(track, "__dict__", {})
    found = attributes.get(_KEPT_AS)
    return found if isinstance(found, TrackIntake) else None


def receive_directly(peer: Any, track: Any, run: RunJob) -> TrackIntake | None:
    """Receive a remote track of a peer connection ourselves, from its first packet on.

    Args:
        peer: The RTCPeerConnection.
        track: The track; reception must not have begun.
        run: Runs decoding on a worker thread for whoever reads the track itself, for as long as the track lives.

    Returns:
        Its intake; None: aiortc receives it (it had begun, or is an aiortc that we do not know).
    """
    known = intake_of(track)
    if known is not None:
        return known
    made: list[TrackIntake] = []

    def make_intake() -> TrackIntake:
        made.append(TrackIntake(track.kind, run))
        return made[0]

    port = take_over(peer, track, make_intake)
    if port is None:
        return None
    made[0].open(port)
    track.__dict__[_KEPT_AS] = made[0]
    return made[0]


@dataclass(frozen=True, slots=True)
class _PayloadKind:
    """What a payload type stands for."""

    name: str
    """The codec's (`VOICE_CODECS`, `VIDEO_CODECS`); empty: none that can be decoded."""
    clock_hz: int
    carries: int = -1
    """It carries packets of this payload type again (RTX, RFC 4588); -1: it does not."""


_UNKNOWN_KIND = _PayloadKind("", 1)


class TrackIntake:
    """Receives one remote track.

    Attributes:
        kind: ``audio`` or ``video``.
        packets: RTP packets that came, retransmissions included.
    """

    def __init__(self, kind: str, run: RunJob) -> None:
        """Prepare; `open` comes next."""
        self.kind = kind
        self.packets = 0
        self._run = run
        self._port: ReceiverPort | None = None
        self._feedback: SenderFeedback | None = None
        self._kinds: dict[int, _PayloadKind] = {}
        self._rtx_sources: dict[int, int] = {}
        self._streams = RtpStreams()
        self._media_source: int | None = None
        self._last_source: int = -1
        self._last_type: int = -1
        """Of the last packet that was counted; -1: of none, or it tells nothing of the next one."""
        self._last_kind = _UNKNOWN_KIND
        self._last_stream: RtpStream
        self._frame_timestamp: int | None = None
        """Of the frame that `_goes_on` takes packets of, if the last one was of it."""
        self._goes_on: Callable[[int, int, bytes], bool]
        self._uncounted = 0
        """Packets of it, in a row, that are not counted yet …"""
        self._uncounted_to = 0
        """… and the number of the last."""
        self._frame_bytes = 0
        """Since the last estimate."""
        self._estimate_at = float("-inf")
        self._timers: list[asyncio.TimerHandle] = []
        self._has_ended = False
        self._is_read = False
        self._is_looked_at = False
        self._wants_all = False
        self._voice: AudioIntake | None = None
        self._voice_pts = 0
        """Samples that earlier intakes of sound delivered."""
        self._on_pcm: Callable[[bytes], None] | None = None
        self._rate_hz = _OWN_RATE_HZ
        self._video: VideoIntake | None = VideoIntake(self) if kind == "video" else None

    def open(self, port: ReceiverPort) -> None:
        """Our end of the transceiver."""
        self._port, self._feedback = port, SenderFeedback(port)

    # -- what is wanted of it ---------------------------------------------------------------------------------------------

    @property
    def is_wanted(self) -> bool:
        """Whether a session listens or looks."""
        return self._on_pcm is not None or self._is_looked_at

    @property
    def video(self) -> VideoIntake | None:
        """The pictures' counts; None for sound."""
        return self._video

    def voice_statistics(self) -> AudioIntakeStatistics:
        """The sound's counts."""
        return AudioIntakeStatistics() if self._voice is None else self._voice.statistics()

    def listen(self, rate_hz: int, on_pcm: Callable[[bytes], None]) -> None:
        """Deliver the track's sound from now on, as PCM16 mono of this rate.

        Raises:
            UserError: Somebody listens already.
        """
        self._check_free()
        self._close_voice()
        self._rate_hz, self._on_pcm = rate_hz, on_pcm
        self._open_voice()

    def look(self, sink: PictureSink, *, decodes_all: bool) -> None:
        """Show the track's pictures from now on.

        Raises:
            UserError: Somebody looks already.
        """
        assert self._video is not None
        self._check_free()
        self._is_looked_at, self._wants_all = True, decodes_all
        self._video.use(sink, decodes_all=decodes_all or self._is_read)
        self._start_ticking()

    def let_go(self) -> None:
        """The session wants no more of it; it is received on, and nothing is decoded."""
        self._close_voice()
        self._on_pcm = None
        self._is_looked_at = False
        if self._video is not None:
            self._video.use(None)
        if self._is_read and not self._has_ended:
            self.read_by_others()

    # -- what aiortc's transport calls (PacketHandler) --------------------------------------------------------------------

    def start(self, parameters: Any) -> None:
        """Reception begins, or goes on with other codecs."""
        self._look_anew()
        for codec in parameters.codecs:
            name = codec.name.lower()
            if name in VOICE_CODECS or name in VIDEO_CODECS:
                self._kinds[codec.payloadType] = _PayloadKind(name, codec.clockRate)
            else:  # a retransmission, or what is only counted
                carried = codec.parameters.get("apt") if is_rtx(codec) else None
                self._kinds[codec.payloadType] = _PayloadKind("", codec.clockRate, -1 if carried is None else carried)
        for encoding in parameters.encodings:
            if encoding.rtx:
                self._rtx_sources[encoding.rtx.ssrc] = encoding.ssrc
        if not self._timers:
            self._timers.append(asyncio.get_running_loop().call_later(_report_delay(), self._report))
            self._start_ticking()

    def receive_rtp(  # noqa: PLR0917  (hot path: objects and names cost)
        self,
        payload_type: int,
        source: int,
        number: int,
        timestamp: int,
        is_last: bool,
        payload: bytes,
        size: int,
        sent_at: int | None,
        arrived_at: float,
        /,
    ) -> None:
        """A packet came (`PacketHandler.receive_rtp`)."""
        # hot path: every packet
        is_same = source == self._last_source and payload_type == self._last_type
        if timestamp == self._frame_timestamp and is_same and not is_last and self._goes_on(number, timestamp, payload):
            self._uncounted += 1
            self._uncounted_to = number
            self._frame_bytes += size
            return
        if self._uncounted:
            self._count_run()
        if is_same:
            kind = self._last_kind
            self._last_stream.add(number, timestamp, arrived_at)
        else:
            kind = self._kinds.get(payload_type, _UNKNOWN_KIND)
            if kind is _UNKNOWN_KIND or self._has_ended:
                return
            self._last_stream = self._streams.add(source, number, timestamp, kind.clock_hz, arrived_at)
            self._last_source, self._last_type, self._last_kind = source, payload_type, kind
        self.packets += 1
        video = self._video
        if video is not None:
            self._frame_bytes += size
            if sent_at is not None and arrived_at >= self._estimate_at:
                self._estimate(source, sent_at, arrived_at)
        if not kind.name:
            self._receive_again(kind, source, timestamp, payload, is_last=is_last, arrived_at=arrived_at)
            return
        self._media_source = source
        if video is not None:
            video.receive(kind.name, source, number, timestamp, payload, is_last)
            self._frame_timestamp, self._goes_on = timestamp, video.continues
        elif self._voice is not None:
            self._voice.receive(kind.name, kind.clock_hz, source, number, timestamp, payload, arrived_at)

    def _count_run(self) -> None:
        """Packets in the middle of a frame are counted once something else is to be done."""
        self._last_stream.add_run(self._uncounted, self._uncounted_to)
        self.packets += self._uncounted
        self._uncounted = 0

    def _receive_again(
        self, kind: _PayloadKind, source: int, timestamp: int, payload: bytes, *, is_last: bool, arrived_at: float
    ) -> None:
        """Take the packet that a retransmission carries (RFC 4588)."""
        self._frame_timestamp = None
        original = self._kinds.get(kind.carries)
        known = self._rtx_sources.get(source, self._media_source)
        if original is None or known is None or len(payload) < 2:
            return  # padding that probes the path, or of no known stream
        self._media_source = known
        number, payload = int.from_bytes(payload[:2], "big"), payload[2:]
        if self._video is not None:
            self._video.receive(original.name, known, number, timestamp, payload, is_last, source != known)
        elif self._voice is not None:
            self._voice.receive(original.name, kind.clock_hz, known, number, timestamp, payload, arrived_at)

    def receive_rtcp(self, packet: Any) -> None:
        """A report from the sender, or its farewell."""
        if isinstance(packet, RtcpSrPacket):
            self._streams.note_report(packet)
        elif isinstance(packet, RtcpByePacket):
            self.end()

    def end(self) -> None:
        """Nothing more comes: what waits is delivered, and the track ends for everybody."""
        if self._has_ended:
            return
        self._has_ended = True
        self._look_anew()
        for timer in self._timers:
            timer.cancel()
        self._timers.clear()
        self._close_voice()
        if self._port is not None:
            self._port.end_track()

    def read_by_others(self) -> None:
        """Somebody reads the track itself: it is decoded as a whole, for them too."""
        self._is_read = True
        if self._video is not None:
            if not self._video.is_looked_at:
                self._video.use(EveryPicture(self._run))
            self._video.decode_all(self._queue_frame)
        elif self._voice is None:
            self._open_voice()
        else:
            self._voice.deliver = self._listener()

    def read_no_more(self) -> None:
        """Nobody reads the track itself any more: only what a session wants is decoded."""
        self._is_read = False
        if self._video is not None:
            self._video.decode_wanted(decodes_all=self._wants_all)
            if not self._is_looked_at:
                self._video.use(None)
        elif self._on_pcm is None:
            self._close_voice()
        elif self._voice is not None:
            self._voice.deliver = self._listener()

    def reports(self) -> list[Any]:
        """Statistics of each stream, as aiortc's own receiver gives them."""
        assert self._port is not None
        self._look_anew()
        return self._streams.statistics(self.kind, self._port.transport_id)

    def sources(self) -> list[Any]:
        """The streams of the last ten seconds."""
        self._look_anew()
        return self._streams.sources()

    # -- what the sender is told (Feedback) -------------------------------------------------------------------------------

    def request_key_frame(self) -> None:
        """PLI, for the stream that comes."""
        if self._feedback is not None and self._media_source is not None:
            self._feedback.request_key_frame(self._media_source)

    def report_missing(self, numbers: list[int]) -> None:
        """NACK, for packets of the stream that comes."""
        if self._feedback is not None and self._media_source is not None and numbers:
            self._feedback.report_missing(self._media_source, numbers)

    def _estimate(self, source: int, sent_at: int, arrived_at: float) -> None:
        size, self._frame_bytes = self._frame_bytes, 0
        if self._feedback is not None:
            self._estimate_at = self._feedback.estimate(source, sent_at, arrived_at, size)

    def _report(self) -> None:
        """Receiver reports, every half to one and a half seconds."""
        self._timers[0] = asyncio.get_running_loop().call_later(_report_delay(), self._report)
        self._look_anew()
        if self._feedback is not None:
            self._feedback.report(self._streams.receiver_reports())

    # -- inside -----------------------------------------------------------------------------------------------------------

    def _look_anew(self) -> None:
        """Count what came; the next packet is looked at without regard to the last one."""
        if self._uncounted:
            self._count_run()
        self._last_source = -1
        self._last_type = -1
        self._frame_timestamp = None

    def _check_free(self) -> None:
        if self.is_wanted:
            raise UserError("a session receives this track already; end that, or let it remove the track, first")

    def _start_ticking(self) -> None:
        if self.kind == "video" and len(self._timers) == 1:
            self._timers.append(asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick))

    def _tick(self) -> None:
        self._timers[1] = asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick)
        if self._video is not None:
            self._video.tick()

    def _open_voice(self) -> None:
        if self.kind == "audio" and not self._has_ended:
            self._voice = AudioIntake(self._rate_hz, self._listener(), asyncio.get_running_loop())

    def _listener(self) -> Callable[[bytes], None]:
        """Who takes the sound: whoever listens, straight, unless somebody reads the track itself as well."""
        return self._deliver if self._is_read or self._on_pcm is None else self._on_pcm

    def _close_voice(self) -> None:
        if self._voice is not None:
            self._voice.close()
            self._voice_pts += self._voice.delivered
            self._voice = None

    def _deliver(self, pcm: bytes) -> None:
        if self._on_pcm is not None:
            self._on_pcm(pcm)
        if self._is_read:
            frame = av.AudioFrame(format="s16", layout="mono", samples=len(pcm) // 2)
            frame.sample_rate = self._rate_hz
            frame.time_base = Fraction(1, self._rate_hz)
            assert self._voice is not None
            frame.pts = self._voice_pts + self._voice.delivered - frame.samples
            frame.planes[0].update(pcm.ljust(frame.planes[0].buffer_size, b"\0"))
            self._queue_frame(frame)

    def _queue_frame(self, frame: Any) -> None:
        if self._port is not None:
            self._port.queue_frame(frame)


def _report_delay() -> float:
    return 0.5 + random.random()  # noqa: S311  (spreads reports in time; no secret)
