"""PCM arithmetic, WAV files and odd bytes (behaviour.md A2, A3, R2)."""

import io
import struct
import wave

import pytest

from realtime.errors import ArgumentError
from realtime.pcm import (
    OddByteCarry,
    bytes_to_ms,
    bytes_to_samples,
    ms_to_bytes,
    ms_to_samples,
    read_wav,
    samples_to_ms,
    wav_bytes,
)

PCM = struct.pack("<6h", 0, 1, -1, 32767, -32768, 12345)


@pytest.mark.parametrize("rate_hz", [8000, 16000, 22050, 24000, 44100, 48000])
@pytest.mark.parametrize("ms", [0, 1, 20, 33, 1000, 600_000])
def test_milliseconds_survive_a_round_trip_through_bytes(rate_hz, ms):
    assert bytes_to_ms(ms_to_bytes(ms, rate_hz), rate_hz) == ms
    assert ms_to_bytes(ms, rate_hz, channels=2) == 2 * ms_to_bytes(ms, rate_hz)


def test_a_position_is_rounded_to_the_nearest_millisecond():
    assert samples_to_ms(11, 24000) == 0
    assert samples_to_ms(12, 24000) == 1
    assert samples_to_ms(960, 48000) == 20
    assert ms_to_samples(20, 22050) == 441


def test_an_odd_byte_is_no_sample():
    assert bytes_to_samples(33) == 16
    assert bytes_to_samples(7, channels=2) == 1


@pytest.mark.parametrize("rate_hz", [0, -1, 24000.0, True, None, "24000"])
def test_a_rate_that_is_none_is_refused_by_name(rate_hz):
    with pytest.raises(ArgumentError, match="rate_hz must be an int"):
        samples_to_ms(1, rate_hz)


@pytest.mark.parametrize("ms", [float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused_by_name(ms):
    with pytest.raises(ArgumentError, match="ms must be a finite number"):
        ms_to_samples(ms, 24_000)


def test_no_channel_is_refused_by_name():
    for act in (bytes_to_samples, lambda count, channels: bytes_to_ms(count, 24_000, channels)):
        with pytest.raises(ArgumentError, match="channels must be"):
            act(100, 0)


@pytest.mark.parametrize("channels", [1, 2])
def test_a_wav_file_is_what_the_standard_library_reads(channels):
    with wave.open(io.BytesIO(wav_bytes(PCM, 24000, channels)), "rb") as read:
        assert (read.getframerate(), read.getnchannels(), read.getsampwidth()) == (24000, channels, 2)
        assert read.readframes(100) == PCM


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_a_wav_file_is_read_back_as_it_was_written(channels):
    assert read_wav(wav_bytes(PCM, 16000, channels)) == (PCM, 16000, channels)


def test_half_a_sample_is_not_written():
    with pytest.raises(ArgumentError, match="pcm must be whole"):
        wav_bytes(PCM[:-1], 24000)
    with pytest.raises(ArgumentError, match="pcm must be whole"):
        wav_bytes(PCM[:6], 24000, channels=2)


@pytest.mark.parametrize(
    ("pcm", "rate_hz", "channels", "argument"),
    [("text", 24000, 1, "pcm"), (None, 24000, 1, "pcm"), (PCM, 10**10, 1, "rate_hz"), (b"", 8000, 40_000, "channels")],
)
def test_what_a_wav_file_cannot_hold_is_refused_by_name(pcm, rate_hz, channels, argument):
    with pytest.raises(ArgumentError, match=f"^{argument} must be"):
        wav_bytes(pcm, rate_hz, channels)


def _wav(fmt: bytes, data: bytes, *, before: bytes = b"", data_size: int | None = None) -> bytes:
    size = len(data) if data_size is None else data_size
    body = b"WAVE" + before + b"fmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", size) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _fmt(encoding: int, bits: int, channels: int = 1, rate_hz: int = 8000) -> bytes:
    block = channels * bits // 8
    return struct.pack("<HHIIHH", encoding, channels, rate_hz, rate_hz * block, block, bits)


@pytest.mark.parametrize(
    ("encoding", "bits", "data"),
    [
        (1, 8, bytes([128, 0, 255])),
        (1, 16, struct.pack("<3h", 0, -32768, 32512)),
        (1, 24, b"\0\0\0" + b"\0\0\x80" + b"\0\0\x7f"),
        (1, 32, struct.pack("<3i", 0, -(2**31), 32512 << 16)),
        (3, 32, struct.pack("<3f", 0.0, -1.0, 32512 / 32767)),
    ],
)
def test_every_common_width_becomes_sixteen_bit(encoding, bits, data):
    pcm, rate_hz, channels = read_wav(_wav(_fmt(encoding, bits), data))
    zero, low, high = struct.unpack("<3h", pcm)
    assert (zero, rate_hz, channels) == (0, 8000, 1)
    assert low in {-32768, -32767}
    assert high == 32512


def test_floats_that_are_no_sound_become_silence_or_full_scale():
    data = struct.pack("<4f", float("nan"), 2.0, -2.0, float("inf"))
    pcm, _, _ = read_wav(_wav(_fmt(3, 32), data))
    assert struct.unpack("<4h", pcm) == (0, 32767, -32767, 32767)


def test_the_extensible_format_names_its_encoding_further_on():
    guid = struct.pack("<H", 1) + bytes.fromhex("000000001000800000aa00389b71")
    fmt = _fmt(0xFFFE, 16) + struct.pack("<HHI", 22, 16, 4) + guid
    assert read_wav(_wav(fmt, PCM))[0] == PCM


def test_chunks_that_say_nothing_of_sound_are_skipped_even_of_odd_length():
    assert read_wav(_wav(_fmt(1, 16), PCM, before=b"LIST\x03\0\0\0abc\0"))[0] == PCM


def test_a_file_of_nothing_but_headers_is_given_up_on():
    """Made to keep a reader busy: the samples stand behind more chunks than any file has."""
    sound = wav_bytes(b"\x01\x00", 8000)
    empty = b"junk\x00\x00\x00\x00"
    assert read_wav(sound[:12] + empty * 900 + sound[12:])[0] == b"\x01\x00"
    with pytest.raises(ArgumentError, match="without a data chunk"):
        read_wav(sound[:12] + empty * 1_000 + sound[12:])


@pytest.mark.parametrize("data_size", [0, 0xFFFFFFFF, 1000])
def test_a_streamed_or_cut_off_file_gives_what_is_there(data_size):
    assert read_wav(_wav(_fmt(1, 16), PCM, data_size=data_size))[0] == PCM


@pytest.mark.parametrize(
    "behind", [b"LIST\x04\x00\x00\x00INFO", b"id3 \x03\x00\x00\x00abc\x00", b"id3 \x03\x00\x00\x00abc"]
)
def test_an_empty_recording_with_other_chunks_behind_it_is_empty(behind):
    """What follows is a title or a comment, not sound of unknown length."""
    empty = wav_bytes(b"", 24_000)
    assert read_wav(empty + behind) == (b"", 24_000, 1)
    assert read_wav(empty + PCM) == (PCM, 24_000, 1)


def test_a_sample_cut_in_two_at_the_end_is_left_out():
    assert read_wav(_wav(_fmt(1, 16), PCM[:-1], data_size=len(PCM)))[0] == PCM[:-2]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "RIFF WAVE"),
        (b"OggS" * 10, "RIFF WAVE"),
        (b"RIFF\0\0\0\0WAVE", "with samples"),
        (_wav(_fmt(2, 4), PCM), "encoding 0x0002, 4 bit"),
        (_wav(_fmt(1, 12), PCM), "12 bit"),
        (_wav(_fmt(1, 16, channels=0), PCM), "0 channels"),
        (_wav(b"\1\0", PCM), "whole fmt chunk"),
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0", "before any fmt chunk"),
    ],
)
def test_what_is_no_usable_wav_file_is_refused_with_the_reason(data, said):
    with pytest.raises(ArgumentError, match=said):
        read_wav(data)


