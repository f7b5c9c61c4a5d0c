"""What loads what: `import realtime` is nearly free, the core and the values load no media library (architecture section 3)."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import realtime
from realtime import errors, events

HEAVY = ("aiortc", "av", "numpy", "PIL", "asyncio", "websockets", "pydantic")


def loaded_by(statement: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*sorted(sys.modules), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    return set(done.stdout.split())


def test_import_realtime_loads_nothing_of_the_package_and_no_library():
    loaded = loaded_by("import realtime")
    assert loaded.isdisjoint(HEAVY)
    assert {name for name in loaded if name.startswith("realtime")} == {"realtime", "realtime.lazy"}


@pytest.mark.parametrize("room", ["realtime.core", "realtime.core.machine", "realtime.chat", "realtime.events"])
def test_core_and_values_load_no_media_library_and_no_loop(room):
    assert loaded_by(f"import {room}").isdisjoint({"aiortc", "av", "numpy", "PIL", "asyncio", "websockets"})


@pytest.mark.parametrize(
    "names",
    ["ChatContext, ContextWindow, ContextManager, ChatMessage, ImageContent", "Agent, FrameSampling, TurnCompleted"],
)
def test_values_from_the_top_load_no_media_library_and_no_loop(names):
    assert loaded_by(f"from realtime import {names}").isdisjoint({"aiortc", "av", "numpy", "PIL", "asyncio"})


def test_using_a_context_loads_no_media_library_and_no_loop():
    use = (
        "from realtime import ChatContext, ContextWindow\n"
        "context = ChatContext.empty()\n"
        "context.add_message('user', 'hello')\n"
        "ContextWindow(max_tokens=10).apply(context)\n"
        "context.to_openai_messages(); context.to_anthropic_messages(); context.to_google_contents(); context.to_dict()"
    )
    assert loaded_by(use).isdisjoint({"aiortc", "av", "numpy", "PIL", "asyncio"})


def test_encode_options_load_no_media_library():
    assert loaded_by("from realtime import DEFAULT_REALTIME_ENCODE_OPTIONS").isdisjoint(
        {"av", "numpy", "PIL", "asyncio"}
    )


@pytest.mark.parametrize("name", realtime.__all__)
def test_every_public_name_is_there(name):
    assert getattr(realtime, name) is not None
    assert name in dir(realtime)


def test_public_names_are_whole():
    """Every event, every error and every name of the architecture's section 7 is importable from the top."""
    assert set(events.__all__) <= set(realtime.__all__)
    assert set(errors.__all__) <= set(realtime.__all__)
    contract = {
        *(
            "DEFAULT_REALTIME_ENCODE_OPTIONS",
            "Agent",
            "ChatContext",
            "ContextWindow",
            "FrameSampling",
            "RealtimeSession",
        ),
        *("Tool", "ToolContext", "AudioRetention", "UserError", "ModelCapabilities", "RealtimeModel", "LocalRealtime"),
        *("OpenAIRealtime", "AzureRealtime", "GeminiLive", "XaiRealtime", "WebSocketModel", "EncodeOptions", "encode"),
        *("ResizeOptions", "coerce_image_to_jpeg_bytes", "ReconnectPolicy", "TurnDetection", "UsageLimits"),
        *("Conversation", "ContextManager", "ContextManagement", "NoContextManagement", "WindowSizeContext"),
        *("SmartWindowSizeContext", "ChatRole", "ChatMessage", "ChatContent", "ImageContent", "AudioContent"),
        *("FunctionCall", "FunctionCallOutput", "AgentHandoff", "TokenUsage", "sanitize_messages", "TokenCounter"),
    }
    assert contract <= set(realtime.__all__)


def test_names_that_are_none_are_said_so():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        realtime.nothing_of_the_kind  # noqa: B018
    with pytest.raises(ImportError):
        exec("from realtime import nothing_of_the_kind")


@pytest.mark.parametrize("room", ["chat", "media", "events", "errors", "testing", "models", "tracks"])
def test_rooms_that_others_build_on_are_importable_and_their_names_are_there(room):
    module = importlib.import_module(f"realtime.{room}")
    for name in getattr(module, "__all__", ()):
        assert getattr(module, name) is not None


def test_events_is_the_face_of_the_core_s():
    from realtime.core import events as inner

    assert set(events.__all__) == set(inner.__all__)
    assert all(getattr(events, name) is getattr(inner, name) for name in events.__all__)
