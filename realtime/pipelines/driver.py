"""The one place that mutates a session's machine.

Owns: the machine, its one timer and the fan-out of its events. Driven by every shell of the session (tracks, link, tools,
the application's calls), each of which feeds in one synchronous step: feed, drain commands and events, re-arm the timer.
A step taken while another drains — a command's handler that feeds again — changes the machine at once and leaves the
draining to the outer one, so that events and commands keep their order. It never waits and never touches a track, a
thread, or a socket but by the sound line that it is lent.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Protocol, TypeVar

from realtime.core.commands import AppendAudio, LinkCommand, LocalCommand
from realtime.core.events import ErrorReported, SessionEvent
from realtime.core.machine import SessionMachine
from realtime.errors import SessionClosed
from realtime.pipelines.clock import Clock, Timer
from realtime.pipelines.event_stream import EventStream
from realtime.pipelines.record import MachineTap, Opening
from realtime.pipelines.sound_line import SoundLine

__all__ = ["Driver", "Ear"]

T = TypeVar("T")

_UNSAID_MS = 1_000
"""The machine is told of a reply that plays on at least this often."""

logger = logging.getLogger(__name__)


class Ear(Protocol):
    """What listens to the user's sound besides the model."""

    is_listening: bool
    """It wants sound, whether the model reports speech or not."""

    def receive(self, audio: bytes) -> None:
        """Hear PCM16 mono, whole samples, after the machine took it."""
        ...


