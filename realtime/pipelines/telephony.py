"""A telephone call, as its provider's media-stream websocket: the caller's voice in, the reply out.

Owns: `TelephonyStream`, which `RealtimeSession.attach` takes like a peer connection, and the reading of its socket. Driven by
the session's track reader, which pulls the caller's voice; marks, keys and the end of the call come on the way. Reads
nothing ahead, so a burst waits in the socket, in order. It never accepts, closes or dials: the socket and the call are the
application's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, Self

from realtime import pcm
from realtime.core.events import DtmfReceived
from realtime.errors import LinkLost, ModelError, UserError
from realtime.media import g711
from realtime.pipelines.clock import Clock
from realtime.pipelines.driver import Driver
from realtime.pipelines.media import MediaSources
from realtime.pipelines.reply import ReplyPlayer
from realtime.pipelines.telephony_reply import CALL_RATE_HZ, CallReply
from realtime.pipelines.telephony_socket import CallWebSocket, Receive, Send, TextWebSocket, ways
from realtime.tracks.pulled import PulledAudioTrack
from realtime.wire.media_stream import (
    DigitPressed,
    MarkPassed,
    MediaArrived,
    StreamEvent,
    StreamOpened,
    StreamStarted,
    StreamStopped,
    UnknownStreamMessage,
    read_stream_message,
)

__all__ = ["CallWebSocket", "TelephonyStatistics", "TelephonyStream", "TextWebSocket", "attach_call"]

_SOURCE = "phone"
_BREATH_EVERY = 64
"""Messages read without waiting, after which other tasks get a turn."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TelephonyStatistics:
    """What came over one call's websocket, and what went."""

    messages: int
    """Messages that came."""
    malformed: int
    """… of which could not be read, were too large, or stood where they cannot stand."""
    unknown: int
    """… of which were of a kind that this version does not know."""
    foreign: int
    """… of which belonged to another stream, or to the caller's own loudspeaker."""
    out_of_order: int
    """… of which came after a later one, or twice: their sound was left out."""
    sent_ms: int
    """Sound that was sent; some of it may have been cleared."""
    dropped_ms: int
    """Sound of replies that was not sent: it had been stopped, or too much waited."""
    unknown_marks: int
    """Marks that came back for sound that had been cleared."""


