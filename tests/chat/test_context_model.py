"""Any sequence of operations on a context, beside a model that recomputes everything from a plain list (V4, V6, W2–W4)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from realtime.chat.context import ChatContext, ContextEntry
from realtime.chat.messages import ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.chat.pairing import has_open_call, unit_of
from realtime.chat.window import ContextWindow

PICTURE = ImageContent.from_bytes(b"\xff\xd8 a picture", "image/jpeg")
CALL_IDS = st.sampled_from(["a", "b", "c", ""])


def frame(source: str) -> ChatMessage:
    return ChatMessage(ChatRole.USER, "", images=[PICTURE], source=source)


MESSAGES = st.one_of(
    st.builds(ChatMessage, st.sampled_from(list(ChatRole)), st.sampled_from(["", "one", "one two", "one two three"])),
    st.builds(frame, st.sampled_from(["camera", "screen"])),
    st.builds(
        lambda ids: ChatMessage(ChatRole.ASSISTANT, "", tool_calls=[FunctionCall("f", "{}", one) for one in ids]),
        st.lists(CALL_IDS, min_size=1, max_size=2),
    ),
    st.builds(lambda one: ChatMessage(ChatRole.TOOL, "ok", tool_call_id=one), CALL_IDS),
    st.just(ChatMessage(ChatRole.USER, "digest", summary=True)),
    st.builds(
        lambda role, one: ChatMessage(role, "odd", tool_calls=[FunctionCall("f", "", one)], tool_call_id=one),
        st.sampled_from(list(ChatRole)),
        CALL_IDS,
    ),
)


WINDOWS = st.builds(
    lambda limits, turns, frames, counter: ContextWindow(
        *limits, keep_recent_turns=turns, keep_recent_frames=frames, counter=counter
    ),
    st.one_of(
        st.tuples(st.integers(0, 40), st.none()),
        st.tuples(st.none(), st.integers(0, 20)),
        st.tuples(st.integers(0, 40), st.integers(0, 20)),
    ),
    st.integers(0, 4),
    st.integers(0, 2),
    st.sampled_from(["words", len]),  # two counters, so that two totals are kept
)


@dataclass
class Place:
    """One place of the model."""

    message: ChatMessage
    leads: bool = False


def party(message: ChatMessage) -> int:
    if message.role is ChatRole.ASSISTANT or message.is_result:
        return 2
    return 1 if message.role is ChatRole.USER and not message.summary and not message.is_frame else 0


def is_in_row(message: ChatMessage) -> bool:
    return bool(message.tool_calls) and message.role is ChatRole.ASSISTANT and not message.is_result


def units(messages: list[ChatMessage]) -> tuple[list[set[int]], set[int]]:
    """The unit of each position, and the positions that have an open call."""
    group = list(range(len(messages)))

    def join(one: int, other: int) -> None:
        old, new = group[other], group[one]
        for position, at in enumerate(group):
            if at == old:
                group[position] = new

    row = [0] * len(messages)
    for position in range(1, len(messages)):
        row[position] = position
        if is_in_row(messages[position]) and is_in_row(messages[position - 1]):
            row[position] = row[position - 1]
            join(position - 1, position)
    waiting: list[tuple[str, int]] = []
    for position, message in enumerate(messages):
        if message.is_result:
            mine = [slot for slot in waiting if slot[0] == message.tool_call_id]
            if mine:
                nearest = next(slot for slot in mine if row[slot[1]] == row[mine[-1][1]])
                waiting.remove(nearest)
                join(nearest[1], position)
        waiting += [(call.call_id, position) for call in message.tool_calls]
    found = [{other for other, at in enumerate(group) if at == group[position]} for position in range(len(messages))]
    return found, {position for _, position in waiting}


class Recount:
    """What the window must do, recomputed."""

    def __init__(self, places: list[Place], window: ContextWindow) -> None:
        self.places = places
        self.window = window
        self.messages = [place.message for place in places]
        self.leading = sum(place.leads for place in places)
        starts = []
        said = 0
        for position, message in enumerate(self.messages):
            if party(message):
                if party(message) != said:
                    starts.append(position)
                said = party(message)
        keep = window.keep_recent_turns
        self.words_from: float = math.inf
        if keep:
            self.words_from = starts[-keep] if keep < len(starts) else -1
        self.frames_from = self.words_from
        if keep and keep < len(starts) and party(self.messages[starts[-keep]]) == 1:
            before = [position for position in range(starts[-keep]) if party(self.messages[position])]
            self.frames_from = before[-1] + 1 if before else starts[-keep]
        self.kept_frames: set[int] = set()
        for source in {message.source for message in self.messages if message.is_frame}:
            mine = [at for at, message in enumerate(self.messages) if message.is_frame and message.source == source]
            newest = mine[len(mine) - min(len(mine), window.keep_recent_frames) :]
            self.kept_frames |= {at for at in newest if at >= self.frames_from}
        self.units, self.open = units(self.messages)

    def is_recent(self, position: int) -> bool:
        if self.messages[position].is_frame:
            return position in self.kept_frames
        return position >= self.words_from

    def allows(self, left: set[int]) -> bool:
        tokens = sum(self.window.count_message(self.messages[position]) for position in left)
        window = self.window
        return (window.max_tokens is None or tokens <= window.max_tokens) and (
            window.max_context_items is None or len(left) <= window.max_context_items
        )

    def select(self) -> list[int]:
        left = set(range(len(self.messages)))
        for position, message in enumerate(self.messages):
            if self.allows(left):
                break
            if message.is_frame and not self.is_recent(position):
                left.discard(position)
        for position in range(self.leading, len(self.messages)):
            if self.allows(left):
                break
            unit = self.units[position]
            if (
                position in left
                and position < self.words_from
                and not unit & self.open
                and not any(map(self.is_recent, unit))
            ):
                left -= unit
        return sorted(set(range(len(self.messages))) - left)


class ContextBesideModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.context = ChatContext.empty()
        self.model: list[Place] = []
        self.lease = self.context.lease("session.send")
        self.window = ContextWindow()
        self.ids = 0

    def entries(self) -> list[ContextEntry]:
        return list(self.lease.entries())

    def new_id(self) -> str:
        self.ids += 1
        return f"m{self.ids}"

    def put(self, position: int, message: ChatMessage) -> None:
        is_instruction = message.is_instruction and not message.is_result
        leads = is_instruction and (position == 0 or self.model[position - 1].leads)
        self.model.insert(position, Place(message, leads))
        self.settle_leading(position)

    def settle_leading(self, position: int) -> None:
        if not self.model[position].leads:
            for place in self.model[position + 1 :]:
                if not place.leads:
                    break
                place.leads = False

    @initialize(messages=st.lists(MESSAGES, min_size=4, max_size=24))
    def start(self, messages: list[ChatMessage]) -> None:
        self.append(messages)

    @rule(messages=st.lists(MESSAGES, min_size=1, max_size=3))
    def append(self, messages: list[ChatMessage]) -> None:
        for message in messages:
            named = replace(message, message_id=self.new_id())
            self.put(len(self.model), named)
            self.lease.append(named)

    @precondition(lambda self: self.model)
    @rule(message=MESSAGES, data=st.data())
    def insert_after(self, message: ChatMessage, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.model) - 1))
        self.lease.insert_after(self.entries()[at], message)
        self.put(at + 1, message)

    @precondition(lambda self: self.model)
    @rule(message=MESSAGES, data=st.data())
    def replace(self, message: ChatMessage, data: st.DataObject) -> None:
        at = data.draw(st.integers(0, len(self.model) - 1))
        old = self.model[at]
        self.lease.replace(self.entries()[at], message)
        if shape(old.message) == shape(message):
            old.message = message
        else:
            del self.model[at]
            self.put(at, message)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        chosen = data.draw(st.sets(st.integers(0, len(self.model) - 1), max_size=2))
        entries = self.entries()
        self.lease.remove([entries[at] for at in sorted(chosen, reverse=data.draw(st.booleans()))])
        self.model = [place for at, place in enumerate(self.model) if at not in chosen]

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def replace_run(self, data: st.DataObject) -> None:
        first = data.draw(st.integers(0, len(self.model) - 1))
        last = data.draw(st.integers(first, min(len(self.model) - 1, first + 2)))
        digest = ChatMessage(ChatRole.USER, "digest", self.new_id(), summary=True)
        self.lease.replace_run(self.entries()[first : last + 1], digest)
        del self.model[first : last + 1]
        self.put(first, digest)

    @rule(window=WINDOWS)
    def trim(self, window: ContextWindow) -> None:
        self.window = window
        chosen = self.window.select(self.context)
        expected = Recount(self.model, self.window).select()
        entries = self.entries()
        assert [entries.index(entry) for entry in chosen] == expected
        self.lease.remove(chosen)
        self.model = [place for at, place in enumerate(self.model) if at not in expected]
        assert self.window.select(self.context) == ()  # applying twice changes nothing more (W2)

    @rule(window=WINDOWS)
    def digest(self, window: ContextWindow) -> None:
        self.window = window
        run = self.window.digest(self.context)
        entries = self.entries()
        positions = [entries.index(entry) for entry in run]
        recount = Recount(self.model, self.window)
        if not positions:
            return
        assert not recount.allows(set(range(len(entries))))
        assert positions == list(range(positions[0], positions[-1] + 1))  # in a row
        for position in positions:
            assert recount.units[position] <= set(positions)  # whole units
            assert position not in recount.open
            assert position >= recount.leading
            assert not recount.is_recent(position)
        assert recount.allows(set(range(len(entries))) - set(positions))  # a summary can help
        assert any(not self.model[at].message.summary and not self.model[at].message.is_frame for at in positions)

    @invariant()
    def same_as_the_model(self) -> None:
        messages = [place.message for place in self.model]
        entries = self.entries()
        assert self.context.messages() == messages == [entry.message for entry in entries]
        assert len(self.context) == len(messages)
        assert [entry.is_leading for entry in entries] == [place.leads for place in self.model]
        assert self.context.estimated_tokens() == sum(2 * len(message.content.split()) for message in messages)
        assert self.window.count(self.context) == sum(map(self.window.count_message, messages))
        assert self.context.turn_count() == sum(message.role is ChatRole.USER for message in messages)
        spoken = sum(message.role is ChatRole.USER and not message.is_frame for message in messages)
        assert self.context.spoken_turn_count() == spoken
        for message in messages:
            if message.message_id:
                assert self.context.get(message.message_id) is message

    @invariant()
    def same_units(self) -> None:
        entries = self.entries()
        at = {entry: position for position, entry in enumerate(entries)}
        expected, open_at = units([place.message for place in self.model])
        for position, entry in enumerate(entries):
            unit = unit_of(entry)
            assert {at[part] for part in unit} == expected[position]
            assert has_open_call(unit) == bool(expected[position] & open_at)
        assert self.context.store.entries.pairing.open_calls == sum(
            slot is None for entry in entries for slot in entry.results or ()
        )

    @invariant()
    def orders_rise(self) -> None:
        orders = [entry.order for entry in self.entries()]
        assert orders == sorted(set(orders))


def shape(message: ChatMessage) -> tuple[object, ...]:
    source = message.source if message.is_frame else None
    return (message.role, message.tool_call_id, [call.call_id for call in message.tool_calls], source, party(message))


TestContextBesideModel = ContextBesideModel.TestCase
TestContextBesideModel.settings = settings(
    max_examples=100, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)


CALLS_AND_RESULTS = st.one_of(
    st.builds(
        lambda one: ChatMessage(ChatRole.ASSISTANT, "", tool_calls=[FunctionCall("f", "{}", one)]),
        st.sampled_from("ab"),
    ),
    st.builds(lambda one: ChatMessage(ChatRole.TOOL, "ok", tool_call_id=one), st.sampled_from("ab")),
    st.just(ChatMessage(ChatRole.USER, "hm")),
)


@given(st.lists(CALLS_AND_RESULTS, max_size=14))
@settings(max_examples=300, deadline=None)
def test_results_answer_the_nearest_open_call_of_their_id(messages: list[ChatMessage]) -> None:
    """F2, F4."""
    entries = list(ChatContext(messages).store.entries)
    at = {entry: position for position, entry in enumerate(entries)}
    expected, open_at = units(messages)
    for position, entry in enumerate(entries):
        assert {at[part] for part in unit_of(entry)} == expected[position]
        assert has_open_call(unit_of(entry)) == bool(expected[position] & open_at)


@given(st.lists(CALLS_AND_RESULTS, min_size=3, max_size=10), st.data())
@settings(max_examples=200, deadline=None)
def test_a_message_put_between_calls_parts_their_row(messages: list[ChatMessage], data: st.DataObject) -> None:
    """F2, F4: as if it had been there from the start."""
    context = ChatContext(messages)
    lease = context.lease("session.send")
    after = data.draw(st.integers(0, len(messages) - 1))
    lease.insert_after(list(lease.entries())[after], ChatMessage(ChatRole.USER, "wait"))
    entries = list(lease.entries())
    at = {entry: position for position, entry in enumerate(entries)}
    expected, _ = units(context.messages())
    for position, entry in enumerate(entries):
        assert {at[part] for part in unit_of(entry)} == expected[position]


@given(st.lists(MESSAGES, max_size=24), WINDOWS)
@settings(max_examples=300, deadline=None)
def test_apply_removes_what_a_recount_says_and_nothing_more_the_second_time(
    messages: list[ChatMessage], window: ContextWindow
) -> None:
    """W2, W3: frames first, then the oldest whole units; instructions, recent turns and open calls stay."""
    context = ChatContext(messages)
    places = [Place(entry.message, entry.is_leading) for entry in context.store.entries]
    expected = set(Recount(places, window).select())
    assert window.apply(context) is context
    left = context.messages()
    assert left == [message for at, message in enumerate(messages) if at not in expected]
    assert window.apply(context).messages() == left
