"""RTP payloads to whole encoded frames, through loss, disorder and padding; nothing is decoded."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Any

import av
import numpy as np
import pytest
from aiortc.codecs.h264 import H264Encoder
from aiortc.codecs.vpx import Vp8Encoder

from realtime.tracks.encoded_video import BEGINS_KEY_FRAME, EncodedFrame, FrameAssembler

Packet = tuple[int, int, bytes, bool]
CODECS = ["vp8", "h264"]


def _packets(codec: str, frames: int = 8, *, keys: tuple[int, ...] = ()) -> list[list[Packet]]:
    """Frames of several packets each: (number, time stamp, payload, marker)."""
    encoder: Any = Vp8Encoder() if codec == "vp8" else H264Encoder()
    encoder.target_bitrate = 3_000_000
    rng = np.random.default_rng(3)
    number, made = 0, []
    for index in range(frames):
        picture = rng.integers(16, 236, (360, 320), dtype=np.uint8)
        frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
        frame.pts, frame.time_base = index * 3_000, Fraction(1, 90_000)
        payloads, _ = encoder.encode(frame, index in keys)
        packets = []
        for at, payload in enumerate(payloads):
            packets.append((number & 0xFFFF, index * 3_000, payload, at == len(payloads) - 1))
            number += 1
        made.append(packets)
    return made


def _flat(frames: list[list[Packet]]) -> list[Packet]:
    return [packet for frame in frames for packet in frame]


def _feed(assembler: FrameAssembler, packets: list[Packet]) -> list[EncodedFrame]:
    return [
        frame
        for number, timestamp, payload, marker in packets
        for frame in assembler.push(number, timestamp, payload, marker=marker)
    ]


def _feed_shortly(assembler: FrameAssembler, packets: list[Packet]) -> list[EncodedFrame]:
    """As the receiver does it: `push` only where neither `continues` nor `ends` says that it is not needed."""
    frames: list[EncodedFrame] = []
    for number, timestamp, payload, marker in packets:
        if not marker and assembler.continues(number, timestamp, payload):
            continue
        frame = assembler.ends(number, timestamp, payload) if marker else None
        frames += [frame] if frame is not None else assembler.push(number, timestamp, payload, marker=marker)
    return frames


@pytest.mark.parametrize("codec", CODECS)
def test_frames_are_whole_with_their_last_packet(codec):
    sent = _packets(codec)
    assert len(sent[0]) > 2
    assembler = FrameAssembler(codec)
    for index, packets in enumerate(sent):
        assert _feed(assembler, packets[:-1]) == []
        (frame,) = _feed(assembler, packets[-1:])
        assert frame.payloads == tuple(payload for _, _, payload, _ in packets)
        assert frame.timestamp == index * 3_000
        assert frame.is_key == (index == 0)


@pytest.mark.parametrize("codec", CODECS)
def test_disorder_and_duplicates_change_nothing(codec):
    packets = _flat(_packets(codec))
    shuffled = [packets[0]]
    for a, b in zip(packets[1::2], packets[2::2], strict=False):
        shuffled += [b, a, a]
    assert _feed(FrameAssembler(codec), shuffled) == _feed(FrameAssembler(codec), packets[: 2 * len(shuffled) // 3 + 1])


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("lost_at", [0, 1, -1])
def test_after_a_loss_frames_are_told_as_lost_until_the_next_key_frame(codec, lost_at):
    sent = _packets(codec, keys=(5,))
    del sent[2][lost_at]
    assembler = FrameAssembler(codec)
    frames = _feed(assembler, _flat(sent))
    while assembler.waits:
        frames += assembler.give_up()
    by_time = {frame.timestamp // 3_000: frame for frame in frames}
    assert [bool(by_time[index].payloads) for index in (0, 1, 5, 6, 7)] == [True] * 5
    assert not any(by_time[index].payloads for index in (2, 3, 4) if index in by_time)
    assert by_time[5].is_key
    assert assembler.lost == 1


@pytest.mark.parametrize("codec", CODECS)
def test_a_stream_that_is_joined_in_the_middle_waits_for_a_key_frame(codec):
    sent = _packets(codec, keys=(4,))
    frames = _feed(FrameAssembler(codec), _flat(sent[1:]))
    assert [bool(frame.payloads) for frame in frames] == [False] * 3 + [True] * 4


@pytest.mark.parametrize("codec", CODECS)
def test_padding_between_frames_is_no_frame_and_no_loss(codec):
    """What browsers send to probe the path: packets without content take numbers, with the last frame's time stamp."""
    sent = _packets(codec)
    numbered: list[Packet] = []
    for packets in sent:
        numbered += packets
        numbered += [(0, packets[0][1], b"", False)] * 2
    numbered = [(index, *packet[1:]) for index, packet in enumerate(numbered)]
    frames = _feed(FrameAssembler(codec), numbered)
    assert [bool(frame.payloads) for frame in frames] == [True] * 8