class TelephonyStream:
    """One telephone call on a media-stream websocket (Twilio's Media Streams and those that follow them).

    ::

        call = await TelephonyStream.open(websocket)      # FastAPI, Starlette, websockets
        async with RealtimeSession("openai:gpt-realtime", instructions="You answer the phone.") as session:
            session.attach(call)
            await call.wait_ended()

    The stream must be two-way (``<Connect><Stream>``) and mu-law at 8 kHz. What the caller heard is measured by marks, or by the
    time that it takes where the far end knows none (``open(websocket, marks=False)``); a barge-in clears what the far end has not played yet; keys are `DtmfReceived` events. A caller who hangs up ends the
    track (`TrackEnded`) and interrupts the reply; the session goes on until the application ends it.

    Attributes:
        stream_id: The stream's id.
        call_id: The call's, for the provider's own API.
        parameters: What the application gave the stream on its way.
        track: The caller's voice as an audio track, 8 kHz mono. `RealtimeSession.attach` reads it.
    """

    def __init__(self, started: StreamStarted, *, send: Send, receive: Receive, marks: bool = True) -> None:
        """Of a stream that has begun; use `open`."""
        self._marks = marks
        self.stream_id = started.stream_id
        self.call_id = started.call_id
        self.parameters: Mapping[str, str] = dict(started.parameters)
        self.track = PulledAudioTrack(CALL_RATE_HZ, self._pull)
        self._send = send
        self._receive = receive
        self._ended = asyncio.Event()
        self._reply: CallReply | None = None
        self._gone_reply_bytes = [0, 0, 0]
        self._on_digit: Callable[[str], None] | None = None
        self._on_end: Callable[[], None] | None = None
        self._mark_names = count(1)
        self._last_chunk = 0
        self._position = 0
        self._messages = self._malformed = self._unknown = self._foreign = self._out_of_order = 0

    @classmethod
    async def open(
        cls, websocket: CallWebSocket | TextWebSocket, *, timeout_seconds: float = 10.0, marks: bool = True
    ) -> Self:
        """Wait until the provider has said whose call it is.

        Args:
            websocket: Accepted already. Whatever has ``send`` and ``recv``, or ``send_text`` and ``receive_text``.
            timeout_seconds: How long that may take.
            marks: The far end sends marks back when it has played what was before them, as Twilio does. False: it knows
                none; then what it was sent counts as heard once it has had the time to play it.

        Raises:
            ArgumentError: It is no such websocket.
            LinkLost: It ended, or said nothing in time.
            UserError: The stream is not mu-law at 8 kHz, mono.
        """
        send, receive = ways(websocket)
        try:
            async with asyncio.timeout(timeout_seconds):
                started = await _read_start(receive)
        except TimeoutError:
            raise LinkLost(f"no media stream began within {timeout_seconds:g} s") from None
        if (started.encoding, started.rate_hz, started.channels) != ("audio/x-mulaw", CALL_RATE_HZ, 1):
            found = f"{started.encoding}, {started.rate_hz} Hz, {started.channels} channel(s)"
            raise UserError(f"the media stream is {found}; it must be audio/x-mulaw, 8000 Hz, 1 channel")
        return cls(started, send=send, receive=receive, marks=marks)

    @property
    def ended(self) -> bool:
        """Whether the caller has hung up, or the socket is gone."""
        return self._ended.is_set()

    async def wait_ended(self) -> None:
        """Wait until then. It is noticed while a session is attached."""
        await self._ended.wait()

    def statistics(self) -> TelephonyStatistics:
        """Every figure, now."""
        sent, dropped, marks = self._gone_reply_bytes
        if self._reply is not None:
            sent += self._reply.sent_bytes
            dropped += self._reply.dropped_bytes
            marks += self._reply.unknown_marks
        return TelephonyStatistics(
            messages=self._messages,
            malformed=self._malformed,
            unknown=self._unknown,
            foreign=self._foreign,
            out_of_order=self._out_of_order,
            sent_ms=pcm.samples_to_ms(sent, CALL_RATE_HZ),
            dropped_ms=pcm.samples_to_ms(dropped, CALL_RATE_HZ),
            unknown_marks=marks,
        )

    def __repr__(self) -> str:
        """Its stream."""
        return f"<TelephonyStream {self.stream_id}{' ended' if self.ended else ''}>"

    # -- for a session ----------------------------------------------------------------------------------------------------

    def join(
        self,
        rate_hz: int,
        *,
        clock: Clock,
        on_played: Callable[[str, int, bool], object],
        on_digit: Callable[[str], None],
        on_end: Callable[[], None],
    ) -> CallReply:
        """Speak with a session, from now on.

        Args:
            rate_hz: The model's output rate.
            clock: For a far end without marks.
            on_played: Told what was heard.
            on_digit: Told of each key.
            on_end: Told once when the call is over, before its reply ends.

        Returns:
            What the session's replies are played to.

        Raises:
            UserError: The call is over, or speaks with another session.
        """
        if self.ended:
            raise UserError("attach: this call is over")
        earlier = self._reply
        if earlier is not None:
            if earlier.readyState == "live":
                raise UserError("attach: this call speaks with a session already; end that one first")
            self._gone_reply_bytes[0] += earlier.sent_bytes
            self._gone_reply_bytes[1] += earlier.dropped_bytes
            self._gone_reply_bytes[2] += earlier.unknown_marks
        self._on_digit, self._on_end = on_digit, on_end
        self._reply = CallReply(
            rate_hz,
            stream_id=self.stream_id,
            send=self._send,
            on_played=on_played,
            mark_names=self._mark_names,
            clock=None if self._marks else clock,
            plays_until=0.0 if earlier is None else earlier.plays_until,
        )
        return self._reply

    def leave(self) -> None:
        """Speak with no session any more; the call goes on, and another may be joined."""
        self._on_digit = self._on_end = None
        if self._reply is not None:
            self._reply.stop()

    async def speak(self, reply: CallReply) -> None:
        """Send a session's replies until it or the call ends."""
        try:
            await reply.run()
        except Exception as error:  # whatever a websocket of the application's raises when it is gone
            logger.info("the call's websocket takes nothing more: %s", type(error).__name__)
            self._end()

    # -- reading ----------------------------------------------------------------------------------------------------------

    async def _pull(self) -> tuple[bytes, int] | None:
        """The caller's next sound; what else comes is dealt with on the way. None: the call is over."""
        # hot path: 50 times a second per call
        streak = 0
        while not self.ended:
            try:
                data = await self._receive()
            except KeyError:  # Starlette, when text was wanted and the message is binary
                data = b""
            except Exception as error:  # … and when the socket is gone, each in its own way
                logger.info("the call's websocket ended: %s", type(error).__name__)
                break
            sound = self._take(data)
            if sound is not None:
                return sound
            streak += 1
            if streak % _BREATH_EVERY == 0:
                await asyncio.sleep(0)
        self._end()
        return None

    def _take(self, data: str | bytes) -> tuple[bytes, int] | None:
        self._messages += 1
        try:
            event = read_stream_message(data)
        except ModelError:
            self._malformed += 1
            return None
        if isinstance(event, MediaArrived):
            return self._take_sound(event)
        self._take_report(event)
        return None

    def _take_sound(self, event: MediaArrived) -> tuple[bytes, int] | None:
        if not self._is_mine(event.stream_id) or event.track != "inbound":
            self._foreign += 1
            return None
        if event.chunk is not None:
            if event.chunk <= self._last_chunk:
                self._out_of_order += 1
                return None
            self._last_chunk = event.chunk
        position = self._position if event.at_ms is None else event.at_ms * CALL_RATE_HZ // 1000
        self._position = position + len(event.payload)
        return g711.decode(event.payload), position

    def _take_report(self, event: StreamEvent) -> None:
        match event:
            case MarkPassed() | DigitPressed() | StreamStopped() if not self._is_mine(event.stream_id):
                self._foreign += 1
            case MarkPassed():
                if self._reply is not None:
                    self._reply.pass_mark(event.name)
            case DigitPressed():
                if self._on_digit is not None:
                    self._on_digit(event.digit)
            case StreamStopped():
                self._end()
            case UnknownStreamMessage():
                self._unknown += 1
            case _:  # a second beginning: one socket has one call
                self._malformed += 1

    def _is_mine(self, stream_id: str) -> bool:
        return stream_id in ("", self.stream_id)

    def _end(self) -> None:
        if self.ended:
            return
        self._ended.set()
        if self._on_end is not None:
            self._on_end()
        self.leave()


