"""The tracks of a session: which are read, and where their frames go.

Owns: the readers of all tracks, by source name, and the peer connections they came with. Driven by `session.py`. Every
track that was taken is drained until it ends or is removed, whether the model can use it or not (field case B43). It
never looks into a frame.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, cast
from weakref import WeakKeyDictionary

from realtime.core.events import ErrorReported
from realtime.errors import ArgumentError, UserError
from realtime.pipelines.audio import AudioInput
from realtime.pipelines.direct import JobRunner, Viewer, track_jobs
from realtime.pipelines.driver import Driver
from realtime.pipelines.statistics import TrackStatistics
from realtime.pipelines.video import VideoInput
from realtime.pipelines.worker import encode_pool
from realtime.tracks.direct import DirectReader
from realtime.tracks.peer import PeerAttachment, attach_peer
from realtime.tracks.reader import TrackReader, is_track
from realtime.tracks.reply_out import take_back_reply, watch_packets
from realtime.tracks.rtp_receiver import TrackIntake, intake_of

__all__ = ["MediaSources", "watch_packets"]

_DEFAULT_NAMES = {"audio": "microphone", "video": "camera"}


def _check_names(sources: object) -> dict[str, str]:
    """The names of tracks by media section, if they are that."""
    wanted = "names by media section, such as {'0': 'microphone', '1': 'camera'}, or None"
    names: dict[str, str] = {}
    if sources is None:
        return names
    if not isinstance(sources, Mapping):
        raise ArgumentError("sources", sources, wanted)
    for mid, name in cast("Mapping[object, object]", sources).items():
        if not (isinstance(mid, str) and isinstance(name, str) and name):
            raise ArgumentError("sources", sources, wanted)  # pyright: ignore[reportUnknownArgumentType]
        names[mid] = name
    return names


class MediaSources:
    """The tracks that a session reads."""

    def __init__(self, driver: Driver, audio: AudioInput, video: VideoInput, *, decodes_all: bool = False) -> None:
        """Start without tracks.

        Args:
            driver: The machine's.
            audio: Takes sound.
            video: Takes pictures.
            decodes_all: Decode every frame of video, looked at or not.
        """
        self._decodes_all = decodes_all
        self._run = JobRunner(encode_pool)
        self._driver = driver
        self._audio = audio
        self._video = video
        self._readers: dict[str, TrackReader | DirectReader] = {}
        self._faults: dict[str, int] = {}
        self._failing: set[str] = set()
        self._peers: list[PeerAttachment] = []
        self._closed: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
        """Peer connections that were closed before they were detached, if somebody else keeps them, and what they were sent."""

    @property
    def video_sources(self) -> list[str]:
        """The names of the cameras and screens."""
        return [name for name, reader in self._readers.items() if reader.track.kind == "video"]

    def add(self, track: Any, source: str | None) -> str:
        """Read a track.

        Args:
            track: An aiortc MediaStreamTrack or anything like one.
            source: Its name; None: ``microphone`` or ``camera``, numbered from the second on.

        Returns:
            Its name.

        Raises:
            ArgumentError: It is no track, is read already, or the name is taken or empty.
        """
        if not is_track(track):
            raise ArgumentError("track", track, "a track: an object with recv() and a kind of 'audio' or 'video'")
        for name, reader in self._readers.items():
            if reader.track is track:
                raise ArgumentError("track", track, f"a track that is not read already (this one is, as {name!r})")
        if source is None:
            source = self.free_name(_DEFAULT_NAMES[track.kind])
        if not isinstance(source, str) or not source:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ArgumentError("source", source, "a name that is not empty")
        if source in self._readers:
            raise ArgumentError("source", source, "a name that no other track of the session has")
        self._readers[source] = reader = self._make_reader(track, source)
        reader.start()
        return source

    def attach(
        self, pc: Any, reply_track: Any, sources: Mapping[str, str] | None = None, *, direct: bool = True
    ) -> None:
        """Take all tracks of a peer connection, and send it the reply. Nothing of it is kept once it is closed.

        Args:
            pc: The peer connection.
            reply_track: What it is sent.
            sources: Names of tracks by the media section (mid) that they come with; the others get default names, and so
                does one whose name is taken.
            direct: Receive its tracks ourselves, where this aiortc is known.
        """
        if any(each.peer is pc for each in self._peers):
            raise UserError("attach: this peer connection is attached already; to attach it anew, detach it first")
        names = _check_names(sources)
        attachment: list[PeerAttachment] = []
        early: list[Any] = []

        def take(track: Any) -> None:
            if not attachment:
                early.append(track)
                return
            name = names.get(attachment[0].mid_of(track) or "")
            self._add_remote(track, None if name in self._readers else name)

        def forget() -> None:
            if attachment[0] not in self._peers:
                return  # whoever was told first has detached it
            self._peers.remove(attachment[0])
            for _, reader in self._readers_of(attachment[0].tracks):
                if not reader.frames:  # aiortc ends the tracks of receivers that had begun
                    reader.track.stop()
            attachment[0].detach()
            self._closed[pc] = reply_track

        run = track_jobs if direct else None
        attachment.append(attach_peer(pc, reply_track=reply_track, on_track=take, run=run, on_closed=forget))
        self._peers.append(attachment[0])
        for track in early:
            take(track)

    async def detach(self, pc: Any) -> None:
        """Read nothing more of a peer connection and send it nothing more; neither it nor the reply track is closed.

        Raises:
            ArgumentError: It is not attached.
        """
        if pc in self._closed:
            take_back_reply(pc, self._closed.pop(pc))
            return
        attachment = next((each for each in self._peers if each.peer is pc), None)
        if attachment is None:
            raise ArgumentError("pc", pc, "a peer connection that is attached to this session")
        self._peers.remove(attachment)
        tracks = attachment.tracks
        attachment.detach()
        attachment.take_back_reply()
        leaving = self._readers_of(tracks)
        for name, reader in leaving:
            await self._leave(name, reader)
        await asyncio.gather(*(reader.aclose() for _, reader in leaving))

    def _readers_of(self, tracks: list[Any]) -> list[tuple[str, TrackReader | DirectReader]]:
        return [
            (name, reader) for name, reader in self._readers.items() if any(reader.track is each for each in tracks)
        ]

    async def remove(self, track: Any) -> None:
        """Stop reading a track, given itself or by name.

        Raises:
            ArgumentError: It is not read.
        """
        for name, reader in self._readers.items():
            if track is reader.track or track == name:
                break
        else:
            raise ArgumentError("track", track, "a track of this session, or its source name")
        await self._leave(name, reader)
        await reader.aclose()

    async def _leave(self, name: str, reader: TrackReader | DirectReader) -> None:
        """A source is none any more; what its intake holds is delivered first. Nothing is waited for."""
        if isinstance(reader, DirectReader):
            await reader.aclose()
        self._on_end(name, None)

    async def aclose(self) -> None:
        """Stop reading everything."""
        for peer in self._peers:
            peer.detach()
        self._peers.clear()
        readers = list(self._readers.values())
        self._readers.clear()
        await asyncio.gather(*(reader.aclose() for reader in readers), return_exceptions=True)
        await self._run.aclose()

    def statistics(self) -> dict[str, TrackStatistics]:
        """What came from each track that is read now."""
        return {name: self._count(name, reader) for name, reader in self._readers.items()}

    def _count(self, name: str, reader: TrackReader | DirectReader) -> TrackStatistics:
        faults = self._faults.get(name, 0)
        kind, frames, skipped = reader.track.kind, reader.frames, reader.skipped
        if isinstance(reader, TrackReader):
            return TrackStatistics(kind=kind, frames=frames, skipped=skipped, faults=faults)
        return TrackStatistics(
            kind=kind,
            frames=frames,
            skipped=skipped,
            faults=faults + reader.faults,
            undecoded=reader.undecoded,
            concealed_ms=reader.voice.concealed_ms,
        )

    def _add_remote(self, track: Any, name: str | None) -> None:
        if not self._driver.closed and all(reader.track is not track for reader in self._readers.values()):
            self.add(track, name)

    def free_name(self, stem: str) -> str:
        """A name that no track has: the stem, numbered from the second on."""
        name, number = stem, 1
        while name in self._readers:
            number += 1
            name = f"{stem}-{number}"
        return name

    def _make_reader(self, track: Any, source: str) -> TrackReader | DirectReader:
        """Who reads a track: what its packets come to, if we receive them ourselves, else its frames."""

        def end(error: BaseException | None) -> None:
            self._on_end(source, error)

        intake = intake_of(track)
        if intake is None or intake.is_wanted:
            return TrackReader(track, self._handler(track.kind, source), end)
        return DirectReader(track, intake, self._beginning(track.kind, source), end)

    def _beginning(self, kind: str, source: str) -> Callable[[TrackIntake], None]:
        """What is wanted of a track that we receive, also while the model can make nothing of it: another one may."""
        if kind == "audio":
            self._audio.add(source)
            return lambda intake: intake.listen(
                self._audio.rate_hz, self._audio.ear(source, self._failing, self._note_fault)
            )
        self._video.add(source)
        viewer = Viewer(
            self._driver,
            source,
            now=self._video.now,
            develop=lambda frame: self._video.develop(source, frame),
            receive=lambda frame, at: self._hand_on(
                lambda name, picture: self._video.receive(name, picture, at), source, frame
            ),
            run=self._run,
        )
        return lambda intake: intake.look(viewer, decodes_all=self._decodes_all)

    def _handler(self, kind: str, source: str) -> Callable[[Any], None]:
        """Who takes the frames, also while the model can make nothing of them: another one may."""
        if kind == "audio":
            self._audio.add(source)
            return lambda frame: self._hand_on(self._audio.receive, source, frame)
        self._video.add(source)
        return lambda frame: self._hand_on(self._video.receive, source, frame)

    def _hand_on(self, take: Callable[[str, Any], None], source: str, frame: Any) -> None:  # hot path: every frame
        """Give a frame away. One bad frame never stops a track; of a run of them the first is told."""
        try:
            take(source, frame)
        except Exception as error:
            self._note_fault(source, error)
        else:
            if self._failing:
                self._failing.discard(source)

    def _note_fault(self, source: str, error: Exception) -> None:
        self._faults[source] = self._faults.get(source, 0) + 1
        if source not in self._failing:
            self._failing.add(source)
            self._driver.publish(ErrorReported(error=error, where=f"track {source}"))

    def _on_end(self, source: str, error: BaseException | None) -> None:
        reader = self._readers.pop(source, None)
        if reader is None:
            return
        kind = reader.track.kind
        self._faults.pop(source, None)
        self._failing.discard(source)
        self._audio.remove(source)
        self._driver.feed(
            lambda machine, now: machine.receive_track_ended(source, kind, error, now=now), where=f"track {source}"
        )
        self._video.remove(source)
