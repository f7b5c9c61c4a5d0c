"""A conversation handed to a real agent of Pydantic AI, and taken back (seed: history and handoff)."""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent
from pydantic_ai import messages as library
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from realtime.chat.formats import pydantic_ai_writing
from realtime.chat.formats.pydantic_ai import from_pydantic_ai_messages, to_pydantic_ai_messages
from realtime.chat.formats.text import INTERRUPTED_NOTE, PENDING_OUTPUT
from realtime.chat.messages import AudioContent, ChatMessage, ChatRole, FunctionCall, ImageContent
from realtime.errors import ArgumentError, UserError

S, D, U, A, T = ChatRole.SYSTEM, ChatRole.DEVELOPER, ChatRole.USER, ChatRole.ASSISTANT, ChatRole.TOOL
GIF = ImageContent.from_bytes(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "image/gif", "low")
WEB = ImageContent.from_url("https://example.com/a.jpg")
SPOKEN = AudioContent.from_pcm(bytes(480), 24_000, transcript="what is this?")

HISTORY = [
    ChatMessage(S, "You see the user's camera.", "s1"),
    ChatMessage(U, "what is this?", "u1", created_at=100.0, audio=SPOKEN),
    ChatMessage(U, "", "f1", images=[GIF], source="camera", created_at=100.5),
    ChatMessage(A, "One moment.", "a1", thinking="a lookup will do", agent_id="guide"),
    ChatMessage(A, "", "k1", [FunctionCall("look_up", '{"what": "red cup"}', "c1"), FunctionCall("look", "", "c2")]),
    ChatMessage(T, "", "r2", (), "c2", [GIF], tool_name="look"),
    ChatMessage(T, "no such thing", "r1", (), "c1", tool_name="look_up", is_error=True),
    ChatMessage(A, "It is a red", "a2", interrupted=True, heard_ms=900, unheard="cup"),
    ChatMessage(U, "thanks", "u2"),
    ChatMessage(U, "Before: they talked about cups.", "d1", summary=True),
    ChatMessage(D, "Be brief.", "d2"),
]
IN_ROUND_ORDER = [*HISTORY[:5], HISTORY[6], HISTORY[5], *HISTORY[7:]]


def answering(seen: list[list[Any]]) -> Agent[None, str]:
    def answer(messages: list[library.ModelMessage], info: AgentInfo) -> library.ModelResponse:
        seen.append(list(messages))
        return library.ModelResponse(parts=[library.TextPart("They spoke of a red cup.")])

    return Agent(FunctionModel(answer))


async def test_a_history_goes_to_an_agent_and_comes_back_with_what_it_added():
    seen: list[list[Any]] = []
    result = await answering(seen).run("Summarize.", message_history=to_pydantic_ai_messages(HISTORY))
    read = from_pydantic_ai_messages(result.all_messages())
    assert read[: len(HISTORY)] == IN_ROUND_ORDER
    assert [(message.role, message.content) for message in read[len(HISTORY) :]] == [
        (U, "Summarize."),
        (A, "They spoke of a red cup."),
    ]
    assert from_pydantic_ai_messages(result.new_messages()) == read[len(HISTORY) :]


async def test_the_model_is_told_what_was_said_shown_and_cut():
    seen: list[list[Any]] = []
    await answering(seen).run("Summarize.", message_history=to_pydantic_ai_messages(HISTORY))
    (told,) = seen
    first, reply, results, cut, last = told
    assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt", "user-prompt"]
    assert first.parts[1].content == "what is this?"  # this model takes no audio
    assert first.parts[2].content[0].data == GIF.data
    assert [part.part_kind for part in reply.parts] == ["thinking", "text", "tool-call", "tool-call"]
    assert [part.tool_call_id for part in results.parts] == ["c1", "c2"]
    assert results.parts[0].outcome == "failed"
    assert results.parts[1].content[0].data == GIF.data
    assert cut.parts[0].content.startswith("It is a red\n[Interrupted")  # the library's own note
    assert "cup" not in cut.parts[0].content
    assert last.parts[0].content == "thanks"


