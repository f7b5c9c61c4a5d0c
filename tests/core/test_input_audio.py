"""The user's audio on its way: behaviour.md A3, L2, field cases B41, B57."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from realtime.core.commands import AppendAudio, ClearAudio, CommitAudio
from realtime.core.input_audio import AudioTape, InputAudio


def ramp(start: int, count: int) -> bytes:
    return b"".join((value % 65536).to_bytes(2, "little") for value in range(start, start + count))


@given(st.lists(st.integers(0, 50), max_size=20), st.lists(st.integers(0, 700), max_size=10))
def test_tape_gives_back_what_was_put_on_it(chunks, cuts):
    tape = AudioTape()
    for count in chunks:
        tape.append(ramp(tape.end, count))
    position, taken = 0, b""
    for cut in sorted(cuts):
        taken += tape.take_until(cut)
        position = max(position, min(cut, tape.end))
        assert tape.start == position
    assert taken + tape.take_until(tape.end) == ramp(0, sum(chunks))


@given(st.lists(st.integers(0, 50), max_size=20), st.integers(0, 200))
def test_tape_keeps_its_newest(chunks, bound):
    tape = AudioTape()
    for count in chunks:
        tape.append(ramp(tape.end, count))
    total = sum(chunks)
    assert tape.keep_last(bound) == max(0, total - bound)
    assert tape.take_until(tape.end) == ramp(max(0, total - bound), min(total, bound))


def make(**more) -> InputAudio:
    settings = {"rate_hz": 1_000, "lane_seconds": 1.0, "replay_seconds": 5.0, "records": True} | more
    return InputAudio(**settings)


def test_commit_and_clear_keep_their_place_behind_the_audio():
    audio = make()
    audio.push(ramp(0, 10))
    audio.mark(CommitAudio(command_id="commit"))
    audio.push(ramp(10, 10))
    audio.mark(ClearAudio(command_id="clear"))
    taken = [audio.take(str(index)) for index in range(5)]
    assert [type(command) for command in taken] == [AppendAudio, CommitAudio, AppendAudio, ClearAudio, type(None)]


def test_full_lane_drops_its_oldest_audio_and_no_commit():
    """B41."""
    audio = make()
    audio.mark(CommitAudio(command_id="commit"))
    for start in range(0, 3_000, 100):
        audio.push(ramp(start, 100))
    assert audio.waiting_ms == 1_000
    assert audio.dropped == 2_000
    assert isinstance(audio.take("1"), CommitAudio)
    first = audio.take("2")
    assert isinstance(first, AppendAudio)
    assert first.pcm == ramp(2_000, 100)


def test_a_commit_of_what_was_sent_at_once_stays_though_the_rest_of_the_turn_is_dropped():
    audio = make()
    audio.send("1", ramp(0, 100))
    audio.push(ramp(100, 100))
    audio.mark(CommitAudio(command_id="commit"))
    for start in range(200, 3_000, 100):
        audio.push(ramp(start, 100))
    assert isinstance(audio.take("2"), CommitAudio)


def test_positions_count_what_was_sent():
    """A3."""
    audio = make()
    audio.push(ramp(0, 300))
    assert audio.sent_ms == 0
    audio.take("1")
    assert audio.sent_ms == 300


def test_idle_microphone_is_replayed_for_a_moment_only():
    audio = make(lane_seconds=100.0)
    for start in range(0, 10_000, 100):
        audio.push(ramp(start, 100))
        audio.take(str(start))
        audio.note_arrival()
    audio.restart()
    assert audio.waiting_ms == 1_100  # the last chunk may be under way
    assert audio.sent == 0


def test_what_was_sent_since_the_provider_was_last_heard_of_is_replayed():
    """L2: on a line that had gone dead it never arrived, whether anybody was speaking or not."""
    audio = make(lane_seconds=100.0)
    for start in range(0, 10_000, 100):
        audio.push(ramp(start, 100))
        audio.take(str(start))
        if start == 7_000:
            audio.note_arrival()
    audio.restart()
    assert audio.waiting_ms == 1_000 + 2_900
    first = audio.take("1")
    assert isinstance(first, AppendAudio)
    assert first.pcm == ramp(6_100, 3_900)


def test_a_line_that_was_whole_until_it_broke_lost_only_a_moment():
    audio = make(lane_seconds=100.0)
    for start in range(0, 10_000, 100):
        audio.push(ramp(start, 100))
        audio.take(str(start))
    audio.restart(0.5)
    assert audio.waiting_ms == 1_500


def test_where_speech_is_not_reported_every_sound_is_kept_until_it_is_understood():
    """L2, Gemini: the first words of a turn are known when their transcript comes."""
    audio = make(lane_seconds=100.0, reports_boundaries=False)
    audio.push(ramp(0, 4_000))
    audio.take("1")
    audio.note_arrival()
    audio.speech_began(4_000)
    audio.push(ramp(4_000, 100))
    audio.take("2")
    audio.restart(0.0)
    assert audio.waiting_ms == 4_100


def test_what_came_before_the_beginning_of_speech_is_not_replayed():
    audio = make(lane_seconds=100.0)
    audio.push(ramp(0, 4_000))
    audio.take("1")
    audio.speech_began(3_500)
    audio.hold_turn(open_=True)
    audio.restart()
    assert audio.waiting_ms == 1_500


def test_open_turn_is_replayed_whole_up_to_the_bound():
    """L2."""
    audio = make(lane_seconds=100.0)
    audio.hold_turn(open_=True)
    for start in range(0, 10_000, 100):
        audio.push(ramp(start, 100))
        audio.take(str(start))
    audio.restart()
    assert audio.waiting_ms == 5_000


def test_what_was_understood_is_not_replayed():
    audio = make(lane_seconds=100.0)
    audio.hold_turn(open_=True)
    audio.push(ramp(0, 800))
    audio.take("1")
    audio.forget_before(600)
    audio.restart()
    assert audio.waiting_ms == 200


def test_commits_that_wait_are_counted_however_they_leave():
    """A response must not overtake the turn that it answers: taken, or dropped with the last of its audio."""
    audio = make(lane_seconds=0.5)
    audio.push(ramp(0, 100))
    audio.mark(CommitAudio(command_id="1"))
    assert audio.holds_commit()
    audio.take("a")
    assert audio.holds_commit()
    assert isinstance(audio.take("b"), CommitAudio)
    assert not audio.holds_commit()
    audio.push(ramp(0, 100))
    audio.mark(CommitAudio(command_id="2"))
    audio.push(ramp(0, 100))
    audio.push(ramp(0, 450))
    assert not audio.holds_commit()
    taken = []
    while (command := audio.take("c")) is not None:
        taken.append(command)
    assert not any(isinstance(command, CommitAudio) for command in taken)
