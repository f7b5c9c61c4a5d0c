"""What nobody should pass, passed to everything: it is taken, or refused by an error that names it (conventions.md)."""

import copy
import json
import math
import os
import pickle
from dataclasses import fields

import pytest

from realtime import errors
from realtime.chat.content import AudioContent, ImageContent
from realtime.chat.context import ChatContext
from realtime.chat.conversation import Conversation
from realtime.chat.formats.pydantic_ai import from_pydantic_ai_messages
from realtime.chat.image_prices import image_price
from realtime.chat.manager import ContextManager
from realtime.chat.messages import AgentHandoff, ChatContent, ChatMessage, FunctionCall, FunctionCallOutput
from realtime.chat.sanitize import sanitize_messages
from realtime.chat.strategies import NoContextManagement, SmartWindowSizeContext, WindowSizeContext
from realtime.chat.tokens import WordCounter
from realtime.chat.window import ContextWindow
from realtime.errors import ArgumentError, RealtimeError, UserError

GIF = b"GIF89a\x01\x00\x01\x00"
WAV = AudioContent.from_pcm(b"\0\0", 24_000).data


class Sulky:
    """Says nothing about itself."""

    def __str__(self):
        raise RuntimeError("no text")

    __repr__ = __str__


ODD = [
    None, True, False, 0, -1, 10**30, 10**400, 1.5, math.nan, math.inf, "", "x", "\ud800", "\udc00\ud83d", "a\0b",
    "all", "x" * 5_000, b"x", bytearray(b"x"), [], [1], (), {}, {"a": 1}, {1: 2}, {1}, object(), Sulky(), int, GIF,
]  # fmt: skip


def a_context():
    return ChatContext([ChatMessage("system", "s"), ChatMessage("user", "hi", "u1"), ChatMessage("assistant", "yo")])


def a_manager():
    manager = ContextManager()
    manager.add_message_dict({"role": "user", "content": "x"}, "a")
    return manager


def with_one(make, **given):
    """Calls with one argument odd and the others as they should be."""
    return [(f"{make.__name__}({name}=)", lambda odd, name=name: make(**{**given, name: odd})) for name in given]


def fields_of(kind, **needed):
    return [
        (f"{kind.__name__}.{field.name}", lambda odd, name=field.name: kind(**{**needed, name: odd}))
        for field in fields(kind)
        if field.init
    ]


def add_message(**given):
    return a_context().add_message(**given)


def add_attributed_message(**given):
    return a_context().add_attributed_message(**given)


def add_function_call(**given):
    return a_context().add_function_call(**given)


def add_function_output(**given):
    return a_context().add_function_output(**given)


def add_handoff(**given):
    return a_context().add_handoff(**given)


def truncate(**given):
    return a_context().truncate(**given)


def add_tool_result(**given):
    manager = a_manager()
    manager.add_tool_result(**given)
    return manager.get_prompt()