async def test_an_agent_with_tools_goes_on_from_an_open_call():
    """F3: history never ends on a dangling call."""

    def answer(messages: list[library.ModelMessage], info: AgentInfo) -> library.ModelResponse:
        if isinstance(messages[-1].parts[-1], library.UserPromptPart):
            return library.ModelResponse(parts=[library.ToolCallPart("look_up", {"what": "y"}, "c7")])
        return library.ModelResponse(parts=[library.TextPart("done")])

    agent: Agent[None, str] = Agent(FunctionModel(answer))

    @agent.tool_plain
    def look_up(what: str) -> dict[str, int]:
        return {"cups": 3}

    history = [ChatMessage(U, "go"), ChatMessage(A, "", "k1", [FunctionCall("look_up", '{"what": "x"}', "c1")])]
    result = await agent.run("And now?", message_history=to_pydantic_ai_messages(history))
    read = from_pydantic_ai_messages(result.all_messages())
    assert read[:2] == history  # the stand-in does not come back: the call is still open
    assert [message.role for message in read[2:]] == [U, A, T, A]
    assert read[3].tool_calls == (FunctionCall("look_up", '{"what":"y"}', "c7"),)
    assert (read[4].content, read[4].tool_call_id, read[4].tool_name) == ('{"cups":3}', "c7", "look_up")
    assert read[5].content == "done"


async def test_a_test_model_goes_on_from_a_history():
    agent = Agent(TestModel(custom_output_text="noted"))
    history = [message for message in HISTORY if not message.tool_calls and message.role is not T]
    result = await agent.run("Summarize.", message_history=to_pydantic_ai_messages(history))
    assert result.output == "noted"
    assert from_pydantic_ai_messages(result.all_messages())[: len(history)] == history


def test_requests_and_responses_alternate():
    written = to_pydantic_ai_messages(HISTORY)
    kinds = [message.kind for message in written]
    assert kinds == [("request", "response")[at % 2] for at in range(len(kinds))]


def test_written_messages_go_through_json():
    adapter = library.ModelMessagesTypeAdapter
    stored = adapter.dump_json(to_pydantic_ai_messages(HISTORY))
    assert from_pydantic_ai_messages(adapter.validate_json(stored)) == IN_ROUND_ORDER


def test_speech_is_a_speech_part_with_its_recording_and_its_cut():
    written = to_pydantic_ai_messages(
        [ChatMessage(U, "hi", audio=SPOKEN), ChatMessage(A, "well", interrupted=True, heard_ms=0)]
    )
    user, model = (message.parts[0] for message in written)
    assert isinstance(user, library.SpeechPart)
    assert (user.speaker, user.transcript, user.audio and user.audio.data) == ("user", "hi", SPOKEN.data)
    assert isinstance(model, library.SpeechPart)
    assert (model.speaker, model.transcript, model.interrupted_at_ms) == ("assistant", "well", 0)


def test_a_turn_without_words_keeps_its_boundary_and_says_nothing():
    """H4."""
    (request,) = to_pydantic_ai_messages([ChatMessage(U, "", "u1")])
    (part,) = request.parts
    assert isinstance(part, library.SpeechPart)
    assert not part.has_content()
    assert from_pydantic_ai_messages([request]) == [ChatMessage(U, "", "u1")]


def test_a_cut_without_a_position_is_told_by_our_note():
    """F10."""
    cut = ChatMessage(A, "well", "a1", interrupted=True)
    (response,) = to_pydantic_ai_messages([cut])
    assert response.parts[0].content == f"well {INTERRUPTED_NOTE}"  # type: ignore[union-attr]
    assert from_pydantic_ai_messages([response]) == [cut]


def test_a_version_without_speech_gets_text_and_notes(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pydantic_ai_writing, "HAS_SPEECH", False)
    heard = AudioContent.from_pcm(bytes(480), 24_000)
    history = [
        ChatMessage(U, "", "u1", audio=SPOKEN),
        ChatMessage(A, "well", "a1", interrupted=True, heard_ms=10, audio=SPOKEN),
        ChatMessage(U, "", "u2"),
        ChatMessage(U, "", "u3", audio=heard),
    ]
    parts = [part for message in to_pydantic_ai_messages(history) for part in message.parts]
    assert [part.part_kind for part in parts] == ["user-prompt", "text", "user-prompt"]
    assert parts[0].content == "what is this?"  # type: ignore[union-attr]
    assert parts[1].content == f"well {INTERRUPTED_NOTE}"  # type: ignore[union-attr]
    assert parts[2].content[0].data == heard.data  # type: ignore[union-attr]


