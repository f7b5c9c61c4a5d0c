"""`realtime.pipelines.tool`: schema from signature and docstring; arguments validated (B08); context injected (T5)."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from realtime.errors import ArgumentError
from realtime.pipelines.tool import BadArgumentsError, CallContext, Tool, build_tools

if TYPE_CHECKING:
    from realtime import ToolContext

CONTEXT = CallContext(call_id="c1", agent_id="agent")


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class Point:
    x: int
    y: int = 0


class Address(BaseModel):
    city: str
    title: str = ""


def call(tool: Tool, arguments: str) -> Any:
    return tool.bind(arguments, CONTEXT)()


def test_schema_comes_from_signature_and_docstring():
    def book(day: str, guests: int = 2, size: Literal["s", "l"] | None = None) -> str:
        """Book a table.

        Only for dinner.

        Args:
            day: The day, as
                YYYY-MM-DD.
            guests (int): How many come.

        Returns:
            A confirmation.
        """
        return f"{day} {guests} {size}"

    tool = Tool(book)
    assert tool.name == "book"
    assert tool.spec.description == "Book a table.\n\nOnly for dinner."
    schema = tool.spec.parameters
    assert schema["type"] == "object"
    assert schema["required"] == ["day"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["day"] == {"type": "string", "description": "The day, as YYYY-MM-DD."}
    assert schema["properties"]["guests"] == {"type": "integer", "default": 2, "description": "How many come."}
    assert "title" not in json.dumps(schema)
    assert call(tool, '{"day": "2024-05-01"}') == "2024-05-01 2 None"


def test_field_list_docstrings_are_read_too():
    def find(what: str) -> None:
        """Find something.

        :param str what: The thing
            to find.
        :returns: nothing
        """

    spec = Tool(find).spec
    assert spec.description == "Find something."
    assert spec.parameters["properties"]["what"]["description"] == "The thing to find."


def test_properties_named_like_schema_words_survive():
    def write(title: str, schema: int, model_config: bool, _private: str = "") -> Any:
        return title, schema, model_config, _private

    tool = Tool(write)
    assert set(tool.spec.parameters["properties"]) == {"title", "schema", "model_config", "_private"}
    assert call(tool, '{"title": "t", "schema": 1, "model_config": true}') == ("t", 1, True, "")


def test_rich_types_are_described_and_made():
    def go(
        size: Size, point: Point, address: Address, tags: list[str], level: Annotated[int, Field(ge=1, le=3)] = 1
    ) -> Any:
        return size, point, address, tags, level

    tool = Tool(go)
    given = {"size": "small", "point": {"x": 1}, "address": {"city": "Rome"}, "tags": ["a"], "level": 3}
    assert call(tool, json.dumps(given)) == (Size.SMALL, Point(1), Address(city="Rome"), ["a"], 3)
    assert tool.spec.parameters["properties"]["level"]["maximum"] == 3
    assert "title" in tool.spec.parameters["$defs"]["Address"]["properties"]


@pytest.mark.parametrize("empty", ["", "  \n", "{}"])
def test_empty_arguments_mean_none(empty):
    """F5, B08."""
    assert call(Tool(lambda x=5: x, name="f"), empty) == 5


@pytest.mark.parametrize(
    "arguments",
    ['{"city": "San Fra', "null", "[1]", '"x"', "{}extra", '{"city": "\\ud800"}', '{"city": 1}', '{"town": "x"}', "{}"],
)
def test_bad_arguments_are_refused_in_a_short_text_and_the_tool_is_not_run(arguments):
    """B08."""
    ran: list[str] = []

    def weather(city: str) -> None:
        ran.append(city)

    with pytest.raises(BadArgumentsError) as caught:
        Tool(weather).bind(arguments, CONTEXT)
    assert ran == []
    assert 0 < len(str(caught.value)) <= 500


def test_text_of_the_error_names_the_argument_and_not_the_content():
    def f(count: int) -> None: ...

    with pytest.raises(BadArgumentsError, match="count") as caught:
        Tool(f).bind('{"count": "' + "secret" * 500 + '"}', CONTEXT)
    assert "secret" not in str(caught.value)


def test_half_a_surrogate_pair_is_no_crash():
    assert call(Tool(lambda x: x, name="f"), '{"x": "a\ud800b"}') == "a?b"


def test_positional_only_parameters_are_passed_by_position():
    def f(a: int, /, b: int) -> Any:
        return a, b

    assert call(Tool(f), '{"a": 1, "b": 2}') == (1, 2)


def test_context_is_injected_by_annotation_and_left_out_of_the_schema():
    """T5."""

    def one(context: CallContext, x: int = 0) -> Any:
        return context, x

    def maybe(x: int = 0, *, here: CallContext | None = None) -> Any:
        return here, x

    for function in (one, maybe):
        tool = Tool(function)
        assert set(tool.spec.parameters["properties"]) == {"x"}
        assert call(tool, '{"x": 3}') == (CONTEXT, 3)


def test_context_known_to_type_checkers_only_is_injected_too():
    def f(context: ToolContext, x: int) -> Any:
        return context, x

    assert call(Tool(f), '{"x": 1}') == (CONTEXT, 1)


def test_methods_partials_and_callable_objects_are_tools():
    class Shop:
        def __init__(self) -> None:
            self.name = "shop"

        def price(self, item: str) -> str:
            """What it costs."""
            return f"{self.name} {item}"

        async def __call__(self, item: str) -> str:
            return item

    shop = Shop()
    assert call(Tool(shop.price), '{"item": "tea"}') == "shop tea"
    assert Tool(shop.price).spec.description == "What it costs."
    assert Tool(shop, name="shop").is_async
    assert set(Tool(shop).spec.parameters["properties"]) == {"item"}
    bound = Tool(functools.partial(shop.price, item="milk"))
    assert bound.name == "price"
    assert call(bound, "") == "shop milk"


def test_async_functions_are_known_as_such():
    async def f() -> None: ...

    assert Tool(f).is_async
    assert not Tool(lambda: None, name="g").is_async


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (lambda: None, "name"),
        ("text", "tools"),
        (lambda *args: args, "name"),
        (7, "tools"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_by_name(function, named):
    with pytest.raises(ArgumentError) as caught:
        Tool(function)
    assert caught.value.argument == named


def test_signatures_without_a_schema_are_refused():
    def stars(*args: int) -> None: ...
    def unknown(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
    def opaque(x: threading_lock) -> None: ...  # type: ignore[valid-type]

    for function in (stars, unknown, opaque):
        with pytest.raises(ArgumentError, match=function.__name__):
            Tool(function)


class threading_lock:
    """Not describable in JSON schema."""


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), True, "5"])
def test_timeouts_that_cannot_be_are_refused(timeout):
    with pytest.raises(ArgumentError, match="timeout_seconds"):
        Tool(lambda: None, name="f", timeout_seconds=timeout)


def test_two_tools_of_one_name_are_refused():
    def f() -> None: ...

    with pytest.raises(ArgumentError, match="different names"):
        build_tools([f, Tool(f)])
    with pytest.raises(ArgumentError, match="iterable"):
        build_tools("f")


def test_build_tools_keeps_tools_and_wraps_functions():
    def f() -> None: ...

    given = Tool(lambda: None, name="g", sequential=True)
    tools = build_tools(iter([f, given]))
    assert list(tools) == ["f", "g"]
    assert tools["g"] is given
    assert tools["g"].spec.sequential
