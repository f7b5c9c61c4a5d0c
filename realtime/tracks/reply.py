"""The spoken reply as an aiortc track: what the model says, at the pace at which it is heard.

Owns: `ReplyTrack`, which joins the queue of reply audio (`reply_queue`), its pace (`reply_pace`) and those who listen.
Driven by whoever calls `recv()` (an RTCRtpSender, a recorder): one call, one frame of 20 ms; and by the tracks that `open_sender`
gives, one for each peer connection. Never runs ahead of its clock, never sends in a burst, never looks at when audio was
pushed (behaviour.md P1, P3, P4, A3).
"""

from __future__ import annotations

from collections.abc import Callable

from aiortc import MediaStreamError, MediaStreamTrack
from av import AudioFrame

from realtime.media.resample import check_rate
from realtime.pcm import samples_to_ms
from realtime.tracks.reply_frames import FRAME_SAMPLES, FrameMaker, make_frame
from realtime.tracks.reply_pace import LoopClock, PlayoutClock, PlayoutTimer, ReplyPace
from realtime.tracks.reply_packets import ReplyPackets
from realtime.tracks.reply_queue import ReplyQueue
from realtime.tracks.sending import SendingTrack

__all__ = ["PlayoutClock", "ReplyTrack"]

JOIN_SECONDS = 120.0
"""So long the reply is kept for a peer connection whose offer and answer are not complete, or that does not come about, when no
other is left. One that begins later hears what is said then, if the reply still goes on."""


