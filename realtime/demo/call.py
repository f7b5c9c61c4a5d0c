"""One call of the demo: media files through Opus and VP8 into a session, the reply back over the wire.

Owns: `run_call`, from looking at the files to the written folder. Driven by the command line. It holds a session the way
any application does, through public names only, and a real pair of aiortc peers; it keeps no conversation of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from realtime.chat.messages import ChatMessage
from realtime.chat.window import ContextWindow
from realtime.core.events import MessageCommitted
from realtime.core.settings import FrameSampling
from realtime.demo.folder import Record, Shelf, prepare_folder, write_folder
from realtime.demo.log import Budget, CallLog, Line
from realtime.demo.media import MediaFile, open_media, read_pictures, read_sound
from realtime.demo.options import DemoOptions
from realtime.demo.scene import SCENE_OBJECTION, SCENE_QUESTIONS, spoken, street
from realtime.demo.screen import Screen
from realtime.errors import BusyError, LinkLost, ModelError, RealtimeError, SessionClosed
from realtime.pipelines.clock import SystemClock
from realtime.pipelines.worker import WorkerPool
from realtime.session import RealtimeSession
from realtime.testing.devices import PictureSource, SoundSource
from realtime.testing.loopback import make_peer
from realtime.testing.peer import SyntheticPeer

__all__ = ["CallResult", "run_call"]

_LAST_REPLY_SECONDS = 20.0
"""How long the call waits at most for the end of the last reply once the media is over; a quick model takes 3 s."""
_REPLY_SECONDS = 60.0
"""How long the next spoken file waits at most for the end of the reply to the one before."""
_LISTEN_SECONDS = 1.2
"""How long the scene's user listens before speaking into the reply."""
_NOTICE_SECONDS = 5.0
"""Speech that nobody has noticed this long after its end was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallResult:
    """How a call went."""

    messages: tuple[ChatMessage, ...]
    """The context at its end."""
    log: CallLog
    """What happened."""
    files: tuple[Path, ...]
    """What was written."""
    failed: BaseException | None
    """Why the session ended by itself, if it did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Script:
    """What is played."""

    sounds: tuple[SoundSource, ...]
    objection: SoundSource | None = None
    pictures: tuple[PictureSource, ...]
    wait_for_pictures: bool


async def run_call(options: DemoOptions, screen: Screen, hang_up: asyncio.Event) -> CallResult:
    """Make the call, show it, write its folder.

    Args:
        options: What is played, who answers, what is kept.
        screen: Where it is shown.
        hang_up: Set from outside, it ends the call in good order; the record is written all the same.

    Raises:
        UserError: A file, the folder, the model or an option cannot be.
        LinkLost: The model cannot be reached.
        ModelError: The model refused the session.
    """
    async with AsyncExitStack() as stack:
        pool = WorkerPool("realtime-demo", max_threads=2, max_waiting=64, finite_jobs=True)
        stack.push_async_callback(pool.leave, pool.join())
        await pool.run(prepare_folder, options.out)
        script = await pool.run(_make_script, options)
        call = _Call(options, screen, hang_up, pool, script)
        return await call.run()


def _make_script(options: DemoOptions) -> _Script:
    """Look at the files. On the worker."""
    if not options.media:
        typed = bool(options.text)
        sounds = () if typed else tuple(partial(spoken, question) for question in SCENE_QUESTIONS)
        objection = None if typed else partial(spoken, SCENE_OBJECTION)
        return _Script(sounds=sounds, objection=objection, pictures=(street,), wait_for_pictures=False)
    files: list[MediaFile] = [open_media(path) for path in options.media]
    return _Script(
        sounds=tuple(partial(read_sound, file.path) for file in files if file.sound_seconds is not None),
        pictures=tuple(partial(read_pictures, file.path) for file in files if file.picture_seconds is not None),
        wait_for_pictures=True,
    )


