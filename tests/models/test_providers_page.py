"""docs/providers.md says what the code does: its tables are made of it, and its names are there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import realtime
from realtime import RealtimeSession, TurnDetection
from realtime.errors import ArgumentError, UserError
from realtime.models import resolve
from realtime.models.openai import OpenAIRealtime
from realtime.models.xai import XaiRealtime

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "providers.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("provider_tables", DOCS / "provider_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_code(tables: ModuleType):
    """After a change of a capability or a setting: python docs/provider_tables.py."""
    assert tables.render(PAGE) == PAGE


def test_every_setting_and_capability_has_its_meaning(tables: ModuleType):
    for kind in tables._SETTINGS.values():
        assert set(tables.described(kind)) == set(kind.__annotations__)
        assert all(tables.described(kind).values())


def test_every_class_and_every_string_of_the_page_is_there(monkeypatch: pytest.MonkeyPatch):
    for name in re.findall(r"`((?:OpenAI|Azure|Gemini|Xai|Local|WebSocket)[A-Za-z]+)\(", PAGE):
        assert hasattr(realtime, name)
    for name in re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", PAGE):
        monkeypatch.setenv(name, "https://name.example.com" if name.endswith("ENDPOINT") else "key")
    strings = [name for name in re.findall(r'`"([a-z-]+:?[^"…]*)"`', PAGE.partition("## Settings")[0]) if name]
    assert len(strings) == 6
    for name in strings:
        assert resolve(name).name.startswith(name.partition(":")[0])


@pytest.mark.parametrize(
    ("model", "settings", "capability"),
    [
        (XaiRealtime("grok-voice-latest", url="ws://127.0.0.1:9"), {"output": "text"}, "supports_text_output"),
        (
            XaiRealtime("grok-voice-latest", url="ws://127.0.0.1:9"),
            {"turn_detection": TurnDetection(mode="semantic")},
            "supports_semantic_turns",
        ),
        (
            realtime.GeminiLive("gemini-3.8-live", url="ws://127.0.0.1:9"),
            {"turn_detection": TurnDetection(create_response=False)},
            "supports_unanswered_turns",
        ),
    ],
)
def test_what_the_page_says_is_refused_is_refused_before_connecting(model, settings, capability):
    assert f"refused: `{capability}`" in PAGE or f"push-to-talk: `{capability}`" in PAGE
    with pytest.raises(UserError, match=capability):
        RealtimeSession(model, **settings)


def test_gpt_live_is_left_out_and_says_so():
    with pytest.raises(ArgumentError, match="another protocol"):
        OpenAIRealtime("gpt-live-1", api_key="k")
    assert "GPT-Live" in PAGE
