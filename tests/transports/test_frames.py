"""`realtime.transports.frames`: our frames are those of the library (RFC 6455)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.streams import StreamReader

from realtime.transports import frames
from realtime.transports.frames import TextFrames


def read(frame, *, mask=True):
    """What a server reads."""
    reader = StreamReader()
    reader.feed_data(frame)
    reader.feed_eof()
    parser = Frame.parse(reader.read_exact, mask=mask)
    try:
        next(parser)
    except StopIteration as done:
        return done.value
    raise AssertionError("the frame is not whole")


@given(text=st.text(max_size=300))
def test_a_server_reads_what_was_written(text):
    frame = read(TextFrames().make(text.encode()))
    assert frame.opcode is Opcode.TEXT
    assert frame.fin
    assert frame.data == text.encode()


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 1_400, 65_535])
def test_every_length_is_said_in_the_fewest_bytes(size):
    data = bytes(size)
    frame = TextFrames().make(data)
    assert read(frame).data == data
    assert len(frame) == len(Frame(Opcode.TEXT, data).serialize(mask=True))


def test_longer_messages_are_the_library_s_to_write():
    assert TextFrames().make(bytes(65_536)) is None


def test_without_masking_in_c_nothing_is_written(monkeypatch):
    monkeypatch.setattr(frames, "_mask", None)
    assert TextFrames().make(b"data") is None


def test_every_frame_has_a_key_of_its_own():
    made = TextFrames()
    keys = [made.make(b"four")[2:6] for _ in range(3 * frames._KEYS)]
    assert len(set(keys)) > len(keys) - 5


@given(sizes=st.lists(st.sampled_from([0, 5, 125, 126, 1_400, 1_401]), max_size=12))
def test_lengths_may_change_at_any_time(sizes):
    made = TextFrames()
    for size in sizes:
        assert read(made.make(bytes(size))).data == bytes(size)
