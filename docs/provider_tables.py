# ruff: noqa: INP001  (documents are no package)
"""Writes the tables of docs/providers.md from the code: `python docs/provider_tables.py`.

A test compares the page with the code, so neither can change alone.
"""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

from realtime.core.capabilities import ModelCapabilities
from realtime.models.azure_voice_live import AzureVoiceLive, VoiceLiveSettings
from realtime.models.gemini import GeminiSettings, gemini_capabilities
from realtime.models.local import LocalRealtime
from realtime.models.openai import openai_capabilities
from realtime.models.websocket import OpenAISettings
from realtime.models.xai import XaiRealtime, XaiSettings

PAGE = Path(__file__).with_name("providers.md")

_ANYWHERE = "ws://127.0.0.1:9"  # nothing is connected
_MODELS: dict[str, ModelCapabilities] = {
    "`openai:gpt-realtime`": openai_capabilities("gpt-realtime"),
    "`openai:gpt-realtime-2`": openai_capabilities("gpt-realtime-2"),
    "`azure-voice-live:…`": AzureVoiceLive("gpt-realtime", url=_ANYWHERE).capabilities,
    "`gemini:gemini-3.8-live`": gemini_capabilities("gemini-3.8-live"),
    "`gemini:gemini-2.5-flash-native-audio`": gemini_capabilities("gemini-2.5-flash-native-audio"),
    "`xai:…`": XaiRealtime("grok-voice-latest", url=_ANYWHERE).capabilities,
    "`local`": LocalRealtime().capabilities,
}
_SETTINGS: dict[str, Any] = {
    "OpenAI, Azure, `WebSocketModel`": OpenAISettings,
    "Voice Live": VoiceLiveSettings,
    "Gemini": GeminiSettings,
    "xAI": XaiSettings,
}


def described(kind: type) -> dict[str, str]:
    """The first sentence that stands under each field of a class."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    found: dict[str, str] = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def _cell(value: object) -> str:
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if value is None:
        return "–"
    return f"{value:,g}" if isinstance(value, (int, float)) else f"`{value}`"


def capability_table() -> str:
    """Every capability of every kind of model."""
    meanings = described(ModelCapabilities)
    lines = [f"| | {' | '.join(_MODELS)} |", f"| --- |{' --- |' * len(_MODELS)}"]
    for field in fields(ModelCapabilities):
        if field.name != "model":
            cells = [_cell(getattr(known, field.name)) for known in _MODELS.values()]
            lines.append(f"| `{field.name}` | {' | '.join(cells)} |")
    names = [field.name for field in fields(ModelCapabilities) if field.name != "model"]
    return "\n".join([*lines, "", *(f"- `{name}`: {meanings[name]}" for name in names)])


def settings_table() -> str:
    """Every setting that is a keyword argument of a model, and who has it."""
    meanings: dict[str, str] = {}
    for provider, kind in _SETTINGS.items():
        for name, text in described(kind).items():
            said = meanings.get(name, "")
            if not said:
                meanings[name] = text
            elif text not in said:
                meanings[name] = f"{said} {provider}: {text if text[1].isupper() else text[0].lower() + text[1:]}"
    lines = [f"| | {' | '.join(_SETTINGS)} | |", f"| --- |{' --- |' * len(_SETTINGS)} --- |"]
    for name, text in meanings.items():
        has = ["yes" if name in kind.__annotations__ else "" for kind in _SETTINGS.values()]
        lines.append(f"| `{name}` | {' | '.join(has)} | {text} |")
    return "\n".join(lines)


def render(page: str) -> str:
    """The page with its tables as they are now."""
    for name, table in (("capabilities", capability_table()), ("settings", settings_table())):
        begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        assert found, f"the page has no place for {name}"
        page = f"{before}{begin}\n\n{table}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