class _Call:
    """The parts of a running call."""

    def __init__(
        self, options: DemoOptions, screen: Screen, hang_up: asyncio.Event, pool: WorkerPool, script: _Script
    ) -> None:
        self._options = options
        self._screen = screen
        self._hang_up = hang_up
        self._pool = pool
        self._script = script
        self._clock = SystemClock()
        self._log = CallLog(self._clock.now())
        self._shelf = Shelf()
        self._happened = asyncio.Event()
        self._failed: BaseException | None = None
        self._starts_before = -1  # of the sound that was played last, how often the user had begun to speak before it
        self._begun = False
        pictures = list(script.pictures)
        self._user = SyntheticPeer(camera=bool(pictures), picture=pictures or "gray", clock=self._clock)
        self._session = RealtimeSession(
            options.model,
            instructions=options.instructions,
            window=ContextWindow(max_tokens=options.max_tokens),
            audio_retention=options.audio_retention,
            retain_audio_max_seconds=options.retain_audio_max_seconds,
            retain_images_every_n=options.retain_images_every_n,
            retain_images_max=options.retain_images_max,
            sampling=FrameSampling(fps_speaking=options.fps_speaking, fps_idle=options.fps_idle),
        )

    async def run(self) -> CallResult:
        """From the first connection to the written folder."""
        title = f"realtime demo · {self._options.model}"
        try:
            self._screen.open(self._log, title)
            began = self._log.begun_at
            self._show([self._log.note("connecting to the model", began)])
            async with self._user, self._session as session:
                self._begun = True
                took = self._clock.now() - began
                self._show([self._log.note(f"connected: {session.capabilities.model}, after {took:.1f} s", began)])
                try:
                    await self._talk()
                except ExceptionGroup as group:  # the first thing that went wrong says it best
                    raise group.exceptions[0] from group
                messages = tuple(session.context.messages())
                context = session.context.to_dict()
        finally:
            self._screen.close()
        record = Record(
            context=context,
            frames=sorted(self._log.frames.values(), key=lambda frame: frame.at),
            shelf=self._shelf,
            user=self._user.spoken,
            reply=self._user.heard,
        )
        files = await self._pool.run(write_folder, self._options.out, record)
        return CallResult(messages=messages, log=self._log, files=tuple(files), failed=self._failed)

    async def _talk(self) -> None:
        """Join the peers, play the script, hang up, let the session end."""
        bot = make_peer()
        async with AsyncExitStack() as stack:
            group = await stack.enter_async_context(asyncio.TaskGroup())
            stack.push_async_callback(bot.close)
            group.create_task(self._watch(group))
            self._session.attach(bot)
            await self._user.call(bot)
            self._log.begun_at = self._clock.now()
            await self._until_hung_up(group)
            self._user.mute()
            await self._session.aclose()
            await self._user.aclose()

    async def _until_hung_up(self, group: asyncio.TaskGroup) -> None:
        playing = group.create_task(self._play())
        playing.add_done_callback(lambda _: self._hang_up.set())
        try:
            async with asyncio.timeout(self._options.seconds):
                await self._hang_up.wait()
        except TimeoutError:
            self._show([self._log.note(f"{self._options.seconds:g} s are over", self._clock.now())])
        playing.cancel()

    async def _play(self) -> None:
        """Speak, type and show what there is, and wait for the last reply."""
        for number, sound in enumerate(self._script.sounds):
            if number:
                await self._pause()
            await self._say(sound)
        if self._script.objection is not None:
            await self._until(lambda log: "model" in log.speaking, _REPLY_SECONDS)
            await self._clock.sleep_until(self._clock.now() + _LISTEN_SECONDS)
            await self._say(self._script.objection)
        if self._options.text and self._script.sounds:
            await self._until_quiet(_REPLY_SECONDS)
        try:
            for text in self._options.text:
                self._show([self._log.note(f"typed “{text}”", self._clock.now())])
                await self._session.send(text)
                await self._session.wait_for_reply()
        except (SessionClosed, LinkLost, ModelError) as error:  # it ended, or refused: what was held so far is written
            self._failed = self._failed or (None if isinstance(error, SessionClosed) else error)
            return
        if self._user.camera is not None and self._script.wait_for_pictures:
            await self._user.camera.shown.wait()
        await self._until_quiet(_LAST_REPLY_SECONDS)

    async def _say(self, sound: SoundSource) -> None:
        self._starts_before = self._log.speech_starts
        await self._user.say(sound)

    async def _pause(self) -> None:
        if self._options.pause_seconds is None:
            await self._until_quiet(_REPLY_SECONDS)
        else:
            await self._clock.sleep_until(self._clock.now() + self._options.pause_seconds)

    async def _until_quiet(self, seconds: float) -> None:
        """Wait until every turn that the user began has been answered and nobody speaks; at most `seconds`."""
        await self._until(lambda log: log.speech_starts > self._starts_before, _NOTICE_SECONDS)
        await self._until(lambda log: not _busy(log), seconds)

    async def _until(self, holds: Callable[[CallLog], bool], seconds: float) -> None:
        """Wait until something holds of what happened; at most `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                while not holds(self._log):
                    self._happened.clear()
                    await self._happened.wait()
        except TimeoutError:
            return

    async def _watch(self, group: asyncio.TaskGroup) -> None:
        """Show every event; let the pictures be put on the shelf."""
        try:
            async for event in self._session:
                self._show(self._log.take(event, self._clock.now()))
                self._happened.set()
                if isinstance(event, MessageCommitted) and event.message.is_frame:
                    group.create_task(self._shelve(event.message))
        except RealtimeError as error:  # what ended the session comes after its last event
            self._failed = error
        self._hang_up.set()

    async def _shelve(self, message: ChatMessage) -> None:
        try:
            await self._pool.run(self._shelf.put, message.message_id, message.images[0].data)
        except BusyError as error:
            self._show([self._log.note(f"no thumbnail: {error}", self._clock.now(), "error")])

    def _show(self, lines: Sequence[Line]) -> None:
        self._screen.show(lines, self._budgets())

    def _budgets(self) -> tuple[Budget, ...]:
        if not self._begun:
            return ()
        figures = self._session.statistics().machine
        return (
            Budget(name="pictures", used=figures.images_kept, bound=self._options.retain_images_max),
            Budget(name="tokens", used=figures.tokens.own, bound=self._options.max_tokens),
            Budget(name="messages", used=figures.context_messages, bound=None),
        )


def _busy(log: CallLog) -> bool:
    return log.open_turns > 0 or bool(log.speaking)