def test_pictures_by_address_and_detail():
    (request,) = to_pydantic_ai_messages([ChatMessage(U, "look", images=[GIF, WEB, ImageContent()])])
    text, gif, web = request.parts[0].content  # type: ignore[misc, union-attr]
    assert text == "look"
    assert (gif.media_type, gif.vendor_metadata) == ("image/gif", {"detail": "low"})
    assert (web.url, web.media_type, web.vendor_metadata) == (WEB.url, "image/jpeg", None)


def test_the_models_pictures_are_shown_behind_its_words():
    history = [ChatMessage(A, "see", "a1", images=[GIF])]
    written = to_pydantic_ai_messages(history)
    assert [message.kind for message in written] == ["response", "request"]
    said, shown = from_pydantic_ai_messages(written)
    assert said == ChatMessage(A, "see", "a1")
    assert (shown.role, shown.content, shown.images) == (U, "", (GIF,))


# -- other people's messages -------------------------------------------------------------------------------------------

STAMP = datetime.fromtimestamp(50.0, UTC)


def test_reads_a_text_run_part_by_part():
    read = from_pydantic_ai_messages(
        [
            library.ModelRequest(
                parts=[
                    library.SystemPromptPart("be kind", timestamp=STAMP),
                    library.UserPromptPart(
                        ["first", library.BinaryContent(GIF.data, media_type="image/gif"), library.CachePoint(), "second"], timestamp=STAMP
                    ),
                ],
                instructions="not of the history",
            ),
            library.ModelResponse(
                parts=[
                    library.ThinkingPart("hm", signature="sig", provider_name="x"),
                    library.TextPart("one"),
                    library.TextPart("two"),
                    library.NativeToolCallPart("web_search", {}, "n1"),
                    library.ToolCallPart("f", {"a": "é"}, "c1"),
                    library.ToolCallPart("f", None, "c2"),
                ]
            ),
            library.ModelRequest(
                parts=[
                    library.ToolReturnPart("f", {"n": float("nan")}, "c1", timestamp=STAMP),
                    library.ToolReturnPart("f", None, "c2", outcome="denied", timestamp=STAMP),
                    library.RetryFeedbackPart("again", retry=library.RetryInfo(cause="model_retry"), timestamp=STAMP),
                    library.CompactionPart("what was before"),
                ]
            ),
        ]
    )  # fmt: skip
    assert read[:3] == [
        ChatMessage(S, "be kind", created_at=50.0),
        ChatMessage(U, "first", images=[ImageContent.from_bytes(GIF.data, "image/gif")], created_at=50.0),
        ChatMessage(U, "second", created_at=50.0),
    ]
    assert read[3] == ChatMessage(
        A, "one\n\ntwo", "", [FunctionCall("f", '{"a":"é"}', "c1"), FunctionCall("f", "", "c2")], thinking="hm"
    )
    assert [(m.role, m.content, m.tool_call_id, m.is_error) for m in read[4:6]] == [
        (T, '{"n":null}', "c1", False),
        (T, "null", "c2", True),
    ]
    assert (read[6].role, "again" in read[6].content) == (U, True)
    assert read[7] == ChatMessage(U, "what was before", summary=True)


def test_reads_speech_of_a_realtime_run():
    audio = library.BinaryContent(SPOKEN.data, media_type="audio/wav")
    read = from_pydantic_ai_messages(
        [
            library.ModelRequest(parts=[library.SpeechPart(speaker="user", transcript="hi", audio=audio)]),
            library.ModelResponse(
                parts=[
                    library.SpeechPart(speaker="assistant", transcript="well", id="item1", provider_name="openai"),
                    library.SpeechPart(speaker="assistant", transcript="I thi", interrupted_at_ms=700),
                    library.ToolCallPart("f", "{}", "c1"),
                ]
            ),
            library.ModelRequest(parts=[library.SpeechPart(speaker="user")]),
        ]
    )
    assert read == [
        ChatMessage(U, "hi", audio=AudioContent(SPOKEN.data, "hi")),
        ChatMessage(A, "well", "item1"),
        ChatMessage(A, "I thi", "", [FunctionCall("f", "{}", "c1")], interrupted=True, heard_ms=700),
        ChatMessage(U, ""),
    ]


@pytest.mark.parametrize(
    "content",
    [
        [library.VideoUrl("https://a.b/c.mp4")],
        [library.DocumentUrl("https://a.b/c.pdf")],
        [library.AudioUrl("https://a.b/c.mp3")],
        [library.BinaryContent(b"%PDF", media_type="application/pdf")],
        [library.BinaryContent(b"OggS", media_type="audio/ogg")],
    ],
)
def test_what_a_session_cannot_take_is_refused_by_name(content):
    """Shapes: video, documents, file references and generated files."""
    with pytest.raises(UserError, match=r"leave it out|WAV"):
        from_pydantic_ai_messages([library.ModelRequest(parts=[library.UserPromptPart(content)])])