@pytest.mark.parametrize("codec", CODECS)
def test_a_frame_without_a_marker_ends_where_the_next_begins(codec):
    packets = [(number, timestamp, payload, False) for number, timestamp, payload, _ in _flat(_packets(codec))]
    frames = _feed(FrameAssembler(codec), packets)
    assert [bool(frame.payloads) for frame in frames] == [True] * 7


@pytest.mark.parametrize("codec", CODECS)
def test_what_waits_behind_a_gap_is_bounded(codec):
    packets = _flat(_packets(codec, 2))
    assembler = FrameAssembler(codec)
    _feed(assembler, packets)
    start = len(packets) + 1
    for number in range(start, start + 2_000):
        assembler.push(number, 9_000, packets[-1][2], marker=False)
        assert len(assembler.missing()) <= 1
    assert assembler.lost == 1


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("payload", [b"\x90", b"\x90\x80", b"\xff\xff", b"\x10", b"\x18\x00", b"\x7c", b"\x78\x00\x05"])
def test_payloads_that_are_cut_off_begin_nothing_and_break_nothing(codec, payload):
    BEGINS_KEY_FRAME[codec](payload)
    assembler = FrameAssembler(codec)
    assert all(not frame.is_key for frame in assembler.push(1, 0, payload, marker=True))


def test_h264_key_frames_are_known_behind_a_delimiter_and_in_aggregates():
    parameter_sets = b"\x78\x00\x04\x67\x42\x00\x1f\x00\x02\x68\xce"
    assert BEGINS_KEY_FRAME["h264"](parameter_sets)
    assert BEGINS_KEY_FRAME["h264"](b"\x7c\x85\x00")
    assert not BEGINS_KEY_FRAME["h264"](b"\x7c\x05\x00")  # a later fragment
    assembler = FrameAssembler("h264")
    _feed(assembler, [(0, 0, b"\x67\x42\x00\x1f", False), (1, 0, b"\x65\x88", True)])
    (frame,) = _feed(assembler, [(2, 3_000, b"\x09\xf0", False), (3, 3_000, b"\x65\x88", True)])
    assert frame.is_key


def test_packets_that_come_again_seconds_late_do_not_end_the_stream():
    """Without RTX a retransmission looks like any packet: two in a row are no sender that began anew."""
    assembler = FrameAssembler("vp8")
    key, other = b"\x10\x00" + b"k" * 20, b"\x10\x01" + b"i" * 20
    packets = [(number, number * 3_000, other if number else key, True) for number in range(330)]
    _feed(assembler, [packet for packet in packets[:300] if packet[0] not in (100, 101)])
    while assembler.waits:
        assembler.give_up()
    assert assembler.lost == 1
    assert _feed(assembler, packets[100:102]) == []
    assert len(_feed(assembler, packets[300:])) == 30
    assert assembler.lost == 1


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("seed", range(8))
def test_the_short_form_gives_the_same_frames(codec, seed):
    """Lost, twice, late, padded, without a marker: whatever the short form takes, `push` had taken."""
    chance = random.Random(seed)
    rough: list[Packet] = []
    for number, timestamp, payload, marker in _flat(_packets(codec, 12, keys=(0, 5))):
        kind = chance.choices(("whole", "lost", "twice", "late", "empty", "unmarked"), (80, 4, 4, 4, 4, 4))[0]
        if kind == "lost":
            continue
        packet = (number, timestamp, b"" if kind == "empty" else payload, marker and kind != "unmarked")
        rough += [packet] * (2 if kind == "twice" else 1)
        if kind == "late" and len(rough) > 3:
            rough[-1], rough[-3] = rough[-3], rough[-1]
    one, other = FrameAssembler(codec), FrameAssembler(codec)
    assert _feed(one, rough) == _feed_shortly(other, rough)
    assert one.give_up() == other.give_up()
    assert one.missing() == other.missing()
    assert one.lost == other.lost


def test_the_short_form_takes_no_frame_whose_beginning_is_unknown():
    """H.264 joined in the middle of a key frame: its other slices alone are no picture."""
    assembler = FrameAssembler("h264")
    slice_of_key = b"\x65" + bytes(20)
    assert assembler.push(1, 0, slice_of_key, marker=False) == []
    assert not assembler.continues(2, 0, slice_of_key)
    assert assembler.push(2, 0, slice_of_key, marker=False) == []
    [frame] = assembler.push(3, 0, slice_of_key, marker=True)
    assert not frame.payloads
    assert not frame.is_key


def test_the_short_form_lets_no_frame_grow_beyond_the_bound(monkeypatch):
    """However a frame's last packet shows: by its marker, or by the next frame's first."""
    monkeypatch.setattr("realtime.tracks.encoded_video.MAX_FRAME_BYTES", 1_000)
    assembler = FrameAssembler("vp8")
    key, part = b"\x10\x00" + bytes(598), b"\x00" + bytes(599)
    assembler.push(0, 0, key, marker=True)
    assert assembler.continues(1, 3_000, b"\x10\x01" + bytes(598))
    assert not assembler.continues(2, 3_000, part)
    assembler.push(2, 3_000, part, marker=False)
    frames = assembler.push(3, 6_000, b"\x10\x01", marker=False)
    assert [frame.payloads for frame in frames] == [()]
