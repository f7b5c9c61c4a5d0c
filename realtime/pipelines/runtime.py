"""Everything that runs while a session runs.

Owns: the session's pipelines and the one task that they live in. Driven by `session.py`: started, asked for tracks,
closed. It carries the machine's local commands to the pipelines that do them, and sees to it that nothing is left behind
(behaviour.md L4, L7). It never decides anything about the conversation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from pathlib import Path
from typing import Any, assert_never

from realtime.chat.context import ChatContext
from realtime.chat.messages import ImageContent
from realtime.core.commands import (
    ApproveTool,
    CancelTool,
    DropHeldFrame,
    EncodeHeldFrame,
    EndReply,
    EndSession,
    LocalCommand,
    PlayAudio,
    RequestSummary,
    ResumeReply,
    RunTool,
    StopReply,
    SwitchAgent,
)
from realtime.core.events import ErrorReported
from realtime.core.machine import SessionMachine
from realtime.core.settings import SessionSettings
from realtime.errors import RealtimeError, SessionClosed
from realtime.media.options import EncodeOptions
from realtime.pipelines.audio import AudioInput
from realtime.pipelines.clock import Clock
from realtime.pipelines.closing import within
from realtime.pipelines.driver import Driver
from realtime.pipelines.link import Link
from realtime.pipelines.link_fault import link_fault
from realtime.pipelines.media import MediaSources
from realtime.pipelines.pictures import PictureFetcher
from realtime.pipelines.record import Opening, Recorder, SessionIds
from realtime.pipelines.reply import ReplyPlayer
from realtime.pipelines.statistics import MemoryLedger, SessionStatistics
from realtime.pipelines.summary import SummaryRunner
from realtime.pipelines.takeover import RuntimeModel, Takeover
from realtime.pipelines.tool import CallContext
from realtime.pipelines.tools import ToolRunner
from realtime.pipelines.video import PictureEncoder, VideoInput
from realtime.pipelines.voice import VoiceWatch
from realtime.pipelines.worker import encode_pool, tool_pool

__all__ = ["CLOSE_SECONDS", "SessionRuntime"]

CLOSE_SECONDS = 2.0
"""The longest that closing takes (behaviour.md L4)."""
_HANG_UP_SECONDS = 1.2
"""Of it, for the link, the tracks and the tools, all at once; the rest is the model's and the threads'."""
_LET_GO_SECONDS = 0.6

logger = logging.getLogger(__name__)

_inside: ContextVar[SessionRuntime | None] = ContextVar("realtime_inside_session", default=None)
"""The session that this task belongs to: it must not wait for itself."""


class SessionRuntime:
    """The pipelines of one running session."""

    def __init__(
        self,
        settings: SessionSettings,
        model: RuntimeModel,
        context: ChatContext,
        *,
        clock: Clock,
        encode_options: EncodeOptions,
        make_context: Callable[[RunTool], CallContext],
        pictures: PictureFetcher,
    ) -> None:
        """Put the pipelines together; nothing runs yet.

        Args:
            settings: What the user chose.
            model: Whom to connect to.
            context: The live context; it is the session's until the end.
            clock: What everything keeps time by.
            encode_options: What a shown frame becomes.
            make_context: Makes what is injected into a tool call.
            pictures: Fetches pictures that are given by address.

        Raises:
            UserError: The context belongs to another session.
        """
        capabilities = model.capabilities
        now = clock.now()
        ids = SessionIds()
        opening = Opening(
            settings=settings,
            capabilities=capabilities,
            context=context.copy(),
            id_prefix=ids.prefix,
            wall_offset=clock.wall() - now,
            now=now,
        )
        machine = SessionMachine(
            settings, capabilities, context, make_id=ids.make, wall_offset=opening.wall_offset, now=now
        )
        self._encoder = PictureEncoder(
            encode_options, detail=settings.image_detail, max_image_bytes=capabilities.max_image_bytes
        )
        self.pictures = pictures
        self._ending = asyncio.Event()
        self._released = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._main: asyncio.Task[None] | None = None
        self._children: set[asyncio.Task[None]] = set()
        self._error: RealtimeError | None = None
        self.driver = Driver(machine, clock)
        self._tap = self.driver.note(opening)
        self.link = Link(model, self.driver, clock, settings.reconnect, shrink=self.shrink)
        self.takeover = Takeover(model, driver=self.driver, link=self.link, encoder=self._encoder, spawn=self.spawn)
        self.player = ReplyPlayer(capabilities.output_rate_hz, self.driver.report_played, clock)
        self.audio = AudioInput(capabilities.input_rate_hz, self.driver.receive_audio, now=clock.now)
        self.driver.lend_ear(
            VoiceWatch(self.driver, capabilities.input_rate_hz, is_manual=settings.turn_detection.mode == "manual")
        )
        self.video = VideoInput(
            judge=lambda facts: self.driver.step(
                lambda machine, now: machine.receive_frame(facts, now=now), timeless=True
            ),
            looks_at=machine.looks_at_frame,
            report=self._report_image,
            encoder=self._encoder,
            pool=encode_pool,
            now=clock.now,
            max_age_seconds=settings.sampling.max_age_seconds,
            min_change=settings.sampling.min_change,
            spawn=self.spawn,
        )
        self.media = MediaSources(self.driver, self.audio, self.video, decodes_all=settings.sampling.decode == "all")
        self.tools = ToolRunner(
            report=self._report_tool,
            make_context=make_context,
            pool=tool_pool,
            clock=clock,
            spawn=self.spawn_tool,
            pictures=self.pictures,
        )
        self._summaries = SummaryRunner(
            settings.window.summary_llm,
            report=lambda basis, text: self.driver.feed(
                lambda machine, now: machine.receive_summary(basis, text, now=now), where="summary"
            ),
            report_error=lambda error, where: self.driver.publish(ErrorReported(error=error, where=where)),
            clock=clock,
            spawn=self.spawn,
        )
        self.driver.observe(self.video.observe)
        self.driver.connect(execute=self._execute, wake_link=self.link.wake, ask_played=self.player.catch_up)

    # -- life -----------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Connect.

        Raises:
            ModelError, LinkLost, UserError: The model cannot be reached or refuses.
            SessionClosed: The session was closed meanwhile.
        """
        opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._main = asyncio.create_task(self._run(opened), name="realtime session")
        try:
            await asyncio.wait({opened, self._main}, return_when=asyncio.FIRST_COMPLETED)
            if not opened.done():
                raise SessionClosed("the session was closed while it was connecting") from self._error
            opened.result()
        except BaseException as error:
            self.end(error if isinstance(error, RealtimeError) else None)
            await self.aclose()
            raise

    def end(self, error: RealtimeError | None = None) -> None:
        """Record everything and let go of everything, beginning now. A second time does nothing."""
        self.driver.feed(lambda machine, now: machine.close(error, now=now), where="session")
        self._ending.set()

    async def aclose(self) -> None:
        """End, and wait until nothing is left, at most `CLOSE_SECONDS`. From inside a tool: until all but it is gone."""
        inside = self.tools.protect_current() or _inside.get() is self
        self.end()
        main = self._main
        if main is None:
            self._release()
            return
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if inside:
                    await self._released.wait()
                else:
                    await asyncio.wait({main})
        except TimeoutError:
            logger.warning("closing the session took longer than %g s; what is left is cut", CLOSE_SECONDS)
            main.cancel()

    async def _run(self, opened: asyncio.Future[None]) -> None:
        _inside.set(None)
        members = [(pool, pool.join()) for pool in (encode_pool, tool_pool)]
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                link = self.spawn(self._keep_link(opened))
                await self._ending.wait()
                self.tools.cancel_all()
                await within(_HANG_UP_SECONDS, self.link.aclose(), self.media.aclose())
                for child in (link, *self._children):
                    child.cancel()
                await within(_LET_GO_SECONDS, *(model.aclose() for model in self.takeover.models))
                await within(_LET_GO_SECONDS, *(pool.leave(member) for pool, member in members))
                self._release()
                if self._tap.recorder is not None:
                    await within(_LET_GO_SECONDS, self._tap.recorder.aclose())
        finally:
            self._group = None
            self._release()
            for pool, member in members:
                pool.forget(member)

    def _release(self) -> None:
        """The last step, and the first that counts: whoever waits for anything of this session goes on."""
        self.driver.close(self._error)
        self.video.close(SessionClosed("the session has ended"))
        self.player.close()
        self._released.set()

    async def _keep_link(self, opened: asyncio.Future[None]) -> None:
        try:
            await self.link.run(opened)
        except Exception as error:
            logger.exception("the link to the model failed")
            fault = link_fault(error)
            if not opened.done():
                opened.set_exception(fault)
            self.end(fault)

    # -- tasks ----------------------------------------------------------------------------------------------------------

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something that belongs to the session and is cancelled when it ends."""
        task = self.spawn_tool(work)
        self._children.add(task)
        task.add_done_callback(self._children.discard)
        return task

    def spawn_tool(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """As `spawn`, for what is cancelled by its owner.

        Raises:
            SessionClosed: The session has ended.
        """
        if self._group is None:
            work.close()
            raise SessionClosed("the session has ended")
        task = self._group.create_task(self._guard(work))
        task.add_done_callback(lambda _: work.close())  # cancelled before its first step, it would never be awaited
        return task

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        """One fault must not take its siblings along."""
        _inside.set(self)
        try:
            await work
        except Exception as error:
            logger.exception("a part of the session failed")
            self.driver.publish(ErrorReported(error=error, where="session"))

    # -- commands and reports -------------------------------------------------------------------------------------------

    def _execute(self, command: LocalCommand) -> None:  # hot path: every chunk of a reply
        match command:
            case PlayAudio() | EndReply() | StopReply() | ResumeReply():
                self.player.execute(command)
            case EncodeHeldFrame() | DropHeldFrame():
                self.video.execute(command)
            case RunTool() | CancelTool():
                self.tools.execute(command)
            case RequestSummary():
                self._summaries.execute(command)
            case SwitchAgent():
                self.takeover.execute(command)
            case EndSession():
                self._error = command.error if isinstance(command.error, RealtimeError) else None
                self._ending.set()
            case ApproveTool():
                pass  # the application has the event; its answer comes by `RealtimeSession.approve`
            case _:
                assert_never(command)

    def hear(self, pcm: bytes) -> None:
        """Input audio of the application's, PCM16 mono at the model's rate.

        Raises:
            SessionClosed: The session has ended.
        """
        if self.driver.closed:
            raise SessionClosed("the session has ended")
        self.driver.receive_audio(pcm)

    def _report_image(self, *, source: str, frame_id: int, image: ImageContent | None, **outcome: Any) -> None:
        self.driver.feed(
            lambda machine, now: machine.receive_image(
                source=source, frame_id=frame_id, image=image, **outcome, now=now
            ),
            where=f"track {source}",
        )

    def _report_tool(
        self, call_id: str, output: str, *, is_error: bool, images: Any, error: BaseException | None
    ) -> None:
        self.driver.feed(
            lambda machine, now: machine.receive_tool_output(
                call_id, output, is_error=is_error, images=images, error=error, now=now
            ),
            where="tool",
        )

    def record(self, path: Path) -> None:
        """Write what enters the machine to a file, from the session's beginning on.

        Raises:
            UserError: It is recorded already, has said or shown something, or the file cannot be written.
        """
        self._tap.check_early()
        self._tap.record(
            Recorder(path, report=lambda error: self.driver.publish(ErrorReported(error=error, where="record")))
        )

    async def encode(self, picture: Any) -> ImageContent:
        """Make a picture of anything that is one, off the loop."""
        return await encode_pool.run(self._encoder, picture)

    async def shrink(self, image: ImageContent, max_bytes: int) -> ImageContent:
        """The same picture within so many bytes, off the loop."""
        return await encode_pool.run(self._encoder.shrink, image, max_bytes)

    def statistics(self) -> SessionStatistics:
        """Every figure, now."""
        figures = self.driver.machine.statistics()
        held = figures.memory
        waiting, dropped = self.driver.backlog()
        return SessionStatistics(
            machine=figures,
            memory=MemoryLedger(
                frames=self.video.held_bytes,
                images=held.images,
                audio=held.audio,
                queued_audio=held.queued_audio,
                replay_audio=held.replay_audio,
                queued_pictures=held.queued_pictures,
                reply_audio=self.player.waiting_bytes(),
            ),
            connected=self.link.connected,
            tracks=self.media.statistics(),
            frames_replaced=self.video.replaced,
            tools_running=self.tools.running,
            events_waiting=waiting,
            events_dropped=dropped,
            encoder=encode_pool.statistics(),
        )