CONTEXT = [
    (name, lambda odd, name=name: getattr(a_context(), name)(odd))
    for name in ("append", "merge", "update", "remove", "get", "lease", "from_context_messages", "from_dict", "explain")
]
WINDOW = [
    (name, lambda odd, name=name: getattr(ContextWindow(1), name)(odd))
    for name in ("apply", "select", "digest", "count", "count_message", "allows", "explain")
]
SCALE = [
    (f"{name}(scale=)", lambda odd, name=name: getattr(ContextWindow(1), name)(a_context(), scale=odd))
    for name in ("allows", "select", "digest")
]
MANAGER = [
    (name, lambda odd, name=name: getattr(a_manager(), name)(odd))
    for name in (
        "get_prompt", "get_conversation_history", "clear", "set_current_conversation", "get_context_stats",
        "update_context_management", "get_context",
    )
]  # fmt: skip
STRATEGIES = [
    (f"{type(strategy).__name__}.{name}", lambda odd, one=strategy, name=name, many=many: getattr(one, name)(many(odd)))
    for strategy in (NoContextManagement(), WindowSizeContext(2), SmartWindowSizeContext(3, 1, True))
    for name, many in (
        ("apply_context_strategy", lambda odd: odd),
        ("apply_context_strategy", lambda odd: [odd] * 5),
        ("get_stats", lambda odd: odd),
    )
]
PICTURES = [
    (name, lambda odd, name=name: getattr(ImageContent, name)(odd))
    for name in ("from_url", "from_data_url", "from_frame", "from_file")
]
TRANSPORT = [
    (f"transport {key}", lambda odd, key=key: ChatContext.from_context_messages([{"role": "user", key: odd}]))
    for key in (
        "role", "content", "message_id", "images", "tool_calls", "tool_call_id", "created_at", "audio", "is_error",
        "heard_ms", "provider_data", "source",
    )
]  # fmt: skip
BUNDLES = [
    (f"{kind.__name__}.from_dict {key}", lambda odd, kind=kind, key=key: kind.from_dict({"items": [], key: odd}))
    for kind in (Conversation, ChatContext)
    for key in ("items", "handoffs", "usage", "id", "revision")
]
CALLS = [
    *fields_of(ChatMessage),
    *fields_of(FunctionCall),
    *fields_of(FunctionCallOutput),
    *fields_of(AgentHandoff),
    *fields_of(ChatContent),
    *fields_of(Conversation),
    *fields_of(ContextWindow, max_tokens=10),
    *fields_of(AudioContent, data=WAV),
    ("ChatContext(messages)", ChatContext),
    ("ChatContext(handoffs)", lambda odd: ChatContext([], odd)),
    *with_one(add_message, role="user", content="x", message_id=None, images=None, created_at=None, replace=False),
    *with_one(add_attributed_message, role="user", content="x", agent_id="a", message_id=None, images=None),
    *with_one(add_function_call, name="f", arguments="{}", call_id="c", message_id=None, agent_id=""),
    *with_one(add_function_output, name="f", output="x", call_id="c", is_error=False, message_id=None, agent_id=""),
    *with_one(add_handoff, to_agent="b", from_agent="a", reason="r"),
    *with_one(truncate, max_items=2, max_tokens=2, keep_instructions=False),
    *with_one(add_tool_result, tool_name="f", result="x", tool_call_id="c"),
    *CONTEXT,
    *WINDOW,
    *SCALE,
    ("explain(counter)", lambda odd: a_context().explain(ContextWindow(1), odd)),
    *with_one(ContextManager, max_tokens=5, system_prompt=None, context_management=None, counter=None),
    *MANAGER,
    ("manager.add_message", lambda odd: a_manager().add_message(odd, "a")),
    ("manager.add_message_dict", lambda odd: a_manager().add_message_dict(odd, "a")),
    ("manager.add_message id", lambda odd: a_manager().add_message({"role": "user", "content": "x"}, odd)),
    ("manager.add_assistant_message", lambda odd: a_manager().add_assistant_message(odd)),
    *with_one(WindowSizeContext, max_messages=5),
    *with_one(SmartWindowSizeContext, max_messages=5, preserve_initial=1, prioritize_tools=False),
    *STRATEGIES,
    *PICTURES,
    *with_one(ImageContent, type="image", url="https://x.org/a.png", detail="auto"),
    *with_one(ImageContent.from_bytes, data=GIF, mime_type="image/gif", detail="low"),
    *with_one(ImageContent.from_base64, base64_str="R0lGODlhAQABAA==", mime_type="image/gif", detail="low"),
    ("from_frame data", lambda odd: ImageContent.from_frame({"data": odd})),
    ("from_frame mime_type", lambda odd: ImageContent.from_frame({"data": GIF, "mime_type": odd})),
    *with_one(AudioContent.from_pcm, data=b"\0\0", rate_hz=24_000, channels=1, transcript=""),
    ("image_price", image_price),
    ("sanitize_messages", sanitize_messages),
    ("from_pydantic_ai_messages", from_pydantic_ai_messages),
    *TRANSPORT,
    *BUNDLES,
]


@pytest.mark.parametrize(("name", "call"), CALLS, ids=[name for name, _ in CALLS])
def test_odd_arguments_are_taken_or_refused_by_name(name, call):
    for odd in ODD:
        refusals = []
        try:
            call(odd)
        except OSError:
            assert name == "from_file"  # as documented
        except RealtimeError as error:
            refusals.append(error)
        assert all(isinstance(error, ArgumentError) and len(str(error)) < 400 for error in refusals)


def test_what_was_taken_can_be_written_converted_and_read_again():
    """V4, F1: whatever a transport dict holds."""
    for key in ("role", "content", "message_id", "images", "tool_calls", "created_at", "heard_ms", "provider_data"):
        for odd in ODD:
            try:
                context = ChatContext.from_context_messages([{"role": "user", "content": "x", key: odd}])
            except ArgumentError:
                continue
            assert ChatContext.from_dict(json.loads(json.dumps(context.to_dict(), allow_nan=False))) == context
            for shape in (
                context.to_openai_messages(), context.to_openai_responses(), context.to_anthropic_messages(),
                context.to_google_contents(),
            ):  # fmt: skip
                json.dumps(shape, allow_nan=False, ensure_ascii=False).encode()