def attach_call(
    call: TelephonyStream,
    *,
    clock: Clock,
    driver: Driver,
    player: ReplyPlayer,
    media: MediaSources,
    spawn: Callable[[Coroutine[Any, Any, None]], object],
) -> None:
    """Join a call to the parts of a running session.

    Args:
        call: Which.
        clock: The session's.
        driver: Takes the events.
        player: Plays the replies.
        media: Reads the caller's voice.
        spawn: Runs what belongs to the session.

    Raises:
        UserError: The call is over or speaks with a session, or the session's reply goes elsewhere already.
    """
    if not player.needs_track:
        raise UserError(
            "attach: the session's reply goes to a track already; a session speaks to one listener at a time"
        )

    def end() -> None:
        driver.feed(lambda machine, now: machine.interrupt(now=now), where=f"track {source}")

    source = media.free_name(_SOURCE)
    reply = call.join(
        player.rate_hz,
        clock=clock,
        on_played=player.on_track_played,
        on_digit=lambda digit: driver.publish(DtmfReceived(source=source, digit=digit)),
        on_end=end,
    )
    player.use_track(reply)
    media.add(call.track, source)
    spawn(call.speak(reply))


async def _read_start(receive: Receive) -> StreamStarted:
    while True:
        try:
            event = read_stream_message(await receive())
        except (ModelError, KeyError) as error:
            logger.debug("not the beginning of a media stream: %s", error)
            continue
        except Exception as error:
            raise LinkLost(f"the websocket ended before a media stream began: {type(error).__name__}") from error
        if isinstance(event, StreamStarted):
            return event
        if isinstance(event, StreamStopped):
            raise LinkLost("the media stream stopped before it began")
        if not isinstance(event, StreamOpened):
            logger.debug("%s before the media stream began", type(event).__name__)
