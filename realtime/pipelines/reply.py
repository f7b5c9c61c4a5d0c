"""The reply's way to its listeners, and the account of what they heard (behaviour.md P0).

Owns: the reply track, the `stream_audio()` readers, and who of them counts. Driven by the commands `PlayAudio`,
`EndReply`, `StopReply` and `ResumeReply`, by the track's and the readers' progress. It reports progress to the machine
and decides nothing about text.

Who counts as the listener, from one chunk to the next: the track, if it is being read (its first `recv()` begins that, two
seconds without one while there is something to take end it); else the oldest reader, for whom
a chunk counts when it comes back for the next; else nobody, and what was received counts as heard.
"""

from __future__ import annotations

import logging
import weakref
from collections import OrderedDict
from dataclasses import dataclass
from typing import Protocol, assert_never

from realtime import pcm
from realtime.core.commands import EndReply, PlayAudio, ResumeReply, StopReply
from realtime.pipelines.audio_stream import AudioStream, Chunk
from realtime.pipelines.clock import Clock, Timer
from realtime.pipelines.reply_listener import ReplyListener

__all__ = ["PlayedReport", "ReplyPlayer", "ReplySink"]

_REMEMBERED_REPLIES = 64
_STALL_SECONDS = 2.0
"""A track whose frames nobody takes for so long, though there is speech to take, has lost its listener."""
_FRAMES_MS = 40
"""So much may be left on a track that is being read: the beginning of a frame whose rest has not arrived."""

logger = logging.getLogger(__name__)


class PlayedReport(Protocol):
    """How progress is told: the reply, its position in milliseconds, whether it has been played out."""

    def __call__(self, reply_id: str, played_ms: int, *, finished: bool) -> int | None:
        """Report.

        Returns:
            The position from which on it is to be told again; what is before that, it asks for (`ReplyPlayer.catch_up`). None: of
            every piece.
        """
        ...


class ReplySink(Protocol):
    """What the player needs of a reply track."""

    @property
    def is_read(self) -> bool:
        """Whether somebody takes its frames."""
        ...

    @property
    def readyState(self) -> str:  # noqa: N802  (the W3C's name)
        """`live`, or `ended`: a peer connection that closes ends the tracks that it sends."""
        ...

    def push(self, reply_id: str, pcm: bytes, /) -> object:
        """Queue audio."""
        ...

    def resume(self, reply_id: str, pcm: bytes, /) -> object:
        """Go on with a reply that was stopped."""
        ...

    def end(self, reply_id: str) -> None:
        """No more of this reply comes."""
        ...

    def stop_reply(self, reply_id: str) -> object:
        """Throw away what is queued of it."""
        ...

    def tell_played(self) -> object:
        """Tell the player of what was taken and was not told."""
        ...

    def queued_ms(self) -> int:
        """How much waits to be taken."""
        ...

    def stop(self) -> None:
        """End the track."""
        ...


@dataclass(slots=True)
class _Reply:
    """One reply under way. Positions are samples of the reply."""

    reply_id: str
    received: int = 0
    """Samples received."""
    track_offset_ms: int = 0
    """Where in the reply the track's own count of it begins."""
    on_track: bool = False
    given_ms: int = 0
    """Where the track is in the reply, as it told last (`ReplyPlayer.catch_up`)."""
    heard_ms: int = 0
    """Where the listener is, as it was told."""
    ended: bool = False
    stopped: bool = False


