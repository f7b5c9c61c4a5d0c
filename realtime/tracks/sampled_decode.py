"""Decodes only the pictures that somebody will look at.

Owns: `VideoIntake`, the policy of one remote camera or screen. Driven by the receiver, packet by packet, and by whoever looks
(`PictureSink`): it is asked before anything is decoded, though not about each frame while it says that it will want none
(`Lull`). Encoded frames are kept from the last key frame on. A picture that is wanted is decoded from there while that is cheap;
else the sender is asked for a key frame, and that and the next one or two are decoded, since a key frame on its own is a poor
picture at a fixed bit rate, unless it says that it is a good one.
Decoding runs on a worker thread, one job at a time, and what is made of the picture there is made in the same job.
Everything held is bounded; nothing is ever waited for by the sender.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from realtime.tracks import h264_header, vp8_header
from realtime.tracks.chain_worker import ChainWorker
from realtime.tracks.encoded_video import EncodedFrame, FrameAssembler
from realtime.tracks.key_requests import KeyRequests
from realtime.tracks.picture_decoder import CLOCK_HZ, ChainedFrame, FrameChain, UndecodedFrame
from realtime.tracks.picture_sink import Feedback, Lull, PictureSink

__all__ = ["Feedback", "PictureSink", "VideoIntake"]

logger = logging.getLogger("realtime.tracks.sampled_decode")

SETTLED_FRAMES = {"vp8": 1, "h264": 2}
"""So many frames after a key frame the picture is as good as it gets soon (docs/frame-cost.md) …"""
_KEY_GRADE = {"vp8": vp8_header.key_grade, "h264": h264_header.key_grade}
"""… unless the key frame says that it is fine; …"""
SETTLED_SECONDS = 0.150
"""… or after so long, for senders of few frames a second."""
_REST_SECONDS = 30.0
"""Asking costs a sender bits. One of whose answers two in a row are so coarse that a second does not make them good (docs/frame-cost.md) is not
asked for so long, and every frame is decoded: then its rate may be another."""
CHEAP_FRAMES = 8
"""As many frames are decoded to get at a picture without asking for a key frame: as much work as asking."""
CHAIN_FRAMES = 90
CHAIN_BYTES = 2_000_000
"""The longest chain that is kept, where key frames can be asked for. Four times as much where they never came."""
PATIENCE_SECONDS = 1.0
"""A key frame that was asked for is waited for so long; then the whole chain is decoded instead."""
_GAP_SECONDS = 0.25
"""So long a lost packet is waited for when its frame matters …"""
_IDLE_GAP_SECONDS = 0.04
"""… and when it does not."""
_ASK_AGAIN_SECONDS = 0.06
_UNKNOWN_SIZE = (1280, 720)
"""Until a picture was decoded. Only estimates of memory depend on it."""
_ROUNDING_MS = 2
"""Media times are told in whole milliseconds: a lull ends earlier by more than that can make of it."""
_MAX_MISSING = 64
"""With more packets missing a key frame is cheaper than sending them again."""


class VideoIntake:
    """One remote video stream.

    Attributes:
        continues: Takes a packet of the stream that the last one was of, if it goes on with its frame and that is all there is to
            it (`FrameAssembler.continues`).
        frames: Frames that came.
        undecoded: Of them, never decoded.
        faults: Runs of frames that could not be decoded.
    """

    __slots__ = (
        "_also_to",
        "_assembler",
        "_chain",
        "_codec",
        "_decoded_at",
        "_decodes_all",
        "_feedback",
        "_gap_since",
        "_is_near",
        "_last_at",
        "_lull",
        "_lull_end",
        "_missing_at",
        "_pts",
        "_requests",
        "_rests_until",
        "_settling",
        "_sink",
        "_size",
        "_source",
        "_step",
        "_timestamp",
        "_wanted_since",
        "_worker",
        "continues",
        "faults",
        "frames",
        "undecoded",
    )

    def __init__(self, feedback: Feedback) -> None:
        """Prepare; nobody looks yet.

        Args:
            feedback: The way to the sender.
        """
        self._feedback = feedback
        self._decodes_all = False
        self._also_to: Callable[[Any], None] | None = None
        self._sink: PictureSink | None = None
        self._codec = ""
        self._source: int | None = None
        self._assembler = FrameAssembler("vp8")
        self.continues = self._assembler.continues
        self._chain: FrameChain | None = None
        self._settling = 0
        """As `SETTLED_FRAMES`, of the last key frame; of the codec, before there was one."""
        self._worker = ChainWorker(self._on_decoded, self._on_failed)
        self._decoded_at: int | None = None
        """`frames` when a picture was last decoded."""
        self._size = _UNKNOWN_SIZE
        self._timestamp: int | None = None
        self._pts = 0
        self._step = CLOCK_HZ // 30
        """From one frame to the next, about."""
        self._last_at = 0.0
        self._wanted_since: float | None = None
        self._is_near: bool | None = None
        """Whether the picture that is due soon will be cheap to get at; None: none is due soon."""
        self._lull: Lull | None = None
        """While it lasts nobody wants a frame, and there is nothing to see to but that it is kept …"""
        self._lull_end = 0.0
        """… up to this media time, in ticks."""
        self._requests = KeyRequests(feedback.request_key_frame)
        self._rests_until: float | None = None
        """Every frame is decoded up to then, because asking costs too much; None: not for that reason."""
        self._gap_since: float | None = None
        self._missing_at = 0.0
        self.frames = 0
        self.undecoded = 0
        self.faults = 0

    @property
    def key_requests(self) -> int:
        """How often a key frame was asked for."""
        return self._requests.count

    @property
    def is_looked_at(self) -> bool:
        """Whether there is somebody who looks."""
        return self._sink is not None

    def use(self, sink: PictureSink | None, *, decodes_all: bool = False) -> None:
        """From now on somebody looks, perhaps at every frame, or nobody does."""
        self._sink = sink
        self._lull = None
        self._decodes_all = decodes_all
        self._rests_until = None
        self._wanted_since = None
        if sink is None:
            self._chain = None
        if sink is None or self._worker.is_busy:  # with a job of whoever looked before: it may never answer
            self._worker.stop()

    def decode_all(self, also_to: Callable[[Any], None]) -> None:
        """Decode every frame from now on, for somebody who reads the track itself.

        Args:
            also_to: Takes each picture.
        """
        self._decodes_all = True
        self._rests_until = None
        self._lull = None
        self._also_to = also_to

    def decode_wanted(self, *, decodes_all: bool = False) -> None:
        """Nobody reads the track itself any more; whoever looks wants every frame, or not."""
        self._decodes_all = decodes_all
        self._rests_until = None
        self._also_to = None

    # -- packets --------------------------------------------------------------------------------------------------------

    def receive(  # noqa: PLR0917  (hot path: names cost)
        self,
        codec: str,
        source: int,
        number: int,
        timestamp: int,
        payload: bytes,
        is_last: bool,
        is_again: bool = False,
        /,
    ) -> None:
        """Take a packet.

        Args:
            codec: Its codec, in small letters (`realtime.tracks.encoded_video.VIDEO_CODECS`).
            source: Which stream it is of (SSRC).
            number: Its sequence number.
            timestamp: Its frame's time stamp.
            payload: Its content.
            is_last: It is its frame's last packet.
            is_again: It is a retransmission, and was marked as one.
        """
        # hot path: the first and the last packet of every frame
        if source != self._source or codec != self._codec:
            self._begin_stream(codec, source)
        elif is_last:
            if self._lull is not None and self._passes_over(number, timestamp, payload):
                return
        elif self.continues(number, timestamp, payload):
            return
        frames = self._assembler.push(number, timestamp, payload, marker=is_last, is_again=is_again)
        if frames:
            self._take(frames)
        if self._assembler.waits:
            self._wait_for_missing()
        else:
            self._gap_since = None

    def _begin_stream(self, codec: str, source: int) -> None:
        self._source, self._codec = source, codec
        self._assembler = FrameAssembler(codec)
        self.continues = self._assembler.continues
        self._settling = SETTLED_FRAMES[codec]
        self._chain = None
        self._lull = None
        self._gap_since = None
        if self._timestamp is not None:
            self._timestamp = None
            self._pts += CLOCK_HZ // 30  # another sender: its time stamps tell nothing about this one's

    def tick(self) -> None:
        """Some time has passed: a picture may be wanted although no packet comes. About four times a second."""
        sink = self._sink
        if sink is None or self._timestamp is None:
            return
        if self._assembler.waits:
            self._wait_for_missing()
        now = sink.now()
        if now - self._last_at >= SETTLED_SECONDS and not self._worker.is_busy and sink.is_due(self._pts_ms()):
            self._pursue(now)

    def _wait_for_missing(self) -> None:
        """Packets wait behind a gap: ask for what is missing, or give it up."""
        now = self._sink.now() if self._sink is not None else 0.0
        matters = self._sink is not None and (self._chain is not None or self._requests.is_pending)
        if self._gap_since is None:
            self._gap_since = now
            self._missing_at = float("-inf")
        patience = _GAP_SECONDS if matters else _IDLE_GAP_SECONDS
        if self._sink is None or now - self._gap_since >= patience:
            self._gap_since = None
            self._take(self._assembler.give_up())
        elif matters and now - self._missing_at >= _ASK_AGAIN_SECONDS:
            self._missing_at = now
            missing = self._assembler.missing()
            if len(missing) <= _MAX_MISSING:
                self._feedback.report_missing(missing)

    # -- frames ---------------------------------------------------------------------------------------------------------

    def _passes_over(self, number: int, timestamp: int, payload: bytes) -> bool:
        """Whether a packet ends a frame that surely nobody wants; then it is kept for those that build on it, and that is all.

        The short form of `_take` for most frames. If not, nothing has changed.
        """
        # hot path: nearly every frame
        lull, sink, last = self._lull, self._sink, self._timestamp
        assert lull is not None
        assert sink is not None
        assert last is not None
        step = (timestamp - last) & 0xFFFFFFFF
        pts = self._pts + step
        if lull.is_over or pts >= self._lull_end or not 0 < step < CLOCK_HZ:
            return False
        now = sink.now()
        if now >= lull.until:
            return False
        payloads = self._assembler.ends(number, timestamp, payload)
        if payloads is None:
            return False
        self.frames += 1
        self.undecoded += 1
        self._step += (step - self._step) // 8
        self._timestamp, self._pts, self._last_at = timestamp, pts, now
        chain = self._chain
        if chain is not None:
            self._lengthen(chain, ChainedFrame(EncodedFrame(timestamp, payloads, False), pts, now))
        return True

    def _begin_lull(self, sink: PictureSink) -> None:
        """Nobody wants the newest frame: need those after it be asked about?"""
        self._lull = lull = sink.lull() if self._worker.decoder is None else None
        if lull is not None:
            settling = SETTLED_SECONDS if self._settling else 0.0
            lead = self._requests.delay_seconds + settling  # at least `_lead_seconds`, whatever the frames' distance
            self._lull_end = (lull.until_ms - lead * 1000 - _ROUNDING_MS) * (CLOCK_HZ // 1000)

    def _take(self, frames: Sequence[EncodedFrame]) -> None:
        for frame in frames:
            self.frames += 1
            if self._timestamp is not None:
                step = _signed(frame.timestamp - self._timestamp)
                self._pts += step
                if 0 < step < CLOCK_HZ:
                    self._step += (step - self._step) // 8
            self._timestamp = frame.timestamp
            if self._sink is None:
                self.undecoded += 1
                continue
            now = self._last_at = self._sink.now()
            self._enchain(frame, now)
            self._consider(self._sink, now)

    def _enchain(self, frame: EncodedFrame, now: float) -> None:
        chained = ChainedFrame(frame, self._pts, now)
        if not frame.payloads:
            self._chain = None
        elif frame.is_key:
            if self._decodes_all and self._chain is not None and not self._worker.is_at(self._chain):
                self.undecoded += len(self._chain.frames)  # the worker, behind, never came to it
            self._chain = FrameChain(self._codec, [chained])
            grade = _KEY_GRADE[self._codec](frame.payloads)
            self._settling = 0 if grade == "fine" else SETTLED_FRAMES[self._codec]
            self._requests.receive_key(self._pts / CLOCK_HZ, is_coarse=grade == "coarse")
            if self._requests.are_costly and not self._decodes_all:
                self._rest(now)
        elif self._chain is not None:
            self._lengthen(self._chain, chained)

    def _rest(self, now: float) -> None:
        logger.info("a sender's %s key frames are coarse when asked for; all frames are decoded", self._codec)
        self._requests.forget_coarse()
        self._decodes_all, self._rests_until = True, now + _REST_SECONDS

    def _lengthen(self, chain: FrameChain, chained: ChainedFrame) -> None:
        # hot path: every frame
        length, size = chain.add(chained)
        if length <= CHAIN_FRAMES and size <= CHAIN_BYTES:
            return
        room = 1 if self._requests.answers else 4
        if length > CHAIN_FRAMES * room or size > CHAIN_BYTES * room:
            # where every frame is decoded, what the decoder has seen is not needed any more
            self._chain = self._worker.shorten(chain, CHAIN_FRAMES) if self._decodes_all else None

    def _consider(self, sink: PictureSink, now: float) -> None:
        """The newest frame came: is it, or one soon after it, wanted?"""
        # hot path: every frame that may be wanted
        self._lull = None
        if self._rests_until is not None and now >= self._rests_until:
            self._decodes_all, self._rests_until = False, None
        pts_ms = self._pts_ms()
        lead = self._lead_seconds()
        is_soon_due = self._decodes_all or sink.is_due(pts_ms + round(lead * 1000))
        if is_soon_due and (self._decodes_all or sink.is_due(pts_ms)):
            self._pursue(now)
            return
        self._wanted_since = None
        self.undecoded += 1
        chain = self._chain
        may_hold = sink.may_hold(pts_ms)
        if may_hold:
            if chain is None:
                self._requests.ask(now, self._pts / CLOCK_HZ)
            else:
                sink.receive(UndecodedFrame(chain, self._size), now)
        if not is_soon_due:
            self._is_near = None
        elif self._is_near is None:
            self._is_near = self._is_cheap(ahead=round(lead * CLOCK_HZ / self._step))
        if is_soon_due and (not self._is_near or chain is None):
            self._requests.ask(now, self._pts / CLOCK_HZ)
        self._let_decoder_go(chain)
        if not (is_soon_due or may_hold):
            self._begin_lull(sink)

    def _lead_seconds(self) -> float:
        """So long before a picture is due a key frame is asked for: it is there, and has settled, just in time."""
        return self._requests.delay_seconds + min(self._settling * self._step / CLOCK_HZ, SETTLED_SECONDS)

    def _let_decoder_go(self, chain: FrameChain | None) -> None:
        """A decoder that will not go on from where it is holds megabytes for nothing."""
        worker = self._worker
        if worker.decoder is None or worker.is_busy or self._decodes_all or not self._requests.answers:
            return
        if chain is None or (chain.is_self_contained and not self._is_cheap()):
            worker.decoder = None

    def _pursue(self, now: float) -> None:
        """A picture is wanted now: decode one if that is cheap, else see to it that it becomes so."""
        self._lull = None
        if self._wanted_since is None:
            self._wanted_since = now
        chain = self._chain
        if self._worker.is_busy:
            self.undecoded += chain is None or not self._decodes_all
        elif chain is not None and (self._decodes_all or self._is_ready(chain, now)):
            self._decode(chain)
        else:
            self.undecoded += 1
            if not self._is_settling(chain, now):
                self._requests.ask(now, self._pts / CLOCK_HZ)

    def _is_settling(self, chain: FrameChain | None, now: float) -> bool:
        """Whether a key frame came just now, and the picture only gets better."""
        return chain is not None and not self._has_settled(chain, now)

    def _has_settled(self, chain: FrameChain, now: float) -> bool:
        return len(chain.frames) > self._settling or now - chain.frames[0].arrived_at >= SETTLED_SECONDS

    def _is_ready(self, chain: FrameChain, now: float) -> bool:
        if not self._has_settled(chain, now):
            return False
        if self._is_cheap():
            return True
        waited = now - self._wanted_since if self._wanted_since is not None else 0.0
        if waited < PATIENCE_SECONDS:
            return False
        if not self._requests.answers:
            logger.info("the sender of a %s stream gives no key frames when asked; all frames are decoded", self._codec)
            self._decodes_all = True
        return True

    def _is_cheap(self, ahead: int = 0) -> bool:
        """Whether few frames are to be decoded to get at the newest one, or at one a little ahead."""
        chain = self._chain
        return chain is not None and self._worker.frames_to(chain) + ahead <= CHEAP_FRAMES

    # -- decoding -------------------------------------------------------------------------------------------------------

    def _decode(self, chain: FrameChain) -> None:
        sink = self._sink
        assert sink is not None
        since = self._decoded_at
        goes_on = self._goes_on(chain)
        if self._decodes_all:
            self.undecoded += self._worker.left_behind(chain)
        self._decoded_at = self.frames  # before the job: where it is run at once, more follows from there
        if not self._worker.decode(chain, sink, goes_on=goes_on, each=self._decodes_all):
            self._decoded_at = since

    def _goes_on(self, chain: FrameChain) -> bool:
        """Whether the next picture will probably be decoded from where this one leaves off, or this one must be."""
        since = None if self._decoded_at is None else self.frames - self._decoded_at
        return self._decodes_all or since is None or since <= CHEAP_FRAMES or not chain.is_self_contained

    def _on_decoded(
        self, sink: PictureSink, frames: list[ChainedFrame], pictures: list[Any], developed: list[Any]
    ) -> None:
        self._wanted_since = None
        self._is_near = None
        newest = pictures[-1]
        self._size = (newest.width, newest.height)
        for picture, shown in zip(pictures, developed, strict=True):
            if self._also_to is not None:
                self._also_to(picture)
            sink.receive(shown, _arrival(frames, picture))
        chain = self._chain
        if self._decodes_all and chain is not None and self._worker.has_more(chain):
            self._decode(chain)

    def _on_failed(self, error: BaseException | None) -> None:
        """Damaged, or the worker has no time. Only a key frame helps."""
        if error is not None:
            self.faults += 1
            logger.debug("decoding a %s stream failed: %s", self._codec, error)
            if self._worker.is_at(self._chain):
                self._chain = None
            self._worker.forget()

    def _pts_ms(self) -> int:
        return (self._pts * 1000 + CLOCK_HZ // 2) // CLOCK_HZ


def _arrival(frames: list[ChainedFrame], picture: Any) -> float:
    for chained in reversed(frames):
        if chained.pts == picture.pts:
            return chained.arrived_at
    return frames[-1].arrived_at


def _signed(ticks: int) -> int:
    """A difference of 32-bit time stamps, nearest to 0."""
    ticks &= 0xFFFFFFFF
    return ticks - 0x100000000 if ticks >= 0x80000000 else ticks