@pytest.mark.parametrize("cuts", [(3, 5, 1, 3), (1,) * 12, (12,), (0, 7, 0, 5), (11, 1)])
def test_odd_chunks_of_one_item_lose_and_shift_nothing(cuts):
    """A2, B55."""
    carry, out, at = OddByteCarry(), b"", 0
    for cut in cuts:
        given = carry.push(PCM[at : at + cut], "item")
        assert len(given) % 2 == 0
        out += given
        at += cut
    assert out == PCM
    assert carry.held_bytes == 0


def test_a_new_item_starts_without_the_last_items_odd_byte():
    """A2, B55."""
    carry = OddByteCarry()
    assert carry.push(b"\1\2\3", "one") == b"\1\2"
    assert carry.push(b"\4\5", "two") == b"\4\5"
    assert carry.dropped_bytes == 1


def test_the_odd_byte_at_the_end_of_an_item_is_dropped_and_counted():
    """A2, B55: 4095 bytes are 2047 samples."""
    carry = OddByteCarry()
    assert len(carry.push(bytes(4095), "one")) == 4094
    assert carry.finish() == 1
    assert carry.finish() == 0
    assert carry.push(b"\1\2", "one") == b"\1\2"
    assert carry.dropped_bytes == 1


def test_samples_of_several_channels_are_carried_whole():
    carry = OddByteCarry(sample_bytes=4)
    assert carry.push(bytes(7)) == bytes(4)
    assert carry.held_bytes == 3
    assert carry.push(bytes(1)) == bytes(4)


def test_what_was_given_is_not_kept_or_changed():
    chunk = bytearray(b"\1\2\3")
    carry = OddByteCarry()
    given = carry.push(chunk)
    chunk[:] = b"\5\5\5"
    assert given + carry.push(b"\4") == b"\1\2\3\4"
