"""A user at the other end of a WebRTC call: says and shows a script, and records what is heard.

Owns: `SyntheticPeer`. Driven by a test, by the demo, by aiortc. All of it is real: Opus and VP8,
ICE and SRTP, over the loopback device of this machine. It knows nothing of sessions: whatever answers WebRTC can be
called.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self, assert_never

from aiortc import MediaStreamError, MediaStreamTrack, RTCPeerConnection, RTCSessionDescription

from realtime.errors import ArgumentError
from realtime.pipelines.clock import Clock, SystemClock
from realtime.pipelines.worker import WorkerPool
from realtime.testing.devices import SOUND_RATE_HZ, Camera, Microphone
from realtime.testing.listener import Listener
from realtime.testing.loopback import connect, connected, make_peer, on_loopback
from realtime.testing.peer_script import Pause, Say, Show, Step, Turn
from realtime.testing.recording import Recording
from realtime.testing.showing import Synthesizer, pictures_of, sound_of

__all__ = ["SyntheticPeer"]

_QUIET_SECONDS = 0.8
_STEP_SECONDS = 0.1
_CLOSE_SECONDS = 5.0


class SyntheticPeer:
    """A camera and a microphone at the other end of a WebRTC call on this machine.

    ::

        async with SyntheticPeer() as peer, RealtimeSession(model) as session:
            bot = make_peer()
            session.attach(bot)
            await peer.call(bot)
            peer.show("red")
            reply = await peer.turn(Path("question.wav"))

    It speaks when it is told to and is silent otherwise; the camera shows one thing until it is told to show another.
    Nothing here waits for ever: what has not happened after `deadline_seconds` is a `TimeoutError` that says what was
    waited for.

    Attributes:
        pc: Its aiortc peer connection.
        microphone: Its microphone; None without one.
        camera: Its camera; None without one.
        listener: Its ear, which counts the `frames` and the `sound_seconds` that came.
        video_frames: How many video frames came.
    """

    def __init__(
        self,
        *,
        microphone: bool = True,
        camera: bool = True,
        picture: Any = "gray",
        size: tuple[int, int] = (320, 240),
        fps: float = 10.0,
        synthesizer: Synthesizer | None = None,
        deadline_seconds: float = 60.0,
        clock: Clock | None = None,
    ) -> None:
        """Make a peer that is not connected.

        Args:
            microphone: Whether it has one.
            camera: Whether it has one.
            picture: What the camera shows first, as for `show`.
            size: Width and height of what the camera draws; pictures are fitted into it.
            fps: Of the camera, for everything but moving pictures that bring their own pace.
            synthesizer: Speaks sentences: gives the bytes of a WAV file, or PCM16 mono at 48 kHz.
            deadline_seconds: The longest that it waits for anything.
            clock: What it keeps pace by; None: the system's.

        Raises:
            ArgumentError: A number is out of range, or the picture is none.
        """
        self._size = _check_size(size)
        self._fps = _check_above_zero("fps", fps)
        self._deadline_seconds = _check_above_zero("deadline_seconds", deadline_seconds)
        self._clock = SystemClock() if clock is None else clock
        self._synthesizer = synthesizer
        self._pool = WorkerPool("realtime-peer", max_threads=2, max_waiting=64, finite_jobs=True)
        self._member: object = self._pool.join()
        self._tasks: set[asyncio.Task[None]] = set()
        self.pc: RTCPeerConnection = make_peer()
        self.listener = Listener(self._clock)
        self.video_frames = 0
        self.microphone = Microphone(self._clock, self._pool) if microphone else None
        first = pictures_of(picture, size=self._size, fps=self._fps)
        self.camera = Camera(self._clock, self._pool, first) if camera else None
        for track in (self.microphone, self.camera):
            if track is not None:
                self.pc.addTrack(track)
        self.pc.on("track", self._receive)

    @property
    def heard(self) -> Recording:
        """What it heard: `heard.pcm` is PCM16 mono at 24 kHz, what came after ten minutes is only counted."""
        return self.listener.recording

    @property
    def spoken(self) -> Recording:
        """What its microphone gave, silence included, as `heard`."""
        return Recording() if self.microphone is None else self.microphone.recording

    # -- life -----------------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Nothing is connected yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Hang up."""
        await self.aclose()

    async def aclose(self) -> None:
        """Hang up and let everything go. Idempotent."""
        self.mute()
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self.pc.close()
        except TimeoutError:
            pass  # what it left is cancelled below
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._pool.leave(self._member)

    def mute(self) -> None:
        """End the microphone and the camera for good; the connection stays, and it still hears."""
        for track in (self.microphone, self.camera):
            if track is not None:
                track.stop()
        if self.microphone is not None:
            self.microphone.hush()

    # -- joining --------------------------------------------------------------------------------------------------------

    async def call(self, other: RTCPeerConnection) -> None:
        """Call another peer connection of this process and return once both are connected: this one offers.

        Raises:
            ConnectionError: One of them failed or was closed instead.
            TimeoutError: The deadline passed.
        """
        async with self._guard("the call to be answered"):
            await connect(self.pc, other)

    async def answer(self, other: RTCPeerConnection) -> None:
        """Be called by another peer connection of this process: that one offers.

        Raises:
            ConnectionError: One of them failed or was closed instead.
            TimeoutError: The deadline passed.
        """
        async with self._guard("the call to be connected"):
            await connect(other, self.pc)

    async def create_offer(self) -> RTCSessionDescription:
        """Begin a call whose descriptions you carry yourself, to a web server for example; `accept` takes the answer."""
        async with self._guard("an offer"):
            with on_loopback():
                await self.pc.setLocalDescription(await self.pc.createOffer())
        return self.pc.localDescription

    async def create_answer(self, offer: RTCSessionDescription) -> RTCSessionDescription:
        """Answer an offer that you carried here yourself; `connected` waits for the rest."""
        async with self._guard("an answer"):
            await self.pc.setRemoteDescription(offer)
            with on_loopback():
                await self.pc.setLocalDescription(await self.pc.createAnswer())
        return self.pc.localDescription

    async def accept(self, answer: RTCSessionDescription) -> None:
        """Take the answer to `create_offer`, and return once connected.

        Raises:
            ConnectionError: The connection failed or was closed.
            TimeoutError: The deadline passed.
        """
        await self.pc.setRemoteDescription(answer)
        await self.connected()

    async def connected(self) -> None:
        """Return once connected.

        Raises:
            ConnectionError: The connection failed or was closed.
            TimeoutError: The deadline passed.
        """
        async with self._guard("the connection"):
            await connected(self.pc)

    # -- the script -----------------------------------------------------------------------------------------------------

    async def play(self, *steps: Step) -> None:
        """Do one step after another: `Say`, `Show`, `Pause`, `Turn`.

        Raises:
            TimeoutError: A step did not end before the deadline.
        """
        for step in steps:
            match step:
                case Say():
                    await self.say(step.what)
                case Show():
                    self.show(step.picture)
                case Pause():
                    await self.pause(step.seconds)
                case Turn():
                    await self.turn(step.what)
                case _:
                    assert_never(step)

    async def say(self, what: Any, *, rate_hz: int = SOUND_RATE_HZ) -> None:
        """Speak; returns when the last sample has been given to the connection.

        Args:
            what: PCM16 mono bytes; a WAV file, as bytes or as a `Path`; a sentence, if there is a synthesizer; or a
                callable that gives PCM16 mono at 48 kHz in pieces of exactly 20 ms.
            rate_hz: Of bare PCM.

        Raises:
            ArgumentError: It is nothing that can be said, or there is no microphone.
            TimeoutError: Nobody took it before the deadline.
        """
        if self.microphone is None:
            raise ArgumentError("microphone", None, "a SyntheticPeer with a microphone")
        sound = sound_of(what, rate_hz=rate_hz, synthesizer=self._synthesizer)
        self.listener.mark()
        saying = asyncio.get_running_loop().create_task(self.microphone.say(sound))
        try:
            taken = -1
            while (
                not saying.done() and taken != self.microphone.frames
            ):  # a long sound may take longer than the deadline
                taken = self.microphone.frames
                await asyncio.wait({saying}, timeout=self._deadline_seconds)
            if not saying.done():
                raise self._late("what it says to be taken")
            saying.result()
        finally:
            saying.cancel()

    def show(self, picture: Any) -> None:
        """Turn the camera to something, until it is turned again.

        Args:
            picture: A whole number, drawn large on white; a color, by name or as `(r, g, b)`; a picture of any kind that
                `realtime.encode` takes, an `ImageContent`, or the `Path` of one; an iterable of `av.VideoFrame`s, after
                which the last one stays; or callables that open moving pictures, shown in a loop.

        Raises:
            ArgumentError: It is nothing that can be shown, or there is no camera.
        """
        if self.camera is None:
            raise ArgumentError("camera", None, "a SyntheticPeer with a camera")
        self.camera.show(pictures_of(picture, size=self._size, fps=self._fps))

    async def pause(self, seconds: float) -> None:
        """Be silent for a while: so much silence is given to the connection, also where the machine is slow."""
        microphone = self.microphone
        before = 0 if microphone is None else microphone.frames
        end = self._clock.now() + seconds
        await self._clock.sleep_until(end)
        while microphone is not None and before and microphone.readyState == "live":
            late = self._clock.now() - end
            if microphone.seconds_of(microphone.frames - before) >= seconds or late >= self._deadline_seconds:
                return
            await self._clock.sleep_until(self._clock.now() + _STEP_SECONDS)

    async def turn(self, what: Any, *, rate_hz: int = SOUND_RATE_HZ) -> bytes:
        """Speak, and listen to the reply to its end.

        Args:
            what: As for `say`.
            rate_hz: Of bare PCM.

        Returns:
            The reply: PCM16 mono at 24 kHz.

        Raises:
            TimeoutError: No reply came, or it did not end, before the deadline.
        """
        await self.say(what, rate_hz=rate_hz)
        return await self.hears_reply()

    async def hears(self, seconds: float = 0.1) -> None:
        """Return once so much sound, silence not counted, has come since this peer last began to speak.

        Raises:
            TimeoutError: It did not come before the deadline.
        """
        async with self._guard(f"{seconds:g} s of sound"):
            await self._until(lambda: self.listener.fresh_seconds >= seconds)

    async def hears_reply(self, *, quiet_seconds: float = _QUIET_SECONDS) -> bytes:
        """Return once a reply has been heard to its end; the next one begins after it.

        Args:
            quiet_seconds: The silence that ends a reply.

        Returns:
            The reply: PCM16 mono at 24 kHz, without the silence around it.

        Raises:
            TimeoutError: None came, or it did not end, before the deadline.
        """
        async with self._guard("a reply"):
            await self._until(lambda: self.listener.fresh_seconds > 0)
        async with self._guard("the end of a reply"):
            while not self.listener.quiet_for(quiet_seconds):
                await self._clock.sleep_until(self._clock.now() + _STEP_SECONDS)
        sound = self.listener.fresh_sound()
        self.listener.mark()
        return sound

    # -- within ---------------------------------------------------------------------------------------------------------

    async def _until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self.listener.changed.clear()
            await self.listener.changed.wait()

    @asynccontextmanager
    async def _guard(self, what: str) -> AsyncGenerator[None]:
        limit = asyncio.timeout(self._deadline_seconds)
        try:
            async with limit:
                yield
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise self._late(what) from error

    def _late(self, what: str) -> TimeoutError:
        return TimeoutError(f"the peer waited for {what}, {self._deadline_seconds:g} s in vain")

    def _receive(self, track: MediaStreamTrack) -> None:
        work = self.listener.listen(track) if track.kind == "audio" else self._watch(track)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watch(self, track: MediaStreamTrack) -> None:
        while True:
            try:
                await track.recv()  # pyright: ignore[reportUnknownMemberType]  (Packet has an open parameter)
            except MediaStreamError:
                return
            self.video_frames += 1


def _check_size(size: Sequence[int]) -> tuple[int, int]:
    width, height = size
    for side in (width, height):
        if isinstance(side, bool) or not 16 <= side <= 4096 or side % 2:
            raise ArgumentError("size", size, "width and height, even, of 16 to 4096 pixels")
    return width, height


def _check_above_zero(argument: str, value: float) -> float:
    if isinstance(value, bool) or not 0 < value < float("inf"):
        raise ArgumentError(argument, value, "a number above 0")
    return value
