"""What an application says, shows and asks for by hand.

Owns: `SessionActs`, the acting part of `RealtimeSession`, above its tracks. Driven by the application. It never decides what
becomes of what is said.
"""

from __future__ import annotations

from typing import Any

from realtime.chat.context import ChatContext
from realtime.chat.conversation import Conversation
from realtime.chat.messages import ImageContent
from realtime.core.capabilities import ModelCapabilities
from realtime.core.settings import SessionSettings, check_count
from realtime.errors import ArgumentError
from realtime.pipelines.clock import Clock
from realtime.pipelines.input import AudioFeed, as_parts, check_ability, check_parts
from realtime.pipelines.session_tracks import SessionTracks
from realtime.pipelines.setup import check_text

__all__ = ["SessionActs"]


class SessionActs(SessionTracks):
    """The acting part of `RealtimeSession`."""

    def __init__(
        self,
        *,
        context: ChatContext,
        basis: Conversation,
        capabilities: ModelCapabilities,
        settings: SessionSettings,
        clock: Clock | None,
    ) -> None:
        """Nothing was said yet; see `SessionTracks`."""
        super().__init__(context=context, basis=basis, capabilities=capabilities, settings=settings, clock=clock)
        self._feed = AudioFeed(capabilities.input_rate_hz)

    async def send(self, content: Any, *, respond: bool | None = None) -> tuple[str, ...]:
        """Say or show something as the user.

        Args:
            content: Text, `ImageContent`, `AudioContent`, a picture of any kind that `encode` takes, or a sequence of
                them. Each run of text and pictures is one message.
            respond: Ask for a reply; None: if there is text in it.

        Returns:
            The ids of the messages that it becomes.

        Raises:
            ArgumentError: It is empty, or something else.
            UserError: The model cannot be given it, such as a picture, or a picture by address is not to be had; nothing
                was sent.
            LinkLost: A picture by address could not be reached; nothing was sent.
            SessionClosed: The session has ended.
        """
        runtime = self._running()
        if respond is not None and not isinstance(respond, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("respond", respond, "True, False, or None: if there is text in it")
        parts = await as_parts(content, runtime.encode)
        check_parts(parts, self.capabilities)
        parts = await runtime.pictures.embed(parts)
        asks = any(isinstance(part, str) for part in parts) if respond is None else respond
        if asks:
            self._replies.expect(runtime.driver.machine)
        ids = runtime.driver.step(lambda machine, now: machine.send(parts, respond=asks, now=now))
        return tuple(ids)

    async def send_audio(self, pcm: bytes, *, rate_hz: int | None = None) -> None:
        """Speak: PCM16 mono, any length; an odd byte waits for the next call.

        Args:
            pcm: The samples.
            rate_hz: Their rate; None: ``capabilities.input_rate_hz``.

        Raises:
            ArgumentError: It is not bytes, or the rate is none.
            UserError: The model is given no audio.
            SessionClosed: The session has ended.
        """
        runtime = self._running()
        check_ability(self.capabilities, "supports_audio_input", "is given no audio")
        for chunk in self._feed.push(pcm, rate_hz):
            runtime.hear(chunk)

    async def send_image(self, frame: Any, *, source: str = "camera") -> str:
        """Show a picture without asking for a reply, as a frame of a camera or a screen. Encoded off the loop.

        Args:
            frame: An `ImageContent`, or anything that `encode` takes.
            source: Which camera or screen; the window keeps the newest frames of each (behaviour.md W2).

        Returns:
            The id of the message that it becomes.

        Raises:
            ArgumentError: It is no picture, or the source has no name.
            UserError: The model takes no pictures, or one by address is not to be had.
            LinkLost: A picture by address could not be reached.
            SessionClosed: The session has ended.
        """
        runtime = self._running()
        if not check_text("source", source):
            raise ArgumentError("source", source, "a name that is not empty")
        check_ability(self.capabilities, "supports_image_input", "takes no pictures")
        image = frame if isinstance(frame, ImageContent) else await runtime.encode(frame)
        (image,) = await runtime.pictures.embed([image])
        ids = runtime.driver.step(lambda machine, now: machine.send([image], respond=False, source=source, now=now))
        return ids[0]

    async def commit_audio(self) -> None:
        """Push-to-talk: what was said since the last commit is a turn; without audio nothing happens (behaviour.md T6)."""
        runtime = self._running()
        for chunk in self._feed.flush():
            runtime.hear(chunk)
        runtime.driver.step(lambda machine, now: machine.commit_audio(now=now))

    async def clear_audio(self) -> None:
        """Take back what was said since the last commit.

        Raises:
            UserError: The model cannot forget what it heard.
        """
        check_ability(self.capabilities, "supports_audio_clearing", "cannot forget what it heard")
        self._feed.flush()
        self._running().driver.step(lambda machine, now: machine.clear_audio(now=now))

    async def create_response(self, *, instructions: str | None = None) -> None:
        """Ask for a reply; while one is running, for another after it (behaviour.md T1).

        Args:
            instructions: For this reply only, instead of the agent's.
        """
        runtime = self._running()
        self._replies.expect(runtime.driver.machine)
        runtime.driver.step(lambda machine, now: machine.create_response(instructions=instructions, now=now))

    async def interrupt(self, *, played_ms: int | None = None) -> None:
        """Stop the reply; the transcript keeps what was heard (behaviour.md P1). Without a reply nothing happens.

        Args:
            played_ms: How much of it was heard, if you know better than the reply track.
        """
        check_count("played_ms", played_ms, none_is="what the track counted")
        self._running().driver.step(lambda machine, now: machine.interrupt(played_ms=played_ms, now=now))

    async def approve(self, call_id: str, ok: bool) -> None:
        """Answer an `ApprovalRequested`.

        Raises:
            ArgumentError: No such call waits for approval.
        """
        known = self._running().driver.step(lambda machine, now: machine.receive_approval(call_id, bool(ok), now=now))
        if not known:
            raise ArgumentError("call_id", call_id, "a call that waits for approval")