class ReplyTrack(MediaStreamTrack):
    """An audio track of 20 ms frames at 48 kHz, mono 16 bit, that plays replies one after another.

    The clock starts at the first `recv()`. pts rises by exactly 960 a frame. When there is nothing to play, or the audio
    of a reply that goes on is late, a frame is silence; after a stall of the caller the clock starts anew, so that missed
    frames are not sent in a burst. Audio waits at the model's rate and is brought to 48 kHz frame by frame, or encoded as it is for
    peers that take Opus.

    The queue is bounded: what would make it longer than `max_queued_seconds` is left out (`drop_newest`) and counted. A reply that was stopped
    takes no more audio until it is resumed, so late deltas are dropped (P3).

    Attributes:
        rate_hz: Samples a second of the audio that is pushed.
    """

    kind = "audio"

    def __init__(
        self,
        rate_hz: int,
        on_played: Callable[[str, int, bool], int | None] | None = None,
        clock: PlayoutClock | None = None,
        *,
        max_queued_seconds: float = 900.0,
    ) -> None:
        """Make a silent track.

        Args:
            rate_hz: Samples a second of the PCM16 mono that will be pushed (`ModelCapabilities.output_rate_hz`).
            on_played: Called as ``on_played(reply_id, played_ms, finished)`` within each `recv()` that took audio of a
                reply, and once with ``finished=True`` when an ended reply has been played out. If it returns a position in
                milliseconds, it is not called again before that one or the reply's end, unless by `tell_played`.
            clock: What the frames keep time by; None: the running loop's clock.
            max_queued_seconds: The longest that may wait to be heard, all replies together.

        Raises:
            ArgumentError: A number is out of range.
        """
        super().__init__()
        self.rate_hz = check_rate("rate_hz", rate_hz)
        self._clock: PlayoutClock = clock or LoopClock()
        self._maker = FrameMaker(rate_hz)
        self._queue = ReplyQueue(rate_hz, on_played, max_queued_seconds, look_ahead=self._maker.look_ahead)
        self._pace = ReplyPace(self._queue, self._clock)
        self._packets = ReplyPackets(rate_hz)
        self._senders: dict[SendingTrack, PlayoutTimer | None] = {}
        """With what ends the wait for those that have not begun."""
        self._is_left = False
        """Whoever heard it last was stopped: it ends if those that are waited for do not begin."""
        self._next = 0
        self._pts = 0
        self._taken_here = False

    # -- what the session does -------------------------------------------------------------------------------------------

    @property
    def is_read(self) -> bool:
        """Whether anybody has begun to take it: from then on the track's reading decides what has been heard (P0)."""
        return self._pace.is_read

    @property
    def dropped_ms(self) -> int:
        """How much was left out because the queue was full."""
        return self._queue.dropped_ms

    @property
    def late_bytes(self) -> int:
        """How many bytes came for replies that had been stopped or ended, or after the track itself was stopped."""
        return self._queue.late_bytes

    def push(self, reply_id: str, pcm: bytes | bytearray | memoryview) -> int:
        """Queue audio of a reply; a new id begins a reply behind those that wait, and ends them.

        Args:
            reply_id: Whose audio.
            pcm: PCM16 mono at `rate_hz`, any number of bytes (an odd one is carried to the next push of the same reply).

        Returns:
            How many samples were queued: fewer than given if the queue is full, 0 for a reply that was stopped or ended.
        """
        queued = self._queue.push(reply_id, pcm)
        self._pace.wake_if_ready()
        return queued

    def end(self, reply_id: str) -> None:
        """No more audio of this reply will come. Its end is reported when what is queued has been taken."""
        self._queue.end(reply_id)
        self._pace.wake_if_ready()

    def stop_reply(self, reply_id: str | None = None) -> int:
        """Throw away what is queued of a reply (None: of all); the very next `recv()` has none of it (P3).

        Returns:
            The reply's `played_ms`, taken before the queue is cleared (P1); for all, that of the one being heard.
        """
        played, stopped = self._queue.stop_reply(reply_id)
        self._pace.silence(stopped)
        return played

    def resume(self, reply_id: str, pcm: bytes | bytearray | memoryview) -> int:
        """Go on with a reply that was stopped, from where it was heard; more may be pushed and it must be ended.

        Args:
            reply_id: Which.
            pcm: What had not been heard, as for `push`.

        Returns:
            How many samples were queued.
        """
        queued = self._queue.resume(reply_id, pcm)
        self._pace.wake_if_ready()
        return queued

    def played_ms(self, reply_id: str) -> int:
        """How much of a reply has been taken by `recv()`: pushed less what is still queued, in its own time (P1).

        The last 64 replies are remembered; others are 0.
        """
        return samples_to_ms(self.played_samples(reply_id), self.rate_hz)

    def played_samples(self, reply_id: str) -> int:
        """`played_ms`, in samples at `rate_hz`."""
        return self._queue.played_samples(reply_id)

    def tell_played(self) -> None:
        """Call `on_played` for what was taken since it was called last, if anything was."""
        self._queue.tell()

    def queued_ms(self) -> int:
        """How much waits to be heard, all replies together."""
        return samples_to_ms(self._queue.waiting, self.rate_hz)

    # -- what the listeners do -------------------------------------------------------------------------------------------

    async def recv(self) -> AudioFrame:
        """The next 20 ms, when they are due.

        Raises:
            MediaStreamError: The track was stopped.
        """
        self._check_live()
        if not self._taken_here:  # whoever comes later hears what is played then
            self._taken_here, self._next = True, self._pace.next_index
        index = self._pace.catch_up(self._next)
        self._next = index + 1  # before the wait: a second caller meanwhile gets the next frame, not the same moment
        slot = await self._pace.slot(index)
        self._next = max(self._next, slot.index + 1)
        self._check_live()
        frame = make_frame(self._maker.make(slot), self._pts)
        self._pts += FRAME_SAMPLES
        return frame

    def open_sender(self, takes_opus: Callable[[], bool]) -> SendingTrack:
        """A track to give to a peer connection in place of this one: the same audio at the same time, for less.

        Each peer connection gets one of its own; all hear the whole reply. This track ends when the last of them is stopped, unless
        that was released or somebody takes frames here, as a track that a peer connection was given ends with it. One that has
        not begun is waited for, for `JOIN_SECONDS` or until `let_go`.

        Args:
            takes_opus: Whether the codec that was negotiated is Opus; asked at the first packet.
        """
        sender = SendingTrack(
            self._pace,
            self._packets,
            self._clock,
            rate_hz=self.rate_hz,
            takes_opus=takes_opus,
            reply=self,
            on_begin=self._on_sender_begun,
            on_stop=self._on_sender_stopped,
        )
        self._senders[sender] = self._clock.call_at(self._clock.now() + JOIN_SECONDS, lambda: self.let_go(sender))
        return sender

    def let_go(self, sender: SendingTrack) -> None:
        """Wait no longer for one whose peer connection has not begun to send it. It may begin all the same."""
        if not sender.has_begun and self._forget(sender):
            self._end_if_left()

    def release_sender(self, sender: SendingTrack) -> None:
        """Send no more through it. This track goes on, for the next one."""
        sender.release()
        self._forget(sender)
        self._is_left = False

    def stop(self) -> None:
        """End the track and let go of what is queued."""
        super().stop()
        self._queue.close()
        for sender in list(self._senders):
            self._forget(sender)
            sender.stop()

    def _on_sender_begun(self, sender: SendingTrack) -> None:
        if self.readyState != "live":
            sender.stop()
            return
        self._forget(sender)
        self._senders[sender] = None
        self._is_left = False

    def _on_sender_stopped(self, sender: SendingTrack) -> None:
        if self._forget(sender):
            self._is_left = True
            self._end_if_left()

    def _forget(self, sender: SendingTrack) -> bool:
        """A sender is none of those that keep this track; whether it was one."""
        if sender not in self._senders:
            return False
        wait = self._senders.pop(sender)
        if wait is not None:
            wait.cancel()
        return True

    def _end_if_left(self) -> None:
        if self._is_left and not self._senders and not self._taken_here:
            self.stop()

    def _check_live(self) -> None:
        if self.readyState != "live":
            raise MediaStreamError
