"""A session's tracks: the user's in, the reply out.

Owns: `SessionTracks`, the media half of `RealtimeSession`, above what can be read of it. Driven by the application. It
never decides what is done with a frame.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from realtime.chat.context import ChatContext
from realtime.chat.conversation import Conversation
from realtime.chat.messages import ImageContent
from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import SessionSettings
from realtime.errors import ArgumentError, SessionClosed, UserError
from realtime.pipelines.clock import Clock, SystemClock
from realtime.pipelines.reading import SessionReading
from realtime.pipelines.telephony import TelephonyStream, attach_call
from realtime.tracks.reply import ReplyTrack

__all__ = ["SessionTracks"]


class SessionTracks(SessionReading):
    """The media half of `RealtimeSession`."""

    def __init__(
        self,
        *,
        context: ChatContext,
        basis: Conversation,
        capabilities: ModelCapabilities,
        settings: SessionSettings,
        clock: Clock | None,
    ) -> None:
        """No track yet; see `SessionReading`. `clock` is what everything keeps time by, None: the system's."""
        super().__init__(context=context, basis=basis, capabilities=capabilities, settings=settings)
        self._clock: Clock = SystemClock() if clock is None else clock
        self._reply_track: ReplyTrack | None = None

    def add_track(self, track: Any, *, source: str | None = None) -> str:
        """Listen to, or look at, any MediaStreamTrack; several at once, each with a name.

        Args:
            track: An aiortc track, or anything like one.
            source: Its name; None: ``microphone`` or ``camera``, numbered from the second on.

        Returns:
            Its name.

        Raises:
            ArgumentError: It is no track, is read already, or the name is taken.
            SessionClosed: The session has ended.
        """
        runtime = self._running()
        if runtime.driver.closed:
            raise SessionClosed("the session has ended")
        return runtime.media.add(track, source)

    async def remove_track(self, track: Any) -> None:
        """Stop reading a track, given itself or by its name. The track goes on; it is the application's.

        Raises:
            ArgumentError: It is not read.
        """
        await self._running().media.remove(track)

    def attach(self, pc: Any, *, sources: Mapping[str, str] | None = None, direct: bool = True) -> None:
        """Talk with who is at the other end: all tracks of a peer connection, now and later, or a call; and send the reply.

        Works for the side that offers and the side that answers, before or after ``setRemoteDescription``. When a user
        comes back with another peer connection, `detach` the old one first: the same names go on, and the reply from
        where it is. The reply waits two minutes at most for one that does not come about, once every other is closed.
        One that is closed, detached or not, is forgotten.

        Args:
            pc: An aiortc peer connection, or a `TelephonyStream`, whose track is named ``phone``.
            sources: Names of its tracks by media section, ``{mid: name}``; None: ``microphone`` and ``camera``.
            direct: Receive its tracks with the session's own receiver: sound at once and without holes, and only those
                pictures decoded that are looked at; and send the reply's packets without aiortc's sending loop. False, or with
                an aiortc that is not known: with aiortc's.

        Raises:
            ArgumentError: It is neither, or a call was given `sources`.
            UserError: It is attached already, its local description is set, or it is closed; or the reply goes to another
                listener.
            SessionClosed: The session has ended.
        """
        runtime = self._running()
        if runtime.driver.closed:
            raise SessionClosed("the session has ended")
        if not isinstance(pc, TelephonyStream):
            runtime.media.attach(pc, self.reply_track, sources, direct=direct)
            return
        if sources is not None:
            raise ArgumentError("sources", sources, "None: a call has one track, and no media sections")
        attach_call(
            pc,
            clock=self._clock,
            driver=runtime.driver,
            player=runtime.player,
            media=runtime.media,
            spawn=runtime.spawn,
        )

    async def detach(self, pc: Any) -> None:
        """Let a peer connection or a call go: it is read no more, the reply waits for the next one. It is not closed.

        Raises:
            ArgumentError: It is not attached.
        """
        media = self._running().media
        if isinstance(pc, TelephonyStream):
            await media.remove(pc.track)
            pc.leave()
        else:
            await media.detach(pc)

    @property
    def reply_track(self) -> ReplyTrack:
        """The spoken reply as an aiortc audio track: 20 ms frames at 48 kHz, silence when idle.

        Always the same, unless it ended (aiortc ends what a closed peer connection sent): then it is a new one.

        Raises:
            UserError: A telephone call has it.
        """
        runtime = self._running()
        if self._reply_track is None and not runtime.player.needs_track:
            raise UserError("the reply is spoken into a telephone call; while that lasts there is no track of it")
        if self._reply_track is None or (runtime.player.needs_track and not runtime.driver.closed):
            self._reply_track = ReplyTrack(
                self.capabilities.output_rate_hz, on_played=runtime.player.on_track_played, clock=self._clock
            )
            runtime.player.use_track(self._reply_track)
        return self._reply_track

    async def look(self, source: str | None = None) -> ImageContent:
        """Show the model the next frame, whatever the schedule.

        Args:
            source: Of which track; None: of any.

        Returns:
            The picture that the model was shown.

        Raises:
            UserError: There is no such video track.
            SessionClosed: The session ended first.
        """
        runtime = self._running()
        if runtime.driver.closed:
            raise SessionClosed("the session has ended")
        sources = runtime.media.video_sources
        if not sources or (source is not None and source not in sources):
            known = ", ".join(map(repr, sources)) or "none"
            wanted = "video track" if source is None else f"video track {source!r}"
            raise UserError(f"there is no {wanted} to look at; there is: {known}")
        runtime.driver.step(lambda machine, now: machine.look(source, now=now))
        return await runtime.video.look(source)