def test_generated_files_are_refused():
    part = library.FilePart(library.BinaryContent(GIF.data, media_type="image/gif"))
    with pytest.raises(UserError, match="'file'"):
        from_pydantic_ai_messages([library.ModelResponse(parts=[part])])


def test_a_recording_that_is_no_wav_keeps_its_words():
    ogg = library.BinaryContent(b"OggS", media_type="audio/ogg")
    part = library.SpeechPart(speaker="user", transcript="hi", audio=ogg)
    assert from_pydantic_ai_messages([library.ModelRequest(parts=[part])]) == [ChatMessage(U, "hi")]


@pytest.mark.parametrize("given_messages", ["text", {"kind": "request"}, [ChatMessage(U, "hi")], ["x"]])
def test_what_are_no_such_messages_is_refused(given_messages):
    with pytest.raises(ArgumentError, match="messages"):
        from_pydantic_ai_messages(given_messages)


def test_metadata_that_no_longer_fits_is_not_believed():
    (request,) = to_pydantic_ai_messages([ChatMessage(U, "one", "u1"), ChatMessage(U, "two", "u2")])
    assert isinstance(request, library.ModelRequest)
    request.parts = request.parts[:1]
    (read,) = from_pydantic_ai_messages([request])
    assert (read.content, read.message_id) == ("one", "")
    request.metadata = {"realtime": {"parts": [7], "messages": []}}
    assert from_pydantic_ai_messages([request])[0].content == "one"


def test_importing_the_package_does_not_load_the_library():
    code = (
        "import sys; import realtime.chat.formats.pydantic_ai as m; assert 'pydantic_ai' not in sys.modules;"
        "sys.modules['pydantic_ai'] = None\n"
        "try:\n m.to_pydantic_ai_messages([])\nexcept m.MissingExtraError as e:\n assert e.extra == 'pydantic-ai'\nelse:\n sys.exit(1)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


CONVERSATIONS = st.lists(
    st.builds(
        ChatMessage,
        st.sampled_from([S, D, U, A]),
        st.sampled_from(["", " ", "hello", "a\ud800", "日本"]),
        st.sampled_from(["", "m1"]),
        st.just(()) | st.lists(st.builds(FunctionCall, st.sampled_from(["f", ""]), st.sampled_from(["", "{}", "[1]", "{x"]), st.sampled_from(["", "c1", "c2"])), max_size=2),
        st.just(""),
        st.lists(st.sampled_from([GIF, WEB, ImageContent()]), max_size=1),
        audio=st.sampled_from([None, None, SPOKEN]),
        thinking=st.sampled_from(["", "hm"]),
        interrupted=st.booleans(),
        heard_ms=st.sampled_from([None, 0, 500]),
        unheard=st.sampled_from(["", "rest"]),
    )
    | st.builds(ChatMessage, st.just(T), st.sampled_from(["", "ok", "null"]), st.just(""), st.just(()), st.sampled_from(["c1", "c2", ""]), st.lists(st.just(GIF), max_size=1), is_error=st.booleans()),
    max_size=8,
)  # fmt: skip


@given(CONVERSATIONS)
def test_any_context_is_valid_for_pydantic_ai(messages):
    """F1–F4: it goes through the library's own validation, every call has its result, and a model can be asked."""
    written = to_pydantic_ai_messages(messages)
    adapter = library.ModelMessagesTypeAdapter
    adapter.validate_json(adapter.dump_json(written))
    kinds = [message.kind for message in written]
    assert all(one != other for one, other in itertools.pairwise(kinds))
    waiting: list[str] = []
    for message in written:
        answered = [part.tool_call_id for part in message.parts if isinstance(part, library.ToolReturnPart)]
        assert answered == waiting
        assert all(isinstance(part, library.ToolReturnPart) for part in message.parts[: len(answered)])
        waiting = [part.tool_call_id for part in message.parts if isinstance(part, library.ToolCallPart)]
        assert len(set(waiting)) == len(waiting)
    assert not waiting
    assert PENDING_OUTPUT not in "".join(message.content for message in from_pydantic_ai_messages(written))
    assert asyncio.run(answering([]).run("and?", message_history=written)).output