class ReplyPlayer:
    """Plays replies to whoever listens, and reports what was heard."""

    def __init__(self, rate_hz: int, report: PlayedReport, clock: Clock) -> None:
        """Start without listeners.

        Args:
            rate_hz: The model's output rate.
            report: Told how far each reply has been heard.
            clock: For noticing that the track is no longer read.
        """
        self._clock = clock
        self.rate_hz = rate_hz
        """The model's output rate."""
        self._report = report
        self.listener = ReplyListener(self._hear, self.catch_up, clock)
        """For who measures at the loudspeaker what was heard."""
        self._track: ReplySink | None = None
        self._readers: list[weakref.ref[AudioStream]] = []
        self._replies: OrderedDict[str, _Reply] = OrderedDict()
        self._timer: Timer | None = None
        self._progress = 0
        """Rises when the track is found to have given something away."""
        self._track_lost = False
        self._closed = False

    # -- listeners ------------------------------------------------------------------------------------------------------

    def use_track(self, track: ReplySink) -> None:
        """Play to this track from now on; what another one had not played counts as heard, as far as it was received."""
        for reply in self._replies.values():
            reply.on_track = False
        self.catch_up()
        self._track = track
        self.check_listeners()

    @property
    def needs_track(self) -> bool:
        """Whether there is no track, or it has ended with the peer connection that it was for."""
        return self._track is None or self._track.readyState != "live"

    def open_reader(self) -> AudioStream:
        """A new reader of the reply audio that arrives from now on."""
        reader = AudioStream(self.rate_hz, on_read=self.on_read, on_closed=self.check_listeners)
        if self._closed:
            reader.close()
            return reader
        self._readers.append(weakref.ref(reader))
        return reader

    def waiting_bytes(self) -> int:
        """Reply audio that waits for readers."""
        return sum(reader.waiting_bytes for reader in self._open_readers())

    def _open_readers(self) -> list[AudioStream]:
        readers = [reader for ref in self._readers if (reader := ref()) is not None and not reader.closed]
        if len(readers) != len(self._readers):
            self._readers = [weakref.ref(reader) for reader in readers]
        return readers

    def _live_track(self) -> ReplySink | None:
        """The track, if it is being read."""
        track = self._track
        if track is None or self._track_lost or track.readyState != "live" or not track.is_read:
            return None
        return track

    def _watch(self) -> None:
        """While a reply is being heard, look now and then whether anybody still listens."""
        if self._timer is None:
            progress = self._progress
            self._timer = self._clock.call_at(self._clock.now() + _STALL_SECONDS, lambda: self._look(progress))

    def _look(self, progress_before: int) -> None:
        self._timer = None
        if self._closed or all(reply.stopped for reply in self._replies.values()):
            return
        self.catch_up()
        self.listener.look()
        track = self._live_track()
        stalled = self._progress == progress_before and not self.listener.is_away
        if track is not None and stalled and track.queued_ms() > _FRAMES_MS:
            logger.info("nobody has taken the reply track's frames for %g s", _STALL_SECONDS)
            self._track_lost = True
            for reply in self._replies.values():
                if reply.on_track:
                    track.stop_reply(reply.reply_id)
        self.check_listeners()
        self._watch()

    def check_listeners(self) -> None:
        """A listener may have gone: what nobody will play counts as heard as far as it was received."""
        if self._closed or self._live_track() is not None or self._open_readers():
            return
        for reply in list(self._replies.values()):
            if not reply.stopped:
                self._say_received(reply)

    # -- commands -------------------------------------------------------------------------------------------------------

    def execute(self, command: PlayAudio | EndReply | StopReply | ResumeReply) -> None:  # hot path: every chunk
        """Carry a command out."""
        if self._closed:
            return
        reply = self._reply(command.reply_id)
        self._watch()
        match command:
            case PlayAudio():
                reply.received += len(command.pcm) // 2
                self._play(reply, command.pcm)
            case ResumeReply():
                self._resume(reply, command.pcm)
            case EndReply():
                self._end(reply)
            case StopReply():
                self._stop(reply)
            case _:
                assert_never(command)

    def _reply(self, reply_id: str) -> _Reply:
        reply = self._replies.get(reply_id)
        if reply is None:
            reply = self._replies[reply_id] = _Reply(reply_id)
            self._track_lost = False  # whoever has gone may be back
            while len(self._replies) > _REMEMBERED_REPLIES:
                self._replies.popitem(last=False)
        return reply

    def _play(self, reply: _Reply, audio: bytes) -> None:
        """Give the newest audio of a reply to whoever listens; it ends where the reply now ends."""
        readers = self._open_readers()
        for reader in readers:
            reader.put(Chunk(reply.reply_id, audio, reply.received))
        track = self._live_track()
        if track is not None:
            if not reply.on_track:
                reply.on_track = True
                reply.track_offset_ms = pcm.samples_to_ms(reply.received - len(audio) // 2, self.rate_hz)
            track.push(reply.reply_id, audio)
        elif not readers:
            self._say_received(reply)

    def _resume(self, reply: _Reply, audio: bytes) -> None:
        reply.stopped = False
        track = self._live_track()
        if track is None or not reply.on_track:
            self._play(reply, audio)
            return
        for reader in self._open_readers():
            reader.put(Chunk(reply.reply_id, audio, reply.received))
        track.resume(reply.reply_id, audio)

    def _end(self, reply: _Reply) -> None:
        reply.ended = True
        readers = self._open_readers()
        for reader in readers:
            reader.put(Chunk(reply.reply_id, b"", reply.received, is_last=True))
        track = self._live_track()
        if track is not None and reply.on_track:
            track.end(reply.reply_id)
        elif not readers:
            self._say_received(reply)

    def _stop(self, reply: _Reply) -> None:
        self.catch_up()
        reply.stopped = True
        self.listener.forget(reply.reply_id)
        if reply.on_track:  # if it goes on, then from what was heard
            reply.track_offset_ms -= reply.given_ms - reply.heard_ms
        if self._track is not None and reply.on_track:
            self._track.stop_reply(reply.reply_id)
        for reader in self._open_readers():
            reader.forget(reply.reply_id)

    # -- progress -------------------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Have all told that the track has given away (`on_track_played`); before it matters how far a reply was heard."""
        if self._track is not None:
            self._track.tell_played()

    def on_track_played(self, reply_id: str, played_ms: int, finished: bool) -> int | None:
        """The track gave a reply away up to a position.

        Returns:
            The position from which on it is to say so again without being asked; None: at the next piece.
        """
        self._progress += 1
        reply = self._replies.get(reply_id)
        if reply is None or reply.stopped or self._closed:
            return None
        reply.given_ms = given_ms = reply.track_offset_ms + played_ms
        is_out = finished and reply.ended
        if not self.listener.take(reply_id, given_ms, finished=is_out):
            return None
        reply.heard_ms = given_ms
        if is_out:
            self._tell(reply, given_ms, finished=True)
            return None
        next_ms = self._report(reply_id, given_ms, finished=False)
        if next_ms is None or self.listener.wants_pieces or not reply.on_track:
            return None
        return next_ms - reply.track_offset_ms

    def _hear(self, reply_id: str, played_ms: int, finished: bool) -> None:
        """What the track gave away a while ago has been heard."""
        reply = self._replies.get(reply_id)
        if reply is not None and not reply.stopped and not self._closed:
            reply.heard_ms = played_ms
            self._tell(reply, played_ms, finished=finished)

    def on_read(self, reader: AudioStream, chunk: Chunk) -> None:
        """A reader came back for the next chunk."""
        reply = self._replies.get(chunk.reply_id)
        if reply is None or reply.stopped or self._closed:
            return
        if self._live_track() is not None and reply.on_track:
            return
        readers = self._open_readers()
        if readers and readers[0] is reader:
            self._tell(reply, pcm.samples_to_ms(chunk.end, self.rate_hz), finished=chunk.is_last)

    def _say_received(self, reply: _Reply) -> None:
        """Nobody listens: what was received counts as heard."""
        self._tell(reply, pcm.samples_to_ms(reply.received, self.rate_hz), finished=reply.ended)

    def _tell(self, reply: _Reply, played_ms: int, *, finished: bool) -> None:
        if finished:
            self._replies.pop(reply.reply_id, None)
        self._report(reply.reply_id, played_ms, finished=finished)

    def close(self) -> None:
        """The session is over: the track ends, readers give what they hold and end. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for reader in self._open_readers():
            reader.close()
        if self._track is not None:
            self._track.stop()
        self._replies.clear()