class Driver:
    """Feeds the machine, carries out what it decides, tells everyone who listens."""

    def __init__(self, machine: SessionMachine, clock: Clock) -> None:
        """Take a machine; nothing happens before the first step."""
        self._machine = machine
        self._entrance = machine  # what is changed: the machine, or what notes down how it is
        self._tap: MachineTap | None = None
        self._clock = clock
        self._now = clock.now
        self._execute: Callable[[LocalCommand], None] = _refuse
        self._wake_link: Callable[[], None] = _nothing
        self._ask_played: Callable[[], object] = _nothing
        self._ear: Ear | None = None
        self.sound_line: SoundLine | None = None
        """Sends sound at once; the link's, which lets it be None while something else is to be sent, or if the transport cannot."""
        self._observers: list[Callable[[SessionEvent], None]] = []
        self._streams: weakref.WeakSet[EventStream] = weakref.WeakSet()
        self._timer: Timer | None = None
        self._armed_for: float | None = None
        self._draining = False
        self._closed = False
        self._heard_reply: str | None = None
        self._unsaid_ms: int | None = None
        self._say_from_ms = 0

    @property
    def machine(self) -> SessionMachine:
        """For reading. Whoever wants to change it takes a `step`."""
        return self._machine

    def connect(
        self,
        *,
        execute: Callable[[LocalCommand], None],
        wake_link: Callable[[], None],
        ask_played: Callable[[], object] | None = None,
    ) -> None:
        """Say who works for the machine.

        Args:
            execute: Carries out local commands.
            wake_link: Called when something may be waiting for the provider.
            ask_played: Has `report_played` called for what was heard and has not been reported.
        """
        self._execute = execute
        self._wake_link = wake_link
        self._ask_played = ask_played or _nothing

    def lend_ear(self, ear: Ear) -> None:
        """Let somebody hear the user's sound too: while they are listening, and where the model reports no speech."""
        self._ear = ear

    def observe(self, observer: Callable[[SessionEvent], None]) -> None:
        """Call `observer` with every event, within the step. It must not raise, wait or feed."""
        self._observers.append(observer)

    def note(self, opening: Opening) -> MachineTap:
        """Let a recording begin with what enters from now on (`pipelines/record.py`)."""
        self._tap = MachineTap(self._machine, opening, on_idle=self._note_no_more)
        self._entrance = self._tap.entrance
        return self._tap

    def _note_no_more(self) -> None:
        self._entrance, self._tap = self._machine, None

    # -- steps --------------------------------------------------------------------------------------------------------

    def step(self, action: Callable[[SessionMachine, float], T], *, timeless: bool = False) -> T:
        """Change the machine and carry out what follows.

        Args:
            action: Called with the machine and the present moment; it returns at once.
            timeless: It brings no deadline nearer by itself, and asks for no reply's position; the timer is looked at only if
                something follows from it.

        Returns:
            What the action returns.

        Raises:
            Exception: What the action raises; what it had changed before is carried out all the same.
        """
        if self._closed:
            raise SessionClosed("the session has ended")
        try:
            if not timeless:
                self.catch_up()
            return action(self._entrance, self._now())
        finally:
            self._drain(timeless=timeless)

    def feed(self, action: Callable[[SessionMachine, float], object], *, where: str, timeless: bool = False) -> None:
        """As `step`, for shells: after the end nothing happens, and an error becomes an event instead of rising.

        Args:
            action: Called with the machine and the present moment.
            where: Who feeds, for `ErrorReported`.
            timeless: As for `step`.
        """
        if self._closed:
            return
        try:
            if not timeless:
                self.catch_up()
            action(self._entrance, self._now())
        except Exception as error:
            logger.debug("%s fed the machine something that it refused", where, exc_info=True)
            self.publish(ErrorReported(error=error, where=where))
        finally:
            self._drain(timeless=timeless)

    def report_played(self, reply_id: str, played_ms: int, *, finished: bool) -> int | None:
        """A reply has been heard up to a position.

        The machine is told at once of the first of a reply, whose moment counts (`TurnLatency`), and of its end. Of what is
        between it is told before the next step, which may ask for it (behaviour.md P1), and once a second, so that it lets go
        of what it keeps unheard.

        Returns:
            The position from which on it is to be reported again without being asked for; None: at once.
        """
        if reply_id == self._heard_reply and not finished:
            if played_ms < self._say_from_ms:
                self._unsaid_ms = played_ms
                return self._say_from_ms
            self._unsaid_ms = None
        self.feed(
            lambda machine, now: machine.receive_played(reply_id, played_ms, finished=finished, now=now), where="reply"
        )
        if played_ms > 0:
            self._heard_reply, self._say_from_ms = reply_id, played_ms + _UNSAID_MS
            return self._say_from_ms
        return None

    def catch_up(self) -> None:
        """Tell the machine what it was not told yet of how far the reply has been heard; before reading it (P1)."""
        self._ask_played()
        played_ms, self._unsaid_ms = self._unsaid_ms, None
        if played_ms is not None and self._heard_reply is not None and not self._closed:
            self._entrance.receive_played(self._heard_reply, played_ms, now=self._now())

    def receive_audio(self, pcm: bytes) -> None:  # hot path: 50 times a second
        """Feed the user's sound, PCM16 mono at the model's rate, whole samples. It is sent at once where nothing waits before it."""
        if self._closed:
            return
        line, now = self.sound_line, self._now
        is_done = False
        try:
            command = self._entrance.receive_audio(pcm, at_once=line is not None and line.transport.is_clear, now=now())
            if command is not None and line is not None:
                put = line.put
                try:
                    for data in line.encode(command):
                        put(data)
                except Exception as error:
                    line.failed(command, error)
                is_done = not self._machine.has_output()
        except Exception as error:
            logger.debug("the machine refused sound", exc_info=True)
            self.publish(ErrorReported(error=error, where="audio"))
        if not is_done:
            self._drain()
        ear = self._ear
        if ear is not None and (ear.is_listening or not self._machine.capabilities.reports_speech_boundaries):
            ear.receive(pcm)

    def next_link_command(self) -> LinkCommand | None:  # hot path: every wire message
        """What the provider is to be told next, or None. Called when the socket is writable."""
        if self._closed:
            return None
        timeless = False
        try:
            command = self._entrance.next_link_command(now=self._now())
            timeless = command is None or isinstance(command, AppendAudio)
            return command
        finally:
            self._drain(wake=False, timeless=timeless)

    def _drain(self, *, wake: bool = True, timeless: bool = False) -> None:
        if self._draining:
            return
        self._draining = True
        machine = self._machine
        is_quiet = timeless
        try:
            while True:
                command = machine.next_command()
                if command is not None:
                    is_quiet = False
                    self._carry_out(command)
                    continue
                event = machine.next_event()
                if event is None:
                    break
                is_quiet = False
                if self._tap is not None:
                    self._tap.told(event)
                self._tell(event)
        finally:
            self._draining = False
        if not self._closed:
            if not is_quiet:
                self._arm()
            if wake and machine.has_link_command:
                self._wake_link()

    def _carry_out(self, command: LocalCommand) -> None:
        try:
            self._execute(command)
        except Exception as error:
            logger.exception("a command could not be carried out: %s", type(command).__name__)
            self.publish(ErrorReported(error=error, where=type(command).__name__))

    # -- time ---------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        deadline = self._machine.get_deadline()
        if deadline is None or (self._armed_for is not None and self._armed_for <= deadline):
            return  # a timer that fires early looks again: cheaper than a new one per step
        if self._timer is not None:
            self._timer.cancel()
        self._armed_for = deadline
        self._timer = self._clock.call_at(deadline, self._on_time)

    def _on_time(self) -> None:
        armed_for, self._armed_for, self._timer = self._armed_for, None, None
        if self._closed or armed_for is None:
            return
        deadline = self._machine.get_deadline()
        now = max(self._now(), armed_for)
        if deadline is None or deadline > now:
            self._arm()
            return
        self.feed(lambda machine, _: machine.handle_deadline(now=now), where="timer")

    # -- listeners ------------------------------------------------------------------------------------------------------

    def publish(self, event: SessionEvent) -> None:
        """Tell everyone who listens of a fault that is none of the machine's business."""
        if self._tap is not None:
            self._tap.published(event)
        self._tell(event)

    def _tell(self, event: SessionEvent) -> None:
        for observer in self._observers:
            observer(event)
        for stream in tuple(self._streams):
            stream.put(event)

    def subscribe(self) -> EventStream:
        """An iterator of the events from now on. It is forgotten when nobody holds it."""
        stream = EventStream()
        if self._closed:
            stream.finish()
        else:
            self._streams.add(stream)
        return stream

    def backlog(self) -> tuple[int, int]:
        """Events that wait for the slowest iterator, and events that the present iterators have lost."""
        streams = tuple(self._streams)
        return max((stream.waiting for stream in streams), default=0), sum(stream.dropped for stream in streams)

    @property
    def closed(self) -> bool:
        """Whether the machine has been let go."""
        return self._closed

    def close(self, error: BaseException | None) -> None:
        """Stop for good. Iterators give what they hold, then raise `error` or end. Closing twice does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._armed_for = None
        if self._tap is not None:
            self._tap.close()
        for stream in tuple(self._streams):
            stream.finish(error)
        self._execute, self._wake_link, self._ask_played = _refuse, _nothing, _nothing
        self._observers.clear()


def _refuse(command: LocalCommand) -> None:
    raise SessionClosed(f"nobody carries out {type(command).__name__}")


def _nothing() -> None:
    return