def test_a_number_is_no_path_and_nobodys_open_file_is_closed(tmp_path):
    """V7: `open` takes a file descriptor, reads that and closes it."""
    path = tmp_path / "picture.gif"
    path.write_bytes(GIF)
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with pytest.raises(errors.ImageError, match="path"):
            ImageContent.from_file(descriptor)
        assert os.read(descriptor, 3) == b"GIF"
    finally:
        os.close(descriptor)
    assert ImageContent.from_file(os.fsencode(path)).mime_type == "image/gif"


@pytest.mark.parametrize("flag", ["is_error", "interrupted", "summary"])
@pytest.mark.parametrize("given", [1, 0, "no", None])
def test_a_flag_is_yes_or_no(flag, given):
    """V4: what is not would come back from a dict as another message."""
    with pytest.raises(ArgumentError, match="True or False"):
        ChatMessage("user", "x", **{flag: given})


def test_a_time_is_finite_and_what_was_heard_not_negative():
    """V4: NaN equals nothing, not even itself; what comes from outside loses it and keeps its words."""
    for wrong in (math.nan, math.inf):
        with pytest.raises(ArgumentError, match="created_at"):
            ChatMessage("user", "x", created_at=wrong)
        (read,) = ChatContext.from_context_messages([{"role": "user", "content": "x", "created_at": wrong}])
        assert (read.content, read.created_at) == ("x", None)
    with pytest.raises(ArgumentError, match="heard_ms"):
        ChatMessage("assistant", "x", heard_ms=-1)
    (read,) = ChatContext.from_context_messages([{"role": "assistant", "content": "x", "heardMs": -3}])
    assert (read.content, read.heard_ms) == ("x", 0)


def test_a_list_is_no_context_and_the_error_says_what_would_do():
    with pytest.raises(ArgumentError, match=r"context must be a ChatContext \(a list of messages: ChatContext"):
        ContextWindow(5).apply(a_context().messages())


def test_a_lease_has_a_holder():
    """V1: without one, nobody would be told what to use, and anybody could change the context."""
    context = a_context()
    for wrong in ("", None):
        with pytest.raises(ArgumentError, match="holder"):
            context.lease(wrong)
    context.lease("session.send")
    with pytest.raises(UserError, match=r"session\.send"):
        context.add_message("user", "x")


# -- values travel ------------------------------------------------------------------------------------------------------


class Talk(ChatContext):
    """An application's own kind of context."""


class Photo(ImageContent):
    """An application's own kind of picture."""


VALUES = [
    a_context(),
    Talk(a_context().messages()),
    ChatMessage("user", "x", "i", [FunctionCall("f", provider_data={"a": [b"x", (1,)]})], audio=AudioContent(WAV)),
    ImageContent.from_bytes(GIF, "image/gif", "low"),
    Photo.from_bytes(GIF, "image/gif"),
    FunctionCallOutput("f", "x", "c", True),
    ChatContent(text="x"),
    Conversation(messages=[ChatMessage("user", "x")], handoffs=[AgentHandoff("b")]),
    ContextWindow(5, counter=WordCounter(images=image_price("gemini-3"))),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_can_be_copied_and_pickled_and_keep_their_kind(value):
    """V1."""
    for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert type(other) is type(value)
        assert other == value


def test_a_context_of_ones_own_kind_stays_of_that_kind():
    talk = Talk.from_dict(a_context().to_dict())
    assert {type(one) for one in (talk, talk.copy(), talk.truncate(1), Talk.empty())} == {Talk}
    assert talk == a_context()


@pytest.mark.parametrize(
    "error",
    [
        errors.ArgumentError("role", 1, "a role"),
        errors.ImageError("url", "x", "a URL"),
        errors.MissingExtraError("this", extra="demo", package="rich"),
        errors.ModelError("no", code="c", fatal=True),
        errors.LinkLost("gone", code=1006),
        errors.BusyError("slow", dropped=3),
        errors.UsageLimitExceeded("max_tokens", used=2, allowed=1),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_can_be_copied_and_pickled_with_their_fields(error):
    """A tool that runs in another process hands its error back this way."""
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert type(other) is type(error)
        assert (str(other), vars(other)) == (str(error), vars(error))


def test_an_error_about_what_cannot_be_shown_names_its_type():
    with pytest.raises(ArgumentError, match=r"role must be .*, not <Sulky>"):
        ChatMessage(Sulky(), "x")
