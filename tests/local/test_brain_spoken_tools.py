"""Tool calls as people speak them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from realtime.local.brain.spoken_tools import Missing, find_calls, force_call, spoken_name
from realtime.local.parts import Tool


def tool(name: str, *required: str, **properties: dict[str, Any]) -> Tool:
    return Tool(name=name, parameters={"type": "object", "properties": properties, "required": list(required)})


WEATHER = tool("get_weather", "city", city={"type": "string"})
ORDER = tool("lookup_order", "order_number", order_number={"type": "integer"})
LIGHT = tool(
    "set_light",
    "room",
    "on",
    room={"type": "string"},
    on={"type": "boolean"},
    color={"type": "string", "enum": ["red", "blue"]},
)
TIME = tool("getTime")
NOTE = tool("add_note", "lines", lines={"type": "array"})
TOOLS = [WEATHER, ORDER, LIGHT, TIME, NOTE]


def called(text: str, tools: list[Tool] = TOOLS) -> list[tuple[str, Any]]:
    calls = find_calls(text, tools)
    assert not isinstance(calls, Missing), calls
    return [(call.name, json.loads(call.arguments)) for call in calls]


@pytest.mark.parametrize(
    ("text", "name", "arguments"),
    [
        ("What is the weather in London?", "get_weather", {"city": "London"}),
        ("Get weather in New York please.", "get_weather", {"city": "New York"}),
        ("get weather, city is Paris", "get_weather", {"city": "Paris"}),
        ("What's the weather like for San Francisco now?", "get_weather", {"city": "San Francisco"}),
        ("Call the lookup order tool with order number 42.", "lookup_order", {"order_number": 42}),
        ("Look up order number forty two", "lookup_order", {"order_number": 42}),
        ("Set light room kitchen on true color red", "set_light", {"room": "kitchen", "on": True, "color": "red"}),
        ("Set the light in the kitchen to blue, on.", "set_light", {"room": "kitchen", "on": True, "color": "blue"}),
        ("Get time.", "getTime", {}),
        ("Add note milk and bread", "add_note", {"lines": ["milk", "bread"]}),
    ],
)
def test_a_tool_is_called_with_what_was_said(text: str, name: str, arguments: dict[str, Any]) -> None:
    assert called(text) == [(name, arguments)]


def test_two_tools_in_one_sentence_are_called_together() -> None:
    text = "What is the weather in Paris and look up order number 7"
    assert called(text) == [("get_weather", {"city": "Paris"}), ("lookup_order", {"order_number": 7})]
    both = "Get weather in Paris and get weather in Rome"
    assert called(both) == [("get_weather", {"city": "Paris"}), ("get_weather", {"city": "Rome"})]


@pytest.mark.parametrize("text", ["Hello there.", "I ordered pizza.", "", "What did I say?"])
def test_talk_calls_nothing(text: str) -> None:
    assert called(text, [WEATHER, LIGHT, NOTE]) == []


def test_an_argument_that_was_not_said_is_named() -> None:
    missing = find_calls("What is the weather?", TOOLS)
    assert isinstance(missing, Missing)
    assert (missing.tool.name, missing.argument) == ("get_weather", "city")


def test_a_call_that_must_be_made_is_made_with_the_tool_that_fits_best() -> None:
    forced = force_call(
        "Is there rain in London",
        [ORDER, Tool(name="forecast", description="rain and sun", parameters=WEATHER.parameters)],
    )
    assert forced.name == "forecast"
    assert json.loads(forced.arguments)["city"]
    assert json.loads(force_call("hello", [ORDER]).arguments) == {"order_number": 0}
    assert json.loads(force_call("", [LIGHT]).arguments) == {"room": "", "on": False}


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"properties": None},
        {"properties": {"a": None}, "required": ["a", 5, "b"]},
        {"properties": {"a": {"type": ["null", "string"]}}},
    ],
)
def test_schemas_that_are_odd_do_no_harm(parameters: dict[str, Any]) -> None:
    odd = Tool(name="do_it", parameters=parameters)
    assert json.loads(force_call("do it quickly", [odd]).arguments) is not None
    find_calls("do it", [odd])


def test_names_as_they_are_spoken() -> None:
    assert [spoken_name(name) for name in ("get_weather", "getWeather", "look-up")] == [
        "get weather",
        "get weather",
        "look up",
    ]
